"""Fu et al.'s claims: the verdicts, the figures behind them, and that the checks can fail."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp, mpf

import inbounds as ib
from reproduction import fu as paper
from reproduction.report import Finding, save_figure

VERDICTS = {
    "Introduction: less variance": "holds",
    "Lemma 2.3": "holds",
    "Lemma 2.6": "holds",
    "Definition 2.7": "holds",
    "Definition 2.8 and Equation 6": "holds",
    "Algorithm 1": "reproduced",
    "Figure 1": "reproduced",
    "Equation 7": "holds",
    "Equation 8": "holds",
    "Theorem 3.1": "holds but loose",
    "Theorem 3.2": "holds",
    "Definition 3.3 and Equation 14": "holds",
    "Not in the paper: Theorem 3.1 for whole numbers and holes": "fails",
    "Algorithm 2": "reproduced",
    "Figure 2": "reproduced",
    "Theorem 4.1": "holds but loose",
    "Equation 15": "holds",
    "Equation 16": "fails",
    "Equations 17 and 18": "holds",
    "Equations 19 and 20": "holds",
    "Equation 21": "fails",
    "Equation 22": "fails",
    "Equation 23": "fails",
    "Theorem 4.2": "holds",
    "Theorem 4.3": "fails",
    "Theorem 4.4": "holds",
    "Abstract: the same RDP for intervals that contain the answers": "fails",
    "Not in the paper: intervals symmetric about μ/2": "holds",
    "Not in the paper: the same RDP for whole numbers and holes": "fails",
}


@pytest.fixture(scope="module")
def found() -> dict[str, Finding]:
    steps: list[str] = []
    findings = paper.findings(steps.append, quick=True)
    assert "Theorem 4.1" in steps
    assert len(steps) == len(set(steps))
    return {finding.item: finding for finding in findings}


def test_verdicts(found: dict[str, Finding]) -> None:
    assert {item: finding.verdict for item, finding in found.items()} == VERDICTS


def test_every_finding_says_what_was_claimed_and_computed(found: dict[str, Finding]) -> None:
    for finding in found.values():
        assert len(finding.claim) > 15
        assert len(finding.computed) > 30
        if finding.verdict in ("fails", "holds but loose"):
            assert any(c.isdigit() for c in finding.detail), finding.item


def test_figures_are_drawn(found: dict[str, Finding], tmp_path: Path) -> None:
    figures = [figure for finding in found.values() for figure in finding.figures]
    assert [f.name for f in figures] == ["fu-figure-1", "fu-figure-2", "fu-same-rdp"]
    for figure in figures:
        svg, png = save_figure(figure, tmp_path)
        assert svg.stat().st_size > 10_000
        assert png.stat().st_size > 10_000


# --- the divergence ----------------------------------------------------------------------------


def by_hand(family: str, alpha: float, p: float, q: float, scale: float, a: float, b: float) -> float:
    """The Rényi divergence at 30 digits."""
    with mp.workdps(30):

        def kernel(x: mpf, at: float) -> mpf:
            y = (x - mpf(at)) / mpf(scale)
            return mp.exp(-abs(y)) if family == "laplace" else mp.exp(-y * y / 2)

        cuts = sorted({mpf(a), mpf(b), *(mpf(x) for x in (p, q) if a < x < b)})
        at_p, at_q = (mp.quad(lambda x, at=at: kernel(x, at), cuts) for at in (p, q))
        both = mp.quad(lambda x: kernel(x, p) ** mpf(alpha) * kernel(x, q) ** (1 - mpf(alpha)), cuts)
        return float(mp.log(both / at_p ** mpf(alpha) / at_q ** (1 - mpf(alpha))) / (mpf(alpha) - 1))


CASES = [(2.0, 1.0, 0.0, 2.0), (7.5, 0.6, -1.0, 1.5), (1.2, 3.0, 0.25, 0.75), (3.0, 1.0, -3.0, -1.0)]


@pytest.mark.parametrize(("alpha", "scale", "a", "b"), CASES)
def test_formulas_against_30_digits(alpha: float, scale: float, a: float, b: float) -> None:
    up, down = (by_hand("gaussian", alpha, p, q, scale, a, b) for p, q in ((0.0, 1.0), (1.0, 0.0)))
    assert paper.equation_7(alpha, 1.0, scale, a, b) == pytest.approx(up, rel=1e-8)
    assert paper.equation_8(alpha, 1.0, scale, a, b) == pytest.approx(down, rel=1e-8)
    up, down = (by_hand("laplace", alpha, p, q, scale, a, b) for p, q in ((0.0, 1.0), (1.0, 0.0)))
    assert paper.equation_15(alpha, 1.0, scale, a, b) == pytest.approx(up, rel=1e-8, abs=1e-12)
    assert paper.equation_16(alpha, 1.0, scale, a, b) == pytest.approx(down, rel=1e-8, abs=1e-12)
    assert paper.renyi_by_quadrature("laplace", alpha, 0.0, 1.0, scale, [(a, b)]) == pytest.approx(
        up, rel=1e-8, abs=1e-12
    )


def test_formulas_scale_with_mu() -> None:
    assert paper.equation_7(3.0, 5.0, 0.7, -2.0, 9.0) == pytest.approx(
        by_hand("gaussian", 3.0, 0.0, 5.0, 3.5, -2.0, 9.0), rel=1e-8
    )
    assert paper.equation_6(3.0, 5.0, 2.0) == pytest.approx(paper.equation_6(3.0, 2.5, 1.0), rel=1e-14)


def test_far_tails_keep_their_digits() -> None:
    # both answers about 30 standard deviations below the interval: the laws are close to exponential ones
    with mp.workdps(60):

        def log_mass(lower: int, upper: int) -> mpf:
            return mp.log((mp.erfc(lower / mp.sqrt(2)) - mp.erfc(upper / mp.sqrt(2))) / 2)

        exact = float(1 + log_mass(29, 32) + log_mass(31, 34) - 2 * log_mass(30, 33))
    assert paper.equation_7(2.0, 1.0, 1.0, 30.0, 33.0) == pytest.approx(exact, rel=1e-8)
    assert paper.renyi_by_quadrature("gaussian", 2.0, 0.0, 1.0, 1.0, [(30.0, 33.0)]) == pytest.approx(exact, rel=1e-6)


def test_equation_6_is_the_untruncated_divergence() -> None:
    plain = ib.Laplace(ib.Interval(0, 1), scale=0.5, sensitivity=1.0, edges="ignore")
    for alpha in (1.5, 4.0, 40.0):
        assert float(plain.rdp(alpha)) == pytest.approx(paper.equation_6(alpha, 1.0, 0.5), rel=1e-9)


# --- where it does not depend on the data, and where "the same RDP" fails ----------------------


@pytest.mark.parametrize(("a", "b"), [(-3.0, -0.5), (1.5, 4.0)])
def test_output_does_not_depend_on_the_data(a: float, b: float) -> None:
    for alpha in (2.0, 32.0):
        for p, q in ((0.0, 1.0), (1.0, 0.0), (0.2, 0.9)):
            assert abs(paper.renyi_by_quadrature("laplace", alpha, p, q, 1.0, [(a, b)])) < 1e-12


def test_same_rdp_fails(found: dict[str, Finding]) -> None:
    finding = found["Abstract: the same RDP for intervals that contain the answers"]
    rows = {row[:2]: (float(row[3]), float(row[4])) for row in finding.tables[0].rows}
    assert rows["1", "32"] == pytest.approx((1.39, 1.40), abs=0.005)
    assert rows["3", "32"] == pytest.approx((1.44, 1.52), abs=0.005)
    assert "1.39 times" in finding.detail
    assert by_hand("laplace", 32.0, 0.0, 1.0, 1.0, 0.0, 20.0) / paper.equation_6(32.0, 1.0, 1.0) == pytest.approx(
        rows["1", "32"][0], abs=0.0005
    )


def test_case_three_stays_below_plain_noise() -> None:
    for alpha, scale, a, b in ((2.0, 1.0, 0.2, 0.8), (9.5, 0.2, 0.01, 0.99), (1.1, 5.0, 0.4, 0.6)):
        closed = math.log(paper.equation_22(alpha, scale, a, b)) / (alpha - 1.0)
        assert closed == pytest.approx(by_hand("laplace", alpha, 0.0, 1.0, scale, a, b), rel=1e-7)
        assert closed <= paper.equation_6(alpha, 1.0, scale)


def test_slips_in_the_printed_formulas() -> None:
    lines = paper.equation_21(2.0, 1.0, 1.0, 0.2, 0.8)
    right = paper.equation_22(2.0, 1.0, 0.2, 0.8)
    assert lines[:3] == pytest.approx([right] * 3, rel=1e-12)
    assert lines[3] == pytest.approx(-right, rel=1e-12)
    assert paper.equation_22(2.0, 1.0, 0.2, 0.8, printed=True) < 0.0  # under a logarithm
    printed, corrected = (paper.equation_16(2.0, 1.0, 1.0, 0.0, 2.0, printed=p) for p in (True, False))
    assert (printed, corrected) == pytest.approx((4.2845, 0.3331), abs=5e-5)
    left, bound = paper.theorem_4_3_sides(2.0, 1.0, 8.0)  # b > a > mu, as the theorem says
    assert (left, bound) == pytest.approx((2982.0, 5.572), rel=1e-4)
    left, bound = paper.theorem_4_3_sides(2.0, 1.0, 0.999)  # b - a < mu, as its proof needs
    assert left < bound


def test_integers_and_holes(found: dict[str, Finding]) -> None:
    rows = found["Not in the paper: Theorem 3.1 for whole numbers and holes"].tables[0].rows
    whole = [float(cell) for row in rows if "whole" in str(row[0]) for cell in row[3:]]
    assert max(whole) <= 1.0 + 1e-6
    holes = {row[0]: float(row[3]) for row in rows if "spans" in str(row[0])}
    assert holes["three spans, holes of 3"] == pytest.approx(8.1985, abs=1e-3)
    rows = found["Not in the paper: the same RDP for whole numbers and holes"].tables[0].rows
    assert max(float(cell) for row in rows for cell in row[3:]) == pytest.approx(1.511, abs=0.005)


def test_running_time_depends_on_the_data(found: dict[str, Finding]) -> None:
    rows = {row[0]: row for row in found["Algorithm 1"].tables[0].rows}
    assert rows["[5, 6]"][1] == "3,500,604"
    assert float(rows["[5, 6]"][3]) == pytest.approx(109.87, abs=0.01)


# --- the checks can fail -----------------------------------------------------------------------


def test_wrong_formulas_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = paper.equation_7
    monkeypatch.setattr(paper, "equation_7", lambda *a: 1.001 * right(*a))
    by_item = {f.item: f.verdict for f in paper._equations_7_and_8(np.random.default_rng(1), 5)}
    assert by_item == {"Equation 7": "fails", "Equation 8": "holds"}
    assert paper._theorem_3_1(np.random.default_rng(1), True).verdict == "fails"
    monkeypatch.setattr(paper, "equation_6", lambda *a: 0.1)
    assert paper._theorem_4_1(np.random.default_rng(1), 30).verdict == "fails"
    assert paper._symmetric(np.random.default_rng(1), 30).verdict == "fails"


def test_wrong_samples_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = paper._resample
    monkeypatch.setattr(paper, "_resample", lambda draw, a, b, n: right(lambda size: 1.4 * draw(size), a, b, n))
    assert paper._algorithm("gaussian", np.random.default_rng(1), 20_000).verdict == "not reproduced"
    assert paper._algorithm("laplace", np.random.default_rng(1), 20_000).verdict == "not reproduced"
