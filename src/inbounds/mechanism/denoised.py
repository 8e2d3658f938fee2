"""Any mechanism, followed by the best estimate of the true value: less error, the same guarantee.

What is done to an answer after it was drawn costs no privacy, and neither the domain nor the prior is secret.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from inbounds import _checks as check
from inbounds import _exact, inference, privacy
from inbounds._cached import cached_property
from inbounds._checks import FloatArray
from inbounds._exact import Number
from inbounds.distribution import BoxDistribution, ErrorReport
from inbounds.domain import Box
from inbounds.errors import ParameterTypeError, UnreachableTarget
from inbounds.inference.bayes import Channel, Seen
from inbounds.inference.panels import Measure, Rule
from inbounds.inference.posterior import BoxPosterior, Posterior, posterior
from inbounds.inference.prior import Prior, priors
from inbounds.inference.remap import LOSSES, Remap, best_estimates
from inbounds.mechanism.base import Mechanism
from inbounds.sampling import Sampler
from inbounds.sampling.entropy import Source

__all__ = ["Denoised"]

_WHOLE = 512  # panels up to which one rule serves all true values
_NOTHING = 1e-9  # of mass at a point: rounding
_TERMS = 2.0**28  # of sums on whole numbers: some seconds
_SHOWN = 1000  # answers that are listed


@dataclass(frozen=True, init=False, repr=False)
class Denoised(Mechanism):
    r"""Releases :math:`T(x)`, where x is an answer of another mechanism and T the estimate of least expected loss.

    Given x, the true value has a posterior distribution under the prior; T is its mean (squared loss), its median
    (absolute) or its mode (zero-one: on a continuous domain the limit for windows that shrink). It lies between the
    ends of the domain; on spans it is moved to the nearest point of the domain, of two equally near to the lower.

    Guarantee: that of the other mechanism, in every currency. Errors shrink on average over the prior, at the price of
    a bias near the ends of the domain. Proofs: ``docs/proofs/denoising.md``.

    Parameters
    ----------
    raw : Mechanism
        Plain noise (``edges="ignore"``) usually leaves the least error; clamped and truncated noise works, too.
    loss : "squared" (default), "absolute" or "zero-one"
    prior : see :class:`inbounds.inference.posterior.Prior`
        Flat by default.
    integer : bool
        Whether answers are whole numbers, on Integers: the whole number of least expected loss. Squared loss gives
        other numbers otherwise.

    Examples
    --------
    >>> import inbounds as ib
    >>> plain = ib.Laplace.calibrate(ib.Integers(0, 30), sensitivity=5, epsilon=1.0, edges="ignore")
    >>> better = plain.denoised()
    >>> better.epsilon() == plain.epsilon()
    True
    >>> round(plain.at(2).error().rmse, 3), round(better.at(2).error().rmse, 3)
    (7.059, 5.69)
    """

    raw: Mechanism
    loss: str
    _priors: tuple[Prior, ...]
    integer: bool

    def __init__(self, raw: Mechanism, *, loss: str = "squared", prior: Any = None, integer: bool = False) -> None:
        what = type(self).__name__
        if not isinstance(raw, Mechanism):
            check.refuse(what, "raw", "a mechanism", raw, "", ParameterTypeError)
        if isinstance(raw, Denoised):
            check.refuse(what, "raw", "a mechanism that is not denoised yet", raw, "Use its raw one.")
        if not isinstance(integer, bool):
            check.refuse(what, "integer", "True or False", integer, "", ParameterTypeError)
        if integer and not raw.domain.lattice:
            check.refuse(what, "integer", "False on a domain of reals", integer, "Use Integers.")
        values = {
            "raw": raw,
            "loss": check.choice(what, "loss", loss, LOSSES),
            "_priors": priors(raw.domain, prior),
            "integer": integer,
            "domain": raw.domain,
            "sensitivity": raw.sensitivity,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def prior(self) -> Prior | tuple[Prior, ...]:
        """The prior; for a Box one for each coordinate."""
        return self._priors if isinstance(self.domain, Box) else self._priors[0]

    def __repr__(self) -> str:
        more = "" if all(prior.flat for prior in self._priors) else f", prior={self.prior!r}"
        return f"Denoised({self.raw!r}, loss={self.loss!r}{more}{', integer=True' if self.integer else ''})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.raw, self.loss, self.prior, self.integer)

    # -- what base.Mechanism asks for

    @property
    def _curve(self) -> privacy.Curve:
        return self.raw._curve

    @property
    def scale(self) -> Any:
        """The scale of the other mechanism."""
        return cast(Any, self.raw).scale

    @cached_property
    def _channels(self) -> list[Channel]:
        box = isinstance(self.domain, Box)
        return [Channel(self.raw, i) for i in range(len(self._priors))] if box else [Channel(self.raw)]

    @property
    def _shape(self) -> Any:
        shapes = tuple(channel.shape for channel in self._channels)
        return shapes if isinstance(self.domain, Box) else shapes[0]

    @cached_property
    def _remaps(self) -> list[tuple[Remap, Any]]:
        """The estimates, with the coordinates they are for."""
        kinds: dict[Any, tuple[Channel, Prior, list[int]]] = {}
        for i, (channel, prior) in enumerate(zip(self._channels, self._priors, strict=True)):
            kinds.setdefault((channel.key, id(prior)), (channel, prior, []))[2].append(i)
        return [
            (best_estimates(channel, prior, self.loss, self.integer), np.array(columns))
            for channel, prior, columns in kinds.values()
        ]

    def _estimates(self, x: FloatArray) -> FloatArray:
        """T, for answers of the other mechanism."""
        if not isinstance(self.domain, Box):
            return self._remaps[0][0](x)
        out = np.empty(x.shape)
        for remap, columns in self._remaps:
            out[..., columns] = remap(x[..., columns])
        return out

    def _law(self, true: npt.NDArray[Any]) -> Any:
        if not isinstance(self.domain, Box):
            return DenoisedLaw(self._remaps[0][0], true)
        marginals: list[Any] = [None] * self.domain.dimension
        for remap, columns in self._remaps:
            for i in columns.tolist():
                marginals[i] = DenoisedLaw(remap, true[..., i])
        return DenoisedBoxLaw(self.domain, tuple(marginals))

    @cached_property
    def _sampler(self) -> Sampler:
        return _Estimating(self)

    @property
    def grid(self) -> Any:
        """The step of the other mechanism's grid: every answer is made of a multiple of it."""
        return self.raw.grid

    @property
    def _whole_answers(self) -> bool:
        return self.integer

    # -- what an answer says about the true value

    def _raw_range(self, value: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The smallest and the largest answer of the other mechanism that lead to a value."""
        if not isinstance(self.domain, Box):
            return self._remaps[0][0].raw_range(value)
        low, high = np.empty(value.shape), np.empty(value.shape)
        for remap, columns in self._remaps:
            low[..., columns], high[..., columns] = remap.raw_range(value[..., columns])
        return low, high

    def _seen(self, value: FloatArray, coordinate: int | None) -> Seen:
        """All answers of the other mechanism that lead to a value of one coordinate."""
        return next(remap for remap, columns in self._remaps if (coordinate or 0) in columns).seen(value)

    def _possible(self, x: npt.NDArray[Any]) -> Any:
        domain, listed, x = self.domain, self._channels[0].listed, _exact.floats(x)
        if listed is not None:
            return np.isin(x, self._estimates(listed))
        if self._remaps[0][0].whole or not domain.lattice:
            return domain.contains(x)
        between = np.isfinite(x) & (x >= domain.lower) & (x <= domain.upper)  # means of whole numbers
        return between.all(axis=-1) if isinstance(domain, Box) else between

    def posterior(self, value: Any, prior: Any = None) -> Posterior | BoxPosterior:
        """The distribution of the true value given a released one; see :meth:`Mechanism.posterior`."""
        return posterior(self, _exact.floats(inference.released(self, value)), prior)

    def interval(self, value: Any, level: float = 0.95) -> tuple[Any, Any]:
        """A confidence interval for the true value: the hull of those of all raw answers that lead to this value."""
        released = _exact.floats(inference.released(self, value))
        listed = self._channels[0].listed
        if listed is None:
            return inference.invert(self.raw, *self._raw_range(released), level)
        low, high = (np.asarray(end) for end in self.raw.interval(listed, level))
        meant = self._estimates(listed) == released[..., None]
        low, high = np.where(meant, low, np.max(low)).min(axis=-1), np.where(meant, high, np.min(high)).max(axis=-1)
        return (low.item(), high.item()) if low.ndim == 0 else (low, high)

    def estimate(self, value: Any, how: str = "mle", prior: Any = None) -> Any:
        """The true value, estimated from a released one by another rule; see :meth:`Mechanism.estimate`."""
        if how not in ("mle", "median-unbiased") or prior is not None:
            return super().estimate(value, how, prior)
        if how == "mle":
            return inference.public(np.asarray(self.posterior(value).mode()), self.domain)
        if self._channels[0].listed is not None:
            check.refuse(type(self).__name__, "how", "another one for a table of answers", how, "Use its raw answers.")
        return inference.balanced(self.raw, *self._raw_range(_exact.floats(inference.released(self, value))))


def _rebuild(raw: Mechanism, loss: str, prior: Any, integer: bool) -> Denoised:
    return Denoised(raw, loss=loss, prior=prior, integer=integer)


class _Estimating(Sampler):
    """Draws of the other mechanism, and what they are taken to."""

    def __init__(self, mechanism: Denoised) -> None:
        self._mechanism = mechanism
        self.grid = mechanism.raw.grid

    def draw(self, q: npt.NDArray[Any], source: Source | None = None, *, clip: bool = False) -> FloatArray:
        return self._mechanism._estimates(_exact.floats(self._mechanism.raw._sampler.draw(q, source, clip=clip)))

    def one(self, q: Number, source: Source | None = None) -> float:
        drawn = _exact.nearest(self._mechanism.raw._sampler.one(q, source))
        return float(self._mechanism._estimates(np.array([drawn]))[0])


class DenoisedLaw:
    """The law of T(x) when the true value is ``q``: probabilities through the inverse of T, moments by integrals."""

    def __init__(self, remap: Remap, q: npt.NDArray[Any]) -> None:
        self._remap, self._channel, self._q = remap, remap.channel, q
        self._raw = remap.channel.law(q)

    def __repr__(self) -> str:
        return f"<DenoisedLaw on {self._channel.domain!r}>"

    @property
    def _listed(self) -> bool:
        """Whether answers are points, none of them among a continuum."""
        return self._channel.domain.lattice or self._channel.listed is not None

    # -- probabilities

    def _upto(self, y: FloatArray, beyond: bool) -> Any:
        """P(T <= y), or P(T > y)."""
        lattice = self._channel.domain.lattice
        if self._remap.rising:
            level = np.where(np.isnan(y), 0.0, y)
            x, over = self._remap.last(level)
            if lattice:
                x = np.where(over, np.ceil(x) - 1.0, np.floor(x))
                after = np.where(np.isfinite(x), x + 1.0, 0.0)
                x = np.where(np.isfinite(x) & (self._remap(after) <= level), after, x)  # rounding may have cost one
            else:
                jumped = over & np.isfinite(x)  # there may be an atom at a jump
                x = np.where(jumped, np.nextafter(x, -np.inf), x)
            value = self._raw.sf(x) if beyond else self._raw.cdf(x)
        else:
            shape = np.broadcast_shapes(y.shape, self._q.shape)
            spread = np.broadcast_to(y, shape)
            value = np.empty(shape)
            for level in np.unique(spread[~np.isnan(spread)]).tolist():
                total = self._between(*self._remap.region(level))
                value = np.where(spread == level, 1.0 - total if beyond else total, value)
        return np.where(np.isnan(y), np.nan, value)[()]

    def _between(self, left: FloatArray, right: FloatArray) -> Any:
        """P(raw answer in one of the intervals [left, right))."""
        ends = np.stack([left, right]).reshape(2, -1, *(1,) * self._q.ndim)
        finite = np.where(np.isfinite(ends), ends, 0.0)
        before = np.ceil(finite) - 1.0 if self._channel.domain.lattice else np.nextafter(finite, -np.inf)
        below = self._raw.cdf(np.where(np.isfinite(ends), before, ends))
        return (below[1] - below[0]).sum(axis=0)

    def cdf(self, y: Any) -> Any:
        return self._upto(check.numbers("DenoisedLaw", "x", y), beyond=False)

    def sf(self, y: Any) -> Any:
        """P(answer > y), accurate when small."""
        return self._upto(check.numbers("DenoisedLaw", "x", y), beyond=True)

    def ppf(self, p: Any) -> Any:
        """The smallest answer y with cdf(y) >= p; NaN outside [0, 1]."""
        p = check.numbers("DenoisedLaw", "p", p)
        valid = (p >= 0.0) & (p <= 1.0)
        safe = np.where(valid, p, 0.5)
        if self._remap.rising:
            value = self.images(safe)
        else:
            value = self._search(safe)
        return np.where(valid, value, np.nan)[()]

    def images(self, p: Any) -> Any:
        """What the raw answers at these quantiles of theirs are taken to; in order only if T never falls."""
        x = np.asarray(self._raw.ppf(p))
        first, last = self._remap.ends
        value = self._remap(np.where(np.isinf(x), 0.0, x))
        return np.where(x == -np.inf, first, np.where(x == np.inf, last, value))

    def _search(self, p: FloatArray) -> FloatArray:
        values = self._remap(self._remap.starts[1:])
        low = np.full(np.broadcast_shapes(p.shape, self._q.shape), np.min(values))
        high = np.where(self._upto(low, beyond=False) >= p, low, np.max(values))  # halving never comes to the least
        low = np.where(p == 1.0, high, low)
        for _ in range(60):
            if np.array_equal(low, high):
                break
            middle = low + (high - low) / 2.0
            enough = self._upto(middle, beyond=False) >= p
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.floor(high) if self._remap.whole else high

    def answers(self, tail: float) -> FloatArray | None:
        """The answers but for a tail on either side, where they are points; of very many some, from end to end."""
        listed = self._channel.listed
        if listed is None and not self._channel.domain.lattice:
            return None
        if listed is None:
            first, last = float(np.min(self._raw.ppf(tail))), float(np.max(self._raw.ppf(1.0 - tail)))
            listed = np.round(np.linspace(first, last, int(min(last - first + 1.0, _SHOWN))))
        return np.unique(self._remap(listed))

    @property
    def atoms(self) -> tuple[tuple[float, Any], ...]:
        """The answers of positive probability on a continuous domain: where T is level, or stops at a hole."""
        if self._channel.domain.lattice:
            return ()
        remap = self._remap
        level = np.flatnonzero((remap.slopes == 0.0) & (np.append(np.diff(remap.starts), np.inf) > 0.0))
        points = set(remap(remap.starts[np.maximum(level, 1)]).tolist())
        for low, high in self._channel.domain.pieces:
            points |= {end for end in (low, high) if math.isfinite(end)}
        found = []
        for point in sorted(points):
            mass = np.asarray(self.cdf(point) - self.cdf(np.nextafter(point, -np.inf)))
            if np.any(mass > _NOTHING):
                found.append((point, np.maximum(mass, 0.0)[()]))
        return tuple(found)

    def pmf(self, y: Any) -> Any:
        """P(answer = y), on Integers."""
        if not self._listed:
            check.refuse("DenoisedLaw", "pmf", "used on Integers", self._channel.domain, "Use pdf and atoms.")
        y = check.numbers("DenoisedLaw", "x", y)
        return np.maximum(self._upto(y, beyond=False) - self._upto(np.nextafter(y, -np.inf), beyond=False), 0.0)[()]

    def logpmf(self, y: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(self.pmf(y))

    def pdf(self, y: Any) -> Any:
        """The density of the continuous part, next to :attr:`atoms`."""
        if self._listed:
            check.refuse("DenoisedLaw", "pdf", "used on continuous domains", self._channel.domain, "Use pmf.")
        y = check.numbers("DenoisedLaw", "x", y)
        total = np.zeros(np.broadcast_shapes(y.shape, self._q.shape))
        inside = self._channel.domain.contains(y)
        remap = self._remap
        x = np.where(inside[..., None], remap.roots(np.where(inside, y, 0.0).reshape(-1)).reshape(*y.shape, -1), np.nan)
        for k in range(1 if remap.rising else x.shape[-1]):
            at = np.where(np.isfinite(x[..., k]), x[..., k], 0.0)
            i = np.searchsorted(remap.starts, at, side="right") - 1
            slope = np.abs(remap.slopes[i])
            passed = np.isfinite(x[..., k]) & (slope > 0.0) & (remap.lows[i] <= y) & (y <= remap.highs[i])
            with np.errstate(divide="ignore", invalid="ignore"):
                total = total + np.where(passed, self._raw.pdf(at) / slope, 0.0)
        return np.where(np.isnan(y), np.nan, total)[()]

    def logpdf(self, y: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(self.pdf(y))

    # -- moments

    @cached_property
    def _moments(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(E[T - q], E[(T - q)^2], E|T - q|)."""
        channel, shape, domain = self._channel, self._channel.shape, self._channel.domain
        if channel.listed is not None:
            at = self._q[..., None]
            share, miss = channel.law(at).pmf(channel.listed), _exact.difference(self._remap(channel.listed), at)
            return tuple((share * e).sum(axis=-1) for e in (miss, miss * miss, np.abs(miss)))
        exact = self._q.reshape(-1)
        q = _exact.floats(exact)
        pieces = (self._within,) if channel.wide else domain.pieces
        breaks = self._remap.breaks
        if domain.lattice:  # what is clamped to an end is a sum of its own
            breaks = np.concatenate(
                [np.ceil(breaks) - 1.0, [e for e in (domain.lower, domain.upper - 1.0) if math.isfinite(e)]]
            )
        panels = channel.panels(pieces, breaks)
        terms = min(pieces[-1][1] - pieces[0][0], 2.0 * shape.reach)
        if panels.exact and q.size * terms > _TERMS:
            raise UnreachableTarget(
                f"Denoised: errors on whole numbers must be sums of at most {_TERMS:.0f} terms in all; got {terms:.3g} "
                f"for each of {q.size} true values. Use Laplace noise, which hardly differs at so small an epsilon."
            )
        out = np.empty((3, q.size))
        for index, rule in panels.parts(q - shape.reach, q + shape.reach, 2.0 * shape.reach, _WHOLE):
            out[:, index] = self._integrals(q[index], exact[index], rule)
        return tuple(v.reshape(self._q.shape) for v in out)  # type: ignore[return-value]

    @property
    def _within(self) -> tuple[float, float]:
        """The raw answers from the first to the last that matter one by one: beyond, all have the same estimate."""
        low, high = self._remap.middle
        return (float(np.ceil(low)), float(np.ceil(high)) - 1.0) if self._channel.domain.lattice else (low, high)

    def _integrals(self, q: FloatArray, exact: npt.NDArray[Any], rule: Rule) -> FloatArray:
        """``q``: the floats nearest to the exact true values, which say where to look."""
        remap, lattice = self._remap, self._channel.domain.lattice
        law, at = self._channel.law(exact[:, None]), exact[:, None]
        cuts = np.concatenate([q[:, None] - np.asarray(self._channel.shape.offsets), remap.roots(q)], axis=1)
        if lattice:
            cuts = np.floor(cuts)
        cuts = np.where(np.isfinite(cuts), cuts, np.inf)
        measure = Measure.of(rule, cuts, law.logpmf if lattice else law.logpdf)
        powers: Any = (lambda error: error, np.square, np.abs, np.ones_like)
        sums = np.stack(measure.integrals(lambda x: _exact.difference(remap(x), at), powers)) * np.exp(measure.top)
        apart = list(law.atoms)
        if self._channel.wide:
            low, high = self._within
            before, after = (low - 1.0, high + 1.0) if lattice else (low, high)
            beyond = [(before, law.cdf(before)), (after, law.sf(high))]
            apart += [(point, mass) for point, mass in beyond if math.isfinite(point)]
        for point, mass in apart:
            error = _exact.difference(remap(np.array([point])), exact)
            sums += np.broadcast_to(mass, at.shape)[:, 0] * np.stack([power(error) for power in powers])
        return np.asarray(sums[:3] / sums[3])

    def mean(self) -> Any:
        return _exact.total(self._q, self._moments[0], lattice=False)[()]

    def var(self) -> Any:
        bias, square, _ = self._moments
        return np.maximum(square - bias * bias, 0.0)[()]

    def std(self) -> Any:
        return np.sqrt(self.var())

    def error(self) -> ErrorReport:
        """Bias, standard deviation, root mean squared and mean absolute error, and the mass at the ends."""
        bias, square, size = self._moments
        domain = self._channel.domain
        lower, upper = float(domain.lower), float(domain.upper)
        zero = np.zeros(self._q.shape)
        at_lower = np.asarray(self.cdf(lower)) if math.isfinite(lower) else zero
        at_upper = np.asarray(self.sf(np.nextafter(upper, -np.inf))) if math.isfinite(upper) else zero
        values = (bias, np.asarray(self.std()), np.sqrt(square), size, at_lower, at_upper)
        return ErrorReport(*(float(v) if v.ndim == 0 else v for v in values))


class DenoisedBoxLaw(BoxDistribution):
    """Independent coordinates."""

    def __init__(self, box: Box, marginals: tuple[Any, ...]) -> None:
        self._box = box
        self.marginals = marginals
