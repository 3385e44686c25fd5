"""Accepted configs: what is read from them, what they resolve to, and what an editor underlines.

For each mistake in a config, one message that names the place, the mistake and the fix.
"""

import json
import math
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from docs.makers.pages import with_tables
from dpmf_cli.algorithms.friedman2016.matrix_factorization import PrivateGlobalEffects
from dpmf_cli.algorithms.shared.private_factorization import PrivateFactorization
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.experiment.config import ExperimentConfig, config_of, load_config
from dpmf_cli.experiment.config.documents import MOST_FILES, read
from dpmf_cli.experiment.config.entries import with_inherited
from dpmf_cli.experiment.config.loading import file_schema, reduced
from tests.committed import ROOT
from tests.configs import FILE, GOOD, HEAD, SHIPPED, SHOP, cases, load, loaded, shipped, written

ACCEPTED, FLAGGED = cases("accepted"), cases("flagged")
THETAS = GOOD.replace("epsilons", "thetas")


def found(value: Any, path: str) -> Any:
    """What is at a path of attributes and indices."""
    step, _, rest = path.partition(".")
    if not step:
        return list(value) if isinstance(value, tuple) else value
    if step == "*":
        return [found(each, rest) for each in value]
    return found(value[int(step)] if step.isdigit() else getattr(value, step, False), rest)


@pytest.mark.parametrize("case", ACCEPTED.values(), ids=ACCEPTED)
def test_what_is_read(tmp_path: Path, case: dict[str, Any]) -> None:
    config = load_config(written(tmp_path, case))
    asked = case.get("found", {})
    assert {path: found(config, path) for path in asked} == asked
    for pattern, line in zip(
        case.get("said", ()), config.left_to_defaults if "said" in case else (), strict=True
    ):
        assert re.search(pattern, line)
    again = config_of(json.loads(json.dumps(config.resolved())))
    assert (again.resolved(), again.hash) == (config.resolved(), config.hash)
    assert not {"extends", "parameters", "by_epsilon"} & config.resolved().keys()
    if "same" in case:
        whole = load(tmp_path, GOOD + case["same"])
        assert (whole.resolved(), whole.hash) == (config.resolved(), config.hash)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_configs_are_valid_can_be_reduced_and_an_editor_flags_nothing(path: Path) -> None:
    small = reduced(loaded(path), held_out=1, runs=1)
    assert (small.folds_run, small.runs, loaded(path).name, "." in path.stem) == (1, 1, path.stem, False)
    assert path.read_text().startswith("# yaml-language-server: $schema=schema.json\n")
    assert [error.message for error in SCHEMA.iter_errors(read(path).data)] == []


SCHEMA = Draft202012Validator(file_schema(ExperimentConfig))


@pytest.mark.parametrize(("text", "right"), FLAGGED.values(), ids=FLAGGED)
def test_an_editor_flags_what_is_wrong_and_not_what_is_inherited(
    tmp_path: Path, text: str, right: bool
) -> None:
    (tmp_path / "x.yaml").write_text(text)
    assert SCHEMA.is_valid(read(tmp_path / "x.yaml").data) == right


def test_the_shipped_schema_is_that_of_the_code() -> None:
    assert json.loads((ROOT / "configs" / "schema.json").read_text()) == SCHEMA.schema


def test_a_users_own_config_beside_them_is_none_of_the_shipped(tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()
    for name in ("ours", "own"):
        (tmp_path / "configs" / f"{name}.yaml").write_text(GOOD)
    assert [path.stem for path in shipped(tmp_path)] == ["ours", "own"]
    for command in (["init", "-q"], ["add", "configs/ours.yaml"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    assert [path.stem for path in shipped(tmp_path)] == ["ours"]


def test_a_file_name_becomes_a_folder_name(tmp_path: Path) -> None:
    (tmp_path / "my config (2).yaml").write_text(GOOD)
    assert load_config(tmp_path / "my config (2).yaml").name == "my-config-2"


def test_the_hash_is_of_what_is_resolved(tmp_path: Path) -> None:
    config = load(tmp_path, GOOD)
    assert config.hash == load(tmp_path, GOOD + "# a comment\n").hash
    assert config.hash != load(tmp_path, GOOD + "seed: 1\n").hash
    assert "refine" not in config.resolved()
    swept = load(tmp_path, GOOD + "    sweep: {effects.beta_u: [10]}\n").algorithms[1]
    plain = load(tmp_path, GOOD + "    effects: {beta_u: 10}\n").algorithms[1]
    assert swept.parameters() == plain.parameters()
    entry = "algorithms: [{algorithm: own_regression, mode: corrected}]\neffects: {beta_m: 3}\n"
    averaging_nothing = load(tmp_path, HEAD + entry)
    assert averaging_nothing.algorithms[0].effects.beta_m == 3  # as stored results are named
    assert config_of(averaging_nothing.resolved()) == averaging_nothing


def test_a_manifest_of_before_baselines_chose_parameters_is_read_without_a_choice(tmp_path: Path) -> None:
    entry = "baselines: [{algorithm: ge, effects: {beta_u: 100}}]\nalgorithms: [pge]\n"
    resolved = load(tmp_path, SHOP + entry).resolved()
    assert "tuned" not in resolved["baselines"][0]
    assert not found(config_of(resolved), "baselines.0.tuned")


def test_files_are_looked_for_from_the_file_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("bases", "mine", "elsewhere"):
        (tmp_path / folder).mkdir()
    path, deep = tmp_path / "mine" / "x.yaml", tmp_path / "bases" / "deep.yaml"
    path.write_text("extends: ../bases/base.yaml\n")
    (tmp_path / "bases" / "base.yaml").write_text("extends: deep.yaml\n")
    monkeypatch.chdir(tmp_path / "elsewhere")
    for named, meant in (("a.csv", tmp_path / "bases" / "a.csv"), ("/data/shop.csv", Path("/data/shop.csv"))):
        split = f"split: {{by: files, path: {named}}}\n"
        deep.write_text(SHOP.replace("a.csv", named) + split + "algorithms: [pge]\n")
        for each in (load_config(path).dataset, load_config(path).split):
            assert not isinstance(each, str)
            assert (path.parent / each.model_dump()["path"]).resolve() == meant


class Gaussian(PrivateGlobalEffects):
    """An algorithm whose θ is not its ε, as with Gaussian noise, and that has δ."""

    delta: float = 1e-6

    def epsilon_of(self, theta: float) -> float:
        return 3 * theta

    def theta_of(self, epsilon: float) -> float:
        return epsilon / 3


def test_each_entry_turns_the_grid_of_theta_into_epsilon_by_its_own_noise(tmp_path: Path) -> None:
    config, gaussian = load(tmp_path, THETAS), Gaussian(algorithm="pge")
    pge, baseline = config.algorithms[0], config.baselines[0]
    assert (config.grid(pge), config.thetas_of(pge)) == ((0.1, 1, 10), (0.1, 1, 10))
    assert config.grid(gaussian) == pytest.approx((0.3, 3, 30))
    assert config.thetas_of(gaussian) == (0.1, 1, 10)
    assert (config.thetas_of(baseline), config.grid(baseline), config.runs_of(baseline)) == (
        None,
        (math.inf,),
        1,
    )
    of_epsilon = load(tmp_path, GOOD)
    assert of_epsilon.thetas_of(of_epsilon.algorithms[0]) is None
    assert of_epsilon.thetas_of(gaussian) == pytest.approx((0.1 / 3, 1 / 3, 10 / 3))


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_theta_that_stand_for_no_grid_of_epsilon_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epsilon: float
) -> None:
    monkeypatch.setattr(PrivateGlobalEffects, "epsilon_of", lambda self, theta: epsilon)
    message = r"x\.yaml:2:9: thetas: PGE needs ascending ε from 1e-06 up, but these θ give"
    with pytest.raises(DpmfError, match=message):
        load(tmp_path, THETAS)


def test_delta_is_inherited_where_an_entry_has_one() -> None:
    known = {"g": Gaussian, "pge": PrivateGlobalEffects}
    inherited = [
        with_inherited(entry, {"delta": 1e-7}, known).get("delta")
        for entry in ({"algorithm": "g"}, {"algorithm": "g", "delta": 1e-8}, {"algorithm": "pge"})
    ]
    assert inherited == [1e-7, 1e-8, None]


def test_a_swept_part_of_a_budget_leaves_the_others_their_proportions(tmp_path: Path) -> None:
    *_, low, high = load(tmp_path, GOOD + "    sweep: {budget.factorization: [0.4, 0.9]}\n").algorithms
    for entry, value in ((low, 0.4), (high, 0.9)):
        assert isinstance(entry, PrivateFactorization)
        fractions = entry.budget.fractions
        assert fractions["factorization"] == value
        assert math.fsum(fractions.values()) == pytest.approx(1, abs=1e-12)
        assert fractions["item_averages"] / fractions["global_averages"] == pytest.approx(0.14 / 0.02)


def test_added_epsilons_belong_to_one_entry_and_not_to_the_config(tmp_path: Path) -> None:
    config = load(tmp_path, GOOD)
    more = config.with_added({"PGE": (0.3, 0.5)}).with_added({"PGE": (0.4,)})
    pge, isgd = more.algorithms
    assert more.grid(pge) == (0.1, 0.3, 0.4, 0.5, 1, 10)
    assert more.grid(isgd) == config.grid(pge) == (0.1, 1, 10)
    assert more.hash == config.hash


def test_added_epsilons_of_a_grid_of_theta_have_their_theta(tmp_path: Path) -> None:
    entries = "algorithms: [{algorithm: mm_knn, neighbours: user, mode: published}]\n"
    config = load(tmp_path, "dataset: ml-100k\nthetas: [0.1, 1, 10]\n" + entries)
    (entry,) = config.algorithms
    low, high = config.grid(entry)[:2]
    more = config.with_added({entry.name: ((low + high) / 2,)})
    thetas = more.thetas_of(entry)
    assert thetas is not None
    assert list(thetas) == sorted(thetas)
    assert more.grid(entry)[1] == (low + high) / 2 == pytest.approx(entry.epsilon_of(thetas[1]))


LARGE: dict[str, dict[str, Any]] = {
    "nested deep": {
        "text": "a: " + "[" * 100_000,
        "message": "x.yaml:1:1: not valid YAML: maximum recursion",
    },
    "too many bytes": {"text": "#" * (1 << 20), "message": "x.yaml:1:1: more than 256 KiB, too large"},
    "hex digits": {"more": f"seed: 0x{'f' * 9000}\n", "message": "x.yaml:7:7: the number is too large"},
    "digits": {"more": f"seed: {'9' * 9000}\n", "message": "x.yaml:1:1: not valid YAML: Exceeds the limit"},
    "a long text": {"more": f"name: {'a' * 5000}\n", "message": 'cannot be "a{99}…; use at most 80 letters'},
    "a long path": {"own": f"extends: {'a' * 5000}\n", "message": "extends: there is no file aaa"},
}
BAD: dict[str, dict[str, Any]] = {}
for section in cases("bad_configs").values():
    BAD |= section


def refusal(path: Path) -> str:
    with pytest.raises(DpmfError) as caught:
        load_config(path)
    return str(caught.value).replace(f"{path.parent}/", "").replace(str(path.parent), "FOLDER")


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_each_bad_config_is_refused_in_these_words(tmp_path: Path, case: dict[str, Any]) -> None:
    assert refusal(written(tmp_path, case)) == case["says"]
    assert re.match(r"(x|base)\.yaml:\d+:\d+: [^\n]+$", case["says"])


@pytest.mark.parametrize("case", LARGE.values(), ids=LARGE)
def test_what_is_too_large_is_refused_in_one_line(tmp_path: Path, case: dict[str, Any]) -> None:
    said = refusal(written(tmp_path, case))
    assert re.search(case["message"], said), said
    assert "\n" not in said


def test_the_page_of_bad_configs_has_all_of_them() -> None:
    page = ROOT / "docs" / "generated" / "bad_configs.md"
    assert with_tables(page) == (text := page.read_text()), f"python -m docs.makers.pages {page}"
    assert GOOD in text
    assert FILE in text
    table = (ROOT / "tests" / "config" / "bad_configs.yaml").read_text()
    assert (
        len(BAD)
        == len(re.findall(r"^    says:", table, re.MULTILINE))
        == text.count("\n| ") - 2 * len(cases("bad_configs"))
    )
    assert len(BAD) >= 300


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
