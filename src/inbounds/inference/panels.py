"""Composite rules for integrals over the pieces of a line and for sums over whole numbers, split wherever asked.

A rule is a list of panels with nodes on each. Many integrands share it; where one of them has a kink inside a panel,
that panel is replaced, for this integrand alone, by the parts on either side. On whole numbers a panel is the half-open
run (a, b]. Short runs are summed term by term, so that nothing needs to be split; long ones are summed from a few dozen
of their numbers, by positive weights that are right for polynomials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.polynomial.legendre import legder, legint, legval, legvander

from inbounds._cached import cached_property
from inbounds._checks import FloatArray
from inbounds.numerics import legendre

__all__ = ["Measure", "Panels", "Rule", "run"]

_ORDER = 24  # nodes of a panel, unless told otherwise
_SINGLY = 7  # runs of fewer than 2**7 whole numbers are summed term by term
_SHORT, _LONG = 64.0, 512.0  # runs that are so, where runs need not be at least so long
_DEGREE, _SPARSE = 30, 40
_FAR = 1e9
_ENTRIES = 1 << 20  # of a matrix of integrands, held at a time

Function = Callable[[FloatArray], FloatArray]

_gauss = cache(legendre)


@cache
def _block(bits: int) -> tuple[FloatArray, FloatArray]:
    """(offsets, weights) that sum polynomials up to a degree over 0, ..., 2**bits - 1; the least such weights."""
    size = 2.0**bits
    if bits <= _SINGLY:
        every, ones = np.arange(size), np.ones(2**bits)
    else:  # the sums of the conditions themselves are of polynomials: two halves do
        half, weight = _block(bits - 1)
        every, ones = np.concatenate([half, half + size / 2.0]), np.concatenate([weight, weight])
    offsets = np.unique(np.rint(legendre(_SPARSE)[0] * size - 0.5).clip(0.0, size - 1.0))

    def basis(k: FloatArray) -> FloatArray:
        return np.asarray(legvander((2.0 * k + 1.0) / size - 1.0, _DEGREE), dtype=np.float64)

    weights = np.linalg.lstsq(basis(offsets).T, ones @ basis(every), rcond=None)[0]
    return offsets, np.asarray(weights, dtype=np.float64)


def run(a: FloatArray, b: FloatArray, lattice: bool, order: int = _ORDER) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights, on a new last axis, for the integral from a to b or the sum over the whole numbers in (a, b].

    Nodes of no weight lie at b.
    """
    length = b - a
    if not lattice:
        nodes, weights = _gauss(order)
        return a[..., None] + length[..., None] * nodes, length[..., None] * weights
    longest = int(np.max(length, initial=0.0))
    whole = length.astype(np.int64)
    places, factors = [], []
    for bits in range(longest.bit_length() - 1, _SINGLY - 1, -1):
        offsets, weight = _block(bits)
        start = (whole >> (bits + 1)) << (bits + 1)
        there = (whole >> bits & 1).astype(bool)[..., None]
        places.append(np.where(there, (a + 1.0 + start)[..., None] + offsets, b[..., None]))
        factors.append(np.where(there, weight, 0.0))
    rest = whole & (2**_SINGLY - 1)
    single = np.arange(min(longest, 2**_SINGLY - 1))
    there = single < rest[..., None]
    places.append(np.where(there, (b - rest + 1.0)[..., None] + single, b[..., None]))
    factors.append(there.astype(np.float64))
    return np.concatenate(places, axis=-1), np.concatenate(factors, axis=-1)


class Panels:
    """Panels of at most a length on the pieces, also cut at the given distances from their ends and at given edges."""

    def __init__(
        self,
        pieces: Sequence[tuple[float, float]],
        length: float,
        *,
        lattice: bool = False,
        grade: Iterable[float] = (),
        edges: FloatArray | None = None,
        order: int = _ORDER,
    ) -> None:
        self.pieces = pieces
        self.lattice = lattice
        self._order = order
        if lattice:  # long runs are cheapest if their length is a power of two
            length = _SHORT if length < _LONG else 2.0 ** math.floor(math.log2(length))
        self.length = length
        self.exact = lattice and length < 2.0**_SINGLY
        self._grade = np.array(list(grade))
        self._edges = np.empty(0) if edges is None else edges

    @property
    def count(self) -> float:
        """About how many panels there are in all."""
        return sum((high - low) / self.length + 2.0 for low, high in self.pieces) + self._edges.size

    def rule(self, low: float = -math.inf, high: float = math.inf) -> Rule:
        """The panels of the pieces within a window, which must be finite where the pieces are not."""
        starts, stops = [np.empty(0)], [np.empty(0)]
        for first, last in self.pieces:
            start, stop = max(first, low), min(last, high)
            if start > stop:
                continue
            if self.lattice:
                start, stop, first = math.ceil(start) - 1.0, math.floor(stop), first - 1.0
            # counted from the end of the piece, unless that is too far away for floats
            anchor = first if start - first < _FAR * self.length else math.floor(start / self.length) * self.length
            k = np.arange(np.ceil((start - anchor) / self.length), np.floor((stop - anchor) / self.length) + 1.0)
            points = [anchor + self.length * k, self._edges]
            if not self.lattice:
                points += [first + self._grade, last - self._grade]
            inner = np.concatenate(points)
            ends = np.unique(np.concatenate([[start], inner[(inner > start) & (inner < stop)], [stop]]))
            starts.append(ends[:-1])
            stops.append(ends[1:])
        return Rule(np.concatenate(starts), np.concatenate(stops), self.lattice, self.exact, self._order)

    def parts(self, low: FloatArray, high: FloatArray, spread: float, whole: int) -> Iterator[tuple[Any, Rule]]:
        """(indices, rule): rules that cover the windows [low, high], for as many at a time as there is room for.

        Up to so many panels (``whole``), or where windows have no end, all have one rule. Otherwise windows start at
        multiples of ``spread``, so that the same rules turn up again.
        """
        common = self.rule() if self.count <= whole or not math.isfinite(spread) else None
        if common is not None:
            start, groups = np.zeros(low.size), [np.arange(low.size)]
        else:
            start = np.floor(low / spread)
            groups = [np.flatnonzero(start == first) for first in np.unique(start).tolist()]
        for group in groups:
            rule = common
            if rule is None:
                rule = self.rule(start[group[0]] * spread, math.ceil(np.max(high[group]) / spread) * spread)
            rows = max(1, _ENTRIES // max(rule.nodes.size, 1))
            for i in range(0, group.size, rows):
                yield group[i : i + rows], rule


class Rule:
    """Panels (a[i], b[i]) in order that do not overlap, with the nodes and weights of all of them in one row.

    ``exact``: every panel is summed term by term.
    """

    def __init__(self, a: FloatArray, b: FloatArray, lattice: bool, exact: bool, order: int = _ORDER) -> None:
        self.a, self.b, self.lattice, self.exact, self.order = a, b, lattice, exact, order
        nodes, weights = run(a, b, lattice, order)
        used = weights != 0.0
        self.nodes, self.weights, self.panel = nodes[used], weights[used], np.nonzero(used)[0]

    @cached_property
    def firsts(self) -> Any:
        """The position of each panel's first node."""
        return np.searchsorted(self.panel, np.arange(self.a.size))

    def split(self, cuts: FloatArray) -> tuple[npt.NDArray[np.bool_], FloatArray, FloatArray]:
        """For each row of cuts: which panels are cut, and the ends of the parts that replace them (empty ones too)."""
        rows, size = cuts.shape[0], self.a.size
        if self.exact or size == 0 or cuts.shape[1] == 0:
            return np.zeros((rows, size), dtype=bool), np.empty((rows, 0)), np.empty((rows, 0))
        home = np.searchsorted(self.a, cuts, side="left") - 1
        inside = (home >= 0) & (cuts < self.b[home])
        home = np.where(inside, home, size)  # one more column, for what is in no panel
        removed = np.zeros((rows, size + 1), dtype=bool)
        np.put_along_axis(removed, home, True, axis=1)
        removed[:, size] = False
        a, b = np.append(self.a, np.inf), np.append(self.b, np.inf)
        points = np.sort(np.concatenate([np.where(inside, cuts, np.inf), a[home], b[home]], axis=1), axis=1)
        start, stop = points[:, :-1], points[:, 1:]
        owner = np.searchsorted(self.a, stop, side="left") - 1
        kept = np.isfinite(stop) & (stop > start) & np.take_along_axis(removed, owner, axis=1)
        some = self.b[0]
        return removed[:, :size], np.where(kept, start, some), np.where(kept, stop, some)


@dataclass(frozen=True, eq=False)
class Measure:
    """Positive integrands, one a row, on the common panels of a rule and, for each row, on parts of its own.

    The products of integrand and weight, in units of exp(``top``), are ``common`` (rows, nodes) at the common nodes and
    ``own`` (rows, parts, nodes) at the nodes ``at``.
    """

    rule: Rule
    top: FloatArray
    common: FloatArray
    starts: FloatArray
    stops: FloatArray
    at: FloatArray
    own: FloatArray

    @classmethod
    def of(cls, rule: Rule, cuts: FloatArray, log_f: Function) -> Measure:
        """``log_f`` takes nodes of shape (1, n) or (rows, n) and gives the logarithms of the integrands, rows first."""
        rows = cuts.shape[0]
        removed, starts, stops = rule.split(cuts)
        at, weights = run(starts, stops, rule.lattice, rule.order)
        common = np.broadcast_to(log_f(rule.nodes[None, :]), (rows, rule.nodes.size))
        common = np.where(removed[:, rule.panel], -np.inf, common)
        own = log_f(at.reshape(rows, -1)).reshape(at.shape) if at.size else np.empty(at.shape)
        own = np.where(weights > 0.0, own, -np.inf)
        top = np.maximum(np.max(common, axis=1, initial=-np.inf), np.max(own, axis=(1, 2), initial=-np.inf))
        unit = np.where(np.isfinite(top), top, 0.0)
        common = rule.weights * np.exp(common - unit[:, None])
        return cls(rule, unit, common, starts, stops, at, weights * np.exp(own - unit[:, None, None]))

    def integral(self, g: Function | None = None) -> FloatArray:
        """The integral of g times the integrand, in each row; of the integrand itself without g."""
        if g is None:
            return np.asarray(self.common.sum(axis=1) + self.own.sum(axis=(1, 2)))
        return self.integrals(g, (lambda value: value,))[0]

    def integrals(self, g: Function, functions: Sequence[Function]) -> list[FloatArray]:
        """The same of functions of g, which is worked out once."""
        rows = self.top.size
        common, own = g(self.rule.nodes[None, :]), g(self.at.reshape(rows, -1))
        weight = self.own.reshape(rows, -1)
        return [np.asarray((self.common * f(common)).sum(axis=1) + (weight * f(own)).sum(axis=1)) for f in functions]

    @cached_property
    def panels(self) -> tuple[FloatArray, FloatArray, FloatArray, Any]:
        """(a, b, mass, index) of the panels of each row, in order; what was replaced comes last, with no mass."""
        rows, size = self.top.size, self.rule.a.size
        mass = np.add.reduceat(self.common, self.rule.firsts, axis=1) if size else np.empty((rows, 0))
        a = np.concatenate([np.broadcast_to(self.rule.a, (rows, size)), self.starts], axis=1)
        b = np.concatenate([np.broadcast_to(self.rule.b, (rows, size)), self.stops], axis=1)
        mass = np.concatenate([mass, self.own.sum(axis=2)], axis=1)
        order = np.argsort(np.where(mass > 0.0, a, np.inf), axis=1, kind="stable")
        return *(np.take_along_axis(v, order, axis=1) for v in (a, b, mass)), order  # type: ignore[return-value]

    def _antiderivative(self, row: Any, index: Any) -> FloatArray:
        """Legendre coefficients, on [-1, 1], of the integral from the start of the panels; on the continuous line."""
        size = self.rule.a.size
        products = self.common.reshape(self.top.size, size, -1)[row, np.minimum(index, size - 1)]
        if self.at.size:
            products = np.where((index < size)[:, None], products, self.own[row, np.maximum(index - size, 0)])
        return np.asarray(products @ _to_integral(self.rule.order))

    def below(self, row: Any, q: FloatArray, log_f: Callable[[Any, FloatArray], FloatArray]) -> FloatArray:
        """The mass up to q, for pairs of a row and a q. ``log_f(rows, nodes)`` is the integrand at other nodes."""
        if self.rule.exact:
            upto = np.searchsorted(self.rule.nodes, q, side="right")
            through = np.cumsum(self.common, axis=1)
            return np.where(upto > 0, through[row, np.maximum(upto - 1, 0)], 0.0)
        a, b, mass, order = self.panels
        through = np.cumsum(mass, axis=1)
        # the panels that end at or below q are whole; at most one is cut
        ends = np.where(mass > 0.0, b, np.inf)
        out = np.empty(q.shape)
        for part in _slices(q.size, a.shape[1]):
            r, x = row[part], q[part]
            k = (ends[r] <= x[:, None]).sum(axis=1)
            whole = np.where(k > 0, through[r, np.maximum(k - 1, 0)], 0.0)
            k = np.minimum(k, a.shape[1] - 1)
            cut = (x > a[r, k]) & (x < b[r, k]) & (mass[r, k] > 0.0)
            start, stop = a[r, k], np.where(cut, x, a[r, k])
            out[part] = whole + self._within(r, order[r, k], start, b[r, k], stop, log_f)
        return out

    def _within(
        self, row: Any, index: Any, start: FloatArray, end: FloatArray, stop: FloatArray, log_f: Any
    ) -> FloatArray:
        """The mass of (start, stop], within panels (start, end]."""
        if self.rule.lattice:
            nodes, weights = run(start, np.floor(stop), True)
            return np.asarray((weights * np.exp(log_f(row, nodes) - self.top[row][:, None])).sum(axis=1))
        t = np.clip(2.0 * (stop - start) / (end - start) - 1.0, -1.0, 1.0)
        return np.maximum(_legendre_sum(self._antiderivative(row, index), t), 0.0)

    def quantile(self, row: Any, p: FloatArray, log_f: Callable[[Any, FloatArray], FloatArray]) -> FloatArray:
        """The smallest q with at least the share p of the mass up to it, for pairs of a row and a p in [0, 1].

        NaN where there is no mass.
        """
        if self.rule.exact:
            through = np.cumsum(self.common, axis=1)
            k = [
                (through[row[i]] < p[i, None] * through[row[i], -1:]).sum(axis=1)
                for i in _slices(p.size, through.shape[1])
            ]
            found = self.rule.nodes[np.minimum(np.concatenate(k), self.rule.nodes.size - 1)]
            return np.where(through[row, -1] > 0.0, found, np.nan)
        a, b, mass, order = self.panels
        through = np.cumsum(mass, axis=1)
        total = through[:, -1]
        out = np.empty(p.shape)
        for part in _slices(p.size, a.shape[1]):
            r = row[part]
            goal = p[part] * total[r]
            k = (through[r] < goal[:, None]).sum(axis=1)
            last = np.count_nonzero(mass > 0.0, axis=1)[r] - 1
            k = np.clip(k, 0, np.maximum(last, 0))
            missing = np.clip(goal - np.where(k > 0, through[r, k - 1], 0.0), 0.0, mass[r, k])
            low, high = a[r, k], b[r, k]
            if self.rule.lattice:
                out[part] = self._step_to(r, order[r, k], low, high, missing, log_f)
            else:
                out[part] = self._root(r, order[r, k], low, high, missing)
        return np.where(total[row] > 0.0, out, np.nan)

    def _step_to(self, row: Any, index: Any, low: FloatArray, high: FloatArray, goal: FloatArray, log_f: Any) -> Any:
        start, end = low, high
        while (high - low > 1.0).any():
            middle = np.floor((low + high) / 2.0)
            enough = self._within(row, index, start, end, middle, log_f) >= goal
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return high

    def _root(self, row: Any, index: Any, low: FloatArray, high: FloatArray, goal: FloatArray) -> FloatArray:
        """Newton steps on the antiderivative of one panel, kept within a bracket."""
        integral = self._antiderivative(row, index)
        slope = legder(integral, axis=1)
        left, right = np.full(goal.shape, -1.0), np.full(goal.shape, 1.0)
        t = np.zeros(goal.shape)
        for _ in range(80):
            miss = _legendre_sum(integral, t) - goal
            left, right = np.where(miss < 0.0, t, left), np.where(miss < 0.0, right, t)
            with np.errstate(divide="ignore", invalid="ignore"):
                new = t - miss / _legendre_sum(slope, t)
            new = np.where((new > left) & (new < right), new, (left + right) / 2.0)
            moved = np.abs(new - t)
            t = new
            if np.all((moved <= 2.0**-52) | (right - left <= 2.0**-52)):
                break
        return low + (high - low) * (t + 1.0) / 2.0


@cache
def _to_integral(order: int) -> FloatArray:
    """From integrand times weight at the nodes of a panel to the coefficients of the integral from its start."""
    k = np.arange(order)
    t = 2.0 * _gauss(order)[0] - 1.0
    # coefficient k of the integrand is (2k + 1)/2 times its product with P_k; dt over the panel is 2 (dq / length)
    to_coefficients = legvander(t, order - 1) * (2.0 * k + 1.0) / 2.0
    return np.asarray(legint(to_coefficients, lbnd=-1.0, axis=1), dtype=np.float64)


def _legendre_sum(coefficients: npt.NDArray[Any], t: FloatArray) -> FloatArray:
    return np.asarray(legval(t, coefficients.T, tensor=False), dtype=np.float64)


def _slices(size: int, width: int) -> Iterator[slice]:
    rows = max(1, _ENTRIES // max(width, 1))
    return (slice(i, i + rows) for i in range(0, size, rows))
