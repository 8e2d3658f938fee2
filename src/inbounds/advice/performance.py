"""The figures of one mechanism: errors, mass at the ends, widths; on average, at worst, or at one true value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from inbounds._checks import FloatArray
from inbounds.domain import Box
from inbounds.inference.bayes import Channel
from inbounds.inference.prior import Prior, priors
from inbounds.inference.risk import errors, risk, spread
from inbounds.mechanism import Denoised, Mechanism

__all__ = ["Figures", "figures"]

_SHARES, _SEEN, _EVERY = 200, 400, 512


@dataclass(frozen=True)
class Figures:
    """Errors of a mechanism, on average or at worst; for a Box over its coordinates alike.

    Attributes
    ----------
    rmse, mae : float
        Root mean squared and mean absolute error.
    bias : float
        In size.
    ends : float
        The probability of an answer at an end of the domain.
    width : float
        The expected width of the confidence interval, to about 1 % (on up to 512 whole numbers exactly).
    """

    rmse: float
    mae: float
    bias: float
    ends: float
    width: float


def figures(
    mechanism: Mechanism,
    *,
    prior: Any = None,
    at: Any = None,
    level: float = 0.95,
    widths: bool = True,
    quickly: bool = False,
) -> tuple[Figures | None, Figures]:
    """(average under the prior, worst case over the domain); at one true value both are the same.

    The average is None where the prior is no probability: flat, on an unbounded domain. Quickly: the average from some
    dozens of true values, to some 0.01 %, and exactly on few whole numbers; the worst case of these.
    """
    domain = mechanism.domain
    box = isinstance(domain, Box)
    if at is not None:
        law: Any = mechanism.at(at)
        laws = law.marginals if box else [law]
        found = np.array(
            [[*errors(part), _width(mechanism, i, part, level) if widths else math.nan] for i, part in enumerate(laws)]
        ).T
        return _at_worst(found), _at_worst(found)
    beliefs = priors(domain, prior)
    channels = [Channel(mechanism, i if box else None) for i in range(len(beliefs))]
    parts: dict[Any, tuple[FloatArray, FloatArray]] = {}  # equal coordinates are looked at once
    keys = [(channel.key, id(belief)) for channel, belief in zip(channels, beliefs, strict=True)]
    for i, (key, channel, belief) in enumerate(zip(keys, channels, beliefs, strict=True)):
        if (widths or quickly) and key not in parts:
            parts[key] = _spread(mechanism, i, channel, belief, level, widths, quickly)
    if quickly:
        average, worst = (np.array([parts[key][which] for key in keys]).T for which in range(2))
    else:
        exact = risk(mechanism, beliefs if box else beliefs[0])
        none = np.full(len(keys), math.nan)
        wide = [np.array([parts[key][which][-1] for key in keys]) if widths else none for which in range(2)]
        means = [exact.mse, exact.mae, exact.mean_bias, exact.mean_ends]
        average = np.array([np.atleast_1d(none if mean is None else mean) for mean in [*means, wide[0]]])
        tops = [exact.worst_mse, exact.worst_mae, exact.bias, exact.ends]
        worst = np.array([np.atleast_1d(top) for top in [*tops, wide[1]]])
    mean = Figures(math.sqrt(_mean(average[0])), *(_mean(row) for row in average[1:]))
    return (mean if all(belief.proper for belief in beliefs) else None), _at_worst(worst)


def _at_worst(found: FloatArray) -> Figures:
    """From (figure, coordinate): errors and widths over coordinates alike, the largest bias and mass at the ends."""
    square, size, bias, ends, width = found
    return Figures(math.sqrt(_mean(square)), _mean(size), float(np.max(bias)), float(np.max(ends)), _mean(width))


def _mean(values: Any) -> float:
    return float(np.mean(values))


def _spread(
    mechanism: Mechanism, i: int, channel: Channel, prior: Prior, level: float, widths: bool, quickly: bool
) -> tuple[FloatArray, FloatArray]:
    """What figures are made of: (average, largest) at some true values over the domain of one coordinate."""
    q, weight = spread(channel, prior)
    if quickly:
        q, weight = q[weight > 0.0], weight[weight > 0.0]
    law = channel.law(q)
    width = _width(mechanism, i, law, level) if widths else np.full(q.size, math.nan)
    seen = np.stack([*errors(law), width])
    return seen @ weight, seen.max(axis=1)


def _width(mechanism: Mechanism, i: int, law: Any, level: float) -> Any:
    """The expected width of the interval for every true value of a law of one coordinate."""
    domain = mechanism.domain
    line = domain.coordinate(i) if isinstance(domain, Box) else domain
    inside = getattr(mechanism, "edges", "clamp") != "ignore"

    def of(x: Any) -> Any:
        low, high = mechanism.interval(domain._along(i, x) if isinstance(domain, Box) else x, level)
        wide = np.asarray(high, dtype=np.float64) - np.asarray(low, dtype=np.float64)
        return wide[:, i] if isinstance(domain, Box) else wide

    if line.lattice and line.bounded and inside and line.width < _EVERY and mechanism._whole_answers:
        x = np.arange(line.lower, line.upper + 1.0)
        if not isinstance(domain, Box):
            x = x[mechanism._possible(x)]  # a table may never give some
        return np.asarray(law.pmf(x.reshape(-1, *(1,) * np.ndim(law.mean())))).T @ of(x)
    u = (np.arange(_SHARES) + 0.5) / _SHARES
    quantiles = law.images if isinstance(mechanism, Denoised) else law.ppf
    answers = np.asarray(quantiles(u.reshape(-1, *(1,) * np.ndim(law.mean()))))
    seen = np.unique(answers)
    if seen.size > _SEEN:
        seen = np.unique(seen[np.round(np.linspace(0, seen.size - 1, _SEEN)).astype(int)])
    return np.interp(answers, seen, of(seen)).mean(axis=0)
