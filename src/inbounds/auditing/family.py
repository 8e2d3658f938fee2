"""Any family of output densities on a one-dimensional domain, given by its logarithm up to a constant."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from inbounds import _checks as check
from inbounds._checks import FloatArray
from inbounds.domain import Integers, Interval, Spans
from inbounds.errors import InboundsError, ParameterTypeError

__all__ = ["LocationFamily"]


@dataclass(frozen=True)
class LocationFamily:
    r"""Output densities :math:`p_q(x) \propto e^{g(x, q)}` on a one-dimensional domain, for every true value q.

    Parameters
    ----------
    log_density : callable (x, q) -> array
        g, vectorised: float arrays that broadcast, the result of the shape of x. No normalisation is needed, also not
        one that depends on q. ``-inf`` where the density is 0. It should be largest not far from q.
    domain : Interval, Spans or Integers
        Ends may be infinite. Outputs and true values lie in it.
    log_concave : bool
        Whether g is a concave function of x - q alone (one scale for all q), for all real x and q. Then nearer pairs
        are never worse (``docs/proofs/monotone-likelihood-ratio.md``) and claims can be proven. It is taken on trust,
        but for a spot check.
    name : str
        For reports.

    Examples
    --------
    >>> import inbounds as ib
    >>> from inbounds.auditing import LocationFamily, audit
    >>> cauchy = LocationFamily(lambda x, q: -np.log1p((x - q) ** 2), ib.Interval(0, 10), name="Cauchy")
    >>> audit(cauchy, sensitivity=1.0, epsilon=0.5).verdict
    'refuted'
    """

    log_density: Callable[[FloatArray, FloatArray], Any]
    domain: Interval | Spans | Integers
    log_concave: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        what = "LocationFamily"
        if not callable(self.log_density):
            check.refuse(what, "log_density", "a function of (x, q)", self.log_density, "", ParameterTypeError)
        if not isinstance(self.domain, Interval | Spans | Integers):
            check.refuse(what, "domain", "an Interval, Spans or Integers", self.domain, "", ParameterTypeError)
        if not isinstance(self.log_concave, bool):
            check.refuse(what, "log_concave", "True or False", self.log_concave, "", ParameterTypeError)
        if not isinstance(self.name, str):
            check.refuse(what, "name", "a string", self.name, "", ParameterTypeError)

    @classmethod
    def from_kernel(
        cls,
        log_kernel: Callable[[FloatArray], Any],
        domain: Interval | Spans | Integers,
        *,
        scale: float | Callable[[FloatArray], Any] = 1.0,
        log_concave: bool = False,
        name: str = "",
    ) -> LocationFamily:
        """The family log_kernel((x - q) / scale), where the scale is a number or a function of q.

        Examples
        --------
        >>> import inbounds as ib
        >>> laplace = LocationFamily.from_kernel(lambda t: -abs(t), ib.Interval(0, 1), scale=0.3, log_concave=True)
        """
        if not callable(log_kernel):
            check.refuse("LocationFamily", "log_kernel", "a function", log_kernel, "", ParameterTypeError)
        if not callable(scale):
            scale = check.number("LocationFamily", "scale", scale, above=0.0)
        elif log_concave:
            check.refuse(
                "LocationFamily", "log_concave", "False where the scale depends on the true value", log_concave, ""
            )
        return cls(partial(_scaled, log_kernel, scale), domain, log_concave, name)

    def log_at(self, x: FloatArray, q: FloatArray) -> FloatArray:
        """The log-density, checked: one number for each pair of arguments, none of them nan or infinitely large."""
        what = "LocationFamily"
        try:
            with np.errstate(all="ignore"):
                out = np.asarray(self.log_density(x, q))
        except InboundsError:
            raise
        except Exception as error:
            got = f"{type(error).__name__}: {error}"
            check.refuse(what, "log_density", "a vectorised function of (x, q) that does not raise", got, "")
        if out.dtype.kind not in "iuf":
            check.refuse(what, "log_density", "a function that returns real numbers", out.dtype, "", ParameterTypeError)
        if out.shape != x.shape:
            got = f"shape {out.shape} for arguments of shape {x.shape}"
            check.refuse(what, "log_density", "a vectorised function, one value for each x and q", got, "")
        values = out.astype(np.float64)
        wrong = np.isnan(values) | (values == np.inf)
        if wrong.any():
            i = int(np.argmax(wrong))
            where = f"{float(values.flat[i])!r} at x = {float(x.flat[i])!r}, "
            where += f"q = {float(np.broadcast_to(q, x.shape).flat[i])!r}"
            check.refuse(what, "log_density", "a number or -inf on the domain", where, "")
        return values

    def __repr__(self) -> str:
        return f"LocationFamily({self.name or 'log_density'!r}, {self.domain!r})"


def _scaled(kernel: Callable[[FloatArray], Any], scale: Any, x: FloatArray, q: FloatArray) -> Any:
    if not callable(scale):
        return kernel((x - q) / scale)
    s = np.asarray(scale(q), dtype=np.float64)
    if not (np.isfinite(s) & (s > 0.0)).all():
        check.refuse("LocationFamily", "scale", "a function with finite values above 0", s[~(s > 0.0)][:3], "")
    return kernel((x - q) / s)


def spot_check(family: LocationFamily) -> None:
    """Whether log_concave=True is contradicted at a few places."""
    domain = family.domain
    wide = float(domain.width) if domain.bounded else 32.0
    start = next((e for e in (domain.lower, -domain.upper) if math.isfinite(e)), 0.0)
    q = np.asarray(domain.project(start + np.linspace(0.0, wide, 5)), dtype=np.float64)
    u = np.arange(-32.0, 33.0) * (max(1.0, wide // 32.0) if domain.lattice else wide / 32.0)
    inside = np.asarray(domain.contains(q[:, None] + u))
    g = family.log_at(np.where(inside, q[:, None] + u, q[:, None]), q[:, None])
    g = np.where(inside & np.isfinite(g), g - g[:, 32:33], np.nan)
    size = 1e-6 * (1.0 + np.nanmax(np.abs(g), initial=0.0))
    with np.errstate(invalid="ignore"):
        bent = np.diff(g, 2, axis=1) > size
        shifted = np.abs(g - g[2]) > size
    if bent.any() or shifted.any():
        requirement = "False: at some places the log-density is not a concave function of x - q alone"
        check.refuse("LocationFamily", "log_concave", requirement, True, "")
