"""A fit as a folder: what has been learned so far is on disk, and a killed fit goes on from there.

    model.fit(data, folder="run")    # killed, after hours
    model = softcount.resume("run")  # goes on, and learns the same bits as if nothing had happened

    run/
      fit.json           which model, settings and data, as digests; written last
      settings.record    the estimator's settings
      data.record        the arguments of `fit`: the data, and what is known of them
      progress.json      how far it is, for `softcount show`
      fit-0/             one folder for each time that the loop runs: warm-ups come first
        run-0/           one for each start
          checkpoint-00000007.record    the last two
          draw-…, params-…              draws, and parameters of steps, that are to be kept
          result.record                 once this run has ended
        result.record    once all runs have ended; it takes the place of their folders
      model.softcount    the fitted model, for `softcount.load`

A checkpoint holds tables, the number of the step, the state of the random streams, of the schedule,
and of the shards. Every file is written aside, synced, renamed, and has a checksum; the checkpoint
before it stays until then. Nothing that is read here is executed (see `softcount.core.records`).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial, wraps
from importlib import import_module
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import Any, TextIO, TypeVar

import numpy as np

from softcount._version import __version__
from softcount.core import interrupt, store
from softcount.core.drafts import open_whole, write_whole
from softcount.core.errors import LearnerError, SoftcountError, StoreError, brief
from softcount.core.records import NotRecordable, digest, read_record, write_record
from softcount.core.types import Array, Fit, Params, State, Stats

try:
    import fcntl
except ImportError:  # no such locks on this system: two fits in one folder are not noticed
    fcntl = None  # type: ignore[assignment]

FACTS, SETTINGS, DATA, PROGRESS = "fit.json", "settings.record", "data.record", "progress.json"
STREAM = "stream.record"
RESULT, MODEL, LOCK, STDIN = "result.record", "model.softcount", ".lock", "stdin.txt"
FORMAT, FORMAT_VERSION = "softcount fit", 1
LARGEST_JSON = 1 << 24
"""A larger fit.json or progress.json, in bytes, is refused as damaged."""
N_CHECKPOINTS = 2
"""Number of checkpoints that a run keeps: the last one, and one in case it is damaged."""
PATIENCE = 20.0
"""The time between two checkpoints is at least this many times as long as writing one takes."""
CURVE = 200
"""Number of points of the objective curve in progress.json."""

F = TypeVar("F", bound=Callable[..., Any])
M = TypeVar("M", bound=Any)


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; learning goes on."""


class Stopped(Exception):
    """Raised inside a schedule after the checkpoint that `RunFolder.stop` asked for."""


@dataclass(frozen=True)
class Checkpoint:
    """Where a run is.

    ``schedule``  what the schedule passed to `Run.mark`
    ``start``     initial parameters, if the schedule needs them again
    ``before``    parameters of the last step
    ``stats``     its E-step, if the trace records Q and the bound
    ``trace``     the figures of all steps so far, as columns
    ``used``      number of requests for random numbers, by purpose
    ``step``      the number of the step to come
    ``temper``    the power that the schedule has set, if any
    ``shards``    the state of each shard that has one
    """

    schedule: Mapping[str, Any]
    start: Params
    before: Params
    stats: Stats | None
    trace: Mapping[str, Array]
    used: Mapping[str, int]
    step: int
    temper: float | None
    shards: Mapping[int, Any]


FIGURES = tuple(
    each.name for each in fields(State) if each.name not in ("params", "restarted_from")
)
"""The figures of a state: all but parameters."""


def pack_states(states: Sequence[State]) -> dict[str, Array]:
    """Return the figures of states as columns."""
    return {name: np.array([getattr(state, name) for state in states]) for name in FIGURES}


def unpack_states(columns: Mapping[str, Array]) -> list[State]:
    """Return the states that `pack_states` was given, without their parameters."""
    rows = zip(*(columns[name].tolist() for name in FIGURES), strict=True)
    return [State(params={}, **dict(zip(FIGURES, row, strict=True))) for row in rows]


def take_state(value: Any) -> Any:
    """Return what a checkpoint holds of a value: samplers and averages by their `state`."""
    if hasattr(value, "state") and hasattr(value, "restore"):
        return value.state()
    if isinstance(value, dict):
        return {name: take_state(each) for name, each in value.items()}
    return value


@dataclass
class FitFolder:
    """Where a fit writes its checkpoints, and how often: pass it, or just a path, as ``folder``.

    ``path``       the folder; it is made if it does not exist
    ``seconds``    time between two checkpoints; more if writing them takes long
    ``steps``      write one after this many steps, too
    ``keep_data``  write a copy of the data, so that `resume` needs nothing else
    ``facts``      further facts for fit.json

    >>> import tempfile, softcount as sc
    >>> place = FitFolder(tempfile.mkdtemp() + "/run", seconds=10)
    >>> model = sc.MultinomialMixture(2).fit(["a a", "b b", "a", "b"], folder=place)
    >>> again = resume(place.path)
    >>> bool((again.labels_ == model.labels_).all())
    True
    """

    path: str | PathLike[str]
    seconds: float = 60.0
    steps: int | None = None
    keep_data: bool = True
    facts: Mapping[str, Any] = field(default_factory=dict)
    is_open: bool = field(default=False, init=False, repr=False)
    _loops: int = field(default=0, init=False, repr=False)
    _lock: int | None = field(default=None, init=False, repr=False)

    @property
    def place(self) -> Path:
        return Path(self.path)

    # opening
    def open(self, facts: Mapping[str, Any], records: Mapping[str, Any]) -> None:
        """Begin in a new or empty folder, or continue the same fit in an old one.

        ``facts``    what the fit is; ``facts["identity"]`` must be as it was
        ``records``  values to write by file name, before the facts
        """
        self._loops = 0
        try:
            self.place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"cannot make the folder {self.path}: {error.strerror or error}",
                "choose a folder that may be written to",
            ) from error
        self._hold()
        self.is_open = True
        try:
            if (self.place / FACTS).exists():
                _check_same(self.place, read_facts(self.place)["identity"], facts["identity"])
                return
            strange = [
                each for each in os.listdir(self.place) if each not in (LOCK, STDIN, *records)
            ]
            if any(not name.startswith(".") for name in strange):
                raise StoreError(
                    f"the folder {self.path} is not empty, and holds no fit", "choose another one"
                )
            for name, value in records.items():
                write_record(self.place / name, value)
            about = {"format": FORMAT, "format_version": FORMAT_VERSION, "softcount": __version__}
            _write_json(self.place / FACTS, {**about, **facts, **self.facts})
        except BaseException:
            self.close()
            raise

    def _hold(self) -> None:
        """Lock the folder while this process works in it."""
        if fcntl is None or self._lock is not None:
            return
        lock = os.open(self.place / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # perhaps only by somebody who looks: see `is_in_use`
                time.sleep(0.1)
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise StoreError(
                f"another process is fitting in the folder {self.path}",
                f"`softcount show {self.path}` says how far it is; wait, or choose another folder",
            ) from None
        except OSError:  # a file system without locks
            os.close(lock)
            return
        self._lock = lock

    def is_in_use(self) -> bool | None:
        """Return whether a process is fitting in the folder; None: that cannot be told here."""
        if fcntl is None:
            return None
        try:
            lock = os.open(self.place / LOCK, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # a file system without locks
            return None
        finally:
            os.close(lock)
        return False

    def close(self) -> None:
        """Let other processes work in the folder."""
        self.is_open = False
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def next_loop(self) -> LoopFolder:
        """Return the folder of the next run of the loop; loops come in a fixed order."""
        self._loops += 1
        return LoopFolder(self, self.place / f"fit-{self._loops - 1}")


@dataclass
class LoopFolder:
    """The folder of one fit of one model: its runs, and at the end their result."""

    whole: FitFolder
    path: Path

    def result(self) -> Fit | None:
        """Return the result, if all runs have ended."""
        found = _read_if_intact(self.path / RESULT)
        return found if isinstance(found, Fit) else None

    def run(self, number: int, max_iter: int, n_init: int) -> RunFolder:
        """Return the folder of a run, with its last checkpoint."""
        folder = self.path / f"run-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        return RunFolder(self, folder, {"run": number, "max_iter": max_iter, "n_init": n_init})

    def finish(self, fit: Fit, keep_runs: bool = False) -> None:
        """Write the result of all runs; it takes their place, unless they are to be kept."""
        self.path.mkdir(parents=True, exist_ok=True)
        write = partial(write_record, self.path / RESULT, fit)
        if not keep_runs and _try_to_write(self.path, write):
            for folder in self.path.glob("run-*"):
                shutil.rmtree(folder, ignore_errors=True)
        figures = pack_states(fit.trace.states)
        self.tell({"finished": str(fit.verdict)}, figures)

    def tell(self, facts: Mapping[str, Any], figures: Mapping[str, Array]) -> None:
        """Write how far the fit is."""
        objective, seconds = figures["objective"], figures["seconds"]
        every = max(1, -(-len(objective) // CURVE))
        last = {name: float(figures[name][-1]) for name in ("objective", "change", "perplexity")}
        progress = {
            "loop": self.path.name,
            "step": int(figures["step"][-1]),
            "curve": [_finite(value) for value in objective[::-every][::-1].tolist()],
            "seconds": float(seconds.sum()),
            "seconds_per_step": float(np.median(seconds[-5:])),
            "time": time.time(),
            **{name: _finite(value) for name, value in last.items()},
            **facts,
        }
        _try_to_write(self.path, partial(_write_json, self.whole.place / PROGRESS, progress))


class RunFolder:
    """The folder of one run: its checkpoints, draws and result.

    ``checkpoint``  the last intact checkpoint that was found here; None: there is none
    """

    def __init__(self, loop: LoopFolder, path: Path, facts: Mapping[str, Any]) -> None:
        self.loop, self.path, self._facts = loop, path, facts
        self._stopping = self._hopeless = False
        self._last, self._cost, self._last_step = time.monotonic(), 0.0, 0
        self._number, self.checkpoint = self._find()

    def _find(self) -> tuple[int, Checkpoint | None]:
        """Return the number and the contents of the newest intact checkpoint."""
        newest = 0
        for path in sorted(self.path.glob("checkpoint-*.record"), reverse=True):
            newest = newest or int(path.stem.partition("-")[2])
            found = _read_if_intact(path)
            if isinstance(found, Checkpoint):
                return newest, found
        if newest:
            what = "no checkpoint is intact: this run begins anew"
            warnings.warn(f"{self.path}: {what}", CheckpointWarning, stacklevel=2)
        return newest, None

    @property
    def way_on(self) -> str:
        """How to continue after Ctrl-C, for the warning."""
        return f"softcount.resume({os.fspath(self.loop.whole.path)!r}) goes on from there"

    def is_due(self, step: int) -> bool:
        """Return whether it is time for a checkpoint."""
        if self._stopping:
            return True
        if self._hopeless:
            return False
        whole, passed = self.loop.whole, time.monotonic() - self._last
        if whole.steps is not None and step - self._last_step >= whole.steps:
            return True
        return passed >= max(whole.seconds, PATIENCE * self._cost)

    def write(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, and remove the oldest; raise `Stopped` if the run shall stop here."""
        began = time.monotonic()
        self._number += 1
        path = self.path / f"checkpoint-{self._number:08d}.record"
        written = _try_to_write(self.path, partial(write_record, path, checkpoint))
        self._hopeless = written is None
        if written:
            for old in sorted(self.path.glob("checkpoint-*.record"))[:-N_CHECKPOINTS]:
                old.unlink(missing_ok=True)
        self.loop.tell(self._facts, checkpoint.trace)
        self._last, self._last_step = time.monotonic(), checkpoint.step
        self._cost = self._last - began
        if self._stopping:
            raise Stopped

    def stop(self, steps: Iterator[State]) -> None:
        """Go on with a run until it can write a checkpoint, and no further."""
        self._stopping = True
        with contextlib.suppress(Stopped, StopIteration):
            next(steps)
        self._stopping = False

    def keep(self, kind: str, step: int, params: Params) -> None:
        """Write parameters of a step that the result will hold."""
        path = self.path / f"{kind}-{step:08d}.record"
        _try_to_write(self.path, partial(write_record, path, dict(params)))

    def kept(self, kind: str, step: int) -> Params:
        """Read what `keep` wrote."""
        params: Params = read_record(self.path / f"{kind}-{step:08d}.record")
        return params

    def result(self) -> Any:
        """Return the result of this run, if it has ended."""
        return _read_if_intact(self.path / RESULT)

    def finish(self, result: Any) -> None:
        """Write the result, which takes the place of the checkpoints."""
        if _try_to_write(self.path, partial(write_record, self.path / RESULT, result)):
            for old in self.path.glob("checkpoint-*.record"):
                old.unlink(missing_ok=True)


def _try_to_write(folder: Path, write: Callable[[], None]) -> bool | None:
    """Write something; if that is not possible, warn, and let learning go on.

    What was written before is still there: a full disk must not cost what has been learned.
    Returns None if a later attempt would fail, too.
    """
    try:
        write()
        return True
    except NotRecordable as error:
        problem, outcome = f"this fit has no checkpoints: {error.message}", None
    except (StoreError, OSError) as error:
        problem = f"no checkpoint could be written: {getattr(error, 'message', error)}"
        problem, outcome = f"{problem}; learning goes on, and the last one is as it was", False
    warnings.warn(f"{folder}: {problem}", CheckpointWarning, stacklevel=2)
    return outcome


def _read_if_intact(path: Path) -> Any:
    """Return the contents of a record; None if there is none, or it is damaged."""
    if not path.exists():
        return None
    try:
        return read_record(path)
    except StoreError as error:
        warnings.warn(f"{path} is left out: {error.message}", CheckpointWarning, stacklevel=2)
        return None


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


# Facts


def _write_json(path: Path, facts: Mapping[str, Any]) -> None:
    write_whole(path, (json.dumps(facts, indent=1) + "\n").encode())


def read_facts(path: str | PathLike[str], name: str = FACTS) -> dict[str, Any]:
    """Read fit.json or progress.json of a folder; raise `StoreError` if it holds no fit."""
    file = Path(path) / name
    try:
        if file.stat().st_size > LARGEST_JSON:
            raise ValueError("it is too large")
        facts = json.loads(file.read_bytes())
        if not isinstance(facts, dict):
            raise ValueError("it is not an object")
        if name == FACTS:
            if facts["format"] != FORMAT or not isinstance(facts["identity"], dict):
                raise ValueError("it has another format")
            if facts["format_version"] != FORMAT_VERSION:
                raise StoreError(
                    f"{path} was written by another version of softcount",
                    f"use softcount {brief(facts.get('softcount'))}, or fit again elsewhere",
                )
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreError(
            f"{path} holds no fit: there is no {file.name}"
            if Path(path).is_dir()
            else f"{path} holds no fit: there is no such folder",
            "give the folder that was given to fit, as folder=… or --folder",
        ) from error
    except (OSError, ValueError, KeyError, RecursionError) as error:
        if isinstance(error, StoreError):
            raise
        raise StoreError(f"{file} is damaged: {error}", "fit again, in another folder") from error
    return facts


WHAT = {
    "model": "another model",
    "settings": "the same model with other settings",
    "data": "other data",
    "options": "other options of fit",
    "version": "another version of softcount, whose results may differ",
}
"""How to say what is different about a fit."""


def _check_same(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise unless the fit in a folder is the one that is asked for."""
    for name, what in WHAT.items():
        if before.get(name) != now.get(name):
            raise StoreError(
                f"the folder {path} holds a fit of {what}",
                "choose another folder, or delete this one if you no longer need it",
            )


def identify(value: Any) -> tuple[str | None, bool]:
    """Return a digest of a value, and whether the value can be written to a file.

    Functions and other values that cannot be written are identified by what they are called.
    """
    try:
        return digest(value), True
    except NotRecordable:
        return digest(getattr(value, "__qualname__", type(value).__qualname__)), False


# Estimators


def resumable(fit: F) -> F:
    """Let an estimator's ``fit`` take ``folder``, which then holds its settings and its data."""
    names = signature(fit)

    @wraps(fit)
    def wrapped(self: Any, *args: Any, **given: Any) -> Any:
        where = given.get("folder")
        if where is None or (isinstance(where, FitFolder) and where.is_open):
            return fit(self, *args, **given)  # an open one: this fit is a part of a larger one
        del given["folder"]
        folder = where if isinstance(where, FitFolder) else FitFolder(where)
        bound = names.bind(self, *args, **given).arguments
        options = {**bound.pop("options", {})}
        watcher = options.pop("on_step", ())
        del bound[next(iter(bound))]  # self
        arguments = dict(bound)
        _open_for(folder, self, arguments, options)
        try:
            fit(self, **arguments, **options, on_step=watcher, folder=folder)
            if hasattr(self, "save"):
                _try_to_write(folder.place, partial(self.save, folder.place / MODEL))
        finally:
            folder.close()
        return self

    return wrapped  # type: ignore[return-value]


def _open_for(
    folder: FitFolder, model: Any, arguments: Mapping[str, Any], options: Mapping[str, Any]
) -> None:
    """Open the folder of a fit of an estimator."""
    settings = {n: v for n, v in model.get_params(deep=False).items() if n != "engine"}
    if "random_state" in settings and not isinstance(settings["random_state"], int | np.integer):
        raise LearnerError(
            f"random_state={brief(settings['random_state'])}: a fit in a folder can only be "
            "continued from a seed",
            "give a whole number, such as random_state=0",
        )
    known = {name: identify(value) for name, value in settings.items()}
    data = {name: identify(value) for name, value in arguments.items() if value is not None}
    whole = all(can_be_written for _, can_be_written in data.values())
    records: dict[str, Any] = {
        SETTINGS: {name: settings[name] for name, (_, stored) in known.items() if stored}
    }
    if folder.keep_data and whole:
        records[DATA] = {"arguments": dict(arguments), "options": dict(options)}
    kind = type(model)
    facts = {
        "model": kind.__name__,
        "class": f"{kind.__module__}:{kind.__qualname__}",
        "missing": [name for name, (_, stored) in known.items() if not stored],
        "data": {name: _describe(value) for name, value in arguments.items() if value is not None},
        "identity": {
            "model": kind.__name__,
            "settings": digest({name: each for name, (each, _) in known.items()}),
            "data": digest({name: each for name, (each, _) in data.items()}),
            "options": identify(dict(options))[0],
            "version": __version__,
        },
    }
    folder.open(facts, records)


def copy_stream(stream: TextIO, folder: str | PathLike[str]) -> TextIO:
    """Copy standard input to a folder, unless it is there already; return it from there."""
    path = Path(folder) / STDIN
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with open_whole(path) as file:
                shutil.copyfileobj(stream.buffer, file)
        return open(path, encoding=stream.encoding, errors=stream.errors)
    except OSError as error:
        raise StoreError(
            f"standard input cannot be copied to {path}: {error.strerror or error}",
            "choose a folder that may be written to and has room",
        ) from error


def _describe(value: Any) -> str:
    """Describe data by their number, or in a few words."""
    if isinstance(value, str):
        return brief(value)
    try:
        return f"{value.shape[0]:,}" if hasattr(value, "shape") else f"{len(value):,}"
    except (TypeError, IndexError):
        return brief(value)


def resume(path: str | PathLike[str], **given: Any) -> Any:
    """Continue the fit in a folder, to its end, and return the fitted model.

    A fit that has ended is returned as it is. The bits are those of a fit that was never
    interrupted, whatever the number of threads and the engine.

    ``given``  settings that a file cannot hold (functions, an engine), and ``on_step``
    """
    folder = Path(path)
    facts = read_facts(folder)
    if facts.get("command"):
        raise StoreError(
            f"{path} was made by a command", f"continue it in the shell: softcount resume {path}"
        )
    if facts.get("stream"):
        raise StoreError(
            f"{path} was made by learn_stream",
            "call it again, with the same model, stream and folder: it goes on from there",
        )
    module, _, name = str(facts.get("class")).partition(":")
    if not module.startswith("softcount."):
        raise StoreError(
            f"{path} holds a fit of {brief(name)}, a class of your own",
            "call its fit again, with the same data and folder: it goes on from there",
        )
    if not (folder / DATA).exists():
        raise StoreError(
            f"{path} has no copy of the data, which cannot be written to a file",
            "call fit again, with the same settings, data and folder: it goes on from there",
        )
    watcher = given.pop("on_step", ())
    settings = {**read_record(folder / SETTINGS), **given}
    lacking = [each for each in facts.get("missing", ()) if each not in given]
    if lacking:
        raise StoreError(
            f"the setting {lacking[0]!r} of this fit cannot be written to a file",
            f"give it again: resume({str(path)!r}, {lacking[0]}=…)",
        )
    data = read_record(folder / DATA)
    try:
        kind = getattr(import_module(module), name)
        if not hasattr(kind, "get_params") or not hasattr(kind, "fit"):
            raise TypeError(f"{name} is not an estimator")
        model = kind(**settings)
        arguments, options = dict(data["arguments"]), dict(data["options"])
    except (TypeError, KeyError, ValueError, AttributeError, ImportError) as error:
        if isinstance(error, SoftcountError):
            raise
        raise StoreError(f"{path} is not an intact fit: {error}", "fit again") from error
    return model.fit(**arguments, **options, on_step=watcher, folder=FitFolder(folder))


# Endless streams


def learn_stream(
    model: M, blocks: Iterable[Any], folder: str | PathLike[str], seconds: float = 60.0
) -> Iterator[M]:
    """Learn from a stream of data by ``partial_fit``, and yield the model after each block.

    What has been learned is written to the folder about once in ``seconds``, and when the stream
    ends or is stopped; Ctrl-C stops it after the block. After a kill, call it again with the same
    stream: blocks that the written model has learned from are skipped, and the bits are those of a
    stream without a stop. If there are no others, the model is yielded as it is.

    ``model``   an estimator with ``partial_fit`` (topics, aligners)
    ``blocks``  data for ``partial_fit``, a block at a time; from the beginning of the stream

    >>> import tempfile, softcount as sc
    >>> blocks = [["a b", "b a"], ["c d", "a a"], ["d c"]]
    >>> folder = tempfile.mkdtemp() + "/run"
    >>> for model in learn_stream(sc.LDA(2), blocks, folder):
    ...     seen = model.n_iter_
    >>> seen
    3
    """
    place = FitFolder(folder, seconds, keep_data=False)
    settings = model.get_params(deep=False)
    known = {name: identify(value)[0] for name, value in settings.items() if name != "engine"}
    identity = {"model": type(model).__name__, "settings": digest(known), "version": __version__}
    place.open({"model": type(model).__name__, "stream": True, "identity": identity}, {})
    file, done, last = place.place / STREAM, 0, time.monotonic()
    try:
        if file.exists():
            written = read_record(file)
            objects = {name: settings[name] for name in store.OBJECTS if name in settings}
            model = type(model).restore(written["content"], **objects)
            done = written["blocks"]
            if written["progress"] is not None:
                model._progress = written["progress"]

        def write() -> None:
            progress = getattr(model, "_progress", None)  # a model file has it in a rounded form
            state = {"content": model.content(), "progress": progress, "blocks": done}
            _try_to_write(place.place, partial(write_record, file, state))

        learned, stopped = 0, False
        try:
            for number, block in enumerate(blocks):
                if number < done:
                    continue
                with interrupt.graceful():
                    with interrupt.whole():  # a block is learned from as a whole, or not at all
                        model.partial_fit(block)
                    stopped = interrupt.asked()
                    if stopped:
                        interrupt.tell(f"after block {number}; learn_stream goes on from there")
                done, learned = number + 1, learned + 1
                if time.monotonic() - last >= seconds:
                    write()
                    last = time.monotonic()
                yield model
                if stopped:
                    break
            if done and not learned:  # all of this had been learned from before
                yield model
        finally:
            if done:
                write()
                _try_to_write(place.place, partial(model.save, place.place / MODEL))
    finally:
        place.close()


def blocks_of_stream(folder: str | PathLike[str]) -> int:
    """Return how many blocks of a stream the model in a folder has learned from."""
    file = Path(folder) / STREAM
    return int(read_record(file)["blocks"]) if file.exists() else 0
