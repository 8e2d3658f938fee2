"""Properties that are computed once, without a lock.

Until Python 3.12 that of :mod:`functools` has a lock for all instances of a class together: threads wait for each
other's calibrations, and a process forked while another thread holds it waits for ever.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property"]

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801 - as it is called in functools
        """Where two threads compute it at once, both get what the first one found."""

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            kept = vars(instance)
            if self.attrname not in kept:
                kept.setdefault(self.attrname, self.func(instance))
            return kept[self.attrname]
