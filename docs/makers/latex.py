"""Writes docs/paper.md as Markdown with JOSS's header, and as LaTeX: `python -m docs.makers.latex FOLDER`.

Makes a PDF too where there is a latexmk, with the figures in SVG where there is an rsvg-convert.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import typer
import yaml

from dpmf_cli.core import terminal
from dpmf_cli.core.terminal import say
from dpmf_cli.report.tables.layout import Group, TextTable, escape_latex, latex

DOCS = Path(__file__).resolve().parents[1]
INLINE = re.compile(
    r"`(?P<code>[^`]+)`|\[(?P<words>[^\]]+)\]\((?P<target>[^)]+)\)|\[(?P<cited>@[^\]]+)\]"
    r"|\*\*(?P<bold>[^*]+)\*\*|\*(?P<italic>[^*]+)\*"
)
TABLE = re.compile(r"^\[[^\]]+\]\(generated/papers\.md#(\S+)\)$", re.MULTILINE)
"""A paragraph that leads to a table of the generated page, and the anchor of the table's heading."""

FIGURE = re.compile(r"!\[[^\]]*\]\((.+)\)")
HEAD = r"""\documentclass[a4paper]{article}
\usepackage[T1]{fontenc}\usepackage[utf8]{inputenc}\usepackage{textcomp}\usepackage{amssymb}
\usepackage[margin=25mm]{geometry}\usepackage{booktabs,tabularx,graphicx}
\usepackage[numbers]{natbib}\usepackage[hidelinks]{hyperref}
\newcommand{\drawn}[1]{\includegraphics[width=\linewidth,height=0.8\textheight,keepaspectratio]{#1}}
\DeclareUnicodeCharacter{2713}{$\checkmark$}\DeclareUnicodeCharacter{2717}{$\times$}
"""


def inline(text: str) -> str:
    """Returns a paragraph of Markdown as LaTeX. Of a link into the repository only the words stay."""
    text, made, end = re.sub(r"\s*\n\s*", " ", text), "", 0
    for found in INLINE.finditer(text):
        made += escape_latex(text[end : found.start()]) + _marked(found)
        end = found.end()
    return made + escape_latex(text[end:])


def _marked(found: re.Match[str]) -> str:
    if found["code"]:
        return rf"\texttt{{{escape_latex(found['code'])}}}"
    if found["words"]:
        words = inline(found["words"])
        return rf"\href{{{found['target']}}}{{{words}}}" if "://" in found["target"] else words
    if found["cited"]:
        return rf"\cite{{{found['cited'].replace('@', '').replace('; ', ',')}}}"
    return rf"\textbf{{{inline(found['bold'])}}}" if found["bold"] else rf"\emph{{{inline(found['italic'])}}}"


def blocks(text: str) -> Iterator[str]:
    """Yields the blocks of a page as LaTeX: headings, tables, lists, figures, and paragraphs."""
    for block in re.split(r"\n{2,}", text.strip()):
        if heading := re.fullmatch(r"(##+) (.+)", block):
            yield rf"\{'sub' * (len(heading[1]) - 2)}section{{{inline(heading[2])}}}"
        elif block.startswith("| "):
            yield _table([re.split(r"(?<!\\)\|", line)[1:-1] for line in block.split("\n")])
        elif block.startswith("- "):
            items = (rf"\item {inline(each)}" for each in re.split(r"(?:^|\n)- ", block)[1:])
            yield "\n".join([r"\begin{itemize}", *items, r"\end{itemize}"])
        elif figure := FIGURE.fullmatch(block):
            name = escape_latex(figure[1]) if figure[1].endswith(".svg") else rf"\drawn{{{figure[1]}}}"
            yield rf"\begin{{center}}{name}\end{{center}}"
        else:
            yield inline(block)


def _table(rows: list[list[str]]) -> str:
    cells = [tuple(re.sub(r"\\(.)", r"\1", cell.strip()) for cell in row) for row in rows]
    sides = "".join("r" if cell.endswith(":") else "l" for cell in cells[1])
    return r"\noindent" + latex(TextTable(cells[0], sides, (Group("", tuple(cells[2:])),)))


def with_tables(page: str) -> str:
    """Returns the page with each table that a paragraph leads to in the place of that paragraph."""
    generated = (DOCS / "generated" / "papers.md").read_text(encoding="utf-8")
    sections = (each.partition("\n") for each in generated.split("\n## ")[1:])
    tables = {title.lower().replace(" ", "-"): text for title, _, text in sections}
    return TABLE.sub(lambda found: tables[found[1]].strip(), page)


def parts(page: str) -> tuple[str, str, str]:
    """Returns title, abstract and body of the page, without marks of tables and without the table of references."""
    title, _, rest = re.sub(r"<!-- .*? -->\n", "", page).removeprefix("# ").partition("\n")
    abstract, _, body = rest.partition("\n## ")
    return (
        title,
        abstract.strip().removeprefix("**Abstract.** "),
        "## " + body.partition("\n## References")[0],
    )


def header(title: str, cited: dict[str, Any]) -> str:
    """Returns JOSS's header. Its authors are those of CITATION.cff; people add who they are."""
    fields = {
        "title": title,
        "tags": ["Python", *cited["keywords"]],
        "authors": [{"name": each["name"], "affiliation": 1} for each in cited["authors"]],
        "affiliations": [{"name": "to be named by the authors", "index": 1}],
        "date": f"{date.today():%-d %B %Y}",
        "bibliography": "paper.bib",
    }
    return f"---\n{yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)}---\n"


def with_figures(body: str, folder: Path) -> str:
    """Brings the figures of a page into a folder, and returns the page with the names that LaTeX can draw."""
    for name in FIGURE.findall(body):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if not name.endswith(".svg"):
            shutil.copy(DOCS / name, folder / name)
        elif shutil.which("rsvg-convert"):
            made = name.replace(".svg", ".pdf")
            subprocess.run(["rsvg-convert", "-f", "pdf", "-o", folder / made, DOCS / name], check=True)
            body = body.replace(name, made)
        else:
            say(f"{name} is left out: rsvg-convert is missing, which draws it as PDF")
    return body


def main(folder: Path) -> None:
    """Writes the paper into a folder, and says what is missing for a PDF."""
    cited = yaml.safe_load((DOCS.parent / "CITATION.cff").read_text(encoding="utf-8"))
    title, abstract, body = parts(with_tables((DOCS / "paper.md").read_text(encoding="utf-8")))
    folder.mkdir(parents=True, exist_ok=True)
    body = with_figures(body, folder)
    shutil.copy(DOCS / "paper.bib", folder)
    (folder / "paper.md").write_text(f"{header(title, cited)}\n{abstract}\n\n{body}\n", encoding="utf-8")
    names = r" \and ".join(each["name"] for each in cited["authors"])
    start = rf"\title{{{title}}}\author{{{names}}}\begin{{document}}\maketitle"
    told = rf"\begin{{abstract}}{inline(abstract)}\end{{abstract}}"
    end = "\\bibliographystyle{plainnat}\\bibliography{paper}\n\\end{document}\n"
    text = "\n\n".join([HEAD + start, told, *blocks(body), end])
    (folder / "paper.tex").write_text(text, encoding="utf-8")
    say(f"{folder}: paper.md, paper.tex and paper.bib are written")
    if not shutil.which("latexmk"):
        return say("no PDF: latexmk is missing; install a TeX that has it, and call make paper again")
    run = ["latexmk", "-pdf", "-interaction=nonstopmode", "paper"]
    failed = subprocess.run(run, cwd=folder, capture_output=True, check=False).returncode
    return say(f"{folder}/paper.log says why latexmk failed" if failed else f"{folder}/paper.pdf is written")


if __name__ == "__main__":
    terminal.guard()
    typer.run(main)
