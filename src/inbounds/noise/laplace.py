"""Truncated Laplace noise on any one-dimensional support: masses, pair loss, divergences and their slopes.

Everything follows from two functions of the location q, in units of the scale b:

* ``left(q)``  = the integral of exp(-(q-x)/b) dx/b over the points x < q of the support,
* ``right(q)`` = the integral of exp(-(x-q)/b) dx/b over the points x > q,

and Z = left + right. On whole numbers the sums are weighted with 1 - e^{-1/b} per point, so that both versions agree
for large scales, and the point q itself adds that weight. Proofs: ``docs/proofs/pure-laplace.md``,
``docs/proofs/pure-integers.md``, ``docs/proofs/profile.md``, ``docs/proofs/renyi.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inbounds._cached import cached_property
from inbounds._checks import FloatArray
from inbounds.noise.support import Points, Support
from inbounds.numerics import legendre, linear_recurrence

#: Farther than this many scales from every wall, Z differs from the full line's by less than 1e-20 of it.
FAR = 48.0


def interval_loss(change: FloatArray | float, width: FloatArray | float, scale: float, lattice: bool) -> FloatArray:
    """Loss of the wall pair (l, l + change) on [l, l + width]: increasing and concave in change, all terms positive.

    The textbook form ln[(2 - e^{-d} - e^{-(r-d)}) / (1 - e^{-r})] loses every digit below d = 1e-16.
    """
    d, share = change / scale, np.expm1(-(width - change) / scale)
    if lattice:
        share, width = math.exp(-1.0 / scale) * share, width + 1.0
    out: FloatArray = d + np.log1p(np.expm1(-d) * (share / -np.expm1(-width / scale)))
    return out


def wall_loss(
    change: FloatArray, width: FloatArray, scale: float, lattice: bool = False
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """:func:`interval_loss` with its first and second derivative in ``change``."""
    d, rest = change / scale, (width - change) / scale
    r = math.exp(-1.0 / scale) if lattice else 1.0
    near, far = -np.expm1(-d), -np.expm1(-rest)
    z = (1.0 - r) + r * (near + far)
    slope = ((1.0 - r) + 2.0 * r * far) / z
    # from h' = N/z: N' = -2 r (1 - far), z' = r ((1 - near) - (1 - far))
    curve = (-2.0 * r * (1.0 - far) - slope * r * (far - near)) / z
    return interval_loss(change, width, scale, lattice), slope / scale, curve / scale**2


def _exp_difference(x: FloatArray, y: FloatArray) -> FloatArray:
    """e^-x - e^-y for x, y >= 0 (infinite allowed), without cancellation when both are small."""
    near, far = np.minimum(x, y), np.maximum(x, y)
    with np.errstate(invalid="ignore"):
        gap = np.where(np.isinf(near), 0.0, far - near)
    size = -np.expm1(-gap) * np.exp(-near)
    return np.where(x <= y, size, -size)


@dataclass(frozen=True, eq=False)
class _LeftMass:
    """q -> left(q) for one support; the right mass is the left mass of the reflected support."""

    support: Support
    scale: float

    @cached_property
    def _at_ends(self) -> tuple[FloatArray, FloatArray]:
        lo, hi, b = self.support.lo, self.support.hi, self.scale
        with np.errstate(invalid="ignore"):
            steps = np.concatenate([[np.inf], np.diff(hi)])
        at_hi = linear_recurrence(np.exp(-steps / b), -np.expm1(-(hi - lo) / b))
        with np.errstate(invalid="ignore"):
            gaps = np.concatenate([[np.inf], lo[1:] - hi[:-1]])
        at_lo = np.concatenate([[0.0], at_hi[:-1]]) * np.exp(-gaps / b)
        return at_lo, at_hi

    def __call__(self, q: FloatArray) -> FloatArray:
        lo, hi, b = self.support.lo, self.support.hi, self.scale
        if self.support.lattice:
            r = math.exp(-1.0 / b)
            inside = -r * np.expm1(-np.maximum(np.minimum(q, hi[0]) - lo[0], 0.0) / b)
            beyond = np.maximum(q - hi[0], 0.0) / b
            past: FloatArray = np.exp(-beyond) * (inside - math.expm1(-1.0 / b))
            return np.where(beyond > 0.0, past, inside)
        if self.support.convex:
            inside = -np.expm1(-np.maximum(np.minimum(q, hi[0]) - lo[0], 0.0) / b)
            mass: FloatArray = inside * np.exp(-np.maximum(q - hi[0], 0.0) / b)
            return mass
        return self.at(q, np.searchsorted(lo, q, side="right") - 1)

    def at(self, q: FloatArray, piece: npt.NDArray[np.intp]) -> FloatArray:
        """left(q) on spans, given the last piece that starts at or below each q."""
        lo, hi, b = self.support.lo, self.support.hi, self.scale
        i = np.maximum(piece, 0)
        end, start = hi[i], self._at_ends[0][i]
        lost = -np.expm1((lo[i] - np.minimum(q, end)) / b)
        mass = start - (start - 1.0) * lost
        beyond = q > end
        if beyond.any():
            mass[beyond] *= np.exp((end[beyond] - q[beyond]) / b)
        mass[piece < 0] = 0.0
        return mass


@dataclass(frozen=True, eq=False)
class LaplaceOn:
    """Laplace noise of a scale, truncated to a support."""

    support: Support
    scale: float

    @cached_property
    def left(self) -> _LeftMass:
        return _LeftMass(self.support, self.scale)

    @cached_property
    def _mirror_left(self) -> _LeftMass:
        return _LeftMass(self.support.reflected(), self.scale)

    def right(self, q: FloatArray) -> FloatArray:
        return self._mirror_left(-q)

    @cached_property
    def atom(self) -> float:
        return -math.expm1(-1.0 / self.scale) if self.support.lattice else 0.0

    def reflected(self) -> LaplaceOn:
        return LaplaceOn(self.support.reflected(), self.scale)

    @property
    def noise_floor(self) -> float:
        """Absolute error bound of the log-masses below, beyond relative ones (0 where none is subtracted)."""
        if self.support.convex:
            return 0.0
        b, least = self.scale, self.support.shortest
        # ends that moved by the shift of the origin: the mass next to each, summed over neighbours, over the least Z
        ends = 2.0 + min(2.0 * self.support.lo.size, 2.0 * b / least)
        shifted = 4.0 * self.support.shift / b * ends / -math.expm1(-least / b)
        return (self.support.lo.size + 8) * 8.0 * 2.0**-53 + shifted

    def z(self, q: FloatArray) -> FloatArray:
        mass: FloatArray = self.left(q) + self.right(q)
        if self.support.lattice:
            mass = mass + np.where((q >= self.support.lo[0]) & (q <= self.support.hi[0]), self.atom, 0.0)
        return mass

    def log_share(self, q: FloatArray) -> FloatArray:
        """ln of the share of the untruncated noise that falls on the support."""
        out: FloatArray = np.log(self.z(q) / (2.0 - self.atom))
        return np.minimum(out, 0.0)

    def log_z_ratio(self, q: FloatArray, d: FloatArray) -> FloatArray:
        """ln Z(q+d) - ln Z(q), d >= 0; without cancellation where [q, q+d] lies in a convex support."""
        z = self.z(q)
        if self.support.convex:
            b, lo, hi = self.scale, self.support.lo[0], self.support.hi[0]
            r = math.exp(-1.0 / b) if self.support.lattice else 1.0
            change = -r * np.expm1(-d / b) * _exp_difference((q - lo) / b, np.maximum(hi - (q + d), 0.0) / b)
            step: FloatArray = np.log1p(change / z)
            return step
        return np.log(self.z(q + d)) - np.log(z)

    def loss(self, q: FloatArray, d: FloatArray) -> FloatArray:
        """sup over x of ln p_q/p_{q+d}, attained at every x <= q."""
        return d / self.scale + self.log_z_ratio(q, d)

    def pure(self, delta: float) -> float:
        """The pure loss of the worst pair within delta."""
        if self.support.convex:
            width = np.array(self.support.hi[0] - self.support.lo[0])
            if math.isinf(width) and math.isinf(self.support.lo[0]) and math.isinf(self.support.hi[0]):
                return delta / self.scale
            return float(interval_loss(np.array(delta), width, self.scale, self.support.lattice))
        near, far, d = self.support.extreme_pairs(delta)
        loss = d / self.scale + np.abs(np.log(self._z_at(far)) - np.log(self._z_at(near)))
        return float(np.max(loss, initial=0.0)) + self.noise_floor

    def _z_at(self, points: Points) -> FloatArray:
        return self.left.at(points.x, points.piece) + self._mirror_left.at(-points.x, points.mirrored)

    def steepest(self) -> float:
        """sup of |loss| / distance over all pairs: what the metric guarantee needs."""
        if self.support.lattice:
            return float(self.pure(1.0))
        ends = np.concatenate([self.support.lo, self.support.hi])
        ends = ends[np.isfinite(ends)]
        if ends.size == 0:
            return 1.0 / self.scale
        left, right = self.left(ends), self.right(ends)
        return float(np.max(1.0 + np.abs(right - left) / (left + right))) / self.scale

    def threshold(self, q: FloatArray, d: FloatArray, epsilon: float) -> FloatArray:
        """x* >= q: the bad set of the ordered pair (q, q+d) is the support below x* (empty when x* = q)."""
        return q + self.scale * np.maximum(self.loss(q, d) - epsilon, 0.0) / 2.0

    def hockey(self, q: FloatArray, d: FloatArray, epsilon: float | FloatArray) -> FloatArray:
        """The integral of max(p_q - e^epsilon p_{q+d}, 0)."""
        twice = np.maximum(self.loss(q, d) - epsilon, 0.0)
        b, z, left = self.scale, self.z(q), self.left(q)
        if self.support.lattice:
            n = np.minimum(np.floor(twice * b / 2.0), d)
            own = np.expm1(-(n + 1.0) / b) * np.expm1(-np.maximum(twice - n / b, 0.0))
            return np.where(twice > 0.0, (own - left * np.expm1(-twice)) / z, 0.0)
        if self.support.convex:
            return (np.square(np.expm1(-twice / 2.0)) - left * np.expm1(-twice)) / z
        # With holes: 1 - e^{-tau} Z(x*) / Z(q), exact but subtracting; the noise floor covers what it loses.
        x = q + b * twice / 2.0
        delta = -np.expm1(np.log(self.z(x)) - np.log(z) - twice / 2.0)
        possible = self.loss(q, d) + self.noise_floor > epsilon  # a loss that rounding hides is not ruled out
        return np.where(possible, np.maximum(delta, 0.0) + self.noise_floor, 0.0)

    def below(self, s: FloatArray, t: FloatArray) -> FloatArray:
        """P_s(x < t)."""
        z, b = self.z(s), self.scale
        low = np.exp(-np.maximum(s - t, 0.0) / b) * self.left(t) / z
        high = 1.0 - np.exp(-np.maximum(t - s, 0.0) / b) * self.right(t) / z
        return np.where(t <= s, low, high)

    def above(self, s: FloatArray, t: FloatArray) -> FloatArray:
        """P_s(x > t), accurate when small."""
        z, b = self.z(s), self.scale
        high = np.exp(-np.maximum(t - s, 0.0) / b) * self.right(t) / z
        low = 1.0 - np.exp(-np.maximum(s - t, 0.0) / b) * self.left(t) / z
        return np.where(t >= s, high, low)

    def _covariance(
        self, a: FloatArray, b: FloatArray, t1: FloatArray, t2: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Enclosure of -dP_s(x <= t)/ds for s in [a, b], t in [t1, t2]."""
        low = np.minimum(self.below(a, a), self.below(b, t1)) * np.minimum(self.above(b, b), self.above(a, t2))
        high = np.minimum(self.below(b, b), self.below(a, t2)) * np.minimum(self.above(a, a), self.above(b, t1))
        return low * (2.0 / self.scale), high * (2.0 / self.scale)

    def hockey_slopes(
        self, a: FloatArray, b: FloatArray, delta: float, epsilon: float, at_a: FloatArray, at_b: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Enclosure of the derivative in q of hockey(q, delta) over each cell [a, b]."""
        d = np.full_like(a, delta)
        t1, t2 = self.threshold(a, d, epsilon), self.threshold(b, d, epsilon)
        first_low, first_high = self._covariance(a, b, t1, t2)
        second_low, second_high = self._covariance(a + delta, b + delta, t1, t2)
        weight = math.exp(epsilon) if epsilon < 700.0 else math.inf
        with np.errstate(invalid="ignore"):  # 0 times an infinite weight: not a number, read as unknown
            low, high = weight * second_low - first_high, weight * second_high - first_low
        if not self.support.convex:
            return low, high
        gentle_low, gentle_high = self._gentle_slopes(a, b, delta, epsilon)
        return np.maximum(low, gentle_low), np.minimum(high, gentle_high)

    def _gentle_slopes(
        self, a: FloatArray, b: FloatArray, delta: float, epsilon: float
    ) -> tuple[FloatArray, FloatArray]:
        """The same on an interval, from f = (1-v)(L(1+v) + 1-v)/Z, v = e^{-tau}: all terms fade away from the walls."""
        scale, lo, hi = self.scale, self.support.lo[0], self.support.hi[0]
        d = np.full_like(a, delta)

        def walls(q: FloatArray) -> tuple[FloatArray, FloatArray]:
            return np.exp(-(q - lo) / scale), np.exp(-(hi - q) / scale)

        def pull(q: FloatArray) -> FloatArray:
            """d ln Z / dq, falling in q."""
            left, right = walls(q)
            slope: FloatArray = (left - right) / (scale * self.z(q))
            return slope

        (y2, w1), (y1, w2) = walls(a), walls(b)  # y in [y1, y2], w in [w1, w2] over the cell
        z_low, z_high = 2.0 - y2 - w2, 2.0 - y1 - w1
        l_low, l_high = -np.expm1(-(a - lo) / scale), -np.expm1(-(b - lo) / scale)
        tau_high = np.maximum(self.loss(a, d) - epsilon, 0.0) / 2.0  # tau falls in q
        tau_low = np.maximum(self.loss(b, d) - epsilon, 0.0) / 2.0
        v_low, v_high = np.exp(-tau_high), np.exp(-tau_low)
        gain_low, gain_high = -np.expm1(-tau_low), -np.expm1(-tau_high)  # 1 - v
        with np.errstate(divide="ignore", invalid="ignore"):
            f_low = gain_low * (l_low * (1.0 + v_high) + gain_low) / z_high
            f_high = gain_high * (l_high * (1.0 + v_low) + gain_high) / z_low
            bend_low, bend_high = pull(b + delta) - pull(a), np.minimum(pull(a + delta) - pull(b), 0.0)
            first_low = v_high * (1.0 - v_low * (1.0 - l_high)) * bend_low
            first_high = v_low * (1.0 - v_high * (1.0 - l_low)) * bend_high
            second_low, second_high = gain_low * (1.0 + v_low) * y1 / scale, gain_high * (1.0 + v_high) * y2 / scale
            third = [f * (y - w) / scale for f in (f_low, f_high) for y, w in ((y1, w2), (y2, w1))]
            top = first_high + second_high - np.minimum.reduce(third)
            bottom = first_low + second_low - np.maximum.reduce(third)
            high = np.maximum(top / z_low, top / z_high)
            low = np.minimum(bottom / z_low, bottom / z_high)
        unknown = ~(z_low > 0.0)
        return np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high)

    def renyi(self, q: FloatArray, d: FloatArray, alpha: float) -> FloatArray:
        """D_alpha(p_q || p_{q+d}) = loss + ln(1 - X)/(alpha - 1), X in [0, 1) free of cancellation."""
        b = self.scale
        order = 2.0 * alpha - 1.0
        whole = self._middle(q, d, 1.0)
        middle = whole - self._middle(q, d, order)
        tail = -np.exp(-d / b) * np.expm1(-(order - 1.0) * d / b) * self.right(q + d)
        z = self.z(q)
        x = np.minimum((middle + tail) / z, 1.0)
        with np.errstate(divide="ignore"):
            value = self.loss(q, d) + np.log1p(-x) / (alpha - 1.0)
        # Where 1 - X underflows to rounding noise the divergence is the loss itself, an upper bound.
        value = np.where(np.isfinite(value), value, self.loss(q, d))
        # terms that nearly cancel when alpha is near 1
        blur = 2.0**-48 * d / b + 2.0**-50 * whole / z + self.noise_floor
        return np.maximum(value, 0.0) + blur * (alpha / (alpha - 1.0))

    def _middle(self, q: FloatArray, d: FloatArray, order: float) -> FloatArray:
        """The integral of exp(-order (x-q)/b) dx/b over the support between q and q + d."""
        b = self.scale
        if self.support.lattice:
            return self.atom * np.expm1(-order * (d + 1.0) / b) / math.expm1(-order / b)
        if self.support.convex:
            return -np.expm1(-order * d / b) / order
        total = np.zeros(np.broadcast(q, d).shape)
        for lo, hi in zip(self.support.lo, self.support.hi, strict=True):
            low = np.clip(lo - q, 0.0, d)
            length = np.clip(hi - q, 0.0, d) - low
            total += -np.exp(-order * low / b) * np.expm1(-order * length / b) / order
        return total

    def renyi_slopes(self, a: FloatArray, b: FloatArray, delta: float, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Enclosure of the derivative in q of renyi(q, delta) over each cell; infinite across holes."""
        d = np.full_like(a, delta)

        def tilted(q: FloatArray) -> tuple[FloatArray, FloatArray]:
            order = 2.0 * alpha - 1.0
            left = self.left(q)
            middle = self._middle(q, d, order)
            total = left + middle + np.exp(-order * d / self.scale) * self.right(q + d)
            return left / total, (left + middle) / total

        at_a, at_b = tilted(a), tilted(b)
        factor = 2.0 / (self.scale * (alpha - 1.0))
        own_a, own_b = self.below(a, a), self.below(b, b)
        far_a, far_b = self.below(a + d, a + d), self.below(b + d, b + d)
        high = alpha * (own_b - at_a[0]) - (alpha - 1.0) * (far_a - at_b[1])
        low = alpha * (own_a - at_b[0]) - (alpha - 1.0) * (far_b - at_a[1])
        blocked = ~self.support.gapless(a, b - a + d)
        return np.where(blocked, -np.inf, factor * low), np.where(blocked, np.inf, factor * high)

    @staticmethod
    def plain_hockey(delta: float, scale: float, epsilon: float, lattice: bool) -> float:
        """The untruncated profile of a pair at distance delta."""
        excess = delta / scale - epsilon
        if excess <= 0.0:
            return 0.0
        if lattice:
            line = LaplaceOn(Support.line(True), scale)
            return float(line.hockey(np.array([0.0]), np.array([delta]), epsilon)[0])
        return -math.expm1(-excess / 2.0)


# ---------------------------------------------------------------- one location, pieces relative to it


def log_mass(a: FloatArray, b: FloatArray, scale: float, lattice: bool) -> FloatArray:
    """ln of the mass of the Laplace law at 0 on [a, b]; -inf where empty."""
    if lattice:
        a, b = np.ceil(a), np.floor(b)
    empty = ~(a <= b) | (a == np.inf) | (b == -np.inf)
    flip = b < 0.0
    low, high = np.where(flip, -b, a), np.where(flip, -a, b)
    near = np.maximum(low, 0.0) / scale  # the part above 0, seen from its start
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        if lattice:
            r = math.exp(-1.0 / scale)
            away = np.log(-np.expm1(-(high - low + 1.0) / scale)) - near - math.log1p(r)
            around = np.log(-(r * (np.expm1(low / scale) + np.expm1(-high / scale)) + math.expm1(-1.0 / scale)))
            out = np.where(low > 0.0, away, around - math.log1p(r))
        else:
            away = np.log(-np.expm1(-(high - low) / scale)) - near - math.log(2.0)
            around = np.log(-(np.expm1(low / scale) + np.expm1(-high / scale))) - math.log(2.0)
            out = np.where(low > 0.0, away, around)
    return np.where(empty, -np.inf, out)


def quantile(p: FloatArray, lo: FloatArray, hi: FloatArray, scale: float) -> FloatArray:
    """Quantile of the Laplace law at 0 on [lo, hi]."""
    a, b = lo / scale, hi / scale
    flip = a > 0.0
    low, high = np.where(flip, -b, a), np.where(flip, -a, b)
    part = np.where(flip, 1.0 - p, p)
    # low <= 0. Mass (times 2) from low to y <= 0: e^y - e^low; from y >= 0 to high: e^-y - e^-high.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        left = -np.expm1(np.minimum(low - np.minimum(high, 0.0), 0.0))  # in units of e^min(high, 0)
        right = np.where(high > 0.0, -np.expm1(-np.maximum(high, 0.0)), 0.0)
        total = left + right
        from_left = part * total
        # y <= 0: y = min(high,0) + ln(1 - (left - from_left)), written from whichever side is nearer
        under = np.minimum(high, 0.0) + np.log1p(-np.minimum(left - from_left, 1.0))
        near_low = low + np.log1p(from_left * np.exp(np.minimum(np.minimum(high, 0.0) - low, 700.0)))
        far_low = np.minimum(high, 0.0) + np.log(from_left + np.exp(np.maximum(low - np.minimum(high, 0.0), -745.0)))
        under = np.where(from_left < 0.5 * left, np.where(low > -700.0, near_low, far_low), under)
        over = -np.log1p(-np.minimum(from_left - left, 1.0))
        near_high = high - np.log1p((1.0 - part) * total * np.exp(np.minimum(high, 700.0)))
        far_high = -np.log((1.0 - part) * total + np.exp(np.maximum(-high, -745.0)))
        over = np.where(from_left - left > 0.5 * right, np.where(high < 700.0, near_high, far_high), over)
    y = np.clip(np.where(from_left <= left, under, over), low, high)
    out: FloatArray = np.where(flip, -y, y) * scale
    return out


_NODES, _WEIGHTS = legendre(64)
_LONGEST_SUM = 1 << 23
_SHORT_SUM = 1 << 14  # never too long, however many there are: taken in parts


def piece_moments(
    s: FloatArray, lo: FloatArray, hi: FloatArray, scale: float, lattice: bool = False
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(ln mass, mean, variance) of the Laplace law at s on [lo, hi], which must not hold s inside; elementwise."""
    s, lo, hi = np.broadcast_arrays(s, lo, hi)
    log = log_mass(lo - s, hi - s, scale, lattice)
    flip = hi <= s
    start = np.where(flip, s - hi, lo - s)  # distance of the nearer end
    length = np.where(np.isfinite(log), np.minimum(hi - lo, FAR * scale), 0.0)
    base = np.where(np.isfinite(log), start, 0.0)
    count = int(np.max(length, initial=0.0)) + 1
    if lattice and (count <= _SHORT_SUM or count * length.size <= _LONGEST_SUM):
        flat, rows = length.reshape(-1), max(1, _LONGEST_SUM // count)
        parts = [_sums(flat[i : i + rows], count, scale) for i in range(0, max(flat.size, 1), rows)]
        mean, var = (np.concatenate(v).reshape(length.shape) for v in zip(*parts, strict=True))
    else:
        half = 0.5 if lattice else 0.0  # midpoint rule, good to 1 / scale^2: used for long sums only
        y = (length + 2.0 * half)[..., None] * _NODES - half
        mean, var = _weighted(y, _WEIGHTS * np.exp(-y / scale))
    return log, np.where(flip, s - base - mean, s + base + mean), var


def _sums(length: FloatArray, count: int, scale: float) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the distance from the nearer end, by sums of at most ``count`` terms."""
    nodes = np.arange(count, dtype=np.float64)
    y = np.minimum(nodes, length[:, None])
    return _weighted(y, np.exp(-y / scale) * (nodes <= length[:, None]))


def _weighted(y: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    total = weight.sum(axis=-1)
    mean = (weight * y).sum(axis=-1) / total
    return mean, (weight * np.square(y - mean[..., None])).sum(axis=-1) / total
