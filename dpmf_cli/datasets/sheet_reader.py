"""Reads one spreadsheet from stdin. It is a program that `publishers` starts with little memory and time.

A spreadsheet of a few bytes may name a cell at the end of a sheet of 10¹⁰ cells, or unpack to gigabytes. The library
that reads it then ends its process, and here only this process ends. The program writes all cells, row by row, as
float64 and ends with 0; or it writes what is wrong, with its place, and ends with REFUSED.

Arguments: bytes of memory, seconds of processor time, cells in each row.
"""

import array
import io
import os
import resource
import sys
from typing import NoReturn

REFUSED = 3
"""An exit code that Python itself does not use."""


def main() -> None:
    memory, seconds, width = map(int, sys.argv[1:])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import python_calamine

    cells = array.array("d")
    try:
        workbook = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(sys.stdin.buffer.read()))
        for number, row in enumerate(workbook.get_sheet_by_index(0).iter_rows(), 1):
            for column, cell in enumerate(row, 1):
                if not isinstance(cell, int | float):
                    end(f"row {number}, column {column}: {repr(cell)[:40]} is not a number".encode(), REFUSED)
                cells.append(cell)
            if len(row) != width:
                end(f"row {number}: {len(row)} cells where {width} are expected".encode(), REFUSED)
    except MemoryError:
        end(b"it takes far more memory than a file of its size should", REFUSED)
    except Exception as error:
        end(f"cannot be opened as a spreadsheet ({str(error)[:200]})".encode(), REFUSED)
    end(cells.tobytes(), 0)


def end(said: bytes, code: int) -> NoReturn:
    """Ends the process at once, without freeing what the library has allocated."""
    sys.stdout.buffer.write(said)
    sys.stdout.buffer.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
