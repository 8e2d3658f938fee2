"""Questions for ``data.select``: ``ask.mean("age", (0, 120))``, ``ask.count_units()`` and so on."""

from inbounds.tables.aggregates import (
    count,
    count_units,
    histogram,
    mean,
    median,
    quantile,
    quantiles,
    share,
    std,
    variance,
)
from inbounds.tables.aggregates import maximum as max
from inbounds.tables.aggregates import minimum as min
from inbounds.tables.aggregates import sum_of as sum

__all__ = [
    "count",
    "count_units",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "quantile",
    "quantiles",
    "share",
    "std",
    "sum",
    "variance",
]
