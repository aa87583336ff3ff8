# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Output files are replaced as a whole, and no other files are replaced."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from mlbridge import InvalidArgument, aot
from mlbridge.files import expect_output, replacing
from programs import run_cli


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with suppress(ZeroDivisionError), replacing(path) as new:
        new.write_text("half")
        1 / 0  # noqa: B018
    assert path.read_text() == "old"
    with replacing(path) as new:
        new.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_the_target_of_a_link_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder/target", tmp_path / "link"
    link.symlink_to("folder/target")
    for text in ("first", "second"):
        with replacing(link) as new:
            new.write_text(text)
        assert target.read_text() == text
        assert link.is_symlink()


def test_only_files_are_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")
    for path, problem in (
        (Path("/dev/null"), "expected a regular file, found a device"),
        (tmp_path / "fifo", "expected a regular file, found a FIFO"),
        (tmp_path / "link", "expected a regular file, found a FIFO"),
        (tmp_path, "expected a regular file, found a folder"),
        (tmp_path / "none/file", f"file: there is no folder {tmp_path}/none"),
    ):
        with pytest.raises(InvalidArgument, match=problem), replacing(path):
            pytest.fail("nothing can be written there")
    assert Path("/dev/null").is_char_device()


def test_a_folder_that_takes_no_file() -> None:
    # Nobody, not even root, can make a file in /proc.
    with pytest.raises(OSError, match="'/proc/file'"), replacing(Path("/proc/file")):
        pytest.fail("nothing can be written there")


def test_an_output_that_is_the_input(tmp_path: Path) -> None:
    model, link = tmp_path / "model.pkl", tmp_path / "link.so"
    model.write_bytes(b"trained for a week")
    link.symlink_to("model.pkl")
    with pytest.raises(InvalidArgument, match="is read by this command"):
        expect_output(link, tmp_path / "none", model)
    with pytest.raises(InvalidArgument, match="is read by this command"):
        run_cli("export", model, "--to", tmp_path / "../" / tmp_path.name / model.name)
    with pytest.raises(InvalidArgument, match="is read by this command"):
        aot.compile_model(model, link)
    with pytest.raises(InvalidArgument, match="is read by this command"):
        aot.compile_model(model, tmp_path / "x.so", header=model)
    assert model.read_bytes() == b"trained for a week"
