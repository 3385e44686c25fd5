"""Reads one spreadsheet from stdin: a program of its own, which `jester` starts with little memory and time.

A spreadsheet of a few bytes may name a cell at the end of a sheet of 10¹⁰, or unpack to gigabytes, and the library
that reads it then ends its process. Here that process is this one. It writes one line of JSON, {"columns": [the
number of cells of each row]} or {"error": …}, and then all cells, row by row, as float64; a cell that is no number
is an error with its place.

Arguments: bytes of memory, seconds of processor time.
"""

import array
import io
import json
import os
import resource
import sys


def main() -> None:
    memory, seconds = map(int, sys.argv[1:])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import python_calamine

    cells = array.array("d")
    lengths = []
    try:
        workbook = python_calamine.CalamineWorkbook.from_filelike(io.BytesIO(sys.stdin.buffer.read()))
        for number, row in enumerate(workbook.get_sheet_by_index(0).iter_rows(), 1):
            lengths.append(len(row))
            for column, cell in enumerate(row, 1):
                if not isinstance(cell, int | float):
                    answer({"error": f"row {number}, column {column}: {repr(cell)[:40]} is not a number"})
                else:
                    cells.append(cell)
    except MemoryError:
        answer({"error": "it takes far more memory than a file of its size should"})
    except Exception as error:
        answer({"error": f"cannot be opened as a spreadsheet ({str(error)[:200]})"})
    answer({"columns": lengths}, cells)


def answer(head: dict[str, object], cells: "array.array[float] | None" = None) -> None:
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n")
    if cells is not None:
        cells.tofile(sys.stdout.buffer)
    sys.stdout.buffer.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
