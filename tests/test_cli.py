"""The command line: ordinary and wrong use, exit codes, JSON equal to what the package computes, the guide's outputs.

``python -m tests.test_cli`` writes the outputs in docs/command-line.md anew.
"""

from __future__ import annotations

import json
import math
import os
import re
import runpy
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

import inbounds as ib
from inbounds import auditing
from inbounds.cli import app as commands
from inbounds.cli import main, output, words
from inbounds.cli.app import app
from tests.cli_support import entries, produced, run, run_json, same, write_visits

pytestmark = pytest.mark.thinned(3)

GUIDE = Path(__file__).parent.parent / "docs" / "command-line.md"
INF = math.inf


def python_m(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "inbounds", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


# ---------------------------------------------------------------- ordinary use

AGE = "--interval 0 120 --sensitivity 0.5"
ORDINARY = {
    f"calibrate laplace {AGE} --epsilon 1": (0, "0.8063026979"),
    f"calibrate laplace {AGE} --epsilon 1 --edges ignore": (0, "answers may leave the domain"),
    "calibrate gaussian --integers 0 30 --sensitivity 1 --epsilon 1 --delta 1e-6 --edges clamp": (0, "4.23077"),
    "calibrate laplace --interval 0 365 --without 90 120 --sensitivity 3 --epsilon 0.5": (0, "or from 120 to 365"),
    "calibrate gaussian --box 0:10,1:9 --l2 4.47 --epsilon 0.1": (0, "upper corner, coordinate 2"),
    "calibrate laplace --interval -5 -1 --sensitivity 1 --epsilon 1": (0, "numbers from -5 to -1"),
    f"guarantee laplace {AGE} --scale 0.8 --delta 1e-9 --epsilon 0.5 --alpha 8": (0, "alpha = 8"),
    "guarantee gaussian --interval -inf 0 --scale 0.8 --sensitivity 0.5": (0, "none (worst pair in closed form)"),
    "audit laplace --interval 0 10 --scale 2 --sensitivity 1 --epsilon 1": (0, "PROVEN"),
    "audit laplace --interval 0 10 --scale 1 --sensitivity 1 --epsilon 1": (1, "REFUTED"),
    "audit gaussian --interval 0 1 --scale 0.3 --sensitivity 0.1 --epsilon 1 --delta 1e-6": (
        0,
        "worst    true values 0 and 0.1\n",  # no event tells them apart
    ),
    "--version": (0, f"inbounds {ib.__version__}"),
    "--help": (0, "calibrate"),
    "calibrate --help": (0, "inbounds calibrate gaussian --box 0:10,1:9 --l2 4.47 --epsilon 0.1 --json"),
    "guarantee --help": (0, "inbounds guarantee release.json --delta 1e-6"),
    "audit --help": (0, "inbounds audit laplace --interval 0 10"),
    "reproduce --help": (0, "by 'make reproduce', in the folder reproduction/"),
}


@pytest.mark.parametrize("line", ORDINARY)
def test_ordinary_use(line: str) -> None:
    code, fragment = ORDINARY[line]
    result = run(line, width=130)
    assert result.exit_code == code, result.output
    assert fragment in result.stdout
    assert result.stderr == ""


# ---------------------------------------------------------------- wrong use

#: What was typed, the kind of error, and the part of the message that says what to do next.
WRONG = {
    "calibrate": ("UsageError", "Missing argument 'laplace|gaussian'. See 'inbounds calibrate --help'."),
    f"calibrat laplace {AGE} --epsilon 1": ("UsageError", "Did you mean 'calibrate'?"),
    f"calibrate laplace {AGE} --eps 1": ("UsageError", "--epsilon"),
    f"calibrate laplce {AGE} --epsilon 1": ("ParameterError", "the noise must be one of 'laplace', 'gaussian'"),
    "calibrate laplace --interval 0 --sensitivity 1 --epsilon 1": ("ParameterError", "--interval 0 inf."),
    "calibrate laplace --interval 0 x --sensitivity 1 --epsilon 1": ("ParameterError", "inf and -inf are numbers"),
    "calibrate laplace --sensitivity 1 --epsilon 1": ("ParameterError", "For instance --interval 0 120."),
    f"calibrate laplace {AGE} --integers 0 3 --epsilon 1": ("ParameterError", "got --interval and --integers."),
    "calibrate laplace --integers 0 3.5 --sensitivity 1 --epsilon 1": ("ParameterError", "Use Interval for reals."),
    "calibrate laplace --interval 9 1 --sensitivity 1 --epsilon 1": ("ParameterError", "Pass the ends in order."),
    "calibrate laplace --interval 0 1 --epsilon 1": ("ParameterError", "For instance --sensitivity 1."),
    "calibrate laplace --interval 0 1 --sensitivity 2 --epsilon 1": ("ParameterError", "pass 1.0."),
    "calibrate laplace --interval 0 1 --l2 1 --epsilon 1": ("ParameterError", "The others are for a box."),
    "calibrate laplace --interval 0 1 --sensitivity x --epsilon 1": ("UsageError", "See 'inbounds calibrate --help'."),
    f"calibrate laplace {AGE} --epsilon one": (
        "UsageError",
        "--epsilon must be a number; got 'one'. Write it in digits",
    ),
    "budget history budget.db --last=0": ("UsageError", "--last must be a whole number from 1 up; got '0'. Write"),
    f"release laplace {AGE} --epsilon 41.3x": ("UsageError", "--epsilon must be a number; got something else. Write"),
    "guarantee visits.csv": (
        "ParameterError",
        "must be laplace, gaussian, or a .json file with the record of a release",
    ),
    "calibrate gaussian --interval 0 1 --sensitivity 0.1 --epsilon 1 --edges ignore": (
        "UnreachableTarget",
        "Gaussian noise with --edges ignore has no pure epsilon",
    ),
    f"calibrate laplace {AGE}": ("ParameterError", "For instance --epsilon 1."),
    f"calibrate laplace {AGE} --epsilon 1 --rho 1": ("ParameterError", "got --epsilon and --rho."),
    f"calibrate laplace {AGE} --epsilon nan": ("ParameterError", "Typical values: 0.01 to 10."),
    f"calibrate laplace {AGE} --epsilon 1 --edges clip": (
        "ParameterError",
        "got 'clip'. For instance --edges truncate.",
    ),
    f"compare {AGE} --epsilon 1 --criterion best": (
        "ParameterError",
        "inbounds: --criterion must be one of 'average',",
    ),
    f"calibrate laplace {AGE} --rdp 8 --json": ("ParameterError", "--rdp 8 0.5."),
    "calibrate gaussian --interval 0 inf --sensitivity 1 --epsilon 1": ("UnreachableTarget", "Give delta as well"),
    "calibrate gaussian --box 0:1,3 --l2 1 --epsilon 1": ("ParameterTypeError", "--box 0:10,1:9."),
    "calibrate gaussian --box 0:1,3:4 --sensitivity 1 --epsilon 1": ("ParameterError", "one of --l1, --l2"),
    "calibrate gaussian --box 0:1,3:4 --epsilon 1": ("ParameterError", "For instance --l2 1.0."),
    "calibrate laplace --integers 0 9 --without 3 4 --sensitivity 1 --epsilon 1": ("ParameterError", "Leave it out."),
    "calibrate laplace --interval 0 9 --without 3 --sensitivity 1 --epsilon 1": ("ParameterError", "--without 90 120."),
    f"guarantee laplace {AGE}": ("UsageError", "Missing option '--scale'. See 'inbounds guarantee --help'."),
    f"guarantee laplace {AGE} --scale -1": ("ParameterError", "Or let calibrate find it."),
    f"audit laplace {AGE} --scale 1": ("UsageError", "Missing option '--epsilon'."),
    f"audit laplace {AGE} --scale 1 --epsilon 1 --plot a.doc": ("ParameterError", "ending in .png, .svg, .pdf"),
    f"audit laplace {AGE} --scale 1 --epsilon 1 --plot no/a.png": ("ParameterError", "Make no first."),
}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_use(line: str) -> None:
    kind, fragment = WRONG[line]
    plain = run(line.removesuffix(" --json"))
    assert plain.exit_code == 2
    assert plain.stdout == ""
    assert plain.stderr.startswith("Error: ")
    assert fragment in plain.stderr
    assert "Traceback" not in plain.stderr
    found = run_json(line.removesuffix(" --json"), code=2)
    assert list(found) == ["error"]
    assert found["error"]["type"] == kind
    assert plain.stderr == f"Error: {found['error']['message']}\n"


# ---------------------------------------------------------------- records of releases


@pytest.fixture
def record(tmp_path: Path) -> tuple[Any, Path]:
    age = ib.Laplace.calibrate(ib.Integers(0, 30), sensitivity=1, epsilon=0.1)
    event = ib.events.Composed([age.event(3), ib.events.Pure(0.2), age.denoised().event()])
    file = tmp_path / "event.json"
    file.write_text(json.dumps(event.to_json()))
    return event, file


def test_a_record_is_enough_to_recompute_the_guarantee(record: tuple[Any, Path]) -> None:
    event, file = record
    found = run_json(f"guarantee {file} --delta 1e-6 --epsilon 0.3 --alpha 8")
    assert found["format"] == "inbounds.guarantee"
    assert ib.events.from_json(found["event"]) == event
    guarantee = event.guarantee()
    values = [(fact["name"], fact["value"]) for fact in found["guarantee"]]
    assert values == [
        ("epsilon", guarantee.epsilon()), ("epsilon", guarantee.epsilon(1e-6)), ("delta", guarantee.delta(0.3)),
        ("Renyi epsilon", guarantee.rdp(8)), ("rho", guarantee.zcdp()), ("mu", guarantee.gdp()),
    ]  # fmt: skip
    text = run(f"guarantee {file}", width=160).stdout
    assert "Laplace(Integers(0, 30), scale=" in text
    assert "denoised" in text
    assert "delta = 1e-09" in text
    assert "0.6 (exact: sum of pure losses)" in text


@pytest.mark.parametrize("kind", ["release", "guarantee", "report", "explanation"])
def test_what_a_command_printed_is_a_record(record: tuple[Any, Path], kind: str) -> None:
    event, file = record
    parts = {"report": "answers", "explanation": "plans"}
    one: dict[str, Any] = {"name": "a", "event": event.to_json()}
    whole = {"format": f"inbounds.{kind}", "version": 1} | ({parts[kind]: [one, one]} if kind in parts else one)
    file.write_text(json.dumps(whole))
    expected = ib.events.Composed([event, event]) if kind in parts else event
    found = run_json(f"guarantee {file}")
    assert found["event"] == expected.to_json()
    assert found["guarantee"][0]["value"] == expected.guarantee().epsilon()
    for broken in (whole | {"event": 3, "answers": [{}], "plans": [7]}, {"format": whole["format"]}, [whole]):
        file.write_text(json.dumps(broken))
        assert run(f"guarantee {file}").exit_code == 2


def test_wrong_records(record: tuple[Any, Path]) -> None:
    _, file = record
    assert "without options for noise" in run(f"guarantee {file} --scale 1").stderr
    assert "without options for noise" in run(f"guarantee {file} --interval 0 1").stderr
    assert "No such file" in run(f"guarantee {file.with_name('no.json')}").stderr
    for text, kind in [
        ("{", "UnknownEvent"),
        (file.read_text().replace('"version": 1', '"version": 7'), "UnknownEvent"),
        (file.read_text().replace('"pure"', '"pur"'), "UnknownEvent"),
        (file.read_text().replace('"epsilon": 0.2', '"epsilon": -0.2'), "ParameterError"),
    ]:
        file.write_text(text)
        assert run_json(f"guarantee {file}", code=2)["error"]["type"] == kind


def test_nothing_said_shows_the_help() -> None:
    result = run("")
    assert result.exit_code == 2
    assert "calibrate" in result.output
    assert "Error" not in result.output


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.write_text("")
    result = run(f"demo --output {taken}/pictures")
    assert result.exit_code == 2
    assert str(taken) in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr


def test_a_bug_is_called_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("left the rails")

    monkeypatch.setattr(commands.output, "facts", broken)
    line = f"guarantee laplace {AGE} --scale 1"
    result = run(line)
    assert result.exit_code == 70
    assert "please report it" in result.stderr
    result = run(f"{line} --json")
    assert result.exit_code == 70
    assert json.loads(result.stdout)["error"]["type"] == "RuntimeError"


@pytest.mark.parametrize(("how", "said"), [(KeyboardInterrupt, "Error: Stopped."), (EOFError, "Error: Stopped.")])
def test_stopped_from_the_keyboard(monkeypatch: pytest.MonkeyPatch, how: type[BaseException], said: str) -> None:
    def stopped(*_: Any, **__: Any) -> Any:
        raise how

    monkeypatch.setattr(commands.output, "facts", stopped)
    result = run(f"guarantee laplace {AGE} --scale 1")
    assert result.exit_code == 130
    assert result.output.strip() == said


# ---------------------------------------------------------------- JSON is what the package computes

AGES, BOX = ib.Interval(0, 120), ib.Box([0, 1], [10, 9])
OPEN, WHOLE = ib.Box([0, 1], [10, INF]), ib.Box([0, -1], [10, 9], integer=True)
HOLES = ib.Interval(0, 9).without((2, 3), (5, 6))
#: What is typed, and the same as a call: family, domain, sensitivity, the rest.
SAME: list[tuple[str, Any, Any, Any, dict[str, Any]]] = [
    (f"laplace {AGE} --epsilon 1", ib.Laplace, AGES, 0.5, {"epsilon": 1.0}),
    (f"laplace {AGE} --epsilon 1 --guarantee metric", ib.Laplace, AGES, 0.5, {"epsilon": 1.0, "guarantee": "metric"}),
    (f"gaussian {AGE} --epsilon 1 --method paper", ib.Gaussian, AGES, 0.5, {"epsilon": 1.0, "method": "paper"}),
    ("gaussian --interval -inf inf --sensitivity 1 --rho 0.1", ib.Gaussian, ib.Interval(-INF, INF), 1.0, {"rho": 0.1}),
    (
        f"laplace {AGE} --rdp 8 0.5 --granularity 0.25",
        ib.Laplace,
        AGES,
        0.5,
        {"rdp": (8.0, 0.5), "granularity": 0.25},
    ),
    ("gaussian --interval -inf inf --sensitivity 1 --mu 0.5", ib.Gaussian, ib.Interval(-INF, INF), 1.0, {"mu": 0.5}),
    (
        "gaussian --integers 0 30 --sensitivity 1 --epsilon 1 --delta 1e-6 --edges clamp",
        ib.Gaussian,
        ib.Integers(0, 30),
        1,
        {"epsilon": 1.0, "delta": 1e-6, "edges": "clamp"},
    ),
    (
        "laplace --interval 0 9 --without 2 3 --without 5:6 --sensitivity 1 --epsilon 2",
        ib.Laplace,
        HOLES,
        1.0,
        {"epsilon": 2.0},
    ),
    ("gaussian --box 0:10,1:9 --l2 4.47 --epsilon 0.1", ib.Gaussian, BOX, ib.L2(4.47), {"epsilon": 0.1}),
    ("laplace --box 0:10,1:9 --l1 2 --epsilon 1", ib.Laplace, BOX, ib.L1(2.0), {"epsilon": 1.0}),
    ("laplace --box 0:10,1:inf --linf 2 --epsilon 1", ib.Laplace, OPEN, ib.Linf(2.0), {"epsilon": 1.0}),
    ("laplace --box 0:10,1:9 --l0 1 2.5 --epsilon 1", ib.Laplace, BOX, ib.L0(1, linf=2.5), {"epsilon": 1.0}),
    ("laplace --box 0:10,1:9 --per-coordinate 1,0.5 --epsilon 1", ib.Laplace, BOX, [1.0, 0.5], {"epsilon": 1.0}),
    ("laplace --integer-box 0:10,-1:9 --l1 2 --epsilon 1", ib.Laplace, WHOLE, ib.L1(2.0), {"epsilon": 1.0}),
]


@pytest.mark.parametrize("case", SAME, ids=lambda case: case[0])
def test_calibrate_gives_the_numbers_of_the_package(case: Any) -> None:
    line, family, domain, sensitivity, options = case
    expected = family.calibrate(domain, sensitivity=sensitivity, **options)
    found = run_json(f"calibrate {line}")
    mechanism = found["mechanism"]
    assert mechanism["scale"] == expected.scale
    assert mechanism["python"] == repr(expected)
    assert mechanism["edges"] == expected.edges
    assert mechanism["grid"] == (expected.grid.tolist() if isinstance(domain, ib.Box) else expected.grid)
    assert found["format"] == "inbounds.calibration"
    pure, *more = found["guarantee"]
    assert (pure["name"], pure["value"]) == ("epsilon", output.plain(expected.epsilon()))
    assert all(entry["value"] <= 1.0 for entry in more)
    for entry in found["error"]:
        error = expected.at(entry["true_value"]).error()
        for name in ("bias", "sd", "rmse", "mae", "at_lower", "at_upper"):
            assert entry[name] == output.plain(getattr(error, name))


def test_guarantee_gives_the_numbers_of_the_package() -> None:
    m = ib.Laplace(ib.Interval(0, 120), scale=0.8, sensitivity=0.5)
    found = run_json(f"guarantee laplace {AGE} --scale 0.8 --delta 1e-9 --epsilon 0.5 --epsilon 0.7 --alpha 8")
    expected = [m.epsilon(), m.epsilon(1e-9), m.delta(0.5), m.delta(0.7), m.rdp(8.0), m.zcdp(), m.gdp()]
    assert [(f["value"], f["exact"], f["reason"]) for f in found["guarantee"]] == [
        (float(b), b.exact, b.reason) for b in expected
    ]
    assert [f.get("delta", f.get("epsilon", f.get("alpha"))) for f in found["guarantee"]] == [
        0.0, 1e-9, 0.5, 0.7, 8.0, None, None,
    ]  # fmt: skip


def test_infinities_are_strings() -> None:
    found = run_json("guarantee gaussian --interval -inf 0 --scale 0.8 --sensitivity 0.5")
    assert found["mechanism"]["domain"] == {"kind": "Interval", "lower": "-inf", "upper": 0.0}
    assert found["guarantee"][0]["value"] == "inf"
    assert output.plain({"a": (math.nan, -INF, 2)}) == {"a": [None, "-inf", 2]}


@pytest.mark.parametrize(
    ("scale", "delta", "verdict", "code"), [(2.0, 0.0, "proven", 0), (1.0, 0.0, "refuted", 1), (1.9, 1e-3, "proven", 0)]
)
def test_audit_gives_the_verdict_of_the_package(scale: float, delta: float, verdict: str, code: int) -> None:
    m = ib.Laplace(ib.Interval(0, 10), scale=scale, sensitivity=1.0)
    line = f"audit laplace --interval 0 10 --scale {scale} --sensitivity 1 --epsilon 1 --delta {delta}"
    found = run_json(line, code=code)
    assert found["verdict"] == verdict
    expected = auditing.audit(m, epsilon=1.0, delta=delta)
    assert found == expected.to_dict()
    assert run(line).stdout == f"{expected}\n"


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_audit_draws(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"audit.{kind}"
    line = f"audit laplace --interval 0 10 --scale 2 --sensitivity 1 --epsilon 1 --plot {file}"
    assert run(line).stdout.endswith(f"Picture: {file}\n")
    assert file.stat().st_size > 5000
    assert run_json(line)["plot"] == str(file)


# ---------------------------------------------------------------- tables


@pytest.mark.parametrize(
    ("x", "shown"),
    [(1.0, "1"), (0.9999999999, "1"), (0.12345601, "0.123457"), (1e-9, "1e-9"), (1.00000001e-9, "1.00001e-9"),
     (0.0, "0"), (INF, "inf"), (123456789.0, "1.23457e+8")],
)  # fmt: skip
def test_privacy_parameters_are_shown_rounded_up(x: float, shown: str) -> None:
    assert output.rounded(x) == shown
    assert float(shown) >= x


@pytest.mark.parametrize(
    ("domain", "words"),
    [
        (ib.Interval(0, 120), "numbers from 0 to 120"),
        (ib.Interval(0.1, INF), "numbers from 0.1 up"),
        (ib.Interval(-INF, INF), "numbers without end"),
        (ib.Integers(-INF, 30), "whole numbers up to 30"),
        (ib.Box([0] * 5, [1] * 5), "vectors of 5 numbers: " + ", ".join(["from 0 to 1"] * 4) + ", ..."),
    ],
)
def test_domains_in_words(domain: Any, words: str) -> None:
    assert output.describe(domain) == words


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    ("line", "places"),
    [
        ("--interval -inf inf --sensitivity 1", ["anywhere"]),
        ("--interval 0 inf --sensitivity 1", ["lower end", "far from the ends"]),
        ("--integers 0 3 --sensitivity 1", ["lower end", "middle", "upper end"]),
        ("--integers -inf 3 --sensitivity 1", ["far from the ends", "upper end"]),
        ("--interval 0 9 --without 2 3 --sensitivity 1",
         ["lower end", "middle of the widest span", "upper end", "below a hole", "above a hole"]),
        ("--interval -inf inf --without 2 3 --sensitivity 1", ["far from the ends", "below a hole", "above a hole"]),
        ("--box 0:1,-inf:inf --l1 1", ["lower corner", "middle", "upper corner"]),
        ("--box -inf:inf,-inf:inf --l1 1", ["middle"]),
        ("--integer-box 0:3,1:inf --l0 1 2", ["lower corner", "middle", "upper corner"]),
        ("--box 0:3,1:9 --per-coordinate 1,2", ["lower corner", "middle", "upper corner"]),
    ],
)  # fmt: skip
def test_the_error_is_told_at_the_ends_and_far_from_them(line: str, places: list[str]) -> None:
    assert [e["where"] for e in run_json(f"guarantee laplace {line} --scale 1")["error"]] == places
    printed = run(f"guarantee laplace {line} --scale 1").stdout
    assert all(place in printed for place in places)


# ---------------------------------------------------------------- reproduce


@pytest.mark.parametrize("line", ["reproduce", "reproduce chen-hale fu --quick --output build/reproduce"])
def test_reproduce_says_where_it_is(line: str) -> None:
    result = run(line)
    assert result.exit_code == 2  # nothing was reproduced: a script that goes on to the report would not find it
    assert result.stdout == ""
    (said,) = result.stderr.splitlines()
    assert "the folder reproduction/ of the repository: run 'make reproduce' there." in said
    error = run_json(line, code=2)["error"]
    assert said == f"Error: {error['message']}"
    assert (Path(__file__).parent.parent / "reproduction" / "__main__.py").is_file()


# ---------------------------------------------------------------- progress


class Terminal:
    """A standard error that says it is a terminal."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with output.steps(["holohan", "chen_hale"]) as told:
        told("holohan: Table 1")
        told("chen_hale: Figure 2")
        told("drawing figure-2")
    with output.working("calibrating"):
        pass
    assert "drawing figure-2" in terminal.text
    assert "calibrating" in terminal.text


def test_elsewhere_a_line_tells_that_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "_SOON", 0.02)
    monkeypatch.setattr(output, "_AGAIN", 0.01)
    with output.working("asking"):
        time.sleep(0.3)
    with output.steps(["age", "people"]) as told:
        told("people: asking")
        time.sleep(0.3)
    printed = capsys.readouterr()
    assert printed.out == ""
    first, again, *more = printed.err.splitlines()
    assert first == again == "inbounds: still asking, 0 s"
    assert more.count("people: asking") == 1
    assert more[-1] == "inbounds: still at work (people: asking), 0 s"
    with output.working("quick work"):
        pass
    assert capsys.readouterr().err == ""


# ---------------------------------------------------------------- as a program


def test_the_module_runs() -> None:
    done = python_m(
        "calibrate", "laplace", "--interval", "0", "120", "--sensitivity", "0.5", "--epsilon", "1", "--json"
    )
    assert (done.returncode, done.stderr) == (0, "")
    expected = ib.Laplace.calibrate(ib.Interval(0, 120), sensitivity=0.5, epsilon=1.0).scale
    assert json.loads(done.stdout)["mechanism"]["scale"] == expected


def test_the_module_fails_in_one_line() -> None:
    done = python_m("calibrate", "laplace", "--interval", "0", "1", "--sensitivity", "2", "--epsilon", "1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("words", ["guarantee --help", f"guarantee laplace {AGE} --scale 1 --json", "--version"])
def test_nobody_reads_on(words: str) -> None:
    """As after ``| head``: no traceback, and not the exit code of a finding, be it much or little that is printed."""
    line = f"{sys.executable} -m inbounds {words} | head -c 0; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (141, "")


def test_nobody_listens() -> None:
    line = f"{sys.executable} -m inbounds guarantee laplace {AGE} --scale 1 >&-"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_module_refutes() -> None:
    words = "audit laplace --interval 0 10 --scale 1 --sensitivity 1 --epsilon 1"
    assert python_m(*words.split()).returncode == 1


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "inbounds: the command line needs typer and rich. Install inbounds[cli].\n"
    monkeypatch.setattr(sys, "argv", ["inbounds", "calibrate", "--json"])
    with pytest.raises(SystemExit):
        main()
    printed = capsys.readouterr()
    assert json.loads(printed.out)["error"]["message"].endswith("Install inbounds[cli].")
    assert printed.err == ""
    code = "import sys, runpy; sys.modules['typer'] = None; runpy.run_module('inbounds', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith("Install inbounds[cli].\n")


def test_the_program_reads_its_arguments(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["inbounds", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("inbounds", run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"inbounds {ib.__version__}\n"


def test_pictures_need_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run(f"audit laplace {AGE} --scale 1 --epsilon 1 --plot a.png")
    assert result.exit_code == 2
    assert "Install inbounds[plots]." in result.stderr


def test_words_of_python_become_options_and_values_stay() -> None:
    text = "Budget(epsilon=1.0): 'keys=' as delta=1e-6 or keys=; Laplace(Box([0.0], [1.0]), sensitivity=L2(value=4.5))"
    assert words.spoken(text) == text.replace("as delta=1e-6", "as --delta 1e-6").replace("keys=;", "--keys;")
    assert words.spoken("lower max_groups: got None; got None.") == "lower --max-groups: got None; got none."
    assert words.spoken("As group_by(..., max_groups=3): max_rows.", in_file=True) == "As max_groups = 3: max_rows."


def test_what_to_do_next_is_something_that_can_be_typed() -> None:
    """Of sentences of the package that speak of Python."""
    exceeded = ib.Budget(epsilon=1, delta=1e-6).refusal((0,) * 12, (10**9, 10**18, *(0,) * 10))
    assert "--own of 'inbounds budget create' sets this share." in words.spoken(str(exceeded))
    kept = "A scope keeps its budget: open it without one, or make another."
    assert "leave out --budget-epsilon," in words.spoken(kept)
    assert "leave out epsilon, delta, rho and renews in [budget]" in words.spoken(kept, in_file=True)
    lost = "The budget is spent and the answer is not recorded; commit may be tried again."
    assert words.spoken(lost) == "The budget is spent and the answer is not recorded."


def test_errors_may_be_left_to_the_caller() -> None:
    with pytest.raises(ib.ParameterError):
        app(["calibrate", "laplace", "--epsilon", "1"], standalone_mode=False)


# ---------------------------------------------------------------- the guide

BLOCK = re.compile(r"^```console\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


MEAN_AGE = 41.3


def prepare_guide() -> None:
    """The files that the guide speaks of; it shows the one with the questions itself."""
    write_visits(Path(), 3000)
    Path("mean_age.txt").write_text(f"{MEAN_AGE}\n")
    (questions,) = re.findall(r"^```toml\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    Path("questions.toml").write_text(questions, encoding="utf-8")


def test_the_guide_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    prepare_guide()
    seen = set()
    for block in BLOCK.findall(GUIDE.read_text(encoding="utf-8")):  # in order: budgets go on where they were
        for line, shown in entries(block):
            seen.add(" ".join(line.split()[: 2 if line.startswith(("budget", "plot")) else 1]))
            same(produced(line), shown)
    assert seen >= {
        "calibrate", "guarantee", "audit", "compare", "release", "plot density", "budget create", "budget show",
        "budget history", "budget verify", "query",
    }  # fmt: skip


def test_the_guide_shows_no_draw_that_misleads() -> None:
    """Answers differ from run to run; of those that are shown, each interval holds the true value."""
    ends = re.findall(r"^interval +from ([\d.]+) to ([\d.]+) with", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(ends) >= 2
    assert all(float(low) <= MEAN_AGE <= float(high) for low, high in ends), "write the outputs anew"


def written_anew(block: re.Match[str]) -> str:
    return "```console\n" + "".join(f"$ inbounds {line}\n{produced(line)}" for line, _ in entries(block[1])) + "```"


if __name__ == "__main__":
    text = GUIDE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        prepare_guide()
        text = BLOCK.sub(written_anew, text)
    GUIDE.write_text(text, encoding="utf-8")
