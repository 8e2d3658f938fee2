"""From a scale to what it guarantees: epsilon(delta), delta(epsilon), Rényi DP, zCDP and Gaussian DP.

Every number returned is a :class:`~inbounds.numerics.Bound`: never below the truth, and marked exact or not. A *curve*
is the privacy of one mechanism at one scale; the functions at the end turn any curve into the other currencies.
Proofs: ``docs/proofs/``, one page per formula, named where it is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol, cast

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from inbounds._cached import cached_property
from inbounds._checks import FloatArray
from inbounds.domain import Box, Domain
from inbounds.noise import gaussian, laplace
from inbounds.noise.gaussian import GaussianOn
from inbounds.noise.laplace import LaplaceOn
from inbounds.noise.product import worst_sum
from inbounds.noise.support import Support, cells, lattice_cells
from inbounds.numerics import SLACK, Bound, certified_sup, width_up
from inbounds.sensitivity import L1, L2, Sensitivity, largest_norm

__all__ = ["Curve", "coarse", "curve", "delta_at", "epsilon_at", "gdp", "steepest", "zcdp"]

_DELTA_SLACK = 2.0**-33  # relative, on every delta
_EPSILON_NUDGE = 2.0**-45  # deltas are evaluated at an epsilon this much smaller, which can only raise them
_EPSILON_SHIFT = 2.0**-66  # and this much, for what walls 9.5 sigma or 48 b away can still do
_LARGEST_EPSILON = 1e6  # beyond, nothing is known
_RHO_RTOL = 1e-3  # half of how far zCDP may be above the truth
_RTOL = 2e-7  # how far apart the certified bounds of a supremum may stay


class Curve(Protocol):
    """The privacy of one mechanism at one scale."""

    def pure(self) -> Bound:
        """The smallest epsilon with delta = 0 (infinite where there is none)."""

    def delta(self, epsilon: float, *, target: float = math.nan, floor: float = 0.0) -> Bound:
        """The smallest delta for epsilon, or ``floor`` if that is more.

        ``target``: it is enough to know on which side of it delta lies.
        """

    def renyi(self, alpha: float, *, floor: float = 0.0) -> Bound:
        """Rényi divergence of order alpha > 1, or ``floor`` if that is more."""

    def gaussian(self) -> Bound:
        """A proven Gaussian-DP parameter (infinite where none is known)."""


def _up(value: float, slack: float = SLACK) -> float:
    return value * (1.0 + slack)


# ---------------------------------------------------------------- any pure guarantee implies the rest
# docs/proofs/dominating-pairs.md


def response_delta(pure: float, epsilon: float) -> float:
    """delta(epsilon) of randomised response at ``pure``: the most any pure-DP mechanism can have."""
    if epsilon >= pure:
        return 0.0
    return _up(-math.expm1(epsilon - pure) / (1.0 + math.exp(-pure)))


def response_renyi(pure: float, alpha: float) -> float:
    """Rényi divergence of randomised response at ``pure``."""
    if not pure < 300.0 / alpha:
        return pure
    rise = 2.0 * math.sinh(alpha * pure / 2.0) * math.sinh((alpha - 1.0) * pure / 2.0) / math.cosh(pure / 2.0)
    return min(pure, _up(math.log1p(rise) / (alpha - 1.0)))


def response_gdp(pure: float) -> float:
    """Gaussian-DP parameter of randomised response at ``pure``."""
    if math.isinf(pure):
        return math.inf
    # Phi^-1(1/2 + t), t = tanh(pure/2)/2, without losing small t
    t = math.tanh(pure / 2.0) / 2.0
    if t < 1e-3:
        return _up(2.0 * math.sqrt(2.0 * math.pi) * t * (1.0 + 1.05 * t * t), 2.0**-30)
    return _up(-2.0 * float(ndtri(1.0 / (1.0 + math.exp(pure)))), 2.0**-30) if pure < 700 else math.inf


def gaussian_delta(mu: float, epsilon: float) -> float:
    """delta(epsilon) of the Gaussian pair N(0, 1), N(mu, 1), rounded up."""
    return GaussianOn.plain_hockey(mu, 1.0, epsilon, lattice=False)


# ---------------------------------------------------------------- one dimension


@dataclass(frozen=True, eq=False)
class LineCurve:
    """Truncated noise on a one-dimensional support; docs/proofs/profile.md, docs/proofs/renyi.md."""

    noise: LaplaceOn | GaussianOn
    sensitivity: float
    rtol: float = _RTOL

    @property
    def _convex_gaussian(self) -> bool:
        support = self.noise.support
        return isinstance(self.noise, GaussianOn) and support.convex and not support.lattice

    @property
    def unwalled(self) -> bool:
        support = self.noise.support
        return support.convex and math.isinf(support.lo[0]) and math.isinf(support.hi[0])

    @property
    def plain_gaussian(self) -> bool:
        return self.unwalled and isinstance(self.noise, GaussianOn)

    @cached_property
    def _sides(self) -> list[LaplaceOn | GaussianOn]:
        """The noise, and its mirror image for the other order of each pair unless that changes nothing."""
        support = self.noise.support
        symmetric = support.convex and math.isinf(support.lo[0]) == math.isinf(support.hi[0])
        return [self.noise] if symmetric else [self.noise, self.noise.reflected()]

    @cached_property
    def _pure(self) -> Bound:
        return Bound(_up(self.noise.pure(self.sensitivity)), exact=True, reason="worst pair in closed form")

    def pure(self) -> Bound:
        return self._pure

    def steepest(self) -> float:
        """The largest loss per unit of distance (what the metric guarantee limits)."""
        return _up(self.noise.steepest())

    def _supremum(
        self,
        value: Callable[[LaplaceOn | GaussianOn, FloatArray, FloatArray], FloatArray],
        slopes: Callable[..., tuple[FloatArray, FloatArray]],
        calm: Callable[[FloatArray], FloatArray],
        inner: float,
        floor: float,
        target: float = math.nan,
        atol: float = 0.0,
        lean: float = 0.0,
    ) -> tuple[float, float]:
        """Certified bounds of the supremum of a divergence over all pairs within the sensitivity.

        ``calm``: a bound of it for pairs of locations at which at least a given share (its logarithm) of the noise is
        kept; ``inner``: its value far from every wall, for Gaussian noise on a convex domain its largest value. Cells
        of locations are bounded by the pair of their outer ends (docs/proofs/monotone-likelihood-ratio.md), by an
        enclosure of the slope and by ``calm`` (docs/proofs/profile.md). ``lean``: how much farther from the lower wall
        a location must be to count as far from it.
        """
        gap = self.sensitivity
        best = upper = floor
        for side in self._sides:
            support = side.support
            margin = (laplace.FAR if isinstance(side, LaplaceOn) else gaussian.FAR) * side.scale
            q, d = support.end_pairs(gap)
            blocked = d < gap
            if blocked.any():
                found = float(np.max(value(side, q[blocked], d[blocked])))
                found = math.inf if math.isnan(found) else found
                best, upper = max(best, found), max(upper, found)
            pieces: list[tuple[FloatArray, FloatArray]] = []
            for start, stop in zip(*support.sliding(gap), strict=True):
                home = max(int(np.searchsorted(support.lo, start, side="right")) - 1, 0)
                first, last = support.lo[home] + margin + lean, support.hi[home] - margin - gap
                if support.lattice:
                    first, last = np.ceil(first), np.floor(last)
                within = bool(support.hi[home] >= stop + gap)
                if within and first <= last:
                    best, upper = max(best, inner * (1.0 - SLACK)), max(upper, inner)
                    parts = [(start, first), (last, stop)]
                else:
                    parts = [(start, stop)]
                for low, high in parts:
                    if math.isfinite(low) and math.isfinite(high) and low <= high:
                        pieces.append((lattice_cells if support.lattice else cells)(low, high, 24))
            if not pieces:
                continue
            starts = np.concatenate([a for a, _ in pieces])
            stops = np.concatenate([b for _, b in pieces])

            def at(x: FloatArray, side: LaplaceOn | GaussianOn = side) -> FloatArray:
                return value(side, x, np.full_like(x, gap))

            def bound(a: FloatArray, b: FloatArray, enough: float, side: LaplaceOn | GaussianOn = side) -> FloatArray:
                outer = value(side, a, (b - a) + gap)
                wide = outer > enough
                if not wide.any():
                    return outer
                a, b = a[wide], b[wide]
                if not (isinstance(side, LaplaceOn) and side.support.lattice):
                    at_a, at_b = at(a, side), at(b, side)
                    low, high = slopes(side, a, b, at_a, at_b)
                    outer[wide] = np.minimum(outer[wide], _between(at_a, at_b, low, high, b - a))
                if not (side.support.convex and not side.support.lattice):
                    # ln Z is concave within a piece, so that it is least at an end of the cell
                    kept = np.minimum.reduce([side.log_share(q) for q in (a, b, a + gap, b + gap)])
                    outer[wide] = np.minimum(outer[wide], calm(kept))
                return outer

            found, certain = certified_sup(
                at,
                bound,
                starts,
                stops,
                rtol=self.rtol,
                atol=atol,
                known=best,
                ceiling=inner if self._convex_gaussian else math.inf,
                target=target,
                lattice=support.lattice,
            )
            best, upper = max(best, found), max(upper, certain)
        return best, max(best, upper)

    def delta(self, epsilon: float, *, target: float = math.nan, floor: float = 0.0) -> Bound:
        if self._pure <= epsilon:
            return Bound(0.0, exact=True, reason="pure loss within epsilon")
        nudged = epsilon * (1.0 - _EPSILON_NUDGE) - _EPSILON_SHIFT
        plain = self.noise.plain_hockey(self.sensitivity, self.noise.scale, nudged, self.noise.support.lattice)
        plain = _up(plain, _DELTA_SLACK)
        if self.unwalled:
            return Bound(min(plain, 1.0), exact=True, reason="untruncated profile")
        best, upper = self._supremum(
            lambda side, q, d: side.hockey(q, d, nudged),
            lambda side, a, b, at_a, at_b: side.hockey_slopes(a, b, self.sensitivity, nudged, at_a, at_b),
            self._calm_delta(nudged),
            plain,
            floor,
            target * (1.0 - 2.0 * _DELTA_SLACK),
        )
        upper = min(_up(upper, _DELTA_SLACK), response_delta(self._pure, nudged), 1.0)
        exact = upper <= _up(best, 1e-4) or best > target
        return Bound(upper, exact=exact, reason="certified supremum over pairs")

    def _calm_delta(self, epsilon: float) -> Callable[[FloatArray], FloatArray]:
        line = type(self.noise)(Support.line(self.noise.support.lattice), self.noise.scale)

        def bound(kept: FloatArray) -> FloatArray:
            out = np.full(kept.shape, np.inf)
            most = kept > -0.01
            log_share = kept[most] - 2.0**-46
            zero = np.zeros(log_share.shape)
            out[most] = line.hockey(zero, zero + self.sensitivity, epsilon + log_share) * np.exp(-log_share)
            return out

        return bound

    def renyi(self, alpha: float, *, floor: float = 0.0) -> Bound:
        gap = np.array([self.sensitivity])
        line = type(self.noise)(Support.line(self.noise.support.lattice), self.noise.scale)
        plain = _up(float(line.renyi(np.array([0.0]), gap, alpha)[0]), 2.0**-36)
        if self.unwalled:
            return Bound(plain, exact=True, reason="untruncated divergence")
        best, upper = self._supremum(
            lambda side, q, d: side.renyi(q, d, alpha),
            lambda side, a, b, _, __: side.renyi_slopes(a, b, self.sensitivity, alpha),
            lambda kept: plain - alpha / (alpha - 1.0) * (kept - 2.0**-46),
            plain,
            floor,
            atol=2.0**-48 * alpha / (alpha - 1.0),  # the logarithms it is made of are no better than that
            # the divergence looks at the tilted location q - (alpha - 1) d as well
            lean=(alpha - 1.0) * self.sensitivity if isinstance(self.noise, GaussianOn) else 0.0,
        )
        upper = min(_up(upper, 2.0**-36), response_renyi(self._pure, alpha))
        return Bound(upper, exact=upper <= _up(best, 1e-4), reason="certified supremum over pairs")

    def gaussian(self) -> Bound:
        if self._convex_gaussian:
            exact = not self.noise.support.bounded
            return Bound(_up(self.sensitivity / self.noise.scale), exact=exact, reason="log-concavity")
        return Bound(response_gdp(self._pure), exact=False, reason="pure loss")


def _between(at_a: FloatArray, at_b: FloatArray, low: FloatArray, high: FloatArray, h: FloatArray) -> FloatArray:
    """The most a function can reach on a cell, from its values at the ends and an enclosure of its slope."""
    with np.errstate(invalid="ignore", divide="ignore"):
        crossing = (at_a * -low + at_b * high - low * high * h) / (high - low)
    inside = ~((high <= 0.0) | (low >= 0.0))  # also where a slope is not a number
    top = np.where(inside, np.maximum(crossing, np.maximum(at_a, at_b)), np.maximum(at_a, at_b))
    return np.where(np.isfinite(top), top, np.inf)


@dataclass(frozen=True, eq=False)
class ClampedGaussianCurve:
    """Gaussian noise on the line, projected to a bounded domain; docs/proofs/clamp-and-ignore.md."""

    plain: LineCurve
    width: float
    convex: bool

    @cached_property
    def _pure(self) -> Bound:
        noise, gap = self.plain.noise, np.array(min(self.plain.sensitivity, self.width))
        loss = float(gaussian.clamped_loss(gap, np.array(self.width), noise.scale, noise.support.lattice)[0])
        return Bound(_up(loss), exact=self.convex, reason="mass at the far wall" if self.convex else "hull")

    def pure(self) -> Bound:
        return self._pure

    def delta(self, epsilon: float, *, target: float = math.nan, floor: float = 0.0) -> Bound:
        if self._pure <= epsilon:
            return Bound(floor, exact=self.convex, reason="pure loss within epsilon")
        plain, scale = self.plain.delta(epsilon), self.plain.noise.scale
        if self.plain.noise.support.lattice or not self.convex:
            value = min(float(plain), response_delta(self._pure, epsilon))
            return Bound(max(value, floor), exact=False, reason="untruncated profile or pure loss")
        mu, wall = self.plain.sensitivity / scale, max(self.width - self.plain.sensitivity, 0.0) / scale
        if epsilon / mu - mu / 2.0 <= wall:
            return plain
        # the bad set is the wall itself: Q(t) - e^epsilon Q(t + mu) = Q(t) (1 - e^(epsilon - loss))
        value = float(ndtr(-wall)) * -math.expm1(epsilon * (1.0 - _EPSILON_NUDGE) - self._pure)
        return Bound(max(min(_up(value, _DELTA_SLACK), float(plain)), floor), exact=True, reason="mass at the far wall")

    def renyi(self, alpha: float, *, floor: float = 0.0) -> Bound:
        value = min(self.plain.renyi(alpha), response_renyi(self._pure, alpha))
        return Bound(value, exact=False, reason="untruncated divergence or pure loss")

    def gaussian(self) -> Bound:
        plain = math.inf if self.plain.noise.support.lattice else float(self.plain.gaussian())
        return Bound(min(plain, response_gdp(self._pure)), exact=False, reason="untruncated noise or pure loss")


@dataclass(frozen=True, eq=False)
class LooseCurve:
    """A curve whose values bound a mechanism's without being attained by it."""

    inner: Curve
    pure_exact: bool

    def pure(self) -> Bound:
        return Bound(self.inner.pure(), exact=self.pure_exact, reason=self.inner.pure().reason)

    def delta(self, epsilon: float, *, target: float = math.nan, floor: float = 0.0) -> Bound:
        return self._loosen(self.inner.delta(epsilon, target=target, floor=floor))

    def renyi(self, alpha: float, *, floor: float = 0.0) -> Bound:
        return self._loosen(self.inner.renyi(alpha, floor=floor))

    def gaussian(self) -> Bound:
        return self._loosen(self.inner.gaussian())

    def _loosen(self, bound: Bound) -> Bound:
        return Bound(bound, exact=False, reason=f"{bound.reason} before projection")


# ---------------------------------------------------------------- boxes


@dataclass(frozen=True, eq=False)
class BoxCurve:
    """Independent noise of one scale on every coordinate of a box; docs/proofs/box.md."""

    family: str
    box: Box
    sensitivity: Sensitivity
    scale: float
    edges: str

    @cached_property
    def widths(self) -> FloatArray:
        return (
            np.array([width_up(a, b) for a, b in zip(self.box.lower, self.box.upper, strict=True)])
            if (self.box.dimension <= 64)
            else np.nextafter(self.box.width, np.inf)
        )

    def coordinate_loss(self, c: FloatArray, width: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """h, h', h'' of each coordinate for the chosen edges."""
        return _coordinate_loss(self.family, self.edges, self.scale, self.box, c, width)

    @cached_property
    def _pure(self) -> Bound:
        if self.family == "gaussian" and (self.edges == "ignore" or not self.box.bounded):
            return Bound(math.inf, exact=True, reason="unbounded outputs")
        if self.edges == "truncate" or self.family == "gaussian":
            total, _ = worst_sum(self.coordinate_loss, self.widths, self.sensitivity)
        else:
            total = largest_norm(self.sensitivity, self.widths, 1) / self.scale
        return Bound(_up(total, 2.0**-40), exact=not self.box.integer, reason="worst change vector")

    def pure(self) -> Bound:
        return self._pure

    @property
    def _gaussian_mu(self) -> float:
        """Gaussian DP of the truncated (convex, continuous) or projected Gaussian; infinite where it does not hold."""
        if self.family != "gaussian" or self.box.integer:
            return math.inf
        return _up(largest_norm(self.sensitivity, self.widths, 2) / self.scale, 2.0**-40)

    @property
    def plain_rho(self) -> float:
        """Zero-concentrated DP of Gaussian noise that is not truncated, whole numbers too; infinite for other noise."""
        if self.family != "gaussian" or self.edges == "truncate":
            return math.inf
        return _up((largest_norm(self.sensitivity, self.widths, 2) / self.scale) ** 2 / 2.0, 2.0**-40)

    def delta(self, epsilon: float, *, target: float = math.nan, floor: float = 0.0) -> Bound:
        if self._pure <= epsilon:
            return Bound(0.0, exact=self._pure.exact, reason="pure loss within epsilon")
        bounds = [1.0] if math.isinf(self._pure) else [response_delta(self._pure, epsilon)]
        mu = self._gaussian_mu
        if math.isfinite(mu):
            bounds.append(gaussian_delta(mu, epsilon * (1.0 - _EPSILON_NUDGE)))
        exact = self.edges == "ignore" and math.isfinite(mu)
        return Bound(min(bounds), exact=exact, reason="pure loss or Gaussian DP of the whole vector")

    def renyi(self, alpha: float, *, floor: float = 0.0) -> Bound:
        rho = min(self._gaussian_mu**2 / 2.0, self.plain_rho)
        value = min(response_renyi(self._pure, alpha), _up(alpha * rho))
        exact = self.edges == "ignore" and math.isfinite(self._gaussian_mu)
        return Bound(value, exact=exact, reason="pure loss or Gaussian DP of the whole vector")

    def gaussian(self) -> Bound:
        exact = self.edges == "ignore" and math.isfinite(self._gaussian_mu)
        return Bound(
            min(self._gaussian_mu, response_gdp(self._pure)),
            exact=exact,
            reason="pure loss or Gaussian DP of the whole vector",
        )


def _coordinate_loss(
    family: str, edges: str, scale: float, box: Box, c: FloatArray, width: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    if family == "gaussian":
        if edges == "truncate":
            return gaussian.wall_loss(c, width, scale, box.integer)
        return gaussian.clamped_loss(c, width, scale, box.integer)
    h, slope, curve = laplace.wall_loss(c, width, scale, box.integer)
    if width.size == box.dimension:
        open_ = np.isinf(box.lower) & np.isinf(box.upper)
        h, slope = np.where(open_, c / scale, h), np.where(open_, 1.0 / scale, slope)
        curve = np.where(open_, 0.0, curve)
    return h, slope, curve


# ---------------------------------------------------------------- the curve of a mechanism


def curve(
    family: str,
    domain: Domain,
    sensitivity: Sensitivity,
    scale: float,
    edges: str,
    *,
    support: Support | None = None,
) -> Curve:
    """The privacy curve of one family (``"laplace"``, ``"gaussian"``) on a domain at a scale.

    ``support``: the domain's, if it is at hand; it does not depend on the scale.
    """
    if isinstance(domain, Box):
        return BoxCurve(family, domain, sensitivity, scale, edges)
    sensitivity = cast(float, sensitivity)
    on = LaplaceOn if family == "laplace" else GaussianOn
    support = Support.of(domain) if support is None else support
    if edges == "truncate":
        if support.convex and support.bounded and not support.lattice:
            support = Support.between(width_up(domain.lower, domain.upper), lattice=False)
        return LineCurve(on(support, scale), min(sensitivity, float(support.hi[-1] - support.lo[0])))
    plain = LineCurve(on(Support.line(domain.lattice), scale), support.reach(sensitivity))
    if edges == "ignore":
        return plain
    if family == "laplace":
        # on a convex domain every point that is merged shares its likelihood ratio, so nothing is lost
        return plain if support.convex else LooseCurve(plain, pure_exact=True)
    if not support.bounded:
        unwalled = math.isinf(support.lo[0]) and math.isinf(support.hi[-1])
        return plain if unwalled and support.convex else LooseCurve(plain, pure_exact=unwalled)
    return ClampedGaussianCurve(plain, width_up(float(domain.lower), float(domain.upper)), support.convex)


def steepest(family: str, domain: Domain, sensitivity: Sensitivity, scale: float, edges: str) -> float:
    """The largest loss per unit of distance, in the sensitivity's norm on a box; docs/proofs/metric.md."""
    if isinstance(domain, Box):
        rates = _rates(family, domain, scale, edges)
        if isinstance(sensitivity, L1):
            return _up(float(np.max(rates)), 2.0**-40)
        return _up(float(np.sqrt(np.sum(np.square(rates))) if isinstance(sensitivity, L2) else np.sum(rates)), 2.0**-40)
    if edges == "truncate":
        on = LaplaceOn if family == "laplace" else GaussianOn
        return LineCurve(on(Support.of(domain), scale), 1.0).steepest()
    return _up(
        float(_rates(family, Box([domain.lower], [domain.upper], integer=domain.lattice), scale, edges)[0]), 2.0**-40
    )


def _rates(family: str, box: Box, scale: float, edges: str) -> FloatArray:
    """The largest loss per unit of distance of every coordinate: the slope at 0, on integers the loss of one step."""
    if family == "laplace" and edges != "truncate":
        return np.full(box.dimension, 1.0 / scale)
    if family == "gaussian" and (edges == "ignore" or not box.bounded):
        return np.full(box.dimension, np.inf)
    change = np.ones(box.dimension) if box.integer else np.zeros(box.dimension)
    loss, slope, _ = _coordinate_loss(family, edges, scale, box, change, box.width)
    return loss if box.integer else slope


# ---------------------------------------------------------------- other currencies, for any curve


def delta_at(of: Curve, epsilon: float) -> Bound:
    """The smallest delta found for epsilon; 0 only where it is 0."""
    found = of.delta(epsilon)
    if found == 0.0 and of.pure() > epsilon:  # too small for a float, but not nothing
        return Bound(math.ulp(0.0), exact=False, reason=found.reason)
    return found


def epsilon_at(of: Curve, delta: float) -> Bound:
    """The smallest epsilon found with delta(epsilon) certainly at most delta."""
    pure = of.pure()
    if delta == 0.0:
        return pure
    zero = of.delta(0.0, target=delta)
    if zero <= delta:
        return Bound(0.0, exact=zero.exact, reason=zero.reason)
    high = float(pure)
    if math.isinf(high):
        high = 1.0
        while (found := of.delta(high, target=delta)) > delta:
            high *= 2.0
            if high > _LARGEST_EPSILON:
                return Bound(math.inf, exact=False, reason=found.reason)
    low = 0.0

    def excess(epsilon: float) -> float:
        value = of.delta(epsilon)
        return math.log(value) - math.log(delta) if value > 0.0 else -60.0

    root = brentq(lambda e: max(excess(e), -60.0), low, high, xtol=1e-300, rtol=1e-9)
    step = 1e-9
    while of.delta(root, target=delta) > delta:
        root = min(root * (1.0 + step), high) if root > 0.0 else step
        step *= 2.0
    last = of.delta(root, target=delta)
    return Bound(min(root, float(pure)), exact=last.exact and pure.exact, reason=last.reason)


def zcdp(of: Curve) -> Bound:
    """rho = sup over alpha > 1 of D_alpha / alpha; docs/proofs/renyi.md.

    K(alpha) = (alpha - 1) D_alpha is convex, so that between two orders it lies below its chord; below the first order
    D_alpha is at most the first value, beyond the last at most the pure loss.
    """
    if isinstance(of, LooseCurve):
        return of._loosen(zcdp(of.inner))
    pure, mu = of.pure(), of.gaussian()
    if isinstance(of, BoxCurve) and of.plain_rho < min(_up(float(mu) ** 2 / 2.0), float(pure) ** 2 / 2.0):
        return Bound(of.plain_rho, exact=False, reason="Gaussian noise of the whole vector")
    if isinstance(of, LineCurve) and of.plain_gaussian:
        # on the integers too: the shifted theta function is largest at whole shifts (docs/proofs/renyi.md)
        return Bound(_up((of.sensitivity / of.noise.scale) ** 2 / 2.0), exact=True, reason="untruncated Gaussian")
    cap = min(_up(float(mu) ** 2 / 2.0), float(pure) ** 2 / 2.0)
    if math.isinf(cap):
        return Bound(math.inf, exact=mu.exact, reason=mu.reason if mu.exact else "no bound is known")
    if math.isinf(pure) or isinstance(of, BoxCurve):
        return Bound(cap, exact=mu.exact, reason=mu.reason)
    of = coarse(of)
    values: dict[float, tuple[float, bool]] = {}

    best = 0.0

    def rate(alpha: float) -> float:
        """D_alpha, or what gives the best rho found so far if that is more."""
        nonlocal best
        if alpha not in values:
            bound = of.renyi(alpha, floor=best * alpha)
            values[alpha] = (float(bound), bound.exact)
            best = max(best, float(bound) / alpha * (1.0 - 1e-4))
        return values[alpha][0]

    first = 1.0 + _RHO_RTOL
    for alpha in (64.0, 16.0, 4.0, 2.0):  # cheap orders first: they set the floor for the hard ones near 1
        rate(alpha)
    rate(first)
    orders = [first]
    while orders[-1] < 2.0 or pure / orders[-1] > best:
        orders.append(1.0 + (orders[-1] - 1.0) * 4.0)
        rate(orders[-1])
    upper = rate(first)
    for _ in range(40):
        tops = [_chord_top(a, b, rate(a), rate(b)) for a, b in pairwise(orders)]
        upper = max([rate(first), float(pure) / orders[-1], *tops])
        worst = [i for i, top in enumerate(tops) if top > best * (1.0 + 2.0 * _RHO_RTOL)]
        if not worst:
            break
        fresh = [1.0 + math.sqrt((orders[i] - 1.0) * (orders[i + 1] - 1.0)) for i in worst]
        orders = sorted([*orders, *fresh])
    exact = all(e for _, e in values.values())
    return Bound(min(_up(upper), cap), exact=exact, reason="certified supremum over orders, to 2e-3")


def coarse(of: Curve) -> Curve:
    """The same curve with suprema certified to 1e-5 only, for uses that are coarser than that anyway."""
    return replace(of, rtol=1e-5) if isinstance(of, LineCurve) else of


def _chord_top(a: float, b: float, rate_a: float, rate_b: float) -> float:
    """The largest value on [a, b] of (chord of (alpha-1) D) / (alpha (alpha-1))."""
    k_a, k_b = (a - 1.0) * rate_a, (b - 1.0) * rate_b
    slope = (k_b - k_a) / (b - a)
    at_zero = k_a - slope * a
    points = [a, b]
    if slope != 0.0 and at_zero * (at_zero + slope) >= 0.0:
        root = math.sqrt(at_zero * (at_zero + slope))
        points += [x for x in ((-at_zero + root) / slope, (-at_zero - root) / slope) if a < x < b]
    return max((at_zero + slope * x) / (x * (x - 1.0)) for x in points)


def gdp(of: Curve) -> Bound:
    """The smallest mu found for which the whole profile lies below that of N(0,1), N(mu,1).

    Both profiles are convex in e^epsilon: between two epsilons the mechanism's lies below its chord, the Gaussian one
    above its tangents. docs/proofs/dominating-pairs.md.
    """
    known, pure = of.gaussian(), of.pure()
    if known.exact or math.isinf(pure) or isinstance(of, BoxCurve) or pure > 60.0:
        return known
    of = coarse(of)
    grid = float(pure) * np.linspace(0.0, 1.0, 33)
    first = of.delta(0.0)
    least = 2.0 * float(ndtri(0.5 + min(float(first), 1.0 - 1e-16) / 2.0)) * (1.0 - 1e-6)
    # what the pair that is worst at epsilon = 0 asks for is needed anyway: only more than that is of interest
    floors = [gaussian_delta(least, float(e)) * (1.0 - 1e-6) if least > 0.0 else 0.0 for e in grid[1:-1]]
    deltas = [first, *(of.delta(float(e), floor=f) for e, f in zip(grid[1:-1], floors, strict=True))]
    profile = np.array([*deltas, 0.0], dtype=np.float64)
    exact = all(d.exact for d in deltas)

    def covered(mu: float) -> bool:
        return bool(_covers(mu, grid, profile))

    low, high = 0.0, min(float(known), response_gdp(pure)) * (1.0 + 1e-9)
    if not covered(high):
        return known
    while high - low > 1e-6 * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if covered(middle) else (middle, high)
    return Bound(min(high, float(known)), exact=exact, reason="certified comparison of profiles on a grid of 32 cells")


def _covers(mu: float, grid: FloatArray, profile: FloatArray) -> bool:
    """Whether the Gaussian profile at mu is certainly above the piecewise-linear (in e^epsilon) profile."""
    w = np.exp(grid)
    value = ndtr(mu / 2.0 - grid / mu) - w * ndtr(-mu / 2.0 - grid / mu)
    slope = -ndtr(-mu / 2.0 - grid / mu)
    margin = 1e-13 + 1e-12 * w * -slope
    if (profile > value - margin)[:-1].any():
        return False
    with np.errstate(divide="ignore", invalid="ignore"):
        kink = (value[1:] - value[:-1] + slope[:-1] * w[:-1] - slope[1:] * w[1:]) / (slope[:-1] - slope[1:])
    kink = np.clip(np.where(np.isfinite(kink), kink, w[:-1]), w[:-1], w[1:])
    chord = profile[:-1] + (profile[1:] - profile[:-1]) * (kink - w[:-1]) / (w[1:] - w[:-1])
    tangent = value[:-1] + slope[:-1] * (kink - w[:-1])
    tangent = np.maximum(tangent, value[1:] + slope[1:] * (kink - w[1:]))
    return bool((chord <= tangent - margin[1:]).all())
