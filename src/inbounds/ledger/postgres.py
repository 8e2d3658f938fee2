"""The ledger in a PostgreSQL database."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

from inbounds.errors import LedgerCorrupt, LedgerError, LedgerUnavailable, MissingExtra, ParameterError
from inbounds.ledger.schema import checked_version, migrate, steps
from inbounds.ledger.store import Store, Transaction

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresStore"]

T = TypeVar("T")

_MIGRATION = 0x1B0_1ED6E2  # the advisory lock for making tables: there is no row to lock yet
_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"  # what a lock waited for is seen
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_PAUSE = 0.05  # seconds between two tries to connect again


class _Transaction(Transaction):
    """What needs no answer is gathered and travels with what does, or with the commit: two journeys a spending."""

    def __init__(
        self, connection: psycopg.Connection[Any], clock: Callable[[], datetime] | None, begin: str, retried: bool
    ) -> None:
        super().__init__(clock, retried)
        self._cursor = cast("psycopg.ClientCursor[Any]", connection.cursor())
        self._gathered = [begin]

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        self.write(sql, *values)
        self._send()
        return self._cursor.fetchall()

    def write(self, sql: str, *values: Any) -> None:
        self._gathered.append(self._cursor.mogrify(sql.replace("?", "%s"), values) if values else sql)

    def _send(self) -> None:
        text = "; ".join(self._gathered)
        self._gathered = []
        self._cursor.execute(text)  # stops at the first error, so that nothing after it is done, least a commit
        while self._cursor.nextset():
            pass

    def commit(self) -> None:
        self.write("COMMIT")
        self._send()

    def _lock(self, ids: Sequence[int]) -> tuple[list[tuple[Any, ...]], datetime]:
        # By rising id, so that two transactions never wait for each other. The time is the server's: one clock for all.
        found = self.rows(
            "SELECT id, seq, head, used, period, clock_timestamp() FROM inbounds_scope "
            "WHERE id = ANY(?) ORDER BY id FOR UPDATE",
            list(ids),
        )
        return [row[:5] for row in found], found[0][5] if found else self._now()

    def _now(self) -> datetime:
        found: datetime = self.rows("SELECT clock_timestamp()")[0][0]
        return found


class PostgresStore(Store):
    """Tables ``inbounds_...`` in the first schema of the search path; writers queue on the rows of their scopes."""

    def __init__(self, url: str, *, create: bool = True, timeout: float = 10.0) -> None:
        try:
            import psycopg
        except ImportError as problem:
            raise MissingExtra("Ledger: psycopg is not installed. Install inbounds[ledger].") from problem
        self._driver = psycopg
        try:
            given: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            raise ParameterError("Ledger: where must be a URL as postgresql://user@host:5432/database.") from None
        place = [str(given.get(name, "")) for name in ("host", "port", "dbname")]
        if "@" in "".join(place) or (not place[1].replace(",", "").isdecimal() and place[1]):
            # A password that is not encoded ends up in these; the message must not show it.
            raise ParameterError(
                "Ledger: where must be a URL as postgresql://user:password@host:5432/database. Percent-encode what the "
                "password has of / : @ ? #."
            )
        seconds = max(1, round(timeout))
        self._options: dict[str, Any] = {
            "application_name": "inbounds",
            "connect_timeout": seconds,
            "tcp_user_timeout": 1000 * seconds,
            "keepalives_idle": seconds,
            "keepalives_interval": max(1, seconds // 3),
            "keepalives_count": 3,
            **given,
            "client_encoding": "UTF8",  # whatever the database has; texts come back as texts
        }
        host, port, database = place
        super().__init__(f"postgresql://{host}:{port or 5432}/{database}", create=create, timeout=timeout)
        self._connection: psycopg.Connection[Any] | None = None

    # ---------------------------------------------------------------- transactions

    def _transaction(
        self, work: Callable[[Transaction], T], write: bool, deadline: float
    ) -> tuple[T, Callable[[], None]]:
        retried = unsure = False
        while True:
            committing = False
            try:
                connection = self._connected(deadline)
                try:
                    tx = _Transaction(connection, self.clock, _WRITE if write else _READ, retried)
                    result = work(tx)
                    committing = write
                    tx.commit()
                    return result, lambda: None
                except BaseException:
                    self._roll_back(connection)
                    raise
            except self._driver.Error as problem:
                lost = self._connection is None or self._connection.closed
                unsure = unsure or (committing and lost)  # the server may have heard the commit before it was lost
                if lost and not retried and self._identity is not None and time.monotonic() < deadline:
                    self._disconnect()
                    retried = True
                    continue
                raise self._error(problem, unsure) from problem

    def _roll_back(self, connection: psycopg.Connection[Any]) -> None:
        try:
            connection.execute("ROLLBACK")
        except self._driver.Error:  # the server does the same when the connection ends
            self._disconnect()

    # ---------------------------------------------------------------- the connection

    def _connected(self, deadline: float) -> psycopg.Connection[Any]:
        while self._connection is None:
            try:
                self._connection = self._connect()
            except self._driver.OperationalError:
                # A server that was there before may be starting again; one that never was is an error at once.
                if self._identity is None or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE)
        return self._connection

    def _connect(self) -> psycopg.Connection[Any]:
        try:
            connection = self._driver.connect(
                **self._options, autocommit=True, cursor_factory=self._driver.ClientCursor
            )
        except UnicodeError:  # a host's name of letters or a length that no name has
            raise ParameterError("Ledger: where must name a host that can be.") from None
        try:
            milliseconds = round(1000 * self.timeout)
            tx = _Transaction(connection, self.clock, _WRITE, False)
            for name in ("lock_timeout", "idle_in_transaction_session_timeout"):
                tx.write(f"SET {name} = {milliseconds}")
            ((flushed, acknowledged),) = tx.rows(
                "SELECT current_setting('fsync'), current_setting('synchronous_commit')"
            )
            if flushed != "on":
                raise LedgerUnavailable(
                    f"Ledger: {self.shown} runs with fsync = off, and a crash could lose what was recorded. Turn it on."
                )
            if acknowledged == "off":
                tx.write("SET synchronous_commit = on")
            found = self._prepared(tx)
            tx.commit()
            self._same_ledger(found)  # not before: what was made may yet be undone
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepared(self, tx: Transaction) -> dict[str, str]:
        """Make the tables or bring them up to date; what the ledger then says of itself."""
        version = checked_version(self.shown, self._meta(tx), "postgresql")
        if version < len(steps("postgresql")):
            tx.write("SELECT pg_advisory_xact_lock(?)", _MIGRATION)
            version = checked_version(self.shown, self._meta(tx), "postgresql")  # another may have been faster
            if version == 0 and not self._create:
                raise self._missing()
            migrate(tx, version, "postgresql")
        return dict(tx.rows("SELECT name, value FROM inbounds_meta"))

    def _meta(self, tx: Transaction) -> dict[str, str] | None:
        # Not to_regclass(), which remembers within a transaction that there was no such table.
        found = tx.rows(
            "SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = current_schema() AND c.relname = 'inbounds_meta'"
        )
        if not found:
            return None
        return dict(tx.rows("SELECT name, value FROM inbounds_meta"))

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # ---------------------------------------------------------------- errors

    def _error(self, problem: psycopg.Error, unsure: bool) -> LedgerError:
        reason = f"{type(problem).__name__}: {str(problem).strip()}".splitlines()[0]
        if isinstance(problem, self._driver.errors.LockNotAvailable):
            return LedgerUnavailable(f"Ledger: {self.shown} has been locked by another session for {self.timeout:g} s.")
        if isinstance(problem, self._driver.IntegrityError):
            return LedgerCorrupt(f"Ledger: {self.shown} contradicts itself ({reason}). Run verify().")
        return LedgerUnavailable(f"Ledger: {self.shown} cannot be used ({reason}).", None if unsure else False)
