# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles a kernel in several ways, checks the results, and measures the times.

All variants of a kernel are in one program and run alternately, so other load on the
machine hardly affects the ratio of two times of the same round.
"""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from numpy.typing import NDArray

from mlbridge.errors import ModelError
from mlbridge_optimizations.corpus import toolchain

from .kernels import FOLDER, Kernel

MARCH = "-march=x86-64-v3"
FLAGS = (MARCH, "-w", "-falign-loops=32", "-falign-functions=64")
RUN_SECONDS = 300.0

Times = NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """Times of a kernel's variants.

    Attributes:
        names: the variants. The first variant is stock clang's.
        nanoseconds: float64[rounds, variants], the time of a call.
        same: the variants whose machine code equals stock clang's.
    """

    names: tuple[str, ...]
    nanoseconds: Times
    same: frozenset[str] = frozenset()

    def ratios(self, name: str) -> Times:
        """Returns the times relative to stock clang."""
        return self.nanoseconds[:, self.names.index(name)] / self.nanoseconds[:, 0]


def code_of(file: Path) -> bytes:
    """Returns the machine code of an object, without names and relocations."""
    with file.open("rb") as opened:
        sections = ELFFile(opened).iter_sections()
        return b"".join(
            section.data()
            for section in sections
            if section["sh_flags"] & SH_FLAGS.SHF_EXECINSTR
        )


def compile_variants(
    kernel: Kernel,
    level: str,
    variants: Mapping[str, Sequence[str]],
    folder: Path,
    jobs: int = 1,
) -> tuple[Path, frozenset[str]]:
    """Compiles a program with a kernel's variants.

    `variants` maps names to clang's flags. Returns the program, and the variants whose
    machine code equals the first variant's. Raises ModelError if clang fails or a
    variant's result differs from -O0's.
    """
    source = folder / "kernel.c"
    source.write_text(kernel.source(), encoding="utf-8")
    sizes = kernel.definitions(level)
    options = {
        "": ["-O0", *FLAGS],
        **{n: ["-O3", *FLAGS, *v] for n, v in variants.items()},
    }

    def compile_one(item: tuple[int, list[str]]) -> str:
        number, flags = item
        target = str(folder / f"{number}.o")
        # The reference at -O0 is compiled first, but numbered last.
        name = f"-DVARIANT=kernel_{(number or len(options)) - 1}"
        command = [toolchain.CLANG, *flags, *sizes, name, "-c", str(source)]
        toolchain.run([*command, "-o", target])
        return target

    with ThreadPoolExecutor(jobs) as pool:
        objects = list(pool.map(compile_one, enumerate(options.values())))
    for name, count in (("check", len(options)), ("driver", len(options) - 1)):
        (folder / "variants.h").write_text(
            "".join(f"VARIANT({n})\n" for n in range(count))
        )
        command = [toolchain.CLANG, "-O1", *FLAGS, *sizes, f'-DDATA="{kernel.header}"']
        command += ["-mcmodel=large", f"-I{folder}", str(FOLDER / "driver.c"), *objects]
        toolchain.run([*command, "-lm", "-o", str(folder / name)])
    said = toolchain.run([str(folder / "check"), "check"], seconds=RUN_SECONDS)[0]
    hashes = [line.split()[1] for line in said.decode().splitlines()]
    for name, found in zip(variants, hashes, strict=False):
        if found != hashes[-1]:
            raise ModelError(f"{kernel.name}, {level}: {name} computes another result")
    stock, *others = (code_of(Path(name)) for name in objects[1:])
    same = [
        n for n, code in zip(list(variants)[1:], others, strict=True) if code == stock
    ]
    return folder / "driver", frozenset(same)


def measure(
    kernel: Kernel,
    level: str,
    variants: Mapping[str, Sequence[str]],
    *,
    rounds: int = 15,
    nanoseconds: float = 2e5,
    jobs: int = 1,
) -> Measured:
    """Measures a kernel's variants. See compile_variants()."""
    with TemporaryDirectory(prefix="mlbridge-kernel-") as name:
        program, same = compile_variants(kernel, level, variants, Path(name), jobs)
        command = [str(program), "time", str(rounds), f"{nanoseconds:.0f}"]
        said = toolchain.run(command, seconds=RUN_SECONDS)[0]
    rows = [
        [float(word) for word in line.split()] for line in said.decode().splitlines()
    ]
    return Measured(tuple(variants), np.array(rows), same)


def loops_of(kernel: Kernel, level: str, plugin: Path) -> list[dict[str, Any]]:
    """Returns the features of each innermost loop, as the plug-in prints them."""
    with TemporaryDirectory(prefix="mlbridge-kernel-") as name:
        source = Path(name, "kernel.c")
        source.write_text(kernel.source(), encoding="utf-8")
        command = [toolchain.CLANG, "-O3", *FLAGS, *kernel.definitions(level)]
        command += toolchain.plugin_flags(plugin, "print-loops")
        command += ["-DVARIANT=kernel", "-c", str(source), "-o", f"{name}/kernel.o"]
        said = toolchain.run(command)[1].decode()
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]
