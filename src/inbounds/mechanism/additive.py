"""What users hold: :class:`Laplace` and :class:`Gaussian` noise on a domain, its edges treated in one of three ways.

* ``edges="truncate"``: the density of the noise, restricted to the domain and normalised.
* ``edges="clamp"``: plain noise, moved to the nearest point of the domain.
* ``edges="ignore"``: plain noise; answers may leave the domain.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, cast

import numpy as np
import numpy.typing as npt

from inbounds import _checks as check
from inbounds import _exact, privacy
from inbounds._cached import cached_property
from inbounds._checks import FloatArray
from inbounds.calibration import EDGES, GUARANTEES, METHODS, Target, calibrate
from inbounds.distribution import BoxDistribution, Distribution
from inbounds.domain import Box, Domain
from inbounds.mechanism.base import Law, Mechanism, check_domain
from inbounds.noise.gaussian import GaussianOn
from inbounds.noise.laplace import LaplaceOn
from inbounds.noise.support import Support
from inbounds.sampling import Sampler, sampler
from inbounds.sampling.grid import step_of
from inbounds.sensitivity import Sensitivity, resolve

__all__ = ["Additive", "Gaussian", "Laplace", "check_scale"]


@dataclass(frozen=True, init=False, repr=False)
class Additive(Mechanism):
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
        check_domain(what, domain)
        b = check_scale(what, scale)
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
        check_domain(what, domain)
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

    # -- what base.Mechanism asks for

    @cached_property
    def _curve(self) -> privacy.Curve:
        return privacy.curve(self._family, self.domain, self.sensitivity, self.scale, self.edges)

    def _law(self, true: npt.NDArray[Any]) -> Law:
        if isinstance(self.domain, Box):
            return BoxDistribution(self._family, self.domain, self.scale, self.edges, true)
        return self._marginal(None, true)

    def _marginal(self, i: int | None, q: FloatArray) -> Distribution:
        """Without the other coordinates, of which there may be thousands."""
        line = self.domain.coordinate(cast(int, i)) if isinstance(self.domain, Box) else self.domain
        return Distribution(self._family, line, self.scale, self.edges, q)

    @cached_property
    def _sampler(self) -> Sampler:
        what = type(self).__name__
        return sampler(self._family, self.domain, self.scale, self.edges, self.granularity, what=what)

    @property
    def _bounded_answers(self) -> bool:
        return self.edges != "ignore" and self.domain.bounded

    def pair_rdp(self, p: float, q: float, alpha: float) -> float:
        """The Rényi divergence D_alpha(law at p || law at q) of a truncated mechanism, for two true values."""
        what = type(self).__name__
        if isinstance(self.domain, Box) or self.edges == "clamp":
            check.refuse(what, "pair_rdp", "used on one-dimensional domains, without clamping", self, "")
        order = check.number(what, "alpha", alpha, above=1.0, at_most=1e6)
        first, second = (_exact.canonical(self._inside(x)).reshape(()) for x in (p, q))
        gap = float(_exact.difference(second, first))
        if gap == 0.0:
            return 0.0
        support = Support.of(self.domain) if self.edges == "truncate" else Support.line(self.domain.lattice)
        noise = (LaplaceOn if self._family == "laplace" else GaussianOn)(support, self.scale)
        line = np.isinf([support.lo[0], support.hi[-1]]).all() and support.convex  # then all places are alike
        start = 0.0 if line else float(_exact.difference(first, np.array(support.origin)))
        if gap < 0.0:
            noise, start, gap = noise.reflected(), -start, -gap
        return float(noise.renyi(np.array([start]), np.array([gap]), order)[0])


def _rebuild(cls: type[Additive], values: dict[str, Any]) -> Additive:
    return cls(values.pop("domain"), **values)


def check_scale(what: str, scale: Any) -> float:
    value = check.number(what, "scale", scale, above=0.0, next_step="Or let calibrate find it.")
    low, high = check.SMALLEST * 1e-8, check.LARGEST * 1e15
    if not low <= value <= high:
        check.refuse(what, "scale", f"from {low!r} to {high!r}", value, "Rescale the answer.")
    return value


@dataclass(frozen=True, init=False, repr=False)
class Laplace(Additive):
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
class Gaussian(Additive):
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
