"""What the fast path is made of: chunks of float64, buffers, and a bound on every error.

For each true value q a kernel computes the position of the draw in units of the grid and rounds it. The rounding is
right for certain when the position is farther from the edge of a cell than ``margin``, a proven bound on its error;
otherwise the value is marked *unsure* and settled by :mod:`inbounds.sampling.exact` from the same bits. So every value
is the exact inverse cdf of its bits, and float64 a matter of speed only. Derivations: ``docs/proofs/sampling.md``.

Time does not depend on the true values: the same operations for all, selection by masks, no subnormal numbers. What is
settled by integers depends on the bits and on where the released position lies between two edges.
"""

from __future__ import annotations

import math
import threading
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from inbounds._checks import FloatArray
from inbounds._exact import Number
from inbounds.sampling import exact, normal
from inbounds.sampling.entropy import Source, Words
from inbounds.sampling.grid import positions

Indices = npt.NDArray[np.int64]

CHUNK = 16_384
#: Half the distance from 1 to the next float: the relative error of one operation.
ROUND = 2.0**-53
#: The relative error assumed of exp, expm1, log and log1p, in NumPy and in ``math``: 8 units in the last place. They
#: promise about 1 (NumPy's tests: 4) and the tests here measure less than 2.
LIBM = 16 * ROUND
#: A uniform this close to 0 or 1, in units of 2^-64, gets a second word: its first has too few leading digits.
NEAR = 1 << 49
FULL = (1 << 64) - 1
SIXTY_THREE = 2.0**-63
_SIGN = np.int64(-(1 << 63))


class Frame(NamedTuple):
    """What a kernel knows of the domain: numbers, or for a box one number per coordinate in arrays."""

    lower: Any  # ends of the law
    upper: Any
    step: Any  # of the grid
    ratio: Any  # scale / step
    first: Any  # grid positions at the ends
    last: Any
    reach: Any  # distance from the true value, in scales, up to which the margin holds
    margin: Any  # bound on the error of a position, in steps

    @classmethod
    def of(cls, lower: Any, upper: Any, step: Any, ratio: Any, reach: Any, margin: Any) -> Frame:
        frame = cls(lower, upper, step, ratio, *positions(lower, upper, step), reach, margin)
        return frame if isinstance(step, np.ndarray) else cls(*map(float, frame))

    def at(self, coordinate: slice | int | None) -> Frame:
        """Of one coordinate, or of a run of them."""
        if coordinate is None:
            return self
        return Frame(*(x[coordinate] if isinstance(x, np.ndarray) else x for x in self))

    def repeated(self, times: int) -> Frame:
        """For several vectors one after the other."""
        return Frame(*(np.tile(x, times) if isinstance(x, np.ndarray) else x for x in self))


class Work:
    """Buffers for one chunk."""

    _FLOATS = ("a", "e", "f", "k", "q", "s", "v", "x", "z")

    def __init__(self, size: int = CHUNK) -> None:
        for name in self._FLOATS:
            setattr(self, name, np.zeros(size))
        self.words: Words = np.zeros(size, np.uint64)
        self.folded: Words = np.zeros(size, np.uint64)
        self.mask: Indices = np.zeros(size, np.int64)
        self.bits: Indices = np.zeros(size, np.int64)
        self.row: Indices = np.zeros(size, np.int64)
        self.index: Indices = np.zeros(size, np.int64)
        self.found: Indices = np.zeros(size, np.int64)
        self.unsure: npt.NDArray[np.bool_] = np.zeros(size, np.bool_)
        self.beyond: npt.NDArray[np.bool_] = np.zeros(size, np.bool_)
        self.normal = normal.Work(size)
        self.busy = False
        self.second: dict[int, int] = {}

    a: FloatArray
    e: FloatArray
    f: FloatArray
    k: FloatArray
    q: FloatArray
    s: FloatArray
    v: FloatArray
    x: FloatArray
    z: FloatArray

    def view(self, size: int) -> Work:
        """The first ``size`` elements of every buffer."""
        out = object.__new__(Work)
        for name, value in self.__dict__.items():
            if isinstance(value, np.ndarray):
                value = value[:size]
            elif isinstance(value, normal.Work):
                value = value.view(size)
            setattr(out, name, value)
        out.second = {}
        return out

    def wipe(self) -> None:
        """Zeros over the random words and everything computed from them and from true values."""
        for value in (*self.__dict__.values(), self.normal.accumulator, self.normal.argument):
            if isinstance(value, np.ndarray):
                value.fill(0)


_local = threading.local()


def borrow(size: int) -> Work:
    """This thread's buffers; new ones where those are in use (a signal handler may draw while a draw is under way)."""
    mine: Work | None = getattr(_local, "work", None)
    if mine is None:
        mine = _local.work = Work()
    if mine.busy:
        return Work(size)
    mine.busy = True
    return mine


class Kernel(Protocol):
    """The inverse cdf of one law on one domain."""

    frame: Frame

    def many(self, w: Work, frame: Frame, source: Source) -> None:
        """Fill ``w.k`` (grid positions) and ``w.unsure`` from ``w.q`` and ``w.words``.

        ``frame`` is the kernel's own, or for a box the part of it that belongs to the chunk.
        """

    def one(self, q: float, n: int) -> float | None:
        """The grid position for one first word, or None where more is needed to be sure."""

    def settle(self, q: Number, coordinate: int | None, guess: float, words: list[int], source: Source) -> int:
        """The grid position by integers."""


def to_unit(words: Words, bits: Indices, out: FloatArray) -> None:
    """words / 2^64, less than 2^-63 too small and then rounded.

    Through int64: NumPy's cast from uint64 branches on the top bit, which shows in the time.
    """
    np.right_shift(words, np.uint64(1), out=bits.view(np.uint64))
    np.copyto(out, bits, casting="unsafe")
    np.multiply(out, SIXTY_THREE, out=out)


def select(x: FloatArray, y: FloatArray, mask: Indices, bits: Indices) -> None:
    """x = y where the mask is -1 (all ones), as it is where 0; without branches."""
    raw = x.view(np.int64)
    np.bitwise_xor(raw, y.view(np.int64), out=bits)
    np.bitwise_and(bits, mask, out=bits)
    np.bitwise_xor(raw, bits, out=raw)


def flip(x: FloatArray, s: FloatArray, bits: Indices) -> None:
    """Change the sign of x where s is negative."""
    np.bitwise_and(s.view(np.int64), _SIGN, out=bits)
    raw = x.view(np.int64)
    np.bitwise_xor(raw, bits, out=raw)


def select_index(x: Indices, y: Indices, mask: Indices) -> Indices:
    """y where the mask is -1, x where it is 0."""
    return np.bitwise_xor(x, np.bitwise_and(np.bitwise_xor(x, y), mask))


def tail_mass(w: Work, source: Source) -> None:
    """Which side of the true value the draw lies on, and the mass of the tail beyond it.

    Given the mass to the left in ``w.s`` and all of it in ``w.z``: in ``w.s`` a number that is negative on the right,
    the mask of that (-1), and in ``w.v`` the tail, U Z on the left and (1 - U) Z on the right. The bits are inverted
    for 1 - U, so that no digit is lost; a tail too small for one word gets a second, by a rule that looks at U alone.
    """
    to_unit(w.words, w.bits, w.v)
    np.multiply(w.v, w.z, out=w.v)
    np.subtract(w.s, w.v, out=w.s)
    np.right_shift(w.s.view(np.int64), 63, out=w.mask)
    tail_of_side(w, source)


def tail_of_side(w: Work, source: Source) -> None:
    """:func:`tail_mass` where the side is given, by the mask."""
    np.bitwise_xor(w.words, w.mask.view(np.uint64), out=w.folded)
    to_unit(w.folded, w.bits, w.v)
    near = w.bits.view(np.uint64)
    np.add(w.words, np.uint64(NEAR), out=near)
    np.less(near, np.uint64(2 * NEAR), out=w.unsure)
    for j in np.flatnonzero(w.unsure).tolist():
        word = w.second[j] = source.word()
        tail, right = int(w.folded[j]), w.mask[j] != 0
        w.unsure[j] = False
        if tail < NEAR:
            tail = tail << 64 | (word ^ FULL if right else word)
            w.v[j] = math.ldexp(tail, -128) if tail >= NEAR else 0.25
            w.unsure[j] = tail < NEAR
    np.multiply(w.v, w.z, out=w.v)


def mass_beyond(w: Work, half: float, source: Source) -> None:
    """:func:`tail_mass` where the law has ``half`` on either side, less what lies beyond the ends (``w.a``, ``w.e``).

    Into ``w.v`` goes all that the law has beyond the draw, outside of the domain too.
    """
    np.subtract(half, w.a, out=w.s)  # L
    np.subtract(half, w.e, out=w.z)
    np.add(w.z, w.s, out=w.z)  # Z
    tail_mass(w, source)
    select(w.a, w.e, w.mask, w.bits)
    np.add(w.v, w.a, out=w.v)


def unit(n: int) -> float:
    """A word as a number from 0 to 1."""
    return n * 2.0**-64


def round_one(whole: int, position: float, frame: Frame) -> float | None:
    """:func:`round_to_cell` for one value."""
    if not math.isfinite(position):
        return None
    k = round(position)
    if not abs(position - k) <= 0.5 - frame.margin:
        return None
    return within(whole + k, frame.first, frame.last)


def within(k: float, first: float, last: float) -> float:
    return min(max(k, first), last)


def near_end(n: int) -> bool:
    """Whether a first word asks for a second one."""
    return n + NEAR & FULL < 2 * NEAR


def whole_and_part(q: FloatArray, step: Any, whole: FloatArray, part: FloatArray) -> None:
    """q / step as the nearest whole number and what is left, both exact: the step is a power of two."""
    np.multiply(q, 1.0 / step, out=part)
    np.rint(part, out=whole)
    np.subtract(part, whole, out=part)


def round_to_cell(w: Work, frame: Frame) -> None:
    """From positions ``w.v`` relative to ``w.f``: the nearest whole position inside the domain, and who is unsure.

    The comparison is phrased so that a NaN is unsure.
    """
    np.rint(w.v, out=w.z)
    np.subtract(w.v, w.z, out=w.v)
    np.abs(w.v, out=w.v)
    np.less_equal(w.v, 0.5 - frame.margin, out=w.beyond)
    np.invert(w.beyond, out=w.beyond)
    np.logical_or(w.unsure, w.beyond, out=w.unsure)
    np.add(w.f, w.z, out=w.k)
    np.clip(w.k, frame.first, frame.last, out=w.k)


class Settler:
    """The slow path: a law on the exact pieces of the grid."""

    def __init__(self, ends: FloatArray, step: float, *, discrete: bool = False) -> None:
        self._discrete = discrete
        self._half = Fraction(step) / 2
        self._first, self._last = (x.tolist() for x in positions(ends[:, 0], ends[:, 1], step))
        below = 1 if discrete else 0  # a piece of whole numbers starts above the one before its first
        self._pieces = [(_edge(a, below), _edge(b)) for a, b in ends.tolist()]

    def __call__(self, law: exact.Law, guess: float, words: list[int], source: Source) -> int:
        U = exact.Bits(words, source.word)
        cells = exact.Cells(law, self._pieces)
        piece = cells.piece_of(U)
        start = int(guess) if math.isfinite(guess) else 0
        edge = self._whole if self._discrete else self._middle
        return exact.find(cells, U, piece, edge, start, _whole(self._first[piece]), _whole(self._last[piece]))

    def _middle(self, k: int) -> Fraction:
        return (2 * k + 1) * self._half

    def _whole(self, k: int) -> Fraction:
        return Fraction(k)


def settle_piece(
    frame: Frame, law: exact.Law, guess: float, words: list[int], source: Source, *, discrete: bool
) -> int:
    """The slow path on the one piece of a frame."""
    ends = np.array([[frame.lower, frame.upper]])
    return Settler(ends, frame.step, discrete=discrete)(law, guess, words, source)


def _edge(x: float, below: int = 0) -> Fraction | float:
    return Fraction(x) - below if math.isfinite(x) else x


def _whole(x: float) -> float:
    return int(x) if math.isfinite(x) else x
