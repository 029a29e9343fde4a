"""Record what travels in the runs of `runs`, after a change that is meant to change it: say in the changelog
what and why.

python -m tests.transcripts.record
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.transcripts.runs import Transcript, cases

RECORD = Path(__file__).with_name("recorded.json")


def main() -> None:
    """Run the command."""
    recorded = {}
    for name, case in cases().items():
        if case.lacks is not None:
            raise SystemExit(f"{name}: the backend {case.lacks}.")
        recorded[name] = Transcript.of(case.frames()).as_dict()
    RECORD.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
    print(f"{len(recorded)} transcripts recorded in {RECORD.name}.")


if __name__ == "__main__":
    main()
