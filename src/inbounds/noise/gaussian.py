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
import numpy.typing as npt

from inbounds._checks import FloatArray
from inbounds.noise.support import Support
from inbounds.numerics import legendre, log_sum

FAR = 9.5  # standard deviations; the mass beyond is below 3e-21 of what is inside
_X, _W = legendre(64)
_FEW = legendre(24)
_SUM_BELOW = 64.0
_LONGEST_SUM = 1 << 20
_ROOT = math.sqrt(2.0 * math.pi)
_CHUNK = 1 << 18


def _window(s: FloatArray, lo: FloatArray, hi: FloatArray, sigma: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(peak, start, stop): the highest point of the kernel at s on [lo, hi], and what has the mass, relative to it."""
    peak = np.clip(s, lo, hi)
    away = np.abs(peak - s) / sigma
    # exp(-(y^2/2 + away y)) falls below exp(-FAR^2/2) within this many standard deviations
    reach = sigma * FAR * FAR / (away + np.sqrt(away * away + FAR * FAR))
    return peak, np.maximum(lo - peak, -reach), np.minimum(hi - peak, reach)


def piece_moments(
    s: FloatArray, lo: FloatArray, hi: FloatArray, sigma: float, lattice: bool = False, *, relative: bool = False
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(ln mass, mean, variance) of the normal law at s on [lo, hi] (conditional moments); elementwise.

    The mass is that of the density on the line, on whole numbers the sum of exp(-(x-s)^2 / 2 sigma^2) / (sigma
    sqrt(2 pi)). ``relative``: in units of the kernel's height at its highest point of the piece, which keeps digits in
    far tails. Empty pieces have ln mass -inf.
    """
    s, lo, hi = np.broadcast_arrays(s, lo, hi)
    shape = s.shape
    s, lo, hi = s.ravel(), lo.ravel(), hi.ravel()
    empty = ~(lo <= hi)
    start = np.where(np.isfinite(lo), lo, 0.0)  # what the mean of an empty piece is taken to be
    empty |= (lo == np.inf) | (hi == -np.inf)
    lo, hi = np.where(empty, 0.0, lo), np.where(empty, 0.0, hi)
    # Euler-Maclaurin needs a kernel that changes little from one whole number to the next
    steep = np.abs(np.clip(s, lo, hi) - s) > 0.1 * sigma**2 if lattice else np.zeros(s.shape, dtype=bool)
    if lattice and (sigma < _SUM_BELOW or steep.all()):
        mass, mean, var, scaling = _summed(s, lo, hi, sigma)
    else:
        mass, mean, var, scaling = _integrated(s, lo, hi, sigma, lattice)
        if steep.any():
            parts = _summed(s[steep], lo[steep], hi[steep], sigma)
            for whole, part in zip((mass, mean, var, scaling), parts, strict=True):
                whole[steep] = part
    with np.errstate(divide="ignore"):
        log_mass = np.log(mass) - math.log(sigma * _ROOT)
    if not relative:
        log_mass = log_mass + scaling
    log_mass = np.where(empty, -np.inf, log_mass)
    mean, var = np.where(empty, start, mean), np.where(empty, 0.0, var)
    return log_mass.reshape(shape), mean.reshape(shape), var.reshape(shape)


def _weighted(
    s: FloatArray, peak: FloatArray, x: FloatArray, w: FloatArray, sigma: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Sums over the last axis of x (offsets from the peak): scaled mass, mean offset, variance, ln of the scaling."""
    away = (peak - s) / sigma
    y = x / sigma
    g = w * np.exp(-0.5 * y * (y + 2.0 * away[:, None]))
    m0 = g.sum(axis=1)
    unit = np.where(m0 > 0.0, m0, 1.0)  # a piece of no width is all at its peak
    mean = (g * x).sum(axis=1) / unit
    var = (g * np.square(x - mean[:, None])).sum(axis=1) / unit
    return m0, mean, var, -0.5 * away * away


def _integrated(
    s: FloatArray, lo: FloatArray, hi: FloatArray, sigma: float, lattice: bool
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    if lattice:
        lo, hi = lo - 0.5, hi + 0.5
    peak, start, stop = _window(s, lo, hi, sigma)
    size = s.size
    mass, mean, var, scaling = (np.empty(size) for _ in range(4))
    rows = max(1, _CHUNK // _X.size)
    for i in range(0, size, rows):
        k = slice(i, i + rows)
        x = start[k][:, None] + (stop[k] - start[k])[:, None] * _X
        part = _weighted(s[k], peak[k], x, (stop[k] - start[k])[:, None] * _W, sigma)
        mass[k], mean[k], var[k], scaling[k] = part
    if lattice:
        extra, lever, square = _end_correction(s, peak, lo, hi, sigma)
        second = (var + mean * mean) * mass + square
        total = mass + extra
        unit = np.where(total == 0.0, 1.0, total)  # beyond 2^53 a whole number and its halves may be one float
        mean, mass = (mean * mass + lever) / unit, total
        var = np.maximum(second / unit - mean * mean, 0.0)
    return mass, peak + mean, var, scaling


def _end_correction(
    s: FloatArray, peak: FloatArray, lo: FloatArray, hi: FloatArray, sigma: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Euler-Maclaurin at half-integers, for f, (x - peak) f and (x - peak)^2 f, f scaled to 1 at the peak:

    sum = integral - [f']/24 + 7 [f''']/5760 - 31 [f^(5)]/967680 + ..., with f^(k) = (-1)^k He_k(t) f / sigma^k.
    """
    away, unit = (peak - s) / sigma, 1.0 / sigma
    total, lever, square = np.zeros_like(s), np.zeros_like(s), np.zeros_like(s)
    for end, sign in ((hi, 1.0), (lo, -1.0)):
        finite = np.isfinite(end)
        x = np.where(finite, end, 0.0)
        t = np.where(finite, (x - s) / sigma, 0.0)
        f = np.where(finite, np.exp(np.clip(0.5 * (away - t) * (away + t), -745.0, 1.0)), 0.0)
        he = [np.ones_like(t), t, t * t - 1.0]
        for k in range(2, 5):
            he.append(t * he[k] - k * he[k - 1])
        own, odd, even = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
        for k, weight in ((1, -1.0 / 24.0), (3, 7.0 / 5760.0), (5, -31.0 / 967680.0)):
            own += weight * -he[k] * unit**k
            odd += weight * k * he[k - 1] * unit ** (k - 1)
            if k > 1:
                even -= weight * k * (k - 1) * he[k - 2] * unit ** (k - 2)
        y = np.where(finite, x - peak, 0.0)
        total += sign * f * own
        lever += sign * f * (own * y + odd)
        square += sign * f * (own * y * y + 2.0 * odd * y + even)
    return total, lever, square


def _summed(
    s: FloatArray, lo: FloatArray, hi: FloatArray, sigma: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    peak, start, stop = _window(s, lo, hi, sigma)
    # The highest whole number need not be the clipped location: measure from a whole number next to it.
    base = np.clip(np.round(peak), np.ceil(lo), np.floor(hi))
    start = np.maximum(np.ceil(peak + start - 1.0), np.ceil(lo))
    stop = np.minimum(np.floor(peak + stop + 1.0), np.floor(hi))
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
    return mass, base + mean, var, scaling


def _expectation(
    s: FloatArray, lo: FloatArray, hi: FloatArray, sigma: float, g: Callable[[FloatArray], FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """(integral of g, integral of 1) against exp(-(x-s)^2 / 2 sigma^2) on [lo, hi], s > lo; g sees x, rows follow s.

    Where hi lies far below s the mass is at hi, and it is from there that the window reaches down.
    """
    peak, down, _ = _window(s, lo, np.maximum(hi, lo), sigma)
    start = np.maximum(lo, np.minimum(s - (FAR + 0.5) * sigma, peak + down))
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
    small = _is_gentle(c, r, sigma, lattice)
    if small.any():
        out[:, small] = _gentle_wall_loss(c[small] / sigma**2, r[small], sigma, lattice)
    if (~small).any():
        cc, w, zero = c[~small], r[~small], np.zeros_like(c[~small])
        both = np.stack([zero, cc])
        log_mass, mean, var = piece_moments(both, zero, w, sigma, True) if lattice else _within(both, w, sigma)
        out[0, ~small] = cc / sigma**2 * (w - cc / 2.0) + log_mass[0] - log_mass[1]
        out[1, ~small] = (w - mean[1]) / sigma**2
        out[2, ~small] = -var[1] / sigma**4
    return out[0].reshape(shape), out[1].reshape(shape), out[2].reshape(shape)


def _within(s: FloatArray, width: FloatArray, sigma: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """:func:`piece_moments` on [0, width] for locations inside it, without the care that others need."""
    start, stop = np.maximum(-FAR * sigma, -s), np.minimum(FAR * sigma, width - s)
    length = (stop - start)[..., None]
    x = start[..., None] + length * _X
    g = np.exp(-0.5 * np.square(x / sigma)) * _W
    total = g.sum(axis=-1)
    mean = (g * x).sum(axis=-1) / total
    var = (g * np.square(x - mean[..., None])).sum(axis=-1) / total
    return np.log(total * length[..., 0] / (sigma * _ROOT)), s + mean, var


def _is_gentle(change: FloatArray, width: FloatArray, sigma: float, lattice: bool) -> npt.NDArray[np.bool_]:
    """Where the loss is small enough to be had without cancellation (and, on integers, by a sum of bearable length)."""
    gentle: npt.NDArray[np.bool_] = change / sigma**2 * width <= 0.5
    return gentle & (np.minimum(width, (FAR + 1.0) * sigma) <= _LONGEST_SUM) if lattice else gentle


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


def clamped_loss(
    change: FloatArray, width: FloatArray, sigma: float, lattice: bool = False
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(h, h', h'') of the point mass at the far wall when noise is projected: the loss of the pair (l, l + change).

    h = ln Q(t) - ln Q(t + change), t = width - change, Q the tail mass: concave in change because ln Q is concave. For
    small h from the mass between the two, for large h with the quadratic parts of the logarithms taken apart. On whole
    numbers h is concave on the whole changes; between them it is read off the line that joins the neighbours.
    """
    c, w = np.broadcast_arrays(change, width)
    if lattice:
        low = np.minimum(np.floor(c), w - 1.0)
        (h_low, _, bend), (h_high, _, _) = (_clamped_loss(x, w, sigma, lattice) for x in (low, low + 1.0))
        slope = h_high - h_low
        return h_low + (c - low) * slope, slope, bend
    return _clamped_loss(c, w, sigma, lattice)


def _clamped_loss(
    c: FloatArray, w: FloatArray, sigma: float, lattice: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    zero, top = np.zeros(c.shape), np.full(c.shape, np.inf)
    step = 1.0 if lattice else 0.0
    near, mean, var = piece_moments(c - w, zero, top, sigma, lattice, relative=True)
    far, _, _ = piece_moments(-w, zero, top, sigma, lattice, relative=True)
    band, _, _ = piece_moments(c - w, zero, c - step, sigma, lattice, relative=True)
    share = np.exp(band - near)
    with np.errstate(divide="ignore", invalid="ignore"):
        h = np.where(share < 0.5, -np.log1p(-share), c * (w - c / 2.0) / sigma**2 + near - far)
    return h, (mean + (w - c)) / sigma**2, (var / sigma**2 - 1.0) / sigma**2


@dataclass(frozen=True, eq=False)
class GaussianOn:
    """Gaussian noise of a sigma, truncated to a support."""

    support: Support
    scale: float

    @property
    def noise_floor(self) -> float:
        if self.support.convex and not self.support.lattice:
            return 0.0
        least = self.support.shortest / self.scale
        # ends that moved with the origin, as for Laplace; from its end a piece has mass 0.34 min(1, length / sigma)
        ends = 2.0 + min(2.0 * self.support.lo.size, 20.0 / least)
        shifted = 4.0 * self.support.shift / self.scale * ends * 0.4 / (0.34 * min(1.0, least))
        return (self.support.lo.size + 8) * 64.0 * 2.0**-53 + shifted

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
        some = np.isfinite(total)
        share = np.exp(log_mass - np.where(some, total, 0.0)[..., None])
        centre = np.where(some, (share * mean).sum(axis=-1), lo[0])
        spread = (share * (var + np.square(mean - centre[..., None]))).sum(axis=-1)
        return total, centre, spread

    def log_share(self, q: FloatArray) -> FloatArray:
        """ln of the share of the untruncated noise that falls on the support."""
        share = self.moments(q)[0]
        if self.support.lattice:
            share = share - GaussianOn(Support.line(True), self.scale).moments(np.array(0.0))[0]
        return np.minimum(share, 0.0)

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
            gap, width = np.array(delta), np.array(self.support.hi[0] - self.support.lo[0])
            lattice = self.support.lattice
            h = float(wall_loss(gap, width, self.scale, lattice)[0])
            return h if _is_gentle(gap, width, self.scale, lattice) else h + self.noise_floor * max(1.0, h)
        near, _, d = self.support.extreme_pairs(delta)
        q = near.x
        kappa, middle, step = d / self.scale**2, q + d / 2.0, self.log_z_ratio(q, d)
        at_top = kappa * (self.support.hi[-1] - middle) - step
        at_bottom = kappa * (middle - self.support.lo[0]) + step
        worst = float(np.max(np.maximum(at_top, at_bottom), initial=0.0))
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

    def threshold(self, q: FloatArray, d: FloatArray, epsilon: float | FloatArray) -> FloatArray:
        """x*: the bad set of the ordered pair (q, q+d) is the support below it."""
        return (q + d / 2.0) + self.scale**2 / d * (self.log_z_ratio(q, d) - epsilon)

    def hockey(self, q: FloatArray, d: FloatArray, epsilon: float | FloatArray) -> FloatArray:
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
        # Across holes the bad set may lie farther away than the window above looks.
        rest = some & ~(small & self.support.convex)
        if rest.any():
            s, far, t = q[rest], (q + d)[rest], x[rest]
            own = self.moments(s, t)[0] - self.moments(s)[0]
            other = self.moments(far, t)[0] - self.moments(far)[0]
            gap = np.broadcast_to(epsilon, x.shape)[rest] + other - own
            value = -np.expm1(np.minimum(gap, 0.0)) + 2.0**-40
            out[rest] = np.maximum(out[rest], value * np.exp(own))
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
        weight = math.exp(epsilon) if epsilon < 700.0 else math.inf
        with np.errstate(invalid="ignore"):  # 0 times an infinite weight: not a number, read as unknown
            low = weight * q_low * far_low - p_high * rate_high
            high = weight * q_high * far_high - p_low * rate_low
        if self.support.convex and not self.support.lattice and math.isfinite(weight):
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
        """The untruncated profile of a pair at distance delta."""
        line = GaussianOn(Support.line(lattice), scale)
        return float(line.hockey(np.array([0.0]), np.array([delta]), epsilon)[0]) * (1.0 + 2.0**-36)
