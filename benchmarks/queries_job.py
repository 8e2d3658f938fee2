"""The job of ``benchmarks/queries.py`` as a process of its own, so that all of it is timed: plain SQL, or inbounds.

``python benchmarks/queries_job.py plain|any|ours``; the question is JSON on standard input, the answer JSON on standard
output.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

Answer = dict[str, Any]

#: The bounding in plain SQL, without noise or exact integers: what remains if nobody has to be protected. Groups become
#: small numbers first, which DuckDB sorts faster than text.
ROWS = """
    WITH keys AS (SELECT unnest($keys) AS grp, generate_subscripts($keys, 1) AS g),
    given AS (
        SELECT user_id, g, least(greatest(value, $lower), $upper) AS v FROM read_parquet($path) JOIN keys USING (grp)),
    ranked AS (SELECT *, row_number() OVER (PARTITION BY user_id, g {row_order}) AS place FROM given),
    pairs AS (SELECT user_id, g, count(*) AS n, sum(v) AS s FROM ranked WHERE place <= $rows GROUP BY ALL),
    kept AS (SELECT *, row_number() OVER (PARTITION BY user_id {group_order}) AS place FROM pairs)
    SELECT g, sum(n)::BIGINT, sum(s), sum(s) / sum(n) FROM kept WHERE place <= $groups GROUP BY g"""
ONE = """
    WITH keys AS (SELECT unnest($keys) AS grp, generate_subscripts($keys, 1) AS g),
    pairs AS (
        SELECT user_id, g, avg(least(greatest(value, $lower), $upper)) AS v
        FROM read_parquet($path) JOIN keys USING (grp) GROUP BY ALL),
    kept AS (SELECT *, row_number() OVER (PARTITION BY user_id {group_order}) AS place FROM pairs)
    SELECT g, count(*), sum(v), avg(v) FROM kept WHERE place <= $groups GROUP BY g"""
CHOICES = {
    "plain": {"row_order": "ORDER BY hash(v)", "group_order": "ORDER BY hash(user_id, g)"},
    "any": {"row_order": "", "group_order": ""},
}


def plain(job: dict[str, Any], choice: str) -> Answer:
    """The bounded aggregation alone, with the settings that inbounds gives its own DuckDB.

    "plain" chooses rows and groups by hashes, "any" takes whatever comes first.
    """
    import duckdb

    settings = {
        "memory_limit": job["memory"],
        "max_temp_directory_size": job["disk"],
        "preserve_insertion_order": False,
    }
    connection = duckdb.connect(config=settings)
    names = ["path", "keys", "lower", "upper", "groups", *(["rows"] if job["mode"] == "rows" else [])]
    query = (ROWS if job["mode"] == "rows" else ONE).format(**CHOICES[choice])
    try:
        with shown(connection, job["show"]):
            rows = connection.execute(query, {name: job[name] for name in names}).fetchall()
    except duckdb.OutOfMemoryException:
        return {"failed": f"it needs more than {job['memory']} of memory and {job['disk']} of temporary files"}
    found = {g: row for g, *row in rows}
    columns = zip(*(found.get(g, (0, 0.0, 0.0)) for g in range(1, len(job["keys"]) + 1)), strict=True)
    return dict(zip(("count", "sum", "mean"), map(list, columns), strict=True))


def ours(job: dict[str, Any]) -> Answer:
    """The same question, answered privately: count, sum and mean of every group."""
    import inbounds as ib

    bounds, rows = (job["lower"], job["upper"]), job["rows"] if job["mode"] == "rows" else None
    data = ib.dataset(
        job["path"],
        unit="user_id",
        budget=ib.Budget(epsilon=job["epsilon"]),
        max_groups=job["groups"],
        max_rows=rows,
        memory_limit=job["memory"],
    ).group_by("grp", keys=job["keys"])
    own = "mean" if rows is None else None
    count = ib.ask.count_units() if rows is None else ib.ask.count()
    asks = {"count": count, "sum": ib.ask.sum("value", bounds, per_unit=own), "mean": ib.ask.mean("value", bounds)}
    with shown(data.source.engine._connection, job["show"]):
        found = data.select(asks, epsilon=job["epsilon"])
    return {name: [answer.value for answer in found[name]] for name in asks}


@contextmanager
def shown(connection: Any, show: bool) -> Iterator[None]:
    """How far DuckDB is, on standard error, twice a second."""
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.5):
            percent = connection.query_progress()
            if percent >= 0:
                print(f"\r{percent:5.1f} %", end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=watch, daemon=True)
    if show:
        thread.start()
    try:
        yield
    finally:
        done.set()
        if show:
            thread.join()
            print(file=sys.stderr)


def main() -> None:
    which, job = sys.argv[1], json.load(sys.stdin)
    print(json.dumps(ours(job) if which == "ours" else plain(job, which)))


if __name__ == "__main__":
    main()
