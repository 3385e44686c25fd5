"""Audits of one algorithm: the settings, the run, and the findings, as plain data, each kept in one sealed file whose
name follows from everything that its outcome depends on."""

import hashlib
import itertools
import json
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from scipy.stats import binomtest

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.audit.distinguish import BitTest, LowerBound, distinguish, low_bits
from dpmf_cli.audit.fits import PASSED_ON, fitted
from dpmf_cli.audit.judge import CLOSE, NOISE_OF, Finding, Flaw, StepMoves, replay
from dpmf_cli.audit.laws import BY_CHANCE, Watch
from dpmf_cli.audit.pairs import KeptPair, Pair, hovering_pair, larger_pairs, pair_csv, tiny_pairs
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import PACKAGE
from dpmf_cli.core.streams import UnaccountedNoiseError
from dpmf_cli.core.terminal import Progress, say
from dpmf_cli.experiment.results.manifest import add_file, read_manifest
from dpmf_cli.experiment.results.store import Store, encode, sealed, unsealed, write_atomically
from dpmf_cli.experiment.running.processes import each_of
from dpmf_cli.privacy.neighbours import Mode

EPSILONS = (0.1, 1.0, 300.0)
"""The ε of replays, in turn: noise that drowns everything, noise of practical size, and hardly any noise."""

KEPT = 1000
"""Pairs with this many ratings or more are not kept as files, and are not fitted over and over."""

CLAIMED, PROVABLE = "claimed", "provable"
"""The statements that a finding can contradict."""

TRIALS = (400, 200, 100, 50)
"""The numbers of trials on each side that a budget of seconds may buy. The ceiling of 50 trials is 1.8."""

LARGE, LARGER = (13, 15, 16), (10,)
"""The powers of two at which rows of numeric pairs hover: some 12,000, 47,000 and 95,000 ratings of one item; and
some 1,500 for algorithms with `by_rating`."""


@dataclass(frozen=True)
class Settings:
    """The tests that an audit makes.

    pairs     the number of tiny pairs that are replayed: 84 are every shape on every scale for every ε
    larger    whether `larger_pairs` are replayed too
    numeric   whether pairs with up to 10⁵ ratings in a row are replayed too
    trials    the number of fits on each side, for a lower bound on ε; 0 for as many as `seconds` allow
    seconds   the CPU seconds for trials, if their number is not given; 0 for none
    draws     the number of releases of a number on each side, for a test of low bits; 0 for none
    epsilon   the ε of trials and draws
    """

    pairs: int = 84
    larger: bool = True
    numeric: bool = False
    trials: int = 0
    draws: int = 0
    epsilon: float = 1.0
    confidence: float = 0.95
    epsilons: tuple[float, ...] = EPSILONS
    seconds: float = 0.0


@dataclass(frozen=True)
class Job:
    """One algorithm to audit. `own` are pairs of the config's own data."""

    algorithm: PrivateAlgorithm
    settings: Settings
    own: tuple[Pair, ...] = ()

    @cached_property
    def name(self) -> str:
        """A name made from all that the outcome depends on: parameters, settings, data, and the package's code."""
        data = hashlib.sha256()
        for pair in self.own:
            data.update(pair_csv(KeptPair(pair, self.algorithm.neighbours, 1.0, 0)).encode())
        said = [self.algorithm.parameters(), asdict(self.settings), data.hexdigest(), _code()]
        digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
        return f"{self.algorithm.algorithm}-{digest[:16]}"


@dataclass(frozen=True)
class Audited:
    """The outcome of an audit of one algorithm.

    provable   the ε that dpmf proves, as a multiple of the claimed ε; inf if nothing is provable
    loss       the largest cost of the moves of one pair together, in units of the claimed ε
    worst_pair the text of the pair that cost most, or of the pair with the worst flaw
    """

    label: str
    algorithm: str
    neighbours: str
    mode: str
    joint: bool
    provable: float
    delta: float
    pairs: int
    loss: float
    seconds: float
    steps: tuple[StepMoves, ...]
    found: tuple[Finding, ...]
    worst_pair: str
    bound: LowerBound | None = None
    bits: tuple[BitTest, ...] = ()
    settings: Settings = field(default_factory=Settings)

    @property
    def refuted(self) -> tuple[Finding, ...]:
        """The findings that refute dpmf's own statements."""
        return tuple(each for each in self.found if each.against == PROVABLE)


def audit(job: Job) -> Audited:
    begin, used = time.perf_counter(), time.process_time()
    algorithm, settings = job.algorithm, job.settings
    provable = _provable(algorithm, settings.epsilon)
    against = CLAIMED if math.isinf(provable) else PROVABLE
    steps: dict[str, StepMoves] = {}
    findings: list[Finding] = []
    flawed: KeptPair | None = None
    alike: Counter[tuple[str, str]] = Counter()
    samples: list[tuple[str, tuple[int, int, float]]] = []
    worst, most, costliest = None, -1.0, None
    count, watch = 0, Watch()
    for pair, epsilon in _replays(job):
        seen = replay(algorithm, pair, epsilon, run=count)
        kept = KeptPair(pair, algorithm.neighbours, epsilon, count)
        count += 1
        alike.update(seen.alike.keys())
        for name, step in seen.steps.items():
            steps[name] = step.worst(steps.get(name, step))
        findings += seen.findings
        watch.add(seen.here.seen, seen.there.seen)
        samples += seen.samples.items()
        if len(pair.here) < KEPT:
            if flawed is None and any(each.flaw != Flaw.CLAIM for each in seen.findings):
                flawed = kept
            moved = [step.of_noise for step in seen.steps.values() if not math.isnan(step.of_noise)]
            cost = seen.loss if math.isfinite(seen.loss) else max(moved, default=0.0)  # if no sum is finite
            if cost > most:
                worst, most, costliest = pair, cost, kept
    of_a_fit = (time.process_time() - used) / max(2 * count, 1)
    at: dict[str, Any] = {"epsilon": settings.epsilon, "confidence": settings.confidence}
    bits: tuple[BitTest, ...] = ()
    bound = None
    if worst is not None and settings.draws:
        bits = tuple(low_bits(algorithm, worst, draws=settings.draws, **at))
    trials = settings.trials or next((n for n in TRIALS if 2 * n * of_a_fit <= settings.seconds), 0)
    if worst is not None and trials:
        moves = replay(algorithm, worst, settings.epsilon).directions
        bound = distinguish(algorithm, worst, trials=trials, allowed=settings.epsilon, directions=moves, **at)
    told_apart = []
    if bound is not None and bound.epsilon > settings.epsilon:
        refutes = PROVABLE if bound.epsilon > provable * settings.epsilon else CLAIMED
        how, size = "told apart by trials", bound.epsilon / settings.epsilon
        told_apart.append(Finding(how, "", size, "", settings.epsilon, bound.statistic, against=refutes))
    for test in bits:
        if test.epsilon > test.allowed:
            how, size = "told apart by low bits", test.epsilon / test.allowed
            told_apart.append(
                Finding(how, test.step, size, "", settings.epsilon, test.event, against=against)
            )
    shown = flawed or costliest
    return Audited(
        label=algorithm.name,
        algorithm=algorithm.algorithm,
        neighbours=algorithm.neighbours.value,
        mode=algorithm.mode.value,
        joint=algorithm.joint,
        provable=provable,
        delta=algorithm.spends_delta,
        pairs=count,
        loss=most if most >= 0 else math.nan,
        seconds=time.perf_counter() - begin,
        steps=tuple(steps.values()),
        found=(
            *_merged(findings, against, corrected=algorithm.mode is Mode.CORRECTED),
            *(
                Finding(flaw, step, pairs=pairs, said=said, against=against)
                for flaw, step, pairs, said in _of_all_pairs(samples, alike, watch, count)
            ),
            *told_apart,
        ),
        worst_pair="" if shown is None else pair_csv(shown),
        bound=bound,
        bits=bits,
        settings=settings,
    )


def _replays(job: Job) -> Iterator[tuple[Pair, float]]:
    algorithm, settings = job.algorithm, job.settings
    small = itertools.chain(tiny_pairs(algorithm.neighbours, settings.pairs), job.own)
    yield from zip(small, itertools.cycle(settings.epsilons))
    if settings.larger:
        both = settings.epsilon, max(settings.epsilons)
        yield from zip(larger_pairs(algorithm.neighbours), both, strict=True)
    if settings.numeric:
        fitted_on: PrivateAlgorithm = getattr(algorithm, "base", algorithm)
        for power in LARGER if fitted_on.by_rating else LARGE:
            yield hovering_pair(algorithm.neighbours, power), settings.epsilon


def _provable(algorithm: PrivateAlgorithm, epsilon: float) -> float:
    """The provable ε over the claimed ε of a fit for `epsilon` on hardly any ratings."""
    pair = next(tiny_pairs(algorithm.neighbours, 1))
    try:
        _, ledger = fitted(algorithm, pair.here, epsilon)
    except PASSED_ON:
        raise
    except Exception:
        return math.nan
    return float(ledger.provable[0] / ledger.claimed[0])


def _merged(findings: Iterable[Finding], against: str, *, corrected: bool) -> Iterator[Finding]:
    by_kind: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        kind = finding.flaw, finding.step, finding.said if finding.flaw == Flaw.CLAIM else ""
        by_kind.setdefault(kind, []).append(finding)
    for (flaw, _, _), same in by_kind.items():
        worst = max(same, key=lambda each: -1.0 if math.isnan(each.size) else each.size)
        refuted = CLAIMED if flaw == Flaw.CLAIM and not corrected else against
        yield replace(worst, flaw=str(flaw), pairs=len({each.pair for each in same}), against=refuted)


def _of_all_pairs(
    samples: Sequence[tuple[str, tuple[int, int, float]]],
    alike: Counter[tuple[str, str]],
    watch: Watch,
    pairs: int,
) -> Iterator[tuple[str, str, int, str]]:
    """Yields what one pair may show by chance and all pairs do not: the flaw, its step, on how many pairs, a remark.

    *Stale samples.* Of a sampled step all draws have moved at once, on too many pairs: one sample serves all draws.
    If each of K independent draws moves with probability γ, and at least one moves, all move with probability
    γ^K/(1 − (1 − γ)^K). Pairs on which no draw moves are left out, since they may not reach the step at all.

    *Shared noise.* Steps of few numbers have the noise of another step, though each pair has noise of its own.
    """
    by_step: dict[str, list[tuple[int, int, float]]] = {}
    for step, counted in samples:
        if counted[0] > 0 and counted[1] > 2:
            by_step.setdefault(step, []).append(counted)
    for step, counts in by_step.items():
        whole = sum(moved == draws for moved, draws, _ in counts)
        chance = max(rate**draws / (1 - (1 - rate) ** draws) for _, draws, rate in counts)
        if binomtest(whole, len(counts), min(chance, 1.0), alternative="greater").pvalue < BY_CHANCE:
            yield Flaw.STEPS, step, whole, f"all draws have moved at once, on {whole} of {len(counts)} pairs"
    for (step, other), times in alike.items():
        if binomtest(times, pairs, CLOSE, alternative="greater").pvalue < BY_CHANCE:
            yield Flaw.STEPS, step, times, f"{NOISE_OF} {other}, on {times} of {pairs} pairs"
    for flaw, step, said in itertools.chain(watch.found(), watch.far_draws()):
        yield flaw, step, pairs, said


@cache
def _code() -> str:
    """A checksum of the package's source, since an audit is about the code that ran."""
    code = (
        str(path.relative_to(PACKAGE)).encode() + path.read_bytes() for path in sorted(PACKAGE.rglob("*.py"))
    )
    return hashlib.sha256(b"".join(code)).hexdigest()


_RECORD = TypeAdapter(Audited)
"""Reads an outcome from plain data, in which infinity and nan are strings, since JSON has neither."""

FORMAT = 1
"""The version of the format. It is raised when the meaning of a file changes."""

FOLDER = "audit"
"""The folder of the results folder in which all audits are kept."""


def known(results: Path, job: Job) -> Audited | None:
    """The kept outcome of a job; None if there is none, or it is damaged."""
    body = _body(_path(results, job))
    try:
        return None if body is None else _RECORD.validate_python(body["audit"])
    except (KeyError, ValueError):
        return None


def audited_and_kept(job: Job, results: Path) -> Audited:
    """Runs a job in any process, keeps its outcome and returns it. Raises DpmfError for noise that bypasses the
    ledger."""
    try:
        outcome = audit(job)
    except UnaccountedNoiseError as error:
        raise DpmfError(f"{job.algorithm.name}: {error}") from None
    body = sealed(_plain({"format": FORMAT, "audit": asdict(outcome)}))
    write_atomically(_path(results, job), encode(body))
    return outcome


def outcomes_of(jobs: Sequence[Job], title: str, results: Path, processes: int) -> dict[str, Audited]:
    """The outcome of each job, by its name; those in the results folder are not run again."""
    Store(results).prepare()
    left = [job for job in jobs if known(results, job) is None]
    say(f"{title}: {len(jobs)} algorithms to audit, {len(jobs) - len(left)} done before")
    with Progress(title, len(left), float(len(left))) as progress:
        for done in each_of(partial(audited_and_kept, results=results), left, min(processes, len(left))):
            progress.finished(done.label, 1.0)
    return {job.name: outcome for job in jobs if (outcome := known(results, job)) is not None}


def keep_for_experiment(folder: Path, outcomes: list[Audited], config: str) -> None:
    """Keeps the audits of a config's entries in its results folder, for tables; `config` is the config's hash."""
    body = {"format": FORMAT, "config_sha256": config, "audits": [asdict(each) for each in outcomes]}
    add_file(folder / "audit.json", encode(sealed(_plain(body))))


def of_experiment(folder: Path) -> dict[str, Audited]:
    """The audits of a config's entries, by their label; none if the results are of another config."""
    body = _body(folder / "audit.json")
    try:
        if body is None or body["config_sha256"] != read_manifest(folder)["config_sha256"]:
            return {}
        return {each.label: each for each in map(_RECORD.validate_python, body["audits"])}
    except (DpmfError, KeyError, TypeError, ValueError):
        return {}


def _path(results: Path, job: Job) -> Path:
    return results / FOLDER / "outcomes" / f"{job.name}.json"


def _body(path: Path) -> dict[str, Any] | None:
    """The contents of a file; None if it is missing, damaged, or of another version."""
    try:
        body = unsealed(path.read_bytes())
    except OSError:
        return None
    return body if body is not None and body["format"] == FORMAT else None


def _plain(value: Any) -> Any:
    """The value, with nan as the string "nan", since JSON has no nan."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return "nan" if isinstance(value, float) and math.isnan(value) else value
