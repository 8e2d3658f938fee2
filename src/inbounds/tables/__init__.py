"""Private answers from tables.

:func:`dataset` opens a table with a unit of privacy and a budget. A :class:`Plan` says what is asked: its parts
(``parts``) are drawn with shares of the budget (``spending``), from exact, bounded whole numbers per group, which the
engine half gives: a :class:`Source` is a table, :func:`col` starts a condition, and a :class:`Request` says what to
count and sum, of whom, and how much of one unit counts; ``request.run(source)`` gives the numbers, which are secret.
"""

from inbounds.tables import ask
from inbounds.tables.aggregates import Aggregate
from inbounds.tables.answers import Answer
from inbounds.tables.data import Dataset, dataset
from inbounds.tables.expressions import Expression, col, from_json
from inbounds.tables.fixed import Caps, Fixed
from inbounds.tables.kinds import Kind
from inbounds.tables.measures import Bins, Grid, Measure, Meeting, Rows, Squares, Sum, Units, UnitsMeeting
from inbounds.tables.per_unit import PerUnit
from inbounds.tables.plan import Plan
from inbounds.tables.request import Request, Tally
from inbounds.tables.results import Results
from inbounds.tables.source import Source
from inbounds.tables.suggestions import Suggestion

__all__ = [
    "Aggregate",
    "Answer",
    "Bins",
    "Caps",
    "Dataset",
    "Expression",
    "Fixed",
    "Grid",
    "Kind",
    "Measure",
    "Meeting",
    "PerUnit",
    "Plan",
    "Request",
    "Results",
    "Rows",
    "Source",
    "Squares",
    "Suggestion",
    "Sum",
    "Tally",
    "Units",
    "UnitsMeeting",
    "ask",
    "col",
    "dataset",
    "from_json",
]
