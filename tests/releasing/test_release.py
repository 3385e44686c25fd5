"""`dpmf release` and `dpmf predict`: what is written, what is refused, and how releases are accounted for."""

import csv
import json
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Literal

import numpy as np
import pytest

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.releasing.publishing import FittedRatings, fitted, load_model, refuse
from tests.command import dpmf
from tests.conftest import make_ratings
from tests.releasing.shop import make_shop

Run = Callable[..., "CompletedProcess[str]"]
RATINGS = make_ratings()
SOURCE = FittedRatings("shop", RATINGS, np.arange(RATINGS.n_users), np.arange(RATINGS.n_items))


@pytest.fixture
def run(tmp_path: Path, session_cache: Path) -> Run:
    """Runs `dpmf` in the shop's folder, with an account of its own."""
    make_shop(tmp_path)

    def run(*arguments: str, expect: int = 0) -> "CompletedProcess[str]":
        state = str(tmp_path / "state")
        return dpmf(tmp_path, session_cache, *arguments, expect=expect, DPMF_STATE=state)

    return run


ENDS: tuple[Literal["little", "big"], ...] = ("little", "big")


def release(
    run: Run, method: str, *more: str, epsilon: str = "1", expect: int = 0
) -> "CompletedProcess[str]":
    arguments = ("release", "my-shop.yaml", "--method", method, "--epsilon", epsilon, *more)
    return run(*arguments, expect=expect)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_the_statement_says_what_holds_and_counts_nothing(run: Run, tmp_path: Path) -> None:
    printed = release(run, "PGE", "--to", "out").stdout
    said = json.loads((tmp_path / "out/model.json").read_text())
    privacy = said["privacy"]
    assert (privacy["epsilon"], privacy["claimed"], privacy["provable"], privacy["delta"]) == (1, 1, 1, 0)
    assert (privacy["neighbours"], privacy["towards"], privacy["joint"]) == ("bounded", "everybody", False)
    assert sum(step["claimed"][0] for step in said["ledger"]) == pytest.approx(1)
    assert "1 provable" in printed
    account = json.loads((tmp_path / "state/releases.jsonl").read_text())
    text = (tmp_path / "out/model.json").read_text()
    assert account["checksum"] not in text
    assert account["model"] == said["sha256"]
    assert str(len(make_ratings())) not in text


def test_what_no_proof_covers_is_refused_unless_it_is_asked_for(run: Run, tmp_path: Path) -> None:
    refused = release(run, "PALS", "--ids-are-public", "--to", "out", expect=2).stderr
    assert "no ε can be proved" in refused
    assert "--unprovable" in refused
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "state").exists()
    release(run, "PALS", "--ids-are-public", "--unprovable", "--to", "out")
    assert json.loads((tmp_path / "out/model.json").read_text())["privacy"]["provable"] is None


def test_ids_that_the_epsilon_hides_must_be_public(run: Run, tmp_path: Path) -> None:
    refused = release(run, "PGE, hidden", "--to", "out", expect=2).stderr
    assert "--users FILE, --items FILE" in refused
    for name, letter, count in (("users.txt", "c", 70), ("items.txt", "a", 45)):
        (tmp_path / name).write_text("\n".join(f"{letter}{each}" for each in range(count)))
    release(run, "PGE, hidden", "--users", "users.txt", "--items", "items.txt", "--to", "out")
    loaded = load_model(tmp_path / "out")
    assert loaded.user_ids is not None
    assert (len(loaded.user_ids), len(loaded.item_ids)) == (70, 45)
    (tmp_path / "items.txt").write_text("a0\na1\n")
    short = release(run, "PGE, hidden", "--users", "users.txt", "--items", "items.txt", expect=2).stderr
    assert "has ratings, but is not in the list of items" in short


@pytest.mark.parametrize("method", ["own_regression", "dpam", "frank_wolfe"])
def test_a_method_that_counts_users_needs_their_public_list(method: str) -> None:
    """One user less changes the published release by more than the noise covers: through a rank, a rate or a norm."""
    entry = PRIVATE[method].model_validate({"algorithm": method, "neighbours": "user", "mode": "corrected"})
    users, items = SOURCE.user_ids, SOURCE.item_ids
    statement = fitted(entry, replace(SOURCE, items=items), 1.0).statement
    with pytest.raises(DpmfError, match="--users FILE"):
        refuse(statement, unprovable=False, ids_are_public=False)
    listed = fitted(entry, replace(SOURCE, users=users, items=items), 1.0)
    assert "The number of users, or of those in the list, is public" in listed.statement.privacy.says
    refuse(listed.statement, unprovable=False, ids_are_public=False)
    assert listed.user_ids is None


def test_a_delta_that_is_too_large_for_the_ratings_is_told(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "my-shop.yaml"
    config.write_text(
        config.read_text() + "  - {algorithm: mm_averages, label: lax, neighbours: unbounded, delta: 0.01}\n"
    )
    options = "--ids-are-public", "--unprovable"
    done = release(run, "lax", *options, "--to", "out")
    assert "warning: δ = 0.01 is not below one over the number of ratings" in done.stderr
    assert "probability of at most δ = 0.01, may tell more than ε allows" in done.stdout
    says = json.loads((tmp_path / "out/model.json").read_text())["privacy"]["says"]
    assert "well below one over the number of ratings" in says
    assert "warning" not in release(run, "PGE", "--to", "other").stderr


def test_releases_of_one_data_set_add_up_by_what_they_hide(run: Run, tmp_path: Path) -> None:
    first = release(run, "PGE", "--to", "one").stderr
    assert "my-shop, bounded: 1 release, ε = 1 in all" in first
    assert "this is release" not in first
    renamed = (tmp_path / "my-shop.yaml").read_text().replace("name: my-shop", "name: other-name")
    (tmp_path / "my-shop.yaml").write_text(renamed)
    second = release(run, "PGE", "--to", "two", epsilon="0.5").stderr
    assert "this is release 2 of other-name" in second
    assert "other-name, bounded: 2 releases, ε = 1.5 in all" in second
    third = release(run, "MM averages", "--ids-are-public", "--to", "three").stderr
    assert "bounded: 2 releases, ε = 1.5 in all" in third
    assert "user: 1 release, ε = 1, δ = 1e-06 in all" in third
    assert len((tmp_path / "state/releases.jsonl").read_text().splitlines()) == 3


def test_no_folder_is_released_twice_and_a_damaged_account_is_no_smaller_sum(
    run: Run, tmp_path: Path
) -> None:
    release(run, "PGE", "--to", "one")
    assert "holds a release" in release(run, "PGE", "--to", "one", expect=2).stderr
    with (tmp_path / "state/releases.jsonl").open("a") as file:
        file.write('{"time": "2026')
    said = release(run, "PGE", "--to", "two", expect=2).stderr
    assert "releases.jsonl:2: is not the entry of a release" in said
    assert not (tmp_path / "two").exists()


def test_predictions_of_a_file_are_those_of_the_model_and_unknown_ids_have_means(
    run: Run, tmp_path: Path
) -> None:
    release(run, "PGE", "--to", "out")
    (tmp_path / "pairs.csv").write_text("sku,customer\na1,c1\nnew,c1\na1,nobody\n")
    said = run("predict", "out", "--pairs", "pairs.csv", "--to", "found.csv")
    assert "1 of 3 pairs" in said.stderr
    found = rows((tmp_path / "found.csv").read_text())
    assert [(row["customer"], row["sku"]) for row in found] == [("c1", "a1"), ("c1", "new"), ("nobody", "a1")]
    model = load_model(tmp_path / "out")
    assert model.user_ids is not None
    everything = model.predict(np.full(len(model.item_ids), "c1"), model.item_ids)
    everybody = model.predict(model.user_ids, np.full(len(model.user_ids), "a1"))
    known = model.predict(["c1"], ["a1"])[0]
    wanted = [known, everything.mean(), everybody.mean()]
    assert [float(row["prediction"]) for row in found] == pytest.approx(wanted, abs=1e-12)


def test_predictions_have_a_header_of_words_where_the_ratings_have_none(run: Run, tmp_path: Path) -> None:
    text = (tmp_path / "ratings.csv").read_text()
    (tmp_path / "ratings.csv").write_text(text.partition("\n")[2])
    config = (tmp_path / "my-shop.yaml").read_text()
    numbers = "{user: 0, item: 1, rating: 2}\n  header: false"
    (tmp_path / "my-shop.yaml").write_text(
        config.replace("{user: customer, item: sku, rating: stars}", numbers)
    )
    release(run, "PGE", "--to", "out")
    (tmp_path / "pairs.csv").write_text("user,item\nc1,a1\n")
    found = run("predict", "out", "--pairs", "pairs.csv").stdout
    assert found.startswith("user,item,prediction\nc1,a1,")


def test_the_best_items_of_a_user_leave_out_what_the_user_has_rated(run: Run, tmp_path: Path) -> None:
    release(run, "MM averages", "--ids-are-public", "--to", "out")
    cold = run("predict", "out", "--user", "c0", "--top", "40")
    assert "without --own" in cold.stderr
    assert len(rows(cold.stdout)) == 40
    lines = (tmp_path / "ratings.csv").read_text().splitlines()
    own = [line for line in lines if line.startswith(("c0,", "cus"))]
    (tmp_path / "own.csv").write_text("\n".join(own))
    found = rows(run("predict", "out", "--user", "c0", "--top", "40", "--own", "own.csv").stdout)
    assert {row["sku"] for row in found}.isdisjoint(line.split(",")[1] for line in own[1:])
    assert len(found) == 40 - len(own[1:])
    values = [float(row["prediction"]) for row in found]
    assert values == sorted(values, reverse=True)


def test_a_file_without_ratings_is_released_like_one_with_ratings(run: Run, tmp_path: Path) -> None:
    (tmp_path / "users.txt").write_text("c0\nc1\n")
    (tmp_path / "items.txt").write_text("a0\na1\n")
    (tmp_path / "ratings.csv").write_text("customer,sku,stars\n")
    lists = ("--users", "users.txt", "--items", "items.txt")
    release(run, "PGE, hidden", *lists, "--to", "out")
    assert rows(run("predict", "out", "--user", "c1").stdout)
    assert "no list of items" in release(run, "PGE, hidden", *lists[:2], expect=2).stderr
    assert "ratings.csv: no ratings in it" in run("run", "my-shop.yaml", expect=2).stderr


def test_a_scale_that_was_guessed_is_not_released(run: Run, tmp_path: Path) -> None:
    """The scale of a release is in its files and in the noise: guessed, it would tell the largest rating."""
    config = tmp_path / "my-shop.yaml"
    guessed = config.read_text().replace("maximum: 5, step: 1}", "maximum: 5, step: 1, guessed: true}")
    config.write_text(guessed)
    said = release(run, "PGE", expect=2).stderr
    assert "my-shop.yaml:6:44: the scale is guessed from the ratings" in said
    assert "write the scale that your site allows, and remove `guessed`" in said
    config.write_text(guessed.replace(", guessed: true", ""))
    release(run, "PGE")


@pytest.mark.parametrize(
    ("method", "epsilon", "more", "said"),
    [
        ("pge", "1", (), "name one by its label: PGE, PGE, hidden"),
        ("PGF", "1", (), 'did you mean "PGE"?'),
        ("PGE", "0", (), "epsilon is 0; give one from 1e-06 to 1e+06"),
        ("PGE", "1", ("--users", "no.txt"), "one id in each line"),
    ],
)
def test_a_mistake_in_a_release_is_answered_with_the_fix(
    run: Run, method: str, epsilon: str, more: tuple[str, ...], said: str
) -> None:
    assert said in release(run, method, *more, epsilon=epsilon, expect=2).stderr


def test_mistakes_in_predictions_are_answered_with_the_fix(run: Run, tmp_path: Path) -> None:
    release(run, "PGE", "--to", "out")
    release(run, "MM averages", "--ids-are-public", "--to", "joint")
    for name, text in (
        ("users", "customer\nc1\n"),
        ("short", "customer,sku\nc1,a1\nc1\n"),
        ("long", f"customer,sku\nc1,{'a' * 200_000}\n"),
        ("off", "user,item,rating\nc0,a0,9\n"),
        ("words", "user,item,rating\nc0,a0,many\n"),
    ):
        (tmp_path / f"{name}.csv").write_text(text)
    for words, said in (
        ("nowhere --user c1", "name a folder that `dpmf release` has written"),
        ("out", "--pairs FILE, or --user ID"),
        ("out --pairs no.csv", "no.csv: cannot be read"),
        ("out --pairs users.csv", 'users.csv:1: no column "sku" (item)'),
        ("out --pairs short.csv", "short.csv:3: 1 field(s)"),
        ("out --pairs long.csv", "long.csv: field larger than field limit"),
        ("out --user c1 --own ratings.csv", "leave --own out"),
        ("joint --user c0 --own off.csv", "not all within 1 to 5"),
        ("joint --user c0 --own words.csv", 'words.csv:2: the rating "many" is not a finite number'),
    ):
        assert said in run("predict", *words.split(), expect=2).stderr


def test_a_list_of_ids_makes_no_other_data_set_and_own_ratings_may_have_decimal_commas(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "items.txt").write_text("".join(f"a{n}\n" for n in reversed(range(60))))
    release(run, "MM averages", "--ids-are-public", "--to", "one")
    release(run, "MM averages", "--items", "items.txt", "--to", "other")
    lines = (tmp_path / "state/releases.jsonl").read_text().splitlines()
    assert len({json.loads(line)["checksum"] for line in lines}) == 1
    found = set()
    for text in ("user,item,rating\nc0,a0,4.0\n", "user;item;rating\nc0;a0;4,0\n"):
        (tmp_path / "own.csv").write_text(text)
        found.add(run("predict", "one", "--user", "c0", "--own", "own.csv").stdout)
    assert len(found) == 1


def test_every_fit_has_a_seed_of_its_own_that_no_file_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[int] = []
    randbits = secrets.randbits

    def drawn(bits: int) -> int:
        seeds.append(randbits(bits))
        return seeds[-1]

    monkeypatch.setattr(secrets, "randbits", drawn)
    monkeypatch.setenv("DPMF_STATE", str(tmp_path / "state"))
    entry = PRIVATE["isgd"].model_validate({"algorithm": "isgd", "factors": 2})
    found = []
    for name in ("one", "two"):
        model = fitted(entry, SOURCE, 1.0)
        model.save(tmp_path / name)
        found.append(model.predict([3], [4])[0])
    assert found[0] != found[1]
    assert len(set(seeds)) == 2
    assert all(seed.bit_length() > 200 for seed in seeds)
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 6  # two of each release, the account and its lock
    for seed in seeds:
        told = str(seed).encode(), f"{seed:x}".encode(), *(seed.to_bytes(32, end) for end in ENDS)
        assert not any(each in data for each in told for data in files)


def test_what_cannot_be_proved_is_refused_by_the_interface_too(tmp_path: Path) -> None:
    entry = PRIVATE["psgd"].model_validate({"algorithm": "psgd", "neighbours": "unbounded"})
    with pytest.raises(DpmfError, match="can be proved"):
        fitted(entry, SOURCE, 1.0).save(tmp_path, ids_are_public=True)
    assert list(tmp_path.iterdir()) == []
