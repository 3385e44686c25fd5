"""Algorithms from outside: named by a config, given by the user of dpmf, told apart from their older versions."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpmf_cli.algorithms import plugins
from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.experiment.config import load_config
from dpmf_cli.testing import fit, predict_all
from tests import command

pytestmark = pytest.mark.usefixtures("undrawn")
EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "private_item_average.py"
NAME = "private_item_average"
CONFIG = f"""\
dataset: {{kind: synthetic, like: ml-100k, seed: 3, users: 60, items: 40, ratings: 900}}
plugins: [{NAME}]
folds: 2
runs: 2
epsilons: [0.5, 8]
algorithms:
  - {{algorithm: {NAME}, beta: 3}}
"""
BASELINE = """\
from typing import Literal
import numpy as np
from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.algorithms.shared.cost import Cost
from dpmf_cli.algorithms.shared.averages import EffectsModel

class Middle(Algorithm):
    title = "middle"
    stochastic = False
    algorithm: Literal["middle"]

    def fit(self, train, epsilons, *, streams, curator):
        return EffectsModel(np.full((train.n_items, 1), train.scale.middle), np.zeros((train.n_users, 1)))

    def cost(self, shape, grid):
        return Cost(1e-9 * shape.ratings, 8.0)
"""
TWO = """

class Two(PrivateItemAverage):
    algorithm: Literal["two"]

    def other(self, train, epsilons, *, streams, curator):
        return EffectsModel(np.ones((train.n_items, len(epsilons))), np.zeros((train.n_users, len(epsilons))))

    fit = PrivateAlgorithm.fit
    variants = {
        (Neighbours.BOUNDED, "published"): PrivateItemAverage.fit,
        (Neighbours.BOUNDED, "corrected"): other,
    }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.yaml").write_text(CONFIG)
    shutil.copy(EXAMPLE, tmp_path / "pia.py")
    return tmp_path


@pytest.fixture(autouse=True)
def nothing_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_given", {})
    plugins._installed.cache_clear()


def dpmf(
    folder: Path, *arguments: str, expect: int = 0, path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    places = [*([str(path)] if path else []), os.environ.get("PYTHONPATH", "")]
    return command.dpmf(
        folder, folder / "cache", *arguments, expect=expect, PYTHONPATH=os.pathsep.join(places)
    )


def install(site: Path, version: str, text: str = EXAMPLE.read_text(), name: str = "shop-privacy") -> None:
    """What pip would leave after installing a distribution of that name with that plugin."""
    shutil.rmtree(site, ignore_errors=True)
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (site / "shop_privacy.py").write_text(text)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[dpmf.algorithms]\n{NAME} = shop_privacy:PrivateItemAverage\n")


def task_files(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.glob("results/tasks/**/private_item_average-*/*.json")
    }


def test_a_file_is_run_where_the_command_line_gives_it_and_anew_once_it_has_changed(folder: Path) -> None:
    first = dpmf(folder, "run", "shop.yaml", "--plugin", "pia.py", "-j", "2")
    assert "PIA" in first.stdout
    assert "sum of ratings" in first.stdout  # its ledger
    files = task_files(folder)
    assert len(files) == 4
    again = dpmf(folder, "run", "shop.yaml", "--plugin", "pia.py", "-j", "1")
    assert "nothing to compute" in again.stderr
    manifest = json.loads((folder / "results" / "shop" / "manifest.json").read_bytes())
    assert set(manifest["plugins"][NAME]) == {"sha256"}
    assert "PIA" in dpmf(folder, "crossings", "--plugin", "pia.py").stdout
    assert "plugin" in dpmf(folder, "combined", "--plugin", "pia.py").stdout  # the paper that it lacks
    passed_over = dpmf(folder, "crossings")
    assert f'passed over: results/shop: there is no plugin "{NAME}"' in passed_over.stderr
    assert dpmf(folder, "plan", "shop.yaml", "--plugin", "pia.py", "--json").stdout.count('"left": 0') == 4
    with (folder / "pia.py").open("a") as file:
        file.write("# a change\n")
    told = dpmf(folder, "crossings", "--plugin", "pia.py")
    assert "results/shop: a plugin has changed since" in told.stderr
    assert "incomplete" in told.stdout
    changed = dpmf(folder, "run", "shop.yaml", "--plugin", "pia.py", "-j", "1")
    assert "computed 4 tasks" in changed.stderr
    assert "held results of another form of this config" in changed.stderr
    assert files < task_files(folder)
    assert len(task_files(folder)) == 8


@pytest.mark.slow
def test_an_installed_plugin_needs_no_option_and_its_version_counts(folder: Path) -> None:
    site = folder / "site"
    install(site, "1.0")
    assert "PIA" in dpmf(folder, "run", "shop.yaml", "-j", "2", path=site).stdout
    assert "PIA" in dpmf(folder, "crossings", path=site).stdout
    manifest = json.loads((folder / "results" / "shop" / "manifest.json").read_bytes())
    source = manifest["plugins"][NAME]
    assert (source["distribution"], source["version"]) == ("shop-privacy", "1.0")
    install(site, "1.1")
    assert "computed 4 tasks" in dpmf(folder, "run", "shop.yaml", "-j", "1", path=site).stderr
    install(site, "1.1", EXAMPLE.read_text() + "# edited in place\n")
    assert "computed 4 tasks" in dpmf(folder, "run", "shop.yaml", "-j", "1", path=site).stderr


def test_what_no_config_names_is_not_imported(folder: Path) -> None:
    site = folder / "site"
    install(site, "1.0", "raise SystemExit('imported')\n")
    (folder / "plain.yaml").write_text("dataset: ml-100k\nepsilons: [1]\nalgorithms: [{algorithm: pge}]\n")
    dpmf(folder, "plan", "plain.yaml", path=site)
    (folder / "plain.yaml").write_text(
        f"dataset: ml-100k\nepsilons: [1]\nalgorithms: [{{algorithm: {NAME}}}]\n"
    )
    told = dpmf(folder, "plan", "plain.yaml", path=site, expect=2)
    assert f"it is a plugin; name it: `plugins: [{NAME}]`" in told.stderr


USED = "shop.yaml:2:11: plugins[0]: "


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        *(
            (f"[{NAME}]", f'["{place}"]', f"{USED}`--plugin FILE` gives a plugin's file; a config lists its name")
            for place in ("../pia.py", "pia.py", "os:system", "os.path", "/tmp/x", "Private")
        ),
        (f"[{NAME}]", f"[{NAME[:-1]}]", f'{USED}there is no plugin "{NAME[:-1]}"; did you mean "{NAME}"'),
        (f"[{NAME}]", "[pge]", f'{USED}"pge" is part of dpmf, not a plugin'),
        ("beta: 3", "betta: 3", 'shop.yaml:7:39: algorithms[0].betta: unknown key; did you mean "beta"'),
        ("beta: 3", "beta: -3", "algorithms[0].beta: must be at least 0, not -3"),
        ("beta: 3", "neighbours: user", "does not support neighbours user in published mode"),
        ("rithm: private_", "rithm: privat_", f'did you mean "{NAME}"'),
        (f"plugins: [{NAME}]\n", "", "it is a plugin; name it"),
        (f"  - {{algorithm: {NAME}, beta: 3}}\n", "  []\n", "algorithms: cannot be []; write a list"),
    ],
)  # fmt: skip
def test_errors_in_a_plugins_name_or_entry_are_told_with_their_place(
    folder: Path, before: str, after: str, message: str
) -> None:
    """A config cannot say where code is."""
    plugins.give([EXAMPLE])
    (folder / "shop.yaml").write_text(CONFIG.replace(before, after))
    with pytest.raises(DpmfError) as raised:
        load_config(folder / "shop.yaml")
    assert message in str(raised.value)


def test_entries_inherit_and_sweep_like_any_other(folder: Path) -> None:
    plugins.give([EXAMPLE])
    sweeping = CONFIG.replace("beta: 3", "sweep: {beta: [1, 2]}") + "mode: corrected\n"
    (folder / "shop.yaml").write_text(sweeping)
    entries = load_config(folder / "shop.yaml").algorithms
    assert [(entry.mode, entry.beta) for entry in entries] == [("corrected", 1), ("corrected", 2)]  # type: ignore[attr-defined]


def test_the_schema_knows_a_plugin_where_it_is_given(folder: Path) -> None:
    schema = dpmf(folder, "schema", "--plugin", "pia.py").stdout
    assert json.loads(schema)["$defs"]["PrivateItemAverage"]["properties"]["beta"]["default"] == 5
    assert NAME not in dpmf(folder, "schema").stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (\n", "line 1: SyntaxError"),
        ("\n\nimport no_such_module\n", "line 3: ModuleNotFoundError: No module named 'no_such_module'"),
        ("x = 1\n", "no algorithm in it"),
        (BASELINE.replace('"middle"]', '"ga"]'), '"ga" is part of dpmf; choose another name'),
        (BASELINE.replace("def cost", "def costs"), "Middle has no `cost`"),
        (BASELINE.replace("epsilons, *, streams, curator", "*, streams, ledger"), "write it as `fit(self, train, epsilons,"),
        (BASELINE + "\nNOISE = np.random.default_rng()\n", "line 18: draws from `numpy.random`; take noise from a mechanism"),
        (BASELINE.replace("import numpy as np", "import random; import numpy as np"), "line 2: draws from `random`"),
        (BASELINE.replace("        return Eff", "        curator.noise('x')\n        return Eff"), "only mechanisms may use `curator.noise`"),
        (BASELINE.replace("        return Eff", "        streams._noise\n        return Eff"), "line 13: an algorithm must not use `_noise`"),
        (BASELINE.replace('    title = "middle"\n', ""), "Middle has no `title`"),
        (BASELINE.replace('"middle"]', '"Middle!"]'), "in small letters, digits and _"),
        (BASELINE.replace("(Algorithm)", "(PrivateAlgorithm)").replace("import Algorithm", "import PrivateAlgorithm"), "has no `variants`"),
        (EXAMPLE.read_text().replace("in_both_modes(Neighbours.BOUNDED)", "frozenset()"), "has no `variants`, the neighbours and modes"),
        (EXAMPLE.read_text() + TWO.replace('    algorithm: Literal["two"]\n', ""), f'two classes are named "{NAME}"; make them one'),
        (EXAMPLE.read_text() + TWO.replace("): other", "): None"), "Two has no `fit`"),
        (EXAMPLE.read_text() + TWO.replace("def other(self, train,", "def other(self, ratings,"), "Two: its `fit` takes (ratings, epsilons"),
        (None, "cannot be read: No such file"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_plugin_is_told_so(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "p.py").write_text(text)
    with pytest.raises(DpmfError) as raised:
        plugins.give([tmp_path / "p.py"])
    assert str(raised.value).startswith(str(tmp_path / "p.py"))
    assert message in str(raised.value)


MADE_NOISE = "        total = laplace(\n"


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        ("np.random.default_rng(1).normal()", "pia.py: line 34: draws from `numpy.random`; take noise"),
        ("streams.generator('mine').laplace()", "PIA: `laplace` draws noise that no ledger knows of; take"),
    ],
)
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_plugin_that_draws_noise_itself_ends_a_run_with_one_message(
    folder: Path, draw: str, message: str, jobs: str
) -> None:
    text = EXAMPLE.read_text()
    assert text.count(MADE_NOISE) == 1
    (folder / "pia.py").write_text(text.replace(MADE_NOISE, f"        {draw}\n{MADE_NOISE}"))
    said = dpmf(folder, "run", "shop.yaml", "--plugin", "pia.py", "-j", jobs, expect=2).stderr
    assert said.count(message) == 1
    assert not task_files(folder)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which plugins are installed for this process."""
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield tmp_path / "site"
    sys.modules.pop("shop_privacy", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import no_such_module\n", "cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"),
        ("x = 1\n", "cannot be loaded: AttributeError"),
        ("PrivateItemAverage = 1\n", "is not a subclass of Algorithm or PrivateAlgorithm"),
        (EXAMPLE.read_text().replace(f'["{NAME}"]', '["other"]'), 'calls itself "other"; its entry point must'),
    ],
)  # fmt: skip
def test_an_installed_plugin_that_is_none_is_told_so(site: Path, text: str, message: str) -> None:
    install(site, "1.0", text)
    with pytest.raises(DpmfError) as raised:
        plugins.plugin(NAME)
    assert str(raised.value).startswith(f'the plugin "{NAME}" (shop_privacy:PrivateItemAverage)')
    assert message in str(raised.value)


def test_one_name_of_two_packages_is_refused(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "1.0")
    install(tmp_path / "other", "1.0", name="other-privacy")
    monkeypatch.syspath_prepend(str(tmp_path / "other"))
    with pytest.raises(DpmfError, match=r"several packages \(other-privacy, shop-privacy\); uninstall all"):
        plugins.plugin(NAME)


def test_an_instance_travels_to_the_same_version_alone(site: Path) -> None:
    """Pickles to a worker on another machine, where another version may be installed."""
    install(site, "1.0")
    sent = pickle.dumps(plugins.plugin(NAME)(algorithm=NAME))
    assert pickle.loads(sent).parameters() == plugins.plugin(NAME)(algorithm=NAME).parameters()
    install(site, "1.1")
    plugins._installed.cache_clear()
    with pytest.raises(DpmfError, match=r"installed on .* is not the one that the run was started with"):
        pickle.loads(sent)


def test_a_plugin_that_extends_an_algorithm_does_not_become_it(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(
        "from typing import Literal\n"
        "from dpmf_cli.algorithms.shared.cost import Cost\n"
        "from dpmf_cli.algorithms.friedman2016.matrix_factorization import PrivateGlobalEffects\n\n"
        "class Mine(PrivateGlobalEffects):\n"
        "    title = 'mine'\n"
        "    algorithm: Literal['mine']\n\n"
        "    def cost(self, shape, grid):\n"
        "        return Cost(1.0, 1.0)\n"
    )
    plugins.give([tmp_path / "p.py"])
    mine = type(plugins.plugin("mine")(algorithm="mine"))
    assert type(PRIVATE["pge"].model_validate({"algorithm": "pge"})) is not mine


def test_a_plugin_may_be_two_algorithms_or_a_baseline(tmp_path: Path, ratings: Ratings) -> None:
    (tmp_path / "p.py").write_text(EXAMPLE.read_text() + TWO)
    (tmp_path / "middle.py").write_text(BASELINE)
    plugins.give([tmp_path / "p.py", tmp_path / "middle.py"])
    predicted = []
    for key, mode in (("two", {"mode": "published"}), ("two", {"mode": "corrected"}), ("middle", {})):
        made = pickle.loads(pickle.dumps(plugins.plugin(key).model_validate({"algorithm": key, **mode})))
        predicted.append(predict_all(fit(made, ratings, [1.0])[0], ratings))
    assert [sorted(set(each.ravel().tolist()))[:2] for each in predicted[1:]] == [[1.0], [3.0]]
    assert not (predicted[0] == 1).all()
