"""What is handed over, field by field, and the codes: the structures of ``bulkhead.h`` as data types of NumPy's.

Made of bindings/src by bindings/tests/generated: change it there.
"""

from typing import Any, Final

import numpy as np

OK: Final = 0
"""It was done; of a poll or a read: there is nothing now."""
BUSY: Final = -1
"""An earlier order still waits for room in the ring: poll, then send again."""
TOO_MANY_OPEN: Final = -2
"""As many orders are open as the plan allows: poll, then send again."""
ENDING: Final = -3
"""The run is ending: no order is sent any more. Go on polling until BH_OVER."""
SPENT: Final = -4
"""All orders of the plan are sent. Go on polling until BH_OVER."""
OVER: Final = -5
"""All orders are sent and answered, or the run is over: call bh_finish."""
NOT_ATTACHED: Final = -16
"""The calling thread is not attached, or this is a call within another one, from a signal handler."""
ATTACHED: Final = -17
"""The calling thread is attached already."""
WRONG_VERSION: Final = -18
"""The program was made for another version of this interface: see bh_version."""
CANNOT_ATTACH: Final = -19
"""The run cannot be attached; bh_error_text says why."""
NULL: Final = -20
"""A pointer is null that must not be."""
BAD_ORDER: Final = -21
"""No order: bh_error_text says which field is wrong. Nothing was sent."""
NO_MARKET_DATA: Final = -22
"""The run has no market data: no venue is an exchange, or it was switched off."""
DEFECT: Final = -23
"""A defect of this library. The strategy is no longer attached, and the launcher is told."""

NEW: Final = 0
"""An operation: a new order."""
CANCEL: Final = 1
"""An operation: the cancel of an earlier order of the same strategy at the same venue."""
REPLACE: Final = 2
"""An operation: a new price and open quantity for an earlier order."""
MASS_CANCEL: Final = 3
"""An operation: the cancel of all orders of the strategy at the venue, of the instrument."""

BUY: Final = 0
"""A side: a bid."""
SELL: Final = 1
"""A side: an offer."""

LIMIT: Final = 0
"""A type of order: at its price or better."""
MARKET: Final = 1
"""A type of order: at any price."""
STOP: Final = 2
"""A type of order: a market order once a trade happens at its stop price or beyond."""
STOP_LIMIT: Final = 3
"""A type of order: a limit order from that moment."""

GOOD_TILL_CANCEL: Final = 0
"""A time in force: until it is filled or cancelled."""
IMMEDIATE_OR_CANCEL: Final = 1
"""A time in force: what is not filled at once is cancelled."""
FILL_OR_KILL: Final = 2
"""A time in force: filled at once and in full, or cancelled."""
GOOD_TILL_TIME: Final = 3
"""A time in force: as long as BH_LIFE says."""

ALLOW: Final = 0
"""Two orders of one strategy: they trade."""
CANCEL_NEWEST: Final = 1
"""Two orders of one strategy: what is left of the newer one is cancelled."""
CANCEL_OLDEST: Final = 2
"""Two orders of one strategy: the older one is cancelled."""
CANCEL_BOTH: Final = 3
"""Two orders of one strategy: both are cancelled."""
DECREMENT: Final = 4
"""Two orders of one strategy: both lose the smaller quantity."""

NO_CONDITION: Final = 0
"""A condition: none."""
STOP_PRICE: Final = 1
"""A condition: the price that triggers a stop order, in cents."""
DISPLAY: Final = 2
"""A condition: the most that is shown at once."""
MINIMUM: Final = 3
"""A condition: the least that must be filled at once."""
LIFE: Final = 4
"""A condition: how long the order lives from its arrival at the venue, in nanoseconds."""

FILLED: Final = 1
"""A status: executed, as a whole or what was left of it."""
REJECTED: Final = 2
"""A status: the engine's risk checks refused it; it never reached a venue. The reason says why."""
CANCELLED: Final = 3
"""A status: what was left of it is cancelled."""
ACCEPTED: Final = 4
"""A status: the venue has it."""
PARTIALLY_FILLED: Final = 5
"""A status: the venue has executed a part of it."""
REFUSED: Final = 6
"""A status: the venue refused it."""
REPLACED: Final = 7
"""A status: it has the price and the open quantity of the report now."""
EXPIRED: Final = 8
"""A status: its time is over."""
TRIGGERED: Final = 9
"""A status: a stop order is an order now."""
RESTATED: Final = 10
"""A status: the venue took quantity from it without a trade."""
DONE: Final = 11
"""A status, of a cancel, a replace or a mass cancel: it was carried out."""

ORDER: Final[np.dtype[Any]] = np.dtype(
    [
        # Limit price in cents; 0 of a market order or a cancel.
        ("price", "<i8"),
        # In 1e-8 units; 0 of a cancel.
        ("quantity", "<u8"),
        # Of a cancel or a replace: the sequence of the order that it is about. Else 0.
        ("target", "<u8"),
        # The version of the touch that made the strategy send it; 0: none did.
        ("trigger", "<u8"),
        # What the condition says: a price in cents, a quantity or nanoseconds. 0 without one.
        ("condition_value", "<u8"),
        # How long a venue of kind `delay` takes for it, in nanoseconds.
        ("delay_ns", "<u8"),
        # The venue, from 0. One that there is not is rejected by the engine.
        ("venue", "<u2"),
        # The instrument, from 0.
        ("instrument", "<u2"),
        # BH_NEW, BH_CANCEL, BH_REPLACE or BH_MASS_CANCEL.
        ("operation", "<u1"),
        # BH_BUY or BH_SELL.
        ("side", "<u1"),
        # BH_LIMIT, BH_MARKET, BH_STOP or BH_STOP_LIMIT. This and what follows is of a new order; else 0.
        ("order_type", "<u1"),
        # BH_GOOD_TILL_CANCEL, BH_IMMEDIATE_OR_CANCEL, BH_FILL_OR_KILL or BH_GOOD_TILL_TIME.
        ("time_in_force", "<u1"),
        # 1: refused rather than take liquidity.
        ("post_only", "<u1"),
        # What happens instead of a trade with an order of the same strategy: BH_ALLOW to BH_DECREMENT.
        ("self_trade", "<u1"),
        # BH_NO_CONDITION to BH_LIFE.
        ("condition", "<u1"),
        # 0.
        ("reserved", "<u1", (5,)),
    ]
)
"""An order. All zero, it is a limit order that buys nothing at venue 0, good till cancelled."""

REPORT: Final[np.dtype[Any]] = np.dtype(
    [
        # The sequence of the order, as bh_send gave it.
        ("sequence", "<u8"),
        # In cents: of what was filled with this report; without a fill the order's.
        ("price", "<i8"),
        # What was filled with this report, in 1e-8 units.
        ("filled", "<u8"),
        # What is open of the order now.
        ("leaves", "<u8"),
        # What was filled of it in all.
        ("cumulative", "<u8"),
        # The venue.
        ("venue", "<u2"),
        # The instrument.
        ("instrument", "<u2"),
        # BH_FILLED to BH_DONE.
        ("status", "<u1"),
        # Why it was rejected: a code of docs/src/risk.md. Of a venue: a code of its own, or 0.
        ("reason", "<u1"),
        # BH_BUY or BH_SELL, of the order.
        ("side", "<u1"),
        # Which report of its order this is, from 0.
        ("number", "<u1"),
        # 1: no report of this order follows.
        ("is_last", "<u1"),
        # 0.
        ("reserved", "<u1", (7,)),
    ]
)
"""A report on an order."""

TICK: Final[np.dtype[Any]] = np.dtype(
    [
        # The version of this touch, from 1: what an order that it triggers says.
        ("version", "<u8"),
        # When the exchange wrote it, in nanoseconds since the start of the run.
        ("written_ns", "<u8"),
        # Versions that were written over before this strategy looked.
        ("missed", "<u8"),
        # Trades so far.
        ("trades", "<u8"),
        # The best bid, in cents.
        ("bid_price", "<i8"),
        # How much there is at that price, in 1e-8 units.
        ("bid_quantity", "<u8"),
        # The best offer, in cents.
        ("offer_price", "<i8"),
        # How much there is at that price, in 1e-8 units.
        ("offer_quantity", "<u8"),
        # The last trade, in cents.
        ("last_price", "<i8"),
        # Its quantity, in 1e-8 units.
        ("last_quantity", "<u8"),
        # The venue.
        ("venue", "<u2"),
        # The instrument.
        ("instrument", "<u2"),
        # 1: it is in a call auction.
        ("auction", "<u1"),
        # 0.
        ("reserved", "<u1", (3,)),
    ]
)
"""The touch of an instrument: the best of both sides and the last trade. Price and quantity are both 0 where there is none."""

CONTEXT: Final[np.dtype[Any]] = np.dtype(
    [
        # The most orders that it can send: those that the plan has for it, less what its predecessors sent.
        ("orders", "<u8"),
        # The most orders that it can have open at once.
        ("max_open", "<u8"),
        # Orders that its predecessors sent: 0 in epoch 0.
        ("sent_before", "<u8"),
        # Which strategy it is, from 0.
        ("strategy", "<u2"),
        # How many strategies there are.
        ("strategies", "<u2"),
        # How many venues there are: orders go to 0 … venues − 1.
        ("venues", "<u2"),
        # How many instruments there are, at least 1.
        ("instruments", "<u2"),
        # Which incarnation it is: 0, and one more each time that it was started again after a death.
        ("epoch", "<u2"),
        # 1: there is market data.
        ("market_data", "<u1"),
        # 0.
        ("reserved", "<u1", (5,)),
    ]
)
"""What a strategy knows of its run."""

assert ORDER.itemsize == 64
assert REPORT.itemsize == 56
assert TICK.itemsize == 88
assert CONTEXT.itemsize == 40
