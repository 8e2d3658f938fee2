"""High-precision reference for the mechanisms, written from the definitions.

Nothing here is imported from the package and nothing is shared with it: densities are
kernels divided by their mass, losses and divergences are suprema, integrals and sums of those
densities, evaluated with mpmath.  Where a closed form is used for speed (masses through ``exp`` and
``erfc``, geometric sums, ``renyi_closed``), ``test_reference.py`` checks it against quadrature
or term-by-term summation.

Conventions
-----------
family
    ``"laplace"``, kernel ``exp(-|t|)``, or ``"gaussian"``, kernel ``exp(-t**2 / 2)``, with
    ``t = (x - q) / scale``.
spans
    Sequence of ``(lo, hi)``, disjoint, ends may be infinite.  With ``lattice=True`` the domain is
    the set of integers in the spans.
numbers
    ``int``, ``float``, ``Fraction``, ``str`` or ``mpf``; binary floats are taken at their exact
    value.  Feasibility of pairs (is ``q + sensitivity`` in the domain?) is decided with fractions.
dps
    Requested decimal digits; every function works with 15 more, and with more again where a
    difference cancels.  The global precision of mpmath is never changed.  Comparing results is
    exact; arithmetic on them rounds to the precision of the caller, so use ``mp.workdps`` there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor
from typing import Any, NamedTuple

from mpmath import mp, mpf

Number = Any  # int | float | str | Fraction | mpf; mpmath carries no types
Real = Any  # mpf
Spans = Sequence[tuple[Number, Number]]
Exact = Fraction | float  # a float only where it is infinite

DPS = 50
_GUARD = 15
LINE: Spans = ((float("-inf"), float("inf")),)


# --- numbers -----------------------------------------------------------------------------------


@contextmanager
def _digits(dps: int) -> Iterator[None]:
    with mp.workdps(dps + _GUARD):
        yield


def to_fraction(x: Number) -> Exact:
    """The exact value of ``x``; infinities stay floats."""
    if isinstance(x, Fraction):
        return x
    if isinstance(x, mpf):
        if mp.isinf(x):
            return float(x)
        man, exp = x.man_exp
        return Fraction(int(man)) * Fraction(2) ** int(exp)
    if isinstance(x, str):
        return float(x) if "inf" in x else Fraction(x)
    if isinstance(x, float) and x in (float("inf"), float("-inf")):
        return x
    return Fraction(x)


def to_mpf(x: Number) -> Real:
    """``x`` at the working precision; exact for floats."""
    if isinstance(x, mpf):
        return x
    if isinstance(x, Fraction):
        return mpf(x.numerator) / x.denominator
    if isinstance(x, int | float):
        return mpf(x)
    return to_mpf(to_fraction(x))


def _pieces(spans: Spans) -> list[tuple[Real, Real]]:
    return sorted((to_mpf(lo), to_mpf(hi)) for lo, hi in spans)


def _exact_spans(spans: Spans) -> list[tuple[Exact, Exact]]:
    return sorted((to_fraction(lo), to_fraction(hi)) for lo, hi in spans)


# --- masses and densities ------------------------------------------------------------------------


def _kernel_log(family: str, t: Real) -> Real:
    """Log of the kernel at ``t = (x - q) / scale``."""
    if family == "laplace":
        return -abs(t)
    if family == "gaussian":
        return -t * t / 2
    raise ValueError(f"family must be 'laplace' or 'gaussian'; got {family!r}")


def _half(family: str, t: Real) -> Real:
    """Integral of the kernel over [0, t]."""
    if family == "laplace":
        return -mp.expm1(-t)
    return mp.sqrt(mp.pi / 2) * mp.erf(t / mp.sqrt(2))


def _weight_continuous(family: str, s: Real, q: Real, lo: Real, hi: Real) -> Real:
    if hi <= lo:
        return mpf(0)
    a, b = (lo - q) / s, (hi - q) / s
    if a <= 0 <= b:
        return _half(family, -a) + _half(family, b)
    if b < 0:
        a, b = -b, -a
    if family == "laplace":
        return -mp.exp(-a) * mp.expm1(-(hi - lo) / s)
    first = mp.erfc(a / mp.sqrt(2))
    last = mp.erfc(b / mp.sqrt(2))
    difference = first - last
    lost = mp.mag(first) - mp.mag(difference) if difference else mp.prec
    if lost > 10:
        with mp.workprec(mp.prec + lost + 20):
            difference = mp.erfc(a / mp.sqrt(2)) - mp.erfc(b / mp.sqrt(2))
    return mp.sqrt(mp.pi / 2) * difference


def _geometric(s: Real, start: Real, count: Real) -> Real:
    """Sum of ``exp(-(start + k) / s)`` for ``k = 0 .. count - 1``."""
    if count <= 0:
        return mpf(0)
    return mp.exp(-start / s) * mp.expm1(-count / s) / mp.expm1(-1 / s)


def _gauss_tail_sum(s: Real, start: Real, count: Real) -> Real:
    """Sum of ``exp(-(start + k)**2 / (2 s**2))``, ``k = 0 .. count - 1``, ``start >= 0``."""
    if count <= 0:
        return mpf(0)
    h = 1 / (2 * s * s)
    term = mp.exp(-start * start * h)
    ratio = mp.exp(-(2 * start + 1) * h)  # term k+1 over term k; itself falls by exp(-2h)
    step = mp.exp(-2 * h)
    total = mpf(0)
    k = 0
    while k < count:
        total += term
        # ratios only fall, so the rest is at most term * ratio / (1 - ratio)
        if term * ratio < mp.ldexp(total, -mp.prec - 10) * (1 - ratio):
            break
        term *= ratio
        ratio *= step
        k += 1
    return total


def _weight_lattice(family: str, s: Real, q: Real, lo: Real, hi: Real) -> Real:
    first = lo if mp.isinf(lo) else mp.ceil(lo)
    last = hi if mp.isinf(hi) else mp.floor(hi)
    centre = mp.ceil(q)
    right = max(first, centre)  # integers >= q, outward to the right
    left = min(last, centre - 1)  # integers < q, outward to the left
    total = _geometric if family == "laplace" else _gauss_tail_sum
    # `count` infinite is fine: expm1(-inf) = -1, and the Gaussian sum stops by itself
    return total(s, right - q, last - right + 1) + total(s, q - left, left - first + 1)


def _weight(family: str, s: Real, q: Real, pieces: Sequence[tuple[Real, Real]], lattice: bool) -> Real:
    """Integral (in units of the scale) or sum of the kernel over the domain."""
    one = _weight_lattice if lattice else _weight_continuous
    return mp.fsum(one(family, s, q, lo, hi) for lo, hi in pieces)


def mass(
    family: str,
    scale: Number,
    loc: Number,
    lo: Number,
    hi: Number,
    *,
    lattice: bool = False,
    dps: int = DPS,
) -> Real:
    """Probability that the untruncated noise centred at ``loc`` gives to ``[lo, hi]``.

    With ``lattice`` the noise lives on all integers, so this is the discrete (two-sided geometric
    or discrete Gaussian) law.
    """
    with _digits(dps):
        s, q = to_mpf(scale), to_mpf(loc)
        part = _weight(family, s, q, [(to_mpf(lo), to_mpf(hi))], lattice)
        return part / _weight(family, s, q, _pieces(LINE), lattice)


def normaliser(
    family: str,
    scale: Number,
    spans: Spans,
    q: Number,
    *,
    lattice: bool = False,
    dps: int = DPS,
) -> Real:
    """Z(q): probability that the untruncated noise at ``q`` falls in the domain."""
    with _digits(dps):
        return mp.fsum(mass(family, scale, q, lo, hi, lattice=lattice, dps=dps) for lo, hi in spans)


def log_density(
    family: str,
    scale: Number,
    spans: Spans,
    q: Number,
    x: Number,
    *,
    lattice: bool = False,
    dps: int = DPS,
) -> Real:
    """Log density (log mass on the lattice) of the truncated mechanism at ``x``; -inf outside."""
    with _digits(dps):
        s, q, x = to_mpf(scale), to_mpf(q), to_mpf(x)
        pieces = _pieces(spans)
        inside = any(lo <= x <= hi for lo, hi in pieces) and not mp.isinf(x)
        if not inside or (lattice and not mp.isint(x)):
            return -mp.inf
        unit = mpf(1) if lattice else s
        return _kernel_log(family, (x - q) / s) - mp.log(unit * _weight(family, s, q, pieces, lattice))


# --- pure loss -------------------------------------------------------------------------------


def _exponent_gap(family: str, s: Real, q: Real, q2: Real, x: Real) -> Real:
    """``ln k((x-q)/s) - ln k((x-q2)/s)``; the limit where ``x`` is infinite."""
    if q == q2:
        return mpf(0)
    if family == "laplace":
        if mp.isinf(x):
            return (q2 - q) / s if x < 0 else (q - q2) / s
        return (abs(x - q2) - abs(x - q)) / s
    return (q - q2) * (2 * x - q - q2) / (2 * s * s)


def _losses(
    family: str, s: Real, pieces: Sequence[tuple[Real, Real]], q: Real, q2: Real, lattice: bool
) -> tuple[Real, Real]:
    """Losses of ``(q, q2)`` and ``(q2, q)``."""
    if q == q2:
        return mpf(0), mpf(0)
    if q > q2:
        return _losses(family, s, pieces, q2, q, lattice)[::-1]
    bottom, top = pieces[0][0], pieces[-1][1]
    if lattice:
        bottom = bottom if mp.isinf(bottom) else mp.ceil(bottom)
        top = top if mp.isinf(top) else mp.floor(top)
    shift = mp.log(_weight(family, s, q2, pieces, lattice) / _weight(family, s, q, pieces, lattice))
    # ln p_q - ln p_q2 falls in x for q < q2, so each supremum sits at an end of the domain
    return (
        _exponent_gap(family, s, q, q2, bottom) + shift,
        _exponent_gap(family, s, q2, q, top) - shift,
    )


def pair_loss(
    family: str,
    scale: Number,
    spans: Spans,
    q: Number,
    q2: Number,
    lattice: bool = False,
    *,
    dps: int = DPS,
) -> Real:
    """``sup_x ln p_q(x) / p_q2(x)`` over the domain; ``inf`` where it is unbounded.

    The log ratio is monotone in ``x`` (both kernels are log-concave), so the supremum is the value
    or the limit at the end of the domain on the side of ``q``.  For Laplace this equals the value
    at ``x = q`` when ``q`` is in the domain.
    """
    with _digits(dps):
        return _losses(family, to_mpf(scale), _pieces(spans), to_mpf(q), to_mpf(q2), lattice)[0]


def pure_loss_interval(
    family: str,
    scale: Number,
    lower: Number,
    upper: Number,
    sensitivity: Number,
    *,
    dps: int = DPS,
) -> Real:
    """Loss of the wall pair ``(lower, lower + sensitivity)``, the larger of both orders.

    ``pure_loss_brute`` confirms that no other pair is worse.  A sensitivity above the
    width is cut to it; either end may be infinite.
    """
    with _digits(dps):
        s, change = to_mpf(scale), to_mpf(sensitivity)
        lo, hi = to_mpf(lower), to_mpf(upper)
        if mp.isinf(lo) and mp.isinf(hi):
            lo_q, hi_q = mpf(0), change
        elif mp.isinf(lo):
            lo_q, hi_q = hi - change, hi
        else:
            lo_q, hi_q = lo, min(lo + change, hi)
        return max(_losses(family, s, [(lo, hi)], lo_q, hi_q, False))


def _farthest(spans: Sequence[tuple[Exact, Exact]], point: Exact, change: Exact) -> tuple[Exact, Exact]:
    """Smallest and largest points of the spans within ``change`` of ``point``, which is in them."""
    low, high = point - change, point + change
    return (
        min(max(lo, low) for lo, hi in spans if hi >= low),
        max(min(hi, high) for lo, hi in spans if lo <= high),
    )


def candidate_pairs(spans: Spans, sensitivity: Number) -> list[tuple[Fraction, Fraction]]:
    """Pairs ``(q, q2)``, ``q < q2``: each finite span end with its farthest feasible partners."""
    exact = _exact_spans(spans)
    change = to_fraction(sensitivity)
    found: set[tuple[Fraction, Fraction]] = set()
    for end in {e for span in exact for e in span if isinstance(e, Fraction)}:
        low, high = _farthest(exact, end, change)
        for pair in ((low, end), (end, high)):
            if pair[0] < pair[1]:
                found.add(pair)  # type: ignore[arg-type]
    return sorted(found)


def _unbounded(spans: Spans) -> bool:
    return any(not isinstance(to_fraction(end), Fraction) for span in spans for end in span)


def pure_loss_spans(family: str, scale: Number, spans: Spans, sensitivity: Number, *, dps: int = DPS) -> Real:
    """Largest loss over ``candidate_pairs``, both orders, and over far-away pairs if unbounded."""
    with _digits(dps):
        s = to_mpf(scale)
        pieces = _pieces(spans)
        worst = mpf(0)
        if _unbounded(spans):
            if family == "gaussian":
                return mp.inf
            worst = to_mpf(sensitivity) / s
        for q, q2 in candidate_pairs(spans, sensitivity):
            worst = max(worst, *_losses(family, s, pieces, to_mpf(q), to_mpf(q2), False))
        return worst


def _grid(lo: Exact, hi: Exact, points: int, window: Fraction) -> list[Fraction]:
    """``points + 1`` equally spaced exact points; infinite ends are cut at ``window``."""
    if not isinstance(lo, Fraction) and not isinstance(hi, Fraction):
        lo, hi = -window, window
    elif not isinstance(lo, Fraction):
        lo = hi - window
    elif not isinstance(hi, Fraction):
        hi = lo + window
    assert isinstance(lo, Fraction)
    assert isinstance(hi, Fraction)
    if lo == hi:
        return [lo]
    return [lo + (hi - lo) * k / points for k in range(points + 1)]


def pure_loss_brute(
    family: str,
    scale: Number,
    spans: Spans,
    sensitivity: Number,
    *,
    points: int = 40,
    dps: int = DPS,
) -> Real:
    """Largest loss over a grid of pairs in the domain at most ``sensitivity`` apart, both orders.

    A lower bound on the pure loss that assumes nothing about which pair is worst: every two of
    the grid points, and each grid point with the point exactly ``sensitivity`` to its right.
    """
    exact = _exact_spans(spans)
    change = to_fraction(sensitivity)
    assert isinstance(change, Fraction)
    window = 4 * change + 10 * Fraction(to_fraction(scale))
    grid = sorted({x for lo, hi in exact for x in _grid(lo, hi, points, window)})
    with _digits(dps):
        s = to_mpf(scale)
        pieces = _pieces(spans)
        if family == "gaussian" and _unbounded(spans):
            return mp.inf
        bottom, top = pieces[0][0], pieces[-1][1]
        shifted = {x + change for x in grid if any(lo <= x + change <= hi for lo, hi in exact)}
        points_at = {x: to_mpf(x) for x in {*grid, *shifted}}
        logs = {x: mp.log(_weight(family, s, v, pieces, False)) for x, v in points_at.items()}
        worst = mpf(0)

        def visit(q: Fraction, q2: Fraction) -> Real:
            shift = logs[q2] - logs[q]
            a, b = points_at[q], points_at[q2]
            return max(
                _exponent_gap(family, s, a, b, bottom) + shift,
                _exponent_gap(family, s, b, a, top) - shift,
            )

        for i, q in enumerate(grid):
            for q2 in grid[i + 1 :]:
                if q2 - q > change:
                    break
                worst = max(worst, visit(q, q2))
            if q + change in points_at:
                worst = max(worst, visit(q, q + change))
        return worst


def pure_loss_integers(
    family: str,
    scale: Number,
    lower: int,
    upper: int,
    sensitivity: Number,
    *,
    dps: int = DPS,
) -> Real:
    """Pure loss on ``{lower .. upper}``: every pair at most ``sensitivity`` apart, every output."""
    change = to_fraction(sensitivity)
    points = range(lower, upper + 1)

    def distance(x: int, q: int) -> int:
        return abs(x - q) if family == "laplace" else (x - q) ** 2

    with _digits(dps):
        s = to_mpf(scale)
        unit = s if family == "laplace" else 2 * s * s
        kernels = [mp.exp(-mpf(k if family == "laplace" else k * k) / unit) for k in range(len(points))]
        logs = {q: mp.log(mp.fsum(kernels[abs(x - q)] for x in points)) for q in points}
        worst = mpf(0)
        for q in points:
            for q2 in points:
                if q != q2 and abs(q - q2) <= change:
                    gap = max(distance(x, q2) - distance(x, q) for x in points)
                    worst = max(worst, gap / unit + logs[q2] - logs[q])
        return worst


# --- boxes -----------------------------------------------------------------------------------


class WorstChange(NamedTuple):
    """A change vector and the loss it costs."""

    change: tuple[Real, ...]
    loss: Real


def pure_loss_box(
    family: str,
    scale: Number,
    lower: Sequence[Number],
    upper: Sequence[Number],
    change: Sequence[Number],
    *,
    dps: int = DPS,
) -> Real:
    """Loss of a given change vector on a box: coordinates are independent, so losses add."""
    with _digits(dps):
        return mp.fsum(
            pure_loss_interval(family, scale, lo, hi, abs(to_mpf(c)), dps=dps)
            for lo, hi, c in zip(lower, upper, change, strict=True)
        )


def _root(f: Callable[[Real], Real], lo: Real, hi: Real, tolerance: Real) -> Real:
    """Root of a decreasing ``f`` on ``[lo, hi]`` (Illinois steps, bisection where they stall)."""
    flo, fhi = f(lo), f(hi)
    if flo <= 0:
        return lo
    if fhi >= 0:
        return hi
    side = 0
    for step in range(1000):
        width = hi - lo
        if width <= tolerance * max(abs(lo), abs(hi)):
            break
        x = (lo * fhi - hi * flo) / (fhi - flo)
        if step % 8 == 7 or not lo < x < hi:
            x = (lo + hi) / 2
        fx = f(x)
        if fx == 0:
            return x
        if fx > 0:
            lo, flo = x, fx
            if side == 1:
                fhi /= 2
            side = 1
        else:
            hi, fhi = x, fx
            if side == -1:
                flo /= 2
            side = -1
        # a secant step that lands on the root leaves one end behind: probe beside it
        if abs(fx) < tolerance * tolerance:
            return x
    return (lo + hi) / 2


def _marginal(family: str, s: Real, width: Real, c: Real) -> Real:
    """Derivative in ``c`` of the interval loss ``h(c)`` of a range of that width.

    From the two losses of the pair (0, c): ``h = c / s + ln W(c) - ln W(0)`` (Laplace, output at 0)
    and ``h = c (2 width - c) / (2 s**2) + ln W(0) - ln W(c)`` (Gaussian, output at the far wall),
    with ``W' = (k(c / s) - k((width - c) / s)) / s`` by differentiating the integral's ends.
    """
    slope = (mp.exp(_kernel_log(family, c / s)) - mp.exp(_kernel_log(family, (width - c) / s))) / s
    slope /= _weight_continuous(family, s, c, mpf(0), width)
    return 1 / s + slope if family == "laplace" else (width - c) / (s * s) - slope


def _worst_change(
    family: str,
    scale: Number,
    lower: Sequence[Number],
    upper: Sequence[Number],
    radius: Number,
    order: int,
    dps: int,
) -> WorstChange:
    with _digits(dps):
        s, bound = to_mpf(scale), to_mpf(radius)
        widths = [to_mpf(hi) - to_mpf(lo) for lo, hi in zip(lower, upper, strict=True)]
        tolerance = mpf(10) ** (-dps)
        if mp.fsum(w**order for w in widths) <= bound**order:
            best = tuple(widths)
            return WorstChange(best, pure_loss_box(family, scale, lower, upper, best, dps=dps))

        def respond(price: Real) -> list[Real]:
            # maximise h(c) - price * c**order for each coordinate; h is concave
            return [
                _root(
                    lambda c, w=w: _marginal(family, s, w, c) - price * order * c ** (order - 1),  # type: ignore[misc]
                    mpf(0),
                    w,
                    tolerance,
                )
                for w in widths
            ]

        def excess(log_price: Real) -> Real:
            return mp.log(mp.fsum(c**order for c in respond(mp.exp(log_price))) + mpf(10) ** (-4 * dps)) - mp.log(
                bound**order
            )

        high = mp.log(max(_marginal(family, s, w, mpf(0)) for w in widths) / min(bound, mpf(1)) + 1)
        while excess(high) > 0:
            high += 5
        low = high - 5
        while excess(low) < 0:
            low -= 5
        best = tuple(respond(mp.exp(_root(excess, low, high, tolerance))))
        size = mp.fsum(c**order for c in best) ** (mpf(1) / order)
        best = tuple(min(c * bound / size, w) for c, w in zip(best, widths, strict=True))
        return WorstChange(best, pure_loss_box(family, scale, lower, upper, best, dps=dps))


def worst_change_l2(
    family: str,
    scale: Number,
    lower: Sequence[Number],
    upper: Sequence[Number],
    sensitivity: Number,
    *,
    dps: int = 40,
) -> WorstChange:
    """Change vector of l2 norm at most ``sensitivity`` with the largest loss on a box."""
    return _worst_change(family, scale, lower, upper, sensitivity, 2, dps)


def worst_change_l1(
    family: str,
    scale: Number,
    lower: Sequence[Number],
    upper: Sequence[Number],
    sensitivity: Number,
    *,
    dps: int = 40,
) -> WorstChange:
    """Change vector of l1 norm at most ``sensitivity`` with the largest loss on a box."""
    return _worst_change(family, scale, lower, upper, sensitivity, 1, dps)


# --- hockey-stick divergence and profile ----------------------------------------------------------


def _threshold(family: str, s: Real, q: Real, q2: Real, level: Real) -> Real:
    """For ``q < q2``: the ``x`` below which ``ln k_q(x) - ln k_q2(x)`` exceeds ``level``."""
    d = q2 - q
    if family == "gaussian":
        return (q + q2) / 2 - s * s * level / d
    if s * level >= d:
        return -mp.inf
    if s * level < -d:
        return mp.inf
    return q + (d - s * level) / 2


def _mirror(pieces: Sequence[tuple[Real, Real]]) -> list[tuple[Real, Real]]:
    return [(-hi, -lo) for lo, hi in reversed(pieces)]


def _excess_mass(
    family: str,
    s: Real,
    pieces: Sequence[tuple[Real, Real]],
    q: Real,
    q2: Real,
    epsilon: Real,
    lattice: bool,
) -> Real:
    """``int max(p_q - e^epsilon p_q2, 0)``, the whole domain for ``q == q2`` and negative epsilon."""
    if q == q2:
        return max(mpf(0), -mp.expm1(epsilon))
    if q > q2:
        return _excess_mass(family, s, _mirror(pieces), -q, -q2, epsilon, lattice)
    goal = mp.prec
    extra = 40
    while extra < 4000:
        with mp.workprec(goal + extra):
            whole, whole2 = (_weight(family, s, c, pieces, lattice) for c in (q, q2))
            x = _threshold(family, s, q, q2, epsilon + mp.log(whole / whole2))
            bad = [(lo, min(hi, x)) for lo, hi in pieces if lo < x]
            gain = _weight(family, s, q, bad, lattice) / whole
            if gain == 0:
                return mpf(0)
            difference = gain - mp.exp(epsilon) * _weight(family, s, q2, bad, lattice) / whole2
            lost = mp.mag(gain) - mp.mag(difference) if difference > 0 else mp.prec
        if lost <= extra:
            return difference
        extra = lost + 40
    return mpf(0)  # below 2**-4000 of the mass: epsilon is the loss itself


def hockey_stick(
    family: str,
    scale: Number,
    spans: Spans,
    q: Number,
    q2: Number,
    epsilon: Number,
    lattice: bool = False,
    *,
    dps: int = DPS,
) -> Real:
    """``int max(p_q(x) - e^epsilon p_q2(x), 0) dx`` (a sum on the lattice).

    The log ratio is monotone in ``x``, so the integrand is positive on a half-line; its end is
    solved for exactly and the two masses are subtracted.
    """
    with _digits(dps):
        return _excess_mass(family, to_mpf(scale), _pieces(spans), to_mpf(q), to_mpf(q2), to_mpf(epsilon), lattice)


class WorstPair(NamedTuple):
    """A value and the ordered pair that attains it (``None`` for a limit far from every end)."""

    value: Real
    q: Real | None
    q2: Real | None


def exact_pairs(spans: Spans, sensitivity: Number) -> list[tuple[Exact, Exact]]:
    """Closed ranges of ``q`` with both ``q`` and ``q + sensitivity`` in the spans."""
    exact = _exact_spans(spans)
    change = to_fraction(sensitivity)
    found = []
    for lo, hi in exact:
        for lo2, hi2 in exact:
            a, b = max(lo, lo2 - change), min(hi, hi2 - change)
            if a <= b:
                found.append((a, b))
    return found


def _golden(f: Callable[[Real], Real], lo: Real, hi: Real, width: Real) -> tuple[Real, Real]:
    """Value and place of the best point met by golden-section search."""
    ratio = (mp.sqrt(5) - 1) / 2
    a, b = hi - ratio * (hi - lo), lo + ratio * (hi - lo)
    fa, fb = f(a), f(b)
    best = max((fa, a), (fb, b))
    while hi - lo > width:
        if fa < fb:
            lo, a, fa = a, b, fb
            b = lo + ratio * (hi - lo)
            fb = f(b)
            best = max(best, (fb, b))
        else:
            hi, b, fb = b, a, fa
            a = hi - ratio * (hi - lo)
            fa = f(a)
            best = max(best, (fa, a))
    return best


def worst_pair(
    value: Callable[[Real, Real], Real],
    spans: Spans,
    sensitivity: Number,
    *,
    window: Number,
    points: int = 64,
    peaks: int = 2,
    digits: int = 20,
    dps: int = DPS,
) -> WorstPair:
    """Largest ``value(q, q2)`` found over pairs at distance ``sensitivity`` and blocked pairs.

    A lower bound on the supremum: a scan of ``points`` per range of ``q``, both orders, then golden
    sections around the ``peaks`` highest local maxima down to ``10**-digits`` of the range.
    Infinite ranges are cut ``window`` away from their finite end.
    """
    change = to_fraction(sensitivity)
    cut = to_fraction(window)
    assert isinstance(cut, Fraction)
    with _digits(dps):
        best = WorstPair(mp.mpf("-inf"), None, None)
        for q, q2 in candidate_pairs(spans, sensitivity):
            for a, b in ((to_mpf(q), to_mpf(q2)), (to_mpf(q2), to_mpf(q))):
                v = value(a, b)
                if v > best.value:
                    best = WorstPair(v, a, b)
        d = to_mpf(change)
        for lo, hi in exact_pairs(spans, sensitivity):
            grid = [to_mpf(x) for x in _grid(lo, hi, points, cut)]
            for forward in (True, False):

                def at(q: Real, forward: bool = forward) -> Real:
                    return value(q, q + d) if forward else value(q + d, q)

                values = [at(q) for q in grid]
                found = list(zip(values, grid, strict=True))
                if len(grid) > 2:
                    tops = [
                        i
                        for i in range(len(grid))
                        if (i == 0 or values[i] >= values[i - 1]) and (i == len(grid) - 1 or values[i] >= values[i + 1])
                    ]
                    tops.sort(key=lambda i: values[i], reverse=True)
                    width = (grid[-1] - grid[0]) * mpf(10) ** -digits
                    for i in tops[:peaks]:
                        ends = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
                        found.append(_golden(at, *ends, width))
                v, q = max(found)
                if v > best.value:
                    best = WorstPair(v, q, q + d) if forward else WorstPair(v, q + d, q)
        return best


def profile(
    family: str,
    scale: Number,
    spans: Spans,
    sensitivity: Number,
    epsilon: Number,
    points: int = 64,
    *,
    lattice: bool = False,
    digits: int = 20,
    dps: int = DPS,
) -> Real:
    """Lower bound on ``delta(epsilon)``, tight to about ``digits`` where the scan sees every peak.

    Continuous domains: see ``worst_pair``; the untruncated value is included where a span
    is unbounded, because pairs far from every end approach it.  Lattice: all pairs of a bounded
    domain, or of the first ``points`` integers of each span where it is not.
    """
    return worst_profile(
        family, scale, spans, sensitivity, epsilon, points, lattice=lattice, digits=digits, dps=dps
    ).value


def worst_profile(
    family: str,
    scale: Number,
    spans: Spans,
    sensitivity: Number,
    epsilon: Number,
    points: int = 64,
    *,
    lattice: bool = False,
    digits: int = 20,
    dps: int = DPS,
) -> WorstPair:
    """``profile`` with the pair that attains it."""
    with _digits(dps):
        s, eps, pieces = to_mpf(scale), to_mpf(epsilon), _pieces(spans)

        def value(q: Real, q2: Real) -> Real:
            return _excess_mass(family, s, pieces, q, q2, eps, lattice)

        if lattice:
            return _worst_lattice_pair(value, spans, sensitivity, points)
        window = 4 * to_mpf(sensitivity) + 30 * s
        best = worst_pair(value, spans, sensitivity, window=window, points=points, digits=digits, dps=dps)
        if _unbounded(spans):
            limit = WorstPair(hockey_stick(family, s, LINE, 0, sensitivity, eps, dps=dps), None, None)
            best = max(best, limit, key=lambda w: w.value)
        return best


def _worst_lattice_pair(
    value: Callable[[Real, Real], Real], spans: Spans, sensitivity: Number, points: int
) -> WorstPair:
    change = to_fraction(sensitivity)
    places: list[int] = []
    for lo, hi in _exact_spans(spans):
        if isinstance(lo, Fraction):
            first = ceil(lo)
            last = floor(hi) if isinstance(hi, Fraction) else first + points
        else:
            last = floor(hi) if isinstance(hi, Fraction) else points
            first = last - points
        places.extend(range(first, last + 1))
    best = WorstPair(mp.mpf("-inf"), None, None)
    for q in places:
        for q2 in places:
            if q != q2 and abs(q - q2) <= change:
                v = value(mpf(q), mpf(q2))
                if v > best.value:
                    best = WorstPair(v, q, q2)
    return best


# --- Renyi divergence ----------------------------------------------------------------------------


def _breakpoints(lo: Real, hi: Real, marks: Sequence[Real], reach: Real) -> list[Real]:
    """Cut ``[lo, hi]`` at the marks and at growing distances from each of them.

    Keeps every factor of an integrand smooth and of moderate size on each part.  Infinite ends
    are replaced by ``reach`` beyond the outermost mark.
    """
    lo = min([*marks, hi]) - reach if mp.isinf(lo) else lo
    hi = max([*marks, lo]) + reach if mp.isinf(hi) else hi
    near = [m if lo <= m <= hi else (lo if m < lo else hi) for m in marks]
    steps = [mpf(k) for k in (0, 2, 6, 15, 40, 100, 250, 700)]
    cuts = {m + sign * k for m in near for k in steps for sign in (-1, 1)}
    inside = sorted(c for c in cuts if lo < c < hi)
    merged = [lo]
    for c in inside:
        if c - merged[-1] > mpf("1e-3") or c in marks:
            merged.append(c)
    return [*merged, hi]


def _integrate(f: Callable[[Real], Real], lo: Real, hi: Real, marks: Sequence[Real], reach: Real) -> Real:
    cuts = _breakpoints(lo, hi, marks, reach)
    return mp.fsum(mp.quad(f, [a, b]) for a, b in pairwise(cuts) if a < b)


def _reach(family: str) -> Real:
    """Distance in scales beyond which the kernel is below the working precision."""
    depth = (mp.prec + 30) * mp.log(2)
    return depth if family == "laplace" else mp.sqrt(2 * depth)


def _lattice_points(pieces: Sequence[tuple[Real, Real]], centre: Real, reach: Real) -> Iterator[Real]:
    for lo, hi in pieces:
        first = mp.ceil(max(lo, centre - reach))
        last = mp.floor(min(hi, centre + reach))
        for k in range(int(first), int(last) + 1):
            yield mpf(k)


def renyi(
    family: str,
    scale: Number,
    spans: Spans,
    q: Number,
    q2: Number,
    alpha: Number,
    lattice: bool = False,
    *,
    dps: int = DPS,
) -> Real:
    """``D_alpha(p_q || p_q2)`` by quadrature or summation of the definition.

    ``alpha = 1`` is the Kullback-Leibler divergence, ``alpha = inf`` the pure loss.
    """
    with _digits(dps):
        s, a, b, order = to_mpf(scale), to_mpf(q), to_mpf(q2), to_mpf(alpha)
        if a == b:
            return mpf(0)
        if mp.isinf(order):
            return pair_loss(family, s, spans, a, b, lattice, dps=dps)
        pieces = _pieces(spans)
        ca = mp.log(_weight(family, s, a, pieces, lattice))
        cb = mp.log(_weight(family, s, b, pieces, lattice))
        # units of the scale around q: t = (x - q) / s, the other centre at t = shift
        shift = (b - a) / s
        ends = [((lo - a) / s, (hi - a) / s) for lo, hi in pieces]

        def log_p(t: Real) -> Real:
            return _kernel_log(family, t) - ca

        def log_p2(t: Real) -> Real:
            return _kernel_log(family, t - shift) - cb

        if order == 1:
            marks = [mpf(0), shift]

            def integrand(t: Real) -> Real:
                return mp.exp(log_p(t)) * (log_p(t) - log_p2(t))

            top = mpf(0)
        else:
            # the exponent is concave (Gaussian) or piecewise linear (Laplace): its largest value
            # on the domain sits at a centre, the tilted centre or an end
            middle = shift * (1 - order)
            marks = [mpf(0), shift]
            if family == "gaussian":
                marks.append(middle)

            def exponent(t: Real) -> Real:
                return order * log_p(t) + (1 - order) * log_p2(t)

            def clip(t: Real) -> list[Real]:
                return [min(max(t, lo), hi) for lo, hi in ends]

            top = max(exponent(t) for m in marks for t in [m, *clip(m)] if any(lo <= t <= hi for lo, hi in ends))

            def integrand(t: Real) -> Real:
                return mp.exp(exponent(t) - top)

        # alpha sharpens Laplace slopes only by a bounded factor at the far side (slope 1 outside)
        reach = _reach(family) + abs(shift)
        if lattice:
            centre = a if order == 1 or family == "laplace" else order * a + (1 - order) * b
            low, high = pieces[0][0], pieces[-1][1]
            centre = min(max(centre, low), high)
            total = mp.fsum(integrand((x - a) / s) for x in _lattice_points(pieces, centre, reach * s + 1))
        else:
            total = mp.fsum(_integrate(integrand, lo, hi, marks, reach) for lo, hi in ends)
        if order == 1:
            return total
        return (mp.log(total) + top) / (order - 1)


def renyi_closed(
    family: str,
    scale: Number,
    spans: Spans,
    q: Number,
    q2: Number,
    alpha: Number,
    lattice: bool = False,
    *,
    dps: int = DPS,
) -> Real:
    """``renyi`` for ``alpha > 1`` without quadrature, for scans; checked against it.

    Gaussian: completing the square turns the integrand into a kernel at ``alpha q + (1-alpha) q2``.
    Laplace (continuous only): between the centres and the ends the exponent is linear.
    """
    with _digits(dps):
        s, a, b, order = to_mpf(scale), to_mpf(q), to_mpf(q2), to_mpf(alpha)
        pieces = _pieces(spans)
        ca = mp.log(_weight(family, s, a, pieces, lattice))
        cb = mp.log(_weight(family, s, b, pieces, lattice))
        if family == "gaussian":
            tilted = order * a + (1 - order) * b
            constant = order * (order - 1) * (a - b) ** 2 / (2 * s * s)
            total = mp.log(_weight(family, s, tilted, pieces, lattice)) + constant
        else:
            if lattice:
                raise ValueError("closed form on the lattice: gaussian only")

            def exponent(x: Real) -> Real:
                return (-order * abs(x - a) - (1 - order) * abs(x - b)) / s

            parts = []
            for lo, hi in pieces:
                cuts = [lo, *sorted(c for c in (a, b) if lo < c < hi), hi]
                for left, right in pairwise(cuts):
                    if mp.isinf(left) or mp.isinf(right):  # slope 1 towards the open side
                        if mp.isinf(left) and mp.isinf(right):
                            raise AssertionError
                        parts.append(mp.exp(exponent(left if mp.isinf(right) else right)))
                        continue
                    u, v = exponent(left), exponent(right)
                    w = (right - left) / s
                    top, drop = max(u, v), abs(u - v)
                    parts.append(mp.exp(top) * w * (-mp.expm1(-drop) / drop if drop else 1))
            total = mp.log(mp.fsum(parts))
        return (total - order * ca + (order - 1) * cb) / (order - 1)


def renyi_supremum(
    family: str,
    scale: Number,
    spans: Spans,
    sensitivity: Number,
    alpha: Number,
    points: int = 64,
    *,
    lattice: bool = False,
    digits: int = 20,
    dps: int = DPS,
) -> Real:
    """Lower bound on ``sup D_alpha`` over pairs, by the search of ``profile``."""
    with _digits(dps):
        closed = family == "gaussian" or not lattice

        def value(q: Real, q2: Real) -> Real:
            return (renyi_closed if closed else renyi)(family, scale, spans, q, q2, alpha, lattice, dps=dps)

        if lattice:
            return _worst_lattice_pair(value, spans, sensitivity, points).value
        window = 4 * to_mpf(sensitivity) + 30 * to_mpf(scale)
        best = worst_pair(value, spans, sensitivity, window=window, points=points, digits=digits, dps=dps).value
        if _unbounded(spans):
            best = max(best, plain_renyi(family, scale, sensitivity, alpha, dps=dps))
        return best


# --- untruncated noise ---------------------------------------------------------------------------


def plain_hockey_stick(family: str, scale: Number, distance: Number, epsilon: Number, *, dps: int = DPS) -> Real:
    """``delta(epsilon)`` of untruncated noise, ``epsilon >= 0``."""
    with _digits(dps):
        s, d, eps = to_mpf(scale), to_mpf(distance), to_mpf(epsilon)
        if family == "laplace":
            return max(mpf(0), -mp.expm1((eps - d / s) / 2))
        return gdp_delta(d / s, eps, dps=dps)


def plain_renyi(family: str, scale: Number, distance: Number, alpha: Number, *, dps: int = DPS) -> Real:
    """``D_alpha`` of untruncated noise, ``alpha > 1`` (Gaussian: any ``alpha``)."""
    with _digits(dps):
        d, order = to_mpf(distance) / to_mpf(scale), to_mpf(alpha)
        if family == "gaussian":
            return order * d * d / 2
        # the three exponential pieces of int exp(-alpha |t| - (1 - alpha) |t - d|) / 2 dt
        outer = mp.exp((order - 1) * d) + mp.exp(-order * d)
        inner = mp.exp(-order * d) * mp.expm1((2 * order - 1) * d) / (2 * order - 1)
        return mp.log((outer + inner) / 2) / (order - 1)


def gdp_delta(mu: Number, epsilon: Number, *, dps: int = DPS) -> Real:
    """``delta(epsilon)`` of ``mu``-Gaussian differential privacy."""
    with _digits(dps):
        m, eps = to_mpf(mu), to_mpf(epsilon)
        return _excess_mass("gaussian", mpf(1), _pieces(LINE), mpf(0), m, eps, False)


# --- clamped noise -------------------------------------------------------------------------------


def _atoms(family: str, scale: Real, lower: Real, upper: Real, q: Real, dps: int) -> tuple[Real, Real]:
    return (
        mass(family, scale, q, -mp.inf, lower, dps=dps),
        mass(family, scale, q, upper, mp.inf, dps=dps),
    )


def clamped_loss(
    family: str,
    scale: Number,
    lower: Number,
    upper: Number,
    q: Number,
    q2: Number,
    *,
    dps: int = DPS,
) -> Real:
    """Pure loss of a pair for noise projected to ``[lower, upper]``: interior density and atoms."""
    with _digits(dps):
        s, lo, hi, a, b = (to_mpf(v) for v in (scale, lower, upper, q, q2))
        inside = max(_exponent_gap(family, s, a, b, x) for x in (lo, hi))
        ratios = [
            mp.log(p / p2)
            for p, p2 in zip(_atoms(family, s, lo, hi, a, dps), _atoms(family, s, lo, hi, b, dps), strict=True)
            if p
        ]
        return max([inside, *ratios])


def clamped_hockey_stick(
    family: str,
    scale: Number,
    lower: Number,
    upper: Number,
    q: Number,
    q2: Number,
    epsilon: Number,
    *,
    dps: int = DPS,
) -> Real:
    """Hockey-stick divergence of a pair for noise projected to ``[lower, upper]``.

    The two atoms and the interior density each contribute their own positive part.
    """
    with _digits(dps + 15):
        digits = dps + 15
        s, lo, hi, a, b, eps = (to_mpf(v) for v in (scale, lower, upper, q, q2, epsilon))
        if a == b:
            return max(mpf(0), -mp.expm1(eps))
        if a > b:
            return clamped_hockey_stick(family, s, -hi, -lo, -a, -b, eps, dps=dps)
        factor = mp.exp(eps)
        total = mp.fsum(
            max(mpf(0), p - factor * p2)
            for p, p2 in zip(_atoms(family, s, lo, hi, a, digits), _atoms(family, s, lo, hi, b, digits), strict=True)
        )
        x = min(hi, _threshold(family, s, a, b, eps))
        if x > lo:
            total += mass(family, s, a, lo, x, dps=digits) - factor * mass(family, s, b, lo, x, dps=digits)
        return total


# --- moments -------------------------------------------------------------------------------------


class Moments(NamedTuple):
    """Mean and variance of the output, and its mean absolute distance from the true value."""

    mean: Real
    variance: Real
    absolute_error: Real


def moments(
    family: str,
    scale: Number,
    spans: Spans,
    q: Number,
    lattice: bool = False,
    *,
    dps: int = DPS,
) -> Moments:
    """Moments of the truncated mechanism at ``q``, by quadrature or summation."""
    with _digits(dps):
        s, centre = to_mpf(scale), to_mpf(q)
        pieces = _pieces(spans)
        log_total = mp.log(_weight(family, s, centre, pieces, lattice))
        reach = _reach(family) + 20

        def expect(f: Callable[[Real], Real]) -> Real:
            if lattice:
                places = _lattice_points(pieces, centre, reach * s + 1)
                return mp.fsum(
                    f(t) * mp.exp(_kernel_log(family, t) - log_total) for t in ((x - centre) / s for x in places)
                )
            return mp.fsum(
                _integrate(
                    lambda t: f(t) * mp.exp(_kernel_log(family, t) - log_total),
                    (lo - centre) / s,
                    (hi - centre) / s,
                    [mpf(0)],
                    reach,
                )
                for lo, hi in pieces
            )

        mean = expect(lambda t: t)
        return Moments(
            centre + s * mean,
            s * s * expect(lambda t: (t - mean) ** 2),
            s * expect(abs),
        )


# --- calibration ---------------------------------------------------------------------------------


def smallest_scale(
    loss_function: Callable[[Real], Real],
    target: Number,
    lo: Number,
    hi: Number,
    *,
    digits: int = 40,
) -> Real:
    """Where ``loss_function`` falls to ``target``, by bisection; the end that meets the target.

    ``loss_function`` must be above the target at ``lo`` and at most the target at ``hi``; for a
    function that is not monotone the result is one crossing between them.
    """
    with _digits(max(digits, DPS)):
        low, high, goal = to_mpf(lo), to_mpf(hi), to_mpf(target)
        if loss_function(low) <= goal:
            return low
        if not loss_function(high) <= goal:
            raise ValueError("target not met at the upper end of the bracket")
        tolerance = mpf(10) ** -digits
        while high - low > tolerance * high:
            middle = (low + high) / 2
            if loss_function(middle) <= goal:
                high = middle
            else:
                low = middle
        return high
