"""The exception tree.

::

    InboundsError
    ├── ParameterError        (ValueError)  a parameter has the right type but an unusable value
    ├── ParameterTypeError    (TypeError)   a parameter has the wrong type
    ├── UnreachableTarget     (ValueError)  no scale of this mechanism meets the privacy target
    ├── OutsideDomain         (ValueError)  a true value lies outside the domain; never echoes the value
    └── MissingExtra          (ImportError) a package is not installed; names the extra that brings it
"""

from __future__ import annotations

__all__ = [
    "InboundsError",
    "MissingExtra",
    "OutsideDomain",
    "ParameterError",
    "ParameterTypeError",
    "UnreachableTarget",
]


class InboundsError(Exception):
    """Everything this package raises on purpose."""


class ParameterError(InboundsError, ValueError):
    """A parameter has an unusable value."""


class ParameterTypeError(InboundsError, TypeError):
    """A parameter has the wrong type."""


class UnreachableTarget(InboundsError, ValueError):
    """No scale of this mechanism meets the privacy target; the message names what can be had."""


class OutsideDomain(InboundsError, ValueError):
    """A true value lies outside the domain. The value is never part of the message."""


class MissingExtra(InboundsError, ImportError):
    """A package that this part needs is not installed; the message names the extra that brings it."""
