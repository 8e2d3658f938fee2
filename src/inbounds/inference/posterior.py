"""What a released answer says about the true value, under a public prior.

The posterior density is proportional to the prior times the likelihood: the density, or the probability, of the answer
as a function of the true value. Proofs: ``docs/proofs/denoising.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from html import escape
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from inbounds import _checks as check
from inbounds._checks import FloatArray
from inbounds._html import table
from inbounds.domain import Box
from inbounds.inference.bayes import Channel, Seen, Shape, solver
from inbounds.inference.panels import run
from inbounds.inference.prior import Prior, priors

if TYPE_CHECKING:
    from inbounds.mechanism.base import Mechanism

__all__ = ["LARGEST", "BoxPosterior", "Posterior", "Prior", "Risk", "Shape", "posterior", "risk"]


#: In size, of an answer: squares of it stay within floats, and no noise goes as far.
LARGEST = 1e100
_ROWS = 10


class Posterior:
    """The distribution of the true value, given an answer and a public prior: see :meth:`inbounds.Mechanism.posterior`.

    For an array of answers every method gives one result for each; arguments broadcast against the answers.
    """

    def __init__(self, channel: Channel, prior: Prior, seen: Seen) -> None:
        self._channel = channel
        self._shape = seen[0][0].shape
        self._solver = solver(channel, prior, [(low.reshape(-1), high.reshape(-1)) for low, high in seen])
        self.prior = prior
        if math.prod(self._shape) and not np.isfinite(self._solver.log_evidence()).all():
            step = "Under this prior it cannot occur; check both."
            check.refuse("posterior", "value", "an answer that the prior allows", "another", step)

    def __repr__(self) -> str:
        return f"<Posterior on {self._channel.domain!r}, {self.prior!r}>"

    def _repr_html_(self) -> str:
        """For notebooks; of an array of answers the first few."""
        columns = [self.mean(), self.median(), self.std(), *self.interval(0.95)]
        rows = zip(*(np.reshape(column, -1)[:_ROWS] for column in columns), strict=True)
        heads = ("mean", "median", "standard deviation", "95 % from", "to")
        shown = table(heads, ([f"{value:.6g}" for value in row] for row in rows))
        return f"{shown}<code>{escape(repr(self))}</code>"

    def _of_each(self, name: str) -> Any:
        return getattr(self._solver, name)().reshape(self._shape)[()]

    def _of_pairs(self, name: str, what: str, given: Any) -> Any:
        values = check.real_array("Posterior", what, given, requirement="numbers")
        shape = np.broadcast_shapes(values.shape, self._shape)
        size = math.prod(self._shape)
        row = np.broadcast_to(np.arange(size).reshape(self._shape), shape).reshape(-1)
        flat = np.broadcast_to(values, shape).reshape(-1)
        known = ~np.isnan(flat) if what == "q" else (flat >= 0.0) & (flat <= 1.0)
        safe = np.where(known, flat, self._channel.domain.pieces[0][0] if what == "q" else 0.5)
        out = np.where(known, getattr(self._solver, name)(row, safe), np.nan)
        return out.reshape(shape)[()]

    @property
    def discrete(self) -> bool:
        """Whether only finitely many, or whole, values can be true: then :meth:`pmf`, otherwise :meth:`pdf`."""
        return self._channel.domain.lattice or self.prior.points is not None

    def pdf(self, q: Any) -> Any:
        """Density of the true value at q."""
        if self.discrete:
            check.refuse("Posterior", "pdf", "used where the true value has a density", self.prior, "Use pmf.")
        return self._of_pairs("pdf", "q", q)

    def pmf(self, q: Any) -> Any:
        """Probability of the true value q, on whole numbers or under a prior on points."""
        if not self.discrete:
            check.refuse("Posterior", "pmf", "used where the true value is one of some points", self.prior, "Use pdf.")
        return self._of_pairs("pdf", "q", q)

    def cdf(self, q: Any) -> Any:
        """P(true value <= q)."""
        return self._of_pairs("cdf", "q", q)

    def ppf(self, p: Any) -> Any:
        """The smallest q of the domain with cdf(q) >= p; NaN outside [0, 1]."""
        return self._of_pairs("ppf", "p", p)

    def mean(self) -> Any:
        """In the convex hull of the domain."""
        return self._of_each("mean")

    def median(self) -> Any:
        """The smallest q with cdf(q) >= 1/2."""
        return self.ppf(0.5)

    def mode(self) -> Any:
        """The most probable value; of several the smallest found."""
        return self._of_each("mode")

    def var(self) -> Any:
        return self._of_each("var")

    def std(self) -> Any:
        return np.sqrt(self.var())

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """A credible interval (lower, upper), equal-tailed, inside the domain.

        Under the prior, the true value lies in it with this probability, or more where it is one of some points. That
        is not a confidence interval: for one fixed true value the share of answers whose interval holds it may be
        larger or smaller.
        """
        tail = (1.0 - check.number("Posterior", "level", level, above=0.0, below=1.0)) / 2.0
        return self.ppf(tail), self.ppf(1.0 - tail)


class BoxPosterior:
    """Independent coordinates: each one's posterior is ``marginals[i]``; methods work on the last axis."""

    def __init__(self, marginals: tuple[Posterior, ...]) -> None:
        self.marginals = marginals

    def __repr__(self) -> str:
        return f"<BoxPosterior: {len(self.marginals)} coordinates>"

    def _stack(self, name: str, given: Any = None) -> Any:
        if given is None:
            return np.stack([getattr(m, name)() for m in self.marginals], axis=-1)
        values = check.real_array("BoxPosterior", name, given, requirement="numbers")
        size = len(self.marginals)
        if values.ndim == 0 or values.shape[-1] != size:
            check.refuse("BoxPosterior", name, f"given an array of shape (..., {size})", f"shape {values.shape}", "")
        return np.stack([getattr(m, name)(values[..., i]) for i, m in enumerate(self.marginals)], axis=-1)

    def pdf(self, q: Any) -> Any:
        """Density of each coordinate."""
        return self._stack("pdf", q)

    def pmf(self, q: Any) -> Any:
        return self._stack("pmf", q)

    def cdf(self, q: Any) -> Any:
        """P(coordinate <= q), for each."""
        return self._stack("cdf", q)

    def ppf(self, p: Any) -> Any:
        return self._stack("ppf", p)

    def mean(self) -> Any:
        return self._stack("mean")

    def median(self) -> Any:
        return self._stack("median")

    def mode(self) -> Any:
        return self._stack("mode")

    def var(self) -> Any:
        return self._stack("var")

    def std(self) -> Any:
        return np.sqrt(self.var())

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """Credible intervals, one for each coordinate."""
        ends = [m.interval(level) for m in self.marginals]
        return np.stack([low for low, _ in ends], axis=-1), np.stack([high for _, high in ends], axis=-1)


def posterior(mechanism: Mechanism, value: Any, prior: Any = None) -> Posterior | BoxPosterior:
    """What a released value (or an array of them) says about the true value.

    Parameters
    ----------
    mechanism : Mechanism
        The one that released it.
    value : number or array
        For a Box the last axis holds the coordinates.
    prior : None, "flat", callable, (points, weights) or Prior
        For a Box a sequence, one for each coordinate. See :class:`Prior`.
    """
    x = check.real_array("posterior", "value", value, requirement="a number or an array of numbers")
    if not (np.abs(x) <= LARGEST).all():
        check.refuse("posterior", "value", f"finite, and at most {LARGEST:g} in size", value, "")
    domain = mechanism.domain
    beliefs = priors(domain, prior)
    if not isinstance(domain, Box):
        return _one(mechanism, None, x, beliefs[0])
    if x.ndim == 0 or x.shape[-1] != domain.dimension:
        check.refuse("posterior", "value", f"of shape (..., {domain.dimension})", f"shape {x.shape}", "")
    return BoxPosterior(tuple(_one(mechanism, i, x[..., i], belief) for i, belief in enumerate(beliefs)))


def _one(mechanism: Mechanism, coordinate: int | None, x: FloatArray, prior: Prior) -> Posterior:
    trace = getattr(mechanism, "_seen", None)
    if trace is not None:  # the answer was made of another mechanism's
        return Posterior(Channel(cast(Any, mechanism).raw, coordinate), prior, trace(x, coordinate))
    channel = Channel(mechanism, coordinate)
    domain, x = channel.domain, channel.snapped(x)
    good = (x == np.floor(x)) | (not domain.lattice) if channel.wide else domain.contains(x)
    if not np.all(good):
        wanted = "a whole number" if channel.wide else f"in {domain!r}"
        check.refuse("posterior", "value", wanted, float(x[~good].flat[0]), "Pass what the mechanism released.")
    return Posterior(channel, prior, [(x, x)])


# ---------------------------------------------------------------- error over the whole domain

_CLOSE = 2e-8  # of the average: panels are halved until it changes by less
_FAR, _AWAY = 60.0, 1e4  # scales from an end: where it matters no more, and far beyond that
_ZOOMS, _LOOKS, _MANY = 10, 9, 512


@dataclass(frozen=True)
class Risk:
    """How far answers are from the truth over a whole domain; for a Box arrays, one entry for each coordinate.

    Attributes
    ----------
    mse, mae : float or None
        Mean squared and mean absolute error on average over the prior; None where that is no probability.
    worst_mse, worst_mae, bias : float
        The largest of all true values, bias in size.
    worst_mse_at, worst_mae_at, bias_at : float
        The true values where they are.
    """

    mse: Any
    mae: Any
    worst_mse: Any
    worst_mse_at: Any
    worst_mae: Any
    worst_mae_at: Any
    bias: Any
    bias_at: Any


def risk(mechanism: Mechanism, prior: Any = None) -> Risk:
    """The error of a mechanism's answers over its domain: on average under a prior, and at the worst true values.

    Parameters
    ----------
    mechanism : Mechanism
        Of any kind.
    prior : see :class:`Prior`
        Flat by default: on a domain without bounds there is then no average.

    Examples
    --------
    >>> import inbounds as ib
    >>> plain = ib.Laplace(ib.Interval(0, 1), scale=0.5, sensitivity=0.1, edges="ignore")
    >>> found = risk(plain.denoised())
    >>> round(found.mse, 4), round(found.worst_mse, 4), found.worst_mse_at
    (0.067, 0.1771, 0.0)
    """
    beliefs = priors(mechanism.domain, prior)
    if not isinstance(mechanism.domain, Box):
        return _risk(Channel(mechanism), beliefs[0])
    found: dict[Any, Risk] = {}
    parts = []
    for i, belief in enumerate(beliefs):
        channel = Channel(mechanism, i)
        parts.append(found.setdefault((channel.key, id(belief)), None) or _risk(channel, belief))  # type: ignore[arg-type]
        found[channel.key, id(belief)] = parts[-1]
    joined = {f.name: [getattr(part, f.name) for part in parts] for f in fields(Risk)}
    return Risk(**{name: None if None in values else np.array(values) for name, values in joined.items()})


def _risk(channel: Channel, prior: Prior) -> Risk:
    def errors(q: FloatArray) -> FloatArray:
        """Mean squared error, mean absolute error and size of the bias at true values."""
        report = channel.law(q).error()
        return np.stack([np.square(report.rmse), np.asarray(report.mae), np.abs(report.bias)])

    pieces = _edges(channel, prior)
    average = _average(channel, prior, pieces, errors) if prior.proper else (None, None)
    places = _places(channel, pieces)
    seen = errors(places)
    worst = [_largest(channel, places, seen[k], lambda q, k=k: errors(q)[k]) for k in range(3)]  # type: ignore[misc]
    return Risk(*average, *(value for pair in worst for value in pair))


def _edges(channel: Channel, prior: Prior) -> list[FloatArray]:
    """Cuts of each piece of the domain, finer towards its ends.

    Where there is no end, as far as the prior goes; if it is flat, until other ends are far away.
    """
    out = []
    scale, lattice = channel.shape.scale, channel.domain.lattice
    first, last = prior.ends if not prior.flat else (-math.inf, math.inf)
    for low, high in channel.domain.pieces:
        far = min(_FAR * scale, high - low)
        start = low if math.isfinite(low) else min(first, high) if math.isfinite(first) else min(high, far) - far
        stop = high if math.isfinite(high) else max(last, start) if math.isfinite(last) else start + far
        # on whole numbers powers of two: such runs are the cheapest to sum
        finest = 128.0 if lattice else min(scale, stop - start) / 4.0
        steps = np.append(0.0, finest * 2.0 ** np.arange(60.0))
        steps = steps[steps < (stop - start) / 2.0]
        kinks = np.asarray(channel.shape.points, dtype=np.float64) - (1.0 if lattice else 0.0)
        cuts = np.concatenate([start + steps, [(start + stop) / 2.0], stop - steps, prior.edges, kinks])
        cuts = cuts[(cuts >= start) & (cuts <= stop)]
        out.append(np.unique(np.floor(cuts) if lattice else cuts))
    return out


def _average(
    channel: Channel, prior: Prior, pieces: list[FloatArray], errors: Callable[[FloatArray], FloatArray]
) -> tuple[float, float]:
    if prior.points is not None:
        square, size = errors(prior.points)[:2] @ cast(FloatArray, prior.weights)
        return float(square), float(size)
    if channel.domain.lattice:  # flat, on many
        (cuts,) = pieces
        nodes, weights = run(np.append(cuts[0] - 1.0, cuts[:-1]), cuts, lattice=True)
        used = weights > 0.0
        square, size = errors(nodes[used])[:2] @ weights[used] / weights[used].sum()
        return float(square), float(size)

    def integrals(a: FloatArray, b: FloatArray) -> FloatArray:
        nodes, weights = run(a, b, lattice=False, order=_LOOKS)
        value = errors(nodes.reshape(-1)).reshape(3, *nodes.shape)
        value[2] = 1.0  # the prior itself
        return np.asarray((weights * np.exp(prior.log_density(nodes)) * value).sum(axis=-1))

    a, b = np.concatenate([p[:-1] for p in pieces]), np.concatenate([p[1:] for p in pieces])
    value = integrals(a, b)
    total = value.sum(axis=1)
    while a.size:
        middle = a + (b - a) / 2.0
        left, right = integrals(a, middle), integrals(middle, b)
        change = left + right - value
        total += change.sum(axis=1)
        rough = (np.abs(change) > _CLOSE * total[:, None]).any(axis=0) & (middle > a) & (middle < b)
        a, b = np.concatenate([a[rough], middle[rough]]), np.concatenate([middle[rough], b[rough]])
        value = np.concatenate([left[:, rough], right[:, rough]], axis=1)
    return float(total[0] / total[2]), float(total[1] / total[2])


def _places(channel: Channel, pieces: list[FloatArray]) -> FloatArray:
    """True values among which the worst is looked for first."""
    domain = channel.domain
    if domain.lattice and domain.width < _MANY:
        return np.arange(domain.lower, domain.upper + 1.0)
    nodes = [run(cuts[:-1], cuts[1:], lattice=False, order=_LOOKS)[0].reshape(-1) for cuts in pieces]
    places = np.concatenate([*pieces, *nodes])
    return np.unique(np.floor(places) if domain.lattice else places)


def _largest(
    channel: Channel, places: FloatArray, values: FloatArray, f: Callable[[FloatArray], FloatArray]
) -> tuple[float, float]:
    """The largest value found, and where: the best of these places, and again and again between its neighbours."""
    domain = channel.domain
    for _ in range(_ZOOMS):
        best = int(np.argmax(values >= np.max(values) * (1.0 - 1e-9)))  # the first of equals
        low, high = places[max(best - 1, 0)], places[min(best + 1, places.size - 1)]
        if high - low <= 2.0 and domain.lattice:
            break
        closer = np.append(np.linspace(low, high, _LOOKS), places[best])
        closer = np.unique(np.floor(closer) if domain.lattice else closer)
        places = closer[domain.contains(closer)]
        values = f(places)
    best = int(np.argmax(values))
    largest, where = float(values[best]), float(places[best])
    for end, sign in ((domain.lower, -1.0), (domain.upper, 1.0)):
        if (
            math.isinf(end)
            and float(f(np.array([where + sign * np.rint(_AWAY * channel.shape.scale)]))[0]) > 2.0 * largest
        ):
            return math.inf, sign * math.inf  # it grows without bounds
    return largest, where
