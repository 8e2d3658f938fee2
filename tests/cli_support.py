"""What the tests of the command line share: running a line as typed, and comparing what it prints with what is kept."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from inbounds.cli.app import app

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
_SHOWN = r"-?[\d,.]+(?:e-?\d+)?"
#: What differs from run to run: answers, their intervals and the width of their tables, times.
RANDOM: list[tuple[re.Pattern[str], Any]] = [
    (re.compile(r"^((?:answer|interval)(?: \d)? +).*$", flags=re.MULTILINE), r"\1#"),
    (re.compile(r"(?<=\banswer )-?\d+(?:\.\d+)?(?:e-?\d+)?$", flags=re.MULTILINE), "#"),
    (re.compile(r"^((?:bounds|max_rows|max_groups) {3,}).*$", flags=re.MULTILINE), r"\1#"),
    (re.compile(r"^(.*% interval)\n─+$", flags=re.MULTILINE), lambda found: " ".join(found[1].split()) + "\n─"),
    (re.compile(rf"^(.*?)(?: {{2,}}{_SHOWN} +{_SHOWN} to {_SHOWN})+$", flags=re.MULTILINE), r"\1   #"),
    (re.compile(r"\d{4}-\d\d-\d\d( |T)\d\d:\d\d:\d\d(\.\d+)?"), r"2026-01-01\g<1>00:00:00"),
]

QUESTIONS = """\
key = "2026-11-16"        # run again, it costs nothing

[data]
source = "visits.csv"     # from this file's folder
header = true             # its first line has the names of its columns
types = {age = "integer", visit = "date"}
unit = "patient"
max_rows = 5

[budget]
ledger = "answers.db"
scope = "visits"
epsilon = 2

[[question]]
name = "people"
ask = "count_units"
epsilon = 0.2

[[question]]
name = "age"
ask = "mean"
column = "age"
bounds = [0, 120]
where = "year(visit) == 2024"
by = "ward"
keys = ["A", "B", "C"]
max_groups = 2
epsilon = 0.5

[[plan]]                  # several questions, one price
name = "adults"
where = "age >= 18"
epsilon = 0.5

[[plan.question]]
name = "people"
ask = "count_units"

[[plan.question]]
name = "old"
ask = "share"
condition = "age >= 65"
"""


def write_visits(folder: Path, people: int = 300) -> None:
    """visits.csv: two or three visits of every patient, in two wards of three."""
    rows = [
        (i, 7 + 13 * i % 84, "ABC"[(i + k) % 3], f"{2023 + k % 2}-{1 + i % 12:02}-{1 + (5 * i + k) % 28:02}")
        for i in range(people)
        for k in range(2 + i % 2)
    ]
    lines = ["patient,age,ward,visit", *(",".join(map(str, row)) for row in rows)]
    (folder / "visits.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def run(line: str, width: int = 88) -> Any:
    """Run a line without its first word; ``< FILE`` at its end is standard input, as in a shell."""
    runner = CliRunner(env={"COLUMNS": str(width), "NO_COLOR": "1", "FORCE_COLOR": None, "TERM": "dumb"})
    words = shlex.split(line)
    text = ""
    if "<" in words:
        text = Path(words[-1]).read_text(encoding="utf-8")
        words = words[: words.index("<")]
    return runner.invoke(app, words, input=text)


def run_json(line: str, code: int = 0) -> dict[str, Any]:
    result = run(f"{line} --json" if "<" not in line else line.replace("<", "--json <"))
    assert result.exit_code == code, result.output
    assert result.stderr == ""
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def produced(line: str, *, code: bool = False) -> str:
    """What a line prints, without spaces at the ends of lines and without the name of the folder that it ran in.

    ``> FILE`` at its end takes what it prints, as in a shell.
    """
    line, _, file = line.partition(" > ")
    result = run(line)
    if file:
        Path(file).write_text(result.stdout, encoding="utf-8")
        return str(result.stderr)
    text = "".join(f"{row.rstrip()}\n" for row in result.output.splitlines()).replace(f"{Path.cwd()}/", "")
    return text + (f"[exit {result.exit_code}]\n" if code else "")


def masked(text: str) -> str:
    for pattern, instead in RANDOM:
        text = pattern.sub(instead, text)
    return text


def same(now: str, shown: str) -> None:
    """The same words, and the same numbers up to last digits, which depend on the machine."""
    now, shown = masked(now), masked(shown)
    assert NUMBER.sub("#", now) == NUMBER.sub("#", shown)
    ours, theirs = ([float(x) for x in NUMBER.findall(text)] for text in (now, shown))
    assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-9)


def entries(text: str) -> Iterator[tuple[str, str]]:
    """Lines that begin with ``$ inbounds``, and what follows each."""
    for part in re.split(r"^\$ inbounds ", text, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        yield line, shown
