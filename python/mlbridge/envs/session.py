# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the episodes of a compiler, and restarts the compiler when it fails."""

import json
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Self, TypedDict

import numpy as np

from mlbridge import grpc
from mlbridge.codec import Format
from mlbridge.envs.channel import EnvironmentChannel, open_channel
from mlbridge.envs.process import CompilerProcess, RemoteCompiler
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
"""Errors that the caller has caused, for example with a wrong action or space."""

_TAKEN = {"error", "episode"}
"""Keys of the info that are reserved for trainers."""

_GRACE = 2.0
"""Seconds after `close` until a compiler that still runs is killed."""


class CompilerOptions(TypedDict, total=False):
    """Keyword arguments of all environments, which control the compiler's process.

    Attributes:
        timeout: seconds that a step may take. The default is 60. None sets no limit.
        reset_timeout: seconds that a reset and the start of the compiler may take. The
            default is 60. A restart of the compiler gets the full time again.
        max_restarts: the maximum number of restarts between two successful steps. After
            that, a failure is raised. The default is 3.
        variables: additional environment variables for the compiler.
        folder: the working directory of the compiler.
        worker: the number of the compiler, if there are several.
        formats: additional SerDes, for example from `mlbridge.protobuf.messages`.
    """

    timeout: float | None
    reset_timeout: float | None
    max_restarts: int
    variables: Mapping[str, str] | None
    folder: str | PathLike[str] | None
    worker: int
    formats: Sequence[Format]


@dataclass(frozen=True)
class CompilerSettings:
    """The command and the options of a compiler. See `CompilerOptions`.

    An empty command means that the user starts the compiler, so the spec must contain
    its address. If the spec lists several ports, the compiler uses its worker's port.
    """

    command: Sequence[str]
    spec: str = "pipe"
    timeout: float | None = 60.0
    reset_timeout: float | None = 60.0
    max_restarts: int = 3
    variables: Mapping[str, str] | None = None
    folder: str | PathLike[str] | None = None
    worker: int = 0
    formats: Sequence[Format] = ()

    @property
    def is_remote(self) -> bool:
        """Whether the user starts the compiler."""
        return not self.command

    def __str__(self) -> str:
        name = self.spec if self.is_remote else Path(self.command[0]).name
        return f"{name} (worker {self.worker})"


@dataclass
class Outcome:
    """The result of a reset or a step."""

    features: Features
    """The tensors of the observation. They are views, valid until the next step."""
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    agent: str = ""
    info: dict[str, Any] = field(default_factory=dict)
    error: Error | None = None
    """The error if the step failed, for example because the compiler crashed. Then
    ``features`` is empty, and ``info["error"]`` has the error's code and text."""
    was_over: bool = False
    """Whether the episode had ended at its reset, without a decision. Then the step
    was not sent to the compiler, and ``features`` is empty."""

    @classmethod
    def failed(cls, error: Error) -> Self:
        """Returns the outcome of a step that failed."""
        info = {"error": f"{error.code}: {error}"}
        return cls({}, truncated=True, info=info, error=error)


class _Running:
    """A running compiler process and its channel."""

    def __init__(self, settings: CompilerSettings) -> None:
        address = grpc.pick(settings.spec, settings.worker)
        if grpc.is_named_in(address) and not settings.formats:
            # Set the SerDes, because the compiler's default depends on its libraries.
            address = grpc.with_default(address, "serdes=bitstream")
        self.channel: EnvironmentChannel = open_channel(address, settings.formats)
        self.process: CompilerProcess | RemoteCompiler = RemoteCompiler()
        self.is_connected = False
        self.is_asked = False
        """Whether a message to the compiler waits for its reply."""
        if settings.is_remote:
            return
        spec, worker = self.channel.spec, str(settings.worker)
        command = [part.replace("{spec}", spec) for part in settings.command]
        command = [part.replace("{worker}", worker) for part in command]
        variables = {**(settings.variables or {}), "MLBRIDGE_SPEC": spec}
        try:
            self.process = CompilerProcess(command, variables, settings.folder)
        except BaseException:
            self.channel.close()
            raise

    def end(self, grace: float = 0.0) -> None:
        is_idle = self.is_connected and not self.is_asked
        try:
            if grace and is_idle and self.process.alive():
                self.channel.send({"_command": "close"})
            else:
                grace = 0.0
        except Error:
            grace = 0.0
        try:
            # Close the channel last, because the compiler may still write to it.
            self.process.end(grace)
        finally:
            self.channel.close()


class _Slot:
    """Holds the running compiler, so that a finalizer of the session can end it."""

    running: _Running | None = None
    inherited: _Running | None = None
    """A compiler that a parent of this forked process started. Do not end it here."""

    def own(self) -> _Running | None:
        """Returns the compiler, or None if this process has not started it."""
        if self.running is not None and not self.running.process.is_ours:
            self.running, self.inherited = None, self.running
        return self.running

    def clear(self, grace: float = 0.0) -> None:
        running = self.own()
        self.running = None
        if running is not None:
            running.end(grace)


class CompilerSession:
    """Runs the resets and steps of one compiler. One thread at a time may use it."""

    def __init__(self, settings: CompilerSettings) -> None:
        address = settings.spec.partition("?")[0].partition(":")[2].strip("/")
        if isinstance(settings.command, str) or (settings.is_remote and not address):
            raise InvalidArgument(
                "command: expected a list of the compiler's program and arguments, or"
                " an empty list and a spec with the address of a compiler, such as"
                f" grpc://host:50051; found {settings.command!r} and the spec"
                f" {settings.spec!r}"
            )
        self._settings = settings
        self._slot = _Slot()
        # End the compiler also if the user does not call close().
        self._finalizer = weakref.finalize(self, self._slot.clear)
        self._stepping: Error | None = None
        self._over: Outcome | None = None
        self.starts = 0
        """The number of compilers started so far."""
        self.failures = 0
        """The number of compilers that failed since the last successful step."""
        self._interrupted = threading.Event()
        self.is_connected = False
        """Whether a compiler has ever connected."""

    def use_compiler_at(self, address: str) -> None:
        """Uses the compiler that the user starts at an address. Ignores the command.

        Call this before the first reset.
        """
        self._settings = replace(self._settings, command=(), spec=address)

    @property
    def pid(self) -> int | None:
        """The process ID of the compiler, or None if no compiler runs."""
        running = self._slot.own()
        return running.process.pid if running else None

    @property
    def fresh(self) -> bool:
        """Whether the next reset is the compiler's first reset."""
        running = self._slot.own()
        return running is None or not running.is_connected

    @property
    def is_interrupted(self) -> bool:
        """Whether `interrupt` was called."""
        return self._interrupted.is_set()

    def interrupt(self) -> None:
        """Kills the compiler, and prevents a restart. Thread-safe."""
        self._interrupted.set()
        running = self._slot.own()
        if running is not None:
            running.process.kill()

    def launch(self) -> None:
        """Starts a compiler if none runs. Raises OSFailure after `interrupt`."""
        if self._interrupted.is_set():
            raise OSFailure("the compiler was interrupted and is not started again")
        running = self._slot.own()
        if running is None or not running.process.alive():
            self._slot.clear()
            self._slot.running = running = _Running(self._settings)
            self.starts += 1
        # Check again: interrupt() may have run before `running` was stored.
        if self._interrupted.is_set():
            running.process.kill()

    def reset(
        self,
        seed: int | None,
        options: Mapping[str, Any] | None,
        *,
        timeout: float | None = None,
    ) -> Outcome:
        """Starts an episode, like `CompilerEnv.reset`, and a compiler if none runs.

        ``timeout``, in seconds, replaces ``reset_timeout`` of the settings.
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
                if not running.is_connected:
                    running.channel.connect(_left(until), running.process.alive)
                    running.is_connected = self.is_connected = True
                self._send(message)
                outcome = self._receive(_left(until))
            except (Timeout, PeerClosed) as error:
                failure = self._fail(error)
                # Do not count this failure: a compiler may exit between two episodes.
                if not was_fresh and isinstance(error, PeerClosed):
                    self.failures -= 1
                    continue
                # Do not repeat a wait for a compiler that cannot be started again.
                is_final = self._settings.is_remote and isinstance(error, Timeout)
                if is_final or self.failures > self._settings.max_restarts:
                    raise failure from None
            else:
                if outcome.error is not None:
                    raise outcome.error
                if outcome.terminated or outcome.truncated:
                    over = replace(outcome, features={}, reward=0.0, was_over=True)
                    self._over = over
                return outcome

    def send_step(self, action: Mapping[str, Any]) -> None:
        """Sends an action. `receive_step` then waits for the result."""
        self._stepping = None
        if self._over is not None:
            return
        try:
            self._send({"_command": "step", **action})
        except PeerClosed as error:
            self._stepping = self._fail(error)

    def receive_step(self, timeout: float | None = None) -> Outcome:
        """Waits for the outcome of the action. A failed step sets `Outcome.error`.

        ``timeout``, in seconds, replaces the settings' timeout. Raises SchemaMismatch
        or InvalidArgument if the compiler rejects the action. Raises PeerClosed or
        Timeout after more than ``max_restarts`` consecutive failures.
        """
        over, self._over = self._over, None
        if over is not None:
            return over
        failure, self._stepping = self._stepping, None
        if failure is None:
            timeout = self._settings.timeout if timeout is None else timeout
            try:
                outcome = self._receive(timeout)
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
        return Outcome.failed(failure)

    def close(self) -> None:
        """Requests the compiler to exit, and kills it if it still runs 2 s later."""
        self._slot.clear(_GRACE)

    def _compiler(self) -> _Running:
        running = self._slot.own()
        if running is None:
            raise InvalidArgument(
                "no compiler runs in this process; call reset() first"
            )
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
        running.is_asked = True

    def _receive(self, timeout: float | None) -> Outcome:
        running = self._compiler()
        try:
            message = running.channel.receive(timeout, running.process.alive)
            running.is_asked = False
        except (Timeout, PeerClosed):
            raise
        except BaseException:
            # End the compiler, because its next message would reply to this request.
            self._slot.clear()
            raise
        try:
            return _outcome(message)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            self._slot.clear()
            raise Malformed(
                f"the compiler's observation is invalid: {error!r}; it has"
                f" {names(message)}"
            ) from error

    def _fail(self, error: Error) -> Error:
        """Ends the compiler, and adds the compiler's exit status to the error."""
        self.failures += 1
        process = self._compiler().process
        # If the compiler has closed its channel, wait: it is about to exit.
        had_ended = process.wait(0.5 if isinstance(error, PeerClosed) else 0)
        self._slot.clear()
        return type(error)(f"{error} ({process if had_ended else process.command[0]})")


def _left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - time.monotonic())


def _outcome(message: Features) -> Outcome:
    """Decodes a message.

    Raises KeyError, TypeError or ValueError if a reserved tensor is missing or invalid.
    Raises RecursionError if the info is nested too deeply.
    """
    if "_error" in message:
        # Return the error instead of raising it. Even if it is a Timeout, only the
        # episode has failed, and the compiler still runs.
        code = _text(message, "_code", "Model")
        return Outcome.failed(error_for(code, words(_text(message, "_error"))))
    info = json.loads(_text(message, "_info", "{}"))
    if not isinstance(info, dict):
        raise TypeError("_info is a JSON object")
    if taken := _TAKEN & info.keys():
        raise ValueError(f"_info: key {min(taken)!r} is reserved for the trainer")
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
    """Returns a reserved tensor that must have one element and a dtype in `kinds`."""
    value = message[name]
    if isinstance(value, np.ndarray) and not value.shape and value.dtype.kind in kinds:
        return value
    raise TypeError(f"{name} is one {'bool' if kinds == 'b' else 'number'}")
