"""What a released answer says about the true value, under a public prior.

The posterior density is proportional to the prior times the likelihood: the density, or the probability, of the answer
as a function of the true value. Proofs: ``docs/proofs/denoising.md``.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from inbounds import _checks as check
from inbounds._checks import FloatArray
from inbounds._html import table
from inbounds.domain import Box
from inbounds.inference.bayes import Channel, Seen, Shape, solver
from inbounds.inference.prior import Prior, priors

if TYPE_CHECKING:
    from inbounds.mechanism.base import Mechanism

__all__ = ["LARGEST", "BoxPosterior", "Posterior", "Prior", "Shape", "posterior"]


#: In size, of an answer: squares of it stay within floats, and no noise goes as far.
LARGEST = 1e100
_ROWS = 10


class Posterior:
    """The distribution of the true value, given an answer and a public prior: see :meth:`inbounds.Mechanism.posterior`.

    For an array of answers every method gives one result for each; arguments broadcast against the answers.
    """

    def __init__(self, channel: Channel, prior: Prior, seen: Seen) -> None:
        self._channel = channel
        self._shape = seen[0][0].shape
        self._solver = solver(channel, prior, [(low.reshape(-1), high.reshape(-1)) for low, high in seen])
        self.prior = prior
        if math.prod(self._shape) and not np.isfinite(self._solver.log_evidence()).all():
            step = "Under this prior it cannot occur; check both."
            check.refuse("posterior", "value", "an answer that the prior allows", "another", step)

    def __repr__(self) -> str:
        return f"<Posterior on {self._channel.domain!r}, {self.prior!r}>"

    def _repr_html_(self) -> str:
        """For notebooks; of an array of answers the first few."""
        columns = [self.mean(), self.median(), self.std(), *self.interval(0.95)]
        rows = zip(*(np.reshape(column, -1)[:_ROWS] for column in columns), strict=True)
        heads = ("mean", "median", "standard deviation", "95 % from", "to")
        shown = table(heads, ([f"{value:.6g}" for value in row] for row in rows))
        return f"{shown}<code>{escape(repr(self))}</code>"

    def _of_each(self, name: str) -> Any:
        return getattr(self._solver, name)().reshape(self._shape)[()]

    def _of_pairs(self, name: str, what: str, given: Any) -> Any:
        values = check.numbers("Posterior", what, given)
        try:
            shape = np.broadcast_shapes(values.shape, self._shape)
        except ValueError:
            wanted = f"of a shape that broadcasts against that of the answers, {self._shape}"
            check.refuse("Posterior", what, wanted, f"shape {values.shape}", "")
        size = math.prod(self._shape)
        row = np.broadcast_to(np.arange(size).reshape(self._shape), shape).reshape(-1)
        flat = np.broadcast_to(values, shape).reshape(-1)
        known = ~np.isnan(flat) if what == "q" else (flat >= 0.0) & (flat <= 1.0)
        safe = np.where(known, flat, self._channel.domain.pieces[0][0] if what == "q" else 0.5)
        out = np.where(known, getattr(self._solver, name)(row, safe), np.nan)
        return out.reshape(shape)[()]

    @property
    def discrete(self) -> bool:
        """Whether only finitely many, or whole, values can be true: then :meth:`pmf`, otherwise :meth:`pdf`."""
        return self._channel.domain.lattice or self.prior.points is not None

    def pdf(self, q: Any) -> Any:
        """Density of the true value at q."""
        if self.discrete:
            check.refuse("Posterior", "pdf", "used where the true value has a density", self.prior, "Use pmf.")
        return self._of_pairs("pdf", "q", q)

    def pmf(self, q: Any) -> Any:
        """Probability of the true value q, on whole numbers or under a prior on points."""
        if not self.discrete:
            check.refuse("Posterior", "pmf", "used where the true value is one of some points", self.prior, "Use pdf.")
        return self._of_pairs("pdf", "q", q)

    def cdf(self, q: Any) -> Any:
        """P(true value <= q)."""
        return self._of_pairs("cdf", "q", q)

    def ppf(self, p: Any) -> Any:
        """The smallest q of the domain with cdf(q) >= p; NaN outside [0, 1]."""
        return self._of_pairs("ppf", "p", p)

    def mean(self) -> Any:
        """In the convex hull of the domain."""
        return self._of_each("mean")

    def median(self) -> Any:
        """The smallest q with cdf(q) >= 1/2."""
        return self.ppf(0.5)

    def mode(self) -> Any:
        """The most probable value; of several the smallest found."""
        return self._of_each("mode")

    def var(self) -> Any:
        return self._of_each("var")

    def std(self) -> Any:
        return np.sqrt(self.var())

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """A credible interval (lower, upper), equal-tailed, inside the domain.

        Under the prior, the true value lies in it with this probability, or more where it is one of some points. That
        is not a confidence interval: for one fixed true value the share of answers whose interval holds it may be
        larger or smaller.
        """
        tail = (1.0 - check.level("Posterior", level)) / 2.0
        return self.ppf(tail), self.ppf(1.0 - tail)


class BoxPosterior:
    """Independent coordinates: each one's posterior is ``marginals[i]``; methods work on the last axis."""

    def __init__(self, marginals: tuple[Posterior, ...]) -> None:
        self.marginals = marginals

    def __repr__(self) -> str:
        return f"<BoxPosterior: {len(self.marginals)} coordinates>"

    def _stack(self, name: str, given: Any = None) -> Any:
        if given is None:
            return np.stack([getattr(m, name)() for m in self.marginals], axis=-1)
        values = check.numbers("BoxPosterior", name, given)
        size = len(self.marginals)
        if values.ndim == 0 or values.shape[-1] != size:
            check.refuse("BoxPosterior", name, f"given an array of shape (..., {size})", f"shape {values.shape}", "")
        return np.stack([getattr(m, name)(values[..., i]) for i, m in enumerate(self.marginals)], axis=-1)

    def pdf(self, q: Any) -> Any:
        """Density of each coordinate."""
        return self._stack("pdf", q)

    def pmf(self, q: Any) -> Any:
        return self._stack("pmf", q)

    def cdf(self, q: Any) -> Any:
        """P(coordinate <= q), for each."""
        return self._stack("cdf", q)

    def ppf(self, p: Any) -> Any:
        return self._stack("ppf", p)

    def mean(self) -> Any:
        return self._stack("mean")

    def median(self) -> Any:
        return self._stack("median")

    def mode(self) -> Any:
        return self._stack("mode")

    def var(self) -> Any:
        return self._stack("var")

    def std(self) -> Any:
        return np.sqrt(self.var())

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """Credible intervals, one for each coordinate."""
        ends = [m.interval(level) for m in self.marginals]
        return np.stack([low for low, _ in ends], axis=-1), np.stack([high for _, high in ends], axis=-1)


def posterior(mechanism: Mechanism, value: Any, prior: Any = None) -> Posterior | BoxPosterior:
    """What a released value (or an array of them) says about the true value.

    Parameters
    ----------
    mechanism : Mechanism
        The one that released it.
    value : number or array
        For a Box the last axis holds the coordinates.
    prior : None, "flat", callable, (points, weights) or Prior
        For a Box a sequence, one for each coordinate. See :class:`Prior`.
    """
    x = check.real_array("posterior", "value", value, requirement="a number or an array of numbers")
    if not (np.abs(x) <= LARGEST).all():
        check.refuse("posterior", "value", f"finite, and at most {LARGEST:g} in size", value, "")
    domain = mechanism.domain
    beliefs = priors(domain, prior)
    if not isinstance(domain, Box):
        return _one(mechanism, None, x, beliefs[0])
    if x.ndim == 0 or x.shape[-1] != domain.dimension:
        check.refuse("posterior", "value", f"of shape (..., {domain.dimension})", f"shape {x.shape}", "")
    return BoxPosterior(tuple(_one(mechanism, i, x[..., i], belief) for i, belief in enumerate(beliefs)))


def _one(mechanism: Mechanism, coordinate: int | None, x: FloatArray, prior: Prior) -> Posterior:
    trace = getattr(mechanism, "_seen", None)
    if trace is not None:  # the answer was made of another mechanism's
        return Posterior(Channel(cast(Any, mechanism).raw, coordinate), prior, trace(x, coordinate))
    channel = Channel(mechanism, coordinate)
    domain, x = channel.domain, channel.snapped(x)
    good = (x == np.floor(x)) | (not domain.lattice) if channel.wide else domain.contains(x)
    if not np.all(good):
        wanted = "a whole number" if channel.wide else f"in {domain!r}"
        check.refuse("posterior", "value", wanted, float(x[~good].flat[0]), "Pass what the mechanism released.")
    return Posterior(channel, prior, [(x, x)])
