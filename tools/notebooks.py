"""Make docs/notebooks/NAME.ipynb, with its outputs, from the page docs/notebooks/NAME.md.

Usage: python tools/notebooks.py [NAME ...]     (default: all pages there)

The page is what the documentation shows and what is edited. Its Python blocks become code cells and are run; the text
between becomes Markdown cells. What the page shows of the outputs, ``text`` blocks and pictures, is left out of the
notebook, where the outputs themselves are, and made anew: the ``text`` block after a Python block is what that prints,
pictures, one for each figure, are drawn into docs/notebooks/NAME/.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"

_CODE = re.compile(r"^```python\n(.*?)^```\n", flags=re.MULTILINE | re.DOTALL)
_TEXT = re.compile(r"^```text\n(.*?)^```\n", flags=re.MULTILINE | re.DOTALL)
_SHOWN = re.compile(r"^```text\n.*?^```\n|^!\[[^\n]*\n|^\{download\}[^\n]*\n", flags=re.MULTILINE | re.DOTALL)
_ROLE = re.compile(r"\{doc\}`(?:([^`<]+) <[^`>]+>|[./]*([^`]+))`")


def cells(page: str) -> list[tuple[str, str]]:
    """The page as (kind, source) pairs, kind "markdown" or "code"."""
    found = []
    for k, part in enumerate(_CODE.split(page)):
        if k % 2:
            found.append(("code", part.rstrip("\n")))
            continue
        text = _ROLE.sub(lambda m: m[1] or f"*{m[2]}*", _SHOWN.sub("", part)).strip()
        if text:
            found.append(("markdown", text))
    return found


def run(source: str, namespace: dict[str, Any]) -> tuple[str, Any]:
    """What a cell prints, and the value of its last line if that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)
    return printed.getvalue(), value


def outputs(printed: str, value: Any, count: int) -> list[dict[str, Any]]:
    """The outputs of a cell as a notebook keeps them."""
    made: list[dict[str, Any]] = []
    if printed:
        made.append({"output_type": "stream", "name": "stdout", "text": lines(printed)})
    if value is not None:
        data: dict[str, Any] = {"text/plain": lines(repr(value))}
        picture = png(value)
        if picture is not None:
            data["image/png"] = base64.b64encode(picture).decode()
        elif hasattr(value, "_repr_html_"):
            data["text/html"] = lines(value._repr_html_())
        made.append({"output_type": "execute_result", "execution_count": count, "data": data, "metadata": {}})
    return made


def png(value: Any) -> bytes | None:
    """The picture of a figure; None if it is none."""
    if not hasattr(value, "savefig"):
        return None
    file = io.BytesIO()
    value.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def notebook(page: str) -> tuple[dict[str, Any], list[bytes]]:
    """The executed notebook of a page, and its pictures in order."""
    namespace: dict[str, Any] = {}
    made: list[dict[str, Any]] = []
    pictures = []
    for k, (kind, source) in enumerate(cells(page), start=1):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{k}", "metadata": {}, "source": lines(source)}
        if kind == "code":
            count = 1 + sum(c["cell_type"] == "code" for c in made)
            printed, value = run(source, namespace)
            picture = png(value)
            pictures += [picture] if picture is not None else []
            cell |= {"execution_count": count, "outputs": outputs(printed, value, count)}
        made.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": about, "nbformat": 4, "nbformat_minor": 5}, pictures


def refreshed(page: str, made: dict[str, Any]) -> str:
    """The page with what its notebook printed."""
    outputs = [cell["outputs"] for cell in made["cells"] if cell["cell_type"] == "code"]
    printed = ["".join(line for o in found if "text" in o for line in o["text"]) for found in outputs]
    start, *parts = re.split(r"(?=^```python\n)", page, flags=re.MULTILINE)
    shown = [
        _TEXT.sub(lambda _, text=text: f"```text\n{text}```\n", part, 1)
        for part, text in zip(parts, printed, strict=True)
    ]
    return start + "".join(shown)


def write(name: str) -> None:
    source = FOLDER / f"{name}.md"
    page = source.read_text(encoding="utf-8")
    made, pictures = notebook(page)
    source.write_text(refreshed(page, made), encoding="utf-8")
    text = json.dumps(made, indent=1, ensure_ascii=False) + "\n"
    (FOLDER / f"{name}.ipynb").write_text(text, encoding="utf-8")
    (FOLDER / name).mkdir(exist_ok=True)
    for k, picture in enumerate(pictures, start=1):
        (FOLDER / name / f"{k}.png").write_bytes(picture)
    print(f"{name}.ipynb: {len(made['cells'])} cells, {len(pictures)} pictures")


if __name__ == "__main__":
    for chosen in sys.argv[1:] or sorted(page.stem for page in FOLDER.glob("*.md")):
        write(chosen)
