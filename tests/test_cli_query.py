"""inbounds query: what is asked is what the package is asked; nothing is spent before everything is checked."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import inbounds as ib
from inbounds.cli import program, questions
from inbounds.cli.asking import Run
from inbounds.cli.report import Report
from inbounds.errors import InboundsError, LedgerCorrupt, LedgerUnavailable, QueryFailed
from inbounds.ledger import Ledger
from inbounds.tables import Request
from tests.cli_support import QUESTIONS, run, run_json, write_visits

pytestmark = pytest.mark.thinned(3)

TABLE = "query visits.csv --header --types age=integer,visit=date"
UNIT = f"{TABLE} --unit patient"
BARE = "query visits.csv --header --unit patient"
TYPED = {"header": True, "types": {"age": "integer", "visit": "date"}}
LEDGER = "--ledger budget.db --scope visits"
ALONE = "--budget-epsilon 1"
SECRET = "41.3137905"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_visits(tmp_path, 120)
    (tmp_path / "questions.toml").write_text(QUESTIONS)


@pytest.fixture
def scope() -> ib.Ledger:
    with Ledger.open("budget.db") as ledger:
        yield ledger.scope("visits", budget=ib.Budget(epsilon=1))


def files() -> set[str]:
    return {path.name for path in Path().iterdir()}


def answers(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [answer for reply in found["answers"] for row in reply["rows"] for answer in row["answers"].values()]


# ---------------------------------------------------------------- one question


def python(**given: Any) -> Any:
    budget = given.pop("budget", ib.Budget(epsilon=1))
    return ib.dataset("visits.csv", name="this run", budget=budget, **TYPED | {"unit": "patient"} | given)


age, visit = ib.col("age"), ib.col("visit")
SAME: dict[str, Callable[[], Any]] = {
    f"{UNIT} {ALONE} --count-units --epsilon 0.3": lambda: python().plan.count_units(epsilon=0.3),
    f"{UNIT} {ALONE} --count --max-rows 3 --epsilon 0.3": lambda: python(max_rows=3).plan.count(epsilon=0.3),
    f"{UNIT} {ALONE} --sum age --bounds 0 500 --per-unit sum --epsilon 0.3": lambda: python().plan.sum(
        "age", bounds=(0, 500), per_unit="sum", epsilon=0.3
    ),
    f"{UNIT} {ALONE} --mean age --bounds 0 120.5 --max-rows 5 --where 'age >= 18' --epsilon 0.3": lambda: (
        python(max_rows=5).where(age >= 18).plan.mean("age", bounds=(0, 120.5), epsilon=0.3)
    ),
    f"{UNIT} {ALONE} --mean 'age * 2 - 1' --bounds -1 239 --epsilon 0.3": lambda: python().plan.mean(
        age * 2 - 1, bounds=(-1, 239), epsilon=0.3
    ),
    f"{UNIT} {ALONE} --mean visit --bounds 2023-01-01 2024-12-31 --epsilon 0.3": lambda: python().plan.mean(
        "visit", bounds=(dt.date(2023, 1, 1), dt.date(2024, 12, 31)), epsilon=0.3
    ),
    f"{TABLE} --unit-is-row --budget-rho 1 --variance age --bounds 0 120 --rho 0.5": lambda: python(
        unit=None, budget=ib.Budget(rho=1)
    ).plan.variance("age", bounds=(0, 120), rho=0.5),
    f"{TABLE} --unit patient --unit ward --budget-epsilon 1 --std age --bounds 0 120 --epsilon 1 "
    "--per-unit mean": lambda: python(unit=["patient", "ward"]).plan.std(
        "age", bounds=(0, 120), per_unit="mean", epsilon=1.0
    ),
    f"{UNIT} {ALONE} --share 'age >= 65' --per-unit mean --epsilon 0.3": lambda: python().plan.share(
        age >= 65, per_unit="mean", epsilon=0.3
    ),
    f"{UNIT} {ALONE} --share 'age >= 65' --of units --epsilon 0.3": lambda: python().plan.share(
        age >= 65, of="units", epsilon=0.3
    ),
    f"{UNIT} {ALONE} --quantile age 0.9 --bounds 0 120 --per-unit max --level 0.8 --epsilon 0.3": lambda: (
        python().plan.quantile("age", 0.9, bounds=(0, 120), per_unit="max", level=0.8, epsilon=0.3)
    ),
    f"{UNIT} {ALONE} --median age --bounds 0 120 --max-rows 2 --epsilon 0.3": lambda: python(max_rows=2).plan.median(
        "age", bounds=(0, 120), epsilon=0.3
    ),
    f"{UNIT} {ALONE} --min age --bounds 0 120 --per-unit first --order visit --epsilon 0.3": lambda: python().plan.min(
        "age", bounds=(0, 120), per_unit="first", order="visit", epsilon=0.3
    ),
    f"{UNIT} {ALONE} --max age --bounds 0 120 --per-unit last --order 'year(visit)' --epsilon 0.3": lambda: (
        python().plan.max("age", bounds=(0, 120), per_unit="last", order=visit.year(), epsilon=0.3)
    ),
    f"{UNIT} {ALONE} --histogram age --edges 0,30,60.5,120 --per-unit min --epsilon 0.3": lambda: (
        python().plan.histogram("age", [0, 30, 60.5, 120], per_unit="min", epsilon=0.3)
    ),
    f"{UNIT} {ALONE} --count-units --by ward --keys A,B --max-groups 2 --suppress-below 5 --epsilon 0.3": lambda: (
        python().group_by("ward", keys=["A", "B"], max_groups=2, suppress_below=5).plan.count_units(epsilon=0.3)
    ),
    f"{UNIT} {ALONE} --count-units --by ward --keys A,B --by 'year(visit)' --keys 2023,2024 --by 'age >= 18' "
    "--keys true,false --epsilon 0.3": lambda: (
        python()
        .group_by(
            "ward",
            visit.year(),
            age >= 18,
            keys=[(w, y, adult) for w in "AB" for y in (2023, 2024) for adult in (True, False)],
        )
        .plan.count_units(epsilon=0.3)
    ),
    f"{UNIT} {ALONE} --count-units --by visit --keys 2023-01-01,2024-02-07 --epsilon 0.3": lambda: (
        python().group_by("visit", keys=[dt.date(2023, 1, 1), dt.date(2024, 2, 7)]).plan.count_units(epsilon=0.3)
    ),
    f"{UNIT} {ALONE} --budget-delta 1e-6 --count-units --by ward --max-groups 2 --epsilon 0.3 --delta 1e-7": (
        lambda: (
            python(budget=ib.Budget(epsilon=1, delta=1e-6))
            .group_by("ward", max_groups=2)
            .plan.count_units(epsilon=0.3, delta=1e-7)
        )
    ),
    f"{UNIT} {ALONE} --neighbours substitute --size 9 --mean 'fill_null(age, 0)' --bounds 0 120 --epsilon 1": lambda: (
        python(neighbours="substitute", size=9).plan.mean(age.fill_null(0), bounds=(0, 120), epsilon=1.0)
    ),
    f"{BARE} {ALONE} --types age=number,ward=text --mean age --bounds 0 120 --epsilon 0.3": lambda: python(
        types={"age": "number", "ward": "text"}
    ).plan.mean("age", bounds=(0, 120), epsilon=0.3),
}


@pytest.mark.parametrize("line", SAME)
def test_what_is_asked_is_what_python_would_ask(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Run] = []
    monkeypatch.setattr(Run, "explain", lambda self, ledger, **how: seen.append(self))
    assert run(f"{line} --explain").exit_code == 0
    ((asked,),) = [one.plans for one in seen]
    plan = SAME[line]()
    assert asked.event == plan.event
    assert asked.data.scope.budget == plan.data.scope.budget


@pytest.mark.parametrize("line", [line for line in list(SAME)[::3] if "--histogram" not in line])
def test_answers_are_in_range(line: str) -> None:
    found = run_json(line)
    bounds = {"--bounds 0 120": (0, 120), "--share": (0, 1), "-units": (0, 10**6)}
    low, high = next((ends for word, ends in bounds.items() if word in line), (None, None))
    for answer in answers(found):
        if answer["value"] is None:
            assert "--suppress-below" in line
            continue
        values = [answer["lower"], answer["value"], answer["upper"]]
        assert values == sorted(values)
        if low is not None and "--variance" not in line and "--sum" not in line:
            assert low <= values[0] <= values[2] <= high
    assert found["budget"] is None
    (reply,) = found["answers"]
    assert (reply["key"], reply["replayed"]) == (None, False)


def test_groups_and_texts() -> None:
    words = f"{UNIT} {ALONE} --mean age --bounds 0 120 --by ward --keys A,B,C --max-groups 2 --max-rows 5 --epsilon 0.9"
    found = run_json(words)
    (reply,) = found["answers"]
    assert [row["group"] for row in reply["rows"]] == [["A"], ["B"], ["C"]]
    assert reply["by"] == ["ward"]
    assert found["cost"] == {"epsilon": 0.9}
    text = run(words).stdout
    head, rule, *rows = text.splitlines()[:5]
    assert head.split() == ["ward", "age", "95", "%", "interval"]
    assert set(rule) == {"─"}
    assert [row.split()[0] for row in rows] == ["A", "B", "C"]
    for row in rows:
        _, value, low, _, high = row.split()
        assert 0 <= float(low) <= float(value) <= float(high) <= 120
    assert "Nothing keeps count (see --ledger)" in " ".join(text.split())


def test_no_group_may_be_found() -> None:
    line = f"{UNIT} {ALONE} --budget-delta 1e-6 --count-units --by visit --max-groups 1 --epsilon 0.1 --delta 1e-9"
    assert run_json(line)["answers"][0]["rows"] == []
    assert "no group has enough units to be found for certain" in run(line).stdout


def test_one_answer_in_words() -> None:
    lines = run(f"{UNIT} {ALONE} --count-units --epsilon 0.5 --level 0.9").stdout.splitlines()
    assert lines[0].split()[0] == "answer"
    assert int(lines[0].split()[1]) >= 0
    assert lines[1].rstrip().endswith("with confidence 0.9")
    assert lines[2].split() == ["cost", "epsilon", "0.5"]


def test_a_database_and_several_files() -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect("visits.duckdb") as made:
        made.execute("CREATE TABLE visits AS SELECT * FROM 'visits.csv'")
        made.execute("COPY visits TO 'one.parquet'")
        made.execute("COPY visits TO 'two.parquet'")
    rest = f"--unit patient {ALONE} --count --max-rows 9 --epsilon 1"
    (one,) = answers(run_json(f"query visits.duckdb --table visits {rest}"))
    (two,) = answers(run_json(f"query one.parquet two.parquet {rest}"))
    (three,) = answers(run_json(f"query '*.parquet' {rest}"))
    assert abs(one["value"] - 300) < 250  # noise of scale 9: beyond it once in 1e12
    assert all(abs(answer["value"] - 600) < 250 for answer in (two, three))


def test_suggestions(scope: Any) -> None:
    found = run_json(f"{UNIT} {LEDGER} --suggest-bounds 'age + 0' --epsilon 0.5 --key b")
    assert found["epsilon"] == 0.5
    assert found["budget"]["spent"] == {"epsilon": 0.5}
    again = run_json(f"{UNIT} {LEDGER} --suggest-bounds 'age + 0' --epsilon 0.5 --key b")
    assert again == {**found, "reason": f"{found['reason']} Given before under this key, at no cost."}
    text = run(f"{UNIT} {LEDGER} --suggest-caps --by ward --epsilon 0.4").stdout
    assert [line.split()[0] for line in text.splitlines() if line[0] != " "] == [
        "max_rows", "max_groups", "reason", "cost", "budget",
    ]  # fmt: skip
    assert scope.spent() == {"epsilon": 0.9}


# ---------------------------------------------------------------- paying


def test_a_key_is_paid_once(scope: Any) -> None:
    line = f"{UNIT} {LEDGER} --count-units --epsilon 0.4 --key March"
    first, again = run_json(line), run_json(line)
    assert answers(again) == answers(first)
    assert (first["cost"], again["cost"]) == ({"epsilon": 0.4}, {"epsilon": 0.0})
    assert (first["answers"][0]["replayed"], again["answers"][0]["replayed"]) == (False, True)
    assert again["budget"]["spent"] == scope.spent() == {"epsilon": 0.4}
    assert "given before, so at no cost: all" in run(line).stdout
    told = run_json(f"{line} --explain")
    assert (told["plans"][0]["answered"], told["cost"]) == (True, {})
    assert "asking again costs nothing" in run(f"{line} --explain").stdout
    other = run(line.replace("0.4", "0.2"))
    assert other.exit_code == 2
    assert "used for another event" in other.stderr


def test_no_room(scope: Any) -> None:
    found = run_json(f"{UNIT} {LEDGER} --count-units --epsilon 1.5", code=4)
    assert found["error"]["type"] == "BudgetExceeded"
    assert found["error"]["shortfall"] == {"epsilon": 0.5}
    assert run_json(f"{UNIT} {LEDGER} --count-units --epsilon 1.5 --explain")["fits"] is False
    assert scope.spent() == {"epsilon": 0.0}


def test_a_budget_is_made_when_all_is_checked() -> None:
    line = f"{UNIT} --ledger new.db --scope visits --budget-epsilon 1 --renews year --count-units --epsilon 0.4"
    for wrong in (" --where 'aeg > 1'", " --by age --keys x", " --max-groups 0"):
        assert run(line + wrong).exit_code == 2
    assert run(f"{line} --explain").stdout.endswith("Nothing was spent.\n")
    assert "new.db, visits (not there yet; asking makes it)" in run(f"{line} --explain").stdout
    assert "new.db" not in files()
    text = run(line).stdout
    assert "made       new.db, visits: Budget(epsilon=1.0)" in text
    assert "made" not in run(line).stdout
    assert run(line.replace("--budget-epsilon 1", "--budget-epsilon 2")).exit_code == 2
    below = line.replace("scope visits", "scope visits/alice")
    assert run_json(below.replace("0.4", "0.1"))["budget"]["scope"] == "visits/alice"
    with Ledger.open("new.db", create=False) as ledger:
        assert ledger.scope("visits").spent() == {"epsilon": 0.9}
        assert ledger.scope("visits").renews == "year"
    assert run(below.replace("visits/alice", "nobody/alice")).exit_code == 2


@pytest.mark.parametrize("below", ["visits/own", "visits/new --budget-epsilon 9"])
def test_a_scope_above_without_room_is_told(scope: Any, below: str) -> None:
    """Of a scope that is there, and of one that asking would make."""
    scope._ledger.scope("own", budget=ib.Budget(epsilon=9), parent=scope)
    line = f"{UNIT} --ledger budget.db --scope {below} --count-units"
    told = run_json(f"{line} --epsilon 1.5 --explain")
    assert (told["fits"], told["refused_by"], told["cost"]) == (False, "visits", {"epsilon": 1.5})
    text = " ".join(run(f"{line} --epsilon 1.5 --explain").stdout.split())
    assert "there is no room for this release" in text
    assert "Refused by the scope 'visits'." in text
    assert "has room" not in text
    refused = run_json(f"{line} --epsilon 1.5", code=4)["error"]
    assert "Refused by the scope 'visits'." in refused["message"]
    told = run_json(f"{line} --epsilon 0.5 --explain")
    assert (told["fits"], told["refused_by"]) == (True, None)
    asked = run_json(f"{line} --epsilon 0.5")
    assert asked["answers"][0]["event"] == told["plans"][0]["event"]  # which has the whole name of the scope


def test_nothing_can_be_spent_from_a_scope_that_is_not_made(scope: Any) -> None:
    planned = scope._ledger.scope(("visits", "new"), budget=ib.Budget(epsilon=0.7), create=False)
    assert (planned.exists, scope.exists) == (False, True)
    assert planned.parent.path == ("visits",)
    assert planned.remaining() == {"epsilon": 0.7}
    half = ib.events.Pure(0.5)
    assert planned.without_room(half) is None
    assert planned.without_room(half, half).path == ("visits", "new")
    assert planned.without_room(half, half, half).path == ("visits",)
    with pytest.raises(ib.errors.LedgerCorrupt):
        planned.reserve(half)
    assert scope.spent() == {"epsilon": 0.0}
    assert [made.path for made in scope._ledger.scopes()] == [("visits",)]
    assert scope._ledger.scope("visits", budget=ib.Budget(epsilon=1), create=False).exists


def test_a_mistyped_scope_is_no_second_budget(scope: Any) -> None:
    line = f"{UNIT} --ledger budget.db --count-units --epsilon 0.1"
    assert "got 'visit'. Did you mean 'visits'?" in run(f"{line} --scope visit").stderr
    assert "'inbounds budget create' makes one." in run(f"{line} --scope nothing").stderr
    assert [made.path for made in scope._ledger.scopes()] == [("visits",)]


# ---------------------------------------------------------------- passwords

PLACE = "postgresql://db.example:5432/privacy"
PASSWORD = "hunter2"
URL = f"postgresql://me:{PASSWORD}@db.example/privacy"


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of a database, its ledger in memory, which names itself as the database would."""

    def opened(where: str, *, create: bool = False) -> Ledger:
        assert where == URL
        ledger = Ledger.open(":memory:")
        ledger._store.shown = PLACE
        return ledger

    monkeypatch.setattr(questions, "open_ledger", opened)


@pytest.mark.parametrize("form", ["", "--json", "--csv", "--markdown", "--output a.md", "--output a.json", "--explain",
                                  "--explain --json", "--sql"])  # fmt: skip
def test_no_form_of_an_answer_shows_a_password(form: str, database: None) -> None:
    Path("questions.toml").write_text(QUESTIONS.replace("answers.db", URL))
    options = f"{UNIT} --count-units --epsilon 0.1 --budget-epsilon 1 --ledger {URL} --scope visits"
    for line in (options, "query questions.toml"):
        before = files()
        result = run(f"{line} {form}", width=200)
        assert result.exit_code == 0, result.output
        written = [Path(name).read_text() for name in files() - before]
        if form in ("", "--markdown", "--explain"):
            assert f"{PLACE}, visits" in result.stdout
        assert not any(PASSWORD in text for text in (result.stdout, result.stderr, *written))
        for name in files() - before:
            Path(name).unlink()


@pytest.mark.parametrize(
    "line",
    [f"{UNIT} --count-units --epsilon 0.1 --ledger {URL} --scope visits", f"budget show {URL}", f"budget export {URL}",
     f"budget create {URL} visits --epsilon 1", f"budget verify {URL}", f"budget history {URL}",
     f"release laplace --interval 0 1 --sensitivity 1 --epsilon 1 --value 0 --ledger {URL} --scope visits"],
)  # fmt: skip
@pytest.mark.parametrize("form", ["", "--json"])
def test_no_error_shows_a_password(line: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def foreign(*_: Any, **__: Any) -> Ledger:
        raise LedgerCorrupt(f"Ledger: {PLACE} is not a ledger.")

    monkeypatch.setattr(Ledger, "open", foreign)
    result = run(f"{line} {form}")
    assert result.exit_code == 2
    assert "This is not a ledger: check the path." in result.output
    assert PASSWORD not in result.output


def test_help_says_where_a_password_belongs() -> None:
    for command in ("query", "release", "budget create", "budget show"):
        words = " ".join(run(f"{command} --help", width=200).stdout.replace("│", " ").split())
        assert "A password belongs in ~/.pgpass (or the file that PGPASSFILE names), not in the URL." in words


# ---------------------------------------------------------------- a file


def test_a_file_is_one_run() -> None:
    before = files()
    told = run_json("query questions.toml --explain")
    assert told["cost"] == {"epsilon": pytest.approx(1.2)}
    assert [plan["name"] for plan in told["plans"]] == ["people", "age", "adults"]
    assert files() == before
    text = run("query questions.toml --explain").stdout
    assert "All together" in text
    assert "Budget(epsilon=2.0) has room for it; then left for one release: epsilon 0.8" in " ".join(text.split())
    result = run("query questions.toml --json")
    found = json.loads(result.stdout)
    assert result.stderr == "people: asking\nage: asking\nadults: asking\n"
    assert found["cost"] == told["cost"]
    assert [reply["key"] for reply in found["answers"]] == [f"2026-11-16/{n}" for n in ("people", "age", "adults")]
    assert [list(reply["rows"][0]["answers"]) for reply in found["answers"]] == [["people"], ["age"], ["people", "old"]]
    assert [reply["event"] for reply in found["answers"]] == [plan["event"] for plan in told["plans"]]


def test_a_file_asks_what_python_would_ask() -> None:
    data = ib.dataset("visits.csv", **TYPED, unit="patient", max_rows=5, name="visits", budget=ib.Budget(epsilon=2))
    plans = [
        data.plan.select(people=ib.ask.count_units(), epsilon=0.2),
        data.where(visit.year() == 2024)
        .group_by("ward", keys=["A", "B", "C"], max_groups=2)
        .plan.select(age=ib.ask.mean("age", (0, 120)), epsilon=0.5),
        data.where(age >= 18).plan.select(people=ib.ask.count_units(), old=ib.ask.share(age >= 65), epsilon=0.5),
    ]
    found = run_json("query questions.toml --explain")
    assert [plan["event"] for plan in found["plans"]] == [plan.event.to_json() for plan in plans]
    assert [plan["explanation"] for plan in found["plans"]] == [plan.explain() for plan in plans]


def test_a_file_again_costs_nothing_and_a_new_question_is_paid() -> None:
    first = json.loads(run("query questions.toml --json").stdout)
    more = '\n[[question]]\nname = "oldest"\nask = "max"\ncolumn = "age"\nbounds = [0, 120]\nepsilon = 0.1\n'
    Path("questions.toml").write_text(QUESTIONS + more)
    told = run_json("query questions.toml --explain")
    assert [plan["answered"] for plan in told["plans"]] == [True, True, False, True]
    again = json.loads(run("query questions.toml --json").stdout)
    assert again["cost"] == told["cost"] == {"epsilon": 0.1}
    kept = [reply for reply in again["answers"] if reply["name"] != "oldest"]
    assert [reply["rows"] for reply in kept] == [reply["rows"] for reply in first["answers"]]
    assert "given before, so at no cost: 3 of 4" not in run("query questions.toml").stdout
    assert "given before, so at no cost: all" in run("query questions.toml").stdout


def test_paths_start_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run("query ../questions.toml").exit_code == 0
    assert (tmp_path / "answers.db").exists()
    assert files() == set()


def test_forms() -> None:
    def rows(text: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(text)))

    whole = json.loads(run("query questions.toml --json --output all.json").stdout)
    assert whole.pop("output") == "all.json"
    assert json.loads(Path("all.json").read_text()) == whole
    printed = rows(run("query questions.toml --csv").stdout)
    assert len(printed) == 6
    assert {row["plan"] for row in printed} == {"people", "age", "adults"}
    assert [(row["ward"], row["question"]) for row in printed] == [
        ("", "people"), ("A", "age"), ("B", "age"), ("C", "age"), ("", "people"), ("", "old"),
    ]  # fmt: skip
    assert [float(row["value"]) for row in printed] == [answer["value"] for answer in answers(whole)]
    assert [float(row["lower"]) for row in printed] == [answer["lower"] for answer in answers(whole)]
    assert run("query questions.toml --output all.csv").stdout.endswith("Written: all.csv\n")
    assert rows(Path("all.csv").read_text()) == printed
    text = run("query questions.toml --markdown --output all.md").stdout
    assert Path("all.md").read_text() == text
    lines = text.splitlines()
    assert lines[:2] == ["| question | answer | 95 % interval |", "| --- | ---: | ---: |"]
    assert "## age" in lines
    assert lines[-1].startswith("- note: ")


def test_a_narrow_terminal_cuts_no_number() -> None:
    many = QUESTIONS.replace("epsilon = 0.5\n\n[[plan.", 'epsilon = 0.5\nby = "ward"\nkeys = ["A", "B"]\n\n[[plan.')
    Path("questions.toml").write_text(many)
    assert run("query questions.toml").exit_code == 0
    wide, narrow = (run("query questions.toml", width=width).stdout for width in (200, 24))
    numbers = [answer for answer in wide.split() if answer.replace(".", "").isdigit()]
    assert "question" in narrow.split("adults\n")[1]
    assert set(numbers) <= set(narrow.split())


def test_questions_side_by_side_and_quantiles() -> None:
    Path("q.toml").write_text("""
level = 0.5
[data]
source = ["visits.csv"]
header = true
types = {age = "integer", visit = "date"}
unit_is_row = true
where = "age >= 18"
[budget]
epsilon = 5
[[plan]]
name = "wards"
by = ["ward", "year(visit)"]
keys = [["A", 2023], ["B", 2024]]
epsilon = 4
[[plan.question]]
name = "quarters"
ask = "quantile"
column = "age"
q = [0.25, 0.75]
bounds = [0, 120]
weight = 2
[[plan.question]]
name = "bars"
ask = "histogram"
column = "age"
edges = [0, 50, 120]
""")
    found = json.loads(run("query q.toml --json").stdout)
    (reply,) = found["answers"]
    assert reply["by"] == ["ward", "year(visit)"]
    assert [row["group"] for row in reply["rows"]] == [["A", 2023], ["B", 2024]]
    names = ["quarters 0.25", "quarters 0.75", "bars [0, 50)", "bars [50, 120]"]
    assert list(reply["rows"][0]["answers"]) == names
    assert found["level"] == 0.5
    assert "50 % interval" in run("query q.toml").stdout


def test_too_much_for_all_is_refused_for_all() -> None:
    Path("questions.toml").write_text(QUESTIONS.replace("epsilon = 2\n", "epsilon = 1\n"))
    result = run("query questions.toml")
    assert result.exit_code == 4
    refused = "Refused by the scope 'visits'. This is the price of all questions together: none was asked."
    assert refused in result.stderr
    told = run_json("query questions.toml --explain")
    assert (told["fits"], told["refused_by"]) == (False, "visits")
    with Ledger.open("answers.db", create=False) as ledger:
        assert [record.kind for record in ledger.scope("visits").history()] == ["scope"]
        top = ledger.scope("top", budget=ib.Budget(epsilon=0.6))
        ledger.scope("own", budget=ib.Budget(epsilon=9), parent=top)
    below = QUESTIONS.replace("epsilon = 2\n", "").replace('"visits"', '"top/own"')
    Path("questions.toml").write_text(below)
    result = run("query questions.toml")
    assert result.exit_code == 4
    assert "Refused by the scope 'top'. This is the price of all questions together" in result.stderr
    told = run_json("query questions.toml --explain")
    assert (told["fits"], told["refused_by"]) == (False, "top")
    text = " ".join(run("query questions.toml --explain").stdout.split())
    assert "Refused by the scope 'top'. ledger" in text
    assert "has room" not in text.split("All together")[1]


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException, at: int) -> None:
    """The draw number ``at`` fails."""
    whole, calls = Request.run, []

    def broken(self: Request, *given: Any, **more: Any) -> Any:
        calls.append(self)
        if len(calls) == at:
            raise error
        return whole(self, *given, **more)

    monkeypatch.setattr(Request, "run", broken)


def test_what_was_answered_before_a_failure_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, QueryFailed("query: the engine failed."), 2)
    result = run("query questions.toml --json --output some.csv")
    found = json.loads(result.stdout)
    assert result.exit_code == 6
    assert [reply["name"] for reply in found["answers"]] == ["people"]
    assert (found["error"]["type"], found["error"]["spent"]) == ("QueryFailed", True)
    for words in (
        "Its price is spent nevertheless: epsilon 0.5 in",
        "In question 'age' of questions.toml.",
        "is shown: 1 of 3.",
    ):
        assert words in found["error"]["message"]
    assert found["budget"]["spent"] == {"epsilon": 0.7}
    assert found["cost"] == {"epsilon": 0.2}
    assert len(Path("some.csv").read_text().splitlines()) == 2
    stuck = run_json("query questions.toml", code=6)["error"]
    assert "has no answer" in stuck["message"]
    assert stuck["spent"] is True
    Path("questions.toml").write_text(QUESTIONS.replace("2026-11-16", "again"))
    failing(monkeypatch, QueryFailed("query: the engine failed."), 2)
    result = run("query questions.toml")
    assert result.exit_code == 6
    assert result.stdout.startswith("answer ")
    assert result.stderr.splitlines()[-1].startswith("Error: query: the engine failed.")


def test_what_was_answered_before_ctrl_c_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, KeyboardInterrupt(), 2)
    result = run("query questions.toml --json")
    found = json.loads(result.stdout)
    assert result.exit_code == 6
    assert [reply["name"] for reply in found["answers"]] == ["people"]
    assert found["error"]["spent"] is True
    for words in ("Stopped. Its price is spent nevertheless: epsilon 0.5 in", "is shown: 1 of 3."):
        assert words in found["error"]["message"]


@pytest.mark.parametrize("asked", ["--count-units", "--suggest-bounds age"])
def test_what_is_paid_and_not_answered_has_an_exit_code(
    scope: Any, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that nothing tries again by itself, and pays again."""
    line = f"{UNIT} {LEDGER} {asked} --epsilon 0.2"
    with monkeypatch.context() as patched:
        failing(patched, QueryFailed("query: the engine failed."), 1)
        failed = run_json(line, code=6)["error"]
    assert (failed["type"], failed["spent"]) == ("QueryFailed", True)
    assert failed["message"].endswith("Its price is spent nevertheless: epsilon 0.2 in the scope 'visits'.")
    with monkeypatch.context() as patched:
        failing(patched, ValueError(SECRET), 1)
        result = run(f"{line} --json")
    assert (result.exit_code, json.loads(result.stdout)["error"]["spent"]) == (70, True)
    assert scope.spent() == {"epsilon": 0.4}
    assert "spent" not in run_json(f"{line} --by age --keys x", code=2)["error"]


@pytest.mark.parametrize(
    ("error", "code", "spent"),
    [
        (LedgerUnavailable("Ledger: it is locked."), 5, {}),
        (LedgerUnavailable("It may have been recorded, and then counts as spent.", None), 6, {"spent": None}),
        (LedgerUnavailable("The budget is spent and the answer is not recorded; commit may be tried again."), 6,
         {"spent": True}),
    ],
)  # fmt: skip
def test_a_lost_ledger_tells_what_is_spent(error: Exception, code: int, spent: dict[str, Any]) -> None:
    found = program.told(error, in_file=False)
    assert (found[0], {name: found[1][name] for name in found[1] if name == "spent"}) == (code, spent)
    assert "try again" not in found[1]["message"] or code == 5


def test_answers_are_written_though_nobody_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise BrokenPipeError

    monkeypatch.setattr(Report, "print", broken)
    run(f"{UNIT} {ALONE} --count-units --epsilon 0.5 --output all.csv")
    assert len(Path("all.csv").read_text().splitlines()) == 2


@pytest.mark.parametrize("line", [f"{UNIT} {ALONE} --count-units --epsilon 0.5", "query questions.toml",
                                  f"{UNIT} {ALONE} --suggest-bounds age --epsilon 0.5"])  # fmt: skip
def test_a_bug_shows_no_data(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (line, f"{line} --json"):
        for path in Path().glob("answers.db*"):
            path.unlink()
        with monkeypatch.context() as patched:
            failing(patched, ValueError(SECRET), 1)
            result = run(words)
        assert result.exit_code == 70
        assert "the draw failed: ValueError" in result.output
        assert SECRET not in result.output


# ---------------------------------------------------------------- wrong files

WRONG = {
    "[data": "must be TOML",
    "wher = 1\n" + QUESTIONS: "the file has no field 'wher'. Its fields are key, level, data, budget, question, plan.",
    QUESTIONS.replace("source =", "sorce ="): "[data] has no field 'sorce'. Did you mean 'source'?",
    QUESTIONS.replace("max_rows", "maxrows"): "[data] has no field 'maxrows'. Did you mean 'max_rows'?",
    QUESTIONS.replace("ledger =", "leger ="): "[budget] has no field 'leger'. Did you mean 'ledger'?",
    QUESTIONS.replace("column =", "colum ="): "[[question]] has no field 'colum'. Did you mean 'column'?",
    QUESTIONS.replace("where = \"age", "were = \"age"): "[[plan]] has no field 'were'. Did you mean 'where'? In plan",
    QUESTIONS.replace("condition =", "conditions ="): "Did you mean 'condition'?",
    QUESTIONS.replace('"mean"', '"maen"'): "Did you mean 'mean'? In question 'age' of questions.toml.",
    QUESTIONS.replace('ask = "mean"\n', ""): "ask must be given; got none. One of count, count_units,",
    QUESTIONS.replace("bounds = [0, 120]\n", ""): 'bounds must be given with ask = "mean"; got none. As bounds',
    QUESTIONS.replace("bounds = [0, 120]", "bounds = 120"): "bounds must be a list, as [1, 2]; got 120.",
    QUESTIONS.replace("bounds = [0, 120]", "bounds = [0]"): "bounds must be a pair (lower, upper)",
    QUESTIONS.replace("bounds = [0, 120]", "bounds = [0, 'x']"): "bounds must be a number, as 0.5; got 'x'",
    QUESTIONS.replace("bounds = [0, 120]", "bounds = [0, 120]\nq = 0.5"): 'q must be left out with ask = "mean"',
    QUESTIONS.replace('column = "age"', 'column = "aeg"'): "Did you mean 'age'? In question 'age' of questions.toml.",
    QUESTIONS.replace('column = "age"', "column = 3"): "column must be text in quotes; got 3.",
    QUESTIONS.replace('"age >= 18"', '"age = 18"'): "Write == for =. In plan 'adults' of questions.toml.",
    QUESTIONS.replace('"age >= 18"', "\"age >= '18'\""): 'dates as date("2024-01-31")',
    QUESTIONS.replace('by = "ward"\n', ""): 'keys must be given with by; got it alone. As by = "ward".',
    QUESTIONS.replace('by = "ward"', "by = 3"): "by must be a column or several; got 3.",
    QUESTIONS.replace('by = "ward"', "by = []"): "by must be a column or several; got [].",
    QUESTIONS.replace('["A", "B", "C"]', '["A", 3]'): "keys",
    QUESTIONS.replace('["A", "B", "C"]', '[["A", "B"]]'): "keys must be groups of 1 value",
    QUESTIONS.replace('name = "people"\n', "", 1): 'name must be given; got none. As name = "age by ward".',
    QUESTIONS.replace('name = "old"', 'name = "people"'): "name must be given, and different, for each question",
    QUESTIONS.replace('name = "adults"', 'name = "age"'): "name must be different for each question and plan; got",
    QUESTIONS.replace("epsilon = 0.2\n", ""): "the price must be given by epsilon (with or without delta) or rho",
    QUESTIONS.replace("epsilon = 0.2\n", "epsilon = 0.2\nrho = 1\n"): "one of the two",
    QUESTIONS.replace("epsilon = 0.2\n", 'epsilon = "x"\n'): "epsilon must be a finite number",
    QUESTIONS.replace("epsilon = 2\n", "epsilon = -2\n"): "Budget: epsilon must be",
    QUESTIONS.replace('scope = "visits"\n', ""): "ledger and scope must be given together; got one of them.",
    QUESTIONS.split("[budget]")[0]: "key must be used with a ledger; got '2026-11-16'.",
    QUESTIONS.split("[budget]")[0][QUESTIONS.index("[data]"):]: "the budget must be given by epsilon, rho; got none.",
    QUESTIONS.split("[[question]]")[0]: "question must be given; got none. As [[question]] with",
    QUESTIONS.replace('ledger = "answers.db"\nscope = "visits"\n', ""): "key must be used with a ledger; got '2026",
    QUESTIONS.replace('unit = "patient"\n', ""): "exactly one of unit, unit_is_row; got none. As unit = \"patient\"",
    QUESTIONS.replace('unit = "patient"', "unit = 3"): "unit must be a column's name",
    QUESTIONS.replace('unit = "patient"', 'unit = "patent"'): "Did you mean 'patient'? In [data] of questions.toml.",
    QUESTIONS.replace('unit = "patient"', "unit_is_row = 1"): "unit_is_row must be true or false; got 1.",
    QUESTIONS.replace('source = "visits.csv"', ""): 'source must be given; got none. As source = "visits.parquet".',
    QUESTIONS.replace('source = "visits.csv"', "source = 3"): "source must be a path or several; got 3.",
    QUESTIONS.replace("visits.csv", "visit.csv"): "Check the path: it starts from the folder of the file.",
    QUESTIONS.replace('keys = ["A", "B", "C"]\n', ""): "as delta = 1e-6; or give the groups with keys.",
    QUESTIONS.replace('ask = "mean"', 'ask = "count"').replace('column = "age"\nbounds = [0, 120]\n', "").replace(
        "max_rows = 5\n", ""): "max_rows must be a whole number of at least 1 to count rows; got none. Pass max_rows,",
    QUESTIONS.replace("max_rows = 5", "max_rows = 0"): "max_rows must be a whole number in [1, ",
    QUESTIONS.replace(
        'types = {age = "integer", visit = "date"}', "types = 3"
    ): 'types must be as {age = "integer"}; got 3.',
    QUESTIONS.replace("[data]", "level = 2\n[data]"): "level must be a finite number in (0.0, 1.0); got 2.",
    QUESTIONS.replace("[[question]]", "[[other]]"): "the file has no field 'other'",
    "question = 3\n" + QUESTIONS.split("[[question]]")[0]: "question must be [[question]]; got 3.",
    "data = 3\n[budget]\nepsilon = 1\n": "data must be a table, as [data]; got 3.",
    "[budget]\nepsilon = 1\n": "data must be given; got none. As [data] with source and unit.",
    "question = [3]\n" + QUESTIONS.split("[[question]]")[0]: "[[question]] must be a table of fields; got 3.",
    QUESTIONS.split("[[plan.question]]")[0]: "question must be given; got none.",
    QUESTIONS.replace('scope = "visits"', 'scope = "none/visits"'): "there is no scope 'none' to lie under",
    QUESTIONS.replace("where = \"age", "suppress_below = 3\nwhere = \"age"): "suppress_below must be given with by",
}  # fmt: skip


@pytest.mark.parametrize("text", [pytest.param(text, id=said[:60]) for text, said in WRONG.items()])
def test_a_wrong_file_is_refused_before_anything_is_made(text: str) -> None:
    Path("questions.toml").write_text(text)
    before = files()
    result = run("query questions.toml")
    assert result.exit_code == 2
    assert WRONG[text] in result.stderr
    assert len(result.output.splitlines()) == 1
    assert files() == before


ODD: tuple[Any, ...] = (
    None,
    True,
    3,
    -1.5,
    "",
    "x y",
    [],
    [3],
    ["a", "b"],
    {},
    {"a": 1},
    [[1, 2]],
    dt.date(2024, 1, 1),
)


def places(thing: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    found = [path] if path else []
    inside = thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, list) else ()
    return found + [place for name, value in inside for place in places(value, (*path, name))]


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.long)])
def test_whatever_stands_anywhere_is_used_or_refused_by_name(every: int) -> None:
    """Every field replaced by odd values: never a bug, and nothing is made."""
    whole = """
key = "k"
level = 0.9
[data]
source = "visits.csv"
header = true
delimiter = ","
quote = "'"
encoding = "utf-8"
unit = "patient"
max_rows = 5
max_groups = 2
neighbours = "add-remove"
types = {age = "integer"}
where = "age > 1"
memory_limit = "1GB"
threads = 1
[budget]
ledger = "answers.db"
scope = "visits"
epsilon = 2
delta = 1e-6
renews = "day"
[[question]]
name = "q"
ask = "quantile"
column = "age"
q = 0.5
bounds = [0, 120]
where = "age > 2"
by = ["ward"]
keys = ["A"]
max_groups = 1
max_rows = 2
suppress_below = 3
epsilon = 0.1
delta = 1e-9
[[plan]]
name = "p"
epsilon = 0.1
[[plan.question]]
name = "s"
ask = "share"
condition = "age > 3"
of = "rows"
per_unit = "mean"
weight = 2
[[plan.question]]
name = "l"
ask = "mean"
column = "age"
bounds = [0, 120]
per_unit = "last"
order = "visit"
"""
    file, before = Path("q.toml"), files()
    document = questions.tomllib.loads(whole)
    refused = tried = 0
    for place in places(document):
        for odd in ODD:
            copy = questions.tomllib.loads(whole)
            inner: Any = copy
            for name in place[:-1]:
                inner = inner[name]
            inner[place[-1]] = odd
            try:
                inquiry = questions.read(copy, file)
                tried += 1
                if tried % every:
                    continue
                ledger, scope = inquiry.account.look()
                with ledger:
                    Run.planned(inquiry, scope)
            except InboundsError:
                refused += 1
    assert refused > 300
    assert tried > 100
    assert files() == before


# ---------------------------------------------------------------- wrong options


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("query", "Missing argument"),
        ("query visits.csv", "the question must be exactly one of --count, --count-units, --sum, --mean,"),
        (f"{UNIT} {ALONE} --count-units", "the price must be given by --epsilon (with or without --delta) or --rho"),
        (f"{UNIT} {ALONE} --count-units --mean age --epsilon 1", "got --count-units and --mean."),
        (f"query visits.csv {ALONE} --count-units --epsilon 1", "exactly one of --unit, --unit-is-row; got none."),
        (f"{UNIT} --unit-is-row {ALONE} --count-units --epsilon 1", "got --unit and --unit-is-row."),
        (f"{UNIT} {ALONE} --mean age --epsilon 1", "--bounds must be given with --mean; got none."),
        (f"{UNIT} {ALONE} --mean age --bounds 0 --epsilon 1", "--bounds must be followed by two values; got one."),
        (f"{UNIT} {ALONE} --quantile age --epsilon 1", "--quantile age 0.9."),
        (f"{UNIT} {ALONE} --mean ward --bounds 0 1 --epsilon 1", "Ask about a column of numbers"),
        (f"{UNIT} {ALONE} --suggest-bounds ward --epsilon 1", "or for --count-units by the values of this one."),
        (f"{UNIT} {ALONE} --count --epsilon 1", "got none. Pass --max-rows, the most rows"),
        (f"{UNIT} {ALONE} --count-units --by ward --epsilon 1", "got none. As --max-groups 3: the most in which"),
        (
            f"{UNIT} {ALONE} --quantile age x --bounds 0 1 --epsilon 1",
            "got 'x'. Give a column and a number from 0 to 1",
        ),
        (f"{UNIT} {ALONE} --histogram age --epsilon 1", "--edges must be given with --histogram; got none."),
        (f"{UNIT} {ALONE} --count-units --bounds 0 1 --epsilon 1", "--bounds must be left out with --count-units"),
        (f"{UNIT} {ALONE} --mean age --bounds 0 1 --of rows --epsilon 1", "--of must be left out with --mean"),
        (f"{UNIT} {ALONE} --count-units --keys A,B --epsilon 1", "--keys must be given once for each --by"),
        (f"{UNIT} {ALONE} --count-units --by ward --suppress-below 0 --keys A --epsilon 1", "suppress-below must be"),
        (f"{UNIT} {ALONE} --count-units --suppress-below 3 --epsilon 1", "--suppress-below must be given with --by"),
        (
            f"{BARE} {ALONE} --count-units --types age --epsilon 1",
            "--types must be COLUMN=TYPE,...; got 'age'.",
        ),
        (
            f"{BARE} {ALONE} --count-units --types age=whole --epsilon 1",
            "one of integer, wide, number",
        ),
        (f"{UNIT} {ALONE} --count-units --key a --epsilon 1", "--key must be used with a ledger; got 'a'."),
        (f"{UNIT} --ledger b.db --count-units --epsilon 1", "--ledger and --scope must be given together"),
        (f"{UNIT} --ledger b.db --scope v --renews day --count-units --epsilon 1", "the budget must be given by"),
        (f"{UNIT} {ALONE} --count-units --csv --json --epsilon 1", "one of --json, --csv, --markdown; got several."),
        (f"{UNIT} {ALONE} --count-units --csv --explain --epsilon 1", "must be left out here"),
        (f"{UNIT} {ALONE} --count-units --output a.doc --epsilon 1", "a file name ending in .csv, .json, .md"),
        (f"{UNIT} {ALONE} --count-units --output no/a.csv --epsilon 1", "in a folder that exists; got 'no/a.csv'."),
        (f"{UNIT} {ALONE} --count-units --renews week --epsilon 1", "--renews must be one of 'day', 'month', 'year';"),
        (f"{UNIT} {ALONE} --suggest-caps --explain --epsilon 1", "--explain must be left out for a suggestion"),
        (f"{UNIT} {ALONE} --suggest-caps --delta 0.1 --epsilon 1", "Leave out --delta and --rho."),
        (f"{UNIT} {ALONE} --suggest-bounds wrad --epsilon 1", "Did you mean 'ward'?"),
        (f"{UNIT} {ALONE} --suggest-caps --bounds 0 1 --epsilon 1", "--bounds must be left out with --suggest-caps"),
        ("query questions.toml --epsilon 1", "a file of questions must be given by itself; got --epsilon with it."),
        ("query questions.toml --level 0.5", "got --level with it."),
        ("query questions.toml visits.csv", "got another file with it."),
        ("query visits.csv questions.toml", "got another file with it."),
        ("query none.toml", "Error: No such file"),
        (
            f"query visits.sqlite {ALONE} --unit patient --count-units --epsilon 1",
            "Copy it to Parquet, or ask from Python",
        ),
        (
            f"query visits.csv --types zz=date {ALONE} --unit patient --count-units --epsilon 1",
            "--types then names all",
        ),
        (
            f"query postgres://a@b/c {ALONE} --unit patient --count-units --epsilon 1",
            "asked from Python only, through Ibis",
        ),
    ],
)
def test_a_wrong_line_is_refused_before_anything_is_made(line: str, said: str) -> None:
    before = files()
    result = run(line)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
    assert "Traceback" not in result.output
    assert files() == before


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "narwhals", None)
    result = run(f"{UNIT} {ALONE} --count-units --epsilon 1")
    assert result.exit_code == 2
    assert "Install inbounds[query]." in result.stderr


def test_the_queries_are_shown() -> None:
    line = f"{UNIT} {ALONE} --count-units --epsilon 1"
    text = run(f"{line} --sql").stdout
    assert "SELECT" in text
    assert "Nothing was spent." in text
    assert "SELECT" in run_json(f"{line} --sql")["plans"][0]["sql"]
    assert "sql" not in run_json(f"{line} --explain")["plans"][0]
