"""The package as pip installs it: built, put into an environment of its own, and used outside the repository."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_wheel_alone_runs_configs_by_name(tmp_path: Path) -> None:
    built, environment, elsewhere = tmp_path / "dist", tmp_path / "environment", tmp_path / "elsewhere"
    elsewhere.mkdir()
    said(sys.executable, "-m", "build", "--outdir", str(built), str(REPOSITORY), at=tmp_path)
    (wheel,) = built.glob("*.whl")
    said(sys.executable, "-m", "venv", str(environment), at=tmp_path)
    said(str(environment / "bin" / "pip"), "install", "--quiet", str(wheel), at=tmp_path)
    dpmf = str(environment / "bin" / "dpmf")
    where = said(
        str(environment / "bin" / "python"), "-c", "import dpmf_cli; print(dpmf_cli.__file__)", at=elsewhere
    )
    assert where.startswith(str(environment))
    assert "ml1m_bounded" in said(dpmf, "configs", at=elsewhere)
    assert "PGE" in said(dpmf, "run", "quickstart", "-j", "2", at=elsewhere)
    assert "PGE" in said(dpmf, "crossings", "quickstart", at=elsewhere)
    assert "left: 0 of" in said(dpmf, "plan", "quickstart", at=elsewhere)
    assert (elsewhere / "results" / "quickstart" / "crossings.md").exists()


def said(*words: str, at: Path) -> str:
    """What a command prints, run in that folder without the repository on its path."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(words, cwd=at, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
