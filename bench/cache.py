"""CPU time of a cache entry: `python bench/cache.py`.

Compares two layouts: appended rows with an index on their key, as in a store, and a table ordered by the key, as before
schema 0006. One connection writes 16 rows per commit; another looks up their keys just before that, as a live run does.
The result is CPU time in microseconds per row. Rounds are interleaved.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

ROWS, PER_COMMIT, ROUNDS = 50_000, 16, 3
TEXT = "x" * 520
COLUMNS = "key BLOB PRIMARY KEY NOT NULL, settlement TEXT NOT NULL, created_at REAL NOT NULL, checksum INTEGER"
LAYOUTS = {"appended, with an index": "", "ordered by the key": " WITHOUT ROWID"}
LOOK_UP = f"SELECT key, settlement, checksum FROM cache WHERE key IN ({', '.join('?' * PER_COMMIT)})"
INSERT = f"INSERT OR IGNORE INTO cache VALUES {', '.join(['(?, ?, ?, ?)'] * PER_COMMIT)}"


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "cache_size=-16384"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def measure(layout: str) -> tuple[float, float]:
    """Microseconds of CPU per row, for writing it and for looking it up before that."""
    written = looked = 0.0
    with tempfile.TemporaryDirectory() as folder, closing(connect(Path(folder, "cache.db"))) as writer:
        writer.execute(f"CREATE TABLE cache ({COLUMNS}){layout}")
        with closing(connect(Path(folder, "cache.db"))) as reader:
            for first in range(0, ROWS, PER_COMMIT):
                numbers = range(first, first + PER_COMMIT)
                keys = [blake2b(str(number).encode(), digest_size=16).digest() for number in numbers]
                begun = time.thread_time()
                reader.execute(LOOK_UP, keys).fetchall()
                looked += time.thread_time() - begun
                values = [value for key in keys for value in (key, TEXT, 1.0, 5)]
                begun = time.thread_time()
                writer.execute("BEGIN IMMEDIATE")
                writer.execute(INSERT, values)
                writer.execute("COMMIT")
                written += time.thread_time() - begun
    return written / ROWS * 1e6, looked / ROWS * 1e6


def main() -> None:
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in LAYOUTS}
    for _ in range(ROUNDS):
        for name, layout in LAYOUTS.items():
            found[name].append(measure(layout))
    for name, rounds in found.items():
        write, look = (sorted(each)[ROUNDS // 2] for each in zip(*rounds, strict=True))
        print(f"{name:26} write {write:5.1f} us, look up {look:5.1f} us")


if __name__ == "__main__":
    main()
