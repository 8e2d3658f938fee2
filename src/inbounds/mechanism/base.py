"""What every mechanism can do; how it is done is left to the kinds of mechanism.

A kind supplies three things: its privacy (``_curve``), its output distribution for a true value (``_law``), and exact
draws (``_sampler``). Everything a user calls follows from these.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np
import numpy.typing as npt

from inbounds import _checks as check
from inbounds import _exact, inference, privacy
from inbounds._cached import cached_property
from inbounds._checks import FloatArray
from inbounds._exact import Number
from inbounds.distribution import BoxDistribution, Distribution
from inbounds.domain import Box, Domain, Integers, Interval, Spans
from inbounds.errors import OutsideDomain, ParameterTypeError
from inbounds.numerics import Bound
from inbounds.release import Release
from inbounds.sampling import Sampler
from inbounds.sampling.entropy import Seeded
from inbounds.sensitivity import Sensitivity

if TYPE_CHECKING:
    from inbounds.events import Event
    from inbounds.inference.posterior import BoxPosterior, Posterior

__all__ = ["Law", "Mechanism"]

Law = Distribution | BoxDistribution

_BLOCK = 65_536


class Mechanism:
    """A way to answer with privacy on a domain: frozen, picklable, and public in every part."""

    domain: Domain
    sensitivity: Sensitivity
    scale: Any  #: how wide the noise is, in the unit of the answers

    # -- what it guarantees

    @property
    def _curve(self) -> privacy.Curve:
        """Its privacy, in every currency."""
        raise NotImplementedError

    def epsilon(self, delta: float = 0.0) -> Bound:
        """The smallest epsilon for this delta (infinite where there is none); never below the truth."""
        d = check.number(type(self).__name__, "delta", delta, at_least=0.0, below=1.0)
        return privacy.epsilon_at(self._curve, d)

    def delta(self, epsilon: float) -> Bound:
        """The smallest delta for this epsilon; never below the truth."""
        e = check.number(type(self).__name__, "epsilon", epsilon, at_least=0.0, at_most=500.0)
        return privacy.delta_at(self._curve, e)

    def rdp(self, alpha: float) -> Bound:
        """Rényi DP of order alpha; never below the truth."""
        return self._curve.renyi(check.number(type(self).__name__, "alpha", alpha, above=1.0, at_most=1e6))

    def zcdp(self) -> Bound:
        """rho of zero-concentrated DP; never below the truth."""
        return privacy.zcdp(self._curve)

    def gdp(self) -> Bound:
        """mu of Gaussian DP; never below the truth."""
        return privacy.gdp(self._curve)

    def event(self, count: int = 1) -> Event:
        """The record of ``count`` releases: what a ledger keeps, and what the guarantee can be recomputed from."""
        from inbounds import events

        return events.of(self, count)

    # -- its distribution and its draws

    def at(self, q: Any) -> Law:
        """The output distribution for a true value (or an array of them), which is the exact number that it is."""
        return self._law(np.array(_exact.canonical(self._inside(q))))

    def _law(self, true: npt.NDArray[Any]) -> Law:
        """The output distribution for checked true values."""
        raise NotImplementedError

    def _marginal(self, i: int | None, q: FloatArray) -> Any:
        """The law of coordinate i (None on a line) for checked true values of it: the others do not matter."""
        if not isinstance(self.domain, Box):
            return self._law(q)
        return cast(Any, self._law(self.domain._along(cast(int, i), q))).marginals[i]

    def _cuts(self, first: float, second: float) -> FloatArray:
        """Outputs at which the likelihood ratio of two true values jumps: where the auditor should look."""
        return np.zeros(0)

    @property
    def grid(self) -> Any:
        """The step of the public grid: every answer is a multiple of it. For a Box one step per coordinate.

        A power of two, set by the domain and the scale alone unless ``granularity`` was given, so that the last digits
        of an answer tell nothing.
        """
        return self._sampler.grid

    @property
    def _sampler(self) -> Sampler:
        """Exact draws."""
        raise NotImplementedError

    @property
    def _whole_answers(self) -> bool:
        """Whether every answer is a whole number."""
        return self.domain.lattice

    @property
    def _bounded_answers(self) -> bool:
        """Whether answers are limited by the domain."""
        return self.domain.bounded

    def release(self, value: Any, *, clip: bool = False) -> Release:
        """Draw the answer to publish: a number, or one independent draw for each element (costs compose).

        The draw is exact: the ideal real-valued answer, rounded to the grid (:attr:`grid`), or on whole numbers their
        distribution itself. It takes the system's randomness through AES-256, and time that does not depend on the true
        value (``docs/proofs/sampling.md``).

        Parameters
        ----------
        value : number or array
            The true answer, inside the domain; for a Box the last axis holds the coordinates. Floats, integers of any
            size, fractions, decimals and NumPy's numbers enter as the exact numbers they are, and so do the columns of
            a table. Masked arrays, spans of time and bytes are refused, and decimals with digits more than 100,000
            places before or behind their point.
        clip : bool
            Move a true answer outside the domain to its nearest end first. Refused on spans with holes, where that
            can move near answers apart.
        """
        if not isinstance(clip, bool):
            check.refuse(type(self).__name__, "clip", "True or False", clip, "", ParameterTypeError)
        domain = self.domain
        simple = type(value) in (float, np.float64) or (type(value) is int and abs(value) < _exact.WHOLE)
        if simple and not clip and not isinstance(domain, Box) and domain.holds(value):
            return Release(self._public(self._sampler.one(value)), self)  # the common case, without NumPy's overhead
        true = self._inside(value, clip=clip)
        if true.ndim == 0 and not isinstance(domain, Box):
            return Release(self._public(self._sampler.one(cast(Number, _exact.exact(true)))), self)
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
        if isinstance(drawn, float | int):
            return int(drawn) if self._whole_answers else drawn
        return self._whole(drawn) if self._whole_answers else drawn

    def _whole(self, drawn: npt.NDArray[Any]) -> Any:
        """Whole numbers as int64, in place; as Python's where a domain without bounds gave larger ones."""
        flat = drawn.reshape(-1)
        blocks = range(0, flat.size, _BLOCK)
        small = self._bounded_answers or all(np.all(np.abs(flat[i : i + _BLOCK]) < 2.0**63) for i in blocks)
        if drawn.dtype == object or not small:
            return _exact.integers(drawn)
        whole = flat.view(np.int64)
        for i in blocks:
            whole[i : i + _BLOCK] = flat[i : i + _BLOCK].astype(np.int64)
        return drawn.view(np.int64)

    # -- what an answer says about the true value

    def interval(self, value: Any, level: float = 0.95) -> tuple[Any, Any]:
        """A confidence interval (lower, upper) for the true value, inside the domain, from a released value.

        Whatever the true value is, the interval contains it with at least this probability; on continuous domains
        hardly with more. It is the hull of the true values that the equal-tailed test does not reject, in exact
        arithmetic and with the grid taken into account (``docs/proofs/inference.md``). Where the test rejects every
        true value, as it does for answers next to a wall, the interval is the one point that it rejects least.

        Parameters
        ----------
        value : number or array
            What was released: one interval for each element. For a Box the last axis holds the coordinates, and the
            intervals of all coordinates of a vector hold together.
        level : float in (0, 1)

        Returns
        -------
        lower, upper : numbers for a number, arrays for an array
        """
        return inference.interval(self, value, level)

    def estimate(self, value: Any, how: str = "mle", prior: Any = None) -> Any:
        """The true value, estimated from a released one.

        Parameters
        ----------
        value : number or array
            What was released: one estimate for each element.
        how : str
            ``"mle"``: under which the answer is most likely. ``"median-unbiased"``: under which smaller and larger
            answers are equally likely, so that the estimate is as often too small as too large, away from the ends of
            the domain. ``"posterior-mean"`` and ``"posterior-median"``: see :meth:`posterior`. All but
            the posterior mean lie in the domain; that lies between its ends.
        prior : see :meth:`posterior`
            For the posterior estimates only.
        """
        return inference.estimate(self, value, how, prior)

    def posterior(self, value: Any, prior: Any = None) -> Posterior | BoxPosterior:
        """The distribution of the true value given a released one, under a public prior on the domain.

        Parameters
        ----------
        value : number or array
            What was released.
        prior : None or "flat", a density on the domain, or a pair (points, weights)
        """
        from inbounds.inference.posterior import posterior

        return posterior(self, value, prior)

    def denoised(self, loss: str = "squared", prior: Any = None, integer: bool = False) -> Any:
        """This mechanism, followed by the estimate of least expected loss: less error, the same guarantee.

        Parameters
        ----------
        loss : "squared" (posterior mean), "absolute" (median) or "zero-one" (mode)
        prior : see :meth:`posterior`
        integer : bool
            Whether estimates are whole numbers, on Integers.

        Returns
        -------
        Denoised
        """
        from inbounds.mechanism.denoised import Denoised

        return Denoised(self, loss=loss, prior=prior, integer=integer)

    @property
    def _edges(self) -> str:
        """How answers treat the ends of the domain; what never leaves it by itself counts as truncated."""
        return str(getattr(self, "edges", "truncate"))

    def _possible(self, x: npt.NDArray[Any]) -> Any:
        """Which values (of a Box: vectors) can be answers."""
        if self._edges != "ignore":
            return self.domain.contains(x)
        possible = _exact.finite(x) & (_exact.whole(x) | (not self._whole_answers))
        return possible.all(axis=-1) if isinstance(self.domain, Box) else possible

    @cached_property
    def _unclamped(self) -> Mechanism:
        """Its law is that of the ideal answer, before it is moved to the grid and to the domain."""
        return cast(Mechanism, replace(cast(Any, self), edges="ignore")) if self._edges == "clamp" else self

    @cached_property
    def _views(self) -> inference.Views:
        return inference.views_of(self)

    def _inside(self, value: Any, *, clip: bool = False) -> npt.NDArray[Any]:
        """The true value as an array of exact numbers, checked without ever showing it.

        Neither copied, if it is of floats or integers, nor clipped.
        """
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
            if not domain.contains_all(_clipped(part, domain) if clip else part):
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


def _clipped(part: npt.NDArray[Any], domain: Domain) -> npt.NDArray[Any]:
    if part.dtype != object:
        return np.asarray(np.clip(part, domain.lower, domain.upper))
    return _exact.each(lambda x, low, high: min(max(x, low), high), part, domain.lower, domain.upper)


def check_domain(what: str, domain: Any) -> None:
    if not isinstance(domain, Interval | Spans | Integers | Box):
        check.refuse(
            what,
            "domain",
            "an Interval, Spans, Integers or Box",
            domain,
            "For instance inbounds.Interval(0, 120).",
            ParameterTypeError,
        )
