"""A budget in a ledger, and what is spent of it."""

from __future__ import annotations

import contextlib
import functools
import json
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from inbounds import _checks as check
from inbounds.accounting import Budget, add
from inbounds.errors import BudgetExceeded, LedgerUnavailable, ParameterError, ParameterTypeError
from inbounds.events import Event
from inbounds.ledger.chain import Level, answered, locked, records, shown, totals
from inbounds.ledger.export import export
from inbounds.ledger.record import Record, canonical, check_text, checked_json, period_of, with_event
from inbounds.ledger.reservation import Reservation, note
from inbounds.ledger.store import Transaction

if TYPE_CHECKING:
    from inbounds.ledger.ledger import Ledger

__all__ = ["NOT_MADE", "Scope"]

_PERHAPS = "The reservation may have been recorded, and then counts as spent. Nothing may be drawn."
NOT_MADE = 0  # the id of a scope that is in no ledger yet: nothing can be locked, hence spent, under it


class Scope:
    """A budget in a ledger, and what was spent of it. Made by :meth:`inbounds.Ledger.scope`."""

    def __init__(self, ledger: Ledger, levels: Sequence[Level]) -> None:
        self._ledger = ledger
        self._levels = tuple(levels)
        self._own = self._levels[-1]

    @property
    def path(self) -> tuple[str, ...]:
        """The names from the top down to this scope."""
        return self._own.path

    @property
    def budget(self) -> Budget:
        """What may be spent here, in all or per period."""
        return self._own.budget

    @property
    def renews(self) -> str | None:
        """``"day"``, ``"month"``, ``"year"`` or None."""
        return self._own.renews

    @property
    def parent(self) -> Scope | None:
        """The scope above, or None."""
        return self._up_to(-1) if len(self._levels) > 1 else None

    @property
    def exists(self) -> bool:
        """False for one that ``Ledger.scope(..., create=False)`` did not find."""
        return self._own.id != NOT_MADE

    def __repr__(self) -> str:
        renews = f", renews every {self.renews}" if self.renews else ""
        return f"Scope({shown(self.path)}, {self.budget!r}{renews}, {self._ledger!r})"

    def __reduce__(self) -> NoReturn:
        raise ParameterTypeError(
            "Scope: a scope belongs to a ledger that is open; it cannot be pickled or copied. Open its ledger again "
            "there, as ib.Ledger.open(path).scope(name)."
        )

    # ---------------------------------------------------------------- spending

    def reserve(self, event: Event, *, key: str | None = None) -> Reservation:
        """Set aside what ``event`` costs, here and in every scope above, before data are touched.

        When this returns the reservation is on disk and counts as spent, whatever happens to this process.

        Parameters
        ----------
        event : Event
            What will be released.
        key : str or None
            Names the request. The same key with the same event gives the stored answer and costs nothing.

        Raises
        ------
        BudgetExceeded
            There is no room, here or above. The refusal is recorded, and that a period begins where one does.
        LedgerConflict
            The key belongs to another event, or to a spending that has no answer (yet).
        LedgerUnavailable
            The ledger cannot be written; nothing may be drawn.
        """
        text = checked_json("Scope", "event", _event_json(event))
        if key is not None:
            check_text("Scope", "key", key)
        charges = [_checked_charge(level.budget, event) for level in self._levels]
        # Rising with time, so that the index grows at its end.
        id = f"{time.time_ns():016x}{secrets.token_hex(8)}"

        def work(tx: Transaction) -> tuple[str, Any]:
            """What came of it: ("reserve", None), ("refuse", why) or ("replay", the stored answer)."""
            chains, at, periods = locked(tx, self._levels)
            own = chains[-1]
            if tx.retried:
                begun = tx.rows(
                    "SELECT kind, content FROM inbounds_record "
                    "WHERE reservation = ? AND scope = ? AND kind IN ('reserve', 'refuse')",
                    *(id, own.id),
                )
                if begun:
                    return begun[0][0], json.loads(begun[0][1])
            if key is not None and (answer := answered(tx, own, key, text)) is not None:
                return "replay", answer
            for chain, level, period in zip(chains, self._levels, periods, strict=True):
                if period > chain.period:  # never back: a clock that was set back opens nothing again
                    chain.append(tx, at, "renew", canonical({"before": chain.period, "period": period}))
                    chain.used, chain.period = level.budget.zero(), period
            outcome: tuple[str, Any] = "reserve", None
            for chain, level, charge in zip(chains, self._levels, charges, strict=True):
                if not level.budget.admits(add(chain.used, charge)):
                    why = {"by": level.path, "charge": charge, "used": chain.used}
                    own.append(tx, at, "refuse", with_event(text, why), id, key)
                    outcome = "refuse", why
                    break
            else:
                for chain, charge in zip(chains, charges, strict=True):
                    chain.used = add(chain.used, charge)
                    content = with_event(text, {"charge": charge, "period": chain.period, "scope": self.path})
                    chain.append(tx, at, "reserve", content, id, key if chain is own else None)
            for chain in chains:
                chain.save(tx)
            return outcome

        try:
            kind, found = self._ledger._store.transaction(work)
        except LedgerUnavailable as problem:
            if problem.recorded is False:
                raise
            raise LedgerUnavailable(f"{problem} {_PERHAPS}", None) from problem
        except BaseException as error:
            if not isinstance(error, Exception):  # as from the keyboard
                note(error, _PERHAPS)
            raise
        if kind == "refuse":
            raise self._up_to(len(found["by"]))._refusal(tuple(found["used"]), tuple(found["charge"]))
        return Reservation(self._ledger, self._levels, id, charges[-1], found if kind == "replay" else None)

    @contextlib.contextmanager
    def spending(self, event: Event, *, key: str | None = None) -> Iterator[Reservation]:
        """:meth:`reserve` for a ``with`` block. A block left without ``commit`` or ``void`` has spent its budget.

        Nothing is voided by itself: only the caller can know that no data were touched. An error that leaves the block,
        or an interruption (``KeyboardInterrupt``, ``SystemExit``), gets a note that says what is spent.
        """
        reservation = None
        try:
            reservation = self.reserve(event, key=key)
            yield reservation
        except BaseException as error:
            if reservation is not None:
                reservation._tell(error)
            elif not isinstance(error, Exception):  # on the way here
                note(error, _PERHAPS)
            raise
        finally:
            if reservation is not None:
                reservation._leave()

    def spend(self, event: Event, draw: Callable[[], Any], *, key: str | None = None) -> Any:
        """Reserve, call ``draw``, commit what it returns, return it: or the stored answer of this key, without a draw.

        The answer comes back as JSON has it, the same now and when it is replayed. An error of ``draw``, or an
        interruption, gets a note that says what is spent.
        """
        if not callable(draw):  # found out before anything is spent
            check.refuse("Scope", "draw", "a function without arguments", draw, "", ParameterTypeError)
        with self.spending(event, key=key) as reservation:
            if not reservation.replayed:
                reservation.touch()
                reservation.commit(draw())
            return reservation.answer

    # ---------------------------------------------------------------- what is recorded

    def answered(self, event: Event, *, key: str) -> bool:
        """Whether the same request has an answer, so that it costs nothing again; conflicts as from :meth:`reserve`."""
        text = checked_json("Scope", "event", _event_json(event))
        check_text("Scope", "key", key)
        own = self._own
        return self._ledger._store.transaction(lambda tx: answered(tx, own, key, text), write=False) is not None

    def without_room(self, *events: Event) -> Scope | None:
        """The first scope, from the top down to this one, that has no room for all these events; None if all have."""
        for count in range(1, len(self._levels) + 1):
            scope = self._up_to(count)
            if not scope.budget.admits(add(scope._used(), scope._charge(events))):
                return scope
        return None

    def _up_to(self, count: int) -> Scope:
        """This scope, or one above it: that of the first ``count`` names."""
        return Scope(self._ledger, self._levels[:count])

    def _charge(self, events: Sequence[Event]) -> tuple[int, ...]:
        """What the events cost here, each reserved by itself."""
        return functools.reduce(add, (_checked_charge(self.budget, event) for event in events), self.budget.zero())

    def _refusal(self, used: tuple[int, ...], charge: tuple[int, ...]) -> BudgetExceeded:
        exceeded = self.budget.refusal(used, charge)
        exceeded.add_note(f"Refused by the scope {shown(self.path)}.")
        return exceeded

    def _used(self) -> tuple[int, ...]:
        if not self.exists:
            return self.budget.zero()

        def work(tx: Transaction) -> tuple[int, ...]:
            ((used, period),) = tx.rows("SELECT used, period FROM inbounds_scope WHERE id = ?", self._own.id)
            over = period_of(tx.now(), self.renews) > period
            return self.budget.zero() if over else totals(used, self.budget)

        return self._ledger._store.transaction(work, write=False)

    def spent(self) -> dict[str, Any]:
        """What this period has spent, reservations without an answer included; see :meth:`inbounds.Budget.spent`."""
        return self.budget.spent(self._used())

    def remaining(self) -> dict[str, Any]:
        """What is left here in the current period. Scopes above may have less."""
        return self.budget.remaining(self._used())

    def history(self) -> tuple[Record, ...]:
        """The records of this scope, oldest first."""
        return self._ledger._store.transaction(lambda tx: tuple(records(tx, self._own.id, self.path)), write=False)

    def unfinished(self) -> tuple[Record, ...]:
        """Reservations without an answer: under way, or left by a process that died. They count as spent."""
        ended = "SELECT 1 FROM inbounds_record e WHERE e.reservation = r.reservation AND e.kind IN ('commit', 'void')"
        return self._ledger._store.transaction(
            lambda tx: tuple(records(tx, self._own.id, self.path, f"AND r.kind = 'reserve' AND NOT EXISTS ({ended})")),
            write=False,
        )

    def export(self, how: str) -> str:
        """This scope, as ``"json"`` or ``"csv"`` (which has the records only)."""
        return export(how, self._ledger._store, self.path)


def _event_json(event: Event) -> Any:
    if not isinstance(event, Event):
        check.refuse("Scope", "event", "an event", event, "Ask a mechanism for its event().", ParameterTypeError)
    return event.to_json()


def _checked_charge(budget: Budget, event: Event) -> tuple[int, ...]:
    """What the budget asks for the event. Never negative: that would give budget back."""
    charge = tuple(budget.charge(event))
    if len(charge) != len(budget.zero()) or not all(type(c) is int and c >= 0 for c in charge):
        raise ParameterError("Scope: the budget's charge for this event is not a vector of whole numbers from 0 up.")
    return charge
