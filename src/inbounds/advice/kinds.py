"""What there is to choose from: one table of kinds of mechanisms, and how each is made for a privacy target."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from inbounds import _checks as check
from inbounds.advice.performance import figures
from inbounds.calibration import Target
from inbounds.domain import Box, Domain
from inbounds.errors import UnreachableTarget
from inbounds.mechanism import BoundedLaplace, Denoised, Gaussian, Laplace, Mechanism, Staircase
from inbounds.mechanism.base import check_domain
from inbounds.sensitivity import resolve

__all__ = [
    "CRITERIA",
    "KINDS",
    "LOSSES",
    "Kind",
    "Question",
    "denoised_staircase",
    "has_wall",
    "mechanism_of",
    "question_of",
    "skipping",
]

LOSSES = ("squared", "absolute")
CRITERIA = ("average", "worst", "unbiased", "smooth")
_ALSO = {"worst case": "worst", "worst-case": "worst", "no mass at the ends": "smooth"}  # other words for them

_LONG = 512  # whole numbers on which Gaussian noise for pure epsilon is not denoised: it takes minutes
_TUNED = 64  # whole numbers up to which a staircase is tuned for its estimate
_STAIRS = 0.1  # epsilon below which stairs are so many and so low that Laplace noise is as good


# ---------------------------------------------------------------- a question


@dataclass(frozen=True)
class Question:
    """What is asked for, checked."""

    domain: Domain
    sensitivity: Any
    target: Target
    loss: str
    prior: Any
    _known: dict[Any, Mechanism] = field(default_factory=dict, compare=False)

    def noise(self, cls: Any, edges: str) -> Mechanism:
        """Calibrated once, for the kinds with and without an estimate: that can take as long as all the rest."""
        key = (cls, edges, self.target)
        if key not in self._known:
            self._known[key] = cls.calibrate(self.domain, sensitivity=self.sensitivity, edges=edges, **self.given)
        return self._known[key]

    @property
    def pure(self) -> bool:
        return self.target.kind == "pure"

    @property
    def given(self) -> dict[str, Any]:
        """The target as arguments of ``calibrate``."""
        t = self.target
        named: dict[str, dict[str, Any]] = {
            "pure": {"epsilon": t.value},
            "approx": {"epsilon": t.value, "delta": t.other},
            "rho": {"rho": t.value},
            "mu": {"mu": t.value},
            "rdp": {"rdp": (t.other, t.value)},
        }
        return named[t.kind]

    @property
    def solvable(self) -> bool:
        """Whether there is a program for the least loss."""
        return self.target.kind in ("pure", "approx") and self.domain.bounded and not isinstance(self.domain, Box)

    def at_epsilon(self, epsilon: float) -> Question:
        return replace(self, target=replace(self.target, value=epsilon))


def question_of(
    what: str, domain: Any, sensitivity: Any, target: Target, loss: Any, prior: Any, criterion: Any
) -> tuple[Question, str]:
    check_domain(what, domain)
    check.choice(what, "loss", loss, LOSSES)
    averaged = domain.bounded or prior is not None
    chosen = ("average" if averaged else "worst") if criterion is None else criterion
    chosen = _ALSO.get(chosen, chosen) if isinstance(chosen, str) else chosen
    check.choice(what, "criterion", chosen, CRITERIA)
    if chosen == "average" and not averaged:
        step = "Give a prior, or criterion='worst'."
        check.refuse(what, "criterion", "'worst' on an unbounded domain without a prior", criterion, step)
    return Question(domain, resolve(what, sensitivity, domain), target, loss, prior), chosen


def has_wall(domain: Domain) -> bool:
    ends = np.concatenate([np.atleast_1d(domain.lower), np.atleast_1d(domain.upper)])
    return bool(np.isfinite(ends).any()) or len(getattr(domain, "pieces", ())) > 1


# ---------------------------------------------------------------- kinds


@dataclass(frozen=True)
class Kind:
    """A way to make a mechanism for a target, or None where it cannot meet one of this currency.

    ``in_range``: answers never leave the domain. ``smooth``: they have a density, without mass at the ends.
    """

    build: Callable[[Question], Mechanism | None]
    in_range: bool = True
    smooth: bool = False
    denoised: bool = False


def _noise(cls: Any, edges: str, *, denoised: bool = False) -> Callable[[Question], Mechanism | None]:
    def build(question: Question) -> Mechanism | None:
        made = question.noise(cls, edges)
        return _denoise(made, question) if denoised else made

    return build


def _staircase(edges: str, *, denoised: bool = False) -> Callable[[Question], Mechanism | None]:
    def build(question: Question) -> Mechanism | None:
        if not question.pure or isinstance(question.domain, Box):
            return None
        make = denoised_staircase if denoised else Staircase.calibrate
        more = {"prior": question.prior, "integer": question.domain.lattice} if denoised else {}
        made: Mechanism = make(
            question.domain,
            sensitivity=question.sensitivity,
            epsilon=question.target.value,
            loss=question.loss,
            edges=edges,
            **more,
        )
        return made

    return build


def denoised_staircase(
    domain: Domain,
    *,
    sensitivity: Any,
    epsilon: float,
    loss: str = "squared",
    prior: Any = None,
    edges: str = "ignore",
    integer: bool = False,
) -> Denoised:
    """Staircase noise and the best estimate, its first stair made for the loss of both together.

    Where the domain is not much longer than a stair, a shorter one than without the estimate is best; it is found by
    trying, while that gets better. Not at small epsilon nor on intervals longer than four stairs, where nothing is
    gained, nor on more than 64 whole numbers, where it takes long.
    """

    def made(gamma: float | None) -> Denoised:
        raw = Staircase.calibrate(domain, sensitivity=sensitivity, epsilon=epsilon, gamma=gamma, loss=loss, edges=edges)
        return Denoised(raw, loss=loss, prior=prior, integer=integer)

    best = made(None)
    stair = cast(float, best.sensitivity)
    longest = _TUNED - 1.0 if domain.lattice else 4.0 * stair
    if not domain.bounded or domain.width > longest or epsilon < _STAIRS:
        return best
    least = _about(best, prior, loss)
    while True:
        gamma = cast(Staircase, best.raw).gamma
        gamma = round(gamma * stair - 1.0) / stair if domain.lattice else 0.9 * gamma
        if not gamma > 0.0:
            return best
        shorter = made(gamma)
        size = _about(shorter, prior, loss)
        if not size < least:
            return best
        best, least = shorter, size


def _about(mechanism: Mechanism, prior: Any, loss: str) -> float:
    """The average error, quickly."""
    average = figures(mechanism, prior=prior, widths=False, quickly=True)[0]
    return math.nan if average is None else average.rmse if loss == "squared" else average.mae


def _bounded(edges: str, *, denoised: bool = False) -> Callable[[Question], Mechanism | None]:
    def build(question: Question) -> Mechanism | None:
        if question.target.kind != "approx" or question.target.value == 0.0 or isinstance(question.domain, Box):
            return None
        made = question.noise(BoundedLaplace, edges)
        return _denoise(made, question) if denoised else made

    return build


def _denoise(made: Mechanism, question: Question) -> Mechanism:
    return Denoised(made, loss=question.loss, prior=question.prior, integer=question.domain.lattice)


#: Simpler ones first: among equals the first is recommended.
KINDS: Mapping[str, Kind] = {
    "clamped Laplace": Kind(_noise(Laplace, "clamp")),
    "truncated Laplace": Kind(_noise(Laplace, "truncate"), smooth=True),
    "clamped Gaussian": Kind(_noise(Gaussian, "clamp")),
    "truncated Gaussian": Kind(_noise(Gaussian, "truncate"), smooth=True),
    "clamped staircase": Kind(_staircase("clamp")),
    "clamped bounded-noise Laplace": Kind(_bounded("clamp")),
    "plain Laplace, denoised": Kind(_noise(Laplace, "ignore", denoised=True), denoised=True),
    "clamped Laplace, denoised": Kind(_noise(Laplace, "clamp", denoised=True), denoised=True),
    "truncated Laplace, denoised": Kind(_noise(Laplace, "truncate", denoised=True), denoised=True),
    "plain Gaussian, denoised": Kind(_noise(Gaussian, "ignore", denoised=True), denoised=True),
    "clamped Gaussian, denoised": Kind(_noise(Gaussian, "clamp", denoised=True), denoised=True),
    "truncated Gaussian, denoised": Kind(_noise(Gaussian, "truncate", denoised=True), denoised=True),
    "staircase, denoised": Kind(_staircase("ignore", denoised=True), denoised=True),
    "clamped staircase, denoised": Kind(_staircase("clamp", denoised=True), denoised=True),
    "bounded-noise Laplace, denoised": Kind(_bounded("ignore", denoised=True), denoised=True),
    "clamped bounded-noise Laplace, denoised": Kind(_bounded("clamp", denoised=True), denoised=True),
    "plain Laplace": Kind(_noise(Laplace, "ignore"), in_range=False, smooth=True),
    "plain Gaussian": Kind(_noise(Gaussian, "ignore"), in_range=False, smooth=True),
    "plain staircase": Kind(_staircase("ignore"), in_range=False, smooth=True),
    "plain bounded-noise Laplace": Kind(_bounded("ignore"), in_range=False, smooth=True),
}


def mechanism_of(name: str, kind: Kind, question: Question, skipped: dict[str, str]) -> Mechanism | None:
    if kind.denoised and not question.domain.bounded and question.prior is None and not has_wall(question.domain):
        return None  # without walls and without a prior there is nothing to be gained
    domain = question.domain
    if kind.denoised and "Gaussian" in name and question.pure and domain.lattice and np.max(domain.width) > _LONG:
        skipped[name] = "left out on long ranges: it takes minutes, and for pure epsilon it is never near the best"
        return None
    if name == "staircase, denoised" and not domain.lattice and question.pure and question.target.value < _STAIRS:
        skipped[name] = f"left out below epsilon {_STAIRS:g}: it takes long, and hardly differs from Laplace noise"
        return None
    with skipping(name, skipped):
        return kind.build(question)
    return None


@contextmanager
def skipping(
    name: str, skipped: dict[str, str], kinds: tuple[type[Exception], ...] = (UnreachableTarget,)
) -> Iterator[None]:
    """What cannot be had is noted, with the reason."""
    try:
        yield
    except kinds as problem:
        skipped[name] = str(problem)
