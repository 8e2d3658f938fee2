"""The scripts in examples/ that other tests do not run."""

from __future__ import annotations

import datetime as dt
import json
import runpy
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inbounds import demo
from inbounds.ledger import Ledger
from tests.cli_support import run_json

NIGHTLY = Path(__file__).parent.parent / "examples" / "nightly.py"
NIGHTS = [dt.date(2024, 3, 5), dt.date(2024, 3, 6)]
WARDS = ["cardiology", "children", "surgery"]


@pytest.fixture
def nightly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the job for a night; what it wrote."""
    rows = [
        {"patient": i, "ward": WARDS[i % 2], "date": night, "minutes": 30.0 + i % 60}  # nobody in surgery
        for i in range(400)
        for night in NIGHTS
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "visits.parquet")

    def run(night: dt.date, *more: str) -> Any:
        given = [str(tmp_path / "visits.parquet"), "--night", str(night), "--ledger", str(tmp_path / "budget.db")]
        monkeypatch.setattr(sys, "argv", ["nightly.py", *given, "--out", str(tmp_path / "report.json"), *more])
        runpy.run_path(str(NIGHTLY), run_name="__main__")
        return json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))

    return run


def test_the_demonstration_as_a_command(tmp_path: Path) -> None:
    found = run_json(f"demo --output {tmp_path / 'pictures'}")
    assert len(found["questions"]) == 7
    answers = [answer for question in found["questions"] for answer in question["answers"]]
    assert all(answer["value"] >= 0 and answer["interval"][0] >= 0 for answer in answers)
    plain = [answer["plain"] for answer in answers if answer["plain"] is not None]
    # Counts of 0 to 12 with noise of scale 4, shares and variances in small groups: over 42 draws some leave the range.
    assert any(draw["impossible"] for draw in plain)
    assert all(draw["impossible"] for draw in plain if draw["value"] < 0)
    assert found["spent"]["epsilon"] + found["left"]["epsilon"] == pytest.approx(3.0)
    assert all(Path(picture).read_bytes().startswith(b"\x89PNG") for picture in found["pictures"])


def test_the_demonstration_looks_before_it_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "questions", None)
    taken = tmp_path / "file"
    taken.write_text("")
    assert "file" in run_json(f"demo --output {taken}", code=2)["error"]["message"]
    for missing in ("matplotlib", "narwhals"):
        monkeypatch.setitem(sys.modules, missing, None)
    message = run_json(f"demo --output {tmp_path / 'new'}", code=2)["error"]["message"]
    assert message == "demo: not installed: matplotlib, narwhals. Install inbounds[plots,query]."
    assert not (tmp_path / "new").exists()


def spent(folder: Path) -> float:
    with Ledger.open(folder / "budget.db", create=False) as ledger:
        return float(ledger.scope("nightly").spent()["epsilon"])


def test_a_night_costs_once(nightly: Any, tmp_path: Path) -> None:
    first = nightly(NIGHTS[0])
    assert spent(tmp_path) == 0.03
    again = nightly(NIGHTS[0])
    assert again["rows"] == first["rows"]
    assert spent(tmp_path) == 0.03
    assert [row["ward"] for row in first["rows"]] == WARDS
    assert all(row["patients"] >= 0 and 0 <= row["minutes"] <= 240 for row in first["rows"])
    other = nightly(NIGHTS[1])
    assert spent(tmp_path) == 0.06
    assert other["rows"] != first["rows"]


@pytest.mark.long
@pytest.mark.java
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_night_on_spark(nightly: Any, tmp_path: Path) -> None:
    first = nightly(NIGHTS[0], "--spark")
    assert [row["ward"] for row in first["rows"]] == WARDS
    # The same night from the file: recorded already, whatever reads the table.
    assert nightly(NIGHTS[0])["rows"] == first["rows"]
    assert spent(tmp_path) == 0.03
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    assert session is not None
    session.stop()
