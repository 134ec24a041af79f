"""Compile the kernels for all processors of a kind, for a wheel (see docs/decisions/kernels.md).

    python tools/build_kernels.py build/kernels [--processes 4] [--json]

All estimators, commands and golden cases run on a little data, and all code that numba compiles for
a baseline of `softcount.kernels.ready` is saved. Then the same runs with this code alone: nothing
may be compiled, and what is not loaded is removed, for kernels that only kernels call are a part of
these.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PATHS = [str(ROOT / "src"), str(ROOT)]
GROUPS = {
    "hmm": ("hmm", "tag"),
    "align": ("align", "ibm", "diagonal", "translat", "language"),
    "grammar": ("pcfg", "grammar", "parse"),
    "rest": ("",),
}
"""What is compiled by one process, by parts of the names of estimators, commands and cases."""
FAR = 10**7
"""Symbols that numba makes up end in a number. Those of the n-th group begin at n times this, so
that neither another group nor a process that loads them makes up one of the same name."""

Run = Callable[[], object]


def list_runs(group: str, with_tests: bool) -> dict[str, Run]:
    """Return what there is to run of a group, by names."""
    from softcount.cli.rehearsals import REHEARSALS
    from tests.every_estimator import ESTIMATORS, said
    from tests.golden.cases import CASES, figures

    runs: dict[str, Run] = {name: partial(figures, name) for name in CASES}
    runs |= {name: partial(said, name) for name in ESTIMATORS}
    runs |= {f"softcount {name}": partial(_rehearse, name) for name in REHEARSALS}
    if with_tests:
        runs["every call"] = _run_every_call
    return {name: run for name, run in runs.items() if _group_of(name) == group}


def _group_of(name: str) -> str:
    return next(g for g, parts in GROUPS.items() if any(p in name.lower() for p in parts))


def _rehearse(command: str) -> None:
    from softcount.cli.rehearsals import rehearse

    with tempfile.TemporaryDirectory() as folder:
        if failed := rehearse(command, Path(folder)):
            raise RuntimeError("\n".join(failed))


def _run_every_call() -> None:
    from typer.main import get_command

    from softcount.cli.app import app
    from softcount.cli.rehearsals import run_quietly
    from tests.every_command import every_call

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for call in every_call(Path(folder)).values():
            with run_quietly() as said:
                code = get_command(app).main(list(map(str, call)), standalone_mode=False)
            if code:
                raise RuntimeError(f"{call}: {code} {said.getvalue()}")


def run_all(group: str, *, with_tests: bool) -> list[str]:
    """Run all of a group, and commands as tests call them; return what went wrong."""
    failed = []
    warnings.simplefilter("ignore")
    for name, run in list_runs(group, with_tests).items():
        print(name, file=sys.stderr, flush=True)
        try:
            run()
        except Exception as error:
            failed.append(f"{name}: {error!r}")
    return failed


def compile_all(folder: Path, cpu: str, group: str) -> dict[str, Any]:
    """Compile and save all that a group needs."""
    os.environ |= {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": ""}  # before numba is imported
    import numba
    from numba.core.bytecode import FunctionIdentity

    from softcount.kernels import jit, ready

    if vars(numba.config)["USING_SVML"]:
        raise SystemExit("uninstall Intel's SVML: the code would need it")
    (baseline,) = (one for one in ready.baselines() if one.cpu == cpu)
    FunctionIdentity._unique_ids = itertools.count(FAR * (1 + list(GROUPS).index(group)))
    left_out: list[str] = []

    def keep(name: str, fingerprint: str, result: Any) -> None:
        if result.library.has_dynamic_globals or result.lifted:
            left_out.append(name)
        else:
            ready.save(folder, baseline, name, fingerprint, result)

    jit.KEEP = keep
    return {"failed": run_all(group, with_tests=False), "left out": left_out}


def check_all(folder: Path, cpu: str, group: str) -> dict[str, Any]:
    """Run everything with saved code alone; return what was loaded, and what was compiled."""
    from softcount.kernels import jit, ready

    ready.FOLDER = folder
    (baseline,) = (one for one in ready.baselines() if one.cpu == cpu)
    ready.BASELINES = dict.fromkeys(ready.BASELINES, (baseline,))
    loaded: set[str] = set()
    compiled: set[str] = set()
    name_of = ready.entry_name

    def note(*about: Any) -> str:
        name = name_of(*about)
        loaded.add(name)
        return name

    ready.entry_name = note
    jit.KEEP = lambda name, fingerprint, result: compiled.add(name)
    if ready.folder() is None:
        raise SystemExit("this machine cannot use the code")
    failed = run_all(group, with_tests=True)
    place = ready.target(baseline)
    return {
        "failed": failed,
        "loaded": [f"{place}/{name}" for name in loaded],
        "compiled": [*compiled],
    }


def main() -> None:
    sys.path[:0] = PATHS
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--part", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.part:
        name, cpu, group = options.part
        part = compile_all if name == "compile" else check_all
        print(json.dumps(part(folder, cpu, group)))
        return
    from softcount.kernels import ready

    shutil.rmtree(folder, ignore_errors=True)
    # only what can be tried is built
    cpus = [one.cpu for one in ready.baselines() if ready.fits(one)]
    if not cpus:
        print("no kernels are compiled ahead for processors of this kind", file=sys.stderr)
        return
    began, work = time.monotonic(), list(product(cpus, GROUPS))
    with ThreadPoolExecutor(options.processes) as pool:
        made = list(pool.map(lambda one: _in_a_process(folder, "compile", *one), work))
        checked = list(pool.map(lambda one: _in_a_process(folder, "check", *one), work))
    faults = [fault for one in (*made, *checked) for fault in one["failed"]]
    faults += [f"compiled again: {name}" for one in checked for name in one["compiled"]]
    if faults:
        raise SystemExit("\n".join(faults))
    needed = {name for one in checked for name in one["loaded"]}
    for path in folder.glob("*/*"):
        if f"{path.parent.name}/{path.name}" not in needed:
            path.unlink()
    files, times = list(folder.glob("*/*")), os.times()
    figures = {
        "baselines": cpus,
        "files": len(files),
        "MB": round(sum(path.stat().st_size for path in files) / 1e6, 1),
        "seconds": round(time.monotonic() - began),
        "CPU seconds": round(times.children_user + times.children_system),
        "left out": sorted({name for one in made for name in one["left out"]}),
    }
    print(json.dumps(figures, indent=1) if options.json else figures)


def _in_a_process(folder: Path, part: str, cpu: str, group: str) -> Any:
    command = [sys.executable, __file__, str(folder), "--part", part, cpu, group]
    with tempfile.TemporaryDirectory() as cache:
        settings = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
        settings |= {"PYTHONPATH": os.pathsep.join(PATHS), "NUMBA_CACHE_DIR": cache}
        done = subprocess.run(command, env=settings, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
