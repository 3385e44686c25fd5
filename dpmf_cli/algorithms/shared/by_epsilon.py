"""Entries whose parameters vary with ε: one curve, pieced together from several sets of parameters."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import Field, ValidationError
from pydantic_core import PydanticCustomError

if TYPE_CHECKING:
    from dpmf_cli.algorithms.shared.base import PrivateAlgorithm

ByEpsilon = Annotated[
    list[dict[str, Any]] | None,
    Field(
        min_length=1,
        exclude_if=lambda pieces: pieces is None,
        description="parameters that vary with ε: `[{up_to: 1, learning_rate: 0.1}, {up_to: 10, epochs: 3}]`. Each ε "
        "uses the first piece whose `up_to` is not below it; an ε above every `up_to` has the entry's own parameters",
    ),
]
"""Pieces in ascending order, each with `up_to` and the parameters that it sets."""

Entry = TypeVar("Entry", bound="PrivateAlgorithm")

_OF_THE_CURVE = {
    "algorithm",
    "label",
    "neighbours",
    "mode",
    "delta",
    "clip_predictions",
    "sweep",
    "by_epsilon",
}
"""Keys that must be the same for all ε of a curve."""


def refuse_bad_pieces(entry: "PrivateAlgorithm") -> None:
    """Raises PydanticCustomError if pieces do not ascend, or set an unknown parameter or an invalid value."""
    reached = 0.0
    for index, piece in enumerate(entry.by_epsilon or ()):
        up_to = piece.get("up_to")
        if not isinstance(up_to, int | float) or isinstance(up_to, bool) or not reached < up_to < math.inf:
            raise _at(index, "`up_to` must be an ε above the `up_to` of the piece before")
        reached = up_to
        fixed = sorted({*_OF_THE_CURVE, (entry.swept or "").split(".")[0]} & piece.keys())
        if fixed or len(piece) == 1:
            said = f"`{fixed[0]}` is the same for all ε of a curve" if fixed else "it sets nothing"
            raise _at(index, f"{said}; remove it")
        try:
            _piece(entry, piece)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            context = first.get("ctx", {})
            key = first["loc"] or context.get("path") or (context.get("key", "a parameter"),)
            raise _at(index, f"{'.'.join(map(str, key))}: {first['msg']}") from None


def pieces_of(entry: Entry, grid: Sequence[float]) -> Iterator[tuple[Entry, tuple[float, ...]]]:
    """Yields the entry of each piece, with the ε of an ascending grid that use it."""
    reached = 0.0
    for piece in (*(entry.by_epsilon or ()), {"up_to": math.inf}):
        part = tuple(epsilon for epsilon in grid if reached < epsilon <= piece["up_to"])
        if part:
            yield _piece(entry, piece), part
        reached = piece["up_to"]


def _piece(entry: Entry, piece: dict[str, Any]) -> Entry:
    """The entry with the parameters of a piece. A plain entry with the same parameters has the same results."""
    own = {key: value for key, value in piece.items() if key != "up_to"}
    return type(entry).model_validate({**entry.model_dump(exclude={"by_epsilon"}), **own})


def _at(index: int, message: str) -> PydanticCustomError:
    return PydanticCustomError("by_epsilon", "{message}", {"message": message, "path": ("by_epsilon", index)})
