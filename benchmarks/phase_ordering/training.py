# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training of phase ordering: steps per second, and the time of iterations.

This corresponds to figures 5a and 5b of the bridge's paper. The original flow is
compared with our flow through each transport, each with one and with two workers. All
flows play the same episodes. The benchmark checks the size of the code after each
action. The size must be the same in all our flows, and differ by at most 1 % in the
original flow.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from rich.table import Table
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv

from mlbridge.errors import ModelError
from mlbridge_benchmarks.common.processes import own_cpu_seconds
from mlbridge_benchmarks.common.tables import Bound, number, plain_table
from mlbridge_optimizations.phase_ordering.environment.compiler import EpisodeOptions
from mlbridge_optimizations.phase_ordering.environment.environment import (
    PhaseOrderingEnv,
)
from mlbridge_optimizations.phase_ordering.model.networks import Normalised
from mlbridge_optimizations.plot import draw_bars, finish, panels_of

from .original import OriginalEnv
from .task import Sample, environment_of, need_grpc

ORIGINAL = "original"
SPECS = {
    "gRPC": "grpc+unix",
    "pipe, JSON": "pipe:?serdes=json",
    "pipe, bitstream": "pipe:?serdes=bitstream",
    "shm": "shm",
}
FLOWS = (ORIGINAL, *SPECS)
REWARD = "text-size:10"
THROUGHPUT_LIMIT = 0.25  # The limit on a step's time, relative to the original flow.
SCALING_LIMIT = 0.588  # The limit on two workers' time relative to one worker: 1 / 1.7.
_SLACK = 0.01  # The allowed relative difference of the original flow's code size.
Env = gymnasium.Env[Any, Any]
Sizes = tuple[int, ...]  # The size of the machine code after each action.


@dataclass(frozen=True)
class Episode:
    """A module, and the actions to take."""

    module: Path
    actions: tuple[int, ...]


@dataclass(frozen=True)
class Setting:
    """The settings that all flows share."""

    options: EpisodeOptions  # The options of the compilers.
    folder: Path  # For temporary files.

    def make(self, flow: str, modules: Sequence[Path]) -> Env:
        """Creates an environment with empty caches."""
        options = self.options
        if flow == ORIGINAL:
            count = sum(1 for _ in self.folder.iterdir())
            return OriginalEnv(options, self.folder / f"original-{count}")
        need_grpc(SPECS[flow])
        told = environment_of(options, SPECS[flow])
        return PhaseOrderingEnv(**told, modules=modules, flat=True)


def episodes(sample: Sample, count: int, setting: Setting, seed: int) -> list[Episode]:
    """Draws `count` episodes on each module. Episodes on large modules come first.

    With this order, all workers finish at nearly the same time.
    """
    options = setting.options
    shape = len(sample.files), count, options.steps
    drawn = np.random.default_rng(seed).integers(0, options.choices, shape)
    made = [
        Episode(module, tuple(actions))
        for module, each in zip(sample.files, drawn.tolist(), strict=True)
        for actions in each
    ]
    return sorted(made, key=lambda episode: -sample.files[episode.module])


@dataclass(frozen=True)
class Played:
    """The results of some episodes."""

    seconds: float  # The total time, including compiler starts.
    sizes: dict[Episode, Sizes]
    cpu_seconds: float = 0.0  # The CPU time of all processes.
    known: float = 0.0  # The share of states in the original flow's cache.


def play(
    setting: Setting, flow: str, workers: int, wanted: Sequence[Episode]
) -> Played:
    """Plays episodes in new environments, without a learner."""
    left: queue.SimpleQueue[Episode] = queue.SimpleQueue()
    for episode in wanted:
        left.put(episode)
    sizes: dict[Episode, Sizes] = {}
    modules = sorted({episode.module for episode in wanted})
    ending = threading.Event()

    def work(env: Env) -> None:
        while not ending.is_set():
            try:
                episode = left.get_nowait()
            except queue.Empty:
                return
            env.reset(options={"module": str(episode.module)})
            found = []
            for action in episode.actions:
                if ending.is_set():
                    return
                _, _, terminated, truncated, info = env.step(action)
                if truncated:
                    raise ModelError(f"{flow}, {episode.module}: {info}")
                found.append(int(info["text_size"]))
                if terminated:
                    break
            sizes[episode] = tuple(found)

    before = own_cpu_seconds()
    with ExitStack() as stack:
        envs = [
            stack.enter_context(closing(setting.make(flow, modules)))
            for _ in range(workers)
        ]
        pool = stack.enter_context(ThreadPoolExecutor(workers))
        start = time.perf_counter()
        try:
            working = [pool.submit(work, env) for env in envs]
            for done in wait(working, return_when=FIRST_EXCEPTION).done:
                done.result()
        except BaseException:
            # Stop the workers after a failure or Ctrl-C.
            ending.set()
            raise
        seconds = time.perf_counter() - start
        states = sum(len(found) for found in sizes.values())
        known = sum(env.known for env in envs if isinstance(env, OriginalEnv))
    # The compilers have ended, so own_cpu_seconds() includes them.
    return Played(seconds, sizes, own_cpu_seconds() - before, known / states)


class _Learned(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that cycles through the modules and normalises the features."""

    def __init__(
        self, env: Env, modules: Sequence[Path], options: EpisodeOptions, *, first: int
    ) -> None:
        super().__init__(env)
        self._modules = modules
        self._next = first
        self._normalised = Normalised(options.widths, options.steps)
        self.observation_space = spaces.Box(
            -np.inf, np.inf, (self._normalised.out_features,), np.float32
        )
        self.sizes: list[int] = []
        self.actions: list[int] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        """Starts an episode on the next module."""
        module = self._modules[self._next % len(self._modules)]
        self._next += 1
        row, info = self.env.reset(seed=seed, options={"module": str(module)})
        return self._observe(row), info

    def step(self, action: Any) -> Any:
        """Applies an action and records the action and the code size."""
        row, reward, terminated, truncated, info = self.env.step(int(action))
        if truncated:
            raise ModelError(f"a compiler failed: {info}")
        self.actions.append(int(action))
        self.sizes.append(int(info["text_size"]))
        return self._observe(row), reward, terminated, truncated, info

    def _observe(self, row: Any) -> Any:
        with torch.no_grad():
            return self._normalised(torch.from_numpy(row)[None])[0].numpy()


class _Parallel(DummyVecEnv):
    """Steps each environment in its own thread, because steps wait for processes."""

    def step_wait(self) -> Any:
        """Steps all environments at the same time."""
        with ThreadPoolExecutor(self.num_envs) as pool:
            done = list(pool.map(self._step, range(self.num_envs)))
        for number_, (observation, reward, is_over, info) in enumerate(done):
            self._save_obs(number_, observation)
            self.buf_rews[number_], self.buf_dones[number_] = reward, is_over
            self.buf_infos[number_] = info
        rewards, dones = np.copy(self.buf_rews), np.copy(self.buf_dones)
        return self._obs_from_buf(), rewards, dones, list(self.buf_infos)

    def _step(self, number_: int) -> tuple[Any, float, bool, dict[str, Any]]:
        env = self.envs[number_]
        step = env.step(self.actions[number_])
        observation, reward, terminated, truncated, info = step
        is_over = bool(terminated or truncated)
        info = {**info, "TimeLimit.truncated": bool(truncated and not terminated)}
        if is_over:
            info["terminal_observation"] = observation
            observation, self.reset_infos[number_] = env.reset()
        return observation, float(reward), is_over, info


class _Clock(BaseCallback):
    """Records the time at which each iteration ended."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._steps = steps
        self._start = time.perf_counter()
        self.seconds: list[float] = []

    def _on_step(self) -> bool:
        while self.num_timesteps >= self._steps * (len(self.seconds) + 1):
            self.seconds.append(time.perf_counter() - self._start)
        return True


@dataclass(frozen=True)
class Learned:
    """The results of a training."""

    seconds: tuple[float, ...]  # The time until each iteration's end.
    actions: tuple[tuple[int, ...], ...]  # The actions of each worker.
    sizes: tuple[Sizes, ...]  # The code size after each action.


def learn(
    setting: Setting,
    flow: str,
    workers: int,
    modules: Sequence[Path],
    iterations: int,
    steps: int,
    seed: int,
) -> Learned:
    """Trains a DQN that always explores, so only the seed determines its actions.

    An iteration has ``steps`` steps of all workers together.
    """
    torch.set_num_threads(1)
    envs = [
        _Learned(setting.make(flow, modules), modules, setting.options, first=worker)
        for worker in range(workers)
    ]
    with closing(_Parallel([lambda env=env: env for env in envs])) as together:  # type: ignore[misc]
        model = DQN(
            "MlpPolicy",
            together,
            buffer_size=50_000,
            learning_starts=steps // 2,
            batch_size=64,
            train_freq=4,
            exploration_initial_eps=1.0,
            exploration_final_eps=1.0,
            policy_kwargs={"net_arch": [128, 128]},
            seed=seed,
            device="cpu",
        )
        model.set_logger(Logger(folder=None, output_formats=[]))
        clock = _Clock(steps)
        model.learn(iterations * steps, callback=clock)
    return Learned(
        tuple(clock.seconds[:iterations]),
        tuple(tuple(env.actions) for env in envs),
        tuple(tuple(env.sizes) for env in envs),
    )


@dataclass
class Results:
    """All measurements."""

    states: int  # The number of actions in all episodes.
    # For each flow and number of workers, one result per round.
    played: dict[tuple[str, int], list[Played]] = field(default_factory=dict)
    learned: dict[tuple[str, int], list[Learned]] = field(default_factory=dict)
    compared: int = 0  # The number of code sizes compared.
    different: int = 0  # The sizes that differed, all in the original flow.

    def rate(self, flow: str, workers: int) -> float:
        """Returns the median steps per second without a learner."""
        return self.states / median(p.seconds for p in self.played[flow, workers])

    def cpu_ms(self, flow: str, workers: int) -> float:
        """Returns the median CPU time per step without a learner."""
        spent = median(p.cpu_seconds for p in self.played[flow, workers])
        return 1e3 * spent / self.states

    def time_ratio(self, one: tuple[str, int], other: tuple[str, int]) -> float:
        """Returns the median ratio of two flows' times in the same round."""
        pairs = zip(self.played[one], self.played[other], strict=True)
        return median(a.seconds / b.seconds for a, b in pairs)

    def learning_seconds(self, flow: str, workers: int) -> list[float]:
        """Returns the median time until each iteration's end."""
        curves = [run.seconds for run in self.learned[flow, workers]]
        return [median(column) for column in zip(*curves, strict=True)]


def measure(
    setting: Setting,
    names: Sequence[str],
    workers: Sequence[int],
    wanted: Sequence[Episode],
    *,
    rounds: int,
    iterations: int,
    iteration_steps: int,
    seed: int,
    on_part: Callable[[], None],
) -> Results:
    """Plays and trains with each pair of a flow and a number of workers, in turn."""
    results = Results(sum(len(episode.actions) for episode in wanted))
    modules = list(dict.fromkeys(episode.module for episode in wanted))
    turns = [(name, count) for count in workers for name in names] * rounds
    for turn in turns:
        done = play(setting, *turn, wanted)
        results.played.setdefault(turn, []).append(done)
        on_part()
    for turn in turns if iterations else ():
        run = learn(setting, *turn, modules, iterations, iteration_steps, seed)
        results.learned.setdefault(turn, []).append(run)
        on_part()
    check(results)
    return results


def check(results: Results) -> None:
    """Checks that the same actions produced code of the same size in all flows.

    The original flow's code may differ slightly, because information that passes have
    computed is lost when a module is written and read.
    """
    reference: dict[Any, Sizes] = {}

    def compare(flow: str, what: Any, sizes: Sizes) -> None:
        expected = reference.setdefault(what, sizes)
        for one, other in zip(expected, sizes, strict=True):
            results.compared += 1
            results.different += one != other
            if abs(one - other) > (_SLACK * one if flow == ORIGINAL else 0):
                raise ModelError(
                    f"{flow}: {what}: expected code of {expected} bytes after each "
                    f"action, found {sizes}"
                )

    # Our flows come first, because the original flow is compared with them.
    for key in sorted(results.played, key=lambda key: key[0] == ORIGINAL):
        for played in results.played[key]:
            for episode, sizes in played.sizes.items():
                compare(key[0], episode, sizes)
    seeded: dict[int, tuple[tuple[int, ...], ...]] = {}
    for flow, count in sorted(results.learned, key=lambda key: key[0] == ORIGINAL):
        for run in results.learned[flow, count]:
            if seeded.setdefault(count, run.actions) != run.actions:
                raise ModelError(f"{flow}: a training with one seed took other actions")
            parts = zip(run.actions, run.sizes, strict=True)
            for worker, (actions, sizes) in enumerate(parts):
                compare(flow, (count, worker, actions), sizes)


def rows(results: Results) -> list[dict[str, Any]]:
    """Returns a row for each flow and number of workers."""
    made = []
    for (flow, count), runs in results.played.items():
        row: dict[str, Any] = {
            "flow": flow,
            "workers": count,
            "rounds": len(runs),
            "states": results.states,
            "steps_per_second": round(results.rate(flow, count), 2),
            "cpu_ms_per_step": round(results.cpu_ms(flow, count), 3),
        }
        for base, name in (((ORIGINAL, count), "original"), ((flow, 1), "one_worker")):
            if base in results.played:
                ratio = results.time_ratio(base, (flow, count))
                row[f"faster_than_{name}"] = round(ratio, 3)
        if (flow, count) in results.learned:
            row["iteration_seconds"] = [
                round(s, 3) for s in results.learning_seconds(flow, count)
            ]
        made.append(row)
    return made


def table(results: Results) -> Table:
    """Returns the rows as a table."""
    columns = ["workers", "steps/s", "faster", "/ one", "CPU ms"]
    if results.learned:
        columns += ["learning s", "faster"]
    shown = plain_table("training of phase ordering", [""], columns)
    faster = ("faster_than_original", "faster_than_one_worker")
    names = ("steps_per_second", *faster, "cpu_ms_per_step")
    for row in rows(results):
        key = row["flow"], row["workers"]
        cells = [number(row[name]) if name in row else "" for name in names]
        if key in results.learned:
            last = row["iteration_seconds"][-1]
            cells.append(number(last))
            if (ORIGINAL, row["workers"]) in results.learned:
                base = results.learning_seconds(ORIGINAL, row["workers"])[-1]
                cells.append(number(base / last))
        shown.add_row(row["flow"], str(row["workers"]), *cells)
    return shown


def bounds(results: Results) -> list[Bound]:
    """Returns the relative times of our flows with their limits."""
    found = []
    for flow, count in results.played:
        label = f"{count} worker{'s' * (count > 1)}"
        if flow == ORIGINAL:
            continue
        if (ORIGINAL, count) in results.played:
            ratio = results.time_ratio((flow, count), (ORIGINAL, count))
            found.append(Bound(flow, label, ORIGINAL, ratio, THROUGHPUT_LIMIT))
            ratio = results.cpu_ms(flow, count) / results.cpu_ms(ORIGINAL, count)
            what = f"{ORIGINAL}, CPU"
            found.append(Bound(flow, label, what, ratio, THROUGHPUT_LIMIT))
        if count == 2 and (flow, 1) in results.played:
            ratio = results.time_ratio((flow, 2), (flow, 1))
            found.append(Bound(flow, label, "one worker", ratio, SCALING_LIMIT))
    return found


def plot(results: Results, path: Path) -> None:
    """Plots steps per second, and the time until each iteration's end."""
    count = 2 if results.learned else 1
    with panels_of(path, count) as panels:
        keys = list(results.played)
        labels = [f"{flow}, {n} worker{'s' * (n > 1)}" for flow, n in keys]
        flows = list(dict.fromkeys(flow for flow, _ in keys))
        colours = [f"C{flows.index(flow)}" for flow, _ in keys]
        rates = [results.rate(*key) for key in keys]
        words = "steps/s, without a learner (higher is better)"
        draw_bars(panels[0], labels, rates, colours, "%.1f", words)
        for (flow, workers), colour in zip(keys, colours, strict=True):
            if (flow, workers) in results.learned:
                seconds = results.learning_seconds(flow, workers)
                iterations = range(1, len(seconds) + 1)
                style = f"{colour}{'-' if workers == 1 else '--'}o"
                panels[1].plot(iterations, seconds, style, label=f"{flow}, {workers}")
        if results.learned:
            words = "iterations of a DQN"
            finish(panels[1], xlabel=words, ylabel="s (lower is better)", yscale="log")
