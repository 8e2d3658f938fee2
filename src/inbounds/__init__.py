"""Differential privacy with answers that make sense.

>>> import inbounds as ib
>>> age = ib.Laplace.calibrate(ib.Interval(0, 120), sensitivity=0.5, epsilon=1.0)
>>> age.release(41.3).value in age.domain
True
"""

from inbounds import events
from inbounds.accounting import Budget, price
from inbounds.advice import compare, for_accuracy, recommend, tradeoff
from inbounds.auditing import LocationFamily, audit, audit_sampler
from inbounds.domain import Box, Integers, Interval, Spans
from inbounds.errors import (
    BudgetExceeded,
    InboundsError,
    MissingAnswer,
    MissingColumn,
    MissingExtra,
    OutsideDomain,
    ParameterError,
    ParameterTypeError,
    QueryFailed,
    UnknownEvent,
    UnreachableTarget,
)
from inbounds.ledger import Ledger
from inbounds.mechanism import BoundedLaplace, Denoised, Gaussian, Laplace, Mechanism, Staircase, Table
from inbounds.numerics import Bound
from inbounds.optimal import optimal, optimal_bound
from inbounds.release import Release
from inbounds.sensitivity import L0, L1, L2, Linf, PerCoordinate
from inbounds.tables import ask, col, dataset

__version__ = "0.1.0"

__all__ = [
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
