"""Sphinx configuration; `make docs` builds with warnings as errors."""

from importlib.metadata import version as installed

project = "inbounds"
author = "the inbounds authors"
copyright = author
version = release = installed("inbounds")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "inbounds"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = False
napoleon_use_ivar = True  # attributes are described once: frozen fields would be listed twice otherwise
