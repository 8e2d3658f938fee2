"""The slow path: which cell a uniform bit string falls into, decided in integer arithmetic.

Numbers are enclosed in fixed point: a pair (lo, hi) of integers stands for a real x with lo <= x * 2**P <= hi. A
decision that P and the bits drawn so far leave open is tried again with 64 more of both; no result depends on how many
were needed. Proofs: ``docs/proofs/sampling.md``.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Protocol

from inbounds._exact import Number

__all__ = ["Bits", "Cells", "DiscreteGaussian", "DiscreteLaplace", "Gaussian", "Laplace", "Law", "find"]

Enclosure = tuple[int, int]
_GUARD = 40  # bits of precision beyond those of the uniform
#: From this sigma on sums over the integers are enclosed by Euler-Maclaurin, below it they are added up.
SUMMED_BELOW = 64.0


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def ceil_shift(a: int, bits: int) -> int:
    return -(-a >> bits)


def exp_neg(x: Fraction, P: int) -> Enclosure:
    """exp(-x) for x >= 0: the exponential series at x / 2**s, inverted, squared s times."""
    num, den = x.numerator, x.denominator
    if num == 0:
        return 1 << P, 1 << P
    if num > den * (P + 2):  # exp(-x) < 2**-x
        return 0, 1
    halvings = 8 + (num // den).bit_length()
    W = P + halvings + 16
    low = (num << W) // (den << halvings)
    high = low + 1
    one = 1 << W
    sum_low = sum_high = term_low = term_high = one
    k = 0
    while term_high > 1:
        k += 1
        term_low = (term_low * low >> W) // k
        term_high = ceil_div(ceil_shift(term_high * high, W), k)
        sum_low += term_low
        sum_high += term_high
    sum_high += 2  # the rest falls by half and more from a last term of 1
    lo, hi = (one << W) // sum_high, ceil_div(one << W, sum_low)
    for _ in range(halvings):
        lo = lo * lo >> W
        hi = ceil_shift(hi * hi, W)
    return lo >> W - P, ceil_shift(hi, W - P)


@lru_cache(maxsize=64)
def root_two_pi(P: int) -> Enclosure:
    """sqrt(2 pi), pi by Machin's formula."""
    W = P + 32

    def arctan_inverse(n: int) -> int:
        power = total = (1 << W) // n
        k, sign = 1, 1
        while power:
            power //= n * n
            k, sign = k + 2, -sign
            total += sign * (power // k)
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    error = 64 * W  # each of fewer than W terms is off by less than 2, weighted 16 and 4
    lo, hi = math.isqrt((2 * (pi - error)) << W), math.isqrt((2 * (pi + error)) << W) + 1
    return lo >> 32, ceil_shift(hi, 32)


def normal_half(x: Fraction, P: int) -> Enclosure:
    """Phi(x) - 1/2 for x >= 0: the density times the sum of x**(2k+1) / (2k+1)!!, whose terms are all positive."""
    square = x * x
    num, den = square.numerator, square.denominator
    if num == 0:
        return 0, 0
    if num > 2 * den * (P + 2):  # 1 - Phi(x) < exp(-x**2 / 2) < 2**-P
        return (1 << P - 1) - 1, 1 << P - 1
    # The sum is at most about exp(x**2 / 2) and is multiplied by exp(-x**2 / 2): that many bits are guarded.
    W = P + 32 + 2 * (num // den)
    term_low = (x.numerator << W) // x.denominator
    term_high = term_low + 1
    sum_low, sum_high = term_low, term_high
    odd = 1
    while term_high > 1 or 2 * num >= den * odd:
        odd += 2
        term_low = term_low * num // (den * odd)
        term_high = ceil_div(term_high * num, den * odd)
        sum_low += term_low
        sum_high += term_high
    sum_high += 2
    exp_low, exp_high = exp_neg(square / 2, W)
    root_low, root_high = root_two_pi(W)
    lo, hi = sum_low * exp_low // root_high, ceil_div(sum_high * exp_high, root_low)
    return lo >> W - P, ceil_shift(hi, W - P)


class Law(Protocol):
    """Noise around one true value, before it is restricted to a domain."""

    @property
    def q(self) -> Fraction | int:
        """The true value."""

    def below(self, edge: Fraction | float, P: int) -> Enclosure:
        """The mass at or below ``edge`` (which may be infinite), up to a constant factor."""

    def reach(self, P: int) -> Fraction | float:
        """A distance from q beyond which, on either side, there is less mass than 2**-P."""


class Laplace:
    """exp(-|y - q| / b), masses in units of b."""

    def __init__(self, q: Number, scale: float) -> None:
        self.q, self.b = Fraction(q), Fraction(scale)

    def below(self, edge: Fraction | float, P: int) -> Enclosure:
        if isinstance(edge, float):
            return (0, 0) if edge < 0 else (2 << P, 2 << P)
        lo, hi = exp_neg(abs(edge - self.q) / self.b, P)
        return (lo, hi) if edge <= self.q else ((2 << P) - hi, (2 << P) - lo)

    def reach(self, P: int) -> Fraction | float:
        return P * self.b


class Gaussian:
    """The normal density around q, masses in units of the whole."""

    def __init__(self, q: Number, scale: float) -> None:
        self.q, self.sigma = Fraction(q), Fraction(scale)

    def below(self, edge: Fraction | float, P: int) -> Enclosure:
        if isinstance(edge, float):
            return (0, 0) if edge < 0 else (1 << P, 1 << P)
        half = 1 << P - 1
        lo, hi = normal_half(abs(edge - self.q) / self.sigma, P)
        return (half - hi, half - lo) if edge <= self.q else (half + lo, half + hi)

    def reach(self, P: int) -> Fraction | float:
        return (math.isqrt(2 * P) + 1) * self.sigma


class DiscreteLaplace:
    """a**|k - q| on the integers, a = exp(-1/b), times 1 - a."""

    def __init__(self, q: int, scale: float) -> None:
        self.q, self.b = q, Fraction(scale)

    def below(self, edge: Fraction | float, P: int) -> Enclosure:
        if edge == -math.inf:
            return 0, 0
        one = 1 << P
        a_low, a_high = exp_neg(1 / self.b, P)
        if edge == math.inf:
            return one + a_low, one + a_high
        if edge < self.q:
            return exp_neg((self.q - Fraction(edge)) / self.b, P)
        lo, hi = exp_neg((Fraction(edge) - self.q + 1) / self.b, P)
        return one + a_low - hi, one + a_high - lo

    def reach(self, P: int) -> Fraction | float:
        return math.inf


class DiscreteGaussian:
    """exp(-(k - q)**2 / 2 sigma**2) on the integers."""

    def __init__(self, q: int, tails: GaussianTails) -> None:
        self.q, self.tails = q, tails

    def below(self, edge: Fraction | float, P: int) -> Enclosure:
        if edge == -math.inf:
            return 0, 0
        all_low, all_high = self.tails.whole(P)
        if edge == math.inf:
            return all_low, all_high
        k = int(edge)
        if k < self.q:
            return self.tails.tail(self.q - k, P)
        lo, hi = self.tails.tail(k - self.q + 1, P)
        return all_low - hi, all_high - lo

    def reach(self, P: int) -> Fraction | float:
        return math.inf


class GaussianTails:
    """Sums of f(i) = exp(-i**2 / 2 sigma**2) over i >= j >= 1; divided by sigma sqrt(2 pi) where sigma is large."""

    def __init__(self, sigma: float) -> None:
        self.sigma = Fraction(sigma)
        self.summed = sigma < SUMMED_BELOW
        self._tables: dict[int, tuple[list[int], list[int]]] = {}

    def whole(self, P: int) -> Enclosure:
        if self.summed:
            lo, hi = self.tail(1, P)
            return (1 << P) + 2 * lo, (1 << P) + 2 * hi
        return 1 << P, (1 << P) + 1  # Poisson summation: 1 + 2 exp(-2 pi**2 sigma**2) + ... < 1 + 2**-100000

    def tail(self, j: int, P: int) -> Enclosure:
        if not self.summed:
            return self._euler_maclaurin(j, P)
        low, high = self._table(P)
        return (low[j], high[j]) if j < len(low) else (0, high[-1])

    def _table(self, P: int) -> tuple[list[int], list[int]]:
        """Enclosures of the tails from 0 to the last that is not negligible; by f(i+1) = f(i) r(i), r(i+1) = r(i) r."""
        found = self._tables.get(P)
        if found is None:
            if len(self._tables) > 8:
                self._tables.clear()
            W = P + 32
            count = math.ceil(float(self.sigma) * math.sqrt(2.0 * (W + 8))) + 2
            c = 1 / (2 * self.sigma**2)
            ratio_low, ratio_high = exp_neg(c, W)
            step_low, step_high = exp_neg(2 * c, W)
            low, high = [1 << W], [1 << W]
            for _ in range(count):
                low.append(low[-1] * ratio_low >> W)
                high.append(ceil_shift(high[-1] * ratio_high, W))
                ratio_low = ratio_low * step_low >> W
                ratio_high = ceil_shift(ratio_high * step_high, W)
            # What is left out: the terms from i = count + 1 on fall at least by the last ratio.
            rest = ceil_div(high[-1] * ratio_high, max((1 << W) - ratio_high, 1)) + 1
            sums_low = list(accumulate(reversed(low)))[::-1]
            sums_high = list(accumulate(reversed(high), initial=rest))[::-1]
            found = self._tables[P] = [x >> 32 for x in sums_low], [ceil_shift(x, 32) for x in sums_high]
        return found

    def _euler_maclaurin(self, j: int, P: int) -> Enclosure:
        """Phi(-x) + phi(x) sum of B_2r(1/2) / (2r)! He_(2r-1)(x) / sigma**(2r), with x = (j - 1/2) / sigma."""
        sigma, y = self.sigma, Fraction(2 * j - 1, 2)
        x = y / sigma
        if x * x > 4 * (P + 2):  # the sum is below Phi(-(x - 1 / (2 sigma))) < exp(-(x - 1/128)**2 / 2) < 2**-P
            return 0, 1
        lo, hi = normal_half(x, P)
        lo, hi = (1 << P - 1) - hi, (1 << P - 1) - lo
        orders = 1
        while 2 * orders * (_log2_floor(sigma) + 2) - math.lgamma(2 * orders + 1) * 0.7214 < P + 8:
            orders += 1
        # |remainder| <= 4 sqrt((2p)!) / (2 pi sigma)**(2p), and 2 pi > 4, log2(e) / 2 < 0.7214: below 2**-P / 64.
        alpha, beta = y / sigma**2, 1 / sigma**2
        before, now, total = Fraction(1), alpha, Fraction(0)
        for r in range(1, orders + 1):
            total += _midpoint_coefficient(r) * now
            for n in (2 * r - 1, 2 * r):
                before, now = now, alpha * now - n * beta * before
        W = P + 16
        exp_low, exp_high = exp_neg(x * x / 2, W)
        root_low, root_high = root_two_pi(W)
        factor = total / sigma
        size, sign = abs(factor), 1 if factor >= 0 else -1
        small = (exp_low * size.numerator << W) // (root_high * size.denominator)
        large = ceil_div(exp_high * size.numerator << W, root_low * size.denominator)
        add_low, add_high = (small, large) if sign > 0 else (-large, -small)
        return max(lo + (add_low >> 16) - 1, 0), max(hi + ceil_shift(add_high, 16) + 1, 0)


def _log2_floor(x: Fraction) -> int:
    """A whole number not above log2(x)."""
    return x.numerator.bit_length() - x.denominator.bit_length() - 1


@lru_cache(maxsize=512)
def _midpoint_coefficient(r: int) -> Fraction:
    """B_2r(1/2) / (2r)!: the coefficients of (t/2) / sinh(t/2)."""
    if r == 0:
        return Fraction(1)
    return -sum(
        (_midpoint_coefficient(r - k) * Fraction(1, 4**k * math.factorial(2 * k + 1)) for k in range(1, r + 1)),
        Fraction(0),
    )


class Bits:
    """A uniform number, known to m bits: in [n, n + 1) / 2**m. More come from ``more``, 64 at a time."""

    __slots__ = ("m", "more", "n")

    def __init__(self, words: Sequence[int], more: Callable[[], int]) -> None:
        self.n, self.m, self.more = 0, 0, more
        for word in words:
            self._append(word)

    def _append(self, word: int) -> None:
        self.n, self.m = self.n << 64 | word, self.m + 64

    def extend(self) -> None:
        self._append(self.more())


class Cells:
    """The law on a union of pieces, each cut into cells: decides on which side of an edge a uniform falls.

    ``pieces`` are pairs of edges; the mass of a piece is the law's mass above its first and up to its second.
    """

    def __init__(self, law: Law, pieces: Sequence[tuple[Fraction | float, Fraction | float]]) -> None:
        self.law, self.pieces = law, pieces
        self._guard = _GUARD + len(pieces).bit_length()
        self._sums: dict[int, tuple[range, list[int], list[int], list[Enclosure]]] = {}

    def _cumulative(self, P: int) -> tuple[range, list[int], list[int], list[Enclosure]]:
        """The pieces within reach, enclosures of the mass before each and in all, and of the law at their starts.

        All pieces beyond the reach, on one side, have together less than one unit.
        """
        found = self._sums.get(P)
        if found is None:
            reach, last = self.law.reach(P), len(self.pieces)
            low, high = (-math.inf, math.inf) if reach == math.inf else (self.law.q - reach, self.law.q + reach)
            first = bisect_left(self.pieces, low, hi=last - 1, key=lambda piece: piece[1])
            stop = max(bisect_right(self.pieces, high, key=lambda piece: piece[0]), first + 1)
            starts = [self.law.below(a, P) for a, _ in self.pieces[first:stop]]
            ends = [self.law.below(b, P) for _, b in self.pieces[first:stop]]
            lows = [0, *(e[0] - s[1] for s, e in zip(starts, ends, strict=True))]
            highs = [int(first > 0), *(e[1] - s[0] for s, e in zip(starts, ends, strict=True))]
            found = range(first, stop), list(accumulate(lows)), list(accumulate(highs)), starts
            self._sums[P] = found
        return found

    def is_below(self, U: Bits, piece: int, edge: Fraction | float | None) -> bool:
        """Whether U falls below ``edge``, which lies in the piece; None is the piece's last edge."""
        while True:
            P = U.m + self._guard
            window, low, high, starts = self._cumulative(P)
            beyond = int(window.stop < len(self.pieces))
            total_low, total_high = low[-1], high[-1] + beyond
            if piece < window.start:
                mass_low, mass_high = 0, 1
            elif piece >= window.stop:
                mass_low, mass_high = total_low, total_high
            elif edge is None:
                mass_low, mass_high = low[piece - window.start + 1], high[piece - window.start + 1]
            else:
                i = piece - window.start
                at_low, at_high = self.law.below(edge, P)
                mass_low, mass_high = low[i] + at_low - starts[i][1], high[i] + at_high - starts[i][0]
            if (U.n + 1) * total_high <= mass_low << U.m:
                return True
            if U.n * total_low >= mass_high << U.m:
                return False
            U.extend()

    def piece_of(self, U: Bits) -> int:
        return bisect_right(range(len(self.pieces) - 1), False, key=lambda i: self.is_below(U, i, None))


def find(
    cells: Cells,
    U: Bits,
    piece: int,
    edge: Callable[[int], Fraction | float],
    guess: int,
    first: float,
    last: float,
) -> int:
    """The smallest k in first..last (either may be infinite) whose upper edge lies above U, stepping from a guess."""
    k = int(min(max(guess, first), last))
    step = 1
    if k == last or cells.is_below(U, piece, edge(k)):
        low, high = k - 1, k
        while low >= first and cells.is_below(U, piece, edge(low)):
            step *= 2
            low, high = low - step, low
        low = int(max(low, first - 1))
    else:
        low, high = k, k + 1
        while high < last and not cells.is_below(U, piece, edge(high)):
            step *= 2
            low, high = high, high + step
        high = int(min(high, last))
    while high - low > 1:
        middle = (low + high) // 2
        if cells.is_below(U, piece, edge(middle)):
            high = middle
        else:
            low = middle
    return high
