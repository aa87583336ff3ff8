# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads IR2Vec vocabularies in LLVM's JSON form or IR2Vec's own, and hashes them.

The compiler's side (``compilers/llvm/IR2Vec``) reads the same files and computes the
same hash; ``docs/reference/ir2vec.md`` defines both.
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

# LLVM's names of the entities in IR2Vec's own files, by section.
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
# A block as an operand; LLVM counts it as a variable.
_LABEL = "label"


@dataclass(frozen=True)
class Vocabulary:
    """A vector for each entity of LLVM's IR.

    Attributes:
        name: of its file.
        sections: vectors by LLVM's names, in each of Opcodes, Types and Arguments.
    """

    name: str
    sections: dict[str, dict[str, list[float]]]

    @property
    def dimension(self) -> int:
        """The length of each vector."""
        return next(len(v) for s in self.sections.values() for v in s.values())

    @property
    def hash(self) -> str:
        """``sha256:...`` of the vectors, independent of the file's formatting."""
        digest = hashlib.sha256(
            f"mlbridge-ir2vec-vocabulary 1\ndimension {self.dimension}\n".encode()
        )
        for section in SECTIONS:
            for name, vector in sorted(
                self.sections[section].items(), key=lambda item: item[0].encode()
            ):
                # A missing vector equals a zero vector, and -0.0 equals 0.0.
                if any(vector):
                    digest.update(f"{section}/{name}\n".encode())
                    numbers = (number or 0.0 for number in vector)
                    digest.update(struct.pack(f"<{len(vector)}d", *numbers))
        return f"sha256:{digest.hexdigest()}"

    def save(self, path: Path) -> None:
        """Writes the vocabulary in LLVM's form."""
        path.write_text(json.dumps(self.sections) + "\n", encoding="utf-8")


def load(path: Path) -> Vocabulary:
    """Reads a vocabulary in LLVM's form.

    Raises:
        OSError: the file cannot be read.
        Malformed: the file is not JSON, or its vectors differ in dimension.
        SchemaMismatch: the JSON is not a vocabulary.
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

    LLVM's entities that IR2Vec has no vector for stay without one, which means zero.

    Raises:
        OSError: the file cannot be read.
        Malformed: the file does not have this form.
        SchemaMismatch: the file names an entity that LLVM does not know.
    """
    sections: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip().rstrip(",")
        key, _, values = text.partition(":")
        if not text or key.strip() == _LABEL:
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
            # isinstance would accept JSON's true as an int.
            if not isinstance(vector, list) or not all(
                type(number) in (int, float) for number in vector
            ):
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
