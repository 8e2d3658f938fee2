"""A sampler for one mechanism: the kernels for its domain, chunk after chunk, on its public grid.

The bits are a private seam: ``source`` is for test vectors and for simulations. A release passes none.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from inbounds._checks import FloatArray
from inbounds.domain import Box, Domain, Line
from inbounds.sampling import gaussian, laplace
from inbounds.sampling.entropy import Keystream, Source, pool
from inbounds.sampling.grid import Grid, positions, step_of
from inbounds.sampling.inversion import CHUNK, Indices, Kernel, borrow

__all__ = ["LineSampler", "Sampler", "sampler"]

_FARTHEST = 2.0**700  # on unbounded domains a true value beyond this is taken as this: no position overflows


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
    """Draws on the grid of a domain. ``grid`` is the step: a number, or for a box one per coordinate."""

    grid: Any

    def draw(self, q: npt.NDArray[Any], source: Source | None = None, *, clip: bool = False) -> FloatArray:
        """One draw for each true value; for a box the last axis holds the coordinates.

        ``clip`` moves true values into the hull of the domain; without it they must be there.
        """
        raise NotImplementedError

    def one(self, q: float, source: Source | None = None) -> float:
        """One draw; with the same bits the same as :meth:`draw`."""
        raise NotImplementedError


class LineSampler(Sampler):
    """Draws of any kernel on a one-dimensional domain, moved into it where edges are clamped."""

    grid: float

    def __init__(self, kernel: Kernel, domain: Line, edges: str, step: float) -> None:
        self.grid = step
        self._lower, self._upper = map(float, _hull(domain.lower, domain.upper))
        self._bounded = domain.bounded
        self._clamp = Grid(np.array(domain.pieces), step) if edges == "clamp" else None
        self._kernel = kernel

    def draw(self, q: npt.NDArray[Any], source: Source | None = None, *, clip: bool = False) -> FloatArray:
        out = np.empty(q.shape)
        bits = Keystream() if source is None else source
        hull = (self._lower, self._upper) if clip or not self._bounded else None
        _run(self._kernel, q.reshape(-1), out.reshape(-1), hull, self._clamp, bits)
        return out

    def one(self, q: float, source: Source | None = None) -> float:
        bits = pool if source is None else source
        if getattr(self._kernel, "arrays_only", False):
            return float(self.draw(np.array([q]), bits)[0])
        q = min(max(q, self._lower), self._upper)
        n = bits.word()
        k = None if _is_hopeless(self._kernel) else self._kernel.one(q, n)
        if k is None:
            k = self._kernel.settle(q, None, _guess(q, self.grid), [n], bits)
        position = float(k)
        return (position if self._clamp is None else self._clamp.project_one(position)) * self.grid + 0.0


class _BoxSampler(Sampler):
    """Coordinates are independent. Those of one form (wide or narrow against the scale) share a kernel."""

    def __init__(self, family: str, domain: Any, scale: float, edges: str, step: Any) -> None:
        self.grid = step
        lower, upper = domain.lower, domain.upper
        self._lower, self._upper = _hull(lower, upper)
        self._bounded = domain.bounded
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

    def draw(self, q: npt.NDArray[Any], source: Source | None = None, *, clip: bool = False) -> FloatArray:
        size = self.grid.size
        rows = q.reshape(-1, size)
        out = np.empty(q.shape)
        drawn = out.reshape(-1, size)
        bits = Keystream() if source is None else source
        hulls = clip or not self._bounded
        block = rows.shape[0] if len(self._groups) == 1 else max(1, 4 * CHUNK // size)
        for start in range(0, rows.shape[0], max(block, 1)):
            here = slice(start, start + block)
            for columns, kernel in self._groups:
                hull = (self._lower[columns], self._upper[columns]) if hulls else None
                if len(self._groups) == 1:
                    _run(kernel, rows.reshape(-1), drawn.reshape(-1), hull, None, bits)
                else:
                    given = rows[here, columns]
                    part = np.empty(given.shape)
                    _run(kernel, given.reshape(-1), part.reshape(-1), hull, None, bits)
                    drawn[here, columns] = part
            if self._clamp:
                np.clip(drawn[here], self._first * self.grid + 0.0, self._last * self.grid + 0.0, out=drawn[here])
        return out


def _kernel(family: str, scale: float, ends: FloatArray, step: Any, discrete: bool, box: bool = False) -> Any:
    if not box and len(ends) > 1:
        return (laplace if family == "laplace" else gaussian).on_spans(scale, ends, step)
    lower, upper = (ends[:, 0].copy(), ends[:, 1].copy()) if box else ends[0].tolist()
    if family == "laplace":
        return laplace.Laplace(scale, lower, upper, step, discrete=discrete)
    if discrete and scale < gaussian.TABLED_BELOW:
        return gaussian.GaussianBySums(scale, lower, upper)
    return gaussian.Gaussian(scale, lower, upper, step, discrete=discrete)


def _hull(lower: Any, upper: Any) -> tuple[Any, Any]:
    return np.maximum(lower, -_FARTHEST), np.minimum(upper, _FARTHEST)


def _is_hopeless(kernel: Kernel) -> bool:
    """Whether float64 is too coarse for the grid, so that every value is left to integers."""
    margin = kernel.frame.margin
    return not (margin < 0.5 if isinstance(margin, float) else np.any(margin < 0.5))


def _guess(q: float, step: float) -> float:
    return float(np.rint(q / step))


def _run(
    kernel: Kernel,
    q: npt.NDArray[Any],
    out: FloatArray,
    hull: tuple[Any, Any] | None,
    clamp: Grid | None,
    source: Source,
) -> None:
    """Fill ``out``. For vectors, one after the other, the frame and the hull have one entry per coordinate.

    True values are moved into the hull, if one is given.
    """
    chunk = getattr(kernel, "chunk", CHUNK)
    frame, coordinates = kernel.frame, 0
    if isinstance(frame.step, np.ndarray):
        coordinates = frame.step.size
        whole = max(1, min(chunk, q.size) // coordinates)  # vectors in a chunk
        frame = frame.repeated(whole)
        hull = None if hull is None else (np.tile(hull[0], whole), np.tile(hull[1], whole))
    hopeless = _is_hopeless(kernel)
    buffers = borrow(min(chunk, q.size))
    try:
        start = 0
        while start < q.size:
            stop, here = min(start + chunk, q.size), None
            if coordinates:
                first = start % frame.step.size
                stop = min(stop, start + frame.step.size - first)
                here = slice(first, first + stop - start)
            w = buffers.view(stop - start)
            np.copyto(w.q, q[start:stop])
            if hull is not None:
                np.maximum(w.q, hull[0] if here is None else hull[0][here], out=w.q)
                np.minimum(w.q, hull[1] if here is None else hull[1][here], out=w.q)
            source.fill(w.words)
            part = frame.at(here)
            if hopeless:
                np.rint(w.q / part.step, out=w.k)
                w.unsure.fill(True)
            else:
                kernel.many(w, part, source)
            for j in np.flatnonzero(w.unsure).tolist():
                words = [int(w.words[j])]
                if j in w.second:
                    words.append(w.second[j])
                coordinate = (start + j) % coordinates if coordinates else None
                w.k[j] = kernel.settle(float(w.q[j]), coordinate, float(w.k[j]), words, source)
            np.multiply(w.k if clamp is None else clamp.project(w.k), part.step, out=out[start:stop])
            np.add(out[start:stop], 0.0, out=out[start:stop])  # -0.0 would tell the side it came from
            start = stop
    finally:
        buffers.view(min(chunk, q.size)).wipe()
        buffers.busy = False
