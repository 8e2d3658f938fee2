"""The margins of the fast path, the library functions they rest on, and the enclosures of the slow path: against Arb.

A kernel computes a position in float64 and calls it sure when it is farther than ``frame.margin`` from the edge of a
cell. Here that position is caught before it is rounded and its true error is compared with the margin, over wide ranges
of parameters; then the other links of the chain. The derivations are on ``docs/proofs/sampling.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from flint import arb, fmpq

import inbounds as ib
from inbounds.sampling import exact, gaussian, inversion, laplace, normal, sampler
from inbounds.sampling.entropy import Seeded
from tests import sampling_reference as reference
from tests.sampling_reference import precision

INF = math.inf
FULL = 2**64 - 1
NEAR = inversion.NEAR
LINE = ((-INF, INF),)


def ball(x: Any) -> Any:
    return arb(fmpq(x.numerator, x.denominator)) if isinstance(x, Fraction) else arb(x)


class Words:
    """A source that gives the words of a list, then those of a generator with a fixed seed."""

    def __init__(self, words: list[int]) -> None:
        self._words, self._rest = list(reversed(words)), Seeded(1)

    def word(self) -> int:
        return self._words.pop() if self._words else self._rest.word()

    def fill(self, words: Any) -> None:
        words[:] = [self.word() for _ in range(words.size)]


# --- positions before they are rounded -------------------------------------------------------------------------


class Drawn(NamedTuple):
    """What a kernel computed for a true value and a uniform in [bits, bits + 1) / 2^count."""

    q: float
    bits: int
    count: int
    whole: float  # the position is whole + part
    part: float

    @property
    def ends(self) -> list[Any]:
        """The first and the last value of the uniform."""
        return [arb(self.bits) / arb(2) ** self.count, arb(self.bits + 1) / arb(2) ** self.count]


def caught(kernel: Any, q: list[float], first: list[int], second: list[int]) -> list[Drawn]:
    """The positions that the array path works out and has not given up by then, and those of the scalar path."""
    work = inversion.Work(len(q))
    work.q[:], work.words[:] = q, first
    kept: list[Any] = []
    single: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        for module in (laplace, gaussian):
            patch.setattr(module, "round_to_cell", lambda w, _: kept.append((w.f.copy(), w.v.copy(), w.unsure.copy())))
            patch.setattr(module, "round_one", lambda whole, position, _: single.append((whole, position)))
        kernel.many(work, kernel.frame, Words(second))
        out = []
        for i, n in enumerate(first):
            bits, count = (n, 64) if i not in work.second else (n << 64 | work.second[i], 128)
            whole, part, unsure = (x[i] for x in kept[0])
            if not unsure:
                out.append(Drawn(q[i], bits, count, float(whole), float(part)))
            kernel.one(q[i], n)
            out += [Drawn(q[i], n, 64, *found) for found in single]
            single.clear()
    return out


# --- the true position -----------------------------------------------------------------------------------------


class Plain(NamedTuple):
    """Noise of scale 1 on the line."""

    below: Callable[[Any], Any]
    density: Callable[[Any], Any]


PLAIN = {
    "laplace": Plain(lambda x: x.exp() / 2 if x < 0 else 1 - (-x).exp() / 2, lambda x: (-abs(x)).exp() / 2),
    "gaussian": Plain(lambda x: (-x / arb(2).sqrt()).erfc() / 2, lambda x: (-x * x / 2).exp() / (2 * arb.pi()).sqrt()),
}


class Setting(NamedTuple):
    family: str
    pieces: tuple[tuple[float, float], ...]
    scale: float
    step: float

    @property
    def kernel(self) -> Any:
        domain = ib.Interval(*self.pieces[0]) if len(self.pieces) == 1 else ib.Spans(self.pieces)
        return sampler(self.family, domain, self.scale, "truncate", self.step)._kernel

    def masses(self, q: float) -> tuple[list[Any], list[Any]]:
        """The plain cdf at the first ends of the pieces, and the mass before each piece (and in all)."""
        plain, scale = PLAIN[self.family], arb(self.scale)
        starts, before = [], [arb(0)]
        for low, high in self.pieces:
            left = plain.below((arb(low) - arb(q)) / scale) if low > -INF else arb(0)
            right = plain.below((arb(high) - arb(q)) / scale) if high < INF else arb(1)
            starts.append(left)
            before.append(before[-1] + right - left)
        return starts, before

    def share(self, q: float, y: float) -> Any:
        """The cdf at y, an end of a piece or the true value."""
        starts, before = self.masses(q)
        i = max(i for i, (low, _) in enumerate(self.pieces) if low <= y)
        at = PLAIN[self.family].below((arb(min(y, self.pieces[i][1])) - arb(q)) / arb(self.scale))
        return (before[i] + at - starts[i]) / before[-1]

    def error(self, drawn: Drawn) -> float:
        """How far, in cells, the position is from that of any uniform which begins with the bits.

        By the mean value theorem: the error of the cdf over the density. They are taken at the computed position, which
        is right to first order, for errors that are tiny against the scale.
        """
        plain = PLAIN[self.family]
        starts, before = self.masses(drawn.q)
        y = (arb(drawn.whole) + arb(drawn.part)) * arb(self.step)
        x = (y - arb(drawn.q)) / arb(self.scale)
        at, density = plain.below(x), plain.density(x)
        worst = 0.0
        for u in drawn.ends:
            target = u * before[-1]
            i = max(i for i, b in enumerate(before[:-1]) if i == 0 or b <= target)
            off = (at - starts[i] - (target - before[i])) / density
            worst = max(worst, float(abs(off * arb(self.scale) / arb(self.step)).mid()))
        return worst

    def has(self, drawn: Drawn) -> bool:
        """Whether the position lies in the piece of the domain where it should."""
        _, before = self.masses(drawn.q)
        y = (arb(drawn.whole) + arb(drawn.part)) * arb(self.step)
        target = drawn.ends[0] * before[-1]
        i = max(i for i, b in enumerate(before[:-1]) if i == 0 or b <= target)
        return bool(self.pieces[i][0] <= y <= self.pieces[i][1])


def some_word(rng: np.random.Generator, share: Any) -> int:
    """A first word: anywhere, close to 0 or 1, about the shortest that need no second one, or close to a given cdf."""
    n = int(rng.integers(0, 2**64, dtype=np.uint64))
    match rng.integers(0, 5):
        case 0:
            n >>= int(rng.integers(0, 64))
        case 1:
            n = FULL - (n >> int(rng.integers(0, 64)))
        case 2:
            n = NEAR + n % 2**40
            n = n if rng.random() < 0.5 else FULL - n
        case 3:
            at = int((share * arb(2) ** 64).mid().floor().unique_fmpz())
            n = at + int(rng.integers(-(2**12), 2**12))
        case _:
            pass
    return min(max(n, 0), FULL)


def true_values(rng: np.random.Generator, low: float, high: float, scale: float) -> list[float]:
    """In a piece: its ends, next to them, close to them, and anywhere."""
    ends = [x for x in (low, high) if math.isfinite(x)] or [0.0]
    reach = min(high - low, 50 * scale)
    near = [end + side * reach * 10.0 ** rng.uniform(-18, 0) for end in ends for side in (-1, 1)]
    inner = [ends[0] + rng.uniform(-1, 1) * reach for _ in range(4)]
    ulps = [math.nextafter(end, to) for end in ends for to in (-INF, INF)]
    return [q for q in (*ends, *near, *inner, *ulps) if low <= q <= high]


def worst(settings: list[Setting], rng: np.random.Generator, count: int = 24) -> float:
    """The largest error over margin among draws from the settings."""
    largest = 0.0
    for setting in settings:
        kernel = setting.kernel
        values = [q for piece in setting.pieces for q in true_values(rng, *piece, setting.scale)]
        q = [values[i] for i in rng.integers(0, len(values), count)]
        with precision(360):
            landmarks = [x for piece in setting.pieces for x in piece if math.isfinite(x)]
            first = []
            for x in q:
                mark = x if len(setting.pieces) == 1 or rng.random() < 0.5 else float(rng.choice(landmarks))
                first.append(some_word(rng, setting.share(x, mark)))
            second = [int(rng.integers(0, 2**64, dtype=np.uint64)) >> int(rng.integers(0, 30)) for _ in q]
            for drawn in caught(kernel, q, first, second):
                if len(setting.pieces) > 1:
                    assert setting.has(drawn), f"a draw in the wrong piece: {setting}, {drawn}"
                largest = max(largest, setting.error(drawn) / kernel.frame.margin)
    return largest


def power(x: float) -> float:
    """The largest power of two up to x."""
    return 2.0 ** math.floor(math.log2(x))


def on_grid(family: str, pieces: list[tuple[float, float]], scale: float, step: float) -> Setting:
    """With a given step, or the default one where a piece would be left without a point."""
    domain = ib.Interval(*pieces[0]) if len(pieces) == 1 else ib.Spans(pieces)
    try:
        grid = sampler(family, domain, scale, "truncate", step).grid
    except ib.ParameterError:
        grid = sampler(family, domain, scale, "truncate").grid
    return Setting(family, tuple(pieces), scale, grid)


def intervals(family: str, rng: np.random.Generator, count: int, widths: tuple[float, float]) -> list[Setting]:
    """Of widths between powers of ten of the scale."""
    out = []
    for _ in range(count):
        scale = float(10 ** rng.uniform(-28, 28))
        offset = float(rng.choice([0.0, -1.0, 1.0]) * scale * 10 ** rng.uniform(-6, 6))
        width = max(scale * 10 ** rng.uniform(*widths), 1e-58)
        high = max(offset + width, math.nextafter(offset, INF))
        if high - offset < 1e-59:
            offset, high = 0.0, width
        step = power(scale) * 2.0 ** rng.integers(-40, 12)
        out.append(on_grid(family, [(offset, high)], scale, step))
    return out


def unbounded(family: str, rng: np.random.Generator, count: int) -> list[Setting]:
    out = []
    for i in range(count):
        scale = float(10 ** rng.uniform(-60, 60))
        end = float(rng.normal() * scale * 10 ** rng.uniform(-3, 3))
        ends = [(-INF, INF), (end, INF), (-INF, end)][i % 3]
        out.append(
            on_grid(family, [ends if abs(end) < 1e60 else LINE[0]], scale, power(scale) * 2.0 ** rng.integers(-40, 12))
        )
    return out


def spans(family: str, rng: np.random.Generator, count: int) -> list[Setting]:
    """Pieces and holes from tiny to wide against the scale, up to twelve pieces, some of them endless."""
    out = []
    for _ in range(count):
        scale = float(10 ** rng.uniform(-20, 20))
        size = int(rng.integers(2, 13))
        tiny = rng.uniform(-9, 0)
        lengths = scale * 10 ** rng.uniform(tiny, 1.2, 2 * size)
        ends = scale * float(rng.choice([0.0, -30.0, 1e4])) + np.cumsum(lengths)
        if np.any(np.diff(ends) <= 0):
            continue
        pieces = [(float(a), float(b)) for a, b in ends.reshape(size, 2)]
        if rng.random() < 0.3:
            pieces[0] = (-INF, pieces[0][1])
        if rng.random() < 0.3:
            pieces[-1] = (pieces[-1][0], INF)
        out.append(on_grid(family, pieces, scale, power(scale) * 2.0 ** rng.integers(-30, 0)))
    return out


def narrow_spans(family: str, rng: np.random.Generator, count: int) -> list[Setting]:
    """Two to forty pieces within one scale, or within far less of it."""
    out = []
    for _ in range(count):
        scale = float(10 ** rng.uniform(-20, 20))
        size = int(rng.integers(2, 13) if rng.random() < 0.7 else rng.integers(13, 41))
        lengths = 10 ** rng.uniform(rng.uniform(-4, 0), 0.5, 2 * size)
        hull = scale * float(rng.choice([1.0, rng.uniform(0.2, 1), 10 ** rng.uniform(-12, 0)])) * (1 - 1e-9)
        offset = hull * float(rng.choice([0.0, -0.5, -rng.random(), 10 ** rng.uniform(0, 6)]))
        ends = offset + np.cumsum(lengths) * (hull / np.sum(lengths[1:]))
        if np.any(np.diff(ends) <= 0) or not ends[-1] - ends[0] < scale:
            continue
        pieces = [(float(a), float(b)) for a, b in ends.reshape(size, 2)]
        widest = max(b - a for a, b in pieces)
        out.append(on_grid(family, pieces, scale, power(widest) * 2.0 ** rng.integers(-40, 0)))
    return out


def short_spans(family: str, rng: np.random.Generator, count: int) -> list[Setting]:
    """Pieces of at most one scale, from end to end at most 64 scales."""
    out = []
    for _ in range(count):
        scale = float(10 ** rng.uniform(-20, 20))
        size = int(rng.integers(2, 13))
        lengths = 10 ** rng.uniform(rng.uniform(-5, -0.1), rng.uniform(-0.1, 0.7), 2 * size)
        lengths[1::2] = np.minimum(lengths[1::2], 1.0 - 1e-9)  # of the pieces; the others lie before them
        if np.sum(lengths[1:]) > 64:
            continue
        ends = scale * (float(rng.choice([0.0, -20.0, 1e4])) + np.cumsum(lengths))
        pieces = [(float(a), float(b)) for a, b in ends.reshape(size, 2)]
        out.append(on_grid(family, pieces, scale, power(scale) * 2.0 ** rng.integers(-30, 0)))
    return out


def far_spans(family: str, rng: np.random.Generator, count: int) -> list[Setting]:
    """With one hole so wide that tables over all true values would be too large."""
    out = []
    for setting in spans(family, rng, count):
        shift = float(rng.choice([2e4, 1e6])) * setting.scale
        start = int(rng.integers(1, len(setting.pieces)))
        moved = [(a + shift, b + shift) for a, b in setting.pieces[start:]]
        if all(a < b for a, b in moved):
            out.append(on_grid(family, [*setting.pieces[:start], *moved], setting.scale, setting.step))
    return out


KERNELS: dict[str, Callable[[np.random.Generator, int], list[Setting]]] = {
    "laplace-wide": lambda rng, n: intervals("laplace", rng, n, (0, 7)),
    "laplace-just-wide": lambda rng, n: intervals("laplace", rng, n, (0, 0.01)),
    "laplace-narrow": lambda rng, n: intervals("laplace", rng, n, (-25, -1e-9)),
    "laplace-just-narrow": lambda rng, n: intervals("laplace", rng, n, (-0.3, -1e-9)),
    "laplace-unbounded": lambda rng, n: unbounded("laplace", rng, n),
    "laplace-spans": lambda rng, n: spans("laplace", rng, n),
    "laplace-narrow-spans": lambda rng, n: narrow_spans("laplace", rng, n),
    "laplace-short-spans": lambda rng, n: short_spans("laplace", rng, n),
    "laplace-far-spans": lambda rng, n: far_spans("laplace", rng, n),
    "gaussian-wide": lambda rng, n: intervals("gaussian", rng, n, (0, 7)),
    "gaussian-just-wide": lambda rng, n: intervals("gaussian", rng, n, (0, 0.01)),
    "gaussian-narrow": lambda rng, n: intervals("gaussian", rng, n, (-25, -1e-9)),
    "gaussian-just-narrow": lambda rng, n: intervals("gaussian", rng, n, (-0.3, -1e-9)),
    "gaussian-unbounded": lambda rng, n: unbounded("gaussian", rng, n),
    "gaussian-spans": lambda rng, n: spans("gaussian", rng, n),
    "gaussian-narrow-spans": lambda rng, n: narrow_spans("gaussian", rng, n),
    "gaussian-far-spans": lambda rng, n: far_spans("gaussian", rng, n),
}


MANY = pytest.param(1500, marks=pytest.mark.long)


@pytest.mark.parametrize("count", [40, MANY])
@pytest.mark.parametrize("name", KERNELS)
def test_no_position_is_off_by_its_margin(name: str, count: int) -> None:
    rng = np.random.default_rng(count)
    assert worst(KERNELS[name](rng, count), rng) < 1.0


# --- whole numbers -----------------------------------------------------------------------------------------------


def discrete_laplace_error(kernel: Any, drawn: Drawn) -> float:
    """As :meth:`Setting.error`; positions are ceil(b t) + 1/2 away from an edge where b t is whole.

    The middle cell reaches from the true value to b t = -1 on either side, where it is never left; what is computed for
    b t < -1/4 need only stay in that cell.
    """
    lower, upper, b = kernel.frame.lower, kernel.frame.upper, arb(kernel._b)
    a = ((arb(lower) - arb(drawn.q)) / b).exp() if lower > -INF else arb(0)
    e = ((arb(drawn.q) - arb(upper)) / b).exp() if upper < INF else arb(0)
    middle = (1 / b).expm1()
    z = 2 + middle - a - e
    errors = []
    for u in drawn.ends:
        s = (u * z - (1 + middle / 2 - a)) / z
        sides = [(-1, u * z + a)] * bool(s < 1e-12) + [(1, (1 - u) * z + e)] * bool(s > -1e-12)
        found = []
        for sign, mass in sides:
            bt = -b * mass.log()
            if bt < -0.25:
                assert abs(drawn.part) < 0.5
                found.append(0.0)
            else:
                found.append(float(abs(arb(drawn.part) - sign * (bt + 0.5)).mid()))
        errors.append(min(found))
    assert drawn.whole == drawn.q
    return max(errors)


def ranges(rng: np.random.Generator, width: int) -> tuple[float, float]:
    """The ends of a range of integers, mostly bounded."""
    low = int(rng.integers(-1000, 1000)) if rng.random() < 0.7 else int(rng.integers(-(2**51), 2**51))
    return [(low, low + width), (low, INF), (-INF, low + width), (-INF, INF)][
        int(rng.choice(4, p=[0.7, 0.1, 0.1, 0.1]))
    ]


def discrete_laplace_worst(rng: np.random.Generator, count: int, widths: tuple[float, float]) -> float:
    largest = 0.0
    for _ in range(count):
        scale = float(10 ** rng.uniform(-4, 7))
        width = max(1, int(scale * 10 ** rng.uniform(*widths)))
        low, high = ranges(rng, width) if widths[0] >= 0 else (-7, -7 + width)
        kernel = sampler("laplace", ib.Integers(low, high), scale, "truncate")._kernel
        inside = [x for x in (low, high, low + 1, high - 1) if math.isfinite(x)] or [0]
        start, stop = max(low, inside[0] - 50 * int(scale + 1)), min(high, inside[0] + 50 * int(scale + 1))
        q = [float(x) for x in (*inside, *rng.integers(int(start), int(stop), 20, endpoint=True))]
        with precision(360):
            first = [some_word(rng, arb(rng.random())) for _ in q]
            second = [int(rng.integers(0, 2**64, dtype=np.uint64)) >> int(rng.integers(0, 30)) for _ in q]
            for drawn in caught(kernel, q, first, second):
                largest = max(largest, discrete_laplace_error(kernel, drawn) / kernel.frame.margin)
    return largest


def discrete_gaussian_worst(rng: np.random.Generator, count: int, widths: tuple[float, float]) -> float:
    """At the exact edges of cells, by the bits of their cdf: the position has to be there, within the margin."""
    largest = 0.0
    for _ in range(count):
        scale = float(64 * 10 ** (rng.uniform(0, 0.2) if rng.random() < 0.5 else rng.uniform(0, 9)))
        width = max(2, int(scale * 10 ** rng.uniform(*widths)))
        low, high = ranges(rng, width) if widths[0] >= 0 else (11, 11 + width)
        kernel = gaussian.Gaussian(scale, float(low), float(high), 1.0, discrete=True)
        inside = [x for x in (low, high, (low + high) / 2) if math.isfinite(x)] or [0]
        q = float(int(rng.choice(inside)))
        start, stop = int(max(low, q - 9.9 * scale)), int(min(high - 1, q + 9.9 * scale))
        law = reference.law(reference.Setting("gaussian", ((low, high),), True, scale, "truncate", 1.0), q)
        for k in {start, stop, *rng.integers(start, stop, 6, endpoint=True).tolist()}:
            bits = law.floor(k, 128)
            found = caught(kernel, [q], [bits >> 64], [bits & FULL])
            for drawn in found:
                off = (Fraction(drawn.whole) - k) + Fraction(drawn.part) - Fraction(1, 2)
                largest = max(largest, abs(float(off)) / kernel.frame.margin)
    return largest


def sums_worst(rng: np.random.Generator, count: int) -> float:
    """Of the tables below sigma = 4096, where the margin is relative to the tail."""
    largest = 0.0
    for _ in range(count):
        scale = float(10 ** rng.uniform(-2, math.log10(63.9 if rng.random() < 0.8 else 4095.0)))
        low, high = ranges(rng, max(1, int(scale * 10 ** rng.uniform(-2, 2))))
        kernel = sampler("gaussian", ib.Integers(low, high), scale, "truncate")._kernel
        inside = [x for x in (low, high) if math.isfinite(x)] or [0]
        q = [float(min(max(int(rng.choice(inside)) + int(d), low), high)) for d in rng.normal(0, 3 * scale, 24)]
        with precision(300):
            n = 20 * math.ceil(scale) + 8
            weights = [(-arb(i * i) / (2 * arb(scale) ** 2)).exp() for i in range(n)]
            tails = [arb(0)]
            for weight in reversed(weights):
                tails.append(tails[-1] + weight)
            tails.reverse()  # the rest is below 2^-280
            for j in {1, 2, *rng.integers(1, max(2, math.ceil(10 * scale)), 12).tolist()}:
                if tails[j] > arb(2) ** -76:
                    off = abs(arb(kernel._sums[j]) / tails[j] - 1)
                    largest = max(largest, float(off.mid()) / kernel.frame.margin)
            work = inversion.Work(len(q))
            work.q[:], work.words[:] = q, [some_word(rng, arb(rng.random())) for _ in q]
            second = [int(rng.integers(0, 2**64, dtype=np.uint64)) >> int(rng.integers(0, 30)) for _ in q]
            kernel.many(work, kernel.frame, Words(second))
            for i, x in enumerate(q):
                bits, size = (
                    (int(work.words[i]), 64)
                    if i not in work.second
                    else (int(work.words[i]) << 64 | work.second[i], 128)
                )
                right = bool(work.mask[i])
                bits = bits ^ ((1 << size) - 1) if right else bits
                if bits < NEAR:
                    continue  # given up
                a, e = (tails[int(min(d, n - 1)) + 1] for d in (x - low, high - x))
                z = 2 * tails[1] + 1 - a - e
                for v in (arb(bits), arb(bits + 1)):
                    p = v / arb(2) ** size * z + (e if right else a)
                    largest = max(largest, float(abs(arb(work.v[i]) / p - 1).mid()) / kernel.frame.margin)
    return largest


WHOLE: dict[str, Callable[[np.random.Generator, int], float]] = {
    "laplace-wide": lambda rng, n: discrete_laplace_worst(rng, n, (0, 5)),
    "laplace-narrow": lambda rng, n: discrete_laplace_worst(rng, n, (-6, 0)),
    "gaussian-wide": lambda rng, n: discrete_gaussian_worst(rng, n, (0, 3)),
    "gaussian-narrow": lambda rng, n: discrete_gaussian_worst(rng, n, (-3, 0)),
    "gaussian-sums": sums_worst,
}


@pytest.mark.parametrize("count", [40, MANY])
@pytest.mark.parametrize("name", WHOLE)
def test_no_position_is_off_by_its_margin_on_whole_numbers(name: str, count: int) -> None:
    assert WHOLE[name](np.random.default_rng(count), count) < 1.0


# --- the checks above can fail -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_margins_without_the_rounding_errors_would_be_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All constants a thousand times smaller."""
    for module, constant in ((laplace, "LIBM"), (laplace, "ROUND"), (gaussian, "ROUND")):
        monkeypatch.setattr(module, constant, getattr(module, constant) / 1000)
    rng = np.random.default_rng(20252)
    if "spans" in name:  # certificates of pieces fail too
        with pytest.raises(AssertionError, match=r"wrong piece|noticed"):
            assert not worst(KERNELS[name](rng, 40), rng) > 1.0, "noticed"
    else:
        assert worst(KERNELS[name](rng, 40), rng) > 1.0


@pytest.mark.parametrize("name", WHOLE)
def test_margins_on_whole_numbers_would_be_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, constant in ((laplace, "LIBM"), (laplace, "ROUND"), (gaussian, "ROUND")):
        monkeypatch.setattr(module, constant, getattr(module, constant) / 1000)
    assert WHOLE[name](np.random.default_rng(20253), 40) > 1.0


def test_the_term_for_sums_over_whole_numbers_is_needed() -> None:
    """At sigma = 64 it is nearly all of the margin; a fiftieth of it would not do."""
    kernel = gaussian.Gaussian(64.0, -640.0, 640.0, 1.0, discrete=True)
    law = reference.law(reference.Setting("gaussian", ((-640, 640),), True, 64.0, "truncate", 1.0), 0.0)
    errors = []
    for k in (40, 100, 300, 560, 620):
        bits = law.floor(k, 128)
        for drawn in caught(kernel, [0.0], [bits >> 64], [bits & FULL]):
            errors.append(abs(float((Fraction(drawn.whole) - k) + Fraction(drawn.part) - Fraction(1, 2))))
    assert kernel.frame.margin / 50 < max(errors) < kernel.frame.margin


# --- the library functions ---------------------------------------------------------------------------------------


def logarithmic(rng: np.random.Generator, low: float, high: float, count: int) -> Any:
    """Positive numbers with logarithms (to base 2) that are evenly spread."""
    return 2.0 ** rng.uniform(low, high, count)


def exponents(rng: np.random.Generator) -> Any:
    return -np.concatenate([rng.uniform(0, 700, 6000), rng.uniform(0, 50, 8000), logarithmic(rng, -1000, 9, 8000)])


def tails(rng: np.random.Generator) -> Any:
    """Arguments of the logarithm: tails from 2^-140, numbers on either side of 1, and (whole numbers) up to e^600."""
    near_one = 1.0 + rng.choice([-1.0, 1.0], 8000) * logarithmic(rng, -52, -1, 8000)
    return np.concatenate(
        [rng.uniform(0, 2, 6000), logarithmic(rng, -140, 1, 6000), near_one, logarithmic(rng, 0, 865, 4000)]
    )


def around_zero(rng: np.random.Generator, low: float, high: float, most: float = 0.0) -> Any:
    """Numbers of a range, of any size and of either sign."""
    signed = rng.choice([-1.0, 1.0], 12_000) * logarithmic(rng, -1000, 0, 12_000)
    large = logarithmic(rng, 0, math.log2(most), 2000) if most else []
    return np.concatenate([np.clip(signed, low, high), rng.uniform(low, high, 10_000), large])


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[np.random.Generator], Any]]] = {
    "exp": (lambda x: x.exp(), exponents),
    "expm1": (lambda x: x.expm1(), lambda rng: around_zero(rng, -40, 1, most=600)),
    "log": (lambda x: x.log(), tails),
    "log1p": (lambda x: x.log1p(), lambda rng: around_zero(rng, -0.64, 1.8, most=2.0**100)),
}


def in_units(function: Callable[[Any], Any], points: Any, values: Any) -> float:
    """The largest relative error in units of 2^-53; a value has to be exact where the true one is 0."""
    largest = 0.0
    with precision(120):
        for x, y in zip(points.tolist(), values.tolist(), strict=True):
            true = function(arb(x))
            if true == 0:
                assert y == 0.0
            else:
                largest = max(largest, float(abs(arb(y) / true - 1).upper()) * 2.0**53)
    return largest


@pytest.mark.parametrize("name", FUNCTIONS)
def test_library_functions_are_four_times_as_accurate_as_assumed(name: str) -> None:
    """In an array, in place as the kernels call them, and of sizes that no vector register divides."""
    true, points = FUNCTIONS[name]
    x = points(np.random.default_rng(20254))
    np.random.default_rng(20255).shuffle(x)
    assert x.size >= 20_000
    function, single = getattr(np, name), getattr(math, name)
    whole, pieces = x.copy(), x.copy()
    function(whole, out=whole)
    start = 0
    while start < 2000:
        size = start % 37 + 1
        function(pieces[start : start + size], out=pieces[start : start + size])
        start += size
    bound = inversion.LIBM * 2.0**53 / 4
    assert in_units(true, x, whole) <= bound
    assert in_units(true, x[:start], pieces[:start]) <= bound
    assert in_units(true, x, np.array([single(t) for t in x.tolist()])) <= bound


def test_exponentials_for_tables_are_as_accurate_as_stated() -> None:
    rng = np.random.default_rng(20257)
    y = np.concatenate(
        [rng.uniform(0, normal.DECAY_END, 4000), logarithmic(rng, -60, 6, 2000), np.arange(0, 105, 1 / 128)]
    )
    assert in_units(lambda t: (-t).exp(), y, normal.decay(y)) <= normal.DECAY_ERROR
    x = np.concatenate([rng.uniform(-14, 14, 4000), logarithmic(rng, -60, 3.8, 2000), [0.0, 14.0]])
    found = normal.density(x)
    with precision(120):
        for point, value in zip(x.tolist(), found.tolist(), strict=True):
            off = abs(arb(value) / PLAIN["gaussian"].density(arb(point)) - 1)
            assert off * arb(2) ** 53 <= 8 + point * point / 2


def test_a_poor_library_would_be_noticed() -> None:
    x = exponents(np.random.default_rng(20256))[:2000]
    rounded = np.exp(x.astype(np.float32).astype(np.float64))
    assert in_units(lambda t: t.exp(), x, rounded) > inversion.LIBM * 2.0**53 / 4


# --- the enclosures of the slow path -----------------------------------------------------------------------------


def encloses(found: tuple[int, int], true: Any, bits: int) -> bool:
    """Whether a ball lies between the two, as far as the ball can tell; it must be much narrower than a unit."""
    scaled = true * arb(2) ** bits
    assert scaled.rad() < 2.0**-20
    return not (arb(found[0]) > scaled or arb(found[1]) < scaled)


def rationals(rng: np.random.Generator, bits: int) -> list[Fraction]:
    """Positive, small and large, with short and with long denominators."""
    out = [Fraction(0), Fraction(1), Fraction(bits + 2), Fraction(1, 10**60), Fraction(10**60)]
    out += [Fraction(float(10 ** rng.uniform(-20, 2.3))) for _ in range(12)]
    out += [Fraction(2) ** int(rng.integers(-400, 12)) for _ in range(4)]
    out += [Fraction(int(rng.integers(1, 2**62)), int(rng.integers(1, 2**62)) ** 2 + 1) * 2**62 for _ in range(4)]
    near = [Fraction(bits + 2) * (1 + Fraction(s, 10**d)) for s in (-1, 1) for d in (2, 9)]
    return out + near


PRECISIONS = (1, 3, 40, 64, 105, 169, 233, 700)


@pytest.mark.parametrize("bits", PRECISIONS)
def test_the_exponential_is_enclosed(bits: int) -> None:
    with precision(2 * bits + 400):
        for x in rationals(np.random.default_rng(bits), bits):
            low, high = found = exact.exp_neg(x, bits)
            assert encloses(found, (-ball(x)).exp(), bits), (x, bits)
            assert high - low <= 2


@pytest.mark.parametrize("bits", PRECISIONS)
def test_the_normal_cdf_is_enclosed(bits: int) -> None:
    with precision(8 * bits + 400):
        low, high = found = exact.root_two_pi(bits)
        assert encloses(found, (2 * arb.pi()).sqrt(), bits)
        assert high - low <= 2
        edge = math.sqrt(2 * (bits + 2))  # where the series gives way to a constant
        points = [Fraction(edge * (1 + s * 10.0**-d)) for s in (-1, 1) for d in (1, 4, 12)]
        for x in points + rationals(np.random.default_rng(bits + 1), bits):
            low, high = found = exact.normal_half(x, bits)
            assert encloses(found, (ball(x) / arb(2).sqrt()).erf() / 2, bits), (x, bits)
            assert high - low <= 2


@pytest.mark.parametrize("sigma", [1e-60, 0.02, 0.3, 1.0, 7.7, 30.25, math.nextafter(64.0, 0.0)])
@pytest.mark.parametrize("bits", [64, 105, 320])
def test_sums_over_whole_numbers_are_enclosed(sigma: float, bits: int) -> None:
    tails = exact.GaussianTails(sigma)
    assert tails.summed
    with precision(bits + 200):
        n = math.ceil(sigma * math.sqrt(2 * (bits + 100))) + 4
        true = [arb(0)]  # what is left out is below 2^-(bits + 100)
        for i in reversed(range(n)):
            true.append(true[-1] + (-arb(i * i) / (2 * arb(sigma) ** 2)).exp())
        true.reverse()
        for j in {0, 1, 2, n // 7, n // 3, n // 2, n - 1, n}:
            low, high = found = tails.tail(j, bits)
            assert encloses(found, true[j], bits), j
            assert high - low <= 4
        assert encloses(tails.whole(bits), true[0] + true[1], bits)
        low, high = tails.tail(10**40, bits)
        assert low == 0 <= high <= 4


@pytest.mark.parametrize("sigma", [64.0, 64.1, 100.3, 1e4, 1e9, 1e60])
@pytest.mark.parametrize("bits", [64, 105, 300])
def test_sums_by_euler_maclaurin_are_enclosed(sigma: float, bits: int) -> None:
    tails = exact.GaussianTails(sigma)
    assert not tails.summed
    exactly = Fraction(sigma)
    more = bits + 60 + math.ceil(math.log2(sigma))

    def upto(n: float) -> Any:
        """The sum over 1..n, in the reference: term by term for the smaller sigmas."""
        return reference.gaussian_sum(exactly, n, more) if n else arb(0)

    with precision(more + 200):
        unit = ball(exactly) * (2 * arb.pi()).sqrt()
        for x in (0.0, 0.01, 0.5, 1.0, 2.3, 4.0, 8.0, 11.0, 20.0):
            j = max(1, int(exactly * Fraction(x)))
            low, high = found = tails.tail(j, bits)
            assert encloses(found, (upto(INF) - upto(j - 1)) / unit, bits), (j, bits)
            assert high - low <= 6
        assert encloses(tails.whole(bits), (1 + 2 * upto(INF)) / unit, bits)


def test_wrong_enclosures_would_be_noticed() -> None:
    with precision(400):
        true = (-arb(1)).exp()
        low, high = exact.exp_neg(Fraction(1), 105)
        assert not encloses((low + 3, high + 3), true, 105)
        assert not encloses((low - 3, high - 3), true, 105)


# --- the two paths give the same ---------------------------------------------------------------------------------

DOMAINS: dict[str, tuple[str, Any, float]] = {
    "laplace": ("laplace", ib.Interval(-3.0, 7.5), 2.0),
    "laplace-narrow": ("laplace", ib.Interval(1e6, 1e6 + 1), 30.0),
    "laplace-half-line": ("laplace", ib.Interval(-INF, 5.25), 0.7),
    "laplace-line": ("laplace", ib.Interval(-INF, INF), 1e-40),
    "laplace-integers": ("laplace", ib.Integers(-20, 1000), 12.5),
    "laplace-integers-narrow": ("laplace", ib.Integers(0, 6), 300.0),
    "laplace-integers-steep": ("laplace", ib.Integers(-INF, INF), 1e-3),
    "laplace-spans": ("laplace", ib.Spans([(-INF, -1.0), (-0.5, 0.25), (0.3, 1.0), (4.0, 6.0)]), 0.8),
    "laplace-spans-short": ("laplace", ib.Spans([(0.0, 0.5), (0.75, 1.5), (4.0, 4.25), (9.0, 9.75)]), 0.8),
    "laplace-spans-narrow": ("laplace", ib.Spans([(5.0, 9.0), (9.5, 12.0), (14.0, 20.5)]), 30.0),
    "laplace-box": ("laplace", ib.Box([0.0, -1.0, -INF], [1.0, 30.0, 4.0]), 3.0),
    "laplace-integer-box": ("laplace", ib.Box([0, -1, -INF], [3, 300, 4], integer=True), 20.0),
    "gaussian": ("gaussian", ib.Interval(-3.0, 7.5), 2.0),
    "gaussian-narrow": ("gaussian", ib.Interval(1e6, 1e6 + 1), 30.0),
    "gaussian-half-line": ("gaussian", ib.Interval(-INF, 5.25), 0.7),
    "gaussian-line": ("gaussian", ib.Interval(-INF, INF), 1e40),
    "gaussian-sums": ("gaussian", ib.Integers(-20, 100), 12.5),
    "gaussian-sums-line": ("gaussian", ib.Integers(-INF, INF), 0.4),
    "gaussian-integers": ("gaussian", ib.Integers(-200, 1000), 150.0),
    "gaussian-integers-narrow": ("gaussian", ib.Integers(0, 60), 300.0),
    "gaussian-spans": ("gaussian", ib.Spans([(-INF, -1.0), (-0.5, 0.25), (0.3, 1.0), (4.0, 6.0)]), 0.8),
    "gaussian-spans-narrow": ("gaussian", ib.Spans([(5.0, 9.0), (9.5, 12.0), (14.0, 20.5)]), 30.0),
    "gaussian-spans-far": ("gaussian", ib.Spans([(-INF, -1.0), (-0.5, 0.25), (9e4, 9e4 + 1.0)]), 0.8),
    "gaussian-spans-long": ("gaussian", ib.Spans([(-100.0, 200.0), (201.0, 400.0)]), 0.8),
    "gaussian-integers-large": ("gaussian", ib.Integers(-200, 100_000), 5000.0),
    "gaussian-box": ("gaussian", ib.Box([0.0, -1.0, -INF], [1.0, 30.0, 4.0]), 3.0),
    "gaussian-integer-box": ("gaussian", ib.Box([0, -1, -INF], [70, 300, 4], integer=True), 90.0),
}


def never_sure(drawer: Any) -> Any:
    """The same sampler with margins that nothing passes."""
    kernels = [kernel for _, kernel in drawer._groups] if hasattr(drawer, "_groups") else [drawer._kernel]
    for kernel in kernels:
        large = np.full_like(kernel.frame.margin, 1e30) if isinstance(kernel.frame.margin, np.ndarray) else 1e30
        kernel.frame = kernel.frame._replace(margin=large)
    return drawer


def some_true_value(rng: np.random.Generator, low: float, high: float, scale: float, lattice: bool) -> float:
    values = true_values(rng, low, high, scale)
    values = [float(round(q)) for q in values] if lattice else values
    return float(rng.choice([q for q in values if low <= q <= high]))


CASES = [(name, False) for name in DOMAINS] + [(name, True) for name in DOMAINS if not DOMAINS[name][1].lattice]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("count", [100, MANY])
@pytest.mark.parametrize(("name", "coarse"), CASES)
def test_the_slow_path_gives_what_the_fast_path_gives(name: str, coarse: bool, count: int) -> None:
    family, domain, scale = DOMAINS[name]
    step = power(scale) / 8 if coarse else None
    fast = sampler(family, domain, scale, "truncate", step)
    slow = never_sure(sampler(family, domain, scale, "truncate", step))
    rng = np.random.default_rng(count)
    box = isinstance(domain, ib.Box)
    pieces = list(zip(domain.lower, domain.upper, strict=True)) if box else domain.pieces
    for i in range(count):
        q = [some_true_value(rng, *piece, scale, domain.lattice) for piece in pieces]
        n, *more = (some_word(rng, arb(rng.random())), *(int(x) for x in rng.integers(0, 2**64, 4, dtype=np.uint64)))
        if box:
            answers = [in_box(drawer, q, i % len(q), n, more) for drawer in (fast, slow)]
        else:
            true = q[i % len(q)]
            answers = [drawer.draw(np.array([true]), Words([n, *more])).item() for drawer in (fast, slow)]
            answers.append(fast.one(true, Words([n, *more])))
        assert len(set(answers)) == 1, (name, q, hex(n), answers)


class Apart:
    """A source whose first words and further words come from two lists."""

    def __init__(self, first: list[int], more: list[int]) -> None:
        self._first, self._more = Words(first), Words(more)

    def fill(self, words: Any) -> None:
        self._first.fill(words)

    def word(self) -> int:
        return self._more.word()


def in_box(drawer: Any, q: list[float], coordinate: int, n: int, more: list[int]) -> float:
    """One coordinate of a draw. The others get words that need no further ones; where all do, it goes by itself."""
    order = [int(i) for columns, _ in drawer._groups for i in columns]
    if np.all(drawer._groups[0][1].frame.margin < 1.0):
        first = [n if i == coordinate else 0x5555_5555_5555_5555 for i in order]
        return float(drawer.draw(np.array([q]), Apart(first, more))[0, coordinate])
    for columns, kernel in drawer._groups:
        if coordinate in columns:
            at = int(np.flatnonzero(columns == coordinate)[0])
            k = kernel.settle(q[coordinate], at, 0.0, [n], Words(more))
    return float(k) * float(drawer.grid[coordinate])


# --- ends of pieces ----------------------------------------------------------------------------------------------


def at_the_ends_of_holes(family: str, rng: np.random.Generator) -> Iterator[tuple[Any, float, int]]:
    """Samplers, true values at the end of a piece, and words about the share of the domain up to some end."""
    for _ in range(5):
        low, *lengths, scale = rng.uniform(0.2, 3, 7)
        ends = low + np.cumsum(lengths)
        pieces = [(float(low), float(ends[0])), (float(ends[1]), float(ends[2])), (float(ends[3]), float(ends[4]))]
        step = power(scale) / 2.0 ** rng.integers(4, 40)
        setting = on_grid(family, pieces, float(scale), step)
        drawer = sampler(family, ib.Spans(pieces), float(scale), "truncate", setting.step)
        for q in (x for piece in pieces for x in piece):
            for y in (x for piece in pieces for x in piece):
                with precision(200):
                    at = int((setting.share(q, y) * arb(2) ** 64).mid().floor().unique_fmpz())
                for _ in range(2):
                    yield drawer, q, min(max(at + int(rng.integers(-6000, 6000)), 0), FULL)


@pytest.mark.parametrize("family", ["laplace", "gaussian"])
def test_true_values_at_the_end_of_a_piece(family: str) -> None:
    """The side of the true value is decided with a rounding error; beyond a hole the two sides are not neighbours."""
    for drawer, q, n in at_the_ends_of_holes(family, np.random.default_rng(20258)):
        exactly = drawer._kernel.settle(q, None, q / drawer.grid, [n], Words([])) * drawer.grid
        assert drawer.draw(np.array([q]), Words([n])).item() == exactly, (q, hex(n))
        assert drawer.one(q, Words([n])) == exactly, (q, hex(n))


@pytest.mark.parametrize("family", ["laplace", "gaussian"])
@pytest.mark.parametrize("zeros", range(10, 126, 5))
def test_deep_tails_on_spans(family: str, zeros: int) -> None:
    drawer = sampler(family, ib.Spans([(-1000.0, -0.5), (0.5, 1000.0)]), 1.0, "truncate", 2.0**-8)
    for right in (False, True):
        bits = 3 << 126 - zeros
        words = [w ^ FULL if right else w for w in (bits >> 64, bits & FULL)]
        exactly = drawer._kernel.settle(1.0, None, 0.0, words, Words([])) * drawer.grid
        assert drawer.draw(np.array([1.0]), Words(words)).item() == exactly


# --- parameters at their limits ------------------------------------------------------------------------------------

EXTREME: dict[str, tuple[Any, float, float | None]] = {
    "scale-huge": (ib.Interval(0.0, 1.0), 1e60, None),
    "scale-tiny": (ib.Interval(-1.0, 1.0), 1e-60, None),
    "ends-huge": (ib.Interval(-1e60, 1e60), 1e55, None),
    "width-tiny": (ib.Interval(0.0, 1e-60), 1e-61, None),
    "offset-huge": (ib.Interval(2.0**60, 2.0**60 + 2048), 10.0, None),
    "step-wider-than-the-domain": (ib.Interval(-0.3, 0.4), 0.1, 64.0),
    "step-far-too-fine": (ib.Interval(0.0, 1.0), 1.0, 2.0**-300),
    "step-far-too-coarse": (ib.Interval(0.25, INF), 1e-3, 2.0**200),
    "integers-to-the-limit": (ib.Integers(-(2**53), 2**53), 2.0**50, None),
    "integers-steep": (ib.Integers(0, 5), 1e-60, None),
    "integers-flat": (ib.Integers(0, 5), 1e60, None),
    "holes-tiny": (ib.Spans([(0.0, 1.0), (math.nextafter(1.0, 2.0), 2.0), (2.0 + 2.0**-40, 3.0)]), 0.5, None),
    "pieces-tiny-against-the-scale": (ib.Spans([(0.0, 1.0), (2.0, 3.0)]), 1e20, None),
    "pieces-tiny-against-the-hole": (ib.Spans([(0.0, 1e-3), (1e9, 1e9 + 1)]), 1e-3, None),
    "hole-without-width-in-scales": (ib.Spans([(-2000.0, 0.0), (5e-324, 2000.0)]), 2.0, None),
    "piece-out-of-reach": (ib.Spans([(-1e-13, 1e-13), (7.0, 100.0)]), 1.0, 2.0**-6),
    "endless-flat": (ib.Spans([(-INF, 0.0), (2.0, INF)]), 1e20, None),
}


@pytest.mark.parametrize("family", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", EXTREME)
def test_extreme_parameters(family: str, name: str) -> None:
    """No warning (they are errors here), no exception, nothing outside the domain, and the same from both paths."""
    domain, scale, step = EXTREME[name]
    fast = sampler(family, domain, scale, "truncate", step)
    slow = never_sure(sampler(family, domain, scale, "truncate", step))
    rng = np.random.default_rng(20259)
    for _ in range(16):
        q = some_true_value(rng, *domain.pieces[rng.integers(len(domain.pieces))], scale, domain.lattice)
        words = [some_word(rng, arb(rng.random())), *(int(x) for x in rng.integers(0, 2**64, 4, dtype=np.uint64))]
        answers = {drawer.draw(np.array([q]), Words(words)).item() for drawer in (fast, slow)}
        answers.add(fast.one(q, Words(words)))
        assert len(answers) == 1
        assert answers.pop() in domain


def test_values_at_the_wall_of_a_wide_hole() -> None:
    """The hole is 10^12 scales wide: what is computed for the piece on its other side must not overflow."""
    drawer = sampler("laplace", ib.Spans([(0.0, 1.0), (1e9, 1e9 + 1)]), 1e-3, "truncate")
    for q in (1.0, 1e9):
        assert np.all(np.abs(drawer.draw(np.full(60_000, q), Seeded(1)) - q) < 1.0)
        source = Seeded(1)
        assert all(abs(drawer.one(q, source) - q) < 1.0 for _ in range(30_000))


LOST = {"gaussian": ((-1e-18, 1e-18), (8.0, 200.0)), "laplace": ((-1e-18, 1e-18), (35.0, 200.0))}


def test_nothing_is_sure_where_the_mass_of_the_domain_is_lost_in_rounding() -> None:
    """A true value in a piece of no width and the next piece 8 sigma away: 1 less what is missing is rounding error."""
    for kernel, family in ((gaussian.GaussianOnManySpans, "gaussian"), (laplace.LaplaceOnSpans, "laplace")):
        assert kernel(1.0, np.array(LOST[family]), 64.0).frame.margin == INF


@pytest.mark.parametrize("family", LOST)
def test_sums_of_pieces_keep_what_differences_lose(family: str) -> None:
    """Such domains, for Laplace noise with a short second piece: the two pieces, of about equal mass, are added up."""
    start, end = LOST[family][1]
    domain = ib.Spans([(-1e-15, 1e-15), (start, end if family == "gaussian" else start + 1.0)])
    drawer = sampler(family, domain, 1.0, "truncate", 64.0 if family == "gaussian" else 2.0**-6)
    assert drawer._kernel.frame.margin < 0.01
    rng = np.random.default_rng(20260)
    landed = set()
    for _ in range(200):
        q, n = float(rng.choice([-1e-15, 0.0, 1e-15])), int(rng.integers(0, 2**64, dtype=np.uint64))
        exactly = drawer._kernel.settle(q, None, 0.0, [n], Words([])) * drawer.grid
        assert drawer.draw(np.array([q]), Words([n])).item() == exactly
        landed.add(exactly > 0)
    assert landed == {False, True}


@pytest.mark.parametrize("end", [5e-324, 1e-300])
def test_ends_that_vanish_against_the_step(end: float) -> None:
    """end / step is 0 in float64; the grid position 0 is outside all the same."""
    for step in (2.0, 2.0**190):
        drawer = sampler("laplace", ib.Interval(end, 8 * step), step, "truncate", step)
        assert np.all(drawer.draw(np.full(200, end), Seeded(1)) >= end)
        mirrored = sampler("laplace", ib.Interval(-8 * step, -end), step, "truncate", step)
        assert np.all(mirrored.draw(np.full(200, -end), Seeded(1)) <= -end)
