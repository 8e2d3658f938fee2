"""Which mechanism? Exact errors of all that apply, beside the limit; a choice with its reason; epsilon for an accuracy.

One table, :data:`KINDS`, says what there is to choose from. :func:`compare` measures every kind that can meet a privacy
target, :func:`recommend` picks one of them, and :func:`for_accuracy` turns the question round.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from inbounds import _checks as check
from inbounds.calibration import Target
from inbounds.domain import Box, Domain
from inbounds.errors import MissingExtra, ParameterError, ParameterTypeError, UnreachableTarget
from inbounds.mechanism import BoundedLaplace, Denoised, Gaussian, Laplace, Mechanism, Staircase, Table
from inbounds.mechanism.base import check_domain
from inbounds.numerics import legendre
from inbounds.optimal import LARGEST_PROGRAM, optimal, optimal_bound
from inbounds.posterior import risk
from inbounds.prior import Prior, priors
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

    def at_epsilon(self, epsilon: float) -> _Question:
        return replace(self, target=replace(self.target, value=epsilon))


def _noise(cls: Any, edges: str, *, denoised: bool = False) -> Callable[[_Question], Mechanism | None]:
    def build(question: _Question) -> Mechanism | None:
        made = cls.calibrate(question.domain, sensitivity=question.sensitivity, edges=edges, **question.given)
        return _denoise(made, question) if denoised else made

    return build


def _staircase(edges: str, *, denoised: bool = False) -> Callable[[_Question], Mechanism | None]:
    def build(question: _Question) -> Mechanism | None:
        if not question.pure or isinstance(question.domain, Box):
            return None
        made = Staircase.calibrate(
            question.domain,
            sensitivity=question.sensitivity,
            epsilon=question.target.value,
            loss=question.loss,
            edges=edges,
        )
        return _denoise(made, question) if denoised else made

    return build


def _bounded(edges: str, *, denoised: bool = False) -> Callable[[_Question], Mechanism | None]:
    def build(question: _Question) -> Mechanism | None:
        if question.target.kind != "approx" or question.target.value == 0.0 or isinstance(question.domain, Box):
            return None
        made = BoundedLaplace.calibrate(
            question.domain, sensitivity=question.sensitivity, edges=edges, **question.given
        )
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
    "truncated Laplace, denoised": Kind(_noise(Laplace, "truncate", denoised=True), denoised=True),
    "plain Gaussian, denoised": Kind(_noise(Gaussian, "ignore", denoised=True), denoised=True),
    "clamped Gaussian, denoised": Kind(_noise(Gaussian, "clamp", denoised=True), denoised=True),
    "truncated Gaussian, denoised": Kind(_noise(Gaussian, "truncate", denoised=True), denoised=True),
    "staircase, denoised": Kind(_staircase("ignore", denoised=True), denoised=True),
    "bounded-noise Laplace, denoised": Kind(_bounded("ignore", denoised=True), denoised=True),
    "plain Laplace": Kind(_noise(Laplace, "ignore"), in_range=False, smooth=True),
    "plain Gaussian": Kind(_noise(Gaussian, "ignore"), in_range=False, smooth=True),
    "plain staircase": Kind(_staircase("ignore"), in_range=False, smooth=True),
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
    mechanism: Mechanism, *, prior: Any = None, at: Any = None, level: float = 0.95, widths: bool = True
) -> tuple[Figures | None, Figures]:
    """(average under the prior, worst case); at one true value both are the same.

    The average is None where the prior is no probability: flat, on an unbounded domain.
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
    found = risk(mechanism, prior)
    beliefs = priors(domain, prior)
    parts = [
        _spread(mechanism, i, line, belief, level, widths)
        for i, (line, belief) in enumerate(zip(lines, beliefs, strict=True))
    ]
    worst = Figures(
        math.sqrt(_mean(found.worst_mse)),
        _mean(found.worst_mae),
        float(np.max(found.bias)),
        max(float(np.max(ends)) for _, ends, _, _ in parts),
        _mean([np.max(width) for _, _, width, _ in parts]),
    )
    if found.mse is None or found.mae is None:
        return None, worst
    average = Figures(
        math.sqrt(_mean(found.mse)),
        _mean(found.mae),
        _mean([w @ bias for bias, _, _, w in parts]),
        _mean([w @ ends for _, ends, _, w in parts]),
        _mean([w @ width for _, _, width, w in parts]),
    )
    return average, worst


def _mean(values: Any) -> float:
    return float(np.mean(values))


def _spread(mechanism: Mechanism, i: int, line: Any, prior: Prior, level: float, widths: bool) -> tuple[Any, ...]:
    """(size of the bias, mass at the ends, expected width, weight) at true values over the domain of one coordinate."""
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
    return np.abs(report.bias), np.asarray(report.at_lower) + np.asarray(report.at_upper), width, weight


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
_SHARES, _SEEN, _EVERY = 200, 400, 512


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
        return math.nan if self.limit is None else entry.loss(self.loss, self.criterion) / self.limit.value

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
        table = [[row[i] for i in keep] for row in [heads, *rows]]
        wide = [max(len(row[i]) for row in table) for i in range(len(keep))]
        lines = [
            "  ".join(
                cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, wide, strict=True))
            )
            for row in table
        ]
        lines.insert(1, "  ".join("-" * w for w in wide))
        return "\n".join([line.rstrip() for line in lines] + self._notes())

    def _repr_html_(self) -> str:
        from html import escape

        heads = "".join(f"<th>{escape(h)}</th>" for h in self._heads())
        body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in self._rows())
        notes = "".join(f"<p>{escape(note)}</p>" for note in self._notes())
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{notes}"

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
    at : number
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
    entries: list[Entry] = []
    skipped: dict[str, str] = {}
    for name, kind in KINDS.items():
        made = _made(name, kind, question, skipped)
        if made is not None:
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
    try:
        return kind.build(question)
    except UnreachableTarget as problem:
        skipped[name] = str(problem)
        return None


def _has_wall(domain: Domain) -> bool:
    ends = np.concatenate([np.atleast_1d(domain.lower), np.atleast_1d(domain.upper)])
    return bool(np.isfinite(ends).any()) or len(getattr(domain, "pieces", ())) > 1


def _limit(
    question: _Question, criterion: str, at: Any, wanted: bool | None, skipped: dict[str, str]
) -> tuple[Limit | None, Table | None]:
    """The program's value and mechanism where it can be solved; else a lower bound where one is known."""
    domain, target = question.domain, question.target
    usable = target.kind in ("pure", "approx") and domain.bounded and not isinstance(domain, Box)
    if not usable or criterion not in ("average", "worst") or wanted is False:
        return None, None
    most = _CELLS if question.pure else _CELLS_DELTA
    points = int(domain.upper) - int(domain.lower) + 1 if domain.lattice else None
    if points is not None and points > (LARGEST_PROGRAM if wanted and question.pure else most):
        skipped["optimum"] = f"a program of {points} cells is left out (up to {most} are solved by default)"
        found = None
    else:
        found = optimal(
            domain,
            sensitivity=question.sensitivity,
            loss=question.loss,
            criterion=criterion,
            prior=question.prior,
            cells=most if points is None else None,
            **question.given,
        )
        if points is not None:
            return (Limit(found.value, True, "linear program") if at is None else None), found
    if wanted and at is None and question.pure and criterion == "average" and question.prior is None:
        bound = optimal_bound(domain, sensitivity=question.sensitivity, epsilon=target.value, loss=question.loss)
        return Limit(bound, False, "docs/proofs/optimal.md"), found
    return None, found


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
        from html import escape

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

    ``error`` is what the mechanism has, at most what was ``wanted``; ``others`` the least epsilon of other mechanisms.
    """

    epsilon: float
    mechanism: Mechanism
    name: str
    error: float
    wanted: float
    measure: str
    criterion: str
    others: Mapping[str, float]

    def __str__(self) -> str:
        where = {"average": "on average over the domain", "worst": "at the worst true value"}.get(self.criterion, "")
        lines = [f"epsilon = {self.epsilon:.6g} with {self.name}: {self.measure} {self.error:.4g} {where}".rstrip()]
        lines += [f"  {epsilon:.6g} would be needed with {name}" for name, epsilon in self.others.items()]
        return "\n".join(lines)


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
    kinds : names of mechanisms, see ``inbounds.advice.KINDS``; by default all that answer within the domain

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
    size, chosen = _sizes(what, domain, sensitivity, delta, measure, criterion, at, level, prior)
    needed = {name: _least(lambda e, n=name: size(n, e)[0], wanted) for name in _names(what, kinds)}  # type: ignore[misc]
    reached = {name: e for name, e in sorted(needed.items(), key=lambda item: item[1]) if math.isfinite(e)}
    if not reached:
        raise UnreachableTarget(
            f"{what}: no mechanism has {measure} {wanted:g} at any epsilon up to {_MOST:g}. Ask for less accuracy."
        )
    name = next(iter(reached))
    found, made = size(name, reached[name])
    if made is None or not found <= wanted:
        raise ParameterError(f"{what}: the error of {name} noise does not fall steadily in epsilon here.")
    others = {n: e for n, e in reached.items() if n != name}
    return Accuracy(reached[name], made, name, found, wanted, measure, "at" if at is not None else chosen, others)


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
) -> tuple[Callable[[str, float], tuple[float, Mechanism | None]], str]:
    """(kind, epsilon) -> its error and the mechanism, and the criterion by which errors are taken."""
    check.choice(what, "measure", measure, MEASURES)
    check.number(what, "level", level, above=0.0, below=1.0)
    target = Target.of(what, epsilon=1.0, delta=delta, rho=None, rdp=None, mu=None)
    loss = "absolute" if measure == "mae" else "squared"
    question, chosen = _ask(what, domain, sensitivity, target, loss, prior, criterion)
    check.choice(what, "criterion", chosen, ("average", "worst"))

    def size(name: str, epsilon: float) -> tuple[float, Mechanism | None]:
        made = _made(name, KINDS[name], question.at_epsilon(epsilon), {})
        if made is None:
            return math.inf, None
        average, worst = figures(made, prior=prior, at=at, level=level, widths=measure == "half-width")
        found = average if chosen == "average" and average is not None else worst
        return {"rmse": found.rmse, "mae": found.mae, "half-width": found.width / 2.0}[measure], made

    return size, chosen


_LEAST, _MOST = 1e-6, 200.0
_CELLS, _CELLS_DELTA = 61, 31


def _names(what: str, kinds: Any) -> list[str]:
    if kinds is None:
        return [name for name, kind in KINDS.items() if kind.in_range]
    given = [kinds] if isinstance(kinds, str) else list(kinds)
    return [check.choice(what, "kinds", name, tuple(KINDS)) for name in given]


def _least(error: Callable[[float], float], wanted: float) -> float:
    """The smallest epsilon, to 0.1 %, from which on the error is at most what is wanted; rounded up to 4 digits."""
    low, high = _LEAST, 1.0
    while not error(high) <= wanted:
        low, high = high, high * 4.0
        if high > _MOST:
            return math.inf
    if low == _LEAST and error(low) <= wanted:
        return low
    while low < high / 4.0 and error(high / 4.0) <= wanted:
        high /= 4.0
    low = max(low, high / 4.0)
    while high / low > 1.0005:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if error(middle) <= wanted else (middle, high)
    digits = 10.0 ** (math.floor(math.log10(high)) - 4)
    return math.ceil(high / digits) * digits


@dataclass(frozen=True)
class Tradeoff:
    """Error over epsilon for several mechanisms; made by :func:`inbounds.tradeoff`."""

    domain: Domain
    epsilons: tuple[float, ...]
    delta: float
    measure: str
    criterion: str
    curves: Mapping[str, tuple[float, ...]]

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
    curves = {name: tuple(size(name, float(e))[0] for e in grid) for name in _names(what, kinds)}
    reached = {name: values for name, values in curves.items() if any(map(math.isfinite, values))}
    if not reached:
        raise UnreachableTarget(f"{what}: none of these mechanisms meets such a target on this domain.")
    return Tradeoff(domain, tuple(map(float, grid)), float(delta or 0.0), measure, chosen, reached)
