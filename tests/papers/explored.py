"""Made explorations: three choices, and the margins of one claim in each of their settings."""

from collections.abc import Callable, Sequence
from itertools import product

from dpmf_cli.papers.record import Explored, Inequality, PrintedValue, Tried
from dpmf_cli.papers.space import Setting

OPEN = {"start": ("zero", "one"), "step": ("small", "middle", "large"), "order": ("a", "b", "c", "d")}
SETTINGS = tuple(product(range(2), range(3), range(4)))

ATOM = Inequality(
    claim="it",
    text="a < b",
    reading="",
    unit="RMSE",
    tolerance=0.002,
    said="this and that",
    shipped=(1, 1.01, 0.99),
)


def explored(
    margin: Callable[[Setting], float | None],
    off: Callable[[Setting], float] = lambda _: 1.0,
    *,
    atoms: Sequence[Inequality] = (ATOM,),
    noise: float = 0.0,
) -> Explored:
    """`margin(setting)` is that of every atom, and `noise` how far both folds are off it; `off` is how far off its
    printed value is."""

    def folds(setting: Setting) -> tuple[float | None, ...]:
        value = margin(setting)
        return (None,) * 3 if value is None else (value, value - noise, value + noise)

    return Explored(
        title="Made",
        checksum="0",
        partition=10,
        folds=2,
        runs=1,
        seed=1,
        configs=("made",),
        open=OPEN,
        printed={"table 1": PrintedValue.of(2.0, 1.9, 0.1)},
        atoms=tuple(atoms),
        tried=tuple(
            Tried(setting=setting, margins=(folds(setting),) * len(atoms), off={"table 1": off(setting)})
            for setting in SETTINGS
        ),
    )
