"""Sphinx: the Python API, from the docstrings of the installed package."""

import mlbridge

project = "mlbridge"
version = release = mlbridge.__version__
copyright = "the ML-Compiler-Bridge authors"  # noqa: A001 (Sphinx names it)

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
html_theme = "alabaster"
