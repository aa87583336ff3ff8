# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``mlbridge vocabulary``: IR2Vec vocabularies, by which code becomes vectors."""

from pathlib import Path
from typing import Annotated

import typer

from mlbridge import ir2vec
from mlbridge.terminal import console

app = typer.Typer(
    no_args_is_help=True,
    help="IR2Vec vocabularies, by which code becomes vectors: docs/ir2vec.md.",
)


@app.command()
def convert(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False)],
    to: Annotated[
        Path, typer.Option(metavar="FILE.json", help="What to write, in LLVM's form.")
    ],
) -> None:
    """Make LLVM's form of a vocabulary from IR2Vec's own.

    ```sh
    mlbridge vocabulary convert seedEmbeddingVocab.txt --to ir2vec-300d.json
    ```
    """
    vocabulary = ir2vec.convert(file)
    vocabulary.save(to)
    _show(ir2vec.Vocabulary(to.name, vocabulary.sections))


@app.command()
def show(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False)],
) -> None:
    """Show what a vocabulary in LLVM's form has, and the hash by which models name it.

    ```sh
    mlbridge vocabulary show ir2vec-300d.json
    ```
    """
    _show(ir2vec.load(file))


def _show(vocabulary: ir2vec.Vocabulary) -> None:
    counts = ", ".join(
        f"{len(vectors)} {section.lower()}"
        for section, vectors in vocabulary.sections.items()
    )
    console.print(f"{vocabulary.name}: dimension {vocabulary.dimension}, {counts}")
    console.print(vocabulary.hash, soft_wrap=True)
