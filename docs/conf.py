"""Sphinx configuration; `make docs` builds with warnings as errors, and needs no network."""

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

project = "inbounds"
author = "the inbounds authors"
copyright = author
version = release = installed("inbounds")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_math_renderer = "mathml"
html_theme = "furo"
html_title = "inbounds"
html_static_path = ["_static"]
html_css_files = ["inbounds.css"]
html_show_sphinx = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = False
napoleon_use_ivar = True  # attributes are described once: frozen fields would be listed twice otherwise

nitpicky = True  # a reference that leads nowhere is an error
nitpick_ignore_regex = [("py:class", ".*")]  # words of numpydoc ("power of two, or None") are taken for classes
