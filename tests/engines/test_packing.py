"""What goes to other processes arrives as it was, or it is said why it cannot."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from softcount.core.errors import SoftcountError, StoreError
from softcount.core.records import NotRecordable
from softcount.engines import folder
from softcount.engines.cloud import CloudPath
from softcount.engines.packing import Functions, checksum, pack
from tests.engines.shards import Cut
from tests.oracles.toy import Coins

LARGE = np.random.default_rng(0).normal(size=(30, 40, 50))
LAYOUTS = {
    "C": LARGE,
    "Fortran": np.asfortranarray(LARGE),
    "axes in another order": LARGE.transpose(1, 0, 2),
    "a view": LARGE[3:7, ::2].transpose(1, 2, 0),
    "small": np.arange(6.0).reshape(2, 3).T,
    "a number": np.array(3.0),
    "empty": np.zeros((0, 3)),
    "float32": LARGE.astype(np.float32),
    "bools": LARGE > 0,
}


def order_of_axes(array: np.ndarray) -> list[int]:
    return np.argsort(array.strides, kind="stable").tolist()


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("way", ["pickle", "file", "URL"])
def test_arrays_keep_their_bits_and_the_order_of_their_axes(name: str, way: str, tmp_path: Path):
    array = LAYOUTS[name]
    if way == "pickle":
        packed = pack({"x": array})
        assert len(packed.beside) == (array.nbytes >= 1 << 14)
        packed.beside[:] = map(bytearray, packed.beside)
        there = packed.load()["x"]
    else:
        path = tmp_path / "x" if way == "file" else CloudPath(f"memory://{tmp_path}") / "x"
        folder.write(path, array)
        there = folder.read(path)
    assert there.dtype == array.dtype
    assert np.array_equal(there, array)
    assert there.flags.writeable
    if array.size:
        assert order_of_axes(there) == order_of_axes(array)


def test_large_arrays_are_not_copied():
    packed = pack([LARGE])
    assert np.shares_memory(np.asarray(packed.beside[0]), LARGE)
    assert len(packed.main) < 1000
    assert packed.size == len(packed.main) + LARGE.nbytes


def test_digests_name_contents():
    one, same, other = pack([LARGE]), pack([LARGE.copy()]), pack([LARGE + 1])
    assert one.digest == same.digest != other.digest


def test_checksums_notice_what_was_written_in_place():
    array = LARGE.copy()
    before = checksum(array)
    array[0, 0, [0, 1]] = array[0, 0, [1, 0]]
    assert checksum(array) != before
    assert checksum(LARGE.T) == checksum(LARGE)  # in the order of memory: nothing is copied


def test_what_has_no_name_is_sent_by_value():
    number = 3
    assert pack(lambda x: x + number).load()(4) == 7


def test_what_cannot_be_sent_is_named():
    core = Coins()
    core.lock = threading.Lock()
    with pytest.raises(SoftcountError, match="Coins cannot be sent to another process") as caught:
        Functions().name(core.expect)
    assert "top level of a module" in caught.value.hint


def test_a_model_is_packed_once_for_all_its_methods():
    functions, core = Functions(), Coins()
    name, method = functions.name(core.expect)
    assert functions.name(core.log_joint) == (name, "log_joint")
    assert method == "expect"
    assert functions.packed(name).load().families.keys() == core.families.keys()
    assert functions.name(np.sum)[1] == ""


def test_files_hold_classes_of_modules_that_are_named(tmp_path: Path):
    value = Cut((1, 2), 3)
    size, modules = folder.write(tmp_path / "x", value)
    assert modules == {"tests.engines.shards"}
    assert size == (tmp_path / "x").stat().st_size
    assert folder.read(tmp_path / "x", modules) == value
    for others in ((), {"tests"}, {"tests.engines"}):
        with pytest.raises(StoreError, match="not a class of softcount"):
            folder.read(tmp_path / "x", others)


def test_places_that_have_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("fsspec")
    # with folders, which have to be made first, and without
    for where in (CloudPath(f"local://{tmp_path}/a folder"), CloudPath("memory://a folder")):
        session = folder.make_session(where)
        assert (session / folder.OWNER).exists()
        size, _ = folder.write(session / "states/1/2", {"x": LARGE})
        value, read = folder.read_sized(session / "states/1/2")
        assert read == size > LARGE.nbytes
        assert np.array_equal(value["x"], LARGE)
        (session / "states/1/3").write_bytes(b"what")
        with pytest.raises(StoreError, match="damaged"):
            folder.read(session / "states/1/3")
        (session / "states/1/3").unlink()
        (session / "states/1/3").unlink()
        with pytest.raises(StoreError, match=r"cannot read .*FileNotFoundError"):
            folder.read(session / "states/1/3")
        folder.remove_session(session)
        folder.remove_session(session)
        assert not session.exists()
    with pytest.raises(StoreError, match="Protocol not known: nope"):
        folder.make_session(CloudPath("nope://x"))
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(StoreError, match="cannot reach memory://x") as caught:
        folder.make_session(CloudPath("memory://x"))
    assert "install" in caught.value.hint


def test_files_are_whole_or_not_there(tmp_path: Path):
    with pytest.raises(NotRecordable):
        folder.write(tmp_path / "x", object())
    assert list(tmp_path.iterdir()) == []
    folder.write(tmp_path / "x", LARGE)
    content = (tmp_path / "x").read_bytes()
    (tmp_path / "x").write_bytes(content[:-8])
    with pytest.raises(StoreError, match="damaged"):
        folder.read(tmp_path / "x")
    with pytest.raises(StoreError, match="cannot read"):
        folder.read(tmp_path / "y")
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot write"):
        folder.write(tmp_path / "file" / "x", LARGE)


def test_folders_of_ended_owners_are_removed(tmp_path: Path):
    mine = folder.make_session(tmp_path)
    abandoned = tmp_path / f"{folder.SESSION}0"
    abandoned.mkdir()
    (abandoned / folder.OWNER).write_bytes((mine / folder.OWNER).read_bytes())
    elsewhere = tmp_path / f"{folder.SESSION}1"
    elsewhere.mkdir()
    (elsewhere / folder.OWNER).write_text('{"host": "elsewhere"}')
    another = folder.make_session(tmp_path)
    assert set(tmp_path.iterdir()) == {mine, another, elsewhere}
    folder.remove_session(mine)
    assert not mine.exists()
