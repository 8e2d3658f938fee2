"""Looking for a case that breaks a promise.

``python -m tests.adversary.search --seconds 600`` tries new ones with a fresh seed, which it prints.
"""

from __future__ import annotations

import argparse
import contextlib
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis.errors import Flaky
from hypothesis.internal.conjecture.engine import ConjectureRunner

from inbounds.errors import InboundsError
from inbounds.mechanism import BoundedLaplace
from inbounds.tables.measures import Binned
from tests.adversary.cases import Case, cases
from tests.adversary.formats import LOCAL
from tests.adversary.loss import Draw, privacy_loss
from tests.adversary.noise import Noise
from tests.adversary.twin import Run, replaced, run_case

#: Of a price, this much is paid for draws that are made: where there is less, one of them is missing or used twice.
PAID = 0.99


@dataclass
class Verdict:
    """What came of a case, ``"judged"``, ``"refused"`` or ``"not written"``; why; the use of the price; what broke."""

    what: str
    ratio: Fraction = Fraction(0)
    why: str = ""
    stated: float = 0.0
    draws: list[Draw] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)


def judge(case: Case) -> Verdict:
    """Run the question on both tables and compare."""
    with tempfile.TemporaryDirectory(prefix="adversary-") as name:
        folder = Path(name)
        shown: Sequence[Any] = ()
        runs = [run_case(case, side, folder, shown) for side in ("first", "second")]
        if None in runs:
            return Verdict("not written")
        if case.question.finds and all(run and run.tallies for run in runs):
            verdict = _compared(case, runs[0], runs[1], shown)  # type: ignore[arg-type]
            if verdict.violations:
                return verdict
            shown = sorted(set.intersection(*({repr(k) for k in run.tallies[-1][1].keys} for run in runs if run)))
            if shown:
                runs = [run_case(case, side, folder, shown) for side in ("first", "second")]
                for run in filter(None, runs):
                    if not run.failed and case.question.suppress_below is None and sorted(run.groups) != shown:
                        verdict.violations.append(f"groups: {run.groups} are shown, where {shown} pass")
                        return verdict
        first, second = runs
        assert first is not None
        assert second is not None
        verdict = _compared(case, first, second, shown)
        if not verdict.violations and first.failed and not first.refused:
            verdict.what = "refused"
            empty = run_case(case, "empty", folder)
            if empty is not None and (empty.failed != first.failed or first.failed.startswith("running")):
                why = "because of rows" if empty.failed != first.failed else "whatever the rows are"
                verdict.violations.append(f"fails {why}: {first.failed}")
        return verdict


def _compared(case: Case, first: Run, second: Run, shown: Sequence[Any]) -> Verdict:
    found = Verdict(
        "refused" if first.refused else "judged", why=first.failed or "", draws=[*first.draws, *second.draws]
    )
    for one, other in zip(first.seen, second.seen, strict=False):
        if one != other:
            found.violations.append(f"{one[0]}: {_difference(one[1], other[1], other[0])}")
    if len(first.seen) != len(second.seen):
        found.violations.append("more is seen of one than of the other")
    if first.seeded or second.seeded:
        found.violations.append("noise: drawn from something else than the system's randomness")
    if not (first.replayed and second.replayed):
        found.violations.append("a replay draws or costs again")
    if case.question.finds:
        _levelled(first, second)
    if [repr(d.mechanism) for d in first.draws] != [repr(d.mechanism) for d in second.draws]:
        kinds = [[repr(d.mechanism)[:200] for d in run.draws] for run in (first, second)]
        found.violations.append(f"the draws are of different mechanisms: {kinds[0]} beside {kinds[1]}")
        return found
    swapped = case.question.neighbours == "substitute" and bool(case.question.by)
    question, goal = case.question, case.question.goal
    answered = len(question.keys or shown) or 1 if not question.suggests else 1
    grouped = question.by and question.unit is not None and not question.suggests
    most = (question.max_groups or answered) if grouped else 1
    groups = most if question.finds else min(most, answered)
    try:
        loss = privacy_loss(first.draws, second.draws, swapped=swapped, groups=groups, answered=answered)
    except (IndexError, TypeError, ValueError) as error:
        found.violations.append(f"the draws are of different shapes: {error}")
        return found
    found.ratio = loss.ratio(goal)
    if found.ratio > 1:
        found.violations.append(f"loss: {float(found.ratio):.6g} of the price {goal}")
    found.stated = float(loss.stated_ratio(goal))
    if loss.stated_ratio(goal) > 1:
        found.violations.append(f"stated: {float(loss.stated_ratio(goal)):.6g} of the price {goal}")
    elif (
        0 < loss.stated_ratio(goal) < PAID
        and not (first.failed or question.truncates)
        and (shown or not question.finds)
    ):
        found.violations.append(f"drawn: {float(loss.stated_ratio(goal)):.6g} of what the price {goal} pays for")
    if loss.moved > 1:
        found.violations.append(f"moved: {float(loss.moved):.6g} of the sensitivity stated")
    if swapped and question.finds and first.draws and isinstance(first.draws[0].mechanism, BoundedLaplace):
        mechanism, changed = first.draws[0].mechanism, 2 * ((question.max_groups or 0) if question.unit else 1)
        most, paid = changed * float(mechanism.delta(mechanism.sensitivity / mechanism.scale)), first.spent.get("delta")
        if not first.failed and most * PAID > (paid or 0.0):
            found.violations.append(f"charged: a delta of {paid}, where {changed} groups change, with {most}")
    if question.finds and shown and len(first.draws) <= 4 and not loss.gaussian:
        paid, most = first.spent["epsilon"], float(max(loss.there, loss.back) + loss.found)
        if most * PAID > paid or loss.delta * PAID > first.spent.get("delta", 0.0):  # one can be had for the other
            found.violations.append(f"charged: {first.spent}, with a loss of {most} and {loss.delta}")
    if first.draws and set(goal) == {"epsilon"}:
        paid = Fraction(repr(first.spent["epsilon"]))
        most = max(loss.there, loss.back, loss.stated)
        if most > paid or paid > Fraction(repr(goal["epsilon"])):
            found.violations.append(f"charged: {float(paid)} of {goal}, with a loss of {float(most)}")
    found.violations += _tallied(case, first, second)
    return found


def _levelled(first: Run, second: Run) -> None:
    """Where no group can be found nothing need be drawn, which nobody sees: as a draw of no groups."""
    for one, other in ((first, second), (second, first)):
        if not one.draws and other.draws and not one.failed:
            one.draws.append(Draw(other.draws[0].mechanism, [], ()))


def _tallied(case: Case, first: Run, second: Run) -> list[str]:
    """The exact numbers against what one unit may contribute, before any mechanism."""
    found = []
    substitute = case.question.neighbours == "substitute"
    for (request, one), (_, other) in zip(first.tallies, second.tallies, strict=False):
        if request.by and request.keys is None:
            continue  # groups below a threshold are not collected: they are compared where they are drawn
        changed = 0
        for i in range(len(one.keys)):
            moved = one.units[i] != other.units[i]
            for name, rows in one.numbers.items():
                changes = [a - b for a, b in zip(rows[i], other.numbers[name][i], strict=True)]
                moved = moved or any(changes)
                limits = request.contribution(name)
                for change, (least, most) in zip(changes, limits, strict=True):
                    room = most - least if substitute else max(most, -least)
                    if abs(change) > room:
                        found.append(f"numbers: {name} moves by {change}, where {room} is most")
                if isinstance(request.measures[name], Binned):
                    room = request.caps.values * (2 if substitute else 1)
                    if sum(map(abs, changes)) > room:
                        found.append(f"numbers: the bins of {name} move by {changes}, where {room} is most")
            changed += moved
        if changed > (request.groups or 1) * (2 if substitute else 1):
            found.append(f"numbers: {changed} groups change, where {request.groups} may")
    return found


def _difference(one: str, other: str, name: str) -> str:
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"{name} has {one[max(at - 60, 0) : at + 100]!r} beside {other[max(at - 60, 0) : at + 100]!r}"


# ---------------------------------------------------------------- many cases


@dataclass
class Summary:
    """What a search saw."""

    cases: int = 0
    worst: Fraction = Fraction(0)
    what: Counter[tuple[str, str]] = field(default_factory=Counter)
    found: Case | None = None
    verdict: Verdict | None = None
    first: int | None = None

    def __str__(self) -> str:
        lines = [f"{self.cases} cases, worst loss over price {float(self.worst):.6f}"]
        for name in sorted({name for name, _ in self.what}):
            counts = {what: count for (of, what), count in sorted(self.what.items()) if of == name}
            lines.append(f"  {name:<24}" + ", ".join(f"{what} {count}" for what, count in counts.items()))
        return "\n".join(lines)


class Found(AssertionError):
    """A promise is broken."""


def search(
    count: int,
    *,
    seed: int | None = None,
    formats: Sequence[str] = LOCAL,
    shrink: bool = True,
    until: float = float("inf"),
) -> Summary:
    """Try so many cases, or as many as there is time for; the same ones every time without a seed."""
    summary, noise = Summary(), Noise()
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]

    @hypothesis.settings(
        max_examples=count, phases=phases, database=None, deadline=None, derandomize=seed is None, print_blob=False,
        report_multiple_bugs=False, suppress_health_check=list(HealthCheck), verbosity=hypothesis.Verbosity.quiet,
    )  # fmt: skip
    @hypothesis.given(cases(formats))
    def attempt(case: Case) -> None:
        if time.monotonic() > until and summary.found is None:
            return
        verdict = judge(case)
        if summary.found is None:
            if not verdict.violations:
                try:
                    verdict.violations += noise.look(verdict.draws)
                except (IndexError, ValueError, InboundsError) as error:
                    verdict.violations.append(f"noise: cannot be drawn again: {error}")
            summary.cases += 1
            summary.what[case.format, verdict.what] += 1
            summary.worst = max(summary.worst, verdict.ratio)
        if verdict.violations:
            summary.first = summary.first or summary.cases
            summary.found, summary.verdict = case, verdict
            raise Found(verdict.violations)

    run: Any = attempt if seed is None else hypothesis.seed(seed)(attempt)
    # Cases that are made from the last one are much like it, and each costs as much as a new one.
    with (
        replaced((ConjectureRunner, "generate_mutations_from", lambda self, data: None)),
        contextlib.suppress(Found, Flaky),
    ):
        run()
    return summary


def main() -> int:
    parser = argparse.ArgumentParser(description="Search for a case that breaks a promise of tables.")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--cases", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--formats", nargs="+", default=LOCAL, choices=LOCAL)
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    until, total, round_ = time.monotonic() + given.seconds, Summary(), 0
    while time.monotonic() < until and total.cases < given.cases:
        size = min(200, given.cases - total.cases)
        found = search(size, seed=given.seed + round_, formats=given.formats, until=until)
        round_ += 1
        total.cases, total.worst = total.cases + found.cases, max(total.worst, found.worst)
        total.what += found.what
        if found.found is not None and found.verdict is not None:
            print(total)
            print(*found.verdict.violations, sep="\n")
            print(f"\n{found.found.code(given.seed + round_ - 1)}")
            return 1
    print(total)
    return 0


if __name__ == "__main__":
    sys.exit(main())
