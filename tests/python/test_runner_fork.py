# Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
# Exceptions. See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A runner in a process that forks, as multiprocessing does by default on Linux."""

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import mlbridge
from mlbridge import create_model_runner

ECHO = "import sys, mlbridge; mlbridge.serve(lambda f: f['x'], sys.argv[1])"


@contextmanager
def served(spec: str) -> Iterator[None]:
    """A model in another process, which answers with the feature x."""
    model = subprocess.Popen([sys.executable, "-c", ECHO, spec])
    try:
        yield
    finally:
        model.terminate()
        model.wait(20)


def _echoes(runner: mlbridge.ModelRunner, first: int) -> bool:
    return all(runner.evaluate({"x": x}, int) == x for x in range(first, first + 300))


def _child(runner: mlbridge.ModelRunner, first: int) -> None:
    os._exit(0 if _echoes(runner, first) else 1)


@pytest.mark.parametrize("scheme", ["pipe", "shm"])
def test_each_process_gets_its_own_answers(name: str, scheme: str) -> None:
    spec = f"{scheme}:{name}?timeout=20s&connect=20s"
    fork = multiprocessing.get_context("fork")
    with served(f"{scheme}:{name}"), create_model_runner(spec) as runner:
        assert runner.evaluate({"x": 1}, int) == 1
        children = [
            fork.Process(target=_child, args=(runner, first)) for first in (1000, 2000)
        ]
        for child in children:
            child.start()
        assert _echoes(runner, 3000)
        for child in children:
            child.join(30)
            assert child.exitcode == 0
        assert _echoes(runner, 4000)


def _told(runner: mlbridge.ModelRunner) -> None:
    with pytest.raises(mlbridge.Unsupported, match="forked"):
        runner.evaluate({"x": 1}, int)
    runner.close()
    os._exit(7)


def test_grpc_says_that_it_does_not_work_in_a_child(name: str) -> None:
    spec = f"grpc+unix:{name}?timeout=20s&connect=20s"
    fork = multiprocessing.get_context("fork")
    with served(f"grpc+unix:{name}"), create_model_runner(spec) as runner:
        assert runner.evaluate({"x": 1}, int) == 1
        child = fork.Process(target=_told, args=(runner,))
        child.start()
        assert _echoes(runner, 3000)
        child.join(30)
        assert child.exitcode == 7
        assert _echoes(runner, 4000)
