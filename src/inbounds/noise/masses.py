"""Masses of Laplace and Gaussian noise by quick formulas, each with a bound on what rounding does to it.

One at a time without arrays, where the few microseconds of an array operation would count, and Gaussian ones also in
arrays. Where they lack digits, :mod:`inbounds.distribution` has them.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import erf, erfc

from inbounds._checks import FloatArray

__all__ = ["GaussianMasses", "LaplaceMasses", "Masses", "WholeGaussianMasses", "normal_mass"]

_ROUNDING = 2.0**-46  # of a mass, relative to the largest number in it: some dozens of units in the last place
_LARGE = 1024.0  # scales from which sums over whole numbers are integrals with a correction
_ROOT_HALF = math.sqrt(0.5)


class Masses:
    """Masses of noise around 0, one at a time and up to a constant factor, with a bound on what rounding does."""

    step = 0.0  # from one value to the next
    centre = 0.0  # the mass of 0

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def inner(self, y: float) -> float:
        """The mass of (0, y], accurate when small."""
        raise NotImplementedError

    def outer(self, y: float) -> float:
        """The mass of [y, inf) for y > 0, accurate when small."""
        raise NotImplementedError

    def total(self, pieces: list[tuple[float, float]], q: float) -> tuple[float, float]:
        """The mass of the pieces for the true value q, and how much it may be off."""
        mass = lost = 0.0
        for lo, hi in pieces:
            a, b = (lo - q, hi - q) if hi >= q else (q - hi, q - lo)
            if a <= 0.0:
                part = size = self.centre + self.inner(-a) + self.inner(b)
            else:
                part = size = self.outer(a)
                small = self.inner(b)
                if small < size:
                    part, size = small - self.inner(a - self.step), small
                else:
                    part -= self.outer(b + self.step)
            mass, lost = mass + part, lost + _ROUNDING * size
        return mass, lost


class LaplaceMasses(Masses):
    def inner(self, y: float) -> float:
        return -math.expm1(-y / self.scale)

    def outer(self, y: float) -> float:
        return math.exp(-y / self.scale)


class GaussianMasses(Masses):
    def inner(self, y: float) -> float:
        return math.erf(y / self.scale * _ROOT_HALF)

    def outer(self, y: float) -> float:
        return math.erfc(y / self.scale * _ROOT_HALF)


class WholeGaussianMasses(GaussianMasses):
    """On whole numbers: sums, from a table or, for large scales, by the first terms of Euler and Maclaurin."""

    step = 1.0

    def __init__(self, scale: float) -> None:
        super().__init__(scale)
        self.centre = 2.0 * _ROOT_HALF / (scale * math.sqrt(math.pi))
        self._sums: list[float] = []
        if scale < _LARGE:
            f = self.centre * np.exp(-0.5 * np.square(np.arange(1.0, 13.0 * scale + 2.0) / scale))
            self._sums = [0.0, *np.cumsum(f).tolist()]
            self._tails = [math.nan, *np.cumsum(f[::-1])[::-1].tolist(), 0.0]

    def _end(self, y: float) -> float:
        """By how much the integral from y on exceeds the sum from y + 1/2 on."""
        t = min(y / self.scale, 40.0)
        return self.centre * t * math.exp(-0.5 * t * t) / (24.0 * self.scale)

    def inner(self, y: float) -> float:
        if self._sums:
            return float(self._sums[int(min(y, len(self._sums) - 1))])
        return super().inner(y + 0.5) + self._end(y + 0.5) - (super().inner(0.5) + self._end(0.5))

    def outer(self, y: float) -> float:
        if self._sums:
            return float(self._tails[int(min(y, len(self._tails) - 1))])
        return super().outer(y - 0.5) - self._end(y - 0.5)


def normal_mass(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Twice the normal mass of all [a, b] along the last axis (none where a > b), and how much it may be off."""
    flip, a, b = b < 0.0, _ROOT_HALF * a, _ROOT_HALF * np.maximum(a, b)
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    inner, outer = erf(b), erfc(a)
    near = (a <= 0.0) | (inner < outer)
    mass, size = np.where(near, inner - erf(a), outer - erfc(b)), np.where(near, inner, outer)
    return mass.sum(axis=-1), _ROUNDING * size.sum(axis=-1)
