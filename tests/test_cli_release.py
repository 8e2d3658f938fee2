"""The command line about choosing, releasing, budgets and pictures; and how it completes words."""

from __future__ import annotations

import csv
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import inbounds as ib
from inbounds.cli import options, output
from inbounds.cli.app import app
from inbounds.ledger import Ledger
from inbounds.mechanism import Laplace
from tests.cli_support import QUESTIONS, run, run_json, write_visits
from tests.ledger_support import on_disk
from tests.postgres import Server

pytestmark = pytest.mark.thinned(3)

pytest_plugins = ["tests.ledger_fixtures"]

AGE = "laplace --interval 0 120 --sensitivity 0.5 --epsilon 0.3"
TRUE = "41.3137905"  # a true value that nothing else contains


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("true.txt").write_text(f"{TRUE}\n")


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger.open("budget.db") as made:
        made.scope("visits", budget=ib.Budget(epsilon=1))
        yield made


# ---------------------------------------------------------------- compare


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("--integers 0 8 --sensitivity 2 --epsilon 1", {"epsilon": 1.0}),
        ("--integers 0 8 --sensitivity 2 --epsilon 2 --loss absolute", {"epsilon": 2.0, "loss": "absolute"}),
        (
            "--integers 0 8 --sensitivity 2 --epsilon 1 --delta 1e-6 --criterion worst",
            {"epsilon": 1.0, "delta": 1e-6, "criterion": "worst"},
        ),
        (
            "--integers 0 8 --sensitivity 2 --rdp 8 0.5 --criterion smooth --no-optimum",
            {"rdp": (8.0, 0.5), "criterion": "smooth", "optimum": False},
        ),
    ],
)
def test_compare_gives_the_numbers_of_the_package(words: str, given: dict[str, Any]) -> None:
    expected = ib.recommend(ib.Integers(0, 8), sensitivity=2, **given)
    found = run_json(f"compare {words}")
    assert found.pop("recommended") == {"mechanism": expected.name, "reason": expected.reason}
    assert found == output.plain(expected.comparison.to_dict())
    text = run(f"compare {words}", width=120).stdout
    assert f"Recommended: {expected.name}. Reason: {expected.reason}"[:100] in text
    assert all(entry.name in text for entry in expected.comparison)


def test_compare_at_one_true_value() -> None:
    found = run_json("compare --box 0:10,1:9 --l2 2 --epsilon 1 --at 2,8")
    expected = ib.compare(ib.Box([0, 1], [10, 9]), sensitivity=ib.L2(2.0), epsilon=1.0, at=[2.0, 8.0])
    assert found.pop("recommended") is None
    assert found == output.plain(expected.to_dict())


def test_a_narrow_terminal_cuts_no_number() -> None:
    words = "compare --integers 0 8 --sensitivity 2 --epsilon 1 --delta 1e-6 --optimum"
    wide, narrow = run(words, width=200).stdout, run(words, width=60).stdout
    assert narrow.split()[:300] == wide.split()[:300]


# ---------------------------------------------------------------- release


@pytest.mark.parametrize(
    "line",
    [f"release {AGE} < true.txt", f"release {AGE} --from true.txt", f"release {AGE} --from - < true.txt",
     f"release {AGE} --value {TRUE}",
     "release --recommend --integers 0 60 --sensitivity 20 --epsilon 0.3 --no-optimum --value 41"],
)  # fmt: skip
def test_an_answer_with_its_interval(line: str) -> None:
    found = run_json(line)
    low, high = found["interval"]["lower"], found["interval"]["upper"]
    assert 0.0 <= low <= found["value"] <= high <= 120.0
    assert found["interval"]["level"] == 0.95
    event = ib.events.from_json(found["event"])
    assert event.guarantee().epsilon() <= 0.3
    assert found["budget"] is None
    text = run(line).stdout
    assert text.startswith("answer ")
    assert "nothing keeps count" in text


def test_the_answer_is_drawn_by_the_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed is one release of the calibrated mechanism for the true value, and its interval."""
    seen = []
    whole = Laplace.release

    def watched(self: Any, value: Any, *, clip: bool = False) -> Any:
        seen.append((self, value, clip, made := whole(self, value, clip=clip)))
        return made

    monkeypatch.setattr(Laplace, "release", watched)
    found = run_json(f"release {AGE} --level 0.8 --edges clamp --clip --value {TRUE}")
    ((mechanism, value, clip, made),) = seen
    assert mechanism == Laplace.calibrate(ib.Interval(0, 120), sensitivity=0.5, epsilon=0.3, edges="clamp")
    assert (value, clip) == (Decimal(TRUE), True)
    assert found["value"] == made.value
    assert (found["interval"]["lower"], found["interval"]["upper"]) == made.interval(0.8)
    assert found["mechanism"]["python"] == repr(mechanism)


def test_a_scale_is_used_as_it_stands_and_its_guarantee_told() -> None:
    words = "release laplace --interval 0 120 --sensitivity 0.5"
    found = run_json(f"{words} --scale 0.8063026979534557 < true.txt")
    m = ib.Laplace(ib.Interval(0, 120), scale=0.8063026979534557, sensitivity=0.5)
    assert found["mechanism"]["python"] == repr(m)
    assert [(fact["name"], fact["value"]) for fact in found["guarantee"]] == [
        ("epsilon", m.epsilon()),
        ("rho", m.zcdp()),
    ]
    assert "guarantee" not in run_json(f"release {AGE} < true.txt")
    assert "got --epsilon and --scale" in run(f"release {AGE} --scale 2 < true.txt").stderr
    assert "--guarantee must be left out with --scale" in run(f"{words} --scale 2 --guarantee metric < true.txt").stderr
    recommended = f"release --recommend {words.removeprefix('release laplace')} --epsilon 1 --scale 2 < true.txt"
    assert "must be left out with --recommend" in run(recommended).stderr


def test_a_metric_guarantee_can_be_released() -> None:
    holes = "--interval 0 365 --without 90 120 --sensitivity 3 --epsilon 0.5 --guarantee metric --value 41"
    found = run_json(f"release laplace {holes}")
    domain = ib.Interval(0, 365).without((90, 120))
    m = ib.Laplace.calibrate(domain, sensitivity=3, epsilon=0.5, guarantee="metric")
    assert found["mechanism"]["python"] == repr(m)
    assert "epsilon = 0.5 in proportion to the distance" in run(f"release laplace {holes}").stdout


def test_what_is_released_is_enough_for_its_guarantee() -> None:
    """The whole of what release and query print, of which several answers compose."""
    Path("release.json").write_text(run(f"release {AGE} --value {TRUE} --json").stdout)
    assert run_json("guarantee release.json")["guarantee"][0]["value"] <= 0.3
    write_visits(Path(), 30)
    Path("questions.toml").write_text(QUESTIONS)
    for more, name in (("", "report.json"), ("--explain", "plans.json")):
        Path(name).write_text(run(f"query questions.toml {more} --json").stdout)
        found = run_json(f"guarantee {name}")
        assert found["guarantee"][0]["value"] == pytest.approx(1.2)
        assert found["event"]["event"]["tag"] == "composed"


def test_vectors_are_released() -> None:
    words = "release gaussian --box 0:10,1:9 --l2 2 --epsilon 1 --delta 1e-6"
    Path("vector.txt").write_text("3.5, 8\n")
    found = run_json(f"{words} < vector.txt")
    assert len(found["value"]) == len(found["interval"]["lower"]) == 2
    assert found["value"] in ib.Box([0, 1], [10, 9])
    assert "answer 2" in run(f"{words} --value 3.5,8").stdout
    assert "must be 2 numbers" in run(f"{words} --value 3.5").stderr


def test_whole_numbers_are_printed_whole() -> None:
    text = run("release laplace --integers 0 30 --sensitivity 1 --epsilon 1 --value 7").stdout
    answer, interval = text.splitlines()[:2]
    assert answer.split()[1].isdigit()
    assert all(word.isdigit() for word in interval.split()[2:5:2])


@pytest.mark.parametrize(
    ("scale", "shown"),
    [(3.1, ("41.935", "from 37.244 to 46.625")), (1e-4, ("41.9345678", "from 37.2448120 to 46.6241235")),
     (2000.0, ("42", "from 37 to 47"))],
)  # fmt: skip
def test_the_interval_is_rounded_outwards(scale: float, shown: tuple[str, str]) -> None:
    m = Laplace(ib.Interval(0, 47), scale=scale, sensitivity=1.0)
    assert output.span(m, 41.93456781, 37.24481201, 46.6241234501) == [shown]
    assert output.span(m, 41.93456781, 0.0, 46.99999999)[0][1].startswith("from 0")
    ends = output.span(m, 41.93456781, 0.0, 46.99999999)[0][1].split()
    assert float(ends[3]) == 47.0


def test_a_terminal_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(options, "getpass", lambda prompt: asked.append(prompt) or TRUE)
    monkeypatch.setattr(options.sys, "stdin", type("Terminal", (), {"isatty": lambda self: True})())
    assert options.secret(None, None, ib.Interval(0, 120)) == Decimal(TRUE)
    assert asked == ["True value (not shown): "]


SECRET = [
    f"release {AGE} --value {TRUE}x",
    f"release {AGE} --value {TRUE},{TRUE}",
    f"release {AGE} --value {TRUE} --from true.txt",
    f"release {AGE} {TRUE}",
    f"release {AGE} -- {TRUE}",
    f"release {AGE} -{TRUE}",
    f"release {TRUE} {AGE.removeprefix('laplace')}",
    f"release {AGE} --valeu={TRUE}",
    f"release {AGE} --valeu {TRUE}",
    f"release {AGE} --l0 --value {TRUE}",
    f"release {AGE} --l0 1 --value {TRUE}",
    f"release {AGE} --rho 1 --value {TRUE}",
    f"release laplace --interval 0 40 --sensitivity 0.5 --epsilon 0.3 --value {TRUE}",
    f"release laplace --integers 0 120 --sensitivity 1 --epsilon 0.3 --value {TRUE}",
    f"release {AGE} --value {TRUE} --level 7",
    f"release {AGE} --value {TRUE} --ledger budget.db --scope nobody",
    f"release {AGE} --value {TRUE} --ledger none.db --scope visits",
    f"release {AGE} --value {TRUE} --ledger budget.db",
    f"release {AGE} --value {TRUE} --key a",
    f"release {AGE} --value {TRUE} --loss absolute",
    f"release --recommend --edges clamp {AGE.removeprefix('laplace')} --value {TRUE}",
    f"release {AGE} --without 3 4 --clip --value {TRUE}",
]


@pytest.mark.parametrize("line", SECRET)
def test_no_error_shows_the_true_value(ledger: Ledger, line: str) -> None:
    for words in (line, f"{line} --json"):
        result = run(words)
        assert result.exit_code in (2, 5)
        assert TRUE not in result.output
        assert TRUE[:4] not in result.output.replace("as 41.3;", "")
        assert "Traceback" not in result.output
    assert ledger.verify().records == 2, "nothing was spent"


def test_a_bug_does_not_show_the_true_value(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any, value: Any, *, clip: bool = False) -> Any:
        raise ValueError(f"{value}")

    monkeypatch.setattr(Laplace, "release", broken)
    result = run(f"release {AGE} < true.txt")
    assert result.exit_code == 70
    assert "ValueError" in result.stderr
    assert TRUE not in result.output


# ---------------------------------------------------------------- release, and pay


def test_a_release_is_paid_for_once(ledger: Ledger) -> None:
    words = f"release {AGE} --ledger budget.db --scope visits --key March < true.txt"
    first = run_json(words)
    assert first["budget"]["spent"] == {"epsilon": 0.3}
    assert first["budget"]["replayed"] is False
    again = run_json(words)
    assert (again["value"], again["interval"]) == (first["value"], first["interval"])
    assert again["budget"] == first["budget"] | {"replayed": True}
    text = run(words).stdout
    assert "visits: given before, so it cost nothing; spent epsilon 0.3;" in " ".join(text.split())
    assert [record.kind for record in ledger.scope("visits").history()] == ["scope", "reserve", "commit"]
    assert ledger.verify().ok
    assert TRUE not in ledger.export("json")
    files = [path.read_bytes() for path in Path().glob("budget.db*")]
    assert files
    assert not any(TRUE.encode() in content for content in files)


def test_no_room_is_said_and_nothing_is_drawn(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    words = f"release {AGE.replace('0.3', '0.6')} --ledger budget.db --scope visits < true.txt"
    assert run(words).exit_code == 0
    monkeypatch.setattr(Laplace, "release", None)
    found = run_json(words, code=4)["error"]
    assert found["type"] == "BudgetExceeded"
    assert "Refused by the scope 'visits'." in found["message"]
    assert "'inbounds budget show'" in found["message"]
    assert (found["spent"], found["remaining"]) == ({"epsilon": 0.6}, {"epsilon": 0.4})
    assert (found["requested"], found["shortfall"]) == ({"epsilon": 0.6}, {"epsilon": 0.2})
    assert ledger.scope("visits").unfinished() == ()


def test_what_lies_outside_is_refused_after_the_price_is_paid(ledger: Ledger) -> None:
    """Else it could be learnt for nothing on which side of an end the true value lies."""
    words = "laplace --interval 0 40 --sensitivity 0.5 --epsilon 0.3 --ledger budget.db --scope visits"
    found = run_json(f"release {words} < true.txt", code=6)["error"]
    assert (found["type"], found["spent"]) == ("OutsideDomain", True)
    assert "Use --clip" in found["message"]
    assert "Its price is spent nevertheless: epsilon 0.3 in the scope 'visits'." in found["message"]
    assert ledger.scope("visits").spent() == {"epsilon": 0.3}
    assert len(ledger.scope("visits").unfinished()) == 1
    assert "unfinished" in run("budget show budget.db").stdout
    assert 0 <= run_json(f"release {words} --clip < true.txt")["value"] <= 40


@on_disk
def test_a_ledger_of_either_kind(place: str) -> None:
    assert run(f"budget create {place} visits --epsilon 3 --delta 1e-9").exit_code == 0
    assert run(f"budget create {place} visits/alice --epsilon 1 --renews month").exit_code == 0
    run_json(f"release {AGE} --ledger {place} --scope visits/alice < true.txt")
    shown = run_json(f"budget show {place}")
    assert [scope["scope"] for scope in shown["scopes"]] == ["visits", "visits/alice"]
    assert shown["scopes"][1]["spent"] == {"epsilon": 0.3}
    assert run(f"budget verify {place}").stdout == "7 records in 2 scopes: no problem found\n"


@pytest.mark.postgres
def test_a_database_is_shown_without_its_password(server: Server) -> None:
    url, secret = server.url().replace("tester@", "tester:hunter2@"), "hunter2"
    write_visits(Path(), 30)
    query = f"query visits.csv --unit patient --count-units --epsilon 0.1 --ledger '{url}' --scope visits"
    assert run(f"{query} --budget-epsilon 1").exit_code == 5  # no ledger there: it is named, and nothing made
    assert run(f"budget create '{url}' other --epsilon 1").exit_code == 0
    seen = [
        run(f"{query} --budget-epsilon 1 {form}") for form in ("--explain", "--output a.md", "--json", "--markdown")
    ]
    seen += [run(f"budget {words} '{url}'") for words in ("show", "history", "verify", "export", "show --json")]
    seen += [
        run(f"release {AGE} --ledger '{url}' --scope visit < true.txt"),
        run(f"release {AGE} --ledger '{url}' --scope visits < true.txt"),
    ]
    assert [result.exit_code for result in seen] == [0] * 9 + [2, 0]
    assert "postgresql://127.0.0.1:" in seen[0].stdout
    assert "postgresql://127.0.0.1:" in Path("a.md").read_text()
    assert not any(secret in text for text in (*(result.output for result in seen), Path("a.md").read_text()))


# ---------------------------------------------------------------- budgets


def test_budgets_are_made_and_stay(ledger: Ledger) -> None:
    made = run_json("budget create budget.db visits/bob --epsilon 0.5 --delta 1e-9 --own 0.25 --renews day")
    (scope,) = made["scopes"]
    assert (scope["scope"], scope["renews"]) == ("visits/bob", "day")
    assert scope["budget"] == {"version": 1, "epsilon": 0.5, "delta": 1e-9, "own": 0.25}
    again = run_json("budget create budget.db visits/bob --epsilon 0.5 --delta 1e-9 --own 0.25 --renews day")
    assert again == made
    assert run("budget create budget.db visits/bob --epsilon 0.6").exit_code == 2
    assert ledger.scope(("visits", "bob")).budget == ib.Budget(epsilon=0.5, delta=1e-9, own=0.25)
    assert [s["scope"] for s in run_json("budget show budget.db visits")["scopes"]] == ["visits", "visits/bob"]
    assert [s["scope"] for s in run_json("budget show budget.db visits/bob")["scopes"]] == ["visits/bob"]


def test_a_mistyped_ledger_is_not_made() -> None:
    for words in ("show", "history", "verify", "export"):
        assert run(f"budget {words} none.db").exit_code == 5
    assert not list(Path().glob("none.db*"))


def test_history_tells_everything(ledger: Ledger) -> None:
    alice = ledger.scope(("visits", "alice"), budget=ib.Budget(epsilon=2), renews="year")
    count = ib.Laplace.calibrate(ib.Integers(0, 30), sensitivity=1, epsilon=0.1)
    alice.spend(count.event(3), lambda: [4, 5, 6], key="counts")
    alice.reserve(ib.events.Pure(0.2)).void()
    with pytest.raises(ib.BudgetExceeded):
        alice.reserve(ib.events.Composed([ib.events.Pure(0.6), ib.events.Pure(0.5)]))
    text = run("budget history budget.db", width=160).stdout
    for part in (
        "epsilon 0.3 by visits/alice: Laplace on whole numbers from 0 to 30, 3 releases",
        "epsilon 2, every year",
        "answer 4, 5, 6",
        "epsilon 0.2: Pure(epsilon=0.2)",
        "void",
        "no room for epsilon 1.1 in visits: Pure(epsilon=0.6); Pure(epsilon=0.5)",
    ):
        assert part in text
    records = run_json("budget history budget.db visits/alice --last 3")["records"]
    assert records == [record.to_json() for record in alice.history()[-3:]]
    assert "renew" not in text


def test_history_says_what_queries_asked(ledger: Ledger) -> None:
    write_visits(Path(), 30)
    spent = (
        "query visits.csv --types age=integer,visit=date --unit patient --epsilon 0.1 --ledger budget.db --scope visits"
    )
    for asked in (
        "--median age --bounds 0 120 --per-unit last --order visit",
        "--mean age --bounds 0 120 --by ward --keys A,B --max-groups 2 --where 'age >= 18'",
        "--count-units",
        "--share 'age >= 65' --of units",
        "--suggest-bounds age",
    ):
        assert run(f"{spent} {asked}").exit_code == 0
    text = run("budget history budget.db", width=160).stdout
    for part in (
        "median(each unit's last of age)",
        "mean(age) where age >= 18 by ward",
        "count_units",
        "share(age >= 65)",
    ):
        assert f" epsilon 0.1: {part}" in text
    assert " epsilon 0.1: suggest_bounds(age)" in text
    assert "answer recorded" in text
    assert "answer of 98 numbers" in text
    assert "parts" not in text
    own = ib.events.Plan({"mine": 1}, ib.events.Pure(0.1))
    ledger.scope("visits").spend(own, lambda: 1)
    assert "epsilon 0.1: Pure(epsilon=0.1)" in run("budget history budget.db", width=160).stdout


def test_a_changed_ledger_is_found(ledger: Ledger) -> None:
    run_json(f"release {AGE} --ledger budget.db --scope visits < true.txt")
    sound = run_json("budget verify budget.db")
    assert (sound["ok"], sound["records"], sound["problems"]) == (True, 4, [])
    assert sound["heads"] == ledger.verify().heads
    Path("heads.json").write_text(json.dumps(sound))
    assert run("budget verify budget.db --heads heads.json").exit_code == 0

    def tamper(tx: Any) -> None:
        tx.write("DROP TRIGGER inbounds_record_DELETE")
        tx.write("DELETE FROM inbounds_record WHERE kind = 'commit'")

    ledger._store.transaction(tamper)
    result = run("budget verify budget.db")
    assert result.exit_code == 1
    assert "has 3 records, but" in result.stdout
    assert "Do not spend from it" in result.stdout
    found = run_json("budget verify budget.db --heads heads.json", code=1)
    assert found["ok"] is False
    assert [p["kind"] for p in found["problems"]] == ["rollback"]


@pytest.mark.parametrize("text", ["{}", "[]", "nothing", '{"heads": {"visits": 3}}', '{"heads": []}'])
def test_heads_must_be_heads(ledger: Ledger, text: str) -> None:
    Path("heads.json").write_text(text)
    result = run("budget verify budget.db --heads heads.json")
    assert result.exit_code == 2
    assert "that 'inbounds budget verify --json' wrote" in result.stderr


@pytest.mark.parametrize("command", ["verify", "show", "history", "export"])
def test_what_is_no_ledger_is_said_to_be_none(command: str) -> None:
    found = run_json(f"budget {command} true.txt", code=2)
    assert found["error"]["message"].endswith("got 'true.txt'. This is not a ledger: check the path.")
    assert Path("true.txt").read_text() == f"{TRUE}\n"


def test_a_damaged_ledger_is_a_finding(ledger: Ledger) -> None:
    ledger.close()
    whole = Path("budget.db").read_bytes()
    Path("budget.db").write_bytes(whole[:100] + bytes(4000) + whole[4100:])
    assert run_json("budget verify budget.db", code=1)["problems"][0]["kind"] == "damage"


def test_one_scope_is_one(ledger: Ledger) -> None:
    assert run("budget verify budget.db").stdout == "2 records in 1 scope: no problem found\n"


def test_a_share_of_delta_is_explained() -> None:
    made = " ".join(run("budget create new.db visits --epsilon 3 --delta 1e-9").stdout.split())
    assert "delta 5e-10 Releases with a delta of their own may use a share of the budget's delta" in made
    assert "a delta of their own" not in run("budget create new.db other --epsilon 3").stdout
    assert "a delta of their own" not in run("budget create new.db third --epsilon 3 --delta 1e-9 --own 1").stdout


def test_exports_are_those_of_the_package(ledger: Ledger) -> None:
    ledger.scope("other", budget=ib.Budget(rho=1))
    assert run("budget export budget.db").stdout == f"{ledger.export('json')}\n"
    assert json.loads(run("budget export budget.db --json").stdout) == json.loads(ledger.export("json"))
    assert run("budget export budget.db other --csv").stdout == ledger.scope("other").export("csv")
    assert run_json("budget export budget.db --csv --output all.csv")["output"] == "all.csv"
    assert "Make no first." in run("budget export budget.db --output no/all.csv").stderr
    assert "--output must be a file; got '.'." in run("budget export budget.db --output .").stderr
    assert Path("all.csv").read_text() == ledger.export("csv")
    assert list(csv.DictReader(Path("all.csv").read_text().splitlines()))[-1]["scope"] == "other"


# ---------------------------------------------------------------- pictures

COUNT = "--integers 0 6 --sensitivity 2"
PICTURES = {
    "density": f"laplace {COUNT} --epsilon 1",
    "error": f"laplace {COUNT} --scale 2",
    "intervals": f"laplace {COUNT} --rho 0.1 --level 0.9 --unit days",
    "profile": f"laplace {COUNT} --epsilon 1 --edges clamp",
    "scales": "--interval 0 1 --sensitivity 0.5",
    "comparison": f"{COUNT} --epsilon 1 --loss absolute --no-optimum",
    "tradeoff": f"{COUNT} --measure mae",
}


@pytest.mark.parametrize("kind", PICTURES)
def test_pictures_are_drawn(kind: str) -> None:
    result = run(f"plot {kind} {PICTURES[kind]} --output picture.svg")
    assert result.exit_code == 0, result.output
    assert result.stdout == "Picture: picture.svg\n"
    assert Path("picture.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_pictures_in_every_format_and_place() -> None:
    for ending, start in (("png", b"\x89PNG"), ("pdf", b"%PDF")):
        line = f"plot density gaussian --box 0:10,1:9 --l2 2 --scale 3 --at 1,2 --at 9,8 --output a.{ending}"
        assert run_json(line) == {"format": "inbounds.picture", "version": 1, "output": f"a.{ending}"}
        assert Path(f"a.{ending}").read_bytes().startswith(start)
    assert "Make no first." in run(f"plot error {PICTURES['error']} --output no/a.png").stderr
    assert "got '7'" in run(f"plot density {PICTURES['density']} --at 7 --output a.png").stderr
    assert "got --delta and --scale" in run(f"plot error {PICTURES['error']} --delta 0.1 --output a.png").stderr


@pytest.mark.parametrize("kind", ["density", "comparison"])
def test_pictures_need_their_extra(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run(f"plot {kind} {PICTURES[kind]} --output a.png")
    assert result.exit_code == 2
    assert "Install inbounds[plots]." in result.stderr


def test_a_database_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    result = run("budget show postgresql://me@localhost/privacy")
    assert result.exit_code == 2
    assert "Install inbounds[ledger]." in result.stderr


# ---------------------------------------------------------------- help, and what the shell completes

COMMANDS = [
    "calibrate", "guarantee", "audit", "compare", "release", "query", "demo", "reproduce",
    *(f"budget {name}" for name in ("create", "show", "history", "verify", "export")),
    *(f"plot {name}" for name in PICTURES),
]  # fmt: skip


def shown_examples(command: str) -> list[str]:
    """The lines of a help that can be pasted: those after "Examples:"."""
    return [
        line.strip() for line in run(f"{command} --help", width=60).stdout.split("Examples:")[1].split("\n") if line
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example_and_json(command: str) -> None:
    text = run(f"{command} --help", width=200).stdout
    assert any(line.startswith(f"inbounds {command}") for line in shown_examples(command))
    assert "--json" in text
    assert "<bool>" not in text


@pytest.mark.parametrize("group", ["", "budget", "plot"])
def test_groups_of_commands_have_examples_too(group: str) -> None:
    assert len(shown_examples(group)) >= 2
    assert "<bool>" not in run(f"{group} --help").stdout


def test_examples_can_be_pasted() -> None:
    lines = [line for command in ["", "budget", "plot", *COMMANDS] for line in shown_examples(command)]
    assert subprocess.run(["bash", "-n"], input="\n".join(lines), text=True, check=False).returncode == 0
    for line in lines:
        words = shlex.split(line, comments=True)
        if not words:
            continue  # a remark
        words = words[1 : next((i for i, word in enumerate(words) if word in "<>"), None)]
        command: Any = get_command(app)
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        command.make_context("inbounds", words)  # every option and its values are read


def test_help_says_that_a_record_will_do() -> None:
    assert "laplace|gaussian|RECORD.json" in run("guarantee --help", width=120).stdout


def test_the_help_lists_them_all() -> None:
    text = run("--help").stdout + run("budget --help").stdout + run("plot --help").stdout
    assert all(f"│ {command.split()[-1]} " in text for command in COMMANDS)
    words = " ".join(run("release --help", width=200).stdout.split())
    assert "the shell's history and other users of the machine see it" in words


def completed(typed: str) -> list[str]:
    """What bash would offer after these words; the last may be half a word."""
    words = typed.split(" ")
    env = {"_INBOUNDS_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    return CliRunner(env=env).invoke(app, [], prog_name="inbounds").output.split()


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("inbounds comp", ["compare"]),
        ("inbounds budget ", ["create", "show", "history", "verify", "accept", "export"]),
        ("inbounds plot t", ["tradeoff"]),
        ("inbounds release ga", ["gaussian"]),
        ("inbounds release laplace --interval 0 --le", ["--level", "--ledger"]),
        ("inbounds compare --interval 0 120 --crit", ["--criterion"]),
        ("inbounds calibrate laplace --edges ", ["truncate", "clamp", "ignore"]),
        ("inbounds compare --criterion ", ["average", "worst", "unbiased", "smooth"]),
        ("inbounds plot tradeoff --measure r", ["rmse"]),
        ("inbounds budget create budget.db visits --renews m", ["month"]),
    ],
)
def test_the_shell_completes(typed: str, offered: list[str]) -> None:
    assert completed(typed) == offered


def test_completion_can_be_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "_INBOUNDS_COMPLETE=complete_bash" in run("--show-completion bash").output
    result = run("--install-completion bash")
    assert result.exit_code == 0, result.output
    assert "inbounds" in (tmp_path / ".bashrc").read_text()
    assert os.path.exists(tmp_path / ".bash_completions" / "inbounds.sh")
