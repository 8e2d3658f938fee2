"""Fast inversion of staircase noise around the true value: real or whole.

In units in which the mass beyond stair s is e^(-s epsilon), a tail W of the whole Z lies on stair j = floor(-ln W /
epsilon), a share h = (1 - W e^(j epsilon)) / (1 - e^-epsilon) of the way along it. Stair 0, around the true value, may
be short against the others; there the draw is counted from the middle, Z (1/2 - U) / (1 - e^-epsilon) widths away.
Whole numbers follow the same tails: the draw is floor(t) steps away where reals would be at t. Margins:
``docs/proofs/staircase.md``.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from inbounds._exact import Number
from inbounds.noise.staircase import Stairs
from inbounds.sampling import exact
from inbounds.sampling.entropy import Source
from inbounds.sampling.inversion import (
    FULL,
    LIBM,
    ROUND,
    Frame,
    Work,
    flip,
    near_end,
    round_one,
    round_to_cell,
    select,
    settle_piece,
    tail_mass,
    unit,
    whole_and_part,
)

__all__ = ["StairsKernel"]

_DEEPEST = 50.0  # e-foldings of the tail; farther out integers decide
_SURE = 1.0 + 2.0**-40  # a tail this much above that of stair 1 belongs to stair 0 whatever the rounding


class StairsKernel:
    """Staircase noise added to the true value, on a grid of a given step."""

    def __init__(self, noise: Stairs, step: float) -> None:
        self._noise = noise
        self._epsilon, self._fall = noise.epsilon, noise.fall
        self._z = z = noise.whole
        self._log_z = math.log(z)
        self._discrete = noise.lattice
        self._lead = 1.0 - noise.first / noise.width  # where on stair 0 the true value is
        self._ratio = ratio = noise.width / step
        self._near = ratio * z / self._fall  # steps on stair 0, for each unit of 1/2 - U
        self._stair_0 = math.exp(-noise.epsilon) * _SURE
        reach = _DEEPEST - min(self._log_z, 0.0)
        far = (3.0 * LIBM + (50.0 + 5.0 * reach) * ROUND) / self._fall + (LIBM + 3.0 * ROUND) * reach
        near = 2.6 * ROUND * z / self._fall + (1.0 - self._lead) * (2.0 * LIBM + 12.0 * ROUND)
        far, near = (ratio * margin * 1.02 + 8.0 * ROUND for margin in (far, near))
        self._margins = np.array([far, near])  # by the mask: 0, or -1 on stair 0
        self.frame = Frame.of(-math.inf, math.inf, step, ratio, reach, near)
        self._far_frame = self.frame._replace(margin=far)

    def many(self, w: Work, frame: Frame, source: Source) -> None:
        w.s.fill(0.5)
        w.z.fill(1.0)
        tail_mass(w, source)  # V into w.v; 1/2 - U into w.s, negative on the right
        np.log(w.v, out=w.a)
        np.add(w.a, self._log_z, out=w.a)
        np.multiply(w.v, self._z, out=w.v)  # W
        np.divide(w.a, -self._epsilon, out=w.e)
        np.floor(w.e, out=w.e)
        np.maximum(w.e, 0.0, out=w.e)  # j
        np.multiply(w.e, -self._epsilon, out=w.x)
        np.exp(w.x, out=w.x)
        np.divide(w.v, w.x, out=w.x)
        np.subtract(w.x, 1.0, out=w.x)
        np.divide(w.x, self._fall, out=w.x)  # -h
        np.subtract(w.x, w.e, out=w.x)
        np.add(w.x, self._lead, out=w.x)
        np.multiply(w.x, self._ratio, out=w.x)
        if self._discrete:
            np.add(w.x, 0.5, out=w.x)  # floor(t) is the nearest whole number to t - 1/2
        flip(w.x, w.s, w.bits)
        # stair 0, from the middle
        np.greater(w.v, self._stair_0, out=w.beyond)
        np.multiply(w.beyond, -1, out=w.mask)
        np.multiply(w.s, -self._near, out=w.v)
        select(w.x, w.v, w.mask, w.bits)
        np.less(w.a, -frame.reach, out=w.beyond)
        w.beyond &= w.mask == 0
        np.logical_or(w.unsure, w.beyond, out=w.unsure)
        if self._discrete:
            np.copyto(w.f, w.q)
            np.copyto(w.v, w.x)
        else:
            whole_and_part(w.q, frame.step, w.f, w.v)
            np.add(w.v, w.x, out=w.v)
        np.take(self._margins, w.mask, out=w.e, mode="wrap")
        round_to_cell(w, frame._replace(margin=w.e))

    def one(self, q: float, n: int) -> float | None:
        if near_end(n):
            return None
        away = 0.5 - unit(n)
        v = unit(n if away > 0.0 else n ^ FULL)
        w = v * self._z
        if w > self._stair_0:
            frame, t = self.frame, -away * self._near
        else:
            frame, log = self._far_frame, math.log(v) + self._log_z
            if log < -frame.reach:
                return None
            j = max(math.floor(-log / self._epsilon), 0)
            t = ((1.0 - w / math.exp(-j * self._epsilon)) / self._fall + j - self._lead) * self._ratio
            t -= 0.5 if self._discrete else 0.0
            t = -t if away > 0.0 else t
        if self._discrete:
            return round_one(int(q), t, frame)
        x = q / frame.step
        whole = round(x)
        return round_one(whole, x - whole + t, frame)

    def settle(self, q: Number, coordinate: int | None, guess: float, words: list[int], source: Source) -> int:
        law = StairsLaw(int(q) if self._discrete else Fraction(q), self._noise)
        return settle_piece(self.frame, law, guess, words, source, discrete=self._discrete)


class StairsLaw:
    """Enclosures of the masses of staircase noise around q, by integers."""

    def __init__(self, q: Fraction | int, noise: Stairs) -> None:
        self.q = q
        self.width, self.first, self.epsilon = map(Fraction, (noise.width, noise.first, noise.epsilon))
        self.unit = 1 if noise.lattice else 0

    def below(self, edge: Fraction | float, P: int) -> exact.Enclosure:
        if edge == -math.inf:
            return 0, 0
        if edge != math.inf and edge < self.q:
            return self._tail(self.q - Fraction(edge), P)
        centre, rest = self._tail(Fraction(0), P), self._tail(Fraction(self.unit), P)
        low, high = centre[0] + rest[0], centre[1] + rest[1]
        if edge == math.inf:
            return low, high
        above = self._tail(Fraction(edge) - self.q + self.unit, P)
        return low - above[1], high - above[0]

    def _tail(self, t: Fraction, P: int) -> exact.Enclosure:
        """(1 - h) e^(-j epsilon) + h e^(-(j + 1) epsilon)."""
        along = (t - self.first) / self.width + 1
        j = math.floor(along)
        part = along - j
        (low, high), (next_low, next_high) = (exact.exp_neg(k * self.epsilon, P) for k in (j, j + 1))
        num, den = part.numerator, part.denominator
        return ((den - num) * low + num * next_low) // den, exact.ceil_div((den - num) * high + num * next_high, den)

    def reach(self, P: int) -> Fraction | float:
        return math.inf
