"""What is written goes aside first, and takes its place when it is whole.

A draft stands beside its target under a name of its own, `.NAME.HOST-TOKEN.softcount.tmp`. It is
brought to the disk and renamed, which is one step for whoever looks: there is the old file or the
new one, and never a part. What fails, and Ctrl-C, takes its draft away; so do SIGTERM and SIGHUP.

`kill -9` and a power cut leave drafts behind. Whoever writes in the same folder next removes them,
and never one that is still written to: a writer holds a lock (flock) on its draft for as long as it
lives, and the system gives the lock up when the process is gone, however it went. A draft that can
be locked is therefore nobody's. Drafts of other machines, whose locks a shared folder may not show,
and of other users are left alone, and so is everything where there are no such locks.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import platform
import re
import secrets
import shutil
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # no such locks on this system: drafts that were left stay
    fcntl = None  # type: ignore[assignment]

DRAFT = re.compile(r"\..+\.(?P<host>[0-9a-f]{8})-[0-9a-f]{16}\.softcount\.tmp", re.DOTALL)
OF_NAME = 40
"""So many letters of the target's name are in that of its draft: names have at most 255 bytes."""
MOST_LINKS = 40
OWN_FILES = re.compile(r"/proc/\d+(/task/\d+)?/fd|/dev/fd")
"""Where open files have names, after all links: on Linux, and on others."""


# files
def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file whole or not at all; see `open_whole`.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "a.txt"
    >>> write_whole(file, b"all of it")
    >>> file.read_bytes()
    b'all of it'
    """
    with open_whole(path) as file:
        file.write(content)


@contextmanager
def open_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to, which takes its place at the end of the ``with``; not after an error.

    A file that was there lends the new one its permissions. Where a link points to a file, the file
    is replaced, and the link stays. What is no file, such as ``/dev/stdout``, ``/dev/null`` or a
    pipe, is written to straight away; that its reader has gone is no fault. Raises `OSError`.
    """
    name = os.fspath(path)
    number = own_descriptor(name)
    try:
        there = os.stat(name)
    except FileNotFoundError:
        there = None
    if number is not None or (there is not None and not stat.S_ISREG(there.st_mode)):
        with contextlib.suppress(BrokenPipeError), _open_in_place(name, number) as file:
            yield file
        return
    target = Path(os.path.realpath(name))
    if there is not None and not os.access(target, os.W_OK):  # someone protects it
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    clear_abandoned(target.parent)
    with _taken_away_by_signals():
        number, draft = _new_draft(target, there)
        try:
            with os.fdopen(number, "wb") as file:
                yield file
                file.flush()
                os.fsync(number)
                if fcntl is None:  # systems without locks may not rename what is open
                    file.close()
                os.replace(draft, target)  # while it is still locked
            sync_folder(target.parent)
        finally:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)


def own_descriptor(name: str) -> int | None:
    """The number of the open file that a name such as ``/dev/stdout`` stands for, or None.

    What it leads to may be a file with a name, where standard output goes to one. That one must
    not be replaced: the system, and the rest of what is printed, would go on with the old one.
    """
    for _ in range(MOST_LINKS):
        folder, last = os.path.split(name)
        real = os.path.realpath(folder or ".")
        if last.isdecimal() and OWN_FILES.fullmatch(real):
            return int(last) if real.split("/")[2] in ("fd", str(os.getpid())) else None
        if not os.path.islink(name):
            return None
        name = os.path.join(real, os.readlink(name))
    return None


def _open_in_place(name: str, number: int | None) -> BinaryIO:
    """What is no file, or is open already: it cannot be replaced."""
    if number is None:
        return open(name, "wb")
    for stream in (sys.stdout, sys.stderr):  # what was printed before comes before
        if stream is not None:
            stream.flush()
    return os.fdopen(os.dup(number), "wb")  # a new one would begin at the start again


def _new_draft(target: Path, there: os.stat_result | None) -> tuple[int, Path]:
    """An empty file, locked, as private as the one that it will replace."""
    wanted = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    while True:
        draft = _named_for(target)
        number = os.open(draft, wanted, 0o666 if there is None else 0o600)
        try:
            _lock(number)
            if there is not None:  # who may read and write it, as far as we may give that
                mode = stat.S_IMODE(there.st_mode)
                with contextlib.suppress(OSError, AttributeError):
                    os.fchown(number, there.st_uid, there.st_gid)
                if os.fstat(number).st_gid != there.st_gid:  # another group may do what anyone may
                    mode = mode & ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
                with contextlib.suppress(OSError, AttributeError):
                    os.fchmod(number, mode)
                with contextlib.suppress(OSError, AttributeError):
                    acl = os.getxattr(target, "system.posix_acl_access")
                    os.setxattr(number, "system.posix_acl_access", acl)
            if _is_at(draft, number):
                return number, draft
        except BaseException:
            os.close(number)
            draft.unlink(missing_ok=True)
            raise
        os.close(number)  # it was cleared away in the moment before it was locked


# folders
@contextmanager
def open_whole_folder(target: Path) -> Iterator[Path]:
    """An empty folder to fill, which takes its place at the end of the ``with``; not after an
    error. There must be nothing of that name yet. Raises `OSError`."""
    clear_abandoned(target.parent)
    with _taken_away_by_signals():
        number, draft = _new_folder(target)
        try:
            yield draft
            sync_folder(draft)
            os.rename(draft, target)
            sync_folder(target.parent)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            if number is not None:
                os.close(number)


def _new_folder(target: Path) -> tuple[int | None, Path]:
    while True:
        draft = _named_for(target)
        draft.mkdir()
        try:
            number = os.open(draft, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except PermissionError:  # folders cannot be opened on this system, nor locked
            return None, draft
        except FileNotFoundError:  # cleared away in the moment before it was locked
            continue
        _lock(number)
        if _is_at(draft, number):
            return number, draft
        os.close(number)


def sync_folder(folder: Path) -> None:
    """Bring to the disk which names a folder has, where that can be done."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


# drafts
@cache
def _host() -> str:
    return hashlib.sha256(os.fsencode(platform.node())).hexdigest()[:8]


def _named_for(target: Path) -> Path:
    token = f"{_host()}-{secrets.token_hex(8)}"
    return target.with_name(f".{target.name[:OF_NAME]}.{token}.softcount.tmp")


def _lock(number: int) -> None:
    """Hold it until it is closed, or this process is gone; waits for whoever looks at it."""
    if fcntl is not None:
        with contextlib.suppress(OSError):  # a file system without locks: nobody clears it then
            fcntl.flock(number, fcntl.LOCK_EX)


def _is_at(path: Path, number: int) -> bool:
    """Whether a name is still that of an open file."""
    with contextlib.suppress(OSError):
        return os.path.samestat(os.lstat(path), os.fstat(number))
    return False


def clear_abandoned(folder: Path) -> None:
    """Remove drafts in a folder whose writers are gone; says nothing of what it cannot do."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            named = DRAFT.fullmatch(entry.name)
            if named is not None and named["host"] == _host():
                with contextlib.suppress(OSError):
                    _clear(Path(entry.path))


def _clear(draft: Path) -> None:
    is_folder = stat.S_ISDIR(os.lstat(draft).st_mode)
    # a link is never followed, and a pipe not waited for
    how = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    number = os.open(draft, how | (os.O_RDONLY if is_folder else os.O_RDWR))
    try:
        found = os.fstat(number)
        known = stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)
        if not known or found.st_uid != os.geteuid():
            return
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)  # OSError: someone writes to it
        if not _is_at(draft, number):
            return
        if stat.S_ISDIR(found.st_mode):
            shutil.rmtree(draft, ignore_errors=True)
        else:
            draft.unlink()
    finally:
        os.close(number)


# signals
class _Ended(BaseException):
    """A signal has come that ends the process."""


@contextmanager
def _taken_away_by_signals() -> Iterator[None]:
    """Signals that end the process do so after drafts are removed.

    Only where nobody has another use for them, only in the thread that hears them, and only while
    there is a draft: at other times the process ends as it always has.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = ("SIGTERM", "SIGHUP")
    each = [getattr(signal, name) for name in names if hasattr(signal, name)]
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        if not heard:  # once is enough: a second one must not disturb the clearing
            heard.append(number)
            raise _Ended

    changed = [number for number in each if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in changed:
            signal.signal(number, hear)
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)
        if heard:  # now it may do what it does
            os.kill(os.getpid(), heard[0])
