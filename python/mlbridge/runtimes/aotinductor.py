# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles a PyTorch module with AOTInductor to a package for ``aoti:policy.pt2``."""

import inspect
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mlbridge.errors import InvalidArgument, ModelError, SchemaMismatch
from mlbridge.files import replacing
from mlbridge.runtimes import NamedTensor, signature_json

TOLERANCE = 1e-5


def package(
    module: nn.Module,
    path: str | os.PathLike[str],
    example: Mapping[str, Tensor],
    *,
    outputs: Sequence[str],
    free: Mapping[str, Sequence[str | None]] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Compiles a module, and writes the package if its results match the module's.

    Args:
        module: the module. Each parameter of ``forward`` has the name of a feature.
            ``forward`` returns a tensor or a tuple of tensors. The module is compiled
            in ``eval()`` mode.
        path: the .pt2 package to write. An existing file is replaced atomically.
        example: a tensor for each parameter, with its type and fixed extents. A free
            extent should be at least 2.
        outputs: the names of the returned tensors.
        free: maps each parameter to the names of its extents, with None for a fixed
            extent. Extents with the same name are equal.
        metadata: the metadata of the file. See docs/reference/model-metadata.md.

    Raises:
        InvalidArgument: the example does not fit the parameters.
        SchemaMismatch: the module returns another number of tensors.
        ModelError: the results of the compiled code differ from the module's.
    """
    parameters = list(inspect.signature(module.forward).parameters)
    if sorted(parameters) != sorted(example):
        raise InvalidArgument(
            f"{type(module).__name__}: expected an example of {', '.join(parameters)}, "
            f"found {', '.join(example) or 'nothing'}"
        )
    given = tuple(example[name] for name in parameters)
    names = {name: tuple((free or {}).get(name, ())) for name in parameters}
    was_training = module.training
    module.eval()
    try:
        with torch.no_grad(), warnings.catch_warnings():
            # Hide warnings of PyTorch about its own code.
            warnings.simplefilter("ignore")
            expected = _tensors(module(*given))
            if len(expected) != len(outputs):
                raise SchemaMismatch(
                    f"{type(module).__name__} returns {len(expected)} tensors, and "
                    f"{len(outputs)} are named"
                )
            program = torch.export.export(
                module, given, dynamic_shapes=_dynamic(names, given)
            )
            inputs = [
                (name, _dtype(tensor), _extents(tensor.shape, names[name]))
                for name, tensor in zip(parameters, given, strict=True)
            ]
            text = signature_json(
                inputs, _outputs(program, outputs, expected, names), metadata or {}
            )
            _compile(program, Path(path), text, given, expected)
    finally:
        module.train(was_training)


def _tensors(found: Any) -> tuple[Tensor, ...]:
    return (found,) if isinstance(found, Tensor) else tuple(found)


def _dtype(tensor: Tensor) -> np.dtype[Any]:
    return np.dtype(str(tensor.dtype).removeprefix("torch."))


def _extents(shape: Sequence[int], names: Sequence[str | None]) -> list[int | str]:
    padded = [*names, *[None] * (len(shape) - len(names))]
    return [name or size for name, size in zip(padded, shape, strict=True)]


def _dynamic(
    names: Mapping[str, Sequence[str | None]], given: Sequence[Tensor]
) -> tuple[dict[int, Any], ...]:
    known: dict[str, Any] = {}
    return tuple(
        {
            i: known.setdefault(free, torch.export.Dim(free, min=1))
            for i, free in enumerate(names[name])
            if free
        }
        for name, _ in zip(names, given, strict=True)
    )


def _outputs(
    program: Any,
    outputs: Sequence[str],
    expected: Sequence[Tensor],
    names: Mapping[str, Sequence[str | None]],
) -> list[NamedTensor]:
    """Describes the outputs. Extents that equal an input's extent get the same name."""
    nodes = list(program.graph.nodes)
    symbols: dict[str, str] = {}
    placeholders = {
        spec.arg.name
        for spec in program.graph_signature.input_specs
        if spec.kind.name == "USER_INPUT"
    }
    taken = [n for n in nodes if n.op == "placeholder" and n.name in placeholders]
    for node, free in zip(taken, names.values(), strict=True):
        for extent, name in zip(node.meta["val"].shape, free, strict=False):
            if name:
                symbols[str(extent)] = name
    shapes = [n.meta["val"].shape for n in nodes[-1].args[0]]
    extents = [
        [e if isinstance(e, int) else symbols.get(str(e), str(e)) for e in shape]
        for shape in shapes
    ]
    return list(zip(outputs, map(_dtype, expected), extents, strict=True))


def _compile(
    program: Any,
    path: Path,
    text: str,
    given: Sequence[Tensor],
    expected: Sequence[Tensor],
) -> None:
    with replacing(path) as new:
        # PyTorch only writes files with this suffix.
        made = new.with_suffix(".pt2")
        torch._inductor.aoti_compile_and_package(
            program,
            package_path=str(made),
            inductor_configs={
                "aot_inductor.package_constants_in_so": True,
                "aot_inductor.metadata": {"mlbridge_signature": text},
            },
        )
        found = _tensors(torch._inductor.aoti_load_package(str(made))(*given))
        for i, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
            if not torch.allclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE):
                raise ModelError(
                    f"the compiled code's output {i} is off by up to "
                    f"{(ours.double() - theirs.double()).abs().max():.3g}"
                )
        made.rename(new)
