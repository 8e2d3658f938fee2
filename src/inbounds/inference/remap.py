"""From an answer to the best estimate of the true value: one fixed function of a number, made of straight pieces.

The estimate that minimises the expected loss, given the answer, is worked out at enough answers that straight lines
between them are within 1e-7 of the scale of it (on a few thousand whole numbers: at every one); less closely where
answers are so far outside the domain that they are rare. Straight pieces are evaluated alike for one number and for
many, cannot break monotonicity by rounding, and are inverted exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, cast

import numpy as np

from inbounds._cached import cached_property
from inbounds._checks import FloatArray
from inbounds.inference.bayes import Channel, Seen, solver
from inbounds.inference.prior import Prior

__all__ = ["LOSSES", "Remap", "best_estimates"]

LOSSES = ("squared", "absolute", "zero-one")

_TOLERANCE = {"squared": 1e-7, "absolute": 1e-7, "zero-one": 1e-5}  # of the scale, or of a narrower domain
_EVERY = 4096  # whole numbers up to which each has its own entry
_MOST = 1 << 17
_RARE = 7.0
_NEAR = np.array([0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 18.0, 27.0, 40.0])


@dataclass(frozen=True, eq=False)
class Remap:
    """On [starts[i], starts[i+1]): values[i] + slopes[i] (x - anchors[i]), kept between lows[i] and highs[i].

    Then moved to the nearest point of the domain (spans, ties down) or the nearest whole number (ties down), if asked.
    ``breaks`` are the answers where it jumps or bends sharply; ``rising``: whether it never falls.
    """

    channel: Channel
    starts: FloatArray
    anchors: FloatArray
    values: FloatArray
    slopes: FloatArray
    lows: FloatArray
    highs: FloatArray
    breaks: FloatArray
    rising: bool
    whole: bool

    def __call__(self, x: FloatArray) -> FloatArray:
        i = np.searchsorted(self.starts, x, side="right") - 1
        y = self.values[i] + self.slopes[i] * (x - self.anchors[i])
        return self._finish(np.minimum(np.maximum(y, self.lows[i]), self.highs[i]))

    @property
    def _holes(self) -> bool:
        return len(self.channel.domain.pieces) > 1

    def _finish(self, y: FloatArray) -> FloatArray:
        if self.whole:
            return np.where(y == np.floor(y), y, np.ceil(y - 0.5))
        return cast(FloatArray, np.asarray(self.channel.domain.project(y))) if self._holes else y

    def _before(self, y: FloatArray) -> FloatArray:
        """The largest number that is finished to at most y."""
        if self.whole:
            return np.floor(y) + 0.5
        if self._holes:
            for (_, left), (right, _) in pairwise(self.channel.domain.pieces):
                y = np.where((y >= left) & (y < right), left + (right - left) / 2.0, y)
        return y

    # -- inversion

    @cached_property
    def _nexts(self) -> FloatArray:
        return np.append(self.starts[1:], np.inf)

    @cached_property
    def middle(self) -> tuple[float, float]:
        """Before the one and from the other on, every answer has the same estimate: that of ``starts``' ends."""
        low, high = self._finish(self.lows), self._finish(self.highs)
        first, last = (np.flatnonzero((low != end) | (high != end)) for end in (low[0], high[-1]))
        if not first.size:  # one estimate for all
            return (float(self.starts[-1]),) * 2
        return float(self.starts[first[0]]), float(self._nexts[last[-1]])

    @property
    def ends(self) -> FloatArray:
        """The estimates for infinite answers."""
        return self._finish(np.array([self.lows[0], self.highs[-1]]))

    def _crossing(self, i: Any, y: FloatArray) -> FloatArray:
        """Where piece i, which crosses y, does so."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            x = self.anchors[i] + (y - self.values[i]) / self.slopes[i]
        return np.asarray(np.minimum(np.maximum(x, self.starts[i]), self._nexts[i]))

    def last(self, y: FloatArray) -> tuple[FloatArray, Any]:
        """sup {x: T(x) <= y} of a rising T, -inf if empty; and whether T(sup) is above y."""
        y = self._before(y)
        i = np.searchsorted(self.lows, y, side="right") - 1
        k = np.maximum(i, 0)
        past = self.highs[k] <= y
        x = np.where(past, self._nexts[k], self._crossing(k, y))
        return np.where(i < 0, -np.inf, x), past | (i < 0)

    def first(self, y: FloatArray) -> FloatArray:
        """inf {x: T(x) >= y} of a rising T, inf if empty."""
        y = np.nextafter(self._before(np.nextafter(y, -np.inf)), np.inf) if self.whole or self._holes else y
        i = np.searchsorted(self.highs, y, side="left")
        k = np.minimum(i, self.starts.size - 1)
        x = np.where(self.lows[k] >= y, self.starts[k], self._crossing(k, y))
        return np.where(i == self.starts.size, np.inf, x)

    def region(self, y: float) -> tuple[FloatArray, FloatArray]:
        """{x: T(x) <= y} as intervals [left, right), for any T and one y."""
        level = float(self._before(np.array(y)))
        inside, outside = self.highs <= level, self.lows > level
        left, right = self.starts.copy(), self._nexts.copy()
        across = np.flatnonzero(~(inside | outside))
        x, up = self._crossing(across, np.array(level)), self.slopes[across] > 0.0
        right[across[up]], left[across[~up]] = x[up], x[~up]
        left, right = left[~outside], right[~outside]
        if not left.size:
            return left, right
        apart = left[1:] != right[:-1]
        return left[np.append(True, apart)], right[np.append(apart, True)]

    def roots(self, y: FloatArray) -> FloatArray:
        """For each y, the answers at which T passes it; as many columns as needed, filled up with NaN."""
        if self.rising:
            return np.stack([self.first(y), self.last(y)[0]], axis=-1)
        found = [np.unique(np.concatenate(self.region(v))) for v in y.tolist()]
        out = np.full((y.size, max((f.size for f in found), default=0)), np.nan)
        for row, f in zip(out, found, strict=True):
            row[: f.size] = f
        return out

    def raw_range(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest answer that is taken to y, or nearly so if none is: multiples of the grid."""
        if not self.rising:
            found = self.seen(y)
            return np.fmin.reduce([low for low, _ in found]), np.fmax.reduce([high for _, high in found])
        y = np.clip(y, *self.ends)
        start, stop = self.first(np.nextafter(y, -np.inf)), self.last(np.nextafter(y, np.inf))[0]
        low, high = self._on_grid(start, stop, y)
        step = self.channel.step
        middle = np.rint(np.where(np.isfinite(start), start, stop) / step) * step
        return np.where(low <= high, low, middle), np.where(low <= high, high, middle)

    def seen(self, y: FloatArray) -> Seen:
        """All answers that are taken to y, as few ranges; see :class:`inbounds.inference.bayes.Channel`."""
        if self.rising:
            low, high = self.raw_range(y)
            if not self.channel.wide:  # there may be but one answer up to here, or from here on
                domain = self.channel.domain
                low, high = np.maximum(low, domain.lower), np.minimum(high, domain.upper)
            return [(low, high)]
        found = [self._preimages(v) for v in y.reshape(-1).tolist()]
        most = max(map(len, found), default=1)
        filled = np.full((y.size, most, 2), np.nan)
        for row, ranges in zip(filled, found, strict=True):
            row[: len(ranges)] = ranges
        return [(filled[:, k, 0].reshape(y.shape), filled[:, k, 1].reshape(y.shape)) for k in range(most)]

    def _on_grid(
        self, low: FloatArray, high: FloatArray, y: FloatArray, first: Any = -np.inf, last: Any = np.inf
    ) -> tuple[FloatArray, FloatArray]:
        """The first and the last multiple of the grid near low and high that is taken to y, from ``first`` to ``last``.

        Where there is none the first is above the last.
        """
        step, ends = self.channel.step, []
        for end, inward, whole in ((low, step, np.ceil), (high, -step, np.floor)):
            x = np.where(np.isfinite(end), np.clip(whole(end / step) * step - inward, first, last), end)
            for _ in range(3):  # rounding may have cost a step
                miss = np.isfinite(x) & (self(np.where(np.isfinite(x), x, 0.0)) != y)
                x = np.where(miss, x + inward, x)
            ends.append(x)
        return ends[0], ends[1]

    def _preimages(self, y: float) -> list[tuple[float, float]]:
        """The ranges of answers that any T takes to y, in order."""
        step = self.channel.step
        near = [float(self._before(np.array(np.nextafter(y, sign * np.inf)))) for sign in (-1.0, 1.0)]
        if self.whole:
            near[0] -= 1.0
        i = np.flatnonzero((self.highs >= near[0]) & (self.lows <= near[1]))
        first, last = np.ceil(self.starts[i] / step) * step, np.ceil(self._nexts[i] / step) * step - step
        x = np.sort([self._crossing(i, np.array(level)) for level in near], axis=0)
        low, high = self._on_grid(x[0], x[1], np.array(y), first, last)
        level = self.slopes[i] == 0.0
        low, high = np.where(level, first, low), np.where(level, last, high)
        inside = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high, 0.0))
        found = (low <= high) & (self(inside) == y)
        out: list[tuple[float, float]] = []
        for a, b in zip(low[found].tolist(), high[found].tolist(), strict=True):
            if out and a <= out[-1][1] + step:
                out[-1] = (out[-1][0], b)
            else:
                out.append((a, b))
        if out:
            return out
        nearest = self.anchors[np.argmin(np.maximum(self.lows - y, y - self.highs))]  # none is: what comes close
        return [(float(nearest), float(nearest))]


def best_estimates(channel: Channel, prior: Prior, loss: str, integer: bool) -> Remap:
    """The function that minimises the expected loss under the prior, given the answer."""
    domain = channel.domain
    lower, upper = float(domain.lower), float(domain.upper)
    unit = min(channel.shape.scale, prior.ends[1] - prior.ends[0] or math.inf)
    tolerance = _TOLERANCE[loss] * unit
    if domain.lattice and loss != "squared" and not prior.flat:
        tolerance = 0.51  # steps cannot be followed by lines

    def estimate(x: FloatArray) -> FloatArray:
        found = solver(channel, prior, [(x, x)])
        if loss == "absolute":
            y = found.ppf(np.arange(x.size), np.full(x.size, 0.5))
        else:
            y = found.mean() if loss == "squared" else found.mode()
        # an answer that the prior rules out says nothing: then the nearest value that it allows
        return np.where(np.isnan(y), np.clip(x, *prior.ends), np.clip(y, lower, upper))

    if channel.listed is not None:
        return _steps(channel, estimate(channel.listed), integer or (domain.lattice and loss != "squared"))
    bends = _bends(channel, prior)
    parts = [_sample(estimate, channel, prior, bends, a, b, tolerance) for a, b in _answers(channel, prior)]
    for point in channel.atoms.tolist():
        parts.append((np.array([_first_of(channel, point)]), estimate(np.array([point]))))
    parts.sort(key=lambda part: float(part[0][0]))

    starts, values = (np.concatenate(v) for v in zip(*parts, strict=True))
    ends = np.concatenate([np.append(y[1:], y[-1]) for _, y in parts])
    gaps = np.diff(starts)
    breaks = [bends, np.array([part[0][0] for part in parts])]
    if domain.lattice:  # from one whole number to the next there is nothing between
        ends[:-1] = np.where(gaps <= 1.0, values[:-1], ends[:-1])
    else:
        jump = np.append(gaps <= 2.0 * channel.step, False) & (np.abs(ends - values) > 10.0 * tolerance)
        ends = np.where(jump, values, ends)
        breaks.append(starts[1:][jump[:-1]])
    both = np.stack([values, ends], axis=1).reshape(-1)
    highest = np.maximum.accumulate(both)
    rising = bool(np.max(highest - both) <= tolerance)
    if rising:  # up to rounding; now exactly
        values, ends = highest[::2], highest[1::2]
    before, after = (0.0, 0.0)
    if prior.points is None and starts.size > 1:  # straight on, where the domain has no end
        before = min(max((values[1] - values[0]) / gaps[0], 0.0), 1.0) if math.isinf(lower) else 0.0
        after = min(max((values[-1] - values[-2]) / gaps[-1], 0.0), 1.0) if math.isinf(upper) else 0.0
    slopes = np.append((ends - values)[:-1] / gaps, after)
    lows, highs = np.minimum(values, ends), np.maximum(values, ends)
    highs[-1] = upper if after > 0.0 else highs[-1]
    made = Remap(
        channel,
        starts=np.append(-np.inf, starts),
        anchors=np.append(starts[0], starts),
        values=np.append(values[0], values),
        slopes=np.append(before, slopes),
        lows=np.append(lower if before > 0.0 else values[0], lows),
        highs=np.append(values[0], highs),
        breaks=np.concatenate(breaks),
        rising=rising,
        whole=integer or (domain.lattice and loss != "squared"),
    )
    holes = [left + (right - left) / 2.0 for (_, left), (right, _) in pairwise(domain.pieces)]
    crossed = made.roots(np.array(holes)).reshape(-1)  # there it jumps, too
    return replace(made, breaks=np.unique(np.concatenate([made.breaks, crossed[np.isfinite(crossed)]])))


def _steps(channel: Channel, values: FloatArray, whole: bool) -> Remap:
    """For few answers: what each is taken to, and all numbers nearest to it."""
    points = cast(FloatArray, channel.listed)
    middles = points[:-1] + np.diff(points) / 2.0
    starts = np.append(-np.inf, np.ceil(middles) if channel.domain.lattice else middles)
    zero, rising = np.zeros(points.size), bool(np.all(np.diff(values) >= 0.0))
    return Remap(channel, starts, points, values, zero, values, values, middles, rising, whole)


def _first_of(channel: Channel, atom: float) -> float:
    """From where on answers are taken for an atom: it is released as a multiple of the grid."""
    low, high = next(piece for piece in channel.domain.pieces if atom in piece)
    return low if atom == low else float(np.nextafter(max(high - channel.step, (low + high) / 2.0), np.inf))


def _answers(channel: Channel, prior: Prior) -> list[tuple[float, float]]:
    """The ranges of answers on which estimates are worked out; beyond them there is nothing, or a straight line."""
    reach, scale, step = channel.shape.reach, channel.shape.scale, channel.step
    low, high = prior.ends
    if math.isinf(low) and math.isinf(high):
        low, high = -scale, scale
    elif math.isinf(high):
        high = low + reach
    elif math.isinf(low):
        low = high - reach
    low, high = math.floor((low - reach) / step) * step, math.ceil((high + reach) / step) * step
    if channel.wide:
        return [(low, high)]
    out = []
    for a, b in channel.domain.pieces:
        start, stop = a + step * (a in channel.atoms), b - step * (b in channel.atoms)
        start, stop = max(start, low), min(stop, high)
        if start <= stop:
            out.append((start, stop))
    return out


def _bends(channel: Channel, prior: Prior) -> FloatArray:
    """Where the estimate may have a kink: a kink of the likelihood passes an end there."""
    shape = channel.shape
    ends = np.array([*(end for piece in channel.domain.pieces for end in piece), *prior.ends, *shape.points])
    return np.unique((ends[np.isfinite(ends), None] - np.append(np.asarray(shape.offsets), 0.0)).reshape(-1))


def _sample(
    f: Callable[[FloatArray], FloatArray],
    channel: Channel,
    prior: Prior,
    bends: FloatArray,
    low: float,
    high: float,
    tolerance: float,
) -> tuple[FloatArray, FloatArray]:
    """(answers, estimates) from low to high: enough of them for straight lines between."""
    lattice = channel.domain.lattice
    if lattice and high - low < _EVERY:
        x = np.arange(low, high + 1.0)
        return x, f(x)
    some = bends[:: max(1, bends.size // 16)]
    near = (some[:, None] + np.concatenate([-_NEAR, _NEAR]) * channel.shape.scale).reshape(-1)
    points = np.empty(0) if prior.points is None else prior.points[:: max(1, prior.points.size // 1024)]
    x = np.concatenate([np.linspace(low, high, 33), bends, near, prior.edges, points])
    x = np.floor(x) if lattice else x
    x = np.unique(np.concatenate([[low, high], x[(x > low) & (x < high)]]))
    y = f(x)
    least = max(channel.step, 4.0 * math.ulp(max(abs(low), abs(high))))
    xs, ys = [x], [y]
    a, b, fa, fb = x[:-1], x[1:], y[:-1], y[1:]
    while sum(part.size for part in xs) < _MOST:
        wide = b - a > least
        a, b, fa, fb = a[wide], b[wide], fa[wide], fb[wide]
        if not a.size:
            break
        m = np.floor(a + (b - a) / 2.0) if lattice else a + (b - a) / 2.0
        fm = f(m)
        xs.append(m)
        ys.append(fm)
        # answers far outside the domain are rare, and errors there as harmless
        away = np.maximum(np.maximum(prior.ends[0] - m, m - prior.ends[1]), 0.0)
        enough = tolerance * np.exp(np.minimum(away / (2.0 * channel.shape.scale), _RARE))
        bad = np.abs(fa + (fb - fa) * ((m - a) / (b - a)) - fm) > enough
        a, m, b, fa, fm, fb = (v[bad] for v in (a, m, b, fa, fm, fb))
        a, b, fa, fb = (np.concatenate(v) for v in ((a, m), (m, b), (fa, fm), (fm, fb)))
    x, y = np.concatenate(xs), np.concatenate(ys)
    order = np.argsort(x, kind="stable")
    return x[order], y[order]
