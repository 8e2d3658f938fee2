"""What the commands print: tables in plain words, or one JSON object.

For people, privacy parameters are rounded up and scales are written in full, so that what is copied from a table holds.
In JSON every number has full precision, infinities are the strings "inf" and "-inf", and missing numbers are null.
"""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from inbounds import events
from inbounds.accounting import Budget
from inbounds.advice import Comparison
from inbounds.auditing.report import plain, shortened
from inbounds.cli.words import spoken
from inbounds.composition import Guarantee
from inbounds.domain import Box, Domain, Line
from inbounds.events import Draw, Event, Plan
from inbounds.mechanism import Additive, Gaussian, Mechanism
from inbounds.numerics import Bound, rounded
from inbounds.sensitivity import L0, PerCoordinate, Sensitivity

if TYPE_CHECKING:
    from inbounds.ledger import Record, Scope

__all__ = [
    "Fact",
    "amounts",
    "asked",
    "console",
    "errors",
    "exact",
    "facts",
    "places",
    "plain",
    "print_comparison",
    "print_event",
    "print_history",
    "print_json",
    "print_mechanism",
    "print_rows",
    "print_scopes",
    "print_whole",
    "record",
    "span",
    "steps",
    "width",
    "working",
]

_SOON, _AGAIN = 5.0, 30.0  # seconds before the first line that says what is still being done, and between two
_ERRORS = ("bias", "sd", "rmse", "mae")
_SIDES = 4  # coordinates that a table shows
_RELEASES = 20  # kinds of release that it shows
_NUMBERS = 8  # of an answer, in a history
_FAR = 60.0  # scales from an end at which nothing of the end is felt
_EDGES = {
    "truncate": "truncate: noise conditioned on the domain",
    "clamp": "clamp: plain noise, moved to the nearest point of the domain",
    "ignore": "ignore: plain noise, answers may leave the domain",
}


def console(*, stderr: bool = False) -> Console:
    """Made anew each time, so that it writes to what is standard output now."""
    return Console(file=sys.stderr if stderr else sys.stdout, highlight=False, markup=False)


def print_json(found: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(plain(found), indent=2, allow_nan=False) + "\n")


@contextmanager
def working(what: str) -> Iterator[None]:
    """Say on stderr that something is being computed: on a terminal while it is; elsewhere a line now and then."""
    out = console(stderr=True)
    with out.status(what) if out.is_terminal else _reminded(lambda: what):
        yield


@contextmanager
def _reminded(doing: Callable[[], str]) -> Iterator[None]:
    """A line after five seconds, then one every half minute."""
    start, done = time.monotonic(), threading.Event()

    def remind() -> None:
        wait = _SOON
        while not done.wait(wait):
            print(f"inbounds: still {doing()}, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
            wait = _AGAIN

    thread = threading.Thread(target=remind, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def steps(parts: Sequence[str]) -> Iterator[Callable[[str], None]]:
    """A progress bar on stderr over the parts of long work, told "part: step"; elsewhere a line a step."""
    out = console(stderr=True)
    if not out.is_terminal:
        last = "starting"

        def line(step: str) -> None:
            nonlocal last
            last = step
            out.print(step, soft_wrap=True)

        with _reminded(lambda: f"at work ({last})"):
            yield line
        return
    columns = (SpinnerColumn(), BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task("starting", total=len(parts))

        def told(step: str) -> None:
            part = step.split(":")[0]
            done = parts.index(part) if part in parts else len(parts)
            bar.update(task, description=step, completed=done)

        yield told


# ---------------------------------------------------------------- words


def exact(x: Any) -> str:
    """A number, or a short vector, as it was given."""
    if isinstance(x, tuple | list):
        return "(" + ", ".join(map(exact, x[:6])) + (", ...)" if len(x) > 6 else ")")
    return repr(x).removesuffix(".0")


def asked(target: dict[str, Any], guarantee: str) -> str:
    """A privacy target, as it was given."""
    named = ", ".join(f"{name} = {exact(value)}" for name, value in target.items())
    return named + (" in proportion to the distance" if guarantee == "metric" else "")


def _ends(lower: float, upper: float) -> str:
    if math.isinf(lower) and math.isinf(upper):
        return "without end"
    if math.isinf(lower):
        return f"up to {exact(upper)}"
    return f"from {exact(lower)} up" if math.isinf(upper) else f"from {exact(lower)} to {exact(upper)}"


def describe(domain: Domain) -> str:
    """A domain in words."""
    noun = "whole numbers" if domain.lattice else "numbers"
    if isinstance(domain, Box):
        sides = [
            _ends(low, high)
            for low, high in zip(domain.lower[:_SIDES].tolist(), domain.upper[:_SIDES].tolist(), strict=True)
        ]
        more = ", ..." if domain.dimension > _SIDES else ""
        return f"vectors of {domain.dimension} {noun}: {', '.join(sides)}{more}"
    return f"{noun} " + ", or ".join(_ends(low, high) for low, high in domain.pieces)


def _sensitivity(sensitivity: Sensitivity) -> str:
    if isinstance(sensitivity, float):
        return exact(sensitivity)
    if isinstance(sensitivity, L0):
        return f"{sensitivity.count} coordinates, each by at most {exact(sensitivity.linf)}"
    if isinstance(sensitivity, PerCoordinate):
        return f"{exact(sensitivity.values)}, by coordinate"
    norm = {"L1": "the changes add up to", "L2": "the changes have length", "Linf": "each coordinate changes by"}
    return f"{norm[type(sensitivity).__name__]} at most {exact(sensitivity.value)}"


def _grid(mechanism: Additive) -> str:
    if mechanism.domain.lattice:
        return "whole numbers"
    steps = sorted(set(np.atleast_1d(mechanism.grid).tolist()))
    return "multiples of " + " and ".join(f"2^{round(math.log2(g))} = {g:.6g}" for g in steps[:3])


# ---------------------------------------------------------------- what is known of a mechanism


@dataclass(frozen=True)
class Fact:
    """One privacy statement: its name, the bound, and what it is stated for."""

    name: str
    bound: Bound
    given: dict[str, float]

    def record(self) -> dict[str, Any]:
        found = {"name": self.name, **self.given, "value": float(self.bound)}
        return found | {"exact": self.bound.exact, "reason": self.bound.reason}

    def row(self) -> tuple[str, str, str]:
        at = ", ".join(f"{key} = {exact(value)}" for key, value in self.given.items())
        if math.isinf(self.bound):
            return (
                self.name,
                at,
                f"none ({self.bound.reason})" if self.bound.exact else f"none proven ({self.bound.reason})",
            )
        kind = "exact" if self.bound.exact else "proven bound, may be larger than needed"
        return self.name, at, f"{rounded(self.bound)} ({kind}: {self.bound.reason})"


def facts(
    mechanism: Mechanism | Guarantee,
    *,
    epsilons: Sequence[float] = (),
    deltas: Sequence[float] = (),
    alphas: Sequence[float] = (),
    rho: bool = False,
    mu: bool = False,
) -> list[Fact]:
    """Pure epsilon, and what else was asked for."""
    found = [Fact("epsilon", mechanism.epsilon(), {"delta": 0.0})]
    found += [Fact("epsilon", mechanism.epsilon(d), {"delta": d}) for d in deltas if d]
    found += [Fact("delta", mechanism.delta(e), {"epsilon": e}) for e in epsilons]
    found += [Fact("Renyi epsilon", mechanism.rdp(a), {"alpha": a}) for a in alphas]
    if rho:
        found.append(Fact("rho", mechanism.zcdp(), {}))
    if mu:
        found.append(Fact("mu", mechanism.gdp(), {}))
    return found


def record(mechanism: Mechanism) -> dict[str, Any]:
    """A mechanism for JSON; ``python`` is what Python prints for it."""
    domain, limit = mechanism.domain, mechanism.sensitivity
    where: dict[str, Any] = {"kind": type(domain).__name__, "lower": domain.lower, "upper": domain.upper}
    if isinstance(domain, Box):
        where["integer"] = domain.integer
    elif len(domain.pieces) > 1:
        where["spans"] = domain.pieces
    how: Any = limit if isinstance(limit, float) else {"kind": type(limit).__name__, **asdict(limit)}
    return {
        "family": type(mechanism).__name__.lower(),
        "domain": where,
        "sensitivity": how,
        "edges": getattr(mechanism, "edges", None),
        "scale": mechanism.scale,
        "grid": mechanism.grid,
        "python": repr(mechanism),
    }


def _inside(domain: Line, scale: float) -> float:
    """A point far from the ends: the middle of the widest piece, or many scales from its only end."""
    low, high = max(domain.pieces, key=lambda piece: piece[1] - piece[0])
    far = _FAR * scale
    if math.isfinite(low) and math.isfinite(high):
        point = low + (high - low) / 2.0
    elif math.isfinite(low) or math.isfinite(high):
        point = low + far if math.isfinite(low) else high - far
    else:
        point = 0.0
    return float(np.floor(point)) if domain.lattice else point


def places(mechanism: Additive) -> list[tuple[str, Any]]:
    """The true values whose error is told: the ends, the ends of holes, and a point far from all of them."""
    domain, scale = mechanism.domain, mechanism.scale
    if isinstance(domain, Box):
        middle = np.array([_inside(domain.coordinate(i), scale) for i in range(domain.dimension)])
        corners = [np.where(np.isfinite(ends), ends, middle) for ends in (domain.lower, domain.upper)]
        found = [("lower corner", corners[0]), ("middle", middle), ("upper corner", corners[1])]
        return [(name, at) for name, at in found if name == "middle" or not np.array_equal(at, middle)]
    if domain.bounded:
        name = "middle" if len(domain.pieces) == 1 else "middle of the widest span"
    else:
        name = "anywhere" if domain.pieces == ((-math.inf, math.inf),) else "far from the ends"
    at = _inside(domain, scale)
    places = [("lower end", float(domain.lower)), (name, at), ("upper end", float(domain.upper))]
    for (_, left), (right, _) in zip(domain.pieces[:3], domain.pieces[1:4], strict=False):
        places += [("below a hole", left), ("above a hole", right)]
    return [(name, x) for name, x in places if math.isfinite(x)]


def errors(mechanism: Additive) -> list[dict[str, Any]]:
    """Where, and the expected error there: bias, sd, rmse, mae, and the chance of an answer at either end."""
    return [
        {"where": name, "true_value": at, **asdict(cast(Any, mechanism.at(at)).error())}
        for name, at in places(mechanism)
    ]


# ---------------------------------------------------------------- tables


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int = 0) -> Table:
    """A table without frame whose last ``numbers`` columns are set flush right. The first column is never wrapped."""
    made = Table(box=SIMPLE_HEAD, show_header=any(header), show_edge=False, pad_edge=False, header_style="bold")
    for i, name in enumerate(header):
        right = i >= len(header) - numbers
        made.add_column(name, justify="right" if right else "left", overflow="fold", no_wrap=right or i == 0)
    for row in rows:
        made.add_row(*(Text(cell, style="bold" if i == 0 and not any(header) else "") for i, cell in enumerate(row)))
    return made


def width(made: Table) -> int:
    """How wide a table is where nothing limits it."""
    out = console()
    return Measurement.get(out, out.options.update(max_width=10_000), made).maximum


def print_whole(made: Table) -> None:
    """With longer lines than fit, rather than half a number."""
    out = console()
    out.width = max(width(made), out.width)
    out.print(made)


def _error_rows(mechanism: Additive) -> Iterator[tuple[str, ...]]:
    for e in errors(mechanism):
        vector = np.ndim(e["true_value"]) > 0
        for i in range(min(len(e["true_value"]), _SIDES) if vector else 1):
            true, bias, *rest = (float(e[name][i] if vector else e[name]) for name in ("true_value", *_ERRORS))
            bias = 0.0 if abs(bias) < 1e-9 * rest[0] else bias  # rounding in what cancels by symmetry
            where = f"{e['where']}, coordinate {i + 1}" if vector else e["where"]
            yield where, f"{true:.6g}", *(f"{x:.4g}" for x in (bias, *rest))


def print_mechanism(mechanism: Additive, known: Sequence[Fact], *, asked: str = "") -> None:
    """Everything about a mechanism, in three tables."""
    scale = repr(mechanism.scale)
    rows = [
        ("domain", describe(mechanism.domain)),
        ("edges", _EDGES[mechanism.edges]),
        ("sensitivity", _sensitivity(mechanism.sensitivity)),
        *([("asked for", asked)] if asked else []),
        ("scale", f"{scale} (sigma)" if isinstance(mechanism, Gaussian) else scale),
        ("answers", _grid(mechanism)),
    ]
    out = console()
    out.print(Text(f"{type(mechanism).__name__} noise", style="bold"))
    for made in (
        table(("", ""), rows),
        table(("guarantee", "for", "value"), [fact.row() for fact in known]),
        table(("expected error", "true value", *_ERRORS), _error_rows(mechanism), numbers=5),
    ):
        out.print()
        out.print(made)


def _named(leaf: Event) -> str:
    return repr(leaf.mechanism) + (f", {leaf.note}" if leaf.note else "") if isinstance(leaf, Draw) else repr(leaf)


def print_event(event: Event, known: Sequence[Fact]) -> None:
    """What was released, and what it guarantees."""
    rows = [(shortened(_named(leaf)), f"{times}") for leaf, times in event.leaves()]
    more = [(f"... and {len(rows) - _RELEASES} kinds more", "")] if len(rows) > _RELEASES else []
    out = console()
    out.print(table(("released", "times"), [*rows[:_RELEASES], *more], numbers=1))
    out.print()
    out.print(table(("guarantee", "for", "value"), [fact.row() for fact in known]))


def print_rows(rows: Sequence[tuple[str, str]]) -> None:
    """Names and what they stand for."""
    console().print(table(("", ""), rows))


# ---------------------------------------------------------------- choices


def print_comparison(found: Comparison, reason: str) -> None:
    """Mechanisms, the best first: the error that was asked about, on average and at worst, beside the limit."""
    key = "rmse" if found.loss == "squared" else "mae"
    averaged = found.at is None and any(entry.average for entry in found)
    heads = [f"average\n{key}"] if averaged else []
    heads += [key if found.at is not None else f"worst\n{key}", "bias", "at\nends", f"{100 * found.level:.4g} %\nwidth"]
    heads += ["over\nlimit"] if found.limit else []
    rows = []
    for entry in found:
        worst, average = entry.worst, entry.average
        bias = 0.0 if abs(worst.bias) < 1e-9 * worst.rmse else worst.bias  # rounding in what cancels by symmetry
        cells = [entry.name + ("" if entry.in_range else " *")]
        cells += [f"{getattr(average, key):.4g}" if average else ""] if averaged else []
        cells += [f"{getattr(worst, key):.4g}", f"{bias:.4g}", f"{worst.ends:.3f}", f"{(average or worst).width:.4g}"]
        cells += [f"{found.ratio(entry):.3f}"] if found.limit else []
        rows.append(cells)
    print_whole(table(("mechanism", *heads), rows, numbers=len(heads)))
    out = console()
    out.print()
    for line in (*_notes(found), reason):
        if line:
            out.print(line)


def _notes(found: Comparison) -> Iterator[str]:
    if found.limit is not None:
        what = "The limit" if found.limit.attained else "A lower bound of the limit"
        yield f"{what} is a mean {found.loss} loss of {found.limit.value:.4g} ({found.limit.source})."
    if any(not entry.in_range for entry in found):
        yield "* answers may leave the domain"
    reasons: dict[str, list[str]] = {}
    for name, reason in found.skipped.items():
        reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        yield f"Left out: {'; '.join(names)}. {spoken(reason)}"


def span(mechanism: Mechanism, value: Any, lower: Any, upper: Any) -> list[tuple[str, str]]:
    """The answer and its interval, a pair for each coordinate, as exactly as the noise makes sense of: a thousandth.

    The ends are rounded outwards, but not beyond the domain.
    """
    if mechanism._whole_answers:
        each = zip(*(np.atleast_1d(v).tolist() for v in (value, lower, upper)), strict=True)
        return [(f"{x}", f"from {a} to {b}") for x, a, b in each]
    digits = max(0, 3 - math.floor(math.log10(np.min(mechanism.scale))))
    unit, domain = 10.0**digits, mechanism.domain
    low = np.maximum(np.floor(np.asarray(lower, dtype=np.float64) * unit) / unit, domain.lower)
    high = np.minimum(np.ceil(np.asarray(upper, dtype=np.float64) * unit) / unit, domain.upper)
    return [
        (f"{x:.{digits}f}", f"from {a:.{digits}f} to {b:.{digits}f}")
        for x, a, b in zip(*(np.atleast_1d(v).tolist() for v in (value, low, high)), strict=True)
    ]


# ---------------------------------------------------------------- budgets


def amounts(found: dict[str, Any], *, up: bool = True) -> str:
    """Privacy in words, rounded up (what is spent) or down (what is left)."""
    return ", ".join(f"{name} {rounded(x, up=up, digits=9)}" for name, x in found.items())


def budget_words(budget: Budget, renews: str | None) -> str:
    given = {name: x for name, x in budget.to_json().items() if name not in ("version", "own")}
    return amounts(given, up=False) + (f", every {renews}" if renews else "")


def print_scopes(scopes: Sequence[Scope]) -> None:
    """Budgets, what is spent of them and what is left."""
    rows = [
        (
            "/".join(scope.path),
            budget_words(scope.budget, scope.renews),
            amounts(scope.spent()),
            amounts(scope.remaining(), up=False),
            f"{len(scope.unfinished())}",
        )
        for scope in scopes
    ]
    open_ones = any(row[-1] != "0" for row in rows)
    heads = ("scope", "budget", "spent", "left for one release", "unfinished")[: 4 + open_ones]
    out = console()
    out.print(table(heads, [row[: len(heads)] for row in rows], numbers=open_ones))
    if any(scope.budget.delta > 0.0 and scope.budget.own < 1.0 for scope in scopes):
        out.print(
            "Releases with a delta of their own may use a share of the budget's delta (half, or --own of 'inbounds "
            "budget create'); the rest lets many releases cost less than their sum."
        )


def print_history(records: Sequence[Record], budgets: dict[tuple[str, ...], Budget]) -> None:
    """What is recorded, oldest first; ``budgets`` has the budget of every scope."""
    rows = [
        (
            record.at[:19].replace("T", " "),
            "/".join(record.scope),
            record.kind,
            record.key or "",
            _recorded(record, budgets),
        )
        for record in records
    ]
    console().print(table(("when (UTC)", "scope", "what", "key", ""), rows))


def _recorded(record: Record, budgets: dict[tuple[str, ...], Budget]) -> str:
    content = record.content
    if record.kind == "scope":
        return budget_words(budgets[record.scope], content["renews"])
    if record.kind == "commit":
        return f"answer {_short(content['answer'])}"
    if record.kind == "reserve":
        spender = tuple(content["scope"])
        where = "" if spender == record.scope else f" by {'/'.join(spender)}"
        return f"{amounts(budgets[record.scope].spent(tuple(content['charge'])))}{where}: {_releases(content)}"
    if record.kind == "refuse":
        full = tuple(content["by"])  # the charge is in its terms
        cost = amounts(budgets[full].spent(tuple(content["charge"])))
        return f"no room for {cost} in {'/'.join(full)}: {_releases(content)}"
    return str(content.get("period", ""))


def _asked(description: dict[str, Any]) -> str:
    """What a query asked, from its record, as "mean(age) by ward"; nothing where it was recorded by somebody else."""
    from inbounds.tables import from_json

    if description.get("format") not in ("inbounds.query", "inbounds.suggestion"):
        return ""
    asks = []
    for ask in description.get("asks", [description]):  # a suggestion is one by itself
        about = ask.get("column") or ask.get("condition")
        own = f"each unit's {ask['per_unit']} of " if "per_unit" in ask else ""
        asks.append(f"{ask['ask']}({own}{from_json(about)})" if about else ask["ask"])
    text = ", ".join(asks)
    if where := description.get("where"):
        text += f" where {from_json(where)}"
    if by := description.get("by"):
        text += f" by {', '.join(str(from_json(column)) for column in by)}"
    return shortened(text)


def _short(answer: Any) -> str:
    if isinstance(answer, dict):  # what a query drew, from which its answers are made
        return "recorded"
    if isinstance(answer, list) and len(answer) > _NUMBERS:
        return f"of {len(answer)} numbers"
    if isinstance(answer, list):
        return shortened(", ".join(map(_short, answer)), 60)
    return f"{answer:.8g}" if isinstance(answer, float) else shortened(str(answer), 60)


def _releases(content: dict[str, Any]) -> str:
    event = events.from_json(content["event"])
    if isinstance(event, Plan) and (asked := _asked(event.description)):
        return asked
    leaves = list(event.leaves())
    if len(leaves) == 1 and isinstance(leaf := leaves[0][0], Draw):
        text = f"{type(leaf.mechanism).__name__} on {describe(leaf.mechanism.domain)}"
    else:
        text = "; ".join(_named(leaf) for leaf, _ in leaves)
    times = sum(times for _, times in leaves)
    return shortened(text) + (f", {times} releases" if times > 1 else "")
