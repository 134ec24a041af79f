"""What ``import softcount`` and ``--help`` bring in: next to nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

import softcount

HEAVY = ("numba", "scipy", "sklearn", "safetensors", "matplotlib", "dask")


def modules_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stderr.split())


HELP = "sys.argv = ['softcount', '--help']\nimport softcount.cli\n" + (
    "try: softcount.cli.main()\nexcept SystemExit: pass"
)


@pytest.mark.parametrize("code", ["import softcount", HELP], ids=["import", "help"])
def test_nothing_heavy_is_imported(code: str) -> None:
    loaded = modules_after(code)
    assert "softcount" in loaded
    assert not loaded & set(HEAVY)


def test_import_alone_does_not_even_need_numpy() -> None:
    assert "numpy" not in modules_after("import softcount")


@pytest.mark.parametrize("name", softcount.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(softcount, name) is not None
    assert name in dir(softcount)


def test_fit_stays_the_module() -> None:
    """``sc.fit`` would hide the module ``softcount.fit``, so no function of that name is public."""
    import softcount.fit

    assert softcount.fit.__name__ == "softcount.fit"


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = softcount.nonsense
