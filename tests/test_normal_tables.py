"""The normal tables: the certificates, and what is computed from the tables, against ball arithmetic."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from flint import arb, ctx

from inbounds.sampling import normal
from tools import normal_tables as tables

STORED = tables.load()
U = Fraction(1, 2**53)


def both_neighbours(points: Any) -> list[float]:
    points = np.asarray(points, dtype=np.float64).ravel()
    return np.concatenate([points, np.nextafter(points, -np.inf), np.nextafter(points, np.inf)]).tolist()


def powers(rng: np.random.Generator, low: float, high: float, count: int) -> list[float]:
    """Random numbers whose logarithms are uniform between those of 2^low and 2^high."""
    return (2.0 ** rng.uniform(low, high, count)).tolist()


def tail_points() -> list[float]:
    rng = np.random.default_rng(20240)
    points = [0.0, 5e-324, 2.0**-1022, 2.0**-1000, 14.0, math.nextafter(14.0, 0)]
    points += [2.0**-400, math.nextafter(2.0**-400, 0), math.nextafter(2.0**-400, 1)]
    points += both_neighbours((2 * np.arange(14 * 128) + 1) / 256)  # where the nearest row changes
    points += (np.arange(14 * 128) / 128).tolist()
    points += rng.uniform(0, 14, 8000).tolist() + rng.uniform(0, 0.02, 500).tolist() + powers(rng, -60, 3.8, 4000)
    return points


def inverse_points() -> list[float]:
    rng = np.random.default_rng(20241)
    points = [math.nextafter(0.53125, 0)]
    binades = 2.0 ** np.arange(-80, 0)[:, None]
    points += [p for p in both_neighbours(binades) if p >= 2.0**-80]
    edges = (binades * (1 + np.arange(32) / 32)).ravel()  # where the row changes
    points += [p for p in both_neighbours(edges) if 2.0**-80 <= p < 0.53125]
    points += rng.uniform(0.4, 0.53125, 2000).tolist() + (0.5 + rng.uniform(-1, 1, 200) * 2.0**-45).tolist()
    points += rng.uniform(2.0**-80, 0.5, 2000).tolist() + powers(rng, -80, -1, 4000) + powers(rng, -80, -79, 300)
    return points


def odd_points(end: float, seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    points = [end, math.nextafter(end, 0), math.sqrt(0.0648), 2.0**-1000, 2.0**-400, math.nextafter(2.0**-400, 0)]
    points += rng.uniform(0, end, 6000).tolist() + powers(rng, -1000, math.log2(end), 3000)
    points += (end * np.sqrt(np.arange(1, 65) / 64)).tolist() + powers(rng, -4, math.log2(end), 2000)
    points = [min(x, end) for x in points]
    return points + [-x for x in points]


class Function(NamedTuple):
    vector: Callable[[Any, Any, normal.Work], None]
    one: Callable[[float], float]
    exact: Callable[[Any], Any]
    unit: Callable[[Any], Any]  # of the exact answer: what the bound is a multiple of
    bound: float
    table: str
    points: list[float]


FUNCTIONS = {
    "tail": Function(
        normal.tail,
        normal.tail_one,
        lambda x: (x / arb(2).sqrt()).erfc() / 2,
        abs,
        normal.TAIL_ERROR,
        "tail",
        tail_points(),
    ),
    "tail_inverse": Function(
        normal.tail_inverse,
        normal.tail_inverse_one,
        lambda p: arb(2).sqrt() * (2 * p).erfcinv(),
        lambda x: x.max(arb(1)),
        normal.INVERSE_ERROR,
        "inverse",
        inverse_points(),
    ),
    "half": Function(
        normal.half,
        normal.half_one,
        lambda x: (x / arb(2).sqrt()).erf() / 2,
        abs,
        normal.HALF_ERROR,
        "half",
        odd_points(normal.HALF_END, 20242),
    ),
    "half_inverse": Function(
        normal.half_inverse,
        normal.half_inverse_one,
        lambda s: arb(2).sqrt() * (2 * s).erfinv(),
        abs,
        normal.HALF_INVERSE_ERROR,
        "half_inverse",
        odd_points(normal.HALF_INVERSE_END, 20243),
    ),
}
each_function = pytest.mark.parametrize("name", FUNCTIONS)
each_table = pytest.mark.parametrize("name", tables.NAMES)


def evaluate(name: str, points: Any) -> np.ndarray:
    given = np.array(points, dtype=np.float64)
    out = np.full_like(given, np.nan)
    FUNCTIONS[name].vector(given, out, normal.Work(given.size))
    return out


# ---- The file and its certificate


@each_table
def test_the_stored_bounds_are_certified(name: str) -> None:
    # Every row of every table: this is the proof behind the constants.
    certified = tables.certify(name, STORED[name])
    assert tables.covers(STORED[f"{name}_bound"], certified)
    # The file holds the certified figures themselves: one step less is too little already.
    for claim in (certified / 2, certified - [0, 1 / 1024], certified - [1 / 1024, 0], certified * [1, math.nan]):
        assert not tables.covers(claim, certified)
    np.testing.assert_array_equal(STORED[f"{name}_bound"], certified)


def test_the_constants_are_the_certified_totals() -> None:
    for function in FUNCTIONS.values():
        assert function.bound == STORED[f"{function.table}_bound"][1]
    assert normal.TAIL_ERROR <= 8
    assert normal.INVERSE_ERROR <= 6
    assert normal.HALF_ERROR <= 4
    assert normal.HALF_INVERSE_ERROR <= 4
    assert all(STORED[f"{name}_bound"][0] < 1.1 for name in tables.NAMES)


def test_the_code_reads_the_table_as_it_was_certified() -> None:
    assert tables.TAIL_END == normal.TAIL_END
    assert 2.0**tables.INVERSE_LOW == normal.INVERSE_START
    assert tables.INVERSE_HIGH == normal.INVERSE_END
    assert tables.HALF_END == normal.HALF_END
    assert tables.HALF_INVERSE_END == normal.HALF_INVERSE_END
    assert tables.SMALLEST == normal._SMALLEST
    assert tables.HALF_INVERSE_CENTRE == normal._HALF_INVERSE_CENTRE
    for name, used in (("tail", normal._TAIL), ("inverse", normal._INVERSE)):
        np.testing.assert_array_equal(np.array(used)[::-1], STORED[name])


def certify_row(name: str, coefficients: list[float], row: int) -> tables.Bound:
    return (tables.certify_tail if name == "tail" else tables.certify_inverse)(coefficients, row)


@pytest.mark.parametrize("name", ["tail", "inverse"])
def test_an_altered_row_is_not_certified(name: str) -> None:
    table, claim = STORED[name], STORED[f"{name}_bound"]
    radius = 1 / 256 if name == "tail" else 1 / 64
    for row in [0, 1, 777, table.shape[1] - 2, table.shape[1] - 1]:
        right = table[:, row].tolist()
        assert np.all(certify_row(name, right, row) <= claim)
        unit = right[0] if name == "tail" else max(1.0, right[0])
        # Every coefficient, moved until the value at the end of the row moves by four or five units; for the first
        # this is a few units in its last place.
        for k, sign in ((k, sign) for k in range(len(right)) for sign in (-1, 1)):
            wrong = right.copy()
            wrong[k] += sign * 5 * float(U) * unit / radius**k
            assert np.all(certify_row(name, wrong, row) > claim)
            for nothing in (math.inf, math.nan):
                wrong[k] = nothing
                with pytest.raises(tables.Failure):
                    certify_row(name, wrong, row)


@pytest.mark.parametrize("name", ["half", "half_inverse"])
def test_an_altered_polynomial_is_not_certified(name: str) -> None:
    end, centre = (1.05**2, 0.0) if name == "half" else (0.36**2, 0.0648)
    radius = end - centre
    for k in (0, 1, 5, STORED[name].size - 1):
        wrong = STORED[name].copy()
        wrong[k] += 8 * float(U) * wrong[0] / radius**k
        assert np.all(tables.certify(name, wrong) > STORED[f"{name}_bound"])


def test_a_table_of_the_wrong_size_or_name_is_not_certified() -> None:
    with pytest.raises(tables.Failure, match="1793 rows expected, 1792 found"):
        tables.certify("tail", STORED["tail"][:, :-1])
    with pytest.raises(tables.Failure, match="no table"):
        tables.certify("tails", STORED["tail"])


def test_the_command_makes_the_stored_file_and_checks_it(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "normal.npz"
    assert tables.main([], file) == 0
    made = tables.load(file)
    assert set(made) == set(STORED)
    for name, array in made.items():
        np.testing.assert_array_equal(array, STORED[name])
    assert "NOT" not in capsys.readouterr().out
    made["tail"][0, 400] += 4 * np.spacing(made["tail"][0, 400])
    np.savez(file, **made)
    assert tables.main(["--check"], file) == 1
    assert capsys.readouterr().out.count("NOT CERTIFIED") == 1


def test_the_largest_value_of_a_function_is_bounded_closely() -> None:
    precision = ctx.prec
    with tables._arithmetic():
        # T_8 oscillates between -1 and 1; exp takes its largest value at the end, where the sum of the coefficients
        # is the value itself.
        t8 = [1, 0, -32, 0, 160, 0, -256, 0, 128]
        for radius in (1.0, 2.0**-6):
            scaled = [c / radius**k for k, c in enumerate(t8)]
            found = tables.largest(lambda x, c=scaled: tables._horner(c, x), arb(0), arb(radius))
            assert found >= 1
            assert found < 1 + 1e-15
        found = tables.largest(lambda x: x.exp(), arb(1), arb(1) / 8)
        assert found >= (arb(9) / 8).exp()
        assert found < (arb(9) / 8).exp() + 1e-15
    assert ctx.prec == precision


@pytest.mark.parametrize("name", ["tail", "inverse"])
def test_the_bound_of_a_row_is_not_below_and_not_far_above_what_is_seen(name: str) -> None:
    exact, unit = FUNCTIONS["tail" if name == "tail" else "tail_inverse"][2:4]
    for row in (0, 3, 130, 1000, 1792):
        coefficients = STORED[name][:, row].tolist()
        with tables._arithmetic():
            if name == "tail":
                scale, middle, radius = arb(1), arb(row) / 128, arb(1) / 256
            else:
                scale, middle = tables._inverse_row(row)
                radius = arb(1) / 64
            seen = 0.0
            for i in range(-100, 101):
                s = radius * i / 100
                answer = exact(scale * (middle + s))
                seen = max(seen, float(abs(tables._horner(coefficients, s) - answer) / unit(answer) * 2**53))
        bound = certify_row(name, coefficients, row).approximation
        assert seen <= bound
        assert bound < 1.1 * seen + 0.05


@each_table
def test_the_rounding_bound_covers_horners_rule(name: str) -> None:
    """Against the polynomial itself in rational arithmetic, at random points of random rows."""
    rng = np.random.default_rng(20244)
    worst = 0.0
    for _ in range(1000):
        if name in ("tail", "inverse"):
            coefficients = STORED[name][:, rng.integers(STORED[name].shape[1])].tolist()
            s = float(rng.uniform(-1, 1)) / (256 if name == "tail" else 64)
        else:
            coefficients = STORED[name].tolist()
            s = float(rng.uniform(0, 1.05**2)) if name == "half" else float(rng.uniform(-0.0648, 0.0648))
        computed, right = coefficients[-1], Fraction(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            computed, right = computed * s + c, right * Fraction(s) + Fraction(c)
        with tables._arithmetic():
            _, bound = tables.horner_rounding(coefficients, arb(s))
        error = abs(Fraction(computed) - right)
        worst = max(worst, float(error) / float(bound))
        assert error <= Fraction(float(bound))
    assert worst > 0.5


# ---- What is computed


@each_function
def test_every_computed_value_is_within_its_bound(name: str) -> None:
    function = FUNCTIONS[name]
    out = evaluate(name, function.points)
    worst = 0.0
    with tables._arithmetic():
        for given, computed in zip(function.points, out.tolist(), strict=True):
            right = function.exact(arb(given))
            error = abs(arb(computed) - right) / function.unit(right) * 2**53
            assert error <= function.bound, given
            worst = max(worst, float(error))
    # The bounds are close: half of each would be refuted by these points.
    assert worst > function.bound / 2


@each_function
def test_one_value_has_the_bits_of_the_array(name: str) -> None:
    function = FUNCTIONS[name]
    out = evaluate(name, function.points)
    one = np.array([function.one(x) for x in function.points])
    np.testing.assert_array_equal(out.view(np.int64), one.view(np.int64))


@pytest.mark.parametrize("name", ["half", "half_inverse"])
def test_the_middle_is_odd_and_keeps_zero(name: str) -> None:
    points = FUNCTIONS[name].points
    np.testing.assert_array_equal(evaluate(name, points), -evaluate(name, [-x for x in points]))
    out = evaluate(name, [0.0, -0.0])
    assert out.tolist() == [0.0, 0.0]
    assert np.signbit(out).tolist() == [False, True]


def test_the_tail_starts_at_a_half() -> None:
    assert normal.tail_one(0.0) == 0.5
    assert normal.tail_inverse_one(math.nextafter(0.5, 1)) < normal.tail_inverse_one(0.5) < 1e-15


@each_function
def test_any_argument_is_answered_without_error(name: str) -> None:
    # Warnings are errors here, those of NumPy's arithmetic among them.
    points = [0.0, 5e-324, 2.0**-1022, 2.0**-1000, 2.0**-81, 0.36, 0.53125, 0.6, 1.0, 1.05]
    points += [14.0, 14.1, 40.0, 2.0**44, 2.0**45, 2.0**60, 1e300]
    points += [-x for x in points]
    assert np.all(np.isfinite(evaluate(name, points)))
    assert evaluate(name, [math.nan, 0.1])[1] == FUNCTIONS[name].one(0.1)
    for x in points:
        assert math.isfinite(FUNCTIONS[name].one(x))
    for x in (math.nan, math.inf, -math.inf):
        assert isinstance(FUNCTIONS[name].one(x), float)
    if name != "tail_inverse":
        assert math.isnan(evaluate(name, [math.nan])[0])
        assert math.isnan(FUNCTIONS[name].one(math.nan))


@each_function
def test_the_answer_may_replace_the_argument(name: str) -> None:
    given = np.array(FUNCTIONS[name].points)
    expected = evaluate(name, given)
    FUNCTIONS[name].vector(given, given, normal.Work(given.size))
    np.testing.assert_array_equal(given, expected)


@each_function
def test_part_of_larger_buffers_serves_as_well(name: str) -> None:
    given = np.array(FUNCTIONS[name].points[:1000])
    before = given.copy()
    out = np.empty(1000)
    work = normal.Work(1500)
    for n in (1, 7, 1000):
        FUNCTIONS[name].vector(given[:n], out[:n], work.view(n))
        np.testing.assert_array_equal(out[:n], evaluate(name, given[:n]))
    np.testing.assert_array_equal(given, before)


@each_function
def test_no_array_is_allocated(name: str) -> None:
    given = np.resize(np.array(FUNCTIONS[name].points), 16384)
    out = np.empty_like(given)
    work = normal.Work(given.size)
    FUNCTIONS[name].vector(given, out, work)
    tracemalloc.start()
    try:
        FUNCTIONS[name].vector(given, out, work)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < given.nbytes / 8
