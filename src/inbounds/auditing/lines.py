"""The worst pair of a mechanism on a one-dimensional domain, from its output laws alone.

The likelihood ratio of two true values is monotone in the output (``docs/proofs/monotone-likelihood-ratio.md``), so
that the outputs to look at are the ends of the range, and the output sets half-lines. If that were wrong the search
would miss something, never invent it: what is reported is evaluated by ``mechanism.at``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from inbounds._checks import FloatArray
from inbounds.auditing.pairs import Neighbours, first_best
from inbounds.auditing.report import Witness
from inbounds.distribution import Distribution
from inbounds.domain import Line
from inbounds.mechanism import Additive

#: Relative error allowed for every density and probability of a law (tested against 50 digits: a few dozen units in
#: the last place, thousands of times less).
ERROR = 2.0**-40
_BLOCK = 40_000  # pairs times pieces evaluated at once
_FAR = {"laplace": 750.0, "gaussian": 40.0}  # scales beyond which nothing is left of the noise in double precision


def neighbours(m: Additive) -> Neighbours:
    return Neighbours(cast(Line, m.domain), cast(float, m.sensitivity), m.scale)


def _law(m: Additive, q: Any) -> Distribution:
    return cast(Distribution, m.at(q))


def _log(m: Additive, law: Distribution, x: FloatArray) -> FloatArray:
    return np.asarray(law.logpmf(x) if m.domain.lattice else law.logpdf(x), dtype=np.float64)


def _range(m: Additive) -> tuple[float, float]:
    """The ends of the outputs."""
    domain = cast(Line, m.domain)
    return (-math.inf, math.inf) if m.edges == "ignore" else (float(domain.lower), float(domain.upper))


def _blocks(m: Additive, count: int) -> Iterator[slice]:
    size = max(1, _BLOCK // len(cast(Line, m.domain).pieces))
    return (slice(i, i + size) for i in range(0, count, size))


# ---------------------------------------------------------------- one output


def output_witness(m: Additive, epsilon: float) -> Witness | None:
    """The pair and the output with the largest loss found; towards an open end, one where the loss is clearly over."""
    near = neighbours(m)
    low, high = near.farthest_pairs(near.places())
    best: Witness | None = None
    for part in _blocks(m, low.size):
        for x, first, second in _candidates(m, low[part], high[part]):
            with np.errstate(invalid="ignore"):
                loss = first - second
                error = ERROR * (1.0 + np.abs(first) + np.abs(second))
                size = np.where(np.isfinite(loss), np.abs(loss) - error, -np.inf)
            i = int(np.argmax(size)) if size.size else -1
            if i < 0 or not np.isfinite(size[i]) or (best is not None and size[i] <= best.loss - best.error):
                continue
            ordered = loss[i] >= 0.0
            a, b = (low[part][i], high[part][i]) if ordered else (high[part][i], low[part][i])
            p, q = (first[i], second[i]) if ordered else (second[i], first[i])
            best = Witness(
                pair=(float(a), float(b)),
                output=float(x[i]),
                likelihoods=(math.exp(p), math.exp(q)),
                loss=float(p - q),
                excess=float(p - q) - epsilon,
                error=float(error[i]),
            )
            if unbounded_loss(m) and best.excess > math.log(2.0) + best.error:
                return best
    return best


def _candidates(m: Additive, low: FloatArray, high: FloatArray) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """(output, its log-likelihoods at the lower and at the upper true value) of every pair, kind by kind."""
    first, second = _law(m, low), _law(m, high)
    bottom, top = _range(m)
    outputs: list[Any] = [x for x in (bottom, top) if math.isfinite(x)]
    outputs += [low, high]
    if unbounded_loss(m):
        steps = m.scale * 2.0 ** np.arange(0, 60)
        outputs += [low - s for s in steps] if math.isinf(bottom) else []
        outputs += [high + s for s in steps] if math.isinf(top) else []
    atoms = [a[0] for a in first.atoms]
    for output in outputs:
        x = np.broadcast_to(np.asarray(output, dtype=np.float64), low.shape)
        x = np.round(x) if m.domain.lattice else x
        plain = ~np.isin(x, atoms)
        yield x, np.where(plain, _log(m, first, x), np.nan), np.where(plain, _log(m, second, x), np.nan)
    for (point, mass), (_, other) in zip(first.atoms, second.atoms, strict=True):
        usable = (mass > 1e-290) & (other > 1e-290)  # below, the logarithms are not to be trusted
        masses = [np.log(np.where(usable, v, 1.0)) for v in (mass, other)]
        yield np.full(low.shape, point), masses[0], np.where(usable, masses[1], np.nan)


def unbounded_loss(m: Additive) -> bool:
    """Gaussian noise with an open end: the loss grows without limit towards it."""
    return m._family == "gaussian" and any(math.isinf(end) for end in _range(m))


# ---------------------------------------------------------------- an output set


def set_witness(m: Additive, epsilon: float, delta: float) -> Witness | None:
    """The pair and the half-line of outputs with the largest P - e^epsilon P' found."""
    near = neighbours(m)
    domain = cast(Line, m.domain)
    q = near.places()
    low, high = near.farthest_pairs(q)
    if low.size == 0:
        return None
    values = _half_lines(m, low, high, epsilon)[0]
    best = first_best(values, low)
    others = np.abs(q - low[best])
    step = float(np.min(others[others > 0.0], initial=m.scale))
    step = min(2.0 * max(step, m.scale / 64.0), float(domain.width))
    top, pair = float(values[best]), (float(low[best]), float(high[best]))
    for _ in range(2 if domain.lattice else 5):
        low, high = near.farthest_pairs(near.around(pair[0], step, 33))
        values = _half_lines(m, low, high, epsilon)[0]
        i = first_best(values, low)
        if values[i] > top * (1.0 + 1e-9):
            top, pair = float(values[i]), (float(low[i]), float(high[i]))
        step /= 12.0
    return pair_set(m, *pair, epsilon, delta)


def pair_set(m: Additive, low: float, high: float, epsilon: float, delta: float) -> Witness:
    """The worst half-line of one pair."""
    _, cut, upwards = (v[0] for v in _half_lines(m, np.array([low]), np.array([high]), epsilon))
    a, b = (high, low) if upwards else (low, high)
    laws = _law(m, a), _law(m, b)
    p, q = (float(law.sf(cut) if upwards else law.cdf(cut)) for law in laws)
    error = ERROR * (p + math.exp(epsilon) * q) + 1e-300
    return Witness(
        pair=(a, b),
        event=((float(cut), math.inf) if upwards else (-math.inf, float(cut)),),
        probabilities=(p, q),
        loss=math.log(p / q) if min(p, q) > 0.0 else 0.0,
        excess=p - math.exp(epsilon) * q - delta,
        error=error,
    )


def _half_lines(
    m: Additive, low: FloatArray, high: FloatArray, epsilon: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For each pair the largest P - e^epsilon P' of a half-line, where it is cut, and whether it points upwards."""
    parts = [_half_line_block(m, low[p], high[p], epsilon) for p in _blocks(m, low.size)]
    values, cuts, upwards = (np.concatenate(column) for column in zip(*parts, strict=True))
    return values, cuts, upwards


def _half_line_block(
    m: Additive, low: FloatArray, high: FloatArray, epsilon: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    first, second = _law(m, low), _law(m, high)
    domain = cast(Line, m.domain)
    bottom, top = _range(m)
    far = _FAR[m._family] * m.scale
    start = np.broadcast_to(np.maximum(bottom, low - far), low.shape)
    stop = np.broadcast_to(np.minimum(top, high + far), low.shape)

    def loss(t: FloatArray) -> FloatArray:
        """Of the lower true value over the upper one: it falls in the output."""
        x = np.round(t) if m.edges == "ignore" and domain.lattice else t if m.edges == "ignore" else domain.project(t)
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(_log(m, first, x) - _log(m, second, x), nan=0.0)

    cuts = [_crossing(loss, start, stop, level) for level in (epsilon, -epsilon)]
    weight = math.exp(epsilon)
    tries = [(first.cdf(cuts[0]) - weight * second.cdf(cuts[0]), cuts[0], np.zeros(low.shape))]
    tries.append((second.sf(cuts[1]) - weight * first.sf(cuts[1]), cuts[1], np.ones(low.shape)))
    for point, _ in first.atoms:  # a half-line may end just before or just after a point mass
        for cut in (point, math.nextafter(point, -math.inf)):
            at = np.full(low.shape, cut)
            tries.append((first.cdf(at) - weight * second.cdf(at), at, np.zeros(low.shape)))
            tries.append((second.sf(at) - weight * first.sf(at), at, np.ones(low.shape)))
    values = np.stack([t[0] for t in tries])
    best = np.argmax(values, axis=0)[None]
    pick = [np.take_along_axis(np.stack([t[i] for t in tries]), best, axis=0)[0] for i in range(3)]
    return pick[0], pick[1], pick[2]


def _crossing(loss: Any, start: FloatArray, stop: FloatArray, level: float) -> FloatArray:
    """The last place where a falling function is above the level, by bisection."""
    a, b = start - 1e-9 * np.abs(stop - start), stop
    for _ in range(45):
        middle = (a + b) / 2.0
        above = loss(middle) > level
        a, b = np.where(above, middle, a), np.where(above, b, middle)
    return a


def pair_epsilon(m: Additive, witness: Witness, delta: float) -> float:
    """The epsilon that a pair proves at delta: the largest ln((P - delta) / P') over half-lines."""
    laws = [_law(m, q) for q in sorted(witness.pair)]
    bottom, top = _range(m)
    far = _FAR[m._family] * m.scale
    start, stop = max(bottom, min(witness.pair) - far), min(top, max(witness.pair) + far)
    ends = [x for point, _ in laws[0].atoms for x in (point, math.nextafter(point, -math.inf))]
    cuts = np.concatenate([np.linspace(start, stop, 2_001), near_quantiles(laws), ends])
    best = 0.0
    for _ in range(6):
        cuts = np.unique(cuts)
        first, second = laws
        level = np.maximum(
            _set_epsilon(first.cdf(cuts), second.cdf(cuts), delta), _set_epsilon(second.sf(cuts), first.sf(cuts), delta)
        )
        i = int(np.argmax(level))
        best = max(best, float(level[i]))
        cuts = np.linspace(cuts[max(i - 1, 0)], cuts[min(i + 1, cuts.size - 1)], 65)
    return best


def largest_epsilon(m: Additive, witness: Witness, delta: float) -> float:
    """The largest epsilon at delta that a pair proves: at that epsilon the worst pair is looked for again."""
    best = pair_epsilon(m, witness, delta)
    for _ in range(4):
        again = set_witness(m, best, delta)
        more = 0.0 if again is None else pair_epsilon(m, again, delta)
        if more <= best * (1.0 + 1e-7):
            break
        best = more
    return best


def near_quantiles(laws: list[Distribution]) -> FloatArray:
    share = np.concatenate([10.0 ** np.arange(-15, -2), np.linspace(0.01, 0.99, 197)])
    return np.concatenate([np.asarray(law.ppf(np.concatenate([share, 1.0 - share]))) for law in laws])


def _set_epsilon(p: FloatArray, q: FloatArray, delta: float) -> FloatArray:
    """ln((P - delta) / P') from below."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        level = np.log((p * (1.0 - ERROR) - delta) / (q * (1.0 + ERROR)))
    return np.where((p * (1.0 - ERROR) > delta) & (q > 1e-290), level, 0.0)
