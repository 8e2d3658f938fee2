"""A run of ``inbounds query``: what was asked, checked against the table, then explained, or paid and answered."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from rich.text import Text

from inbounds import _checks as check
from inbounds import accounting
from inbounds.cli import budget, output
from inbounds.cli.options import Plain
from inbounds.cli.program import unseen
from inbounds.cli.questions import Inquiry, located
from inbounds.cli.report import Reply, Report
from inbounds.errors import InboundsError, QueryFailed

if TYPE_CHECKING:
    from inbounds.ledger import Ledger, Scope
    from inbounds.query import Dataset, Plan

__all__ = ["Run"]


@dataclass(frozen=True)
class Run:
    """What is asked, checked against the table: ready to be explained, or to be paid and answered."""

    inquiry: Inquiry
    data: Dataset
    plans: tuple[Plan, ...]

    @classmethod
    def planned(cls, inquiry: Inquiry, ledger: Ledger, scope: Scope) -> Run:
        with output.working("planning"):
            with located(inquiry.place):
                data = inquiry.data(ledger, scope)
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

    def _price(self, scope: Scope) -> accounting.Price | None:
        """Of all that is to be paid; None where that is nothing."""
        due = [plan.event for plan, before in zip(self.plans, self._before, strict=True) if not before]
        if not due:
            return None
        charges = [scope.budget.charge(event) for event in due]
        together = accounting.price(due, budget=scope.budget, used=scope._used())
        return replace(together, charge=tuple(map(sum, zip(*charges, strict=True))))  # as the ledger will add them

    # ---------------------------------------------------------------- before anything is spent

    def explain(self, *, sql: bool, as_json: bool, there: bool) -> None:
        if self.suggests:
            step = "It costs its --epsilon, and is paid for and recorded like an answer."
            check.refuse("inbounds", "--explain", "left out for a suggestion", Plain("it"), step)
        account, scope = self.inquiry.account, self.data.scope
        with output.working("pricing"):
            texts = [plan.explain(sql=sql).partition("\n\n") for plan in self.plans]
            together = self._price(scope)
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
            cost = {} if together is None else scope.budget.spent(together.charge or ())
            fits = together is None or together.fits
            known = budget.record(scope) if there and account.ledger else None
            whole = {"plans": plans, "cost": cost, "fits": fits, "budget": known}
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
            shown = "nothing: all was answered before" if together is None else str(together)
            for i, line in enumerate(shown.splitlines()):
                out.print(_hanging(f"{'' if i else 'cost':<13} {line.strip()}", out.width), soft_wrap=True)
        where = f"{account.ledger}, {'/'.join(account.path)}" if account.ledger else "none: see --ledger"
        where += "" if there else " (not there yet; asking makes it)"
        out.print(f"{'ledger':<13} {where}", soft_wrap=True)
        out.print("Only names and types of columns were read. Nothing was spent.", soft_wrap=True)

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

    def answers(self, *, made: bool) -> tuple[Report, Exception | None]:
        """Pay and ask, one plan after the other; with the error that ended it early, if there was one."""
        inquiry, scope = self.inquiry, self.data.scope
        self._refuse_too_much()
        replies: list[Reply] = []
        problem: Exception | None = None
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
                except InboundsError as error:
                    if isinstance(error, QueryFailed):
                        error.add_note("Its price is spent nevertheless.")
                    if not replies:
                        raise
                    error.add_note(f"What was answered before it is shown: {len(replies)} of {len(names)}.")
                    problem = error
                    break
                replies.append(Reply.of(asked.name, plan, found, key, before))
        kept = budget.record(scope) if inquiry.account.ledger else None
        paid = [scope.budget.charge(reply.results.event) for reply in replies if not reply.replayed]
        cost = scope.budget.spent(tuple(map(sum, zip(scope.budget.zero(), *paid, strict=True))))
        place = f"{inquiry.account.ledger}: {'/'.join(scope.path)}, {scope.budget!r}" if made else ""
        return Report(replies, inquiry.level, cost, scope.spent(), scope.remaining(), kept, place), problem

    def _refuse_too_much(self) -> None:
        """Several questions are asked only if there is room for all of them, here and in the scopes above."""
        scope: Scope | None = self.data.scope
        while len(self.plans) > 1 and scope is not None:
            together = self._price(scope)
            if together is not None and not together.fits:
                error = scope.budget.refusal(together.used or (), together.charge or ())
                error.add_note(
                    f"Refused by the scope {'/'.join(scope.path)!r} for all questions together: none was asked."
                )
                raise error
            scope = scope.parent


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
