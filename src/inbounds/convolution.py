"""Numerical composition: privacy-loss laws on a lattice, added up by fast Fourier transform.

The result is a certificate: every step errs upwards, and what the transform rounds is bounded and added.
docs/proofs/composition.md, sections 3 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.fft

from inbounds._cached import cached_property
from inbounds._checks import FloatArray
from inbounds.privacy import Curve, coarse

__all__ = ["Atoms", "Convolution", "atoms", "floor_of"]

_TAIL = 1e-22  # a delta that is given up as lost
_TOP = 600.0  # the largest loss that is looked at
_NUDGE = 2.0**-50  # relative, on a loss
_UNIT = 2.0**-53
_LONGEST = 1 << 21  # of a transform
_MANY = 1 << 32  # draws
_FFT = 16.0  # relative error of a transform in the 2-norm, in units of _UNIT log2(length)
_LARGEST_TILT = 4.0  # per step of the lattice: the largest loss has nearly all the weight then


# ---------------------------------------------------------------- one release


@dataclass(frozen=True, eq=False)
class Atoms:
    """Masses at the losses ``i * step``, i = -n..n, and ``lost`` at infinity: a law that dominates a release.

    The masses may add up to a little more than 1.
    """

    step: float
    masses: FloatArray
    lost: float

    @property
    def reach(self) -> int:
        """n."""
        return self.masses.size // 2

    @cached_property
    def losses(self) -> FloatArray:
        return np.arange(-self.reach, self.reach + 1, dtype=np.float64) * self.step

    def on(self, step: float) -> tuple[int, FloatArray]:
        """The same on the multiples of another step: (index of the first, masses).

        A mass between two multiples is split so that its weight and its mean of e^-loss stay; that dominates it.
        """
        if step == self.step:
            return -self.reach, self.masses
        place = self.losses / step
        place += np.abs(place) * _NUDGE  # a larger loss dominates
        below = np.floor(place)
        upper = self.masses * (np.expm1((below - place) * step) / math.expm1(-step))
        index = (below - below[0]).astype(np.int64)
        out = np.zeros(int(index[-1]) + 2)
        np.add.at(out, index, np.maximum(self.masses - upper, 0.0))
        np.add.at(out, index + 1, upper)
        return int(below[0]), out * (1.0 + 16.0 * _UNIT)


def floor_of(curve: Curve) -> tuple[float, float]:
    """(epsilon, delta) from which on delta falls no further, or is below what matters."""
    pure = float(curve.pure())
    high, least = (pure, 0.0) if pure <= _TOP else (_TOP, float(curve.delta(_TOP)))
    stays = least > _TAIL
    goal = least * (1.0 + 2.0**-40) if stays else _TAIL

    def enough(epsilon: float) -> bool:
        return float(curve.delta(epsilon, target=goal)) <= goal

    if not enough(high * 0.99):
        return high, least
    if enough(0.0):
        return 0.0, float(curve.delta(0.0))
    low, wanted = 0.0, 2.0**-42 if stays else 0.01  # where delta stays, the place has an atom: it must be met
    while high - low > wanted * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if enough(middle) else (middle, high)
    decimal = float(f"{high:.9g}")
    if stays and enough(decimal):
        high = decimal
    return high, float(curve.delta(high))


def atoms(curve: Curve, cells: int) -> Atoms:
    """Masses whose profile is at least the curve's everywhere: "connect the dots", from the largest loss down."""
    curve = coarse(curve)
    top, lost = floor_of(curve)
    if top == 0.0:  # it tells all, or nothing
        return Atoms(1.0, np.array([0.0, max(1.0 - lost, 0.0) + 2.0**-42, 0.0]), lost)
    step = top / cells
    profile = [float(curve.delta(i * step * (1.0 - _NUDGE))) for i in range(cells)]
    mirror = np.exp(-np.arange(cells + 1) * step)  # the mass at -loss, relative to that at the loss
    masses = np.zeros(cells + 1)
    height, slope, left = lost, 0.0, 1.0 - lost  # of the profile made so far (slope in e^epsilon); of the mass
    for i in reversed(range(cells)):
        above = max(profile[i], height - math.expm1(-step) * slope)
        steeper = (above - height) / math.expm1(step)
        mass = max(math.exp(step) * steeper - slope, 0.0)
        masses[i + 1] = min(mass, left / (1.0 + mirror[i + 1]))
        height, slope, left = above, steeper, left - mass * (1.0 + mirror[i + 1])
        if left <= 0.0:  # all the mass is placed: a chord to the mirror image does for smaller losses
            break
    masses *= 1.0 + 32.0 * _UNIT / -math.expm1(-step)
    below = masses[1:] * mirror[1:] * (1.0 + 16.0 * _UNIT)
    masses[0] = max(left, 0.0) + 2.0**-42
    return Atoms(step, np.concatenate([below[::-1], masses]), lost)


# ---------------------------------------------------------------- many


@dataclass(frozen=True, eq=False)
class _Tilted:
    """The law of the sum, weighted by e^(tilt * loss - log_size), from index ``start`` on; ``error`` in the 2-norm."""

    tilt: float
    log_size: float
    start: int
    weights: FloatArray
    whole: bool  # nothing is outside
    error: float
    beyond: float  # of the untilted law, above the last index
    slack: float  # relative


class Convolution:
    """The sum of independent losses: ``times`` draws from each of several laws."""

    def __init__(self, parts: Sequence[tuple[Atoms, int]]) -> None:
        self.parts = list(parts)
        finite = [float(np.sum(a.masses)) for a, _ in self.parts]
        draws = sum(k for _, k in self.parts)
        log_whole = math.fsum(k * math.log(f + a.lost) for (a, k), f in zip(self.parts, finite, strict=True))
        log_ratio = math.fsum(k * math.log1p(a.lost / f) for (a, k), f in zip(self.parts, finite, strict=True))
        #: the mass at infinity of the sum; all of it where there are so many draws that rounding would matter
        self.lost = 1.0
        if draws <= _MANY and log_whole < 700.0:
            # Not finite * (e^ratio - 1), where both factors leave the range of floats when most of a law is lost.
            slack = 2.0**-40 + 64.0 * _UNIT * draws
            self.lost = min(math.exp(log_whole) * -math.expm1(-log_ratio) * (1.0 + slack), 1.0)
        spread = math.sqrt(math.fsum(k * float(np.dot(a.masses, np.square(a.losses))) for a, k in self.parts))
        widest = max(float(a.losses[-1]) for a, _ in self.parts)
        self.step: float = max(min(a.step for a, _ in self.parts), (40.0 * spread + 8.0 * widest) / _LONGEST)
        self._laws = [(*a.on(self.step), k) for a, k in self.parts]
        self._kept: dict[float, _Tilted] = {}

    # -- the logarithm of the moment generating function

    def _cumulant(self, tilt: float) -> tuple[float, float]:
        """ln E[e^(tilt * loss)] and its derivative, of the finite part."""
        value = slope = 0.0
        for first, masses, times in self._laws:
            weights, losses, top = self._weighted(first, masses, tilt)
            total = float(np.sum(weights))
            value += times * (math.log(total) + top)
            slope += times * float(np.dot(weights, losses)) / total
        return value, slope

    def _weighted(self, first: int, masses: FloatArray, tilt: float) -> tuple[FloatArray, FloatArray, float]:
        losses = (first + np.arange(masses.size, dtype=np.float64)) * self.step
        with np.errstate(divide="ignore"):
            exponents = np.log(masses) + tilt * losses
        top = float(np.max(exponents))
        return np.exp(exponents - top), losses, top

    def _tilt(self, reached: Callable[[float, float, float], bool]) -> float:
        """The smallest of a ladder of tilts at which ``reached(tilt, cumulant, slope)`` holds."""
        most = _LARGEST_TILT / self.step
        low, high = 0.0, most
        while high - low > 1e-2 * high and high > 1e-9 * most:
            middle = math.sqrt(low * high) if low > 0.0 else high / 16.0
            low, high = (low, middle) if reached(middle, *self._cumulant(middle)) else (middle, high)
        return high

    def _tilted(self, tilt: float) -> _Tilted:
        if tilt not in self._kept:
            if len(self._kept) >= 4:
                self._kept.clear()
            self._kept[tilt] = self._transform(tilt)
        return self._kept[tilt]

    def _transform(self, tilt: float) -> _Tilted:
        low = sum(times * first for first, _, times in self._laws)
        count = 1 + sum(times * (masses.size - 1) for _, masses, times in self._laws)
        length = 1 << max(count - 1, 1).bit_length()
        log_size, middle = self._cumulant(tilt)
        start, whole = low, length <= _LONGEST
        if not whole:
            length = _LONGEST
            start = round(middle / self.step) - length // 2
        spectrum = np.ones(length // 2 + 1, dtype=np.complex128)
        draws, norm = 0, 0.0
        for first, masses, times in self._laws:
            weights, _, _ = self._weighted(first, masses, tilt)
            weights /= np.sum(weights)
            circle = np.zeros(length)
            np.add.at(circle, (first + np.arange(weights.size)) % length, weights)
            spectrum *= _power(scipy.fft.rfft(circle), times)
            draws += times
            norm = max(norm, float(np.linalg.norm(circle)))
        circle = scipy.fft.irfft(spectrum, length)
        weights = np.roll(circle, -(start % length))
        of_transform = _FFT * _UNIT * math.log2(length)
        error = draws * (of_transform + 4.0 * _UNIT) * norm + of_transform * float(np.linalg.norm(circle))
        beyond = 0.0
        if not whole:
            end = (start + length - 1) * self.step
            other = self._tilt(lambda _, __, slope: slope >= end)
            beyond = math.exp(min(self._cumulant(other)[0] - other * end + self._slack(other), 0.0))
        slack = self._slack(tilt)
        return _Tilted(tilt, log_size, start, weights, whole, error * math.exp(slack), beyond, slack)

    def _slack(self, tilt: float) -> float:
        """How far logarithms of weights may be off in all."""
        losses = math.fsum(k * max(abs(first), first + masses.size) for first, masses, k in self._laws) * self.step
        return 8.0 * _UNIT * (2000.0 * sum(k for *_, k in self._laws) + 4.0 * tilt * losses)

    # -- the profile of the sum

    def delta(self, epsilon: float) -> float:
        """Never below the delta of the composition at epsilon."""
        if self.lost >= 1.0:
            return 1.0
        return self._delta(self._tilted(self._tilt(lambda _, __, slope: slope >= epsilon)), epsilon)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon found at which :meth:`delta` is at most delta; infinite if there is none."""
        if not self.lost < delta:
            return math.inf
        goal = math.log(delta)
        first = self._tilt(lambda tilt, value, slope: value - tilt * slope <= goal)
        near = self._epsilon(first, delta)
        second = self._tilt(lambda _, __, slope: slope >= near)
        return near if first / 2.0 < second < 2.0 * first else min(near, self._epsilon(second, delta))

    def _epsilon(self, tilt: float, delta: float) -> float:
        law = self._tilted(tilt)
        low, high = 0.0, (law.start + law.weights.size) * self.step
        if not self._delta(law, high) <= delta:
            return math.inf
        if self._delta(law, 0.0) <= delta:
            return 0.0
        while high - low > 1e-9 * high:
            middle = (low + high) / 2.0
            low, high = (low, middle) if self._delta(law, middle) <= delta else (middle, high)
        return high

    def _delta(self, law: _Tilted, epsilon: float) -> float:
        epsilon *= 1.0 - _NUDGE
        first = math.floor(epsilon / self.step) + 1 - law.start
        if first < 0 and not law.whole:
            return 1.0  # what lies between is not seen
        first = max(first, 0)
        last = law.weights.size
        if law.tilt > 0.0:  # what is beyond is counted by the error
            last = min(last, first + math.ceil(60.0 / (law.tilt * self.step)))
        above = (law.start + np.arange(first, last)) * self.step - epsilon
        gain = -np.expm1(-above) * np.exp(-law.tilt * above)
        size = math.exp(min(law.log_size - law.tilt * epsilon, 700.0))
        finite = float(np.dot(gain, law.weights[first:last])) + float(np.linalg.norm(gain)) * law.error
        cut = math.exp(-60.0) if last < law.weights.size else 0.0
        return min(1.0, (finite + cut) * size * math.exp(law.slack) * (1.0 + 2.0**-40) + law.beyond + self.lost)


def _power(base: np.ndarray, exponent: int) -> np.ndarray:
    """Elementwise, for an exponent from 1 up, by repeated squaring: its rounding is known."""
    out = None
    while exponent > 1:
        if exponent & 1:
            out = base if out is None else out * base
        exponent >>= 1
        base = base * base
    return base if out is None else out * base
