"""The list of folders and files with one line each, from their own first lines: ``python tools/listing.py`` writes it.

The page is ``docs/files.md``; a test compares the two.
"""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "files.md"

#: What has no docstring.
OTHERS = {
    ".ci/run": "what the build server runs: every test, none skipped",
    "Makefile": "demo, test, test-long, lint, bench, docs, reproduce",
    "pyproject.toml": "the package, its extras, the tools' settings, the layers",
    "benchmarks/results": "the last results of every benchmark, as tables and as JSON",
    "docs": "guides, one page a subject",
    "docs/concepts": "the pictures of docs/concepts.md",
    "docs/gallery": "the pictures of docs/gallery.md",
    "docs/notebooks": "two notebooks, as pages and executed",
    "docs/papers": "what the four papers claim, and what holds",
    "docs/proofs": "one page a theorem, with its numerics and tests",
    "examples": "short scripts to copy",
    "src/inbounds/data": "a real data set about people, for the demo, with its origin",
    "tests": "one file a subject; *_reference.py and *_support.py are shared",
    "tests/contract": "what every mechanism must do",
    "tests/transcripts": "what the command line prints, word for word",
    "tests/vectors": "stored reference values, and the scripts that made them",
    "tools": "what makes stored things: pictures, notebooks, formulas, tables, this list",
}
PARTS = ("src/inbounds", "benchmarks", "tools", "examples", "docs", "tests")


def first_line(path: Path) -> str:
    """The first sentence of a module's docstring, without its full stop."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    line = text.split("\n\n")[0].replace("\n", " ")
    return line.split(". ")[0].rstrip(".")


def tracked() -> list[Path]:
    """The files of the project."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    return sorted(ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).exists())


def listing() -> str:
    """The page."""
    files = tracked()
    out = [
        "# Files",
        "",
        "What lies where. A module imports only from the layers below its own (`pyproject.toml`).",
        "",
    ]
    out += ["| | |", "|---|---|"]
    out += [f"| `{name}` | {OTHERS[name]} |" for name in ("Makefile", "pyproject.toml", ".ci/run")]
    for part in PARTS:
        folders = sorted({path.parent for path in files if path.is_relative_to(ROOT / part)})
        for folder in folders:
            name = folder.relative_to(ROOT).as_posix()
            if "__pycache__" in name or name.startswith(("docs/_static", "docs/notebooks/", "docs/papers/")):
                continue
            package = folder / "__init__.py"
            words = OTHERS.get(name) or (first_line(package) if package.exists() else "")
            out += ["", f"## {name}/", "", f"{words[:1].upper()}{words[1:]}.", ""]
            modules = [p for p in files if p.parent == folder and p.suffix == ".py" and p.name != "__init__.py"]
            if modules and part != "tests":
                out += ["| | |", "|---|---|", *(f"| `{p.name}` | {first_line(p)} |" for p in modules)]
    return "\n".join(out).replace("\n\n\n", "\n\n").rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(listing(), encoding="utf-8")
