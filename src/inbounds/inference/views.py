"""One coordinate of a mechanism as inference sees it: which true values an answer does not speak against.

A :class:`View` searches them with nothing but the law. Three kinds know more: :class:`_Plain` noise, which is not
conditioned on the domain, and :class:`_Walled` Laplace noise have closed forms, other :class:`_Truncated` noise has its
masses. Proofs: ``docs/proofs/inference.md``.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq

from inbounds._cached import cached_property
from inbounds._checks import FloatArray
from inbounds.distribution import Distribution
from inbounds.domain import Line
from inbounds.inference.crossing import CLOSE, FEW, Crossing, Rows
from inbounds.noise.masses import GaussianMasses, LaplaceMasses, Masses, WholeGaussianMasses, normal_mass
from inbounds.sampling.grid import positions

if TYPE_CHECKING:
    from inbounds.mechanism.base import Mechanism

__all__ = ["View", "tail_of", "view"]

#: Computed tails are compared with a probability lowered by this much, relatively, and are off by far less: a true
#: value that is rejected would be rejected in exact arithmetic.
_SLACK = 2.0**-30
_FAMILIES = ("laplace", "gaussian")  # whose masses are known here
_WHOLE = 2.0**53
_BLOCK = 1 << 18
_FEW_VALUES = 4096  # true values that are few enough to look at each


@lru_cache(maxsize=256)
def tail_of(level: float, dimension: int) -> float:
    """The probability each tail may have, from below. The level counts as a float and as the decimal it prints as."""
    inside = max(Fraction(level), Fraction(repr(level)))
    log = math.log(inside) if inside < Fraction(1, 2) else math.log1p(-float(1 - inside))
    return -math.expm1(log / dimension) / 2.0 * (1.0 - _SLACK)


def view(mechanism: Mechanism, domain: Line, step: float, i: int | None) -> View:
    """How inference sees a mechanism, or coordinate i of one on a Box, with its own domain and grid."""
    edges, family = mechanism._edges, getattr(mechanism, "_family", None)
    unit = float(getattr(mechanism, "scale", 1.0))
    law = partial(mechanism._unclamped._marginal, i)
    if edges != "truncate":
        return _Plain(domain, step, edges, law, unit=unit)
    if family not in _FAMILIES:
        return View(domain, step, edges, law, unit=unit)
    kind = _Walled if family == "laplace" and len(domain.pieces) == 1 else _Truncated
    return kind(domain, step, edges, family, unit=unit)


class View:
    """One coordinate of a mechanism: the true values there are, the law of the ideal answer, and the grid.

    Parameters
    ----------
    law : true values -> distribution
        Of the ideal answer, before it is moved to the grid and, clamped, to the domain: with ``sf``, ``cdf`` and
        ``logpdf`` or ``logpmf``, elementwise.
    unit : float
        How far to step first on domains without ends.
    """

    _growing = False  # whether answers are known to grow with the true value; where it matters it is else assumed

    def __init__(self, domain: Line, step: float, edges: str, law: Callable[[FloatArray], Any], *, unit: float) -> None:
        self.domain, self.edges, self.law, self.unit, self.lattice = domain, edges, law, unit, domain.lattice
        self.step = step
        ends = np.array(domain.pieces, dtype=np.float64)
        self.lo, self.hi, self.ends = ends[:, 0], ends[:, 1], ends.reshape(-1)
        first, last = positions(self.lo, self.hi, step)
        self._half, self._first, self._last = step / 2.0, first * step, last * step
        # the outermost multiples in a piece stand for all of it that is left, clamped also for half of the hole
        self._bottom, self._top = np.nextafter(self.lo, -np.inf), self.hi
        if edges == "clamp":
            cuts = (last[:-1] + np.floor((first[1:] - last[:-1]) / 2.0) + 0.5) * step  # as the sampler projects
            self._bottom, self._top = np.append(-np.inf, cuts), np.append(cuts, np.inf)

    def moved(self, anchor: Fraction) -> View:
        """The same with answers and true values counted from an answer."""
        step = self.step if self.lattice else max(self.step, math.ulp(float(anchor)))  # it was rounded to a float
        return self._on(self.domain.moved(anchor), step)

    def _on(self, domain: Line, step: float) -> View:
        return type(self)(domain, step, self.edges, self.law, unit=self.unit)

    # -- answers and true values

    def limits(self, x_low: FloatArray, x_high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(e, f): every answer >= x_low is an ideal answer > e, every answer <= x_high an ideal answer <= f."""
        low, high = np.nextafter(x_low, -np.inf), x_high
        if self.lattice:
            low = np.minimum(low, x_low - 1.0)  # the whole number before, or the float before
        else:  # where floats are farther apart than half a step, the next float
            low, high = np.minimum(low, x_low - self._half), np.maximum(np.nextafter(high, np.inf), high + self._half)
        if self.edges == "ignore" or (self.lattice and self.edges == "truncate"):
            return low, high
        i, j = (np.maximum(np.searchsorted(self.lo, x, side="right") - 1, 0) for x in (x_low, x_high))
        low = np.where(x_low <= self._first[i], self._bottom[i], low)
        return low, np.where(x_high >= self._last[j], self._top[j], high)

    def up(self, q: FloatArray) -> FloatArray:
        """The smallest true value >= q, or the largest one of all."""
        piece = np.minimum(np.searchsorted(self.hi, q, side="left"), self.hi.size - 1)
        out: FloatArray = np.minimum(np.maximum(q, self.lo[piece]), self.hi[-1])
        return out

    def down(self, q: FloatArray) -> FloatArray:
        """The largest true value <= q, or the smallest one of all."""
        piece = np.maximum(np.searchsorted(self.lo, q, side="right") - 1, 0)
        out: FloatArray = np.maximum(np.minimum(q, self.hi[piece]), self.lo[0])
        return out

    def above(self, q: FloatArray, edge: FloatArray) -> FloatArray:
        """P_q(ideal answer > edge)."""
        return np.asarray(self.law(q).sf(edge))

    def below(self, q: FloatArray, edge: FloatArray) -> FloatArray:
        """P_q(ideal answer <= edge)."""
        return np.asarray(self.law(q).cdf(edge))

    def tails(self, q: FloatArray, x_low: FloatArray, x_high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """P_q(answer >= x_low) and P_q(answer <= x_high)."""
        low, high = self.limits(x_low, x_high)
        return self.above(q, low), self.below(q, high)

    # -- what is asked

    def interval(self, x_low: FloatArray, x_high: FloatArray, tail: float) -> tuple[FloatArray, FloatArray]:
        """The hull of the true values with both tails at least ``tail``; where there are none, the best one twice."""
        x, y = self._finite(x_low), self._finite(x_high)
        lower, upper = self.roots(*(_outwards(x, y) if self.lattice else (x, y)), tail)
        if self.lattice:
            lower, upper = _outwards(lower, upper)
        lower = np.where(x_low == -np.inf, self.lo[0], self.up(lower))
        upper = np.where(x_high == np.inf, self.hi[-1], self.down(upper))
        empty = lower > upper
        if empty.any():
            a, b, x, y = upper[empty], lower[empty], x[empty], y[empty]
            lower[empty] = upper[empty] = np.where(self.tails(a, x, y)[0] >= self.tails(b, x, y)[1], a, b)
        return lower, upper

    def _finite(self, x: FloatArray) -> FloatArray:
        """Something to compute with where the tail is known to be 1."""
        known = np.isfinite(x)
        return x if known.all() else np.where(known, x, self.domain.project(0.0))

    def roots(self, x_low: FloatArray, x_high: FloatArray, tail: float) -> tuple[FloatArray, FloatArray]:
        """The smallest true value with P(answer >= x_low) >= tail and the largest with P(answer <= x_high) >= tail.

        From below and from above; not yet moved into the domain. Where there is none, beyond its far end.
        """
        few = self.lattice and not self._growing and self.hi[0] - self.lo[0] < _FEW_VALUES
        find = self._listed if few else self._searched
        if self.lattice and x_low.size > FEW and np.array_equal(x_low, x_high):
            x, which = np.unique(x_low, return_inverse=True)  # often the same few
            lower, upper = find(x, x, tail)
            return lower[which], upper[which]
        return find(x_low, x_high, tail)

    def _listed(self, x_low: FloatArray, x_high: FloatArray, tail: float) -> tuple[FloatArray, FloatArray]:
        """By looking at every true value, which also does for laws that do not grow with it."""
        q, out = np.arange(self.lo[0], self.hi[0] + 1.0), np.empty((2, x_low.size))
        for row, answers in enumerate(zip(x_low.tolist(), x_high.tolist(), strict=True)):
            least = np.minimum(*self.tails(q, *(np.full(q.shape, x) for x in answers)))
            kept = q[least >= min(tail, np.max(least))]
            out[:, row] = kept[0], kept[-1]
        return out[0], out[1]

    def _searched(self, x_low: FloatArray, x_high: FloatArray, tail: float) -> tuple[FloatArray, FloatArray]:
        low, high = self.limits(x_low, x_high)

        def left(q: FloatArray, rows: Rows) -> FloatArray:
            return _log(self.above(q.reshape(-1), np.repeat(low[rows], q.shape[1]))).reshape(q.shape)

        def right(q: FloatArray, rows: Rows) -> FloatArray:
            return _log(self.below(-q.reshape(-1), np.repeat(high[rows], q.shape[1]))).reshape(q.shape)

        lower = Crossing(left, math.log(tail), self.ends, x_low, self.unit, self.lattice)
        upper = Crossing(right, math.log(tail), -self.ends[::-1], -x_high, self.unit, self.lattice)
        return lower.outer(), -upper.outer()

    def balanced(self, x_low: FloatArray, x_high: FloatArray) -> FloatArray:
        """The true value for which P(answer >= x_low) and P(answer <= x_high) differ least."""
        found = self._balanced(self._finite(x_low), self._finite(x_high))
        return np.where(x_high == np.inf, self.hi[-1], np.where(x_low == -np.inf, self.lo[0], found))

    def _balanced(self, x_low: FloatArray, x_high: FloatArray) -> FloatArray:
        def excess(q: FloatArray, rows: Rows) -> FloatArray:
            k = q.shape[1]
            more, less = self.tails(q.reshape(-1), np.repeat(x_low[rows], k), np.repeat(x_high[rows], k))
            return (more - less).reshape(q.shape)

        found = Crossing(excess, 0.0, self.ends, x_low, self.unit, self.lattice)
        return self._evener(*found.neighbours(), x_low, x_high)

    def _evener(self, a: FloatArray, b: FloatArray, x_low: FloatArray, x_high: FloatArray) -> FloatArray:
        first, second = (np.abs(np.subtract(*self.tails(q, x_low, x_high))) for q in (a, b))
        return np.where(first <= second, a, b)

    def likeliest(self, x: FloatArray) -> FloatArray:
        """By looking at many true values that the answer does not speak against, and closer around the best."""
        lower, upper = self.interval(x, x, tail_of(1.0 - 1e-9, 1))
        out = np.empty(x.shape)
        for row, (answer, low, high) in enumerate(zip(x.tolist(), lower.tolist(), upper.tolist(), strict=True)):
            best, spacing = float(self.domain.project(answer)), math.inf
            while spacing > (1.0 if self.lattice else CLOSE * self.unit):
                q = np.unique(np.append(self.domain.project(np.linspace(low, high, 1025)), best))
                height = self._log_likelihood(q, answer)
                top = q[height >= np.max(height)]
                best = float(top[np.argmin(np.abs(top - answer))])
                spacing = (high - low) / 1024.0
                low, high = max(low, best - 2.0 * spacing), min(high, best + 2.0 * spacing)
            out[row] = best
        return out

    def _log_likelihood(self, q: FloatArray, answer: float) -> FloatArray:
        x, law = np.full(q.shape, answer), self.law(q)
        low, high = self.limits(x, x)
        if self.edges == "clamp" and high[0] - low[0] > 4.0 * self._half:  # a point that noise is moved to
            mass = law.sf(low) if high[0] == np.inf else law.cdf(high) - law.cdf(low)
            return _log(np.asarray(mass))
        return np.asarray(law.logpmf(x) if self.lattice else law.logpdf(x))


def _outwards(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where floats are more than 1 apart, a whole number may have been rounded to one of them."""
    far, away = (np.abs(x) > _WHOLE for x in (low, high))
    return np.where(far, np.nextafter(low, -np.inf), low), np.where(away, np.nextafter(high, np.inf), high)


def _log(p: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log(p)


class _Plain(View):
    """Symmetric noise, falling on both sides, that is added and not conditioned on the domain: a shift of one law."""

    @cached_property
    def _reaches(self) -> dict[float, float]:
        return {}

    def reach(self, tail: float) -> float:
        """A distance beyond which, on one side, the noise has less than this probability, and hardly a larger one."""
        if tail not in self._reaches:
            noise, step = self.law(np.zeros(())), 1.0 if self.lattice else CLOSE * self.unit
            distance = -float(noise.ppf(tail))
            while not float(noise.cdf(-distance - (1.0 if self.lattice else 0.0))) < tail:
                distance, step = distance + step, 2.0 * step
            self._reaches[tail] = distance
        return self._reaches[tail]

    def roots(self, x_low: FloatArray, x_high: FloatArray, tail: float) -> tuple[FloatArray, FloatArray]:
        low, high = self.limits(x_low, x_high)
        reach = self.reach(tail)
        if self.lattice:
            return low - (reach - 1.0), high + reach
        return np.nextafter(low - reach, -np.inf), np.nextafter(high + reach, np.inf)

    def _balanced(self, x_low: FloatArray, x_high: FloatArray) -> FloatArray:
        """The middle of the ideal answers at hand, or the true value nearest to it."""
        middle = x_low + (x_high - x_low) / 2.0
        if not (self.lattice or self.edges == "ignore"):
            low, high = self.limits(x_low, x_high)
            with np.errstate(invalid="ignore"):
                off = (low - x_low) + (high - x_high)  # infinite at a wall; not a number where all answers are one
            middle = middle + np.where(np.isnan(off), 0.0, off) / 2.0
        return np.asarray(self.domain.project(middle))

    def likeliest(self, x: FloatArray) -> FloatArray:
        return self.balanced(x, x)


class _Truncated(View):
    """Laplace or Gaussian noise conditioned on the domain."""

    _growing = True

    def __init__(self, domain: Line, step: float, edges: str, family: str, *, unit: float) -> None:
        super().__init__(domain, step, edges, partial(Distribution, family, domain, unit, edges), unit=unit)
        self._family = family

    def _on(self, domain: Line, step: float) -> View:
        return type(self)(domain, step, self.edges, self._family, unit=self.unit)

    @cached_property
    def _noise(self) -> Masses:
        if self._family == "laplace":
            return LaplaceMasses(self.unit)
        return (WholeGaussianMasses if self.lattice else GaussianMasses)(self.unit)

    def above(self, q: FloatArray, edge: FloatArray) -> FloatArray:
        return self._share(q, edge, self.lo, self.hi, super().above)

    def below(self, q: FloatArray, edge: FloatArray) -> FloatArray:
        return self._share(-q, -edge, -self.hi, -self.lo, lambda q, edge: super(_Truncated, self).below(-q, -edge))

    def _share(
        self,
        q: FloatArray,
        edge: FloatArray,
        lo: FloatArray,
        hi: FloatArray,
        by_law: Callable[[FloatArray, FloatArray], FloatArray],
    ) -> FloatArray:
        """By error functions, ten times faster than the law, where they have the digits."""
        if self._family == "laplace" or self.lattice:
            return by_law(q, edge)
        out, block = np.empty(q.shape), max(1, _BLOCK // lo.size)
        for here in (slice(i, i + block) for i in range(0, q.size, block)):
            at, b = q[here, None], (hi - q[here, None]) / self.unit
            above, lost = normal_mass((np.maximum(lo, edge[here, None]) - at) / self.unit, b)
            whole, also = normal_mass((lo - at) / self.unit, b)
            out[here] = above / whole
            enough = lost < _SLACK / 4.0 * np.maximum(above, 1e-20 * whole)
            doubtful = ~(enough & (also < _SLACK / 4.0 * whole))
            if doubtful.any():
                out[here][doubtful] = by_law(q[here][doubtful], edge[here][doubtful])
        return out

    def roots(self, x_low: FloatArray, x_high: FloatArray, tail: float) -> tuple[FloatArray, FloatArray]:
        if x_low.size == 1 and self.lo.size <= FEW:  # one at a time is faster without arrays
            low, high = (x_low, x_high) if self.lattice else self.limits(x_low, x_high)
            pieces = list(zip(self.lo.tolist(), self.hi.tolist(), strict=True))
            lower = self._root(float(low[0]), tail, pieces)
            upper = self._root(-float(high[0]), tail, [(-hi, -lo) for lo, hi in reversed(pieces)])
            if lower is not None and upper is not None:
                return np.array([lower]), np.array([-upper])
        return super().roots(x_low, x_high, tail)

    def _root(self, start: float, tail: float, pieces: list[tuple[float, float]]) -> float | None:
        """The smallest true value with P(answer from ``start`` on) >= tail, from below; None if digits are lacking."""
        noise, ends = self._noise, [end for piece in pieces for end in piece]
        beyond = [(max(lo, start), hi) for lo, hi in pieces if hi >= start]

        def share(q: float) -> tuple[float, float]:
            """The probability, and a bound on its relative error."""
            above, lost = noise.total(beyond, q)
            whole, also = noise.total(pieces, q)
            return above / whole, (lost / above if above > 0.0 else 0.0) + also / whole

        def reaches(q: float) -> bool:
            p, error = share(q)
            return not p * (1.0 + error) < tail

        i = bisect_left(ends, True, key=lambda q: q == math.inf or (q > -math.inf and reaches(q)))
        if i % 2 == 0:  # in a hole, or beyond the ends
            return ends[min(i, len(ends) - 1)]
        low, high = max(ends[i - 1], start - 50.0 * self.unit), min(ends[i], start + 50.0 * self.unit)
        if self.lattice:
            low, high = math.ceil(low), math.floor(high)
            return float(low + bisect_left(range(low, high), True, key=reaches))
        q, close = high, CLOSE * min(self.unit, ends[i] - ends[i - 1])
        if share(high)[0] > tail:
            if share(low)[0] >= tail:  # so far away that floats are wider apart than the noise
                return None
            q = float(brentq(lambda q: math.log(max(share(q)[0], 1e-300) / tail), low, high, xtol=close / 4.0))
        while reaches(q) and q > low:
            q, close = max(q - close, low), 2.0 * close
        return q if share(q)[1] < _SLACK else None

    def likeliest(self, x: FloatArray) -> FloatArray:
        """Laplace: the answer itself. Gaussian: where the mean answer is the one at hand, or next to it."""
        if self._family == "laplace":
            return x.copy()

        def excess(q: FloatArray, rows: Rows) -> FloatArray:
            return np.asarray(self.law(q).mean()) - x[rows][:, None]

        a, b = Crossing(excess, 0.0, self.ends, x, self.unit, self.lattice).neighbours()
        first, second = (np.asarray((law.logpmf if self.lattice else law.logpdf)(x)) for law in map(self.law, (a, b)))
        return np.where(first >= second, a, b)


class _Walled(_Truncated):
    """Truncated Laplace noise on one piece, of reals or whole numbers: the roots solve a quadratic equation."""

    def _distance(self, near: FloatArray, far: FloatArray, tail: float, own: float) -> FloatArray:
        """How far the root lies towards the near wall, from the distances of the two walls to the answer.

        ``own``: the share of the answer's own probability that belongs to the tail, on whole numbers. Infinite where
        the wall is reached first.
        """
        rho = -math.expm1(-1.0 / self.unit) if self.lattice else 0.0
        r = 1.0 - rho
        a, b = near / self.unit, far / self.unit
        excess = own * rho - r * np.expm1(-b) - tail * (rho - r * (np.expm1(-a) + np.expm1(-b)))
        towards = excess >= 0.0
        wall, share, size = np.where(towards, a, b), np.where(towards, tail, 1.0 - tail), np.abs(excess)
        h = share * (rho / 2.0 - r * np.expm1(-wall))
        square = h * h - share * r * size * np.exp(-wall)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.log1p(size / (h + np.sqrt(np.maximum(square, 0.0))))
        t = np.where((square >= 0.0) & (t < wall), t, np.inf) * self.unit
        return np.where(towards, t, -t)

    def roots(self, x_low: FloatArray, x_high: FloatArray, tail: float) -> tuple[FloatArray, FloatArray]:
        low, high = (x_low, x_high) if self.lattice else self.limits(x_low, x_high)
        low, high = np.maximum(low, self.lo), np.minimum(high, self.hi)
        left = self._distance(low - self.lo, self.hi - low, tail, 1.0)
        right = self._distance(self.hi - high, high - self.lo, tail, 1.0)
        if self.lattice:
            return low - np.floor(left), high + np.floor(right)
        return np.nextafter(low - left, -np.inf), np.nextafter(high + right, np.inf)

    def _balanced(self, x_low: FloatArray, x_high: FloatArray) -> FloatArray:
        if not np.array_equal(x_low, x_high):
            return super()._balanced(x_low, x_high)
        q = x_low - self._distance(x_low - self.lo, self.hi - x_low, 0.5, 0.5)
        if not self.lattice:
            return self.up(q)
        return self._evener(self.up(np.floor(q)), self.up(np.ceil(q)), x_low, x_high)
