from softcount.engines.base import Engine as Engine
from softcount.engines.base import Session as Session
from softcount.engines.dask import Dask as Dask
from softcount.engines.local import Local as Local
from softcount.engines.processes import Processes as Processes
