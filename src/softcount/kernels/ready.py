"""Machine code that comes with the package, so that the first run need not compile.

A wheel for a platform has a folder `FOLDER`, in it a folder named by a digest of all that the code
was built for and with (`target`), and in that one file per kernel and signature. Files are named by
the kernel's fingerprint (`softcount.kernels.jit`), so code of other sources is never found, and
each begins with a digest of its contents, so damaged code is never run. What is not found, or
cannot be used, is compiled as if there were no such folder.

The code is built for baselines: sets of instructions that most processors of the last ten years
have (x86-64-v3), or that most servers have (v4); the best one that fits is used. It gives the same
bits as code that was compiled for this very processor, as nothing in the kernels depends on the
width of registers (`softcount.kernels.vectors`), and no product is fused with a sum unless the
kernel says so.

Nothing but the package itself says where the folder is: it is as trustworthy as the code beside it.
"""

# mypy: allow-untyped-calls
from __future__ import annotations

import hashlib
import os
import pickle
import re
import sys
import zlib
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import llvmlite.binding as llvm
import numba
import numpy as np
from numba.core import types
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

FOLDER = Path(__file__).parent.parent / "_compiled"
LAYOUT = 1
"""Version of the format of the files."""
SEAL = 16
"""Length of a digest in bytes."""


class Baseline(NamedTuple):
    """The processors that code is built for.

    ``cpu``       LLVM's name of it
    ``features``  what a processor must have, by LLVM's names
    ``beyond``    registers that not all of these processors have, as assemblers write them; empty:
                  there are none
    """

    cpu: str
    features: tuple[str, ...]
    beyond: str


_V3 = (
    *("64bit", "cmov", "cx8", "fxsr", "mmx", "sse", "sse2"),
    *("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3", "crc32"),
    *("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"),
)
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
BASELINES = {
    "x86_64": (
        Baseline("x86-64-v4", _V4, ""),  # registers twice as wide: a quarter faster at matrices
        Baseline("x86-64-v3", _V3, r"%zmm|%k[0-7]\b|%[xy]mm(1[6-9]|2\d|3[01])\b"),
    )
}
"""By LLVM's names of architectures; the best comes first."""

NEUTRAL = re.compile(
    "_|CUDA|FORCE_CUDA|DISABLE_CUDA|ENABLE_CUDASIM|CPU_|CACHE_|THREADING_|NUMBA_|DISABLE_JIT"
    "|COLOR_|DEVELOPER_|FULL_TRACEBACKS|SHOW_HELP|DISABLE_PERFORMANCE|FUNCTION_CACHE|GDB_"
    "|HIGHLIGHT|HTML|RUNNING_UNDER|ENABLE_SYS_MONITORING|USE_LLVMLITE_MEMORY|JIT_COVERAGE"
)
"""Beginnings of the names of numba's settings that do not change what is compiled, or that are
looked at by themselves."""


def baselines() -> tuple[Baseline, ...]:
    """Return the baselines for processors of this kind, the best first."""
    return BASELINES.get(llvm.get_process_triple().split("-")[0], ())


def fits(baseline: Baseline) -> bool:
    """Return whether this processor has all that a baseline needs."""
    try:
        features = llvm.get_host_cpu_features()
    except RuntimeError:  # nothing is known of it
        return False
    return all(features.get(name) for name in baseline.features)


def target(baseline: Baseline) -> str:
    """Return a digest of all that machine code depends on, except for the kernels themselves."""
    settings = {
        name: repr(value)
        for name, value in sorted(vars(numba.config).items())
        if name.isupper() and not NEUTRAL.match(name)
    }
    about = (
        *(LAYOUT, baseline, llvm.get_process_triple()),
        *(sys.implementation.cache_tag, getattr(sys, "abiflags", "")),
        *(numba.__version__, llvmlite.__version__, llvm.llvm_version_info),
        *(np.__version__.split(".")[0], settings),
    )
    return hashlib.blake2b(repr(about).encode(), digest_size=SEAL).hexdigest()


@cache
def folder() -> Path | None:
    """Return the folder of code that this process may use; None if there is none."""
    settings = vars(numba.config)
    # someone who asks for code for a certain processor is to have it
    if settings["CPU_NAME"] is not None or settings["CPU_FEATURES"] is not None:
        return None
    for baseline in baselines() if FOLDER.is_dir() else ():
        place = FOLDER / target(baseline)
        with suppress(OSError):  # not built, or not for these versions
            # what everybody may write to, nobody should execute
            if not place.stat().st_mode & 0o002 and fits(baseline):
                return place
    return None


def load(kernel: str, fingerprint: str, signature: Any, context: Any) -> Any:
    """Load the code of a kernel for a signature, as numba's `CompileResult`; None if there is none.

    The target context must have been refreshed: code is linked to what it finds there.
    """
    place = folder()
    if place is None:
        return None
    try:
        name = entry_name(kernel, fingerprint, signature)
        raw = (place / name).read_bytes()
        data = raw[SEAL:]
        if raw[:SEAL] != _seal(place.name, name, data):
            return None
        found = Code(*pickle.loads(data)).link(context)
        return found if tuple(found.signature.args) == tuple(signature) else None
    except Exception:  # no such file, or not for us: it is compiled
        return None


class Code(NamedTuple):
    """A kernel's code, as it is written.

    ``symbols``  names that it defines, of which numba must know
    ``bitcode``  LLVM's form of it, compressed: it is needed only if a kernel that is compiled here
                 calls this one, and to parse it takes as long as all else
    ``rest``     what else numba's `CompileResult` is made of
    """

    library: str
    machine: bytes
    symbols: tuple[str, ...]
    bitcode: bytes
    rest: tuple[Any, ...]

    def link(self, context: Any) -> Any:
        """Make numba's `CompileResult`."""
        context.codegen()._engine._defined_symbols.update(self.symbols)
        library = self.library, "object", (self.machine, _no_bitcode())
        result = CompileResult._rebuild(context, library, *self.rest)
        result.library._get_module_for_linking = cache(
            lambda: llvm.parse_bitcode(zlib.decompress(self.bitcode))
        )
        return result


@cache
def _no_bitcode() -> bytes:
    code: bytes = llvm.parse_assembly("").as_bitcode()
    return code


def save(place: Path, baseline: Baseline, kernel: str, fingerprint: str, result: Any) -> Path:
    """Write the code of a kernel, which must be for the baseline, and return its file."""
    made_for, beyond = result.library.codegen.magic_tuple()[1:], baseline.beyond
    if made_for != (baseline.cpu, ""):
        raise RuntimeError(f"{kernel} is compiled for {made_for}, not for {baseline.cpu}")
    if beyond and (foreign := re.search(beyond, result.library.get_asm_str())):
        raise RuntimeError(f"{kernel} uses {foreign[0]}, which {baseline.cpu} does not have")
    name = entry_name(kernel, fingerprint, result.signature.args)
    (library, _, (code, bitcode)), *rest = result._reduce()
    rest[5] = ""  # the annotated source, for people who debug
    module = result.library._get_module_for_linking()
    defined = (*module.functions, *module.global_variables)
    symbols = tuple(one.name for one in defined if not one.is_declaration)
    data = dumps(tuple(Code(library, code, symbols, zlib.compress(bitcode, 9), tuple(rest))))
    path = place / target(baseline) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{name}.{os.getpid()}")
    aside.write_bytes(_seal(path.parent.name, name, data) + data)
    aside.rename(path)  # several processes may build at once
    return path


def entry_name(kernel: str, fingerprint: str, signature: Any) -> str:
    """Return the name of the file of a kernel's code for a signature."""
    about = (fingerprint, [describe(one) for one in signature])
    digest = hashlib.blake2b(repr(about).encode(), digest_size=SEAL).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9_.]', '', kernel)}-{digest}"


def describe(kind: Any) -> str:
    """Describe a type of numba, so that types of different contents differ.

    >>> from numba import types
    >>> describe(types.UniTuple(types.float64, 2))
    'UniTuple(float64, float64)'
    """
    if not isinstance(kind, types.BaseTuple):
        return str(kind)
    members: Any = kind
    parts = ", ".join(describe(one) for one in members)
    named = getattr(kind, "instance_class", None)
    if named is None:
        return f"{type(kind).__name__}({parts})"
    return f"{named.__module__}.{named.__qualname__}{named._fields}({parts})"


def _seal(*parts: str | bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=SEAL)
    for part in parts:
        digest.update(part if isinstance(part, bytes) else part.encode())
    return digest.digest()
