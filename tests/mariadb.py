"""A real MariaDB server for the tests: its own data folder, a free port of this machine, passwords checked.

The binaries are an installed server's (Debian: mariadb-server-core). The server never runs as root: started
by root, it runs as `nobody`.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.postgres import PASSWORD, ends_with_us
from tests.worlds.ports import free_ports

_FOLDERS = "/usr/sbin:/usr/local/sbin:/usr/local/bin:/usr/bin:/usr/libexec"


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{_FOLDERS}")


def _system_tables() -> Path | None:
    """The folder with the statements that make a new server's own tables."""
    folders = [Path("/usr/share/mysql"), Path("/usr/share/mariadb"), Path("/usr/local/share/mariadb")]
    return next((folder for folder in folders if (folder / "mysql_system_tables.sql").exists()), None)


def available() -> str | None:
    """Why no server can be started here; None if one can."""
    if sys.platform == "win32":
        return "the server is started as another user, which needs POSIX"
    for package in ("sqlalchemy", "pymysql"):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed (the extra `mysql` of setup.py)"
    if _program("mariadbd") is None or _system_tables() is None:
        return "no MariaDB server is installed (Debian: mariadb-server-core)"
    return None


class MariaDB:
    """A running server whose database `clinic` the user `admin` owns. Stop it with `stop`."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cosynth-my-", dir="/tmp"))
        self.port = free_ports(1)[0]
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self._environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": str(self.folder), "TZ": "UTC"}
        try:
            self._install()
            self._start()
            self._wait()
        except BaseException:
            self.stop()
            raise

    def _install(self) -> None:
        program, tables = _program("mariadbd"), _system_tables()
        assert program is not None and tables is not None
        data = self.folder / "data"
        data.mkdir()
        if self._user:
            os.chown(data, self._user["user"], self._user["group"])
        statements = [
            "CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n",
            *(
                (tables / f"{name}.sql").read_text()
                for name in ("mysql_system_tables", "mysql_system_tables_data")
            ),
        ]
        subprocess.run(
            [program, "--no-defaults", f"--datadir={data}", "--bootstrap", "--skip-name-resolve"],
            input="\n".join(statements).encode(),
            check=True,
            capture_output=True,
            cwd=self.folder,
            env=self._environment,
            **self._user,
        )
        secret = PASSWORD.replace("'", "''")
        everything = f"CREATE USER admin@'%' IDENTIFIED BY '{secret}'; GRANT ALL ON *.* TO admin@'%' WITH GRANT OPTION;"
        (self.folder / "first.sql").write_text(
            f"CREATE DATABASE clinic;\n{everything.replace('; ', ';' + chr(10))}\nDROP USER root@'localhost';\n"
        )
        (self.folder / "first.sql").chmod(0o644)

    def _start(self) -> None:
        program = _program("mariadbd")
        assert program is not None
        with (self.folder / "log").open("wb") as log:
            self._server = subprocess.Popen(
                [
                    program,
                    "--no-defaults",
                    f"--datadir={self.folder / 'data'}",
                    f"--init-file={self.folder / 'first.sql'}",
                    f"--port={self.port}",
                    "--bind-address=127.0.0.1",
                    f"--socket={self.folder / 'socket'}",
                    f"--pid-file={self.folder / 'pid'}",
                    "--skip-name-resolve",
                    "--innodb-flush-log-at-trx-commit=0",
                    "--innodb-buffer-pool-size=16M",
                    "--innodb-log-file-size=8M",
                    "--aria-pagecache-buffer-size=1M",
                    "--key-buffer-size=1M",
                    "--performance-schema=OFF",
                    "--lock-wait-timeout=20",  # of a table that a test has not closed
                    # a server that reads and compares in another way than its clients expect
                    "--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH",
                    "--collation-server=utf8mb4_general_ci",
                    "--character-set-server=utf8mb4",
                    "--default-time-zone=+05:30",
                ],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=self._environment,
                preexec_fn=ends_with_us,
                **self._user,
            )

    def _wait(self) -> None:
        import pymysql

        deadline = time.monotonic() + 60
        while True:
            try:
                self.connect().close()
            except pymysql.Error:
                if self._server.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.05)
            else:
                return

    def url(self, user: str = "admin", password: str = PASSWORD) -> str:
        """A URL as a private file writes it."""
        secret = f":{quote(password, safe='')}" if password else ""
        return f"mariadb://{quote(user, safe='')}{secret}@127.0.0.1:{self.port}/clinic"

    def connect(self) -> Any:
        """The owner's connection, each statement a transaction."""
        import pymysql

        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user="admin",
            password=PASSWORD,
            database="clinic",
            autocommit=True,
        )

    def execute(self, *statements: str) -> None:
        """Run statements as the owner."""
        with self.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def stop(self) -> None:
        """End the server and remove its files."""
        server = getattr(self, "_server", None)
        if server is not None and server.poll() is None:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
