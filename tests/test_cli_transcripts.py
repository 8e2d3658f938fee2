"""Ordinary and wrong invocations with everything that they print, kept in tests/transcripts.

``python -m tests.test_cli_transcripts`` writes them anew: read what changed before keeping it.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from pathlib import Path

import pytest

import inbounds as ib
from inbounds.ledger import Ledger
from tests.cli_support import QUESTIONS, entries, masked, produced, same, write_visits

FOLDER = Path(__file__).parent / "transcripts"
NAMES = ("ordinary", "wrong")


def prepare(folder: Path) -> None:
    """A true value, a table and questions in files, a ledger with an answered release, one that was changed."""
    write_visits(folder)
    (folder / "questions.toml").write_text(QUESTIONS)
    (folder / "wrong.toml").write_text(QUESTIONS.replace("column =", "colum ="))
    (folder / "mean_age.txt").write_text("41.3\n")
    age = ib.Laplace.calibrate(ib.Interval(0, 120), sensitivity=0.5, epsilon=0.3)
    for name in ("budget.db", "tampered.db"):
        with Ledger.open(folder / name) as ledger:
            visits = ledger.scope("visits", budget=ib.Budget(epsilon=1))
            alice = ledger.scope("alice", budget=ib.Budget(epsilon=0.5), parent=visits, renews="year")
            alice.spend(age.event(), lambda: 40.5, key="mean age, March")
    database = sqlite3.connect(folder / "tampered.db")
    database.execute("DROP TRIGGER inbounds_record_UPDATE")
    database.execute("UPDATE inbounds_record SET content = replace(content, '40.5', '39.5') WHERE kind = 'commit'")
    database.commit()
    database.close()


def kept(name: str) -> list[tuple[str, str]]:
    return list(entries((FOLDER / f"{name}.txt").read_text(encoding="utf-8")))


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "shown"), [pytest.param(*entry, id=entry[0]) for name in NAMES for entry in kept(name)]
)
def test_transcript(prepared: Path, line: str, shown: str) -> None:
    same(produced(line, code=True), shown)


def test_there_are_enough() -> None:
    ordinary, wrong = (kept(name) for name in NAMES)
    assert len(ordinary) >= 10
    assert len(wrong) >= 10
    assert all(shown.endswith(("[exit 0]\n", "[exit 1]\n")) for _, shown in ordinary)
    for line, shown in wrong:
        assert "Traceback" not in shown, line
        assert not shown.endswith(("[exit 0]\n", "[exit 70]\n")), line
        assert len(shown.splitlines()) == 2 or "verify" in line, line


if __name__ == "__main__":
    for name in NAMES:
        written = []
        for line, _ in kept(name):
            with tempfile.TemporaryDirectory() as place:
                prepare(Path(place))
                os.chdir(place)
                written.append(f"$ inbounds {line}\n{masked(produced(line, code=True))}")
        (FOLDER / f"{name}.txt").write_text("".join(written), encoding="utf-8")
