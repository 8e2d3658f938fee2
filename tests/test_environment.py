"""The outside programs that some tests need do run."""

from __future__ import annotations

import re
import subprocess

import pytest


@pytest.mark.java
def test_java_is_new_enough(java: str) -> None:
    # `java -version` writes to stderr, by tradition.
    text = subprocess.run([java, "-version"], capture_output=True, text=True, check=True, timeout=60).stderr
    found = re.search(r'version "(\d+)', text)
    assert found is not None, text
    assert int(found[1]) >= 17


@pytest.mark.postgres
def test_initdb_answers(initdb: str) -> None:
    text = subprocess.run([initdb, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    assert re.match(r"initdb \(PostgreSQL\) \d+", text)
