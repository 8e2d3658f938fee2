"""Laplace noise cut at a bound around the true value: the inversion of a truncated law whose ends go with the value."""

from __future__ import annotations

import math
from fractions import Fraction

from inbounds._exact import Number
from inbounds.sampling import exact
from inbounds.sampling.entropy import Source
from inbounds.sampling.inversion import Frame, Work
from inbounds.sampling.laplace import Laplace

__all__ = ["BoundedKernel"]


class BoundedKernel(Laplace):
    """Noise between -bound and bound. Its ends are exact, whatever the true value; rounding to the grid comes last."""

    def __init__(self, scale: float, bound: float, step: float, *, discrete: bool) -> None:
        super().__init__(scale, -bound, bound, step, discrete=discrete)
        self._wall = -bound / self._b
        self._bound, self._step = Fraction(bound), Fraction(step)
        self.frame = self.frame._replace(first=-math.inf, last=math.inf)

    def _walls(self, w: Work, frame: Frame) -> None:
        w.a.fill(self._wall)
        w.e.fill(self._wall)

    def _walls_one(self, q: float) -> tuple[float, float]:
        return self._wall, self._wall

    def settle(self, q: Number, coordinate: int | None, guess: float, words: list[int], source: Source) -> int:
        at = int(q) if self._discrete else Fraction(q)
        below = at - self._bound - (1 if self._discrete else 0)
        cells = exact.Cells(self._law(at), [(below, at + self._bound)])
        start = int(guess) if math.isfinite(guess) else 0
        bits = exact.Bits(words, source.word)
        return exact.find(cells, bits, 0, self._edge, start, -math.inf, math.inf)

    def _edge(self, k: int) -> Fraction:
        return Fraction(k) if self._discrete else (2 * k + 1) * self._step / 2
