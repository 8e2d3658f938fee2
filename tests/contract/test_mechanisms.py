"""The contract for every mechanism, kind of domain and treatment of the edges."""

from __future__ import annotations

import math
from typing import Any

import pytest
from mpmath import mpf

import inbounds as ib
from tests import reference as ref
from tests.contract.contract import MechanismContract

INF = math.inf

# name: (domain, sensitivity, true values)
DOMAINS: dict[str, tuple[Any, Any, list[Any]]] = {
    "Interval": (ib.Interval(-2.0, 5.5), 1.5, [-2.0, 0.3, 5.5]),
    "WholeInterval": (ib.Interval(0.1, 0.3), 0.2, [0.1, 0.17, 0.3]),
    "UpperHalfLine": (ib.Interval(1.0, INF), 2.0, [1.0, 1.7, 40.0]),
    "LowerHalfLine": (ib.Interval(-INF, 3.0), 2.0, [3.0, -8.0]),
    "Line": (ib.Interval(-INF, INF), 1.0, [0.0, -1e6]),
    "Spans": (ib.Spans([(0, 1), (2.5, 4)]), 1.5, [0.0, 0.4, 1.0, 2.5, 4.0]),
    "UnboundedSpans": (ib.Spans([(-INF, 0), (1, 3)]), 1.5, [0.0, -20.0, 1.0, 3.0]),
    "Integers": (ib.Integers(-3, 9), 2, [-3, 4, 9]),
    "TwoIntegers": (ib.Integers(0, 1), 1, [0, 1]),
    "IntegersFrom": (ib.Integers(0, INF), 1, [0, 7]),
    "AllIntegers": (ib.Integers(-INF, INF), 2, [0, -12]),
    "Box": (ib.Box([0, -1], [4, 2]), ib.L2(2.0), [[0.0, -1.0], [1.5, 0.25], [4.0, 2.0]]),
    "OneCoordinate": (ib.Box([0], [10]), ib.L1(1.0), [[0.0], [3.5], [10.0]]),
    "IntegerBox": (ib.Box([0, 0], [5, 7], integer=True), ib.L1(2.0), [[0, 0], [3, 2], [5, 7]]),
    "HalfBox": (ib.Box([0, -INF], [4, INF]), ib.Linf(1.0), [[0.0, 0.0], [4.0, -30.0]]),
}


def target(kind: type, domain: Any, edges: str) -> dict[str, float] | None:
    if kind is ib.Laplace or (domain.bounded and edges != "ignore"):
        return {"epsilon": 0.9}
    if isinstance(domain, ib.Box) and domain.lattice:
        return None  # no profile is known there; test_bad_input.py has the refusal
    if isinstance(domain, ib.Spans) and edges == "truncate":
        return None  # the search takes a minute
    return {"epsilon": 0.9, "delta": 1e-4}


for _kind in (ib.Laplace, ib.Gaussian):
    for _name, (_domain, _sensitivity, _values) in DOMAINS.items():
        for _edges in ("truncate", "clamp", "ignore"):
            _class = f"Test{_kind.__name__}On{_name}{_edges.capitalize()}"
            globals()[_class] = type(
                _class,
                (MechanismContract,),
                {
                    "__module__": __name__,
                    "kind": _kind,
                    "domain": _domain,
                    "sensitivity": _sensitivity,
                    "edges": _edges,
                    "values": _values,
                    "target": target(_kind, _domain, _edges),
                },
            )


# --- places where a claim once was, or easily is, too small -----------------------------------


@pytest.mark.parametrize(
    ("spans", "scale", "sensitivity", "epsilon"),
    [
        ([(4.0, 12.5), (12.75, 15.5)], 1.5, 0.125, 0.07),  # the threshold of the worst pair lies in the hole
        ([(0.0, 2.875), (2.9, 2.92), (3.9, 4.0)], 0.332, 0.865, 24.4),
        ([(1.86, 1.875), (20.625, 20.75), (22.0625, 22.4375)], 1.8, 0.375, 1.217),
        ([(0.0, 1.0), (3.0, 4.0)], 1.7, 1.0, 0.5),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [ib.Laplace, ib.Gaussian])
def test_delta_with_holes_is_never_too_small(
    kind: Any, spans: Any, scale: float, sensitivity: float, epsilon: float
) -> None:
    made = kind(ib.Spans(spans), scale=scale, sensitivity=sensitivity)
    family = kind.__name__.lower()
    assert mpf(made.delta(epsilon)) >= ref.profile(family, scale, spans, sensitivity, epsilon, 24, digits=4, dps=30)


@pytest.mark.parametrize("alpha", [1.01, 2.0, 100.0, 1e3, 1e4, 1e6])
@pytest.mark.parametrize(
    ("upper", "scale", "sensitivity"), [(12, 74.0, 11), (12, 70.0, 1), (30, 20.0, 1), (12, 64.0, 2)]
)
def test_renyi_of_gaussian_integers_is_never_too_small(
    upper: int, scale: float, sensitivity: int, alpha: float
) -> None:
    made = ib.Gaussian(ib.Integers(0, upper), scale=scale, sensitivity=sensitivity)
    true = max(
        ref.renyi_closed("gaussian", scale, [(0, upper)], q, p, alpha, True, dps=30)
        for q in range(upper + 1)
        for p in (q - sensitivity, q + sensitivity)
        if 0 <= p <= upper
    )
    assert mpf(made.rdp(alpha)) >= true


@pytest.mark.parametrize(
    ("spans", "scale", "sensitivity", "alpha"),
    [
        ([(0.711, 0.731), (1.898, 1.914), (2.268, 3.619)], 56.4, 2.027, 1.01),
        ([(7.0, 8.5), (325086.2, 325095.3)], 30749.3, 5792.3, 1.01),
        ([(0.0, 1.0), (2.5, 4.0)], 2.0, 1.5, 1.0000001),
        ([(0.0, 8.0)], 5.0, 2.0, 1.0000001),
        ([(0.0, 8.0)], 5e4, 2.0, 1.0001),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [ib.Laplace, ib.Gaussian])
def test_renyi_close_to_order_one_is_never_too_small(
    kind: Any, spans: Any, scale: float, sensitivity: float, alpha: float
) -> None:
    made = kind(ib.Spans(spans), scale=scale, sensitivity=sensitivity)
    family = kind.__name__.lower()
    true = ref.renyi_supremum(family, scale, spans, sensitivity, alpha, 12, digits=4, dps=40)
    assert mpf(made.rdp(alpha)) >= true


@pytest.mark.parametrize("upper", [200, 5_000, 100_000, 10**6])
@pytest.mark.parametrize("scale", [30.0, 100.0])
def test_clamped_gaussian_integers_far_from_the_wall(upper: int, scale: float) -> None:
    made = ib.Gaussian(ib.Integers(0, upper), scale=scale, sensitivity=1, edges="clamp")
    near, far = (ref.mass("gaussian", scale, 0, t, INF, lattice=True) for t in (upper - 1, upper))
    true = ref.mp.log(near / far)
    assert true <= mpf(made.epsilon()) <= true * (1 + mpf(10) ** -6)


def test_far_away_spans_keep_their_widths() -> None:
    spans = [(0.1, 0.2), (1e6 + 0.3, 1e6 + 0.4)]
    made = ib.Laplace.calibrate(ib.Spans(spans), sensitivity=0.05, epsilon=1.0)
    assert ref.pure_loss_spans("laplace", made.scale, spans, made.sensitivity) <= 1
