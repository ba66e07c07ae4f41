"""The native half of the package: what `bulkhead.Line` is made of. Use that one."""

from typing import Any, Self

VERSION: int

class Error(Exception):
    """A mistake, or what cannot be mended: `args` is what is wrong in words and the code (`bulkhead.layout`)."""

class Line:
    def __new__(cls, reports: Any, ticks: Any) -> Self: ...
    def _context(self) -> bytes: ...
    def position(self, instrument: int) -> tuple[int, int]:
        """The position in an instrument that the strategy inherits from its predecessors; zeros in epoch 0.

        Bought minus sold in 1e-8 units, and its average price in cents. It is the engine's position when the predecessor had
        ended; a fill of a predecessor's order after that is not in it.
        """

    def poll(self, wait_ns: int = 0) -> int | None:
        """One duty cycle: writes the next reports to the beginning of `reports` and returns how many there are.

        Without any it idles as the run's plan says, for at most `wait_ns` nanoseconds, often far less; 0: not at all. Each
        poll says that the strategy lives. The interpreter's lock is held all the while: for other threads of yours to run, wait
        for short times. None: no report will come any more, leave the loop.
        """

    def send(
        self,
        price: int = 0,
        quantity: int = 0,
        *,
        side: int = 0,
        venue: int = 0,
        instrument: int = 0,
        operation: int = 0,
        target: int = 0,
        order_type: int = 0,
        time_in_force: int = 0,
        post_only: int = 0,
        self_trade: int = 0,
        condition: int = 0,
        condition_value: int = 0,
        trigger: int = 0,
        delay_ns: int = 0,
        due_ns: int | None = None,
    ) -> int:
        """Sends an order: numbers, stamps and pushes it. Its reports follow, exactly one of which is the last.

        Returns its sequence: 0 for the first order of an incarnation, then one more each. Below 0 nothing was sent: BUSY and
        TOO_MANY_OPEN mean poll, then again; ENDING and SPENT mean no more orders, go on polling. The fields are those of
        `bulkhead.layout.ORDER`; `due_ns` is when it was due, in nanoseconds since the start of the run, if it was due at a
        time. Raises Error for an order with a wrong field.
        """

    def read(self) -> int:
        """Writes the touches that are newer than what was read of their instruments to the beginning of `ticks`.

        Returns how many; as many as there is room for: there may be more. Raises Error in a run without market data
        (`context.market_data`).
        """

    def now(self) -> int:
        """Nanoseconds since the start of the run, by the run's clock."""

    def heartbeat(self) -> None:
        """Says that the strategy lives, for one that computes for longer than `--liveness` between two polls."""

    def finish(self) -> None:
        """Sends no more, waits for what is open, writes the end of the log and says that the strategy is done.

        The process then has some seconds to end, with exit code 0. Leaving a `with` block without an exception does it.
        """
