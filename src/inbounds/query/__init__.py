"""Private answers from tables.

:func:`dataset` opens a table with a unit of privacy and a budget. A :class:`Plan` says what is asked: its parts
(``parts``) are drawn with shares of the budget (``spending``), from exact, bounded whole numbers per group, which the
engine half gives: a :class:`Source` is a table, :func:`col` starts a condition, and a :class:`Request` says what to
count and sum, of whom, and how much of one unit counts; ``request.run(source)`` gives the numbers, which are secret.
"""

from inbounds.query import ask
from inbounds.query.aggregates import Aggregate
from inbounds.query.answers import Answer
from inbounds.query.data import Dataset, dataset
from inbounds.query.expressions import Expression, col, from_json
from inbounds.query.kinds import Kind
from inbounds.query.measures import Bins, Caps, Fixed, Grid, Measure, Meeting, Rows, Squares, Sum, Units, UnitsMeeting
from inbounds.query.plan import Plan
from inbounds.query.request import Request, Tally
from inbounds.query.results import Results
from inbounds.query.source import Source
from inbounds.query.suggestions import Suggestion

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
