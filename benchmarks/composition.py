"""What many releases cost together: truncated noise beside plain noise, and plain noise beside dp-accounting."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

import inbounds as ib
from benchmarks.report import QUICK, duration, machine, progress, table, write
from inbounds.convolution import Convolution
from inbounds.events import single

DELTA = 1e-6
COUNTS = (1, 2) if QUICK else (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
SENSITIVITIES = (0.1, 0.5, 1.0)
UNIT = ib.Interval(0, 1)
BINS = 2000
PLACES = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5)  # of the lower of two true values, in what the sensitivity leaves
PLAIN = [(family, scale) for family in ("laplace", "gaussian") for scale in (1.0, 8.0)]
PLAIN_COUNTS = (1, 10) if QUICK else (1, 10, 1000)


def main() -> list[str]:
    """Measure everything and write the tables."""
    data = {
        "machine": machine(),
        "delta": DELTA,
        "truncated": [row for case in cases() for row in truncated(*case)],
        "plain": [beside_peer(family, scale, k) for family, scale in PLAIN for k in PLAIN_COUNTS],
    }
    return write("composition", render(data), data)


# ---------------------------------------------------------------- truncated Gaussian noise


def cases() -> list[tuple[float, str, float]]:
    """(sensitivity, what the scale is, scale): what epsilon = 1 needs once, for truncated and for plain noise."""
    found = []
    for change in SENSITIVITIES:
        for edges in ("truncate", "ignore"):
            once = ib.Gaussian.calibrate(UNIT, sensitivity=change, epsilon=1.0, delta=DELTA, edges=edges)
            found.append((change, "truncated" if edges == "truncate" else "plain", once.scale))
    return found


def truncated(change: float, target: str, scale: float) -> list[dict[str, Any]]:
    ours = ib.Gaussian(UNIT, scale=scale, sensitivity=change)
    start = time.process_time()
    starts = sorted({share * (1.0 - change) for share in PLACES})
    laws = [fixed_pair(ours, pair) for q in starts for pair in ((q, q + change), (q + change, q))]
    rows = []
    for k in COUNTS:
        found = ours.event(k).guarantee().epsilon(DELTA)
        noise = ib.Gaussian(UNIT, scale=scale / math.sqrt(k), sensitivity=change, edges="ignore").epsilon(DELTA)
        least = max((law.self_compose(k) if k > 1 else law).get_epsilon_for_delta(DELTA) for law in laws)
        pure = ours.event(k).guarantee().epsilon()
        rows.append(
            {
                "sensitivity": change,
                "scale_for": target,
                "scale": scale,
                "k": k,
                "truncated": float(found),
                "method": found.reason,
                "pure": float(pure),
                "plain": float(noise),
                "fixed_pair": float(least),
            }
        )
    progress(f"sensitivity {change:g}, scale {scale:.4g}: {duration(time.process_time() - start)}")
    return rows


def fixed_pair(mechanism: ib.Gaussian, pair: tuple[float, float]) -> Any:
    """The losses of one pair of true values, of outputs in bins, rounded down: what composes to a lower bound."""
    from dp_accounting.pld.privacy_loss_distribution import from_two_probability_mass_functions

    cuts = np.linspace(0.0, 1.0, BINS + 1)
    logs = [
        dict(enumerate(np.log(np.diff(np.asarray(mechanism.at(x).cdf(cuts)))).tolist()))
        for x in np.minimum(pair, 1.0).tolist()
    ]
    top = max(abs(a - b) for a, b in zip(logs[0].values(), logs[1].values(), strict=True))
    return from_two_probability_mass_functions(
        logs[1], logs[0], pessimistic_estimate=False, value_discretization_interval=top / 2000
    )


# ---------------------------------------------------------------- plain noise


def beside_peer(family: str, scale: float, k: int) -> dict[str, Any]:
    """Numerical composition of plain noise, sensitivity 1, by us and by dp-accounting from above and below."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    make = {"laplace": pld.from_laplace_mechanism, "gaussian": pld.from_gaussian_mechanism}[family]
    kind = {"laplace": ib.Laplace, "gaussian": ib.Gaussian}[family]
    mechanism = kind(UNIT, scale=scale, sensitivity=1.0, edges="ignore")
    start = time.process_time()
    ours = Convolution([(single(mechanism.event()).atoms, k)]).epsilon(DELTA)
    our_time = time.process_time() - start
    interval = 1e-3 if k >= 1000 and scale < 2 else 1e-4
    theirs = {}
    for name, pessimistic in (("above", True), ("below", False)):
        start = time.process_time()
        law = make(
            scale,
            1.0,
            value_discretization_interval=interval,
            pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
        )
        theirs[name] = (law.self_compose(k) if k > 1 else law).get_epsilon_for_delta(DELTA)
        theirs[f"{name}_cpu"] = time.process_time() - start
    best = mechanism.event(k).guarantee().epsilon(DELTA)
    progress(f"{family}, scale {scale:g}, {k}: {ours:.6g}, dp-accounting {theirs['above']:.6g}")
    return {
        "family": family,
        "scale": scale,
        "k": k,
        "ours": ours,
        "ours_cpu": our_time,
        "best": float(best),
        "method": best.reason,
        "interval": interval,
        **{name: float(value) for name, value in theirs.items()},
    }


# ---------------------------------------------------------------- the text


def render(data: dict[str, Any]) -> str:
    parts = [
        "# Composition: what many releases cost together",
        f"Epsilon at delta = {data['delta']:g} of k releases. Every number of ours is a proven upper bound.",
        "## Truncated Gaussian noise on [0, 1] beside plain Gaussian noise of the same scale",
        "*truncated*: exact curves, composed by the method that gives least. *plain*: the analytic Gaussian mechanism, "
        "exact. *ratio*: truncated over plain. *fixed pair*: the worst of a dozen pairs of true values, composed "
        "optimistically by dp-accounting: no truth is below it. *sum*: of the pure losses. The scales are those that "
        "one release with epsilon = 1 needs, truncated or plain.",
    ]
    for change in SENSITIVITIES:
        for target in ("truncated", "plain"):
            rows = [r for r in data["truncated"] if (r["sensitivity"], r["scale_for"]) == (change, target)]
            parts.append(f"### Sensitivity {change:g}, sigma = {rows[0]['scale']:.4g} (epsilon = 1 once, {target})")
            cells = [
                [
                    str(r["k"]),
                    f"{r['truncated']:.4g}",
                    f"{r['plain']:.4g}",
                    f"{r['truncated'] / r['plain']:.3f}",
                    f"{r['fixed_pair']:.4g}",
                    f"{r['pure']:.4g}",
                    r["method"],
                ]
                for r in rows
            ]
            parts.append(table(("k", "truncated", "plain", "ratio", "fixed pair", "sum", "method"), cells, left=0))
    parts += [
        "## Plain noise beside dp-accounting",
        'Sensitivity 1. *ours*: numerical composition; *least*: of all our methods. dp-accounting: "connect the dots" '
        "from above, and its optimistic estimate from below. *gap*: ours over theirs from above, less 1. Times are "
        "processor times, building the law of one release included.",
    ]
    cells = [
        [
            r["family"],
            f"{r['scale']:g}",
            str(r["k"]),
            f"{r['ours']:.7g}",
            f"{r['best']:.7g}",
            f"{r['above']:.7g}",
            f"{r['below']:.7g}",
            f"{r['ours'] / r['above'] - 1:+.1e}",
            duration(r["ours_cpu"]),
            duration(r["above_cpu"]),
        ]
        for r in data["plain"]
    ]
    header = ("noise", "scale", "k", "ours", "least", "theirs, above", "below", "gap", "our time", "theirs")
    parts.append(table(header, cells, left=1))
    return "\n\n".join(parts) + "\n"
