# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes pages from templates."""

from pathlib import Path
from typing import Any

from mlbridge.files import replacing


def write_page(path: Path, template: Path, **values: Any) -> None:
    """Writes a page from a Jinja template, in which the values have these names."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.from_string(template.read_text("utf-8")).render(values)
    with replacing(path) as made:
        made.write_text(page, "utf-8")
