# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""clang, the linker and what looks into bitcode, as functions."""

import os
import re
import resource
import select
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mlbridge.errors import CompilerFailed, OSFailure, Timeout

from .manifest import Module, Program, is_cpp

CLANG = "clang-22"
CLANGXX = "clang++-22"
OPT = "opt-22"
LLVM_LINK = "llvm-link-22"

# The front end's output, for -Oz: its functions are marked minsize and optsize, which
# passes and code generation ask for; what -O2 writes would never become as small.
UNOPTIMISED = ("-Oz", "-Xclang", "-disable-llvm-passes", "-w", "-g0")

SECONDS = 600.0  # No command here takes a tenth of this on a machine that is not busy.

_COUNT = re.compile(rb"^TotalInstructionCount: (\d+)$", re.MULTILINE)


def run(
    command: Sequence[str | Path],
    *,
    folder: Path | None = None,
    stdin: Path = Path(os.devnull),
    seconds: float = SECONDS,
    own_session: bool = False,
) -> tuple[bytes, bytes]:
    """Runs a command and returns its stdout and stderr.

    Args:
        command: the program and its arguments.
        folder: where it runs; by default here.
        stdin: the file that it reads.
        seconds: that it may take.
        own_session: whether it is in a session of its own, as a compiler of
            `mlbridge.envs` is: Linux may share the cores out by session.

    Raises:
        CompilerFailed: its status is not 0; the text is the end of what it said.
        OSFailure: there is no such program.
        Timeout: it did not end; it has been killed.
    """
    words = " ".join(map(str, command))
    try:
        with stdin.open("rb") as given:
            done = subprocess.run(
                command,
                stdin=given,
                capture_output=True,
                cwd=folder,
                timeout=seconds,
                check=False,
                start_new_session=own_session,
            )
    except subprocess.TimeoutExpired:
        raise Timeout(f"no end after {seconds:.0f} s: {words}") from None
    except OSError as error:
        # The operating system says the same of a folder that is not there.
        place = f" in {folder}" if folder is not None else ""
        raise OSFailure(f"cannot run {command[0]}{place}: {error.strerror}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()
        failed = CompilerFailed(
            f"status {done.returncode} from: {words}\n{said[-2000:]}"
        )
        failed.returncode = done.returncode
        raise failed
    return done.stdout, done.stderr


def wait_for(
    process: "subprocess.Popen[bytes]",
    what: str,
    seconds: float = SECONDS,
    *,
    largest: int | None = None,
) -> resource.struct_rusage:
    """Waits for a child, and says what this one has taken, and no other.

    What interrupts the waiting ends the process, too. One that writes a file of more
    than so many bytes ends by SIGXFSZ. Messages name ``what`` it is.

    Raises:
        Timeout: it did not end; it has been killed.
    """
    try:
        if largest is not None:
            _bound_files(process.pid, largest)
        is_late = not _ends_within(process.pid, seconds)
        if is_late:
            process.kill()
        _, status, used = os.wait4(process.pid, 0)
    except BaseException:
        # Ctrl-C, for one.
        process.kill()
        process.wait()
        raise
    process.returncode = os.waitstatus_to_exitcode(status)
    if is_late:
        raise Timeout(f"{what}: no end after {seconds:.0f} s")
    return used


def _bound_files(process: int, largest: int) -> None:
    """Bounds the files that a process writes, if nobody has by less."""
    limits = resource.prlimit(process, resource.RLIMIT_FSIZE)
    known = [limit for limit in limits if limit != resource.RLIM_INFINITY]
    bound = min([largest, *known])
    resource.prlimit(process, resource.RLIMIT_FSIZE, (bound, limits[1]))


def _ends_within(process: int, seconds: float) -> bool:
    """Whether a child ends in so many seconds; it stays to be reaped."""
    descriptor = os.pidfd_open(process)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(descriptor)


def compiler_version() -> str:
    """The compiler's own word on what it is."""
    return run([CLANG, "--version"])[0].decode().splitlines()[0]


def mllvm(options: Iterable[str]) -> list[str]:
    """Options for LLVM as clang takes them."""
    return [word for option in options for word in ("-mllvm", option)]


def plugin_flags(plugin: Path, *options: str) -> list[str]:
    """The flags with which clang loads the plug-in; options without -mlbridge-."""
    told = mllvm(f"-mlbridge-{option}" for option in options)
    return [f"-fpass-plugin={plugin}", *told]


def size_of(path: Path) -> tuple[int, int]:
    """The functions and the instructions of a bitcode file."""
    _, found = run([OPT, "-passes=print<func-properties>", "-disable-output", path])
    counts = [int(count) for count in _COUNT.findall(found)]
    return len(counts), sum(counts)


def link_bitcode(modules: Sequence[Path], into: Path) -> None:
    """One module of several."""
    run([LLVM_LINK, *modules, "-o", into])


def link(
    objects: Sequence[Path], flags: Sequence[str], to: Path, *, cpp: bool = False
) -> None:
    """An executable of objects; the flags are libraries, mostly."""
    run([CLANGXX if cpp else CLANG, *objects, *flags, "-o", to])


def compile_bitcode(
    bitcode: Path, to: Path, level: str, *, own_session: bool = False
) -> None:
    """An object of bitcode that is not optimised, as stock clang makes it."""
    run(
        [CLANG, level, "-w", "-x", "ir", "-c", bitcode, "-o", to],
        own_session=own_session,
    )


def source_command(
    program: Program, modules: Sequence[Module], level: str, more: Sequence[str] = ()
) -> list[str]:
    """The command that compiles source files of one language, in the program's root."""
    cpp = any(is_cpp(module.source) for module in modules)
    flags = program.flags[len(UNOPTIMISED) :]
    sources = [module.source for module in modules]
    return [CLANGXX if cpp else CLANG, level, "-w", *flags, *more, *sources]


def compile_source(
    program: Program, module: Module, to: Path, level: str, more: Sequence[str] = ()
) -> None:
    """An object of a source file as stock clang makes it: ``-O2``, ``-Oz``, ...

    With further flags, such as those that load a plug-in.
    """
    command = source_command(program, [module], level, more)
    run([*command, "-c", "-o", to], folder=Path(program.root))


def executable(
    program: Program,
    to: Path,
    level: str,
    more: Sequence[str] = (),
    link_flags: Sequence[str] = (),
) -> None:
    """A program as stock clang makes it of its sources: ``-O0``, ``-Oz``, ...

    ``more`` are further flags of the compiler, ``link_flags`` of the linker.

    ``-O0`` is not made of the bitcode: in C++ that has functions which are only there
    to be inlined.
    """
    with tempfile.TemporaryDirectory(prefix="mlbridge-stock-") as folder:

        def compile_one(number: int) -> Path:
            target = Path(folder, f"{number}.o")
            compile_source(program, program.modules[number], target, level, more)
            return target

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(compile_one, range(len(program.modules))))
        link(objects, (*program.libraries, *link_flags), to, cpp=program.is_cpp)
