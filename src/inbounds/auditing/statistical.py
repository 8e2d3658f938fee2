"""What draws alone say about a sampler: lower bounds on its epsilon and delta, its low bits, its time.

Every event is chosen on one half of the draws and bounded on the other, so that the choice costs nothing; exact
binomial bounds (Clopper and Pearson) hold together at the stated confidence. A sampler that has the privacy it claims
is flagged with at most the probability that is left.
"""

from __future__ import annotations

import gc
import inspect
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from inbounds import _checks as check
from inbounds._checks import FloatArray
from inbounds.auditing.report import Check, SamplerAudit, shown
from inbounds.domain import Box
from inbounds.errors import InboundsError, ParameterTypeError
from inbounds.mechanism import Mechanism

__all__ = ["audit_sampler"]

CHECKS = ("law", "low bits", "timing")
_BINS = 64  # of the outputs, by quantiles
_ENDS = ("their last four bits", "the place of their last bit")
_LEAST = 20  # draws a cell of low bits must have to be looked at
_ROUNDS = 400  # of the timing
_TOLERANCE = 0.05  # relative difference of the times that is let pass
_SHORTEST = 5e-4  # seconds: what is timed at once takes at least this, so that rare long calls are among it
_clock = time.perf_counter

Mask = npt.NDArray[np.bool_]
Whole = npt.NDArray[np.int64]
Samples = tuple[FloatArray, FloatArray]
Draw = Callable[[float, int], FloatArray]


def audit_sampler(
    sampler: Any,
    pair: tuple[float, float],
    *,
    draws: int = 100_000,
    confidence: float = 0.999,
    epsilon: float | None = None,
    delta: float = 0.0,
    checks: tuple[str, ...] = CHECKS,
    batched: bool | None = None,
) -> SamplerAudit:
    """Look for what the draws of a sampler give away about which of two true values they came from.

    Parameters
    ----------
    sampler : callable or mechanism
        ``sampler(q)`` gives one draw, or ``sampler(q, size)`` an array of them; or one of our mechanisms.
    pair : (q, q')
        Two neighbouring true values. Low bits show best for values on two sides of a power of two, such as 0.49 and
        0.51, and time for one value at a wall and one in the middle.
    draws : int in [1000, 10^8]
        For each true value.
    confidence : float in [0.5, 1)
        With which everything that is said holds together.
    epsilon, delta : float
        The claim. Without epsilon, lower bounds are given and nothing but the time is flagged.
    checks : of "law", "low bits", "timing"
    batched : bool, optional
        Whether the sampler takes a size. By default: if it has a parameter called ``size``, or a second one without
        a default.

    Returns
    -------
    SamplerAudit
        *law*: half-lines and intervals of outputs. *low bits*: outputs sorted by their last bits, within narrow ranges
        of size; a draw whose last bits say where it came from is a leak, however good the noise is. *timing*: calls
        for both values in turn; flagged where the median ratio of the times is certainly off 1 by more than 5 %.

    Examples
    --------
    >>> import inbounds as ib
    >>> from inbounds.auditing import audit_sampler
    >>> age = ib.Laplace.calibrate(ib.Interval(0, 120), sensitivity=0.5, epsilon=1.0)
    >>> audit_sampler(age, (31.9, 32.1), draws=2000, epsilon=1.0, checks=("law", "low bits")).passed
    True
    """
    what = "audit_sampler"
    values = _pair(what, pair)
    count = check.whole(what, "draws", draws, at_least=1000, at_most=10**8)
    sure = check.number(what, "confidence", confidence, at_least=0.5, below=1.0)
    claim = None if epsilon is None else check.number(what, "epsilon", epsilon, at_least=0.0, at_most=500.0)
    d = check.number(what, "delta", delta, at_least=0.0, below=1.0)
    chosen = _chosen(what, checks)
    name, draw, call = _drawing(what, sampler, batched)
    samples = draw(pair[0], count), draw(pair[1], count)
    done: list[Check] = []
    epsilon_lower, delta_lower, times = 0.0, math.nan, None
    alpha = (1.0 - sure) / len(chosen)
    for kind in chosen:
        if kind == "timing":
            found, times = _timing(call, pair, alpha)
            done.append(found)
            continue
        bounds = _bounds(samples, _interval_event if kind == "law" else _low_bit_event, claim, d, alpha)
        epsilon_lower = max(epsilon_lower, bounds.epsilon)
        if claim is not None:
            delta_lower = max(bounds.delta, 0.0 if math.isnan(delta_lower) else delta_lower)
        done.append(_judged(kind, bounds, samples, claim, d))
    return SamplerAudit(
        subject=name,
        pair=values,
        draws=count,
        confidence=sure,
        epsilon=claim,
        delta=d,
        checks=tuple(done),
        epsilon_lower=epsilon_lower,
        delta_lower=delta_lower,
        _samples=samples,
        _times=times,
    )


def _pair(what: str, pair: Any) -> tuple[float, float]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        check.refuse(what, "pair", "two true values (q, q')", pair, "", ParameterTypeError)
    first, second = (check.number(what, f"pair[{i}]", q) for i, q in enumerate(pair))
    if first == second:
        check.refuse(what, "pair", "two different true values", pair, "")
    return first, second


def _chosen(what: str, checks: Any) -> tuple[str, ...]:
    if isinstance(checks, str) or not isinstance(checks, tuple | list) or not checks:
        check.refuse(what, "checks", f"some of {CHECKS}", checks, "", ParameterTypeError)
    return tuple(dict.fromkeys(check.choice(what, "checks", c, CHECKS) for c in checks))


def _drawing(what: str, sampler: Any, batched: bool | None) -> tuple[str, Draw, Callable[[float], Any]]:
    """The sampler's name, how to draw many, and the call to be timed."""
    if isinstance(sampler, Mechanism):
        if isinstance(sampler.domain, Box):
            check.refuse(what, "sampler", "one-dimensional", sampler, "Audit one coordinate's mechanism.")
        mechanism = sampler
        return (
            repr(mechanism),
            lambda q, n: _numbers(what, mechanism.release(np.full(n, q)).value, n),
            mechanism.release,
        )
    if not callable(sampler):
        check.refuse(what, "sampler", "a function of q, or of q and size", sampler, "", ParameterTypeError)
    name = getattr(sampler, "__qualname__", None) or repr(sampler)
    if batched is None:
        batched = _takes_size(sampler)
    elif not isinstance(batched, bool):
        check.refuse(what, "batched", "True, False or None", batched, "", ParameterTypeError)

    def many(q: float, n: int) -> FloatArray:
        try:
            drawn = sampler(q, n) if batched else [sampler(q) for _ in range(n)]
        except InboundsError:
            raise
        except Exception as error:
            form = "sampler(q, size)" if batched else "sampler(q)"
            got = f"{type(error).__name__}: {error}"
            check.refuse(what, "sampler", f"callable as {form} without error", got, "Or set batched.")
        return _numbers(what, drawn, n)

    return name, many, (lambda q: sampler(q, 1)) if batched else sampler


def _takes_size(sampler: Callable[..., Any]) -> bool:
    try:
        parameters = list(inspect.signature(sampler).parameters.values())
    except (TypeError, ValueError):
        return False
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(plain) >= 2 and (plain[1].name == "size" or plain[1].default is inspect.Parameter.empty)


def _numbers(what: str, drawn: Any, count: int) -> FloatArray:
    array = check.real_array(what, "the draws", drawn, requirement="real numbers")
    if array.shape != (count,):
        shape = f"shape {array.shape}"
        check.refuse(what, "the draws", f"of shape ({count},)", shape, "One number a draw; see batched.")
    if not np.isfinite(array).all():
        check.refuse(what, "the draws", "finite", "nan or infinity among them", "")
    return array


# ---------------------------------------------------------------- lower bounds from events


@dataclass(frozen=True)
class _Event:
    """A set of outputs; ``position`` numbers outputs that differ in their last bits only alike."""

    text: str
    holds: Callable[[FloatArray], Mask]
    position: Callable[[FloatArray], Whole] | None = None


@dataclass(frozen=True)
class _Bounds:
    epsilon: float = 0.0
    delta: float = 0.0
    text: str = ""  # of the event that gave epsilon
    shares: tuple[float, float] = (0.0, 0.0)  # of the second half of the draws
    direction: tuple[int, int] = (0, 1)
    by_position: float = 0.0  # what the event would tell if last bits were independent of the true value


#: (hits of one sample, hits of the other) -> how good an event looks
Value = Callable[[Any, Any], Any]
Chooser = Callable[[FloatArray, FloatArray, Value], _Event | None]


def _lower(k: Any, n: int, alpha: float) -> Any:
    """Clopper and Pearson's lower bound of a probability, one-sided."""
    k = np.asarray(k, dtype=np.float64)
    return np.where(k > 0, betaincinv(np.maximum(k, 1.0), n - k + 1.0, alpha), 0.0)


def _upper(k: Any, n: int, alpha: float) -> Any:
    k = np.asarray(k, dtype=np.float64)
    return np.where(k < n, betaincinv(k + 1.0, np.maximum(n - k, 1.0), 1.0 - alpha), 1.0)


def _bounds(samples: Samples, choose: Chooser, epsilon: float | None, delta: float, alpha: float) -> _Bounds:
    """The best of both directions; all bounds hold together with probability 1 - alpha."""
    each = alpha / 8.0  # two directions, for epsilon and for delta two bounds each
    halves = [np.split(y, [y.size // 2]) for y in samples]
    sizes = halves[0][0].size, halves[0][1].size
    best = _Bounds()

    def ratio(k: Any, m: Any, n: int = sizes[0]) -> Any:
        """What an event proves about epsilon."""
        return np.log(np.maximum(_lower(k, n, each) - delta, 1e-300) / _upper(m, n, each))

    def excess(k: Any, m: Any, n: int = sizes[0]) -> Any:
        """What an event proves about delta."""
        return _lower(k, n, each) - math.exp(epsilon or 0.0) * _upper(m, n, each)

    for direction in ((0, 1), (1, 0)):
        (train, test), (other, other_test) = (halves[i] for i in direction)

        def hits(mask: Callable[[FloatArray], Mask], *tests: FloatArray) -> list[int]:
            return [int(np.count_nonzero(mask(y))) for y in tests]

        event = choose(train, other, ratio)
        if event is not None:
            k, m = hits(event.holds, test, other_test)
            found = float(ratio(k, m, sizes[1]))
            if found > best.epsilon:
                best = replace(
                    best,
                    epsilon=found,
                    text=event.text,
                    shares=(k / sizes[1], m / sizes[1]),
                    direction=direction,
                    by_position=_by_position(event, test, other_test),
                )
        event = choose(train, other, excess) if epsilon is not None else None
        if event is not None:
            k, m = hits(event.holds, test, other_test)
            best = replace(best, delta=max(best.delta, float(excess(k, m, sizes[1]))))
    return best


def _by_position(event: _Event, test: FloatArray, other: FloatArray) -> float:
    """The log-ratio of the event's probabilities if, at each position, the two samples fell into it equally often."""
    if event.position is None:
        return 0.0
    both = np.concatenate([test, other])
    where = np.unique(event.position(both), return_inverse=True)[1]
    counts = [np.bincount(part, minlength=int(where.max()) + 1) for part in np.split(where, [test.size])]
    share = np.bincount(where, weights=event.holds(both)) / (counts[0] + counts[1])
    first, second = (float(np.sum(c * share)) for c in counts)
    return math.log(first / second) if min(first, second) > 0.0 else math.inf


def _interval_event(train: FloatArray, other: FloatArray, value: Value) -> _Event | None:
    """The half-line or interval (low, high] of outputs that looks best, between quantiles of the draws."""
    pooled = np.concatenate([train, other])
    inner = np.unique(np.quantile(pooled, np.linspace(0.0, 1.0, _BINS + 1), method="inverted_cdf"))
    below = np.nextafter(inner, -np.inf)  # so that a value drawn again and again can be an event of its own
    edges = np.unique(np.concatenate([[-np.inf], inner, below, [np.inf]]))
    up_to = [np.searchsorted(np.sort(y), edges, side="right") for y in (train, other)]
    i, j = np.triu_indices(edges.size, 1)
    best = int(np.argmax(value(up_to[0][j] - up_to[0][i], up_to[1][j] - up_to[1][i])))
    low, high = float(edges[i[best]]), float(edges[j[best]])
    if math.isinf(low) and math.isinf(high):
        return None
    text = f"outputs in ({shown(low)}, {shown(high)}]"
    if math.isinf(low) or math.isinf(high):
        text = f"outputs of at most {shown(high)}" if math.isinf(low) else f"outputs above {shown(low)}"
    return _Event(text, lambda y: (y > low) & (y <= high))


# ---------------------------------------------------------------- low bits


def last_bits(y: FloatArray) -> tuple[Whole, Whole, Whole]:
    """The binary exponent of each number, the place of its last bit that is set, and its last four bits."""
    mantissa, exponent = np.frexp(y)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.zeros(y.shape)
    np.log2((whole & -whole).astype(np.float64), out=lowest, where=whole != 0)
    place = np.where(whole != 0, exponent - 53 + lowest.astype(np.int64), 1100)
    return exponent.astype(np.int64), place, np.abs(whole) & 15


def _low_bit_event(train: FloatArray, other: FloatArray, value: Value) -> _Event | None:
    """The best union of cells: a narrow range of outputs of one binary order of magnitude, and how the numbers end."""
    edges = np.unique(np.quantile(np.concatenate([train, other]), np.linspace(0.0, 1.0, _BINS // 2 + 1)[1:-1]))

    def cells(y: FloatArray, kind: str) -> Whole:
        exponent, place, ending = last_bits(y)
        position = np.searchsorted(edges, y) * 4096 + exponent + 1100
        cell: Whole = position * 4096 + (ending if kind == _ENDS[0] else place + 1100)
        return cell

    best: tuple[float, str, Whole] | None = None
    for kind in _ENDS:
        found = np.concatenate([cells(train, kind), cells(other, kind)])
        known, where = np.unique(found, return_inverse=True)
        k = np.bincount(where[: train.size], minlength=known.size)
        m = np.bincount(where[train.size :], minlength=known.size)
        order = np.argsort(-(k + 0.5) / (m + 0.5), kind="stable")
        order = order[(k + m)[order] >= _LEAST]
        if order.size:
            score = value(np.cumsum(k[order]), np.cumsum(m[order]))
            i = int(np.argmax(score))
            if best is None or score[i] > best[0]:
                best = float(score[i]), kind, np.sort(known[order[: i + 1]])
    if best is None:
        return None
    _, chosen, picked = best
    return _Event(
        chosen,
        lambda y: np.isin(cells(y, chosen), picked),
        lambda y: cells(y, chosen) // 4096,
    )


def _judged(kind: str, bounds: _Bounds, samples: Samples, epsilon: float | None, delta: float) -> Check:
    figures: dict[str, Any] = {
        "epsilon_lower": bounds.epsilon,
        "delta_lower": bounds.delta if epsilon is not None else math.nan,
        "event": bounds.text,
        "shares": bounds.shares,
        "direction": bounds.direction,
    }
    seen = f"epsilon is at least {bounds.epsilon:.3g}"
    if bounds.text:
        seen += f" ({bounds.text}: {bounds.shares[0]:.3g} and {bounds.shares[1]:.3g} of the draws)"
    over = epsilon is not None and (bounds.epsilon > epsilon or bounds.delta > delta)
    if kind == "low bits":
        finest = [int(np.min(last_bits(y)[1])) for y in samples]
        figures |= {"finest_bits": finest, "by_position": bounds.by_position}
        seen += f"; the draws are multiples of 2^{finest[0]} and of 2^{finest[1]}"
        if over and bounds.epsilon <= bounds.by_position:
            over, seen = False, f"{seen}; what the last bits tell, the size of the output tells as well"
    return Check(kind, "measured" if epsilon is None else "flag" if over else "pass", seen, figures)


# ---------------------------------------------------------------- timing


def _timing(call: Callable[[float], Any], pair: tuple[float, float], alpha: float) -> tuple[Check, FloatArray]:
    """Calls for both values in turn, in random order; a distribution-free interval for the median ratio of a round."""
    repeats = 1
    while True:
        start = _clock()
        for _ in range(repeats):
            call(pair[0])
        if _clock() - start >= _SHORTEST or repeats >= 4096:
            break
        repeats *= 2
    order = np.random.default_rng(0).integers(0, 2, _ROUNDS)
    times = np.empty((_ROUNDS, 2))
    collecting = gc.isenabled()
    gc.disable()
    try:
        for i in range(_ROUNDS):
            for j in (order[i], 1 - order[i]):
                q = pair[j]
                start = _clock()
                for _ in range(repeats):
                    call(q)
                times[i, j] = (_clock() - start) / repeats
    finally:
        if collecting:
            gc.enable()
    ratios = np.sort(times[:, 0] / np.maximum(times[:, 1], 1e-12))
    # the k-th smallest and the k-th largest enclose the median, except with probability alpha
    from scipy.stats import binom  # slow to import, and seldom needed

    k = int(binom.ppf(alpha / 2.0, _ROUNDS, 0.5))
    low, high = (float(ratios[k - 1]), float(ratios[-k])) if k > 0 else (0.0, math.inf)
    off = low > 1.0 + _TOLERANCE or high < 1.0 / (1.0 + _TOLERANCE)
    medians = np.median(times, axis=0)
    figures = {
        "ratio": float(np.median(ratios)),
        "interval": (low, high),
        "seconds": medians.tolist(),
        "rounds": _ROUNDS,
        "calls": repeats,
        "tolerance": _TOLERANCE,
    }
    seen = (
        f"the first takes {figures['ratio']:.3g} times as long as the second (median of {_ROUNDS} rounds, "
        f"{low:.3g} to {high:.3g}); {medians[0] * 1e6:.3g} and {medians[1] * 1e6:.3g} microseconds"
    )
    return Check("timing", "flag" if off else "pass", seen, figures), times
