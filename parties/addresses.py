"""What the text of a host's name or number says about it; no name is resolved. Standard library only."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether this host is the machine itself, whatever its names resolve to."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.casefold() == "localhost"
