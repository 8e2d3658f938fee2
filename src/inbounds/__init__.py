"""Differential privacy with answers that make sense.

>>> import inbounds as ib
>>> age = ib.Laplace.calibrate(ib.Interval(0, 120), sensitivity=0.5, epsilon=1.0)
>>> age.release(41.3).value in age.domain
True
"""

from inbounds.auditing import LocationFamily, audit, audit_sampler
from inbounds.domain import Box, Integers, Interval, Spans
from inbounds.errors import (
    InboundsError,
    MissingExtra,
    OutsideDomain,
    ParameterError,
    ParameterTypeError,
    UnreachableTarget,
)
from inbounds.mechanism import Gaussian, Laplace
from inbounds.numerics import Bound
from inbounds.release import Release
from inbounds.sensitivity import L0, L1, L2, Linf, PerCoordinate

__version__ = "0.1.0"

__all__ = [
    "L0",
    "L1",
    "L2",
    "Bound",
    "Box",
    "Gaussian",
    "InboundsError",
    "Integers",
    "Interval",
    "Laplace",
    "Linf",
    "LocationFamily",
    "MissingExtra",
    "OutsideDomain",
    "ParameterError",
    "ParameterTypeError",
    "PerCoordinate",
    "Release",
    "Spans",
    "UnreachableTarget",
    "audit",
    "audit_sampler",
]
