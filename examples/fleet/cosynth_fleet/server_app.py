"""The courier: in each round it asks the nodes that are there, and puts what they hand over into the parties'
watched folders.

    study      the study file, with its public files beside it
    arrivals   a folder with one folder for each computing party, called by its name, which `inbox --watch` watches
    rounds     how often it goes round; after each it waits for pause-s seconds
    share      the share of nodes that it asks in a round, each by chance: who drops by, in a simulation. 1: all
    timeout-s  how long it waits for the answers of a round

It holds no key. It ends early when all contributors have delivered, or as many as close the collection.
"""

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from secrets import SystemRandom

from flwr.app import ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.serverapp import Grid, ServerApp

from cosynth_fleet import BUNDLE, STUDY
from mpc_protocols.errors import CosynthError
from runner.contributors.collection import collection_of
from runner.contributors.courier.deliveries import Deliveries
from runner.contributors.courier.study_files import StudyFiles
from runner.party.synthesis import plan_of
from runner.study import load

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """One journey."""
    config, chance = context.run_config, SystemRandom()
    study = load(Path(str(config["study"])))
    files, collection = StudyFiles.of(study), collection_of(study, plan_of(study))
    folders = {party: Path(str(config["arrivals"])) / party for party in collection.receivers}
    deliveries, served = Deliveries(collection, folders), set[int]()
    print(
        f"study {files.fingerprint}: to be collected from {len(collection.contributors)} contributors",
        flush=True,
    )
    content = files.to_bytes()
    for number in range(1, int(config["rounds"]) + 1):
        began = time.monotonic()
        there = sorted(set(grid.get_node_ids()) - served)
        asked = [node for node in there if chance.random() < float(config["share"])]
        messages = [
            Message(
                RecordDict({STUDY: ConfigRecord({STUDY: content})}),
                dst_node_id=node,
                message_type=MessageType.QUERY,
                group_id=str(number),
            )
            for node in asked
        ]
        passed = 0
        for reply in grid.send_and_receive(messages, timeout=float(config["timeout-s"])):
            if reply.has_error() or BUNDLE not in reply.content:
                continue
            record = reply.content[BUNDLE]
            try:
                deliveries.take(dict(record).get(BUNDLE), datetime.now(UTC))
            except CosynthError as error:
                print(f"not passed on: {error.sentence}", flush=True)
                continue
            served.add(reply.metadata.src_node_id)
            passed += 1
        told = {
            "round": number,
            "nodes": len(there),
            "asked": len(asked),
            "bundles": passed,
            "in_all": len(deliveries.contributors),
            "wall_s": round(time.monotonic() - began, 2),
        }
        print(json.dumps(told), flush=True)
        if len(deliveries.contributors) >= (
            collection.closes[-1].bundles or len(collection.contributors) - len(collection.earlier)
        ):
            return
        if number < int(config["rounds"]):
            time.sleep(float(config["pause-s"]))
