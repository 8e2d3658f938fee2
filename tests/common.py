"""What several test files share."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import inbounds as ib
import inbounds.mechanism.additive
from tests import reference as ref

MECHANISMS: dict[str, Any] = {"laplace": ib.Laplace, "gaussian": ib.Gaussian}


def goal(x: float) -> Any:
    """The smaller of a float and the decimal it prints as: a target must not be exceeded on either reading."""
    return ref.to_mpf(min(Fraction(x), Fraction(repr(x))))


def domain_of(spans: list[tuple[float, float]], lattice: bool = False) -> Any:
    if lattice:
        return ib.Integers(*spans[0])
    return ib.Interval(*spans[0]) if len(spans) == 1 else ib.Spans(spans)


def broken(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    """From here on, every calibration is off by a factor."""
    right: Callable[..., float] = inbounds.mechanism.additive.calibrate
    monkeypatch.setattr(inbounds.mechanism.additive, "calibrate", lambda *a, **k: factor * right(*a, **k))
