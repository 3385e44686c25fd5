"""A reproduction: parts as one run, its tables, what lacks data, and its verdict against the expected one."""

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from docs.makers.expected import main as save_expected, text_of
from dpmf_cli.cli.main import app
from dpmf_cli.datasets import Folders
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.experiment.config import ExperimentConfig, load_config
from dpmf_cli.experiment.results.task import Outcome
from dpmf_cli.experiment.running.plan import whole_plan
from dpmf_cli.papers import claims as known_parts
from dpmf_cli.papers.claims import AcrossPapers, Output, Part, parts
from dpmf_cli.studies import reproduce as studied
from dpmf_cli.studies.experiment import run
from dpmf_cli.studies.reproduce import Figure, figures_off, times_text, took
from tests.configs import SHIPPED, loaded

CONFIGS = {path.stem for path in SHIPPED}
TABLE = Output(file="table.md", table="crossings")
OF_NETFLIX = Output(file="netflix.md", table="crossings", configs=("ml10m_bounded",))
MINE = AcrossPapers(("quickstart", "ml10m_bounded"), (), (TABLE, OF_NETFLIX), ("ml10m_bounded",))


@pytest.fixture
def expecting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of expected results, in a folder of its own; `mine` is to be reproduced, without large data."""
    monkeypatch.setattr(studied, "EXPECTED", tmp_path)
    monkeypatch.setattr(known_parts, "all_papers", dict)
    monkeypatch.setattr(known_parts, "COMPARISONS", {"mine": MINE})
    monkeypatch.setenv("DPMF_DATA", str(tmp_path / "no data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "whole.json"


def reproduce(*options: str) -> Result:
    return CliRunner().invoke(app, ["reproduce", "mine", "-j", "1", *options])


@pytest.mark.slow
def test_from_nothing_to_tables_report_and_verdict(expecting: Path) -> None:
    planned = reproduce("--plan")
    assert planned.exit_code == 0
    assert "1 experiments" in planned.stdout
    first = reproduce()
    assert first.exit_code == 1
    assert "PGE" in Path("results/table.md").read_text()
    assert not Path("results/netflix.md").exists()
    assert Path("results/report.html").exists()
    times = Path("results/times_mine.md").read_text()
    assert "| quickstart | 45 | " in times
    assert "| all | 45 | " in times
    assert "not run: ml10m_bounded: " in first.stderr
    assert "quickstart: dpmf ships no expected figures for it" in first.stdout
    assert not expecting.exists()
    save_expected("mine", jobs=1)
    again = reproduce()
    assert again.exit_code == 0, again.output
    assert "0 left" in again.stderr
    assert Path("results/times_mine.md").read_text() == times, "nothing was computed, so that the times stay"
    assert "RMSE of 1 experiments are as expected" in again.stdout
    held = json.loads(expecting.read_text())
    figure = next(key for key in held["quickstart"] if key.startswith("PGE"))
    held["quickstart"][figure][0] *= 1.5
    held["quickstart"]["of nobody at 1"] = [1.0, 0.1]
    expecting.write_text(json.dumps(held))
    off = reproduce()
    assert off.exit_code == 1
    assert f"quickstart: {figure}: " in off.stdout
    assert "quickstart: of nobody at 1: none, expected 1 ± 0.1" in off.stdout


def test_without_any_data_it_says_which_are_lacking_and_writes_nothing(
    expecting: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_parts, "COMPARISONS", {"mine": replace(MINE, configs=("ml10m_bounded",))})
    done = reproduce()
    assert "no data of mine are here" in str(done.exception)
    assert "not run: ml10m_bounded: " in done.stderr
    assert not Path("results").exists()
    assert not expecting.exists()


def test_nothing_else_can_be_reproduced() -> None:
    asked = CliRunner().invoke(app, ["reproduce", "friedmann2016"])
    assert 'did you mean "friedman2016"' in str(asked.exception)


def test_a_figure_is_within_its_spread_or_a_thousandth_of_it() -> None:
    wide, narrow = Figure(1.0, 0.01), Figure(1.0, 0.0)
    assert wide.admits(1.019)
    assert not wide.admits(1.021)
    assert narrow.admits(1.0009)
    assert not narrow.admits(1.0011)
    assert figures_off({"a": wide, "b": narrow}, {"a": narrow}) == {"b": None}


@pytest.mark.parametrize("size", ["small", "whole"])
def test_what_ships_is_expected_of_every_experiment_and_is_written_as_it_is_read(size: str) -> None:
    path = studied.EXPECTED / f"{size}.json"
    held = studied.read_expected(path)
    assert text_of(held) == path.read_text()
    asked = {name for part in parts().values() for name in (part.small if size == "small" else part.configs)}
    datasets = {path.stem: loaded(path).dataset for path in SHIPPED if size == "whole"}
    absent = {  # dpmf's makers do not have these data, so that nothing is expected of them
        name
        for name, data in datasets.items()
        if isinstance(data, CatalogSpec) and data.name in ("netflix", "ml-10m")
    }
    assert {name.partition(".")[0] for name in held} == asked - absent
    assert all(math.isfinite(each.mean) for figures in held.values() for each in figures.values())


@pytest.mark.parametrize("part", parts().values(), ids=parts())
def test_a_part_knows_configs_that_are_shipped(part: Part) -> None:
    assert set(part.small) <= set(part.configs) <= CONFIGS
    assert part.small or part.large == part.configs
    assert {name for output in part.outputs for name in output.configs} <= set(part.configs)


def small(folder: Path, **asked: str) -> tuple[list[ExperimentConfig], Folders]:
    """Experiments on a few made-up ratings, with extra config text by name; and the folder of everything."""
    ratings = "dataset: {kind: synthetic, like: ml-100k, users: 40, items: 30, ratings: 400}\nfolds: 2\n"
    for name, keys in asked.items():
        (folder / f"{name}.yaml").write_text(f"{ratings}{keys}\n")
    folders = Folders.named(folder, base=folder, results=folder / "results")
    return [load_config(folder / f"{name}.yaml") for name in asked], folders


def test_what_two_experiments_ask_for_is_planned_once_and_counts_for_the_first(tmp_path: Path) -> None:
    configs, folders = small(
        tmp_path, a="epsilons: [1]\nalgorithms: [pge]", b="epsilons: [1]\nalgorithms: [pge, dp_pmf]"
    )
    one, other, plan = (whole_plan(each, folders) for each in (configs[:1], configs[1:], configs))
    assert one.total < other.total == plan.total == len({task.key for task in plan.left})
    ended = [Outcome(task, None, 30.0, 1, 0) for task in plan.left]
    found = took(plan, ended)
    fits = {name: sum(entry.total for entry in plan.entries if entry.experiment == name) for name in "ab"}
    assert found == {name: (count, 30.0 * count) for name, count in fits.items()}
    assert fits == {"a": one.total, "b": other.total - one.total}
    (group,) = times_text(found, 120.0, 2).groups
    assert group.rows[0] == ("a", str(fits["a"]), f"{fits['a'] / 2:.1f}"), "the longest first"
    assert group.rows[-1] == ("all", str(len(ended)), f"{len(ended) / 2:.1f}")


def test_of_a_grid_that_is_half_done_or_half_shared_the_other_half_is_left(tmp_path: Path) -> None:
    grids = {
        name: f"epsilons: {grid}\nalgorithms: [pge]"
        for name, grid in zip("abc", ([1], [1, 2], [2, 4]), strict=True)
    }
    configs, folders = small(tmp_path, **grids)

    def left(*of: ExperimentConfig) -> Counter[float]:
        epsilons = (epsilon for task in whole_plan(of, folders).left for epsilon in task.epsilons)
        return Counter(epsilon for epsilon in epsilons if math.isfinite(epsilon))

    each = left(configs[0])[1.0]
    assert left(*configs) == {1.0: each, 2.0: each, 4.0: each}
    run(configs[0], folders)
    assert left(*configs) == {2.0: each, 4.0: each}
    assert whole_plan(configs[:1] * 2, folders).total == whole_plan(configs[:1], folders).total > 0
    run(configs[1], folders)
    assert left(*configs) == {4.0: each}


def test_tasks_of_two_experiments_share_a_release_and_its_cost(tmp_path: Path) -> None:
    asked = "epsilons: [1]\nbaselines: []\nalgorithms: [{{algorithm: pknn, ridge: {}}}]"
    configs, folders = small(tmp_path, a=asked.format(0.2), b=asked.format(0.7))
    both, *apart = (whole_plan(each, folders) for each in (configs, configs[:1], configs[1:]))
    assert {len(batch) for batch in both.batches} == {2}
    assert 0 < sum(map(both.cost_of, both.left)) < sum(sum(map(of.cost_of, of.left)) for of in apart)


def test_tasks_on_two_data_sets_cost_what_each_costs_by_itself(tmp_path: Path) -> None:
    asked = "epsilons: [1]\nalgorithms: [pge]"
    configs, folders = small(tmp_path, a=asked, b=asked)
    configs[1] = configs[1].model_copy(
        update={"dataset": configs[1].dataset.model_copy(update={"ratings": 1000})}
    )
    never_read = replace(folders, cache=tmp_path / "cache")
    for parsing in (False, True):
        both, *apart = (
            whole_plan(each, never_read, parsing=parsing) for each in (configs, configs[:1], configs[1:])
        )
        assert both.total == sum(of.total for of in apart) == sum(map(len, both.batches))
        assert both.costs == {key: cost for of in apart for key, cost in of.costs.items()}
        assert both.ratings == 1000
        assert both.made.seconds == pytest.approx(sum(of.made.seconds for of in apart))
        assert (both.made.bytes == max(of.made.bytes for of in apart) > 0) is not parsing


def test_parameters_by_epsilon_are_not_taken_for_results_that_are_there(tmp_path: Path) -> None:
    pieces = "epsilons: [1, 2]\nalgorithms: [{algorithm: dp_pmf, by_epsilon: [{up_to: 1, factors: 2}]}]"
    plan = whole_plan(*small(tmp_path, pieces=pieces))
    assert any(len(task.epsilons) == 1 for task in plan.left)
    assert "new ε" not in plan.summary
