"""The output distribution of a mechanism for one true value, in scipy's words.

Truncated noise has a density (or pmf) on the domain; clamped noise has in addition point masses at the ends of the
domain and of its holes; ignored edges leave the noise on the whole line. Everything is computed from the mass of pieces
relative to the true value, in log space, so that far tails and huge offsets keep their digits. Arrays broadcast.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtri_exp

from inbounds import _checks as check
from inbounds import _exact
from inbounds._checks import FloatArray
from inbounds.domain import Box, Line
from inbounds.errors import ParameterTypeError
from inbounds.noise import gaussian, laplace
from inbounds.numerics import log_sum

__all__ = ["BoxDistribution", "Distribution", "ErrorReport", "Errors"]

_TABLE = 4_000_000  # whole numbers a quantile table may hold


@dataclass(frozen=True)
class ErrorReport:
    """How far answers are from the truth, exactly: numbers, or arrays for an array of true values."""

    bias: Any
    sd: Any
    rmse: Any
    mae: Any
    at_lower: Any
    at_upper: Any


class Errors(ABC):
    """Mean, variance and errors of a law around a true value, from its moments."""

    _q: npt.NDArray[Any]  # as exact as the true values were given

    @abstractmethod
    def _moments(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(mean - q, variance, mean absolute error)."""

    @abstractmethod
    def _at_ends(self) -> list[FloatArray]:
        """The mass at the lower and at the upper end of the domain."""

    def mean(self) -> Any:
        return _exact.total(self._q, self._moments()[0], lattice=False)[()]

    def var(self) -> Any:
        return self._moments()[1][()]

    def std(self) -> Any:
        return np.sqrt(self._moments()[1])[()]

    def error(self) -> ErrorReport:
        """Bias, standard deviation, root mean squared and mean absolute error, and the mass at the ends."""
        bias, var, mae = self._moments()
        values = (bias, np.sqrt(var), np.sqrt(var + bias * bias), mae, *self._at_ends())
        return ErrorReport(*(float(v) if v.ndim == 0 else v for v in values))


class Distribution(Errors):
    """The law of the released value when the true value is ``q``; made by :meth:`inbounds.Laplace.at`.

    ``logpdf``/``pdf`` on continuous domains (for clamped noise: of the continuous part, next to :attr:`atoms`),
    ``logpmf``/``pmf`` on integers, ``cdf``, ``sf``, ``ppf``, ``mean``, ``var``, ``std`` and ``error``.
    """

    def __init__(self, family: str, domain: Line, scale: float, edges: str, q: npt.NDArray[Any]) -> None:
        self._family = family
        self._domain = domain
        self._scale = scale
        self._edges = edges
        self._q = q
        ends = np.array(domain.pieces, dtype=np.float64)
        if edges != "truncate":
            ends = np.array([[-np.inf, np.inf]])
        self._lo, self._hi = (_exact.difference(ends[:, i], q[..., None]) for i in (0, 1))
        self._log_z = log_sum(self._log_mass(self._lo, self._hi))

    def __repr__(self) -> str:
        return (
            f"<Distribution: {self._family} noise, scale {self._scale!r}, edges {self._edges!r}, on {self._domain!r}>"
        )

    # -- masses of pieces, relative to the true value

    def _log_mass(self, a: FloatArray, b: FloatArray) -> FloatArray:
        if self._family == "laplace":
            return laplace.log_mass(a, b, self._scale, self._domain.lattice)
        return gaussian.piece_moments(np.array(0.0), a, b, self._scale, self._domain.lattice)[0]

    def _log_below(self, x: npt.NDArray[Any]) -> FloatArray:
        """ln P(noisy value <= x) before projection."""
        return self._log_upto(_exact.difference(x, self._q))

    def _log_upto(self, away: FloatArray) -> FloatArray:
        """The same, from the distance from the true value."""
        top = np.minimum(self._hi, away[..., None])
        if self._domain.lattice:
            top = np.floor(top)
        return log_sum(self._log_mass(self._lo, top)) - self._log_z

    def _log_above(self, x: npt.NDArray[Any]) -> FloatArray:
        away = _exact.difference(x, self._q)[..., None]
        bottom = np.maximum(self._lo, np.floor(away) + 1.0 if self._domain.lattice else away)
        return log_sum(self._log_mass(bottom, self._hi)) - self._log_z

    def _cut(self, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The value below which noise lands at or below x after projection (clamped edges)."""
        cut = np.where(x < self._domain.lower, -np.inf, x)
        cut = np.where(x >= self._domain.upper, np.inf, cut)
        for (_, left), (right, _) in pairwise(self._domain.pieces):
            cut = np.where((x >= left) & (x < right), left + (right - left) / 2.0, cut)
        return cut

    # -- the public face

    @property
    def atoms(self) -> tuple[tuple[float, Any], ...]:
        """The points with positive probability of clamped noise on a continuous domain: (point, probability)."""
        if self._edges != "clamp" or self._domain.lattice:
            return ()
        out: list[tuple[float, Any]] = []
        pieces = self._domain.pieces
        middles = [a[1] + (b[0] - a[1]) / 2.0 for a, b in pairwise(pieces)]
        cuts = [-math.inf, *middles, math.inf]
        for i, (low, high) in enumerate(pieces):
            for point, a, b in ((low, cuts[i], low), (high, high, cuts[i + 1])):
                if math.isfinite(point):
                    away = (_exact.difference(np.array(end), self._q) for end in (a, b))
                    mass = np.exp(self._log_mass(*away) - self._log_z)
                    out.append((point, mass[()]))
        return tuple(out)

    def _log_kernel(self, x: npt.NDArray[Any]) -> FloatArray:
        y = _exact.difference(x, self._q) / self._scale
        if self._family == "laplace":
            unit = math.log(2.0 * self._scale)
            if self._domain.lattice:
                unit = math.log(2.0 / -math.expm1(-1.0 / self._scale) - 1.0)
            return -np.abs(y) - unit
        return -0.5 * y * y - math.log(self._scale * math.sqrt(2.0 * math.pi))

    def logpdf(self, x: Any) -> Any:
        if self._domain.lattice:
            check.refuse(
                "Distribution", "logpdf", "used on continuous domains", self._domain, "Use logpmf on Integers."
            )
        x = check.exact_numbers("Distribution", "x", x)
        value = self._log_kernel(x) - self._log_z
        inside = _exact.finite(x) if self._edges == "ignore" else self._domain.contains(x)
        return np.where(inside, value, np.where(x != x, np.nan, -np.inf))[()]

    def logpmf(self, x: Any) -> Any:
        if not self._domain.lattice:
            check.refuse(
                "Distribution", "logpmf", "used on Integers", self._domain, "Use logpdf on continuous domains."
            )
        x = check.exact_numbers("Distribution", "x", x)
        value = self._log_kernel(x) - self._log_z
        whole = _exact.finite(x) & _exact.whole(x)
        inside = whole if self._edges == "ignore" else self._domain.contains(x)
        if self._edges == "clamp":
            value = np.where(x == self._domain.lower, self._log_below(x), value)
            value = np.where(x == self._domain.upper, self._log_above(x - 1), value)
        return np.where(inside, value, np.where(x != x, np.nan, -np.inf))[()]

    def pdf(self, x: Any) -> Any:
        return np.exp(self.logpdf(x))

    def pmf(self, x: Any) -> Any:
        return np.exp(self.logpmf(x))

    def cdf(self, x: Any) -> Any:
        x = check.exact_numbers("Distribution", "x", x)
        cut = np.where(x != x, 0.0, self._cut(x) if self._edges == "clamp" else x)
        below = np.minimum(np.exp(self._log_below(cut)), 1.0)
        return np.where(x != x, np.nan, below)[()]

    def sf(self, x: Any) -> Any:
        """P(answer > x), accurate when small."""
        x = check.exact_numbers("Distribution", "x", x)
        cut = np.where(x != x, 0.0, self._cut(x) if self._edges == "clamp" else x)
        above = np.minimum(np.exp(self._log_above(cut)), 1.0)
        return np.where(x != x, np.nan, above)[()]

    def ppf(self, p: Any) -> Any:
        """The smallest answer x with cdf(x) >= p; NaN outside [0, 1]."""
        p = check.numbers("Distribution", "p", p)
        valid = (p >= 0.0) & (p <= 1.0)
        shape = np.broadcast_shapes(p.shape, self._q.shape)
        value = self._inverse(np.broadcast_to(np.where(valid, p, 0.5), shape))
        if self._edges != "ignore":
            value = self._domain.project(value)
        return np.where(valid, value, np.nan)[()]

    def _inverse(self, p: FloatArray) -> npt.NDArray[Any]:
        """The quantile before projection."""
        inner = np.where((p > 0.0) & (p < 1.0), p, 0.5)
        value = self._quantile_integer(inner) if self._domain.lattice else self._quantile(inner)
        # the ends themselves: no search by the cdf, which comes to 0 or 1 in floats long before, would stop there
        return np.where(p == 0.0, -np.inf, np.where(p == 1.0, np.inf, value))

    def _quantile(self, p: FloatArray) -> npt.NDArray[Any]:
        """Choose the piece, then invert within it."""
        share = np.exp(self._log_mass(self._lo, self._hi) - self._log_z[..., None])
        after = np.cumsum(share, axis=-1)
        piece = np.minimum((p[..., None] > after).sum(axis=-1), share.shape[-1] - 1)
        index = np.broadcast_to(piece[..., None], (*p.shape, 1))

        def pick(v: FloatArray) -> FloatArray:
            return np.take_along_axis(np.broadcast_to(v, (*p.shape, v.shape[-1])), index, axis=-1)[..., 0]

        lo, hi, own = pick(self._lo), pick(self._hi), pick(share)
        part = np.clip((p - (pick(after) - own)) / own, 0.0, 1.0)
        if self._family == "laplace":
            offset = laplace.quantile(part, lo, hi, self._scale)
        else:
            offset = _gaussian_quantile(part, lo, hi, self._scale)
        # near a finite end, count from the end: q + (lo - q) need not give lo back
        offset = np.where(part <= 0.0, lo, np.where(part >= 1.0, hi, offset))
        return _exact.total(self._q, offset, lattice=False)

    def _quantile_integer(self, p: FloatArray) -> npt.NDArray[Any]:
        reach = (laplace.FAR if self._family == "laplace" else gaussian.FAR) * self._scale + 2.0
        lo, hi = np.broadcast_to(self._lo[..., 0], p.shape), np.broadcast_to(self._hi[..., 0], p.shape)
        span = math.ceil(reach)
        if 2 * span + 1 <= _TABLE:
            steps = np.arange(-span, span + 1, dtype=np.float64)
            y = steps / self._scale
            table = np.cumsum(np.exp(-np.abs(y) if self._family == "laplace" else -0.5 * y * y))
            table = np.concatenate([[0.0], table])

            def upto(k: FloatArray) -> FloatArray:
                return table[np.clip(k + span + 1.0, 0, table.size - 1).astype(np.int64)]

            start = upto(lo - 1.0)
            wanted = start + p * (upto(hi) - start)
            k = np.searchsorted(table, wanted, side="left") - 1.0 - span
        else:
            low, high = lo - 0.5, hi + 0.5
            if self._family == "laplace":
                k = np.round(laplace.quantile(p, low, high, self._scale))
            else:
                k = np.round(_gaussian_quantile(p, low, high, self._scale))
        k = np.clip(k, lo, hi)

        # Tables and rounding may be off: settle by the cdf itself, stepping away from the guess and then bisecting.
        def enough(j: FloatArray) -> npt.NDArray[np.bool_]:
            return (np.exp(self._log_upto(j)) >= p) | (j >= hi)

        low, high, step = np.maximum(k - 1.0, lo - 1.0), k, 1.0
        while not (settled := enough(high)).all():
            low, high = np.where(settled, low, high), np.where(settled, high, np.minimum(high + step, hi))
            step *= 2.0
        step = 1.0
        while (loose := (low >= lo) & enough(low)).any():
            low, high = np.where(loose, np.maximum(low - step, lo - 1.0), low), np.where(loose, low, high)
            step *= 2.0
        while (high - low > 1.0).any():
            middle = np.floor((low + high) / 2.0)
            good = enough(middle)
            low, high = np.where(good, low, middle), np.where(good, middle, high)
        return _exact.total(self._q, high, lattice=True)

    def _moments(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(mean - q, variance, mean absolute error) after projection."""
        ends = np.array(self._domain.pieces if self._edges != "ignore" else [(-np.inf, np.inf)], dtype=np.float64)
        lo, hi = (_exact.difference(ends[:, i], self._q[..., None]) for i in (0, 1))
        if self._domain.lattice and self._edges == "clamp":
            lo, hi = lo + 1.0, hi - 1.0
        zero = np.zeros_like(lo)
        step = 1.0 if self._domain.lattice else 0.0
        # pieces split at the true value: the mean of each part then gives the absolute error too
        a = np.concatenate([lo, np.maximum(lo, zero)], axis=-1)
        b = np.concatenate([np.minimum(hi, zero - step), hi], axis=-1)
        moments = laplace.piece_moments if self._family == "laplace" else gaussian.piece_moments
        log_mass, mean, var = moments(np.array(0.0), a, b, self._scale, self._domain.lattice)
        share = np.exp(log_mass - self._log_z[..., None])
        points = [(_exact.difference(np.array(point), self._q), np.asarray(m)) for point, m in self._all_atoms()]
        if points:
            at = np.stack([np.broadcast_to(x, self._q.shape) for x, _ in points], axis=-1)
            share = np.concatenate([share, np.stack([m for _, m in points], axis=-1)], axis=-1)
            mean = np.concatenate([mean, at], axis=-1)
            var = np.concatenate([var, np.zeros_like(at)], axis=-1)
        present = share > 0.0
        mean, var = np.where(present, mean, 0.0), np.where(present, var, 0.0)
        centre = (share * mean).sum(axis=-1)
        spread = (share * (var + np.square(mean - centre[..., None]))).sum(axis=-1)
        return centre, spread, (share * np.abs(mean)).sum(axis=-1)

    def _all_atoms(self) -> tuple[tuple[float, Any], ...]:
        if self._edges == "clamp" and self._domain.lattice:
            ends = [x for x in (self._domain.lower, self._domain.upper) if math.isfinite(x)]
            return tuple((x, np.asarray(self.pmf(np.full(self._q.shape, float(x))))) for x in ends)
        return self.atoms

    def _at_ends(self) -> list[FloatArray]:
        at = [np.zeros(self._q.shape), np.zeros(self._q.shape)]
        for i, end in enumerate((float(self._domain.lower), float(self._domain.upper))):
            if math.isfinite(end) and self._domain.lattice:
                at[i] = np.asarray(self.pmf(np.full(self._q.shape, end)))
            for point, mass in self.atoms:
                if point == end:
                    at[i] = np.asarray(mass)
        return at


def _gaussian_quantile(p: FloatArray, lo: FloatArray, hi: FloatArray, sigma: float) -> FloatArray:
    """Quantile of the normal law at 0 on [lo, hi]: a start from the library, then Newton steps on our own masses."""
    flip = lo > 0.0
    low, high = np.where(flip, -hi, lo), np.where(flip, -lo, hi)
    part = np.where(flip, 1.0 - p, p)
    total = gaussian.piece_moments(np.array(0.0), low, high, sigma)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        from_left = np.logaddexp(log_ndtr(low / sigma), np.log(part) + total)
        from_right = np.logaddexp(log_ndtr(-high / sigma), np.log1p(-part) + total)
        left, right = ndtri_exp(np.minimum(from_left, 0.0)), -ndtri_exp(np.minimum(from_right, 0.0))
        start = np.where(from_left < from_right, left, right) * sigma
        narrow = (high - low) * np.maximum(np.abs(low), np.maximum(np.abs(high), sigma)) < 0.1 * sigma**2
        start = np.where(narrow, low + part * (high - low), start)
    x = np.clip(start, low, high)
    x = np.where(np.isnan(x), np.clip(0.0, low, high), x)
    for _ in range(3):
        log_density = -0.5 * np.square(x / sigma) - math.log(sigma * math.sqrt(2.0 * math.pi)) - total
        below = np.exp(gaussian.piece_moments(np.array(0.0), low, x, sigma)[0] - total)
        above = np.exp(gaussian.piece_moments(np.array(0.0), x, high, sigma)[0] - total)
        miss = np.where(part <= 0.5, below - part, (1.0 - part) - above)
        with np.errstate(over="ignore", invalid="ignore"):
            step = np.where(miss == 0.0, 0.0, miss * np.exp(np.minimum(-log_density, 700.0)))
        x = np.clip(x - np.clip(step, -sigma, sigma), low, high)
    return np.where(flip, -x, x)


class BoxDistribution:
    """Independent coordinates: the joint density, and each coordinate's own distribution as ``marginals[i]``."""

    def __init__(self, family: str, box: Box, scale: float, edges: str, q: FloatArray) -> None:
        self._box = box
        self.marginals = tuple(
            Distribution(family, box.coordinate(i), scale, edges, q[..., i]) for i in range(box.dimension)
        )

    def __repr__(self) -> str:
        return f"<BoxDistribution on {self._box!r}>"

    def _each(self, name: str, x: Any) -> npt.NDArray[Any]:
        values = check.exact_numbers("BoxDistribution", name, x)
        if values.ndim == 0 or values.shape[-1] != self._box.dimension:
            check.refuse(
                "BoxDistribution",
                name,
                f"of shape (..., {self._box.dimension})",
                f"shape {values.shape}",
                "",
                ParameterTypeError,
            )
        return values

    def _sum(self, method: str, x: Any) -> Any:
        values = self._each("x", x)
        total = np.asarray(getattr(self.marginals[0], method)(values[..., 0]))
        for i, marginal in enumerate(self.marginals[1:], start=1):
            total = total + getattr(marginal, method)(values[..., i])
        return total[()]

    def logpdf(self, x: Any) -> Any:
        return self._sum("logpdf", x)

    def logpmf(self, x: Any) -> Any:
        return self._sum("logpmf", x)

    def cdf(self, x: Any) -> Any:
        """P(every coordinate <= x)."""
        values = self._each("x", x)
        return np.prod(np.stack([m.cdf(values[..., i]) for i, m in enumerate(self.marginals)], axis=-1), axis=-1)[()]

    def ppf(self, p: Any) -> Any:
        """Coordinatewise quantiles (of the marginals)."""
        values = self._each("p", p)
        return np.stack([m.ppf(values[..., i]) for i, m in enumerate(self.marginals)], axis=-1)

    def mean(self) -> Any:
        return np.stack([m.mean() for m in self.marginals], axis=-1)

    def var(self) -> Any:
        return np.stack([m.var() for m in self.marginals], axis=-1)

    def std(self) -> Any:
        return np.sqrt(self.var())

    def error(self) -> ErrorReport:
        """Per coordinate."""
        parts = [m.error() for m in self.marginals]
        return ErrorReport(
            **{n: np.stack([getattr(p, n) for p in parts], axis=-1) for n in ErrorReport.__dataclass_fields__}
        )
