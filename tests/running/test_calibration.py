"""The speed of a machine: measured once, kept, and used by a plan."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.datasets import DataIdentity, Sizes
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.results.store import Store
from dpmf_cli.experiment.running import calibration
from dpmf_cli.experiment.running.calibration import REFERENCE, Machine
from dpmf_cli.experiment.running.plan import Plan, make_plan
from tests.conftest import measure

PROGRAM = "dpmf_cli.studies.experiment"
SLOW = Machine(2.0, 3.0, ((1e6, 1e-9), (1e8, 5e-9)), Cost(4.0, 5e8))


def test_seconds_are_those_of_kernels_and_of_lines_from_afar() -> None:
    """Lines are interpolated in the logarithm of the size."""
    found = [SLOW.line(within) for within in (0, 5e5, 1e6, 1e7, 1e8, 1e12)]
    assert found == pytest.approx([0, 5e-10, 1e-9, 3e-9, 5e-9, 5e-9])
    assert SLOW.seconds(Cost(1.5, 7, ((1e9, 1e7), (2e9, 1e8)))) == pytest.approx(2 * 1.5 + 3 + 10)
    assert Cost(1, 2, ((3, 4),)) + Cost(5, 6, ((7, 8),)) == Cost(6, 8, ((3, 4), (7, 8)))
    assert REFERENCE.seconds(Cost(3.25, 0)) == 3.25


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "measure", lambda program: SLOW)


@pytest.mark.usefixtures("slow")
def test_a_machine_is_measured_once_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    assert calibration.known(tmp_path, 2) is None
    assert calibration.calibrated(tmp_path, 2, PROGRAM, told.append) == SLOW
    monkeypatch.setattr(calibration, "measure", lambda program: pytest.fail("measured twice"))
    assert calibration.calibrated(tmp_path, 2, PROGRAM, told.append) == SLOW
    before, message = told
    assert before == "measuring the speed of this machine once, which takes some seconds"
    assert message.startswith("calibrated this machine in ")
    assert f"; kept in {tmp_path / 'calibration'}" in message
    assert calibration.known(tmp_path, 3) is None
    monkeypatch.setattr(calibration, "__version__", "0.0")
    assert calibration.known(tmp_path, 2) is None


NONSENSE: list[Mapping[str, object]] = [
    *({"lines": lines} for lines in ([], [[2, 1], [1, 2]], [[1, -1]])),
    *({"kernels": number} for number in (-1, float("nan"))),
    *({"start": start} for start in ({"seconds": 1, "bytes": -1}, {"seconds": 0, "bytes": 1}, None)),
]


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize(
    "text", ["", "[]", "{}", *(json.dumps({**asdict(SLOW), **change}) for change in NONSENSE)]
)
def test_what_makes_no_sense_is_measured_again(tmp_path: Path, text: str) -> None:
    calibration.calibrated(tmp_path, 1, PROGRAM, lambda _: None)
    (path,) = (tmp_path / "calibration").iterdir()
    path.write_text(text)
    assert calibration.known(tmp_path, 1) is None
    assert calibration.calibrated(tmp_path, 1, PROGRAM, lambda _: None) == SLOW
    assert calibration.known(tmp_path, 1) == SLOW


@pytest.mark.usefixtures("slow")
def test_a_machine_is_planned_with_where_nothing_can_be_kept(tmp_path: Path) -> None:
    (tmp_path / "calibration").write_text("no folder")
    told: list[str] = []
    assert calibration.calibrated(tmp_path, 1, PROGRAM, told.append) == SLOW
    _, message = told
    assert "; kept in" not in message
    assert f"; not kept: {tmp_path / 'calibration'}" in message


def makes_sense(start: Cost) -> bool:
    return 0.2 < start.seconds < 20 and 1e8 < start.bytes < 1e9


@pytest.mark.slow
def test_a_measurement_makes_sense() -> None:
    machine = measure(PROGRAM)
    assert 0.05 < min(machine.kernels, machine.passes) <= max(machine.kernels, machine.passes) < 50
    times = [seconds for _, seconds in machine.lines]
    assert 0 <= times[0] <= times[-1] < 1e-6
    assert times == sorted(times)
    assert makes_sense(machine.start)


@pytest.mark.parametrize("program", ["raise SystemExit(1)", "print('no numbers')", "print(1, 2, 3)", "pass"])
def test_a_system_that_does_not_tell_what_a_process_holds_is_taken_for_the_reference(
    monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(calibration, "_START", program)
    assert calibration._start(PROGRAM) == REFERENCE.start


def test_a_start_is_measured_though_the_environment_prints_something(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "REFERENCE", replace(REFERENCE, start=Cost(1e9, 1e9)))
    monkeypatch.setattr(calibration, "_START", f"print('hello')\n{calibration._START}")
    assert makes_sense(calibration._start(PROGRAM))


CONFIG = ExperimentConfig(
    name="x",
    dataset={"kind": "synthetic", "like": "netflix"},
    epsilons={"first": 0.1, "last": 20, "count": 16},
    held_out=1,
    runs=1,
    baselines=[],
    algorithms=["pals", "isgd"],
)


def plan(machine: Machine = REFERENCE, checksum: str = "c", users: int = 480_189) -> Plan:
    data, size = (
        DataIdentity("synthetic-netflix", "", checksum),
        Sizes(users, 17_770, 100_480_507, "expected"),
    )
    return make_plan([(CONFIG, data, (size, None))], Store(Path("/nowhere")), machine=machine)


def test_a_plan_is_of_a_machine() -> None:
    usual, twice = plan(), plan(replace(REFERENCE, kernels=2.0))
    for task in usual.left:
        assert 1.2 < twice.cost_of(task) / usual.cost_of(task) < 2
    far = tuple((size, 2 * seconds) for size, seconds in REFERENCE.lines)
    for change in ({"lines": far}, {"passes": 2.0}):
        assert plan(replace(REFERENCE, **change)).seconds(1) > 1.1 * usual.seconds(1)
    assert usual.peak_bytes(1) == plan(replace(SLOW, start=REFERENCE.start)).peak_bytes(1)
    heavy = plan(replace(REFERENCE, start=REFERENCE.start + Cost(3.0, 1e8)))
    for jobs, processes in ((1, 1), (2, 3)):
        assert heavy.peak_bytes(jobs) - usual.peak_bytes(jobs) == pytest.approx(processes * 1e8)
        assert heavy.seconds(jobs) - usual.seconds(jobs) == pytest.approx(3.0 * min(processes, 2))


def test_an_update_costs_more_where_the_other_side_is_in_no_near_cache() -> None:
    """The same ratings from fewer users: their factors are near when an item's problem is set up."""
    many, few = (
        next(each.cost_of(task) for task in each.left if task.algorithm.algorithm == "pals")
        for each in (plan(), plan(users=2_000))
    )
    assert many > 1.5 * few


def test_ratings_are_made_up_first_where_they_are_not_there() -> None:
    there, absent = plan(), plan(checksum="")
    assert there.made.seconds == 0
    assert absent.seconds(1) - there.seconds(1) == pytest.approx(absent.made.seconds)
    assert absent.made.seconds > 30
    assert absent.peak_bytes(1) >= absent.made.bytes > 1e9


@pytest.mark.parametrize("name", ["isgd", "psgd", "pals"])
def test_a_grid_of_several_groups_costs_as_many_passes(name: str) -> None:
    entry, shape = PRIVATE[name].model_validate({"algorithm": name}), Shape(10_000, 5_000, 1_000_000)
    one, three = entry.cost(shape, 16), entry.cost(shape, 48)
    assert 2 < REFERENCE.seconds(three) / REFERENCE.seconds(one) < 3.5
    assert three.bytes > one.bytes
