"""Public beliefs about the true value: a flat one, a density on the domain, or probabilities of some points.

A prior must be chosen before the data are seen: what is released is worked out with it, at no cost of privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inbounds import _checks as check
from inbounds._cached import cached_property
from inbounds._checks import FloatArray
from inbounds.domain import Box, Domain, Line
from inbounds.errors import ParameterTypeError
from inbounds.inference.panels import run
from inbounds.numerics import legendre

__all__ = ["Prior", "priors"]

_FEW = 4096  # whole numbers that are listed one by one
_MOST = 1 << 17  # points of a finite prior
_PANELS = 1 << 14
_HALVINGS = 48


class Prior:
    """A public belief about the true value, on the domain.

    Parameters
    ----------
    domain : Interval, Spans or Integers
    belief : None or "flat", a callable, or a pair (points, weights)
        Flat: every value alike; on a domain without bounds that is not a probability, but usable wherever the posterior
        is one. A callable gives a density (on Integers a probability) for an array of values; it need not be
        normalised, must be finite and not negative, and features much narrower than a thousandth of the domain need
        a table instead. A pair is a prior on finitely many points of the domain.

    Examples
    --------
    >>> import inbounds as ib
    >>> Prior(ib.Interval(0, 1), lambda q: q * (1 - q)).proper
    True
    """

    def __init__(self, domain: Line, belief: Any = None) -> None:
        self.domain = domain
        self.belief: Any = belief
        self.points: FloatArray | None = None  #: of a finite prior, in order
        self.weights: FloatArray | None = None  #: their probabilities
        self.edges = np.empty(0)  # panels that resolve a density
        self.proper = domain.bounded
        if belief is None or (isinstance(belief, str) and belief == "flat"):
            self.belief = "flat"
            if domain.lattice and domain.bounded and domain.width < _FEW:
                self.points = np.arange(domain.lower, domain.upper + 1.0)
                self.weights = np.full(self.points.size, 1.0 / self.points.size)
        elif callable(belief):
            self.proper = True
            if domain.lattice:
                self._list(*_whole_numbers(domain, belief))
            else:
                self._log_total, self.edges = _resolve(domain, belief)
        else:
            self.proper = True
            self._table(belief)

    @classmethod
    def of(cls, domain: Line, belief: Any) -> Prior:
        """The same, unless it is a prior on this domain already."""
        if not isinstance(belief, Prior):
            return cls(domain, belief)
        if belief.domain != domain:
            check.refuse("Prior", "prior", f"on the domain {domain!r}", belief, "")
        return belief

    def _table(self, belief: Any) -> None:
        if isinstance(belief, str) or not isinstance(belief, Sequence) or len(belief) != 2:
            wanted = "None, 'flat', a density (callable) or a pair (points, weights)"
            check.refuse("Prior", "prior", wanted, belief, "", ParameterTypeError)
        points = check.vector("Prior", "points", belief[0])
        weights = check.vector("Prior", "weights", belief[1])
        if points.shape != weights.shape:
            check.refuse("Prior", "weights", f"as many as points ({points.size})", weights.size, "")
        if points.size > _MOST:
            check.refuse("Prior", "points", f"at most {_MOST}", points.size, "")
        if not self.domain.contains_all(points):
            outside = float(points[~self.domain.contains(points)][0])
            check.refuse("Prior", "points", f"in {self.domain!r}", outside, "")
        if np.unique(points).size < points.size:
            check.refuse("Prior", "points", "different from each other", belief[0], "")
        self._list(points, weights)
        self.belief = (tuple(points.tolist()), tuple(weights.tolist()))

    def _list(self, points: FloatArray, weights: FloatArray) -> None:
        if not np.all(weights >= 0.0):
            check.refuse("Prior", "weights", "not negative", float(np.min(weights)), "")
        if not np.any(weights > 0.0):
            check.refuse("Prior", "weights", "not all zero", 0.0, "")
        order = np.argsort(points)
        share = weights[order] / np.max(weights)
        share = share / share.sum()
        self.points, self.weights = points[order][share > 0.0], share[share > 0.0]

    @property
    def flat(self) -> bool:
        return isinstance(self.belief, str)

    def log_density(self, q: FloatArray) -> FloatArray:
        """ln of the density on a continuous domain; 0 if flat."""
        if self.flat:
            return np.zeros(np.shape(q))
        values = _values(self.belief, np.asarray(q, dtype=np.float64).reshape(-1))  # checked again: at other places
        with np.errstate(divide="ignore"):
            return np.log(values).reshape(np.shape(q)) - self._log_total

    @cached_property
    def _shares(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(a, b, probability) of the panels that resolve a density."""
        a, b = self.edges[:-1], self.edges[1:]
        inside = self.domain.contains(a + (b - a) / 2.0)
        a, b = a[inside], b[inside]
        nodes, weights = run(a, b, lattice=False)
        return a, b, (weights * np.exp(self.log_density(nodes))).sum(axis=1)

    @cached_property
    def support(self) -> tuple[tuple[float, float], ...]:
        """The pieces of the domain where a density is not zero, from its first panel to its last."""
        a, b, share = self._shares
        used = np.flatnonzero(share > 0.0)
        ends = [(max(low, float(a[used[0]])), min(high, float(b[used[-1]]))) for low, high in self.domain.pieces]
        return tuple((low, high) for low, high in ends if low < high)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Between them lies all of it but 1e-15; infinite if it is flat without bounds."""
        if self.points is not None:
            return float(self.points[0]), float(self.points[-1])
        if self.flat:
            return float(self.domain.lower), float(self.domain.upper)
        a, b, share = self._shares
        below, above = np.cumsum(share), np.cumsum(share[::-1])[::-1]
        return float(a[np.argmax(below > 1e-15)]), float(b[a.size - 1 - np.argmax(above[::-1] > 1e-15)])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Prior):
            return NotImplemented
        return bool(self.domain == other.domain and self.belief == other.belief)

    def __hash__(self) -> int:
        return hash((self.domain, self.belief))

    def __reduce__(self) -> tuple[Any, ...]:
        return Prior, (self.domain, self.belief)

    def __repr__(self) -> str:
        shown = repr(self.belief)
        if isinstance(self.belief, tuple) and self.points is not None and self.points.size > 4:
            shown = f"<{self.points.size} points>"
        return f"Prior({self.domain!r}, {shown})"


def _values(belief: Callable[[FloatArray], Any], q: FloatArray) -> FloatArray:
    """A user's density, checked."""
    try:
        with np.errstate(all="ignore"):
            given = belief(q)
    except Exception as problem:
        step = "It is called with an array of values."
        check.refuse("Prior", "prior", "a density of an array: one number for each value", problem, step)
    try:
        value = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        value = np.empty(0)
    if value.shape not in (q.shape, ()):
        shown = f"a result of type {type(given).__name__} and shape {np.shape(given)} for {q.size} values"
        wanted = "a density of an array: one number for each value"
        check.refuse("Prior", "prior", wanted, shown, "", ParameterTypeError)
    value = np.broadcast_to(value, q.shape)
    bad = ~(np.isfinite(value) & (value >= 0.0))
    if bad.any():
        i = int(np.argmax(bad))
        shown = f"{float(value[i])!r} at {float(q[i])!r}"
        check.refuse("Prior", "prior", "a density: finite and not negative", shown, "")
    return value


def _whole_numbers(domain: Line, belief: Any) -> tuple[FloatArray, FloatArray]:
    """Every whole number of the domain with its weight; without bounds, until nothing is left worth adding."""
    low, high = float(domain.lower), float(domain.upper)
    if domain.bounded:
        if high - low >= _MOST:
            check.refuse("Prior", "prior", f"flat, or a table, on more than {_MOST} whole numbers", belief, "")
        points = np.arange(low, high + 1.0)
        return points, _values(belief, points)
    size = _MOST // 2 if math.isinf(low) and math.isinf(high) else _MOST - 1
    start = low if math.isfinite(low) else high if math.isfinite(high) else 0.0
    points = np.arange(max(low, start - size), min(high, start + size) + 1.0)
    weights = _values(belief, points)
    ends = [weights[i] for i, end in ((0, low), (-1, high)) if math.isinf(end)]
    if not max(ends) * size <= 1e-15 * weights.sum():
        step = f"Its weight must be within {size} of {start!r}; or pass a table."
        check.refuse("Prior", "prior", "a probability that can be summed", belief, step)
    return points, weights


def _resolve(domain: Line, belief: Any) -> tuple[float, FloatArray]:
    """(ln of the integral, edges of panels on which the density is smooth).

    Panels are joined while that changes nothing, and then halved until that changes nothing. Half of the nodes that are
    used later: the likelihood needs some of their precision.
    """
    nodes, weights = legendre(12)

    def masses(a: FloatArray, b: FloatArray) -> FloatArray:
        q = a[:, None] + (b - a)[:, None] * nodes
        return (b - a) * (_values(belief, q.reshape(-1)).reshape(q.shape) @ weights)

    starts, stops = [], []
    for low, high in domain.pieces:
        ends = _first_edges(low, high)
        starts.append(ends[:-1])
        stops.append(ends[1:])
    a, b = np.concatenate(starts), np.concatenate(stops)
    mass = masses(a, b)
    total = mass.sum()
    if not total > 0.0:
        check.refuse("Prior", "prior", "positive somewhere", belief, "Zero was found at every value tried.")
    if not all(mass[i] <= 1e-12 * total for i, end in ((0, domain.lower), (-1, domain.upper)) if math.isinf(end)):
        step = "Where no bound is known, 'flat' can be used as it is."
        check.refuse("Prior", "prior", "a density with a finite integral", belief, step)

    def rough(one: FloatArray, two: FloatArray) -> Any:
        """Whether a panel and its halves differ: in all, and relative to the panel, where far answers may lead."""
        miss, local = np.abs(one - two), np.maximum(one, two)
        return (miss > 1e-14 * total) | ((miss > 1e-11 * local) & (local > 1e-60 * total))

    while a.size > 1:
        pair = np.arange(0, a.size - 1, 2)
        pair = pair[b[pair] == a[pair + 1]]
        joined = masses(a[pair], b[pair + 1])
        good = ~rough(joined, mass[pair] + mass[pair + 1])
        if not good.any():
            break
        mass[pair[good]] = joined[good]
        b[pair[good]] = b[pair[good] + 1]
        a, b, mass = (np.delete(v, pair[good] + 1) for v in (a, b, mass))
    edges = [a, b]
    for _ in range(_HALVINGS):
        middle = a + (b - a) / 2.0
        left, right = masses(a, middle), masses(middle, b)
        split = rough(mass, left + right) & (middle > a) & (middle < b)
        if not split.any() or sum(e.size for e in edges) > _PANELS:
            break
        total += (left + right - mass)[split].sum()
        edges.append(middle[split])
        mass = np.concatenate([left[split], right[split]])
        a, b = np.concatenate([a[split], middle[split]]), np.concatenate([middle[split], b[split]])
    return math.log(total), np.unique(np.concatenate(edges))


def _first_edges(low: float, high: float) -> FloatArray:
    if math.isfinite(low) and math.isfinite(high):
        return low + (high - low) * np.linspace(0.0, 1.0, 129)
    away = np.concatenate([[0.0], 2.0 ** np.arange(-40.0, 199.0)])
    if math.isfinite(low):
        return np.unique(low + away)
    if math.isfinite(high):
        return np.unique(high - away)
    return np.concatenate([-away[:0:-1], away])


def priors(domain: Domain, prior: Any) -> tuple[Prior, ...]:
    """One prior for each coordinate; one in all on a line."""
    if not isinstance(domain, Box):
        return (Prior.of(domain, prior),)
    size = domain.dimension
    if prior is None or isinstance(prior, str):
        prior = [prior] * size
    if not isinstance(prior, Sequence) or len(prior) != size:
        wanted = f"a sequence of {size}, one for each coordinate, or None"
        check.refuse("Prior", "prior", wanted, prior, "", ParameterTypeError)
    made: dict[Any, Prior] = {}
    out = []
    for i, belief in enumerate(prior):
        line = domain.coordinate(i)
        key = (line, id(belief) if belief is not None else None)
        if key not in made:
            made[key] = Prior.of(line, belief)
        out.append(made[key])
    return tuple(out)
