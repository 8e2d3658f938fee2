"""Truncated Gaussian noise on any one-dimensional support: masses, means, pair loss, divergences and their slopes.

Integrals of Gaussian pieces are taken by Gauss-Legendre quadrature over the part within 9.5 standard deviations of the
place where the piece is highest: the integrands are positive and entire, the error is below 1e-13 relative in every
regime (tested against 50 digits), tiny and far pieces included, and conditional means come for free. Library error
functions lose digits in exactly the places that matter here. Sums over whole numbers are taken directly for small
scales and by the Euler-Maclaurin formula from sigma = 64 on.

Proofs: ``docs/proofs/pure-gaussian.md``, ``docs/proofs/pure-integers.md``, ``docs/proofs/profile.md``,
``docs/proofs/renyi.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from inbounds._checks import FloatArray
from inbounds.noise.support import Support
from inbounds.numerics import legendre, log_sum

FAR = 9.5  # standard deviations; the mass beyond is below 3e-21 of what is inside
_X, _W = legendre(64)
_FEW = legendre(24)
_SUM_BELOW = 64.0
_ROOT = math.sqrt(2.0 * math.pi)
_CHUNK = 1 << 21


def _window(s: FloatArray, lo: FloatArray, hi: FloatArray, sigma: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(peak, start, stop): the highest point of the kernel at s on [lo, hi], and the part of it that has the mass."""
    peak = np.clip(s, lo, hi)
    away = np.abs(peak - s) / sigma
    # exp(-(y^2/2 + away y)) falls below exp(-FAR^2/2) within this many standard deviations
    reach = sigma * FAR * FAR / (away + np.sqrt(away * away + FAR * FAR))
    return peak, np.maximum(lo, peak - reach), np.minimum(hi, peak + reach)


def piece_moments(
    s: FloatArray, lo: FloatArray, hi: FloatArray, sigma: float, lattice: bool = False
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(ln mass, mean, variance) of the normal law at s on [lo, hi] (conditional moments); elementwise.

    The mass is that of the density on the line, on whole numbers the sum of exp(-(x-s)^2 / 2 sigma^2) / (sigma
    sqrt(2 pi)). Empty pieces have ln mass -inf.
    """
    s, lo, hi = np.broadcast_arrays(s, lo, hi)
    shape = s.shape
    s, lo, hi = s.ravel(), lo.ravel(), hi.ravel()
    empty = ~(lo <= hi)
    hi = np.where(empty, lo, hi)
    if lattice and sigma < _SUM_BELOW:
        out = _summed(s, lo, hi, sigma)
    else:
        out = _integrated(s, lo, hi, sigma, lattice)
    log_mass = np.where(empty, -np.inf, out[0])
    return log_mass.reshape(shape), out[1].reshape(shape), out[2].reshape(shape)


def _weighted(
    s: FloatArray, peak: FloatArray, x: FloatArray, w: FloatArray, sigma: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Sums over the last axis of x (offsets from the peak): scaled mass, mean offset, variance, ln of the scaling."""
    away = (peak - s) / sigma
    y = x / sigma
    g = w * np.exp(-0.5 * y * (y + 2.0 * away[:, None]))
    m0 = g.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (g * x).sum(axis=1) / m0
        var = (g * np.square(x - mean[:, None])).sum(axis=1) / m0
    return m0, mean, var, -0.5 * away * away


def _integrated(
    s: FloatArray, lo: FloatArray, hi: FloatArray, sigma: float, lattice: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    if lattice:
        lo, hi = lo - 0.5, hi + 0.5
    peak, start, stop = _window(s, lo, hi, sigma)
    size = s.size
    mass, mean, var, scaling = (np.empty(size) for _ in range(4))
    rows = max(1, _CHUNK // _X.size)
    for i in range(0, size, rows):
        k = slice(i, i + rows)
        x = (start[k] - peak[k])[:, None] + (stop[k] - start[k])[:, None] * _X
        part = _weighted(s[k], peak[k], x, (stop[k] - start[k])[:, None] * _W, sigma)
        mass[k], mean[k], var[k], scaling[k] = part
    if lattice:
        extra, lever = _end_correction(s, peak, lo, hi, sigma)
        mean = (mean * mass + lever) / (mass + extra)
        mass = mass + extra
    with np.errstate(divide="ignore"):
        return np.log(mass) + scaling - math.log(sigma * _ROOT), peak + mean, var


def _end_correction(
    s: FloatArray, peak: FloatArray, lo: FloatArray, hi: FloatArray, sigma: float
) -> tuple[FloatArray, FloatArray]:
    """Euler-Maclaurin at half-integers, for f and for (x - peak) f, f scaled to 1 at the peak:

    sum = integral - [f']/24 + 7 [f''']/5760 - 31 [f^(5)]/967680 + ..., with f^(k) = (-1)^k He_k(t) f / sigma^k.
    """
    away = (peak - s) / sigma
    total, lever = np.zeros_like(s), np.zeros_like(s)
    for end, sign in ((hi, 1.0), (lo, -1.0)):
        finite = np.isfinite(end)
        x = np.where(finite, end, 0.0)
        t = np.where(finite, (x - s) / sigma, 0.0)
        f = np.where(finite, np.exp(np.maximum(0.5 * (away - t) * (away + t), -745.0)), 0.0)
        he = [np.ones_like(t), t, t * t - 1.0]
        for k in range(2, 5):
            he.append(t * he[k] - k * he[k - 1])
        own = np.zeros_like(t)
        odd = np.zeros_like(t)
        for order, weight in ((1, -1.0 / 24.0), (3, 7.0 / 5760.0), (5, -31.0 / 967680.0)):
            own += weight * -he[order] / sigma**order
            odd += weight * order * he[order - 1] / sigma ** (order - 1)
        total += sign * f * own
        lever += sign * f * (own * (x - peak) + odd)
    return total, lever


def _summed(s: FloatArray, lo: FloatArray, hi: FloatArray, sigma: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    peak, start, stop = _window(s, lo, hi, sigma)
    # The highest whole number need not be the clipped location: measure from a whole number next to it.
    base = np.clip(np.round(peak), np.ceil(lo), np.floor(hi))
    start, stop = np.maximum(np.ceil(start - 1.0), np.ceil(lo)), np.minimum(np.floor(stop + 1.0), np.floor(hi))
    count = int(np.max(stop - start, initial=0.0)) + 1
    size = s.size
    mass, mean, var, scaling = (np.empty(size) for _ in range(4))
    steps = np.arange(count, dtype=np.float64)
    rows = max(1, _CHUNK // count)
    for i in range(0, size, rows):
        k = slice(i, i + rows)
        x = start[k][:, None] + steps
        w = (x <= stop[k][:, None]).astype(np.float64)
        x = np.minimum(x, stop[k][:, None]) - base[k][:, None]
        mass[k], mean[k], var[k], scaling[k] = _weighted(s[k], base[k], x, w, sigma)
    with np.errstate(divide="ignore"):
        return np.log(mass) + scaling - math.log(sigma * _ROOT), base + mean, var


def _expectation(
    s: FloatArray, lo: FloatArray, hi: FloatArray, sigma: float, g: Callable[[FloatArray], FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """(integral of g, integral of 1) against exp(-(x-s)^2 / 2 sigma^2) on [lo, hi] near s; g sees x, rows follow s."""
    start = np.maximum(lo, s - (FAR + 0.5) * sigma)
    stop = np.maximum(np.minimum(hi, s + (FAR + 0.5) * sigma), start)
    x = start[:, None] + (stop - start)[:, None] * _X
    weight = (stop - start)[:, None] * _W * np.exp(-0.5 * np.square((x - s[:, None]) / sigma))
    return (weight * g(x)).sum(axis=1), weight.sum(axis=1)


def wall_loss(
    change: FloatArray, width: FloatArray, sigma: float, lattice: bool = False
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(h, h', h'') of the wall pair (l, l + change) at the far wall of [l, l + width]; increasing, concave in change.

    h = -ln E_l[e^{-k(u-x)}], k = change / sigma^2. Small k (u-l): by 1 - E[1 - e^{...}], every term positive, so that h
    keeps its relative accuracy however small it is; otherwise from the log-masses.
    """
    shape = np.broadcast(change, width).shape
    c, r = (np.ravel(v).astype(np.float64) for v in np.broadcast_arrays(change, width))
    out = np.empty((3, c.size))
    small = c / sigma**2 * r <= 0.5
    if lattice and sigma >= _SUM_BELOW:
        small &= False
    if small.any():
        out[:, small] = _gentle_wall_loss(c[small] / sigma**2, r[small], sigma, lattice)
    if (~small).any():
        cc, w, zero = c[~small], r[~small], np.zeros_like(c[~small])
        at_wall, _, _ = piece_moments(zero, zero, w, sigma, lattice)
        at_change, mean, var = piece_moments(cc, zero, w, sigma, lattice)
        out[0, ~small] = cc / sigma**2 * (w - cc / 2.0) + at_wall - at_change
        out[1, ~small] = (w - mean) / sigma**2
        out[2, ~small] = -var / sigma**4
    return out[0].reshape(shape), out[1].reshape(shape), out[2].reshape(shape)


def _gentle_wall_loss(kappa: FloatArray, width: FloatArray, sigma: float, lattice: bool) -> FloatArray:
    reach = np.minimum(width, (FAR + 1.0) * sigma)
    if lattice:
        nodes = np.arange(int(np.max(np.ceil(reach))) + 1, dtype=np.float64)
        weights = np.ones_like(nodes)
    else:
        nodes, weights = (_X, _W) if float(np.max(reach)) > 4.0 * sigma else _FEW
    out = np.empty((3, kappa.size))
    rows = max(1, _CHUNK // nodes.size)
    for i in range(0, kappa.size, rows):
        k = slice(i, i + rows)
        w = width[k][:, None]
        x = np.minimum(nodes, w) if lattice else reach[k][:, None] * nodes
        mass = np.exp(-0.5 * np.square(x / sigma)) * weights
        if lattice:
            mass *= nodes <= w
        gap = w - x
        gain = -np.expm1(-kappa[k][:, None] * gap)
        out[0, k] = -np.log1p(-(mass * gain).sum(axis=1) / mass.sum(axis=1))
        mass *= 1.0 - gain
        total = mass.sum(axis=1)
        mean_gap = (mass * gap).sum(axis=1) / total
        out[1, k] = mean_gap / sigma**2
        out[2, k] = -(mass * np.square(gap - mean_gap[:, None])).sum(axis=1) / total / sigma**4
    return out


@dataclass(frozen=True, eq=False)
class GaussianOn:
    """Gaussian noise of a sigma, truncated to a support."""

    support: Support
    scale: float

    @property
    def noise_floor(self) -> float:
        return 0.0 if self.support.convex and not self.support.lattice else (self.support.lo.size + 8) * 64.0 * 2.0**-53

    def reflected(self) -> GaussianOn:
        return GaussianOn(self.support.reflected(), self.scale)

    def moments(self, s: FloatArray, below: FloatArray | float = math.inf) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(ln mass, mean, variance) at s over the part of the support up to ``below``."""
        lo, hi = self.support.lo, self.support.hi
        top = np.minimum(hi, np.asarray(below)[..., None])
        if self.support.lattice:
            top = np.floor(top)
        log_mass, mean, var = piece_moments(np.asarray(s)[..., None], lo, top, self.scale, self.support.lattice)
        if self.support.convex:
            return log_mass[..., 0], mean[..., 0], var[..., 0]
        total = log_sum(log_mass)
        share = np.exp(log_mass - np.where(np.isfinite(total), total, 0.0)[..., None])
        centre = (share * mean).sum(axis=-1)
        spread = (share * (var + np.square(mean - centre[..., None]))).sum(axis=-1)
        return total, centre, spread

    def log_z_ratio(self, q: FloatArray, d: FloatArray) -> FloatArray:
        """ln Z(q+d) - ln Z(q); for d small against sigma without cancellation."""
        out = np.asarray(self.moments(q + d)[0] - self.moments(q)[0])
        small = (d <= 0.5 * self.scale) & (d > 0.0)
        if self.support.lattice or not small.any():
            return out
        s, dd = q[small], d[small]
        kappa, middle = (dd / self.scale**2)[:, None], (s + dd / 2.0)[:, None]
        top, bottom = self._over_pieces(s, np.full_like(s, np.inf), lambda x: np.expm1(kappa * (x - middle)))
        out[small] = np.log1p(top / bottom)
        return out

    def _over_pieces(
        self, s: FloatArray, below: FloatArray, g: Callable[[FloatArray], FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        top, bottom = np.zeros_like(s), np.zeros_like(s)
        for lo, hi in zip(self.support.lo, self.support.hi, strict=True):
            a, b = _expectation(s, np.full_like(s, lo), np.minimum(hi, below), self.scale, g)
            top, bottom = top + a, bottom + b
        return top, bottom

    def pure(self, delta: float) -> float:
        """The pure loss of the worst pair within delta; infinite on an unbounded support."""
        if not self.support.bounded:
            return math.inf
        if self.support.convex:
            width = np.array(self.support.hi[0] - self.support.lo[0])
            h = float(wall_loss(np.array(delta), width, self.scale, self.support.lattice)[0])
            return h + (self.noise_floor * max(1.0, h) if self.support.lattice else 0.0)
        worst = 0.0
        for side in (self, self.reflected()):
            q, d = side.support.end_pairs(delta)
            if q.size:
                top, kappa = side.support.hi[-1], d / self.scale**2
                step = side.log_z_ratio(q, d)
                worst = max(
                    worst,
                    float(np.max(kappa * (top - (q + d / 2.0)) - step)),
                    float(np.max(kappa * ((q + d / 2.0) - side.support.lo[0]) + step)),
                )
        return worst + self.noise_floor * max(1.0, worst)

    def steepest(self) -> float:
        """sup of |loss| / distance over all pairs: what the metric guarantee needs."""
        if not self.support.bounded:
            return math.inf
        if self.support.lattice:
            return float(self.pure(1.0))
        ends = np.array([self.support.lo[0], self.support.hi[-1]])
        mean = self.moments(ends)[1]
        return float(max(ends[1] - mean[0], mean[1] - ends[0])) / self.scale**2

    def threshold(self, q: FloatArray, d: FloatArray, epsilon: float) -> FloatArray:
        """x*: the bad set of the ordered pair (q, q+d) is the support below it."""
        return (q + d / 2.0) + self.scale**2 / d * (self.log_z_ratio(q, d) - epsilon)

    def hockey(self, q: FloatArray, d: FloatArray, epsilon: float) -> FloatArray:
        """The integral of max(p_q - e^epsilon p_{q+d}, 0)."""
        x = self.threshold(q, d, epsilon)
        out = np.zeros_like(x)
        some = x > self.support.lo[0]
        small = some & (d <= 0.5 * self.scale) & (x > q - 9.0 * self.scale) & (not self.support.lattice)
        if small.any():
            s, t = q[small], x[small]
            kappa = (d[small] / self.scale**2)[:, None]
            gain, _ = self._over_pieces(s, t, lambda y: -np.expm1(-kappa * np.maximum(t[:, None] - y, 0.0)))
            _, total = self._over_pieces(s, np.full_like(s, np.inf), np.zeros_like)
            out[small] = gain / total
        rest = some & ~small
        if rest.any():
            s, far, t = q[rest], (q + d)[rest], x[rest]
            own = self.moments(s, t)[0] - self.moments(s)[0]
            other = self.moments(far, t)[0] - self.moments(far)[0]
            value = np.exp(own) - np.exp(epsilon + other)
            out[rest] = np.maximum(value, 0.0) + 2.0**-44 * np.exp(own)
        return out

    def hockey_slopes(
        self, a: FloatArray, b: FloatArray, delta: float, epsilon: float, at_a: FloatArray, at_b: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Bounds of the slope of hockey(q, delta): forwards from the values at a, backwards from those at b.

        With A = {x <= t}: dP_s(A)/ds = -P_s(A) r_s, r_s = (E_s - E_s[x|A]) / sigma^2, every factor monotone in s and t.
        """
        d = np.full_like(a, delta)
        low_end = self.support.lo[0]
        # Below the support there is no bad set; its conditional mean is then the end itself.
        t1 = np.maximum(self.threshold(a, d, epsilon), low_end)
        t2 = np.maximum(self.threshold(b, d, epsilon), low_end)
        square = self.scale**2

        def rates(s1: FloatArray, s2: FloatArray) -> tuple[FloatArray, ...]:
            """Enclosures of P_s(A) and r_s for s in [s1, s2], and the variances at s1 of all and of A (t1, t2)."""
            all1, all2 = self.moments(s1), self.moments(s2)
            near, wide, far, narrow = (self.moments(x, t) for x, t in ((s1, t1), (s1, t2), (s2, t2), (s2, t1)))
            mass_low, mass_high = np.exp(narrow[0] - all2[0]), np.exp(wide[0] - all1[0])
            rate_low = np.maximum(all1[1] - far[1], 0.0) / square
            return mass_low, mass_high, rate_low, (all2[1] - near[1]) / square, all1[2], near[2], wide[2]

        p_low, p_high, rate_low, rate_high, spread, cut1, cut2 = rates(a, b)
        q_low, q_high, far_low, far_high, *_ = rates(a + delta, b + delta)
        weight = math.exp(epsilon)
        low = weight * q_low * far_low - p_high * rate_high
        high = weight * q_high * far_high - p_low * rate_low
        if self.support.convex and not self.support.lattice:
            # g' = -r g + e^epsilon P_{s+delta}(A) (r_{s+delta} - r_s), and r' = (Var_s - Var_s[x|A]) / sigma^4: no two
            # large terms cancel here, which matters when delta is small against sigma.
            width = float(self.support.hi[0] - low_end)
            third = min(4.52 * self.scale**3, width * min(square, width * width / 4.0))
            drift = 2.0 * third / square * ((b - a) + delta)
            gain_high = weight * delta * q_high * np.minimum(spread - cut1 + drift, square) / square**2
            gain_low = weight * delta * q_low * np.maximum(spread - cut2 - drift, 0.0) / square**2
            high = np.minimum(high, gain_high - rate_low * at_a)
            back = np.maximum(rate_high * at_b - gain_low, 0.0) * np.exp(np.minimum(rate_high * (b - a), 700.0))
            low = np.maximum(low, -back)
        return low, high

    def renyi(self, q: FloatArray, d: FloatArray, alpha: float) -> FloatArray:
        """D_alpha(p_q || p_{q+d})."""
        tilted = q - (alpha - 1.0) * d
        z, z_far, z_tilted = self.moments(q)[0], self.moments(q + d)[0], self.moments(tilted)[0]
        plain = alpha * np.square(d / self.scale) / 2.0
        bracket = ((alpha - 1.0) * z_far + z_tilted - alpha * z) / (alpha - 1.0)
        blur = (
            2.0**-48 * (np.abs(z_tilted) + plain * (alpha - 1.0) + alpha * (np.abs(z) + np.abs(z_far))) / (alpha - 1.0)
        )
        value = np.maximum(plain + bracket, 0.0) + blur
        return np.minimum(value, plain) if self.support.convex and not self.support.lattice else value

    def renyi_slopes(self, a: FloatArray, b: FloatArray, delta: float, alpha: float) -> tuple[FloatArray, FloatArray]:
        """Enclosure of the derivative in q of renyi(q, delta) over each cell: means rise with the location."""
        shift = (alpha - 1.0) * delta
        own_a, own_b = self.moments(a)[1], self.moments(b)[1]
        far_a, far_b = self.moments(a + delta)[1], self.moments(b + delta)[1]
        tilt_a, tilt_b = self.moments(a - shift)[1], self.moments(b - shift)[1]
        factor = 1.0 / ((alpha - 1.0) * self.scale**2)
        high = (alpha - 1.0) * far_b + tilt_b - alpha * own_a
        low = (alpha - 1.0) * far_a + tilt_a - alpha * own_b
        return factor * low, factor * high

    @staticmethod
    def plain_hockey(delta: float, scale: float, epsilon: float, lattice: bool) -> float:
        """The untruncated profile of a pair at distance delta (Balle and Wang's formula on the line)."""
        if lattice:
            line = GaussianOn(Support.line(True), scale)
            return float(line.hockey(np.array([0.0]), np.array([delta]), epsilon)[0])
        mu = delta / scale
        t = epsilon / mu - mu / 2.0
        # ndtr is good to 1e-12 relative; erfc differences lose no more here because the first term dominates
        first, second = float(log_ndtr(-t)), epsilon + float(log_ndtr(-t - mu))
        return (
            max(-math.expm1(second - first), 0.0) * math.exp(first) * (1.0 + 2.0**-36) if t < 35.0 else math.exp(first)
        )


def normal_cdf(x: FloatArray) -> FloatArray:
    out: FloatArray = ndtr(x)
    return out
