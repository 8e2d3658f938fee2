"""Fast inversion of Laplace noise: on an interval, a half-line or the line, real or whole, and on spans."""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import partial
from typing import Any

import numpy as np

from inbounds._checks import FloatArray
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
    select_index,
    settle_piece,
    tail_mass,
    to_unit,
    unit,
    whole_and_part,
    within,
)

__all__ = ["Laplace", "LaplaceOnSpans", "is_wide"]

_DEEPEST = 50.0  # scales from the true value; farther out integers decide
_UNDERFLOW = -700.0  # exp of less is subnormal or 0: slower, and of no weight
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
            np.subtract(frame.lower, w.q, out=w.a)
            np.divide(w.a, self._b, out=w.a)
            np.subtract(w.q, frame.upper, out=w.e)
            np.divide(w.e, self._b, out=w.e)
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
        a, e = (frame.lower - q) / self._b, (q - frame.upper) / self._b
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

    def settle(self, q: float, coordinate: int | None, guess: float, words: list[int], source: Source) -> int:
        law = self._law(int(q) if self._discrete else q)
        return settle_piece(self.frame.at(coordinate), law, guess, words, source, discrete=self._discrete)


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

    def settle(self, q: float, coordinate: int | None, guess: float, words: list[int], source: Source) -> int:
        return self._settler(self._law(q), guess, words, source)


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
