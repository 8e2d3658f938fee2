"""Five questions about the persons of a health study, answered privately and always within range.

Neighbours: one person is exchanged for another in the same group. The sizes of the groups are public: sites
and plans were fixed by the design of the study. The groups of a question are disjoint, so it costs its ε
once, not once a group.

The data are public, so this demonstration may print the truth next to the answers. A real release must not.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np

import inbounds as ib

mpl.use("Agg")  # files only, no display
import matplotlib.pyplot as plt

DATA = Path(__file__).parent / "data" / "randhie.csv.gz"
PICTURES = Path("build/demo")

EPSILON = 0.5  # of each question
MOST = 30.0  # visits above 30 count as 30: a public bound, or one person could move a mean without limit
SMALL = 22  # cells of site and plan with fewer persons are the small groups

Groups = dict[str, np.ndarray]  # which rows belong to each


@dataclass(frozen=True)
class Answer:
    """One group's true value, and what two mechanisms of the same ε say about it."""

    group: str
    true: float
    in_range: float
    plain: float
    possible: bool  # the plain answer


def load() -> dict[str, np.ndarray]:
    """The persons of the first study year, one row each, by column."""
    with gzip.open(DATA, "rt") as file:
        table = np.genfromtxt(file, delimiter=",", names=True)
    first = table[table["year"] == 1]
    return {name: first[name] for name in first.dtype.names}


def laplace(domain: ib.Interval | ib.Integers, *, sensitivity: float, edges: str) -> ib.Laplace:
    return ib.Laplace.calibrate(domain, sensitivity=sensitivity, epsilon=EPSILON, edges=edges)


def answer(group: str, domain: ib.Interval | ib.Integers, true: float, *, sensitivity: float) -> Answer:
    in_range = laplace(domain, sensitivity=sensitivity, edges="truncate").release(true).value
    plain = laplace(domain, sensitivity=sensitivity, edges="ignore").release(true).value
    return Answer(group, true, in_range, plain, possible=plain in domain)


# The statistics, each with its range and with how far the exchange of one of n persons can move it.


def count(group: str, has: np.ndarray) -> Answer:
    """How many: a whole number in 0..n, moved by at most 1."""
    return answer(group, ib.Integers(0, len(has)), int(has.sum()), sensitivity=1)


def share(group: str, has: np.ndarray) -> Answer:
    """Which part: in [0, 1], moved by at most 1/n."""
    return answer(group, ib.Interval(0, 1), float(has.mean()), sensitivity=1 / len(has))


def mean(group: str, values: np.ndarray) -> Answer:
    """The mean of values in [0, U]: in [0, U], moved by at most U/n."""
    return answer(group, ib.Interval(0, MOST), float(values.mean()), sensitivity=MOST / len(values))


def variance(group: str, values: np.ndarray) -> Answer:
    """The population variance of values in [0, U]: in [0, U²/4], moved by at most U²(n-1)/n².

    It is the sum of (x_i - x_j)²/n² over all pairs. One person is in n-1 pairs, and each term stays in
    [0, U²/n²]. Attained by n zeros of which one becomes U.
    """
    n = len(values)
    return answer(group, ib.Interval(0, MOST**2 / 4), float(values.var()), sensitivity=MOST**2 * (n - 1) / n**2)


def ask(
    question: str, statistic: Callable[[str, np.ndarray], Answer], column: np.ndarray, groups: Groups
) -> list[Answer]:
    """Answer one question for disjoint groups, and print the table."""
    print(f"\n{question}  (ε = {EPSILON})")
    print(f"    {'':<26}{'truth':>9}{'in range':>11}{'plain noise':>13}")
    answers = [statistic(f"{name}, n = {rows.sum()}", column[rows]) for name, rows in groups.items()]
    for a in answers:
        mark = "" if a.possible else "   <- impossible"
        print(f"    {a.group:<26}{a.true:>9.4g}{a.in_range:>11.4g}{a.plain:>13.4g}{mark}")
    return answers


def draw_answers(answers: list[Answer], path: Path) -> None:
    """The answers of one question, group by group, with the impossible region shaded."""
    figure, axes = plt.subplots(figsize=(7, 0.32 * len(answers) + 1.6), layout="constrained")
    rows = np.arange(len(answers))
    axes.axvspan(min(-1.0, *(a.plain for a in answers)) - 1, -0.5, color="tab:red", alpha=0.12, label="impossible")
    axes.plot([a.plain for a in answers], rows, "x", color="tab:red", label="plain noise")
    axes.plot([a.in_range for a in answers], rows, "o", color="tab:blue", label="in range")
    axes.plot([a.true for a in answers], rows, "|", color="black", markersize=12, label="truth")
    axes.set_yticks(rows, [a.group for a in answers])
    axes.invert_yaxis()
    axes.set(xlabel="persons in fair or poor health", title=f"Small groups, ε = {EPSILON}")
    axes.margins(x=0.02)
    axes.legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)


def draw_error(n: int, path: Path) -> None:
    """A share of n persons: the answers near the edge, and the exact error at every true value."""
    styles = {"truncate": "tab:blue", "clamp": "tab:green", "ignore": "tab:red"}
    mechanisms = {edges: laplace(ib.Interval(0, 1), sensitivity=1 / n, edges=edges) for edges in styles}
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")

    bins = np.linspace(-0.5, 1, 61)
    true = 1 / n
    for edges in ("ignore", "truncate"):
        answers = mechanisms[edges].simulate(true, size=50_000, seed=1)
        left.hist(answers, bins, density=True, color=styles[edges], alpha=0.5, label=f'edges="{edges}"')
    left.axvline(true, color="black", linewidth=1, label="truth")
    left.axvspan(-0.5, 0, color="tab:red", alpha=0.12, label="impossible")
    left.set(xlabel="answer", ylabel="density", title=f"Share of {n} persons, truth 1/{n}", xlim=(-0.5, 1))
    left.legend()

    truths = np.linspace(0, 1, 101)
    for edges, mechanism in mechanisms.items():
        error = [mechanism.at(q).error().rmse for q in truths]
        right.plot(truths, error, color=styles[edges], label=f'edges="{edges}"')
    right.set(xlabel="true share", ylabel="root mean squared error", title="Exact error", ylim=(0, None))
    right.legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    people = load()
    n = len(people["person"])
    visits = np.minimum(people["mdvis"], MOST)
    site, plan = people["site"], people["plan"]

    everyone: Groups = {"everyone": np.ones(n, dtype=bool)}
    sites: Groups = {f"site {s:.0f}": site == s for s in np.unique(site)}
    cells = {f"site {s:.0f}, plan {p:.0f}": (site == s) & (plan == p) for s in np.unique(site) for p in np.unique(plan)}
    small: Groups = {name: rows for name, rows in cells.items() if 2 <= rows.sum() < SMALL}

    print(f"{n} persons of the RAND Health Insurance Experiment, first year. Visits clipped to 0..{MOST:.0f}.")
    ask("1. How many persons have a physical limitation?", count, people["physlm"] == 1, everyone)
    ask("2. How many visits to a physician does a person make, on average?", mean, visits, sites)
    ask("3. What is the variance of the visits?", variance, visits, sites)
    ask("4. Which share makes no visit?", share, visits == 0, small)
    unwell = (people["hlthf"] == 1) | (people["hlthp"] == 1)
    counts = ask("5. How many persons rate their health fair or poor?", count, unwell, small)
    print(f"\nAll five together cost ε = {5 * EPSILON}. Run again for fresh noise.")

    PICTURES.mkdir(parents=True, exist_ok=True)
    draw_answers(counts, PICTURES / "answers.png")
    draw_error(20, PICTURES / "error.png")
    print(f"Pictures: {PICTURES / 'answers.png'} and {PICTURES / 'error.png'}")
    print("The second shows the price: truncating is not always nearest to the truth. Choose by the error.")


if __name__ == "__main__":
    main()
