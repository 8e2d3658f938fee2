"""Budget that is set aside: reserved, touched, committed."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from inbounds.accounting import add, in_words
from inbounds.errors import LedgerConflict, LedgerError, LedgerUnavailable, ParameterTypeError
from inbounds.ledger.chain import Level, locked, shown
from inbounds.ledger.record import checked_json
from inbounds.ledger.store import Transaction

if TYPE_CHECKING:
    from inbounds.ledger.ledger import Ledger

__all__ = ["SPENT", "Reservation", "note"]

#: How the note begins on an error that came after a reservation.
SPENT = "Its price is spent nevertheless"


class Reservation:
    """Budget set aside by :meth:`Scope.reserve`. Touch, draw, commit; or void, before data are touched.

    It belongs to the process that made it. Left alone it stays "reserved", which counts as spent for ever.
    """

    def __init__(
        self, ledger: Ledger, levels: Sequence[Level], id: str, charge: tuple[int, ...], answer: str | None = None
    ) -> None:
        self._ledger = ledger
        self._levels = levels
        self._charge = charge
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._state = "reserved" if answer is None else "replayed"
        self._tried = self._unsure = False
        self._answer = answer
        self.id = id

    def __repr__(self) -> str:
        return f"Reservation({self.id}, {self._state}, {shown(self._levels[-1].path)})"

    def __reduce__(self) -> NoReturn:  # a copy would be in a state of its own: one touched, the other one voided
        raise ParameterTypeError(
            "Reservation: a reservation is one; it cannot be pickled or copied. Commit its answer where it was made."
        )

    @property
    def state(self) -> str:
        """``"reserved"``, ``"touched"``, ``"committed"``, ``"voided"``, ``"replayed"`` or ``"left"``."""
        return self._state

    @property
    def replayed(self) -> bool:
        """True when the key had an answer already: there is nothing to draw."""
        return self._state == "replayed"

    @property
    def answer(self) -> Any:
        """What was committed, now or under the same key before."""
        if self._answer is None:
            raise LedgerConflict(f"Reservation: there is no answer yet; the reservation is {self._state}.")
        return json.loads(self._answer)

    def touch(self) -> None:
        """To be called before data are read: from here on nothing can be voided."""
        with self._mine():
            self._expect("touched", "reserved", "touched")
            self._state = "touched"

    def commit(self, answer: Any) -> None:
        """Store the answer, of what JSON has. Do this before anybody sees it. It may be tried again after an error."""
        text = checked_json("Reservation", "answer", answer)
        with self._mine():
            self._expect("committed", "reserved", "touched")
            self._state = "touched"

            content = f'{{"answer":{text}}}'

            def work(tx: Transaction) -> None:
                (own,), at, _ = locked(tx, self._levels[-1:])
                if not self._ended(tx, "commit", content):
                    own.append(tx, at, "commit", content, self.id)
                    own.save(tx)

            unsure, self._unsure = self._unsure, True  # as after an interruption, which may come behind the commit
            try:
                self._end(work)
            except LedgerError as problem:
                self._unsure = unsure or getattr(problem, "recorded", False) is None
                if not isinstance(problem, LedgerUnavailable):
                    raise
                fate = "whether the answer is recorded is not known" if self._unsure else "the answer is not recorded"
                raise LedgerUnavailable(
                    f"{problem} The budget is spent and {fate}; commit may be tried again.",
                    None if self._unsure else False,
                ) from problem
            except BaseException as error:
                self._tell(error)
                raise
            self._state, self._answer = "committed", text

    def void(self) -> None:
        """Give the budget back. Refused once data are touched. A void is recorded, too."""
        with self._mine():
            self._expect("voided", "reserved", "voiding")
            self._state = "voiding"  # from here on no data may be touched, even if the ledger cannot be reached

            def work(tx: Transaction) -> None:
                chains, at, _ = locked(tx, self._levels)
                if self._ended(tx, "void", "{}"):
                    return
                rows = tx.rows(
                    "SELECT scope, content FROM inbounds_record WHERE reservation = ? AND kind = 'reserve'", self.id
                )
                begun = {scope: json.loads(content) for scope, content in rows}
                for chain in chains:
                    if chain.period == begun[chain.id]["period"]:  # a period that is over stays as it was
                        chain.used = add(chain.used, [-c for c in begun[chain.id]["charge"]])
                    chain.append(tx, at, "void", "{}", self.id)
                    chain.save(tx)

            self._end(work)
            self._state = "voided"

    # ---------------------------------------------------------------- inside

    @contextlib.contextmanager
    def _mine(self) -> Iterator[None]:
        if os.getpid() != self._pid:
            raise LedgerConflict("Reservation: it belongs to the process that made it; this is another.")
        with self._lock:
            yield

    def _expect(self, wish: str, *states: str) -> None:
        if self._state not in states:
            touched = " Data may have been read, so it stays spent." if wish == "voided" else ""
            raise LedgerConflict(f"Reservation: it cannot be {wish}, it is {self._state}.{touched}")

    def _end(self, work: Callable[[Transaction], None]) -> None:
        try:
            self._ledger._store.transaction(work)
        finally:
            self._tried = True

    def _ended(self, tx: Transaction, kind: str, content: str) -> bool:
        """Whether an earlier try was recorded after all."""
        if not (self._tried or tx.retried):
            return False
        rows = tx.rows(
            "SELECT kind, content FROM inbounds_record "
            "WHERE reservation = ? AND scope = ? AND kind IN ('commit', 'void')",
            *(self.id, self._levels[-1].id),
        )
        if rows and rows[0] != (kind, content):
            raise LedgerConflict(f"Reservation: it has ended already ({rows[0][0]}), with another content.")
        return bool(rows)

    def _tell(self, error: BaseException) -> None:
        """Note on an error what is spent, where it does not say so itself."""
        own = self._levels[-1]
        price = f"{SPENT}: {in_words(own.budget.spent(self._charge))} in the scope {shown(own.path)}"
        if self._state in ("reserved", "touched") and not isinstance(error, LedgerUnavailable):
            note(error, f"{price}.")
        elif self._state == "committed" and not isinstance(error, Exception):
            note(error, f"{price}; its answer is recorded.")

    def _leave(self) -> None:
        with self._lock:
            if self._state in ("reserved", "touched", "voiding"):
                self._state = "left"


def note(error: BaseException, text: str) -> None:
    """Add a note once."""
    if text not in getattr(error, "__notes__", ()):
        error.add_note(text)
