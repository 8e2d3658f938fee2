"""The engine contract: known rows, and what every admitted engine and source must answer about them.

``python -m inbounds.tables.contract URL`` asks a database of yours. What is asked is in ``cases``, of what rows in
``rows``, and how they get into files, frames and databases in ``sources``.
"""

from inbounds.tables.contract.checking import Found, check, expected, holds, page
from inbounds.tables.contract.sources import LOCAL, Maker, database, on_spark, on_spark_files

__all__ = ["LOCAL", "Found", "Maker", "check", "database", "expected", "holds", "on_spark", "on_spark_files", "page"]
