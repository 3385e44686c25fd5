"""No figure or chart of an experiment mixes ε of two guarantees. An experiment with one guarantee has one figure."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from markupsafe import escape

from dpmf_cli.config import ExperimentConfig
from dpmf_cli.datasets import Folders
from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.curves import Experiment, Growth, Measured, Stage
from dpmf_cli.evaluation.folds import Portion
from dpmf_cli.experiment import run
from dpmf_cli.privacy.protection import GUARANTEES, Guarantee, Protection
from dpmf_cli.report.figures import which as drawn
from dpmf_cli.report.figures.growth import growth_lines
from dpmf_cli.report.figures.panels import guarantees_of, parts_of, refuse_mixed
from dpmf_cli.report.figures.style import FORMATS
from dpmf_cli.report.html.charts import charts_of
from dpmf_cli.report.html.page import experiment_page
from dpmf_cli.report.outputs import never_made, outputs
from dpmf_cli.results.folders import collect_folder
from dpmf_cli.results.manifest import read_manifest, write_files
from tests.report.conftest import of_theta
from tests.report.results import DATASET

Make = Callable[..., Experiment]
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


def test_every_figure_of_an_experiment_is_of_one_kind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = collect_folder(folder).experiment
    for name in (
        "rmse_curves_bytes",
        "error_cdf_bytes",
        "sweep_bytes",
        "swept_error_cdf_bytes",
    ):
        monkeypatch.setattr(
            drawn, name, lambda part, *_: "\n".join(curve.label for curve in part.curves).encode()
        )
    found = {name: draw("png") for name, draw in drawn.drawings(experiment).items()}
    assert set(found) == FIGURES
    for name, labels in found.items():
        kind = next(key for key in sorted(OF_KIND, key=len, reverse=True) if name.endswith(f"_{key}"))
        assert names_in(labels.decode()) == {kind}, name


@pytest.mark.slow
def test_a_run_writes_a_file_for_each_kind_and_takes_away_a_mixed_one(folder: Path) -> None:
    assert {path.stem for path in folder.glob("*.png")} == FIGURES
    assert {path.stem for path in folder.glob("*.svg")} == FIGURES
    for form in FORMATS:
        (folder / f"curves.{form}").write_bytes(b"of an older version")
        (folder / f"curves_user.{form}").write_bytes(b"of one that did not say from whom")
    (folder / "mine.png").write_bytes(b"of the user")
    collected = collect_folder(folder)
    write_files(folder, read_manifest(folder), outputs(collected, []), never_made(collected.experiment))
    assert not [*folder.glob("curves.*g"), *folder.glob("curves.pdf"), *folder.glob("curves_user.*")]
    assert (folder / "mine.png").exists()
    (folder / "mine.png").unlink()


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


def test_one_kind_is_the_experiment_itself_and_has_no_heading(made: Make) -> None:
    experiment = made(2)
    assert parts_of(experiment) == {Guarantee(Protection.VALUE): experiment}
    assert list(drawn.drawings(experiment)) == ["curves"]
    # Left by a config that once had several kinds.
    assert set(drawn.never_drawn(experiment)) == {f"curves_{kind.key}" for kind in GUARANTEES}
    (chart,) = charts_of(experiment)
    assert (chart.key, chart.title, chart.heading) == ("made-curves", "RMSE over ε", "")


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


@pytest.mark.parametrize("incomplete", ["", "pge", "dpals"])
def test_what_no_result_draws_goes_and_what_is_only_incomplete_stays(made: Make, incomplete: str) -> None:
    """Before a kind said from whom it protects, a sweep of joint curves was drawn as a sweep of `presence`,
    which does not exist here."""
    experiment = of_kinds(made(6, incomplete=incomplete), *CUT)
    kept = {"curves_value", "curves_presence", "sweep-k_presence_joint"}
    assert set(drawn.drawings(experiment)) == kept - ({"curves_value"} if incomplete == "pge" else set())
    assert sorted(drawn.never_drawn(experiment)) == sorted(WRITTEN - kept)


def test_nothing_complete_has_the_same_figures_to_come(made: Make) -> None:
    whole = of_kinds(made(6), *CUT)
    waiting = replace(whole, curves=tuple(replace(each, missing=1) for each in whole.curves))
    assert not drawn.drawings(waiting)
    assert list(drawn.never_drawn(waiting)) == list(drawn.never_drawn(whole))


def test_growth_that_waits_for_results_stays(made: Make) -> None:
    experiment = of_theta(made(2))
    curves = tuple(replace(each, missing=1) for each in experiment.curves)
    stage = Stage(Portion(1.0, 10, 5, None), curves, ())
    waiting = replace(experiment, curves=curves, growth=Growth("random", (stage, stage)))
    assert not drawn.drawings(waiting)
    assert "growth" not in set(drawn.never_drawn(waiting)) >= {"growth_value", "curves_value"}


def test_growth_is_cut_as_the_curves_are(made: Make) -> None:
    experiment = of_theta(made(3))
    first, second, third = experiment.curves
    curves = (replace(first, protects=Protection.USER), second, replace(third, protects=Protection.USER))
    stage = Stage(Portion(1.0, 10, 5, None), curves, ())
    mixed = replace(experiment, curves=curves, growth=Growth("random", (stage, stage)))
    assert {"growth_value", "growth_user"} < set(drawn.drawings(mixed))
    for kind, labels in ((Protection.VALUE, {"isgd"}), (Protection.USER, {"pge", "psgd"})):
        lines = growth_lines(parts_of(mixed)[Guarantee(kind)])
        assert {line.label.partition(",")[0] for line in lines} == labels


def test_what_a_curve_says_of_itself_comes_before_its_neighbours(made: Make) -> None:
    first, second = made(2).curves
    curves: list[Measured] = [replace(first, protects=Protection.PERSONALISED), second]
    assert guarantees_of(curves) == [Guarantee(Protection.VALUE), Guarantee(Protection.PERSONALISED)]
    joint = replace(second, joint=True)
    assert guarantees_of([joint, *curves])[:2] == [Guarantee(Protection.VALUE), joint.guarantee]
    assert list(parts_of(replace(made(2), curves=(second, joint)))) == [second.guarantee, joint.guarantee]
    with pytest.raises(DpmfError, match="one figure cannot show several guarantees"):
        refuse_mixed([second, joint])
