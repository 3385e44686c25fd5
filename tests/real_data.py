"""Where tests look for real data files: in $DPMF_DATA, else in `shared/datasets` beside the clone.

`python -m tests.real_data` prints it, for .ci/run.
"""

import os
from pathlib import Path

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "datasets"

FOLDER = Path(os.environ.get("DPMF_DATA") or _BESIDE)

if __name__ == "__main__":
    print(FOLDER)
