"""The tables, as a list of steps: step i brings version i to i + 1, and an empty store is version 0."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Literal

from inbounds.errors import LedgerCorrupt, LedgerUnavailable
from inbounds.ledger.record import BEGINNING

if TYPE_CHECKING:
    from inbounds.ledger.store import Transaction

__all__ = ["HEADED", "ROOT", "checked_version", "migrate", "steps"]

Dialect = Literal["sqlite", "postgresql"]

#: The chain that records which scopes were opened; it has no budget and no name.
ROOT = 1

#: From this version on a SQLite file has its head beside it: where there is none, it was taken away.
HEADED = 3

_TABLES = (
    "CREATE TABLE inbounds_meta (name text PRIMARY KEY, value text NOT NULL)",
    # One row a scope: what never changes, then the running totals and the end of its chain.
    """CREATE TABLE inbounds_scope (
        id bigint PRIMARY KEY,
        path text NOT NULL UNIQUE,
        budget text NOT NULL,
        renews text,
        period text NOT NULL,
        used text NOT NULL,
        seq bigint NOT NULL,
        head text NOT NULL
    )""",
    """CREATE TABLE inbounds_record (
        scope bigint NOT NULL,
        seq bigint NOT NULL,
        kind text NOT NULL,
        at text NOT NULL,
        reservation text,
        key text,
        content text NOT NULL,
        previous text NOT NULL,
        hash text NOT NULL,
        PRIMARY KEY (scope, seq)
    )""",
    # Nothing is begun twice, and nothing ends twice or in two ways.
    """CREATE UNIQUE INDEX inbounds_begun ON inbounds_record (reservation, scope)
        WHERE kind IN ('reserve', 'refuse')""",
    """CREATE UNIQUE INDEX inbounds_ended ON inbounds_record (reservation, scope)
        WHERE kind IN ('commit', 'void')""",
    "CREATE INDEX inbounds_key ON inbounds_record (scope, key) WHERE key IS NOT NULL",
    f"INSERT INTO inbounds_scope VALUES ({ROOT}, '[]', 'null', NULL, '', '[]', 0, '{BEGINNING}')",
)

# A seat belt against slips, not a wall: who owns the store can drop them.
_GUARDS: dict[Dialect, tuple[str, ...]] = {
    "sqlite": (
        *(
            f"""CREATE TRIGGER inbounds_record_{verb} BEFORE {verb} ON inbounds_record
            BEGIN SELECT RAISE(ABORT, 'ledger records are append-only'); END"""
            for verb in ("UPDATE", "DELETE")
        ),
        """CREATE TRIGGER inbounds_scope_DELETE BEFORE DELETE ON inbounds_scope
            BEGIN SELECT RAISE(ABORT, 'ledger scopes are never deleted'); END""",
        """CREATE TRIGGER inbounds_scope_UPDATE BEFORE UPDATE OF id, path, budget, renews ON inbounds_scope
            BEGIN SELECT RAISE(ABORT, 'a ledger scope keeps its budget'); END""",
    ),
    "postgresql": (
        """CREATE FUNCTION inbounds_refuse() RETURNS trigger LANGUAGE plpgsql AS
            $$BEGIN RAISE EXCEPTION 'ledger records are append-only, scopes keep their budgets'; END$$""",
        """CREATE TRIGGER inbounds_record_change BEFORE UPDATE OR DELETE OR TRUNCATE ON inbounds_record
            FOR EACH STATEMENT EXECUTE FUNCTION inbounds_refuse()""",
        """CREATE TRIGGER inbounds_scope_change
            BEFORE DELETE OR TRUNCATE OR UPDATE OF id, path, budget, renews ON inbounds_scope
            FOR EACH STATEMENT EXECUTE FUNCTION inbounds_refuse()""",
        # Room beside the one row that is written all the time, so that its new versions stay on its page.
        "ALTER TABLE inbounds_scope SET (fillfactor = 20)",
    ),
}

# Nothing in the tables of a file is new in version 3.
_LATER: dict[Dialect, tuple[tuple[str, ...], ...]] = {"sqlite": ((),), "postgresql": ()}


def steps(dialect: Dialect) -> tuple[tuple[str, ...], ...]:
    """What each step executes."""
    return (_TABLES, _GUARDS[dialect], *_LATER[dialect])


def checked_version(shown: str, meta: dict[str, str] | None, dialect: Dialect) -> int:
    """The version of the schema that was found; 0 where there are no tables yet."""
    if meta is None:
        return 0
    latest = len(steps(dialect))
    found = meta.get("schema", "")
    if not (isinstance(found, str) and found.isdecimal() and len(found) < 9) or "ledger" not in meta:
        raise LedgerCorrupt(
            f"Ledger: {shown} is not a ledger: its table inbounds_meta does not say which schema it has."
        )
    if int(found) > latest:
        raise LedgerUnavailable(
            f"Ledger: {shown} was written by a newer inbounds: its schema is {found}, this one knows up to {latest}. "
            "Upgrade inbounds; nothing was changed."
        )
    return int(found)


def migrate(tx: Transaction, version: int, dialect: Dialect) -> None:
    """Bring the tables from ``version`` up to date, inside the caller's transaction."""
    for step in steps(dialect)[version:]:
        for statement in step:
            tx.write(statement)
    latest = str(len(steps(dialect)))
    if version == 0:
        tx.write("INSERT INTO inbounds_meta VALUES ('schema', ?), ('ledger', ?)", latest, secrets.token_hex(16))
    else:
        tx.write("UPDATE inbounds_meta SET value = ? WHERE name = 'schema'", latest)
