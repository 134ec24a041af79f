"""Writers that are killed again and again, at random moments, and what they leave behind.

A program of its own, ``python killed_writers.py KIND FOLDER SEED KILLS``, so that one start of
Python serves all kills: each writer is a child that writes on and on until it is gone.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

LONGEST = {"build": 0.2, "corpus": 0.1}
"""Seconds until a writer is killed, at most; of others 0.04."""


def save(path: Path, version: int) -> None:
    """A model."""
    from softcount.core import store

    store.write(path, "story", {"t": np.full(200_000, float(version))}, {}, f"version {version}")


def answer(path: Path, version: int) -> None:
    """What align writes: links, by and by."""
    from softcount.align.command import open_output

    with open_output(path) as file:
        for n in range(2_000):
            file.write(f"{version} {n} ".encode() * 20 + b"\n")
            file.flush()


def page(path: Path, version: int) -> None:
    """A page, or a table."""
    from softcount.report.page import write_page

    write_page(path, f"<p>version {version}</p>\n" * 300_000)


def build(path: Path, version: int) -> None:
    """An archive, in place of the one before, which goes first: it must be new."""
    from softcount.text.archive import Archive

    shutil.rmtree(path, ignore_errors=True)
    Archive.build((f"a{n} b{n % 7} c{version}" for n in range(300)), path)


def corpus(path: Path, version: int) -> None:
    """A corpus in several files, in place of the one before."""
    from softcount.text import disk
    from softcount.text.corpora import build_corpus

    disk.SHARD_BYTES, disk.BLOCK = 4000, 1000
    shutil.rmtree(path, ignore_errors=True)
    build_corpus((f"a{n} b{n % 7} c{version}" for n in range(9000)), path, "sentences")


NEW = {"build", "corpus"}
"""What is written to a new folder each time."""
KINDS: dict[str, Callable[[Path, int], None]] = {
    "save": save,
    "answer": answer,
    "page": page,
    "build": build,
    "corpus": corpus,
}


def raw_of(path: Path) -> dict[str, bytes]:
    """A file, or all files of a folder."""
    files = sorted(path.iterdir()) if path.is_dir() else [path] if path.exists() else []
    return {file.name if path.is_dir() else "": file.read_bytes() for file in files}


def kill_writers(kind: str, folder: Path, seed: int, kills: int) -> dict[str, int]:
    """How often a killed writer left the file before, the file after, a draft, or a part."""
    write, draw = KINDS[kind], random.Random(seed)
    target, other = folder / "target", folder.parent / "whole"
    whole = []
    for version in (0, 1):
        write(other, version)
        whole.append(raw_of(other))
    shutil.rmtree(other, ignore_errors=True)
    write(target, 0)
    seen = {"whole": 0, "missing": 0, "broken": 0, "drafts": 0}
    for _ in range(kills):
        child = os.fork()
        if child == 0:
            version = 0
            while True:
                version = 1 - version
                write(
                    folder / f"archive-{time.monotonic_ns()}" if kind in NEW else target,
                    version,
                )
        time.sleep(draw.uniform(0.0, LONGEST.get(kind, 0.04)))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        drafts = [one for one in folder.iterdir() if one.name.startswith(".")]
        seen["drafts"] += bool(drafts)
        there = [one for one in folder.iterdir() if not one.name.startswith(".")]
        for one in there:
            seen["whole" if raw_of(one) in whole else "broken"] += 1
        seen["missing"] += not there
        if kind in NEW:
            for one in there:
                shutil.rmtree(one)
    write(target, 0)
    seen["left"] = len([one for one in folder.iterdir() if one != target])
    return seen


if __name__ == "__main__":
    _, which, where, at_random, times = sys.argv
    print(json.dumps(kill_writers(which, Path(where), int(at_random), int(times))))
