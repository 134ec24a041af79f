"""One pool of processes and one cluster for all tests of engines: starting them takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from softcount.engines import Dask, Processes


@pytest.fixture(scope="session")
def processes() -> Iterator[Processes]:
    engine = Processes(2)
    yield engine
    engine.close()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Dask]:
    pytest.importorskip("distributed")
    engine = Dask(workers=2)
    yield engine
    engine.close()


@pytest.fixture(params=["processes", "cluster"])
def engine(request: pytest.FixtureRequest) -> Any:
    """Each of the engines whose shards are in other processes."""
    return request.getfixturevalue(request.param)
