# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge vocabulary``: converts and shows IR2Vec vocabularies."""

from pathlib import Path
from typing import Annotated

import typer

from mlbridge import ir2vec
from mlbridge.terminal import console

app = typer.Typer(
    no_args_is_help=True,
    help="Convert and show vocabularies of IR2Vec. See docs/reference/ir2vec.md.",
)
_File = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Vocabulary.")]


@app.command()
def convert(
    file: _File,
    to: Annotated[Path, typer.Option(metavar="FILE.json", help="File to write.")],
) -> None:
    """Convert a vocabulary from the format of IR2Vec to the JSON format of LLVM.

    ```sh
    mlbridge vocabulary convert seedEmbeddingVocab.txt --to ir2vec-300d.json
    ```
    """
    vocabulary = ir2vec.convert(file)
    vocabulary.save(to)
    _show(ir2vec.Vocabulary(to.name, vocabulary.sections))


@app.command()
def show(file: _File) -> None:
    """Show the size and the hash of a vocabulary in LLVM's format.

    An exported model stores the hash of the vocabulary with which it was trained.
    """
    _show(ir2vec.load(file))


def _show(vocabulary: ir2vec.Vocabulary) -> None:
    counts = ", ".join(
        f"{len(vectors)} {section.lower()}"
        for section, vectors in vocabulary.sections.items()
    )
    console.print(f"{vocabulary.name}: dimension {vocabulary.dimension}, {counts}")
    console.print(vocabulary.hash, soft_wrap=True)
