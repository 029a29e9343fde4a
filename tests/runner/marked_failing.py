"""`tests.runner.marked` with an error in the program: a protocol receives shares, and the next line fails and
quotes a record."""

from __future__ import annotations

from typing import Any

from tests.runner import marked

QUOTED = "marked-person-0001"


def main() -> None:
    """Run the command line."""
    from parties.session.party import SessionWire

    receive: Any = SessionWire.receive
    count = 0

    def failing(wire: SessionWire, peer: int, size: int) -> memoryview:
        nonlocal count
        payload: memoryview = receive(wire, peer, size)
        count += size > 100
        if count == 5:
            raise ValueError(f"cannot work on {QUOTED}")
        return payload

    SessionWire.receive = failing  # type: ignore[assignment, method-assign]
    marked.main()


if __name__ == "__main__":
    main()
