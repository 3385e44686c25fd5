"""Mechanisms: the only ways to a release. Each enters its step in the ledger before it draws any noise.

Every mechanism takes the `curator` of a fit, and gives a `Release`, or one for each repetition. `step` names
the step in the ledger and the stream that its noise is drawn from; `stream` names another, of which steps
take one part after the other. Every scale is larger by `grid.MARGIN` than a proof about real numbers asks for,
which pays for rounding. All raise OverspentError (a bug in the algorithm) where the ledger refuses.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.grid import MARGIN
from dpmf_cli.privacy.ledger import Entry
from dpmf_cli.privacy.noise import (
    DeviceNoise,
    KeyedNoise,
    LaneNoise,
    LaterNoise,
    Law,
    Randomiser,
    silence,
    unit_gumbel_downwards,
    unit_k_norm,
    unit_laplace,
    unit_normal,
)
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.privacy.subsampling import SampledSteps, amplified, moves


def laplace(
    step: str,
    shape: tuple[int, ...],
    *,
    sensitivity: Sensitivity,
    epsilon: NDArray[np.float64],
    curator: Curator,
    calibrated_to: Sensitivity | None = None,
    later: bool = False,
) -> Release:
    """The Laplace mechanism: Laplace(Δ/ε) noise for `shape` numbers whose joint L1 sensitivity is Δ.

    Dwork et al. 2006; Friedman et al. 2016, theorem 1 and equation 5. ε-DP, pure.

    sensitivity    the true one
    epsilon        (E,) what this step claims to spend for each ε of the grid; inf adds no noise
    calibrated_to  the sensitivity that the noise is scaled to, where a paper takes another than the true one
    later          whether the noise, always the same, is drawn when a kernel asks for it, and not kept
    """
    entry, scale = _spend(step, "Laplace", 1, 1, sensitivity, epsilon, curator, calibrated_to)
    return curator.release(entry, _drawn(unit_laplace, step, shape, scale, curator, later))


def repeated_laplace(
    step: str,
    shape: tuple[int, ...],
    *,
    repetitions: int,
    sensitivity: Sensitivity,
    epsilon: NDArray[np.float64],
    curator: Curator,
    calibrated_to: Sensitivity | None = None,
) -> Iterator[Release]:
    """The Laplace mechanism `repetitions` times, each with an equal part of `epsilon`, drawn as it is asked for.

    The whole ε is in the ledger before the first draw: what is never drawn is spent all the same.
    """
    entry, scale = _spend(step, "Laplace", 1, repetitions, sensitivity, epsilon, curator, calibrated_to)
    rng = curator.noise(step)
    return curator.releases(
        entry, (LaneNoise.drawn(unit_laplace, shape, rng, scale) for _ in range(repetitions))
    )


def gaussian(
    step: str,
    shape: tuple[int, ...],
    *,
    sensitivity: Sensitivity,
    theta: NDArray[np.float64],
    curator: Curator,
    calibrated_to: Sensitivity | None = None,
    claimed: NDArray[np.float64] | None = None,
    later: bool = False,
) -> Release:
    """The Gaussian mechanism: N(0, (Δ/θ)²) noise for `shape` numbers whose joint L2 sensitivity is Δ.

    McSherry and Mironov 2009, theorem 3 and section 5; what it costs, and in composition, is `accounting`'s.

    theta          (E,) Δ/σ for each ε of the grid; inf adds no noise
    sensitivity, calibrated_to, later  as for `laplace`
    claimed        (E,) the ε that the publication charges for the step, where that is not what the accountant says
    """
    _refuse_norm(step, "Gaussian", 2, sensitivity)
    used = calibrated_to or sensitivity
    theta = np.asarray(theta, dtype=np.float64)
    entry = curator.ledger.spend_gaussian(step, sensitivity, theta, claimed, used)
    scale = _with_margin(used.value / theta)
    return curator.release(entry, _drawn(unit_normal, step, shape, scale, curator, later))


def subsampled_laplace(
    step: str,
    shape: tuple[int, ...],
    *,
    rate: float,
    sensitivity: Sensitivity,
    epsilon: NDArray[np.float64],
    claimed: NDArray[np.float64],
    curator: Curator,
    calibrated_to: Sensitivity | None = None,
    stream: str = "",
) -> Release:
    """The Laplace mechanism on a sample of the records, each in it with probability `rate`.

    What it costs is `subsampling.amplified`; where neighbours exchange a record, its absence must be within
    `sensitivity` too.

    epsilon  (E,) ε₀ = Δ/scale, of the step on the sample as it is; inf adds no noise
    claimed  (E,) what the publication charges for the step
    """
    _refuse_norm(step, "Laplace", 1, sensitivity)
    used = calibrated_to or sensitivity
    epsilon = np.asarray(epsilon, dtype=np.float64)
    provable = amplified(_proved(epsilon, sensitivity, used), rate)
    mechanism = f"Laplace, of a part {rate:g}"
    entry = curator.ledger.spend(
        step, mechanism, sensitivity, claimed, provable, calibrated_to=used, rate=rate
    )
    scale = _with_margin(used.value / epsilon)
    return curator.release(entry, LaneNoise.drawn(unit_laplace, shape, curator.noise(stream or step), scale))


def subsampled_gaussian(
    step: str,
    shape: tuple[int, ...],
    *,
    repetitions: int,
    rate: float,
    sensitivity: Sensitivity,
    contribution: float,
    multiplier: NDArray[np.float64],
    curator: Curator,
    claimed: NDArray[np.float64] | None = None,
) -> Iterator[Release]:
    """N(0, (c·multiplier)²) noise, `repetitions` times, for sums over samples of the users, each in one with
    probability `rate`, independently. Abadi et al. 2016; what it costs is `subsampling`'s.

    The whole cost is in the ledger before the first draw: what is never drawn is spent all the same.

    contribution  c, which bounds the L2 norm of what one user adds
    sensitivity   c where neighbours are users, 2c where a user's contribution is exchanged; inf if no bound is known
    multiplier    (E,) from `subsampling.noise_multipliers`; 0 adds no noise
    claimed       (E,) the ε that the publication charges for all of it, where that is not what the accountant says
    raises        ValueError for another sensitivity
    """
    _refuse_norm(step, "Gaussian", 2, sensitivity)
    move = moves(sensitivity.neighbours) * contribution
    used = replace(sensitivity, value=move) if math.isinf(sensitivity.value) else sensitivity
    if not math.isclose(used.value, move):
        raise ValueError(
            f"{step}: a contribution of norm {contribution:g} moves by {move:g}, not {used.value:g}"
        )
    multiplier = np.asarray(multiplier, dtype=np.float64)
    sampled = SampledSteps(multiplier, rate, repetitions)
    entry = curator.ledger.spend_sampled(step, sensitivity, sampled, claimed, used)
    scale, rng = _with_margin(contribution * multiplier), curator.noise(step)
    return curator.releases(
        entry, (LaneNoise.drawn(unit_normal, shape, rng, scale) for _ in range(repetitions))
    )


def exponential_choice(
    step: str,
    candidates: int,
    *,
    choices: int | None = None,
    sensitivity: Sensitivity,
    epsilon: NDArray[np.float64],
    curator: Curator,
) -> Release:
    """The exponential mechanism among `candidates`: noise for their losses, the least of which is chosen.

    McSherry and Talwar 2007: candidate c with probability proportional to exp(−ε·loss_c/2Δ), Δ being how far any one
    loss can move (`norm` inf). −Gumbel noise of scale 2Δ/ε on each loss makes the least one have that law. Pure ε-DP.
    Only which one is the least may be released: the noisy losses are not on a grid.

    choices  how many are made side by side, each among `candidates`, from losses (choices, candidates). One record
             must move the losses of one of them alone: then all together cost what one does (parallel composition)
    """
    entry, scale = _spend(step, "exponential", math.inf, 1, sensitivity, epsilon, curator, None)
    rng = curator.noise(step)
    shape = (candidates,) if choices is None else (choices, candidates)
    noise = LaneNoise.drawn(unit_gumbel_downwards, shape, rng, 2 * scale, rounded=False)
    return curator.release(entry, noise)


def keyed_laplace(
    step: str,
    *,
    sensitivity: Sensitivity,
    epsilon: NDArray[np.float64],
    curator: Curator,
) -> Release:
    """The Laplace mechanism for any number of numbers, their noise drawn from a key when each is visited."""
    entry, scale = _spend(step, "Laplace", 1, 1, sensitivity, epsilon, curator, None)
    return curator.release(entry, KeyedNoise(int(curator.noise(step).integers(2**63)), scale))


def repeated_k_norm(
    step: str,
    shape: tuple[int, int],
    *,
    repetitions: int,
    sensitivity: Sensitivity,
    epsilon: NDArray[np.float64],
    curator: Curator,
    calibrated_to: Sensitivity | None = None,
    rounded: bool = True,
) -> Iterator[Release]:
    """The K-norm mechanism on the rows of a (rows, d) matrix, `repetitions` times with equal parts of `epsilon`.

    Hardt and Talwar 2010; Friedman et al. 2016, theorem 2. Each row gets noise with density proportional to
    exp(−ε‖b‖₂/Δ): a uniform direction times Gamma(d, Δ/ε). The norm K of the whole matrix is the *sum of the
    rows' L2 norms*, so `sensitivity` (norm 2) bounds the sum, over the rows that a neighbour moves, of how far
    each moves; the density of the matrix is then exp(−ε·K(B)/Δ), and the step is ε-DP, pure.

    rounded  False where the noisy rows never leave, and what follows from them has a grid of its own
    """
    entry, scale = _spend(step, "K-norm", 2, repetitions, sensitivity, epsilon, curator, calibrated_to)
    rng = curator.noise(step)
    return curator.releases(
        entry,
        (LaneNoise.drawn(unit_k_norm, shape, rng, scale, rounded=rounded) for _ in range(repetitions)),
    )


def redrawn_k_norm(
    step: str,
    shape: tuple[int, int],
    *,
    sensitivity: Sensitivity,
    calibrated_to: Sensitivity,
    epsilon: NDArray[np.float64],
    curator: Curator,
) -> Callable[[str], Release]:
    """K-norm noise that a publication charges once and draws anew whenever it is used.

    Zhang et al. 2018, algorithm 2, line 17. The noise of independent draws averages out: `sensitivity` is therefore
    `no_bound_known`, and nothing is provable. The function returned takes the name of a use; one name, one draw.
    """
    entry, scale = _spend(step, "K-norm, redrawn", 2, 1, sensitivity, epsilon, curator, calibrated_to)
    draws = count()
    return lambda use: curator.release(
        entry,
        LaneNoise.drawn(unit_k_norm, shape, curator.noise_again(f"{step} {use}"), scale),
        next(draws),
    )


def without_noise(
    step: str, *, sensitivity: Sensitivity, grid: int, curator: Curator
) -> Callable[[tuple[int, ...]], Release]:
    """What a publication releases as it is and does not charge for: nothing can be proved any more.

    grid  how many ε there are. The function returned gives the release of numbers of a shape, once for each
    measurement.
    """
    entry, draws = curator.ledger.charge_nothing(step, sensitivity), count()
    return lambda shape: curator.release(
        entry, LaneNoise(silence(shape), np.zeros(grid), silence), next(draws)
    )


def on_devices(
    step: str,
    randomiser: Randomiser,
    *,
    repetitions: int = 1,
    sensitivity: Sensitivity,
    epsilon: NDArray[np.float64],
    curator: Curator,
    calibrated_to: Sensitivity | None = None,
    stream: str = "",
) -> Iterator[Release]:
    """Messages that devices perturb themselves, `repetitions` times, each with an equal part of `epsilon` (E,).

    calibrated_to  how far apart two numbers may be for which the randomiser is ε-DP, where another value of one
                   rating moves more than that
    """
    entry, _ = _spend(step, randomiser.title, 1, repetitions, sensitivity, epsilon, curator, calibrated_to)
    noise = DeviceNoise(
        curator.noise(stream or step), randomiser, np.asarray(epsilon) / repetitions / (1 + MARGIN)
    )
    return curator.releases(entry, itertools.repeat(noise, repetitions))


def _spend(
    step: str,
    mechanism: str,
    norm: float,
    repetitions: int,
    sensitivity: Sensitivity,
    epsilon: NDArray[np.float64],
    curator: Curator,
    calibrated_to: Sensitivity | None,
) -> tuple[Entry, NDArray[np.float64]]:
    """Enters the repetitions as one step, and returns its entry and the scale (E,) of one repetition.

    Noise scaled to Δ′ where the sensitivity is Δ makes the step Δ/Δ′·ε-DP: that is what can be proved. A step
    whose sensitivity no bound is known for has Δ = inf, hence a provable ε of inf.
    """
    _refuse_norm(step, mechanism, norm, sensitivity)
    used = calibrated_to or sensitivity
    epsilon = np.asarray(epsilon, dtype=np.float64)
    times = f" × {repetitions}" if repetitions > 1 else ""
    provable = _proved(epsilon, sensitivity, used)
    entry = curator.ledger.spend(
        step,
        mechanism + times,
        sensitivity,
        epsilon,
        provable,
        calibrated_to=used,
        repetitions=repetitions,
    )
    return entry, _with_margin(repetitions * used.value / epsilon)


def _drawn(
    law: Law,
    step: str,
    shape: tuple[int, ...],
    scale: NDArray[np.float64],
    curator: Curator,
    later: bool,
) -> LaneNoise | LaterNoise:
    """A step's only draw."""
    if later:
        return LaterNoise(law, shape, curator.noise_later(step), scale)
    return LaneNoise.drawn(law, shape, curator.noise(step), scale)


def _with_margin(scale: NDArray[np.float64]) -> NDArray[np.float64]:
    """(E,) the scale of noise that pays for rounding too: `privacy.grid`."""
    return np.asarray(scale * (1 + MARGIN))


def _proved(epsilon: NDArray[np.float64], sensitivity: Sensitivity, used: Sensitivity) -> NDArray[np.float64]:
    """(E,) Δ/Δ′·ε of noise scaled to Δ′."""
    with np.errstate(invalid="ignore"):  # ∞ times the 0 of what nothing moves
        return np.where(np.isinf(epsilon), np.inf, epsilon * (sensitivity.value / used.value))


def _refuse_norm(step: str, mechanism: str, norm: float, sensitivity: Sensitivity) -> None:
    if sensitivity.norm != norm:
        raise ValueError(f"{step}: {mechanism} needs an L{norm} sensitivity, not L{sensitivity.norm}")
