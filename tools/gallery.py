"""Draw the pictures of the pages that have some: run each page's code where its pictures are kept.

Usage: python tools/gallery.py [folder]     (default: docs)

The pictures of docs/NAME.md lie in docs/NAME/; a page draws every picture that it shows.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = ("concepts", "gallery")


def draw(page: str, folder: Path) -> list[Path]:
    """Run every code block of a page in order, in the folder; returns the pictures there."""
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    folder.mkdir(parents=True, exist_ok=True)
    before = Path.cwd()
    os.chdir(folder)
    try:
        exec(compile("\n".join(blocks), f"docs/{page}.md", "exec"), {})
    finally:
        os.chdir(before)
    return sorted(folder.glob("*.png"))


if __name__ == "__main__":
    for name in PAGES:
        for picture in draw(name, (Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs") / name):
            print(f"{name}/{picture.name}")
