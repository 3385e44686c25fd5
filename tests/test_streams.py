"""Random streams are functions of their names."""

import numpy as np

from dpmf_cli.core.streams import Streams, named_generator
from dpmf_cli.testing import make_ratings


def draw(*name: str | int) -> int:
    return int(named_generator(*name).integers(2**62))


def test_a_stream_depends_on_every_part_of_its_name_and_on_nothing_else() -> None:
    names = [(1, "a", "b"), (2, "a", "b"), (1, "ab"), (1, "b", "a"), (1, "a", "b", "")]
    assert len({draw(*name) for name in names}) == len(names)
    assert draw(1, "a", "b") == draw(1, "a", "b")


def test_a_stream_is_the_same_on_every_machine() -> None:
    assert draw(2016, "ml-1m", "isgd", 3, 1, "residuals") == 794978210388990145


def test_each_purpose_of_each_task_has_its_own() -> None:
    tasks = [
        Streams(*key)
        for key in [(1, "d", "a", 0, 0), (1, "d", "a", 0, 1), (1, "d", "a", 1, 0), (1, "d", "b", 0, 0)]
    ]
    drawn = {task.generator(purpose).integers(2**62) for task in tasks for purpose in ("noise", "order")}
    assert len(drawn) == 8


def test_the_draws_of_ratings_come_in_sets_one_after_the_other() -> None:
    streams = Streams(1, "d", "a", 0, 0)
    whole = streams.generator("levels").random(10)
    ratings = make_ratings()
    ten, five = (ratings.select(np.arange(len(ratings)) < count) for count in (10, 5))
    assert streams.of_ratings("levels", ten).tolist() == whole.tolist()
    assert streams.of_ratings("levels", five, 2).ravel().tolist() == whole.tolist()
