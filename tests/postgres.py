"""A PostgreSQL server of our own, on a temporary folder and a loopback port, that may be crashed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

NOBODY = 65534  # the server refuses to run as root


def find_initdb() -> str | None:
    """Return the path of PostgreSQL's initdb, or None; Debian keeps it off PATH, one folder a version."""
    found = shutil.which("initdb")
    if found is not None:
        return found
    installed = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    # By version, not by name: as text "9" would come after "17".
    newest = max(installed, key=lambda p: [int(n) for n in p.parts[4].split(".") if n.isdigit()], default=None)
    return None if newest is None else str(newest)


class Server:
    """Started at once; ``stop`` ends it and removes its folder."""

    def __init__(self, initdb: str) -> None:
        self._bin = Path(os.path.realpath(initdb)).parent
        self._folder = Path(tempfile.mkdtemp(prefix="inbounds-postgres-"))
        self._as: dict[str, Any] = {}
        if os.name == "posix" and os.geteuid() == 0:
            os.chown(self._folder, NOBODY, NOBODY)
            self._as = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self._schemas = 0
        data = self._folder / "data"
        self._run([initdb, "-D", str(data), "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"])
        with (data / "postgresql.conf").open("a") as f:
            f.write("listen_addresses = '127.0.0.1'\nunix_socket_directories = ''\nmax_connections = 60\n")
            f.write("shared_buffers = 16MB\nlog_min_messages = fatal\n")
        self.start()

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, timeout=120, **self._as)
        assert done.returncode == 0, done.stderr

    def start(self, *options: str) -> None:
        """Start, on the same port as before if there was one, and wait until it answers."""
        if not hasattr(self, "_port"):
            with socket.create_server(("127.0.0.1", 0)) as free:
                self._port = free.getsockname()[1]
        command = [str(self._bin / "postgres"), "-D", str(self._folder / "data"), "-p", str(self._port), *options]
        with (self._folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._as
            )
        end = time.monotonic() + 60.0
        while not self._answers():
            assert self.process.poll() is None, (self._folder / "log").read_text()
            assert time.monotonic() < end, "the server did not start within a minute"
            time.sleep(0.05)

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self._url(), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _url(self) -> str:
        return f"postgresql://tester@127.0.0.1:{self._port}/postgres"

    def crash(self) -> None:
        """kill -9 of the server; its children notice and end by themselves."""
        self.process.kill()
        self.process.wait(timeout=60)

    def stop(self) -> None:
        """End it, quickly."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(timeout=60)
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self) -> str:
        """The URL of an empty schema that nobody else uses."""
        import psycopg

        self._schemas += 1
        name = f"test_{self._schemas}"
        with psycopg.connect(self._url(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{self._url()}?options={quote(f'-c search_path={name}')}"
