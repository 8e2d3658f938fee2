"""The staircase mechanism of Geng and Viswanath: the least noise of all that is added and pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np

from inbounds import _checks as check
from inbounds import privacy
from inbounds._cached import cached_property
from inbounds._checks import FloatArray
from inbounds.domain import Domain, Line
from inbounds.inference.bayes import Shape
from inbounds.mechanism.shifted import Shifted
from inbounds.noise.staircase import LOSSES, Stairs, best_first, best_gamma
from inbounds.numerics import SLACK, Bound, decimal_floor
from inbounds.sampling.inversion import Kernel
from inbounds.sampling.stairs import StairsKernel

__all__ = ["Staircase"]

_TYPICAL = "Typical values: 0.01 to 10."
_DOWN, _STAIRS = 40.0, 4096  # epsilons down the stairs that matter for a posterior, and stairs that are told apart


@dataclass(frozen=True, init=False, repr=False)
class Staircase(Shifted):
    r"""Noise with a density in stairs, added to the answer and projected to the domain.

    The density is flat for :math:`|x-q|<\gamma\Delta` and falls by :math:`e^{-\varepsilon}` there and after every
    further :math:`\Delta`, where q is the true value and :math:`\Delta` the sensitivity. Of all noise that is added to
    an answer and pure, this has the least mean absolute (or squared) error, for the right :math:`\gamma`: little less
    than Laplace noise at small epsilon, much less at large epsilon. On Integers the same with probabilities.

    Guarantee: pure epsilon for neighbouring data whose answers differ by at most ``sensitivity``. Every output tells
    the two answers apart by epsilon or not at all, so that :math:`\delta(\varepsilon')` and Rényi divergences have
    closed forms (``docs/proofs/staircase.md``). For reals the stairs are 2^-40 wider than the sensitivity: answers
    whose distance was rounded are still neighbours.

    Parameters
    ----------
    domain : Interval, Spans or Integers
    sensitivity : float in (0, width of the domain]
        The largest change that one unit (person, record) can cause in the true answer; also the width of a stair.
    epsilon : float in [1e-16, 500]
        As the float it is; :meth:`calibrate` reads it as a decimal as well.
    gamma : float in [0, 1], or None
        How far the first stair reaches, as a share of the sensitivity; None for what is best for ``loss``. On Integers
        rounded to a whole number of steps, at least one.
    loss : "squared" (default) or "absolute"
        What gamma makes smallest, where it is not given.
    edges : "clamp" (default) or "ignore"
    granularity : power of two, or None for the default: see :attr:`inbounds.Mechanism.grid`

    Examples
    --------
    >>> import inbounds as ib
    >>> age = ib.Staircase.calibrate(ib.Interval(0, 120), sensitivity=0.5, epsilon=4.0)
    >>> round(age.gamma, 4), round(age.at(60.0).error().rmse, 4)
    (0.1958, 0.1275)
    >>> plain = ib.Laplace.calibrate(ib.Interval(0, 120), sensitivity=0.5, epsilon=4.0, edges="clamp")
    >>> round(plain.at(60.0).error().rmse, 4)
    0.1768

    References
    ----------
    Geng and Viswanath, *The optimal noise-adding mechanism in differential privacy* (2016).
    """

    _epsilon: float
    gamma: float

    def __init__(
        self,
        domain: Domain,
        *,
        sensitivity: Any,
        epsilon: float,
        gamma: float | None = None,
        loss: str = "squared",
        edges: str = "clamp",
        granularity: float | None = None,
    ) -> None:
        what = type(self).__name__
        width = self._set_up(domain, sensitivity, edges, granularity)
        e = check.number(what, "epsilon", epsilon, at_least=1e-16, at_most=500.0, next_step=_TYPICAL)
        kind = check.choice(what, "loss", loss, LOSSES)
        given = None if gamma is None else check.number(what, "gamma", gamma, at_least=0.0, at_most=1.0)
        if domain.lattice:
            first = best_first(int(width), e, kind) if given is None else max(1, round(given * width))
            given = first / width
        self._set(_epsilon=e, gamma=best_gamma(e, kind) if given is None else given)
        self._grid_step()

    @classmethod
    def calibrate(
        cls,
        domain: Domain,
        *,
        sensitivity: Any,
        epsilon: float,
        gamma: float | None = None,
        loss: str = "squared",
        edges: str = "clamp",
        granularity: float | None = None,
    ) -> Self:
        """The mechanism for a privacy target: epsilon, read as the smaller of the float and the decimal it prints as.

        Parameters are those of the class.
        """
        e = check.number(cls.__name__, "epsilon", epsilon, at_least=1e-15, at_most=500.0, next_step=_TYPICAL)
        return cls(
            domain,
            sensitivity=sensitivity,
            epsilon=decimal_floor(e),
            gamma=gamma,
            loss=loss,
            edges=edges,
            granularity=granularity,
        )

    def __repr__(self) -> str:
        return (
            f"Staircase({self.domain!r}, sensitivity={self.sensitivity!r}, epsilon={self._epsilon!r}, "
            f"gamma={self.gamma!r}{self._shown()})"
        )

    @property
    def scale(self) -> float:
        """The sensitivity over epsilon: the scale of Laplace noise with the same guarantee."""
        return cast(float, self.sensitivity) / self._epsilon

    @cached_property
    def _noise(self) -> Stairs:
        width = cast(float, self.sensitivity)
        if self.domain.lattice:
            return Stairs(width, float(round(self.gamma * width)), self._epsilon, lattice=True)
        width *= 1.0 + SLACK
        return Stairs(width, self.gamma * width, self._epsilon, lattice=False)

    @cached_property
    def _shape(self) -> Shape:
        """Where the likelihood of an answer falls by a stair, and beyond which distance it does not matter."""
        noise = self._noise
        stairs = noise.first + noise.width * np.arange(min(math.ceil(_DOWN / noise.epsilon), _STAIRS))
        reach = noise.first + noise.width * math.ceil(_DOWN / noise.epsilon)
        if self.edges == "clamp":  # answers and true values are no farther apart
            stairs = stairs[stairs <= cast(Line, self.domain).width]
        return Shape(self.scale, reach, np.concatenate([-stairs[::-1], stairs]))

    def _kernel(self, step: float) -> Kernel:
        return StairsKernel(self._noise, step)

    def _jumps(self) -> FloatArray:
        noise = self._noise
        return noise.first - noise.unit + noise.width * np.arange(min(math.ceil(40.0 / noise.epsilon), 200) + 1.0)

    @cached_property
    def _curve(self) -> privacy.Curve:
        gap = self._gap if self.domain.lattice else self._gap * (1.0 + SLACK)
        return StairsCurve(self._noise, gap, exact=self._unmerged)


@dataclass(frozen=True, eq=False)
class StairsCurve:
    """Two answers ``gap`` apart: the loss is epsilon with probability w, -epsilon with w e^-epsilon, and else 0.

    docs/proofs/staircase.md. ``exact``: whether projection keeps that.
    """

    noise: Stairs
    gap: float
    exact: bool

    def _bound(self, value: float) -> Bound:
        return Bound(value, exact=self.exact, reason="stairs" if self.exact else "stairs before projection")

    def pure(self) -> Bound:
        return self._bound(self.noise.epsilon)

    def delta(self, epsilon: float, *, target: float = math.nan, floor: float = 0.0) -> Bound:
        over = self.noise.epsilon - epsilon
        value = -self.noise.losing(self.gap) * math.expm1(-over) if over > 0.0 else 0.0
        return self._bound(max(min(value * (1.0 + SLACK), 1.0), floor))

    def renyi(self, alpha: float, *, floor: float = 0.0) -> Bound:
        e, w = self.noise.epsilon, self.noise.losing(self.gap)
        order = alpha - 1.0
        if order * e > 300.0:  # the rest of the sum is below e^-300 of its first term
            value = e + math.log(w) / order
        else:
            # w (e^(order e) - 1) (1 - e^(-alpha e)): what the sum has beyond 1
            value = math.log1p(-w * math.expm1(order * e) * math.expm1(-alpha * e)) / order
        return self._bound(max(min(value * (1.0 + SLACK) + 2.0**-50 / order, e), floor))

    def gaussian(self) -> Bound:
        return Bound(privacy.response_gdp(self.noise.epsilon), exact=False, reason="pure loss")
