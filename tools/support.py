"""Make docs/support.md, the page of what is supported: ``python tools/support.py`` from the root.

A test compares the page with what the sources declare, and every source with what it is found to do.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from inbounds.tables.contract import expected, page  # noqa: E402
from tests.test_contract_engines import PAGE, declared  # noqa: E402

if __name__ == "__main__":
    begin = PAGE.read_text(encoding="utf-8").partition("## Types")[0]
    PAGE.write_text(begin + page([expected(maker) for maker in declared()]), encoding="utf-8")
