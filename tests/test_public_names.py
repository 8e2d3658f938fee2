"""What the package shows to the world."""

from __future__ import annotations

import doctest
import importlib
import inspect
import subprocess
import sys

import pytest

import inbounds

NAMES = [
    "L0",
    "L1",
    "L2",
    "Bound",
    "BoundedLaplace",
    "Box",
    "Budget",
    "BudgetExceeded",
    "Denoised",
    "Gaussian",
    "InboundsError",
    "Integers",
    "Interval",
    "Laplace",
    "Ledger",
    "Linf",
    "LocationFamily",
    "Mechanism",
    "MissingAnswer",
    "MissingColumn",
    "MissingExtra",
    "OutsideDomain",
    "ParameterError",
    "ParameterTypeError",
    "PerCoordinate",
    "QueryFailed",
    "Release",
    "Spans",
    "Staircase",
    "Table",
    "UnknownEvent",
    "UnreachableTarget",
    "ask",
    "audit",
    "audit_sampler",
    "col",
    "compare",
    "dataset",
    "events",
    "for_accuracy",
    "optimal",
    "optimal_bound",
    "price",
    "recommend",
    "tradeoff",
]


def test_the_public_names() -> None:
    assert inbounds.__all__ == NAMES
    assert all(hasattr(inbounds, name) for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_public_object_is_documented(name: str) -> None:
    thing = getattr(inbounds, name)
    assert inspect.getdoc(thing)
    assert thing.__doc__, "its own docstring, not an inherited one"
    for method, member in inspect.getmembers(thing, inspect.isfunction):
        inherited = any(hasattr(base, method) for base in (Exception, float, object))
        named = method in ("mean", "var", "std", "logpdf", "logpmf", "pdf", "pmf", "cdf")  # scipy's words
        if not method.startswith("_") and not inherited and not named:
            assert inspect.getdoc(member), f"{name}.{method}"


@pytest.mark.parametrize("name", [n for n in NAMES if inspect.isclass(getattr(inbounds, n))])
def test_errors_are_what_a_user_would_catch(name: str) -> None:
    thing = getattr(inbounds, name)
    if issubclass(thing, Exception) and thing is not inbounds.InboundsError:
        assert issubclass(thing, inbounds.InboundsError)
        kinds = {"MissingExtra": ImportError, "ParameterTypeError": TypeError, "QueryFailed": RuntimeError}
        kind = kinds.get(name, ValueError)
        assert issubclass(thing, kind)


@pytest.mark.parametrize(
    "name",
    ["inbounds", "inbounds.domain", "inbounds.mechanism.additive", "inbounds.accounting", "inbounds.tables.data"],
)
def test_docstring_examples_run(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0
    assert found.failed == 0


def test_importing_loads_the_core_only() -> None:
    code = "import sys, inbounds; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = set(
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            env={"PYTHONPATH": ":".join(sys.path)},
        ).stdout.split()
    )
    assert {"inbounds", "numpy", "scipy"} <= loaded
    for name in ("pandas", "polars", "matplotlib", "mpmath", "flint", "sklearn", "duckdb", "pyspark", "pytest"):
        assert name not in loaded
    public = {name for name in loaded if not name.startswith("_")}
    ours = {"cython_runtime", "numpy", "scipy", "cryptography", "inbounds", "cffi", "sitecustomize", "usercustomize"}
    ours |= {"charset_normalizer", "chardet"}  # numpy tries these where they happen to be installed
    assert public - set(sys.stdlib_module_names) <= ours
