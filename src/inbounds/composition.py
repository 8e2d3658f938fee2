"""What many releases cost together, when it is known beforehand which: every method, and the least of their bounds.

Releases may be chosen adaptively in their questions; their kinds and parameters are fixed. (For kinds that are chosen
as answers come in, see the budgets in ``accounting``.) Proofs: ``docs/proofs/composition.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from scipy.optimize import brentq

from inbounds import _checks as check
from inbounds import privacy
from inbounds._cached import cached_property
from inbounds.convolution import Atoms, Convolution, atoms, floor_of
from inbounds.numerics import Bound, rounded
from inbounds.privacy import Curve, LineCurve

__all__ = ["Composition", "Concentrated", "Guarantee", "Largest", "Response", "Single", "renyi_delta", "rho_delta"]

_SLACK = 2.0**-40
_NUDGE = 2.0**-50

#: Orders less 1 that are used: Renard's preferred numbers, ten in a decade.
ORDERS = tuple(
    float(f"{m}e{k}") for k in range(-4, 6) for m in ("1", "1.25", "1.6", "2", "2.5", "3.15", "4", "5", "6.3", "8")
)
_REPORTED = ORDERS[30:-20]  # from 0.1 to 8000


def decimal(x: float) -> Fraction:
    """What the user wrote: the shortest decimal that the float prints as."""
    return Fraction(repr(float(x)))


def up(exact: Fraction) -> float:
    """The nearest float that is not below, or that prints as a decimal which is not."""
    near = float(exact)
    return near if near >= exact or decimal(near) >= exact else math.nextafter(near, math.inf)


# ---------------------------------------------------------------- conversions; docs/proofs/dominating-pairs.md, 4


def renyi_delta(alpha: float, divergence: float, epsilon: float) -> float:
    """delta(epsilon) of everything with this Rényi divergence of this order."""
    a = alpha - 1.0
    if math.isinf(divergence):
        return 1.0
    exponent = a * (divergence * (1.0 + _NUDGE) - epsilon * (1.0 - _NUDGE)) - a * math.log1p(1.0 / a) - math.log(alpha)
    return min(1.0, math.exp(min(exponent, 0.0)) * (1.0 + _SLACK)) if exponent < 0.0 else 1.0


def rho_delta(rho: float, epsilon: float) -> float:
    """delta(epsilon) of everything with this zero-concentrated DP: the best order."""
    if not (0.0 < rho < math.inf):
        return 1.0 if rho > 0.0 else 0.0

    def slope(log_a: float) -> float:
        a = math.exp(log_a)
        return rho * (2.0 * a + 1.0) - epsilon - math.log1p(1.0 / a)

    low, high = -16.0, 40.0
    if slope(low) >= 0.0:
        return 1.0  # no order is of use
    best = brentq(slope, low, high, xtol=1e-6) if slope(high) > 0.0 else high
    alpha = 1.0 + math.exp(best)
    return renyi_delta(alpha, rho * alpha, epsilon)


def _inverted(delta_at: Callable[[float], float], delta: float, high: float) -> float:
    """The smallest epsilon found at which a falling profile is at most delta."""
    if delta_at(0.0) <= delta:
        return 0.0
    while not delta_at(high) <= delta:
        high *= 2.0
        if high > 1e7:
            return math.inf
    low = 0.0
    while high - low > 1e-9 * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
    return high


# ---------------------------------------------------------------- claims, and groups of which one counts

#: epsilon and delta of a release's own; the epsilon is None where delta can be made as small as one likes instead
Pair = tuple[Fraction | None, Fraction]


class Known:
    """A curve that answers every question itself."""

    @property
    def pair(self) -> Pair:
        raise NotImplementedError

    def epsilon(self, delta: float) -> Bound:
        raise NotImplementedError

    def zcdp(self) -> Bound:
        raise NotImplementedError


@dataclass(frozen=True)
class Response(Known):
    """All that is known is (claimed, fails)-DP: the worst such release is randomised response that fails sometimes."""

    claimed: float
    fails: float = 0.0

    def _bound(self, value: float, reason: str = "as claimed") -> Bound:
        return Bound(value, exact=True, reason=reason)

    @property
    def pair(self) -> Pair:
        return decimal(self.claimed), decimal(self.fails)

    def pure(self) -> Bound:
        return self._bound(math.inf, "a delta was claimed") if self.fails > 0.0 else self._bound(self.claimed)

    def delta(self, epsilon: float, *, target: float = math.nan, floor: float = 0.0) -> Bound:
        value = privacy.response_delta(self.claimed, epsilon)
        value = min(self.fails + (1.0 - self.fails) * value * (1.0 + _SLACK), 1.0)
        return self._bound(max(value, floor))

    def epsilon(self, delta: float) -> Bound:
        left = (delta - self.fails) / (1.0 - self.fails) * (1.0 - _SLACK)
        if left <= 0.0:
            return self._bound(self.claimed if left == 0.0 else math.inf)
        lower = self.claimed + math.log1p(-min(left * (1.0 + math.exp(-self.claimed)), 1.0 - _SLACK))
        return self._bound(max(lower + (self.claimed + abs(lower)) * _SLACK, 0.0))

    def renyi(self, alpha: float, *, floor: float = 0.0) -> Bound:
        value = privacy.response_renyi(self.claimed, alpha)
        return self.pure() if self.fails > 0.0 else self._bound(max(value, floor), "pure loss")

    def gaussian(self) -> Bound:
        return self.pure() if self.fails > 0.0 else self._bound(privacy.response_gdp(self.claimed), "pure loss")

    def zcdp(self) -> Bound:
        value = self.claimed * math.tanh(self.claimed / 2.0) * (1.0 + _SLACK)
        return self.pure() if self.fails > 0.0 else self._bound(value, "pure loss")


@dataclass(frozen=True)
class Concentrated(Known):
    """All that is known is rho."""

    rho: float

    @property
    def pair(self) -> Pair:
        return (None if self.rho > 0.0 else Fraction(0)), Fraction(0)

    def pure(self) -> Bound:
        return Bound(math.inf if self.rho > 0.0 else 0.0, exact=True, reason="only rho is known")

    def delta(self, epsilon: float, *, target: float = math.nan, floor: float = 0.0) -> Bound:
        return Bound(max(rho_delta(self.rho, epsilon), floor), exact=False, reason="zero-concentrated DP")

    def epsilon(self, delta: float) -> Bound:
        value = _inverted(lambda e: rho_delta(self.rho, e), delta, 1.0)
        return Bound(value, exact=False, reason="zero-concentrated DP")

    def renyi(self, alpha: float, *, floor: float = 0.0) -> Bound:
        return Bound(max(self.rho * alpha * (1.0 + _SLACK), floor), exact=True, reason="zero-concentrated DP")

    def gaussian(self) -> Bound:
        return Bound(math.inf, exact=False, reason="only rho is known")

    def zcdp(self) -> Bound:
        return Bound(self.rho, exact=True, reason="as claimed")


@dataclass(frozen=True, eq=False)
class Largest(Known):
    """Releases from groups that share no unit: neighbours differ in one group, so that the worst group counts."""

    groups: Sequence[Composition]

    @cached_property
    def pair(self) -> Pair:
        pairs = [group.pair for group in self.groups]
        epsilons = [epsilon for epsilon, _ in pairs if epsilon is not None]
        return (max(epsilons) if len(epsilons) == len(pairs) else None), max(delta for _, delta in pairs)

    def pure(self) -> Bound:
        return max(group.pure() for group in self.groups)

    def delta(self, epsilon: float, *, target: float = math.nan, floor: float = 0.0) -> Bound:
        return max(group.delta(epsilon, target=target, floor=floor) for group in self.groups)

    def epsilon(self, delta: float) -> Bound:
        return max(group.epsilon(delta) for group in self.groups)

    def renyi(self, alpha: float, *, floor: float = 0.0) -> Bound:
        return max(group.renyi(alpha, floor=floor) for group in self.groups)

    def gaussian(self) -> Bound:
        return max(group.gaussian() for group in self.groups)

    def zcdp(self) -> Bound:
        return max(group.zcdp() for group in self.groups)


# ---------------------------------------------------------------- one release, and many


class Single:
    """One kind of release: its privacy curve, with what is slow to compute kept."""

    def __init__(self, curve: Curve) -> None:
        self.curve = curve
        self._renyi: dict[float, float] = {}

    @cached_property
    def pair(self) -> Pair:
        """Its own epsilon and delta; a claim counts as the decimals it was written as."""
        if isinstance(self.curve, Known):
            return self.curve.pair
        pure = float(self.curve.pure())
        if math.isfinite(pure):
            return Fraction(pure), Fraction(0)
        if math.isfinite(self.renyi(2.0)):
            return None, Fraction(0)
        epsilon, delta = floor_of(self.curve)
        return Fraction(epsilon), Fraction(delta)

    @cached_property
    def atoms(self) -> Atoms:
        return atoms(self.curve, _cells(self.curve))

    @cached_property
    def rho(self) -> Bound:
        return self.curve.zcdp() if isinstance(self.curve, Known) else privacy.zcdp(self.curve)

    def renyi(self, alpha: float) -> float:
        if alpha not in self._renyi:
            self._renyi[alpha] = float(self.curve.renyi(alpha))
        return self._renyi[alpha]


def _cells(curve: Curve) -> int:
    """How finely the profile is looked at: two losses say all of a claim; certified suprema take time."""
    if isinstance(curve, LineCurve) and not curve.unwalled:
        return 128 if curve.noise.support.convex else 48
    return 1 if isinstance(curve, Response) else 128 if isinstance(curve, Largest) else 512


class Composition:
    """Several releases in sequence, each of a kind so many times; itself a privacy curve."""

    def __init__(self, parts: Sequence[tuple[Single, int]]) -> None:
        self.parts = list(parts)

    @cached_property
    def count(self) -> int:
        return sum(times for _, times in self.parts)

    @property
    def alone(self) -> Curve | None:
        """The curve, where there is one release only."""
        return self.parts[0][0].curve if self.count == 1 else None

    # -- what adds up

    @cached_property
    def pair(self) -> Pair:
        """Basic composition: epsilons add, and deltas add."""
        pairs = [(*single.pair, times) for single, times in self.parts]
        epsilons = [epsilon * times for epsilon, _, times in pairs if epsilon is not None]
        total = sum(epsilons, Fraction(0)) if len(epsilons) == len(pairs) else None
        return total, sum((delta * times for _, delta, times in pairs), Fraction(0))

    def pure(self) -> Bound:
        epsilon, delta = self.pair
        if self.alone is not None and not isinstance(self.alone, Known):
            return self.alone.pure()
        if epsilon is None or delta > 0:
            return Bound(math.inf, exact=False, reason="not every release is pure")
        exact = all(single.curve.pure().exact for single, _ in self.parts)
        return Bound(up(epsilon), exact=exact, reason="sum of pure losses" if self.count > 1 else "as claimed")

    def renyi(self, alpha: float, *, floor: float = 0.0) -> Bound:
        if self.alone is not None:
            return self.alone.renyi(alpha, floor=floor)
        total = math.fsum(times * single.renyi(alpha) for single, times in self.parts) * (1.0 + _SLACK)
        return Bound(max(total, floor), exact=False, reason="sum of Rényi divergences")

    def zcdp(self) -> Bound:
        """rho."""
        if self.count == 1:
            return self.parts[0][0].rho
        if all(isinstance(single.curve, Concentrated) for single, _ in self.parts):
            total = up(sum((decimal(single.rho) * times for single, times in self.parts), Fraction(0)))
        else:
            total = math.fsum(times * float(single.rho) for single, times in self.parts) * (1.0 + _SLACK)
        exact = all(single.rho.exact for single, _ in self.parts)
        return Bound(total, exact=exact, reason="sum" if math.isfinite(total) else "not every release has rho")

    def gaussian(self) -> Bound:
        if self.alone is not None:
            return self.alone.gaussian()
        squares = math.fsum(times * float(single.curve.gaussian()) ** 2 for single, times in self.parts)
        exact = all(single.curve.gaussian().exact for single, _ in self.parts)
        reason = "sum of squares" if math.isfinite(squares) else "not every release has mu"
        return Bound(math.sqrt(squares) * (1.0 + _SLACK), exact=exact, reason=reason)

    # -- the profile

    @cached_property
    def _convolution(self) -> Convolution:
        return Convolution([(single.atoms, times) for single, times in self.parts])

    @property
    def _numerical(self) -> str:
        claims = all(isinstance(single.curve, Response) for single, _ in self.parts)
        return "optimal composition of claims" if claims else "numerical composition"

    def _formulas(self, epsilon: float) -> tuple[float, str]:
        """The least delta that a formula gives, and which."""
        total, fails = self.pair
        found = [(up(fails), "basic composition")] if total is not None and total <= epsilon else []
        found.append(min((renyi_delta(1.0 + a, self.renyi(1.0 + a), epsilon), "Rényi DP") for a in _REPORTED))
        found.append((rho_delta(self.zcdp(), epsilon), "zero-concentrated DP"))
        mu = self.gaussian()
        if math.isfinite(mu):
            found.append((privacy.gaussian_delta(mu, epsilon * (1.0 - _NUDGE)), "Gaussian DP"))
        return min(found)

    def delta(self, epsilon: float, *, target: float = math.nan, floor: float = 0.0) -> Bound:
        """The smallest delta found for epsilon, never below the truth; its reason names the method."""
        if self.alone is not None:
            return self.alone.delta(epsilon, target=target, floor=floor)
        pure = self.pure()
        if pure <= epsilon:
            return Bound(floor, exact=pure.exact, reason=pure.reason)
        value, reason = min(self._formulas(epsilon), (self._convolution.delta(epsilon), self._numerical))
        return Bound(max(value, floor), exact=False, reason=reason)

    def epsilon(self, delta: float) -> Bound:
        """The smallest epsilon found for delta, never below the truth; its reason names the method."""
        pure = self.pure()
        if delta == 0.0 or pure == 0.0:
            return pure
        if self.alone is not None:
            return self.alone.epsilon(delta) if isinstance(self.alone, Known) else privacy.epsilon_at(self.alone, delta)
        found = [(self._convolution.epsilon(delta), self._numerical)]
        formula = _inverted(lambda e: self._formulas(e)[0], delta, 1.0)
        if math.isfinite(formula):
            found.append((formula, self._formulas(formula)[1]))
        total, fails = self.pair  # exactly, not to the 1e-9 of a search
        if total is not None and fails <= decimal(delta):
            found.append((up(total), "basic composition" if fails > 0 else pure.reason))
        value, reason = min(found)
        return Bound(value, exact=False, reason=reason)


# ---------------------------------------------------------------- what users see


class Guarantee:
    """What releases guarantee together; never better than the truth.

    Every number is a :class:`~inbounds.Bound`; its ``reason`` names the method that gave the least.
    """

    def __init__(self, composition: Composition) -> None:
        self._composition = composition

    def epsilon(self, delta: float = 0.0) -> Bound:
        """The smallest epsilon found for this delta (infinite where there is none)."""
        return self._composition.epsilon(check.number("Guarantee", "delta", delta, at_least=0.0, below=1.0))

    def delta(self, epsilon: float) -> Bound:
        """The smallest delta found for this epsilon; 0 only where it is 0."""
        e = check.number("Guarantee", "epsilon", epsilon, at_least=0.0, at_most=1e6)
        return privacy.delta_at(self._composition, e)

    def rdp(self, alpha: float) -> Bound:
        """Rényi DP of order alpha."""
        return self._composition.renyi(check.number("Guarantee", "alpha", alpha, above=1.0, at_most=1e6))

    def zcdp(self) -> Bound:
        """rho of zero-concentrated DP."""
        return self._composition.zcdp()

    def gdp(self) -> Bound:
        """mu of Gaussian DP."""
        alone = self._composition.alone
        return self._composition.gaussian() if alone is None or isinstance(alone, Known) else privacy.gdp(alone)

    @property
    def releases(self) -> int:
        """How many there are; groups that share no unit count as one."""
        return self._composition.count

    def table(self, delta: float | None = None) -> str:
        """The guarantee as a small table, with epsilon at ``delta`` (at 1e-6 and 1e-9 where it is not given)."""
        deltas = (
            (1e-6, 1e-9) if delta is None else (check.number("Guarantee", "delta", delta, at_least=0.0, below=1.0),)
        )
        rows = [("epsilon", "delta = 0", self.epsilon())]
        rows += [("epsilon", f"delta = {d:g}", self.epsilon(d)) for d in deltas if d > 0.0]
        rows += [("rho", "", self.zcdp()), ("mu", "", self.gdp())]
        cells = [
            (name, at, rounded(value) if math.isfinite(value) else "none", value.reason) for name, at, value in rows
        ]
        widths = [max(len(row[i]) for row in cells) for i in range(3)]
        lines = [f"  {a:{widths[0]}}  {b:{widths[1]}}  {c:{widths[2]}}  {why}" for a, b, c, why in cells]
        noun = "release" if self.releases == 1 else "releases"
        return "\n".join([f"{self.releases} {noun}", *lines])

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<Guarantee of {self.releases} releases>"
