# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiler that is driven: started, asked, and started again when it fails."""

import json
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, TypedDict

import numpy as np

from mlbridge.envs.channel import EnvironmentChannel, open_channel
from mlbridge.envs.process import CompilerProcess
from mlbridge.errors import (
    Error,
    InvalidArgument,
    Malformed,
    OSFailure,
    PeerClosed,
    SchemaMismatch,
    Timeout,
    Unsupported,
    error_for,
)
from mlbridge.printable import names, words
from mlbridge.types import Features

_CALLERS_FAULT = (InvalidArgument, Malformed, SchemaMismatch, Unsupported)
"""What no compiler suffers by itself: an action, or a space, is wrong."""

_TAKEN = {"error", "episode"}
"""Keys of the info that say something else to who trains: a compiler that failed, and
Stable-Baselines3's statistics."""

_GRACE = 2.0
"""Seconds that a compiler has to end after `close`."""


class CompilerOptions(TypedDict, total=False):
    """How an environment runs its compiler: keyword arguments of all environments.

    Attributes:
        timeout: seconds for a step, 60 by default; None is for as long as the compiler
            is alive.
        reset_timeout: seconds for a reset, the compiler's start included, 60 by
            default; each compiler that is started in place of another has as many.
        max_restarts: how many compilers in a row may be started in place of one that
            failed, before a step has gone well: 3. Then the failure is raised.
        variables: environment variables for the compiler.
        folder: where it runs.
        worker: its number, where there are several.
    """

    timeout: float | None
    reset_timeout: float | None
    max_restarts: int
    variables: Mapping[str, str] | None
    folder: str | PathLike[str] | None
    worker: int


@dataclass(frozen=True)
class CompilerSettings:
    """What an environment knows of its compiler. See `CompilerOptions`."""

    command: Sequence[str]
    spec: str = "pipe"
    timeout: float | None = 60.0
    reset_timeout: float | None = 60.0
    max_restarts: int = 3
    variables: Mapping[str, str] | None = None
    folder: str | PathLike[str] | None = None
    worker: int = 0


@dataclass
class Outcome:
    """What came of a reset or a step."""

    features: Features
    """The observation's tensors, without the reserved ones: views, for now."""
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    agent: str = ""
    info: dict[str, Any] = field(default_factory=dict)
    error: Error | None = None
    """What befell the compiler instead, or what it has answered that with. There are no
    features then."""
    was_over: bool = False
    """Whether the episode was over at its reset, before there was anything to decide:
    the compiler was not asked, and there are no features."""


class _Running:
    """A compiler that runs, and the channel to it."""

    def __init__(self, settings: CompilerSettings) -> None:
        self.channel: EnvironmentChannel = open_channel(settings.spec)
        spec = self.channel.spec
        try:
            self.process = CompilerProcess(
                [
                    part.replace("{spec}", spec).replace(
                        "{worker}", str(settings.worker)
                    )
                    for part in settings.command
                ],
                {**(settings.variables or {}), "MLBRIDGE_SPEC": spec},
                settings.folder,
            )
        except BaseException:
            self.channel.close()
            raise
        self.met = False
        self.asked = False
        """Whether a message waits for its answer."""

    def alive(self) -> bool:
        return self.process.alive()

    def end(self, grace: float = 0.0) -> None:
        try:
            if grace and self.met and not self.asked and self.alive():
                self.channel.send({"_command": "close"})
            else:
                grace = 0.0
        except Error:
            grace = 0.0
        try:
            # Its conversation ends with it, and not before: it may have to write.
            self.process.end(grace)
        finally:
            self.channel.close()


class _Slot:
    """Where the running compiler is, for whoever has to end it."""

    running: _Running | None = None
    inherited: _Running | None = None
    """That of the process that forked this one. Nothing of it may be ended here."""

    def own(self) -> _Running | None:
        """The compiler, if this process has started it."""
        if self.running is not None and not self.running.process.is_ours:
            self.running, self.inherited = None, self.running
        return self.running

    def clear(self, grace: float = 0.0) -> None:
        running = self.own()
        self.running = None
        if running is not None:
            running.end(grace)


class CompilerSession:
    """Resets and steps of one compiler at a time. Used by one thread at a time."""

    def __init__(self, settings: CompilerSettings) -> None:
        if not settings.command or isinstance(settings.command, str):
            raise InvalidArgument(
                "the command is a list of the compiler's program and its arguments,"
                f" found {settings.command!r}"
            )
        self._settings = settings
        self._slot = _Slot()
        # Also when this is forgotten, and when the interpreter ends.
        self._finalizer = weakref.finalize(self, self._slot.clear)
        self._stepping: Error | None = None
        self._over: Outcome | None = None
        self.starts = 0
        """How many compilers have been started."""
        self.failures = 0
        """How often in a row one had to be ended, without a step in between."""
        self._interrupted = threading.Event()
        self.is_connected = False
        """Whether any of them has ever come to its channel."""

    @property
    def pid(self) -> int | None:
        """The process of the compiler that runs."""
        running = self._slot.own()
        return running.process.pid if running else None

    @property
    def fresh(self) -> bool:
        """Whether the next reset is the first of its compiler."""
        running = self._slot.own()
        return running is None or not running.met

    @property
    def is_interrupted(self) -> bool:
        """Whether `interrupt` was called."""
        return self._interrupted.is_set()

    def interrupt(self) -> None:
        """From another thread: ends the compiler, and no other is started."""
        self._interrupted.set()
        running = self._slot.own()
        if running is not None:
            running.process.kill()

    def launch(self) -> None:
        """Starts a compiler, if none runs, and does not wait for it.

        Raises:
            OSFailure: this has been interrupted.
        """
        if self._interrupted.is_set():
            raise OSFailure("the compiler was ended, and no other is to be started")
        running = self._slot.own()
        if running is not None and not running.alive():
            self._slot.clear()
        if self._slot.own() is None:
            self._slot.running = _Running(self._settings)
            self.starts += 1
        running = self._slot.own()
        if self._interrupted.is_set() and running is not None:
            # Meanwhile: it may not have been seen.
            running.process.kill()

    def reset(
        self,
        seed: int | None,
        options: Mapping[str, Any] | None,
        *,
        timeout: float | None = None,
    ) -> Outcome:
        """Starts an episode, with a new compiler where there is none.

        Args:
            seed: for ``Environment::seed()``.
            options: for ``Environment::options()``.
            timeout: seconds, instead of the settings' ``reset_timeout``.

        Raises:
            Timeout, PeerClosed: every compiler that was started failed.
            Error: the compiler could not begin this episode.
        """
        self._over = None
        message: dict[str, Any] = {"_command": "reset"}
        if seed is not None:
            message["_seed"] = seed
        if options:
            message["_options"] = json.dumps(options)
        if timeout is None:
            timeout = self._settings.reset_timeout
        while True:
            was_fresh = self.fresh
            until = None if timeout is None else time.monotonic() + timeout
            try:
                self.launch()
                running = self._compiler()
                if not running.met:
                    running.channel.connect(_left(until), running.alive)
                    running.met = self.is_connected = True
                self._send(message)
                outcome = self._receive(_left(until))
            except (Timeout, PeerClosed) as error:
                failure = self._fail(error)
                # One that has left between two episodes may do so.
                if not was_fresh and isinstance(error, PeerClosed):
                    self.failures -= 1
                    continue
                if self.failures > self._settings.max_restarts:
                    raise failure from None
            else:
                if outcome.error is not None:
                    raise outcome.error
                if outcome.terminated or outcome.truncated:
                    self._over = replace(
                        outcome, features={}, reward=0.0, was_over=True
                    )
                return outcome

    def send_step(self, action: Mapping[str, Any]) -> None:
        """Sends an action; `receive_step` waits for what it leads to."""
        self._stepping = None
        if self._over is not None:
            return
        try:
            self._send({"_command": "step", **action})
        except PeerClosed as error:
            self._stepping = self._fail(error)

    def receive_step(self, timeout: float | None = None) -> Outcome:
        """What the action led to; what befell the compiler is in its ``error``.

        Args:
            timeout: seconds, instead of the settings'.

        Raises:
            SchemaMismatch, InvalidArgument: the action is not what this compiler
                takes.
            PeerClosed, Timeout: the compiler had to be ended too often in a row.
        """
        if self._over is not None:
            over, self._over = self._over, None
            return over
        failure, self._stepping = self._stepping, None
        if failure is None:
            try:
                outcome = self._receive(
                    self._settings.timeout if timeout is None else timeout
                )
            except (Timeout, PeerClosed) as error:
                failure = self._fail(error)
            else:
                if isinstance(outcome.error, _CALLERS_FAULT):
                    raise outcome.error
                if outcome.error is None:
                    self.failures = 0
                return outcome
        if self.failures > self._settings.max_restarts:
            raise failure
        return Outcome({}, truncated=True, error=failure)

    def close(self) -> None:
        """Ends the compiler; it may end by itself first."""
        self._slot.clear(_GRACE)

    def _compiler(self) -> _Running:
        running = self._slot.own()
        if running is None:
            raise InvalidArgument("a step before the first reset of this process")
        return running

    def _send(self, message: Mapping[str, Any]) -> None:
        running = self._compiler()
        try:
            running.channel.send(message)
        except PeerClosed:
            raise
        except BaseException:
            self._slot.clear()
            raise
        running.asked = True

    def _receive(self, timeout: float | None) -> Outcome:
        running = self._compiler()
        try:
            message = running.channel.receive(timeout, running.alive)
            running.asked = False
        except (Timeout, PeerClosed):
            raise
        except BaseException:
            # Ctrl-C, for one: an answer is on its way that nobody waits for.
            self._slot.clear()
            raise
        try:
            return _outcome(message)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            self._slot.clear()
            raise Malformed(
                f"the compiler's observation is none: {error!r}; it has"
                f" {names(message)}"
            ) from error

    def _fail(self, error: Error) -> Error:
        """Ends the compiler, and tells how it ended."""
        running = self._slot.own()
        self.failures += 1
        assert running is not None
        # Who has closed its end is about to say with what status.
        running.process.wait(0.5 if isinstance(error, PeerClosed) else 0)
        had_ended = not running.alive()
        self._slot.clear()
        end = str(running.process) if had_ended else f"{running.process.command[0]}"
        return type(error)(f"{error} ({end})")


def _left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - time.monotonic())


def _outcome(message: Features) -> Outcome:
    """What a message says.

    Raises:
        KeyError, TypeError, ValueError: a reserved tensor is missing, or has another
            type.
        RecursionError: the info is nested more deeply than Python reads.
    """
    if "_error" in message:
        # The compiler's own words: it is there, its episode is over. Its code is that
        # of what it did, such as a Timeout there, and says nothing of this end.
        code = _text(message, "_code", "Model")
        why = words(_text(message, "_error"))
        return Outcome({}, truncated=True, error=error_for(code, why))
    info = json.loads(_text(message, "_info", "{}"))
    if not isinstance(info, dict):
        raise TypeError("_info is a JSON object")
    if taken := _TAKEN & info.keys():
        raise ValueError(f"_info: {min(taken)!r} is a key of the trainer's own")
    return Outcome(
        {name: value for name, value in message.items() if name[:1] != "_"},
        float(_scalar(message, "_reward", "fiu")),
        bool(_scalar(message, "_terminated", "b")),
        bool(_scalar(message, "_truncated", "b")),
        _text(message, "_agent", ""),
        info,
    )


def _text(message: Features, name: str, default: str | None = None) -> str:
    value = message[name] if default is None else message.get(name, default)
    if not isinstance(value, str):
        raise TypeError(f"{name} is a string")
    return value


def _scalar(message: Features, name: str, kinds: str) -> Any:
    """A reserved tensor: one element of a dtype of one of these kinds."""
    value = message[name]
    if (
        not isinstance(value, np.ndarray)
        or value.shape
        or value.dtype.kind not in kinds
    ):
        wanted = "bool" if kinds == "b" else "number"
        raise TypeError(f"{name} is one {wanted}")
    return value
