"""What users hold: :class:`Laplace` and :class:`Gaussian` noise on a domain, its edges treated in one of three ways.

* ``edges="truncate"``: the density of the noise, restricted to the domain and normalised.
* ``edges="clamp"``: plain noise, moved to the nearest point of the domain.
* ``edges="ignore"``: plain noise; answers may leave the domain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
import numpy.typing as npt

from inbounds import _checks as check
from inbounds import privacy
from inbounds._checks import FloatArray
from inbounds.calibration import EDGES, GUARANTEES, METHODS, Target, calibrate
from inbounds.distribution import BoxDistribution, Distribution
from inbounds.domain import Box, Domain, Integers, Interval, Spans
from inbounds.errors import OutsideDomain, ParameterTypeError
from inbounds.noise.gaussian import GaussianOn
from inbounds.noise.laplace import LaplaceOn
from inbounds.noise.support import Support
from inbounds.numerics import Bound
from inbounds.release import Release
from inbounds.sampling import Sampler, sampler
from inbounds.sampling.entropy import Seeded
from inbounds.sampling.grid import step_of
from inbounds.sensitivity import Sensitivity, resolve

__all__ = ["Gaussian", "Laplace", "Mechanism"]

_BLOCK = 65_536


@dataclass(frozen=True, init=False, repr=False)
class Mechanism:
    """Noise of one family and scale on a domain; see :class:`Laplace` and :class:`Gaussian`."""

    _family: ClassVar[str]

    domain: Domain
    scale: float
    sensitivity: Sensitivity
    edges: str
    granularity: float | None

    def __init__(
        self,
        domain: Domain,
        *,
        scale: float,
        sensitivity: Any,
        edges: str = "truncate",
        granularity: float | None = None,
    ) -> None:
        what = type(self).__name__
        _check_domain(what, domain)
        b = _check_scale(what, scale)
        step_of(what, domain, b, granularity)
        values = {
            "domain": domain,
            "scale": b,
            "sensitivity": resolve(what, sensitivity, domain),
            "edges": check.choice(what, "edges", edges, EDGES),
            "granularity": None if granularity is None else float(granularity),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def calibrate(
        cls,
        domain: Domain,
        *,
        sensitivity: Any,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        rdp: tuple[float, float] | None = None,
        mu: float | None = None,
        edges: str = "truncate",
        guarantee: str = "adjacent",
        method: str = "exact",
        granularity: float | None = None,
    ) -> Self:
        """The mechanism with the least noise of this family that certainly meets a privacy target.

        Parameters
        ----------
        domain : Interval, Spans, Integers or Box
            The answers that make sense.
        sensitivity : float in (0, width of the domain], or L1, L2, Linf, L0, or one limit per coordinate for a Box
            The largest change that one unit (person, record) can cause in the true answer.
        epsilon, delta : float, epsilon in [0, 500], delta in [0, 1)
            Differential privacy; without delta pure.
        rho : float > 0
            Zero-concentrated DP.
        rdp : (alpha, epsilon), alpha > 1
            Rényi DP of one order.
        mu : float > 0
            Gaussian DP.
        edges : "truncate", "clamp" or "ignore"
        guarantee : "adjacent" or "metric"
            Loss at most epsilon for every pair of answers within the sensitivity, or at most epsilon times their
            distance over the sensitivity for every pair (Croft et al.).
        method : "exact", "paper" or "liu"
            The smallest scale, or a published one, for comparison.
        granularity : power of two, or None
            Answers are multiples of it; see :attr:`grid`. It costs no privacy.

        Returns
        -------
        The mechanism; its scale is verified at the float returned and within 1e-9 relative of the smallest one for pure
        epsilon on intervals and integer ranges, 1e-6 with delta on intervals (docs/proofs/rounding.md lists the rest).
        """
        what = cls.__name__
        _check_domain(what, domain)
        limit = resolve(what, sensitivity, domain)
        check.choice(what, "edges", edges, EDGES)
        check.choice(what, "guarantee", guarantee, GUARANTEES)
        check.choice(what, "method", method, METHODS)
        target = Target.of(what, epsilon=epsilon, delta=delta, rho=rho, rdp=rdp, mu=mu)
        scale = calibrate(what, cls._family, domain, limit, target, edges=edges, guarantee=guarantee, method=method)
        return cls(domain, scale=scale, sensitivity=limit, edges=edges, granularity=granularity)

    def __repr__(self) -> str:
        more = "" if self.edges == "truncate" else f", edges={self.edges!r}"
        if self.granularity is not None:
            more += f", granularity={self.granularity!r}"
        return f"{type(self).__name__}({self.domain!r}, scale={self.scale!r}, sensitivity={self.sensitivity!r}{more})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), {f.name: getattr(self, f.name) for f in fields(self)})

    # -- what it guarantees

    @cached_property
    def _curve(self) -> privacy.Curve:
        return privacy.curve(self._family, self.domain, self.sensitivity, self.scale, self.edges)

    def epsilon(self, delta: float = 0.0) -> Bound:
        """The smallest epsilon for this delta (infinite where there is none); never below the truth."""
        d = check.number(type(self).__name__, "delta", delta, at_least=0.0, below=1.0)
        return privacy.epsilon_at(self._curve, d)

    def delta(self, epsilon: float) -> Bound:
        """The smallest delta for this epsilon; never below the truth."""
        e = check.number(type(self).__name__, "epsilon", epsilon, at_least=0.0, at_most=500.0)
        found = self._curve.delta(e)
        if found == 0.0 and self._curve.pure() > e:  # too small for a float, but not nothing
            return Bound(math.ulp(0.0), exact=False, reason=found.reason)
        return found

    def rdp(self, alpha: float) -> Bound:
        """Rényi DP of order alpha; never below the truth."""
        return self._curve.renyi(check.number(type(self).__name__, "alpha", alpha, above=1.0, at_most=1e6))

    def zcdp(self) -> Bound:
        """rho of zero-concentrated DP; never below the truth."""
        return privacy.zcdp(self._curve)

    def gdp(self) -> Bound:
        """mu of Gaussian DP; never below the truth."""
        return privacy.gdp(self._curve)

    def pair_rdp(self, p: float, q: float, alpha: float) -> float:
        """The Rényi divergence D_alpha(law at p || law at q) of a truncated mechanism, for two true values."""
        what = type(self).__name__
        if isinstance(self.domain, Box) or self.edges == "clamp":
            check.refuse(what, "pair_rdp", "used on one-dimensional domains, without clamping", self, "")
        order = check.number(what, "alpha", alpha, above=1.0, at_most=1e6)
        first, second = (float(self._inside(x)) for x in (p, q))
        if first == second:
            return 0.0
        support = Support.of(self.domain) if self.edges == "truncate" else Support.line(self.domain.lattice)
        noise = (LaplaceOn if self._family == "laplace" else GaussianOn)(support, self.scale)
        start, gap = first - support.origin, second - first
        if gap < 0.0:
            noise, start, gap = noise.reflected(), -start, -gap
        return float(noise.renyi(np.array([start]), np.array([gap]), order)[0])

    # -- its distribution and its draws

    def at(self, q: Any) -> Distribution | BoxDistribution:
        """The output distribution for a true value (or an array of them)."""
        return self._law(np.array(self._inside(q), dtype=np.float64))

    def _law(self, true: FloatArray) -> Distribution | BoxDistribution:
        if isinstance(self.domain, Box):
            return BoxDistribution(self._family, self.domain, self.scale, self.edges, true)
        return Distribution(self._family, self.domain, self.scale, self.edges, true)

    @property
    def grid(self) -> Any:
        """The step of the public grid: every answer is a multiple of it. For a Box one step per coordinate.

        A power of two, set by the domain and the scale alone unless ``granularity`` was given, so that the last digits
        of an answer tell nothing.
        """
        return self._sampler.grid

    @cached_property
    def _sampler(self) -> Sampler:
        what = type(self).__name__
        return sampler(self._family, self.domain, self.scale, self.edges, self.granularity, what=what)

    def release(self, value: Any, *, clip: bool = False) -> Release:
        """Draw the answer to publish: a number, or one independent draw for each element (costs compose).

        The draw is exact: the ideal real-valued answer, rounded to the grid (:attr:`grid`), or on whole numbers their
        distribution itself. It takes the system's randomness through AES-256, and time that does not depend on the true
        value (``docs/proofs/sampling.md``).

        Parameters
        ----------
        value : number or array
            The true answer, inside the domain; for a Box the last axis holds the coordinates.
        clip : bool
            Move a true answer outside the domain to its nearest end first. Refused on spans with holes, where that
            can move near answers apart.
        """
        if not isinstance(clip, bool):
            check.refuse(type(self).__name__, "clip", "True or False", clip, "", ParameterTypeError)
        domain = self.domain
        simple = isinstance(value, float) or (type(value) is int and abs(value) < 2**53)
        if simple and not clip and not isinstance(domain, Box) and domain.holds(value):
            return Release(self._public(self._sampler.one(value)), self)  # the common case, without NumPy's overhead
        true = self._inside(value, clip=clip)
        if true.ndim == 0 and not isinstance(domain, Box):
            return Release(self._public(self._sampler.one(float(true))), self)
        return Release(self._public(self._sampler.draw(true, clip=clip)), self)

    def simulate(self, q: Any, *, size: int | tuple[int, ...] = 1, seed: int | None = None) -> Any:
        """Draws for studies: reproducible with a seed, and **not private**. Never publish them."""
        true = self._inside(q)
        extra = (size,) if isinstance(size, int) and not isinstance(size, bool) else size
        if not isinstance(extra, tuple) or not all(type(n) is int and n >= 0 for n in extra):
            check.refuse(type(self).__name__, "size", "a number of draws or a shape", size, "", ParameterTypeError)
        if seed is not None and not (type(seed) is int and seed >= 0):
            check.refuse(type(self).__name__, "seed", "None or a whole number from 0", seed, "", ParameterTypeError)
        drawn = self._sampler.draw(np.broadcast_to(true, (*extra, *true.shape)), Seeded(seed))
        return self._public(drawn)

    def _public(self, drawn: Any) -> Any:
        if isinstance(drawn, float):
            return int(drawn) if self.domain.lattice else drawn
        return self._whole(drawn) if self.domain.lattice else drawn

    def _whole(self, drawn: FloatArray) -> Any:
        """Whole numbers as int64, in place; or as they are where a domain without bounds gave larger ones."""
        flat = drawn.reshape(-1)
        whole = flat.view(np.int64)
        blocks = range(0, flat.size, _BLOCK)
        limited = self.edges != "ignore" and self.domain.bounded
        if not limited and not all(np.all(np.abs(flat[i : i + _BLOCK]) < 2.0**63) for i in blocks):
            return drawn
        for i in blocks:
            whole[i : i + _BLOCK] = flat[i : i + _BLOCK].astype(np.int64)
        return drawn.view(np.int64)

    def _inside(self, value: Any, *, clip: bool = False) -> npt.NDArray[Any]:
        """The true value as an array of numbers, checked without ever showing it; not copied, and not yet clipped."""
        what = type(self).__name__
        array = check.real_values(what, "value", value, requirement="a number or an array of numbers")
        domain = self.domain
        if isinstance(domain, Box) and (array.ndim == 0 or array.shape[-1] != domain.dimension):
            check.refuse(what, "value", f"of shape (..., {domain.dimension})", f"shape {array.shape}", "")
        if clip and isinstance(domain, Spans) and len(domain.spans) > 1:
            check.refuse(
                what,
                "clip",
                "False on spans with holes",
                clip,
                "Near answers may land on opposite sides of a hole. Project first; state the sensitivity after.",
            )
        rows = array.reshape(-1, domain.dimension) if isinstance(domain, Box) else array.reshape(-1)
        block = max(1, _BLOCK // rows[:1].size) if rows.size else 1
        for start in range(0, len(rows), block):  # in parts: what is checked needs room
            part = rows[start : start + block]
            if not domain.contains_all(np.clip(part, domain.lower, domain.upper) if clip else part):
                self._refuse_outside()
        return array

    def _refuse_outside(self) -> NoReturn:
        hint = "clip=True moves it to the nearest end"
        if self.domain.lattice:
            hint = "whole numbers are needed there"
        elif isinstance(self.domain, Spans) and len(self.domain.spans) > 1:
            hint = "true answers cannot lie in a hole"
        raise OutsideDomain(
            f"{type(self).__name__}: value must lie in {self.domain!r}; it does not ({hint}). "
            "It is not shown: it is secret."
        )


def _rebuild(cls: type[Mechanism], values: dict[str, Any]) -> Mechanism:
    return cls(values.pop("domain"), **values)


def _check_scale(what: str, scale: Any) -> float:
    value = check.number(what, "scale", scale, above=0.0, next_step="Or let calibrate find it.")
    low, high = check.SMALLEST * 1e-8, check.LARGEST * 1e15
    if not low <= value <= high:
        check.refuse(what, "scale", f"from {low!r} to {high!r}", value, "Rescale the answer.")
    return value


def _check_domain(what: str, domain: Any) -> None:
    if not isinstance(domain, Interval | Spans | Integers | Box):
        check.refuse(
            what,
            "domain",
            "an Interval, Spans, Integers or Box",
            domain,
            "For instance inbounds.Interval(0, 120).",
            ParameterTypeError,
        )


@dataclass(frozen=True, init=False, repr=False)
class Laplace(Mechanism):
    r"""Laplace noise of scale b on a domain F.

    Truncated, the answer x has density :math:`p_q(x) = e^{-|x-q|/b} / \int_F e^{-|y-q|/b} dy` on F, where q is the true
    value; on Integers the same with a sum.

    Guarantee: for neighbouring data whose answers differ by at most ``sensitivity``. The pure loss of a pair is
    :math:`|q-q'|/b + |\ln Z(q) - \ln Z(q')|`; the worst pair sits at an end of the domain
    (``docs/proofs/pure-laplace.md``). Numerics: all-positive forms through expm1 and log1p, rounded up.

    Parameters
    ----------
    domain : Interval, Spans, Integers or Box
    scale : float > 0
        b.
    sensitivity : see :meth:`calibrate`
    edges : "truncate" (default), "clamp" or "ignore"
    granularity : power of two, or None for the default: see :attr:`grid`

    Examples
    --------
    >>> import inbounds as ib
    >>> age = ib.Laplace.calibrate(ib.Interval(0, 120), sensitivity=0.5, epsilon=1.0)
    >>> round(age.scale, 6)
    0.806303
    >>> 0 <= age.release(41.3).value <= 120
    True
    """

    _family = "laplace"


@dataclass(frozen=True, init=False, repr=False)
class Gaussian(Mechanism):
    r"""Gaussian noise of standard deviation sigma (before truncation) on a domain F.

    Truncated, the answer x has density :math:`p_q(x) \propto e^{-(x-q)^2/2\sigma^2}` on F.

    Guarantee: pure epsilon on bounded domains (``docs/proofs/pure-gaussian.md``), (epsilon, delta), Rényi, zCDP and
    Gaussian DP everywhere they exist (``docs/proofs/profile.md``, ``docs/proofs/renyi.md``). Numerics: quadrature of
    positive integrands, rounded up.

    Parameters
    ----------
    domain : Interval, Spans, Integers or Box
    scale : float > 0
        sigma.
    sensitivity : see :meth:`calibrate`
    edges : "truncate" (default), "clamp" or "ignore"
    granularity : power of two, or None for the default: see :attr:`grid`

    Examples
    --------
    >>> import inbounds as ib
    >>> share = ib.Gaussian.calibrate(ib.Interval(0, 1), sensitivity=0.1, epsilon=1.0, delta=1e-6)
    >>> round(share.sigma, 4)
    0.2739
    """

    _family = "gaussian"

    @property
    def sigma(self) -> float:
        """The scale under its usual name."""
        return self.scale
