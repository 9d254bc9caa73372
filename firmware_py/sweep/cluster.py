"""Where the points of a sweep run: worker processes of this machine, or a Dask scheduler's."""

from __future__ import annotations

import logging
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from distributed import Client, Worker, WorkerPlugin

__all__ = ["local_cluster", "remote_cluster"]

#: Seconds in which a scheduler must answer and know of a worker.
_PATIENCE = 30
_SIGNALS = {signal.SIGINT, signal.SIGTERM}


@contextmanager
def local_cluster(workers: int | None = None) -> Iterator[Client]:
    """A client of worker processes of this machine, one thread each; by default one for each core.

    It listens on free ports of the loopback interface only, has no dashboard and sets no limit of memory. A
    worker that dies is started again.
    """
    from dask.config import set as configure
    from distributed import Client, LocalCluster

    with tempfile.TemporaryDirectory(prefix="clew-sweep-") as folder, ExitStack() as opened:
        opened.enter_context(configure({"temporary-directory": folder}))
        with _signals_held():
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                memory_limit=None,
                silence_logs=logging.CRITICAL,
            )
            opened.enter_context(cluster)
            client = opened.enter_context(Client(cluster))
            client.register_plugin(_worker_signals())
        yield client


@contextmanager
def _signals_held() -> Iterator[None]:
    """Within the block neither Ctrl-C nor SIGTERM comes in; afterwards it does.

    A cluster that is half started cannot be closed, and processes started here, which inherit that, would
    print that they were interrupted.
    """
    # Where it starts it lets these signals in.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _worker_signals() -> WorkerPlugin:
    """What a worker that has started does about signals: Ctrl-C ends a compiler that it runs, but not itself,
    for the process that asked will close it."""
    from distributed import WorkerPlugin

    class Signals(WorkerPlugin):
        name = "clew-signals"

        def setup(self, worker: Worker) -> None:
            signal.signal(signal.SIGINT, lambda number, frame: None)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    return Signals()


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
