"""The versions that are admitted: an engine, a driver or a format is trusted for what has been run, not for its name.

An older one than the lowest is refused by name. A newer one than the highest is admitted, and every answer says so.
"""

from __future__ import annotations

import importlib.metadata
import re

from inbounds.errors import ParameterError

__all__ = ["RANGES", "admit", "admitted"]

#: Of each the lowest version that is admitted and the highest that the tests have been run on.
RANGES = {
    "duckdb": ("2.0", "2.0"),
    "ibis-framework": ("12.0", "12.0"),
    "narwhals": ("2.28", "2.28"),
    "pandas": ("2.2", "3.1"),
    "polars": ("1.38", "2.1"),
    "psycopg": ("3.2", "3.3"),
    "pyarrow": ("19.0", "26.0"),
    "pyspark": ("4.0", "4.3"),
    "PostgreSQL": ("15", "15"),
    "SQLite": ("3.37", "3.40"),
}


def _numbers(version: str, count: int) -> tuple[int, ...]:
    """The first numbers of a version, 0 where there are none: "2.0.0rc1" has (2, 0)."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(part) for part in found[0].split(".")] if found else []
    return tuple((numbers + [0] * count)[:count])


def admit(name: str, version: str) -> str | None:
    """Refuse a version that is too old; of one newer than tested, a note.

    A later correction of a tested one is not newer: as many numbers are compared as the highest has.
    """
    lowest, highest = RANGES[name]
    count = len(highest.split("."))
    if not _numbers(version, count) >= _numbers(lowest, count):
        raise ParameterError(
            f"Source: {name} must be of version {lowest} or later; got {version!r}. Install a later one."
        )
    if _numbers(version, count) > _numbers(highest, count):
        return f"{name} {version} is newer than {highest}, the last version that this was tested on"
    return None


def admitted(*packages: str) -> tuple[str, ...]:
    """The same for packages that are installed: the notes."""
    notes = (admit(package, importlib.metadata.version(package)) for package in packages)
    return tuple(note for note in notes if note is not None)
