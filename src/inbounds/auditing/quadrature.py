"""Integrals of a pair of unnormalised densities on a one-dimensional domain, many pairs at once, with error estimates.

Real domains: Gauss-Legendre rules of 16 and of 11 nodes on panels that double in length away from where the densities
peak, with edges at the true values and at the ends of the domain; the two rules differ by more than the better one is
off. Integers: the sum. What lies beyond the last panel of an open end is estimated from how fast the density falls.
This is arithmetic with estimates, not with proven enclosures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from inbounds import _checks as check
from inbounds._checks import FloatArray
from inbounds.domain import Line

_OPEN = 40  # doublings of the panels towards an open end
_POINTS = 2**17  # whole numbers summed at most
_BLOCK = 500_000  # densities evaluated at once
_NOISE = 2.0**-47  # relative error allowed for every log-density


class Family(Protocol):
    """What is integrated; see :class:`inbounds.auditing.LocationFamily`."""

    @property
    def domain(self) -> Line: ...

    def log_at(self, x: FloatArray, q: FloatArray) -> FloatArray:
        """The unnormalised log-density, checked."""


def _rule(count: int) -> tuple[FloatArray, FloatArray]:
    x, w = np.polynomial.legendre.leggauss(count)
    return (x + 1.0) / 2.0, w / 2.0


_FINE, _COARSE = _rule(16), _rule(11)
_NODES = np.concatenate([[0.0], _FINE[0], _COARSE[0], [1.0]])  # the ends without weight: suprema are often there
_WEIGHTS = np.pad(_FINE[1], (1, 12)), np.pad(_COARSE[1], (17, 1))


@dataclass(frozen=True)
class Pairs:
    """Two normalised laws a row, at the true values ``low`` and ``high``."""

    low: FloatArray
    high: FloatArray
    x: FloatArray  # outputs
    weight: FloatArray
    coarse: FloatArray  # the weights of the second rule
    first: FloatArray  # ln p at low
    second: FloatArray  # ln p at high
    norms: FloatArray  # (2, rows): ln of the two normalisers
    errors: FloatArray  # (2, rows): their relative errors
    tails: FloatArray  # (2, rows): the probability that may lie beyond the outputs looked at

    def loss(self) -> FloatArray:
        """ln p_low/p_high; 0 where both vanish."""
        with np.errstate(invalid="ignore"):
            loss = self.first - self.second
        return np.where(np.isnan(loss), 0.0, loss)

    def noise(self) -> FloatArray:
        """Bound of the numerical error of :meth:`loss`."""
        with np.errstate(invalid="ignore"):
            size = _NOISE * (1.0 + np.abs(self.first) + np.abs(self.second))
        whole: FloatArray = (self.errors + self.tails).sum(axis=0)
        return np.where(np.isfinite(size), size, _NOISE) + whole[:, None]

    def loss_at(self, family: Family, x: FloatArray) -> FloatArray:
        """The loss at one output a row."""
        with np.errstate(invalid="ignore"):
            first, second = family.log_at(x, self.low) - self.norms[0], family.log_at(x, self.high) - self.norms[1]
            loss = first - second
        return np.where(np.isnan(loss), 0.0, loss)

    def hockey(self, epsilon: float) -> tuple[FloatArray, FloatArray]:
        """The integral of (p - e^epsilon p')_+ in both orders."""
        (first, _), (second, _) = self.hockey_bounds(epsilon)
        return first, second

    def hockey_bounds(self, epsilon: float) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """The same with error estimates, which hold where the panels end at the edges of the sets."""
        weight = math.exp(epsilon)
        laws = [np.exp(self.first), np.exp(self.second)]
        out = []
        for i, j in ((0, 1), (1, 0)):
            gain = laws[i] - weight * laws[j]
            inside = gain > 0.0
            fine, coarse = (np.sum(np.where(inside, gain * w, 0.0), axis=1) for w in (self.weight, self.coarse))
            parts = [np.sum(np.where(inside, law * self.weight, 0.0), axis=1) for law in (laws[i], laws[j])]
            error = np.abs(fine - coarse) + parts[0] * self.errors[i] + weight * parts[1] * self.errors[j]
            out.append((fine, error + self.tails[i] + weight * self.tails[j]))
        return out[0], out[1]

    def mass(self, cut: float, *, above: bool) -> FloatArray:
        """P at ``low`` of the outputs on one side of a cut, which must be an edge of the panels; from above."""
        inside = (self.x > cut) if above else (self.x <= cut)
        fine, coarse = (np.sum(np.exp(self.first) * inside * w, axis=1) for w in (self.weight, self.coarse))
        out: FloatArray = fine + np.abs(fine - coarse) + fine * self.errors[0] + self.tails[0]
        return out


def blocks(family: Family, low: FloatArray, high: FloatArray, edges: FloatArray | None = None) -> Iterator[Pairs]:
    """The laws at ``low`` and ``high``, some rows at a time; ``edges``, a row per pair, are further ends of panels."""
    each = _POINTS // 8 if family.domain.lattice else 5_000 + 60 * len(family.domain.pieces)
    rows = max(1, _BLOCK // each)
    for i in range(0, low.size, rows):
        part = slice(i, i + rows)
        yield _block(family, low[part], high[part], None if edges is None else edges[part])


def one(family: Family, low: float, high: float) -> Pairs:
    return _block(family, np.array([low]), np.array([high]), None)


def _block(family: Family, low: FloatArray, high: FloatArray, edges: FloatArray | None) -> Pairs:
    q = np.stack([low, high])
    found = [peak(family, row) for row in q]
    centres, widths = np.stack([c for c, _ in found]), np.stack([w for _, w in found])
    nodes = _whole_nodes(family, q, centres, widths) if family.domain.lattice else None
    x, fine, coarse = nodes or _real_nodes(family, q, centres, widths, edges)
    ends = np.stack([np.min(x, axis=1), np.max(x, axis=1)])
    logs, norms, errors, tails = [], [], [], []
    for row, centre in zip(q, centres, strict=True):
        log = family.log_at(x, row[:, None])
        top = np.max(np.where(fine > 0.0, log, -np.inf), axis=1)
        if not np.isfinite(top).all():
            where = float(row[np.argmin(np.isfinite(top))])
            refuse(f"finite somewhere near every true value; nothing at q = {where!r}", "-inf")
        values = np.exp(np.minimum(log - top[:, None], 0.0))  # outputs without weight may lie higher
        total, other = (values * fine).sum(axis=1), (values * coarse).sum(axis=1)
        scale = top + np.log(total)
        logs.append(log - scale[:, None])
        norms.append(scale)
        errors.append(np.abs(total - other) / total + _NOISE * (1.0 + np.abs(top)))
        tails.append(_tail(family, row, centre, ends, scale))
    return Pairs(low, high, x, fine, coarse, logs[0], logs[1], np.stack(norms), np.stack(errors), np.stack(tails))


def refuse(requirement: str, got: object) -> None:
    check.refuse(
        "LocationFamily", "log_density", requirement, got, "It is the logarithm of a density, up to a constant."
    )


def peak(family: Family, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where the density at q is largest (as far as a ladder of places can tell), and how far it takes to fall by e."""
    domain = family.domain
    base = float(domain.width) if domain.bounded else 1.0 + float(np.max(np.abs(q)))
    steps = base * 2.0 ** np.arange(-64.0, 0.5 if domain.bounded else 33.0)
    ladder = np.concatenate([-steps[::-1], [0.0], steps])
    centre = np.asarray(domain.project(q), dtype=np.float64)
    for _ in range(2):  # around q, and again around the best place found
        places = np.asarray(domain.project(centre[:, None] + ladder), dtype=np.float64)
        log = family.log_at(places, q[:, None])
        best = np.argmax(log, axis=1)[:, None]
        better = np.take_along_axis(log, best, axis=1)[:, 0] > log[:, steps.size] + 0.5
        centre = np.where(better, np.take_along_axis(places, best, axis=1)[:, 0], centre)
    fallen = log <= np.max(log, axis=1, keepdims=True) - 1.0
    either = fallen[:, : steps.size][:, ::-1] | fallen[:, steps.size + 1 :]
    first = np.where(either.any(axis=1), np.argmax(either, axis=1), steps.size - 1)
    return centre, steps[first]


def _marks(domain: Line, centres: FloatArray, widths: FloatArray) -> FloatArray:
    """Ends of panels, one row per pair: doubling away from each centre."""
    doublings = _OPEN
    if domain.bounded:
        doublings = max(2, math.ceil(math.log2(float(domain.width) / float(np.min(widths)))) + 2)
    steps = 2.0 ** np.arange(-3.0, doublings + 1.0)
    ladder = np.concatenate([-steps, [0.0], steps])
    return np.concatenate([c[:, None] + w[:, None] * ladder for c, w in zip(centres, widths, strict=True)], axis=1)


def _real_nodes(
    family: Family, q: FloatArray, centres: FloatArray, widths: FloatArray, edges: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    domain, rows = family.domain, q.shape[1]
    ends = np.array([e for piece in domain.pieces for e in piece if math.isfinite(e)])
    marks = [_marks(domain, centres, widths), q.T, np.broadcast_to(ends, (rows, ends.size))]
    marks += [] if edges is None else [edges]
    cuts = np.sort(np.clip(np.concatenate(marks, axis=1), domain.lower, domain.upper), axis=1)
    start, length = cuts[:, :-1], np.diff(cuts, axis=1)
    length = np.where(domain.contains(start + length / 2.0), length, 0.0)
    used = (length > 0.0).any(axis=0)
    start, length = start[:, used, None], length[:, used, None]
    # a panel of no length may start inside a hole: it must not be evaluated there
    start = np.where(length > 0.0, start, np.asarray(domain.project(start), dtype=np.float64))
    x = np.minimum(start + length * _NODES, domain.upper)
    return x.reshape(rows, -1), (length * _WEIGHTS[0]).reshape(rows, -1), (length * _WEIGHTS[1]).reshape(rows, -1)


def _whole_nodes(
    family: Family, q: FloatArray, centres: FloatArray, widths: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    domain = family.domain
    bottom, top = np.min(np.minimum(q, centres), axis=0), np.max(np.maximum(q, centres), axis=0)
    for reach in (64.0 * float(np.max(widths)) + 64.0, _POINTS / 4.0):
        low = np.floor(np.maximum(bottom - reach, domain.lower))
        high = np.ceil(np.minimum(top + reach, domain.upper))
        count = int(np.max(high - low)) + 1
        beyond = [family.log_at(end, row) for row in q for end in (low, high) if not np.isin(end, domain.pieces).all()]
        inside = [family.log_at(c, row) for row, c in zip(q, centres, strict=True)]
        if not beyond or np.max(beyond) < np.min(inside) - 45.0:
            break  # the tails do not matter
    if count > _POINTS:
        what = f"such that at most {_POINTS} whole numbers matter"
        check.refuse("audit", "the domain", what, domain, "An Interval differs little at such scales.")
    x = low[:, None] + np.arange(count, dtype=np.float64)
    weight = (x <= high[:, None]).astype(np.float64)
    return np.minimum(x, high[:, None]), weight, weight


def _tail(family: Family, q: FloatArray, centre: FloatArray, ends: FloatArray, scale: FloatArray) -> FloatArray:
    """An estimate of the probability beyond the outputs looked at, as if the density fell like a power from there."""
    total = np.zeros(q.shape)
    for end, limit in zip(ends, (family.domain.lower, family.domain.upper), strict=True):
        if math.isfinite(limit):
            continue
        half = np.asarray(family.domain.project(centre + (end - centre) / 2.0), dtype=np.float64)
        far, near = family.log_at(end, q), family.log_at(half, q)
        with np.errstate(invalid="ignore", over="ignore"):
            rest = np.exp(np.minimum(far - scale, 700.0)) * np.abs(end - centre)
            power = (near - far) / math.log(2.0)
        if ((rest > 1e-12) & ~(power > 1.001)).any():
            refuse("normalisable on the domain", "a density whose mass towards the open end does not converge")
        total += np.where(rest > 0.0, rest / np.maximum(power - 1.0, 1e-3), 0.0)
    return total


# ---------------------------------------------------------------- one set, by another routine


def probabilities(family: Family, q: float, sets: tuple[tuple[float, float], ...]) -> tuple[float, float, float]:
    """(ln of the normaliser, P of the union of (low, high], its error) at one true value, by scipy's adaptive rule."""
    from scipy.integrate import quad  # slow to import, and seldom needed

    centre, width = (float(v[0]) for v in peak(family, np.array([q])))
    domain = family.domain
    if domain.lattice:
        found = one(family, q, q)
        inside = np.logical_or.reduce([(found.x > a) & (found.x <= b) for a, b in sets]) if sets else found.x != found.x
        share = float(np.sum(np.exp(found.first) * found.weight * inside))
        return float(found.norms[0, 0]), share, float(found.errors[0, 0] + found.tails[0, 0])
    top = float(family.log_at(np.array([centre]), np.array([q]))[0])
    marks = np.append(_marks(domain, np.array([[centre]]), np.array([[width]]))[0], q)

    def value(x: float) -> float:
        return math.exp(min(float(family.log_at(np.array([x]), np.array([q]))[0]) - top, 700.0))

    def integral(low: float, high: float) -> tuple[float, float]:
        total, error = 0.0, 1e-300
        for start, stop in domain.pieces:
            a, b = max(low, start), min(high, stop)
            if a < b:
                # towards an open end the panels stop where nothing is left; scipy takes the rest in one
                cuts = [a, *sorted({float(c) for c in marks if a < c < b and abs(c - centre) < 2.0**12 * width}), b]
                for c, d in pairwise(cuts):
                    found = quad(value, c, d, limit=100, epsabs=1e-13 * width, epsrel=1e-10, full_output=1)
                    total, error = total + found[0], error + found[1]
        return total, error

    whole, whole_error = integral(-math.inf, math.inf)
    parts = [integral(a, b) for a, b in sets]
    part, part_error = math.fsum(p for p, _ in parts), math.fsum(e for _, e in parts)
    share = part / whole
    return top + math.log(whole), share, (part_error + share * whole_error) / whole + 1e-13
