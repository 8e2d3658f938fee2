"""Whether the noise that is drawn is the noise that is stated: the one thing that frozen draws cannot show.

Every mechanism that a run drew with draws again, from the system's randomness, around the same exact numbers. With the
stated law each answer becomes a number that is uniform on [0, 1] (where the law has steps, a random one within the
step), computed here from the definitions and not by the library. Over all cases of a search these have to be uniform,
and independent from one draw to the next: a test rejects what has a probability below 1e-15, so that it is never wrong
by chance in practice. Too little noise, none, or the same noise twice fail it.
"""

from __future__ import annotations

import functools
import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from inbounds.mechanism import BoundedLaplace, Gaussian
from inbounds.tables.picking import Picker
from tests.adversary.loss import Draw

Floats = npt.NDArray[np.float64]

_MANY, _SOME, _PICKS, _MOST = 256, 12, 24, 4
_FAR = 6.2  # of sqrt(n) D: below 1e-32; of sqrt(n) times a correlation below 1e-9, in each of two ways


def _below(mechanism: Any, x: Floats) -> Floats:
    """P(noise <= x) of plain noise; on whole numbers x is whole."""
    scale, whole = float(mechanism.scale), bool(mechanism.domain.lattice)
    if isinstance(mechanism, Gaussian):
        return _whole_gaussian(scale, x) if whole and scale < 300.0 else ndtr((x + 0.5 * whole) / scale)
    if whole:
        r, k = math.exp(-1.0 / scale), np.abs(x)
        with np.errstate(over="ignore"):
            up = 1.0 - np.exp(-(k + 1.0) / scale) / (1.0 + r)
            down = np.exp(-k / scale) / (1.0 + r)
        found = np.where(x >= 0.0, up, down)
    else:
        tail = 0.5 * np.exp(-np.abs(x) / scale)
        found = np.where(x >= 0.0, 1.0 - tail, tail)
    return np.asarray(found, dtype=np.float64)


def _whole_gaussian(scale: float, x: Floats) -> Floats:
    sums, far = _masses(scale)
    at = np.clip(x, -far - 1, far).astype(np.int64) + far + 1
    return sums[at]


@functools.lru_cache(maxsize=256)
def _masses(scale: float) -> tuple[Floats, int]:
    far = math.ceil(12.0 * scale) + 1
    masses = np.exp(-0.5 * np.square(np.arange(-far, far + 1) / scale))
    return np.concatenate([[0.0], np.cumsum(masses) / masses.sum()]), far


def uniform(mechanism: Any, q: Floats, y: Floats, spread: Floats) -> Floats:
    """Answers as numbers of [0, 1]; ``spread`` are uniform ones for where the law has steps."""
    domain = mechanism.domain
    # Half of a step, or where floats are farther apart than steps, of what they are.
    half = 0.0 if domain.lattice else 0.5 * np.maximum(np.asarray(mechanism.grid), np.spacing(np.abs(y)))
    low, high = (np.asarray(end, dtype=np.float64) for end in (domain.lower, domain.upper))
    step = 1.0 if domain.lattice else 0.0

    def upto(x: Any, more: Any = 0.0) -> Floats:  # the difference first: half a step may be lost beside an answer
        return _below(mechanism, np.asarray((x - q) + more, dtype=np.float64))

    least, most = np.zeros_like(q), np.ones_like(q)
    if isinstance(mechanism, BoundedLaplace):
        bound = float(mechanism.bound)
        least, most = (_below(mechanism, np.full_like(q, x)) for x in (-bound - step, bound))
    elif mechanism.edges == "truncate":
        least, most = upto(low, -step), upto(high)
    first, last = upto(y, -half - step), upto(y, half)
    if mechanism.edges == "clamp":
        each = 1.0 if domain.lattice else np.asarray(mechanism.grid)  # the outermost steps are inside of the domain
        first, last = np.where(y - each < low, least, first), np.where(y + each > high, most, last)
    first, last = (np.clip((f - least) / (most - least), 0.0, 1.0) for f in (first, last))
    return np.asarray(first + spread * (last - first), dtype=np.float64)


class Noise:
    """What was drawn in the cases of a search so far."""

    def __init__(self, seed: int = 0) -> None:
        self._seen: dict[str, list[Floats]] = defaultdict(list)
        self._pairs: dict[str, list[tuple[float, int]]] = defaultdict(list)
        self._spread = np.random.default_rng(seed)
        self._done: Counter[str] = Counter()

    def look(self, draws: Iterable[Draw]) -> list[str]:
        """Draw as the runs of a case did, some of them; what is wrong."""
        found: list[str] = []
        for draw in [*{(repr(d.mechanism), repr(d.exact)): d for d in draws}.values()][:_MOST]:
            found += self._pick(draw) if isinstance(draw.mechanism, tuple) else self._answer(draw)
        return found or self._judged()

    def _answer(self, draw: Draw) -> list[str]:
        mechanism = draw.mechanism
        exact = np.asarray(draw.exact, dtype=np.float64)
        box = hasattr(mechanism.domain, "dimension") and exact.ndim > 0 and not np.isscalar(mechanism.domain.lower)
        rows = exact.reshape(-1, exact.shape[-1]) if box else exact.reshape(-1)
        if not rows.size:
            return []
        low, high = (np.asarray(end, dtype=np.float64) for end in (mechanism.domain.lower, mechanism.domain.upper))
        rows = np.clip(rows[:4], low, high)
        many = rows[np.arange(_MANY) % len(rows)]
        asked = _Asked()
        with asked:
            first, again = (np.asarray(mechanism.release(many).value, dtype=np.float64) for _ in range(2))
        ones = np.array([mechanism.release(row if box else float(row)).value for row in many[:_SOME]], dtype=np.float64)
        kind = f"{type(mechanism).__name__} {mechanism.edges} {'whole' if mechanism.domain.lattice else 'real'}"
        found = [] if asked.count else [f"noise: {kind} is not from the system's randomness"]
        values = []
        for part in (first, again, ones):
            values.append(uniform(mechanism, many[: len(part)], part, self._spread.random(part.shape)))
        self._seen[kind] += [values[0].reshape(-1), values[1].reshape(-1)]
        self._seen[f"{kind}, one by one"].append(values[2].reshape(-1))
        wide = float(mechanism.scale) > 100.0 or not mechanism.domain.lattice
        inside = bool(np.all((values[0] > 0.0) & (values[0] < 1.0)))
        if wide and inside and mechanism.edges == "ignore" and np.array_equal(first, again):
            found.append(f"noise: {kind} is the same twice")
        side = values[0] - 0.5
        self._pair(kind, side.reshape(-1)[:-1], side.reshape(-1)[1:])
        self._pair(f"{kind}, next draw", side, values[1] - 0.5)
        single = values[2].reshape(-1) - 0.5
        self._pair(f"{kind}, one by one", single[:-1], single[1:])
        return found

    def _pair(self, kind: str, one: Floats, other: Floats) -> None:
        self._pairs[kind].append((float(np.sum(one * other)) * 12.0, one.size))

    def _pick(self, draw: Draw) -> list[str]:
        """Cells, as often as their law says."""
        picker, shift = draw.mechanism
        if not draw.keys:
            return []
        sums = np.concatenate([[0.0], np.cumsum(np.exp(np.asarray(draw.exact, dtype=np.float64)))])
        sums /= sums[-1]
        cells = np.array([Picker.pick(picker, draw.keys, shift) for _ in range(_PICKS)])
        spread = self._spread.random(_PICKS)
        values = sums[cells] + spread * (sums[cells + 1] - sums[cells])
        self._seen["Picker"].append(values)
        self._pair("Picker", values[:-1] - 0.5, values[1:] - 0.5)
        return []

    def _judged(self) -> list[str]:
        found = []
        for kind, parts in self._seen.items():
            values = np.sort(np.concatenate(parts))
            parts[:] = [values]
            n = values.size
            steps = np.arange(n + 1) / n
            off = max(float(np.max(steps[1:] - values)), float(np.max(values - steps[:-1])))
            if off * math.sqrt(n) > _FAR:
                found.append(f"noise: {kind} is off its law by {off:.3g} in {n} draws")
        for kind, pairs in self._pairs.items():
            total, count = sum(p for p, _ in pairs), sum(n for _, n in pairs)
            pairs[:] = [(total, count)]
            # Products of uniform numbers are bounded by 3, so their mean goes to its law as fast as any.
            if count > 100 and abs(total) / math.sqrt(count) > 1.6 * _FAR:
                found.append(f"noise: {kind} depends on the draw before by {total / count:.3g} in {count} draws")
        return found


class _Asked:
    """Counts how often the system is asked for randomness."""

    def __enter__(self) -> None:
        self.count, self._kept = 0, os.urandom

        def urandom(size: int) -> bytes:
            self.count += 1
            return self._kept(size)

        os.urandom = urandom

    def __exit__(self, *_: object) -> None:
        os.urandom = self._kept
