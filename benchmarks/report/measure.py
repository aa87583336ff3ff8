# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the steps of a report, and keeps the result of each step in a file."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mlbridge.errors import Malformed, ModelError, OSFailure, Timeout
from mlbridge_benchmarks.common.processes import ENDING_SECONDS, ROOT

from . import machine
from .schema import MLBRIDGE, Part, Step

STEP_SECONDS = 6 * 3600.0  # The time limit of a step.
PLOTS = ("{}.png", "{}-inprocess.png")
"""The names of a step's plots."""


@dataclass(frozen=True)
class Result:
    """The result of a finished step.

    Attributes:
        command: the words of the command, with placeholders instead of paths.
        started: the time when the step started, in UTC.
        seconds: the duration of the step.
        load: the load average of the minute before the step.
        commit: the commit of the checkout.
        machine: the machine, as `machine.describe` returns it.
        rows: the measured rows.
    """

    command: list[str]
    started: str
    seconds: float
    load: float
    commit: str
    machine: dict[str, str]
    rows: list[dict[str, Any]]


class Results:
    """The results in a folder, which is made if it does not exist."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSFailure(f"{folder}: {error.strerror}") from error
        self.folder = folder.resolve()

    def of(self, step: Step) -> Result | None:
        """Returns the result of a step that has run, else None.

        Raises Malformed for a damaged file.
        """
        file = self.folder / f"{step.name}.json"
        if not file.exists():
            return None
        try:
            return Result(**json.loads(file.read_text("utf-8")))
        except (TypeError, ValueError) as error:
            raise Malformed(f"{file}: {error}; delete it to measure again") from error

    def of_parts(self, parts: Iterable[Part]) -> dict[str, Result]:
        """Maps the name of each measured step of the parts to the step's result."""
        found = {step.name: self.of(step) for step in steps_of(parts)}
        return {name: result for name, result in found.items() if result is not None}

    def seconds(self, parts: Iterable[Part]) -> float:
        """Returns the total time of the parts' steps. Each step counts once."""
        return sum(result.seconds for result in self.of_parts(parts).values())

    def failure(self, step: Step) -> str:
        """Returns why the last run of a step failed, or an empty string."""
        file = self._failure(step)
        return file.read_text("utf-8", "replace") if file.exists() else ""

    def plots(self, step: Step) -> list[Path]:
        """Returns the plots of a step."""
        files = (self.folder / name.format(step.name) for name in PLOTS)
        return [file for file in files if file.exists()]

    def is_finished(self, step: Step, *, quick: bool) -> bool:
        """Returns whether a step has been measured by the same command."""
        found = self.of(step)
        return found is not None and found.command == list(step.words(quick=quick))

    def run(self, step: Step, about: dict[str, str], *, quick: bool) -> None:
        """Measures a step, and replaces its result.

        Raises:
            ModelError: the command failed. An older result is kept.
            Timeout: the command took more than `STEP_SECONDS`.
        """
        started, load = datetime.now(UTC), machine.load()
        log = self.folder / f"{step.name}.log"
        # A step that is interrupted leaves an older result as it is.
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".step-") as name:
            made = Path(name)
            paths = {
                "json": made / "rows.json",
                "plot": made / PLOTS[0].format(step.name),
                "out": made / "out",
                "folder": self.folder,
            }
            words = step.words(quick=quick)
            command = [word.format(**paths) for word in words[1:]]
            if words[0] == MLBRIDGE:
                command = [sys.executable, "-m", "mlbridge", *command]
            else:
                command.insert(0, str(ROOT / words[0]))
            begin = time.monotonic()
            try:
                _run(command, log)
                seconds = time.monotonic() - begin
                rows = self._rows(step, paths["json"], seconds)
            except (ModelError, Timeout) as failure:
                self._failure(step).write_text(str(failure), "utf-8")
                raise
            for plot in PLOTS:
                file = made / plot.format(step.name)
                if file.exists():
                    shutil.move(file, self.folder / file.name)
            result = Result(
                list(words),
                started.isoformat(timespec="seconds"),
                round(seconds, 2),
                round(load, 2),
                machine.commit(),
                about,
                rows,
            )
            done = made / "result.json"
            done.write_text(json.dumps(asdict(result), indent=1) + "\n", "utf-8")
            done.replace(self.folder / f"{step.name}.json")
        self._failure(step).unlink(missing_ok=True)

    def _failure(self, step: Step) -> Path:
        return self.folder / f"{step.name}.failure"

    @staticmethod
    def _rows(step: Step, file: Path, seconds: float) -> list[dict[str, Any]]:
        if not step.has_rows:
            return [{**step.timed, "seconds": seconds}] if step.timed else []
        try:
            rows: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise ModelError(f"{step.name}: no rows: {error}") from error
        return rows


def steps_of(parts: Iterable[Part]) -> list[Step]:
    """Returns the steps of the parts, without duplicates."""
    return list({step.name: step for part in parts for step in part.steps}.values())


def _run(command: list[str], log: Path) -> None:
    """Runs a command in the checkout, with output to the log."""
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            # Ctrl-C reaches only this process, which then ends the command.
            start_new_session=True,
        ) as process,
    ):
        try:
            process.wait(STEP_SECONDS)
        except subprocess.TimeoutExpired:
            name = log.with_suffix("").name
            raise Timeout(f"{name}: more than {STEP_SECONDS:g} s") from None
        finally:
            _end(process)
    if process.returncode:
        raise ModelError(f"status {process.returncode}: {_last_words(log)}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends a command, which first gets time to end its servers and compilers."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(4 * ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _last_words(log: Path) -> str:
    """Returns the end of a log in one line."""
    text = log.read_text("utf-8", "replace")
    return " ".join(text.split())[-600:] or f"no output in {log.name}"
