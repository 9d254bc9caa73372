"""Where the points of a sweep run: worker processes of this machine, or a Dask scheduler's."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["local_cluster", "remote_cluster"]

#: Seconds in which a scheduler must answer and know of a worker.
_PATIENCE = 30


@contextmanager
def local_cluster(workers: int | None = None) -> Iterator[Client]:
    """A client of worker processes of this machine, one thread each; by default one for each core.

    It listens on free ports of the loopback interface only, has no dashboard and sets no limit of memory. A
    worker that dies is started again.
    """
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            memory_limit=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@contextmanager
def remote_cluster(address: str) -> Iterator[Client]:
    """A client of the Dask scheduler at `address`, like tcp://HOST:8786, which has a worker at least.

    Raises InputError when no scheduler answers there, or it has no worker, within half a minute.
    """
    from distributed import Client

    try:
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(f"--scheduler {address}: expected a Dask scheduler that answers: {error}") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            raise InputError(f"--scheduler {address}: it has no worker: expected at least one") from None
        yield client
