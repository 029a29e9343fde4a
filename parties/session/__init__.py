"""The session: how a party's process meets the others, agrees with them, and gets a wire
(`docs/design/session.md`)."""

from parties.session.admission.config import Peer, SessionConfig
from parties.session.party import SessionWire
from parties.session.session import leave, run_session

__all__ = ["Peer", "SessionConfig", "SessionWire", "leave", "run_session"]
