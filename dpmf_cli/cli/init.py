"""`dpmf init`: writes a config for a file of ratings."""

import shlex

from dpmf_cli.cli.own_config import (
    DecimalOption,
    EpsilonOption,
    FileArgument,
    ForceOption,
    HeaderOption,
    ItemOption,
    ProtectsOption,
    RatingOption,
    Said,
    ScaleOption,
    SeparatorOption,
    TimestampOption,
    ToOption,
    UserOption,
    write_own_config,
)

NEXT = {
    "dpmf plan {}": "tasks, time and memory; runs nothing",
    "dpmf run {}": "every method, on folds of the ratings",
    "dpmf crossings {} --advise": "what the results say, in words",
}
"""The commands to run on a config, in this order, and what each does or prints."""


def init(
    ratings: FileArgument,
    protects: ProtectsOption = "value",
    epsilon: EpsilonOption = 1.0,
    scale: ScaleOption = None,
    user: UserOption = None,
    item: ItemOption = None,
    rating: RatingOption = None,
    timestamp: TimestampOption = None,
    separator: SeparatorOption = None,
    header: HeaderOption = None,
    decimal: DecimalOption = None,
    to: ToOption = None,
    force: ForceOption = False,
) -> None:
    """Write a config for a file of ratings by looking at it.

    Says what it guesses about the file; an option can replace each guess. Runs nothing: `dpmf advise` also runs the
    config.

    Example: dpmf init ratings.csv --scale 0.5:5:0.5
    """
    from dpmf_cli.terminal import say

    said = Said(scale, user, item, rating, timestamp, separator, header, decimal)
    config, seen = write_own_config(ratings, said, protects, epsilon, to, force=force)
    for each in seen:
        say(f"{ratings}: {each}")
    commands = {each.format(shlex.quote(str(config))): why for each, why in NEXT.items()}
    width = max(map(len, commands))
    for command, why in commands.items():
        print(f"{command:<{width}}  # {why}")
