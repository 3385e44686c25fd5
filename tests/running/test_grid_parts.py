"""A grid that does not fit in memory is fitted in parts, with the same bytes."""

from pathlib import Path
from typing import Any

import pytest

from dpmf_cli.algorithms.costs.cost import Shape
from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.algorithms.shared.model import Model
from dpmf_cli.datasets import Folders, load
from dpmf_cli.datasets.spec import SyntheticSpec
from dpmf_cli.kernels import sgd
from dpmf_cli.lane_groups import MAXIMUM_WIDTH
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.results.store import Store
from dpmf_cli.results.task import Cut, Task
from dpmf_cli.running import execute, grid_parts
from dpmf_cli.running.cutting import cut_ratings

GRID = tuple(0.5 + 0.25 * e for e in range(40))
SHAPE = Shape(1000, 1000, 100_000)
PSGD = PRIVATE["psgd"].model_validate({"algorithm": "psgd", "factors": 2, "epochs": 2})


def cuts(within: float, grid: int = 40) -> list[int]:
    return [part.stop - part.start for part in grid_parts.parts(PSGD, SHAPE, grid, within)]


def test_a_grid_is_cut_only_as_far_as_it_must_and_into_whole_groups() -> None:
    assert cuts(1e12) == [40]
    assert cuts(0) == [MAXIMUM_WIDTH, MAXIMUM_WIDTH, 8]
    assert cuts(PSGD.cost(SHAPE, 32).bytes, 64) == [32, 32]
    assert cuts(0, 3) == [3]

    whole, apart = (grid_parts.cost_in_parts(PSGD, SHAPE, 32, within) for within in (1e12, 0))
    part = PSGD.cost(SHAPE, 16)
    assert whole == PSGD.cost(SHAPE, 32)
    assert (apart.seconds, apart.bytes) == (2 * part.seconds, part.bytes)
    assert apart.bytes < whole.bytes


def test_there_is_room_within_the_machine_and_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(grid_parts, "_LIMIT", limit)
    machine = grid_parts.room()
    assert machine > 1e8
    limit.write_text("max\n")
    assert grid_parts.room() == machine
    limit.write_text("1000000\n")
    assert grid_parts.room() < 1e6


ENTRIES: dict[str, dict[str, object]] = {
    "pge": {},
    "isgd": {"epochs": 2},
    "psgd": {"epochs": 2},
    "pals": {"iterations": 1},
    "mm_svd": {"k": 2, "neighbours": "unbounded", "mode": "corrected", "delta": 1e-6},
}


@pytest.mark.parametrize("name", ENTRIES)
def test_the_result_is_the_same_to_the_byte(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = SyntheticSpec(kind="synthetic", like="ml-100k", users=60, items=40, ratings=900)
    data = load(spec, Folders(tmp_path, tmp_path, tmp_path))
    fields = PRIVATE[name].model_fields
    entry: Algorithm = PRIVATE[name].model_validate(
        {"algorithm": name, **ENTRIES[name], **({"factors": 2} if "factors" in fields else {})}
    )
    task = Task(data.identity, 1, Cut(5, 0), 0, entry, GRID, (0.5, 1.0))
    train, test = cut_ratings(data.ratings, task.cut, dataset=data.identity.key, seed=1)
    fits = []
    fit = type(entry).fit

    def counting(self: Algorithm, *arguments: Any, **named: Any) -> Model:
        fits.append(self)
        return fit(self, *arguments, **named)

    monkeypatch.setattr(type(entry), "fit", counting)
    files = []
    for memory in (1e12, 0.0):
        monkeypatch.setattr(execute, "room", lambda memory=memory: memory)
        (result,) = execute.execute([task], train, test)
        store = Store(tmp_path / f"{memory}")
        store.write(task, result)
        files.append(store.path(task).read_bytes())
    assert files[0] == files[1]
    assert len(fits) == 1 + 3
    assert getattr(entry, "neighbours", None) in list(Neighbours)


@pytest.mark.parametrize("epochs", [1, 3])
def test_kept_ratings_are_planned_where_they_are_kept(epochs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = PRIVATE["isgd"].model_validate({"algorithm": "isgd", "epochs": epochs})
    kept = entry.cost(SHAPE, 16).bytes
    monkeypatch.setattr(sgd, "MOST_KEPT", 0)
    assert kept - entry.cost(SHAPE, 16).bytes == (64 * SHAPE.ratings if epochs > 1 else 0)
