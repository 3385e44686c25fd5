"""Exploring: settings are run as one run and judged; on the real MovieLens 100K, a few settings of each paper."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import Folders
from dpmf_cli.experiment.config import ExperimentConfig, config_of
from dpmf_cli.experiment.config.loading import ConfigPath, with_values
from dpmf_cli.papers.claims import Claim, PaperFindings
from dpmf_cli.papers.evidence import Evidence
from dpmf_cli.papers.record import PrintedValue, Record, path_of, text_of
from dpmf_cli.papers.rules.language import Margin
from dpmf_cli.papers.space import OnData, Space, explored
from dpmf_cli.papers.verdicts import judged
from dpmf_cli.studies import explore as module
from dpmf_cli.studies.explore import Exploration, explore, plan_of, recorded, shipped, with_settings

CONFIG = {
    "name": "made",
    "dataset": {"kind": "synthetic", "like": "ml-100k", "users": 60, "items": 40, "ratings": 1500, "seed": 1},
    "folds": 3,
    "held_out": 2,
    "runs": 1,
    "epsilons": [0.5, 5.0, 50.0],
    "baselines": ["ia", "ge"],
    "algorithms": ["pge", {"algorithm": "isgd", "factors": 2, "epochs": 2}],
}


def choice(name: str, value: str, path: str, to: float) -> dict[str, Any]:
    """A choice of the shipped value, or one that sets a path."""
    values = [{"name": "as it is", "why": ""}, {"name": value, "why": "", "set": {path: to}}]
    return {"name": name, "what": "", "values": values}


OPEN = [
    choice("step", "tiny", "isgd.learning_rate", 1e-6),
    choice("β", "huge", "*.effects.beta_m", 1000.0),
]


def learns(evidence: Evidence) -> dict[tuple[str, str], Margin]:
    epsilons, rmse = evidence.best("made", "isgd")
    margin = evidence.baseline("made", "ia") - float(rmse[-1])
    return {("ISGD is below IA", ""): Margin("ISGD is below IA", "RMSE", 0.002, margin, f"{len(epsilons)} ε")}


def a_printed_value(evidence: Evidence) -> dict[str, PrintedValue]:
    return {"table 1": PrintedValue.of(1.0, float(evidence.curve("made", "pge").mean()[-1]), 0.5)}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Exploration:
    claim = Claim(id="learns", statement="it learns", data=("synthetic-ml-100k",))
    words = dict.fromkeys(("title", "subject", "page", "command", "source"), "")
    found = PaperFindings(**words, exhibits=(), small=(), printed={}, claims=(claim,))
    monkeypatch.setattr(module, "paper", lambda key: found)
    monkeypatch.setattr(module, "digest_of", lambda key, space: "as made")
    monkeypatch.setattr(module, "margins", lambda key, claim, evidence: learns(evidence))
    monkeypatch.setattr(module, "printed_values", lambda key, evidence: a_printed_value(evidence))
    return exploration()


def exploration(*, tuned: bool = False) -> Exploration:
    config = config_of(CONFIG)
    on = {config.dataset.key: OnData(configs=("made",), settings=4)}
    space = Space.model_validate({"data": {}, "open": OPEN, "tuned": tuned}).model_copy(update={"data": on})
    settings = space.settings(4, "made")
    key = config.dataset.key
    configs = {key: with_settings(space, settings, {"made": config})}
    return Exploration(
        "made", key, space, settings, configs, {key: {"made": config_of({**CONFIG, "held_out": 3})}}
    )


@pytest.fixture
def folders(tmp_path: Path, session_cache: Path) -> Folders:
    return Folders(tmp_path, session_cache, results=tmp_path / "results")


def test_every_setting_is_judged_and_shared_fits_are_run_once(made: Exploration, folders: Folders) -> None:
    plan = plan_of(made, folders)
    # Of four settings on two folds: IA and GE under two β each, PGE under two, ISGD under four. The shipped setting has
    # another fold.
    assert (plan.total, len(plan.left)) == (2 * (2 + 2 + 2 + 4) + 4, 24)
    found = explore(made, folders, 1)
    assert [each.setting for each in found.tried] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    (atom,) = found.atoms
    assert (atom.claim, atom.text, atom.said, atom.chosen) == ("learns", "ISGD is below IA", "3 ε", None)
    for each in found.tried:
        ((whole, *folds),) = each.margins
        assert whole == pytest.approx(np.mean(np.array(folds, float)), abs=1e-6)
    assert len(atom.shipped) == 3
    assert atom.shipped[:2] == found.tried[0].margins[0][1:]
    off = [each.off["table 1"] for each in found.tried]
    assert off[0] == off[2] != off[1] == off[3]
    assert found.printed["table 1"].off != off[0]  # of all folds
    sorted((folders.results / "tasks").rglob("*.json"))[0].unlink()
    assert len(plan_of(made, folders).left) == 1
    assert explore(made, folders, 1) == found
    other = Record(paper="made", version="", data={"ml-100k": found.model_copy(update={"seed": 2})})
    path_of(folders.results, "made").write_text(text_of(other))
    with pytest.raises(DpmfError, match=r"made.json: is of seed 2, not .*--record"):
        recorded(made, folders, 1, folders.results)


def test_parameters_are_chosen_on_some_folds_and_measured_on_others(
    made: Exploration, folders: Folders
) -> None:
    """Each way round, no setting is better on the folds to choose by; what it measures there is of the other folds."""
    one_for_all, tuned = (explore(exploration(tuned=tuned), folders, 1) for tuned in (False, True))
    (atom,) = tuned.atoms
    assert atom.chosen is not None
    assert len(atom.resampled) == module.RESAMPLES
    first, second = (
        max((each.margins[0] for each in one_for_all.tried), key=lambda margins: margins[at] or 0)
        for at in (1, 2)
    )
    assert atom.chosen == pytest.approx((first[2], second[1]), abs=1e-6)


def test_paths_go_into_entries_by_algorithm_label_and_key() -> None:
    config: ExperimentConfig = config_of(
        {**CONFIG, "algorithms": ["pge", {"algorithm": "isgd", "label": "one [a]"}, "isgd"]}
    )
    data, met = with_values(
        config, {"isgd[one [a]].factors": 7, "config.folds": 4, "*.effects.beta_u": 3.0, "pals.factors": 1}
    )
    assert met == {"isgd[one [a]].factors", "config.folds", "*.effects.beta_u"}
    again = config_of(data)
    assert again.folds == 4
    assert [each.get("factors") for each in again.resolved()["algorithms"]] == [
        None,
        7,
        config.resolved()["algorithms"][2]["factors"],
    ]
    assert {each.effects.beta_u for each in again.entries if hasattr(each, "effects")} == {3.0}
    assert [each.name for each in again.entries] == [each.name for each in config.entries]
    with pytest.raises(ValueError, match="is no path"):
        ConfigPath.of("factors")


def test_another_seed_draws_other_folds_and_settings_around_the_shipped_one() -> None:
    first, again = (module.exploration("wang2017", "ml-100k", seed=seed) for seed in (None, 1))
    for configs in (*again.configs["ml-100k"], *again.shipped.values()):
        assert {config.seed for config in configs.values()} == {1}
    assert first.settings[0] == again.settings[0]
    assert len(again.settings) == len(first.settings)
    assert len(set(first.settings) & set(again.settings)) < len(first.settings) / 2


def test_configs_of_other_data_are_refused(tmp_path: Path) -> None:
    (tmp_path / "made.yaml").write_text("dataset: ml-1m\nepsilons: [1]\nalgorithms: [pge]\n")
    with pytest.raises(DpmfError, match="has the data set ml-1m, not ml-100k"):
        shipped(OnData(configs=("made",), settings=1), "ml-100k", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("key", explored())
def test_a_paper_is_explored(key: str, real_data: Path, session_cache: Path, tmp_path: Path) -> None:
    wanted = module.exploration(key, "ml-100k", 3)
    folders = Folders(real_data, session_cache, results=tmp_path)
    found = explore(wanted, folders, 2)
    assert len(found.tried) >= 2
    claims = [claim.id for claim in wanted.paper.claims if "ml-100k" in claim.data]
    tested = [claim for claim in claims if any(each.word != "no data" for each in judged(found, claim))]
    assert len(tested) > len(claims) / 2
    assert all(atom.said for atom in found.atoms)
