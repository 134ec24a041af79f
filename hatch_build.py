"""Put compiled kernels into a wheel: `make wheel`.

Without the variable ``SOFTCOUNT_KERNELS`` nothing is done, and the wheel is pure. It names a folder
that `tools/build_kernels.py` has written; the wheel is then for this Python and this platform.
"""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# numba's own wheels are for these: whoever can run it can run what it compiles
PLATFORMS = {("linux", "x86_64"): "manylinux_2_17_x86_64"}


class KernelsHook(BuildHookInterface):
    """Add the folder to the wheel, and name the wheel after its platform."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = os.environ.get("SOFTCOUNT_KERNELS")
        if not folder or version == "editable":
            return
        found = PLATFORMS.get((sys.platform, platform.machine()))
        if found is None or sys.implementation.name != "cpython":
            raise RuntimeError("no wheels with compiled kernels are built on this platform")
        tag = f"cp{sys.version_info.major}{sys.version_info.minor}{sys.abiflags}"
        build_data["force_include"][folder] = "softcount/_compiled"
        build_data["pure_python"] = False
        build_data["tag"] = f"{tag}-{tag}-{found}"
