"""``python -m inbounds.tables.contract [URL]``: ask the sources of this machine, or a database of yours.

In the database a table of sixteen known rows is made under a name of its own, asked, and dropped; so is an empty one.
URLs are those of ``ibis.connect`` for DuckDB, PostgreSQL and SQLite, and of Spark Connect, sc://. Without one,
PostgreSQL and Spark are left out: nothing says where they are.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inbounds.errors import InboundsError, MissingExtra, ParameterError
from inbounds.tables.contract.checking import Found, check, page
from inbounds.tables.contract.sources import LOCAL, Maker, database, drop, on_spark
from inbounds.tables.kinds import extra

#: What brings the driver, by the schemes of URLs.
_DRIVERS = {
    "duckdb": "ibis-framework[duckdb]",
    "postgres": "ibis-framework[postgres]",
    "postgresql": "ibis-framework[postgres]",
    "sqlite": "ibis-framework[sqlite]",
    "sc": "pyspark[connect]",
}
_EXAMPLES = "As duckdb:///visits.duckdb, postgres://me@there/clinic, sqlite:///visits.sqlite or sc://there:15002."
_OTHERS = "Other databases cannot be asked: copy the table to Parquet or into DuckDB."


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m inbounds.tables.contract",
        description="Ask the sources of this machine, or a database of yours, questions whose answers are known.",
    )
    parser.add_argument(
        "url",
        nargs="?",
        help="duckdb://, postgres:// or sqlite:// as for ibis.connect, or sc:// of Spark Connect; without one, all "
        "sources of this machine but PostgreSQL and Spark",
    )
    parser.add_argument("--yes", action="store_true", help="make the tables without asking")
    parser.add_argument("--table", action="store_true", help="print the marks as tables of Markdown")
    given = parser.parse_args(arguments)
    found = []
    try:
        for one in _local() if given.url is None else _remote(given.url, given.yes):
            found.append(one)
            _tell(one, sys.stderr if given.table else sys.stdout)
    except InboundsError as error:
        print(error, file=sys.stderr)
        return 1
    if given.table:
        print(page(found), end="")
    return 1 if any(one.failures for one in found) else 0


def _tell(one: Found, where: Any) -> None:
    """What came of a source, as soon as it is known."""
    print(f"{one.name}: {one.answers:,} known answers, {len(one.failures) or 'none'} failed", file=where, flush=True)
    for failure in one.failures:
        print(f"  {failure}", file=sys.stderr)


def _check(maker: Maker) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        return check(maker, Path(folder))


def _local() -> Iterator[Found]:
    for maker in LOCAL:
        try:
            yield _check(maker)
        except MissingExtra as error:
            print(f"{maker.name}: {error}", file=sys.stderr)


def _remote(url: str, agreed: bool) -> Iterator[Found]:
    scheme, is_url, _ = url.partition("://")
    if not is_url or scheme not in _DRIVERS:
        got = f"one that begins with {scheme}://" if is_url else "none"  # what follows may have a password
        raise ParameterError(
            f"contract: URL must be of DuckDB, PostgreSQL, SQLite or Spark Connect; got {got}. {_EXAMPLES} {_OTHERS}"
        )
    name = f"inbounds_contract_{secrets.token_hex(4)}"
    if scheme != "sc" and not agreed:  # before a file that is not there is made by connecting to it
        _ask(f"Make the tables {name} and {name}_empty there, and drop them again? [y/N] ")
    with _connected(url, scheme) as connection:
        if scheme == "sc":
            yield _check(on_spark(connection, "Spark: Connect"))
            return
        maker = database(connection, name)
        try:
            yield _check(maker)
        finally:
            drop(connection, name)


def _ask(question: str) -> None:
    print(question, end="", file=sys.stderr, flush=True)
    try:
        answer = input()
    except EOFError:
        raise ParameterError("contract: nobody could be asked, and nothing was made. Pass --yes.") from None
    if answer.strip().lower() not in ("y", "yes"):
        raise ParameterError("contract: nothing was made.")


@contextmanager
def _connected(url: str, scheme: str) -> Iterator[Any]:
    """A connection; its errors may have the whole URL, with its password, so they are not shown."""
    failed = step = ""
    ibis = None if scheme == "sc" else extra("ibis", "ibis")
    try:
        if ibis is None:
            connection = extra("pyspark.sql.connect.session", "spark").SparkSession.builder.remote(url).getOrCreate()
        else:
            connection = ibis.connect(url)
    except ImportError as error:
        failed, step = type(error).__name__, f'Install "{_DRIVERS[scheme]}".'
    except Exception as error:  # of any driver
        failed, step = type(error).__name__, _EXAMPLES
    if failed:
        raise ParameterError(f"contract: URL must be of a database that can be reached; {scheme} said {failed}. {step}")
    try:
        yield connection
    finally:
        connection.stop() if scheme == "sc" else connection.disconnect()


if __name__ == "__main__":
    sys.exit(main())
