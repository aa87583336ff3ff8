# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lines of each compiler's integration that use the bridge."""

import importlib.util
import re
import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

import pytest

from programs import ROOT, run_program

SCRIPT = ROOT / "scripts/count-integration-lines"
SMALL = ("MLIR", "GCC", "SQLite", "isl", "Pluto")
"""The integrations that may have at most 25 such lines."""


@pytest.fixture(scope="module")
def counter() -> ModuleType:
    loader = SourceFileLoader("count_integration_lines", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


def rows_of(text: str) -> dict[str, tuple[str, list[int]]]:
    """Returns, for each row of the table, the API and the two counts."""
    rows = re.findall(
        r"^\| ([^|]*:[^|]*) \| (C.*) \| (\d+) \| ([\d,]+) \|$", text, re.M
    )
    return {
        name: (api, [int(lines), int(total.replace(",", ""))])
        for name, api, lines, total in rows
    }


def test_the_table_is_current() -> None:
    """Counts may differ a little, because each change of the code changes them."""
    text = run_program([str(SCRIPT)], check=True).stdout
    counted = rows_of(text)
    page = rows_of((ROOT / "docs/guides/integrate.md").read_text())
    assert len(counted) == 11
    expected: dict[str, Any] = {
        name: (api, pytest.approx(counts, rel=0.1))
        for name, (api, counts) in counted.items()
    }
    assert page == expected, "run scripts/count-integration-lines --update"


@pytest.mark.parametrize("name", SMALL)
def test_integrations_are_small(counter: ModuleType, name: str) -> None:
    (found,) = (
        counter.count(patterns)
        for label, patterns in counter.INTEGRATIONS.items()
        if label.startswith(f"{name}:")
    )
    assert 10 < found.bridge <= 25
    if name in ("GCC", "SQLite", "Pluto"):
        assert found.headers == {"MLCompilerBridge-C/MLCompilerBridge.h"}


def test_what_counts(counter: ModuleType) -> None:
    code = """#include "MLCompilerBridge-C/MLCompilerBridge.h"
int mlbridgeOwnFunction(int);
static void ask(MLBridgeModelRunnerRef Model) {
  mlbridgeSetInt32(mlbridgeGetFeatures(Model), "size",
                   1);
  puts("mlbridgeFlush(");
}
"""
    assert counter.bridge_lines(code, counter.C_NAMES) == {0, 2, 3, 4}
    code = """#include "MLCompilerBridge/MLModelRunner.h"
void f(MLBridge::MLModelRunner &Runner, llvm::MLModelRunner &Other) {
  Runner.populateFeatures(std::pair{"a", 1},
                          std::pair{"b", 2});
  if (Error E = Runner.flush())
    Other.flush();
}
"""
    assert counter.bridge_lines(code, counter.NAMES) == {0, 1, 2, 3, 4}
