"""The files of the repository, without a user's own files that may lie beside them."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def committed(*patterns: str, root: Path = ROOT) -> list[Path]:
    """The files known to git that match a pattern. Without git, all existing files that are not hidden."""
    asked = ["git", "-C", str(root), "ls-files", "-z", "--", *(f":(glob){pattern}" for pattern in patterns)]
    try:
        listed = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        listed = ""
    known = [root / name for name in listed.split("\0") if name] or [
        path
        for pattern in patterns
        for path in root.glob(pattern)
        if not any(part.startswith(".") for part in path.relative_to(root).parts)
    ]
    return sorted(path for path in known if path.is_file())
