"""`dpmf advise`: from a file of ratings to a page."""

from pathlib import Path

import numpy as np
import pytest

from dpmf_cli.algorithms.shared.cost import Shape
from dpmf_cli.cli.own_config import print_answer
from dpmf_cli.datasets import Folders
from dpmf_cli.datasets.spec import CsvSpec
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.config.suggested import (
    GUESSED,
    candidates,
    config_text,
    grid_with,
    name_of,
    provable,
)
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from tests.command import dpmf

SMALL = Shape(200, 50, 2000)


def films(path: Path, users: int = 80, items: int = 25) -> None:
    """Half stars from 0.5 to 4 between semicolons, with decimal commas."""
    rng = np.random.default_rng(1)
    lines = ["kunde;film;note"]
    for user in range(users):
        for item in rng.choice(items, 15, replace=False):
            value = np.clip(2.2 + 0.04 * (item - 15) + 0.3 * np.sin(user) + rng.normal(0, 0.6), 0.5, 4)
            lines.append(f"k{user};{item};{np.rint(2 * value) / 2:.1f}".replace(".", ","))
    path.write_text("\n".join(lines) + "\n")


def test_a_semicolon_file_of_half_stars_gets_its_page_and_its_config(
    tmp_path: Path, session_cache: Path
) -> None:
    films(tmp_path / "films.csv")
    words = "advise", "films.csv", "--protects", "local", "--epsilon", "2"
    done = dpmf(tmp_path, session_cache, *words)
    assert "semicolon-separated" in done.stderr
    assert "--scale minimum:maximum:step" in done.stderr
    assert "which private method to take at ε = 2" in done.stdout
    assert "`dpmf levels films-local.yaml --at 2`" in done.stdout
    config = load_config(tmp_path / "films-local.yaml")
    assert isinstance(config.dataset, CsvSpec)
    assert config.epsilons is not None
    assert "--protects local --epsilon 2`" in (tmp_path / "films-local.yaml").read_text()
    assert (config.dataset.separator, config.dataset.decimal) == (";", ",")
    assert {entry.mode for entry in config.algorithms} == {Mode.CORRECTED}
    assert 2 in config.epsilons
    again = dpmf(tmp_path, session_cache, *words)
    assert again.stdout == done.stdout
    assert "computed" not in again.stderr


def test_a_delta_that_is_too_large_for_the_ratings_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my.yaml").write_text(
        "dataset: {kind: synthetic, like: ml-100k, users: 150, items: 40, ratings: 900}\nfolds: 2\nruns: 1\n"
        "epsilons: [1]\nbaselines: [ga]\nmode: corrected\ndelta: 0.01\n"
        "algorithms: [{algorithm: mm_averages, neighbours: user}]\n"
    )
    folders = Folders(tmp_path, tmp_path / "cache", tmp_path, tmp_path / "results")
    print_answer(tmp_path / "my.yaml", folders, 1, 1.0)
    said = capsys.readouterr().err
    assert "warning: δ = 0.01 is not below one over the number of users, 150" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--protects", "everything"), "choose one of value, presence, user, local"),
        (("--epsilon", "0"), "give one from 0.001 to 10000"),
        (("--scale", "4:1:1"), "--scale 4:1:1: minimum 4 is not below maximum 1"),
    ],
)
def test_mistakes_name_the_fix(
    tmp_path: Path, session_cache: Path, words: tuple[str, ...], said: str
) -> None:
    films(tmp_path / "films.csv")
    scale = () if "--scale" in words else ("--scale", "0.5:4:0.5")
    done = dpmf(tmp_path, session_cache, "advise", "films.csv", *words, *scale, expect=2)
    assert said in done.stderr
    assert not list(tmp_path.glob("*.yaml"))


def test_ratings_that_are_all_alike_are_told(tmp_path: Path, session_cache: Path) -> None:
    (tmp_path / "x.csv").write_text("user,item,rating\n" + "".join(f"{n},{n % 7},4\n" for n in range(40)))
    done = dpmf(tmp_path, session_cache, "advise", "x.csv", expect=2)
    assert "all ratings are 4: the scale cannot be guessed" in done.stderr


def test_the_config_says_how_it_came_about_and_what_to_mend_before_a_release() -> None:
    methods = candidates(provable(Neighbours.BOUNDED), SMALL, 6)
    guessed, given = (
        config_text({"folds": 5}, Neighbours.BOUNDED, 1.0, methods, "dpmf advise x.csv", note=each)
        for each in (GUESSED, "")
    )
    assert "The scale is guessed from the file" in guessed
    assert "The scale is" not in given


def test_a_file_without_a_column_of_users_says_which_option_is_missing(
    tmp_path: Path, session_cache: Path
) -> None:
    lines = ["when,film,rating", *(f"2020-01-{n % 28 + 1:02},f{n % 3},{n % 5 + 1}" for n in range(40))]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    done = dpmf(tmp_path, session_cache, "advise", "x.csv", expect=2)
    assert "no column looks like the user; add --user COLUMN" in done.stderr


def test_a_few_ratings_are_refused_and_leave_no_config(tmp_path: Path, session_cache: Path) -> None:
    films(tmp_path / "films.csv", users=3)
    done = dpmf(tmp_path, session_cache, "advise", "films.csv", expect=2)
    assert "45 ratings are too few to tell methods apart; give 50 or more" in done.stderr
    assert not list(tmp_path.glob("*.yaml"))


@pytest.mark.parametrize("neighbours", list(Neighbours))
def test_every_kind_of_privacy_has_candidates_that_can_be_run(neighbours: Neighbours, tmp_path: Path) -> None:
    assert candidates(provable(neighbours), SMALL, 6).taken


def test_what_takes_too_long_is_left_out_with_the_reason() -> None:
    small, large = (
        candidates(provable(Neighbours.UNBOUNDED), shape, 6) for shape in (SMALL, Shape(10**6, 10**5, 10**8))
    )
    assert set(large.taken) < set(small.taken)
    assert len(large.left_out) == len(small.taken) + len(small.left_out) - len(large.taken)
    assert all("one fit takes about" in each for each in large.left_out)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 2.5, 30.0, 500.0])
def test_the_asked_epsilon_lies_inside_of_the_grid(epsilon: float) -> None:
    grid = grid_with(epsilon)
    assert grid[0] < epsilon < grid[-1]
    assert list(grid) == sorted(set(grid))


def test_names_are_those_of_no_catalog() -> None:
    assert name_of("ml-1m") == "own-ml-1m"
    assert name_of("ü $") == "own-ratings"
