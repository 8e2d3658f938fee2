"""A budget on disk that cannot be overspent: reserve, then draw, then commit.

``ledger`` holds what users meet, ``store`` and its two kinds keep it, ``verification`` checks everything again.
"""

from inbounds.ledger.ledger import Ledger
from inbounds.ledger.record import Record
from inbounds.ledger.reservation import Reservation
from inbounds.ledger.scope import Scope
from inbounds.ledger.verification import Problem, Verification

__all__ = ["Ledger", "Problem", "Record", "Reservation", "Scope", "Verification"]
