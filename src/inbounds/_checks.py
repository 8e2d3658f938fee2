"""Every argument check, in one wording: ``{what}: {name} must be {requirement}; got {value!r}. {next step}``.

Checks are phrased "accept if", so that NaN fails every one of them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from numbers import Real
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from inbounds import _exact
from inbounds.errors import ParameterError, ParameterTypeError

FloatArray = npt.NDArray[np.float64]

#: Sizes of ends, sensitivities and (with some room) scales: squares and fourth powers of them stay within float64.
SMALLEST, LARGEST = 1e-60, 1e60


def refuse(
    what: str,
    name: str,
    requirement: str,
    value: object,
    next_step: str,
    kind: type[Exception] = ParameterError,
) -> NoReturn:
    raise kind(f"{what}: {name} must be {requirement}; got {shown(value)}. {next_step}".rstrip())


def shown(value: object, most: int = 80) -> str:
    """A value in a message, cut where it is long."""
    try:
        text = repr(value)
    except Exception:  # an int of more digits than Python converts, lists without end, a class of the caller's
        text = f"a {type(value).__name__} too long to show"
    return text if len(text) <= most else text[: most - 3] + "..."


def number(
    what: str,
    name: str,
    value: object,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    at_least: float | None = None,
    at_most: float | None = None,
    finite: bool = True,
    next_step: str = "",
    kind: str = "",
) -> float:
    """A real number inside the given limits, as a float. Bools, strings and complex numbers are not numbers."""
    low = f"({above!r}" if at_least is None else f"[{at_least!r}"
    high = f"{below!r})" if at_most is None else f"{at_most!r}]"
    kind = kind or ("a finite number" if finite else "a number")
    requirement = kind if (low, high) == ("(-inf", "inf)") else f"{kind} in {low}, {high}"
    if isinstance(value, np.ndarray) and value.ndim == 0 and not isinstance(value, np.ma.MaskedArray):
        value = value[()]
    if isinstance(value, bool | np.bool_ | np.timedelta64) or not isinstance(value, Real):
        refuse(what, name, requirement, value, next_step, ParameterTypeError)
    try:
        x = plain(value)
    except Exception:  # too large; or whatever a class of the caller's raises
        refuse(what, name, requirement, value, next_step)
    accepted = (
        (math.isfinite(x) or (not finite and math.isinf(x)))
        and (x > above if at_least is None else x >= at_least)
        and (x < below if at_most is None else x <= at_most)
    )
    if not finite and math.isinf(x):
        accepted = True
    if not accepted:
        refuse(what, name, requirement, value, next_step)
    return x


def plain(value: Real) -> float:
    """As a float, also if it is of a derived class that says otherwise."""
    if isinstance(value, float):
        return float.__float__(value)
    return float(int.__int__(value)) if isinstance(value, int) else float(value)


def amount(what: str, name: str, value: object, *, least: float, next_step: str = "", **limits: float) -> float:
    """0, or a number from ``least`` on; ``limits`` as of :func:`number`."""
    x = number(what, name, value, at_least=0.0, next_step=next_step, **limits)  # type: ignore[arg-type]
    if 0.0 < x < least:
        refuse(what, name, f"0 or at least {least!r}", value, next_step)
    return x


def whole(what: str, name: str, value: object, *, at_least: int, at_most: int, next_step: str = "") -> int:
    """A whole number inside the given limits. ``3.0`` is one; ``3.5`` and ``True`` are not."""
    number(what, name, value, at_least=at_least, at_most=at_most, next_step=next_step, kind="a whole number")
    given = _exact.exact(value)  # not by way of a float, which would round it
    found = int(given) if given is not None else 0
    if found != given:
        refuse(what, name, "a whole number", value, next_step)
    if not at_least <= found <= at_most:
        refuse(what, name, f"a whole number in [{at_least!r}, {at_most!r}]", value, next_step)
    return found


def vector(what: str, name: str, values: object, *, finite: bool = True, next_step: str = "") -> FloatArray:
    """A non-empty one-dimensional array of numbers, as float64."""
    requirement = "a sequence of finite numbers" if finite else "a sequence of numbers"
    if isinstance(values, str | bytes) or not isinstance(values, Sequence | np.ndarray):
        refuse(what, name, requirement, values, next_step, ParameterTypeError)
    array = real_array(what, name, values, requirement=requirement, next_step=next_step)
    if array.ndim != 1 or array.size == 0:
        refuse(what, name, f"{requirement} of shape (m,), m >= 1", f"shape {array.shape}", next_step)
    if np.isnan(array).any() or (finite and not np.isfinite(array).all()):
        refuse(what, name, requirement, values, next_step)
    return array


def real_array(what: str, name: str, values: object, *, requirement: str, next_step: str = "") -> FloatArray:
    """Numbers of any shape, copied as float64, each the nearest one; what is none is refused, unechoed."""
    found = real_values(what, name, values, requirement=requirement, next_step=next_step)
    try:
        return np.array(found, dtype=np.float64)
    except OverflowError:
        refuse(what, name, requirement, f"{type(values).__name__}", next_step, ParameterTypeError)


def numbers(what: str, name: str, values: Any) -> FloatArray:
    """Numbers of any shape, NaN and infinite ones too: what laws and posteriors are asked about."""
    return real_array(what, name, values, requirement="numbers")


def exact_numbers(what: str, name: str, values: object) -> npt.NDArray[Any]:
    """The same, none of them rounded."""
    return _exact.canonical(real_values(what, name, values, requirement="numbers"))


def level(what: str, value: object) -> float:
    """The level of an interval: a probability that leaves more than rounding on either side."""
    return number(what, "level", value, above=0.0, at_most=1.0 - 1e-12)


def real_values(what: str, name: str, values: object, *, requirement: str, next_step: str = "") -> npt.NDArray[Any]:
    """Numbers of any shape as the exact numbers they are: see :func:`inbounds._exact.array`; unechoed."""
    found = _exact.array(values)
    if found is None:
        step = _exact.advice(values) or next_step
        refuse(what, name, requirement, f"{type(values).__name__}", step, ParameterTypeError)
    return found


def choice(what: str, name: str, value: object, options: Collection[str]) -> str:
    if not isinstance(value, str) or value not in options:
        kind = ParameterError if isinstance(value, str) else ParameterTypeError
        refuse(what, name, "one of " + ", ".join(map(repr, options)), value, "", kind)
    return value
