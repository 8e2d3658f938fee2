"""Sphinx extension: formulas as MathML, which browsers draw by themselves: no script, no font, no network."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

# what the converter does not know, in words that it does
_WORDS = (
    (re.compile(r"\\[Bb]ig[lr]?\s*(\\[lr](?:floor|ceil))"), r"\1"),
    (re.compile(r"\\operatorname\{(\w*\d\w*)\}"), r"\\,\\text{\1}"),
    (re.compile(r"\\tag\{([^}]*)\}"), r"\\qquad\\text{(\1)}"),
)

# a prime is raised by itself; as an exponent it would be raised twice
_PRIME = re.compile(r"<msup>(<m[in]>[^<]*</m[in]>)<mi>&#x02032;</mi></msup>")
# browsers draw the letters of Unicode, and no others, in these styles
_STYLED = re.compile(r'<m\w+ mathvariant="(double-struck|script|monospace)">([^<]+)<')


def _letters(style: str, text: str) -> str:
    def letter(c: str) -> str:
        for name in (f"{style.upper()} CAPITAL {c}", f"MATHEMATICAL {style.upper()} CAPITAL {c}"):
            try:
                return unicodedata.lookup(name)
            except KeyError:
                continue
        return c

    return "".join(letter(c) for c in text)


def markup(tex: str, *, block: bool) -> str:
    """The formula as MathML; raises ValueError if a command was left as it stands."""
    for pattern, words in _WORDS:
        tex = pattern.sub(words, tex)
    made = convert(tex, display="block" if block else "inline")
    made = _STYLED.sub(lambda m: m[0].replace(f' mathvariant="{m[1]}"', "").replace(m[2], _letters(m[1], m[2])), made)
    made = _PRIME.sub(r'<mrow>\1<mo lspace="0" rspace="0">&#x02032;</mo></mrow>', made).replace(r"\_", "_")
    left = re.search(r"\\[A-Za-z]+", made)
    if left is not None:
        raise ValueError(f"mathml: {left[0]} is not known, in {tex!r}")
    return made


def inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(markup(node.astext(), block=False))
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{markup(node.astext(), block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
