"""What an address may say, and what a driver is told: without a server."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from mpc_protocols.errors import StudyInvalid
from parties.data.engines.postgres import _connected
from parties.data.location import locate
from parties.data.sql.products import PRODUCTS
from runner.study import load, private_file
from tests.parties.data.tables import CANARY, everything_in
from tests.runner.studies import write_study

SERVERS = ("postgres", "mysql", "mariadb", "mssql", "oracle", "snowflake", "bigquery")


@pytest.mark.parametrize("scheme", SERVERS)
def test_a_study_does_not_say_to_which_server_a_password_goes(tmp_path: Path, scheme: str) -> None:
    """A private file does."""
    data = f'{{ url = "{scheme}://u@db.example/clinic", table = "people" }}'
    study = write_study(tmp_path, ('"south.csv"', data))
    with pytest.raises(StudyInvalid, match="say it in the private file") as refused:
        load(study)
    assert refused.value.exit_code == 10
    (tmp_path / "south.toml").write_text(f"data = {data}\n")
    assert (found := private_file.load(tmp_path / "south.toml").data) is not None
    assert found.locate().dataset == f"{scheme}://db.example/clinic#people"


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u@h/db?local_infile=1",
        "mysql://u@h/db?LOCAL_INFILE=1",
        "mysql://u@h/db?ssl_ca=x&local%5Finfile=1",
        "mariadb://u@h/db?charset=gbk",
        "mariadb://u@h/db?init_command=SELECT+1",
        "mysql://u@h/db?read_default_file=x",
        "mssql://u@h/db?odbc_connect=x",
        "oracle://u@h/?events=1",
        "snowflake://u@h/db?insecure_mode=1",
        "bigquery://p/d?credentials_base64=x",
        "postgres://u@h/db?options=-c%20x",
        "postgres://u@h/db?sslmode=require&nonsense=1",
    ],
)
def test_options_that_no_list_has_are_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(StudyInvalid, match="not handed to a driver"):
        locate({"url": url, "table": "people"})
    path = tmp_path / "private.toml"
    path.write_text(f'data = {{ url = "{url}", table = "people" }}')
    with pytest.raises(StudyInvalid, match="not handed to a driver"):
        private_file.load(path)


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u@h/db?ssl_ca=/etc/ca.pem&connect_timeout=3",
        "mssql://u@h/db?driver=ODBC+Driver+18+for+SQL+Server&Encrypt=yes",
        "oracle://u@h:1521/?service_name=clinic",
        "snowflake://u@a/C/P?warehouse=SMALL&role=READER",
        "postgres://u:p%40w@h/db?sslmode=verify-full&sslrootcert=ca.pem",
        "postgres://u@h/db?application_name=synthesis&keepalives_idle=60&tcp_user_timeout=9000&connect_timeout=5",
        "postgresql:///db?host=/var/run/postgresql&requirepeer=postgres",
        "mariadb://u@localhost/db?unix_socket=/run/mysqld/mysqld.sock&read_timeout=60",
    ],
)
def test_options_of_a_connection_are_taken(url: str) -> None:
    assert locate({"url": url, "table": "people"}).url == url


@pytest.mark.parametrize("mark", ["/", "?", "#", "12/", "12?", "12#"])
@pytest.mark.parametrize("scheme", SERVERS)
def test_a_password_that_would_be_taken_for_a_path_is_refused(scheme: str, mark: str) -> None:
    """And so never shown."""
    with pytest.raises(StudyInvalid, match="percent-encode") as refused:
        locate({"url": f"{scheme}://u:{mark}{CANARY}@host/db", "table": "people"})
    assert CANARY not in everything_in(refused.value)


@pytest.mark.parametrize("scheme", SERVERS)
def test_a_password_of_which_a_part_would_be_looked_up_as_a_host_is_refused(scheme: str) -> None:
    """Drivers take what is behind the first "@" for a host, whose address they ask of others."""
    with pytest.raises(StudyInvalid, match="percent-encode") as refused:
        locate({"url": f"{scheme}://u:p@{CANARY}@host/db", "table": "people"})
    assert CANARY not in everything_in(refused.value)


def test_a_password_that_would_be_taken_for_an_option_is_not_shown() -> None:
    with pytest.raises(StudyInvalid, match="has an option, which is not handed") as refused:
        locate({"url": "postgres://u@h/db?sslpassword=a&s3cret", "table": "people"})
    assert "s3cret" not in everything_in(refused.value)


def test_a_private_file_says_how_long_a_connection_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    psycopg = pytest.importorskip("psycopg")
    told = list[dict[str, object]]()

    def connect(url: str, **options: object) -> SimpleNamespace:
        told.append(options)
        return SimpleNamespace()

    monkeypatch.setattr(psycopg, "connect", connect)
    for query in ("", "?connect_timeout=5", "?keepalives_idle=60"):
        _connected(f"postgres://connect_timeout=:keepalives_idle=@h/db{query}")
    assert [sorted(options) for options in told] == [
        ["client_encoding", "connect_timeout", "keepalives_idle"],
        ["client_encoding", "keepalives_idle"],
        ["client_encoding", "connect_timeout"],
    ]


@pytest.mark.parametrize("name", ["mysql", "mariadb"])
def test_a_mysql_server_gets_no_file_and_no_password_in_the_clear(name: str) -> None:
    options = PRODUCTS[name].options
    assert options["local_infile"] is False and options["charset"] == "utf8mb4"
    for way in ("mysql_clear_password", "dialog"):
        handler = options["auth_plugin_map"][way]
        assert handler(SimpleNamespace(_secure=True)) is None
        with pytest.raises(ConnectionRefusedError):
            handler(SimpleNamespace(_secure=False))


def test_the_driver_obeys() -> None:
    """Its own objects, without a connection: no LOCAL DATA, and the map is asked before the driver's own way."""
    sa, pymysql = pytest.importorskip("sqlalchemy"), pytest.importorskip("pymysql")
    dialect = sa.create_engine("mysql+pymysql://u:p@h/db").dialect
    _, told = dialect.create_connect_args(sa.engine.make_url("mysql+pymysql://u:p@h/db?local_infile=1"))
    told.update(PRODUCTS["mysql"].options)
    connection = pymysql.connections.Connection(**told, defer_connect=True)
    assert not connection._local_infile and connection.charset == "utf8mb4" and not connection._secure
    for way in (b"mysql_clear_password", b"dialog"):
        with pytest.raises(ConnectionRefusedError):
            connection._get_auth_plugin_handler(way)
