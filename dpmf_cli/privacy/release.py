"""Releases: the one seam between clean numbers and what leaves a fit.

A `Release` is one noisy measurement. It knows what the ledger has entered for it (step, sensitivity, norm,
cost), it holds the noise, and its methods are the only ways in which that noise reaches a measured number:

    added_to   the noise is added to numbers that were measured before: sums, gradients, losses
    inside     a compiled kernel adds the noise to what it measures on its way
    sent       a device perturbs its numbers and sends them: the local model

An algorithm gets releases from `mechanisms`, which enter the ledger first. It never sees the noise itself. What is
released is on the grid of the noise (`grid`). A kernel that adds noise is a `NoisyKernel`: it registers a plain twin,
which hands every clean number over to be published. With a `Witness` the twin runs beside the kernel. So a witness
sees every clean number of a release beside what is published for it, whichever way it takes.

Where a fit is for one ε, the witness's kernel runs too, after its twin, with the noise that makes of the twin's clean
numbers what the witness has published, off the middle of a cell of the grid by `Witness.offset`. So the model goes on
with what the compiled kernel has made. It is the same where the kernel measures what its twin measures, adds the
noise and rounds to the grid; where it does not, it differs. Kernels of keyed noise cannot be told what to draw:
there, and in fits for several ε, the model goes on with what the twin has made.

Where the solution of a perturbed problem is released, and not the problem (`Publish.solutions`), a witness sees what
noise has that solution: how far that moves between neighbours at an equal solution is what its sensitivity bounds.

Two things a witness sees otherwise, or not. Covariances are released when a model predicts, anew at each
prediction, with noise that is paid for in the fit and the same each time.
Published modes use some statistics without a release (common raters of items, known users, a sample's mean).
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpmf_cli.lane_groups import Grouped
from dpmf_cli.privacy.grid import on_grid
from dpmf_cli.privacy.keyed import unit_of_cells
from dpmf_cli.privacy.ledger import Entry
from dpmf_cli.privacy.noise import AnyNoise, DeviceNoise, KeyedNoise, LaneNoise, LaterNoise

SEAL = object()
"""What `Curator` alone passes to the constructor of a release."""

Numbers = NDArray[np.floating]


@dataclass(frozen=True)
class Perturbed:
    """Problems with noise in their objectives, one for each row, whose solutions are released.

    solve     noise (m, d, lanes) to solutions (m, d, lanes)
    noise_of  solutions to the noise that has them, but for the multipliers of their constraints
    volume    () → (m, lanes): ln |det ∂noise/∂solution|, which is a part of the solutions' density
    """

    solve: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    noise_of: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    volume: Callable[[], NDArray[np.float64]]


class Publish(Protocol):
    """Publishes numbers that a plain twin has measured.

    clean   (m, …, lanes) the numbers, for each model of the group
    first   the place of the first among all numbers of the release
    """

    def __call__(self, clean: Numbers, first: int = 0, /) -> NDArray[np.float64]: ...

    def solutions(self, problems: Perturbed) -> NDArray[np.float64]:
        """(m, d, lanes) solutions of all rows, which are what is published."""
        ...


class Witness:
    """Sees what is measured beside what is published, and decides what is published instead.

    offset  where in its cell of the grid the sum of a compiled kernel comes to lie, as a part of the cell's width off
            its middle, within ±¼; None where the model goes on with what the plain twin has made
    """

    offset: float | None = None

    def published(
        self, release: "Release", lanes: slice, first: int, clean: Numbers, noisy: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """What is published of `clean` (m, …, lanes), the numbers from place `first` on, in the models `lanes`."""
        return noisy

    def solved(
        self, release: "Release", lanes: slice, problems: Perturbed, drawn: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What is published of the solutions of problems whose noise is `drawn`, and the noise that has them."""
        solutions = problems.solve(drawn)
        self.published(release, lanes, 0, problems.noise_of(solutions), solutions)
        return solutions, drawn


@dataclass(frozen=True)
class NoisyKernel:
    """A kernel that adds a release's noise itself, beside its plain twin.

    run    (group, noise, …): the compiled loop, for one group of models; `noise` is that of these models
    twin   (group, publish, …): the same in plain Python, with `publish` called for every number measured

    Calling it is refused: noise comes from `Release.inside` alone.
    """

    run: Callable[..., None]
    twin: Callable[..., None]

    def __call__(self, *_: Any, **__: Any) -> None:
        raise TypeError(
            f"{self.run.__name__} adds noise: call it by `inside` of the release that the noise is of"
        )


def noisy_kernel(twin: Callable[..., None]) -> Callable[[Callable[..., None]], NoisyKernel]:
    """Registers the plain twin of a kernel that adds noise."""
    return lambda run: NoisyKernel(run, twin)


@dataclass(frozen=True)
class Release:
    """One noisy measurement, for every ε of the grid.

    entry   what the ledger has entered for the step: what it is called, how far its numbers can move, what it costs
    draw    the number of this draw of noise, where one entry pays for several
    first   the place of the first of its numbers among those of the draw
    """

    entry: Entry
    draw: int
    first: int
    _noise: AnyNoise
    _witness: Witness | None
    _seal: object
    _lane: int = 0
    """The number of its first ε in the grid."""
    unit: NDArray[np.float64] | None = None
    """(E,) what one of its numbers is a multiple of, in units of what the entry's sensitivity is of; None for 1."""
    volume: Entry | None = None
    """What pays for the change of volume, where solutions are released."""

    def __post_init__(self) -> None:
        if self._seal is not SEAL:
            raise TypeError("a release comes from a mechanism of dpmf_cli.privacy only")

    @property
    def scale(self) -> NDArray[np.float64]:
        """(E,) the scale of the noise for each ε, in units of the measurement: public."""
        return self._added_noise.scale

    @property
    def told(self) -> NDArray[np.float64] | None:
        """(E,) the ε that devices perturb each number with; None where noise is added."""
        return self._noise.epsilons if isinstance(self._noise, DeviceNoise) else None

    @property
    def leaves(self) -> bool:
        """Whether its noisy numbers may be published: not those of which only the least is told."""
        return not isinstance(self._noise, LaneNoise) or self._noise.rounded

    def added_to(self, clean: ArrayLike) -> NDArray[np.float64]:
        """(…, E) `clean` with its noise, from numbers (…) common to all ε or (…, E) of their own."""
        return self._witnessed(clean, self._lane_noise.added_to(clean), self.first)

    def inside(self, kernel: NoisyKernel, models: Grouped[Any], *arguments: Any, **parameters: Any) -> None:
        """Runs a kernel that adds this noise to what it measures, on every group of lanes of the models, in place."""
        if not isinstance(kernel, NoisyKernel):
            raise TypeError(
                f"{kernel} has no plain twin that shows what it measures: make it a `noisy_kernel`"
            )
        for group in models.groups:
            if group.part.stop > len(self.scale):
                raise TypeError(f"{self.entry.step}: has no noise for the models {group.part}")
            noise = self._added_noise.of_models(group.part)
            if self._witness is None:
                kernel.run(group, noise, *arguments, **parameters)
            elif self._witness.offset is None or isinstance(noise, KeyedNoise) or len(noise.scale) > 1:
                publisher = _Publisher(self, group.part, noise, self._witness)
                kernel.twin(group, publisher, *arguments, **parameters)
            else:
                publish = _Noted(
                    _Publisher(self, group.part, noise, self._witness), noise, self._witness.offset
                )
                kernel.twin(copy.deepcopy(group), publish, *arguments, **parameters)
                kernel.run(group, publish.noise, *arguments, **parameters)

    def sent(self, numbers: Numbers, first: int = 0) -> NDArray[np.float64]:
        """(n, E) what arrives of numbers that devices perturb, (n,) common to all ε or (n, E) of their own.

        first  the place of the first of them among all that are sent: those before are sent before
        """
        if not isinstance(self._noise, DeviceNoise):
            raise TypeError(f"{self.entry.step}: its noise is not drawn on devices")
        return self._witnessed(numbers, self._noise.perturbed(numbers), self.first + first)

    def again(self, clean: float, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """(count,) what this release could have published of one number for its first ε: other draws of its noise."""
        noise = self._noise
        if isinstance(noise, DeviceNoise):
            return replace(noise, rng=rng).perturbed(np.full(count, clean))[:, 0]
        if isinstance(noise, KeyedNoise):
            unit = unit_of_cells(np.uint64(rng.integers(2**63)), 0, count)
        else:
            unit = noise.law((count, *noise.shape[1:]), rng).reshape(count, -1)[:, 0]
        return on_grid(clean + unit * noise.scale[0], noise.grid[:1])

    def split(self, rows: int) -> tuple["Release", "Release"]:
        """The first `rows` of its numbers and the others: one draw, whose two parts reach different places."""
        noise = self._lane_noise
        parts = slice(None, rows), slice(rows, None)
        head, tail = (replace(noise, unit=noise.unit[part]) for part in parts)
        return replace(self, _noise=head), replace(self, first=self.first + rows, _noise=tail)

    def at(self, lane: int) -> "Release":
        """The release for one ε of the grid, by its number."""
        return replace(self, _noise=self._added_noise.of_models(slice(lane, lane + 1)), _lane=lane)

    def in_units_of(self, unit: NDArray[np.float64]) -> "Release":
        """This release as one of the measurement divided by `unit` (E,), which is public."""
        noise = self._added_noise
        return replace(self, _noise=replace(noise, scale=noise.scale / unit), unit=unit)

    @property
    def _added_noise(self) -> LaneNoise | LaterNoise | KeyedNoise:
        if isinstance(self._noise, DeviceNoise):
            raise TypeError(f"{self.entry.step}: devices perturb what they send, nothing is added to it")
        return self._noise

    @property
    def _lane_noise(self) -> LaneNoise:
        if not isinstance(self._noise, LaneNoise):
            raise TypeError(
                f"{self.entry.step}: its noise can be added inside a kernel, or on devices, alone"
            )
        return self._noise

    def _witnessed(self, clean: ArrayLike, noisy: NDArray[np.float64], first: int) -> NDArray[np.float64]:
        """(…, E) what is published of `clean`, (…) or (…, E), which is `noisy` where nobody looks."""
        if self._witness is None:
            return noisy
        measured = np.asarray(clean, dtype=np.float64)
        measured = np.broadcast_to(
            measured if measured.ndim == noisy.ndim else measured[..., None], noisy.shape
        )
        lanes = slice(self._lane, self._lane + noisy.shape[-1])
        return self._witness.published(self, lanes, first, measured, noisy)

    def paid_for_volume(self, entry: Entry) -> "Release":
        """This release of solutions, whose change of volume `entry` pays for."""
        return replace(self, volume=entry)


@dataclass(frozen=True)
class _Publisher:
    """Publishes, for the models `lanes`, whose noise is `noise`, what a twin hands over."""

    release: Release
    lanes: slice
    noise: LaneNoise | KeyedNoise
    witness: Witness

    def __call__(self, clean: Numbers, first: int = 0, /) -> NDArray[np.float64]:
        clean = np.asarray(clean, dtype=np.float64)
        noisy = on_grid(clean + self._drawn(first, len(clean)), self.noise.grid)
        return self.witness.published(self.release, self.lanes, self.release.first + first, clean, noisy)

    def solutions(self, problems: Perturbed) -> NDArray[np.float64]:
        return self.solved(problems)[0]

    def solved(self, problems: Perturbed) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Solutions, and the noise that has them."""
        assert isinstance(self.noise, LaneNoise)
        drawn = self._drawn(0, len(self.noise.unit))
        return self.witness.solved(self.release, self.lanes, problems, drawn)

    def _drawn(self, first: int, count: int) -> NDArray[np.float64]:
        return np.asarray(self.noise.units(first, count)[..., None] * self.noise.scale)


class _Noted:
    """Publishes for one model, and notes the noise with which a kernel releases what was published.

    noise  its unit draw is changed for all numbers that were published, by `offset` of a cell
    """

    def __init__(self, publisher: _Publisher, noise: LaneNoise, offset: float) -> None:
        self._publisher, self._offset = publisher, offset
        self.noise = replace(noise, unit=noise.unit.copy())

    def __call__(self, clean: Numbers, first: int = 0, /) -> NDArray[np.float64]:
        out = self._publisher(clean, first)
        self._note(out - clean + self._offset * self.noise.grid, first)
        return out

    def solutions(self, problems: Perturbed) -> NDArray[np.float64]:
        solutions, noise = self._publisher.solved(problems)
        self._note(noise, 0)
        return solutions

    def _note(self, wanted: NDArray[np.float64], first: int) -> None:
        if self.noise.scale[0] > 0:
            self.noise.unit[first : first + len(wanted)] = wanted[..., 0] / self.noise.scale[0]
