"""Any text in a file or a name, by the command line: the output holds no control character except line ends."""

import csv
import io
import json
import shutil
import sys
import unicodedata
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings, strategies as st

from dpmf_cli.cli import main as cli
from dpmf_cli.core.terminal import printable
from dpmf_cli.experiment.results.manifest import read_manifest, write_manifest
from tests.command import in_process
from tests.results.test_made_before import MADE_BEFORE

WORST = "\x1b[2J\x9b5m\x07\r\u202e\u2066\u200b\u2028\ufeff\U000e0041\x7f\t\n=1|`"
TEXT = st.text(st.sampled_from(WORST) | st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
"""Text without NUL, which a config may not contain at all."""
NAME = st.text(
    st.sampled_from(WORST + "\udc9b\udcff") | st.characters(codec="utf-8", exclude_characters="/\0"),
    max_size=30,
)
"""The text of a file, which may be invalid UTF-8."""

CONFIG = {"dataset": "synthetic-ml-100k", "epsilons": [1], "algorithms": ["pge"]}
CSV = {"kind": "csv", "name": "mine", "columns": {"user": "u", "item": "i", "rating": "r"}}
SCALE = {"minimum": 1, "maximum": 5, "step": 1}


def hostile(
    strategy: st.SearchStrategy[str], *, examples: int = 8
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    options = settings(max_examples=examples, derandomize=True, database=None, suppress_health_check=checks)
    return lambda test: example(text=WORST)(options(given(text=strategy)(test)))


def acting_on_a_terminal(text: str) -> set[str]:
    return {each for each in text if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {"\n"}


def said(*arguments: str, code: int = 2) -> str:
    """The output of a command, which must not act on a terminal. The command must end with that exit code."""
    ended, printed, told = in_process(*arguments)
    assert ended == code, printed + told
    assert acting_on_a_terminal(printed + told) == set()
    return printed + told


def config(folder: Path, **changes: object) -> str:
    path = folder / "x.yaml"
    path.write_text(yaml.safe_dump({**CONFIG, **changes}), encoding="utf-8")
    return str(path)


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPMF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DPMF_DATA", str(tmp_path / "data"))


@hostile(TEXT)
def test_a_key_a_name_or_a_label(tmp_path: Path, text: str) -> None:
    for changes, message in (
        ({f"k{text}": 1}, "unknown key"),
        ({"algorithms": [{"algorithm": "pge", f"k{text}": 1}]}, "unknown key"),
        ({"algorithms": [{"algorithm": "pge", "label": f"\x9b{text}"}]}, "a label must be"),
        ({"algorithms": [f"no {text}"]}, "unknown algorithm"),
        ({"dataset": f"no {text}"}, "no data set"),
    ):
        assert message in said("plan", config(tmp_path, **changes))
    assert "no data set" in said("datasets", "info", f"no {text}")


@hostile(NAME)
def test_a_command_an_option_or_a_value(text: str) -> None:
    for arguments in ((f"no{text}",), ("plan", f"--no{text}"), ("crossings", "--format", f"no{text}")):
        said(*arguments)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_in_whatever_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(written, encoding, errors="backslashreplace"))
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "argv", ["dpmf", f"--no{WORST}"])
    with pytest.raises(SystemExit):
        cli.main()
    sys.stderr.flush()
    text = written.getvalue().decode(encoding)
    assert "no such option" in text.lower()
    assert printable(text, keep="\n") == text


@hostile(NAME)
def test_a_path(tmp_path: Path, text: str) -> None:
    for arguments in (
        ("plan", f"{tmp_path}/no{text}.yaml"),
        ("report", f"{tmp_path}/no{text}"),
        ("crossings", f"{tmp_path}/no{text}"),
        ("datasets", "fetch", "ml-100k", "--from-file", f"{tmp_path}/no{text}"),
    ):
        said(*arguments)


@hostile(TEXT)
def test_the_header_and_a_cell_of_a_csv_file(tmp_path: Path, text: str) -> None:
    whole = config(tmp_path, dataset={**CSV, "scale": SCALE, "path": "r.csv"})
    quoted = text.replace('"', '""')
    for content in (f'u,"no {quoted}",r\n1,2,3\n', f'u,i,r\n1,2,"no {quoted}"\n', f'u,i,r\n1,"{quoted}",9\n'):
        (tmp_path / "r.csv").write_text(content, encoding="utf-8")
        said("run", whole, "--results", str(tmp_path / "results"))


@hostile(TEXT)
def test_a_member_of_an_archive(tmp_path: Path, text: str) -> None:
    for name in (f"../{text}", f"{text}/u.data"):
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
            archive.writestr(name, "a\tb\n")
        said("datasets", "fetch", "ml-100k", "--from-file", str(tmp_path / "a.zip"))


@hostile(TEXT, examples=2)
def test_the_title_in_a_manifest(tmp_path: Path, text: str) -> None:
    """In every format of a table, and in a page."""
    results = tmp_path / "results"
    shutil.rmtree(results, ignore_errors=True)
    shutil.copytree(MADE_BEFORE, results)
    folder = results / "personal"
    manifest = read_manifest(folder)
    manifest["dataset"] |= {"title": f"={text}", "key": f"={text}"}
    manifest["command"] = f"={text}"
    write_manifest(folder, manifest)
    for form in ("table", "csv", "md", "latex", "json"):
        said("crossings", str(folder), "--format", form, code=0)
        printed = said("baselines", str(folder), "--format", form, code=0)
        if form == "json":
            assert json.loads(printed)[0]["dataset"] == f"={text}"
        if form == "csv":
            assert next(csv.DictReader(io.StringIO(printed)))["dataset"] == f"'={printable(text)}"
    said("report", str(folder), code=0)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert acting_on_a_terminal(page) == set()
