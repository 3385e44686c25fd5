"""Configs that extend others: what is inherited, and the places of mistakes in inherited values."""

import re
from pathlib import Path

import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.experiment.config import ExperimentConfig, load_config
from dpmf_cli.experiment.config.documents import MOST_FILES
from tests.configs import GOOD


def put(folder: Path, **texts: str) -> Path:
    """Writes files `name.yaml`, and returns the path of the first."""
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder / f"{next(iter(texts))}.yaml"


def extended(folder: Path, own: str, base: str = GOOD) -> ExperimentConfig:
    return load_config(put(folder, x="extends: base.yaml\n" + own, base=base))


def refusal(path: Path) -> str:
    with pytest.raises(DpmfError) as caught:
        load_config(path)
    assert str(caught.value).count("\n") == 0
    return str(caught.value).replace(f"{path.parent}/", "")


def test_a_config_is_what_it_extends_but_for_what_it_says(tmp_path: Path) -> None:
    config = extended(tmp_path, "runs: 2\n")
    whole = load_config(put(tmp_path, whole=GOOD + "runs: 2\nname: x\n"))
    assert (config.resolved(), config.hash) == (whole.resolved(), whole.hash)


def test_mappings_are_merged_key_by_key_and_lists_replaced(tmp_path: Path) -> None:
    base = GOOD + "effects: {beta_m: 3, beta_u: 4}\nbaselines: [ga, ge]\n"
    config = extended(tmp_path, "effects: {beta_u: 5}\nbaselines: [ia]\n", base)
    assert (config.effects.beta_m, config.effects.beta_u) == (3, 5)
    assert [entry.name for entry in config.baselines] == ["IA"]


def test_one_on_top_of_the_other(tmp_path: Path) -> None:
    path = put(
        tmp_path,
        x="extends: y.yaml\nruns: 1\n",
        y="extends: z.yaml\nruns: 2\nfolds: 4\n",
        z=GOOD + "folds: 3\nseed: 7\n",
    )
    config = load_config(path)
    assert (config.name, config.runs, config.folds, config.seed) == ("x", 1, 4, 7)


def test_the_name_is_not_inherited(tmp_path: Path) -> None:
    """Otherwise both would write to the same folder of results."""
    base = GOOD + "name: mine\n"
    assert extended(tmp_path, "runs: 1\n", base).name == "x"
    assert extended(tmp_path, "name: yours\n", base).name == "yours"


def test_null_takes_back_what_is_inherited(tmp_path: Path) -> None:
    base = GOOD + "held_out: 2\nfolds: 4\neffects: {beta_m: 3}\nparameters: {isgd: {epochs: 2, factors: 9}}\n"
    config = extended(tmp_path, "held_out: null\neffects: null\nparameters: {isgd: {epochs: null}}\n", base)
    assert (config.held_out, config.folds, config.effects.beta_m) == (None, 4, 10)
    assert config.algorithms[1].epochs == 20  # type: ignore[attr-defined]
    of_theta = extended(tmp_path, "epsilons: null\nthetas: [1, 2]\n")
    assert (of_theta.axis, of_theta.thetas) == ("theta", [1, 2])


def test_a_data_set_of_another_kind_replaces_the_inherited_one(tmp_path: Path) -> None:
    made = GOOD.replace("ml-100k", "{kind: synthetic, like: ml-100k, seed: 3}")
    assert extended(tmp_path, "dataset: {kind: catalog, name: ml-1m}\n", made).dataset.key == "ml-1m"
    other = extended(tmp_path, "dataset: {kind: synthetic, like: ml-1m}\n", made).dataset
    assert other.model_dump()["like"] == "ml-1m"
    assert other.model_dump()["seed"] == 3


def test_files_are_looked_for_from_the_file_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    csv = "{kind: csv, name: shop, path: %s, columns: {user: a, item: b, rating: c}, scale: {minimum: 1, maximum: 5}}"
    put(tmp_path / "bases", base="extends: deep.yaml\n", deep=GOOD.replace("ml-100k", csv % "shop.csv"))
    path = put(tmp_path / "mine", x="extends: ../bases/base.yaml\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    dataset = load_config(path).dataset.model_dump()
    assert (path.parent / dataset["path"]).resolve() == tmp_path / "bases" / "shop.csv"
    put(tmp_path / "bases", deep=GOOD.replace("ml-100k", csv % "/data/shop.csv"))
    assert load_config(path).dataset.model_dump()["path"] == "/data/shop.csv"


def test_the_resolved_config_stands_alone(tmp_path: Path) -> None:
    config = extended(tmp_path, "parameters: {isgd: {epochs: 7}}\n")
    assert not {"extends", "parameters"} & set(config.resolved())
    alone = ExperimentConfig.model_validate(config.resolved())
    assert (alone.resolved(), alone.hash) == (config.resolved(), config.hash)


OWN = "extends: base.yaml\n"
MISTAKES = {
    "a key of the base": (OWN, GOOD + "fold: 3\n", r'^base\.yaml:7:1: fold: unknown key; did you mean "folds"'),
    "a value of the base": (OWN, GOOD + "folds: 0\n", r"^base\.yaml:7:8: folds: .*not 0"),
    "an entry of the base": (OWN, GOOD + "    epochs: 0\n", r"^base\.yaml:7:13: algorithms\[1\]\.epochs: .*not 0"),
    "what entries of the base inherit": (OWN, GOOD + "mode: publish\n", r"^base\.yaml:7:7: mode: .*not \"publish\""),
    "a plugin of the base": (OWN, GOOD + "plugins: [nobodys]\n", r"^base\.yaml:7:11: plugins\[0\]: there is no plugin"),
    "its own value": (OWN + "folds: 0\n", GOOD + "folds: 3\n", r"^x\.yaml:2:8: folds: .*not 0"),
    "its own value in a merged mapping": (OWN + "effects: {beta_m: -1}\n", GOOD + "effects: {beta_u: 1}\n", r"^x\.yaml:2:19: effects\.beta_m: "),
    "the other's in a merged mapping": (OWN + "effects: {beta_m: 1}\n", GOOD + "effects: {beta_u: -1}\n", r"^base\.yaml:7:19: effects\.beta_u: "),
    "an entry of a list that replaced one": (OWN + "algorithms:\n  - pge\n  - {algorithm: isgd, epochs: 0}\n", GOOD, r"^x\.yaml:4:31: algorithms\[1\]\.epochs: "),
    "what an entry that replaced one inherits": (OWN + "algorithms: [pge, isgd]\nparameters: {isgd: {factors: 0}}\n", GOOD, r"^x\.yaml:3:30: parameters\.isgd\.factors: .*not 0$"),
    "two grids": (OWN + "thetas: [1]\n", GOOD, r"^x\.yaml:2:9: thetas: give `epsilons` or `thetas`, not both; `epsilons: null` removes an inherited grid$"),
    "a key that nobody has": (OWN, GOOD.replace("dataset: ml-100k\n", ""), r'^x\.yaml:1:1: the key "dataset" is missing; give it here, or in a file that this one `extends`$'),
    "a key that is taken back": (OWN + "dataset: null\n", GOOD, r'^x\.yaml:2:10: dataset: the key "dataset" is missing'),
    "null for what nobody has": (OWN + "folds: null\n", GOOD, r"^x\.yaml:2:8: folds: .*integer"),
    "no such file": ("folds: 3\nextends: bse.yaml\n", GOOD, r'^x\.yaml:2:10: extends: there is no file bse\.yaml; did you mean "base\.yaml"\?$'),
    "no such folder": ("extends: no/such.yaml\n", GOOD, r"^x\.yaml:1:10: extends: there is no file no/such\.yaml$"),
    "a folder": ("extends: .\n", GOOD, r"^x\.yaml:1:10: extends: there is no file "),
    "a device": ("extends: /dev/zero\n", GOOD, r"^x\.yaml:1:10: extends: there is no file /dev/zero"),
    "a name that no file can have": (f"extends: {'a' * 5000}\n", GOOD, r"^x\.yaml:1:10: extends: there is no file aaa"),
    "two files": ("extends: [base.yaml, base.yaml]\n", GOOD, r"^x\.yaml:1:10: extends: name one file, relative to this one: `extends: other\.yaml`$"),
    "null": ("extends: null\n", GOOD, r"^x\.yaml:1:10: extends: name one file"),
    "no name": ("extends: ''\n", GOOD, r"^x\.yaml:1:10: extends: name one file"),
    "itself": ("extends: x.yaml\n", GOOD, r"^x\.yaml:1:10: extends: x\.yaml → x\.yaml is a circle; remove one `extends` of it$"),
    "itself by another": (OWN, "folds: 3\nextends: ./x.yaml\n", r"^base\.yaml:2:10: extends: x\.yaml → base\.yaml → x\.yaml is a circle"),
    "a list": (OWN, "- 1\n", r"^base\.yaml:1:1: a config is a mapping"),
    "nothing": (OWN, "", r"^base\.yaml:1:1: the file is empty"),
    "no YAML": (OWN, "a: [\n", r"^base\.yaml:2:1: not valid YAML"),
}  # fmt: skip


@pytest.mark.parametrize(("own", "base", "message"), MISTAKES.values(), ids=MISTAKES)
def test_each_mistake_is_told_where_it_stands(tmp_path: Path, own: str, base: str, message: str) -> None:
    said = refusal(put(tmp_path, x=own, base=base))
    assert re.search(message, said), said


def test_a_chain_has_an_end(tmp_path: Path) -> None:
    last = MOST_FILES
    texts = {f"x{at}": f"extends: x{at + 1}.yaml\n" for at in range(1, last)}
    path = put(tmp_path, **texts, **{f"x{last}": GOOD})
    assert load_config(path).folds == 10
    first = put(tmp_path, x0="extends: x1.yaml\n")
    assert refusal(first) == (
        f"x{last - 1}.yaml:1:10: extends: more than {last} files in one chain; copy one into another"
    )


def test_a_base_alone_is_no_experiment(tmp_path: Path) -> None:
    path = put(tmp_path, base="epsilons: [1]\nfolds: 4\n")
    with pytest.raises(DpmfError) as caught:
        load_config(path)
    where = "is missing; give it here, or in a file that this one `extends`"
    assert str(caught.value).splitlines() == [
        f'{path}:1:1: the key "{key}" {where}' for key in ("dataset", "algorithms")
    ]
    assert load_config(put(tmp_path, x="extends: base.yaml\ndataset: ml-1m\nalgorithms: [pge]\n")).folds == 4
