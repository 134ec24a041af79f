"""``python -m tests.golden.write [NAME…]``: write the results of all cases down, or of some.

Only when results are meant to change; say in the commit why they do.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.golden.cases import CASES, figures

RESULTS = Path(__file__).with_name("results.json")


def kind_of_processor() -> str:
    """What decides how linear algebra and numpy's own functions round."""
    from numpy import __version__
    from threadpoolctl import threadpool_info

    libraries = {
        f"{library['internal_api']} {library.get('architecture')}" for library in threadpool_info()
    }
    try:
        from numpy._core._multiarray_umath import __cpu_features__
    except ImportError:
        __cpu_features__ = {}
    features = [name for name, has in __cpu_features__.items() if has and name.startswith("AVX")]
    return f"numpy {__version__}, {', '.join(sorted(libraries))}, {' '.join(sorted(features))}"


def main(names: list[str]) -> None:
    written = json.loads(RESULTS.read_text())["results"] if names else {}
    results = {**written, **{name: figures(name) for name in names or CASES}}
    whole = {"processor": kind_of_processor(), "results": dict(sorted(results.items()))}
    RESULTS.write_text(json.dumps(whole, indent=1) + "\n")
    print(f"{len(names) or len(CASES)} of {len(results)} results written to {RESULTS.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
