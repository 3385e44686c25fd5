"""Replays of registered algorithms: clean passes, and the known flaws of publications."""

from collections.abc import Iterable, Mapping

import numpy as np
import pytest

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.audit.judge import SLACK, Finding, Flaw, StepMoves
from dpmf_cli.audit.pairs import Pair, contrary_to_all, tiny_pairs
from dpmf_cli.audit.replay import replay
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.protection import PROMISES, protection_of
from dpmf_cli.ratings import Ratings, Scale

PAIRS = 21


def replayed(
    algorithm: PrivateAlgorithm, pairs: Iterable[Pair] | None = None, epsilon: float = 1.0
) -> tuple[list[Finding], Mapping[str, StepMoves]]:
    """The findings on all pairs, and the largest move of each step."""
    found, steps = [], {}  # type: list[Finding], dict[str, StepMoves]
    for pair in tiny_pairs(algorithm.neighbours, PAIRS) if pairs is None else pairs:
        seen = replay(algorithm, pair, epsilon)
        found += seen.findings
        for step, measured in seen.steps.items():
            steps[step] = measured.worst(steps.get(step, measured))
    return found, steps


def one(key: str, neighbours: Neighbours, mode: Mode, **parameters: object) -> PrivateAlgorithm:
    made: PrivateAlgorithm = PRIVATE[key].model_validate(
        {"algorithm": key, "neighbours": neighbours, "mode": mode, **parameters}
    )
    return made


@pytest.mark.parametrize("neighbours", [Neighbours.BOUNDED, Neighbours.UNBOUNDED])
def test_sensitivities_of_pge_are_tight(neighbours: Neighbours) -> None:
    """Every step moves by its full sensitivity in some pair, so no sensitivity is larger than needed."""
    algorithm = one("pge", neighbours, Mode.CORRECTED)
    found, steps = replayed(algorithm)
    assert found == []
    assert len(steps) == (4 if neighbours is Neighbours.BOUNDED else 8)
    for step, measured in steps.items():
        assert measured.of_sensitivity == pytest.approx(1, abs=SLACK), step
        assert measured.of_noise == pytest.approx(1, abs=SLACK), step
    losses = [replay(algorithm, pair, 1.0).loss for pair in tiny_pairs(neighbours, PAIRS)]
    assert max(losses) <= 1 + SLACK
    assert neighbours is not Neighbours.BOUNDED or max(losses) == pytest.approx(1, abs=2 * SLACK)


def test_another_value_moves_what_hides_presence_twice() -> None:
    """Personalised PGE moves by all that its ledger says for a changed value: twice as much as its base."""
    entry = one("personalized", Neighbours.BOUNDED, Mode.CORRECTED, base={"algorithm": "pge"}, threshold=1)
    found, steps = replayed(entry, epsilon=4.0)
    assert found == []
    assert steps["global sum"].of_sensitivity == pytest.approx(1, abs=SLACK)


def test_a_replay_is_the_same_again() -> None:
    pair = next(tiny_pairs(Neighbours.UNBOUNDED, 1))
    algorithm = one("pge", Neighbours.UNBOUNDED, Mode.PUBLISHED)
    first, again = (replay(algorithm, pair, 1.0) for _ in range(2))
    assert (first.findings, first.steps, first.loss) == (again.findings, again.steps, again.loss)
    assert all(np.array_equal(first.directions[place], again.directions[place]) for place in first.directions)


def test_neighbours_that_do_not_differ_cost_nothing() -> None:
    pair = next(tiny_pairs(Neighbours.BOUNDED, 1))
    same = Pair("the same", pair.here, pair.here, pair.changed)
    seen = replay(one("pge", Neighbours.BOUNDED, Mode.CORRECTED), same, 1.0)
    assert (seen.findings, seen.loss) == ((), 0)
    assert all(each.of_sensitivity == 0 for each in seen.steps.values())


# --- what publications claim ---


def test_unbounded_pge_as_published_forgets_the_least_rating() -> None:
    """Friedman et al. 2016, section 4.1, use r_max − r_min where a rating of r_max is added in full: 5/4 of that."""
    found, steps = replayed(one("pge", Neighbours.UNBOUNDED, Mode.PUBLISHED))
    assert {(each.flaw, each.step) for each in found} == {
        (Flaw.CLAIM, "item sums"),
        (Flaw.CLAIM, "global sum"),
    }
    assert max(each.size for each in found if each.step == "item sums") == pytest.approx(1.25, abs=1e-3)
    assert steps["item sums"].of_noise == pytest.approx(1.25, abs=1e-3)
    assert steps["item sums"].of_sensitivity == pytest.approx(1, abs=SLACK)
    assert steps["user sums"].of_noise <= 1 + SLACK


def test_the_alpha_of_covariances_as_published_is_exceeded() -> None:
    """M09: α is 8, not 4, on stars. Tiny pairs reach 0.4 of the claim; exceeding it takes a user with 67 ratings."""
    published, corrected = (one("mm_knn", Neighbours.UNBOUNDED, mode, noise="laplace", k=2) for mode in Mode)
    seen = replay(published, contrary_to_all(), 300.0)
    (claim,) = (each for each in seen.findings if each.step == "covariance")
    assert claim.flaw is Flaw.CLAIM
    assert 1.005 < claim.size < 1.19
    assert replay(corrected, contrary_to_all(), 300.0).steps["covariance"].of_sensitivity < 0.7


def test_pg_mf_as_published_reports_a_rating_as_often_as_its_user_has_ratings() -> None:
    """The claim is exceeded by at most a factor n, the number of the user's ratings. The corrected mode reports
    one rating."""
    published, corrected = (one("pg_mf", Neighbours.LOCAL, mode, iterations=3) for mode in Mode)
    times = []
    for pair in tiny_pairs(Neighbours.LOCAL, PAIRS):
        own = int((pair.here.users == pair.changed).sum())
        seen = replay(published, pair, 1.0)
        assert {each.flaw for each in seen.findings} <= {Flaw.CLAIM}
        assert seen.steps["gradients"].of_sensitivity <= 1 + SLACK
        assert seen.steps["gradients"].of_noise <= own * (1 + SLACK)
        times.append(seen.steps["gradients"].of_noise)
    assert max(times) > 8
    assert replayed(corrected)[0] == []


def test_pg_mf_with_epsilon_for_a_user_moves_one_report_by_half_of_what_is_paid() -> None:
    """A user without ratings reports 0, the middle. The full range is charged: any two users may be exchanged."""
    found, steps = replayed(one("pg_mf", Neighbours.USER, Mode.PUBLISHED, iterations=3))
    assert found == []
    assert steps["mean of ratings"].of_sensitivity == pytest.approx(0.5, abs=SLACK)
    assert 0.3 < steps["gradients"].of_sensitivity <= 0.5 + SLACK


def test_sampled_steps_of_one_rating_more_or_less_are_not_overcharged() -> None:
    """One more rating exchanges its user's clipped contribution, which therefore moves by twice its bound."""
    algorithm = one("dpsgd_pnbm", Neighbours.UNBOUNDED, Mode.CORRECTED, noise="gaussian", sampling_rate=0.3)
    assert replayed(algorithm, tiny_pairs(Neighbours.UNBOUNDED, 7))[0] == []


def test_a_value_costs_twice_what_presence_costs() -> None:
    """The promise of `unbounded`: ε for the presence of a rating, and 2ε for its value, which some pair reaches."""
    sums_alone = {
        "budget": {"global_averages": 1e-4, "item_averages": 1 - 2e-4, "user_averages": 1e-4},
        "effects": {"sum_share": 0.9999},
    }
    entry = one("pge", Neighbours.UNBOUNDED, Mode.CORRECTED, **sums_alone)
    users, items = np.array([0, 0, 1, 1, 2], np.int32), np.array([0, 1, 0, 1, 0], np.int32)
    low, high = (
        Ratings(users, items, np.array([1, 5, 1, 5, last], np.float32), 3, 2, Scale(1, 5, 1))
        for last in (1, 5)
    )
    absent = low.select(np.arange(len(low)) < 4)
    assert 1.999 < replay(entry, Pair("value", low, high, 2), 1.0).loss <= 2
    for present in (low, high):
        assert replay(entry, Pair("presence", absent, present, 2), 1.0).loss <= 1
    promise = PROMISES[protection_of(Neighbours.UNBOUNDED)]
    assert "whether one rating exists" in promise.hides
    assert promise.besides == "for its value the bound is 2ε"
