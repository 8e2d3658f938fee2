"""Cases for the sampler: settings, true values and bit strings, with the value that the reference finds.

``python -m tests.vectors.make_sampling`` writes ``sampling.json``, byte for byte the same every time. The long tests
take more cases from :func:`random_cases`. Random choices use whole-number arithmetic and correctly rounded operations
only (no powers, logarithms or cosines), so that they do not depend on the mathematical library of the platform.

How bits are chosen (``mode``)
------------------------------
random
    64 random bits, and more where those do not decide.
zeros, ones
    40 to 300 leading bits alike, then random ones.
edge
    The cdf at the end of a cell, plus or minus a power of two from 2^-62 to 2^-384.
bracket
    The cdf at the end of a cell, cut off after 64 to 384 bits, as it is or moved by one unit; then more bits, all zero,
    all one or random.
near
    The cdf at the end of a cell, plus or minus a small part of the cell's own probability: 2^-4 to 2^-70 of it, where a
    floating-point inverse is about to err.
hole below, hole above
    The cdf at the end of the last cell before a hole (for clamped noise, the middle of the hole), minus or plus half
    the probability of a cell there, or less; the true value is on the brink of the hole.
half
    The same as bracket where the cell ends at the true value of a symmetric law, so that the cdf is exactly one half.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from pathlib import Path
from random import Random
from typing import Any

from tests.sampling_reference import Case, Cut, Setting, answer, default_grid, law, points, settle

PATH = Path(__file__).parent / "sampling.json"
SEED = 20_231_116
INF = math.inf
ONES = 2**64 - 1

FAMILIES = ("laplace", "gaussian")
EDGES = ("truncate", "clamp", "ignore")
MODES = ("random", "zeros", "ones", "edge", "bracket", "near", "hole below", "hole above", "half")
SHAPES = (
    "interval",
    "half-line up",
    "half-line down",
    "line",
    "spans",
    "unbounded spans",
    "integers",
    "integers up",
    "integers down",
    "all integers",
    "box",
    "integer box",
)

# Of one setting, the telling ones more than once.
CHOSEN_MODES = (*MODES, "edge", "edge", "bracket", "near", "hole below", "hole above", "half")
RANDOM_MODES = (*MODES, "edge", "edge", "bracket", "near")

Pieces = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Config:
    """What a sampler is made from. The pieces of a box are its coordinates, of the other kinds the domain's pieces."""

    family: str
    kind: str  # interval, spans, integers, box or integer box
    pieces: Pieces
    scale: float
    edges: str
    granularity: float | None = None

    @property
    def lattice(self) -> bool:
        return "integer" in self.kind

    @property
    def settings(self) -> tuple[Setting, ...]:
        """One setting per coordinate of a box, otherwise one."""
        domains = [(piece,) for piece in self.pieces] if "box" in self.kind else [self.pieces]
        return tuple(
            Setting(
                self.family,
                pieces,
                self.lattice,
                self.scale,
                self.edges,
                self.granularity or default_grid(pieces, self.lattice, self.scale),
            )
            for pieces in domains
        )

    @property
    def shape(self) -> str:
        if "box" in self.kind:
            return self.kind
        down, up = self.pieces[0][0] == -INF, self.pieces[-1][1] == INF
        if self.kind == "spans":
            return "unbounded spans" if down or up else "spans"
        names = SHAPES[6:10] if self.lattice else SHAPES[:4]
        return names[2 * down + up]


@dataclass(frozen=True)
class Vector:
    """One case for a domain of one dimension (or a box of one coordinate)."""

    config: Config
    mode: str
    case: Case
    value: float


@dataclass(frozen=True)
class BoxVector:
    """One vector-valued draw. Coordinate i reads its own first word, then ``more`` again and again.

    The same further word for all: so the order in which coordinates ask for more does not matter.
    """

    config: Config
    q: tuple[float, ...]
    first: tuple[int, ...]
    more: int
    values: tuple[float, ...]


# --- random choices ------------------------------------------------------------------------------


def log_uniform(rng: Random, low: int, high: int) -> float:
    """About log-uniform from 2^low to 2^high."""
    return math.ldexp(1.0 + rng.random(), rng.randint(low, high - 1))


def word(rng: Random) -> int:
    return rng.getrandbits(64)


def true_value(rng: Random, setting: Setting) -> float:
    """A point of the domain: at and next to walls, on and off the grid, halfway between grid points, far out."""
    lo, hi = rng.choice(setting.pieces)
    found = (_whole_value if setting.lattice else _real_value)(rng, setting, lo, hi)
    if lo <= found <= hi:
        return found + 0.0  # no -0.0
    return next(x for x in (lo, hi, 0.0) if math.isfinite(x) and lo <= x <= hi)


def _whole_value(rng: Random, setting: Setting, lo: float, hi: float) -> float:
    if math.isfinite(lo) and math.isfinite(hi):
        return float(rng.choice([lo, hi, lo + 1, hi - 1, (lo + hi) // 2, rng.randint(int(lo), int(hi))]))
    wall, sign = (lo, 1) if math.isfinite(lo) else (hi, -1) if math.isfinite(hi) else (0.0, rng.choice((-1, 1)))
    away = rng.choice([0, 1, 2, 7, rng.getrandbits(10), rng.getrandbits(rng.randint(1, 45)), 2**53, 10**18])
    return float(wall + sign * away)


def _real_value(rng: Random, setting: Setting, lo: float, hi: float) -> float:
    kind = rng.randrange(9)
    bounded = math.isfinite(lo) and math.isfinite(hi)
    if not bounded:
        wall, sign = (lo, 1) if math.isfinite(lo) else (hi, -1) if math.isfinite(hi) else (0.0, rng.choice((-1, 1)))
        away = rng.choice([0.0, 0.1, 1.0, 1e18, setting.scale, setting.scale * log_uniform(rng, -8, 8), 3e30])
        if kind < 5:
            return wall + sign * away
        lo, hi = sorted((wall, wall + sign * setting.scale * 8))
    if kind == 0:
        return rng.choice((lo, hi))
    if kind == 1:
        return rng.choice((math.nextafter(lo, INF), math.nextafter(hi, -INF)))
    if kind == 2:
        return lo + (hi - lo) / 2
    if kind == 3:
        return rng.choice((lo + (hi - lo) * log_uniform(rng, -45, -1), hi - (hi - lo) * log_uniform(rng, -45, -1)))
    if kind in (4, 5):  # on the grid, and halfway between two points where a float can be
        index = math.floor(Fraction(lo + (hi - lo) * rng.random()) / Fraction(setting.grid))
        return float((index + Fraction(kind - 4, 2)) * Fraction(setting.grid))
    return lo + (hi - lo) * rng.random()


# --- bits ----------------------------------------------------------------------------------------


def _some_cut(rng: Random, setting: Setting, q: float) -> tuple[Cut, int]:
    """The end of some cell (None where there is one cell only), and the index of the cell."""
    grid = points(setting)
    kind = rng.randrange(5)
    if kind < 2:
        found = answer(setting.at(q, word(rng), 64))
        index = grid.snap(round(Fraction(q) / grid.step)) if found is None else _index(setting, found)
    elif kind < 4:
        away = Fraction(setting.scale) * Fraction(log_uniform(rng, -6, 6 if setting.family == "laplace" else 4))
        index = grid.snap(round((Fraction(q) + rng.choice((-1, 1)) * away) / grid.step))
    else:
        ends = [int(k) for run in grid.runs for k in run if math.isfinite(k)]
        index = rng.choice(ends) if ends else grid.snap(round(Fraction(q) / grid.step))
    # Where floats are coarser than the grid the last index of the same float ends the interval of bits.
    first, last = grid.indices(grid.value(index)) or (index, index)
    if grid.upper(last) is not None:
        return grid.upper(last), last
    before = grid.before(first)
    return (None, last) if before is None else (grid.upper(before), before)


def _index(setting: Setting, value: float) -> int:
    found = points(setting).indices(value)
    assert found is not None
    return found[0]


def _half_cut(setting: Setting, q: float) -> tuple[Cut, int] | None:
    """The cell that ends at the true value, if the cdf is one half there."""
    grid = points(setting)
    index = math.floor(Fraction(q) / grid.step)
    if setting.lattice or not grid.has(index) or grid.upper(index) != Fraction(q):
        return None
    return (Fraction(q), index) if law(setting, q).is_half(Fraction(q)) else None


def _clipped(bits: int, count: int) -> int:
    return min(max(bits, 0), 2**count - 1)


def _words(bits: int) -> int:
    """The number of bits, in whole words, that holds this many."""
    return 64 * -(-bits // 64)


def find(rng: Random, setting: Setting, q: float, mode: str) -> tuple[Case, float] | None:
    """Bits of a mode and the value they release, or None where the mode does not apply."""

    def random_word() -> int:
        return word(rng)

    if mode == "random":
        return settle(setting.at(q, word(rng), 64), random_word)
    if mode in ("zeros", "ones"):
        run = rng.randint(40, 150) if rng.random() < 0.75 else rng.randint(151, 300)
        count = _words(run + 33)
        bits = (1 << (count - run - 1)) | rng.getrandbits(count - run - 1)
        return settle(setting.at(q, bits if mode == "zeros" else 2**count - 1 - bits, count), random_word)
    noise = law(setting, q)
    if mode in ("hole below", "hole above"):
        grid = points(setting)
        if len(grid.runs) == 1:
            return None
        sides = [(left[1], right[0]) for left, right in pairwise(setting.pieces)]
        index = int(rng.choice([run[1] for run, ends in zip(grid.runs, sides, strict=False) if q in ends]))
        end, count = grid.upper(index), 320
        assert end is not None
        cell = noise.floor(end, count) - noise.floor(end - grid.step, count)
        part = cell >> rng.choice((1, 1, 1, 8, 40))
        bits = noise.floor(end, count) + (part if mode == "hole above" else -part)
        return settle(setting.at(q, _clipped(bits, count), count), random_word, index)
    half = _half_cut(setting, q) if mode == "half" else None
    if mode == "half" and half is None:
        return None
    cut, index = half or _some_cut(rng, setting, q)
    if cut is None:
        return None
    if mode == "edge":
        power = rng.choice((62, 63, 64, 65, 128, 192, 256, 320, 383, 384, rng.randint(62, 384), rng.randint(62, 384)))
        count = _words(power + 32)
        bits = noise.floor(cut, count) + rng.choice((-1, 1)) * (1 << (count - power))
        return settle(setting.at(q, _clipped(bits, count), count), random_word, index)
    if mode == "near":
        count = 192
        low = points(setting).lower(index)
        bits = noise.floor(cut, count)
        cell = bits - (0 if low is None else noise.floor(low, count))
        bits += rng.choice((-1, 1)) * (cell >> rng.randint(4, 70))
        return settle(setting.at(q, _clipped(bits, count), count), random_word, index)
    count = 64 * rng.randint(1, 6)
    bits = _clipped(noise.floor(cut, count) + rng.choice((-1, 0, 0, 1)), count)
    if rng.random() < 0.6:
        bits, count = (bits << 64) | rng.choice((0, ONES, word(rng))), count + 64
    return settle(setting.at(q, bits, count), random_word, index)


def vector(rng: Random, config: Config, mode: str) -> Vector | None:
    """A case of a setting, or None where the mode does not apply to it."""
    (setting,) = config.settings
    if mode == "half":
        q = half_value(rng, setting)
    elif "hole" in mode:
        q = rng.choice([end for piece in setting.pieces for end in piece][1:-1] or [None])
    else:
        q = true_value(rng, setting)
    found = None if q is None else find(rng, setting, q, mode)
    return None if found is None else Vector(config, mode, *found)


def half_value(rng: Random, setting: Setting) -> float | None:
    """A true value at which the law is symmetric and a cell ends, if there is one."""
    if setting.lattice:
        return None
    lo, hi = setting.pieces[len(setting.pieces) // 2]
    middle = lo + (hi - lo) / 2 if math.isfinite(lo) and math.isfinite(hi) else 0.0
    step = Fraction(setting.grid)
    candidates = [middle]
    for _ in range(6):
        start = middle if setting.edges == "truncate" else true_value(rng, setting)
        candidates.append(float((math.floor(Fraction(start) / step) + Fraction(1, 2)) * step))
    inside = [x for x in candidates if any(a <= x <= b for a, b in setting.pieces)]
    return next((x for x in inside if _half_cut(setting, x) is not None), None)


def box_vector(rng: Random, config: Config) -> BoxVector:
    """A draw of all coordinates at once, their first words at random, at the ends of cells or deep in the tails."""
    settings = config.settings
    q = tuple(true_value(rng, setting) for setting in settings)
    first = tuple(first_word(rng, setting, x) for setting, x in zip(settings, q, strict=True))
    more = word(rng)
    values = tuple(expected(setting, x, n, more) for setting, x, n in zip(settings, q, first, strict=True))
    return BoxVector(config, q, first, more, values)


def first_word(rng: Random, setting: Setting, q: float) -> int:
    kind = rng.randrange(8)
    if kind < 4:
        return word(rng)
    if kind == 4:
        return rng.choice((0, 1, ONES, rng.getrandbits(20), ONES - rng.getrandbits(20)))
    cut, _ = _some_cut(rng, setting, q)
    return word(rng) if cut is None else _clipped(law(setting, q).floor(cut, 64) + rng.choice((-1, 0, 0, 1)), 64)


def expected(setting: Setting, q: float, first: int, more: int) -> float:
    """The value for the bits ``first``, ``more``, ``more``, ..."""
    return settle(setting.at(q, first, 64), lambda: more)[1]


# --- settings ------------------------------------------------------------------------------------


def _crossed(kind: str, entries: list[tuple[Any, float, float | None]]) -> Iterator[Config]:
    for pieces, scale, granularity in entries:
        for family in FAMILIES:
            for edges in EDGES:
                ends = tuple((float(lo), float(hi)) for lo, hi in pieces)
                yield Config(family, kind, ends, scale, edges, granularity)


def chosen_configs() -> list[Config]:
    """The settings of the committed cases, each with both families and all edges."""
    fine = 2.0**-40
    intervals: list[tuple[Any, float, float | None]] = [
        (((0, 10),), 1.0, None),
        (((-1, 2),), 0.3, None),
        (((0, 1),), 1e6, None),
        (((0, 1),), 1e20, None),  # width over scale 1e-20
        (((0, 1e10),), 1.0, None),  # and 1e10
        (((0, 1),), 1e-3, None),
        (((0, 2),), 0.7, 1.0),  # three points
        (((0, 3),), 1.3, 1.0),  # four, the law at 1.5 symmetric at a cell's end
        (((-0.9, 1.2),), 0.25, 1.0),  # ends off the grid
        (((1e9, 1e9 + 1),), 0.5, None),  # a grid raised by the offset
        (((0, 1),), 0.2, fine),
        (((-1, 1),), 3.0, 2.0**-20),
        (((1e-40, 3e-40),), 1e-40, None),
        (((-1e18, 5e17),), 1e17, None),
        (((0.1, 1.1),), 0.1, None),
        (((0, 1000),), 1.0, None),
    ]
    spans: list[tuple[Any, float, float | None]] = [
        (((0, 1), (3, 4)), 1.0, None),
        (((0, 1), (3, 4), (4.5, 7)), 1e20, None),
        (((0, 1), (3, 4)), 1e-3, None),
        (((0, 2), (5, 6), (9, 10)), 2.0, 1.0),
        (((-3, -2), (-1, 2), (3, 4)), 1.0, 1.0),  # its own mirror image about 0.5, where a cell ends
        (((0, 1e-30), (1, 1e10)), 1.0, None),  # floats coarser than the grid
        (((0, 2**52), (2**52 + 3, 2**52 + 7)), 3.0, 1.0),  # the middle of the hole is between two floats
        (((0, 1), (1 + 2**-30, 2), (1e6, 1e6 + 0.5)), 1e3, None),
        (tuple((3.0 * i, 3.0 * i + 0.1 * (i + 1)) for i in range(12)), 4.0, None),
        (((-INF, -1), (0, 0.5), (2, INF)), 1.0, None),
        (((-INF, -1), (1, 3)), 0.2, 0.5),
        (((0, 1), (4, 5.5), (9, INF)), 20.0, None),
    ]
    lines: list[tuple[Any, float, float | None]] = [
        (((0, INF),), 1.0, None),
        (((-3.7, INF),), 100.0, 1.0),
        (((1e9, INF),), 1e-3, None),
        (((-INF, 0),), 1.0, None),
        (((-INF, 5.3),), 1e18, None),
        (((-INF, INF),), 1.0, None),
        (((-INF, INF),), 0.3, 4.0),
        (((-INF, INF),), 1e-20, None),
    ]
    integers: list[tuple[Any, float, float | None]] = [
        (((0, 2),), 0.4, None),
        (((0, 2),), 1e9, None),
        (((0, 1),), 1.0, None),
        (((0, 100),), 3.0, None),
        (((0, 10),), 1e-3, None),
        (((-20, 10),), 0.05, None),
        (((0, 1000),), 1e15, None),
        (((0, 5e11),), 50.0, None),
        (((-(2**53), 2**53),), 1e6, None),
        (((2**53 - 40, 2**53),), 10.0, None),
        (((0, 400),), 63.9, None),
        (((-1000, 1000),), 64.0, None),
        (((-500, 800),), 64.1, None),
        (((0, 100_000),), 200.0, None),
        (((0, INF),), 1.0, None),
        (((0, INF),), 65.0, None),
        (((-7, INF),), 1e6, None),
        (((-INF, 0),), 0.7, None),
        (((-INF, 12),), 5000.0, None),
        (((-INF, INF),), 2.5, None),
        (((-INF, INF),), 60.0, None),
        (((-INF, INF),), 1e9, None),
    ]
    narrow: list[tuple[Any, float, float | None]] = [  # within one scale, or far less; only truncated noise sees that
        (tuple((i, i + 0.5) for i in range(11)), 105.0, None),
        (((0, 1), (3, 4)), 4.0, None),  # exactly one scale
        (((0, 2), (5, 8), (9, 11)), 40.0, 1.0),  # three points in a piece
        (((-0.3, 0.1), (0.2, 0.30000001), (0.5, 0.7)), 1e12, None),
        (((1e6, 1e6 + 1), (1e6 + 1.5, 1e6 + 2)), 3.0, 2.0**-30),
        (tuple((2.0**-i, 1.25 * 2.0**-i) for i in range(9, -1, -1)), 1.5, None),
        (tuple((0.3 * i, 0.3 * i + 0.2) for i in range(40)), 13.0, None),
        (((-2, -1), (-0.5, 0.5), (1, 2)), 8.0, 0.25),  # its own mirror image
    ]
    ends_of_boxes: list[tuple[Any, float, float | None]] = [(((0, 8 + 2**-24),), 1.0, None), (((2, INF),), 3.0, None)]
    integer_boxes: list[tuple[Any, float, float | None]] = [(((0, 9),), 2.0, None), (((-INF, 3),), 80.0, None)]
    return [
        *_crossed("interval", intervals + lines),
        *_crossed("spans", spans),
        *_crossed("integers", integers),
        *_crossed("box", ends_of_boxes),
        *_crossed("integer box", integer_boxes),
        *(config for config in _crossed("spans", narrow) if config.edges == "truncate"),
    ]


def chosen_boxes() -> list[Config]:
    mixed = ((0, 1), (-5, 1000), (0, INF), (-INF, INF), (1e9, 1e9 + 1), (-1e-6, 1e-6))
    whole = ((0, 2), (-1000, 1000), (0, INF), (-INF, INF), (-(2**53), 2**53))
    entries: list[tuple[Any, float, float | None]] = [(mixed, 0.7, None), (mixed[:3], 1e5, None)]
    integer: list[tuple[Any, float, float | None]] = [(whole, 3.0, None), (whole[:2], 90.0, None)]
    return [*_crossed("box", entries), *_crossed("integer box", integer)]


def random_config(rng: Random) -> Config:
    """A setting for one coordinate; the committed ones are the corners, these fill the space between."""
    family = rng.choice(FAMILIES)
    edges = rng.choice(("truncate", "truncate", "clamp", "ignore"))
    shape = rng.choice((*SHAPES, "interval", "spans"))
    if "integer" in shape:
        return _random_integers(rng, family, edges, shape)
    if shape in ("spans", "unbounded spans"):
        pieces = _random_spans(rng, shape)
        width = pieces[-1][1] - pieces[0][0]
        if width == INF:
            width = pieces[-2][1] - pieces[1][0] if len(pieces) > 2 else 1.0
        scale = width * log_uniform(rng, -12, 12) if rng.random() < 0.8 else width * log_uniform(rng, -33, 66)
    else:
        pieces, width = _random_interval(rng, "interval" if shape == "box" else shape)
        scale = width * log_uniform(rng, -10, 6) if rng.random() < 0.6 else width * log_uniform(rng, -33, 66)
    kind = "spans" if "spans" in shape else "box" if shape == "box" else "interval"
    granularity = None if kind == "box" or rng.random() < 0.5 else _random_grid(rng, pieces, scale)
    return Config(family, kind, pieces, scale, edges, granularity)


def _random_interval(rng: Random, shape: str) -> tuple[Pieces, float]:
    width = rng.choice((1.0, 2.0, 10.0, 1000.0, log_uniform(rng, -30, 40)))
    start = rng.choice((0.0, 0.0, -width / 2, width * (rng.random() - 0.5), width * log_uniform(rng, 3, 31)))
    lo, hi = start, start + width
    if shape == "half-line up":
        hi = INF
    elif shape == "half-line down":
        lo = -INF
    elif shape == "line":
        lo, hi = -INF, INF
    return ((lo, hi),), width


def _random_spans(rng: Random, shape: str) -> Pieces:
    unit = rng.choice((1.0, 1.0, log_uniform(rng, -20, 20)))
    at = unit * rng.choice((0.0, -5.0, rng.random(), log_uniform(rng, 0, 20)))
    pieces = []
    for _ in range(rng.randint(2, 12)):
        end = at + unit * (rng.randint(1, 4) if rng.random() < 0.3 else log_uniform(rng, -6, 3))
        pieces.append((at, end))
        at = end + unit * (rng.randint(1, 4) if rng.random() < 0.3 else log_uniform(rng, -6, 3))
    if shape == "unbounded spans":
        side = rng.randrange(3)
        if side != 1:
            pieces[0] = (-INF, pieces[0][1])
        if side != 0:
            pieces[-1] = (pieces[-1][0], INF)
    return tuple(pieces)


def narrow_spans(rng: Random) -> Config:
    """Truncated noise on 2 to 40 pieces that lie within one scale or far less, some on grids of a few points."""
    count = rng.choice((2, 3, rng.randint(2, 12), rng.randint(2, 40)))
    unit = rng.choice((1.0, log_uniform(rng, -20, 20)))
    spread = rng.choice((1, 4, 10))
    lengths = [
        unit * (rng.randint(1, 4) if rng.random() < 0.3 else log_uniform(rng, -spread, 1)) for _ in range(2 * count)
    ]
    start = unit * rng.choice((0.0, -5.0, -rng.random(), log_uniform(rng, 0, 20)))
    ends = list(accumulate(lengths, initial=start))
    if any(a >= b for a, b in pairwise(ends)):
        return narrow_spans(rng)
    pieces = tuple((ends[i], ends[i + 1]) for i in range(0, 2 * count, 2))
    hull = pieces[-1][1] - pieces[0][0]
    ratio = rng.choice((1.0, 1.0 + rng.random(), log_uniform(rng, 0, 10), log_uniform(rng, 0, 40)))
    granularity = None if rng.random() < 0.5 else _random_grid(rng, pieces, hull)
    return Config(rng.choice(FAMILIES), "spans", pieces, math.nextafter(hull * ratio, INF), "truncate", granularity)


def _random_grid(rng: Random, pieces: Pieces, scale: float) -> float | None:
    """A grid of a few points, or a fine one; None where it would not fit."""
    widths = [Fraction(hi) - Fraction(lo) for lo, hi in pieces if math.isfinite(lo) and math.isfinite(hi)]
    narrow = min(widths, default=Fraction(scale))
    largest = math.ldexp(1.0, math.frexp(float(narrow))[1] - 1)
    while Fraction(largest) > narrow:
        largest /= 2
    grid = largest * 2.0 ** -rng.choice((0, 0, 1, 2, 4, 10, 30, 40))
    ends = [abs(e) for piece in pieces for e in piece if math.isfinite(e)]
    return grid if max(ends, default=0.0) / grid <= 2**53 else None


def _random_integers(rng: Random, family: str, edges: str, shape: str) -> Config:
    lo = rng.choice((0, 0, -1, -rng.getrandbits(7), rng.getrandbits(30) - 2**29, -(2**53)))
    hi = lo + rng.choice((1, 2, 3, 10, 100, rng.getrandbits(10) + 1, rng.getrandbits(rng.randint(2, 50)) + 1, 2**53))
    hi = min(hi, 2**53)
    piece = {
        "integers": (lo, hi),
        "integer box": (lo, hi),
        "integers up": (lo, INF),
        "integers down": (-INF, hi),
        "all integers": (-INF, INF),
    }[shape]
    if family == "laplace":
        scale = log_uniform(rng, -10, 50)
    else:
        scale = rng.choice((log_uniform(rng, -4, 4), log_uniform(rng, 3, 20), 60 + 8 * rng.random(), 64.0))
    kind = "integer box" if shape == "integer box" else "integers"
    return Config(family, kind, ((float(piece[0]), float(piece[1])),), scale, edges)


def random_cases(
    seed: int, count: int, per_config: int = 12, configs: Callable[[Random], Config] = random_config
) -> Iterator[Vector]:
    """``count`` cases of their own settings, a pure function of the seed."""
    rng = Random(f"inbounds sampling {seed}")
    made = 0
    while made < count:
        config = configs(rng)
        for _ in range(min(per_config, count - made)):
            mode = rng.choice(RANDOM_MODES)
            found = vector(rng, config, mode) or vector(rng, config, "random")
            assert found is not None
            yield found
            made += 1


def chosen_cases() -> tuple[list[Vector], list[BoxVector]]:
    """The committed cases."""
    rng = Random(SEED)
    vectors = []
    for config in chosen_configs():
        for mode in CHOSEN_MODES:
            found = vector(rng, config, mode)
            if found is not None:
                vectors.append(found)
    boxes = [box_vector(rng, config) for config in chosen_boxes() for _ in range(6)]
    return vectors, boxes


# --- the file --------------------------------------------------------------------------------------


def text(x: float) -> str:
    """A float in hexadecimal, without the zeros that ``float.hex`` pads with."""
    mantissa, p, exponent = x.hex().partition("p")
    return mantissa.rstrip("0").rstrip(".") + p + exponent if "." in mantissa else x.hex()


def _config_text(config: Config) -> dict[str, Any]:
    return {
        "family": config.family,
        "kind": config.kind,
        "pieces": [[text(lo), text(hi)] for lo, hi in config.pieces],
        "scale": text(config.scale),
        "edges": config.edges,
        "granularity": None if config.granularity is None else text(config.granularity),
        "grid": [text(setting.grid) for setting in config.settings],
    }


def _config_from(entry: dict[str, Any]) -> Config:
    return Config(
        entry["family"],
        entry["kind"],
        tuple((float.fromhex(lo), float.fromhex(hi)) for lo, hi in entry["pieces"]),
        float.fromhex(entry["scale"]),
        entry["edges"],
        None if entry["granularity"] is None else float.fromhex(entry["granularity"]),
    )


ABOUT = (
    "The exact inverse cdf of given bits, by ball arithmetic, made by make_sampling.py. Floats and bits in base 16. "
    "A case: how its bits were chosen, the true value, the bits as a whole number, how many words of 64 they are, the "
    "released value. A case of a box: the true values, the first words, the word that follows each of them again and "
    "again, the released values."
)


def dump(vectors: list[Vector], boxes: list[BoxVector]) -> str:
    rows: dict[Config, list[Any]] = {}
    for v in vectors:
        row = [v.mode, text(v.case.q), f"{v.case.bits:x}", v.case.count // 64, text(v.value)]
        rows.setdefault(v.config, []).append(row)
    many: dict[Config, list[Any]] = {}
    for b in boxes:
        row = [[text(x) for x in b.q], [f"{n:x}" for n in b.first], f"{b.more:x}", [text(x) for x in b.values]]
        many.setdefault(b.config, []).append(row)
    return f'{{"about": {json.dumps(ABOUT)},\n"cases": [\n{_blocks(rows)}\n],\n"boxes": [\n{_blocks(many)}\n]}}\n'


def _blocks(rows: dict[Config, list[Any]]) -> str:
    def compact(x: Any) -> str:
        return json.dumps(x, separators=(",", ":"))

    return ",\n".join(
        f"[{compact(_config_text(config))},[\n" + ",\n".join(compact(row) for row in found) + "\n]]"
        for config, found in rows.items()
    )


def load(path: Path = PATH) -> tuple[list[Vector], list[BoxVector], dict[Config, tuple[float, ...]]]:
    """The committed cases, and the grid of every setting."""
    data = json.loads(path.read_text(encoding="utf-8"))
    vectors, boxes, grids = [], [], {}
    for entry, rows in data["cases"]:
        config = _config_from(entry)
        grids[config] = tuple(float.fromhex(x) for x in entry["grid"])
        (setting,) = config.settings
        for mode, q, bits, words, value in rows:
            case = setting.at(float.fromhex(q), int(bits, 16), 64 * words)
            vectors.append(Vector(config, mode, case, float.fromhex(value)))
    for entry, rows in data["boxes"]:
        config = _config_from(entry)
        grids[config] = tuple(float.fromhex(x) for x in entry["grid"])
        for q, first, more, values in rows:
            boxes.append(
                BoxVector(
                    config,
                    tuple(float.fromhex(x) for x in q),
                    tuple(int(n, 16) for n in first),
                    int(more, 16),
                    tuple(float.fromhex(x) for x in values),
                )
            )
    return vectors, boxes, grids


if __name__ == "__main__":
    PATH.write_text(dump(*chosen_cases()), encoding="utf-8", newline="\n")
