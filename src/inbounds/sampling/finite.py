"""Exact draws from given finite laws: outcome i with probability weight_i / total, weights being integers of any size.

The draw inverts the cdf. With the partial sums C_0 <= C_1 <= ... <= total and a uniform U = 0.n e1 e2 ...
in base 2^64, which can always be extended, the outcome is the smallest i with U < C_i / total. An outcome of weight 0
has C_i = C_(i-1), or C_0 = 0, and never comes out.

Fast path: the first word n is compared with T_i = floor(2^64 C_i / total). If n < T_i then U < C_i / total, if n > T_i
then not; only n = T_i leaves it open. In that case, of probability about 2^-64 for each threshold, integers decide,
with as many further words as it takes.

Time: every draw takes the same steps, whatever the law and the outcome; the bisection has a fixed number of rounds and
no branches (``np.searchsorted`` has them). Which entries of the table are read does depend on both; caches may show it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from inbounds import _checks as check
from inbounds.errors import ParameterError, ParameterTypeError
from inbounds.sampling.entropy import Keystream, Source, pool

Indices = npt.NDArray[np.int64]

CHUNK = 16_384
_TOP = 2**64 - 1


class Finite:
    """One law, or one law per row, on the outcomes 0, 1, ..., m - 1.

    Parameters
    ----------
    weights : sequence of m integers, or of rows of m integers each
        Not negative; in every row one at least is positive. Python ints of any size or an integer array, no floats: a
        rounded probability is another law. The weights are public.

    Examples
    --------
    >>> Finite([1, 0, 3]).draw(1000).max()
    np.int64(2)
    """

    __slots__ = ("_sums", "_table", "outcomes", "rows")

    #: How many outcomes, and how many laws (None: one law, given as a flat sequence).
    outcomes: int
    rows: int | None

    def __init__(self, weights: Any) -> None:
        given = _weights(weights)
        self.outcomes = int(given.shape[-1])
        self.rows = int(given.shape[0]) if given.ndim == 2 else None
        # The largest partial sum fits int64, or the sums are Python ints.
        small = given.dtype != object and int(given.max()) * self.outcomes < 2**63
        laws = np.atleast_2d(given)
        self._sums: npt.NDArray[Any] = np.empty(laws.shape, dtype=np.int64 if small else object)
        width = self.outcomes - 1  # the last threshold is 1: nothing to compare
        table = np.empty((len(laws), width), dtype=np.uint64)
        for row, law in enumerate(laws):
            sums = list(accumulate(law.tolist()))
            total = sums[-1]
            if not total > 0:
                where = "weights" if self.rows is None else f"weights[{row}]"
                check.refuse("Finite", where, "such that one at least is positive", law.tolist(), "")
            self._sums[row] = sums
            # Where the last weights are 0, C_i = total gives 2^64. The largest word stands in for it: a draw of that
            # word is equal to the threshold, so integers decide.
            table[row] = [min((c << 64) // total, _TOP) for c in sums[:-1]]
        self._table = table.reshape(-1)
        self._sums.flags.writeable = self._table.flags.writeable = False

    def __repr__(self) -> str:
        laws = "one law" if self.rows is None else f"{self.rows} laws"
        return f"<Finite: {laws} on {self.outcomes} outcomes>"

    def draw(self, which: Any, source: Source | None = None) -> Indices:
        """One independent outcome for each element.

        Parameters
        ----------
        which : int or shape for one law; array of row numbers otherwise
            How many draws, or which law each is from. Row numbers may be secret and are never shown.
        """
        if self.rows is None:
            rows, out = None, np.empty(_shape(which), dtype=np.int64)
        else:
            rows = self._rows(which)
            out = np.empty(rows.shape, dtype=np.int64)
            rows = rows.reshape(-1)
        flat = out.reshape(-1)
        bits = Keystream() if source is None else source
        words = np.empty(min(CHUNK, flat.size), dtype=np.uint64)
        for start in range(0, flat.size, CHUNK):
            part = flat[start : start + CHUNK]
            first = words[: part.size]
            bits.fill(first)
            self._chunk(first, None if rows is None else rows[start : start + CHUNK], part, bits)
        words.fill(0)  # they tell the noise
        return out

    def one(self, row: int = 0, source: Source | None = None) -> int:
        """One outcome; with the same bits the same as :meth:`draw`."""
        if not isinstance(row, int | np.integer) or isinstance(row, bool):
            _refuse_row(len(self._sums), ParameterTypeError)
        if not 0 <= row < len(self._sums):
            _refuse_row(len(self._sums))
        bits = pool if source is None else source
        n = bits.word()
        width = self.outcomes - 1
        if width == 0:
            return 0
        table, base = self._table.data, int(row) * width
        half = 1 << (width.bit_length() - 1)
        at = (table[base + half - 1] <= n) * (width + 1 - half)
        while half := half >> 1:
            at += (table[base + at + half - 1] <= n) * half
        if table[base + max(at - 1, 0)] == n:
            return self._decide(int(row), n, bits)
        return int(at)

    def _chunk(self, n: npt.NDArray[np.uint64], rows: Indices | None, at: Indices, bits: Source) -> None:
        """Into ``at``: for each n the number of thresholds in its row that are at most n, or what integers decide.

        There are ``width`` thresholds, hence width + 1 answers. With ``half`` the largest power of two up to width, the
        first comparison leaves the first half answers or the last half of them (the two ranges may overlap), and each
        further one halves what is left.
        """
        width = self.outcomes - 1
        at.fill(0)
        if width == 0:
            return
        base: Any = np.int64(0) if rows is None else rows * np.int64(width)
        half = 1 << (width.bit_length() - 1)
        step = width + 1 - half
        while half:
            np.add(at, (self._table.take(at + (base + (half - 1))) <= n) * np.int64(step), out=at)
            half >>= 1
            step = half
        open_ = self._table.take(np.maximum(at - 1, 0) + base) == n
        if open_.any():
            for i in np.flatnonzero(open_).tolist():
                at[i] = self._decide(0 if rows is None else int(rows[i]), int(n[i]), bits)

    def _decide(self, row: int, n: int, bits: Source) -> int:
        """The smallest i with U < C_i / total, U in [n, n + 1) / 2^size, with more words until that is one i."""
        sums: list[int] = self._sums[row].tolist()
        total, size = sums[-1], 64
        while True:
            least = bisect_right(sums, n * total >> size)  # C_i > n total / 2^size
            most = bisect_left(sums, -(-(n + 1) * total >> size))  # C_i >= (n + 1) total / 2^size
            if least == most:
                return least
            n, size = n << 64 | bits.word(), size + 64

    def _rows(self, which: Any) -> Indices:
        try:
            rows = np.asarray(which)
        except (TypeError, ValueError):
            rows = np.asarray(None)
        if rows.size and rows.dtype.kind not in "iu":
            _refuse_row(len(self._sums), ParameterTypeError)
        if rows.size and not (int(rows.min()) >= 0 and int(rows.max()) < len(self._sums)):
            _refuse_row(len(self._sums))
        return rows.astype(np.int64, copy=False)


def _refuse_row(count: int, kind: type[Exception] = ParameterError) -> NoReturn:
    step = "It is not shown: it may be secret."
    check.refuse("Finite", "row", f"whole and from 0 to {count - 1}", "something else", step, kind)


def _shape(which: Any) -> tuple[int, ...]:
    shape = which if isinstance(which, tuple) else (which,)
    if not all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in shape):
        check.refuse("Finite", "size", "a number of draws or a shape", which, "", ParameterTypeError)
    if not all(n >= 0 for n in shape):
        check.refuse("Finite", "size", "a number of draws or a shape, not negative", which, "")
    return tuple(int(n) for n in shape)


def _weights(weights: Any) -> npt.NDArray[Any]:
    """An array of one or two axes of integers that are not negative: of integer dtype, or Python ints."""
    wanted = "a sequence of integers, or of rows of integers of one length"
    if isinstance(weights, str | bytes) or not isinstance(weights, Sequence | np.ndarray):
        check.refuse("Finite", "weights", wanted, weights, "", ParameterTypeError)
    if isinstance(weights, np.ndarray) and weights.dtype.kind in "iu":
        given = weights
    else:
        given = np.array(weights, dtype=object)  # not NumPy's choice: integers beyond 2^63 might become floats
        for w in given.ravel().tolist():
            if isinstance(w, bool | np.bool_) or not isinstance(w, int | np.integer):
                step = "Floats are not exact: pass integers in proportion." if isinstance(w, float) else ""
                check.refuse("Finite", "weights", wanted, w, step, ParameterTypeError)
    if given.ndim not in (1, 2) or given.size == 0:
        check.refuse("Finite", "weights", "of shape (m,) or (rows, m), none empty", f"shape {given.shape}", "")
    if given.min() < 0:
        check.refuse("Finite", "weights", "not negative", int(given.min()), "")
    if given.dtype == object:  # NumPy's integers among Python's would overflow
        given = np.array([int(w) for w in given.ravel().tolist()], dtype=object).reshape(given.shape)
    return given
