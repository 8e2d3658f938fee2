"""A sampler for one mechanism: the kernels for its domain, chunk after chunk, on its public grid.

The bits are a private seam: ``source`` is for test vectors and for simulations. A release passes none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from inbounds import _exact
from inbounds._checks import FloatArray
from inbounds._exact import Number
from inbounds.domain import Box, Domain, Line
from inbounds.sampling import gaussian, laplace
from inbounds.sampling.entropy import Keystream, Source, pool
from inbounds.sampling.grid import Grid, positions, step_of
from inbounds.sampling.inversion import CHUNK, Frame, Indices, Kernel, Work, borrow

__all__ = ["LineSampler", "Sampler", "sampler"]

#: Floats up to here are for kernels, where a domain reaches farther: no position overflows, and on whole numbers every
#: position that they find is a float. Beyond, and for what is no float, positions are whole numbers of Python.
_REALS, _WHOLE = 2.0**700, 2.0**52


def sampler(
    family: str, domain: Domain, scale: float, edges: str, granularity: Any = None, *, what: str = "sampler"
) -> Sampler:
    """The sampler of a mechanism; ``what`` names it in errors."""
    step = step_of(what, domain, scale, granularity)
    if isinstance(domain, Box):
        return _BoxSampler(family, domain, scale, edges, step)
    ends = np.array(domain.pieces) if edges == "truncate" else np.array([[-math.inf, math.inf]])
    return LineSampler(_kernel(family, scale, ends, step, domain.lattice), domain, edges, step)


class Sampler:
    """Draws on the grid of a domain. ``grid`` is the step: a number, or for a box one per coordinate.

    True values are exact: floats, and whatever else :func:`inbounds._exact.array` finds. Answers are floats; whole
    numbers that no float is equal to come as Python's.
    """

    grid: Any

    def draw(self, q: npt.NDArray[Any], source: Source | None = None, *, clip: bool = False) -> npt.NDArray[Any]:
        """One draw for each true value, as float64 or objects; for a box the last axis holds the coordinates.

        ``clip`` moves true values into the hull of the domain; without it they must be there.
        """
        raise NotImplementedError

    def one(self, q: Number, source: Source | None = None) -> float | int:
        """One draw; with the same bits the same as :meth:`draw`."""
        raise NotImplementedError


class LineSampler(Sampler):
    """Draws of any kernel on a one-dimensional domain, moved into it where edges are clamped."""

    grid: float

    def __init__(self, kernel: Kernel, domain: Line, edges: str, step: float) -> None:
        self.grid = step
        self._lower, self._upper = float(domain.lower), float(domain.upper)
        self._far = float(_far(self._lower, self._upper, domain.lattice))
        self._lattice = domain.lattice
        self._clamp = Grid(np.array(domain.pieces), step) if edges == "clamp" else None
        self._kernel = kernel

    def draw(self, q: npt.NDArray[Any], source: Source | None = None, *, clip: bool = False) -> npt.NDArray[Any]:
        out = np.empty(q.shape)
        bits = Keystream() if source is None else source
        hull = (self._lower, self._upper, self._far)
        large = _run(self._kernel, q.reshape(-1), out.reshape(-1), hull, self._clamp, self._answer, bits, clip=clip)
        return _with(out, large)

    def one(self, q: Number, source: Source | None = None) -> float | int:
        bits = pool if source is None else source
        if getattr(self._kernel, "arrays_only", False):
            drawn = self.draw(np.array([q], dtype=np.float64 if isinstance(q, float) else object), bits)
            return cast(float | int, drawn.tolist()[0])
        anchor, rest = 0, min(max(q, self._lower), self._upper)
        simple = isinstance(rest, float) or (type(rest) is int and abs(rest) <= _exact.WHOLE)
        if not (simple and -self._far <= rest <= self._far):
            anchor, rest = _place(rest, self._kernel.frame, self._far)
        n = bits.word()
        k = None
        if not (isinstance(rest, Fraction) or _is_hopeless(self._kernel)):
            k = self._kernel.one(rest, n)
        if k is None:
            k = self._kernel.settle(rest, None, _guess(rest, self.grid), [n], bits)
        return self._answer(anchor + int(k) if anchor else k)

    def _answer(self, k: float | int, coordinate: int | None = None) -> float | int:
        """What is released at a position."""
        if -_exact.WHOLE <= k <= _exact.WHOLE:
            position = float(k) if self._clamp is None else self._clamp.project_one(k)
            return position * self.grid + 0.0
        return _valued(k, None if self._clamp is None else self._clamp.project_one, self.grid, self._lattice)


class _BoxSampler(Sampler):
    """Coordinates are independent. Those of one form (wide or narrow against the scale) share a kernel."""

    def __init__(self, family: str, domain: Any, scale: float, edges: str, step: Any) -> None:
        self.grid = step
        self._lower, self._upper = lower, upper = domain.lower, domain.upper
        self._far = _far(lower, upper, domain.lattice)
        self._lattice = domain.lattice
        self._first, self._last = positions(lower, upper, self.grid)
        self._clamp = edges == "clamp"
        if edges != "truncate":
            lower, upper = np.full_like(lower, -math.inf), np.full_like(upper, math.inf)
        of = laplace if family == "laplace" else gaussian
        wide = of.is_wide(lower, upper, scale, discrete=domain.lattice)
        forms = [form for form in (wide, ~wide) if form.any()]
        self._groups: list[tuple[Indices, Kernel]] = []
        for form in forms:
            columns = np.flatnonzero(form)
            ends = np.stack([lower[columns], upper[columns]], axis=1)
            self._groups.append((columns, _kernel(family, scale, ends, self.grid[columns], domain.lattice, box=True)))

    def draw(self, q: npt.NDArray[Any], source: Source | None = None, *, clip: bool = False) -> npt.NDArray[Any]:
        size = self.grid.size
        rows = q.reshape(-1, size)
        out = np.empty(q.shape)
        drawn = out.reshape(-1, size)
        bits = Keystream() if source is None else source
        large: dict[int, int] = {}
        block = rows.shape[0] if len(self._groups) == 1 else max(1, 4 * CHUNK // size)
        for start in range(0, rows.shape[0], max(block, 1)):
            here = slice(start, start + block)
            for columns, kernel in self._groups:
                hull = (self._lower[columns], self._upper[columns], self._far[columns])
                answer = partial(self._answer, columns)
                if len(self._groups) == 1:
                    large = _run(kernel, rows.reshape(-1), drawn.reshape(-1), hull, None, answer, bits, clip=clip)
                else:
                    given = rows[here, columns]
                    part = np.empty(given.shape)
                    found = _run(kernel, given.reshape(-1), part.reshape(-1), hull, None, answer, bits, clip=clip)
                    drawn[here, columns] = part
                    for j, k in found.items():
                        large[(start + j // columns.size) * size + int(columns[j % columns.size])] = k
            if self._clamp:
                np.clip(drawn[here], self._first * self.grid + 0.0, self._last * self.grid + 0.0, out=drawn[here])
        return _with(out, large)

    def _answer(self, columns: Indices, k: float | int, coordinate: int | None) -> float | int:
        i = columns[coordinate]

        def into(k: float | int) -> float | int:
            return min(max(k, float(self._first[i])), float(self._last[i]))

        return _valued(k, into if self._clamp else None, float(self.grid[i]), self._lattice)


def _kernel(family: str, scale: float, ends: FloatArray, step: Any, discrete: bool, box: bool = False) -> Any:
    if not box and len(ends) > 1:
        return (laplace if family == "laplace" else gaussian).on_spans(scale, ends, step)
    lower, upper = (ends[:, 0].copy(), ends[:, 1].copy()) if box else ends[0].tolist()
    if family == "laplace":
        return laplace.Laplace(scale, lower, upper, step, discrete=discrete)
    if discrete and scale < gaussian.TABLED_BELOW:
        return gaussian.GaussianBySums(scale, lower, upper)
    return gaussian.Gaussian(scale, lower, upper, step, discrete=discrete)


def _far(lower: Any, upper: Any, lattice: bool) -> Any:
    """How far from 0 true values may be for the kernels; infinite where the domain goes no farther."""
    most = _WHOLE if lattice else _REALS
    return np.where(np.maximum(np.abs(lower), np.abs(upper)) <= most, math.inf, most)


class _Place(NamedTuple):
    """A true value, from a multiple of the step on. Where the rest is a fraction, integers decide."""

    anchor: int
    rest: Number


def _place(q: Number, frame: Frame, far: float) -> _Place:
    """Where noise is the same around every true value, what is left of one when the nearest multiple is taken off.

    Else all of it: a float where a kernel can do with it.
    """
    if isinstance(q, float) and -far <= q <= far:
        return _Place(0, q)
    if not (frame.first == -math.inf and frame.last == math.inf):
        return _Place(0, Fraction(q))
    step = Fraction(frame.step)
    anchor = round(Fraction(q) / step)
    rest = Fraction(q) - anchor * step
    return _Place(anchor, float(rest) if float(rest) == rest else rest)


def _valued(k: float | int, into: Callable[[Any], Any] | None, step: float, lattice: bool) -> float | int:
    """The answer at a position: the nearest float, or on whole numbers, where it is none, the position itself."""
    if not lattice:
        k = _float(k)
    if into is not None:
        k = into(k)
    if lattice:
        return _float(k) if abs(k) <= _exact.WHOLE else int(k)
    if isinstance(k, int):
        return _exact.nearest(k * Fraction(step))
    return min(max(k * step + 0.0, -_exact.LARGEST), _exact.LARGEST)


def _float(k: float | int) -> float | int:
    """A position as a float, but for those beyond all floats."""
    try:
        return float(k) + 0.0
    except OverflowError:
        return k


def _with(out: FloatArray, large: dict[int, int]) -> npt.NDArray[Any]:
    """The answers with those among them that are whole numbers and no floats."""
    if not large:
        return out
    found = out.astype(object)
    flat = found.reshape(-1)
    for j, k in large.items():
        flat[j] = k
    return found


def _is_hopeless(kernel: Kernel) -> bool:
    """Whether float64 is too coarse for the grid, so that every value is left to integers."""
    margin = kernel.frame.margin
    return not (margin < 0.5 if isinstance(margin, float) else np.any(margin < 0.5))


def _guess(q: Number, step: float) -> float:
    return float(np.rint(_exact.nearest(q) / step))


def _enter(q: npt.NDArray[Any], w: Work, far: Any) -> list[int]:
    """Copy true values into ``w.q``, each the nearest float; where those are not the value, or lie beyond ``far``."""
    np.copyto(w.q, _exact.floats(q))
    np.abs(w.q, out=w.x)
    np.greater(w.x, far, out=w.beyond)
    if q.dtype == object:
        w.beyond |= [not isinstance(x, float) for x in q.tolist()]
    elif q.dtype.kind in "iu":
        w.beyond |= w.x >= _exact.WHOLE
    return np.flatnonzero(w.beyond).tolist()


def _run(
    kernel: Kernel,
    q: npt.NDArray[Any],
    out: FloatArray,
    hull: tuple[Any, Any, Any],
    clamp: Grid | None,
    answer: Callable[[float | int, int | None], float | int],
    source: Source,
    *,
    clip: bool,
) -> dict[int, int]:
    """Fill ``out``; returned are the answers that are no floats. For vectors, one after the other, all is repeated.

    ``hull``: the ends, into which ``clip`` moves true values, and how far kernels go.
    """
    chunk = getattr(kernel, "chunk", CHUNK)
    frame, coordinates = kernel.frame, 0
    if isinstance(frame.step, np.ndarray):
        coordinates = frame.step.size
        whole = max(1, min(chunk, q.size) // coordinates)  # vectors in a chunk
        frame = frame.repeated(whole)
        hull = (np.tile(hull[0], whole), np.tile(hull[1], whole), np.tile(hull[2], whole))
    hopeless = _is_hopeless(kernel)
    # whether every true value is a float that kernels are for
    held = q.dtype.kind == "f" or (q.dtype != object and bool(np.all(np.abs(hull[:2]) <= _exact.WHOLE)))
    simple = held and bool(np.all(np.isposinf(hull[2])))
    large: dict[int, int] = {}
    buffers = borrow(min(chunk, q.size))
    try:
        start = 0
        while start < q.size:
            stop, here = min(start + chunk, q.size), None
            if coordinates:
                first = start % frame.step.size
                stop = min(stop, start + frame.step.size - first)
                here = slice(first, first + stop - start)
            w, part = buffers.view(stop - start), frame.at(here)
            lower, upper, far = (end if here is None else end[here] for end in hull)
            if simple:
                np.copyto(w.q, q[start:stop])
            strange = [] if simple else _enter(q[start:stop], w, far)
            if clip:
                np.maximum(w.q, lower, out=w.q)
                np.minimum(w.q, upper, out=w.q)
            places = {}
            for j in strange:
                low, high, most = (end if here is None else end[j] for end in (lower, upper, far))
                true = cast(Number, _exact.exact(q[start + j]))
                places[j] = _place(min(max(true, low), high) if clip else true, part.at(j), most)
                w.q[j] = min(max(_exact.nearest(places[j].rest), -_REALS), _REALS)
            source.fill(w.words)
            if hopeless:
                np.rint(w.q / part.step, out=w.k)
                w.unsure.fill(True)
            else:
                kernel.many(w, part, source)
            found: dict[int, float | int] = {}
            for j, place in places.items():
                found[j] = w.k[j]
                w.unsure[j] |= isinstance(place.rest, Fraction)
            for j in np.flatnonzero(w.unsure).tolist():
                words = [int(w.words[j])]
                if j in w.second:
                    words.append(w.second[j])
                coordinate = (start + j) % coordinates if coordinates else None
                rest = places[j].rest if j in places else float(w.q[j])
                found[j] = kernel.settle(rest, coordinate, float(w.k[j]), words, source)
                w.k[j] = 0.0  # may be no number; the answer follows
            np.multiply(w.k if clamp is None else clamp.project(w.k), part.step, out=out[start:stop])
            np.add(out[start:stop], 0.0, out=out[start:stop])  # -0.0 would tell the side it came from
            for j, k in found.items():
                k = places[j].anchor + int(k) if j in places else k
                value = answer(k, (start + j) % coordinates if coordinates else None)
                out[start + j] = _exact.nearest(value)
                if isinstance(value, int):
                    large[start + j] = value
            start = stop
    finally:
        buffers.view(min(chunk, q.size)).wipe()
        buffers.busy = False
    return large
