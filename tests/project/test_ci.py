"""CI runs from a clone only: its script names no path outside the clone."""

import re
from pathlib import Path

SCRIPT = (Path(__file__).resolve().parents[2] / ".ci" / "run").read_text()


def test_no_path_leads_outside_of_the_repository() -> None:
    program = re.sub(r"#.*", "", SCRIPT)
    first, *rest = [line for line in program.splitlines() if ".." in line]
    assert first == 'cd "$(dirname "$0")/.."'
    assert rest == []
    assert set(re.findall(r"(?<![\w.}])/[\w/]+", program)) <= {"/dev/null", "/usr/bin/env"}
