# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions that run clang, the linker and the bitcode tools."""

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
LLVM_AR = "llvm-ar-22"
LLVM_CXXFILT = "llvm-cxxfilt-22"
LLVM_LINK = "llvm-link-22"
LLVM_NM = "llvm-nm-22"
LLVM_SIZE = "llvm-size-22"

# Flags for the front end's unoptimised output. -Oz gives functions the attributes
# minsize and optsize, without which passes and code generation make larger code.
UNOPTIMISED = ("-Oz", "-Xclang", "-disable-llvm-passes", "-w", "-g0")

SECONDS = 600.0  # The time limit. On an idle machine, a command takes less than 60 s.

_COUNT = re.compile(rb"^TotalInstructionCount: (\d+)$", re.MULTILINE)


def run(
    command: Sequence[str | Path],
    *,
    folder: Path | None = None,
    stdin: Path = Path(os.devnull),
    text: str | None = None,
    seconds: float = SECONDS,
    own_session: bool = False,
) -> tuple[bytes, bytes]:
    """Runs a command in a folder and returns its stdout and stderr.

    The command's input is ``text``, or else the file ``stdin``.

    With ``own_session``, the command gets its own session, as in `mlbridge.envs`. This
    makes times comparable, because Linux may divide CPU time between sessions.

    Raises CompilerFailed with the end of the output if the command fails, OSFailure if
    the program is missing, and Timeout after ``seconds``.
    """
    words = " ".join(map(str, command))
    try:
        with stdin.open("rb") as given:
            done = subprocess.run(
                command,
                stdin=given if text is None else None,
                input=None if text is None else text.encode(),
                capture_output=True,
                cwd=folder,
                timeout=seconds,
                check=False,
                start_new_session=own_session,
            )
    except subprocess.TimeoutExpired:
        raise Timeout(f"no end after {seconds:.0f} s: {words}") from None
    except OSError as error:
        # A missing folder gives the same error as a missing program.
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
    """Waits for a child and returns its resource usage. ``what`` names the child.

    An exception during the wait kills the child. If the child writes a file of more
    than ``largest`` bytes, SIGXFSZ kills it. After ``seconds``, Timeout is raised.
    """
    try:
        if largest is not None:
            soft, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
            soft = largest if soft == resource.RLIM_INFINITY else min(largest, soft)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (soft, hard))
        is_late = not _ends_within(process.pid, seconds)
        if is_late:
            process.kill()
        _, status, used = os.wait4(process.pid, 0)
    except BaseException:
        process.kill()
        process.wait()
        raise
    process.returncode = os.waitstatus_to_exitcode(status)
    if is_late:
        raise Timeout(f"{what}: no end after {seconds:.0f} s")
    return used


def _ends_within(process: int, seconds: float) -> bool:
    """Waits for a child's end without reaping it. Returns False after a timeout."""
    descriptor = os.pidfd_open(process)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(descriptor)


def compiler_version() -> str:
    """Returns the first line of `clang --version`."""
    return run([CLANG, "--version"])[0].decode().splitlines()[0]


def mllvm(options: Iterable[str]) -> list[str]:
    """Returns the flags with which clang passes options to LLVM."""
    return [word for option in options for word in ("-mllvm", option)]


def plugin_flags(plugin: Path, *options: str) -> list[str]:
    """Returns clang's flags for the plug-in. Adds "-mlbridge-" before each option."""
    return [f"-fpass-plugin={plugin}", *mllvm(f"-mlbridge-{o}" for o in options)]


def size_of(path: Path) -> tuple[int, int]:
    """Counts the functions and instructions of a bitcode file."""
    _, found = run([OPT, "-passes=print<func-properties>", "-disable-output", path])
    counts = [int(count) for count in _COUNT.findall(found)]
    return len(counts), sum(counts)


def link_bitcode(modules: Sequence[Path], into: Path) -> None:
    """Links modules into one."""
    run([LLVM_LINK, *modules, "-o", into])


def link(
    objects: Sequence[Path], flags: Sequence[str], to: Path, *, cpp: bool = False
) -> None:
    """Links objects into an executable. `flags` are the linker's, such as -lm."""
    run([CLANGXX if cpp else CLANG, *objects, *flags, "-o", to])


def compile_bitcode(
    bitcode: Path, to: Path, level: str, *, own_session: bool = False
) -> None:
    """Compiles unoptimised bitcode to an object with stock clang."""
    flags = ("-w", "-x", "ir", "-c")
    run([CLANG, level, *flags, bitcode, "-o", to], own_session=own_session)


def source_command(
    program: Program, modules: Sequence[Module], level: str, more: Sequence[str] = ()
) -> list[str]:
    """Returns the command that compiles sources of one language in the root."""
    sources = [module.source for module in modules]
    clang = CLANGXX if any(map(is_cpp, sources)) else CLANG
    flags = [flag for module in modules for flag in module.flags]
    common = program.flags[len(UNOPTIMISED) :]
    return [clang, level, "-w", *common, *flags, *more, *sources]


def codegen_command(
    program: Program, bitcode: Path, level: str, more: Sequence[str] = ()
) -> list[str]:
    """Returns the command that generates code from optimised bitcode."""
    flags = [*program.flags[len(UNOPTIMISED) :], *more]
    unchanged = ["-Xclang", "-disable-llvm-passes", "-x", "ir", str(bitcode)]
    return [CLANG, level, "-w", *flags, *unchanged]


def compile_source(
    program: Program, module: Module, to: Path, level: str, more: Sequence[str] = ()
) -> None:
    """Compiles a source file to an object with stock clang and the flags `more`."""
    command = source_command(program, [module], level, more)
    run([*command, "-c", "-o", to], folder=Path(program.root))


def executable(
    program: Program,
    to: Path,
    level: str,
    more: Sequence[str] = (),
    link_flags: Sequence[str] = (),
    *,
    jobs: int | None = None,
) -> None:
    """Compiles and links a program's sources with stock clang and the flags `more`.

    `jobs` compilers run in parallel, by default one for each processor.

    This function compiles the sources, because the bitcode of C++ programs cannot be
    used at -O0. The bitcode contains functions that exist only for inlining.
    """
    with tempfile.TemporaryDirectory(prefix="mlbridge-stock-") as folder:

        def compile_one(number: int) -> Path:
            target = Path(folder, f"{number}.o")
            compile_source(program, program.modules[number], target, level, more)
            return target

        with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
            objects = list(pool.map(compile_one, range(len(program.modules))))
        link(objects, (*program.libraries, *link_flags), to, cpp=program.is_cpp)
