"""Noise that is the same around every true value, projected to the domain: what such mechanisms share.

* ``edges="clamp"``: the noisy answer, moved to the nearest point of the domain.
* ``edges="ignore"``: the noisy answer as it is; it may leave the domain.

There is no ``"truncate"``: such noise restricted to the domain and normalised would not keep its guarantee.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

from inbounds import _checks as check
from inbounds import _exact
from inbounds._cached import cached_property
from inbounds._checks import FloatArray
from inbounds.distribution import Distribution
from inbounds.domain import Box, Domain, Line
from inbounds.mechanism.base import Law, Mechanism, check_domain
from inbounds.noise.support import Support
from inbounds.sampling import Sampler
from inbounds.sampling.draws import LineSampler
from inbounds.sampling.grid import step_of
from inbounds.sampling.inversion import Kernel
from inbounds.sensitivity import Sensitivity, resolve

__all__ = ["Noise", "Shifted", "ShiftedLaw"]

_EDGES = ("clamp", "ignore")


class Noise(Protocol):
    """Symmetric noise around 0, real or (``lattice``) whole."""

    @property
    def lattice(self) -> bool: ...

    @property
    def unit(self) -> float:
        """The distance from one value to the next: 1 on whole numbers, 0 for reals."""

    def log_tail(self, t: FloatArray) -> FloatArray:
        """ln P(noise >= t) for t >= 0, which may be infinite."""

    def log_density(self, t: FloatArray) -> FloatArray:
        """ln of the density at t, or of the probability of t."""

    def inverse(self, p: FloatArray) -> FloatArray:
        """The real t >= 0 at which the tail (on whole numbers between them, too) is p, for p from 0 to 1/2."""

    def moments_to(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """E[min(max(noise, 0), t)] and E[min(max(noise, 0), t)^2] for t >= 0, which may be infinite."""

    def mean_size(self) -> float:
        """E|noise|."""


class ShiftedLaw(Distribution):
    """The law of the released value when the true value is ``q``: noise around it, projected."""

    def __init__(self, noise: Noise, name: str, domain: Line, edges: str, q: npt.NDArray[Any]) -> None:
        self._noise = noise
        self._unit = noise.unit
        super().__init__(name, domain, math.nan, edges, q)

    def __repr__(self) -> str:
        return f"<Distribution: {self._family} noise, edges {self._edges!r}, on {self._domain!r}>"

    def _log_mass(self, a: FloatArray, b: FloatArray) -> FloatArray:
        if self._domain.lattice:
            a, b = np.ceil(a), np.floor(b)
        turned = b < 0.0
        low, high = np.where(turned, -b, a), np.where(turned, -a, b)
        beyond = self._noise.log_tail(np.maximum(high + self._unit, 0.0))
        before = self._noise.log_tail(np.maximum(self._unit - low, 0.0))
        start = self._noise.log_tail(np.maximum(low, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = start + np.log(-np.expm1(np.minimum(beyond - start, 0.0)))
            around = np.log1p(-np.exp(before) - np.exp(beyond))
        out = np.where(low > 0.0, np.where(np.isneginf(start), -np.inf, apart), around)
        return np.where((low <= high) & (low < np.inf), out, -np.inf)

    def _log_kernel(self, x: npt.NDArray[Any]) -> FloatArray:
        return self._noise.log_density(_exact.difference(x, self._q))

    def _inverse(self, p: FloatArray) -> npt.NDArray[Any]:
        away = self._noise.inverse(np.minimum(p, 1.0 - p))
        if not self._domain.lattice:
            return _exact.total(self._q, np.where(p < 0.5, -away, away), lattice=False)
        before_end = np.ceil(away) - 1.0
        k = np.where(p > 0.5, before_end, -np.where(p > 0.0, np.floor(away), before_end))
        for _ in range(4):  # the inverse may be off by a rounding: the cdf settles it
            k = np.where(np.exp(self._log_upto(k)) < p, k + 1.0, k)
            k = np.where((p > 0.0) & (np.exp(self._log_upto(k - 1.0)) >= p), k - 1.0, k)
        return _exact.total(self._q, k, lattice=True)

    def _moments(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        ends = np.array(self._domain.pieces if self._edges == "clamp" else [(-np.inf, np.inf)], dtype=np.float64)
        low, high = (_exact.difference(ends[:, i], self._q[..., None]) for i in (0, 1))
        up, up_square = self._side(low, high)
        down, down_square = self._side(-high[..., ::-1], -low[..., ::-1])
        return up - down, up_square + down_square - np.square(up - down), up + down

    def _side(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The mean of the part of (answer - q) above 0, and of its square.

        Within a piece the answer goes up with the noise; in the middle of a hole it jumps.
        """
        low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
        from_, to = self._noise.moments_to(low), self._noise.moments_to(high)
        left, right = high[..., :-1], low[..., 1:]
        passing = np.exp(self._noise.log_tail((left + right) / 2.0)) * (right - left)
        mean = (to[0] - from_[0]).sum(axis=-1) + passing.sum(axis=-1)
        return mean, (to[1] - from_[1]).sum(axis=-1) + (passing * (left + right)).sum(axis=-1)


@dataclass(frozen=True, init=False, repr=False)
class Shifted(Mechanism):
    """Noise of one law, added and projected; see :class:`Staircase` and :class:`BoundedLaplace`."""

    domain: Domain
    sensitivity: Sensitivity
    edges: str
    granularity: float | None

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _set_up(self, domain: Any, sensitivity: Any, edges: Any, granularity: Any) -> float:
        """Check and keep what these mechanisms share; the sensitivity."""
        what = type(self).__name__
        check_domain(what, domain)
        if isinstance(domain, Box):
            advice = "Use Laplace or Gaussian for a Box, or one mechanism for each coordinate."
            check.refuse(what, "domain", "an Interval, Spans or Integers", domain, advice)
        if edges == "truncate":
            advice = "This noise, truncated, does not keep its guarantee: truncate Laplace or Gaussian noise."
            check.refuse(what, "edges", "'clamp' or 'ignore'", edges, advice)
        limit = cast(float, resolve(what, sensitivity, domain))
        self._set(domain=domain, sensitivity=limit, edges=check.choice(what, "edges", edges, _EDGES))
        self._set(granularity=None if granularity is None else check.number(what, "granularity", granularity))
        return limit

    def _grid_step(self) -> float:
        """Fine against the mean size of the noise; refused where the granularity does not suit the domain."""
        size = 1.0 if self.domain.lattice else self._noise.mean_size()
        return float(step_of(type(self).__name__, self.domain, size, self.granularity))

    def _shown(self) -> str:
        """The end of what it prints as."""
        more = "" if self.edges == "clamp" else f", edges={self.edges!r}"
        return more if self.granularity is None else f"{more}, granularity={self.granularity!r}"

    @property
    def _values(self) -> dict[str, Any]:
        """The arguments that make it."""
        return {f.name.removeprefix("_"): getattr(self, f.name) for f in fields(self)}

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._values)

    @cached_property
    def _noise(self) -> Noise:
        """The noise itself."""
        raise NotImplementedError

    def _kernel(self, step: float) -> Kernel:
        """Draws of it."""
        raise NotImplementedError

    def _jumps(self) -> FloatArray:
        """The distances from the true value at which the likelihood jumps: the last before each jump."""
        raise NotImplementedError

    # -- what base.Mechanism asks for

    @cached_property
    def _unclamped(self) -> Mechanism:
        return cast(Mechanism, _rebuild(type(self), self._values | {"edges": "ignore"}))

    def _cuts(self, first: float, second: float) -> FloatArray:
        away = self._jumps()
        around = np.concatenate([away, -away - self._noise.unit])
        return np.concatenate([first + around, second + around])

    def _law(self, true: npt.NDArray[Any]) -> Law:
        return ShiftedLaw(self._noise, type(self).__name__, cast(Line, self.domain), self.edges, true)

    @cached_property
    def _sampler(self) -> Sampler:
        step = self._grid_step()
        return LineSampler(self._kernel(step), cast(Line, self.domain), self.edges, step)

    @property
    def _bounded_answers(self) -> bool:
        return self.edges != "ignore" and self.domain.bounded

    @property
    def _gap(self) -> float:
        """How far apart two answers of the domain can be within the sensitivity."""
        return Support.of(cast(Line, self.domain)).reach(cast(float, self.sensitivity))

    @property
    def _unmerged(self) -> bool:
        """Whether projection cannot bring outputs from both sides of a hole together."""
        return self.edges == "ignore" or len(cast(Line, self.domain).pieces) == 1


def _rebuild(cls: Any, values: dict[str, Any]) -> Any:
    return cls(values.pop("domain"), **values)
