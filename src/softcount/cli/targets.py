"""Files to be written, looked at before the work and not after it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from softcount.errors import SoftcountError


def check_target(path: Path | None, option: str) -> None:
    """Complain if no file can be written there; learning may take hours."""
    fault = _fault(path) if path is not None else ""
    if fault:
        raise SoftcountError(f"{option} {path}: {fault}", "choose another place")


def refuse_overwriting(
    inputs: Mapping[str, str | Path | None], targets: Mapping[str, Path | None]
) -> None:
    """Complain if a file would be written that is read, or written twice."""
    places = {_place(path): option for option, path in inputs.items() if path is not None}
    for option, path in targets.items():
        if path is None or path.is_char_device():
            continue
        other = places.setdefault(_place(path), option)
        if other != option:
            raise SoftcountError(
                f"{option} {path}: this is the file of {other}, too", "choose another place"
            )


def check_targets(
    inputs: Mapping[str, str | Path | None], targets: Mapping[str, Path | None]
) -> None:
    """All that is to be looked at before the work, of what is read and what is written."""
    for option, path in targets.items():
        check_target(path, option)
    refuse_overwriting(inputs, targets)


def _place(path: str | Path) -> Path:
    return Path(path).resolve()


def _fault(path: Path) -> str:
    if str(path) == "-":
        return "this cannot go to standard output"
    folder = path.resolve().parent
    if path.exists() and not path.is_file():
        return "there is a folder or a device of that name"
    if not folder.is_dir():
        return f"there is no folder {folder}"
    return "" if os.access(folder, os.W_OK) else f"the folder {folder} may not be written to"
