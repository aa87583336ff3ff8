# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replaces the compiler during a build, and records what the build compiles and links.

The build runs this file as a script, without the package. The script calls clang with
the build's own arguments, and also compiles each source to unoptimised bitcode.
"""

import hashlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

LOCATIONS = ("-Rpass=none", "-fdebug-info-for-profiling")
"""Flags that give each call a location, but do not change the code."""
COMPILE = ("-Oz", "-ffunction-sections", "-fdata-sections", *LOCATIONS)
LINK = ("-fuse-ld=lld", "-Wl,--gc-sections")
BITCODE = ("-Xclang", "-disable-llvm-passes", "-emit-llvm", "-w")

FOLDER_VARIABLE = "MLBRIDGE_BUILD_FOLDER"
"""The environment variable that names the folder of the records."""
CLANG_VARIABLE = "MLBRIDGE_BUILD_CLANG"
"""The environment variable that names clang."""
RECORDS = "records.jsonl"

SOURCES = (".c", ".cc", ".cpp", ".cxx", ".C", ".c++", ".cp")
HEADERS = (".h", ".hh", ".hpp", ".hxx", ".H", ".h++")
DEPENDENCIES = frozenset({"-MD", "-MMD", "-MP"})
DEPENDENCY_FILES = frozenset({"-MF", "-MT", "-MQ", "-MJ"})
WITH_VALUE = DEPENDENCY_FILES | {
    *("-o", "-x", "-D", "-U", "-I", "-include", "-isystem", "-iquote", "-idirafter"),
    *("-L", "-l", "-T", "-u", "-z", "-arch", "-target", "-mllvm"),
    *("-Xclang", "-Xlinker", "-Xassembler", "-Xpreprocessor"),
}
"""Options whose value is the next word."""
LINKER_ONLY = ("-l", "-L", "-Wl,")
"""The beginnings of options that only the linker uses."""
UNUSED = "-Wno-unused-command-line-argument"
"""If sources are compiled and linked by one command, half of its options are unused."""
OTHER_MODES = frozenset(
    {"-E", "-S", "-M", "-MM", "-fsyntax-only", "-r", "-emit-llvm", "--analyze"}
)


def split(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Joins each option with its value."""
    result: list[tuple[str, ...]] = []
    rest = iter(words)
    for word in rest:
        result.append((word, *([next(rest, "")] if word in WITH_VALUE else [])))
    return result


def is_source(option: tuple[str, ...]) -> bool:
    """Returns whether an option is the name of a source file in C or C++."""
    return not option[0].startswith("-") and option[0].endswith(SOURCES)


def makes_header(options: Sequence[tuple[str, ...]]) -> bool:
    """Returns whether a command precompiles a header or a module."""
    languages = ["".join(one)[2:] for one in options if one[0].startswith("-x")]
    inputs = [one[0] for one in options if not one[0].startswith("-")]
    return (
        ("--precompile",) in options
        or any(language.endswith("-header") for language in languages)
        or (not languages and all(name.endswith(HEADERS) for name in inputs))
    )


def expanded(words: Sequence[str], levels: int = 8) -> list[str]:
    """Replaces each response file, such as @objects.rsp, by its contents.

    A response file may name others, up to this number of levels.
    """
    result: list[str] = []
    for word in words:
        if levels and word.startswith("@") and Path(word[1:]).is_file():
            text = Path(word[1:]).read_text(encoding="utf-8", errors="surrogateescape")
            try:
                result += expanded(shlex.split(text), levels - 1)
            except ValueError as error:
                sys.exit(f"{word[1:]}: {error}")
        else:
            result.append(word)
    return result


def output_of(options: list[tuple[str, ...]]) -> str | None:
    """Returns the value of the last -o, or None."""
    named = [option[-1] for option in options if option[0] == "-o"]
    joined = [o[0][2:] for o in options if o[0].startswith("-o") and len(o[0]) > 2]
    found = named + joined
    return found[-1] if found else None


def without_output(words: Sequence[str]) -> list[str]:
    """Returns a command without -o and its value."""
    kept = [option for option in split(words) if not option[0].startswith("-o")]
    return [word for option in kept for word in option]


def record(entry: dict[str, object]) -> None:
    """Appends a line to the records. Compilers may run in parallel."""
    line = json.dumps({"folder": str(Path.cwd()), **entry}) + "\n"
    path = Path(os.environ[FOLDER_VARIABLE], RECORDS)
    with path.open("ab", buffering=0) as file:
        file.write(line.encode())


def compile_source(
    clang: str, options: list[tuple[str, ...]], source: str, to: Path
) -> int:
    """Compiles a source to an object and to bitcode. Returns clang's status."""
    others = [
        word
        for option in options
        if not is_source(option)
        and option[0] != "-c"
        # clang warns about linker options, and -Werror makes the warning an error.
        and not option[0].startswith(LINKER_ONLY)
        for word in without_output(option)
    ]
    command = [clang, *others, *COMPILE, "-c", source]
    status = subprocess.call([*command, "-o", str(to)])
    if status or not to.is_file():  # For example, "-" or /dev/null.
        return status
    code = hashlib.sha256(to.read_bytes()).hexdigest()
    bitcode = Path(os.environ[FOLDER_VARIABLE], f"{code[:16]}-{os.getpid()}.bc")
    plain = [
        word
        for option in split(others)
        if option[0] not in DEPENDENCIES | DEPENDENCY_FILES
        for word in option
    ]
    again = [clang, *plain, *COMPILE, "-c", source, *BITCODE, "-o", str(bitcode)]
    status = subprocess.call(again)
    if status == 0:
        text = hashlib.sha256(Path(source).read_bytes()).hexdigest()
        entry = {"object": str(to.resolve()), "sha256": code, "command": again[:-6]}
        record({"kind": "compile", "bitcode": str(bitcode), "source": text, **entry})
    return status


def link(clang: str, options: list[tuple[str, ...]]) -> int:
    """Links a program, and compiles the sources on the command line first."""
    words: list[str] = []
    if any(map(is_source, options)):
        options = [*options, (UNUSED,)]
    for option in options:
        if is_source(option):
            name = hashlib.sha256(bytes(Path(option[0]).resolve())).hexdigest()[:16]
            to = Path(os.environ[FOLDER_VARIABLE], f"{name}-{os.getpid()}.o")
            if status := compile_source(clang, options, option[0], to):
                return status
            option = (str(to),)
        words += option
    status = subprocess.call([clang, *words, *LINK])
    if status == 0:
        output = str(Path(output_of(options) or "a.out").resolve())
        record({"kind": "link", "output": output, "command": [clang, *words, *LINK]})
    return status


def main(language: str, words: list[str]) -> int:
    """Runs a command of the build. Returns clang's status."""
    clang = os.environ[CLANG_VARIABLE] + ("++" if language == "c++" else "")
    words = expanded(words)
    options = split(words)
    sources = [option[0] for option in options if is_source(option)]
    flags = {option[0] for option in options}
    inputs = [option for option in options if not option[0].startswith("-")]
    if flags & OTHER_MODES or not inputs:
        return subprocess.call([clang, *words])
    if makes_header(options):
        # clang rejects a precompiled header that was made with other options.
        return subprocess.call([clang, *words, *COMPILE])
    if "-c" not in flags:
        return link(clang, options)
    if not sources:
        return subprocess.call([clang, *words])
    output = output_of(options)
    for source in sources:
        to = Path(output or Path(source).with_suffix(".o").name)
        if status := compile_source(clang, options, source, to):
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
