# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""IR2Vec vocabularies: LLVM's JSON form, its hash, and from IR2Vec's own form to it.

The compiler's side reads the same files (``compilers/llvm/IR2Vec``), and gives each
the same hash. ``docs/ir2vec.md`` says what both are.
"""

import hashlib
import json
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlbridge.errors import Malformed, SchemaMismatch

SECTIONS = ("Opcodes", "Types", "Arguments")

# What LLVM calls the opcodes of IR2Vec's own files; the last has the operands.
_LLVM_OPCODES = (
    *("Add", "Alloca", "And", "AShr", "BitCast", "Br", "Call", "ExtractElement"),
    *("ExtractValue", "FAdd", "FCmp", "FDiv", "FMul", "FNeg", "FPExt", "FPToSI"),
    *("FPToUI", "FPTrunc", "Freeze", "FSub", "GetElementPtr", "ICmp"),
    *("InsertElement", "InsertValue", "IntToPtr", "Invoke", "LandingPad", "Load"),
    *("LShr", "Mul", "Or", "PHI", "PtrToInt", "Resume", "Ret", "SDiv", "Select"),
    *("SExt", "Shl", "ShuffleVector", "SIToFP", "SRem", "Store", "Sub", "Switch"),
    *("Trunc", "UDiv", "UIToFP", "Unreachable", "URem", "Xor", "ZExt"),
)
_LLVM_TYPES = ("FloatTy", "IntegerTy", "PointerTy", "StructTy", "VectorTy", "VoidTy")
_LLVM_ARGUMENTS = ("Function", "Pointer", "Constant", "Variable")
_LLVM_NAMES = {
    name.lower(): (section, name)
    for section, names in zip(
        SECTIONS, (_LLVM_OPCODES, _LLVM_TYPES, _LLVM_ARGUMENTS), strict=True
    )
    for name in names
}
# A block as an operand, which LLVM takes for a variable.
_WITHOUT_NAME = frozenset({"label"})


@dataclass(frozen=True)
class Vocabulary:
    """A vector for each entity of LLVM's IR.

    Attributes:
        name: of its file.
        sections: for each of Opcodes, Types and Arguments, vectors by LLVM's names.
    """

    name: str
    sections: dict[str, dict[str, list[float]]]

    @property
    def dimension(self) -> int:
        """How many numbers a vector is made of."""
        return next(
            len(vector)
            for vectors in self.sections.values()
            for vector in vectors.values()
        )

    @property
    def hash(self) -> str:
        """``sha256:...`` of what it means, however it is spelt."""
        digest = hashlib.sha256(
            f"mlbridge-ir2vec-vocabulary 1\ndimension {self.dimension}\n".encode()
        )
        for section in SECTIONS:
            for name, vector in sorted(
                self.sections[section].items(), key=lambda item: item[0].encode()
            ):
                # No vector is the same as a zero one, and so are the two zeros.
                if any(vector):
                    digest.update(f"{section}/{name}\n".encode())
                    numbers = (number or 0.0 for number in vector)
                    digest.update(struct.pack(f"<{len(vector)}d", *numbers))
        return f"sha256:{digest.hexdigest()}"

    def save(self, path: Path) -> None:
        """Writes it in LLVM's form."""
        path.write_text(json.dumps(self.sections) + "\n", encoding="utf-8")


def load(path: Path) -> Vocabulary:
    """Reads a vocabulary in LLVM's form.

    Raises:
        OSError: the file cannot be read.
        Malformed: it is no JSON, or its vectors are not all of one dimension.
        SchemaMismatch: it is another kind of JSON.
    """
    try:
        root: Any = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise Malformed(f"{path}: expected JSON: {error}") from error
    if not isinstance(root, dict) or not all(
        isinstance(root.get(section), dict) for section in SECTIONS
    ):
        raise SchemaMismatch(f"{path}: expected objects {', '.join(SECTIONS)}")
    return _checked(path, {section: root[section] for section in SECTIONS})


def convert(path: Path) -> Vocabulary:
    """Reads a vocabulary in IR2Vec's own form, lines of ``name:[1.5, ...],``.

    What LLVM counts and IR2Vec had no vector for has none; its vector is then zero.

    Raises:
        OSError: the file cannot be read.
        Malformed: it is no such file.
        SchemaMismatch: it names what LLVM does not know.
    """
    sections: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip().rstrip(",")
        if not text:
            continue
        key, _, values = text.partition(":")
        if key.strip() in _WITHOUT_NAME:
            continue
        try:
            section, name = _LLVM_NAMES[key.strip().lower()]
            sections[section][name] = json.loads(values)
        except KeyError:
            raise SchemaMismatch(
                f"{path}:{number}: expected the name of an entity of LLVM's IR, "
                f"found {key[:40]!r}"
            ) from None
        except (ValueError, RecursionError) as error:
            raise Malformed(f"{path}:{number}: expected numbers: {error}") from error
    return _checked(path, sections)


def _checked(path: Path, sections: dict[str, dict[str, Any]]) -> Vocabulary:
    dimension = None
    for section, vectors in sections.items():
        for name, vector in vectors.items():
            where = f"{path}: {section}.{name}"
            if not isinstance(vector, list) or not all(map(_is_number, vector)):
                raise SchemaMismatch(f"{where}: expected an array of numbers")
            try:
                vectors[name] = [float(number) for number in vector]
                finite = all(map(math.isfinite, vectors[name]))
            except OverflowError:
                finite = False
            if not finite:
                raise Malformed(f"{where}: expected finite numbers")
            dimension = dimension or len(vector)
            if len(vector) != dimension or not vector:
                raise Malformed(
                    f"{where}: expected dimension {dimension}, found {len(vector)}"
                )
    if dimension is None:
        raise SchemaMismatch(f"{path}: expected vectors, found none")
    return Vocabulary(path.name, sections)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
