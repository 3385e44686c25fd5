"""The tables of docs/papers that the papers' files make: which config measures what, and what became of each claim.

They stand between two comments, `<!-- exhibits of friedman2016 -->` or `<!-- claims of friedman2016 -->` and
`<!-- end -->`; everything around them is written by hand.
"""

import re
from pathlib import Path

from dpmf_cli.cli.reference import markdown_table
from dpmf_cli.errors import DpmfError
from dpmf_cli.papers.claims import PaperFindings, paper

_MARKED = re.compile(r"(<!-- (exhibits|claims) of (\w+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def with_tables(page: Path) -> str:
    """The text of a page with its tables written anew. Raises DpmfError for a page that cannot be read."""
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise DpmfError(f"{page}: cannot be read: {error}; name a page of docs/papers") from None
    return _MARKED.sub(lambda found: found[1] + _TABLES[found[2]](paper(found[3])), text)


def exhibits_table(found: PaperFindings) -> str:
    """A row for each table or figure: what it shows, and the configs that measure it."""
    rows = [
        (each.name, each.what, ", ".join(f"`{name}`" for name in each.configs) or f"`{each.command}`")
        for each in found.exhibits
        if each.configs or each.command
    ]
    return markdown_table(("", "", "configs"), rows)


def claims_table(found: PaperFindings) -> str:
    """A row for each claim: what the paper says, the verdict, and the figures behind it."""
    rows = [
        (each.statement + f" ({each.remark})" * bool(each.remark), each.verdict, each.measured)
        for each in found.claims
    ]
    return markdown_table(("the paper says", "verdict", "measured"), rows)


_TABLES = {"exhibits": exhibits_table, "claims": claims_table}
