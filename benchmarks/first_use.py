"""What the first and the second run of every command cost after installation, on tiny files.

    python benchmarks/first_use.py [--wheel FILE] [--only align,tag] [--json]
    python benchmarks/first_use.py --checks [--other-numba 0.67.0]

Builds what users install (`make wheel`), and installs it into an empty environment, with what it
depends on. Every command then runs twice on a terminal of its own, with an empty cache: CPU and
wall seconds, the longest time that the terminal was silent, and the kernels that were compiled.
Aims: 4 CPU seconds at first (2 for story, cluster and topics), 1.2 the second time, and never a
second of silence.

With ``--checks``: answers are right where nothing can be written, after an upgrade, with another
numba, and on other processors.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

CASES = {
    "story, two coins": "story coins.py tosses.txt --chars",
    "cluster": "cluster texts.txt -k 2",
    "topics": "topics texts.txt -k 2",
    "topics, collapsed Gibbs": "topics texts.txt -k 2 --learner collapsed-gibbs --max-iter 10",
    "classify": "classify --train train.tsv --unlabelled texts.txt texts.txt",
    "annotators": "annotators votes.tsv",
    "bootstrap": "bootstrap some.tsv --seeds seeds.tsv",
    "propagate": "propagate some.tsv",
    "cotrain": "cotrain views.tsv --views one,two --columns label,one,two",
    "ask": "ask some.tsv",
    "adapt": "adapt --source source.tsv --target target.tsv",
    "select": "select texts.txt -k 1:2",
    "similar": "similar topics.softcount wind texts.txt",
    "senses": "senses --word the texts.txt --min-count 1",
    "align": "align pairs.txt",
    "align -m gibbs": "align pairs.txt -m gibbs",
    "translate": "translate --pairs pairs.txt tokens.txt",
    "tag": "tag tokens.txt -k 2",
    "grammar": "grammar tokens.txt -k 2",
    "grammar --rules": "grammar ruled.txt --rules rules.txt",
    "parse": "parse grammar.softcount tokens.txt",
    "corpus build": "corpus build texts.txt -o archive",
    "resume": "resume run",
    "demo": "demo",
}
BEFORE = (
    "topics texts.txt -k 2 --save topics.softcount",
    "grammar tokens.txt -k 2 --save grammar.softcount",
    "cluster texts.txt -k 2 --folder run",
)
"""What some of them need, run with another cache."""
COINS = """
import softcount as sc

which, flip = sc.table("which"), sc.table("flip")

@sc.story
def coins(tosses):
    for z in "AB":
        yield which[z], *(flip[z, x] for x in tosses)
"""


@dataclass
class Figures:
    """What a run cost, and what it said."""

    cpu: float
    wall: float
    silence: float
    compiled: int
    said: str = field(repr=False)
    code: int = 0


class Installed:
    """An environment with what users install."""

    def __init__(self, folder: Path, wheel: Path, *more: str) -> None:
        self.folder, self.python = folder, folder / "env" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
        pip = [self.python, "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([*pip, wheel, *more], check=True)
        asked = "import softcount; print(softcount.__path__[0])"
        found = subprocess.run([self.python, "-c", asked], capture_output=True, text=True)
        self.package = Path(found.stdout.strip())

    def make_data(self, name: str) -> Path:
        """A folder with the files that commands read."""
        folder = self.folder / name
        folder.mkdir()
        asked = "from softcount.cli.rehearsals import write_files as w; from pathlib import Path; "
        subprocess.run([self.python, "-c", f"{asked} w(Path())"], cwd=folder, check=True)
        (folder / "coins.py").write_text(COINS)
        (folder / "tosses.txt").write_text("HHHHHHHT\nTTTTTTTH\nHHHHHHHH\n")
        for words in BEFORE:
            self.run(words, folder, self.folder / "before")
        return folder

    def run(
        self, words: str, folder: Path, cache: Path, prefix: Sequence[str] = (), **settings: str
    ) -> Figures:
        """Run a command on a terminal."""
        kept = {"PATH", "LANG", "LC_ALL", "TMPDIR"}
        environment = {k: v for k, v in os.environ.items() if k in kept}
        environment |= {"HOME": str(cache), "NUMBA_CACHE_DIR": str(cache), "TERM": "xterm"}
        cache.mkdir(exist_ok=True)
        ours, theirs = pty.openpty()
        began = last = time.monotonic()
        process = subprocess.Popen(
            [*prefix, self.python, "-m", "softcount", *words.split()],
            cwd=folder,
            env={**environment, **settings},
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        silence, said = 0.0, b""
        while True:
            ready, _, _ = select.select([ours], [], [], 0.05)
            now = time.monotonic()
            silence = max(silence, now - last)
            try:
                block = os.read(ours, 1 << 16) if ready else None
            except OSError:  # it is closed
                block = b""
            if block == b"":
                break
            if block:
                said, last = said + block, now
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = code = os.waitstatus_to_exitcode(status)
        os.close(ours)
        wall = time.monotonic() - began
        compiled = len(list(cache.rglob("*.nbi")))
        cpu = used.ru_utime + used.ru_stime
        return Figures(cpu, wall, silence, compiled, said.decode(errors="replace"), code)


def measure(installed: Installed, names: list[str]) -> dict[str, dict[str, Figures]]:
    """First and second runs."""
    found, folder = {}, installed.make_data("data")
    for name in names:
        cache = installed.folder / f"cache {len(found)}"
        found[name] = {}
        for run in ("first", "second"):
            shutil.rmtree(folder / "archive", ignore_errors=True)
            found[name][run] = one = installed.run(CASES[name], folder, cache)
            if one.code:
                raise SystemExit(f"softcount {CASES[name]} failed:\n{one.said}")
        first, second = found[name].values()
        print(
            f"{name:24} {first.cpu:6.2f} {second.cpu:6.2f}   {first.wall:6.2f} {second.wall:6.2f}"
            f"   {first.silence:5.2f} {second.silence:5.2f}   {first.compiled:3}",
            file=sys.stderr,
            flush=True,
        )
    return found


# Where answers must be right


def answer(
    installed: Installed, call: str, name: str, prefix: Sequence[str] = (), **settings: str
) -> Figures:
    """What is left on the terminal after a command."""
    cache = installed.folder / name
    one = installed.run(call, installed.folder / "data", cache, prefix, **settings)
    if one.code:
        raise SystemExit(f"{name}: softcount {call} failed:\n{one.said}")
    lines = one.said.replace("\r\n", "\n").split("\n")
    kept = [line.split("\x1b[K")[-1] for line in lines]
    one.said = "\n".join(line for line in kept if not line.startswith("softcount "))  # has seconds
    return one


def check(installed: Installed, call: str, wheel: Path, other_numba: str) -> dict[str, str]:
    """Compare answers under other conditions with the usual one."""
    installed.make_data("data")
    usual, said = answer(installed, call, "usual"), dict[str, str]()
    said["with ready code"] = f"{usual.compiled} kernels compiled"

    def compare(name: str, other: Figures, *, same: bool = True) -> None:
        verdict = "same answer" if other.said == usual.said else "another answer"
        right = (other.said == usual.said) == same
        said[name] = f"{'right' if right else 'WRONG'}: {verdict}, {other.compiled} compiled"

    for name, settings in {
        "NUMBA_CPU_NAME=x86-64-v2 (no AVX)": {"NUMBA_CPU_NAME": "x86-64-v2"},
        "NUMBA_CPU_NAME=haswell (no AVX-512)": {"NUMBA_CPU_NAME": "haswell"},
        "NUMBA_OPT=1": {"NUMBA_OPT": "1"},
    }.items():
        features = {"NUMBA_CPU_FEATURES": ""} if "CPU_NAME" in name else {}
        compare(name, answer(installed, call, name.split()[0], **settings, **features))

    code = installed.package / "_compiled"
    (place,) = code.iterdir()
    place.rename(code / "other")
    compare("no code for these versions", answer(installed, call, "versions"))
    (code / "other").rename(place)

    for path in place.iterdir():
        path.rename(path.with_suffix(".whole"))
        path.write_bytes(path.with_suffix(".whole").read_bytes()[:-100])
    compare("every file is cut short", answer(installed, call, "cut"))
    for path in place.glob("*.whole"):
        path.rename(path.with_suffix(""))

    prefix = _read_only(installed.package)
    if prefix:
        nowhere = {"NUMBA_CACHE_DIR": "", "HOME": "/proc/nowhere"}
        one = answer(installed, call, "read-only", prefix, **nowhere)
        compare("nothing can be written", one)
        code.rename(installed.folder / "aside")
        one = answer(installed, call, "read-only", prefix, **nowhere)
        compare("nothing can be written, no ready code", one)
        (installed.folder / "aside").rename(code)
    else:
        said["nothing can be written"] = "not shown: no name spaces of mounts here"

    kernels = installed.package / "mixture" / "kernels.py"
    whole = kernels.read_text()
    kernels.write_text(whole.replace(OLD, NEW))
    upgraded = answer(installed, call, "upgraded")
    shutil.move(code, installed.folder / "aside")
    anew = answer(installed, call, "anew")
    shutil.move(installed.folder / "aside", code)
    kernels.write_text(whole)
    compare("after an upgrade", upgraded, same=False)
    said["after an upgrade, beside no ready code"] = (
        "right: same answer" if upgraded.said == anew.said else "WRONG: another answer"
    )
    if other_numba:
        folder = installed.folder / "other"
        folder.mkdir()
        other = Installed(folder, wheel, f"numba=={other_numba}")
        other.make_data("data")
        compare(f"numba {other_numba}", answer(other, call, "usual"))
    return said


OLD, NEW = "row[k] += count * weight[k]", "row[k] += 0.5 * count * weight[k]"
"""A change of a kernel, as an upgrade may bring it."""


def _read_only(folder: Path) -> list[str]:
    """What comes before a command to which a folder is read-only; nothing if this is impossible."""
    prefix = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    mounted = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    prefix += [mounted, str(folder)]
    try:
        tried = [*prefix, "touch", str(folder / "tried")]
        done = subprocess.run(tried, capture_output=True, text=True, check=False)
    except OSError:
        return []
    return prefix if "Read-only" in done.stderr else []


def make_wheel() -> Path:
    """Build what users install; the wheel that pip would choose here."""
    subprocess.run(["make", "--quiet", "wheel"], cwd=ROOT, check=True)
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    wheels = sorted((ROOT / "dist").glob("softcount-*.whl"), key=lambda path: path.stat().st_mtime)
    fitting = [path for path in wheels if f"-{python}-" in path.name]
    return (fitting or wheels)[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="do not build, but install this")
    parser.add_argument("--only", default="", help="cases whose names begin so, comma-separated")
    parser.add_argument("--checks", action="store_true", help="compare answers, measure nothing")
    parser.add_argument("--call", default="cluster texts.txt -k 2 --proba", help="of --checks")
    parser.add_argument("--other-numba", default="", help="a version to check, too")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    wheel = (options.wheel or make_wheel()).resolve()
    wanted = tuple(options.only.split(",")) if options.only else ("",)
    with tempfile.TemporaryDirectory() as name:
        installed = Installed(Path(name), wheel)
        if options.checks:
            said = check(installed, options.call, wheel, options.other_numba)
            for what, verdict in said.items():
                print(f"{what:42} {verdict}")
            raise SystemExit(any("WRONG" in one for one in said.values()))
        print(
            f"{wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB\n"
            f"{'':24} CPU s: first, second   wall s          silence s     compiled",
            file=sys.stderr,
        )
        found = measure(installed, [case for case in CASES if case.startswith(wanted)])
    if options.json:
        figures = {
            name: {
                run: {
                    key: value for key, value in asdict(one).items() if key not in {"said", "code"}
                }
                for run, one in runs.items()
            }
            for name, runs in found.items()
        }
        print(json.dumps(figures, indent=1))
    quick = {"story, two coins", "cluster", "topics"}
    for name, runs in found.items():
        first, aim = runs["first"], 2.0 if name in quick else 4.0
        if first.cpu > aim:
            print(f"{name}: {first.cpu:.1f} CPU s, {aim:.0f} wanted", file=sys.stderr)
        if runs["second"].cpu > 1.2:
            print(f"{name}: {runs['second'].cpu:.2f} CPU s warm, 1.2 wanted", file=sys.stderr)
        if (silence := max(run.silence for run in runs.values())) > 1.0:
            print(f"{name}: silent for {silence:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
