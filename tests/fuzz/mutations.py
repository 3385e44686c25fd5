"""Makes broken files from sound ones: bits flipped, lines doubled, numbers blown up, encodings changed."""

import random
from collections.abc import Callable

TOKENS = [
    b"", b"\0", b"\r", b"\n", b"\r\n", b"\t", b",", b";", b":", b"::", b'"', b"'", b"#", b" ", b"-", b"\x1a",
    b"\xff\xfe", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\x85", "é".encode("latin-1"), "２".encode(), "٣".encode(),
    b"nan", b"NaN", b"inf", b"-inf", b"1e999", b"1e-999", b"1e308", b"-0", b"0", b"+1", b"1_000", b"0x10", b"1.5",
    b"9" * 9, b"9" * 10, b"9" * 20, b"9" * 400, b"2147483648", b"-2147483649", b"9223372036854775807",
    b"9223372036854775808", b"-9223372036854775808", b"99", b"a", b"a" * 300, b"1:\n", b":\n", b"2005-02-30",
    b"0000-00-00", b"9999-99-99", b"userId", b"=1+1", b"true", b"[", b"{", b"}", b"]", b"&a ", b"*a", b"<<: ",
    b"!!python/object/apply:os.system ['true']", b"!!binary aaa=", b"? ", b"- ", b"| ", b"> ", b"%YAML 1.1\n", b"---\n",
    b"../", b"/", b"~",
]  # fmt: skip
"""Inserted into a file at any place, or put in the place of a field."""

Mutation = Callable[[bytes, random.Random], bytes]


def flip(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def overwrite(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    block = rng.choice([b"\0", b"\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff" * 8, rng.randbytes(4)])
    return data[:at] + block + data[at + len(block) :]


def truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def cut_out(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.choice([1, 2, 10, 100]) :]


def insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(TOKENS) + data[at:]


def replace_field(data: bytes, rng: random.Random) -> bytes:
    """Replaces the field at some place, up to its separators, by a token."""
    first = last = rng.randrange(len(data))
    while first and data[first - 1 : first] not in (b"\t", b",", b":", b"\n", b" "):
        first -= 1
    while last < len(data) and data[last : last + 1] not in (b"\t", b",", b":", b"\n", b" "):
        last += 1
    return data[:first] + rng.choice(TOKENS) + data[last:]


def repeat_line(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    return b"".join([*lines[:at], *[lines[at]] * rng.choice([2, 3, 50]), *lines[at + 1 :]])


def drop_line(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    del lines[rng.randrange(len(lines))]
    return b"".join(lines)


def swap_lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def recode(data: bytes, rng: random.Random) -> bytes:
    kinds = ["utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp500", "cr", "crlf", "nel"]
    kind, text = rng.choice(kinds), data.decode("utf-8", errors="replace")
    if kind in ("cr", "crlf", "nel"):
        return text.replace("\n", {"cr": "\r", "crlf": "\r\n", "nel": "\x85"}[kind]).encode()
    return text.encode(kind, errors="replace")


def append(data: bytes, rng: random.Random) -> bytes:
    return data + rng.choice([rng.randbytes(20), data, b"\0" * 600, b"\n" * 50, rng.choice(TOKENS)])


MUTATIONS: list[Mutation] = [
    flip, overwrite, truncate, cut_out, insert, insert, replace_field, replace_field, replace_field, repeat_line,
    drop_line, swap_lines, recode, append,
]  # fmt: skip


def mutated(data: bytes, rng: random.Random, most: int = 4) -> bytes:
    """`data` after one to `most` mutations; each further mutation is less likely."""
    for _ in range(most):
        if data:
            data = rng.choice(MUTATIONS)(data, rng)
        if rng.random() < 0.5:
            break
    return data
