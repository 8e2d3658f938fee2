"""What an audit found: values that print, export as JSON and plot."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from inbounds._checks import FloatArray
from inbounds.errors import MissingExtra
from inbounds.numerics import Bound

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Audit", "Check", "SamplerAudit", "Witness"]

#: An output set: the outputs x with low < x <= high of one of these, inside the domain.
Event = tuple[tuple[float, float], ...]


def shown(x: Any, digits: int = 6) -> str:
    """A number, or a vector, for people."""
    if isinstance(x, tuple | list | np.ndarray):
        parts = [shown(v, digits) for v in list(x)[:6]]
        return "(" + ", ".join(parts) + (", ...)" if len(x) > 6 else ")")
    if isinstance(x, float | int) and not isinstance(x, bool):
        return f"{x:.{digits}g}"
    return shortened(str(x))


def shortened(text: str, most: int = 120) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def plain(x: Any) -> Any:
    """For JSON: arrays and tuples as lists, infinities as strings, not-a-number as null."""
    if isinstance(x, dict):
        return {str(k): plain(v) for k, v in x.items()}
    if isinstance(x, tuple | list | np.ndarray):
        return [plain(v) for v in x]
    if isinstance(x, bool | np.bool_):
        return bool(x)
    if isinstance(x, int | np.integer):
        return int(x)
    if isinstance(x, float | np.floating):
        value = float(x)
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
    return x if x is None or isinstance(x, str) else repr(x)


class _Report:
    """How every report is exported."""

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and strings; infinities as ``"inf"``, missing numbers as ``None``."""
        raise NotImplementedError

    def to_json(self, *, indent: int | None = 2) -> str:
        """The same as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


@dataclass(frozen=True)
class Witness:
    """A pair of true values, and where their output laws differ most.

    Attributes
    ----------
    pair : (q, q')
        The loss is that of the law at q over the law at q'.
    output : float, tuple or None
        An output x; ``likelihoods`` are its densities (its probabilities on whole numbers and at clamped ends) under
        the two laws.
    event : pairs (low, high), or None
        The outputs with low < x <= high of one of the pairs; ``probabilities`` are those of the two laws.
    loss : float
        The logarithm of the ratio of the two likelihoods or probabilities.
    direction : tuple or None
        For a Box: ``event`` is about the sum of direction[i] x[i], often one coordinate.
    excess : float
        By how much the claim is exceeded (negative: it is not): loss - epsilon, or P - e^epsilon P' - delta.
    error : float
        Bound of the numerical error of ``excess``.
    """

    pair: tuple[Any, Any]
    loss: float
    excess: float
    error: float
    output: Any = None
    likelihoods: tuple[float, float] | None = None
    event: Event | None = None
    probabilities: tuple[float, float] | None = None
    direction: tuple[float, ...] | None = None

    @property
    def violates(self) -> bool:
        """Whether the claim is exceeded by more than numerical error can explain."""
        return self.excess > self.error

    def describe(self) -> str:
        """In one or two sentences."""
        where = f"true values {shown(self.pair[0])} and {shown(self.pair[1])}"
        if self.event is None or self.probabilities is None:
            return f"{where}: at output {shown(self.output)} the loss is {shown(self.loss)}"
        first, second = self.probabilities
        if first == second == 0.0:
            return where  # no set of outputs tells them apart by more than epsilon
        inside = f"{where}: an output {_event(self.event)}"
        if self.direction is not None:
            used = [i for i, v in enumerate(self.direction) if v]
            inside += f" in coordinate {used[0]}" if len(used) == 1 else f" along {shown(self.direction, 3)}"
        return f"{inside} has probability {shown(first)} and {shown(second)}"


def _event(event: Event) -> str:
    parts = [
        f"of at most {shown(b)}"
        if math.isinf(a)
        else f"above {shown(a)}"
        if math.isinf(b)
        else f"in ({a:.6g}, {b:.6g}]"
        for a, b in event
    ]
    return " or ".join(parts[:3]) + (f" or in one of {len(parts) - 3} more intervals" if len(parts) > 3 else "")


@dataclass(frozen=True)
class Audit(_Report):
    """The verdict on a privacy claim, with the evidence; made by :func:`inbounds.audit`.

    Attributes
    ----------
    verdict : "proven", "refuted" or "undecided"
    subject : str
        What was audited.
    epsilon, delta, sensitivity
        The claim: loss at most epsilon, but for delta, for true values at most ``sensitivity`` apart.
    reason : str
        Why this verdict.
    bound : Bound or None
        The proven bound: of epsilon where delta is 0, of delta otherwise.
    witness : Witness or None
        The worst pair found with its worst output, or output set where delta > 0. It refutes the claim where it
        ``violates`` it.
    set_witness : Witness or None
        For a claim with delta = 0: the output set with the largest delta at this epsilon.
    real_epsilon, real_delta : (lower, upper)
        What holds in truth: epsilon at the delta of the claim, delta at its epsilon. The lower ends are attained by
        pairs found, the upper ends are proven (infinite, or 1, where nothing is).
    assumptions : tuple of str
        What the verdict rests on.
    """

    verdict: str
    subject: str
    epsilon: float
    delta: float
    sensitivity: Any
    reason: str
    bound: Bound | None
    witness: Witness | None
    set_witness: Witness | None
    real_epsilon: tuple[float, float]
    real_delta: tuple[float, float]
    assumptions: tuple[str, ...] = ()
    # for pictures: the window of outputs, their loss, and delta(epsilon)
    _window: tuple[float, float] = field(default=(0.0, 1.0), repr=False, compare=False)
    _loss: Callable[[FloatArray], FloatArray] | None = field(default=None, repr=False, compare=False)
    _profile: Callable[[float], float] | None = field(default=None, repr=False, compare=False)

    @property
    def proven(self) -> bool:
        return self.verdict == "proven"

    @property
    def refuted(self) -> bool:
        return self.verdict == "refuted"

    def __str__(self) -> str:
        claim = f"epsilon = {shown(self.epsilon)}" + (f", delta = {shown(self.delta)}" if self.delta else "")
        lines = [
            f"Audit of {shortened(self.subject)}",
            f"  claim    {claim}, for true values at most {shown(self.sensitivity)} apart",
            f"  verdict  {self.verdict.upper()}: {self.reason}",
        ]
        if self.witness is not None:
            lines.append(f"  {'example ' if self.refuted else 'worst   '} {self.witness.describe()}")
        if self.set_witness is not None and self.refuted:
            lines.append(f"  set      {self.set_witness.describe()}")
        at_delta = "" if self.delta == 0.0 else f" at delta = {shown(self.delta)}"
        lines.append(
            f"  in truth epsilon {_range(*self.real_epsilon, math.inf)}{at_delta}; "
            f"delta {_range(*self.real_delta, 1.0)} at epsilon = {shown(self.epsilon)}"
        )
        lines += [f"  assumes  {a}" for a in self.assumptions]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and strings; infinities as ``"inf"``, missing numbers as ``None``."""
        bound = self.bound
        known = None if bound is None else {"value": float(bound), "exact": bound.exact, "reason": bound.reason}
        fields = ("subject", "verdict", "epsilon", "delta", "sensitivity", "reason")
        found: dict[str, Any] = {"format": "inbounds.audit", "version": 1}
        found |= {name: getattr(self, name) for name in fields}
        found |= {"bound": known, "witness": _witness(self.witness), "set_witness": _witness(self.set_witness)}
        found |= {
            "real_epsilon": dict(zip(("lower", "upper"), self.real_epsilon, strict=True)),
            "real_delta": dict(zip(("lower", "upper"), self.real_delta, strict=True)),
            "assumptions": self.assumptions,
        }
        out: dict[str, Any] = plain(found)
        return out

    def plot(self, figure: Figure | None = None) -> Figure:
        """Draw the loss of the worst pair over the outputs, with the violating ones shaded, and delta over epsilon."""
        figure = new_figure(figure)
        left, right = figure.subplots(1, 2)
        across = self.witness is not None and isinstance(self.witness.pair[0], tuple)
        xlabel = "output, across the box towards the most telling one" if across else "output"
        left.set(title="Loss of the worst pair", xlabel=xlabel, ylabel="ln p / p'")
        right.set(title="Profile", xlabel="epsilon", ylabel="delta")
        if self._loss is not None and self.witness is not None:
            x = np.linspace(*self._window, 801)
            y = self._loss(x)
            left.plot(x, y, label=f"{shown(self.witness.pair[0])} over {shown(self.witness.pair[1])}")
            bad = y > self.epsilon
            top, bottom = left.get_ylim()[1], left.get_ylim()[0]
            left.fill_between(x, bottom, top, where=bad, alpha=0.2, color="C3", label="violates", step="mid")
            left.set_ylim(bottom, top)
        left.axhline(self.epsilon, color="C3", linestyle="--", label="claimed epsilon")
        left.legend(fontsize="small")
        if self._profile is not None:
            largest = self.real_epsilon[1] if math.isfinite(self.real_epsilon[1]) else self.real_epsilon[0]
            most = 1.25 * max(self.epsilon, largest if math.isfinite(largest) else 0.0, 0.1)
            grid = np.linspace(0.0, min(most, 500.0), 41)
            values = np.array([self._profile(float(e)) for e in grid])
            right.plot(grid, np.where(values > 0.0, values, np.nan))
            right.set_yscale("log")
        right.axvline(self.epsilon, color="C3", linestyle="--", label="claimed epsilon")
        if self.delta > 0.0:
            right.plot([self.epsilon], [self.delta], "o", color="C3", label="claim")
        right.legend(fontsize="small")
        figure.suptitle(f"{self.verdict}: {self.subject[:90]}", fontsize="medium")
        return figure


def _range(low: float, high: float, unknown: float) -> str:
    if low < high == unknown:
        return f"at least {shown(low)}"
    if high <= low * (1.0 + 1e-6):
        return shown(max(low, high))
    return f"{shown(low)} to {shown(high)}"


def _witness(witness: Witness | None) -> dict[str, Any] | None:
    if witness is None:
        return None
    names = ("pair", "output", "likelihoods", "loss", "event", "probabilities", "direction", "excess", "error")
    return {name: getattr(witness, name) for name in names} | {"violates": witness.violates}


@dataclass(frozen=True)
class Check:
    """One check of a sampler: its outcome (``"pass"``, ``"flag"``, or ``"measured"`` where no claim was given)."""

    name: str
    status: str
    summary: str
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SamplerAudit(_Report):
    """What draws alone say about a sampler; made by :func:`inbounds.audit_sampler`.

    Attributes
    ----------
    subject : str
    pair : (q, q')
    draws : int
        For each of the two true values.
    confidence : float
        All statements hold together with at least this probability; a correct sampler is flagged with at most the rest.
    epsilon, delta : the claim; epsilon None if there was none
    checks : tuple of Check
    epsilon_lower : float
        The sampler's epsilon at ``delta`` is at least this.
    delta_lower : float
        Its delta at ``epsilon`` is at least this (not a number where epsilon was not given).
    """

    subject: str
    pair: tuple[float, float]
    draws: int
    confidence: float
    epsilon: float | None
    delta: float
    checks: tuple[Check, ...]
    epsilon_lower: float
    delta_lower: float
    _samples: tuple[FloatArray, FloatArray] | None = field(default=None, repr=False, compare=False)
    _times: FloatArray | None = field(default=None, repr=False, compare=False)

    @property
    def flagged(self) -> tuple[str, ...]:
        """The names of the checks that were flagged."""
        return tuple(c.name for c in self.checks if c.status == "flag")

    @property
    def passed(self) -> bool:
        return not self.flagged

    def __getitem__(self, name: str) -> Check:
        return next(c for c in self.checks if c.name == name)

    def __str__(self) -> str:
        claim = "none" if self.epsilon is None else f"epsilon = {shown(self.epsilon)}"
        if self.epsilon is not None and self.delta:
            claim += f", delta = {shown(self.delta)}"
        lines = [
            f"Audit of the sampler {self.subject}",
            f"  {self.draws} draws at each of {shown(self.pair[0])} and {shown(self.pair[1])}; claim: {claim}",
        ]
        lines += [f"  {c.status.upper():<8} {c.name}: {c.summary}" for c in self.checks]
        lines.append(
            f"  All of this with confidence {self.confidence:g}: epsilon is at least {self.epsilon_lower:.4g}."
        )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and strings; infinities as ``"inf"``, missing numbers as ``None``."""
        names = ("subject", "pair", "draws", "confidence", "epsilon", "delta", "epsilon_lower", "delta_lower")
        found: dict[str, Any] = {"format": "inbounds.sampler_audit", "version": 1}
        found |= {name: getattr(self, name) for name in names}
        found["flagged"] = self.flagged
        found["checks"] = [
            {"name": c.name, "status": c.status, "summary": c.summary, "figures": c.figures} for c in self.checks
        ]
        out: dict[str, Any] = plain(found)
        return out

    def plot(self, figure: Figure | None = None) -> Figure:
        """Draw the two samples, their log-ratio with the claim, and the times of the calls."""
        figure = new_figure(figure)
        axes = figure.subplots(1, 3)
        for axis, title in zip(axes, ("Draws", "Log-ratio of the histograms", "Seconds a call"), strict=True):
            axis.set_title(title, fontsize="medium")
        if self._samples is not None:
            edges = np.histogram_bin_edges(np.concatenate(self._samples), bins=50)
            counts = [np.histogram(y, edges)[0] for y in self._samples]
            for q, y in zip(self.pair, self._samples, strict=True):
                axes[0].hist(y, edges, histtype="step", label=shown(q))
            axes[0].legend(fontsize="small")
            enough = (counts[0] > 20) & (counts[1] > 20)
            ratio = np.log(counts[0][enough] / counts[1][enough])
            error = np.sqrt(1.0 / counts[0][enough] + 1.0 / counts[1][enough])
            axes[1].errorbar((edges[:-1] + edges[1:])[enough] / 2.0, ratio, 2.0 * error, fmt=".")
            if self.epsilon is not None:
                for level in (-self.epsilon, self.epsilon):
                    axes[1].axhline(level, color="C3", linestyle="--")
        if self._times is not None:
            short = np.minimum(self._times, np.quantile(self._times, 0.98))
            axes[2].hist(short, 40, histtype="step", label=[shown(q) for q in self.pair])
            axes[2].legend(fontsize="small")
        figure.suptitle(f"{self.subject}: {'flagged ' + ', '.join(self.flagged) if self.flagged else 'passed'}")
        return figure


def new_figure(figure: Figure | None) -> Figure:
    """A figure to draw on; no window and no global state."""
    if figure is not None:
        return figure
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("plot: matplotlib is not installed. Install inbounds[plots].") from error
    return Figure(figsize=(10.0, 4.0), layout="constrained")
