# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plays the same episodes with a model, baselines and random actions."""

import json
import math
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from mlbridge import ModelRunner
from mlbridge.envs import Padded
from mlbridge.errors import CompilerFailed, InvalidArgument, SchemaMismatch
from mlbridge.files import spec_of
from mlbridge.onnx import open_session
from mlbridge_optimizations.optimization import (
    MODEL,
    Choice,
    Optimization,
    PerAgent,
    guarded,
    merged,
    of_agent,
    spaces_of,
)
from mlbridge_optimizations.show import ShowStage, quiet

CHANCE = "at random"


def compare(
    optimization: Optimization[Any],
    environment: Any,
    model: Path,
    episodes: int,
    seed: int,
    show: ShowStage = quiet,
) -> dict[str, list[float]]:
    """Returns the metric of each episode for the model, baselines and random actions.

    The model is an .onnx file, or a folder with ``AGENT.onnx`` for each agent. The
    model runs with the same runner as in a compiler. The seeds of the episodes start at
    ``seed``. CompilerFailed is raised if the compiler crashes, and SchemaMismatch if
    the observations do not fit the model.
    """
    if taken := optimization.baselines.keys() & {MODEL, CHANCE}:
        raise InvalidArgument(
            f"baseline '{taken.pop()}': another row of the table has that name; rename"
            " the baseline"
        )
    baselines = {
        name: guarded(f"baseline '{name}'", make, environment)
        for name, make in optimization.baselines.items()
    }
    found = dict[str, list[float]]()
    env = optimization.environment(environment)
    agents = spaces_of(env)
    try:
        with ExitStack() as runners:
            model_choices = {
                agent: _model_choice(runners, _file_of(model, agent), *spaces)
                for agent, spaces in agents.items()
            }
            for number, (_, actions) in enumerate(agents.values()):
                actions.seed(seed + number)
            ways: dict[str, PerAgent[Choice]] = {
                MODEL: model_choices,
                **baselines,
                CHANCE: {
                    agent: _chance(actions) for agent, (_, actions) in agents.items()
                },
            }
            for name, choices in ways.items():
                found[name] = []
                by_agent = {
                    agent: partial(guarded, "its choice", of_agent(choices, agent))
                    for agent in agents
                }
                for number in range(episodes):
                    try:
                        value = _play(optimization, env, by_agent, seed + number)
                    except InvalidArgument as error:
                        raise InvalidArgument(f"'{name}': {error}") from error
                    found[name].append(value)
                    show(f"Episodes, {name}", len(found[name]), episodes)
    finally:
        env.close()
    return found


def _file_of(model: Path, agent: str) -> Path:
    """Returns the file of an agent's model. Raises InvalidArgument if it is missing."""
    if not agent:
        return model / f"{MODEL}.onnx" if model.is_dir() else model
    path = model / f"{agent}.onnx"
    if not path.is_file():
        raise InvalidArgument(
            f"expected a folder with a model of each agent, found no {path}"
        )
    return path


def _play(
    optimization: Optimization[Any], env: Any, choices: Mapping[str, Choice], seed: int
) -> float:
    observation, info = env.reset(seed=seed)
    total, is_over = 0.0, False
    while not is_over:
        if "" in choices:
            action = choices[""](observation)
            observation, reward, terminated, truncated, info = env.step(action)
        else:
            acts = {agent: choices[agent](own) for agent, own in observation.items()}
            observation, rewards, terminateds, truncateds, infos = env.step(acts)
            reward = sum(rewards.values())
            terminated, truncated = terminateds["__all__"], truncateds["__all__"]
            info = merged(infos)
        if "error" in info:
            raise CompilerFailed(f"in the episode of seed {seed}: {info['error']}")
        total += float(reward)
        is_over = terminated or truncated
    return optimization.metric.value(total, info)


def _chance(actions: Any) -> Choice:
    """Returns a function that draws random actions, which obey any ``action_mask``."""

    def choose(observation: Any) -> Any:
        if not isinstance(observation, Mapping) or "action_mask" not in observation:
            return actions.sample()
        return actions.sample(mask=observation["action_mask"].astype(np.int8))

    return choose


def _model_choice(
    runners: ExitStack, model: Path, observations: Any, actions: Any
) -> Choice:
    """Returns a function that chooses actions with a model. See `compare`."""
    runner = runners.enter_context(ModelRunner(spec_of("onnx", model)))
    features = _features_of(model)

    def choose(observation: Any) -> Any:
        if isinstance(observations, Padded):
            asked = observations.unpad(observation)
        elif isinstance(observation, Mapping):
            asked = dict(observation)
        elif len(features) == 1:
            asked = dict.fromkeys(features, observation)
        else:
            if any(isinstance(e, str) for shape in features.values() for e in shape):
                raise SchemaMismatch(
                    f"{model} takes {', '.join(features)} of changing size, but"
                    f" observations are {observations}: give the environment the"
                    " options of the training"
                )
            sizes = [int(np.prod(shape)) for shape in features.values()]
            row = np.asarray(observation).ravel()
            if sum(sizes) != row.size:
                raise SchemaMismatch(
                    f"{model}: expected {sum(sizes)} numbers in an observation, found"
                    f" {row.size}"
                )
            parts = np.split(row, np.cumsum(sizes)[:-1])
            asked = {
                name: part.reshape(shape)
                for (name, shape), part in zip(features.items(), parts, strict=True)
            }
        advice = runner.evaluate(asked)
        if len(advice) != 1:
            raise SchemaMismatch(
                f"{model}: expected one advice, the action, found {', '.join(advice)}"
            )
        (found,) = advice.values()
        reply = np.asarray(found)
        if isinstance(actions, Discrete) and reply.size == int(actions.n) != 1:
            return int(actions.start) + int(reply.argmax())  # Logits.
        if reply.size != math.prod(actions.shape):
            raise SchemaMismatch(
                f"{model}: expected an action of shape {actions.shape}, found"
                f" {reply.shape}"
            )
        # The advice may have a first dimension of size 1, for the request.
        return np.reshape(reply, actions.shape)

    return choose


def _features_of(model: Path) -> dict[str, list[int]]:
    """Returns the shapes of a model's features, in the order of an observation."""
    session = open_session(str(model))
    about = session.get_modelmeta().custom_metadata_map
    try:
        listed = json.loads(about["mlbridge.features"])
        return {feature["name"]: feature["shape"] for feature in listed}
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise SchemaMismatch(
            f"{model}: expected a model of `mlbridge train` or `mlbridge export`, with"
            f" the list of its features: {error!r}"
        ) from error
