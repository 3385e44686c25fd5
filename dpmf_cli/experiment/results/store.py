"""The store: one file for each task result, written atomically and named by what the result depends on.

    results/tasks/<dataset>/<algorithm>-<hash of settings>/fold03-run1-<hash of its ε grid>.json

Because its name covers everything that its content depends on, a file is never changed, two runs at the same time
write the same bytes, and a refined grid adds files beside the old ones. For a secret seed the name covers the word
`secret` and the experiment's name instead of the seed: a run continues with the results of that experiment, and of
two runs at the same time, only one computes each fit.

A file ends in a checksum. It is accepted only if its bytes are exactly those that would be written for its content.
"""

import contextlib
import errno
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.core import __version__
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import WRITING, flush_folder, read_file, remove, sha256, sweep, write_whole
from dpmf_cli.evaluation.metrics import BESIDE, GROUPED
from dpmf_cli.experiment.results.task import PER_EPSILON, Task, TaskResult, hash_of

FORMAT = 1
"""The format of result files. This number goes up when their meaning changes."""

_RESULT = TypeAdapter(TaskResult)

NAMED = 10
"""The largest number of damaged files that are named one by one."""


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file so that it exists either completely or not at all: temporary file, fsync, rename. Raises
    DpmfError where the folder cannot be written or the disk is full."""
    with errors_named(path):
        write_whole(path, data)


@contextlib.contextmanager
def errors_named(path: Path) -> Iterator[None]:
    """A context in which an OSError becomes a DpmfError that says what cannot be written, and the fix."""
    try:
        yield
    except OSError as error:
        fix = "make the folder writable, or name another with --results"
        if error.errno == errno.ENOSPC:
            fix = "free some space and run the same command again"
        what = f"{path}: cannot be written: {error.strerror or error}"
        raise DpmfError(f"{what}; {fix}. Finished tasks are kept") from None


def encode(value: Any) -> bytes:
    """Strict, canonical JSON: sorted keys, shortest exact floats, infinities as the string "inf".

    Parts of a path that are not text are escaped as in JSON.
    """
    return _canonical(_finite(value))


def _canonical(plain: Any) -> bytes:
    """The same as `encode`, for data without infinities. Raises ValueError if there are any."""
    text = json.dumps(plain, sort_keys=True, allow_nan=False, ensure_ascii=False)
    return f"{text}\n".encode(errors="backslashreplace")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


class DamagedError(Exception):
    """Why a task's file is not what dpmf writes there."""


def sealed(body: dict[str, Any]) -> dict[str, Any]:
    """`body` with the checksum of its content."""
    return {**body, "sha256": sha256(encode(body))}


@dataclass(frozen=True)
class Store:
    """The results folder.

    warn       called with a message about each damaged file, or about many; their tasks count as not done
    set_aside  whether to also rename damaged files to `….damaged`, so that each is reported only once
    damaged    the damaged files that were found
    """

    root: Path
    warn: Callable[[str], None] = lambda message: None
    set_aside: bool = False
    damaged: list[Path] = field(default_factory=list, init=False, repr=False, compare=False)
    _off: list[tuple[Path, str]] = field(default_factory=list, init=False, repr=False, compare=False)

    def prepare(self, *folders: Path) -> None:
        """Prepares the results folder and its `folders` for writing, and removes half-written files of killed runs.
        Raises DpmfError if results could not be kept, before any work is done."""
        probe = self.root / f"{WRITING}{os.getpid()}"
        write_atomically(probe, b"")
        remove(probe)
        for folder in (*folders, self.root / "tasks"):
            self._check_inside(folder)
        for folder in (self.root, *folders, *self.root.glob("tasks/*/*")):
            sweep(folder)

    def _check_inside(self, folder: Path) -> None:
        """Raises DpmfError if a link leads out of the results folder."""
        place = folder.resolve()
        if not place.is_relative_to(self.root.resolve()):
            fix = "remove the link, or name the folder where the results belong with --results"
            raise DpmfError(f"{folder}: leads out of {self.root}/, to {place}; {fix}")

    def read_each(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, dict[float, TaskResult]]]:
        try:
            for task, paths in self.paths_of_each(tasks):
                known: dict[float, TaskResult] = {}
                for path in paths:
                    try:
                        result = read_result(path, self.root, type(task.algorithm))
                    except FileNotFoundError:  # another run has set the file aside in the meantime
                        continue
                    except OSError as error:
                        what = f"{path}: cannot be read: {error.strerror or error}"
                        fix = "make it readable, or delete it and run its config again"
                        raise DpmfError(f"{what}; {fix}") from None
                    except DamagedError as error:
                        # At once: a run at the same time may soon write a sound one in its place.
                        if self.set_aside:
                            with contextlib.suppress(FileNotFoundError):  # another run was faster
                                os.replace(path, path.with_suffix(".damaged"))
                        self._off.append((path, str(error)))
                        self.damaged.append(path)
                    else:
                        known.update(dict.fromkeys(result.epsilons, result))
                yield task, known
        finally:
            self._end_with_damaged()

    def missing(self, task: Task) -> Task | None:
        """The task with only those ε that have no result yet, or None where all have one."""
        return next(self.left([task]), None)

    def left(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """The tasks of which some ε have no result yet, each with only these ε."""
        for task, known in self.read_each(tasks):
            epsilons = tuple(epsilon for epsilon in task.epsilons if epsilon not in known)
            if epsilons:
                yield replace(task, epsilons=epsilons)

    def write(self, task: Task, result: TaskResult) -> None:
        path = self.path(task)
        self._check_inside(path.parent)
        write_atomically(path, content(task, result))

    def path(self, task: Task) -> Path:
        names = task.data.key, task.algorithm.algorithm, task.settings_hash
        return self.root / _place(*names, task.cut.fold, task.run, task.epsilons)

    def paths_of_each(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, list[Path]]]:
        """Each task with the existing files for its fold and run, of any ε. Lists a folder of several tasks once."""
        listed: dict[Path, dict[str, list[Path]]] = {}
        for task in tasks:
            path = self.path(task)
            if path.parent not in listed:  # tasks of one folder follow each other
                files = sorted(path.parent.glob("*.json"), key=attrgetter("name"))
                listed = {path.parent: {stem: list(group) for stem, group in groupby(files, _stem)}}
            yield task, listed[path.parent].get(_stem(path), [])

    def _end_with_damaged(self) -> None:
        """Warns of each damaged file that was found, or of many in one line."""
        for folder in {path.parent for path, _ in self._off} if self.set_aside else ():
            flush_folder(folder)
        if len(self._off) > NAMED:
            some = ", ".join(path.name for path, _ in self._off[:3])
            done = "set aside as ….damaged" if self.set_aside else "`dpmf run` sets them aside"
            what = f"{self._off[0][0].parent}: {len(self._off):,} damaged task files, such as {some}"
            self.warn(f"{what}; {done}, their tasks are computed again")
        else:
            for path, why in self._off:
                done = f"set aside as {path.stem}.damaged, its task is computed again"
                self.warn(
                    f"{path}: damaged ({why}); {done if self.set_aside else '`dpmf run` computes its task again'}"
                )
        self._off.clear()


def content(task: Task, result: TaskResult) -> bytes:
    always = ("rmse", "ledger")
    measured = {key: value for key, value in vars(result).items() if value or key in always}
    others = measured.pop("others", {})
    if result.records:
        measured["records"] = asdict(result.records)
    body = {
        "format": FORMAT,
        "settings": task.settings,
        "fold": task.cut.fold,
        "run": task.run,
        **measured,
        **others,
    }
    return encode(sealed(body))


def unsealed(data: bytes) -> dict[str, Any] | None:
    """The content of a `sealed` file; None unless every byte is as it was written."""
    try:
        body: dict[str, Any] = json.loads(data)
        digest = body.pop("sha256")
        # Unless another key follows the checksum, the file shows what it covers, which need not be encoded again.
        end = f', "sha256": "{digest}"}}\n'.encode()
        covered = data.removesuffix(end) + b"}\n" if data.endswith(end) else _canonical(body)
        # The data come from JSON, so an infinity among them was never written by dpmf.
        sound = sha256(covered) == digest and _canonical({**body, "sha256": digest}) == data
        return body if "format" in body and sound else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def read_result(path: Path, root: Path, algorithm: type[Algorithm] | None = None) -> TaskResult:
    """The result in a task's file of the results folder `root`. No other function reads such a file.

    The file may come from anybody, and its checksum proves only that it was not damaged later. So it has to be at its
    place, and to fit the schema of a result.

    Raises OSError, DamagedError, and DpmfError for another format.

    algorithm  the algorithm of its task, if known; a plugin is known by its task only
    """
    body = unsealed(read_file(path))
    if body is None:
        raise DamagedError("its content does not fit its checksum")
    if type(body["format"]) is int and body["format"] != FORMAT:
        what = f"written in format {body['format']} by another version of dpmf"
        fix = "use that version, or name another folder with --results"
        raise DpmfError(f"{path}: {what} (this is {__version__}, format {FORMAT}); {fix}")
    try:
        head = {key: body.pop(key) for key in ("format", "settings", "fold", "run")}
        if any(type(head[key]) is not int for key in ("format", "fold", "run")):
            raise TypeError
        settings = head["settings"]
        names = settings["dataset"], settings["algorithm"]["algorithm"], hash_of(settings)
        if root / _place(*names, head["fold"], head["run"], body["epsilons"]) != path:
            raise DamagedError("it belongs to another task")
        others = {metric.key: body.pop(metric.key) for metric in (*BESIDE, *GROUPED) if metric.key in body}
        result = _RESULT.validate_python({**body, "others": others})
        _check_columns(result, settings, algorithm)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(each) for each in first["loc"] if each != "others")
        raise DamagedError(f"{where}: {first['msg']}") from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise DamagedError("it is not the result of a task") from None
    return result


def _check_columns(result: TaskResult, settings: dict[str, Any], algorithm: type[Algorithm] | None) -> None:
    """Raises DamagedError unless a result has what its settings ask for, with one number for each ε of its grid."""
    size, limits = len(result.epsilons), len(settings.get("error_cdf", ()))
    of_steps = [step[key] for step in result.ledger for key in PER_EPSILON if key in step]
    of_records = asdict(result.records).values() if result.records else ()
    measured = [each for each in (result.rmse, result.error_cdf, result.ranking) if each]
    columns = [result.claimed, result.provable, *of_steps, *of_records, *measured, *result.others.values()]
    if any(len(column) != size for column in columns) or not 0 < len(set(result.epsilons)) == size:
        raise DamagedError("its columns do not have one number for each ε")
    of = algorithm or {**BASELINES, **PRIVATE}.get(settings["algorithm"]["algorithm"])
    if not result.rmse and (result.others or not result.ranking or (of and not of.scores_only)):
        raise DamagedError("it has no RMSE")
    asked = bool(result.rmse and limits)
    if any(len(row) != limits for row in result.error_cdf) or bool(result.error_cdf) != asked:
        raise DamagedError("error_cdf: not the fractions that its settings ask for")
    if bool(result.ranking) != ("ranking" in settings):
        raise DamagedError("ranking: not what its settings ask for")
    grouped = {metric.key for metric in GROUPED}
    if result.others.keys() & grouped != (grouped if result.rmse and "groups" in settings else set()):
        raise DamagedError("groups: not what its settings ask for")


def _place(
    data: str, algorithm: str, settings_hash: str, fold: int, run: int, epsilons: Sequence[float]
) -> Path:
    of_grid = sha256(encode(epsilons))[:8]
    return Path(
        "tasks", data, f"{algorithm}-{settings_hash[:16]}", f"fold{fold:03d}-run{run:03d}-{of_grid}.json"
    )


def _stem(path: Path) -> str:
    """The fold and run in the name of a task's file."""
    return path.name.rpartition("-")[0]
