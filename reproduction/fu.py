"""Fu, Sun, Liu and Chen: resampling until the answer is in [a, b], under Rényi differential privacy.

True answers are clipped to [0, μ], the noise is Gaussian with standard deviation μσ or Laplace with scale λ, and [a, b]
is any interval. By scaling μ may be taken to be 1, which the checks do. ``docs/proofs/renyi.md`` and
``docs/proofs/published.md`` prove what holds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.integrate import quad
from scipy.special import kolmogorov, log_ndtr, ndtr

from inbounds import Gaussian, Integers, Interval, Laplace, Spans
from inbounds.plots import COLOURS
from reproduction.numerics import FloatArray
from reproduction.report import Figure, Finding, Steps, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

__all__ = [
    "KEY",
    "REFERENCE",
    "TITLE",
    "definition_2_7",
    "equation_6",
    "equation_7",
    "equation_8",
    "equation_15",
    "equation_16",
    "equation_21",
    "equation_22",
    "findings",
    "lemma_2_6_epsilon",
    "renyi_by_quadrature",
    "theorem_4_3_sides",
]

KEY = "fu"
TITLE = "Fu, Sun, Liu and Chen: truncated mechanisms under Rényi privacy"
REFERENCE = (
    "Jie Fu, Zhiyu Sun, Haitao Liu and Zhili Chen: Truncated Laplace and Gaussian mechanisms of RDP. Preprint, 2023."
)

_LINE = Interval(-math.inf, math.inf)


# ---------------------------------------------------------------- the published formulas


def lemma_2_6_epsilon(alpha: float, renyi: float, delta: float) -> float:
    """Lemma 2.6: the ε for which an (α, R)-RDP mechanism is (ε, δ)-private."""
    return renyi + math.log((alpha - 1.0) / alpha) - (math.log(delta) + math.log(alpha)) / (alpha - 1.0)


def definition_2_7(alpha: float, sigma: float) -> float:
    """α/2σ², the Rényi divergence of plain Gaussian noise of standard deviation μσ at distance μ."""
    return alpha / (2.0 * sigma**2)


def equation_6(alpha: float, mu: float, scale: float) -> float:
    """The Rényi divergence of plain Laplace noise at distance μ."""
    d = mu / scale
    up = math.log(alpha / (2.0 * alpha - 1.0)) + (alpha - 1.0) * d
    down = math.log((alpha - 1.0) / (2.0 * alpha - 1.0)) - alpha * d
    return float(np.logaddexp(up, down)) / (alpha - 1.0)


def _log_phi(lower: float, upper: float) -> float:
    """ln(Φ(upper) - Φ(lower)), also far from 0."""
    if lower > 0.0:
        lower, upper = -upper, -lower
    if upper >= 0.0:
        return math.log(float(ndtr(upper) - ndtr(lower)))
    top, bottom = float(log_ndtr(upper)), float(log_ndtr(lower))
    return top + math.log1p(-math.exp(bottom - top))


def equation_7(alpha: float, mu: float, sigma: float, a: float, b: float) -> float:
    """D_α of the Gaussian truncated to [a, b], at 0 against at μ."""
    s = mu * sigma
    at_0, at_mu = _log_phi(a / s, b / s), _log_phi((a - mu) / s, (b - mu) / s)
    tilted = _log_phi((a - (1.0 - alpha) * mu) / s, (b - (1.0 - alpha) * mu) / s)
    return definition_2_7(alpha, sigma) + ((alpha - 1.0) * at_mu + tilted - alpha * at_0) / (alpha - 1.0)


def equation_8(alpha: float, mu: float, sigma: float, a: float, b: float) -> float:
    """D_α of the Gaussian truncated to [a, b], at μ against at 0."""
    s = mu * sigma
    at_0, at_mu = _log_phi(a / s, b / s), _log_phi((a - mu) / s, (b - mu) / s)
    tilted = _log_phi((a - alpha * mu) / s, (b - alpha * mu) / s)
    return definition_2_7(alpha, sigma) + ((alpha - 1.0) * at_0 + tilted - alpha * at_mu) / (alpha - 1.0)


def equation_15(alpha: float, mu: float, scale: float, a: float, b: float) -> float:
    """D_α of the Laplace distribution truncated to [a, b], at 0 against at μ: the last line, integrated numerically."""
    top = _log_integral(lambda x: (-alpha * abs(x) + (alpha - 1.0) * abs(x - mu)) / scale, a, b, (0.0, mu))
    return (top - alpha * _log_laplace(0.0, scale, a, b) - (1.0 - alpha) * _log_laplace(mu, scale, a, b)) / (
        alpha - 1.0
    )


def equation_16(alpha: float, mu: float, scale: float, a: float, b: float, *, printed: bool = False) -> float:
    """The other order. ``printed``: with the exponent -(1 - α)|x| + α|x|; it should be -(1 - α)|x| - α|x - μ|."""

    def exponent(x: float) -> float:
        return (-(1.0 - alpha) * abs(x) + (alpha * abs(x) if printed else -alpha * abs(x - mu))) / scale

    top = _log_integral(exponent, a, b, (0.0, mu))
    return (top - (1.0 - alpha) * _log_laplace(0.0, scale, a, b) - alpha * _log_laplace(mu, scale, a, b)) / (
        alpha - 1.0
    )


def equation_21(alpha: float, mu: float, scale: float, a: float, b: float) -> tuple[float, float, float, float]:
    """What stands under the logarithm in the four lines of (21), as printed, for 0 < a < b < μ."""

    def e(x: float) -> float:
        return math.exp(x / scale)

    two = 1.0 - 2.0 * alpha
    low, high = e(-a) - e(-b), e(b) - e(a)
    first = scale / two * (e(two * b - mu + mu * alpha) - e(two * a - mu + mu * alpha))
    first /= scale**alpha * low**alpha * scale ** (1.0 - alpha) * (e(b - mu) - e(a - mu)) ** (1.0 - alpha)
    second = e(mu * alpha - mu) * (e(two * b) - e(two * a))
    second /= two * low**alpha * e(-mu) ** (1.0 - alpha) * high ** (1.0 - alpha)
    third = (e(two * b) - e(two * a)) / (two * low**alpha * high ** (1.0 - alpha))
    fourth = (e(-a) ** -two - e(-b) ** -two) / (two * low) * e(-(a + b) * (1.0 - alpha))
    return first, second, third, fourth


def equation_22(alpha: float, scale: float, a: float, b: float, *, printed: bool = False) -> float:
    """What stands under the logarithm in the last line of (22), and of (23), which is the same.

    ``printed``: with 1/(1 - 2α) and with (1 - a) in the exponent; they should be 1/(2α - 1) and (1 - α).
    """
    w = (b - a) / scale
    power, factor = (1.0 - a, 1.0 - 2.0 * alpha) if printed else (1.0 - alpha, 2.0 * alpha - 1.0)
    return (math.exp(-power * w) - math.exp(-alpha * w)) / (factor * -math.expm1(-w))


def theorem_4_3_sides(alpha: float, scale: float, width: float, mu: float = 1.0) -> tuple[float, float]:
    """Both sides of the inequality of Theorem 4.3; as printed μ = 1 stands on the right."""
    w, d = width / scale, mu / scale
    left = (math.exp((alpha - 1.0) * w) - math.exp(-alpha * w)) / -math.expm1(-w)
    return left, alpha * math.exp((alpha - 1.0) * d) + (alpha - 1.0) * math.exp(-alpha * d)


# ---------------------------------------------------------------- the divergence from its definition


def _log_integral(f: Callable[[float], float], lower: float, upper: float, cuts: Sequence[float] = ()) -> float:
    """ln ∫ exp(f) by adaptive quadrature, cut at kinks and at the top."""
    grid = np.linspace(lower, upper, 257)
    values = [f(x) for x in grid.tolist()]
    best = int(np.argmax(values))
    top = max([values[best], *(f(x) for x in cuts if lower < x < upper)])
    edges = sorted({lower, upper, *(x for x in (*cuts, float(grid[best])) if lower < x < upper)})
    parts = (
        quad(lambda x: math.exp(f(x) - top), start, stop, epsabs=1e-300, epsrel=1e-11, limit=200)[0]
        for start, stop in itertools.pairwise(edges)
    )
    return top + math.log(sum(parts))


def _log_laplace(q: float, scale: float, a: float, b: float) -> float:
    return _log_integral(lambda x: -abs(x - q) / scale, a, b, (q,))


def renyi_by_quadrature(
    family: str, alpha: float, p: float, q: float, scale: float, pieces: Sequence[tuple[float, float]]
) -> float:
    """D_α of the laws at p and at q of noise cut to the pieces, from the definition; p and q may lie outside."""

    def kernel(x: float, at: float) -> float:
        y = (x - at) / scale
        return -abs(y) if family == "laplace" else -0.5 * y * y

    def log_sum(f: Callable[[float], float]) -> float:
        return float(np.logaddexp.reduce([_log_integral(f, a, b, (p, q)) for a, b in pieces]))

    at_p, at_q = log_sum(lambda x: kernel(x, p)), log_sum(lambda x: kernel(x, q))
    both = log_sum(lambda x: alpha * kernel(x, p) + (1.0 - alpha) * kernel(x, q))
    return (both - alpha * at_p - (1.0 - alpha) * at_q) / (alpha - 1.0)


def _random_case(rng: np.random.Generator) -> tuple[float, float, float, float]:
    """α, scale, a, b with μ = 1: the interval may lie anywhere."""
    alpha = 1.0 + 10.0 ** rng.uniform(-1.0, 1.5)
    a = rng.uniform(-4.0, 3.0)
    return alpha, 10.0 ** rng.uniform(-0.6, 0.8), a, a + 10.0 ** rng.uniform(-1.0, 1.0)


# ---------------------------------------------------------------- findings: section 2


def _second_moment(a: float, b: float, sigma: float) -> float:
    """E[x²] of N(0, σ²) cut to [a, b], by quadrature."""
    top, _ = quad(lambda x: x * x * math.exp(-0.5 * (x * x - a * a) / sigma**2), a, b)
    bottom, _ = quad(lambda x: math.exp(-0.5 * (x * x - a * a) / sigma**2), a, b)
    return float(top / bottom)


def _introduction(rng: np.random.Generator, trials: int) -> Finding:
    most = 0.0
    for _ in range(trials):
        a = rng.uniform(-3.0, 0.0)
        b, scale = a + 10.0 ** rng.uniform(-0.5, 1.0), 10.0 ** rng.uniform(-0.5, 0.5)
        q = rng.uniform(a, b)
        for family, plain in ((Gaussian, scale), (Laplace, math.sqrt(2.0) * scale)):
            error = family(Interval(a, b), scale=scale, sensitivity=(b - a) / 2.0).at(q).error()
            most = max(most, float(error.rmse) / plain)
    far = math.sqrt(_second_moment(5.0, 6.0, 1.0))
    return Finding(
        "Introduction: less variance",
        "Releasing only answers inside an appropriate interval keeps them consistent and reduces their variance.",
        f"The exact error of both families for {trials} random intervals that contain the true answer: the root mean "
        f"squared error is at most {most:.4f} times that of plain noise of the same scale.",
        "holds" if most <= 1.0 + 1e-9 else "fails",
        "For intervals that contain the answer, and at the same scale, which is not the same privacy. The algorithms "
        f"allow any interval: with answers in [0, 1], σ = 1 and [5, 6] the error at 0 is {far:.2f} instead of 1.",
    )


def _lemma_2_3() -> Finding:
    most = 0.0
    for family, scale, epsilon in itertools.product((Gaussian, Laplace), (0.5, 1.0, 3.0), (0.1, 0.3)):
        plain = family(Interval(0, 3), scale=scale, sensitivity=1.0, edges="ignore")
        clamped = family(Interval(0, 3), scale=scale, sensitivity=1.0, edges="clamp")
        most = max(most, float(clamped.delta(epsilon)) / max(float(plain.delta(epsilon)), 1e-300))
    return Finding(
        "Lemma 2.3",
        "Post-processing: a function of a private output is as private as the output.",
        "Noise projected onto [0, 3] against the noise itself, both families, 12 settings: δ(ε) is at most "
        f"{most:.6f} times that of the noise.",
        "holds" if most <= 1.0 + 1e-6 else "fails",
        "Standard. The paper does not use it, and could not: resampling until the answer is in [a, b] is no function "
        "of one private output.",
    )


def _lemma_2_6() -> Finding:
    rows: list[tuple[str | float, ...]] = []
    ratios = []
    orders = 1.0 + np.geomspace(0.01, 1000.0, 4000)
    for sigma, delta in itertools.product((1.0, 3.0, 10.0), (1e-3, 1e-6)):
        exact = float(Gaussian(_LINE, scale=sigma, sensitivity=1.0, edges="ignore").epsilon(delta))
        found = min(lemma_2_6_epsilon(o, definition_2_7(o, sigma), delta) for o in orders.tolist())
        ratios.append(found / exact)
        rows.append((f"{sigma:g}", f"{delta:g}", found, exact, f"{found / exact:.3f}"))
    return Finding(
        "Lemma 2.6",
        "An (α, R)-RDP mechanism is (R + ln((α - 1)/α) - (ln δ + ln α)/(α - 1), δ)-private.",
        "Plain Gaussian noise, μ = 1, the best order against the exact ε.",
        "holds" if min(ratios) >= 1.0 else "fails",
        f"Sufficient; with the best order {min(ratios):.2f} to {max(ratios):.2f} times the exact ε here.",
        (Table("ε by Lemma 2.6 and exactly", ("σ", "δ", "Lemma 2.6", "exact", "ratio"), tuple(rows)),),
    )


def _definitions() -> list[Finding]:
    gaussian = laplace = 0.0
    for alpha, scale in itertools.product((1.1, 2.0, 8.0, 32.0), (0.5, 1.0, 3.0)):
        reach = alpha + 14.0 * scale  # the tilted bell sits at 1 - α
        value = renyi_by_quadrature("gaussian", alpha, 0.0, 1.0, scale, [(-reach, 1.0 + reach)])
        gaussian = max(gaussian, abs(value / definition_2_7(alpha, scale) - 1.0))
        value = renyi_by_quadrature("laplace", alpha, 0.0, 1.0, scale, [(-40.0 * scale, 1.0 + 40.0 * scale)])
        laplace = max(laplace, abs(value / equation_6(alpha, 1.0, scale) - 1.0))
    return [
        Finding(
            "Definition 2.7",
            "Plain Gaussian noise of standard deviation μσ has (α, α/2σ²)-RDP at distance μ.",
            f"Quadrature for 12 pairs (α, σ): agrees to {gaussian:.0e} relative.",
            "holds" if gaussian < 1e-7 else "fails",
        ),
        Finding(
            "Definition 2.8 and Equation 6",
            "The Rényi divergence of Laplace noise at distance μ, in closed form, for α ≥ 1.",
            f"Quadrature for 12 pairs (α, λ): agrees to {laplace:.0e} relative.",
            "holds" if laplace < 1e-7 else "fails",
            "At α = 1 the formula has to be read as its limit. (Definition 2.1 has < where it needs ≤: with < the "
            "empty set refutes it for δ = 0.)",
        ),
    ]


# ---------------------------------------------------------------- findings: section 3


def _resample(draw: Callable[[int], FloatArray], a: float, b: float, size: int) -> tuple[FloatArray, float]:
    """``size`` draws from [a, b] by drawing again until they are, and the mean number of draws each took."""
    kept: list[FloatArray] = []
    count, drawn = 0, 0
    while count < size:
        batch = draw(size)
        inside = batch[(batch >= a) & (batch <= b)]
        kept.append(inside)
        count, drawn = count + inside.size, drawn + size
    return np.concatenate(kept)[:size], drawn / count


def _round(draws: float) -> str:
    return f"{draws:.2f}" if draws < 1000.0 else f"{draws:,.0f}"


def _algorithm(family: str, rng: np.random.Generator, size: int) -> Finding:
    gaussian = family == "gaussian"
    mechanism = (Gaussian if gaussian else Laplace)(Interval(-0.5, 1.5), scale=1.0, sensitivity=1.0)

    def draw(count: int) -> FloatArray:
        return rng.standard_normal(count) if gaussian else rng.laplace(size=count)

    answers, rounds = _resample(draw, -0.5, 1.5, size)
    levels = mechanism.at(0.0).cdf(np.sort(answers))
    steps = np.arange(size + 1) / size
    distance = float(max(np.max(steps[1:] - levels), np.max(levels - steps[:-1])))
    chance = float(kolmogorov(distance * math.sqrt(size)))

    def mass(a: float, b: float, q: float) -> float:
        if gaussian:
            return math.exp(_log_phi(a - q, b - q))
        return math.exp(_log_laplace(q, 1.0, a, b)) / 2.0

    rows: list[tuple[str | float, ...]] = []
    for a, b in ((-0.5, 1.5), (0.0, 20.0), (3.0, 4.0), (5.0, 6.0)):
        at_0, at_1 = 1.0 / mass(a, b, 0.0), 1.0 / mass(a, b, 1.0)
        rows.append((f"[{a:g}, {b:g}]", _round(at_0), _round(at_1), f"{max(at_0 / at_1, at_1 / at_0):.2f}"))
    return Finding(
        "Algorithm 1" if gaussian else "Algorithm 2",
        f"Clip the answer to [0, μ], add {'Gaussian' if gaussian else 'Laplace'} noise, and draw again until the "
        "result lies in [a, b]; this samples the truncated distribution.",
        f"{size} answers for the true value 0 on [-0.5, 1.5], scale 1, against the exact distribution: largest "
        f"distance {distance:.4f}, which chance exceeds with probability {chance:.2f}. It took {rounds:.2f} draws an "
        f"answer, expected {rows[0][1]}.",
        "reproduced" if chance > 1e-6 else "not reproduced",
        "The number of draws is geometric with a mean of 1/Z(q), which depends on the true answer q: the running time "
        f"is an output too, and no guarantee covers it. For μ = 1, scale 1 and [5, 6] an answer takes {rows[3][1]} "
        f"draws on average if q = 0 and {rows[3][2]} if q = 1.",
        (Table("Draws for one answer, μ = 1, scale 1", ("[a, b]", "q = 0", "q = 1", "ratio"), tuple(rows)),),
    )


def _before_and_after(family: str) -> Finding:
    a, b, scale = -1.0, 2.5, 1.0
    kind = Gaussian if family == "gaussian" else Laplace
    mechanism = kind(Interval(a, b), scale=scale, sensitivity=1.0)
    plain = kind(_LINE, scale=scale, sensitivity=1.0, edges="ignore")
    areas = [float(quad(lambda x, q=q: math.exp(mechanism.at(q).logpdf(x)), a, b, points=[q])[0]) for q in (0.0, 1.0)]
    masses = [float(plain.at(q).cdf(b) - plain.at(q).cdf(a)) for q in (0.0, 1.0)]
    raised = max(
        abs(math.exp(mechanism.at(q).logpdf(0.5) - plain.at(q).logpdf(0.5)) * mass - 1.0)
        for q, mass in zip((0.0, 1.0), masses, strict=True)
    )

    def draw(canvas: Canvas) -> None:
        canvas.set_size_inches(9.0, 3.6)
        axes = canvas.subplots(1, 2, sharey=True)
        x = np.linspace(-4.5, 5.5, 1601)
        for q, colour, name in ((0.0, COLOURS[0], "answer 0"), (1.0, COLOURS[1], "answer μ")):
            axes[0].plot(x, np.exp(plain.at(q).logpdf(x)), color=colour, label=name)
            axes[1].plot(x, np.exp(mechanism.at(q).logpdf(x)), color=colour, label=name)
        for one, title in zip(axes, ("(a) before truncation", "(b) after truncation"), strict=True):
            one.axvline(a, color=COLOURS[6], linestyle=":", linewidth=1.0)
            one.axvline(b, color=COLOURS[6], linestyle=":", linewidth=1.0)
            one.set(title=title, xlabel="x")
        axes[0].set_ylabel("density")
        axes[0].legend()

    name = "normal" if family == "gaussian" else "Laplace"
    item = "Figure 1" if family == "gaussian" else "Figure 2"
    return Finding(
        item,
        f"Two {name} densities, at 0 and at μ, before and after truncation to [a, b].",
        f"The paper gives no numbers; drawn for μ = 1, scale 1, [a, b] = [{a:g}, {b:g}]. The densities after "
        f"truncation integrate to {areas[0]:.9f} and {areas[1]:.9f}, and are those before it divided by the masses "
        f"{masses[0]:.4f} and {masses[1]:.4f} of the interval.",
        "reproduced" if max(abs(x - 1.0) for x in areas) < 1e-7 and raised < 1e-9 else "not reproduced",
        "The two are divided by different numbers: this is what the privacy analysis has to account for.",
        (),
        (Figure(f"fu-{item.lower().replace(' ', '-')}", f"{item} of Fu et al., μ = 1, scale 1, [-1, 2.5].", draw),),
    )


def _equations_7_and_8(rng: np.random.Generator, trials: int) -> list[Finding]:
    gaps = {7: 0.0, 8: 0.0}
    package = {7: 0.0, 8: 0.0}
    for _ in range(trials):
        alpha, sigma, a, b = _random_case(rng)
        for which, formula, p, q in ((7, equation_7, 0.0, 1.0), (8, equation_8, 1.0, 0.0)):
            value = renyi_by_quadrature("gaussian", alpha, p, q, sigma, [(a, b)])
            gaps[which] = max(gaps[which], abs(formula(alpha, 1.0, sigma, a, b) - value) / (1e-4 + value))
            low, high = -abs(a), 1.0 + (b - a)
            held = Gaussian(Interval(low, high), scale=sigma, sensitivity=1.0).pair_rdp(p, q, alpha)
            ours = formula(alpha, 1.0, sigma, low, high)
            package[which] = max(package[which], abs(ours - held) / (1e-4 + held))
    return [
        Finding(
            f"Equation {which}",
            f"The Rényi divergence of the truncated Gaussian at {order}, in closed form.",
            f"{trials} random α, σ and intervals anywhere: agrees with quadrature to {gaps[which]:.0e} relative, and "
            f"with this package's divergence (for intervals that hold both answers) to {package[which]:.0e}.",
            "holds" if max(gaps[which], package[which]) < 1e-5 else "fails",
        )
        for which, order in ((7, "0 against at μ"), (8, "μ against at 0"))
    ]


def _theorem_3_1(rng: np.random.Generator, quick: bool) -> Finding:
    trials, most, inner = (2000 if quick else 20_000), 0.0, 0.0
    for _ in range(trials):
        alpha, sigma, a, b = _random_case(rng)
        bound = definition_2_7(alpha, sigma)
        pair = max(equation_7(alpha, 1.0, sigma, a, b), equation_8(alpha, 1.0, sigma, a, b))
        most = max(most, pair / bound)
    for _ in range(trials // 100):
        alpha, sigma, a, b = _random_case(rng)
        p, q = rng.uniform(0.0, 1.0, 2).tolist()
        value = renyi_by_quadrature("gaussian", alpha, p, q, sigma, [(a, b)])
        pair = max(equation_7(alpha, 1.0, sigma, a, b), equation_8(alpha, 1.0, sigma, a, b))
        inner = max(inner, (value - pair) / definition_2_7(alpha, sigma))
    orders = (2.0, 8.0, 32.0)
    rows: list[tuple[str | float, ...]] = []
    shares = []
    for a, b in ((0.0, 1.0), (0.0, 2.0), (0.0, 5.0), (0.0, 40.0), (-40.0, 41.0)):
        share = [
            max(equation_7(o, 1.0, 1.0, a, b), equation_8(o, 1.0, 1.0, a, b)) / definition_2_7(o, 1.0) for o in orders
        ]
        shares.append(share)
        rows.append((f"[{a:g}, {b:g}]", *(f"{s:.4f}" for s in share)))
    certified = [
        float(Gaussian(Interval(0, 20), scale=1.0, sensitivity=1.0).rdp(o)) / definition_2_7(o, 1.0) for o in orders
    ]
    return Finding(
        "Theorem 3.1",
        "Algorithm 1 has (α, α/2σ²)-RDP, the same as plain Gaussian noise, whatever the interval [a, b].",
        f"{trials} random α, σ and intervals, both orders: at most {most:.6f} times α/2σ². Pairs of answers inside "
        f"[0, μ] are {'never' if inner <= 1e-7 else 'sometimes'} worse than the pair (0, μ) ({trials // 100} random "
        "ones by quadrature). Our certified supremum over all pairs of [0, 20] at distance 1 is "
        f"{', '.join(f'{c:.6f}' for c in certified)} times it for α = 2, 8, 32, σ = 1.",
        "holds but loose" if most <= 1.0 + 1e-9 and inner <= 1e-7 else "fails",
        f"On a short range far less privacy is lost: on [0, μ] with σ = 1 the exact divergence is {shares[0][0]:.3f}, "
        f"{shares[0][1]:.3f} and {shares[0][2]:.3f} times the bound for α = 2, 8, 32. On wide intervals the bound is "
        "attained.",
        (
            Table(
                "Divergence of the worse order over α/2σ², μ = 1, σ = 1",
                ("[a, b]", *(f"α = {o:g}" for o in orders)),
                tuple(rows),
            ),
        ),
    )


def _theorem_3_2(rng: np.random.Generator, trials: int) -> Finding:
    most, curvature = -math.inf, -math.inf
    for _ in range(trials):
        alpha, sigma, a, b = _random_case(rng)
        bound = definition_2_7(alpha, sigma)
        for formula in (equation_7, equation_8):
            most = max(most, (formula(alpha, 1.0, sigma, a, b) - bound) * (alpha - 1.0))
        # h h'' <= h'^2 with h(x) = Φ(c(p - x)) - Φ(c(q - x)): (13), divided by h^2
        p, q = b / sigma, a / sigma
        log_h = _log_phi(q, p)
        phi_p, phi_q = (math.exp(-0.5 * t * t - log_h) / math.sqrt(2.0 * math.pi) for t in (p, q))
        curvature = max(curvature, (q * phi_q - p * phi_p) - (phi_q - phi_p) ** 2)
    return Finding(
        "Theorem 3.2",
        "The factors A and B by which truncation changes the integral are at most 1, for every interval and α ≥ 1.",
        f"{trials} random cases: ln A and ln B are {'at most 0' if most <= 1e-9 else f'up to {most:.1e}'}, and "
        f"h h'' - (h')², of inequality (13) behind the proof, is {'negative' if curvature <= 1e-9 else 'not negative'} "
        "in all of them.",
        "holds" if most <= 1e-9 and curvature <= 1e-9 else "fails",
        "It says that the mass of the interval is log-concave in the location, which follows at once from Prékopa's "
        "theorem. Slips in the proof: h is the integral of the density, not of Φ; and (12) divides by t², which is "
        "only allowed if the interval does not contain 0, but h'' > 0, the one case that needs it, implies that. (14) "
        "is used for n = 2, where it is the inequality of the means.",
    )


def _definition_3_3(rng: np.random.Generator, trials: int) -> Finding:
    excess = -math.inf
    for _ in range(trials):
        x, y = rng.uniform(0.1, 1.0, (2, int(rng.integers(1, 5))))
        first, second = (math.sqrt(float(v @ v)) * (1.0 + rng.exponential()) for v in (x, y))
        left = (first**2 - float(x @ x)) * (second**2 - float(y @ y))
        excess = max(excess, left / (first * second - float(x @ y)) ** 2 - 1.0)
    return Finding(
        "Definition 3.3 and Equation 14",
        "Aczél's inequality: (a₁² - Σaᵢ²)(b₁² - Σbᵢ²) ≤ (a₁b₁ - Σaᵢbᵢ)² where both factors on the left are positive.",
        f"{trials} random vectors of 2 to 5 entries: the left side "
        + ("never exceeds the right one." if excess <= 1e-9 else f"exceeds the right one by up to {excess:.1e}."),
        "holds" if excess <= 1e-9 else "fails",
        "A classical inequality (not a definition), used in the proof of Theorem 3.2.",
    )


def _gaussian_beyond() -> Finding:
    rows: list[tuple[str | float, ...]] = []
    whole = 0.0
    for sigma, upper, gap in ((0.5, 25, 1), (1.0, 25, 1), (1.0, 25, 5), (3.0, 25, 5), (3.0, 5, 1)):
        held = Gaussian(Integers(0, upper), scale=sigma, sensitivity=gap)
        share = [float(held.rdp(o)) / (o * gap**2 / (2.0 * sigma**2)) for o in (2.0, 8.0, 32.0)]
        whole = max(whole, *share)
        rows.append((f"whole numbers 0 to {upper}", f"{sigma:g}", f"{gap}", *(f"{s:.4f}" for s in share)))
    worst, spread, check = 0.0, 0.0, 0.0
    for hole in (1.0, 2.0, 3.0):
        pieces = [(-hole - 1.0, -hole), (-0.001, 0.001), (hole, hole + 1.0)]
        held = Gaussian(Spans(pieces), scale=1.0, sensitivity=0.002)
        share = [float(held.rdp(o)) / (o * 0.002**2 / 2.0) for o in (2.0, 8.0, 32.0)]
        worst, spread = max(worst, *share), float(held.at(0.0).var())
        rows.append((f"three spans, holes of {hole:g}", "1", "0.002", *(f"{s:.4f}" for s in share)))
        check = renyi_by_quadrature("gaussian", 8.0, -0.001, 0.001, 1.0, pieces) / (8.0 * 0.002**2 / 2.0)
    wide = [(-1.0, 0.0), (1.0, 2.0)]
    held = Gaussian(Spans(wide), scale=0.5, sensitivity=1.0)
    share = [float(held.rdp(o)) / (o / (2.0 * 0.5**2)) for o in (1.5, 2.0, 8.0)]
    return Finding(
        "Not in the paper: Theorem 3.1 for whole numbers and holes",
        "Does the same bound hold for whole numbers, and for domains with holes?",
        f"The certified supremum over all pairs at distance Δ. Whole numbers: at most {whole:.6f} times αΔ²/2σ² in the "
        f"settings shown. Holes: up to {worst:.2f} times (quadrature of the pair for α = 8 in the last row: "
        f"{check:.2f}). Two spans [-1, 0] and [1, 2] with σ = 0.5, Δ = 1, α = 1.5: {share[0]:.2f} times.",
        "fails" if worst > 1.0 else "holds",
        f"It survives on whole numbers and fails with holes. For [-4, -3] ∪ [-0.001, 0.001] ∪ [3, 4] with σ = 1 and "
        f"Δ = 0.002 the divergence is {worst:.2f} times the bound. For near answers it is about αΔ²Var/2σ⁴, where Var "
        f"is the variance of the released value: on an interval that is at most σ², here it is {spread:.2f}. With "
        "wider holes around a narrower middle the ratio grows without limit.",
        (
            Table(
                "Supremum of the divergence over αΔ²/2σ²",
                ("domain", "σ", "Δ", "α = 2", "α = 8", "α = 32"),
                tuple(rows),
            ),
        ),
    )


# ---------------------------------------------------------------- findings: section 4


def _case(which: str, rng: np.random.Generator) -> tuple[float, float, float, float]:
    """α, λ, a, b of one of the cases of Theorem 4.1, μ = 1."""
    alpha, scale, _, _ = _random_case(rng)
    low, high = sorted(rng.uniform(0.001, 0.999, 2).tolist())
    if which == "III":
        return alpha, scale, low, high
    far, width = 10.0 ** rng.uniform(-2.0, 0.5), 10.0 ** rng.uniform(-1.0, 0.5)
    return (alpha, scale, -far - width, -far) if which == "I" else (alpha, scale, 1.0 + far, 1.0 + far + width)


def _theorem_4_1(rng: np.random.Generator, trials: int) -> Finding:
    rows: list[tuple[str | float, ...]] = []
    none, most = 0.0, 0.0
    for which, condition in (("I", "a < b < 0"), ("II", "μ < a < b"), ("III", "0 < a < b < μ")):
        shares, size = [], 0.0
        for _ in range(trials):
            alpha, scale, a, b = _case(which, rng)
            p, q = (0.0, 1.0) if rng.random() < 0.7 else sorted(rng.uniform(0.0, 1.0, 2).tolist())
            if rng.random() < 0.5:
                p, q = q, p
            value = renyi_by_quadrature("laplace", alpha, p, q, scale, [(a, b)])
            shares.append(value / equation_6(alpha, 1.0, scale))
            size = max(size, abs(value))
        if which == "III":
            most = max(shares)
        else:
            none = max(none, size)
        rows.append((which, condition, f"{size:.1e}" if which != "III" else f"{size:.2f}", f"{max(shares):.4f}"))
    return Finding(
        "Theorem 4.1",
        "Algorithm 2 has the Rényi privacy of plain Laplace noise if a < b < 0, or μ < a < b, or 0 < a < b < μ.",
        f"{trials} random α, λ, intervals and pairs in each case, by quadrature. The largest divergence is {none:.0e} "
        f"in the first two cases, that is none; in the third it is at most {most:.3f} times that of plain noise.",
        "holds but loose" if none < 1e-8 and most <= 1.0 + 1e-9 else "fails",
        "True, and of little use: none of its intervals contains both 0 and μ, although true answers are anywhere in "
        "[0, μ]. In the first two cases the output does not depend on the data at all: the density on [a, b] is "
        "proportional to exp(x/λ) or exp(-x/λ) whatever the answer is. For intervals that contain the answers see "
        "below.",
        (
            Table(
                "Largest divergence found, μ = 1",
                ("case", "interval", "divergence", "over that of plain noise"),
                tuple(rows),
            ),
        ),
    )


def _equations_15_and_16(rng: np.random.Generator, trials: int) -> list[Finding]:
    gap_15 = gap_16 = 0.0
    for _ in range(trials):
        alpha, scale, a, b = _random_case(rng)
        value = renyi_by_quadrature("laplace", alpha, 0.0, 1.0, scale, [(a, b)])
        gap_15 = max(gap_15, abs(equation_15(alpha, 1.0, scale, a, b) - value))
        value = renyi_by_quadrature("laplace", alpha, 1.0, 0.0, scale, [(a, b)])
        gap_16 = max(gap_16, abs(equation_16(alpha, 1.0, scale, a, b) - value))
    mechanism = Laplace(Interval(0, 2), scale=1.0, sensitivity=1.0)
    right = mechanism.pair_rdp(1.0, 0.0, 2.0)
    printed = equation_16(2.0, 1.0, 1.0, 0.0, 2.0, printed=True)
    corrected = equation_16(2.0, 1.0, 1.0, 0.0, 2.0)
    return [
        Finding(
            "Equation 15",
            "The divergence of the truncated Laplace distribution at 0 against at μ, as integrals.",
            f"{trials} random cases: the last line agrees with the definition to {gap_15:.0e}.",
            "holds" if gap_15 < 1e-7 else "fails",
            "In the normalisers x stands for the variable of integration t.",
        ),
        Finding(
            "Equation 16",
            "The same for the other order, with the exponent -(1 - α)|x| + α|x|.",
            f"λ = 1, μ = 1, [0, 2], α = 2: as printed {printed:.4f}; the divergence is {right:.4f}. With the exponent "
            f"-(1 - α)|x| - α|x - μ| the formula gives {corrected:.4f}, and agrees with the definition to {gap_16:.0e} "
            f"in {trials} random cases.",
            "fails" if abs(printed - right) > 1e-6 else "holds",
            f"A misprint: {printed:.4f} instead of {right:.4f} in this example. Nothing that follows uses the wrong "
            "exponent.",
        ),
    ]


def _equations_17_to_20(rng: np.random.Generator, trials: int) -> list[Finding]:
    largest = {"I": 0.0, "II": 0.0}
    spread = {"I": 0.0, "II": 0.0}
    for which, _ in itertools.product(("I", "II"), range(trials)):
        alpha, scale, a, b = _case(which, rng)
        for p, q in ((0.0, 1.0), (1.0, 0.0)):
            value = renyi_by_quadrature("laplace", alpha, p, q, scale, [(a, b)])
            largest[which] = max(largest[which], abs(value))
        x = np.linspace(a, b, 9)
        densities = [-np.abs(x - q) / scale - _log_laplace(q, scale, a, b) for q in (0.0, 0.3, 1.0)]
        spread[which] = max(spread[which], float(np.max(np.ptp(np.stack(densities), axis=0))))
    out = []
    for item, which, where, note in (
        ("Equations 17 and 18", "I", "below 0", "In (17) the second location is written 1 for μ."),
        (
            "Equations 19 and 20",
            "II",
            "above μ",
            "In (19) exp(-b/λ) - exp(-a/λ) has the wrong sign, three times: its powers α and 1 - α are powers of a "
            "negative number. The signs cancel formally, and the result is right.",
        ),
    ):
        out.append(
            Finding(
                item,
                f"For an interval {where} both divergences are ln 1/(α - 1) = 0.",
                f"{trials} random cases: at most {largest[which]:.0e} by quadrature. The log-densities for the answers "
                f"0, 0.3 and μ differ by at most {spread[which]:.0e} anywhere.",
                "holds" if largest[which] < 1e-8 else "fails",
                f"The output does not depend on the data at all. {note}",
            )
        )
    return out


def _equations_21_to_23(rng: np.random.Generator, trials: int) -> list[Finding]:
    gap = 0.0
    for _ in range(trials):
        alpha, scale, a, b = _case("III", rng)
        closed = math.log(equation_22(alpha, scale, a, b)) / (alpha - 1.0)
        for p, q in ((0.0, 1.0), (1.0, 0.0)):
            value = renyi_by_quadrature("laplace", alpha, p, q, scale, [(a, b)])
            gap = max(gap, abs(closed - value))
    alpha, scale, a, b = 2.0, 1.0, 0.2, 0.8
    lines = equation_21(alpha, 1.0, scale, a, b)
    right = math.exp((alpha - 1.0) * renyi_by_quadrature("laplace", alpha, 0.0, 1.0, scale, [(a, b)]))
    printed, corrected = equation_22(alpha, scale, a, b, printed=True), equation_22(alpha, scale, a, b)
    held = math.exp((alpha - 1.0) * Laplace(Interval(a, b), scale=scale, sensitivity=b - a).pair_rdp(a, b, alpha))
    example = "α = 2, μ = λ = 1, [0.2, 0.8]"
    table = Table(
        f"What stands under the logarithm, {example}",
        ("formula", "value"),
        (
            ("the definition, by quadrature", f"{right:.6f}"),
            *((f"(21), line {i}, as printed", f"{v:.6f}") for i, v in enumerate(lines, start=1)),
            ("(22) and (23), last line, as printed", f"{printed:.6f}"),
            ("(22) and (23), corrected", f"{corrected:.6f}"),
            ("this package, pair (a, b)", f"{held:.6f}"),
        ),
    )
    good = all(abs(v / right - 1.0) < 1e-8 for v in lines[:3])
    return [
        Finding(
            "Equation 21",
            "For 0 < a < b < μ, the divergence at 0 against at μ in four steps.",
            f"The four lines for {example}: {', '.join(f'{v:.4f}' for v in lines)}; the value is {right:.4f}.",
            "holds" if good and abs(lines[3] / right - 1.0) < 1e-8 else "fails",
            f"Three lines are right, the last has 1/(1 - 2α) for 1/(2α - 1): {lines[3]:.4f} under the logarithm "
            f"instead of {right:.4f}.",
            (table,),
        ),
        Finding(
            "Equation 22",
            "The same with x₁ = exp(-b/λ), x₂ = exp(-a/λ), as a geometric sum and in closed form.",
            f"As printed {printed:.4f} for {example}; with 1/(2α - 1) and exp(-(1 - α)(b - a)/λ) it is "
            f"{corrected:.4f}, and agrees with quadrature to {gap:.0e} in the divergence for {trials} random cases.",
            "fails" if abs(printed / right - 1.0) > 1e-6 else "holds",
            "Two slips: 1/(1 - 2α) should be 1/(2α - 1), and (1 - a) in the exponent (1 - α). The sum needs 2α whole; "
            "the closed form holds for every α > 1.",
        ),
        Finding(
            "Equation 23",
            "The other order has the same value.",
            f"By quadrature, both orders agree with the corrected closed form to {gap:.0e} in {trials} random cases.",
            "fails" if abs(printed / right - 1.0) > 1e-6 else "holds",
            "The two orders do agree, by symmetry; the slips are those of (22).",
        ),
    ]


def _theorems_4_2_to_4_4(rng: np.random.Generator, trials: int) -> list[Finding]:
    least, most = math.inf, 0.0
    for _ in range(trials):
        alpha, scale, _, _ = _random_case(rng)
        least = min(least, (alpha - 1.0) * equation_6(alpha, 1.0, scale))
        left, right = theorem_4_3_sides(alpha, scale, rng.uniform(0.001, 1.0))
        most = max(most, left / right)
    left, right = theorem_4_3_sides(2.0, 1.0, 8.0)
    functions: tuple[Callable[[float], float], ...] = (math.exp, math.sinh, math.tan, lambda x: x**3 + 0.1 * x)
    excess = -math.inf
    for _ in range(trials):
        f = functions[int(rng.integers(len(functions)))]
        sign = 1.0 if rng.random() < 0.5 else -1.0
        low, high = sorted(rng.uniform(-1.4, 1.4, 2).tolist())
        step = rng.uniform(0.0, 0.499) * (high - low)
        inner, outer = ((low + step, high - step), (low, high))
        slopes = [abs(sign * (f(v) - f(u)) / (v - u)) for u, v in (inner, outer)]
        excess = max(excess, slopes[0] / slopes[1] - 1.0)
    return [
        Finding(
            "Theorem 4.2",
            "The expression under the logarithm of (6) is at least 1.",
            f"{trials} random α and λ, μ = 1: its logarithm is at least {least:.4f}.",
            "holds" if least >= -1e-12 else "fails",
            "Jensen's inequality, or: a Rényi divergence is not negative.",
        ),
        Finding(
            "Theorem 4.3",
            "For b > a > μ, [exp((α-1)(b-a)/λ) - exp(-α(b-a)/λ)]/[1 - exp(-(b-a)/λ)] ≤ "
            "α exp((α-1)/λ) + (α-1) exp(-α/λ).",
            f"As printed: a = 2, b = 10, μ = λ = 1, α = 2 gives {left:.1f} on the left and {right:.3f} on the right. "
            f"With b - a ≤ μ, and μ/λ for 1/λ on the right: {trials} random cases, the left side is at most {most:.4f} "
            "times the right one.",
            "fails" if left > right else "holds",
            f"The condition is misprinted: {left:.1f} > {right:.3f} for a = 2, b = 10. The proof needs b - a < μ, "
            "which case III of Theorem 4.1 has, and under it the theorem holds. In the proof, h'' stands for h'''.",
        ),
        Finding(
            "Theorem 4.4",
            "If f' f''' > 0, the secant of an interval is flatter than that of a wider one with the same middle.",
            f"{trials} random pairs of intervals for exp, sinh, tan, x³ + 0.1x and their negatives: the inner slope "
            + ("never exceeds the outer one." if excess <= 1e-9 else f"exceeds the outer one by up to {excess:.1e}."),
            "holds" if excess <= 1e-9 else "fails",
            "|f'| is convex, so its mean over the inner interval is at most that over the outer one. In (34) one > "
            "should be <.",
        ),
    ]


def _same_rdp(quick: bool) -> Finding:
    orders = (2.0, 8.0, 32.0, 128.0)
    rows: list[tuple[str | float, ...]] = []
    ratios: dict[tuple[float, float], tuple[float, float]] = {}
    gap = 0.0
    for scale in (1.0, 3.0):
        held = Laplace(Interval(0, 20), scale=scale, sensitivity=1.0)
        for order in orders:
            plain = equation_6(order, 1.0, scale)
            pair = max(held.pair_rdp(0.0, 1.0, order), held.pair_rdp(1.0, 0.0, order))
            by_hand = renyi_by_quadrature("laplace", order, 0.0, 1.0, scale, [(0.0, 20.0)])
            gap = max(gap, abs(held.pair_rdp(0.0, 1.0, order) - by_hand) / by_hand)
            ratios[scale, order] = pair / plain, float(held.rdp(order)) / plain
            rows.append((f"{scale:g}", f"{order:g}", plain, *(f"{r:.3f}" for r in ratios[scale, order])))
    count = 25 if quick else 81
    # how far the interval reaches beyond [0, μ] on either side
    reach = np.linspace(0.0, 6.0, count)
    surface = np.empty((count, count))
    for i, j in itertools.product(range(count), range(count)):
        held = Laplace(Interval(-float(reach[i]), 1.0 + float(reach[j])), scale=1.0, sensitivity=1.0)
        surface[i, j] = held.pair_rdp(0.0, 1.0, 32.0) / equation_6(32.0, 1.0, 1.0)
    ends = 1.0 + np.geomspace(0.05, 60.0, 15 if quick else 60)
    lines = {
        (scale, order): [
            Laplace(Interval(0, float(end)), scale=scale, sensitivity=1.0).pair_rdp(0.0, 1.0, order)
            / equation_6(order, 1.0, scale)
            for end in ends.tolist()
        ]
        for scale, order in itertools.product((1.0, 3.0), (8.0, 32.0))
    }

    def draw(canvas: Canvas) -> None:
        canvas.set_size_inches(9.4, 4.2)
        left, right = canvas.subplots(1, 2, width_ratios=(1.0, 1.1))
        for ((scale, order), values), colour in zip(lines.items(), COLOURS, strict=False):
            left.plot(ends, values, label=f"λ = {scale:g}, α = {order:g}", color=colour)
        left.axhline(1.0, color="black", linestyle="--", linewidth=1.0)
        left.text(ends[-1], 1.02, "plain noise", ha="right", va="bottom", fontsize=8.5)
        left.set(xscale="log", ylim=(0.0, 1.6), xlabel="b, for the interval [0, b]", title="pair (0, μ), μ = 1")
        left.set_ylabel("divergence / that of plain noise")
        left.xaxis.set_major_formatter("{x:g}")
        left.legend(loc="lower right", fontsize=8.5)
        shown = right.contourf(reach, reach, surface, levels=np.linspace(0.5, 1.5, 11), cmap="RdBu_r", extend="both")
        right.contour(reach, reach, surface, levels=[1.0], colors="black", linewidths=1.0)
        right.plot(reach, reach, color="black", linestyle=":", linewidth=1.0)
        right.set(xlabel="b - μ", ylabel="-a", title="λ = 1, α = 32: above 1 the claim fails")
        right.grid(visible=False)
        canvas.colorbar(shown, ax=right)

    short, long = ratios[1.0, 32.0], ratios[3.0, 32.0]
    return Finding(
        "Abstract: the same RDP for intervals that contain the answers",
        "The truncated Laplace mechanism keeps the Rényi privacy of plain noise for specified intervals. Which ones, "
        "the abstract does not say; here it is read for those that contain the answers, a ≤ 0 and b ≥ μ, which Theorem "
        "4.1 leaves out.",
        f"The exact divergence on [0, 20] with μ = 1, for the pair (0, μ) (the worse order; quadrature agrees to "
        f"{gap:.0e}) and certified over all pairs at distance 1.",
        "fails" if short[0] > 1.0 else "holds",
        f"Truncation costs Rényi privacy. λ = 1, α = 32: {short[0]:.2f} times the divergence of plain noise; λ = 3: "
        f"{long[0]:.2f} times for the pair (0, μ), {long[1]:.2f} times over all pairs. For small orders the pair at "
        "the wall loses less than plain noise, a pair farther inside not. The exact value has to be computed.",
        (
            Table(
                "Divergence on [0, 20] over that of plain Laplace noise, μ = 1",
                ("λ", "α", "plain noise", "pair (0, μ)", "all pairs"),
                tuple(rows),
            ),
        ),
        (
            Figure(
                "fu-same-rdp",
                "Divergence of the truncated Laplace mechanism over that of plain noise, at 0 against at μ. Right: by "
                "how far the interval reaches beyond [0, μ] on either side; dotted: intervals symmetric about μ/2. The "
                "other order is the mirror image: off the dotted line, one of the two is above 1 nearly everywhere.",
                draw,
            ),
        ),
    )


def _symmetric(rng: np.random.Generator, trials: int) -> Finding:
    most, check = 0.0, 0.0
    for i in range(trials):
        alpha, scale, _, width = _random_case(rng)
        reach = abs(width)
        held = Laplace(Interval(-reach, 1.0 + reach), scale=scale, sensitivity=1.0)
        value = max(held.pair_rdp(0.0, 1.0, alpha), held.pair_rdp(1.0, 0.0, alpha))
        most = max(most, value / equation_6(alpha, 1.0, scale))
        if i < 20:
            by_hand = renyi_by_quadrature("laplace", alpha, 0.0, 1.0, scale, [(-reach, 1.0 + reach)])
            check = max(check, abs(by_hand / value - 1.0))
    return Finding(
        "Not in the paper: intervals symmetric about μ/2",
        "Where, then, is Rényi privacy the same? For [a, b] that contains [0, μ] and is symmetric about μ/2.",
        f"{trials} random α, λ and symmetric intervals: the divergence of the pair (0, μ) is at most {most:.6f} times "
        f"that of plain noise (quadrature agrees to {check:.0e}).",
        "holds" if most <= 1.0 + 1e-9 else "fails",
        "Both answers then have the same normaliser, and the ratio of two affine functions of the mass of a tail is "
        "monotone. It holds for the pair (0, μ), the worst one if answers are clipped to [0, μ].",
    )


def _laplace_beyond() -> Finding:
    rows: list[tuple[str | float, ...]] = []
    most = 0.0
    orders = (2.0, 8.0, 32.0)
    for domain, name, gap in (
        (Integers(0, 20), "whole numbers 0 to 20", 1.0),
        (Integers(0, 20), "whole numbers 0 to 20", 5.0),
        (Spans([(0, 1), (2, 3)]), "[0, 1] ∪ [2, 3]", 0.5),
        (Spans([(0, 1), (2, 3)]), "[0, 1] ∪ [2, 3]", 1.5),
    ):
        for scale in (1.0, 3.0):
            held = Laplace(domain, scale=scale, sensitivity=gap)
            plain = Laplace(domain, scale=scale, sensitivity=gap, edges="ignore")
            share = [float(held.rdp(o)) / float(plain.rdp(o)) for o in orders]
            most = max(most, *share)
            rows.append((name, f"{gap:g}", f"{scale:g}", *(f"{s:.3f}" for s in share)))
    return Finding(
        "Not in the paper: the same RDP for whole numbers and holes",
        "Is the Rényi privacy of Laplace noise the same for whole numbers, and for domains with holes?",
        "The certified supremum over all pairs at distance Δ, against plain noise (on whole numbers: plain discrete "
        "Laplace noise).",
        "fails" if most > 1.0 + 1e-6 else "holds",
        f"No: up to {most:.2f} times the divergence of plain noise in the settings shown.",
        (
            Table(
                "Supremum of the divergence over that of plain noise",
                ("domain", "Δ", "λ", *(f"α = {o:g}" for o in orders)),
                tuple(rows),
            ),
        ),
    )


def findings(progress: Callable[[str], None], quick: bool = False) -> list[Finding]:
    """Every claim of the paper with its verdict, in its order."""
    rng = np.random.default_rng(2023)
    trials = 25 if quick else 150
    steps = Steps(progress)
    add = steps.add
    add("Introduction", lambda: _introduction(rng, 4 * trials))
    add("Lemmas 2.3 and 2.6", lambda: [_lemma_2_3(), _lemma_2_6()])
    add("Definitions 2.7 and 2.8", _definitions)
    add("Algorithm 1", lambda: _algorithm("gaussian", rng, 20_000 if quick else 200_000))
    add("Figure 1", lambda: _before_and_after("gaussian"))
    add("Equations 7 and 8", lambda: _equations_7_and_8(rng, 2 * trials))
    add("Theorem 3.1", lambda: _theorem_3_1(rng, quick))
    add("Theorem 3.2", lambda: _theorem_3_2(rng, 100 * trials))
    add("Definition 3.3", lambda: _definition_3_3(rng, 100 * trials))
    add("Whole numbers and holes, Gaussian", _gaussian_beyond)
    add("Algorithm 2", lambda: _algorithm("laplace", rng, 20_000 if quick else 200_000))
    add("Figure 2", lambda: _before_and_after("laplace"))
    add("Theorem 4.1", lambda: _theorem_4_1(rng, 2 * trials))
    add("Equations 15 and 16", lambda: _equations_15_and_16(rng, trials))
    add("Equations 17 to 20", lambda: _equations_17_to_20(rng, trials))
    add("Equations 21 to 23", lambda: _equations_21_to_23(rng, trials))
    add("Theorems 4.2 to 4.4", lambda: _theorems_4_2_to_4_4(rng, 100 * trials))
    add("Abstract: the same RDP", lambda: _same_rdp(quick))
    add("Symmetric intervals", lambda: _symmetric(rng, 4 * trials))
    add("Whole numbers and holes, Laplace", _laplace_beyond)
    return steps.found
