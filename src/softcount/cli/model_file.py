"""The user's own file with a story in it."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from softcount.errors import StoryError


def story_from(path: Path, name: str | None) -> Callable[..., Any]:
    """Run the file and give back the story called ``name``, or else the last one defined."""
    from softcount.models.story.language import Story

    module = _run(path)
    stories: dict[str, Callable[..., Any]] = {
        key: value
        for key, value in vars(module).items()
        if isinstance(getattr(value, "story", None), Story)
    }
    if not stories:
        raise StoryError(f"{path}: there is no story in this file", hint="mark one with @sc.story")
    if name is None:
        return stories.popitem()[1]
    if name not in stories:
        raise StoryError(
            f"{path}: there is no story called {name}",
            hint=f"stories in this file: {', '.join(stories)}",
        )
    return stories[name]


def imported_from(path: Path) -> list[str]:
    """The files of modules that are in the folder of this file, or below: its own, most likely."""
    folder = os.path.join(path.resolve().parent, "")  # as it was put where modules are found
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return [file for file in files if isinstance(file, str) and file.startswith(folder)]


def _run(path: Path) -> ModuleType:
    if not path.is_file():
        fault = "this is not a file" if path.exists() else "there is no such file"
        raise StoryError(f"{path}: {fault}", hint="the first argument is a Python file")
    spec = importlib.util.spec_from_file_location(f"story_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise StoryError(f"{path}: not a Python file", hint="its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.resolve().parent))  # as `python MODEL.py` does
    spec.loader.exec_module(module)
    return module
