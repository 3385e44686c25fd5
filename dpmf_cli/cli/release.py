"""`dpmf release` and `dpmf predict`: write a model of a config, and predict with it."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmf_cli.cli import options
from dpmf_cli.core.errors import DpmfError, did_you_mean
from dpmf_cli.core.terminal import Progress, csv_text, duration, say

if TYPE_CHECKING:
    import pandas as pd

    from dpmf_cli.experiment.config import ExperimentConfig
    from dpmf_cli.releasing.publishing import FittedRatings


def release(
    config: options.ConfigArgument,
    method: Annotated[str, typer.Option(help="The label of a method under `algorithms`, or its key.")],
    epsilon: Annotated[float, typer.Option(help="The ε that the model may spend.")],
    to: Annotated[
        Path | None,
        typer.Option(
            help="The folder to write; default: one in released/, named after data, method, neighbours and ε."
        ),
    ] = None,
    users: Annotated[
        Path | None, typer.Option(help="A file with the ids of all possible users, one id in each line.")
    ] = None,
    items: Annotated[
        Path | None, typer.Option(help="A file with the ids of all possible items, one id in each line.")
    ] = None,
    ids_are_public: Annotated[
        bool,
        typer.Option("--ids-are-public", help="The ids in the ratings are public, so no list is needed."),
    ] = False,
    unprovable: Annotated[
        bool,
        typer.Option(
            "--unprovable", help="Release the model even if no ε can be proved for it, or only a larger one."
        ),
    ] = False,
    data: options.DataOption = None,
    plugin: options.PluginOption = None,
) -> None:
    """Fit one method on all ratings, and write the model.

    The seed is secret. The ε of all releases of one data set add up, and dpmf keeps an account of them.

    Example: dpmf release my-shop.yaml --method pge --epsilon 1
    """
    from dpmf_cli.algorithms.shared.cost import Shape
    from dpmf_cli.experiment.config import load_config
    from dpmf_cli.experiment.config.documents import read_whole
    from dpmf_cli.privacy.protection import Guarantee
    from dpmf_cli.releasing.account import account_file
    from dpmf_cli.releasing.archive import refuse_a_release
    from dpmf_cli.releasing.publishing import fitted
    from dpmf_cli.releasing.recommender import read_list

    loaded = load_config(config)
    if loaded.has_guessed_scale:  # it is a function of the ratings: a model shows it, and no ε pays for that
        place = read_whole(config).place_of(("dataset", "scale", "guessed"), key=True)
        raise DpmfError(
            f"{place}: the scale is guessed from the ratings, and no ε covers what it shows of them; write the scale "
            "that your site allows, and remove `guessed`"
        )
    entry = _entry(loaded, method)
    lists = [None if path is None else read_list(path) for path in (users, items)]
    source = _source(loaded, config, data, *lists)
    folder = (
        to or Path("released") / f"{source.name}-{entry.algorithm}-{entry.neighbours}-epsilon-{epsilon:g}"
    )
    refuse_a_release(folder)
    ratings = source.ratings
    sizes = [max(size, 1) for size in (ratings.n_users, ratings.n_items, len(ratings))]
    delta = Guarantee(entry.protects, delta=entry.spends_delta)
    if warning := delta.warning(sizes[0], sizes[2]):
        say(f"warning: {warning}")
    seconds = entry.cost(Shape(*sizes), 1).seconds
    say(f"fits {entry.name} on all ratings of {source.name}: about {duration(max(seconds, 1))}")
    model = fitted(entry, source, epsilon)
    found = model.save(folder, unprovable=unprovable, ids_are_public=ids_are_public)
    statement, privacy = model.statement, model.statement.privacy
    proved = "none can be proved" if privacy.provable is None else f"{privacy.provable:g} provable"
    with_delta = f", δ = {privacy.delta:g}" if privacy.delta else ""
    print(f"{folder}/: {statement.name}, ε = {privacy.claimed:g} claimed, {proved}{with_delta}")
    print(f"protects {privacy.protects} from {privacy.towards}: {privacy.says}")
    if privacy.not_to_publish:
        print(privacy.not_to_publish)
    print(f"users: {statement.dataset.users}; items: {statement.dataset.items}")
    count = found[-1].releases  # of all kinds
    if count > 1:
        say(f"this is release {count} of {source.name}: together, all {count} reveal more than each alone")
    for total in found:
        say(f"{source.name}, {total}")
    say(f"the account is {account_file()}; it is for you only, and not part of the release")


def predict(
    model: Annotated[Path, typer.Argument(help="A folder that `dpmf release` has written.")],
    pairs: Annotated[Path | None, typer.Option(help="A CSV file with the columns user and item.")] = None,
    user: Annotated[
        str | None, typer.Option(help="The id of one user, to predict that user's best items.")
    ] = None,
    everybody: Annotated[bool, typer.Option("--all", help="Predict the best items of all users.")] = False,
    top: Annotated[int, typer.Option(min=1, help="How many items to predict for each user.")] = 10,
    own: Annotated[
        Path | None, typer.Option(help="A CSV file with these users' own ratings, for a joint model.")
    ] = None,
    seen: Annotated[Path | None, typer.Option(help="A CSV file with pairs to leave out, as seen.")] = None,
    clip: Annotated[bool, typer.Option(help="Whether predictions are clipped to the scale.")] = True,
    to: Annotated[Path | None, typer.Option(help="A .csv or .parquet file; default: stdout.")] = None,
    plugin: options.PluginOption = None,
) -> None:
    """Predict ratings with a released model.

    Writes predictions for the pairs in a file, or the best items of one user or of all.

    Example: dpmf predict released/my-shop-pge-bounded-epsilon-1 --user c7 --top 5
    """
    import numpy as np
    import pandas as pd

    from dpmf_cli.releasing.publishing import load_model
    from dpmf_cli.releasing.recommender import places, read_own, read_pairs

    if [pairs is None, user is None, not everybody].count(False) != 1 or (pairs and seen):
        raise DpmfError(
            "say what to predict: --pairs FILE; or --user ID or --all, either perhaps with --seen"
        )
    if to and to.suffix.lower() == ".parquet" and find_spec("pyarrow") is None:
        fix = "install it with: pip install 'dpmf[parquet]', or name a file that ends in .csv"
        raise DpmfError(f"--to {to}: Parquet needs pyarrow; {fix}")
    loaded = load_model(model)
    names: Any = loaded.statement.dataset.columns
    brought = None if own is None else read_own(own, names)
    name, joint = loaded.statement.name, loaded.statement.privacy.joint
    if own is not None and not joint:
        raise DpmfError(f"{name} predicts without the users' own ratings; leave --own out")
    if own is None and joint:
        say(
            f"{name} predicts from the users' own ratings; without --own, it takes them to have rated nothing"
        )
    if pairs is not None:
        users, items = read_pairs(pairs, names)
        values = loaded.predict(users, items, brought, clip=clip)
        unknown = int((places(loaded.item_ids, items) < 0).sum())
        if unknown:
            say(f"{unknown} of {len(items)} pairs have an item that the model does not know")
        _write(iter([pd.DataFrame({names["user"]: users, names["item"]: items, "prediction": values})]), to)
        return
    known = loaded.user_ids if brought is None else np.unique(brought.users)
    asked: Any = known if user is None else [user]
    if asked is None:
        raise DpmfError(f"{name} has no users in its model; give --user, or --own with users' own ratings")
    left_out = True if seen is None else read_pairs(seen, names)
    frames = loaded.recommendations(asked, top, brought, exclude_seen=left_out, clip=clip)
    blocks = -(-len(asked) // loaded.users_at_once)
    _write(_followed(frames, blocks) if blocks > 1 else frames, to)


def _followed(frames: Iterator["pd.DataFrame"], blocks: int) -> Iterator["pd.DataFrame"]:
    """The frames, with progress shown for at most so many blocks."""
    with Progress("best items", blocks, float(blocks)) as progress:
        for frame in frames:
            yield frame
            progress.finished("block of users", 1.0)


def _write(frames: Iterator["pd.DataFrame"], to: Path | None) -> None:
    """Writes frames in turn: as CSV, or as Parquet if the file's name ends so."""
    import pandas as pd

    from dpmf_cli.core.files import write_whole, writing

    rows: Any = ([*([] if at else [each]), *each.itertuples(False, None)] for at, each in enumerate(frames))
    texts = (csv_text(each) for each in rows)
    if to is None:
        for text in texts:
            print(text, end="")
        return
    with writing(to, "name another file"):
        parquet = to.suffix.lower() == ".parquet"
        write_whole(
            to, [pd.concat(frames).to_parquet(index=False)] if parquet else (text.encode() for text in texts)
        )


def _entry(config: "ExperimentConfig", method: str) -> Any:
    """The entry with that label, or else the only entry of the algorithm with that key."""
    entries = config.algorithms
    found = [entry for entry in entries if entry.name == method]
    found = found or [entry for entry in entries if entry.algorithm == method]
    if len(found) == 1:
        return found[0]
    names = [entry.name for entry in found or entries]
    if found:
        raise DpmfError(
            f"--method {method}: several entries have this key; name one by its label: {', '.join(names)}"
        )
    raise DpmfError(f"--method {method}: the config has no such method{did_you_mean(method, names)}")


def _source(
    config: "ExperimentConfig", path: Path, data: Path | None, users: Any, items: Any
) -> "FittedRatings":
    from dpmf_cli.datasets import Folders, load, loading
    from dpmf_cli.datasets.canonical import NoRatingsError, in_stars
    from dpmf_cli.datasets.spec import CsvSpec
    from dpmf_cli.releasing.publishing import COLUMNS, FittedRatings

    spec = config.dataset
    folders = Folders.named(data, base=path.parent)
    try:
        loaded: Any = load(spec, folders)
    except NoRatingsError:
        loaded = loading.parsed(spec, folders, empty=True)
    ratings = loaded.ratings
    given, filters = (spec.columns.by_role, spec.filters) if isinstance(spec, CsvSpec) else ({}, {})
    columns = {role: name if isinstance(name := given.get(role), str) else role for role in COLUMNS}
    ids, to_stars = (loaded.user_ids, loaded.item_ids), not (spec.stars or in_stars(ratings.scale))
    return FittedRatings(spec.key, ratings, *ids, users, items, columns, to_stars, filters)
