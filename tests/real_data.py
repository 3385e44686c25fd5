"""The folder where tests look for real data files: $DPMF_DATA, else `shared/datasets` beside the clone.

`python -m tests.real_data` prints the folder, for .ci/run.
"""

import os
from pathlib import Path

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "datasets"

FOLDER = Path(os.environ.get("DPMF_DATA") or _BESIDE)

if __name__ == "__main__":
    print(FOLDER)
