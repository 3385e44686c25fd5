"""From a data set to a released folder, for `dpmf release` and for programs (`dpmf_cli.fit`).

A method is fitted once under a secret seed, and its model released: what holds is stated, what is not proved refused,
the release entered into the account, and written.
"""

import os
import secrets
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from pydantic import ValidationError
from threadpoolctl import threadpool_limits

from dpmf_cli.algorithms.plugins import available, plugin
from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.algorithms.shared.base import Arrays, PrivateAlgorithm
from dpmf_cli.core.errors import DpmfError, did_you_mean
from dpmf_cli.core.files import sha256
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import SECRET, Streams, UnaccountedNoiseError, drawn_seed
from dpmf_cli.core.strict_model import in_words
from dpmf_cli.datasets.canonical import Duplicates, Ids, Raw, Stars, canonicalise, checksum, in_stars
from dpmf_cli.datasets.soundness import Soundness
from dpmf_cli.experiment.config.entries import on_own_ratings
from dpmf_cli.privacy.accounting import LEAST_EPSILON, MOST_EPSILON
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import TOLERANCE, Ledger
from dpmf_cli.privacy.neighbours import HIDE_IDS
from dpmf_cli.releasing import account, archive
from dpmf_cli.releasing.recommender import OwnRatings, Recommender, as_ids, check_arrays, published, within

COLUMNS = {"user": "user", "item": "item", "rating": "rating"}


@dataclass(frozen=True)
class FittedRatings:
    """The ratings that a method is fitted on, with their ids.

    name      of the data set, in statements and in the account
    users, items   the public lists of ids, if there are any
    columns   the names that a file of the data set has for users, items and ratings
    to_stars  whether the scale is mapped onto 1 to 5 stars, which the model then predicts
    filters   what was done to the ratings of a user's file before, by its key in a config
    """

    name: str
    ratings: Ratings
    user_ids: Ids
    item_ids: Ids
    users: Ids | None = None
    items: Ids | None = None
    columns: dict[str, str] | None = None
    to_stars: bool = False
    filters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class FittedRecommender(Recommender):
    """A model fitted here, which can be released. `checksum` is that of its ratings, and only for the account.

    Nothing counts its ε until it is saved: predictions that are shown without that are in no account.
    """

    checksum: str = ""

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}; counted by save() alone>"

    def save(
        self, folder: Path | str, *, unprovable: bool = False, ids_are_public: bool = False
    ) -> list[account.Total]:
        """Releases the model, which enters the account before the folder is written.

        Returns what all releases of the data set add up to. Raises DpmfError if the ε asked for cannot be proved,
        unless `unprovable`; if the ε hides ids that were taken from the ratings, unless `ids_are_public`; and if the
        folder holds a release.
        """
        folder = Path(folder)
        refuse(self.statement, unprovable=unprovable, ids_are_public=ids_are_public)
        check_arrays(self.statement.kind, self.arrays, self.item_ids, self.user_ids)
        data = archive.packed(stored(self))
        privacy, dataset = self.statement.privacy, self.statement.dataset
        entered = account.Entered(
            release=self.statement.release,
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            dataset=dataset.name,
            checksum=self.checksum,
            method=self.statement.name,
            neighbours=privacy.neighbours,
            joint=privacy.joint,
            epsilon=privacy.provable,
            delta=privacy.delta,
            model=sha256(data),
            folder=os.path.abspath(folder).encode(errors="backslashreplace").decode(),
        )
        with account.kept_to_oneself():
            archive.refuse_a_release(folder)
            before = account.releases_of(dataset.name, self.checksum)
            killed, asked = archive.unfinished(folder), self.statement
            same_fit = dict.fromkeys(("release", "sha256", "seal"), "")
            if killed and killed.model_copy(update=same_fit) == asked.model_copy(update=same_fit):
                # If it was counted, it was killed before anybody had its model: this one takes its place.
                taken = entered.model_copy(update={"release": killed.release})
                same = {"release", "dataset", "checksum", "folder"}
                if any(each.model_dump(include=same) == taken.model_dump(include=same) for each in before):
                    entered = taken
            update = {"release": entered.release, "sha256": entered.model}
            archive.write(folder, asked.model_copy(update=update), data)
            account.enter(entered)  # first: a release that is there but not entered would never be added up
            archive.publish(folder)
        return account.totals([*before, entered])


def fitted(entry: PrivateAlgorithm, source: FittedRatings, epsilon: float) -> FittedRecommender:
    """The model of the method for one ε, fitted on all ratings, with noise from a seed that the operating system
    draws, that is held only in memory, and that is forgotten when this returns.

    Where ε hides whether a rating exists, it hides whether any does, so no ratings are fitted like some. Raises
    DpmfError if there are none and the list is missing that says for which ids to predict, for an ε outside of 1e-6
    to 1e6, and for an algorithm that draws noise past its curator.
    """
    _refuse_nothing(source, users=entry.counts_users or entry.neighbours not in HIDE_IDS)
    release = secrets.token_hex(16)
    entry = next((piece for piece, _ in entry.pieces([epsilon])), entry)
    if source.items is not None and getattr(entry, "item_features", None) is not None:
        fault = (
            "public features are known of items with ratings only, so they show which of the list have some"
        )
        raise DpmfError(f"{entry.name}: {fault}; leave out the list of items, or `item_features`")
    ids = (source.user_ids, source.item_ids)
    ratings, user_ids, item_ids = within(source.ratings, *ids, source.users, source.items)
    if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        raise DpmfError(f"epsilon is {epsilon:g}; give one from {LEAST_EPSILON:g} to {MOST_EPSILON:g}")
    seen = Stars(ratings.scale).of(ratings) if source.to_stars else ratings
    streams = Streams(drawn_seed(SECRET), "", entry.algorithm, 0, 0)
    ledger = Ledger([epsilon], entry.mode, entry.spends_delta)
    try:
        with threadpool_limits(limits=1):
            model = entry.fit(seen, ledger.limit, streams=streams, curator=Curator(ledger, streams))
    except UnaccountedNoiseError as error:
        raise DpmfError(f"{entry.name}: {error}") from None
    kind, arrays = published(model)
    has_users = any(name.startswith("users") for name in arrays)
    _refuse_nothing(source, users=has_users)
    dataset = archive.DataStatement(
        name=source.name,
        **asdict(ratings.scale),
        to_stars=source.to_stars,
        columns=source.columns or COLUMNS,
        users=_list(source.users) if has_users or entry.counts_users else archive.NO_USERS,
        items=_list(source.items),
        filters=source.filters,
    )
    own = OwnRatings(user_ids[ratings.users], item_ids[ratings.items], ratings.values.astype("f8"))
    return FittedRecommender(
        archive.statement_of(entry, kind, ledger, dataset, release),
        arrays,
        item_ids,
        user_ids if has_users else None,
        own if entry.joint else None,
        checksum(source.ratings),  # not of `ratings`: with a list of ids it is still the same data set
    )


def stored(recommender: Recommender) -> Arrays:
    """The arrays of a file: those of the model, and the ids."""
    users = {} if recommender.user_ids is None else {"user_ids": recommender.user_ids}
    model = {f"{MODEL}{name}": array for name, array in recommender.arrays.items()}
    return {**model, "item_ids": recommender.item_ids, **users}


def load_model(path: Path | str) -> Recommender:
    """The released model in the folder `path`. Raises DpmfError if it is not a release, or was changed."""
    statement, arrays = archive.read(Path(path))
    model = {name.removeprefix(MODEL): array for name, array in arrays.items() if name.startswith(MODEL)}
    try:
        items, users = arrays["item_ids"], arrays.get("user_ids")
        check_arrays(statement.kind, model, items, users)
        loaded = Recommender(statement, model, items, users)
        loaded.for_users(loaded.item_ids[:0])
    except (LookupError, ValueError, TypeError, AttributeError, AssertionError) as error:
        fault = f"its arrays are not those of a model of kind {statement.kind}: {error}"
        raise DpmfError(f"{path}: {fault}; {archive.AGAIN}") from None
    return loaded


def verified(folders: Iterable[Path]) -> list[Soundness]:
    """Whether releases, and the account of this machine, are sound by their checksums."""
    releases, lines = Soundness("releases"), Soundness("account of releases")
    counted = {entered.release for read in account.entries() if (entered := _sound(lines, read)) is not None}
    for folder in folders:
        read = _sound(releases, partial(archive.read, folder))
        if read is not None and read[0].release not in counted:
            releases.notes.append(f"{folder}: is not in the account {account.account_file()}")
    return [releases, lines]


def _sound(found: Soundness, read: Callable[[], Any]) -> Any:
    """What is read, counted as sound; None if it is damaged, and counted so."""
    try:
        content = read()
    except DpmfError as error:
        path, _, rest = str(error).partition(": ")
        what, _, fix = rest.rpartition("; ")
        found.add(path, what, fix)
        return None
    found.sound += 1
    return content


MODEL = "model."
"""How the names of a model's arrays begin in a file."""


def refuse(statement: archive.Statement, *, unprovable: bool, ids_are_public: bool) -> None:
    """Raises DpmfError for an ε that is not proved and for ids that the ε hides, unless the caller allows them."""
    privacy = statement.privacy
    is_proved = privacy.provable is not None and privacy.provable <= privacy.epsilon * (1 + TOLERANCE)
    if not (is_proved or unprovable):
        proved = "no ε" if privacy.provable is None else f"ε = {privacy.provable:g}"
        fix = "release a method of `mode: corrected`"
        if archive.COUNTED in privacy.says:
            proved += " that covers which users and items `minimum_ratings` leaves out"
            fix = "take it from the config"
        raise DpmfError(
            f"{statement.name}: ε = {privacy.epsilon:g} is asked for, but {proved} can be proved; {fix}, or pass "
            "--unprovable to release it anyway"
        )
    lists = {"users": statement.dataset.users, "items": statement.dataset.items}
    taken = [what for what, where in lists.items() if where == "those in the ratings"]
    if privacy.neighbours in HIDE_IDS and taken and not ids_are_public:
        raise DpmfError(
            f"{statement.name}: its ε hides which ratings exist, but an id in the model shows that it has a rating; "
            f"give a public list of {' and of '.join(taken)} ({', '.join(f'--{what} FILE' for what in taken)}), or "
            "say that the ids in the ratings are public (--ids-are-public)"
        )


def _refuse_nothing(source: FittedRatings, *, users: bool) -> None:
    """Raises DpmfError if there are no ratings, and no list of items, or of `users`, to predict for.

    `refuse` lets no model be released without these lists, unless all ids in the ratings are public, in which case it
    is public, too, that there are none.
    """
    needed = {"items": source.items} | ({"users": source.users} if users else {})
    missing = [what for what, ids in needed.items() if ids is None]
    if missing and not len(source.ratings):
        raise DpmfError(
            f"{source.name}: there are no ratings, and no list of {' or of '.join(missing)} to predict for; give "
            f"ratings, or such a list (--{missing[0]} FILE, public_{missing[0]})"
        )


def _list(given: Ids | None) -> archive.Lists:
    return "those in the ratings" if given is None else "a list that was given"


def fit(
    algorithm: str,
    users: Any,
    items: ArrayLike | None = None,
    ratings: ArrayLike | None = None,
    *,
    scale: tuple[float, float] | tuple[float, float, float],
    epsilon: float,
    neighbours: str | None = None,
    mode: str = "corrected",
    dataset: str = "ratings",
    duplicates: Duplicates = "error",
    public_users: ArrayLike | None = None,
    public_items: ArrayLike | None = None,
    **parameters: Any,
) -> FittedRecommender:
    """The model of one private method, fitted on all ratings, with noise from a secret seed.

    algorithm      the method's key: docs/reference.md has all keys, with their parameters
    users, items   (n,) ids, whole numbers or text; or `users` is a data frame with the columns user, item, rating
    ratings        (n,) values on the scale
    scale          the public scale: minimum, maximum, and the step of allowed values if there is one
    neighbours     what ε hides: bounded, unbounded, user or local; by default the method's own
    dataset        the name under which releases of these ratings are added up; the same ratings under another name
                   are recognised, changed ratings under another name are not
    duplicates     what to do with a (user, item) pair that stands twice: "error", "last" or "mean"
    public_users, public_items   all ids that there could be; needed if the ε hides whose ratings exist

    The scale is mapped onto 1 to 5 stars, the unit of parameters, and predictions are mapped back. Averages are
    shrunk to their centre by the public rule of `effects.shrinkage`, unless `effects` is given.

    The model predicts for the same ids: `predict(users, items)`. No account counts its ε until `save` releases it; if
    you show predictions without that, you must count them yourself. Saving one fitted model twice counts once.

    Raises DpmfError if the method cannot be fitted.
    """
    of = own_ratings(users, items, ratings)
    (user_codes, user_labels), (item_codes, item_labels) = _coded(of.users), _coded(of.items)
    canonical = canonicalise(
        Raw(
            user_codes,
            item_codes,
            of.values,
            where=lambda row: f"rating {row}",
            fix="correct the arrays",
            fix_repeated='correct the arrays, or give `duplicates="last"` or "mean"',
            user_labels=user_labels,
            item_labels=item_labels,
        ),
        Scale(*scale),
        duplicates=duplicates,
        empty=True,
    )
    source = FittedRatings(
        dataset,
        canonical.ratings,
        canonical.user_ids,
        canonical.item_ids,
        None if public_users is None else as_ids(public_users, "public_users"),
        None if public_items is None else as_ids(public_items, "public_items"),
        to_stars=not in_stars(canonical.ratings.scale),
    )
    hidden = {} if neighbours is None else {"neighbours": neighbours}
    entry = _entry({"algorithm": algorithm, "mode": mode, **hidden, **parameters})
    return fitted(entry, source, epsilon)


def own_ratings(users: Any, items: ArrayLike | None = None, ratings: ArrayLike | None = None) -> OwnRatings:
    """The ratings that users bring to a joint model's `predict`, from arrays or a data frame."""
    if items is None:
        users, items, ratings = (_column(users, name) for name in ("user", "item", "rating"))
    return OwnRatings.of(users, items, [] if ratings is None else ratings)


def _entry(given: dict[str, Any]) -> Any:
    """The checked entry. Raises DpmfError for an unknown method, and for parameters that it does not take."""
    key = given["algorithm"]
    if key in BASELINES:
        raise DpmfError(f"{key} spends no ε, so it cannot be released; fit a private method")
    if key not in PRIVATE and key not in available():
        raise DpmfError(f'unknown algorithm "{key}"{did_you_mean(key, PRIVATE)}')
    known: Any = PRIVATE.get(key) or plugin(key)
    try:
        return known.model_validate(given | on_own_ratings(given, known))
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        of = wrong.get("ctx", {})
        place = ".".join(map(str, (*wrong["loc"], *((of["key"],) if "key" in of else ()))))
        raise DpmfError(": ".join(filter(None, (key, place, in_words(wrong))))) from None


def _column(frame: Any, name: str) -> Any:
    try:
        return np.asarray(frame[name])
    except (KeyError, TypeError, IndexError, ValueError):
        raise DpmfError(
            f'no column "{name}"; give users, items and ratings, or a data frame with the columns user, item, rating'
        ) from None


def _coded(ids: Any) -> tuple[Any, list[str] | None]:
    """Whole numbers as they are, and text as positions in a list of its distinct values, with that list."""
    if ids.dtype.kind == "i":
        return ids, None
    labels, codes = np.unique(ids, return_inverse=True)
    return codes, labels.tolist()
