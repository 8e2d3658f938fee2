"""The question turned round: how much privacy leaves how much accuracy, and which epsilon is enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from inbounds import _checks as check
from inbounds._html import table
from inbounds.advice.comparison import check_at, program, unasked
from inbounds.advice.kinds import KINDS, Question, mechanism_of, question_of, skipping
from inbounds.advice.performance import figures
from inbounds.calibration import Target
from inbounds.domain import Domain
from inbounds.errors import ParameterTypeError, UnreachableTarget
from inbounds.mechanism import Mechanism
from inbounds.optimal import LARGEST_EPSILON

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MEASURES", "Accuracy", "Tradeoff", "for_accuracy", "tradeoff"]

MEASURES = ("rmse", "mae", "half-width")


@dataclass(frozen=True)
class Accuracy:
    """The least epsilon with which an accuracy can be had, and the mechanism; made by :func:`inbounds.for_accuracy`.

    ``error`` is what the mechanism has, at most what was ``wanted``; ``others`` the least epsilon of other mechanisms,
    and ``worse`` are those that need as much or more; how much was not worked out.
    """

    epsilon: float
    mechanism: Mechanism
    name: str
    error: float
    wanted: float
    measure: str
    criterion: str
    others: Mapping[str, float]
    worse: tuple[str, ...] = ()

    def _lines(self) -> list[str]:
        where = {"average": "on average over the domain", "worst": "at the worst true value"}.get(self.criterion, "")
        lines = [f"epsilon = {self.epsilon:.6g} with {self.name}: {self.measure} {self.error:.4g} {where}".rstrip()]
        lines += [f"  {epsilon:.6g} would be needed with {name}" for name, epsilon in self.others.items()]
        return lines + [f"  as much or more would be needed with {name}" for name in self.worse]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        return table(["epsilon", "mechanism"], self._needs()) + f"<p>{escape(self._lines()[0])}</p>"

    def _needs(self) -> list[list[str]]:
        known = {self.name: self.epsilon, **self.others}
        return [[f"{e:.6g}", name] for name, e in known.items()] + [["as much or more", name] for name in self.worse]


def for_accuracy(
    domain: Domain,
    *,
    sensitivity: Any,
    error: float,
    measure: str = "rmse",
    delta: float | None = None,
    criterion: str | None = None,
    at: Any = None,
    level: float = 0.95,
    prior: Any = None,
    kinds: Any = None,
) -> Accuracy:
    """The smallest epsilon, and the mechanism, with which an error is at most what is wanted.

    Parameters
    ----------
    domain, sensitivity, prior : see :func:`compare`
    error : float > 0
        The largest error that is wanted.
    measure : "rmse", "mae" or "half-width"
        Root mean squared error, mean absolute error, or half the mean width of the confidence interval.
    delta : float in [0, 1)
    criterion : "average" or "worst"
        Over the domain; or ``at`` one true value.
    level : float in (0, 1)
        Of the interval, for ``measure="half-width"``.
    kinds : names of mechanisms: of ``inbounds.advice.KINDS``, or "optimum"
        By default all that answer within the domain, the optimum where :func:`compare` solves its program without being
        asked. How much denoised ones and the optimum need is then only worked out if it is less than the others.

    Returns
    -------
    Accuracy
        Its epsilon is at most 0.1 % above the smallest one of its mechanism.

    Examples
    --------
    >>> import inbounds as ib
    >>> found = ib.for_accuracy(ib.Interval(0, 120), sensitivity=0.5, error=1.0, kinds=["clamped Laplace"])
    >>> round(found.epsilon, 2), found.error <= 1.0
    (0.7, True)
    """
    what = "for_accuracy"
    wanted = check.number(what, "error", error, above=0.0, next_step="In the unit of the answers.")
    check_at(what, domain, at)
    question, chosen = _asked(what, domain, sensitivity, delta, measure, criterion, level, prior)
    names = _names(what, kinds, question)
    if kinds is None and at is None and question.pure and unasked(question):
        names.append("optimum")
    size = _sizes(question, measure, chosen, at, level)
    # those that take longest last: often one look says that they cannot be the best
    slow = [name for name in names if kinds is None and (name == "optimum" or KINDS[name].denoised)]
    needed: dict[str, float] = {}
    worse: list[str] = []
    for name in [name for name in names if name not in slow] + slow:
        enough = min(needed.values(), default=math.inf) / _FINE if name in slow else math.inf
        found = size(name, enough, True)[0] if math.isfinite(enough) else math.nan
        if found > wanted:
            worse += [name] if math.isfinite(found) else []
            continue
        most = _MOST[name == "optimum"]
        least = _least(lambda e, n=name: size(n, e, True)[0], wanted, enough, found, most)  # type: ignore[misc]
        needed[name] = _rounded(least)
    order = sorted(needed.items(), key=lambda item: item[1])  # of equals the simpler one first
    for name, epsilon in order:
        made = _settled(lambda e, n=name: size(n, e, False), wanted, epsilon)  # type: ignore[misc]
        if made is not None:
            break
    else:
        raise UnreachableTarget(
            f"{what}: no mechanism has {measure} {wanted:g} at any epsilon up to {_MOST[names == ['optimum']]:g}. "
            "Ask for less accuracy."
        )
    epsilon, error, mechanism = made
    others = {n: max(e, epsilon) for n, e in order if n != name and math.isfinite(e)}
    how = "at" if at is not None else chosen
    return Accuracy(epsilon, mechanism, name, error, wanted, measure, how, others, tuple(worse))


def _asked(
    what: str, domain: Any, sensitivity: Any, delta: Any, measure: Any, criterion: Any, level: Any, prior: Any
) -> tuple[Question, str]:
    """The question, checked, and the criterion by which errors are taken."""
    check.choice(what, "measure", measure, MEASURES)
    check.level(what, level)
    target = Target.of(what, epsilon=1.0, delta=delta, rho=None, rdp=None, mu=None)
    loss = "absolute" if measure == "mae" else "squared"
    question, chosen = question_of(what, domain, sensitivity, target, loss, prior, criterion)
    check.choice(what, "criterion", chosen, ("average", "worst"))
    return question, chosen


def _sizes(
    question: Question, measure: str, chosen: str, at: Any, level: float
) -> Callable[[str, float, bool], tuple[float, Mechanism | None]]:
    """(kind, epsilon, quickly) -> its error and the mechanism. Quickly: to some 0.01 %."""

    def size(name: str, epsilon: float, quickly: bool) -> tuple[float, Mechanism | None]:
        there = question.at_epsilon(epsilon)
        skipped: dict[str, str] = {}
        if name != "optimum":
            made = mechanism_of(name, KINDS[name], there, skipped)
        else:
            made = program(there, chosen, None, skipped)
        if made is None:
            return math.inf, None
        with skipping(name, skipped):
            widths = measure == "half-width"
            roughly = quickly and chosen == "average"  # the worst case would be missed
            average, worst = figures(made, prior=question.prior, at=at, level=level, widths=widths, quickly=roughly)
            found = average if chosen == "average" and average is not None else worst
            return {"rmse": found.rmse, "mae": found.mae, "half-width": found.width / 2.0}[measure], made
        return math.inf, None

    return size


_LEAST, _FINE = 1e-6, 1.0004
_MOST = (200.0, LARGEST_EPSILON)  # of epsilon, and where a program must be solved
_NAMES = "Names are those of inbounds.advice.KINDS, and 'optimum'."


def _names(what: str, kinds: Any, question: Question) -> list[str]:
    if kinds is None:
        return [name for name, kind in KINDS.items() if kind.in_range]
    given = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(given, Sequence | Set) or not given:
        check.refuse(what, "kinds", "a name or a sequence of names", kinds, _NAMES, ParameterTypeError)
    names = [check.choice(what, "kinds", name, (*KINDS, "optimum")) for name in given]
    if "optimum" in names and not unasked(question):
        step = "Its program takes long: solve it for one epsilon, with inbounds.optimal."
        check.refuse(what, "kinds", "without 'optimum' but on few whole numbers", kinds, step)
    return names


def _least(error: Callable[[float], float], wanted: float, high: float, below: float, most: float) -> float:
    """The smallest epsilon from which on the error is at most what is wanted, closely.

    ``high``, where it is finite, is large enough: there the error is ``below``.
    """
    low, above, ratio = 0.0, math.inf, 1.25
    if math.isinf(high):
        high, ratio = 1.0, 4.0
        while not (below := error(high)) <= wanted:
            if high == most:
                return math.inf
            low, above, high = high, below, min(4.0 * high, most)
    while low == 0.0:  # nothing too small is known yet
        lower = max(high / ratio, _LEAST)
        size = error(lower)
        if not size <= wanted:
            low, above = lower, size
        elif lower == _LEAST:
            return lower
        else:
            high, below, ratio = lower, size, min(ratio * ratio, 4.0)
    turn = 0
    while high / low > _FINE:
        # where a straight line in logarithms says, a little to either side in turn; now and then the middle
        width, close, turn = math.log(high / low), math.log(_FINE) / 2.0, turn + 1
        straight = math.isfinite(above) and below > 0.0 and turn % 4 > 0
        share = math.log(above / wanted) / math.log(above / below) if straight else 0.5
        place = min(max(width * share + (close if turn % 2 else -close) / 2.0, close), width - close)
        middle = low * math.exp(place)
        size = error(middle)
        low, above, high, below = (low, above, middle, size) if size <= wanted else (middle, size, high, below)
    return high


def _rounded(epsilon: float) -> float:
    """Up, to five digits."""
    return float(Context(prec=5, rounding=ROUND_CEILING).create_decimal(Decimal(epsilon)))


def _settled(
    size: Callable[[float], tuple[float, Mechanism | None]], wanted: float, epsilon: float
) -> tuple[float, float, Mechanism] | None:
    """(epsilon, error, mechanism), by exact errors: epsilon is raised a little until they are small enough."""
    for _ in range(8):
        error, made = size(epsilon) if math.isfinite(epsilon) else (math.nan, None)
        if made is None or error <= wanted:
            return None if made is None else (epsilon, error, made)
        epsilon = _rounded(epsilon * _FINE)
    return None


@dataclass(frozen=True)
class Tradeoff:
    """Error over epsilon for several mechanisms; made by :func:`inbounds.tradeoff`."""

    domain: Domain
    epsilons: tuple[float, ...]
    delta: float
    measure: str
    criterion: str
    curves: Mapping[str, tuple[float, ...]]

    def _repr_html_(self) -> str:
        rows = zip(self.epsilons, *self.curves.values(), strict=True)
        return table(["epsilon", *self.curves], [[f"{value:.4g}" for value in row] for row in rows])

    def plot(self, *, unit: str = "", figure: Figure | None = None) -> Figure:
        """Draw it; see :mod:`inbounds.plots`."""
        from inbounds import plots

        return plots.tradeoff(self, unit=unit, figure=figure)


def tradeoff(
    domain: Domain,
    *,
    sensitivity: Any,
    epsilons: Any = None,
    delta: float | None = None,
    measure: str = "rmse",
    criterion: str | None = None,
    level: float = 0.95,
    prior: Any = None,
    kinds: Any = ("clamped Laplace", "truncated Laplace", "truncated Gaussian", "plain Laplace, denoised"),
) -> Tradeoff:
    """Error over epsilon: what privacy costs, for several mechanisms.

    Parameters
    ----------
    epsilons : positive numbers
        By default 17 from 0.1 to 10.
    domain, sensitivity, delta, measure, criterion, level, prior, kinds : see :func:`for_accuracy`

    Returns
    -------
    Tradeoff
        ``plot()`` draws it. Kinds that cannot meet the target are left out.
    """
    what = "tradeoff"
    grid = np.geomspace(0.1, 10.0, 17) if epsilons is None else check.vector(what, "epsilons", epsilons)
    for epsilon in grid:
        check.number(what, "epsilons", float(epsilon), above=0.0, at_most=_MOST[0])
    question, chosen = _asked(what, domain, sensitivity, delta, measure, criterion, level, prior)
    size = _sizes(question, measure, chosen, None, level)
    curves = {name: tuple(size(name, float(e), False)[0] for e in grid) for name in _names(what, kinds, question)}
    reached = {name: values for name, values in curves.items() if any(map(math.isfinite, values))}
    if not reached:
        raise UnreachableTarget(f"{what}: none of these mechanisms meets such a target on this domain.")
    return Tradeoff(domain, tuple(map(float, grid)), float(delta or 0.0), measure, chosen, reached)
