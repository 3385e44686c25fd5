"""Commands about the papers: `dpmf configs`."""

from typing import Annotated

import typer


def configs(
    paper: Annotated[str, typer.Argument(help="Key of the paper, e.g. friedman2016.", show_default=False)],
    small: Annotated[bool, typer.Option("--small", help="Only those of `make reproduce-small`.")] = False,
    large: Annotated[
        bool | None,
        typer.Option(
            "--large/--no-large",
            help="Only those whose data have the size of ML-10M or Netflix, or only the others.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Name the configs that reproduce a paper.

    One a line, in the order in which they are run.

    Example: dpmf configs friedman2016 --small
    """
    from dpmf_cli.papers.claims import paper as findings_of

    found = findings_of(paper)
    for name in found.small if small else found.configs:
        if large in (None, name in found.large):
            print(name)
