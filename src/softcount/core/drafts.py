"""Atomic writing: output goes to a temporary draft first, which replaces the target when complete.

A draft is in the same folder as its target, under the name `.NAME.HOST-TOKEN.softcount.tmp`. It is
synced to disk and renamed, which is atomic: readers see the old file or the new one, never a part.
If writing fails or is interrupted (Ctrl-C, SIGTERM, SIGHUP), the draft is removed.

`kill -9` and power cuts leave drafts behind. The next writer in the same folder removes them, but
never one that is still being written: a writer holds a lock (flock) on its draft while it lives,
and the system releases the lock when the process ends, in whatever way. So a draft that can be
locked is abandoned. Drafts of other machines, whose locks may be invisible in a shared folder, and
of other users are left alone, and so are all drafts on systems without such locks.
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
except ImportError:  # no such locks on this system: abandoned drafts are not removed
    fcntl = None  # type: ignore[assignment]

DRAFT = re.compile(r"\..+\.(?P<host>[0-9a-f]{8})-[0-9a-f]{16}\.softcount\.tmp", re.DOTALL)
OF_NAME = 40
"""Characters of the target's name used in that of its draft: file names have at most 255 bytes."""
MOST_LINKS = 40
OWN_FILES = re.compile(r"/proc/\d+(/task/\d+)?/fd|/dev/fd")
"""Folders in which open files have names, with links resolved: on Linux, and elsewhere."""


# files
def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file completely or not at all; see `open_whole`.

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
    """Open a file for writing that replaces the target at the end of the ``with``, unless it fails.

    The new file gets the permissions of the one it replaces. Where a link points to a file, the
    file is replaced, and the link stays. Targets that are not files, such as ``/dev/stdout``,
    ``/dev/null`` or a pipe, are written to directly; a broken pipe is ignored. Raises `OSError`.
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
    if there is not None and not os.access(target, os.W_OK):  # respect write protection
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    clear_abandoned(target.parent)
    with _delay_signals():
        number, draft = _new_draft(target, there)
        try:
            with os.fdopen(number, "wb") as file:
                yield file
                file.flush()
                os.fsync(number)
                if fcntl is None:  # systems without these locks may not rename open files
                    file.close()
                os.replace(draft, target)  # while it is still locked
            sync_folder(target.parent)
        finally:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)


def own_descriptor(name: str) -> int | None:
    """Return the descriptor that a name such as ``/dev/stdout`` stands for, or None.

    It may lead to a regular file, if standard output is redirected to one. That file must not be
    replaced: the shell, and all further output, would keep using the old one.
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
    """Open for writing what cannot be replaced: not a regular file, or open already."""
    if number is None:
        return open(name, "wb")
    for stream in (sys.stdout, sys.stderr):  # keep the order of what was printed before
        if stream is not None:
            stream.flush()
    return os.fdopen(os.dup(number), "wb")  # opening anew would start at position 0


def _new_draft(target: Path, there: os.stat_result | None) -> tuple[int, Path]:
    """Create an empty, locked file with the permissions of the one that it will replace."""
    wanted = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    while True:
        draft = _draft_path(target)
        number = os.open(draft, wanted, 0o666 if there is None else 0o600)
        try:
            _lock(number)
            if there is not None:  # copy owner and permissions, as far as we are allowed to
                mode = stat.S_IMODE(there.st_mode)
                with contextlib.suppress(OSError, AttributeError):
                    os.fchown(number, there.st_uid, there.st_gid)
                if os.fstat(number).st_gid != there.st_gid:  # another group: only others' rights
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
        os.close(number)  # another process removed it in the moment before it was locked


# folders
@contextmanager
def open_whole_folder(target: Path) -> Iterator[Path]:
    """Make an empty folder that is renamed to the target at the end of the ``with`` block.

    It is removed after an error. The target must not exist yet. Raises `OSError`.
    """
    clear_abandoned(target.parent)
    with _delay_signals():
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
        draft = _draft_path(target)
        draft.mkdir()
        try:
            number = os.open(draft, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except PermissionError:  # folders cannot be opened, and so not locked, on this system
            return None, draft
        except FileNotFoundError:  # another process removed it before it was locked
            continue
        _lock(number)
        if _is_at(draft, number):
            return number, draft
        os.close(number)


def sync_folder(folder: Path) -> None:
    """Sync a folder's list of names to disk, where the system supports it."""
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


def _draft_path(target: Path) -> Path:
    token = f"{_host()}-{secrets.token_hex(8)}"
    return target.with_name(f".{target.name[:OF_NAME]}.{token}.softcount.tmp")


def _lock(number: int) -> None:
    """Lock the file until it is closed or this process ends; wait while another inspects it."""
    if fcntl is not None:
        with contextlib.suppress(OSError):  # a file system without locks: drafts are never cleared
            fcntl.flock(number, fcntl.LOCK_EX)


def _is_at(path: Path, number: int) -> bool:
    """Return whether a path still refers to an open file."""
    with contextlib.suppress(OSError):
        return os.path.samestat(os.lstat(path), os.fstat(number))
    return False


def clear_abandoned(folder: Path) -> None:
    """Remove drafts in a folder whose writers are gone; ignore all errors."""
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
    # never follow a link, and never block on a pipe
    how = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    number = os.open(draft, how | (os.O_RDONLY if is_folder else os.O_RDWR))
    try:
        found = os.fstat(number)
        known = stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)
        if not known or found.st_uid != os.geteuid():
            return
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)  # OSError: it is being written
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
    """A signal that terminates the process has arrived."""


@contextmanager
def _delay_signals() -> Iterator[None]:
    """Inside the block, terminating signals take effect only after drafts are removed.

    This applies only to signals with the default handler, only in the main thread, and only while
    there is a draft: at other times the process ends as usual.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = ("SIGTERM", "SIGHUP")
    each = [getattr(signal, name) for name in names if hasattr(signal, name)]
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        if not heard:  # only the first: a second one must not interrupt the clean-up
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
        if heard:  # now send it again, with the default handler
            os.kill(os.getpid(), heard[0])
