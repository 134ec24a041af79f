"""Checks of the files that a command reads and writes, made before it starts, for all commands.

Options that name files to write are marked where they are declared. Every other text or path option
is assumed to name a file to read, if there is a file of that name; so a forgotten mark leads to an
error message, and never to a lost file. Options whose text is never a file name are marked as such.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Any, get_type_hints

import typer

from softcount.core.drafts import own_descriptor
from softcount.core.errors import SoftcountError

STREAMS = ("standard input", "standard output", "standard error")
HINT = "choose another place"
MAX_FILES = 10_000
"""Maximum number of files of a folder that are checked one by one."""


# marks, for use in the Annotated of an option next to its typer.Option
@dataclass(frozen=True)
class Written:
    """Mark of an option that names a file to write.

    ``folder``   whether it is a folder, which must be new
    ``printed``  whether ``-`` is allowed, for standard output
    """

    folder: bool = False
    printed: bool = False


@dataclass(frozen=True)
class Plain:
    """Mark of an option whose text is not a file name, even if there is a file of that name."""


@dataclass(frozen=True)
class FitPlace(Plain):
    """Mark of an option that names the folder of a fit, which is checked when it is opened."""


FIT_FOLDER = FitPlace()
WRITTEN, WRITTEN_OR_PRINTED, NEW_FOLDER = Written(), Written(printed=True), Written(folder=True)
PLAIN = Plain()


def read_marks(callback: Any) -> dict[str, Written | Plain]:
    """Return the marks of a command's options, by parameter name of its function."""
    hints = get_type_hints(inspect.unwrap(callback), include_extras=True)
    return {
        name: mark
        for name, hint in hints.items()
        for mark in getattr(hint, "__metadata__", ())
        if isinstance(mark, Written | Plain)
    }


Identity = tuple[int, int]


@dataclass(frozen=True)
class Target:
    """A file to be written: the option that names it, and its name as given."""

    option: str
    name: str
    mark: Written = WRITTEN

    @property
    def place(self) -> str:
        """Path of the file after resolving links."""
        return os.path.realpath(self.name)

    @property
    def is_stream(self) -> bool:
        """Whether it is an open stream or not a regular file, so that no file is replaced."""
        if self.name == "-" or own_descriptor(self.name) is not None:
            return True
        found = _stat(self.name)
        return found is not None and not stat.S_ISREG(found.st_mode)

    def fault(self) -> str:
        """Return the reason why it cannot be written; empty if it can."""
        if self.name == "-":
            return "" if self.mark.printed else "this cannot go to standard output"
        try:
            number = own_descriptor(self.name)
            if number is not None:
                os.fstat(number)  # OSError: nothing is open under it
            try:
                found = os.stat(self.name)
            except (FileNotFoundError, NotADirectoryError):
                found = None
            if found is not None and not self.mark.folder:
                if stat.S_ISDIR(found.st_mode):
                    return "there is a folder of that name"
                if stat.S_ISBLK(found.st_mode) or stat.S_ISSOCK(found.st_mode):
                    return "there is a device of that name"
                if not os.access(self.name, os.W_OK):
                    return "this file may not be written to"
                if self.is_stream:
                    return ""
            folder = os.path.dirname(self.place)
            if not os.path.isdir(folder):
                return f"there is no folder {folder}"
            if not os.access(folder, os.W_OK) or _is_kept(folder, found):
                return f"the folder {folder} may not be written to"
            return ""
        except (OSError, ValueError) as error:  # a name that is too long, or has a null byte
            return getattr(error, "strerror", None) or str(error)


def _is_kept(folder: str, found: os.stat_result | None) -> bool:
    """Return whether the sticky bit of its folder protects a file of another user from being
    replaced."""
    if found is None or not hasattr(os, "geteuid") or os.geteuid() == 0:
        return False
    around = os.stat(folder)
    owners = (around.st_uid, found.st_uid)
    return bool(around.st_mode & stat.S_ISVTX) and os.geteuid() not in owners


@dataclass
class Files:
    """The files that a command reads and writes."""

    targets: list[Target]
    read: dict[Identity, str] = field(default_factory=dict)
    folders: dict[Identity, str] = field(default_factory=dict)

    def add(self, label: str, name: str) -> None:
        """Add a file or folder to read, if it exists."""
        found = _stat(name) if name != "-" else None
        if found is not None and stat.S_ISREG(found.st_mode):
            self.read.setdefault(_identity(found), label)
        elif found is not None and stat.S_ISDIR(found.st_mode):
            self.folders.setdefault(_identity(found), f"{label} {name}")
            # the files of a folder, without subfolders: an archive has none
            with contextlib.suppress(OSError), os.scandir(name) as entries:
                for entry in islice(entries, MAX_FILES):
                    if entry.is_file():
                        self.read.setdefault(_identity(os.stat(entry.path)), f"{label} {name}")

    def check(self) -> None:
        """Raise if a file cannot be written, or would overwrite a file that is read or another one
        that is written."""
        out, err = _find_open_file(1), _find_open_file(2)
        if err is not None and err in self.read:  # a message there would change the input
            if out is None or out not in self.read:
                typer.echo(f"softcount: {_into_read(STREAMS[2], self.read[err])}")
            raise typer.Exit(1)
        for target in self.targets:
            if fault := target.fault():
                raise SoftcountError(f"{target.option} {target.name}: {fault}", HINT)
        # standard output and error may be files, too, and a target may be an open file
        own = [own_descriptor(target.name) for target in self.targets if target.name != "-"]
        files = [target for target in self.targets if not target.is_stream]
        named = {_identity(found): one for one in files if (found := _stat(one.name)) is not None}
        for number in sorted({1, 2, *(number for number in own if number is not None)}):
            stream = _find_open_file(number)
            if stream is None:
                continue
            where = STREAMS[number] if number < len(STREAMS) else f"the open file {number}"
            if stream in named:
                raise _same_file(named[stream], where)
            if stream in self.read:
                raise _into_read(where, self.read[stream])
        taken: dict[tuple[Identity, str], str] = {}
        for target in files:
            found = _stat(target.name)
            if found is not None and (label := self.read.get(_identity(found))):
                raise _same_file(target, label)
            place = Path(target.place)
            for folder in (place, *place.parents):
                found = _stat(str(folder))
                if found is not None and (label := self.folders.get(_identity(found))):
                    raise SoftcountError(
                        f"{target.option} {target.name}: {label} is a folder, which is read, and "
                        "this is inside it",
                        HINT,
                    )
            other = taken.setdefault(_identify_place(target.place), target.option)
            if other != target.option:
                raise _same_file(target, other)


def check_files(parameters: Iterable[Any], values: Mapping[str, Any], callback: Any) -> None:
    """Raise, before a command starts, if files cannot or must not be written.

    ``parameters``  the command's options and arguments, as click objects
    ``values``      their values by name
    """
    files = list_files(parameters, values, callback)
    stdin = _find_open_file(0)
    if stdin is not None:
        files.read.setdefault(stdin, STREAMS[0])
    files.check()


def list_files(parameters: Iterable[Any], values: Mapping[str, Any], callback: Any) -> Files:
    """List the files that the values of a command's options name, to read and to write."""
    marks, files = read_marks(callback), Files([])
    for parameter in parameters:
        mark, label = marks.get(parameter.name), option_name(parameter)
        for name in list_names(values.get(parameter.name)):
            if isinstance(mark, Written):
                files.targets.append(Target(label, name, mark))
            elif mark is None:
                files.add(label, name)
    return files


def refuse_read(context: typer.Context, label: str, names: Iterable[str]) -> None:
    """Raise if a file to write is one of these files, which turned out to be read as well."""
    command = context.command
    files = Files(list_files(command.params, context.params, command.callback).targets)
    for name in names:
        files.add(label, name)
    files.check()


def option_name(parameter: Any) -> str:
    """Return the name of an option or an argument for use in messages."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper()).strip("[]")
    long = [name for name in parameter.opts if name.startswith("--")]
    return str((long or parameter.opts)[0])


def list_names(value: Any) -> Iterator[str]:
    """Yield the texts and paths among the values of an option."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from list_names(one)
    elif isinstance(value, os.PathLike | str) and not isinstance(value, Enum):
        yield os.fspath(value)


def _into_read(stream: str, label: str) -> SoftcountError:
    return SoftcountError(f"{stream} goes to the file of {label}, which is read", HINT)


def _same_file(target: Target, other: str) -> SoftcountError:
    message = f"{target.option} {target.name}: this is the file of {other}, too"
    return SoftcountError(message, HINT)


def _stat(name: str) -> os.stat_result | None:
    """Return the status of a file, following links; None if it does not exist."""
    try:
        return os.stat(name)
    except (OSError, ValueError):
        return None


def _find_open_file(number: int) -> Identity | None:
    """Return the identity of the regular file open under a descriptor; None if there is none."""
    try:
        found = os.fstat(number)
    except OSError:
        return None
    return _identity(found) if stat.S_ISREG(found.st_mode) else None


def _identity(found: os.stat_result) -> Identity:
    """Return the identity of a file, the same for all links to it and spellings of its name."""
    return found.st_dev, found.st_ino


def _identify_place(place: str) -> tuple[Identity, str]:
    """Return the identity of a path where no file exists yet, the same for all its spellings."""
    folder, name = os.path.split(place)
    above, own = os.path.split(folder)
    other = os.path.join(above, own.swapcase())
    # if the folder's name in swapped case is the same folder, assume that names ignore case
    if other != folder and os.path.exists(other) and os.path.samefile(folder, other):
        name = unicodedata.normalize("NFC", name).casefold()
    return _identity(os.stat(folder)), name
