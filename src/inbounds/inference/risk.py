"""The error of a mechanism's answers over its whole domain: on average under a public prior, and at the worst value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from inbounds._checks import FloatArray
from inbounds.domain import Box
from inbounds.inference.bayes import Channel
from inbounds.inference.panels import run
from inbounds.inference.prior import Prior, priors

if TYPE_CHECKING:
    from inbounds.mechanism.base import Mechanism

__all__ = ["Risk", "errors", "risk", "spread"]

_CLOSE = 2e-8  # of the average: panels are halved until it changes by less
_FAR, _AWAY = 60.0, 1e4  # scales from an end: where it matters no more, and far beyond that
_ZOOMS, _LOOKS, _MANY = 10, 9, 512
_FEW = 5  # nodes of a panel, roughly
_MUCH, _LITTLE = 1e-3, 1e-7  # of a prior, in a panel: above one node is not enough, below it is left out
_FIGURES = 4  # that are worked out: of ``errors``


@dataclass(frozen=True)
class Risk:
    """How far answers are from the truth over a whole domain; for a Box arrays, one entry for each coordinate.

    Attributes
    ----------
    mse, mae, mean_bias, mean_ends : float or None
        Mean squared error, mean absolute error, bias in size, and the probability of an answer at an end of the domain,
        on average over the prior; None where that is no probability.
    worst_mse, worst_mae, bias, ends : float
        The largest of all true values.
    worst_mse_at, worst_mae_at, bias_at, ends_at : float
        The true values where they are.
    """

    mse: Any
    mae: Any
    mean_bias: Any
    mean_ends: Any
    worst_mse: Any
    worst_mse_at: Any
    worst_mae: Any
    worst_mae_at: Any
    bias: Any
    bias_at: Any
    ends: Any
    ends_at: Any


def risk(mechanism: Mechanism, prior: Any = None) -> Risk:
    """The error of a mechanism's answers over its domain: on average under a prior, and at the worst true values.

    Parameters
    ----------
    mechanism : Mechanism
        Of any kind.
    prior : see :class:`Prior`
        Flat by default: on a domain without bounds there is then no average.

    Examples
    --------
    >>> import inbounds as ib
    >>> plain = ib.Laplace(ib.Interval(0, 1), scale=0.5, sensitivity=0.1, edges="ignore")
    >>> found = risk(plain.denoised())
    >>> round(found.mse, 4), round(found.worst_mse, 4), found.worst_mse_at
    (0.067, 0.1771, 0.0)
    """
    beliefs = priors(mechanism.domain, prior)
    if not isinstance(mechanism.domain, Box):
        return _risk(Channel(mechanism), beliefs[0])
    found: dict[Any, Risk] = {}
    parts = []
    for i, belief in enumerate(beliefs):
        channel = Channel(mechanism, i)
        key = channel.key, id(belief)
        if key not in found:
            found[key] = _risk(channel, belief)
        parts.append(found[key])
    joined = {f.name: [getattr(part, f.name) for part in parts] for f in fields(Risk)}
    return Risk(**{name: None if None in values else np.array(values) for name, values in joined.items()})


def errors(law: Any) -> FloatArray:
    """Mean squared error, mean absolute error, size of the bias and mass at the ends, of laws at true values."""
    report = law.error()
    ends = np.asarray(report.at_lower) + np.asarray(report.at_upper)
    return np.stack([np.square(report.rmse), np.asarray(report.mae), np.abs(report.bias), ends])


def _risk(channel: Channel, prior: Prior) -> Risk:
    def at(q: FloatArray) -> FloatArray:
        return errors(channel.law(q))

    pieces = _edges(channel, prior)
    average = _average(channel, prior, pieces, at) if prior.proper else (None,) * _FIGURES
    places = _places(channel, pieces)
    seen = at(places)
    worst = [_largest(channel, places, seen[k], lambda q, k=k: at(q)[k]) for k in range(_FIGURES)]  # type: ignore[misc]
    return Risk(*average, *(value for pair in worst for value in pair))


def spread(channel: Channel, prior: Prior) -> tuple[FloatArray, FloatArray]:
    """True values over the domain and their weights under the prior, for what takes long and need not be exact.

    Where the prior says nothing (it is flat, without bounds) the weights are those of a flat one near the ends.
    """
    domain = channel.domain
    if prior.points is not None and prior.flat:
        return prior.points, cast(FloatArray, prior.weights)
    pieces = _edges(channel, prior)
    if prior.points is not None:
        nodes, weights = prior.points, cast(FloatArray, prior.weights)
    else:
        a, b = np.concatenate([cuts[:-1] for cuts in pieces]), np.concatenate([cuts[1:] for cuts in pieces])
        nodes, weights = run(a, b, lattice=False, order=_FEW)
        weights = weights * np.exp(prior.log_density(nodes))
        mass = weights.sum(axis=1) / weights.sum()
        much, little = mass >= _MUCH, (mass < _MUCH) & (mass > _LITTLE)  # where a density jumps there are many of these
        nodes = np.concatenate([nodes[much].reshape(-1), nodes[little, _FEW // 2]])
        weights = np.concatenate([weights[much].reshape(-1), weights[little].sum(axis=1)])
    ends = _apart(channel, pieces)
    places = np.concatenate([nodes, ends])
    places = np.floor(places) if domain.lattice else places
    places, which = np.unique(places, return_inverse=True)
    share = np.bincount(which, np.concatenate([weights, np.zeros(ends.size)]))
    return places, share / share.sum()


def _apart(channel: Channel, pieces: list[FloatArray]) -> FloatArray:
    """The ends of the pieces, where the worst often is, and cuts between them that are not close together."""
    cuts, step = np.concatenate(pieces), channel.shape.scale / 4.0
    if not math.isfinite(step):
        step = (cuts[-1] - cuts[0]) / _MANY
    first = np.unique(np.round(cuts / step), return_index=True)[1]
    return np.concatenate([cuts[first], [cuts[0] for cuts in pieces], [cuts[-1] for cuts in pieces]])


def _edges(channel: Channel, prior: Prior) -> list[FloatArray]:
    """Cuts of each piece of the domain, finer towards its ends.

    Where there is no end, as far as the prior goes; if it is flat, until other ends are far away.
    """
    out = []
    scale, lattice = channel.shape.scale, channel.domain.lattice
    first, last = prior.ends if not prior.flat else (-math.inf, math.inf)
    for low, high in channel.domain.pieces:
        far = min(_FAR * scale, high - low)
        start = low if math.isfinite(low) else min(first, high) if math.isfinite(first) else min(high, far) - far
        stop = high if math.isfinite(high) else max(last, start) if math.isfinite(last) else start + far
        # on whole numbers powers of two: such runs are the cheapest to sum
        finest = 128.0 if lattice else min(scale, stop - start) / 4.0
        steps = np.append(0.0, finest * 2.0 ** np.arange(60.0))
        steps = steps[steps < (stop - start) / 2.0]
        kinks = np.asarray(channel.shape.points, dtype=np.float64) - (1.0 if lattice else 0.0)
        cuts = np.concatenate([start + steps, [(start + stop) / 2.0], stop - steps, prior.edges, kinks])
        cuts = cuts[(cuts >= start) & (cuts <= stop)]
        out.append(np.unique(np.floor(cuts) if lattice else cuts))
    return out


def _average(
    channel: Channel, prior: Prior, pieces: list[FloatArray], at: Callable[[FloatArray], FloatArray]
) -> tuple[float, ...]:
    if prior.points is not None:
        return tuple((at(prior.points) @ cast(FloatArray, prior.weights)).tolist())
    if channel.domain.lattice:  # flat, on many
        (cuts,) = pieces
        nodes, weights = run(np.append(cuts[0] - 1.0, cuts[:-1]), cuts, lattice=True)
        used = weights > 0.0
        return tuple((at(nodes[used]) @ weights[used] / weights[used].sum()).tolist())

    def integrals(a: FloatArray, b: FloatArray) -> FloatArray:
        nodes, weights = run(a, b, lattice=False, order=_LOOKS)
        value = np.ones((_FIGURES + 1, *nodes.shape))  # the last is the prior itself
        value[:-1] = at(nodes.reshape(-1)).reshape(_FIGURES, *nodes.shape)
        return np.asarray((weights * np.exp(prior.log_density(nodes)) * value).sum(axis=-1))

    a, b = np.concatenate([p[:-1] for p in pieces]), np.concatenate([p[1:] for p in pieces])
    value = integrals(a, b)
    total = value.sum(axis=1)
    while a.size:
        middle = a + (b - a) / 2.0
        left, right = integrals(a, middle), integrals(middle, b)
        change = left + right - value
        total += change.sum(axis=1)
        # a bias is small against the absolute error, where it may be nothing but rounding; mass at the ends against 1
        enough = _CLOSE * total[[0, 1, 1, -1, -1]]
        rough = (np.abs(change) > enough[:, None]).any(axis=0) & (middle > a) & (middle < b)
        a, b = np.concatenate([a[rough], middle[rough]]), np.concatenate([middle[rough], b[rough]])
        value = np.concatenate([left[:, rough], right[:, rough]], axis=1)
    return tuple((total[:-1] / total[-1]).tolist())


def _places(channel: Channel, pieces: list[FloatArray]) -> FloatArray:
    """True values among which the worst is looked for first."""
    domain = channel.domain
    if domain.lattice and domain.width < _MANY:
        return np.arange(domain.lower, domain.upper + 1.0)
    nodes = [run(cuts[:-1], cuts[1:], lattice=False, order=_LOOKS)[0].reshape(-1) for cuts in pieces]
    places = np.concatenate([*pieces, *nodes])
    return np.unique(np.floor(places) if domain.lattice else places)


def _largest(
    channel: Channel, places: FloatArray, values: FloatArray, f: Callable[[FloatArray], FloatArray]
) -> tuple[float, float]:
    """The largest value found, and where: the best of these places, and again and again between its neighbours."""
    domain = channel.domain
    for _ in range(_ZOOMS):
        if not np.max(values) > 0.0:
            break
        best = int(np.argmax(values >= np.max(values) * (1.0 - 1e-9)))  # the first of equals
        low, high = places[max(best - 1, 0)], places[min(best + 1, places.size - 1)]
        if high - low <= 2.0 and domain.lattice:
            break
        closer = np.append(np.linspace(low, high, _LOOKS), places[best])
        closer = np.unique(np.floor(closer) if domain.lattice else closer)
        places = closer[domain.contains(closer)]
        values = f(places)
    best = int(np.argmax(values))
    largest, where = float(values[best]), float(places[best])
    for end, sign in ((domain.lower, -1.0), (domain.upper, 1.0)):
        if (
            math.isinf(end)
            and float(f(np.array([where + sign * np.rint(_AWAY * channel.shape.scale)]))[0]) > 2.0 * largest
        ):
            return math.inf, sign * math.inf  # it grows without bounds
    return largest, where
