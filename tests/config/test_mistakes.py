"""For each mistake in a config, one message that names the place, the mistake and the fix."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.config.documents import MOST_FILES
from tests.configs import GOOD, cases, written

LARGE: dict[str, dict[str, Any]] = {
    "nested deep": {
        "text": "a: " + "[" * 100_000,
        "message": "x.yaml:1:1: not valid YAML: maximum recursion",
    },
    "too many bytes": {"text": "#" * (1 << 20), "message": "x.yaml:1:1: more than 256 KiB, too large"},
    "hex digits": {"more": f"seed: 0x{'f' * 9000}\n", "message": "x.yaml:7:7: the number is too large"},
    "digits": {"more": f"seed: {'9' * 9000}\n", "message": "x.yaml:1:1: not valid YAML: Exceeds the limit"},
    "a long text": {"more": f"name: {'a' * 5000}\n", "message": 'at most 80 characters, not "a{99}…$'},
    "a long path": {"own": f"extends: {'a' * 5000}\n", "message": "extends: there is no file aaa"},
}
MISTAKES = {**cases("mistakes"), **LARGE}


def refusal(path: Path) -> str:
    with pytest.raises(DpmfError) as caught:
        load_config(path)
    return str(caught.value).replace(f"{path.parent}/", "")


@pytest.mark.parametrize("case", MISTAKES.values(), ids=MISTAKES)
def test_each_mistake_is_one_line_with_its_place(tmp_path: Path, case: dict[str, Any]) -> None:
    said = refusal(written(tmp_path, case))
    assert re.search(case["message"], said), said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("case", "lines"),
    [
        ({"replace": {"0.1": "-1"}, "more": "folds: 0\n"}, ["folds: ", "epsilons[0]: "]),
        ({"text": "epsilons: [1]\n"}, ['the key "dataset" is missing', 'the key "algorithms" is missing']),
        (
            {"more": "  - psgd\n  - pals_objective\nneighbours: unbounded\nmode: corrected\n"},
            [
                "7:5: algorithms[2]: psgd does not support neighbours unbounded in corrected mode; it supports "
                "bounded (corrected), bounded (published), unbounded (published)",
                "8:5: algorithms[3]: pals_objective does not support neighbours unbounded in corrected mode; it "
                "supports bounded (corrected), bounded (published)",
            ],
        ),
    ],
)
def test_several_mistakes_are_all_told(tmp_path: Path, case: dict[str, Any], lines: list[str]) -> None:
    said = refusal(written(tmp_path, case)).splitlines()
    assert all(line in each for line, each in zip(lines, said, strict=True)), said


def test_what_is_no_file_of_text(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "none.yaml")
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")
    assert refusal(tmp_path / "x.yaml") == "x.yaml:1:1: is not UTF-8 text; save the file as UTF-8"
    os.mkfifo(tmp_path / "fifo.yaml")
    assert refusal(tmp_path / "fifo.yaml") == "fifo.yaml: cannot be read: not a file; name a config"


def test_a_chain_of_files_has_an_end(tmp_path: Path) -> None:
    last = MOST_FILES
    for at in range(last):
        (tmp_path / f"x{at}.yaml").write_text(f"extends: x{at + 1}.yaml\n")
    (tmp_path / f"x{last}.yaml").write_text(GOOD)
    assert load_config(tmp_path / "x1.yaml").folds == 10
    message = f"extends: more than {last} files in one chain; copy one into another"
    assert refusal(tmp_path / "x0.yaml") == f"x{last - 1}.yaml:1:10: {message}"
