"""Which value a bit string releases, decided with ball arithmetic from the definition of the released law.

Nothing here is imported from the package and nothing is shared with it. A uniform U in [0, 1) is read from its leading
bits; the released value is the cell of the exact inverse cdf that holds U. Every comparison of U with a value of the
cdf is made in Arb balls whose precision is raised until the two separate, so an answer is a theorem, not an
approximation.

The law. On continuous domains the noise has density proportional to ``exp(-|y - q| / scale)`` or
``exp(-(y - q)**2 / (2 * scale**2))``, on the domain (``edges="truncate"``) or on the line (``"ignore"``, ``"clamp"``);
on integers the same holds with a pmf. Floats are taken as the rationals they are.

The grid. On a continuous domain y goes to the index ``round(y / g)``, for truncated noise kept among the grid points of
the piece that holds y; ``"clamp"`` then moves the index to the nearest grid point of the domain, ties down. On integers
g is 1 and y is the index. The released value is the float nearest to index times g.

All of these maps increase, so the bits that release a value form an interval, and its ends are values of the cdf at
*cuts*: reals on continuous domains, whole numbers k standing for P(y <= k) on integers, None for the two ends of
everything (cdf 0 or 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb, ctx, fmpq

Ball = Any  # arb; python-flint carries no types
Cut = Fraction | int | None

INF = math.inf
PRECISIONS = tuple(64 << i for i in range(8))  # up to 8,192 bits
_DIRECT = 128  # up to this sigma sums over integers are summed term by term


class Undecided(Exception):
    """More bits or more precision than there are would be needed."""


@contextmanager
def precision(bits: int) -> Iterator[None]:
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


def _ball(x: Fraction) -> Ball:
    return arb(fmpq(x.numerator, x.denominator))


# --- cases -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """A mechanism on one coordinate, on a given grid.

    ``pieces`` are the closed intervals of the domain in order; with ``lattice`` there is one, and only its whole
    numbers belong to the domain.
    """

    family: str
    pieces: tuple[tuple[float, float], ...]
    lattice: bool
    scale: float
    edges: str
    grid: float

    def at(self, q: float, bits: int, count: int) -> Case:
        return Case(self, q, bits, count)


@dataclass(frozen=True)
class Case:
    """A setting, a true value and the first ``count`` bits of U (``bits`` as an integer, the first bit on top)."""

    setting: Setting
    q: float
    bits: int
    count: int

    def then(self, bits: int, count: int) -> Case:
        """The same case with further bits."""
        return Case(self.setting, self.q, (self.bits << count) | bits, self.count + count)


def default_grid(pieces: tuple[tuple[float, float], ...], lattice: bool, scale: float) -> float:
    """The grid of a domain when none is asked for."""
    if lattice:
        return 1.0
    # the width as a float: rounding it matters only next to powers of two
    widths = [Fraction(hi - lo) for lo, hi in pieces if math.isfinite(lo) and math.isfinite(hi)]
    largest = max((abs(Fraction(e)) for piece in pieces for e in piece if math.isfinite(e)), default=Fraction(0))
    power = _floor_log2(min([Fraction(scale), *widths])) - 24
    while largest > Fraction(2) ** (power + 53):
        power += 1
    if widths:
        power = min(power, _floor_log2(min(widths)))
    return math.ldexp(1.0, power)


def _floor_log2(x: Fraction) -> int:
    power = x.numerator.bit_length() - x.denominator.bit_length()
    return power if Fraction(2) ** power <= x else power - 1


# --- sums of exp(-j^2 / 2 sigma^2) ---------------------------------------------------------------


@lru_cache(maxsize=64)
def _direct_table(sigma: Fraction, bits: int) -> list[Ball]:
    """The sums over j = 1..n of exp(-j^2 / 2 sigma^2) for n = 0, 1, ...; the last one stands for every larger n too.

    Beyond the last term kept, N, each term is at most r = exp(-N / sigma^2) times the one before, so the omitted ones
    together are positive and less than term(N) r / (1 - r).
    """
    with precision(bits + 32):
        c = _ball(1 / (2 * sigma**2))
        term, ratio, step = arb(1), (-c).exp(), (-2 * c).exp()
        sums = [arb(0)]
        tiny = arb((1, -bits - 16))
        n = 0
        while True:
            n += 1
            term, ratio = term * ratio, ratio * step
            sums.append(sums[-1] + term)
            rest = (-2 * c * n).exp()
            omitted = term * rest / (1 - rest)
            if omitted < tiny:
                sums.append(sums[-1].union(sums[-1] + omitted))
                return sums


@lru_cache(maxsize=256)
def _em_terms(sigma: Fraction, bits: int) -> tuple[list[Ball], Ball]:
    """Coefficients of Euler-Maclaurin for f(x) = exp(-x^2 / 2 sigma^2) and a bound on its remainder.

    With t = x / sigma, f^(n)(x) = (-1/sigma)^n He_n(t) f(x), He_n being the Hermite polynomials orthogonal under
    w(t) = exp(-t^2 / 2). Summing from 0 to n (odd derivatives vanish at 0),

        sum_{j=0}^{n} f(j) = int_0^n f + (f(0) + f(n)) / 2 + sum_{i=1}^{p} B_2i / (2i)! f^(2i-1)(n) + R,
        |R| <= 2 zeta(2p) / (2 pi)^(2p) int |f^(2p)|,

    since R = -int P_2p(x) f^(2p)(x) dx / (2p)! and the periodic Bernoulli function P_2p is at most |B_2p| =
    2 (2p)! zeta(2p) / (2 pi)^(2p) in size. By Cauchy-Schwarz int |He_2p| w <= sqrt(int He_2p^2 w) sqrt(int w) =
    sqrt(2 pi) sqrt((2p)!), hence, even over the whole line,

        |R| <= 2 zeta(2p) sqrt(2 pi) sigma sqrt((2p)!) / (2 pi sigma)^(2p).

    It holds for n infinite as well, with f(n) and its derivatives 0. The bound falls until 2p is near (2 pi sigma)^2;
    zeta(2) stands for zeta(2p) in the code.
    """
    with precision(bits + 64):
        s = _ball(sigma)
        small = arb((1, -bits - 16))
        u = 2 * arb.pi() * s
        bound = 2 * arb(2).zeta() * (2 * arb.pi()).sqrt() * s
        coefficients: list[Ball] = []
        p = 0
        while not bound < small:
            p += 1
            if p > 2 * bits:
                raise Undecided("sigma is too small for Euler-Maclaurin at this precision")
            bound *= (arb(2 * p) * (2 * p - 1)).sqrt() / u**2
            coefficients.append(-arb.bernoulli(2 * p) / arb.fac_ui(2 * p) / s ** (2 * p - 1))
        return coefficients, arb(0).union(bound).union(-bound)


def _em_sum(sigma: Fraction, n: float, bits: int) -> Ball:
    """The sum over j = 1..n of exp(-j^2 / 2 sigma^2), n up to infinity, by Euler-Maclaurin."""
    coefficients, remainder = _em_terms(sigma, bits)
    with precision(bits + 64):
        s = _ball(sigma)
        half = arb(1) / 2
        if n == INF:
            return s * (arb.pi() / 2).sqrt() - half + remainder
        t = arb(int(n)) / s
        f = (-t * t / 2).exp()
        total = s * (arb.pi() / 2).sqrt() * (t / arb(2).sqrt()).erf() + (f - 1) / 2
        before, he = arb(1), t  # He_0, He_1
        edge = arb(0)
        for i, c in enumerate(coefficients):
            edge += c * he
            for k in (2 * i + 1, 2 * i + 2):
                before, he = he, t * he - k * before
        return total + edge * f + remainder


def gaussian_sum(sigma: Fraction, n: float, bits: int, method: str | None = None) -> Ball:
    """The sum over j = 1..n of exp(-j^2 / 2 sigma^2), n up to infinity, within about 2^-bits."""
    if method == "direct" or (method is None and sigma <= _DIRECT):
        table = _direct_table(sigma, bits)
        return table[-1] if n >= len(table) - 1 else table[int(n)]
    return _em_sum(sigma, n, bits)


# --- masses ------------------------------------------------------------------------------------


def _tail(family: str, t: Fraction) -> Ball:
    """P(noise <= -t) for noise of scale 1 on the line, t >= 0."""
    x = _ball(t)
    return (-x).exp() / 2 if family == "laplace" else (x / arb(2).sqrt()).erfc() / 2


def _continuous_mass(family: str, a: Fraction | float, b: Fraction | float) -> Ball:
    """P(a <= noise <= b) for noise of scale 1 on the line."""
    left = arb(0) if a == -INF else _tail(family, abs(Fraction(a)))
    right = arb(0) if b == INF else _tail(family, abs(Fraction(b)))
    if b <= 0:
        return right - left
    if a >= 0:
        return left - right
    return 1 - left - right


def _lattice_half(family: str, scale: Fraction, n: float, bits: int) -> Ball:
    """The sum of the weights of 1..n, n up to infinity."""
    if family == "gaussian":
        return gaussian_sum(scale, n, bits)
    alpha = _ball(1 / scale)
    above = arb(1) if n == INF else -(-alpha * int(n)).expm1()
    return above * (-alpha).exp() / -(-alpha).expm1()


def _lattice_mass(family: str, scale: Fraction, a: float, b: float, bits: int) -> Ball:
    """The sum of the weights of the whole numbers a..b, the true value at 0."""

    def half(n: float) -> Ball:
        return _lattice_half(family, scale, n, bits)

    if b < a:
        return arb(0)
    if a > 0:
        return half(b) - half(a - 1)
    if b < 0:
        return half(-a) - half(-b - 1)
    return half(-a) + 1 + half(b)


class Law:
    """The noisy value before it is moved to a grid: its cdf at cuts, in balls, up to the common factor ``total``."""

    def __init__(self, setting: Setting, q: float) -> None:
        self.family = setting.family
        self.lattice = setting.lattice
        self.scale = Fraction(setting.scale)
        self.q = Fraction(q)
        line = ((-INF, INF),)
        self.pieces = [
            (self._from_q(lo), self._from_q(hi)) for lo, hi in (setting.pieces if setting.edges == "truncate" else line)
        ]
        self._starts: dict[int, list[Ball]] = {}

    def _from_q(self, end: float) -> Fraction | float:
        return Fraction(end) - self.q if math.isfinite(end) else end

    def _mass(self, a: Fraction | float, b: Fraction | float, bits: int) -> Ball:
        if self.lattice:
            whole = [x if x in (INF, -INF) else int(x) for x in (a, b)]
            return _lattice_mass(self.family, self.scale, whole[0], whole[1], bits)
        scaled = [x if x in (INF, -INF) else Fraction(x) / self.scale for x in (a, b)]
        return _continuous_mass(self.family, scaled[0], scaled[1])

    def _masses(self, bits: int) -> list[Ball]:
        """The mass of all pieces before the i-th; the last entry is the total."""
        if bits not in self._starts:
            with precision(bits):
                sums = [arb(0)]
                for lo, hi in self.pieces:
                    sums.append(sums[-1] + self._mass(lo, hi, bits))
            self._starts[bits] = sums
        return self._starts[bits]

    def below(self, cut: Fraction | int, bits: int) -> tuple[Ball, Ball]:
        """The mass at or below a cut, and the whole mass."""
        starts = self._masses(bits)
        x = Fraction(cut) - self.q
        i = next(i for i, (lo, hi) in enumerate(self.pieces) if lo <= x <= hi)
        with precision(bits):
            return starts[i] + self._mass(self.pieces[i][0], x, bits), starts[-1]

    def is_half(self, cut: Fraction | int) -> bool:
        """Whether the cdf at the cut is one half by symmetry.

        It is the only rational value apart from 0 and 1. For Laplace noise the equation "mass below the cut = r times
        all mass" is linear, with rational coefficients, in powers of e with distinct rational exponents, so by the
        theorem of Lindemann and Weierstrass every coefficient vanishes; that of e^0 does only if the cut is the true
        value itself and r is one half, and then the others do only if the domain is its own mirror image. On integers a
        cut never splits the weight of the true value, whose coefficient then is 1 - r or r. (For Gaussian noise on
        continuous or unbounded domains the like is not proved; other equalities would show as inseparable.)
        """
        mirrored = [(-hi, -lo) for lo, hi in reversed(self.pieces)]
        return not self.lattice and Fraction(cut) == self.q and mirrored == self.pieces

    def compare(self, cut: Cut, numerator: int, count: int) -> int | None:
        """The sign of cdf(cut) - numerator / 2^count; a cut inside the support has a cdf strictly inside (0, 1).

        None where the two are closer than 2^-8000 or so without being known to be equal: next to one half, when only a
        wall a great many scales away spoils a symmetry.
        """
        assert cut is not None
        if numerator <= 0:
            return 1
        if numerator >= 1 << count:
            return -1
        if self.is_half(cut):
            return (1 << count > 2 * numerator) - (1 << count < 2 * numerator)
        for bits in PRECISIONS:
            below, total = self.below(cut, bits)
            with precision(bits):
                difference = below - total * arb((numerator, -count))
                if difference > 0:
                    return 1
                if difference < 0:
                    return -1
        return None

    def floor(self, cut: Fraction | int, count: int) -> int:
        """The cdf at a cut in units of 2^-count, rounded down (to either side where a whole number is inseparable)."""
        if self.is_half(cut):
            return 1 << (count - 1)
        for bits in (count + 128, count + 256, count + 1024, count + 4096):
            below, total = self.below(cut, bits)
            with precision(bits):
                scaled = below / total * arb((1, count))
                if scaled.rad() < arb((1, -32)):
                    found = int(scaled.mid().floor().unique_fmpz())
                    return min(max(found, 0), (1 << count) - 1)
        raise Undecided(f"cdf at {cut}, {count} bits")


@lru_cache(maxsize=512)
def law(setting: Setting, q: float) -> Law:
    return Law(setting, q)


# --- the grid of the domain ------------------------------------------------------------------------


class Points:
    """The indices that can be released, and where the cells of the law end that lead to them."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.step = Fraction(setting.grid)
        self.runs = [(-INF, INF)]
        if setting.edges != "ignore":
            self.runs = [(self._index(lo, math.ceil), self._index(hi, math.floor)) for lo, hi in setting.pieces]
        assert all(a <= b for a, b in self.runs), "a piece without a grid point"

    def _index(self, end: float, to_whole: Callable[[Fraction], int]) -> float:
        return to_whole(Fraction(end) / self.step) if math.isfinite(end) else end

    def snap(self, k: int) -> int:
        """The largest index up to k, or the first one."""
        for a, b in reversed(self.runs):
            if k >= a:
                return int(min(k, b))
        return int(self.runs[0][0])

    def has(self, k: int) -> bool:
        return any(a <= k <= b for a, b in self.runs)

    def before(self, k: int) -> int | None:
        """The index before k, an index itself."""
        if k == self.runs[0][0]:
            return None
        return self.snap(k - 1)

    def upper(self, k: int) -> Cut:
        """The cut at which the cell of the index k ends."""
        if k == self.runs[-1][1]:
            return None
        last = k
        for i, (_, b) in enumerate(self.runs):
            if k == b:  # the last index before a hole
                if self.setting.edges == "truncate":
                    return Fraction(self.setting.pieces[i][1])
                # An index j of the hole belongs here while j - b <= next - j: ties go down.
                last = int((b + self.runs[i + 1][0]) // 2)
                if abs(last) > 2**53:  # where indices are no longer floats they are rounded to one first
                    middle = float(b) + (float(self.runs[i + 1][0]) - float(b)) / 2.0
                    last = int((Fraction(middle) + Fraction(math.nextafter(middle, INF))) / 2)
                    last -= float(last) > middle
        return last if self.setting.lattice else (last + Fraction(1, 2)) * self.step

    def lower(self, k: int) -> Cut:
        """The cut at which the cell of the index k starts."""
        previous = self.before(k)
        return None if previous is None else self.upper(previous)

    def value(self, k: int) -> float:
        """The float nearest to index times grid (ties to even, as everywhere)."""
        return float(k * self.step)

    def indices(self, value: float) -> tuple[int, int] | None:
        """The first and the last index released as this float, or None."""
        if not math.isfinite(value):
            return None
        centre = Fraction(value)
        around = [(centre + Fraction(math.nextafter(value, to))) / 2 / self.step for to in (-INF, INF)]
        first, last = math.ceil(around[0]), math.floor(around[1])
        # At a tie between two floats the even one takes the point.
        first += first <= last and self.value(first) != value
        last -= first <= last and self.value(last) != value
        inside = [(int(max(a, first)), int(min(b, last))) for a, b in self.runs if max(a, first) <= min(b, last)]
        return (inside[0][0], inside[-1][1]) if inside else None


@lru_cache(maxsize=64)
def points(setting: Setting) -> Points:
    return Points(setting)


# --- answers -----------------------------------------------------------------------------------


def holds(case: Case, value: float) -> bool:
    """Whether every continuation of the bits releases ``value``: cdf(lower cut) <= U and U + 2^-count <= cdf(upper)."""
    grid = points(case.setting)
    found = grid.indices(value)
    if found is None:
        return False
    noise = law(case.setting, case.q)
    low, high = grid.lower(found[0]), grid.upper(found[1])
    return (low is None or noise.compare(low, case.bits, case.count) in (-1, 0)) and (
        high is None or noise.compare(high, case.bits + 1, case.count) in (0, 1)
    )


def answer(case: Case, guess: int | None = None) -> float | None:
    """The value that every continuation of the bits releases, or None where they do not all release the same.

    The smallest index whose cell does not end before U + 2^-count is bracketed by steps that double, away from a guess
    (the index next to the true value unless given), and bisected.
    """
    grid = points(case.setting)
    noise = law(case.setting, case.q)
    if (case.bits == 0 and grid.runs[0][0] == -INF) or (case.bits + 1 == 1 << case.count and grid.runs[-1][1] == INF):
        return None  # the cell of 0 or 1 itself, and there is no such cell

    def reaches(k: int) -> bool:
        cut = grid.upper(grid.snap(k))
        return cut is None or noise.compare(cut, case.bits + 1, case.count) in (0, 1)

    start = round(Fraction(case.q) / grid.step) if guess is None else guess
    step = 1
    if reaches(start):
        high, low = start, start - 1
        while low >= grid.runs[0][0] and reaches(low):
            step *= 4
            high, low = low, low - step
    else:
        low, high = start, start + 1
        while not reaches(high):
            step *= 4
            low, high = high, high + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    value = grid.value(grid.snap(high))
    return value if holds(case, value) else None


def settle(case: Case, more: Callable[[], int], guess: int | None = None) -> tuple[Case, float]:
    """The case with as many further words from ``more`` as its answer needs, and the answer."""
    for _ in range(64):
        value = answer(case, guess)
        if value is not None:
            return case, value
        case = case.then(more(), 64)
    raise Undecided(f"{case} after 64 further words")
