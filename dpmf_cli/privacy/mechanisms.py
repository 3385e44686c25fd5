"""The mechanisms, which are the only ways to a release: each enters its step in the ledger before it draws any noise.

Every mechanism takes the `curator` of a fit, and returns a `Release`, or one for each repetition. `step` names the
step in the ledger and the stream that its noise is drawn from. `stream` names another stream instead, which several
steps may share: each goes on where the one before stopped. Every scale is larger by `grid.MARGIN` than a proof about
real numbers asks for, which pays for rounding. All mechanisms raise OverspentError (a bug in the algorithm) if the
ledger refuses the step. Common parameters:

    sensitivity  the true sensitivity; noise is scaled to its `of_noise`
    epsilon      (E,) the ε that a step claims to spend, for each ε of the grid; inf adds no noise
    claimed      (E,) the ε that a publication charges for all repetitions, if it differs from the accountant's
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, repeat

import numpy as np

from dpmf_cli.core.arrays import Doubles
from dpmf_cli.privacy import noise as laws
from dpmf_cli.privacy.accounting import SampledSteps, amplified, moves
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.grid import MARGIN
from dpmf_cli.privacy.ledger import Entry
from dpmf_cli.privacy.local_mechanisms import LocalMechanism
from dpmf_cli.privacy.noise import DeviceNoise, KeyedNoise, LaneNoise, LaterNoise, Law
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity


def laplace(
    step: str,
    shape: tuple[int, ...],
    *,
    sensitivity: Sensitivity,
    epsilon: Doubles,
    curator: Curator,
    later: bool = False,
    rate: float | None = None,
    claimed: Doubles | None = None,
    stream: str = "",
) -> Release:
    """The Laplace mechanism: Laplace(Δ/ε) noise for `shape` numbers whose joint L1 sensitivity is Δ.

    Dwork et al. 2006; Friedman et al. 2016, theorem 1 and equation 5. ε-DP, pure. With a `rate`, the probability with
    which each record is in the sample that it looks at, it costs `accounting.amplified`, and `epsilon` is ε₀ =
    Δ/scale, the ε without the amplification by sampling. Where neighbours exchange a record, leaving the record out
    must move the measurement by `sensitivity` at most, too.

    later    whether the noise is drawn when a kernel asks for it, the same each time, and is not kept
    claimed  (E,) the ε that the publication claims for a step on a sample; only with a `rate`
    stream   the name of the noise's random stream, if it is not the step's
    """
    if claimed is not None and rate is None:
        raise ValueError(f"{step}: only a step on a sample claims another ε than it spends")
    mechanism = "Laplace" if rate is None else f"Laplace, of a part {rate:g}"
    entry, scale = _spend(step, mechanism, 1, sensitivity, epsilon, curator, claimed=claimed, rate=rate)
    return curator.release(entry, _drawn(laws.unit_laplace, stream or step, shape, scale, curator, later))


def repeated_laplace(
    step: str,
    shape: tuple[int, ...],
    *,
    repetitions: int,
    sensitivity: Sensitivity,
    epsilon: Doubles,
    curator: Curator,
) -> Iterator[Release]:
    """The Laplace mechanism `repetitions` times, each with an equal part of `epsilon`, drawn when it is asked for.

    All of ε is in the ledger before the first draw: draws that are never made are charged too.
    """
    entry, scale = _spend(step, "Laplace", 1, sensitivity, epsilon, curator, repetitions=repetitions)
    return _repeated(laws.unit_laplace, entry, shape, scale, curator, repetitions)


def gaussian(
    step: str,
    shape: tuple[int, ...],
    *,
    sensitivity: Sensitivity,
    theta: Doubles,
    curator: Curator,
    claimed: Doubles | None = None,
    later: bool = False,
) -> Release:
    """The Gaussian mechanism: N(0, (Δ/θ)²) noise for `shape` numbers whose joint L2 sensitivity is Δ.

    McSherry and Mironov 2009, theorem 3 and section 5. `accounting` gives its cost, alone and in composition.

    theta  (E,) Δ/σ for each ε of the grid; inf adds no noise
    later  as for `laplace`
    """
    _refuse_norm(step, "Gaussian", 2, sensitivity)
    theta = np.asarray(theta, dtype=np.float64)
    entry = curator.ledger.spend(step, "Gaussian", sensitivity, claimed, theta=theta)
    scale = (1 + MARGIN) * (sensitivity.of_noise.value / theta)
    return curator.release(entry, _drawn(laws.unit_normal, step, shape, scale, curator, later))


def subsampled_gaussian(
    step: str,
    shape: tuple[int, ...],
    *,
    repetitions: int,
    rate: float,
    sensitivity: Sensitivity,
    contribution: float,
    multiplier: Doubles,
    curator: Curator,
) -> Iterator[Release]:
    """N(0, (c·multiplier)²) noise, `repetitions` times, for sums over samples of the users.

    Each user is in a sample with probability `rate`, independently. Abadi et al. 2016; `accounting` gives the cost.
    The complete cost is in the ledger before the first draw: draws that are never made are charged too.

    contribution  c, a bound on the L2 norm of one user's contribution
    sensitivity   c where neighbours are users, 2c where a user's contribution is exchanged; inf if no bound is known
    multiplier    (E,) from `accounting.noise_multipliers`; 0 adds no noise
    """
    _refuse_norm(step, "Gaussian", 2, sensitivity)
    move = moves(sensitivity.neighbours) * contribution
    if math.isinf(sensitivity.value):
        sensitivity = replace(sensitivity, calibrated_to=replace(sensitivity, value=move))
    if not math.isclose(sensitivity.of_noise.value, move):
        wrong = (
            f"a contribution of norm {contribution:g} moves by {move:g}, not {sensitivity.of_noise.value:g}"
        )
        raise ValueError(f"{step}: {wrong}")
    multiplier = np.asarray(multiplier, dtype=np.float64)
    sampled = SampledSteps(multiplier, rate, repetitions)
    entry = curator.ledger.spend(step, sampled.mechanism, sensitivity, sampled=sampled)
    scale = (1 + MARGIN) * (contribution * multiplier)
    return _repeated(laws.unit_normal, entry, shape, scale, curator, repetitions)


def exponential_choice(
    step: str,
    candidates: int,
    *,
    choices: int | None = None,
    sensitivity: Sensitivity,
    epsilon: Doubles,
    curator: Curator,
) -> Release:
    """The exponential mechanism among `candidates`: noise for their losses. The smallest noisy loss is chosen.

    McSherry and Talwar 2007: candidate c is chosen with probability proportional to exp(−ε·loss_c/2Δ), where Δ is how
    far any one loss can move (`norm` inf). −Gumbel noise of scale 2Δ/ε on each loss gives the index of the smallest
    noisy loss that law. Pure ε-DP. Only this index may be released: the noisy losses are not on a grid.

    choices  the number of choices that are made side by side, each among `candidates`, from losses
             (choices, candidates). One record must move the losses of one choice only; then all choices together cost
             as much as one (parallel composition)
    """
    entry, scale = _spend(step, "exponential", math.inf, sensitivity, epsilon, curator)
    shape = (candidates,) if choices is None else (choices, candidates)
    return next(_repeated(laws.unit_gumbel_downwards, entry, shape, 2 * scale, curator, rounded=False))


def keyed_laplace(step: str, *, sensitivity: Sensitivity, epsilon: Doubles, curator: Curator) -> Release:
    """The Laplace mechanism for any number of numbers. Each one's noise is computed from a key when it is visited."""
    entry, scale = _spend(step, "Laplace", 1, sensitivity, epsilon, curator)
    return curator.release(entry, KeyedNoise(int(curator.noise(step).integers(2**63)), scale))


def repeated_k_norm(
    step: str,
    shape: tuple[int, int],
    *,
    repetitions: int,
    sensitivity: Sensitivity,
    epsilon: Doubles,
    curator: Curator,
    rounded: bool = True,
) -> Iterator[Release]:
    """The K-norm mechanism on the rows of a (rows, d) matrix, `repetitions` times with equal parts of `epsilon`.

    Hardt and Talwar 2010; Friedman et al. 2016, theorem 2. Each row gets noise with density proportional to
    exp(−ε‖b‖₂/Δ): a uniform direction times Gamma(d, Δ/ε). The norm K of the complete matrix is the *sum of the rows'
    L2 norms*. So `sensitivity` (norm 2) bounds the sum of the L2 moves of all rows that move between neighbours. The
    density of the matrix is then proportional to exp(−ε·K(B)/Δ), and the step is ε-DP, pure.

    rounded  False if the noisy rows never leave, and the numbers that follow from them have a grid of their own
    """
    entry, scale = _spend(step, "K-norm", 2, sensitivity, epsilon, curator, repetitions)
    return _repeated(laws.unit_k_norm, entry, shape, scale, curator, repetitions, rounded=rounded)


def redrawn_k_norm(
    step: str, shape: tuple[int, int], *, sensitivity: Sensitivity, epsilon: Doubles, curator: Curator
) -> Callable[[str], Release]:
    """K-norm noise that a publication charges once, but draws anew whenever it is used.

    Zhang et al. 2018, algorithm 2, line 17. Because the noise of independent draws averages out, `sensitivity` is
    `no_bound_known`, and nothing is provable. The returned function takes the name of a use: one name is one draw.
    """
    entry, scale = _spend(step, "K-norm, redrawn", 2, sensitivity, epsilon, curator)
    draws = count()

    def drawn(use: str) -> Release:
        unit = laws.unit_k_norm(shape, curator.noise_again(f"{step} {use}"))
        return curator.release(entry, LaneNoise(unit, scale, laws.unit_k_norm), next(draws))

    return drawn


def without_noise(
    step: str, *, sensitivity: Sensitivity, grid: int, curator: Curator
) -> Callable[[tuple[int, ...]], Release]:
    """A release without noise, for which the publication charges nothing, so that nothing can be proved for the fit.

    The returned function gives the release of numbers of a shape, once for each measurement. `grid`: the number of ε.
    """
    entry, draws = curator.ledger.charge_nothing(step, sensitivity), count()

    def drawn(shape: tuple[int, ...]) -> Release:
        return curator.release(entry, LaneNoise(laws.silence(shape), np.zeros(grid)), next(draws))

    return drawn


def on_devices(
    step: str,
    randomiser: LocalMechanism,
    *,
    repetitions: int = 1,
    sensitivity: Sensitivity,
    epsilon: Doubles,
    curator: Curator,
    stream: str = "",
) -> Iterator[Release]:
    """Messages that devices perturb themselves, `repetitions` times, each with an equal part of `epsilon` (E,).

    If a changed value of one rating moves the numbers further than the largest distance for which the randomiser is
    ε-DP, `sensitivity` is calibrated to that distance.
    """
    entry, _ = _spend(step, randomiser.title, 1, sensitivity, epsilon, curator, repetitions)
    each = np.asarray(epsilon) / repetitions / (1 + MARGIN)
    noise = DeviceNoise(curator.noise(stream or step), randomiser, each)
    return curator.releases(entry, repeat(noise, repetitions))


def _spend(
    step: str,
    mechanism: str,
    norm: float,
    sensitivity: Sensitivity,
    epsilon: Doubles,
    curator: Curator,
    repetitions: int = 1,
    *,
    claimed: Doubles | None = None,
    rate: float | None = None,
) -> tuple[Entry, Doubles]:
    """Enters the repetitions as one step. Returns its entry, and the scale (E,) of the noise of one repetition.

    If the noise is scaled to Δ′ and the sensitivity is Δ, the step is Δ/Δ′·ε-DP, which is its provable ε (`amplified`
    on a sample). If no bound on the sensitivity is known, Δ is inf, and so is the provable ε.
    """
    _refuse_norm(step, mechanism, norm, sensitivity)
    used, epsilon = sensitivity.of_noise.value, np.asarray(epsilon, dtype=np.float64)
    with np.errstate(invalid="ignore"):  # ∞ times 0, for a measurement that nothing moves
        proved = np.where(np.isinf(epsilon), np.inf, epsilon * (sensitivity.value / used))
    entry = curator.ledger.spend(
        step,
        mechanism + (f" × {repetitions}" if repetitions > 1 else ""),
        sensitivity,
        epsilon if claimed is None else claimed,
        proved if rate is None else amplified(proved, rate),
        repetitions=repetitions,
        rate=rate,
    )
    return entry, (1 + MARGIN) * (repetitions * used / epsilon)


def _repeated(
    law: Law,
    entry: Entry,
    shape: tuple[int, ...],
    scale: Doubles,
    curator: Curator,
    repetitions: int = 1,
    *,
    rounded: bool = True,
) -> Iterator[Release]:
    rng = curator.noise(entry.step)
    noises = (LaneNoise(law(shape, rng), scale, law, rounded) for _ in range(repetitions))
    return curator.releases(entry, noises)


def _drawn(
    law: Law, stream: str, shape: tuple[int, ...], scale: Doubles, curator: Curator, later: bool
) -> LaneNoise | LaterNoise:
    if later:
        return LaterNoise(law, shape, curator.noise_later(stream), scale)
    return LaneNoise(law(shape, curator.noise(stream)), scale, law)


def _refuse_norm(step: str, mechanism: str, norm: float, sensitivity: Sensitivity) -> None:
    if sensitivity.norm != norm:
        raise ValueError(f"{step}: {mechanism} needs an L{norm} sensitivity, not L{sensitivity.norm}")
