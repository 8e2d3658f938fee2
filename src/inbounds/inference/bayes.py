"""Bayes' rule for one coordinate of a mechanism: three ways to compute a posterior, for many answers at once.

A prior on finitely many points: sums. A flat prior and plain noise: the noise around the answer, truncated to the
domain, in closed form. Everything else: integrals over panels, split where the likelihood has a kink. Proofs:
``docs/proofs/denoising.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from inbounds._cached import cached_property
from inbounds._checks import FloatArray
from inbounds.distribution import Distribution
from inbounds.domain import Box, Line
from inbounds.inference.panels import Measure, Panels
from inbounds.inference.prior import Prior
from inbounds.noise import gaussian, laplace

if TYPE_CHECKING:
    from inbounds.mechanism.base import Mechanism

__all__ = ["Channel", "Seen", "Shape", "solver"]

_FEW = 4096
_ENTRIES = 1 << 20
_WHOLE = 512  # panels up to which all of a domain is looked at, however narrow the noise
_GRADED = 1 << 14
_GRADE = (1 / 32, 1 / 8, 1 / 2, 2.0)
_BISECTIONS = 48
_MANY = 8  # kinks from which on the parts between them are short
_ORDER, _LOW_ORDER = 24, 8
_LAWS = 64
_KEPT = 64  # answers whose integrals are kept between calls


#: What is known of each of several answers: it lies in one of these [low, high], most often in one that is a point.
#: NaN where there are fewer of them.
Seen = Sequence[tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class Shape:
    """What integrals over the true value must know of the likelihood q -> L(q; x) of an answer x.

    Attributes
    ----------
    scale : float
        It is smooth on this length,
    offsets, points : sequences of float
        except at q = x + offset and at fixed points (the ends of the domain's pieces need not be named).
    reach : float
        Farther from x than this (beyond the nearest point of the domain) it is below 1e-17 of its largest value.
    """

    scale: float
    reach: float
    offsets: Sequence[float] | FloatArray = (0.0,)
    points: Sequence[float] | FloatArray = ()


class Channel:
    """One coordinate of a mechanism: true value in, answer out."""

    def __init__(self, mechanism: Mechanism, coordinate: int | None = None) -> None:
        self._mechanism = mechanism
        self._coordinate = coordinate
        domain = mechanism.domain
        box = isinstance(domain, Box)
        self.domain: Line = cast(Box, domain).coordinate(cast(int, coordinate)) if box else cast(Line, domain)
        self.family: str | None = getattr(mechanism, "_family", None)
        self.noise: Any = getattr(mechanism, "_noise", None)
        points: FloatArray | None = getattr(mechanism, "points", None)
        #: All answers there are, if they are few.
        self.listed = None if points is None else points[mechanism._possible(points)]
        self.edges: str = getattr(mechanism, "edges", "truncate")
        self.wide = self.edges == "ignore"  # answers may leave the domain
        self.step = float(mechanism.grid[coordinate] if box else mechanism.grid)

    @cached_property
    def shape(self) -> Shape:
        scale = getattr(self._mechanism, "scale", math.inf)
        if self.family == "laplace":
            return Shape(scale, 40.0 * scale)
        if self.family == "gaussian":
            return Shape(scale, gaussian.FAR * scale, ())
        given = getattr(self._mechanism, "_shape", None)
        if given is None:
            return Shape(scale, laplace.FAR * scale)
        return cast(Shape, given[cast(int, self._coordinate)] if isinstance(given, tuple) else given)

    def panels(self, pieces: Sequence[tuple[float, float]], edges: FloatArray) -> Panels:
        """Panels that resolve the likelihood, or the density of the answer, between its kinks."""
        shape, lattice = self.shape, self.domain.lattice
        many = len(shape.offsets) > _MANY
        length = 4.0 * shape.scale if math.isfinite(shape.scale) else self.domain.width
        if lattice and (many or self.listed is not None):
            length = 1.0  # term by term
        grade = [g * shape.scale for g in (_GRADE if self.wide else (1.0,))]
        return Panels(pieces, length, lattice=lattice, grade=grade, edges=edges, order=_LOW_ORDER if many else _ORDER)

    def law(self, q: FloatArray) -> Any:
        return self._mechanism._marginal(self._coordinate, q)

    @cached_property
    def key(self) -> Any:
        """Coordinates with equal keys are alike."""
        shape = self.shape
        return (self.domain, self.step, shape.scale, shape.reach, tuple(shape.offsets), tuple(shape.points))

    @cached_property
    def atoms(self) -> FloatArray:
        """The answers of positive probability on a continuous domain, next to others that have none."""
        if self.listed is not None:
            return np.empty(0)
        probe = self.domain.pieces[0][0]
        probe = probe if math.isfinite(probe) else self.domain.pieces[0][1]
        points = self.law(np.array([probe if math.isfinite(probe) else 0.0])).atoms
        return np.sort(np.array([float(point) for point, _ in points]))

    def snapped(self, x: FloatArray) -> FloatArray:
        """Answers next to an atom are that atom: it is released as a multiple of the grid next to it."""
        if not self.atoms.size:
            return x
        i = np.searchsorted(self.atoms, x)
        near = np.stack([self.atoms[np.maximum(i - 1, 0)], self.atoms[np.minimum(i, self.atoms.size - 1)]])
        gap = np.abs(near - x)
        nearest = np.where(gap[0] <= gap[1], near[0], near[1])
        return np.where(np.min(gap, axis=0) < self.step, nearest, x)

    @cached_property
    def _kept(self) -> Callable[[bytes], Any]:
        return lru_cache(maxsize=_LAWS)(lambda nodes: self.law(np.frombuffer(nodes)[None, :]))

    def log_likelihood(self, q: FloatArray, seen: Seen) -> FloatArray:
        """ln of the density, or the probability, of an answer that was seen, at true values q (broadcast)."""
        # nodes that are common to many answers turn up again and again, and normalising may take long
        law = self._kept(q.tobytes()) if q.ndim == 2 and q.shape[0] == 1 else self.law(q)
        with np.errstate(divide="ignore", invalid="ignore"):
            if len(seen) == 1:
                return self._log_seen(law, *seen[0])
            total = np.full(np.broadcast_shapes(q.shape, seen[0][0].shape), -np.inf)
            for low, high in seen:  # an answer alone has the probability of a step of the grid
                whole = self.domain.lattice or self.listed is not None
                alone = 0.0 if whole else np.where(low < high, 0.0, math.log(self.step))
                value = self._log_seen(law, np.where(np.isnan(low), 0.0, low), np.where(np.isnan(low), 0.0, high))
                total = np.logaddexp(total, np.where(np.isnan(low), -np.inf, value + alone))
        return total

    def _log_seen(self, law: Any, low: FloatArray, high: FloatArray) -> FloatArray:
        ranged = low < high
        if ranged.all():
            return _log_between(law, low, high, self.domain.lattice)
        value = law.logpmf(low) if self.domain.lattice or self.listed is not None else law.logpdf(low)
        if np.isin(low, self.atoms).any():
            for point, mass in law.atoms:
                value = np.where(low == point, np.log(mass), value)
        if ranged.any():
            value = np.where(ranged, _log_between(law, low, high, self.domain.lattice), value)
        return cast(FloatArray, value)


def _log_between(law: Any, low: FloatArray, high: FloatArray, lattice: bool) -> FloatArray:
    before = low - 1.0 if lattice else np.nextafter(low, -np.inf)
    below, above = law.cdf(high), law.sf(before)
    mass = np.where(below <= above, below - law.cdf(before), above - law.sf(high))
    return np.asarray(np.log(np.maximum(mass, 0.0)))


# ---------------------------------------------------------------- three ways to compute a posterior

Pairs = Any  # indices of answers, one for each wanted number


class _Finite:
    """A prior on finitely many points: sums."""

    def __init__(self, channel: Channel, prior: Prior, seen: Seen) -> None:
        self._channel, self._seen, self._size = channel, seen, seen[0][0].size
        self._points, self._log_weights = cast(FloatArray, prior.points), np.log(cast(FloatArray, prior.weights))

    def _parts(self) -> Iterator[tuple[Any, FloatArray, FloatArray]]:
        """(indices of answers, ln of the evidence, probabilities of the points)."""
        rows = max(1, _ENTRIES // self._points.size)
        for i in range(0, self._size, rows):
            part = slice(i, i + rows)
            value = self._log_weights + self._channel.log_likelihood(self._points, _rows(self._seen, part))
            top = np.max(value, axis=1)
            weight = np.exp(value - np.where(np.isfinite(top), top, 0.0)[:, None])
            total = weight.sum(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                yield np.arange(self._size)[part], np.log(total) + top, weight / total[:, None]

    def _each(self, one: Callable[[FloatArray], FloatArray]) -> FloatArray:
        out = np.empty(self._size)
        for index, _, share in self._parts():
            out[index] = one(share)
        return out

    def log_evidence(self) -> FloatArray:
        out = np.empty(self._size)
        for index, evidence, _ in self._parts():
            out[index] = evidence
        return out

    def mean(self) -> FloatArray:
        return np.clip(self._each(lambda share: share @ self._points), self._points[0], self._points[-1])

    def var(self) -> FloatArray:
        def one(share: FloatArray) -> FloatArray:
            return np.asarray((share * np.square(self._points - (share @ self._points)[:, None])).sum(axis=1))

        return self._each(one)

    def mode(self) -> FloatArray:
        return self._each(lambda share: np.where(share[:, 0] >= 0.0, self._points[np.argmax(share, axis=1)], np.nan))

    def _pairs(self, row: Pairs, one: Callable[[FloatArray, Pairs, Any], FloatArray]) -> FloatArray:
        out = np.empty(row.size)
        for index, _, share in self._parts():
            where = np.flatnonzero((row >= index[0]) & (row <= index[-1]))
            for i in range(0, where.size, max(1, _ENTRIES // self._points.size)):
                here = where[i : i + max(1, _ENTRIES // self._points.size)]
                out[here] = one(share, row[here] - index[0], here)
        return out

    def pdf(self, row: Pairs, q: FloatArray) -> FloatArray:
        k = np.clip(np.searchsorted(self._points, q), 0, self._points.size - 1)
        found = self._pairs(row, lambda share, r, here: share[r, k[here]])
        return np.where(self._points[k] == q, found, 0.0)

    def cdf(self, row: Pairs, q: FloatArray) -> FloatArray:
        k = np.searchsorted(self._points, q, side="right")

        def one(share: FloatArray, r: Pairs, here: Any) -> FloatArray:
            return np.where(k[here] > 0, np.cumsum(share, axis=1)[r, np.maximum(k[here] - 1, 0)], 0.0)

        return np.minimum(self._pairs(row, one), 1.0)

    def ppf(self, row: Pairs, p: FloatArray) -> FloatArray:
        def one(share: FloatArray, r: Pairs, here: Any) -> FloatArray:
            through = np.cumsum(share, axis=1)
            goal = p[here] * through[r, -1]
            k = (through[r] < (goal * (1.0 - 1e-13))[:, None]).sum(axis=1)
            return np.where(goal >= 0.0, self._points[np.minimum(k, self._points.size - 1)], np.nan)

        return self._pairs(row, one)


class _Closed:
    """Plain noise and a flat prior: the posterior is the noise around the answer, truncated to the domain."""

    def __init__(self, channel: Channel, x: FloatArray) -> None:
        self._channel, self._x = channel, x

    @classmethod
    def fits(cls, channel: Channel, prior: Prior, seen: Seen) -> _Closed | None:
        """Where it applies: also at the atoms of clamped Laplace noise on an interval, which are like plain answers."""
        domain, family, x = channel.domain, channel.family, _points(seen)
        if family is None or not prior.flat or channel.edges == "truncate" or x is None:
            return None
        convex = len(domain.pieces) == 1
        if family == "laplace" and convex:
            x = np.clip(x, float(domain.lower), float(domain.upper))  # beyond an end every answer says the same
        elif channel.edges == "clamp" and (np.isin(x, channel.atoms).any() or (domain.lattice and _at_end(domain, x))):
            return None
        finite = np.array([end for piece in domain.pieces for end in piece if math.isfinite(end)])
        if finite.size and domain.bounded and np.max(np.abs(x[:, None] - finite), initial=0.0) > 2.0**16 * domain.width:
            return None  # the width would drown in the distance
        return cls(channel, x)

    def _law(self, row: Pairs | None = None) -> Distribution:
        x = self._x if row is None else self._x[row]
        scale = self._channel.shape.scale
        return Distribution(cast(str, self._channel.family), self._channel.domain, scale, "truncate", x)

    def _moment(self, name: str) -> FloatArray:
        parts = [slice(i, i + _FEW) for i in range(0, max(self._x.size, 1), _FEW)]
        return np.concatenate([np.atleast_1d(getattr(self._law(part), name)()) for part in parts])

    def log_evidence(self) -> FloatArray:
        return np.zeros(self._x.size)

    def mean(self) -> FloatArray:
        return np.clip(self._moment("mean"), float(self._channel.domain.lower), float(self._channel.domain.upper))

    def var(self) -> FloatArray:
        return self._moment("var")

    def mode(self) -> FloatArray:
        return cast(FloatArray, self._channel.domain.project(self._x))

    def pdf(self, row: Pairs, q: FloatArray) -> FloatArray:
        law = self._law(row)
        return cast(FloatArray, law.pmf(q) if self._channel.domain.lattice else law.pdf(q))

    def cdf(self, row: Pairs, q: FloatArray) -> FloatArray:
        return cast(FloatArray, self._law(row).cdf(q))

    def ppf(self, row: Pairs, p: FloatArray) -> FloatArray:
        return cast(FloatArray, self._law(row).ppf(p))


class _Stairs:
    """Plain staircase noise and a flat prior: parts of the noise around the answer, in closed form."""

    def __init__(self, channel: Channel, x: FloatArray) -> None:
        self._channel, self._noise = channel, cast(Any, channel.noise)
        self._pieces = np.array(channel.domain.pieces, dtype=np.float64)
        self._low, self._high = float(channel.domain.lower), float(channel.domain.upper)
        # Beyond an end, a stair farther away says the same: the mass is then no smaller than need be.
        width = self._noise.width
        self._x = x + width * np.floor(np.maximum(self._low - x, 0.0) / width)
        self._x = self._x - width * np.floor(np.maximum(self._x - self._high, 0.0) / width)

    @classmethod
    def fits(cls, channel: Channel, prior: Prior, seen: Seen) -> _Stairs | None:
        stairs, x = hasattr(channel.noise, "width"), _points(seen)
        if not stairs or not prior.flat or x is None:
            return None
        if channel.edges == "clamp" and (_at_end(channel.domain, x) or np.isin(x, channel.atoms).any()):
            return None
        return cls(channel, x)

    def _mass(self, x: FloatArray, upto: FloatArray | float) -> FloatArray:
        law, last = self._channel.law(x), np.minimum(self._high, upto)
        parts = [np.exp(law._log_mass(a - x, np.minimum(b, last) - x)) for a, b in self._pieces]
        return np.asarray(np.sum(parts, axis=0))

    def _partial(self, t: FloatArray) -> FloatArray:
        """E[n; n <= t] and E[n^2; n <= t] of the noise above 0, for t >= 0."""
        beyond = np.exp(self._noise.log_tail(t + self._noise.unit))
        cut = np.where(np.isinf(t), 0.0, t)
        first, second = self._noise.moments_to(t)
        return np.stack([first - cut * beyond, second - cut * cut * beyond])

    @cached_property
    def _moments(self) -> tuple[FloatArray, FloatArray]:
        unit, first, second = self._noise.unit, np.zeros_like(self._x), np.zeros_like(self._x)
        for a, b in ((low - self._x, high - self._x) for low, high in self._pieces):
            above = self._partial(np.maximum(b, 0.0)) - self._partial(np.where(a > 0.0, a - unit, 0.0))
            below = self._partial(np.maximum(-a, 0.0)) - self._partial(np.where(b < 0.0, -b - unit, 0.0))
            first, second = first + (above - below)[0], second + (above + below)[1]
        mass = self._mass(self._x, np.inf)
        centre = first / mass
        return self._x + centre, np.maximum(second / mass - centre * centre, 0.0)

    def log_evidence(self) -> FloatArray:
        return np.zeros(self._x.size)

    def mean(self) -> FloatArray:
        return np.clip(self._moments[0], self._low, self._high)

    def var(self) -> FloatArray:
        return self._moments[1]

    def mode(self) -> FloatArray:
        return cast(FloatArray, self._channel.domain.project(self._x))

    def pdf(self, row: Pairs, q: FloatArray) -> FloatArray:
        x = self._x[row]
        inside = self._channel.domain.contains(q)
        height = np.exp(self._noise.log_density(np.where(inside, q, x) - x))
        return np.where(inside, height / self._mass(x, np.inf), 0.0)

    def cdf(self, row: Pairs, q: FloatArray) -> FloatArray:
        x = self._x[row]
        return np.minimum(self._mass(x, q) / self._mass(x, np.inf), 1.0)

    def ppf(self, row: Pairs, p: FloatArray) -> FloatArray:
        """By bisection: the cdf is exact and cheap."""
        x, reach, lattice = self._x[row], self._channel.shape.reach, self._channel.domain.lattice
        centre = np.clip(x, self._low, self._high)
        low, high = np.maximum(centre - reach, self._low), np.minimum(centre + reach, self._high)
        if lattice:
            low, high = np.floor(low) - 1.0, np.ceil(high)
        goal = p * self._mass(x, np.inf)
        while True:
            middle = np.floor((low + high) / 2.0) if lattice else low + (high - low) / 2.0
            if np.all((middle <= low) | (middle >= high)):
                return cast(FloatArray, self._channel.domain.project(high))
            enough = self._mass(x, middle) >= goal
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)


def _at_end(domain: Line, x: FloatArray) -> bool:
    return bool(np.any((x <= float(domain.lower)) | (x >= float(domain.upper))))


class _Integrated:
    """Every other case: integrals over panels (sums over runs of whole numbers), split at the likelihood's kinks."""

    def __init__(self, channel: Channel, prior: Prior, seen: Seen) -> None:
        self._channel, self._prior, self._seen, self._size = channel, prior, seen, seen[0][0].size
        domain, shape = channel.domain, channel.shape
        edges = np.concatenate([prior.edges, np.asarray(shape.points, dtype=np.float64)])
        self._panels = channel.panels(domain.pieces if prior.flat else prior.support, edges)
        self._kept: list[tuple[Any, Measure]] | None = None

    def _window(self) -> tuple[FloatArray, FloatArray]:
        """The true values that matter for each answer."""
        shape = self._channel.shape
        ends = []
        low, high = np.fmin.reduce([low for low, _ in self._seen]), np.fmax.reduce([high for _, high in self._seen])
        for x, sign in ((low, -1.0), (high, 1.0)):
            near = _nearest(self._panels.pieces, x)
            away = np.where(np.isfinite(x), np.abs(np.where(np.isfinite(x), x, 0.0) - near), 0.0)
            ends.append(np.where(np.isfinite(x), x, near) + sign * (away + shape.reach))
        return ends[0], ends[1]

    def _parts(self) -> Iterable[tuple[Any, Measure]]:
        """(indices of answers, prior times likelihood); kept where that is one part."""
        if self._size > _KEPT:
            return self._compute()
        if self._kept is None:
            self._kept = list(self._compute())
        return self._kept

    def _compute(self) -> Iterator[tuple[Any, Measure]]:
        low, high = self._window()
        whole = _WHOLE if self._prior.flat else _GRADED
        for index, rule in self._panels.parts(low, high, 2.0 * self._channel.shape.reach, whole):
            yield index, Measure.of(rule, self._kinks(index), partial(self._log_f, index))

    def _kinks(self, index: Any) -> FloatArray:
        """Where the likelihood of each answer has a kink."""
        ends = [x for pair in self._seen for x in (pair if (pair[0] < pair[1]).any() else pair[:1])]
        kinks = np.concatenate([x[index][:, None] + np.asarray(self._channel.shape.offsets) for x in ends], axis=1)
        return np.where(np.isnan(kinks), np.inf, kinks)

    def _log_f(self, row: Any, q: FloatArray) -> FloatArray:
        """ln of prior times likelihood at q: (1, n) or (rows, n), for the answers of these rows."""
        value = self._channel.log_likelihood(q, _rows(self._seen, row))
        return value if self._prior.flat else value + self._prior.log_density(q)

    def _each(self, one: Callable[[Measure], FloatArray]) -> FloatArray:
        out = np.empty(self._size)
        for index, measure in self._parts():
            out[index] = one(measure)
        return out

    def log_evidence(self) -> FloatArray:
        def one(measure: Measure) -> FloatArray:
            with np.errstate(divide="ignore"):
                return np.log(measure.integral()) + measure.top

        return self._each(one)

    def mean(self) -> FloatArray:
        domain = self._channel.domain
        return np.clip(self._each(_centre), float(domain.lower), float(domain.upper))

    def var(self) -> FloatArray:
        def one(measure: Measure) -> FloatArray:
            centre = _centre(measure)[:, None]
            with np.errstate(invalid="ignore"):
                return measure.integral(lambda q: np.square(q - centre)) / measure.integral()

        return self._each(one)

    def _pairs(self, row: Pairs, one: Callable[[Measure, Pairs, Any, Any], FloatArray]) -> FloatArray:
        out = np.empty(row.size)
        for index, measure in self._parts():
            place = np.full(self._size, -1)
            place[index] = np.arange(index.size)
            here = np.flatnonzero(place[row] >= 0)
            if here.size:
                out[here] = one(measure, place[row[here]], here, index)
        return out

    def pdf(self, row: Pairs, q: FloatArray) -> FloatArray:
        inside = self._channel.domain.contains(q)
        total = self.log_evidence()[row]
        safe = np.where(inside, q, self._channel.domain.project(np.where(np.isfinite(q), q, 0.0)))
        return np.where(inside, np.exp(self._log_f(row, safe[:, None])[:, 0] - total), 0.0)

    def cdf(self, row: Pairs, q: FloatArray) -> FloatArray:
        def one(measure: Measure, r: Pairs, here: Any, index: Any) -> FloatArray:
            below = measure.below(r, q[here], lambda rows, nodes: self._log_f(index[rows], nodes))
            return np.asarray(below / measure.integral()[r])

        return np.clip(self._pairs(row, one), 0.0, 1.0)

    def ppf(self, row: Pairs, p: FloatArray) -> FloatArray:
        def one(measure: Measure, r: Pairs, here: Any, index: Any) -> FloatArray:
            return measure.quantile(r, p[here], lambda rows, nodes: self._log_f(index[rows], nodes))

        return cast(FloatArray, self._channel.domain.project(self._pairs(row, one)))

    def mode(self) -> FloatArray:
        """The best of all nodes, ends and kinks, and then of what lies between its neighbours."""
        out = np.empty(self._size)
        for index, measure in self._parts():
            out[index] = self._peak(index, measure)
        return cast(FloatArray, self._channel.domain.project(out))

    def _peak(self, index: Any, measure: Measure) -> FloatArray:
        rule, rows = measure.rule, index.size
        ends = np.unique(np.concatenate([rule.a + (1.0 if rule.lattice else 0.0), rule.b, rule.nodes]))
        own = self._kinks(index)
        own = np.where(self._channel.domain.contains(own), own, ends[0])
        tried = np.sort(np.concatenate([np.broadcast_to(ends, (rows, ends.size)), own], axis=1), axis=1)
        value = self._log_f(index, tried)
        best = np.argmax(value, axis=1)
        rows_ = np.arange(rows)
        found, height = tried[rows_, best], value[rows_, best]
        low, high = tried[rows_, np.maximum(best - 1, 0)], tried[rows_, np.minimum(best + 1, tried.shape[1] - 1)]
        lattice = rule.lattice
        for _ in range(_BISECTIONS):
            third = (high - low) / 3.0
            left, right = low + third, high - third
            if lattice:
                left, right = np.floor(left), np.ceil(right)
            pair = np.stack([left, right], axis=1)
            inside = self._channel.domain.contains(pair)
            values = np.where(inside, self._log_f(index, np.where(inside, pair, found[:, None])), -np.inf)
            for k in range(2):
                better = values[:, k] > height
                found, height = np.where(better, pair[:, k], found), np.where(better, values[:, k], height)
            rising = values[:, 0] < values[:, 1]
            low, high = np.where(rising, left, low), np.where(rising, high, right)
            if np.all(high - low <= (2.0 if lattice else 1e-9 * self._channel.shape.scale)):
                break
        return np.where(np.isfinite(height), found, np.nan)


def _centre(measure: Measure) -> FloatArray:
    nodes = measure.rule.nodes
    anchor = float(nodes[0]) if nodes.size else 0.0  # digits are kept far from 0
    with np.errstate(invalid="ignore"):
        return anchor + measure.integral(lambda q: q - anchor) / measure.integral()


def _nearest(pieces: Sequence[tuple[float, float]], x: FloatArray) -> FloatArray:
    ends = np.array(pieces)
    inside = np.clip(x[:, None], ends[:, 0], ends[:, 1])
    with np.errstate(invalid="ignore"):
        away = np.where(inside == x[:, None], 0.0, np.abs(inside - x[:, None]))
    return cast(FloatArray, inside[np.arange(x.size), np.argmin(away, axis=1)])


def _rows(seen: Seen, rows: Any) -> Seen:
    return [(low[rows][:, None], high[rows][:, None]) for low, high in seen]


def _points(seen: Seen) -> FloatArray | None:
    """The answers, if each is known."""
    (low, high), *more = seen
    return None if more or (low < high).any() else low


def solver(channel: Channel, prior: Prior, seen: Seen) -> Any:
    """The best way to compute the posteriors."""
    if prior.points is not None:
        return _Finite(channel, prior, seen)
    closed = _Closed.fits(channel, prior, seen) or _Stairs.fits(channel, prior, seen)
    return closed or _Integrated(channel, prior, seen)
