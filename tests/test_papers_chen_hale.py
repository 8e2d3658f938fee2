"""Chen and Hale's claims: the verdicts, the figures behind them, and that the checks can fail."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import inbounds as ib
from reproduction import chen_hale as paper
from reproduction.report import Finding, save_figure

VERDICTS = {
    "Introduction: projection harms accuracy": "fails",
    "Introduction: minimum variance": "fails",
    "Theorem 1.4": "fails",
    "Section 2, after Definition 2.1": "fails",
    "Lemma 2.2": "holds",
    "Lemma 2.3": "holds",
    "Theorems A.1, A.2 and E.1": "holds",
    "Theorem 2.4": "holds but loose",
    "Lemma 2.5": "holds",
    "Lemma 2.6": "holds",
    "Lemma 2.7": "holds",
    "Lemma 2.8": "holds",
    "Algorithm 1": "reproduced",
    "Lemma 3.2": "holds",
    "Remark 3.3": "fails",
    "Theorem 3.4": "holds but loose",
    "Lemma 3.5": "holds",
    "Lemma 3.6": "holds",
    "Lemma 3.7": "holds",
    "Lemma 3.8": "holds",
    "Algorithm 2": "reproduced",
    "Table 1": "reproduced",
    "Figure 1": "reproduced",
    "Section 4: always less noise than the generalised Gaussian": "fails",
    "Section 4: sensitivities of the graph study": "holds but loose",
    "Section 4: graph study": "reproduced",
    "Not in the paper: δ by adding -ln δ": "fails",
}


@pytest.fixture(scope="module")
def found() -> dict[str, Finding]:
    steps: list[str] = []
    findings = paper.findings(steps.append, quick=True)
    assert "Table 1" in steps
    assert len(steps) == len(set(steps))
    return {finding.item: finding for finding in findings}


def column(finding: Finding, name: str, table: int = 0) -> list[str | float]:
    return [row[finding.tables[table].header.index(name)] for row in finding.tables[table].rows]


def test_verdicts(found: dict[str, Finding]) -> None:
    assert {item: finding.verdict for item, finding in found.items()} == VERDICTS


def test_every_finding_says_what_was_claimed_and_computed(found: dict[str, Finding]) -> None:
    for finding in found.values():
        assert len(finding.claim) > 15
        assert any(c.isdigit() for c in finding.computed), finding.item
        if finding.verdict in ("fails", "holds but loose"):
            assert any(c.isdigit() for c in finding.detail), finding.item


# --- Table 1 and Figure 1 ----------------------------------------------------------------------


def test_table_1(found: dict[str, Finding]) -> None:
    rows = {row[0]: row[1:] for row in found["Table 1"].tables[0].rows}
    assert rows["Chen and Hale, as published"] == ("857.5", "170.3", "84.3", "55.8", "41.5", "32.9", "27.2")
    assert rows["Chen and Hale, recomputed"] == ("857.52", "170.27", "84.38", "55.77", "41.47", "32.90", "27.20")
    exact = ("290.897", "61.395", "32.343", "22.462", "17.412", "14.315", "12.205")
    each = ("284.588", "60.152", "31.720", "22.041", "17.090", "14.050", "11.979")
    assert rows["exact, ΔQ = 2√5"] == exact
    assert rows["exact, (4, 2) per coordinate"] == each
    assert rows["reduction, recomputed"] == rows["reduction, as published"]
    assert rows["reduction, recomputed"][0] == "35.0 %"
    assert rows["reduction, recomputed"][-1] == "38.2 %"
    reduction = [float(str(cell).split()[0]) for cell in rows["reduction, exact, ΔQ = 2√5"]]
    assert (min(reduction), max(reduction)) == (72.3, 78.0)
    assert "84.3 is 84.38 (cut off, not rounded)" in found["Table 1"].computed


def test_figures_are_drawn(found: dict[str, Finding], tmp_path: Path) -> None:
    figures = [figure for finding in found.values() for figure in finding.figures]
    assert [f.name for f in figures] == ["chen-hale-looseness", "chen-hale-figure-1", "chen-hale-graph-study"]
    for figure in figures:
        svg, png = save_figure(figure, tmp_path)
        assert svg.stat().st_size > 10_000
        assert png.stat().st_size > 10_000


# --- one dimension -----------------------------------------------------------------------------


def test_theorem_1_4(found: dict[str, Finding]) -> None:
    rows = found["Theorem 1.4"].tables[0].rows
    wrong = {row[:2]: row[3] for row in rows}
    assert wrong["1", "0.5"] == pytest.approx(0.010517, rel=1e-3)
    assert wrong["10", "0.5"] == pytest.approx(0.24476, rel=1e-3)
    assert all(float(row[5]) < 1e-5 for row in rows)  # the classical theorem
    assert paper.theorem_1_4_variance(1.0, 0.5, 1e-5) == pytest.approx(math.sqrt(2 * math.log(1.25e5)) / 0.5)


@pytest.mark.parametrize(
    ("row", "epsilon", "ratio"),
    [
        ("0.5", "0.01", 2.99),
        ("0.5", "1", 2.61),
        ("0.5", "10", 1.90),
        ("1", "0.1", 3.25),
        ("1", "1", 3.24),
        ("1", "10", 3.15),
    ],
)
def test_looseness_of_theorem_2_4(found: dict[str, Finding], row: str, epsilon: str, ratio: float) -> None:
    table = found["Theorem 2.4"].tables[0]
    line = next(r for r in table.rows if r[0] == row)
    assert float(line[table.header.index(f"ε = {epsilon}")]) == pytest.approx(ratio, abs=0.0101)


def test_simple_variance_is_private_and_at_most_twice_the_smallest(found: dict[str, Finding]) -> None:
    values = [float(cell) for row in found["Theorem 2.4"].tables[1].rows for cell in row[1:]]
    assert min(values) >= 1.0
    assert max(values) < 2.0
    for sensitivity, epsilon in ((0.01, 0.001), (0.3, 1.0), (1.0, 5.0)):
        sigma = math.sqrt(paper.simple_variance(1.0, sensitivity, epsilon))
        assert ib.Gaussian(ib.Interval(0, 1), scale=sigma, sensitivity=sensitivity).epsilon() <= epsilon * (1 + 1e-9)


def test_algorithms_agree_with_the_calibration() -> None:
    variance, steps = paper.algorithm_1(1.0, 0.3, 1.0)
    assert variance == pytest.approx(paper.theorem_2_4_variance(ib.Interval(0, 1), 0.3, 1.0), rel=1e-8)
    assert 20 < steps < 80
    variance, steps = paper.algorithm_2(np.array([10.0, 8.0]), paper.LENGTH, 1.0)
    assert variance == pytest.approx(84.384, abs=5e-4)


def test_truncation_at_the_plain_scale_keeps_delta(found: dict[str, Finding]) -> None:
    real = [float(cell) for cell in column(found["Section 2, after Definition 2.1"], "real δ once truncated")]
    assert all(0.0 <= delta <= 1e-6 * (1 + 1e-6) for delta in real)
    assert min(real) == 0.0 < max(real)


def test_delta_by_logarithm(found: dict[str, Finding]) -> None:
    real = column(found["Not in the paper: δ by adding -ln δ"], "its real δ")
    assert real[0] == pytest.approx(0.18799, rel=1e-3)
    assert real[1] == pytest.approx(0.58615, rel=1e-3)


# --- boxes and graphs --------------------------------------------------------------------------


def test_problem_3_3_is_stationary() -> None:
    width = np.array([10.0, 8.0])
    best = paper.problem_3_3(9.0, width, 3.0)
    assert np.linalg.norm(best) == pytest.approx(3.0, rel=1e-9)

    def ratio(angle: float) -> float:
        c = 3.0 * np.array([math.cos(angle), math.sin(angle)])
        return float(np.sum(paper._log_z(c, width, 9.0)))

    angles = np.linspace(0.0, math.pi / 2, 2001)
    assert ratio(math.atan2(best[1], best[0])) >= max(map(ratio, angles.tolist())) - 1e-9


def test_always_less_noise_fails_elsewhere(found: dict[str, Finding]) -> None:
    text = found["Section 4: always less noise than the generalised Gaussian"].computed
    assert "109.1" in text
    assert "23.0" in text
    assert "10.24" in text


def test_connectivity_of_known_graphs() -> None:
    complete = 1.0 - np.eye(10)
    path = np.diag(np.ones(9), 1) + np.diag(np.ones(9), -1)
    star = np.zeros((10, 10))
    star[0, 1:] = star[1:, 0] = 1.0
    apart = np.kron(np.eye(2), 1.0 - np.eye(5))
    values = paper.connectivity(np.stack([complete, path, star, apart]))
    assert values == pytest.approx([10.0, 2 - 2 * math.cos(math.pi / 10), 1.0, 0.0], abs=1e-12)


@pytest.mark.parametrize(("nodes", "changes"), [(4, 1), (4, 2), (5, 1), (5, 2), (5, 3)])
def test_real_graph_sensitivity_is_one_more_than_the_changes(nodes: int, changes: int) -> None:
    second, degree, together = paper.graph_sensitivity(nodes, changes)
    assert second == pytest.approx(changes + 1, abs=1e-9)
    assert degree == changes
    assert together == pytest.approx(math.hypot(changes + 1, changes), abs=1e-9)


def test_graph_study(found: dict[str, Finding]) -> None:
    rows = found["Section 4: graph study"].tables[0].rows
    variance = {row[:2]: row[2] for row in rows}
    assert variance["Theorem 3.4", "1"] == pytest.approx(84.384, abs=5e-4)
    assert variance["exact, (4, 2)", "1"] == pytest.approx(31.720, abs=5e-4)
    assert variance["exact, real sensitivities (3, 2)", "1"] == pytest.approx(26.883, abs=5e-4)
    errors = {row[:2]: float(row[3]) for row in rows}
    names = ["Liu", "Theorem 3.4", "exact, (4, 2)", "exact, real sensitivities (3, 2)"]
    for epsilon in ("0.1", "1", "3"):
        order = [errors[name, epsilon] for name in names]
        assert order == sorted(order, reverse=True)
        assert order[0] < errors["an answer drawn blindly", "0"]


# --- the checks can fail -----------------------------------------------------------------------


def test_brute_force_refutes_a_scale_too_small() -> None:
    sigma = ib.Gaussian.calibrate(ib.Interval(0, 1), sensitivity=0.3, epsilon=1.0).sigma
    assert paper._loss(sigma, 1.0, 0.3, 121) == pytest.approx(1.0, abs=1e-6)
    assert paper._loss(0.99 * sigma, 1.0, 0.3, 121) > 1.01


def test_quadrature_sees_a_wrong_delta() -> None:
    mechanism = ib.Gaussian(ib.Interval(-math.inf, math.inf), scale=2.0, sensitivity=1.0, edges="ignore")
    value = paper._quadrature_delta(2.0, 1.0, 0.5, -30.0, 30.0)
    assert float(mechanism.delta(0.5)) == pytest.approx(value, rel=1e-8)
    assert abs(float(mechanism.delta(0.51)) / value - 1) > 1e-3


def test_verdicts_follow_from_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    right = paper.theorem_2_4_variance
    monkeypatch.setattr(paper, "theorem_2_4_variance", lambda *a: 0.3 * right(*a))
    assert paper._theorem_2_4(np.random.default_rng(1), True).verdict == "fails"
    assert paper._algorithm_1(np.random.default_rng(1), 3).verdict == "not reproduced"
    rows = paper.table_1()
    rows["paper"][3] *= 1.01
    assert paper._table_1(rows).verdict == "not reproduced"
