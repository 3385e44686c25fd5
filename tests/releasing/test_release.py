"""`dpmf release` and `dpmf predict`: what is written, what is refused, and how releases are accounted for."""

import csv
import json
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.releasing.publishing import FittedRatings, fitted, load_model, refuse
from tests.command import dpmf
from tests.conftest import make_ratings

RATINGS = make_ratings()
SOURCE = FittedRatings("shop", RATINGS, np.arange(RATINGS.n_users), np.arange(RATINGS.n_items))
CONFIG = Path(__file__).with_name("shop.yaml").read_text()


@dataclass(frozen=True)
class Shop:
    """A folder with `my-shop.yaml` and `ratings.csv` (customers c0 to c59, articles a0 to a39), and its account."""

    folder: Path
    cache: Path

    def run(self, *words: str, expect: int = 0) -> "CompletedProcess[str]":
        return dpmf(self.folder, self.cache, *words, expect=expect, DPMF_STATE=str(self.folder / "state"))

    def release(
        self, method: str, *more: str, epsilon: str = "1", expect: int = 0
    ) -> "CompletedProcess[str]":
        words = ("release", "my-shop.yaml", "--method", method, "--epsilon", epsilon, *more)
        return self.run(*words, expect=expect)

    def put(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    def change(self, name: str, old: str, new: str) -> None:
        assert old in self.read(name)
        self.put(name, self.read(name).replace(old, new))


@pytest.fixture
def shop(tmp_path: Path, session_cache: Path) -> Shop:
    found = Shop(tmp_path, session_cache)
    ratings = zip(RATINGS.users.tolist(), RATINGS.items.tolist(), RATINGS.values.tolist(), strict=True)
    lines = [f"c{user},a{item},{value:g}" for user, item, value in ratings]
    found.put("ratings.csv", "\n".join(["customer,sku,stars", *lines]) + "\n")
    found.put("my-shop.yaml", CONFIG)
    return found


def listed(letter: str, count: int) -> str:
    return "".join(f"{letter}{each}\n" for each in reversed(range(count)))


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_the_statement_says_what_holds_and_counts_nothing(shop: Shop) -> None:
    printed = shop.release("PGE", "--to", "out").stdout
    text = shop.read("out/model.json")
    said = json.loads(text)
    privacy = said["privacy"]
    assert (privacy["epsilon"], privacy["claimed"], privacy["provable"], privacy["delta"]) == (1, 1, 1, 0)
    assert (privacy["neighbours"], privacy["towards"], privacy["joint"]) == ("bounded", "everybody", False)
    assert sum(step["claimed"][0] for step in said["ledger"]) == pytest.approx(1)
    assert "1 provable" in printed
    account = json.loads(shop.read("state/releases.jsonl"))
    assert account["checksum"] not in text
    assert account["model"] == said["sha256"]
    for digits in (said.pop("release"), said.pop("sha256"), said.pop("seal")):
        text = text.replace(digits, "")  # in which any number may stand by chance
    assert str(len(RATINGS)) not in text


def test_what_no_proof_covers_is_refused_unless_it_is_asked_for(shop: Shop) -> None:
    refused = shop.release("PALS", "--ids-are-public", "--to", "out", expect=2).stderr
    assert "no ε can be proved" in refused
    assert "--unprovable" in refused
    assert not (shop.folder / "out").exists()
    assert not (shop.folder / "state").exists()
    shop.release("PALS", "--ids-are-public", "--unprovable", "--to", "out")
    assert json.loads(shop.read("out/model.json"))["privacy"]["provable"] is None
    entry = PRIVATE["psgd"].model_validate({"algorithm": "psgd", "neighbours": "unbounded"})
    with pytest.raises(DpmfError, match="can be proved"):
        fitted(entry, SOURCE, 1.0).save(shop.folder / "other", ids_are_public=True)
    assert not (shop.folder / "other").exists()


def test_ids_that_the_epsilon_hides_must_be_public(shop: Shop) -> None:
    refused = shop.release("PGE, hidden", "--to", "out", expect=2).stderr
    assert "--users FILE, --items FILE" in refused
    shop.put("users.txt", listed("c", 70))
    shop.put("items.txt", listed("a", 45))
    lists = ("--users", "users.txt", "--items", "items.txt")
    shop.release("PGE, hidden", *lists, "--to", "out")
    loaded = load_model(shop.folder / "out")
    assert loaded.user_ids is not None
    assert (len(loaded.user_ids), len(loaded.item_ids)) == (70, 45)
    shop.put("items.txt", "a0\na1\n")
    short = shop.release("PGE, hidden", *lists, expect=2).stderr
    assert "has ratings, but is not in the list of items" in short


@pytest.mark.parametrize("method", ["own_regression", "dpam", "dp_sgd", "dpals"])
def test_a_method_that_counts_users_needs_their_public_list(method: str) -> None:
    """One user less changes the published release by more than the noise covers: through a rank, a rate or a norm."""
    averages = {"averages": 0.7} if method == "dpals" else {}
    given = {"algorithm": method, "neighbours": "user", "mode": "corrected", **averages}
    entry = PRIVATE[method].model_validate(given)
    users, items = SOURCE.user_ids, SOURCE.item_ids
    statement = fitted(entry, replace(SOURCE, items=items), 1.0).statement
    with pytest.raises(DpmfError, match="--users FILE"):
        refuse(statement, unprovable=False, ids_are_public=False)
    listed = fitted(entry, replace(SOURCE, users=users, items=items), 1.0)
    assert "The number of users, or of those in the list, is public" in listed.statement.privacy.says
    refuse(listed.statement, unprovable=False, ids_are_public=False)
    assert (listed.user_ids is None) == (method != "dp_sgd")


def test_a_delta_that_is_too_large_for_the_ratings_is_told(shop: Shop) -> None:
    entry = "  - {algorithm: mm_averages, label: lax, neighbours: unbounded, delta: 0.01}\n"
    shop.put("my-shop.yaml", CONFIG + entry)
    done = shop.release("lax", "--ids-are-public", "--unprovable", "--to", "out")
    assert "warning: δ = 0.01 is not below one over the number of ratings" in done.stderr
    assert "probability of at most δ = 0.01, may tell more than ε allows" in done.stdout
    says = json.loads(shop.read("out/model.json"))["privacy"]["says"]
    assert "well below one over the number of ratings" in says
    assert "warning" not in shop.release("PGE", "--to", "other").stderr


def test_releases_of_one_data_set_add_up_by_what_they_hide(shop: Shop) -> None:
    first = shop.release("PGE", "--to", "one").stderr
    assert "my-shop, bounded: 1 release, ε = 1 in all" in first
    assert "this is release" not in first
    shop.change("my-shop.yaml", "name: my-shop", "name: other-name")
    second = shop.release("PGE", "--to", "two", epsilon="0.5").stderr
    assert "this is release 2 of other-name" in second
    assert "other-name, bounded: 2 releases, ε = 1.5 in all" in second
    third = shop.release("MM averages", "--ids-are-public", "--to", "three").stderr
    assert "bounded, other kinds aside: 2 releases, ε = 1.5 in all" in third
    assert "user, other kinds aside: 1 release, ε = 1, δ = 1e-06 in all" in third
    # Another value is two steps of `user`: 1.5 + 2·1, and (1 + e)·1e-06.
    assert (
        "for the value of a rating: 3 releases, ε = 3.5, δ = 3.71828e-06 in all, against other users" in third
    )
    assert "this is release 3 of other-name" in third
    shop.put("items.txt", listed("a", 60))  # a list of ids makes no other data set
    shop.release("MM averages", "--items", "items.txt", "--to", "four")
    lines = shop.read("state/releases.jsonl").splitlines()
    assert len(lines) == 4
    assert len({json.loads(line)["checksum"] for line in lines}) == 1
    # No folder is released twice, and a damaged account is no smaller sum.
    assert "holds a release" in shop.release("PGE", "--to", "one", expect=2).stderr
    shop.put("state/releases.jsonl", "\n".join([*lines, '{"time": "2026']))
    said = shop.release("PGE", "--to", "five", expect=2).stderr
    assert "releases.jsonl:5: is not the entry of a release" in said
    assert not (shop.folder / "five").exists()


def test_predictions_of_a_file_are_those_of_the_model_and_unknown_ids_have_means(shop: Shop) -> None:
    shop.release("PGE", "--to", "out")
    shop.put("pairs.csv", "sku,customer\na1,c1\nnew,c1\na1,nobody\n")
    said = shop.run("predict", "out", "--pairs", "pairs.csv", "--to", "found.csv")
    assert "1 of 3 pairs" in said.stderr
    found = rows(shop.read("found.csv"))
    assert [(row["customer"], row["sku"]) for row in found] == [("c1", "a1"), ("c1", "new"), ("nobody", "a1")]
    model = load_model(shop.folder / "out")
    assert model.user_ids is not None
    everything = model.predict(np.full(len(model.item_ids), "c1"), model.item_ids)
    everybody = model.predict(model.user_ids, np.full(len(model.user_ids), "a1"), clip=False)
    wanted = [model.predict(["c1"], ["a1"])[0], everything.mean(), everybody.mean()]
    assert [float(row["prediction"]) for row in found] == pytest.approx(wanted, abs=1e-12)


def test_predictions_have_a_header_of_words_where_the_ratings_have_none(shop: Shop) -> None:
    shop.put("ratings.csv", shop.read("ratings.csv").partition("\n")[2])
    numbers = "{user: 0, item: 1, rating: 2}\n  header: false"
    shop.change("my-shop.yaml", "{user: customer, item: sku, rating: stars}", numbers)
    shop.release("PGE", "--to", "out")
    shop.put("pairs.csv", "user,item\nc1,a1\n")
    found = shop.run("predict", "out", "--pairs", "pairs.csv").stdout
    assert found.startswith("user,item,prediction\nc1,a1,")


def test_the_best_items_of_a_user_leave_out_what_the_user_has_rated(shop: Shop) -> None:
    shop.release("MM averages", "--ids-are-public", "--to", "out")
    asked = ("predict", "out", "--user", "c0", "--top", "40")
    cold = shop.run(*asked)
    assert "without --own" in cold.stderr
    assert len(rows(cold.stdout)) == 40
    own = [line for line in shop.read("ratings.csv").splitlines() if line.startswith(("c0,", "cus"))]
    shop.put("own.csv", "\n".join(own))
    shop.put("commas.csv", "\n".join(f"{line},0".replace(",", ";", 2) for line in own).replace(",0", "", 1))
    found = [shop.run(*asked, "--own", name).stdout for name in ("own.csv", "commas.csv")]
    assert found[0] == found[1]
    best = rows(found[0])
    assert {row["sku"] for row in best}.isdisjoint(line.split(",")[1] for line in own[1:])
    assert len(best) == 40 - len(own[1:])
    values = [float(row["prediction"]) for row in best]
    assert values == sorted(values, reverse=True)


def test_a_file_without_ratings_is_released_like_one_with_ratings(shop: Shop) -> None:
    shop.put("users.txt", listed("c", 2))
    shop.put("items.txt", listed("a", 2))
    shop.put("ratings.csv", "customer,sku,stars\n")
    lists = ("--users", "users.txt", "--items", "items.txt")
    shop.release("PGE, hidden", *lists, "--to", "out")
    assert rows(shop.run("predict", "out", "--user", "c1").stdout)
    assert "no list of items" in shop.release("PGE, hidden", *lists[:2], expect=2).stderr
    assert "ratings.csv: no ratings in it" in shop.run("run", "my-shop.yaml", expect=2).stderr


def test_a_scale_that_was_guessed_is_not_released(shop: Shop) -> None:
    """The scale of a release is in its files and in the noise: guessed, it would tell the largest rating."""
    shop.change("my-shop.yaml", "step: 1}", "step: 1, guessed: true}")
    said = shop.release("PGE", expect=2).stderr
    assert "my-shop.yaml:6:44: the scale is guessed from the ratings" in said
    assert "write the scale that your site allows, and remove `guessed`" in said


MISTAKES = (
    ("nowhere --user c1", "name a folder that `dpmf release` has written"),
    ("out", "--pairs FILE; or --user ID or --all"),
    ("out --pairs users.csv --seen users.csv", "say what to predict"),
    ("out --pairs no.csv", "no.csv: cannot be read"),
    ("out --pairs users.csv", 'users.csv:1: no column "sku" (item)'),
    ("out --pairs short.csv", "short.csv:3: 1 field(s)"),
    ("out --pairs long.csv", "long.csv: field larger than field limit"),
    ("out --user c1 --own ratings.csv", "leave --own out"),
    ("joint --user c0 --own off.csv", "not all within 1 to 5"),
    ("joint --user c0 --own words.csv", 'words.csv:2: the rating "many" is not a finite number'),
)


def test_a_mistake_is_answered_with_the_fix(shop: Shop) -> None:
    for method, epsilon, more, said in (
        ("pge", "1", (), "name one by its label: PGE, PGE, hidden"),
        ("PGF", "1", (), 'did you mean "PGE"?'),
        ("PGE", "0", (), "epsilon is 0; give one from 1e-06 to 1e+06"),
        ("PGE", "1", ("--users", "no.txt"), "one id in each line"),
    ):
        assert said in shop.release(method, *more, epsilon=epsilon, expect=2).stderr
    shop.release("PGE", "--to", "out")
    shop.release("MM averages", "--ids-are-public", "--to", "joint")
    shop.put("users.csv", "customer\nc1\n")
    shop.put("short.csv", "customer,sku\nc1,a1\nc1\n")
    shop.put("long.csv", f"customer,sku\nc1,{'a' * 200_000}\n")
    shop.put("off.csv", "user,item,rating\nc0,a0,9\n")
    shop.put("words.csv", "user,item,rating\nc0,a0,many\n")
    for words, said in MISTAKES:
        assert said in shop.run("predict", *words.split(), expect=2).stderr


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
        told = str(seed).encode(), f"{seed:x}".encode(), seed.to_bytes(32, "little"), seed.to_bytes(32, "big")
        assert not any(each in data for each in told for data in files)
