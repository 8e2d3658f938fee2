"""Fixtures of the tests of the ledger, loaded by ``pytest_plugins``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from inbounds.ledger import Ledger
from tests.postgres import Server


@pytest.fixture(scope="session")
def server(initdb: str) -> Iterator[Server]:
    """A PostgreSQL server of this process."""
    made = Server(initdb)
    yield made
    made.stop()


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty ledger can be made, in the store that the test's parameter names."""
    if request.param == "memory":
        return ":memory:"
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    found: Server = request.getfixturevalue("server")
    return found.url()


@pytest.fixture
def ledger(place: str) -> Iterator[Ledger]:
    """An empty ledger in that store."""
    with Ledger.open(place, timeout=20.0) as made:
        yield made
