"""A run of ``inbounds query``: what was asked, checked against the table, then explained, or paid and answered."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.text import Text

from inbounds import _checks as check
from inbounds import accounting
from inbounds._cached import cached_property
from inbounds.cli import budget, output
from inbounds.cli.options import Plain
from inbounds.cli.program import PARTLY, unseen
from inbounds.cli.questions import Inquiry, located
from inbounds.cli.report import Reply, Report
from inbounds.errors import InboundsError

if TYPE_CHECKING:
    from inbounds.events import Event
    from inbounds.ledger import Ledger, Scope
    from inbounds.tables import Dataset, Plan

__all__ = ["Run"]


@dataclass(frozen=True)
class Run:
    """What is asked, checked against the table: ready to be explained, or to be paid and answered."""

    inquiry: Inquiry
    data: Dataset
    plans: tuple[Plan, ...]

    @classmethod
    def planned(cls, inquiry: Inquiry, scope: Scope) -> Run:
        with output.working("planning"):
            with located(inquiry.place):
                data = inquiry.data(scope)
            if inquiry.asked[0].suggests:
                inquiry.asked[0].suggestion(data)
                return cls(inquiry, data, ())
            return cls(inquiry, data, tuple(asked.plan(data, inquiry.level) for asked in inquiry.asked))

    def paid_by(self, scope: Scope) -> Run:
        """The same with another budget."""
        plans = tuple(replace(plan, data=replace(plan.data, scope=scope)) for plan in self.plans)
        return replace(self, data=replace(self.data, scope=scope), plans=plans)

    @property
    def suggests(self) -> bool:
        return not self.plans

    @cached_property
    def _before(self) -> list[bool]:
        """Of each plan, whether it was answered before under its key."""
        found = []
        for asked, plan in zip(self.inquiry.asked, self.plans, strict=True):
            key = self.inquiry.key_of(asked)
            with located(asked.place):
                found.append(key is not None and self.data.scope.answered(plan.event, key=key))
        return found

    @property
    def _due(self) -> list[Event]:
        """What is to be paid for."""
        return [plan.event for plan, before in zip(self.plans, self._before, strict=True) if not before]

    # ---------------------------------------------------------------- before anything is spent

    def explain(self, ledger: Ledger, *, sql: bool, as_json: bool) -> None:
        if self.suggests:
            step = "It costs its --epsilon, and is paid for and recorded like an answer."
            check.refuse("inbounds", "--explain", "left out for a suggestion", Plain("it"), step)
        account, scope, due = self.inquiry.account, self.data.scope, self._due
        with output.working("pricing"):
            texts = [plan.explain(sql=sql).partition("\n\n") for plan in self.plans]
            short = scope.without_room(*due)
        if as_json:
            plans = [
                {
                    "name": asked.name or next(iter(plan.asks)),
                    "explanation": text,
                    "answered": before,
                    "event": plan.event.to_json(),
                }
                | ({"sql": query} if sql else {})
                for asked, plan, (text, _, query), before in zip(
                    self.inquiry.asked, self.plans, texts, self._before, strict=True
                )
            ]
            cost = scope.budget.spent(scope._charge(due)) if due else {}
            known = budget.record(scope) if scope.exists and account.ledger else None
            refused = None if short is None else "/".join(short.path)
            whole = {"plans": plans, "cost": cost, "fits": short is None, "refused_by": refused, "budget": known}
            output.print_json({"format": "inbounds.explanation", "version": 1, **whole})
            return
        out = output.console()
        for asked, (text, _, query), before in zip(self.inquiry.asked, texts, self._before, strict=True):
            if asked.name:
                out.print(Text(asked.name, style="bold"))
            for line in text.splitlines()[:-1]:  # the last is about the ledger
                out.print(_hanging(line, out.width), soft_wrap=True)
            if before:
                out.print(f"{'answered':<13} before, under its key: asking again costs nothing", soft_wrap=True)
            out.print(f"\n{query}\n" if query else "", soft_wrap=True)
        if len(self.plans) > 1:
            out.print(Text("All together", style="bold"))
            for i, line in enumerate(self._together(due, short)):
                out.print(_hanging(f"{'' if i else 'cost':<13} {line.strip()}", out.width), soft_wrap=True)
        where = account.shown(ledger) + ("" if scope.exists else " (not there yet; asking makes it)")
        out.print(f"{'ledger':<13} {where}", soft_wrap=True)
        out.print("No answers were computed. Nothing was spent.", soft_wrap=True)

    def _together(self, due: list[Event], short: Scope | None) -> list[str]:
        """What all questions cost, in the budget that has no room for them, or else in their own."""
        if not due:
            return ["nothing: all was answered before"]
        scope = short or self.data.scope
        price = accounting.price(due, budget=scope.budget, used=scope._used())
        lines = str(replace(price, charge=scope._charge(due))).splitlines()  # as the ledger will add them
        return lines if short is None else [*lines, f"Refused by the scope {'/'.join(short.path)!r}."]

    # ---------------------------------------------------------------- asking

    def suggest(self, as_json: bool) -> None:
        scope = self.data.scope
        draw = self.inquiry.asked[0].suggestion(self.data)
        with output.working("finding a suggestion"), unseen():
            found = draw(self.inquiry.key)
        kept = budget.record(scope) if self.inquiry.account.ledger else None
        if as_json:
            facts = {"values": dict(found.values), "epsilon": found.epsilon, "reason": found.reason, "budget": kept}
            output.print_json({"format": "inbounds.suggestion", "version": 1, **facts})
            return
        rows = [(name, "none" if value is None else output.exact(value)) for name, value in found.values.items()]
        report = Report((), self.inquiry.level, {"epsilon": found.epsilon}, scope.spent(), scope.remaining(), kept)
        output.print_rows([*rows, ("reason", found.reason), *report.facts()])

    def answers(self, *, made: str) -> tuple[Report, BaseException | None]:
        """Pay and ask, one plan after the other; with the error that ended it early, if there was one."""
        inquiry, scope = self.inquiry, self.data.scope
        self._refuse_too_much()
        replies: list[Reply] = []
        problem: BaseException | None = None
        names = [asked.name for asked in inquiry.asked]
        several = len(names) > 1
        with output.steps(names) if several else output.working("asking") as step:
            for asked, plan, before in zip(inquiry.asked, self.plans, self._before, strict=True):
                if step is not None:
                    step(f"{asked.name}: asking")
                key = inquiry.key_of(asked)
                try:
                    with located(asked.place), unseen():
                        found = plan.run(key=key)
                except (InboundsError, KeyboardInterrupt) as error:
                    if not replies:
                        raise
                    error.add_note(f"{PARTLY}: {len(replies)} of {len(names)}.")
                    problem = error
                    break
                replies.append(Reply.of(asked.name, plan, found, key, before))
        kept = budget.record(scope) if inquiry.account.ledger else None
        paid = [scope.budget.charge(reply.results.event) for reply in replies if not reply.replayed]
        cost = scope.budget.spent(tuple(map(sum, zip(scope.budget.zero(), *paid, strict=True))))
        return Report(replies, inquiry.level, cost, scope.spent(), scope.remaining(), kept, made), problem

    def _refuse_too_much(self) -> None:
        """Several questions are asked only if there is room for all of them, here and in the scopes above."""
        short = self.data.scope.without_room(*self._due) if len(self.plans) > 1 else None
        if short is not None:
            error = short._refusal(short._used(), short._charge(self._due))
            error.add_note("This is the price of all questions together: none was asked.")
            raise error


def _hanging(line: str, width: int) -> str:
    """A line of an explanation, wrapped beside its first column."""
    return textwrap.fill(
        line,
        width,
        subsequent_indent=" " * 14,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )
