"""The oldest versions that pyproject.toml claims, one requirement a line: for ``make oldest``.

python tests/oldest.py > oldest.txt
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

INDIRECT = ["click==8.0.0", "joblib==1.2.0"]
"""Not ours to claim: the oldest that the oldest typer and scikit-learn ask for."""


def oldest(requirement: str) -> str:
    """
    >>> oldest("numpy>=1.26")
    'numpy==1.26'
    """
    found = re.fullmatch(r"([A-Za-z0-9_.-]+)>=([0-9.]+)", requirement)
    if found is None:
        raise SystemExit(f"{requirement!r} does not say which version is the oldest: name>=version")
    return "==".join(found.groups())


if __name__ == "__main__":
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    print(*map(oldest, project["project"]["dependencies"]), *INDIRECT, sep="\n")
