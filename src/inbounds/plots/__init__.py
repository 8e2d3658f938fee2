"""Pictures of mechanisms: answers, privacy, error, scales, intervals, comparisons and trade-offs.

Every function draws on a new :class:`matplotlib.figure.Figure`, on a ``figure`` that is given, or on ``axes`` that are
given, and returns the figure. Nothing is shown and no global state is touched: save with ``figure.savefig(...)``.
matplotlib is imported when a picture is drawn; it comes with ``inbounds[plots]``.
"""

from inbounds.plots.choices import answers, comparison, intervals, tradeoff
from inbounds.plots.mechanisms import density, error, profile, scales
from inbounds.plots.style import COLOURS, require

__all__ = [
    "COLOURS",
    "answers",
    "comparison",
    "density",
    "error",
    "intervals",
    "profile",
    "require",
    "scales",
    "tradeoff",
]
