"""All figures of an experiment: one for each guarantee, with as many lines as can be told apart; and their files.

Figures of several experiments: one panel for each guarantee, each with its own axes; the frontier's envelope.
"""

import json
import re
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape
from typer.testing import CliRunner

from dpmf_cli.cli.main import app
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import Folders
from dpmf_cli.evaluation.curves import Experiment, Measured, Stage
from dpmf_cli.evaluation.folds import Portion
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.results.folders import collect_folder
from dpmf_cli.privacy.protection import GUARANTEES, Guarantee, Protection
from dpmf_cli.report.figures.charts import MOST_LINES, charts_of, legible, parts_of
from dpmf_cli.report.figures.drawings import combined_figure, draw_combined, drawings, frontier_figure
from dpmf_cli.report.figures.style import FORMATS
from dpmf_cli.report.html.page import experiment_page
from dpmf_cli.report.outputs import never_made
from dpmf_cli.studies.experiment import run
from tests.report.conftest import make, of_theta
from tests.report.figures.made import many
from tests.report.ranked import provable
from tests.report.results import DATASET

_ISGD = {"algorithm": "isgd", "factors": 2, "epochs": 2}
CONFIG = {
    "name": "mixed",
    "dataset": DATASET,
    "folds": 2,
    "runs": 1,
    "mode": "corrected",
    "error_cdf": [1, 2],
    "epsilons": [0.5, 2, 8],
    "baselines": ["ga", "ia"],
    "algorithms": [
        {"algorithm": "pge", "neighbours": "bounded", "label": "bounded PGE"},
        {"algorithm": "mm_averages", "neighbours": "user", "label": "averages"},
        {"algorithm": "public_knn", "neighbours": "bounded", "label": "kNN on a fixed covariance"},
        {"algorithm": "pge", "neighbours": "unbounded", "label": "unbounded PGE"},
        {**_ISGD, "neighbours": "bounded", "label": "ISGD, values", "sweep": {"epochs": [2, 3]}},
        {**_ISGD, "neighbours": "unbounded", "label": "ISGD, ratings come", "sweep": {"epochs": [2, 3]}},
        {"algorithm": "local_mean", "neighbours": "local", "label": "local mean"},
        {"algorithm": "personalized", "neighbours": "unbounded", "base": "pge", "label": "personalised PGE"},
    ],
}
OF_KIND = {
    "value": {"bounded PGE", "ISGD, values"},
    "presence": {"unbounded PGE", "ISGD, ratings come"},
    "personalised": {"personalised PGE"},
    "user_joint": {"averages"},
    "value_joint": {"kNN on a fixed covariance"},
    "local": {"local mean"},
}
SWEPT = ("value", "presence")
FIGURES = {f"{name}_{kind}" for name in ("curves", "error_cdf") for kind in OF_KIND} | {
    f"{name}-epochs_{kind}" for name in ("sweep", "error_cdf") for kind in SWEPT
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results with all five kinds, a sweep of two of them, and errors."""
    base = tmp_path_factory.mktemp("kinds")
    config = ExperimentConfig.model_validate(CONFIG)
    run(config, Folders(base, base / "cache", base, base / "results"))
    return base / "results" / "mixed"


def names_in(text: str) -> set[str]:
    """The kinds whose curves a text names."""
    # "bounded PGE" is a part of "unbounded PGE".
    left, found = text, set()
    for name, kind in sorted(
        ((name, kind) for kind, names in OF_KIND.items() for name in names), key=lambda pair: -len(pair[0])
    ):
        if name in left:
            found.add(kind)
            left = left.replace(name, "")
    return found


def test_every_figure_of_an_experiment_is_of_one_kind(folder: Path) -> None:
    experiment = collect_folder(folder).experiment
    assert set(drawings(experiment)) == FIGURES
    assert (
        {path.stem for path in folder.glob("*.png")}
        == {path.stem for path in folder.glob("*.svg")}
        == FIGURES
    )
    for guarantee, part in parts_of(experiment).items():
        assert guarantee is not None
        assert names_in("\n".join(curve.label for curve in part.curves)) == {guarantee.key}
        alone = drawings(part)["curves"]("svg")
        assert drawings(experiment)[f"curves_{guarantee.key}"]("svg") == alone


def test_every_chart_is_of_one_kind_under_its_statement(folder: Path) -> None:
    charts = charts_of(collect_folder(folder).experiment)
    # For errors over a swept parameter, the second x is a panel in the figure, and a separate chart.
    assert len(charts) == len({chart.key for chart in charts}) == len(FIGURES) + len(SWEPT)
    for chart in charts:
        kind = next(each for each in GUARANTEES if chart.title.endswith(f": {each}"))
        levels = [level.name for level in chart.levels]
        assert names_in("\n".join([*(line.name for line in chart.lines), *levels, *chart.notes])) == {
            kind.key
        }
        assert chart.key.endswith(kind.key.replace("_", "-"))
    headed = [chart for chart in charts if chart.heading]
    kinds = [kind for kind in GUARANTEES if kind.key in OF_KIND]
    assert [chart.key for chart in headed] == [f"mixed-curves-{kind.key.replace('_', '-')}" for kind in kinds]
    page = experiment_page(folder)
    for chart, kind in zip(headed, kinds, strict=True):
        assert kind.statement in chart.heading
        assert f'<h2>{escape(chart.heading)}</h2><figure>\n<figcaption id="{chart.key}-name">' in page


def of_kinds(experiment: Experiment, *kinds: Guarantee) -> Experiment:
    """Curves of these kinds, in the experiment's order; the last three are swept."""
    curves = tuple(
        replace(
            curve,
            protects=kind.protects,
            joint=kind.joint,
            swept=("k", float(rank)) if rank >= len(kinds) - 3 else None,
        )
        for rank, (curve, kind) in enumerate(zip(experiment.curves, kinds, strict=True))
    )
    return replace(experiment, curves=curves)


VALUE, PRESENCE, JOINT = (
    Guarantee(Protection.VALUE),
    Guarantee(Protection.PRESENCE),
    Guarantee(Protection.PRESENCE, True),
)
CUT = (VALUE, PRESENCE, PRESENCE, JOINT, JOINT, JOINT)
"""The swept ones are joint."""
WRITTEN = {
    f"{name}{kind}"
    for name in ("curves", "sweep-k")
    for kind in ("", *(f"_{each.key}" for each in GUARANTEES))
}


def stems(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("incomplete", ["", "pge", "dpals"])
def test_what_no_result_draws_goes_and_what_is_only_incomplete_stays(incomplete: str) -> None:
    """Before a kind said from whom it protects, a sweep of joint curves was drawn as a sweep of `presence`,
    which does not exist here."""
    experiment = of_kinds(make(6, incomplete=incomplete), *CUT)
    kept = {"curves_value", "curves_presence", "sweep-k_presence_joint"}
    assert set(drawings(experiment)) == kept - ({"curves_value"} if incomplete == "pge" else set())
    assert never_made(experiment) == {f"{stem}.{form}" for stem in WRITTEN - kept for form in FORMATS}


def test_growth_that_waits_for_results_stays() -> None:
    experiment = of_theta(make(2))
    curves = tuple(replace(each, missing=1) for each in experiment.curves)
    stage = Stage(Portion(1.0, 10, 5, None), curves, ())
    waiting = replace(experiment, curves=curves, growth=(stage, stage))
    assert not drawings(waiting)
    assert "growth" not in stems(never_made(waiting)) >= {"growth_value", "curves_value"}


def labels(measured: tuple[Measured, ...]) -> list[str]:
    return [each.label for each in measured]


def test_baselines_of_crossings_stay_before_better_ones() -> None:
    (_, ia, _, als) = make(1).baselines
    better = tuple(
        replace(als, label=f"als {rank}", rmse=als.rmse - 0.01 * rank) for rank in range(MOST_LINES)
    )
    shown = legible(replace(make(1), baselines=(*better, ia)))
    assert labels(shown.baselines) == [*(f"als {rank}" for rank in range(1, MOST_LINES)), "ia"]
    assert shown.title == "MovieLens 1M, 50 of 51 baselines (lowest RMSE)"


def test_a_sweep_is_one_line_however_many_values_it_has() -> None:
    (curve,) = make(1).curves

    def sweep(line: str, values: int, shift: float = 0.0) -> tuple[Measured, ...]:
        return tuple(
            replace(
                curve, label=f"{line}, k {k}", line=line, swept=("k", float(k)), rmse=curve.rmse + shift + k
            )
            for k in range(values)
        )

    long = replace(make(1), curves=(*sweep("one", 3 * MOST_LINES), *many(make(1), MOST_LINES).curves))
    assert legible(long) is long
    lines = [each for rank in range(MOST_LINES + 2) for each in sweep(f"line {rank}", 2, -0.01 * rank)]
    shown = legible(replace(make(1), curves=tuple(lines)))
    assert labels(shown.curves) == labels(tuple(lines[4:]))
    assert shown.title == "MovieLens 1M, 50 of 52 curves (lowest RMSE)"


HEADS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("form", FORMATS)
def test_bytes_are_the_same_at_another_time(
    results: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = drawings(collect_folder(results / "friedman_fig6").experiment)
    first = {name: draw(form) for name, draw in found.items()}
    monkeypatch.setattr(time, "time", lambda: 2_000_000_000.0)
    assert all(data.startswith(HEADS[form]) for data in first.values())
    assert {name: draw(form) for name, draw in found.items()} == first
    assert not any(re.search(rb"CreationDate|ModDate|/Producer|dc:date", data) for data in first.values())


def test_the_command_draws_into_a_folder_and_says_what(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "figures"
    out.mkdir()
    (out / "manifest.json").write_text("of something else")
    asked = ["plot", str(results / "mine"), "--format", "svg, pdf", "--out", str(out)]
    done = CliRunner().invoke(app, asked, catch_exceptions=False)
    expected = {f"mine-{name}.{form}" for name in ("curves", "growth") for form in ("svg", "pdf")}
    assert {path.name for path in out.iterdir()} == expected | {"manifest.json"}
    assert {Path(line).name for line in done.stdout.splitlines()} == expected


def test_beside_the_result_by_default_and_by_its_config(results: Path, tmp_path: Path) -> None:
    shutil.copytree(results, tmp_path / "results")
    folder = tmp_path / "results" / "ml100k_bounded"
    config = tmp_path / "c.yaml"
    config.write_text(json.dumps(json.loads((folder / "manifest.json").read_bytes())["config"]))
    before = (folder / "curves.png").read_bytes()
    (folder / "curves.png").unlink()
    asked = ["plot", str(config), "--results", str(tmp_path / "results"), "--format", "png"]
    done = CliRunner().invoke(app, asked, catch_exceptions=False)
    assert done.stdout.strip() == str(folder / "curves.png")
    assert "has changed since" not in done.stderr
    assert (folder / "curves.png").read_bytes() == before


def test_all_experiments_among_what_else_lies_there(results: Path, tmp_path: Path) -> None:
    """A results folder also holds tasks, tables and pages. A damaged experiment is reported and skipped."""
    here, out = tmp_path / "results", tmp_path / "figures"
    shutil.copytree(results, here)
    (here / "tasks").mkdir(exist_ok=True)
    (here / "README.md").write_text("")
    (here / "mine" / "manifest.json").write_text("{")
    asked = ["plot", "--all", "--results", str(here), "--format", "svg", "--out", str(out)]
    done = CliRunner().invoke(app, asked, catch_exceptions=False)
    drawn = {path.name for path in out.iterdir()}
    others = {path.parent.name for path in here.glob("*/manifest.json")} - {"mine"}
    assert others
    assert all(any(name.startswith(f"{other}-") for name in drawn) for other in others)
    assert not any(name.startswith("mine-") for name in drawn)
    assert "passed over: " in done.stderr


def test_what_cannot_be_drawn_is_an_error(results: Path, tmp_path: Path) -> None:
    for arguments, said in (
        ([str(results / "mine"), "--format", "pgn"], 'did you mean "png"'),
        ([str(tmp_path)], "run the experiment's config first"),
        (["x.txt"], "neither a config"),
        ([], "give --all"),
        (["--all", "x.yaml"], "give --all"),
        (["--all", "--results", str(tmp_path)], "run a config first"),
    ):
        with pytest.raises(DpmfError, match=said):
            CliRunner().invoke(app, ["plot", *arguments], catch_exceptions=False)


KINDS = (Protection.USER, Protection.VALUE, Protection.VALUE, Protection.LOCAL)


def mixed(**options: Any) -> Experiment:
    experiment = make(4, **options)
    curves = (replace(each, protects=kind) for each, kind in zip(experiment.curves, KINDS, strict=True))
    return replace(experiment, curves=tuple(curves))


def test_panels_lie_side_by_side_and_share_nothing() -> None:
    experiment = mixed()
    longest = replace(experiment.curves[0], label="x", protects=Protection.PERSONALISED, joint=True)
    experiment = replace(experiment, curves=(*experiment.curves, longest))
    figure = draw_combined([experiment, replace(experiment, title="MovieLens 100K", name="other")])
    boxes = [box for axes in figure.axes if (box := axes.get_tightbbox())]
    assert len(boxes) == len(figure.axes) == 8
    assert not any(a.overlaps(b) for at, a in enumerate(boxes) for b in boxes[:at])
    whole = figure.bbox
    assert all(whole.x0 <= box.x0 and box.x1 <= whole.x1 and box.y1 <= whole.y1 for box in boxes)
    assert figure.texts[0].get_window_extent().y1 <= min(box.y0 for box in boxes)
    for axes in figure.axes:
        assert len(axes.get_shared_x_axes().get_siblings(axes)) == 1
        assert len(axes.get_shared_y_axes().get_siblings(axes)) == 1


def test_nothing_to_draw_is_told() -> None:
    with pytest.raises(DpmfError, match="no complete curve"):
        combined_figure([replace(mixed(), curves=mixed(incomplete="isgd").curves[1:2])])
    with pytest.raises(DpmfError, match="no complete curve with a provable ε"):
        frontier_figure([replace(provable(), curves=provable().curves[3:])])
