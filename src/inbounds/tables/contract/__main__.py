"""``python -m inbounds.tables.contract [URL]``: ask the sources of this machine, or a database of yours.

In the database a table of sixteen known rows is made under a name of its own, asked, and dropped; so is an empty one.
URLs are those of ``ibis.connect``, as postgres://, duckdb://, sqlite://; and of Spark Connect, sc://.
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

_NEEDED = (
    "To be admitted a database needs a reader that hands over its rows as they are stored, whatever is in them: see "
    "inbounds.tables.readers. Until then copy the table to Parquet or into DuckDB."
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m inbounds.tables.contract", description=__doc__.partition("\n\n")[0]
    )
    parser.add_argument("url", nargs="?", help="of a database; without one, the sources of this machine")
    parser.add_argument("--yes", action="store_true", help="make the tables without asking")
    parser.add_argument("--table", action="store_true", help="print the marks as tables of Markdown")
    given = parser.parse_args(arguments)
    try:
        found = _local() if given.url is None else _remote(given.url, given.yes)
    except InboundsError as error:
        print(error, file=sys.stderr)
        return 1
    if given.table:
        print(page(found), end="")
    for one in found:
        if not given.table:
            print(f"{one.name}: {one.answers:,} known answers, {len(one.failures) or 'none'} failed")
        for failure in one.failures:
            print(f"  {failure}", file=sys.stderr)
    return 1 if any(one.failures for one in found) else 0


def _check(maker: Maker) -> Found:
    with tempfile.TemporaryDirectory() as folder:
        return check(maker, Path(folder))


def _local() -> list[Found]:
    found = []
    for maker in LOCAL:
        try:
            found.append(_check(maker))
        except MissingExtra as error:
            print(f"{maker.name}: {error}", file=sys.stderr)
    return found


def _remote(url: str, agreed: bool) -> list[Found]:
    scheme = url.partition(":")[0]
    with _connected(url, scheme) as connection:
        if scheme == "sc":
            return [_check(on_spark(connection, "Spark: Connect"))]
        name = f"inbounds_contract_{secrets.token_hex(4)}"
        maker = database(connection, name)
        if not agreed and input(f"Make the tables {name} and {name}_empty there, and drop them again? [y/N] ") != "y":
            raise ParameterError("contract: nothing was made.")
        try:
            return [_check(maker)]
        finally:
            drop(connection, name)


@contextmanager
def _connected(url: str, scheme: str) -> Iterator[Any]:
    """A connection; its errors may have the whole URL, with its password, so they are not shown."""
    failed = ""
    try:
        if scheme == "sc":
            connection = extra("pyspark.sql.connect.session", "spark").SparkSession.builder.remote(url).getOrCreate()
        else:
            connection = extra("ibis", "ibis").connect(url)
    except MissingExtra:
        raise
    except Exception as error:  # of any driver
        failed = type(error).__name__
    if failed:
        raise ParameterError(f"contract: the URL must be of a database that can be reached; {scheme} said {failed}.")
    try:
        yield connection
    finally:
        connection.stop() if scheme == "sc" else connection.disconnect()


if __name__ == "__main__":
    sys.exit(main())
