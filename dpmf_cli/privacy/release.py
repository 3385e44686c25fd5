"""Releases: the one interface between clean numbers and the numbers that leave a fit.

A `Release` is one noisy measurement. It knows its entry in the ledger (step, sensitivity, norm, cost) and holds the
noise. Its methods are the only ways in which that noise reaches a measured number:

    added_to   the noise is added to numbers that were measured before: sums, gradients, losses
    inside     a compiled kernel adds the noise to the numbers that it measures on its way
    sent       a device perturbs its numbers and sends them: the local model

An algorithm gets releases from `mechanisms`, which enter the step in the ledger first, and never sees the noise. A
kernel that adds noise is a `NoisyKernel`, which registers a Python reference that hands over every clean number to be
published. With a `Recorder` the reference runs beside the kernel, so that the recorder sees every clean number of a
release beside its published number, whichever of the three ways it takes.

In a fit for one ε, the compiled kernel runs after its reference, with noise that turns the reference's clean numbers
into the numbers that the recorder published, off the middle of a cell of the grid by `Recorder.offset`. The model
then goes on with the kernel's results, which equal those of the reference only if the kernel measures the same
numbers, adds the noise and rounds to the grid. With kernels of keyed noise, which cannot be told what to draw, and in
fits for several ε, the model goes on with the reference's results.

Some methods release the solution of a perturbed problem, and not the problem (`Publish.solutions`). The recorder then
sees the noise that gives that solution. The sensitivity bounds how far it moves between neighbours at one solution.

There are two exceptions. Covariances are released at each prediction, or once for several settings; the fit pays for
their noise, which is the same each time. Published modes use some statistics without a release, and a recorder does
not see these (common raters of items, known users, a sample's mean).
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpmf_cli.core.arrays import Doubles, Floats
from dpmf_cli.core.compiled.lane_groups import Grouped
from dpmf_cli.privacy.ledger import Entry
from dpmf_cli.privacy.noise import AnyNoise, DeviceNoise, KeyedNoise, LaneNoise, LaterNoise

SEAL = object()
"""The seal that only `Curator` passes to the constructor of a release."""

Numbers = Floats


@dataclass(frozen=True)
class Perturbed:
    """Problems with noise in their objectives, one for each row, whose solutions are released.

    solve     maps noise (m, d, lanes) to solutions (m, d, lanes)
    noise_of  maps solutions to the noise that gives them, apart from the multipliers of their constraints
    volume    () → (m, lanes): ln |det ∂noise/∂solution|; the determinant is a factor of the solutions' density
    """

    solve: Callable[[Doubles], Doubles]
    noise_of: Callable[[Doubles], Doubles]
    volume: Callable[[], Doubles]


class Recorder:
    """Sees the measured numbers of a fit beside the published ones. A subclass records them, or publishes others.

    offset  how far from the middle of its grid cell the sum of a compiled kernel lies, as a fraction of the cell's
            width, within ±¼; None if the model goes on with the Python reference's results
    """

    offset: float | None = None

    def published(
        self, release: "Release", lanes: slice, first: int, clean: Numbers, noisy: Doubles
    ) -> Doubles:
        """What is published for `clean` (m, …, lanes), from position `first` on, in the models `lanes`."""
        return noisy

    def solved(
        self, release: "Release", lanes: slice, problems: Perturbed, drawn: Doubles
    ) -> tuple[Doubles, Doubles]:
        """The solutions to publish for problems whose noise is `drawn`, and the noise that gives them."""
        solutions = problems.solve(drawn)
        self.published(release, lanes, 0, problems.noise_of(solutions), solutions)
        return solutions, drawn


@dataclass(frozen=True)
class NoisyKernel:
    """A kernel that adds a release's noise itself, and its Python reference.

    run        (group, noise, …): the compiled loop, for one group of models; `noise` is the noise of these models
    reference  (group, publish, …): the same in plain Python; it calls `publish` for every number that it measures

    Calling the kernel itself raises TypeError: its noise comes from `Release.inside` only.
    """

    run: Callable[..., None]
    reference: Callable[..., None]

    def __call__(self, *_: Any, **__: Any) -> None:
        how = "run it by `Release.inside`, on the release that holds the noise"
        raise TypeError(f"{self.run.__name__} adds noise: {how}")


def noisy_kernel(reference: Callable[..., None]) -> Callable[[Callable[..., None]], NoisyKernel]:
    return lambda run: NoisyKernel(run, reference)


@dataclass(frozen=True)
class Release:
    """One noisy measurement, for every ε of the grid.

    entry   the step's entry in the ledger: its name, how far its numbers can move, its cost
    draw    the index of this noise draw, where one entry pays for several
    first   the position of its first number among the numbers of the draw
    """

    entry: Entry
    draw: int
    first: int
    _noise: AnyNoise
    _recorder: Recorder | None
    _seal: object
    _lane: int = 0
    """The index of its first ε in the grid."""
    unit: Doubles | None = None
    """(E,) the unit of its numbers, in the unit of the entry's sensitivity; None for 1."""
    volume: Entry | None = None
    """The entry that pays for the change of volume, where solutions are released."""

    def __post_init__(self) -> None:
        if self._seal is not SEAL:
            raise TypeError("only a mechanism of dpmf_cli.privacy can make a release")

    @property
    def scale(self) -> Doubles:
        """(E,) the scale of the noise for each ε, in units of the measurement: public."""
        return self._added_noise.scale

    @property
    def told(self) -> Doubles | None:
        """(E,) the ε with which devices perturb each number; None where noise is added."""
        return self._noise.epsilons if isinstance(self._noise, DeviceNoise) else None

    @property
    def leaves(self) -> bool:
        """Whether its noisy numbers may be published; not if only the index of the least may be told."""
        return not isinstance(self._noise, LaneNoise) or self._noise.rounded

    def added_to(self, clean: ArrayLike) -> Doubles:
        """(…, E) `clean` with its noise; `clean` is (…), common to all ε, or (…, E)."""
        return self._recorded(clean, self._lane_noise.added_to(clean), self.first)

    def inside(self, kernel: NoisyKernel, models: Grouped[Any], *arguments: Any, **parameters: Any) -> None:
        """Runs a kernel on every group of lanes of the models, in place; it adds this noise to what it measures."""
        if not isinstance(kernel, NoisyKernel):
            wrong = "has no Python reference, so no recorder sees what it measures: make it a `noisy_kernel`"
            raise TypeError(f"{kernel} {wrong}")
        for group in models.groups:
            if group.part.stop > len(self.scale):
                raise TypeError(f"{self.entry.step}: the release has no noise for the models {group.part}")
            noise = self._added_noise.of_models(group.part)
            recorder = self._recorder
            if recorder is None:
                kernel.run(group, noise, *arguments, **parameters)
            elif recorder.offset is None or isinstance(noise, KeyedNoise) or len(noise.scale) > 1:
                kernel.reference(group, Publish(self, group.part, noise), *arguments, **parameters)
            else:
                publisher = Publish(self, group.part, noise, recorder.offset)
                kernel.reference(copy.deepcopy(group), publisher, *arguments, **parameters)
                kernel.run(group, publisher.noted, *arguments, **parameters)

    def sent(self, numbers: Numbers, first: int = 0) -> Doubles:
        """(n, E) the received messages for numbers that devices perturb: (n,), common to all ε, or (n, E).

        first  the position of the first number among all that are sent; numbers are sent in the order of positions
        """
        if not isinstance(self._noise, DeviceNoise):
            raise TypeError(f"{self.entry.step}: the noise of this release is not drawn on devices")
        return self._recorded(numbers, self._noise.perturbed(numbers), self.first + first)

    def again(self, clean: float, count: int, rng: np.random.Generator) -> Doubles:
        """(count,) numbers that this release could have published for `clean` at its first ε: fresh draws."""
        if isinstance(self._noise, DeviceNoise):
            return replace(self._noise, rng=rng).perturbed(np.full(count, clean))[:, 0]
        noise = self._noise.of_models(slice(0, 1))
        return noise.drawn_again(count, rng).added_to(np.full(count, clean))[:, 0]

    def split(self, rows: int) -> tuple["Release", "Release"]:
        """The release of its first `rows` numbers and that of the rest: two parts of one noise draw."""
        noise = self._lane_noise
        parts = slice(None, rows), slice(rows, None)
        head, tail = (replace(noise, unit=noise.unit[part]) for part in parts)
        return replace(self, _noise=head), replace(self, first=self.first + rows, _noise=tail)

    def at(self, lane: int) -> "Release":
        """The release for one ε of the grid, by its index."""
        noise = self._added_noise.of_models(slice(lane, lane + 1))
        return replace(self, _noise=noise, _lane=self._lane + lane)

    def in_units_of(self, unit: Doubles) -> "Release":
        """This release for the measurement divided by `unit` (E,), which is public."""
        noise = self._added_noise
        return replace(self, _noise=replace(noise, scale=noise.scale / unit), unit=unit)

    def paid_for_volume(self, entry: Entry) -> "Release":
        """This release of solutions with `entry` as the one that pays for the change of volume."""
        return replace(self, volume=entry)

    @property
    def _added_noise(self) -> LaneNoise | LaterNoise | KeyedNoise:
        if isinstance(self._noise, DeviceNoise):
            raise TypeError(f"{self.entry.step}: devices perturb what they send; no noise can be added to it")
        return self._noise

    @property
    def _lane_noise(self) -> LaneNoise:
        if not isinstance(self._noise, LaneNoise):
            wrong = "the noise of this release can only be added inside a kernel or on devices"
            raise TypeError(f"{self.entry.step}: {wrong}")
        return self._noise

    def _recorded(self, clean: ArrayLike, noisy: Doubles, first: int) -> Doubles:
        """(…, E) the numbers to publish for `clean`, (…) or (…, E); without a recorder these are `noisy`."""
        if self._recorder is None:
            return noisy
        measured = np.asarray(clean, dtype=np.float64)
        if measured.ndim < noisy.ndim:
            measured = measured[..., None]
        measured = np.broadcast_to(measured, noisy.shape)
        lanes = slice(self._lane, self._lane + noisy.shape[-1])
        return self._recorder.published(self, lanes, first, measured, noisy)


class Publish:
    """Publishes the numbers that a Python reference has measured for the models of `part`, with their `noise`.

    noted  the noise with which a kernel of one model releases the published numbers: the unit draw of every number
           leads to what was published for it, off by `offset` of a cell
    """

    def __init__(
        self, release: Release, part: slice, noise: LaneNoise | KeyedNoise, offset: float | None = None
    ) -> None:
        self._release, self._noise, self._offset = release, noise, offset
        self._lanes = slice(part.start + release._lane, part.stop + release._lane)
        if isinstance(noise, LaneNoise) and offset is not None:
            self.noted = replace(noise, unit=noise.unit.copy())

    def __call__(self, clean: Numbers, first: int = 0, /) -> Doubles:
        """What is published for `clean` (m, …, lanes), the numbers from position `first` on."""
        clean, release = np.asarray(clean, dtype=np.float64), self._release
        noisy = self._noise.of_numbers(first, len(clean)).added_to(clean)
        assert release._recorder is not None
        out = release._recorder.published(release, self._lanes, release.first + first, clean, noisy)
        if self._offset is not None:
            self._note(out - clean + self._offset * self._noise.grid, first)
        return out

    def solutions(self, problems: Perturbed) -> Doubles:
        """The published solutions (m, d, lanes) of all rows."""
        assert isinstance(self._noise, LaneNoise)
        assert self._release._recorder is not None
        drawn = np.asarray(self._noise.unit[..., None] * self._noise.scale)
        solutions, noise = self._release._recorder.solved(self._release, self._lanes, problems, drawn)
        if self._offset is not None:
            self._note(noise, 0)
        return solutions

    def _note(self, wanted: Doubles, first: int) -> None:
        if self.noted.scale[0] > 0:
            self.noted.unit[first : first + len(wanted)] = wanted[..., 0] / self.noted.scale[0]
