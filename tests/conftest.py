"""Set-up shared by all tests: what the machine offers, how skips are reported, how Hypothesis draws.

A test marked ``java`` or ``postgres`` is skipped where the program is missing, and the summary says so in
capitals. With ``INBOUNDS_FORBID_SKIPS=1`` in the environment every skip, of whatever cause, is a failure.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator

import hypothesis
import pytest
from mpmath import mp

from tests.postgres import find_initdb

hypothesis.settings.register_profile("inbounds", derandomize=True, deadline=None)
hypothesis.settings.load_profile("inbounds")

FORBID_SKIPS = os.environ.get("INBOUNDS_FORBID_SKIPS") == "1"


@pytest.fixture(autouse=True)
def _precision() -> Iterator[None]:
    """Sums and comparisons of 50-digit values in the tests themselves keep 60 digits."""
    with mp.workdps(60):
        yield


def find_java() -> str | None:
    """Return the path of the Java launcher, or None."""
    return shutil.which("java")


FINDERS = {"java": find_java, "postgres": find_initdb}
NEEDS = {
    "java": "NO JAVA: install a Java runtime, 17 or newer",
    "postgres": "NO POSTGRESQL: install the PostgreSQL server (initdb was not found)",
}


@pytest.fixture(scope="session")
def java() -> str:
    """The Java launcher; for tests marked ``java``."""
    path = find_java()
    assert path is not None, NEEDS["java"]
    return path


@pytest.fixture(scope="session")
def initdb() -> str:
    """PostgreSQL's initdb; for tests marked ``postgres``."""
    path = find_initdb()
    assert path is not None, NEEDS["postgres"]
    return path


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test marked ``thinned(n)`` every n-th case stays in the short suite."""
    seen: dict[str, int] = {}
    for item in items:
        mark = item.get_closest_marker("thinned")
        if mark is not None:
            name = item.nodeid.partition("[")[0]
            seen[name] = seen.get(name, -1) + 1
            if seen[name] % mark.args[0]:
                item.add_marker(pytest.mark.more)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, find in FINDERS.items():
        if item.get_closest_marker(marker) is not None and find() is None:
            pytest.skip(NEEDS[marker])


def _forbid(report: pytest.TestReport | pytest.CollectReport) -> None:
    # An expected failure is reported as a skip too; it did run, so it stands.
    if FORBID_SKIPS and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped while INBOUNDS_FORBID_SKIPS=1: {_reason(report)}"


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    return str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _forbid(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _forbid(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [_reason(report) for report in terminalreporter.stats.get("skipped", [])]
    for need in NEEDS.values():
        count = sum(need in reason for reason in skipped)
        if count:
            terminalreporter.write_sep("!", f"NOT RUN: {count}. {need}", red=True, bold=True)
