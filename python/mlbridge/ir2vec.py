# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads and hashes IR2Vec vocabularies, in LLVM's JSON format or IR2Vec's format.

``compilers/llvm/IR2Vec`` does the same in C++. ``docs/reference/ir2vec.md`` defines the
formats and the hash.
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

# The names of the entities in LLVM. IR2Vec's files have the same names in lower case.
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
# IR2Vec's name for a block as an operand. It is ignored, because LLVM counts a block as
# a variable.
_LABEL = "label"


@dataclass(frozen=True)
class Vocabulary:
    """A vocabulary, which has a vector for each kind of entity in LLVM's IR.

    Attributes:
        name: the name of the file.
        sections: maps Opcodes, Types and Arguments to dicts from names to vectors.
    """

    name: str
    sections: dict[str, dict[str, list[float]]]

    @property
    def dimension(self) -> int:
        """The length of each vector."""
        return next(len(v) for s in self.sections.values() for v in s.values())

    @property
    def hash(self) -> str:
        """The hash of the vectors, ``sha256:...``.

        It does not depend on the file's format.
        """
        digest = hashlib.sha256(
            f"mlbridge-ir2vec-vocabulary 1\ndimension {self.dimension}\n".encode()
        )
        for section in SECTIONS:
            for name, vector in sorted(
                self.sections[section].items(), key=lambda item: item[0].encode()
            ):
                # Skip zero vectors and replace -0.0, which do not affect embeddings.
                if any(vector):
                    digest.update(f"{section}/{name}\n".encode())
                    numbers = (number or 0.0 for number in vector)
                    digest.update(struct.pack(f"<{len(vector)}d", *numbers))
        return f"sha256:{digest.hexdigest()}"

    def save(self, path: Path) -> None:
        """Writes the vocabulary in LLVM's JSON format."""
        path.write_text(json.dumps(self.sections) + "\n", encoding="utf-8")


def load(path: Path) -> Vocabulary:
    """Reads a vocabulary in LLVM's JSON format.

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
    """Reads a vocabulary in IR2Vec's format, with lines such as ``name:[1.5, ...],``.

    An entity of LLVM without a vector in the file is omitted, so its vector is zero.

    Raises:
        OSError: the file cannot be read.
        Malformed: the file does not have this format.
        SchemaMismatch: the file names an entity that does not exist in LLVM.
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
            # Compare types, because isinstance would accept a bool as an int.
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
