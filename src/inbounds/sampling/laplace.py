"""Fast inversion of Laplace noise: on an interval, a half-line or the line, real or whole, and on spans."""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from inbounds._checks import FloatArray
from inbounds._exact import Number
from inbounds.numerics import linear_recurrence
from inbounds.sampling import exact
from inbounds.sampling.entropy import Source
from inbounds.sampling.grid import locate, padded, positions
from inbounds.sampling.inversion import (
    FULL,
    LIBM,
    ROUND,
    Frame,
    Settler,
    Work,
    flip,
    mass_beyond,
    near_end,
    round_one,
    round_to_cell,
    select,
    select_index,
    settle_piece,
    tail_mass,
    to_unit,
    unit,
    whole_and_part,
    within,
)

__all__ = ["Laplace", "LaplaceOnShortSpans", "LaplaceOnSpans", "is_wide", "on_spans"]

_DEEPEST = 50.0  # scales from the true value; farther out integers decide
_UNDERFLOW = -700.0  # exp of less is subnormal or 0: slower, and of no weight
_WRONG = -0.5  # or any number that shows that the piece is another one
_LONGEST, _MOST_EXACT = 64.0, 2048  # scales from end to end, and pieces, for tables that integers make
_STEEPEST = 600.0  # 1/b on the integers; beyond, leaving the true value has less than 2^-800 probability


def _effective(scale: float, discrete: bool) -> float:
    return max(scale, 1.0 / _STEEPEST) if discrete else scale


def is_wide(lower: Any, upper: Any, scale: float, *, discrete: bool) -> Any:
    """Which of the two forms of the inverse is accurate."""
    return upper - lower >= _effective(scale, discrete)


class Laplace:
    """One piece that holds the true value; real, or whole numbers. For a box the ends and the step are arrays.

    In units of the density at the true value, L = 1 - exp(-(q - lower)/b) lies to the left and R, alike, to the right.
    A tail V of the whole Z = L + R is exp(-t) - exp(-(upper - q)/b) for the draw at distance b t: wide domains take the
    logarithm of that, narrow ones (width < b) work from the middle by expm1 and log1p, where the other would cancel.

    Whole numbers: j steps to one side have weight exp(-j/b), and the sum of those from j on is again a power of
    exp(-1/b). With weights in units of their common factor the middle has C = exp(1/b) - 1, split evenly between the
    sides, and the draw is ceil(b t) steps away.
    """

    def __init__(self, scale: float, lower: Any, upper: Any, step: Any, *, discrete: bool) -> None:
        b = _effective(scale, discrete)
        width = upper - lower
        ratio = b / step
        self._b = b
        self._discrete = discrete
        self._half = math.expm1(1.0 / b) / 2.0 if discrete else 0.0
        self._wide = bool(np.all(is_wide(lower, upper, scale, discrete=discrete)))
        self._deep = not np.all(width <= -_UNDERFLOW * b)
        self._line = bool(np.all(np.isneginf(lower) & np.isposinf(upper)))
        if self._wide:
            reach = np.minimum(width / b * (1.0 + 1e-9) + 1e-9, _DEEPEST)
            margin = ratio * (2.2 * LIBM + 48.0 * ROUND + (LIBM + 5.0 * ROUND) * reach)
        else:
            reach = math.inf
            margin = (width / step + (2.0 if discrete else 0.0)) * (8.0 * LIBM + 34.0 * ROUND)
        self.frame = Frame.of(lower, upper, step, ratio, reach, margin * 1.02 + 8.0 * ROUND)
        self._law: Any = partial(exact.DiscreteLaplace if discrete else exact.Laplace, scale=scale)

    def many(self, w: Work, frame: Frame, source: Source) -> None:
        if not self._line:
            self._walls(w, frame)
        if self._wide:
            self._from_tail(w, frame, source)
        else:
            self._from_middle(w)
        # w.v is now -t, and w.s is negative on the right
        if self._discrete:
            np.copyto(w.f, w.q)
            np.multiply(w.v, frame.ratio, out=w.v)
            np.subtract(w.v, 0.5, out=w.v)  # ceil(b t) is the nearest whole number to b t + 1/2
            flip(w.v, w.s, w.bits)
        else:
            whole_and_part(w.q, frame.step, w.f, w.x)
            np.multiply(w.v, frame.ratio, out=w.v)
            flip(w.v, w.s, w.bits)
            np.add(w.x, w.v, out=w.v)
        round_to_cell(w, frame)

    def _walls(self, w: Work, frame: Frame) -> None:
        """Into ``w.a`` and ``w.e``: how far the ends are from the true value, in scales, as negative numbers."""
        np.subtract(frame.lower, w.q, out=w.a)
        np.divide(w.a, self._b, out=w.a)
        np.subtract(w.q, frame.upper, out=w.e)
        np.divide(w.e, self._b, out=w.e)

    def _walls_one(self, q: float) -> tuple[float, float]:
        return (self.frame.lower - q) / self._b, (q - self.frame.upper) / self._b

    def _from_tail(self, w: Work, frame: Frame, source: Source) -> None:
        for x in (w.a, w.e):
            if self._line:
                x.fill(0.0)
            else:
                if self._deep:
                    np.clip(x, _UNDERFLOW, 0.0, out=x)
                np.exp(x, out=x)
        mass_beyond(w, 1.0 + self._half, source)
        np.log(w.v, out=w.v)
        np.less(w.v, -frame.reach, out=w.beyond)
        np.logical_or(w.unsure, w.beyond, out=w.unsure)

    def _from_middle(self, w: Work) -> None:
        np.expm1(w.a, out=w.a)  # -L
        np.expm1(w.e, out=w.e)
        np.add(w.a, w.e, out=w.z)
        np.subtract(w.z, 2.0 * self._half, out=w.z)  # -Z
        np.subtract(w.a, self._half, out=w.a)
        to_unit(w.words, w.bits, w.v)
        np.multiply(w.v, w.z, out=w.v)
        np.subtract(w.v, w.a, out=w.s)  # L - U Z, from the middle of the law
        np.abs(w.s, out=w.v)
        np.subtract(self._half, w.v, out=w.v)
        np.log1p(w.v, out=w.v)
        w.unsure.fill(False)

    def one(self, q: float, n: int) -> float | None:
        frame, half = self.frame, self._half
        if near_end(n):
            return None
        a, e = self._walls_one(q)
        if self._wide:
            a, e = math.exp(max(a, _UNDERFLOW)), math.exp(max(e, _UNDERFLOW))
            left = 1.0 + half - a
            z = left + (1.0 + half - e)
            right = unit(n) * z >= left
            v = math.log(unit(n ^ FULL) * z + e if right else unit(n) * z + a)
            if not v >= -frame.reach:
                return None
        else:
            a, e = math.expm1(a), math.expm1(e)
            s = (a - half) - unit(n) * (a + e - 2.0 * half)
            right = s >= 0.0
            v = math.log1p(half - abs(s))
        if self._discrete:
            t = v * -frame.ratio + 0.5
            return round_one(int(q), t if right else -t, frame)
        x = q / frame.step
        whole = round(x)
        t = v * frame.ratio
        return round_one(whole, x - whole - t if right else x - whole + t, frame)

    def settle(self, q: Number, coordinate: int | None, guess: float, words: list[int], source: Source) -> int:
        law = self._law(int(q) if self._discrete else q)
        return settle_piece(self.frame.at(coordinate), law, guess, words, source, discrete=self._discrete)


def on_spans(scale: float, ends: FloatArray, step: float) -> LaplaceOnSpans | LaplaceOnShortSpans:
    """The kernel for pieces with holes between them."""
    hull, widest = ends[-1, 1] - ends[0, 0], np.max(ends[:, 1] - ends[:, 0])
    short = widest <= scale and hull <= _LONGEST * scale and len(ends) <= _MOST_EXACT
    return (LaplaceOnShortSpans if short else LaplaceOnSpans)(scale, ends, step)


class LaplaceOnSpans:
    """Real pieces with holes between them.

    To the right of the true value the mass from y on is exp(-(y - q)/b) less that of what is missing. Beyond the end of
    piece j a share K_j of exp(-(end - q)/b) is missing (holes, and all beyond the last end), whatever q is. So the tail
    V Z fixes the draw in piece j by exp(-t) = V Z + K_j exp(-(end - q)/b), and the piece by a table. A draw computed in
    the wrong piece, or on the wrong side of the true value, comes out at an end or outside: integers decide.
    """

    def __init__(self, scale: float, ends: FloatArray, step: float) -> None:
        self._b = b = scale
        self._lo, self._hi = lo, hi = ends[:, 0].copy(), ends[:, 1].copy()
        gaps, widths = (lo[1:] - hi[:-1]) / b, (hi - lo) / b
        self._missing_right, error_right = _missing(gaps[::-1], widths[:0:-1])
        self._missing_right = self._missing_right[::-1].copy()
        self._missing_left, error_left = _missing(gaps, widths[:-1])
        self._near, self._far = np.concatenate([hi, lo]), np.concatenate([lo, hi])
        self._missing = np.concatenate([self._missing_left, self._missing_right])
        missing_error = max(error_left, error_right)
        # mass from each piece's near end on, in units of the density there
        right = 1.0 - np.exp(-widths) * self._missing_right
        left = 1.0 - np.exp(-widths) * self._missing_left
        with np.errstate(divide="ignore"):
            self._starts, self._stops = lo - b * np.log(right), hi + b * np.log(left)
        self._start_table, self._stop_table = padded(self._starts), padded(self._stops)
        self._hi_table = padded(hi)
        least = float(np.min([1.0 - self._missing_left + right, 1.0 - self._missing_right + left]))
        error = 2.0 * (LIBM + missing_error + ROUND) + 5.0 * ROUND
        relative = error / (least - 2.0 * error) if least > 4.0 * error else math.inf
        reach = min(float(hi[-1] - lo[0]) / b * (1.0 + 1e-9) + 1e-9, _DEEPEST)
        margin = relative + LIBM + missing_error + 48.0 * ROUND + (LIBM + 5.0 * ROUND) * reach
        ratio = b / step
        self.frame = Frame.of(lo[0], hi[-1], step, ratio, reach, ratio * margin * 1.02 + 8.0 * ROUND)
        self._first, self._last = positions(lo, hi, step)
        self._law: Any = partial(exact.Laplace, scale=scale)
        self._settler = Settler(ends, step)
        self._lists = [x.tolist() for x in (lo, hi, self._missing_left, self._missing_right, self._starts, self._stops)]

    def many(self, w: Work, frame: Frame, source: Source) -> None:
        b = self._b
        own = locate(self._hi_table, w.q)
        sides = (w.a, self._lo, self._missing_left, b), (w.e, self._hi, self._missing_right, -b)
        for out, ends, missing, scale in sides:
            np.take(ends, own, out=out)
            np.subtract(out, w.q, out=out)
            np.divide(out, scale, out=out)
            np.maximum(out, _UNDERFLOW, out=out)
            np.exp(out, out=out)
            np.multiply(out, missing[own], out=out)
        np.subtract(1.0, w.a, out=w.s)  # L
        np.subtract(1.0, w.e, out=w.z)
        np.add(w.z, w.s, out=w.z)  # Z
        tail_mass(w, source)
        np.copysign(1.0, w.s, out=w.s)
        # the piece: where the draw would be if nothing were missing beyond it
        np.log(w.v, out=w.x)
        np.multiply(w.x, w.s, out=w.x)
        np.multiply(w.x, b, out=w.x)
        np.add(w.x, w.q, out=w.x)
        left, right = locate(self._stop_table, w.x), locate(self._start_table, w.x) - 1
        piece = select_index(left, right, w.mask)
        np.clip(piece, 0, self._lo.size - 1, out=piece)
        # ends and missing shares of the two sides lie one after the other: the side is part of the index
        near_index = piece - (w.mask * self._lo.size)
        near, far = (np.take(ends, near_index) for ends in (self._near, self._far))
        for x in (near, far):
            np.subtract(w.q, x, out=x)
            np.multiply(x, w.s, out=x)
        np.divide(far, -b, out=w.e)
        np.clip(w.e, _UNDERFLOW, 0.0, out=w.e)  # a piece guessed on the wrong side would overflow
        np.exp(w.e, out=w.e)
        np.multiply(w.e, np.take(self._missing, near_index), out=w.e)
        np.add(w.v, w.e, out=w.v)
        np.log(w.v, out=w.v)  # -t
        np.less(w.v, -frame.reach, out=w.beyond)
        np.logical_or(w.unsure, w.beyond, out=w.unsure)
        np.multiply(w.v, -b, out=w.x)
        slack = 2.0 * frame.margin * frame.step
        w.unsure |= ~((w.x >= near + slack) & (w.x <= far - slack))
        whole_and_part(w.q, frame.step, w.f, w.x)
        np.multiply(w.v, frame.ratio, out=w.v)
        np.multiply(w.v, w.s, out=w.v)
        np.add(w.x, w.v, out=w.v)
        round_to_cell(w, frame._replace(first=self._first[piece], last=self._last[piece]))

    def one(self, q: float, n: int) -> float | None:
        if near_end(n):
            return None
        frame, b = self.frame, self._b
        lo, hi, missing_left, missing_right, starts, stops = self._lists
        own = bisect_left(hi, q)
        left = 1.0 - math.exp(max((lo[own] - q) / b, _UNDERFLOW)) * missing_left[own]
        z = left + (1.0 - math.exp(max((q - hi[own]) / b, _UNDERFLOW)) * missing_right[own])
        right = unit(n) * z >= left
        mass = unit(n ^ FULL if right else n) * z
        key = b * math.log(mass)
        if right:
            piece = max(bisect_left(starts, q - key) - 1, 0)
            near, far, missing = lo[piece] - q, hi[piece] - q, missing_right[piece]
        else:
            piece = min(bisect_left(stops, q + key), len(stops) - 1)
            near, far, missing = q - hi[piece], q - lo[piece], missing_left[piece]
        v = math.log(mass + math.exp(min(max(-far / b, _UNDERFLOW), 0.0)) * missing)
        slack = 2.0 * frame.margin * frame.step
        if not (v >= -frame.reach and near + slack <= -b * v <= far - slack):
            return None
        x = q / frame.step
        whole = round(x)
        t = v * frame.ratio
        position = round_one(whole, x - whole - t if right else x - whole + t, frame)
        return None if position is None else within(position, self._first[piece], self._last[piece])

    def settle(self, q: Number, coordinate: int | None, guess: float, words: list[int], source: Source) -> int:
        return self._settler(self._law(q), guess, words, source)


class LaplaceOnShortSpans:
    """Pieces with holes between them, none of them longer than the scale: where :class:`LaplaceOnSpans` would cancel.

    Masses are sums of those of pieces, all positive. Let D be what the domain has beyond the outer end of a piece, in
    units of the density there. Then -E + (1 + E) D, E = expm1(-distance of the end / b), lies beyond the true value,
    and a tail P (in units of the density at that end) fixes the distance b t of the draw from it by
    P = D + expm1(t). As exp(-|y - q| / b) is a product of a function of q and one of y on either side of q, the piece
    is found in a table that does not depend on q. Its entries for the right side are negative, and come first.
    """

    def __init__(self, scale: float, ends: FloatArray, step: float) -> None:
        self._b = b = scale
        self._lo, self._hi = ends[:, 0].copy(), ends[:, 1].copy()
        self._hi_table = padded(self._hi)
        beyond_right, beyond_left, falling, starts = _densities(scale, ends)
        count = len(ends)
        self._beyond_right, self._beyond_left = beyond_right, beyond_left
        # of the right side, then of the left: the outer ends, the density there, what lies beyond, where a piece begins
        outer = np.concatenate([self._hi, self._lo])
        self._density = np.concatenate([falling[:, 1], 1.0 / falling[:, 0]])
        self._inverse = np.concatenate([1.0 / falling[:, 1], falling[:, 0]])
        self._beyond = np.concatenate([beyond_right, beyond_left])
        self._starts, self._start_table = starts.tolist(), padded(starts)
        self._widths = np.tile(self._hi - self._lo, 2) / b  # in scales
        self._whole, self._part = np.empty(2 * count), np.empty(2 * count)
        whole_and_part(outer, step, self._whole, self._part)
        first, last = positions(self._lo, self._hi, step)
        self._first, self._last = np.tile(first, 2), np.tile(last, 2)
        widths = self._hi - self._lo
        mass = min(math.fsum(widths), b) * (2.72 * LIBM + 51.0 * ROUND)
        margin = (mass + float(np.max(widths)) * (LIBM + 4.0 * ROUND)) / step * 1.02 + 8.0 * ROUND
        self.frame = Frame.of(self._lo[0], self._hi[-1], step, b / step, math.inf, margin)
        self._law: Any = partial(exact.Laplace, scale=scale)
        self._settler = Settler(ends, step)
        tables = self._density, self._inverse, self._beyond, self._widths, self._whole, self._part
        self._lists = [x.tolist() for x in (self._lo, self._hi, *tables)]

    def many(self, w: Work, frame: Frame, source: Source) -> None:
        own = locate(self._hi_table, w.q)
        count = self._lo.size
        sides = (w.a, self._lo, self._b), (w.e, self._hi, -self._b)
        for out, ends, scale in sides:
            np.take(ends, own, out=out, mode="clip")
            np.subtract(out, w.q, out=out)
            np.divide(out, scale, out=out)
            np.expm1(out, out=out)
        for out, exponential, beyond in ((w.s, w.a, self._beyond_left), (w.z, w.e, self._beyond_right)):
            np.add(exponential, 1.0, out=w.x)
            np.take(beyond, own, out=out, mode="clip")
            np.multiply(out, w.x, out=out)
            np.subtract(out, exponential, out=out)
        np.add(w.z, w.s, out=w.z)  # Z
        tail_mass(w, source)
        # the tail in units of the density at a fixed place, and the piece
        select(w.a, w.e, w.mask, w.bits)
        np.add(w.a, 1.0, out=w.a)
        np.divide(w.v, w.a, out=w.v)
        np.multiply(w.mask, count, out=w.bits)
        np.add(own, w.bits, out=own)
        np.add(own, count, out=own)
        np.take(self._density, own, out=w.x, mode="clip")
        np.multiply(w.v, w.x, out=w.v)
        np.copysign(w.v, w.s, out=w.x)
        piece = locate(self._start_table, w.x)
        np.add(piece, w.mask, out=piece)
        # the distance from its outer end
        np.take(self._inverse, piece, out=w.x, mode="clip")
        np.multiply(w.v, w.x, out=w.v)
        np.take(self._beyond, piece, out=w.x, mode="clip")
        np.subtract(w.v, w.x, out=w.v)
        np.maximum(w.v, _WRONG, out=w.v)
        np.log1p(w.v, out=w.v)
        slack = 2.0 * frame.margin / frame.ratio
        np.take(self._widths, piece, out=w.x, mode="clip")
        np.subtract(w.x, slack, out=w.x)
        np.greater_equal(w.v, slack, out=w.beyond)
        np.logical_and(w.beyond, w.v <= w.x, out=w.beyond)
        np.invert(w.beyond, out=w.beyond)
        np.logical_or(w.unsure, w.beyond, out=w.unsure)
        np.take(self._whole, piece, out=w.f, mode="clip")
        np.take(self._part, piece, out=w.x, mode="clip")
        np.multiply(w.v, frame.ratio, out=w.v)
        flip(w.v, w.s, w.bits)
        np.add(w.x, w.v, out=w.v)
        first, last = (np.take(x, piece, mode="clip") for x in (self._first, self._last))
        round_to_cell(w, frame._replace(first=first, last=last))

    def one(self, q: float, n: int) -> float | None:
        if near_end(n):
            return None
        frame, b = self.frame, self._b
        lo, hi, densities, inverses, beyond, widths, whole, part = self._lists
        count, own = len(lo), bisect_left(hi, q)
        a, e = math.expm1((lo[own] - q) / b), math.expm1((q - hi[own]) / b)
        left = beyond[own + count] * (a + 1.0) - a
        z = left + (beyond[own] * (e + 1.0) - e)
        right = unit(n) * z >= left
        if right:
            tail = unit(n ^ FULL) * z / (e + 1.0) * densities[own]
            piece = max(bisect_left(self._starts, -tail) - 1, 0)
        else:
            tail = unit(n) * z / (a + 1.0) * densities[own + count]
            piece = min(bisect_left(self._starts, tail), 2 * count - 1)
        t = math.log1p(max(tail * inverses[piece] - beyond[piece], _WRONG))
        slack = 2.0 * frame.margin / frame.ratio
        if not slack <= t <= widths[piece] - slack:
            return None
        t *= frame.ratio
        position = round_one(int(whole[piece]), part[piece] - t if right else part[piece] + t, frame)
        return None if position is None else within(position, self._first[piece], self._last[piece])

    def settle(self, q: Number, coordinate: int | None, guess: float, words: list[int], source: Source) -> int:
        return self._settler(self._law(q), guess, words, source)


def _densities(scale: float, ends: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Tables for short pieces, from integers: each entry is off by a rounding.

    What lies beyond the upper and the lower end of each piece, in units of the density there; the falling density at
    both ends, 1 at the first; and the masses at which pieces begin, under the falling density negative (right side) and
    under its inverse (left side).
    """
    first, b = Fraction(ends[0, 0]), Fraction(scale)
    narrowest = float(np.min(ends[:, 1] - ends[:, 0])) / scale
    hull = float(ends[-1, 1] - ends[0, 0]) / scale
    P = 80 + len(ends).bit_length() - math.frexp(narrowest)[1] + math.ceil(3.0 * hull)
    falling = [[sum(exact.exp_neg((Fraction(x) - first) / b, P)) // 2 for x in piece] for piece in ends.tolist()]
    rising = [[(1 << 2 * P) // x for x in piece] for piece in falling]
    right = list(accumulate((low - high for low, high in reversed(falling)), initial=0))[::-1]
    left = list(accumulate((high - low for low, high in rising), initial=0))
    one = 1 << P
    return (
        np.array([right[j + 1] / high for j, (_, high) in enumerate(falling)]),
        np.array([left[j] / low for j, (low, _) in enumerate(rising)]),
        np.array([[x / one for x in piece] for piece in falling]),
        np.array([-x / one for x in right[:-1]] + [x / one for x in left[1:]]),
    )


def _missing(gaps: FloatArray, widths: FloatArray) -> tuple[FloatArray, float]:
    """K of each piece, from the outermost inwards: what is missing beyond it; and a bound on the relative error.

    K = 1 beyond the outermost end. Inwards, past a piece and a gap, K = (1 - exp(-gap)) + exp(-gap - width) K of the
    next: terms are positive, nothing cancels. The error obeys the same recurrence.
    """
    factor = np.concatenate([[0.0], np.exp(-gaps - widths)])
    term = np.concatenate([[1.0], -np.expm1(-gaps)])
    missing = np.minimum(linear_recurrence(factor, term), 1.0)
    spread = np.concatenate([[0.0], np.where(factor[1:] > 0.0, gaps + widths, 0.0)])
    before = np.concatenate([[0.0], missing[:-1]])
    own = term * (LIBM + 6.0 * ROUND) + factor * before * (LIBM + (6.0 + 3.0 * spread) * ROUND)
    error = linear_recurrence(factor, own)
    worst = float(np.max(error / np.maximum(missing, 2.0**-1000)))  # a hole may be too narrow for floats
    return missing, worst * 1.01 + 6.0 * (math.sqrt(missing.size) + 2.0) * ROUND
