"""Fast inversion of Gaussian noise: on an interval, a half-line or the line, real or whole, and on spans.

All by the certified functions of :mod:`inbounds.sampling.normal`: no error of a library is assumed.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from inbounds._checks import FloatArray
from inbounds._exact import Number
from inbounds.sampling import exact, normal
from inbounds.sampling.entropy import Source
from inbounds.sampling.grid import Guide, locate, padded, positions
from inbounds.sampling.inversion import (
    CHUNK,
    FULL,
    ROUND,
    Frame,
    Indices,
    Settler,
    Work,
    flip,
    mass_beyond,
    near_end,
    round_one,
    round_to_cell,
    settle_piece,
    tail_mass,
    tail_of_side,
    to_unit,
    unit,
    whole_and_part,
    within,
)
from inbounds.sampling.rows import REACH, Rows, narrow_rows, wide_rows

__all__ = ["Gaussian", "GaussianBySums", "GaussianOnManySpans", "GaussianOnSpans", "is_wide", "on_spans"]

_DEEPEST = 10.0  # standard deviations from the true value; farther out integers decide
_CUT = normal.TAIL_END  # an end farther away weighs less than 2^-146
_LEAST = 2.0**-76  # tails smaller than this are left to integers
#: Below this sigma whole numbers are drawn from tables of sums.
TABLED_BELOW = 4096.0
_MOST = 0.503  # and, on spans, those larger than this


def _effective(scale: float, discrete: bool) -> float:
    return scale / (1.0 + 1.0 / (24.0 * scale * scale)) if discrete else scale


def is_wide(lower: Any, upper: Any, scale: float, *, discrete: bool) -> Any:
    """Which of the two forms of the inverse is accurate."""
    return upper - lower + (1.0 if discrete else 0.0) >= _effective(scale, discrete)


def _wide_error(reach: Any) -> Any:
    """Bound on the error of the distance from the true value, in standard deviations."""
    return (52.0 + 2.5 * normal.TAIL_ERROR + (4.2 + normal.INVERSE_ERROR) * np.maximum(reach, 1.0)) * ROUND


class Gaussian:
    """One piece that holds the true value; real, or whole numbers with sigma of 64 and more.

    Wide pieces: a tail V of the whole Z is Phi(-x) - Phi(-distance of the end / sigma) for the draw at sigma x. Narrow
    ones (width < sigma) work from the middle, by Phi - 1/2, where tails would cancel.

    Whole numbers: the sum from j on is Phi(-(j - 1/2) (1 + 1/24 sigma^2) / sigma), all but exactly (the first term of
    the Euler-Maclaurin formula as a shift), so the draw is that of a slightly narrower normal law, rounded; the second
    term is added to the margin.
    """

    def __init__(self, scale: float, lower: Any, upper: Any, step: Any, *, discrete: bool) -> None:
        self._reaching = 0.5 if discrete else 0.0
        self._sigma = sigma = _effective(scale, discrete)
        width = upper - lower + 2.0 * self._reaching
        ratio = sigma / step
        self._wide = bool(np.all(is_wide(lower, upper, scale, discrete=discrete)))
        self._line = bool(np.all(np.isneginf(lower) & np.isposinf(upper)))
        if self._wide:
            reach = np.minimum(width / sigma * (1.0 + 1e-9) + 1e-9, _DEEPEST)
            margin = ratio * _wide_error(reach)
        else:
            reach = np.minimum(width / sigma, 1.0)
            margin = width / step * (3.3 * normal.HALF_ERROR + normal.HALF_INVERSE_ERROR + 20.0) * ROUND
        margin = margin * 1.05 + 8.0 * ROUND
        if discrete:
            margin = margin + (0.004 * reach**3 + 0.009 * reach + 0.009) / sigma**3
        self.frame = Frame.of(lower, upper, step, ratio, reach, margin)
        self._discrete = discrete
        self._law: Any = partial(exact.Gaussian, scale=scale)
        if discrete:
            self._law = partial(exact.DiscreteGaussian, tails=exact.GaussianTails(scale))

    def many(self, w: Work, frame: Frame, source: Source) -> None:
        whole_and_part(w.q, frame.step, w.f, w.x)
        if not self._line:
            np.subtract(w.q, frame.lower, out=w.a)
            np.subtract(frame.upper, w.q, out=w.e)
            for x in (w.a, w.e):
                if self._discrete:
                    np.add(x, self._reaching, out=x)
                np.divide(x, self._sigma, out=x)
        if self._wide:
            self._from_tail(w, frame, source)
            flip(w.v, w.s, w.bits)
        else:
            self._from_middle(w)
        np.multiply(w.v, frame.ratio, out=w.v)
        np.subtract(w.x, w.v, out=w.v)
        round_to_cell(w, frame)

    def _from_tail(self, w: Work, frame: Frame, source: Source) -> None:
        for x in (w.a, w.e):
            if self._line:
                x.fill(0.0)
            else:
                np.clip(x, 0.0, _CUT, out=x)
                normal.tail(x, x, w.normal)
        mass_beyond(w, 0.5, source)
        normal.tail_inverse(w.v, w.v, w.normal)
        np.greater(w.v, frame.reach, out=w.beyond)
        np.logical_or(w.unsure, w.beyond, out=w.unsure)

    def _from_middle(self, w: Work) -> None:
        normal.half(w.a, w.a, w.normal)  # L
        normal.half(w.e, w.e, w.normal)
        np.add(w.a, w.e, out=w.z)
        to_unit(w.words, w.bits, w.v)
        np.multiply(w.v, w.z, out=w.v)
        np.subtract(w.a, w.v, out=w.v)  # from the middle of the law to the left
        normal.half_inverse(w.v, w.v, w.normal)
        w.unsure.fill(False)

    def one(self, q: float, n: int) -> float | None:
        if near_end(n):
            return None
        frame = self.frame
        a, e = (q - frame.lower + self._reaching) / self._sigma, (frame.upper - q + self._reaching) / self._sigma
        if self._wide:
            a, e = normal.tail_one(min(a, _CUT)), normal.tail_one(min(e, _CUT))
            left = 0.5 - a
            z = left + (0.5 - e)
            right = unit(n) * z >= left
            t = normal.tail_inverse_one(unit(n ^ FULL) * z + e if right else unit(n) * z + a)
            if not t <= frame.reach:
                return None
            if not right:
                t = -t
        else:
            a, e = normal.half_one(a), normal.half_one(e)
            t = normal.half_inverse_one(unit(n) * (a + e) - a)
        x = q / frame.step
        whole = round(x)
        return round_one(whole, t * frame.ratio + (x - whole), frame)

    def settle(self, q: Number, coordinate: int | None, guess: float, words: list[int], source: Source) -> int:
        law = self._law(int(q) if self._discrete else q)
        return settle_piece(self.frame.at(coordinate), law, guess, words, source, discrete=self._discrete)


class GaussianBySums:
    """Whole numbers with sigma below 4096: the tail sums T(j) of exp(-i^2 / 2 sigma^2) over i >= j from a table.

    The middle, of weight 1, is split evenly between the sides; a tail V Z plus the sum beyond the end lies between
    T(j + 1) and T(j) for the draw j steps away. Here ``margin`` is relative to that sum.
    """

    def __init__(self, scale: float, lower: Any, upper: Any) -> None:
        self._tails = exact.GaussianTails(scale)
        # up to the last weight above 2^-150
        count = math.ceil(scale * math.sqrt(2.0 * 150.0 * math.log(2.0))) + 2
        y = np.arange(count + 2.0) ** 2 / (2.0 * scale * scale)
        weights = np.where(y <= normal.DECAY_END, normal.decay(np.minimum(y, normal.DECAY_END)), 0.0)
        self._sums = np.cumsum(weights[::-1])[::-1].copy()
        self._count = count
        self._unbounded = not np.all(np.isfinite(upper - lower))
        ascending = np.ascontiguousarray(self._sums[:0:-1])
        self._guide = Guide(ascending, _LEAST, 2.0 * self._sums[0])
        span = np.minimum(upper - lower, count)
        whole = 1.0 + self._sums[1] - self._sums[np.asarray(span, dtype=np.int64) + 1]
        one = np.ones_like(lower) if isinstance(lower, np.ndarray) else 1.0
        entry = normal.DECAY_ERROR + 1.3 * scale + 4.0
        margin = 48.0 + 2.0 * (130.0 + entry) + (8.0 + 2.0 * entry) * self._sums[1] / whole
        self.frame = Frame.of(lower, upper, one, scale, math.inf, margin * 1.02 * ROUND)
        self._above = np.concatenate([[math.inf], self._sums[1:]])  # the middle has no upper edge
        self._list: list[float] = self._sums.tolist()

    def many(self, w: Work, frame: Frame, source: Source) -> None:
        sums = self._sums
        np.subtract(w.q, frame.lower, out=w.a)
        np.subtract(frame.upper, w.q, out=w.e)
        for x in (w.a, w.e):
            if self._unbounded:
                np.minimum(x, self._count, out=x)
            np.copyto(w.bits, x, casting="unsafe")
            np.take(sums[1:], w.bits, out=x, mode="clip")  # from one step past the end on
        mass_beyond(w, sums[1] + 0.5, source)
        steps = self._count + 1 - self._guide.locate(w.v)
        np.multiply(w.v, frame.margin, out=w.x)
        np.take(self._above, steps, out=w.z, mode="clip")
        np.subtract(w.z, w.v, out=w.z)
        np.less_equal(w.z, w.x, out=w.beyond)
        np.logical_or(w.unsure, w.beyond, out=w.unsure)
        np.take(sums[1:], steps, out=w.z, mode="clip")
        np.subtract(w.v, w.z, out=w.z)
        np.less_equal(w.z, w.x, out=w.beyond)
        np.logical_or(w.unsure, w.beyond, out=w.unsure)
        np.less(w.v, _LEAST, out=w.beyond)
        np.logical_or(w.unsure, w.beyond, out=w.unsure)
        np.copyto(w.z, steps)
        flip(w.z, w.s, w.bits)
        np.subtract(w.q, w.z, out=w.k)
        np.clip(w.k, frame.first, frame.last, out=w.k)

    def one(self, q: float, n: int) -> float | None:
        if near_end(n):
            return None
        frame, sums = self.frame, self._list
        a, e = (sums[int(min(d, self._count)) + 1] for d in (q - frame.lower, frame.upper - q))
        left = sums[1] + 0.5 - a
        z = left + (sums[1] + 0.5 - e)
        right = unit(n) * z >= left
        p = unit(n ^ FULL) * z + e if right else unit(n) * z + a
        low, high = 0, self._count + 1  # sums[low] >= p > sums[high], reading sums[0] as infinite
        while high - low > 1:
            middle = (low + high) // 2
            if sums[middle] >= p:
                low = middle
            else:
                high = middle
        slack = frame.margin * p
        if not (p >= _LEAST and p - sums[high] > slack and (low == 0 or sums[low] - p > slack)):
            return None
        return within(int(q) + (low if right else -low), frame.first, frame.last)

    def settle(self, q: Number, coordinate: int | None, guess: float, words: list[int], source: Source) -> int:
        law = exact.DiscreteGaussian(int(q), self._tails)
        return settle_piece(self.frame.at(coordinate), law, guess, words, source, discrete=True)


def on_spans(scale: float, ends: FloatArray, step: float) -> GaussianOnSpans | GaussianOnManySpans:
    """The kernel for pieces with holes between them."""
    narrow = ends[-1, 1] - ends[0, 0] < scale
    rows = (narrow_rows if narrow else wide_rows)(scale, ends)
    return GaussianOnManySpans(scale, ends, step) if rows is None else GaussianOnSpans(scale, ends, step, rows)


class GaussianOnSpans:
    """Real pieces with holes between them, by tables over the true values.

    The mass of the domain up to the draw, U Z, and a constant of the part in which the draw lies (see ``rows``) make a
    value of the normal distribution function: of a tail, or on narrow domains (one standard deviation wide) of Phi less
    1/2. A draw computed in the wrong part comes out at an end of a piece or outside: integers decide.
    """

    def __init__(self, scale: float, ends: FloatArray, step: float, rows: Rows) -> None:
        self._sigma, self._rows = scale, rows
        self._lo, self._hi = ends[:, 0].copy(), ends[:, 1].copy()
        width = float(self._hi[-1] - self._lo[0])
        self._wide = width >= scale
        if self._wide:
            reach = min(width / scale * (1.0 + 1e-9) + 1e-9, REACH)
            error = 1.26 * (37.0 + rows.whole_error) + rows.constant_error
            margin = scale / step * (error + (2.2 + normal.INVERSE_ERROR) * max(reach, 1.0)) * ROUND
        else:
            reach = 1.0
            filled = math.fsum(self._hi - self._lo)
            error = width * (1.65 * normal.HALF_ERROR + normal.HALF_INVERSE_ERROR + 13.0)
            margin = (error + filled * 3.3 * rows.whole_error) / step * ROUND
        self.frame = Frame.of(self._lo[0], self._hi[-1], step, scale / step, reach, margin * 1.05 + 8.0 * ROUND)
        self._first, self._last = positions(self._lo, self._hi, step)
        self._law: Any = partial(exact.Gaussian, scale=scale)
        self._settler = Settler(ends, step)

    def many(self, w: Work, frame: Frame, source: Source) -> None:
        self._rows.find(w)
        to_unit(w.words, w.bits, w.v)
        self._rows.part(w)
        if self._wide:
            np.right_shift(w.found, 63, out=w.mask)  # -1 on the left
            np.bitwise_xor(w.found, w.mask, out=w.found)
            np.invert(w.mask, out=w.mask)
            tail_of_side(w, source)
            np.add(w.v, w.e, out=w.v)
            np.clip(w.v, _LEAST, _MOST, out=w.e)
            np.not_equal(w.v, w.e, out=w.beyond)
            np.logical_or(w.unsure, w.beyond, out=w.unsure)
            normal.tail_inverse(w.e, w.v, w.normal)
            np.greater(w.v, frame.reach, out=w.beyond)
            np.logical_or(w.unsure, w.beyond, out=w.unsure)
            np.invert(w.mask, out=w.mask)
            flip(w.v, w.mask.view(np.float64), w.bits)
        else:
            np.multiply(w.v, w.z, out=w.v)
            np.add(w.v, w.e, out=w.v)
            normal.half_inverse(w.v, w.v, w.normal)
            w.unsure.fill(False)
        # the draw lies in that piece, and not next to its ends
        np.multiply(w.v, self._sigma, out=w.x)
        slack = 2.0 * frame.margin * frame.step
        self._lo.take(w.found, out=w.a, mode="clip")
        np.subtract(w.a, w.q, out=w.a)
        np.add(w.a, slack, out=w.a)
        np.greater_equal(w.x, w.a, out=w.beyond)
        np.invert(w.beyond, out=w.beyond)
        np.logical_or(w.unsure, w.beyond, out=w.unsure)
        self._hi.take(w.found, out=w.a, mode="clip")
        np.subtract(w.a, w.q, out=w.a)
        np.subtract(w.a, slack, out=w.a)
        np.less_equal(w.x, w.a, out=w.beyond)
        np.invert(w.beyond, out=w.beyond)
        np.logical_or(w.unsure, w.beyond, out=w.unsure)
        whole_and_part(w.q, frame.step, w.f, w.x)
        np.multiply(w.v, frame.ratio, out=w.v)
        np.add(w.v, w.x, out=w.v)
        self._first.take(w.found, out=w.a, mode="clip")
        self._last.take(w.found, out=w.e, mode="clip")
        round_to_cell(w, frame._replace(first=w.a, last=w.e))

    def one(self, q: float, n: int) -> float | None:
        if near_end(n):
            return None
        frame = self.frame
        z, constant, piece = self._rows.one(q, unit(n))
        if self._wide:
            right = piece >= 0
            p = unit(n ^ FULL if right else n) * z + constant
            if not _LEAST <= p <= _MOST:
                return None
            t = normal.tail_inverse_one(p)
            if not t <= frame.reach:
                return None
            piece, t = (piece, t) if right else (-1 - piece, -t)
        else:
            t = normal.half_inverse_one(unit(n) * z + constant)
        slack = 2.0 * frame.margin * frame.step
        if not self._lo[piece] - q + slack <= t * self._sigma <= self._hi[piece] - q - slack:
            return None
        x = q / frame.step
        whole = round(x)
        position = round_one(whole, t * frame.ratio + (x - whole), frame)
        return None if position is None else within(position, self._first[piece], self._last[piece])

    def settle(self, q: Number, coordinate: int | None, guess: float, words: list[int], source: Source) -> int:
        return self._settler(self._law(q), guess, words, source)


class GaussianOnManySpans:
    """Real pieces with holes between them, for which tables over the true values would be too large.

    With the mass of every hole, and of what lies beyond the ends, a tail V Z of the domain becomes the tail Phi(-x) of
    the whole law: the missing mass beyond the draw is added, hole by hole from the outside, until the draw lies in a
    piece. A draw computed in the wrong piece, or on the wrong side of the true value, comes out at an end or outside:
    integers decide.
    """

    def __init__(self, scale: float, ends: FloatArray, step: float) -> None:
        self._sigma = sigma = scale
        self._lo, self._hi = ends[:, 0].copy(), ends[:, 1].copy()
        self._hi_table = padded(self._hi)
        count = len(ends)
        self._ends = ends.reshape(-1).copy()
        self.chunk = max(1, min(CHUNK, 16_384 // count))
        self.arrays_only = count > 32  # one by one would be slower than an array of one
        reach = min(float(self._hi[-1] - self._lo[0]) / sigma * (1.0 + 1e-9) + 1e-9, _DEEPEST)
        tail = normal.TAIL_ERROR
        least = self._least()
        off = count * (tail + 4.0) * ROUND
        whole = off / (least - 2.0 * off) if least > 4.0 * off else math.inf
        missing = count * (2.6 * tail + 6.0 * max(reach, 1.0)) * ROUND
        ratio = sigma / step
        self.frame = Frame.of(
            self._lo[0],
            self._hi[-1],
            step,
            ratio,
            reach,
            ratio * (_wide_error(reach) + 1.26 * whole + missing) * 1.05 + 8.0 * ROUND,
        )
        self._first, self._last = positions(self._lo, self._hi, step)
        self._law: Any = partial(exact.Gaussian, scale=scale)
        self._settler = Settler(ends, step)
        self._pieces: list[tuple[float, float]] = [tuple(pair) for pair in ends.tolist()]

    def _least(self) -> float:
        """A lower bound of the mass of the domain, over all true values in it.

        The piece of the true value alone has Phi(width / sigma) - 1/2. In narrow pieces the mass of all is evaluated at
        points 0.01 sigma apart: it changes by at most 0.8 per sigma, the total variation of the normal density.
        """
        widths = (self._hi - self._lo) / self._sigma
        own = np.array([0.5 - normal.tail_one(min(width, _CUT)) for width in widths.tolist()])
        narrow = np.flatnonzero(widths < 2.0)
        if narrow.size == 0 or narrow.size * self._lo.size > 4096:
            return float(np.min(own)) * 0.999
        least = float(np.min(own, where=widths >= 2.0, initial=1.0))
        for i in narrow.tolist():
            q = np.linspace(self._lo[i], self._hi[i], max(2, math.ceil(widths[i] / 0.01) + 1))
            mass = np.zeros_like(q)
            for lo, hi in zip(self._lo, self._hi, strict=True):
                a, b = (np.clip((x - q) / self._sigma, -_CUT, _CUT) for x in (lo, hi))
                mass += _signed_half(b) - _signed_half(a)
            spacing = widths[i] / (q.size - 1)
            least = min(least, max(float(np.min(mass)) - 0.4 * spacing, float(own[i])))
        return least * 0.999

    def many(self, w: Work, frame: Frame, source: Source) -> None:
        sigma, size, count = self._sigma, w.q.size, self._lo.size
        from_q = self._ends[:, None] - w.q
        tails = np.abs(from_q)
        np.divide(tails, sigma, out=tails)
        np.minimum(tails, _CUT, out=tails)
        flat = tails.reshape(-1)
        normal.tail(flat, flat, normal.Work(flat.size))
        # ends alternate: first, (end of a piece, start of the next) ..., last; the true value lies in no hole
        holes = np.abs(tails[2:-1:2] - tails[1:-1:2])
        missing = np.empty((2, count, size))  # on the left of each piece, and on its right, added up from the outside
        missing[0, 0], missing[1, -1] = tails[0], tails[-1]
        missing[0, 1:], missing[1, :-1] = holes, holes
        np.cumsum(missing[0], axis=0, out=missing[0])
        np.cumsum(missing[1, ::-1], axis=0, out=missing[1, ::-1])
        own = locate(self._hi_table, w.q)
        np.subtract(0.5, _gather(missing[0], own), out=w.s)  # L
        np.subtract(0.5, _gather(missing[1], own), out=w.z)
        np.add(w.z, w.s, out=w.z)  # Z
        to_unit(w.words, w.bits, w.v)
        np.multiply(w.v, w.z, out=w.v)
        # the piece: how many of the pieces end below the draw, by the cdf of the whole law at their ends
        ends = np.copysign(0.5 - tails[1:-1:2], from_q[1:-1:2])
        np.add(ends, 0.5, out=ends)
        np.subtract(ends, missing[0, :-1], out=ends)
        piece = (ends < w.v).sum(axis=0)
        tail_mass(w, source)
        side = np.bitwise_and(w.mask, count)
        np.add(w.v, _gather(missing.reshape(-1, size), side + piece), out=w.v)
        np.less(w.v, _LEAST, out=w.beyond)
        np.logical_or(w.unsure, w.beyond, out=w.unsure)
        np.clip(w.v, _LEAST, 0.53, out=w.v)
        normal.tail_inverse(w.v, w.v, w.normal)
        np.greater(w.v, frame.reach, out=w.beyond)
        np.logical_or(w.unsure, w.beyond, out=w.unsure)
        np.copysign(1.0, w.s, out=w.s)
        np.negative(w.s, out=w.s)
        np.multiply(w.v, w.s, out=w.v)
        np.multiply(w.v, sigma, out=w.x)  # where the draw lies, from the true value
        slack = 2.0 * frame.margin * frame.step
        near, far = self._lo[piece] - w.q, self._hi[piece] - w.q
        w.unsure |= ~((w.x >= near + slack) & (w.x <= far - slack))
        whole_and_part(w.q, frame.step, w.f, w.x)
        np.multiply(w.v, frame.ratio, out=w.v)
        np.add(w.v, w.x, out=w.v)
        round_to_cell(w, frame._replace(first=self._first[piece], last=self._last[piece]))

    def one(self, q: float, n: int) -> float | None:
        if near_end(n):
            return None
        frame, sigma, pieces = self.frame, self._sigma, self._pieces
        tails = [[normal.tail_one(min(abs(end - q) / sigma, _CUT)) for end in piece] for piece in pieces]
        holes = [abs(tails[j][1] - tails[j + 1][0]) for j in range(len(pieces) - 1)]
        after = [pieces[j + 1][0] > q for j in range(len(pieces) - 1)]
        left = 0.5 - (sum(h for h, x in zip(holes, after, strict=True) if not x) + tails[0][0])
        z = left + (0.5 - (sum(h for h, x in zip(holes, after, strict=True) if x) + tails[-1][1]))
        right = unit(n) * z >= left
        if right:
            p = unit(n ^ FULL) * z + tails[-1][1]
            j = len(pieces) - 1
            while j > 0 and after[j - 1] and p >= tails[j][0]:
                p, j = p + holes[j - 1], j - 1
        else:
            p = unit(n) * z + tails[0][0]
            j = 0
            while j < len(pieces) - 1 and not after[j] and p >= tails[j][1]:
                p, j = p + holes[j], j + 1
        t = normal.tail_inverse_one(min(p, 0.53))
        if not right:
            t = -t
        near, far = pieces[j][0] - q, pieces[j][1] - q
        slack = 2.0 * frame.margin * frame.step
        if not (abs(t) <= frame.reach and near + slack <= t * sigma <= far - slack):
            return None
        x = q / frame.step
        whole = round(x)
        position = round_one(whole, t * frame.ratio + (x - whole), frame)
        return None if position is None else within(position, self._first[j], self._last[j])

    def settle(self, q: Number, coordinate: int | None, guess: float, words: list[int], source: Source) -> int:
        return self._settler(self._law(q), guess, words, source)


def _gather(rows: FloatArray, row: Indices) -> FloatArray:
    """rows[row[i], i] for each i."""
    out: FloatArray = np.take(rows.reshape(-1), row * rows.shape[1] + np.arange(rows.shape[1]))
    return out


def _signed_half(x: FloatArray) -> FloatArray:
    """Phi(x) - 1/2 for |x| <= 14, absolutely accurate."""
    out = np.abs(x)
    normal.tail(out, out, normal.Work(x.size))
    return np.copysign(0.5 - out, x)
