"""bulkhead for strategies in Python: a process of a run, started with ``--strategy exec:python3 strategy.py``.

A strategy attaches, polls, sends orders and finishes, all on one thread::

    import bulkhead
    from bulkhead import layout

    with bulkhead.Line() as line:
        while (taken := line.poll(wait_ns=1_000_000)) is not None:
            for report in line.reports[:taken]:
                ...
            line.send(price=41_300, quantity=1_000_000, side=layout.BUY)

Numbering, stamping, validation, bells and the heartbeat are inside: it is the code that bulkhead's own strategies run. Reports
and touches are written into NumPy arrays that were made once: ``line.reports`` and ``line.ticks``. A poll allocates nothing but the
number that it returns.

Prices are in cents, quantities in 1e-8 units, times in nanoseconds since the start of the run.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from . import _native, layout
from ._native import Error

__all__ = ["BATCH", "Context", "Error", "Line", "TICKS", "layout"]

#: A poll takes at most so many reports.
BATCH = 16
#: A read takes at most so many touches.
TICKS = 16


class Context(NamedTuple):
    """What a strategy knows of its run."""

    orders: int
    """The most orders that it can send: those that the plan has for it, less what its predecessors sent."""
    max_open: int
    """The most orders that it can have open at once."""
    sent_before: int
    """Orders that its predecessors sent: 0 in epoch 0."""
    strategy: int
    """Which strategy it is, from 0."""
    strategies: int
    """How many strategies there are."""
    venues: int
    """How many venues there are: orders go to 0 … venues − 1."""
    instruments: int
    """How many instruments there are, at least 1."""
    epoch: int
    """Which incarnation it is: 0, and one more each time that it was started again after a death."""
    market_data: int
    """1: there is market data."""


class Line(_native.Line):
    """This thread's line to its run, from the open barrier on.

    Making one attaches the calling thread and waits until the run begins. Prepare everything before: from then on the thread is
    pinned, the process's memory is limited, and the launcher expects a poll within ``--liveness``. A process has one.
    Leaving its ``with`` block finishes the strategy; by an exception it does not, and the strategy counts as dead.

    Raises Error where there is no run to attach to.
    """

    context: Context
    """What the strategy knows of its run."""
    reports: NDArray[np.void]
    """What the last poll wrote stands at the beginning, with the fields of ``layout.REPORT``."""
    ticks: NDArray[np.void]
    """What the last read wrote stands at the beginning, with the fields of ``layout.TICK``."""

    def __new__(cls) -> Self:
        reports: NDArray[Any] = np.zeros(BATCH, layout.REPORT)
        ticks: NDArray[Any] = np.zeros(TICKS, layout.TICK)
        self = super().__new__(cls, reports.view(np.uint8), ticks.view(np.uint8))
        self.reports, self.ticks = reports, ticks
        known = np.frombuffer(self._context(), layout.CONTEXT)[0].item()
        self.context = Context(*known[: len(Context._fields)])
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
