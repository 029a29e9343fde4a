"""Which databases an address of a private file or a study may name, and what its address may say. Standard
library only: the study's reader asks.

A driver's options may do more than connect (read this machine's files for a server, change how texts are
compared): only those that are listed here are handed on.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qsl

FILES: Final = ("duckdb", "sqlite")
"""Schemes whose address is a file of this machine."""
POSTGRES: Final = ("postgres", "postgresql")
SERVERS: Final = ("mysql", "mariadb", "mssql", "oracle", "snowflake", "bigquery")
"""Schemes of what is reached through SQLAlchemy (`products.py`)."""
SCHEMES: Final = (*POSTGRES, *FILES, *SERVERS)

_LIBPQ = (
    "sslmode sslrootcert sslcert sslkey sslpassword sslcrl sslcrldir sslnegotiation sslsni ssl_min_protocol_version "
    "ssl_max_protocol_version channel_binding require_auth requirepeer gssencmode gsslib krbsrvname passfile host hostaddr port "
    "connect_timeout tcp_user_timeout keepalives keepalives_idle keepalives_interval keepalives_count target_session_attrs "
    "load_balance_hosts application_name"
)
_PYMYSQL = "ssl_ca ssl_capath ssl_cert ssl_key ssl_cipher ssl_check_hostname connect_timeout read_timeout unix_socket"
_OPTIONS: Final = {
    "postgres": _LIBPQ,
    "postgresql": _LIBPQ,
    "mysql": _PYMYSQL,
    "mariadb": _PYMYSQL,
    "mssql": "driver Encrypt TrustServerCertificate HostNameInCertificate ServerCertificate Authentication Trusted_Connection "
    "ApplicationIntent MultiSubnetFailover",
    "oracle": "service_name protocol wallet_location wallet_password ssl_server_dn_match ssl_server_cert_dn config_dir "
    "tcp_connect_timeout",
    "snowflake": "warehouse role schema database authenticator private_key_file private_key_file_pwd login_timeout",
    "bigquery": "location credentials_path",
}
"""What may stand behind the `?` of each."""


def is_server(url: str) -> bool:
    """Whether an address names something else than a file of this machine."""
    return url.partition("://")[0] not in FILES


def misfit(url: str) -> str:
    """What is wrong with a server's address, as the end of a sentence that tells no secret; "" if nothing is."""
    scheme, _, place = url.partition("://")
    if scheme not in _OPTIONS:
        return ""
    if "@" in re.split("[/?#]", place, maxsplit=1)[-1] and re.search("[/?#]", place):
        return (
            'has "@" behind the host: percent-encode the user and the password (/ is %2F, ? is %3F, # is %23, @ is %40), or '
            "leave the password to the environment"
        )
    if re.split("[/?#]", place, maxsplit=1)[0].count("@") > 1:  # drivers look for a host behind the first one
        return (
            'has two "@" before the host: percent-encode the user and the password (@ is %40), or leave the password to the '
            "environment"
        )
    known = _OPTIONS[scheme].split()
    for key, value in parse_qsl(place.partition("?")[2], keep_blank_values=True):
        if key.lower() not in (one.lower() for one in known):
            # without a value, it may be what is behind an "&" of a password
            named = f'the option "{key}"' if value and re.fullmatch(r"\w{1,40}", key) else "an option"
            return f"has {named}, which is not handed to a driver; {scheme}:// takes {', '.join(known)}"
    return ""
