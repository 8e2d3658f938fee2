"""Which mechanism? Exact errors of all that apply, beside the limit; a choice with its reason; epsilon for an accuracy.

One table, :data:`KINDS`, says what there is to choose from. :func:`compare` measures every kind that can meet a privacy
target, :func:`recommend` picks one of them, and :func:`for_accuracy` turns the question round.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Context, Decimal
from html import escape
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from inbounds import _checks as check
from inbounds._html import table
from inbounds.calibration import Target
from inbounds.domain import Box, Domain
from inbounds.errors import MissingExtra, ParameterError, ParameterTypeError, UnreachableTarget
from inbounds.inference.posterior import risk
from inbounds.inference.prior import Prior, priors
from inbounds.mechanism import BoundedLaplace, Denoised, Gaussian, Laplace, Mechanism, Staircase
from inbounds.mechanism.base import check_domain
from inbounds.numerics import legendre
from inbounds.optimal import LARGEST_PROGRAM, Optimal, optimal, optimal_bound
from inbounds.sensitivity import resolve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "KINDS",
    "Accuracy",
    "Comparison",
    "Entry",
    "Recommendation",
    "Tradeoff",
    "compare",
    "for_accuracy",
    "recommend",
    "tradeoff",
]

LOSSES = ("squared", "absolute")
CRITERIA = ("average", "worst", "unbiased", "smooth")
_ALSO = {"worst case": "worst", "worst-case": "worst", "no mass at the ends": "smooth"}  # other words for them
MEASURES = ("rmse", "mae", "half-width")

_SIMPLER = 1.02  # a simpler mechanism is recommended if its loss is at most this many times the least one


# ---------------------------------------------------------------- what there is to choose from


@dataclass(frozen=True)
class Kind:
    """A way to make a mechanism for a target, or None where it cannot meet one of this currency.

    ``in_range``: answers never leave the domain. ``smooth``: they have a density, without mass at the ends.
    """

    build: Callable[[_Question], Mechanism | None]
    in_range: bool = True
    smooth: bool = False
    denoised: bool = False


@dataclass(frozen=True)
class _Question:
    """What is asked for, checked."""

    domain: Domain
    sensitivity: Any
    target: Target
    loss: str
    prior: Any
    _known: dict[Any, Mechanism] = field(default_factory=dict, compare=False)

    def noise(self, cls: Any, edges: str) -> Mechanism:
        """Calibrated once, for the kinds with and without an estimate: that can take as long as all the rest."""
        key = (cls, edges, self.target)
        if key not in self._known:
            self._known[key] = cls.calibrate(self.domain, sensitivity=self.sensitivity, edges=edges, **self.given)
        return self._known[key]

    @property
    def pure(self) -> bool:
        return self.target.kind == "pure"

    @property
    def given(self) -> dict[str, Any]:
        """The target as arguments of ``calibrate``."""
        t = self.target
        named: dict[str, dict[str, Any]] = {
            "pure": {"epsilon": t.value},
            "approx": {"epsilon": t.value, "delta": t.other},
            "rho": {"rho": t.value},
            "mu": {"mu": t.value},
            "rdp": {"rdp": (t.other, t.value)},
        }
        return named[t.kind]

    @property
    def solvable(self) -> bool:
        """Whether there is a program for the least loss."""
        return self.target.kind in ("pure", "approx") and self.domain.bounded and not isinstance(self.domain, Box)

    def at_epsilon(self, epsilon: float) -> _Question:
        return replace(self, target=replace(self.target, value=epsilon))


def _noise(cls: Any, edges: str, *, denoised: bool = False) -> Callable[[_Question], Mechanism | None]:
    def build(question: _Question) -> Mechanism | None:
        made = question.noise(cls, edges)
        return _denoise(made, question) if denoised else made

    return build


def _staircase(edges: str, *, denoised: bool = False) -> Callable[[_Question], Mechanism | None]:
    def build(question: _Question) -> Mechanism | None:
        if not question.pure or isinstance(question.domain, Box):
            return None
        make = denoised_staircase if denoised else Staircase.calibrate
        more = {"prior": question.prior, "integer": question.domain.lattice} if denoised else {}
        made: Mechanism = make(
            question.domain,
            sensitivity=question.sensitivity,
            epsilon=question.target.value,
            loss=question.loss,
            edges=edges,
            **more,
        )
        return made

    return build


def denoised_staircase(
    domain: Domain,
    *,
    sensitivity: Any,
    epsilon: float,
    loss: str = "squared",
    prior: Any = None,
    edges: str = "ignore",
    integer: bool = False,
) -> Denoised:
    """Staircase noise and the best estimate, its first stair made for the loss of both together.

    Where the domain is not much longer than a stair, a shorter one than without the estimate is best; it is found by
    trying, while that gets better. Not at small epsilon nor on intervals longer than four stairs, where nothing is
    gained, nor on more than 64 whole numbers, where it takes long.
    """

    def made(gamma: float | None) -> Denoised:
        raw = Staircase.calibrate(domain, sensitivity=sensitivity, epsilon=epsilon, gamma=gamma, loss=loss, edges=edges)
        return Denoised(raw, loss=loss, prior=prior, integer=integer)

    best = made(None)
    stair = cast(float, best.sensitivity)
    longest = _TUNED - 1.0 if domain.lattice else 4.0 * stair
    if not domain.bounded or domain.width > longest or epsilon < _STAIRS:
        return best
    least = _about(best, prior, loss)
    while True:
        gamma = cast(Staircase, best.raw).gamma
        gamma = round(gamma * stair - 1.0) / stair if domain.lattice else 0.9 * gamma
        if not gamma > 0.0:
            return best
        shorter = made(gamma)
        size = _about(shorter, prior, loss)
        if not size < least:
            return best
        best, least = shorter, size


def _about(mechanism: Mechanism, prior: Any, loss: str) -> float:
    """The average error, quickly."""
    average = figures(mechanism, prior=prior, widths=False, quickly=True)[0]
    return math.nan if average is None else average.rmse if loss == "squared" else average.mae


def _bounded(edges: str, *, denoised: bool = False) -> Callable[[_Question], Mechanism | None]:
    def build(question: _Question) -> Mechanism | None:
        if question.target.kind != "approx" or question.target.value == 0.0 or isinstance(question.domain, Box):
            return None
        made = question.noise(BoundedLaplace, edges)
        return _denoise(made, question) if denoised else made

    return build


def _denoise(made: Mechanism, question: _Question) -> Mechanism:
    return Denoised(made, loss=question.loss, prior=question.prior, integer=question.domain.lattice)


#: Simpler ones first: among equals the first is recommended.
KINDS: Mapping[str, Kind] = {
    "clamped Laplace": Kind(_noise(Laplace, "clamp")),
    "truncated Laplace": Kind(_noise(Laplace, "truncate"), smooth=True),
    "clamped Gaussian": Kind(_noise(Gaussian, "clamp")),
    "truncated Gaussian": Kind(_noise(Gaussian, "truncate"), smooth=True),
    "clamped staircase": Kind(_staircase("clamp")),
    "clamped bounded-noise Laplace": Kind(_bounded("clamp")),
    "plain Laplace, denoised": Kind(_noise(Laplace, "ignore", denoised=True), denoised=True),
    "clamped Laplace, denoised": Kind(_noise(Laplace, "clamp", denoised=True), denoised=True),
    "truncated Laplace, denoised": Kind(_noise(Laplace, "truncate", denoised=True), denoised=True),
    "plain Gaussian, denoised": Kind(_noise(Gaussian, "ignore", denoised=True), denoised=True),
    "clamped Gaussian, denoised": Kind(_noise(Gaussian, "clamp", denoised=True), denoised=True),
    "truncated Gaussian, denoised": Kind(_noise(Gaussian, "truncate", denoised=True), denoised=True),
    "staircase, denoised": Kind(_staircase("ignore", denoised=True), denoised=True),
    "clamped staircase, denoised": Kind(_staircase("clamp", denoised=True), denoised=True),
    "bounded-noise Laplace, denoised": Kind(_bounded("ignore", denoised=True), denoised=True),
    "clamped bounded-noise Laplace, denoised": Kind(_bounded("clamp", denoised=True), denoised=True),
    "plain Laplace": Kind(_noise(Laplace, "ignore"), in_range=False, smooth=True),
    "plain Gaussian": Kind(_noise(Gaussian, "ignore"), in_range=False, smooth=True),
    "plain staircase": Kind(_staircase("ignore"), in_range=False, smooth=True),
    "plain bounded-noise Laplace": Kind(_bounded("ignore"), in_range=False, smooth=True),
}


# ---------------------------------------------------------------- figures of one mechanism


@dataclass(frozen=True)
class Figures:
    """Errors of a mechanism, on average or at worst; for a Box over its coordinates alike.

    Attributes
    ----------
    rmse, mae : float
        Root mean squared and mean absolute error.
    bias : float
        In size.
    ends : float
        The probability of an answer at an end of the domain.
    width : float
        The expected width of the confidence interval, to about 1 % (on up to 512 whole numbers exactly).
    """

    rmse: float
    mae: float
    bias: float
    ends: float
    width: float


def figures(
    mechanism: Mechanism,
    *,
    prior: Any = None,
    at: Any = None,
    level: float = 0.95,
    widths: bool = True,
    quickly: bool = False,
) -> tuple[Figures | None, Figures]:
    """(average under the prior, worst case); at one true value both are the same.

    The average is None where the prior is no probability: flat, on an unbounded domain. Quickly: the average from a few
    dozen true values, to some 0.01 %, and exactly on few whole numbers; the worst case of these.
    """
    domain = mechanism.domain
    lines = [domain.coordinate(i) for i in range(domain.dimension)] if isinstance(domain, Box) else [domain]
    if at is not None:
        law: Any = mechanism.at(at)
        laws = law.marginals if isinstance(domain, Box) else [law]
        reports = [part.error() for part in laws]
        width = [_width(mechanism, i, part, level) if widths else math.nan for i, part in enumerate(laws)]
        here = Figures(
            math.sqrt(_mean([r.rmse**2 for r in reports])),
            _mean([r.mae for r in reports]),
            max(abs(r.bias) for r in reports),
            max(r.at_lower + r.at_upper for r in reports),
            _mean(width),
        )
        return here, here
    beliefs = priors(domain, prior)
    parts = [
        _spread(mechanism, i, line, belief, level, widths)
        for i, (line, belief) in enumerate(zip(lines, beliefs, strict=True))
    ]
    mean, top = _over(parts, lambda values, w: w @ values), _over(parts, lambda values, _: np.max(values))
    if not quickly:
        found = risk(mechanism, prior)
        top = replace(
            top,
            rmse=math.sqrt(_mean(found.worst_mse)),
            mae=_mean(found.worst_mae),
            bias=float(np.max(found.bias)),
            ends=max(float(np.max(part[3])) for part in parts),
        )
        if found.mse is not None and found.mae is not None:
            mean = replace(mean, rmse=math.sqrt(_mean(found.mse)), mae=_mean(found.mae))
    return (mean if all(belief.proper for belief in beliefs) else None), top


def _over(parts: list[tuple[Any, ...]], one: Callable[[Any, Any], Any]) -> Figures:
    """One number for the true values of every coordinate, and the mean over these."""
    square, *others = (_mean([one(part[k], part[-1]) for part in parts]) for k in range(len(parts[0]) - 1))
    return Figures(math.sqrt(square), *others)


def _mean(values: Any) -> float:
    return float(np.mean(values))


def _spread(mechanism: Mechanism, i: int, line: Any, prior: Prior, level: float, widths: bool) -> tuple[Any, ...]:
    """What figures are made of, at true values over the domain of one coordinate, and their weights."""
    q, weight = _true_values(mechanism, line, prior)
    domain = mechanism.domain
    true = q
    if isinstance(domain, Box):  # the other coordinates do not matter
        true = np.tile([float(domain.coordinate(k).project(0.0)) for k in range(domain.dimension)], (q.size, 1))
        true[:, i] = q
    law: Any = mechanism.at(true)
    law = law.marginals[i] if isinstance(domain, Box) else law
    report = law.error()
    width = _width(mechanism, i, law, level) if widths else np.full(q.size, math.nan)
    ends = np.asarray(report.at_lower) + np.asarray(report.at_upper)
    return np.square(report.rmse), report.mae, np.abs(report.bias), ends, width, weight


def _true_values(mechanism: Mechanism, line: Any, prior: Prior) -> tuple[Any, Any]:
    """True values over the domain, its ends among them, and their weights under the prior."""
    if prior.points is not None:
        return prior.points, prior.weights
    reach = _REACH * mechanism.scale
    nodes, weights = legendre(_NODES)
    q, w = [], []
    for low, high in line.pieces:
        start = low if math.isfinite(low) else (high - reach if math.isfinite(high) else -reach)
        stop = high if math.isfinite(high) else start + (reach if math.isfinite(low) else 2.0 * reach)
        edge = min(4.0 * mechanism.scale, (stop - start) / 3.0)
        for a, b in ((start, start + edge), (start + edge, stop - edge), (stop - edge, stop)):
            q += [np.append(a + (b - a) * nodes, [a, b])]
            w += [np.append((b - a) * weights, [0.0, 0.0])]
    places, share = np.concatenate(q), np.concatenate(w)
    share = share * np.exp(prior.log_density(places))
    if line.lattice:
        places, inverse = np.unique(np.round(places), return_inverse=True)
        share = np.bincount(inverse, share)
    return places, share / share.sum()


def _width(mechanism: Mechanism, i: int, law: Any, level: float) -> Any:
    """The expected width of the interval for every true value of a law of one coordinate."""
    domain = mechanism.domain
    line = domain.coordinate(i) if isinstance(domain, Box) else domain
    inside = getattr(mechanism, "edges", "clamp") != "ignore"

    def of(x: Any) -> Any:
        given = x
        if isinstance(domain, Box):
            given = np.tile([float(domain.coordinate(k).project(0.0)) for k in range(domain.dimension)], (x.size, 1))
            given[:, i] = x
        low, high = mechanism.interval(given, level)
        wide = np.asarray(high, dtype=np.float64) - np.asarray(low, dtype=np.float64)
        return wide[:, i] if isinstance(domain, Box) else wide

    if line.lattice and line.bounded and inside and line.width < _EVERY and not _fractions(mechanism):
        x = np.arange(line.lower, line.upper + 1.0)
        if not isinstance(domain, Box):
            x = x[mechanism._possible(x)]  # a table may never give some
        return np.asarray(law.pmf(x.reshape(-1, *(1,) * np.ndim(law.mean())))).T @ of(x)
    u = (np.arange(_SHARES) + 0.5) / _SHARES
    quantiles = law.images if isinstance(mechanism, Denoised) else law.ppf
    answers = np.asarray(quantiles(u.reshape(-1, *(1,) * np.ndim(law.mean()))))
    seen = np.unique(answers)
    if seen.size > _SEEN:
        seen = np.unique(seen[np.round(np.linspace(0, seen.size - 1, _SEEN)).astype(int)])
    return np.interp(answers, seen, of(seen)).mean(axis=0)


def _fractions(mechanism: Mechanism) -> bool:
    return not mechanism._whole_answers


_REACH, _NODES = 60.0, 16  # scales of an unbounded domain that are looked at; nodes of a third of a piece
_SHARES, _SEEN, _EVERY, _TUNED = 200, 400, 512, 64
_STAIRS = 0.1  # epsilon below which stairs are so many and so low that Laplace noise is as good


# ---------------------------------------------------------------- a comparison


@dataclass(frozen=True)
class Entry:
    """One mechanism with its figures; ``average`` is None where the domain has no flat prior (it is unbounded)."""

    name: str
    mechanism: Mechanism
    average: Figures | None
    worst: Figures
    in_range: bool

    def loss(self, loss: str, criterion: str) -> float:
        """The mean loss that is compared: squared or absolute, average or worst case."""
        found = self.average if criterion == "average" else self.worst
        if found is None:
            return math.nan
        return found.rmse**2 if loss == "squared" else found.mae


@dataclass(frozen=True)
class Limit:
    """No mechanism with this privacy has less than ``value``; ``attained`` by the program's own mechanism, or not."""

    value: float
    attained: bool
    source: str


@dataclass(frozen=True)
class Comparison:
    """Mechanisms with the same privacy, the least loss first; made by :func:`inbounds.compare`.

    Attributes
    ----------
    entries : tuple of Entry
    limit : Limit or None
        What no mechanism with this privacy can do better than.
    skipped : dict of name to reason
        Kinds that cannot meet the target, or take too long to find.
    loss, criterion, level : as asked for
    at : the true value asked about, or None for the whole domain
    """

    domain: Domain
    sensitivity: Any
    target: Target
    entries: tuple[Entry, ...]
    limit: Limit | None
    skipped: Mapping[str, str]
    loss: str
    criterion: str
    level: float
    at: Any = None

    def __getitem__(self, name: str) -> Entry:
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise KeyError(name)

    def __iter__(self) -> Any:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def ratio(self, entry: Entry) -> float:
        """The entry's mean loss over the limit; not a number where there is none."""
        if self.limit is None:
            return math.nan
        loss = entry.loss(self.loss, self.criterion)
        return loss / self.limit.value if self.limit.value > 0.0 else 1.0 if loss == 0.0 else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and strings."""
        return {
            "format": "inbounds.comparison",
            "version": 1,
            "domain": repr(self.domain),
            "sensitivity": repr(self.sensitivity),
            "target": {"kind": self.target.kind, "value": self.target.value, "other": self.target.other},
            "loss": self.loss,
            "criterion": self.criterion,
            "level": self.level,
            "at": None if self.at is None else np.asarray(self.at).tolist(),
            "entries": self._records(),
            "limit": None if self.limit is None else dict(vars(self.limit)),
            "skipped": dict(self.skipped),
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """The same as JSON text; numbers that are missing or infinite as null."""
        return json.dumps(_finite(self.to_dict()), indent=indent, allow_nan=False)

    def to_pandas(self) -> Any:
        """A pandas DataFrame, one row a mechanism."""
        try:
            import pandas as pd  # type: ignore[import-untyped,unused-ignore]
        except ImportError as problem:
            raise MissingExtra("compare: pandas is not installed. Install pandas.") from problem
        return pd.DataFrame(self._records()).set_index("mechanism")

    def _records(self) -> list[dict[str, Any]]:
        out = []
        for entry in self.entries:
            record: dict[str, Any] = {"mechanism": entry.name, "in_range": entry.in_range}
            for kind, found in (("average", entry.average), ("worst", entry.worst)):
                values = {} if found is None else vars(found)
                record |= {f"{name}_{kind}": values.get(name, math.nan) for name in Figures.__dataclass_fields__}
            out.append(record | {"over_limit": self.ratio(entry)})
        return out

    def _rows(self) -> list[list[str]]:
        rows = []
        for entry in self.entries:
            average, worst = entry.average, entry.worst
            over = self.ratio(entry)
            rows.append(
                [
                    entry.name + ("" if entry.in_range else " *"),
                    "" if average is None else f"{average.rmse:.4g}",
                    f"{worst.rmse:.4g}",
                    "" if average is None else f"{average.mae:.4g}",
                    f"{worst.mae:.4g}",
                    f"{worst.bias:.3g}",
                    f"{worst.ends:.3g}",
                    f"{(average or worst).width:.4g}",
                    "" if math.isnan(over) else f"{over:.3f}",
                ]
            )
        return rows

    def _heads(self) -> list[str]:
        if self.at is not None:
            return [
                "mechanism",
                "",
                "rmse",
                "",
                "mae",
                "|bias|",
                "at the ends",
                f"{self.level:.0%} width",
                "loss / limit",
            ]
        return [
            "mechanism",
            "rmse, average",
            "worst",
            "mae, average",
            "worst",
            "|bias|, worst",
            "at the ends, worst",
            f"{self.level:.0%} width",
            "loss / limit",
        ]

    def _notes(self) -> list[str]:
        notes = []
        if self.limit is not None:
            what = "The limit" if self.limit.attained else "A lower bound of the limit"
            notes.append(f"{what} is a mean {self.loss} loss of {self.limit.value:.4g} ({self.limit.source}).")
        if any(not entry.in_range for entry in self.entries):
            notes.append("* answers may leave the domain.")
        notes += [f"{name}: {reason}" for name, reason in self.skipped.items()]
        return notes

    def __str__(self) -> str:
        heads, rows = self._heads(), self._rows()
        keep = [i for i in range(len(heads)) if heads[i] and any(row[i] for row in rows)]
        cells = [[row[i] for i in keep] for row in [heads, *rows]]
        wide = [max(len(row[i]) for row in cells) for i in range(len(keep))]
        lines = [
            "  ".join(
                cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, wide, strict=True))
            )
            for row in cells
        ]
        lines.insert(1, "  ".join("-" * w for w in wide))
        return "\n".join([line.rstrip() for line in lines] + self._notes())

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{escape(note)}</p>" for note in self._notes())
        return table(self._heads(), self._rows()) + notes

    def plot(self, *, unit: str = "", figure: Figure | None = None) -> Figure:
        """Draw the average and the worst error of every mechanism, and the limit."""
        from inbounds import plots

        return plots.comparison(self, unit=unit, figure=figure)


def _finite(x: Any) -> Any:
    if isinstance(x, dict):
        return {k: _finite(v) for k, v in x.items()}
    if isinstance(x, list):
        return [_finite(v) for v in x]
    return None if isinstance(x, float) and not math.isfinite(x) else x


def compare(
    domain: Domain,
    *,
    sensitivity: Any,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    rdp: tuple[float, float] | None = None,
    mu: float | None = None,
    loss: str = "squared",
    criterion: str | None = None,
    prior: Any = None,
    at: Any = None,
    level: float = 0.95,
    optimum: bool | None = None,
) -> Comparison:
    """Exact errors of every mechanism that meets a privacy target, the best first, beside the limit.

    Parameters
    ----------
    domain, sensitivity, epsilon, delta, rho, rdp, mu : see :meth:`inbounds.Laplace.calibrate`
    loss : "squared" or "absolute"
        What denoised mechanisms minimise, what is sorted by and what the limit is about.
    criterion : "average" or "worst"
        Over the domain; by default the average where the domain is bounded or a prior is given.
    prior : None for flat, a density, or (points, weights)
        Public; for averages, and for denoising.
    at : number, or a sequence of them for a Box
        Figures at this true value instead of over the domain. It is not protected: do not pass a real one.
    level : float in (0, 1)
        Of the confidence intervals whose width is shown.
    optimum : bool or None
        Whether to solve the linear program for the best possible mechanism. None: where that takes a second. True: also
        a lower bound of the least possible loss where the program is too large or the domain continuous, which may
        take a minute.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import inbounds as ib
    >>> found = ib.compare(ib.Integers(0, 10), sensitivity=1, epsilon=1.0)
    >>> found.entries[0].in_range
    True
    """
    target = Target.of("compare", epsilon=epsilon, delta=delta, rho=rho, rdp=rdp, mu=mu)
    question, criterion = _ask("compare", domain, sensitivity, target, loss, prior, criterion)
    check.number("compare", "level", level, above=0.0, below=1.0)
    if optimum is not None and not isinstance(optimum, bool):
        check.refuse("compare", "optimum", "True, False or None", optimum, "", ParameterTypeError)
    check.choice("compare", "criterion", criterion, ("average", "worst"))
    _check_at("compare", domain, at)
    entries: list[Entry] = []
    skipped: dict[str, str] = {}
    for name, kind in KINDS.items():
        made = _made(name, kind, question, skipped)
        if made is not None:
            with _skipping(name, skipped):
                average, worst = figures(made, prior=prior, at=at, level=level)
                entries.append(Entry(name, made, average, worst, kind.in_range))
    limit, best = _limit(question, criterion, at, optimum, skipped)
    if best is not None:
        name = "optimum" if domain.lattice else f"best table of {len(best.weights)} cells"
        entries.append(Entry(name, best, *figures(best, prior=prior, at=at, level=level), True))
    entries.sort(key=lambda entry: entry.loss(loss, criterion))
    return Comparison(domain, question.sensitivity, target, tuple(entries), limit, skipped, loss, criterion, level, at)


def _ask(
    what: str, domain: Any, sensitivity: Any, target: Target, loss: Any, prior: Any, criterion: Any
) -> tuple[_Question, str]:
    check_domain(what, domain)
    check.choice(what, "loss", loss, LOSSES)
    averaged = domain.bounded or prior is not None
    chosen = ("average" if averaged else "worst") if criterion is None else criterion
    chosen = _ALSO.get(chosen, chosen) if isinstance(chosen, str) else chosen
    check.choice(what, "criterion", chosen, CRITERIA)
    if chosen == "average" and not averaged:
        step = "Give a prior, or criterion='worst'."
        check.refuse(what, "criterion", "'worst' on an unbounded domain without a prior", criterion, step)
    return _Question(domain, resolve(what, sensitivity, domain), target, loss, prior), chosen


def _made(name: str, kind: Kind, question: _Question, skipped: dict[str, str]) -> Mechanism | None:
    if kind.denoised and not question.domain.bounded and question.prior is None and not _has_wall(question.domain):
        return None  # without walls and without a prior there is nothing to be gained
    domain = question.domain
    if kind.denoised and "Gaussian" in name and question.pure and domain.lattice and np.max(domain.width) > _EVERY:
        skipped[name] = "left out on long ranges: it takes minutes, and for pure epsilon it is never near the best"
        return None
    if name == "staircase, denoised" and not domain.lattice and question.pure and question.target.value < _STAIRS:
        skipped[name] = f"left out below epsilon {_STAIRS:g}: it takes long, and hardly differs from Laplace noise"
        return None
    with _skipping(name, skipped):
        return kind.build(question)
    return None


@contextmanager
def _skipping(
    name: str, skipped: dict[str, str], kinds: tuple[type[Exception], ...] = (UnreachableTarget,)
) -> Iterator[None]:
    """What cannot be had is noted, with the reason."""
    try:
        yield
    except kinds as problem:
        skipped[name] = str(problem)


def _check_at(what: str, domain: Domain, at: Any) -> None:
    if at is None:
        return
    if not isinstance(domain, Box):
        check.number(what, "at", at)
    elif check.vector(what, "at", at).size != domain.dimension:
        check.refuse(what, "at", f"one number for each of {domain.dimension} coordinates", at, "")


def _has_wall(domain: Domain) -> bool:
    ends = np.concatenate([np.atleast_1d(domain.lower), np.atleast_1d(domain.upper)])
    return bool(np.isfinite(ends).any()) or len(getattr(domain, "pieces", ())) > 1


def _limit(
    question: _Question, criterion: str, at: Any, wanted: bool | None, skipped: dict[str, str]
) -> tuple[Limit | None, Optimal | None]:
    """The program's value and mechanism where it can be solved; else a lower bound where one is known."""
    domain, target = question.domain, question.target
    if not question.solvable or criterion not in ("average", "worst") or wanted is False:
        return None, None
    found = _program(question, criterion, wanted, skipped)
    if found is not None and domain.lattice:
        return (Limit(found.value, True, "linear program") if at is None else None), found
    if wanted and at is None and question.pure and criterion == "average" and question.prior is None:
        with _skipping("limit", skipped, _REFUSED):
            bound = optimal_bound(domain, sensitivity=question.sensitivity, epsilon=target.value, loss=question.loss)
            return Limit(bound, False, "docs/proofs/optimal.md"), found
    return None, found


def _program(question: _Question, criterion: str, wanted: bool | None, skipped: dict[str, str]) -> Optimal | None:
    """The optimum on whole numbers, or the best table of an interval; None where that is left out, or refused."""
    domain, most = question.domain, _CELLS if question.pure else _CELLS_DELTA
    points = int(domain.upper) - int(domain.lower) + 1 if domain.lattice else None
    if points is not None and points > (LARGEST_PROGRAM if wanted and question.pure else most):
        skipped["optimum"] = f"a program of {points} cells is left out (up to {most} are solved by default)"
        return None
    with _skipping("optimum", skipped, _REFUSED):  # it takes fewer epsilons and deltas than noise does
        return optimal(
            domain,
            sensitivity=question.sensitivity,
            loss=question.loss,
            criterion=criterion,
            prior=question.prior,
            cells=most if points is None else None,
            **question.given,
        )
    return None


# ---------------------------------------------------------------- a recommendation


@dataclass(frozen=True)
class Recommendation:
    """A mechanism, the reason for it, and the comparison it comes from; made by :func:`inbounds.recommend`."""

    mechanism: Mechanism
    name: str
    reason: str
    comparison: Comparison

    @property
    def entry(self) -> Entry:
        """Its figures."""
        return self.comparison[self.name]

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}\n{self.mechanism!r}"

    def _repr_html_(self) -> str:
        return f"<p><b>{escape(self.name)}</b>: {escape(self.reason)}</p>{self.comparison._repr_html_()}"


def recommend(
    domain: Domain,
    *,
    sensitivity: Any,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    rdp: tuple[float, float] | None = None,
    mu: float | None = None,
    criterion: str | None = None,
    loss: str = "squared",
    prior: Any = None,
    optimum: bool | None = None,
) -> Recommendation:
    """The mechanism to use, by exact error, with the reason.

    Parameters
    ----------
    domain, sensitivity, epsilon, delta, rho, rdp, mu, loss, prior, optimum : see :func:`compare`
    criterion : "average", "worst", "unbiased" or "smooth"
        The least average loss (default on bounded domains), the least loss at the true value where it is largest, no
        bias at any true value, or a density without mass at the ends (then the least average loss).

    Returns
    -------
    Recommendation
        Answers lie in the domain, but for ``"unbiased"``: an answer that is right on average at an end of the domain
        must sometimes lie beyond it. A simpler mechanism is preferred if its loss is within 2 % of the least one.

    Examples
    --------
    >>> import inbounds as ib
    >>> found = ib.recommend(ib.Integers(0, 10), sensitivity=1, epsilon=1.0)
    >>> found.mechanism.release(3).value in ib.Integers(0, 10)
    True
    """
    target = Target.of("recommend", epsilon=epsilon, delta=delta, rho=rho, rdp=rdp, mu=mu)
    _, chosen = _ask("recommend", domain, sensitivity, target, loss, prior, criterion)
    by = chosen if chosen in ("average", "worst") else "average" if domain.bounded or prior is not None else "worst"
    found = compare(
        domain,
        sensitivity=sensitivity,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        rdp=rdp,
        mu=mu,
        loss=loss,
        criterion=by,
        prior=prior,
        optimum=optimum if chosen == by else False,
    )
    order = list(KINDS)
    fitting = [entry for entry in found if _fits(entry, chosen, domain)]
    if not fitting:
        raise UnreachableTarget(f"recommend: no mechanism meets this target with criterion {chosen!r}.")
    least = min(entry.loss(loss, by) for entry in fitting)
    near = [entry for entry in fitting if entry.loss(loss, by) <= _SIMPLER * least]
    best = min(near, key=lambda entry: order.index(entry.name) if entry.name in order else len(order))
    return Recommendation(best.mechanism, best.name, _reason(best, found, chosen, by), found)


def _fits(entry: Entry, criterion: str, domain: Domain) -> bool:
    if criterion == "unbiased":
        return entry.name in KINDS and entry.name.startswith("plain") and not KINDS[entry.name].denoised
    if criterion == "smooth":
        return entry.in_range and entry.name in KINDS and KINDS[entry.name].smooth
    return entry.in_range


def _reason(best: Entry, found: Comparison, criterion: str, by: str) -> str:
    shown = {"squared": "rmse", "absolute": "mean absolute error"}[found.loss]
    value = best.loss(found.loss, by)
    value = math.sqrt(value) if found.loss == "squared" else value
    where = "on average over the domain" if by == "average" else "at the worst true value"
    if criterion == "unbiased":
        leave = "; its answers may leave the domain, as unbiased ones must" if _has_wall(found.domain) else ""
        return f"right on average at every true value, with {shown} {value:.4g} {where}{leave}."
    why = f"{shown} {value:.4g} {where}"
    if criterion == "smooth":
        why = f"a density without mass at the ends, and {why}"
    others = [entry for entry in found if entry.in_range and entry.name != best.name]
    for name in ("truncated Laplace", "clamped Laplace"):
        other = next((entry for entry in others if entry.name == name), None)
        if other is not None:
            size = other.loss(found.loss, by)
            why += f", against {math.sqrt(size) if found.loss == 'squared' else size:.4g} of {name} noise"
            break
    over = found.ratio(best)
    if found.limit is not None and criterion == by:
        kind = "the least possible" if found.limit.attained else "a lower bound of the least possible"
        why += f"; its mean {found.loss} loss is {over:.3f} times {kind}"
    return why + "."


# ---------------------------------------------------------------- from accuracy to privacy


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
    _check_at(what, domain, at)
    size, chosen = _sizes(what, domain, sensitivity, delta, measure, criterion, at, level, prior)
    names = _names(what, kinds)
    if kinds is None and at is None and not delta:
        names.append("optimum")
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
        least = _least(lambda e, n=name: size(n, e, True)[0], wanted, enough, found)  # type: ignore[misc]
        needed[name] = _rounded(least)
    order = sorted(needed.items(), key=lambda item: item[1])  # of equals the simpler one first
    for name, epsilon in order:
        made = _settled(lambda e, n=name: size(n, e, False), wanted, epsilon)  # type: ignore[misc]
        if made is not None:
            break
    else:
        raise UnreachableTarget(
            f"{what}: no mechanism has {measure} {wanted:g} at any epsilon up to {_MOST:g}. Ask for less accuracy."
        )
    epsilon, error, mechanism = made
    others = {n: max(e, epsilon) for n, e in order if n != name and math.isfinite(e)}
    how = "at" if at is not None else chosen
    return Accuracy(epsilon, mechanism, name, error, wanted, measure, how, others, tuple(worse))


def _sizes(
    what: str,
    domain: Any,
    sensitivity: Any,
    delta: Any,
    measure: Any,
    criterion: Any,
    at: Any,
    level: Any,
    prior: Any,
) -> tuple[Callable[[str, float, bool], tuple[float, Mechanism | None]], str]:
    """(kind, epsilon, quickly) -> its error and the mechanism, and the criterion by which errors are taken.

    Quickly: to some 0.01 %.
    """
    check.choice(what, "measure", measure, MEASURES)
    check.number(what, "level", level, above=0.0, below=1.0)
    target = Target.of(what, epsilon=1.0, delta=delta, rho=None, rdp=None, mu=None)
    loss = "absolute" if measure == "mae" else "squared"
    question, chosen = _ask(what, domain, sensitivity, target, loss, prior, criterion)
    check.choice(what, "criterion", chosen, ("average", "worst"))

    def size(name: str, epsilon: float, quickly: bool) -> tuple[float, Mechanism | None]:
        asked = question.at_epsilon(epsilon)
        skipped: dict[str, str] = {}
        if name != "optimum":
            made = _made(name, KINDS[name], asked, skipped)
        else:
            made = _program(asked, chosen, None, skipped) if asked.solvable and domain.lattice else None
        if made is None:
            return math.inf, None
        with _skipping(name, skipped):
            widths = measure == "half-width"
            roughly = quickly and chosen == "average"  # the worst case would be missed
            average, worst = figures(made, prior=prior, at=at, level=level, widths=widths, quickly=roughly)
            found = average if chosen == "average" and average is not None else worst
            return {"rmse": found.rmse, "mae": found.mae, "half-width": found.width / 2.0}[measure], made
        return math.inf, None

    return size, chosen


_LEAST, _MOST, _FINE = 1e-6, 200.0, 1.0004
_NAMES = "Names are those of inbounds.advice.KINDS, and 'optimum'."
_CELLS, _CELLS_DELTA = 61, 31
_REFUSED = (UnreachableTarget, ParameterError)


def _names(what: str, kinds: Any) -> list[str]:
    if kinds is None:
        return [name for name, kind in KINDS.items() if kind.in_range]
    given = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(given, Sequence | Set) or not given:
        check.refuse(what, "kinds", "a name or a sequence of names", kinds, _NAMES, ParameterTypeError)
    return [check.choice(what, "kinds", name, (*KINDS, "optimum")) for name in given]


def _least(error: Callable[[float], float], wanted: float, high: float, below: float) -> float:
    """The smallest epsilon from which on the error is at most what is wanted, closely.

    ``high``, where it is finite, is large enough: there the error is ``below``.
    """
    low, above, ratio = 0.0, math.inf, 1.25
    if math.isinf(high):
        high, ratio = 1.0, 4.0
        while not (below := error(high)) <= wanted:
            low, above, high = high, below, 4.0 * high
            if high > _MOST:
                return math.inf
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
        check.number(what, "epsilons", float(epsilon), above=0.0, at_most=_MOST)
    size, chosen = _sizes(what, domain, sensitivity, delta, measure, criterion, None, level, prior)
    curves = {name: tuple(size(name, float(e), False)[0] for e in grid) for name in _names(what, kinds)}
    reached = {name: values for name, values in curves.items() if any(map(math.isfinite, values))}
    if not reached:
        raise UnreachableTarget(f"{what}: none of these mechanisms meets such a target on this domain.")
    return Tradeoff(domain, tuple(map(float, grid)), float(delta or 0.0), measure, chosen, reached)
