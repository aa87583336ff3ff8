# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs several compilers in parallel."""

import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from typing import TypeVar

from mlbridge_optimizations.show import Show, quiet

from .compiler import TIMEOUT, EpisodeOptions, SequenceRunner

Item = TypeVar("Item")
Result = TypeVar("Result")


class Runners(AbstractContextManager["Runners"]):
    """A pool of compilers for several threads. It is a context manager."""

    def __init__(
        self, options: EpisodeOptions, workers: int, timeout: float = TIMEOUT
    ) -> None:
        """Creates the pool. Each compiler starts when it is first used."""
        self.options = options
        self.workers = workers
        self._all = [SequenceRunner(options, timeout=timeout) for _ in range(workers)]
        self._free: queue.SimpleQueue[SequenceRunner] = queue.SimpleQueue()
        for runner in self._all:
            self._free.put(runner)

    def map(
        self,
        work: Callable[[SequenceRunner, Item], Result],
        items: Sequence[Item],
        show: Show = quiet,
    ) -> Iterator[tuple[Item, Result]]:
        """Calls `work` for the items in parallel. Yields each finished item and result.

        If a call raises, or the caller stops the iteration, no further call begins, and
        all compilers end. The pool cannot be used afterwards.
        """

        def with_one(item: Item) -> Result:
            runner = self._free.get()
            try:
                return work(runner, item)
            finally:
                self._free.put(runner)

        with ThreadPoolExecutor(self.workers) as pool:
            futures = {pool.submit(with_one, item): item for item in items}
            try:
                for done, future in enumerate(as_completed(futures), 1):
                    result = future.result()
                    show(done, len(items))
                    yield futures[future], result
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for runner in self._all:
                    runner.interrupt()
                raise

    def close(self) -> None:
        """Ends all compilers."""
        for runner in self._all:
            runner.close()

    def __exit__(self, *_: object) -> None:
        self.close()
