"""Machine code that comes with the package is used where it fits, and nowhere else.

That nothing users do compiles anything is checked where the code is built: tools/build_kernels.py.
"""

from __future__ import annotations

import importlib.util
import linecache
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest

from softcount.kernels import ready
from tests.kernels.test_jit_cache import DAMAGES

SOURCE = """
import math
from typing import Any, NamedTuple
import numpy as np
from softcount.kernels.jit import njit, lean

class Pair(NamedTuple):
    left: Any
    right: Any

FACTOR, ADDEND = 2.0, 3.0

@njit
def added(x):
    total = 0.0
    for one in x:
        total += inner(one) * FACTOR + ADDEND
    return total

@lean
def inner(x):
    return math.exp(x) / 3.0 + x * x

@njit
def told(pair):
    return pair.left - pair.right

def call():
    return added(np.linspace(0.0, 1.0, 1001)), told(Pair(5, 3))
"""

BUILD = """
import itertools, sys
from pathlib import Path
from numba.core.bytecode import FunctionIdentity
FunctionIdentity._unique_ids = itertools.count(10**7)
from softcount.kernels import jit, ready
folder = Path(sys.argv[1])
(v3,) = (one for one in ready.baselines() if one.cpu == "x86-64-v3")
jit.KEEP = lambda name, stamp, code: ready.save(folder, v3, name, stamp, code)
from ready_code import call
call()
"""

V4, V3 = ready.BASELINES["x86_64"]
pytestmark = pytest.mark.skipif(
    V3 not in ready.baselines() or not ready.fits(V3),
    reason="no code is compiled ahead for this processor",
)


def run(code: str, *args: str | Path, here: Path, **settings: str) -> str:
    """What a Python program prints that can import what lies in a folder."""
    paths = os.pathsep.join([str(here), *sys.path])
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    environment |= {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(here / "cache"), **settings}
    command = [sys.executable, "-c", code, *map(str, args)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of code, as builds of wheels write it."""
    here = tmp_path_factory.mktemp("built")
    (here / "ready_code.py").write_text(SOURCE)
    run(BUILD, here / "code", here=here, NUMBA_CPU_NAME=V3.cpu, NUMBA_CPU_FEATURES="")
    return here / "code"


@pytest.fixture
def code(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of it, which this process may use."""
    folder = tmp_path / "_compiled"
    shutil.copytree(built, folder)
    monkeypatch.setattr(ready, "FOLDER", folder)
    ready.folder.cache_clear()
    (tmp_path / "ready_code.py").write_text(SOURCE)
    yield folder
    sys.modules.pop("ready_code", None)
    ready.folder.cache_clear()


def call(path: Path, source: str = SOURCE) -> tuple[Any, int]:
    """What the kernels of a new module say, and how many of them were loaded."""
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("ready_code", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["ready_code"] = importlib.util.module_from_spec(spec)
    linecache.checkcache()
    spec.loader.exec_module(module)
    said = module.call()
    kernels = module.added, module.told
    assert all(len(kernel.signatures) == 1 for kernel in kernels)
    return said, sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels)


def compiled_here(tmp_path: Path) -> Any:
    """What they say when nothing is ready; the code is kept apart."""
    (tmp_path / "apart").mkdir()
    said, hits = call(tmp_path / "apart" / "ready_code.py", SOURCE)
    assert hits == 0
    return said


def nothing_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "FOLDER", Path("/nowhere"))
    ready.folder.cache_clear()


def test_code_is_loaded_and_gives_the_same_bits(
    code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, hits = call(tmp_path / "ready_code.py")
    assert hits == 2
    assert not list(tmp_path.rglob("*.nbi"))  # nothing was compiled
    with monkeypatch.context() as patch:
        nothing_is_ready(patch)
        assert compiled_here(tmp_path) == said


def test_a_kernel_that_is_compiled_here_calls_one_that_is_ready(code: Path, tmp_path: Path) -> None:
    caller = "@njit\ndef twice(x):\n    return 2 * added(x)\n\n"
    said, hits = call(tmp_path / "ready_code.py", SOURCE.replace("def call", caller + "def call"))
    assert hits == 2
    assert sys.modules["ready_code"].twice(np.linspace(0.0, 1.0, 1001)) == 2 * said[0]


def test_kernels_that_kernels_call_are_not_looked_for(code: Path) -> None:
    names = sorted(path.name.split("-")[0] for path in code.glob("*/*"))
    assert names == ["added", "inner", "told"]  # of which builds remove one


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_code_is_compiled(
    code: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    for path in code.glob("*/*"):
        damage(path)
    said, hits = call(tmp_path / "ready_code.py")
    assert hits == 0
    assert said[1] == 2
    assert not list(code.glob("*/trace"))


def test_a_folder_in_its_place(code: Path, tmp_path: Path) -> None:
    for path in code.glob("*/*"):
        path.unlink()
        path.mkdir()
    assert call(tmp_path / "ready_code.py")[1] == 0


@pytest.mark.parametrize(
    ("old", "new", "hits"),
    [
        ("x * x", "x + x", 1),
        ("FACTOR, ADDEND = 2.0, 3.0", "FACTOR, ADDEND = 3.0, 2.0", 1),
        ("@lean\ndef inner", "@njit\ndef inner", 1),
        ("    left: Any\n    right: Any", "    right: Any\n    left: Any", 1),
        ("def call", "# a remark\ndef call", 2),
    ],
)
def test_code_of_other_sources_is_not_used(
    old: str, new: str, hits: int, code: Path, tmp_path: Path
) -> None:
    """Also where only a constant, an option or the order of a tuple's fields is another."""
    assert old in SOURCE
    changed = SOURCE.replace(old, new)
    assert call(tmp_path / "ready_code.py", changed)[1] == hits


@pytest.mark.parametrize(
    ("of", "name", "value"),
    [
        (numba, "__version__", "0.1.2"),
        (ready.llvmlite, "__version__", "0.1.2"),
        (ready.llvm, "llvm_version_info", (3, 1, 4)),
        (numba.config, "OPT", 2),
        (numba.config, "LOOP_VECTORIZE", 0),
        (numba.config, "BOUNDSCHECK", 1),
        (numba.config, "DEBUGINFO_DEFAULT", 1),
        (numba.config, "USING_SVML", True),
        (numba.config, "CPU_NAME", "generic"),
        (numba.config, "CPU_FEATURES", "-avx512f"),
        (sys.implementation, "cache_tag", "cpython-27"),
    ],
)
def test_other_versions_and_settings_find_nothing(
    of: Any, name: str, value: Any, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ready.folder() is not None
    ready.folder.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(of, name, value)
        assert ready.folder() is None
    ready.folder.cache_clear()


@pytest.mark.parametrize(
    "name", ["NUM_THREADS", "CACHE_DIR", "SHOW_HELP", "CUDA_LOG_SIZE", "_HAVE_YAML"]
)
def test_settings_that_do_not_matter(
    name: str, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ready.target(V3)
    monkeypatch.setattr(numba.config, name, "another", raising=False)
    if name == "NUM_THREADS":
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 77)
        monkeypatch.delattr(numba.config, name)
    assert ready.target(V3) == before


@pytest.mark.parametrize("lacking", ["avx2", "fma", "bmi2"])
def test_a_processor_that_lacks_something(
    lacking: str, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = dict.fromkeys(V3.features, True)
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: {**features, "avx512f": False})
    assert ready.folder() is not None
    ready.folder.cache_clear()
    monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: {**features, lacking: False})
    assert ready.folder() is None


def test_the_best_baseline_is_used(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (old,) = code.iterdir()
    shutil.copytree(old, code / ready.target(V4))
    for better in (False, True):
        features = {**dict.fromkeys(V4.features, better), **dict.fromkeys(V3.features, True)}
        monkeypatch.setattr(llvm, "get_host_cpu_features", lambda given=features: given)
        ready.folder.cache_clear()
        assert ready.folder() == code / ready.target(V4 if better else V3)


def test_a_folder_that_everybody_may_write_to(code: Path) -> None:
    (place,) = code.iterdir()
    place.chmod(0o777)
    assert ready.folder() is None


def test_only_code_for_the_baseline_is_saved(tmp_path: Path) -> None:
    """What this process compiles is for its own processor."""

    @numba.njit
    def doubled(x: float) -> float:
        return 2 * x

    doubled(1.5)
    (result,) = doubled.overloads.values()
    with pytest.raises(RuntimeError, match="not for x86-64-v3"):
        ready.save(tmp_path, V3, "doubled", "", result)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("register", "is_foreign"),
    [
        *(("%zmm3", True), ("%k1", True), ("%xmm16", True), ("%ymm31", True)),
        *(("%ymm15", False), ("%xmm1", False), ("%r10", False), ("%xmm0", False)),
    ],
)
def test_which_registers_the_baseline_has(register: str, is_foreign: bool) -> None:
    assert bool(re.search(V3.beyond, f"\tvaddpd\t{register}, %xmm2, %xmm3")) == is_foreign


def test_a_process_of_its_own_compiles_nothing(code: Path, tmp_path: Path) -> None:
    asked = (
        "import sys; from pathlib import Path; from softcount.kernels import compiling, ready;"
        "ready.FOLDER = Path(sys.argv[1]);"
        "from ready_code import call; print(call()[1], compiling.progress().ready)"
    )
    assert run(asked, code, here=tmp_path).split() == ["2", "0"]


def test_without_compiling_at_all(tmp_path: Path) -> None:
    asked = (
        "import softcount as sc, softcount.hmm.kernels.packs;"
        "print(sc.MultinomialMixture(2, max_iter=2).fit(['a b', 'b c', 'x y']).n_iter_)"
    )
    assert run(asked, here=tmp_path, NUMBA_DISABLE_JIT="1").split() == ["2"]
