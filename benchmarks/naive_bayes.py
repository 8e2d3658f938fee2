"""How well private naive Bayes classifies, over epsilon, beside diffprivlib's: Iris, Wine and Digits.

Every fit is on another random split, the same for all models. ``BENCH_QUICK=1`` in the environment shortens it, for a
trial; the tables then go to ``build/benchmarks``.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import sklearn  # type: ignore[import-untyped]
from sklearn.datasets import load_digits, load_iris, load_wine  # type: ignore[import-untyped]
from sklearn.naive_bayes import GaussianNB as PlainNB  # type: ignore[import-untyped]

from benchmarks import peers
from benchmarks.report import QUICK, duration, machine, progress, table, write
from inbounds.learn import GaussianNB

FITS = dict.fromkeys(("Iris", "Wine", "Digits"), 5) if QUICK else {"Iris": 300, "Wine": 200, "Digits": 100}
EPSILONS = (0.1, 1.0, 10.0) if QUICK else (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
TEST = 0.2  # of the rows

#: Bounds someone who knows the subject, but not these rows, could state. The same for all models.
DATA: dict[str, tuple[Any, Any, Any]] = {
    "Iris": (load_iris, (4, 2, 1, 0), (8, 4.5, 7, 2.5)),
    "Wine": (
        load_wine,
        (11, 0.5, 1, 10, 70, 0.5, 0, 0, 0, 1, 0.4, 1, 250),
        (15, 6, 3.5, 30, 170, 4, 5.5, 0.7, 4, 13, 2, 4, 1700),
    ),
    "Digits": (load_digits, (0,) * 64, (16,) * 64),
}

RAW = {"denoise": False, "var_smoothing": 1e-9}
MODELS: dict[str, dict[str, Any]] = {
    "ours": {},
    "ours, substitute": {"neighbours": "substitute"},
    "clamped": {"edges": "clamp"},
    "truncated, as released": {"edges": "truncate", **RAW},
    "clamped, as released": {"edges": "clamp", **RAW},
}
PEER = "diffprivlib"


def main() -> list[str]:
    """Score everything and write the tables."""
    with ProcessPoolExecutor(max_workers=2) as pool:  # accuracy is measured, not speed; the longest first
        found = {name: pool.submit(score_set, name) for name in reversed(DATA)}
        sets = [found[name].result() for name in DATA]
    data = {
        "machine": {**machine(), "scikit-learn": sklearn.__version__},
        "fits": FITS,
        "test": TEST,
        "models": MODELS,
        "sets": sets,
    }
    return write("naive_bayes", render(data), data)


def epsilons(name: str) -> tuple[float, ...]:
    """Digits from 1 on: below, the peer resamples so often that its fits take minutes."""
    return tuple(e for e in EPSILONS if name != "Digits" or e >= 1.0)


def splits(rows: int, fits: int) -> list[np.ndarray]:
    """The rows kept for testing, one selection for each fit."""
    rng = np.random.default_rng(2019)
    return [np.sort(rng.permutation(rows)[: round(TEST * rows)]) for _ in range(fits)]


def score_set(name: str) -> dict[str, Any]:
    load, lower, upper = DATA[name]
    X, y = load(return_X_y=True)
    tests = splits(len(y), FITS[name])
    classes = np.unique(y)

    def scores(make: Any) -> tuple[list[float], float]:
        found = []
        start = time.process_time()
        for chosen in tests:
            test = np.zeros(len(y), dtype=bool)
            test[chosen] = True
            found.append(float(make().fit(X[~test], y[~test]).score(X[test], y[test])))
        return found, (time.process_time() - start) / len(tests)

    plain, _ = scores(PlainNB)
    records = [{"model": "plain", "epsilon": None, **summary(plain)}]
    for epsilon in epsilons(name):
        for model, parameters in MODELS.items():

            def make(epsilon: float = epsilon, parameters: dict[str, Any] = parameters) -> GaussianNB:
                return GaussianNB(epsilon=epsilon, bounds=(lower, upper), classes=classes, **parameters)

            found, cpu = scores(make)
            records.append({"model": model, "epsilon": epsilon, **summary(found), "cpu": cpu})
        records.append({"model": PEER, "epsilon": epsilon, **ask_peer(X, y, lower, upper, tests, epsilon)})
        shown = ", ".join(f"{r['model']} {cell(r)}" for r in records if r["epsilon"] == epsilon)
        progress(f"{name}, epsilon {epsilon:g}: {shown}")
    ratio = float(np.mean(np.maximum(np.abs(lower), np.abs(upper)) / np.subtract(upper, lower)))
    sizes = {"rows": len(y), "features": X.shape[1], "classes": int(classes.size)}
    return {"name": name, **sizes, "lower": lower, "upper": upper, "ratio": ratio, "records": records}


def summary(scores: list[float]) -> dict[str, float]:
    return {"mean": float(np.mean(scores)), "se": float(np.std(scores, ddof=1) / math.sqrt(len(scores)))}


def ask_peer(X: Any, y: Any, lower: Any, upper: Any, tests: list[np.ndarray], epsilon: float) -> dict[str, Any]:
    """Its scores, asked in parts: it takes half a second for a fit to Digits."""
    scores: list[float] = []
    answer: dict[str, Any] = {}
    question = {"X": X.tolist(), "y": y.tolist(), "lower": lower, "upper": upper, "epsilon": epsilon}
    cpu, published = [], True
    for start in range(0, len(tests), 25):
        part = [t.tolist() for t in tests[start : start + 25]]
        try:
            answer = peers.ask(PEER, "peer_diffprivlib_naive_bayes.py", {**question, "tests": part})
        except peers.PeerUnavailable as error:
            progress(f"{PEER}: {error}")
            return {"mean": None, "se": None, "reason": str(error)}
        scores += answer["scores"]
        cpu.append(answer["cpu"])
        published = published and answer["size_published"]
    more = {k: answer[k] for k in ("version", "scikit-learn")}
    return {**summary(scores), **more, "size_published": published, "cpu": float(np.mean(cpu))}


# ---------------------------------------------------------------- the page


def cell(record: dict[str, Any]) -> str:
    return "-" if record["mean"] is None else f"{100 * record['mean']:.1f} ± {100 * record['se']:.1f}"


def real(ratio: float) -> tuple[float, float, float]:
    """What a replaced row pays in the peer, in units of the epsilon it was given: counts, means, variances."""
    return 2 / 3, 2 / 3 * ratio, 2 / 3


def render(data: dict[str, Any]) -> str:
    theirs = next((r for s in data["sets"] for r in s["records"] if "version" in r), None)
    peer = f"Beside diffprivlib {theirs['version']} with scikit-learn {theirs['scikit-learn']}. " if theirs else ""
    parts = [
        "# Naive Bayes: accuracy over epsilon",
        f"{peer}Accuracy in percent on the {TEST:.0%} of the rows kept for testing: mean and standard error over "
        "fits, each on another random split, the same splits for all models. Bounds are stated by hand, the same for "
        "all models, and the classes are given to ours. *ours*: `GaussianNB` as it is, one row more or less protected; "
        "*substitute*: the replacement of a row protected, with the number of rows public. *diffprivlib*: its "
        "`GaussianNB` as it is; what a replaced row can pay there is larger than the ε it was given, up to the last "
        "column (explained below). Our default split of epsilon was chosen with these three data sets in view.",
    ]
    for s in data["sets"]:
        fits = data["fits"][s["name"]]
        by = {(r["model"], r["epsilon"]): r for r in s["records"]}
        parts += [
            f"## {s['name']}",
            f"{s['rows']} rows, {s['features']} features, {s['classes']} classes; {fits} fits for each number. "
            f"Without privacy (scikit-learn): {cell(by['plain', None])}.",
            table(
                ("ε", "ours", "ours, substitute", PEER, "its ε, up to"),
                [
                    (
                        f"{e:g}",
                        *(cell(by[name, e]) for name in ("ours", "ours, substitute", PEER)),
                        f"{e * sum(real(s['ratio'])):.3g}",
                    )
                    for e in epsilons(s["name"])
                ],
            ),
            "Variances truncated or clamped, read as the estimator does by default (denoised, floor 10⁻⁴) or taken as "
            "they were released (floor 10⁻⁹), the comparison of Figure 2 of Holohan et al.:",
            table(
                ("ε", "truncated", *list(MODELS)[2:]),
                [(f"{e:g}", *(cell(by[name, e]) for name in ("ours", *list(MODELS)[2:]))) for e in epsilons(s["name"])],
            ),
        ]
    parts += render_flaws(data)
    times = [
        (s["name"], *(duration(float(np.mean(c))) if (c := costs(s, name)) else "-" for name in ("ours", PEER)))
        for s in data["sets"]
    ]
    parts += ["## Time", "Processor time of one fit and its score:", table(("", "ours", PEER), times)]
    return "\n\n".join(parts) + "\n"


def costs(s: dict[str, Any], model: str) -> list[float]:
    return [r["cpu"] for r in s["records"] if r["model"] == model and "cpu" in r]


def render_flaws(data: dict[str, Any]) -> list[str]:
    rows = []
    for s in data["sets"]:
        counts, means, variances = real(s["ratio"])
        shown = (f"{v:.2f} ε" for v in (counts, means, variances, counts + means + variances))
        rows.append((s["name"], f"{s['ratio']:.2f}", *shown))
    published = [r["size_published"] for s in data["sets"] for r in s["records"] if "size_published" in r]
    always = "in every fit of this run" if published and all(published) else "as its code has it"
    return [
        "## What diffprivlib's epsilon stands for",
        "Read from the source of its `GaussianNB`. It spends ε/3 on the class counts, ε/3 on the means and ε/3 on the "
        "variances, shared by the features, as if a row could touch one class only and move each sum by the width of "
        "its bounds:",
        f"- **The number of rows is published exactly**: the noisy class counts are changed until they add up to it "
        f"({always}). So it protects nothing against a row more or less, and has to be read as protecting the "
        "replacement of a row.\n"
        "- **A replaced row may change its label.** Then two counts, and the sums of two classes, change; one is "
        "accounted for. Every part counts double.\n"
        "- **A sum of values in [l, u] that gains or loses a row moves by up to max(|l|, |u|)**, not u - l. For values "
        "in [11, 15] that is 3.75 times as far: with one such feature the means alone cost 2.5 ε. (Replaced features "
        "within a class do move it by u - l at most: if labels were public its claim would hold, with ε/3 to spare.)\n"
        "- Bounds that are not given are read off the data, with a warning; classes always are.\n"
        "- It takes a seed, with which the noise can be subtracted.",
        "What a replaced row pays in all, at most, in units of the ε it was given (column 2: the average of "
        "max(|l|, |u|) / (u - l) over the features):",
        table(("", "ratio", "counts", "means", "variances", "together"), rows),
        "Ours centres each feature before it sums, so that the sensitivity is half the width whatever the bounds, and "
        "pays for both classes.",
    ]
