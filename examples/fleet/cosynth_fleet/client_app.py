"""A contributor's end: asked for a bundle, it makes one with the Cosynth that is installed here, or says
nothing.

Everything is decided by a settings file on this machine (`runner/contributors/courier/node.py`). The
SuperNode names it, `--node-config 'settings="/srv/clinic/fleet.toml"'`; in a simulation, node 7 has 7.toml in
the folder COSYNTH_FLEET. What comes from the SuperLink names no file here. An exception would travel back
with its text, so none leaves: the owner reads it in the log.
"""

import os
import sys
from pathlib import Path

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from cosynth_fleet import BUNDLE, STUDY
from parties.core_dumps import forbid_core_dumps
from runner.contributors.courier.node import Node
from runner.failures import describe

app = ClientApp()


def settings(context: Context) -> Path:
    """This node's settings file."""
    if (named := context.node_config.get("settings")) is not None:
        return Path(str(named))
    return Path(os.environ["COSYNTH_FLEET"]) / f"{context.node_config['partition-id']}.toml"


@app.query()
def query(message: Message, context: Context) -> Message:
    """The bundle, or an empty answer."""
    forbid_core_dumps()
    answer = RecordDict()
    try:
        content = Node.read(settings(context)).bundle(message.content[STUDY][STUDY])
        answer[BUNDLE] = ConfigRecord({BUNDLE: content})
    except Exception as error:
        print(f"no bundle: {describe(error)[1]}", file=sys.stderr, flush=True)
    return Message(answer, reply_to=message)
