"""The Python interface: `dpmf_cli.fit` on arrays or a data frame, and `dpmf_cli.load_model`."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from pydantic import ValidationError

from dpmf_cli.algorithms.plugins import available, plugin
from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.core.errors import DpmfError, did_you_mean
from dpmf_cli.core.ratings import Scale
from dpmf_cli.datasets.canonical import Duplicates, Raw, canonicalise, in_stars
from dpmf_cli.experiment.config.entries import on_own_ratings
from dpmf_cli.releasing.publishing import FittedRatings, FittedRecommender, fitted, load_model
from dpmf_cli.releasing.recommender import OwnRatings, as_ids

__all__ = ["fit", "load_model", "own_ratings"]


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
    """Fits one private method on all ratings, with noise from a seed that nobody knows.

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

    The model predicts for the same ids: `predict(users, items)`. No account counts its ε until `save` releases it.
    Whoever shows predictions without that must count them. Saving one fitted model twice counts once.

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
    """Returns the ratings that users bring to a joint model's `predict`, from arrays or a data frame."""
    if items is None:
        users, items, ratings = (_column(users, name) for name in ("user", "item", "rating"))
    return OwnRatings.of(users, items, [] if ratings is None else ratings)


def _entry(given: dict[str, Any]) -> Any:
    """Returns the checked entry. Raises DpmfError for an unknown method, and for parameters that it does not take."""
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
        place = (*wrong["loc"], *((of["key"],) if "key" in of else ()))
        raise DpmfError(
            ": ".join([key, *([".".join(map(str, place))] if place else []), wrong["msg"]])
        ) from None


def _column(frame: Any, name: str) -> Any:
    try:
        return np.asarray(frame[name])
    except (KeyError, TypeError, IndexError, ValueError):
        raise DpmfError(
            f'no column "{name}"; give users, items and ratings, or a data frame with the columns user, item, rating'
        ) from None


def _coded(ids: Any) -> tuple[Any, list[str] | None]:
    """Returns whole numbers as they are, and text as positions in a list of its distinct values, with that list."""
    if ids.dtype.kind == "i":
        return ids, None
    labels, codes = np.unique(ids, return_inverse=True)
    return codes, labels.tolist()
