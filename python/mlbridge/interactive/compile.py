# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`compile_with_policy`: a stock compile whose decisions are a function's."""

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

    Such as::

        compile_with_policy(
            ["llc-22", "-O2", "-filetype=obj", "x.bc", "-o", "x.o"],
            eviction=lambda features: features["mask"].argmax(),
            priority=lambda features: features["li_size"],
        )

    Whatever ends this call, be it an exception of a policy, Ctrl-C or SIGTERM, ends the
    compiler first; also kill -9 of this process does, within milliseconds.

    Args:
        command: as for `InteractiveCompilerInterface`.
        inliner: decides whether to inline a call: returns 0, 1 or a bool; returning
            None or raising `Deferred` leaves it to LLVM.
        eviction: decides whose register is taken: returns an index at which
            ``features["mask"][0]`` is 1.
        priority: decides when a live range is given a register: returns a number from
            0 to 4294967040; the highest is first.
        tool: as for `InteractiveCompilerInterface`, as all that follow.
        timeout: seconds for all of it.
        decision_timeout: seconds between two requests.
        include_default: whether there is an ``inlining_default``.
        check: whether a compiler that ends with an error is a `CompilerFailed` here;
            else it is a result.
        cwd: where to run.
        env: the whole environment.

    Raises:
        CompilerFailed: the compiler ended with an error, or by a signal.
        Timeout: it took too long, and has been killed.
        SchemaMismatch, Unsupported: a policy gave an answer that LLVM must not get.
        Malformed: this is not LLVM.
        InvalidArgument: a wrong argument.
        OSFailure: there is no such tool.
        Exception: what a policy raised.
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
