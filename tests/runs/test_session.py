"""`dpmf_cli.run` and `dpmf_cli.advise`: configs and data frames in, the rows of the commands out."""

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmf_cli
from dpmf_cli.core.terminal import Progress
from dpmf_cli.experiment.config import load_config, suggested
from dpmf_cli.experiment.config.documents import given
from dpmf_cli.experiment.config.loading import validated
from dpmf_cli.experiment.running.processes import APART
from tests.command import children, in_process, task_files
from tests.conftest import make_ratings

MADE = make_ratings()
FRAME = pd.DataFrame(
    {"item": [f"00{item}" for item in MADE.items], "rating": MADE.values, "user": MADE.users}
)
GRID = {"folds": 3, "runs": 2, "epsilons": np.array([0.5, 8]), "refine": False, "baselines": ["ga", "ia"]}
METHODS = ("pge", {"algorithm": "mm_averages", "neighbours": "user", "label": "0012"})
CONFIG: dict[str, Any] = {"name": "tiny", **GRID, "mode": "corrected", "algorithms": METHODS}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of a program, with a cache of its own."""
    monkeypatch.setenv("DPMF_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(config: Any = CONFIG, **more: Any) -> Any:
    return dpmf_cli.run(config, **{"ratings": FRAME, "scale": (1, 5, 1), "jobs": 1, **more})


def test_frames_have_the_columns_and_cells_of_the_commands_and_figures_are_those_of_the_files(
    folder: Path,
) -> None:
    found = run()
    assert found.folder == Path("results/tiny")
    for frame, text in (
        (found.crossings(), in_process("crossings", "results/tiny", "--format", "csv")[1]),
        (found.frontier(), in_process("frontier", "results/tiny", "--format", "csv")[1]),
        (found.curves(), Path("results/tiny/curves.csv").read_text()),
    ):
        expected = pd.read_csv(io.StringIO(text))
        assert ",".join(frame.columns) == text.partition("\n")[0]
        pd.testing.assert_frame_equal(frame, expected, check_dtype=False)
        assert len(frame) >= 2
    assert found.plot()._repr_png_() == Path("results/tiny/curves_value.png").read_bytes()
    assert "against other users" in found.plot("curves_user_joint").axes[0].get_title("left")
    with pytest.raises(dpmf_cli.DpmfError, match="known: curves_value, curves_user_joint"):
        found.plot("curve")


def test_a_frame_is_the_data_set_that_a_file_of_it_is_and_other_ratings_are_another(folder: Path) -> None:
    run()
    done = task_files(folder)
    FRAME.to_csv("r.csv", index=False)
    columns = {"user": "user", "item": "item", "rating": "rating"}
    file = {
        "kind": "csv",
        "name": "ratings",
        "path": "r.csv",
        "columns": columns,
        "scale": {"minimum": 1, "maximum": 5, "step": 1},
    }
    assert run({**CONFIG, "dataset": file}, ratings=None, scale=None).finished.computed == 0
    assert run({**CONFIG, "dataset": {"scale": file["scale"]}}, scale=None).finished.computed == 0
    assert task_files(folder) == done
    assert run(ratings=FRAME.assign(rating=6 - FRAME["rating"])).finished.computed == len(done)
    assert {path.parent.name for path in folder.rglob("*.csv") if path.name != "r.csv"} == {"frames", "tiny"}


def test_an_interrupt_keeps_what_is_finished_and_the_same_call_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[list[int]] = []

    def interrupted(self: Progress, *_: object) -> None:
        seen.append(children(os.getpid()))
        if len(seen) == 3:
            raise KeyboardInterrupt

    before = children(os.getpid())
    with monkeypatch.context() as patch:
        patch.setattr(Progress, "finished", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run()
    assert len(set(seen[0]) - set(before)) == 1  # a process of its own, though `jobs` is 1
    assert children(os.getpid()) == before
    assert "make the same call again" in capsys.readouterr().err
    assert not APART.get()
    kept = task_files(folder)
    assert len(kept) == 3
    found = run()
    assert found.finished.computed == len(task_files(folder)) - 3
    assert kept.items() <= task_files(folder).items()


def test_a_shipped_config_runs_on_a_frame_under_another_name(folder: Path) -> None:
    cut = {"extends": "quickstart", "folds": 2, "runs": 1, "epsilons": [1, 9], "algorithms": ["pge"]}
    (folder / "cut.yaml").write_text(f"{cut}")
    assert run("cut").folder == Path("results/own-cut")
    assert set(pd.read_csv("results/own-cut/curves.csv")["dataset"]) == {"ratings"}


def test_advice_is_printed_with_the_call_that_uses_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    every = list(suggested.provable(suggested.asked_for("value", 1)))[:1]
    for name, value in {"provable": lambda _: every, "FOLDS": 2, "RUNS": 1}.items():
        monkeypatch.setattr(suggested, name, value)
    twice = pd.concat([FRAME, FRAME[:5]])
    found = dpmf_cli.advise(twice, scale=(1, 5, 1), epsilon=2, name="shop", jobs=1)
    said = " ".join(capsys.readouterr().out.split())
    assert 'To use it: `dpmf_cli.fit("pge", ratings, scale=scale, epsilon=2, neighbours="bounded")`' in said
    assert "All methods: `dpmf levels results/shop-value --at 2`" in said
    assert set(found.crossings()["algorithm"]) == {"pge"}
    with pytest.raises(dpmf_cli.DpmfError, match=r"^protects all: choose one of value"):
        dpmf_cli.advise(FRAME, scale=(1, 5), protects="all")


@pytest.mark.parametrize(
    ("changes", "more", "said"),
    [
        ({"fold": 3}, {}, r'^config: fold: unknown key; did you mean "folds"\?$'),
        ({"algorithms": [{"algorithm": "isgd", "factor": 3}]}, {}, r"^config: algorithms\[0\].factor: unknown"),
        ({"algorithms": [{1, 2}]}, {}, "^config: is not plain data"),
        ({}, {"scale": None}, r"scale=\(1, 5, 1\)"),
        ({}, {"scale": (5, 1)}, "^config: .*5 is not below maximum 1"),
        ({}, {"ratings": FRAME.drop(columns="user")}, '^ratings: no column "user"'),
        ({}, {"scale": (2, 5)}, r"^ratings:\d+: the rating 1 is off the scale .*; correct the data frame"),
        ({}, {"ratings": None, "scale": None}, 'the key "dataset" is missing'),
    ],
)  # fmt: skip
def test_a_mistake_is_one_message(changes: Any, more: Any, said: str) -> None:
    with pytest.raises(dpmf_cli.DpmfError, match=said):
        run({**CONFIG, **changes}, **more)


def test_a_dictionary_is_the_config_that_a_file_of_it_is(folder: Path) -> None:
    (folder / "tiny.yaml").write_text(
        "{extends: quickstart, name: e, epsilons: [1.0e-3, 0.5], algorithms: [pge]}"
    )
    data = {"extends": "quickstart", "name": "e", "epsilons": np.array([1e-3, 0.5]), "algorithms": ("pge",)}
    assert validated(given(data)).hash == load_config(folder / "tiny.yaml").hash
