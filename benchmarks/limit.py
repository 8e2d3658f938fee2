"""How near mechanisms come to the least possible error: that of the linear program, or a bound where it is too large.

Not a timing: exact errors, so that the table does not depend on the machine.
"""

from __future__ import annotations

import math
from typing import Any

import inbounds as ib
from benchmarks.report import QUICK, machine, progress, table, write
from inbounds.advice import Comparison, Entry, denoised_staircase
from inbounds.inference.risk import risk

RANGE = ib.Integers(0, 30)
ROWS: tuple[tuple[int, float], ...] = (
    ((1, 1.0), (30, 4.0))
    if QUICK
    else ((1, 0.1), (1, 1.0), (5, 0.3), (5, 1.0), (10, 3.0), (15, 1.0), (30, 1.0), (30, 4.0))
)
SHOWN = (
    "truncated Laplace",
    "truncated Gaussian",
    "clamped Laplace",
    "clamped staircase",
    "plain Laplace, denoised",
    "staircase, denoised",
    "truncated Laplace, denoised",
    "truncated Gaussian, denoised",
)
#: range over sensitivity, too large for the program
LARGE = ((100, 0.1), (100, 1.0), (1000, 0.1), (1000, 1.0), (1000, 4.0), (10_000, 0.1), (10_000, 1.0), (10_000, 4.0))
#: last whole number, sensitivity, epsilon, delta
APPROXIMATE = ((20, 1, 0.5, 1e-3), (20, 5, 1.0, 1e-3), (20, 20, 1.0, 1e-2))


def main() -> list[str]:
    small = [at_limit(change, epsilon) for change, epsilon in ROWS]
    large = [at_bound(ratio, epsilon) for ratio, epsilon in (LARGE[:1] if QUICK else LARGE)]
    approximate = [with_delta(*setting) for setting in (APPROXIMATE[:1] if QUICK else APPROXIMATE)]
    data = {"machine": machine(), "program": small, "bound": large, "delta": approximate}
    return write("limit", render(data), data)


def mse(entry: Entry) -> tuple[float, float]:
    """Mean squared error: average over the domain, and at the worst true value."""
    average = math.nan if entry.average is None else entry.average.rmse**2
    return average, entry.worst.rmse**2


def at_limit(change: int, epsilon: float) -> dict[str, Any]:
    """Whole numbers 0..30: ratios to the program's optimum, average and worst; fractions denoised without rounding."""
    progress(f"0..30, sensitivity {change}, epsilon {epsilon}")
    asked = {"sensitivity": change, "epsilon": epsilon}
    average = ib.compare(RANGE, **asked, criterion="average")
    worst = ib.compare(RANGE, **asked, criterion="worst")
    best = (limit(average), limit(worst))
    ratios = {
        name: [size / bound for size, bound in zip(mse(average[name]), best, strict=True)]
        for name in SHOWN
        if name in {entry.name for entry in average}
    }
    fractions = {
        "plain Laplace": ib.Laplace.calibrate(RANGE, **asked, edges="ignore").denoised(),
        "staircase": denoised_staircase(RANGE, **asked),
        "truncated Laplace": ib.Laplace.calibrate(RANGE, **asked).denoised(),
        "truncated Gaussian": ib.Gaussian.calibrate(RANGE, **asked).denoised(),
    }
    unrounded = {name: float(risk(mechanism).mse) / best[0] for name, mechanism in fractions.items()}
    chosen = {by: ib.recommend(RANGE, **asked, criterion=by) for by in ("average", "worst")}
    return {
        "sensitivity": change,
        "epsilon": epsilon,
        "optimum": best,
        "ratios": ratios,
        "unrounded": unrounded,
        "recommended": {
            by: {"name": r.name, "ratio": r.comparison.ratio(r.entry), "reason": r.reason} for by, r in chosen.items()
        },
    }


def limit(found: Comparison) -> float:
    return math.nan if found.limit is None else found.limit.value


def at_bound(ratio: int, epsilon: float) -> dict[str, Any]:
    """An interval as long as ``ratio`` sensitivities: the recommendation against a lower bound."""
    progress(f"range / sensitivity {ratio}, epsilon {epsilon}")
    found = ib.recommend(ib.Interval(0, ratio), sensitivity=1, epsilon=epsilon, optimum=False)
    bound = ib.optimal_bound(ib.Interval(0, ratio), sensitivity=1, epsilon=epsilon)
    size = mse(found.entry)[0]
    clamped = mse(found.comparison["clamped Laplace"])[0]
    return {
        "ratio": ratio,
        "epsilon": epsilon,
        "bound": bound,
        "name": found.name,
        "mse": size,
        "over": size / bound,
        "clamped": clamped / bound,
    }


def with_delta(last: int, change: int, epsilon: float, delta: float) -> dict[str, Any]:
    """The optimum with delta against truncated Gaussian noise, and plain Gaussian noise that is then clamped."""
    progress(f"0..{last}, sensitivity {change}, epsilon {epsilon}, delta {delta}")
    domain = ib.Integers(0, last)
    found = ib.compare(domain, sensitivity=change, epsilon=epsilon, delta=delta)
    best = limit(found)
    names = ("truncated Gaussian", "clamped Gaussian", "truncated Gaussian, denoised", "clamped bounded-noise Laplace")
    return {
        "last": last,
        "sensitivity": change,
        "epsilon": epsilon,
        "delta": delta,
        "optimum": best,
        "ratios": {name: mse(found[name])[0] / best for name in names},
        "best": {"name": found.entries[0].name, "ratio": mse(found.entries[0])[0] / best},
    }


def render(data: dict[str, Any]) -> str:
    first = [
        [
            f"{r['sensitivity']}, {r['epsilon']:g}",
            f"{r['optimum'][0]:.4g}, {r['optimum'][1]:.4g}",
            *(", ".join(f"{x:.2f}" for x in r["ratios"][name]) for name in SHOWN),
        ]
        for r in data["program"]
    ]
    second = [
        [f"{r['sensitivity']}, {r['epsilon']:g}", *(f"{x:.3f}" for x in r["unrounded"].values())]
        for r in data["program"]
    ]
    third = [
        [
            f"{r['sensitivity']}, {r['epsilon']:g}",
            *(cell for by in ("average", "worst") for cell in _chosen(r["recommended"][by])),
        ]
        for r in data["program"]
    ]
    fourth = [
        [f"{r['ratio']}, {r['epsilon']:g}", r["name"], f"{r['mse']:.4g}", f"{r['over']:.3f}", f"{r['clamped']:.3f}"]
        for r in data["bound"]
    ]
    fifth = [
        [
            f"0..{r['last']}, {r['sensitivity']}, {r['epsilon']:g}, {r['delta']:g}",
            f"{r['optimum']:.4g}",
            *(f"{x:.2f}" for x in r["ratios"].values()),
            f"{r['best']['name']} {r['best']['ratio']:.3f}",
        ]
        for r in data["delta"]
    ]
    names = list(data["delta"][0]["ratios"])
    fractions = [f"{name} + posterior mean" for name in data["program"][0]["unrounded"]]
    return f"""# How near to the least possible error

Ratios are of the mean squared error (MSE) over the least possible one, exactly: nothing is drawn. Whole numbers 0..30
unless said otherwise. The optimum is that of the linear program. Denoised mechanisms answer whole numbers here.

## Ratios: average over the true value, worst true value

{table(["sensitivity, ε", "optimum (MSE)", *SHOWN], first)}

## Without rounding to whole numbers

Average only. Below 1 where a fraction may be answered and the program may not. The staircase's first stair is made for
the error after denoising.

{table(["sensitivity, ε", *fractions], second)}

## What is recommended

All rows answer whole numbers. The ratio is that of the recommended mechanism for its criterion.

{table(["sensitivity, ε", "for the average", "ratio", "for the worst case", "ratio"], third, left=2)}

## Too large for the program

Intervals; the ratio is to a proven lower bound (docs/proofs/optimal.md), so that the true one is smaller.

{table(["range / sensitivity, ε", "recommended", "MSE", "over the bound", "clamped Laplace"], fourth, left=2)}

## With δ

{table(["range, sensitivity, ε, δ", "optimum (MSE)", *names, "best"], fifth)}
"""


def _chosen(r: dict[str, Any]) -> tuple[str, str]:
    return r["name"], f"{r['ratio']:.3f}"
