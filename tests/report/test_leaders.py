"""The table of leaders on public ratings: what ships can be run and proved, and how the table is made."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from pydantic import TypeAdapter

from docs.makers.leaders import MOST, leaders_text, rankings_of
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import Folders
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.ranking import standings
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.config.entries import PrivateEntry
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.protection import Guarantee, Protection, protection_of
from dpmf_cli.report.leaders import Leaders, chosen_in_words, shipped
from dpmf_cli.report.tables.ranked import found_in, short_label
from dpmf_cli.studies.experiment import run
from tests.report.ranked import provable

ROOT = Path(__file__).resolve().parents[2]


def test_every_method_that_ships_is_an_entry_of_that_guarantee() -> None:
    leaders = shipped()
    named = set()
    for ranking in leaders.rankings:
        assert ranking.at
        for at in ranking.at:
            assert 1 <= len(at.methods) <= MOST
            for each in at.methods:
                entry = TypeAdapter(PrivateEntry).validate_python(leaders.methods[each.method])
                assert entry.name == each.method
                assert Guarantee(entry.protects, entry.joint, entry.spends_delta).implies(ranking.guarantee)
                assert set(each.ranks) == set(each.rmse) <= {one["title"] for one in leaders.experiments}
                named.add(each.method)
    assert named == set(leaders.methods)
    assert {ranking.protects for ranking in leaders.rankings} == set(map(protection_of, Neighbours))


def test_what_ships_says_of_which_experiments_it_is() -> None:
    four = {f"frontier_{data}" for data in ("ml100k", "ml1m", "jester", "netflix_sample")}
    assert {each["name"] for each in shipped().experiments} == four
    for each in shipped().experiments:
        config = load_config(Path(f"{each['name']}.yaml"))
        assert each["config_sha256"] == config.hash, "run `make leaders` again"
        assert len(each["data_sha256"]) == 64


def test_methods_are_ranked_over_data_sets_by_their_mean_rank() -> None:
    """a is first, then last; c and e are missing from one set, so they are nowhere and take no rank."""
    experiment = provable()
    base = experiment.curves[0]

    def on(title: str, **levels: float) -> Experiment:
        curves = tuple(replace(base, label=label, rmse=base.rmse + level) for label, level in levels.items())
        return replace(experiment, title=title, name=title, curves=curves)

    found = found_in([on("one", a=0.0, b=0.1, d=0.2, e=0.3), on("two", a=0.3, b=0.1, c=0.0, d=0.2)])
    (ranking,) = rankings_of(found)
    assert [each.method for each in ranking.at[0].methods] == ["b", "a", "d"][:MOST]
    assert ranking.at[0].methods[0].ranks == {"one": 2, "two": 1}
    assert ranking.at[0].methods[1].ranks == {"one": 1, "two": 3}
    assert ranking.at[0].methods[0].rmse["one"] == pytest.approx(base.mean()[0] + 0.1, abs=1e-4)


def table(*kinds: tuple[bool, float], epsilons: tuple[float, ...] = (1.0,)) -> Leaders:
    """Rankings of no methods, of guarantees to users: (joint, δ)."""
    at = [{"epsilon": each, "methods": []} for each in epsilons]
    rankings = [{"protects": "user", "joint": joint, "delta": delta, "at": at} for joint, delta in kinds]
    return Leaders.model_validate({"dpmf": "0", "experiments": [], "rankings": rankings, "methods": {}})


def test_the_wanted_guarantee_is_kept_and_the_weakest_that_is_allowed_is_taken() -> None:
    def taken(leaders: Leaders, joint: bool, delta: float) -> tuple[bool, float]:
        found = leaders.ranking(Guarantee(Protection.USER, joint, delta))
        return found.joint, found.delta

    every = table((False, 0.0), (True, 0.0), (True, 1e-6))
    assert taken(every, False, 0.0) == taken(every, False, 1e-6) == (False, 0.0)
    assert taken(every, True, 0.0) == (True, 0.0)
    assert taken(every, True, 1e-9) == (True, 1e-6)
    with pytest.raises(
        DpmfError,
        match=r"hides whether one user, with all ratings, took part at all.*; add `--towards others --delta 1e-06`$",
    ):
        table((True, 1e-6)).ranking(Guarantee(Protection.USER, True))
    with pytest.raises(DpmfError, match="none that was run hides anything of that kind"):
        every.ranking(Guarantee(Protection.VALUE))


def test_the_nearest_epsilon_of_the_table_is_taken() -> None:
    (ranking,) = table((True, 0.0), epsilons=(0.1, 1, 10)).rankings
    asked = {0.001: 0.1, 0.3: 0.1, 0.32: 1.0, math.sqrt(10) * 1.01: 10.0, 1e4: 10.0}
    assert {each: ranking.nearest(each).epsilon for each in asked} == asked


CONFIG = """\
dataset: {kind: synthetic, like: ml-100k, seed: 3, users: 120, items: 80, ratings: 2400}
folds: 2
runs: 1
mode: corrected
epsilons: [0.5, 2]
parameters: {isgd: {factors: 2}}
effects: {beta_m: 7}
algorithms:
  - {algorithm: pge, label: plain, effects: {beta_m: 10}}
  - {algorithm: isgd, label: mine}
  - {algorithm: mm_averages, neighbours: user}
"""


def test_a_table_of_what_was_run_has_entries_that_stand_alone(tmp_path: Path, session_cache: Path) -> None:
    (tmp_path / "x.yaml").write_text(CONFIG)
    results = tmp_path / "results"
    config = load_config(tmp_path / "x.yaml")
    experiment = run(config, Folders(tmp_path, session_cache, tmp_path, results)).collected.experiment
    text = leaders_text({results / "x": experiment})
    leaders = Leaders.model_validate(yaml.safe_load(text))
    mine = TypeAdapter(PrivateEntry).validate_python(leaders.methods["mine"])
    assert mine == config.algorithms[1]
    # Defaults here differ from those on own ratings.
    assert leaders.methods["plain"]["effects"]["beta_m"] == 10
    averages = leaders.methods[config.algorithms[2].name]
    assert averages["neighbours"] == "user"
    assert "delta" not in averages
    assert leaders.experiments[0]["config_sha256"] == config.hash
    assert [each.delta for each in leaders.rankings] == [0.0, 1e-6]
    said = " ".join(chosen_in_words(leaders.rankings[0], 0.6, "mine", leaders.methods["mine"]))
    assert "factors: 2" in said
    assert "at ε = 0.5" in said
    with pytest.raises(DpmfError, match="no method with a provable ε"):
        leaders_text({results / "x": replace(experiment, curves=())})


def test_a_short_label_says_whether_it_is_tuned() -> None:
    made = provable()
    label = f"ISGD, {made.curves[0].neighbours}, {made.curves[0].mode}"
    curves = tuple(replace(made.curves[0], label=each) for each in (label, f"{label}, tuned"))
    assert [*map(short_label, standings(replace(made, curves=curves)))] == ["ISGD", "ISGD, tuned"]
