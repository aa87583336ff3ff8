# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sphinx: the site, of Markdown pages, Python docstrings and Doxygen's C++ pages."""

import re
from pathlib import Path

import mlbridge

project = "ML-Compiler-Bridge"
version = release = mlbridge.__version__
copyright = "the ML-Compiler-Bridge authors"  # noqa: A001 (Sphinx names it)

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["style.md"]
myst_heading_anchors = 3
# A name that several classes have, such as `reward`, needs no link.
suppress_warnings = ["ref.python"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
# What a page may import, but the documentation does not need.
autodoc_mock_imports = ["ray", "jax", "flax", "keras", "tensorflow", "tvm", "skl2onnx"]
html_theme = "furo"
html_title = f"ML-Compiler-Bridge {version}"
# Contains Doxygen's pages, in the folder cpp. scripts/docs makes them before this site.
html_extra_path = ["../build/docs/doxygen"]

ROOT = Path(__file__).resolve().parent.parent


def link_within_the_site(app, name, source):
    """Turns links to files outside of docs/, which are not pages, into their names."""
    page = Path(app.env.doc2path(name)).parent

    def rewrite(match):
        text, target = match[1], match[2]
        path = (page / target.partition("#")[0]).resolve()
        if re.match("[a-z]+:|#", target) or path.is_relative_to(ROOT / "docs"):
            return match[0]
        return f"{text} (`{path.relative_to(ROOT)}`)"

    source[0] = re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", rewrite, source[0])


def setup(app):
    """Registers the link rewriter."""
    app.connect("source-read", link_within_the_site)
