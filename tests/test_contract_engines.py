"""Every admitted engine and source gives the known answers: some in turns, and all of them in the long suite."""

from __future__ import annotations

import datetime as dt
import io
import socket
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pytest

from inbounds.tables.contract import LOCAL, Maker, check, database, expected, holds, on_spark, on_spark_files, page
from inbounds.tables.contract import __main__ as command
from inbounds.tables.contract.rows import NAMES, arrow_table
from tests.postgres import Server
from tests.query_support import on_spark as spark_marks
from tests.query_support import spark_session
from tests.vectors import make_contract

# Ibis 12 calls what DuckDB 2 has deprecated.
pytestmark = pytest.mark.filterwarnings(r"ignore:fetch_\w+\(\) is deprecated:DeprecationWarning")

PAGE = Path(__file__).parents[1] / "docs" / "support.md"
TURNS = 12  # of so many questions a source is asked one here
MAKERS = {maker.name: maker for maker in LOCAL}


def passes(maker: Maker, folder: Path, **thinned: int) -> None:
    found = check(maker, folder, **thinned)
    assert not found.failures, "\n".join(found.failures)
    assert found.answers > 0
    assert found.marks == expected(maker).marks
    if not thinned:
        assert found.answers == expected(maker).answers


@pytest.mark.parametrize("name", MAKERS)
def test_every_source_of_this_machine_in_turns(name: str, tmp_path: Path) -> None:
    passes(MAKERS[name], tmp_path, every=TURNS, start=list(MAKERS).index(name) % TURNS)


@pytest.mark.long
@pytest.mark.parametrize("name", MAKERS)
def test_every_source_of_this_machine_wholly(name: str, tmp_path: Path) -> None:
    passes(MAKERS[name], tmp_path)


# ---------------------------------------------------------------- PostgreSQL and Spark


@pytest.fixture(scope="module")
def server(initdb: str) -> Iterator[Server]:
    found = Server(initdb)
    yield found
    found.stop()


@pytest.mark.postgres
@pytest.mark.parametrize("thinned", [{"every": 3}, pytest.param({}, marks=pytest.mark.long)])
def test_postgresql(thinned: dict[str, int], server: Server, tmp_path: Path) -> None:
    backend = ibis.connect(server.url())
    passes(database(backend, "known"), tmp_path, **thinned)
    backend.disconnect()


@pytest.fixture(scope="module")
def sessions(java: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Classic and Connect on one cluster where no Python can be started."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
    }
    with spark_session(settings) as classic:
        from pyspark.sql.connect.session import SparkSession as Remote

        remote = Remote.builder.remote(f"sc://127.0.0.1:{port}").create()
        yield {"classic": classic, "Connect": remote}
        remote.stop()


SPARK = [
    (mode, make, f"Spark: {mode}{files}")
    for mode in ("classic", "Connect")
    for make, files in ((on_spark, ""), (on_spark_files, ", Parquet"))
]


@spark_marks
@pytest.mark.parametrize(
    ("which", "thinned"),
    [(0, {"every": 60}), (2, {"every": 60}), *(pytest.param(i, {}, marks=pytest.mark.long) for i in range(len(SPARK)))],
)
def test_spark(which: int, thinned: dict[str, int], sessions: dict[str, Any], tmp_path: Path) -> None:
    mode, make, name = SPARK[which]
    passes(make(sessions[mode], name), tmp_path, **thinned, **({"start": 11 * which} if thinned else {}))


# ---------------------------------------------------------------- what the page says


def declared() -> list[Maker]:
    """Every source, also of what runs elsewhere; these cannot be opened."""
    postgres = database(SimpleNamespace(name="postgres"), "known")
    return [*LOCAL, postgres, *(make(None, name) for _, make, name in SPARK)]


def test_the_page_of_what_is_supported_is_what_is_found() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.endswith(page([expected(maker) for maker in declared()]))


LACKS = [(maker, column) for maker in LOCAL for column in sorted(maker.lacks)]


@pytest.mark.parametrize(("maker", "column"), LACKS, ids=lambda x: x if isinstance(x, str) else x.name)
def test_what_a_source_is_said_to_lack_it_lacks(maker: Maker, column: str, tmp_path: Path) -> None:
    assert not holds(maker, column, tmp_path)


def test_what_is_not_lacking_is_not_said_to_be(tmp_path: Path) -> None:
    assert holds(MAKERS["Arrow: table"], "nanos", tmp_path)


def test_the_known_answers_are_those_of_plain_python() -> None:
    assert make_contract.PATH.read_text(encoding="utf-8") == make_contract.text()


# ---------------------------------------------------------------- faults are found


def changed(column: str, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A fault of a column; missing values stay."""

    def faulty(table: Any) -> Any:
        values = [None if value is None else change(value) for value in table[column].to_pylist()]
        place = table.schema.get_field_index(column)
        field = table.schema.field(place)
        return table.set_column(place, field, pa.array(values, field.type))

    return faulty


FAULTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a row is lost": ("who", lambda table: table.slice(1)),
    "rows are there twice": ("who", lambda table: pa.concat_tables([table, table])),
    "text is in small letters": ("ward", changed("ward", str.lower)),
    "text loses its blanks": ("ward", changed("ward", str.strip)),
    "text ends at the character 0": ("zero", changed("zero", lambda x: x.split("\0")[0])),
    "texts that look alike are one": ("name", changed("name", lambda x: unicodedata.normalize("NFC", x))),
    "empty text is missing": ("blank", changed("blank", lambda x: x or None)),
    "whole numbers come by way of floats": ("whole", changed("whole", lambda x: min(int(float(x)), 2**63 - 1))),
    "infinity is the largest": ("number", changed("number", lambda x: max(min(x, 1e308), -1e308))),
    "small numbers are 0": ("number", changed("number", lambda x: x if abs(x) > 1e-307 else 0.0)),
    "NaN is a number": ("number", changed("number", lambda x: 7.0 if x != x else x)),
    "times are in whole seconds": ("time", changed("time", lambda x: x.replace(microsecond=0))),
    "times are moved": ("moment", changed("moment", lambda x: x.replace(minute=59 - x.minute))),
    "dates are of another calendar": ("day", changed("day", lambda x: x if x.year > 1582 else dt.date(1, 1, 3))),
    "unsigned numbers wrap round": ("unsigned", lambda table: table.set_column(
        1, "unsigned", table["unsigned"].combine_chunks().view(pa.int64()))),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str, tmp_path: Path) -> None:
    column, change = FAULTS[fault]

    def source(faulty: bool) -> Maker:
        def write(columns: Any, odd: frozenset[str], folder: Path) -> Any:
            table = arrow_table(columns, odd & {"number"})
            return change(table) if faulty and len(table) else table, {}

        return Maker("a faulty one" if faulty else "a sound one", write, frozenset(NAMES) - {"row", column})

    sound, faulty = (check(source(which), tmp_path / str(which)) for which in (False, True))
    assert not sound.failures
    assert faulty.failures
    assert "✗" in faulty.marks.values()
    assert "✗" in page([sound, faulty])


# ---------------------------------------------------------------- a database of the user's


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command asks less."""
    monkeypatch.setattr(command, "check", lambda maker, folder: check(maker, folder, every=60))


@pytest.mark.usefixtures("few")
def test_a_database_of_the_users_is_asked_and_left_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, really = tmp_path / "mine.duckdb", input
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 1 AS x")
    monkeypatch.setattr("builtins.input", lambda: "Yes")
    assert command.main([f"duckdb://{path}"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("Make the tables inbounds_contract_")
    assert out.startswith("Ibis on DuckDB: ")
    assert out.endswith("none failed\n")
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("SHOW TABLES").fetchall() == [("mine",)]
    monkeypatch.setattr("builtins.input", lambda: "n")
    other = tmp_path / "other.duckdb"
    assert command.main([f"duckdb://{other}"]) == 1
    assert "nothing was made" in capsys.readouterr().err
    monkeypatch.setattr("builtins.input", really)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert command.main([f"duckdb://{other}"]) == 1
    assert "nothing was made. Pass --yes." in capsys.readouterr().err
    assert not other.exists()


@pytest.mark.postgres
@pytest.mark.usefixtures("few")
def test_the_command_on_postgresql(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([server.url(), "--yes", "--table"]) == 0
    assert "| | Ibis on PostgreSQL |" in capsys.readouterr().out


def test_no_secret_of_a_url_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["postgres://me:hunter2@127.0.0.1:1/mine", "--yes"]) == 1
    said = "".join(capsys.readouterr())
    assert "postgres said OperationalError" in said
    assert "hunter2" not in said


@pytest.mark.parametrize("name", ["mysql", "bigquery", "snowflake", "pyspark"])
def test_other_databases_are_refused_by_name_and_nothing_is_made(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = ibis.sqlite.connect()
    monkeypatch.setattr(type(backend), "name", name)
    monkeypatch.setattr(ibis, "connect", lambda url: backend)
    assert command.main(["postgres://me:hunter2@there/mine", "--yes"]) == 1
    said = "".join(capsys.readouterr())
    assert f"got 'one on {name}'" in said
    assert "hunter2" not in said


@pytest.mark.parametrize("url", ["mysql://me:hunter2@there/mine", "me:hunter2@there/mine", "pg://me:hunter2@there"])
def test_urls_of_other_databases_are_refused_with_those_that_are_known(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([url]) == 1
    said = "".join(capsys.readouterr())
    assert "got one that begins with" in said or "got none" in said
    assert "As duckdb:///" in said
    assert "hunter2" not in said


def test_a_driver_that_is_missing_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(url: str) -> None:
        raise ImportError(url)

    monkeypatch.setattr(ibis, "connect", connect)
    assert command.main(["postgres://me:hunter2@there/mine", "--yes"]) == 1
    said = "".join(capsys.readouterr())
    assert said.endswith('said ImportError. Install "ibis-framework[postgres]".\n')
    assert "hunter2" not in said


@pytest.mark.usefixtures("few")
def test_the_command_on_this_machine_and_a_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "LOCAL", LOCAL[:1])
    assert command.main([]) == 0
    faulty = Maker("faulty", lambda columns, odd, folder: (arrow_table(columns[:-1], ()).slice(1), {}))
    monkeypatch.setattr(command, "LOCAL", [faulty])
    assert command.main([]) == 1
    assert "got" in capsys.readouterr().err
