# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a stock compile with the decisions of functions."""

from collections.abc import Mapping, Sequence
from os import PathLike

from mlbridge.errors import CompilerFailed, Deferred, InvalidArgument
from mlbridge.interactive.advisors import AdvisorName, Tool
from mlbridge.interactive.interface import CompileResult, InteractiveCompilerInterface
from mlbridge.signals import sigterm_exits
from mlbridge.types import Policy


def compile_with_policy(
    command: Sequence[str | PathLike[str]],
    *,
    inliner: Policy | None = None,
    eviction: Policy | None = None,
    priority: Policy | None = None,
    tool: Tool | None = None,
    timeout: float = 300.0,
    decision_timeout: float | None = None,
    include_default: bool = True,
    check: bool = True,
    cwd: str | PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
) -> CompileResult:
    """Runs a stock clang, opt or llc whose decisions are made by functions.

    Example::

        compile_with_policy(
            ["llc-22", "-O2", "-filetype=obj", "x.bc", "-o", "x.o"],
            eviction=lambda features: features["mask"].argmax(),
            priority=lambda features: features["li_size"],
        )

    The compiler ends before this call does, also after an exception of a policy, Ctrl-C
    or SIGTERM; after kill -9 of this process it ends within milliseconds.

    Args:
        command: as for `InteractiveCompilerInterface`.
        inliner: decides whether to inline a call: returns 0, 1 or a bool. None or
            raising `Deferred` leaves the decision to LLVM.
        eviction: decides which live range loses its register: returns an index where
            ``features["mask"][0]`` is 1.
        priority: decides when a live range gets a register: returns a number from 0 to
            4294967040; the highest is first.
        tool: as for `InteractiveCompilerInterface`, like the following arguments.
        timeout: seconds for the whole compile.
        decision_timeout: seconds between two requests.
        include_default: add LLVM's decision, ``inlining_default``, to the features.
        check: raise `CompilerFailed` if the compiler fails, or else return its result.
        cwd: the working directory.
        env: all environment variables.

    Raises:
        CompilerFailed: the compiler ended with an error, or by a signal.
        Timeout: the compile exceeded a timeout, and was killed.
        SchemaMismatch, Unsupported: a policy returned illegal advice.
        Malformed: the compiler does not follow LLVM's protocol.
        InvalidArgument: an argument is invalid.
        OSFailure: the command cannot be run.
        Exception: an exception of a policy.
    """
    given: dict[AdvisorName, Policy | None] = {
        "inliner": inliner,
        "eviction": eviction,
        "priority": priority,
    }
    policies = {name: policy for name, policy in given.items() if policy is not None}
    if not policies:
        raise InvalidArgument(f"expected a policy for one of {', '.join(given)}")
    with (
        sigterm_exits(),
        InteractiveCompilerInterface(
            command,
            list(policies),
            tool=tool,
            timeout=timeout,
            decision_timeout=decision_timeout,
            include_default=include_default,
            cwd=cwd,
            env=env,
        ) as compiler,
    ):
        try:
            for features in compiler:
                assert compiler.advisor is not None
                try:
                    advice = policies[compiler.advisor](features)
                except Deferred:
                    advice = None
                compiler.populate_buffer(advice)
        except CompilerFailed:
            if check:
                raise
        return compiler.result
