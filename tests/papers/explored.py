"""Made explorations: three choices, and what held in each of their settings."""

from collections.abc import Callable
from itertools import product

from dpmf_cli.papers.record import Explored, Printed, Tried
from dpmf_cli.papers.space import Setting

OPEN = {"start": ("zero", "one"), "step": ("small", "middle", "large"), "order": ("a", "b", "c", "d")}
SETTINGS = tuple(product(range(2), range(3), range(4)))

Half = Callable[[Setting, int], tuple[bool, ...]]


def explored(
    held: Half,
    cell: Callable[[Setting], float | None] = lambda _: 1.0,
    chosen: dict[str, tuple[bool, ...]] | None = None,
) -> Explored:
    """`held(setting, half)` are the parts of the claim "it"; `cell` is the measured value of a cell that prints 2."""
    return Explored(
        title="Made",
        checksum="0",
        partition=10,
        folds=2,
        runs=1,
        seed=1,
        configs=("made",),
        open=OPEN,
        printed={"table 1": Printed(printed=2.0, tolerance=1.5, ratio=True)},
        tried=tuple(
            Tried(
                setting=setting,
                claims={"it": (held(setting, 0), held(setting, 1))},
                cells={"table 1": (cell(setting), cell(setting))},
            )
            for setting in SETTINGS
        ),
        measured={"it": "this and that"},
        chosen=chosen,
    )
