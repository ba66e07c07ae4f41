"""What is handed over, field by field, and the codes: the structures of ``bulkhead.h`` as data types of NumPy's.

Made of contrib/bindings/src by contrib/bindings/tests/generated: change it there.
"""

from typing import Any, Final

import numpy as np

OK: Final = 0
"""Success; of a poll or a read: nothing available now."""
BUSY: Final = -1
"""An earlier order is still queued for the ring: poll, then send again."""
TOO_MANY_OPEN: Final = -2
"""The limit of open orders is reached: poll, then send again."""
ENDING: Final = -3
"""The run is ending: no more orders are sent. Continue to poll until BH_OVER."""
SPENT: Final = -4
"""All orders of the plan are sent. Continue to poll until BH_OVER."""
OVER: Final = -5
"""All orders are sent and answered, or the run has ended: call bh_finish."""
NOT_ATTACHED: Final = -16
"""The calling thread is not attached, or the call is nested in another one, from a signal handler."""
ATTACHED: Final = -17
"""The calling thread is attached already."""
WRONG_VERSION: Final = -18
"""The program was compiled for another version of this interface: see bh_version."""
CANNOT_ATTACH: Final = -19
"""Attaching to the run failed; bh_error_text returns the cause."""
NULL: Final = -20
"""A required pointer is null."""
BAD_ORDER: Final = -21
"""The order is invalid: bh_error_text names the field. Nothing was sent."""
NO_MARKET_DATA: Final = -22
"""The run has no market data: no venue is an exchange, or market data was switched off."""
DEFECT: Final = -23
"""A defect of this library. The strategy is detached, and the launcher is notified."""

NEW: Final = 0
"""An operation: a new order."""
CANCEL: Final = 1
"""An operation: the cancel of an earlier order of the same strategy at the same venue."""
REPLACE: Final = 2
"""An operation: a new price and open quantity for an earlier order."""
MASS_CANCEL: Final = 3
"""An operation: the cancel of all orders of the strategy in one instrument at one venue."""

BUY: Final = 0
"""A side: a bid."""
SELL: Final = 1
"""A side: an offer."""

LIMIT: Final = 0
"""An order type: limit, at its price or better."""
MARKET: Final = 1
"""An order type: market, at any price."""
STOP: Final = 2
"""An order type: stop, a market order once a trade happens at its stop price or beyond."""
STOP_LIMIT: Final = 3
"""An order type: stop limit, a limit order once a trade happens at its stop price or beyond."""

GOOD_TILL_CANCEL: Final = 0
"""A time in force: good till cancel."""
IMMEDIATE_OR_CANCEL: Final = 1
"""A time in force: what is not filled immediately is cancelled."""
FILL_OR_KILL: Final = 2
"""A time in force: filled immediately and in full, or cancelled."""
GOOD_TILL_TIME: Final = 3
"""A time in force: until the lifetime in the order's condition BH_LIFE has passed."""

ALLOW: Final = 0
"""Self-trade prevention: none, orders of one strategy trade with each other."""
CANCEL_NEWEST: Final = 1
"""Self-trade prevention: what is left of the newer order is cancelled."""
CANCEL_OLDEST: Final = 2
"""Self-trade prevention: the older order is cancelled."""
CANCEL_BOTH: Final = 3
"""Self-trade prevention: both orders are cancelled."""
DECREMENT: Final = 4
"""Self-trade prevention: both orders are reduced by the smaller quantity."""

NO_CONDITION: Final = 0
"""Condition of an order: none, it is sent to the book at once."""
STOP_PRICE: Final = 1
"""A condition: the price that triggers a stop order, in cents."""
DISPLAY: Final = 2
"""A condition: the maximum displayed quantity (iceberg)."""
MINIMUM: Final = 3
"""A condition: the minimum quantity that must be filled immediately."""
LIFE: Final = 4
"""A condition: lifetime of the order from its arrival at the venue, in nanoseconds."""

FILLED: Final = 1
"""An order's status: completely filled."""
REJECTED: Final = 2
"""An order's status: rejected by the engine's risk checks with a reason, so never at a venue."""
CANCELLED: Final = 3
"""An order's status: the open quantity is cancelled."""
ACCEPTED: Final = 4
"""An order's status: accepted by the venue."""
PARTIALLY_FILLED: Final = 5
"""An order's status: partially filled."""
REFUSED: Final = 6
"""An order's status: refused by the venue."""
REPLACED: Final = 7
"""An order's status: replaced, with the price and open quantity of the report."""
EXPIRED: Final = 8
"""An order's status: expired."""
TRIGGERED: Final = 9
"""An order's status: a stop order was triggered."""
RESTATED: Final = 10
"""An order's status: the venue reduced the quantity without a trade."""
DONE: Final = 11
"""The status of a cancel, replace or mass cancel: executed."""

ORDER: Final[np.dtype[Any]] = np.dtype(
    [
        # Limit price in cents; 0 for a market order or a cancel.
        ("price", "<i8"),
        # Quantity in 1e-8 units; 0 for a cancel.
        ("quantity", "<u8"),
        # Sequence of the order that a cancel or replace targets; otherwise 0.
        ("target", "<u8"),
        # Version of the market data that triggered the order; 0: none.
        ("trigger", "<u8"),
        # Value of the condition: a price in cents, a quantity or nanoseconds; 0 without a condition.
        ("condition_value", "<u8"),
        # Delay at a venue of kind `delay`, in nanoseconds.
        ("delay_ns", "<u8"),
        # Index of the venue, from 0. The engine rejects an unknown one.
        ("venue", "<u2"),
        # Index of the instrument, from 0.
        ("instrument", "<u2"),
        # BH_NEW, BH_CANCEL, BH_REPLACE or BH_MASS_CANCEL.
        ("operation", "<u1"),
        # BH_BUY or BH_SELL.
        ("side", "<u1"),
        # BH_LIMIT, BH_MARKET, BH_STOP or BH_STOP_LIMIT. This and later fields are for new orders; otherwise 0.
        ("order_type", "<u1"),
        # BH_GOOD_TILL_CANCEL, BH_IMMEDIATE_OR_CANCEL, BH_FILL_OR_KILL or BH_GOOD_TILL_TIME.
        ("time_in_force", "<u1"),
        # 1: post-only, refused rather than take liquidity.
        ("post_only", "<u1"),
        # Self-trade prevention: BH_ALLOW to BH_DECREMENT.
        ("self_trade", "<u1"),
        # BH_NO_CONDITION to BH_LIFE.
        ("condition", "<u1"),
        # 0.
        ("reserved", "<u1", (5,)),
    ]
)
"""An order as a strategy's program passes it to bh_send: operation, venue, instrument, price, quantity and terms. All zeros are a limit buy order for nothing at venue 0, good till cancelled."""

REPORT: Final[np.dtype[Any]] = np.dtype(
    [
        # Sequence of the order, as returned by bh_send.
        ("sequence", "<u8"),
        # Price in cents: of this report's fill, or of the order without a fill.
        ("price", "<i8"),
        # Quantity filled with this report, in 1e-8 units.
        ("filled", "<u8"),
        # Open quantity of the order, in 1e-8 units.
        ("leaves", "<u8"),
        # Total quantity filled, in 1e-8 units.
        ("cumulative", "<u8"),
        # The venue.
        ("venue", "<u2"),
        # The instrument.
        ("instrument", "<u2"),
        # BH_FILLED to BH_DONE.
        ("status", "<u1"),
        # Reason of a rejection: a code of docs/src/risk.md. For a venue's report: a code of the venue, or 0.
        ("reason", "<u1"),
        # Side of the order: BH_BUY or BH_SELL.
        ("side", "<u1"),
        # Number of this report among those of its order, from 0.
        ("number", "<u1"),
        # 1: no report of this order follows.
        ("is_last", "<u1"),
        # 0.
        ("reserved", "<u1", (7,)),
    ]
)
"""A report on a strategy's order, as bh_poll returns it: status, fill, and open and total filled quantities."""

TICK: Final[np.dtype[Any]] = np.dtype(
    [
        # Version of this top of book, from 1: the trigger of orders sent in reaction.
        ("version", "<u8"),
        # When the exchange published it, in nanoseconds since the start of the run.
        ("written_ns", "<u8"),
        # Number of versions that were overwritten before this strategy read them.
        ("missed", "<u8"),
        # Number of trades so far.
        ("trades", "<u8"),
        # Best bid price in cents.
        ("bid_price", "<i8"),
        # Quantity at the best bid, in 1e-8 units.
        ("bid_quantity", "<u8"),
        # Best offer price in cents.
        ("offer_price", "<i8"),
        # Quantity at the best offer, in 1e-8 units.
        ("offer_quantity", "<u8"),
        # Price of the last trade in cents.
        ("last_price", "<i8"),
        # Quantity of the last trade, in 1e-8 units.
        ("last_quantity", "<u8"),
        # The venue.
        ("venue", "<u2"),
        # The instrument.
        ("instrument", "<u2"),
        # 1: the instrument is in a call auction.
        ("auction", "<u1"),
        # 0.
        ("reserved", "<u1", (3,)),
    ]
)
"""The top of book of an instrument: best bid and offer, and the last trade. Price and quantity are both 0 if there is none."""

CONTEXT: Final[np.dtype[Any]] = np.dtype(
    [
        # Maximum number of orders: those of the plan, less what predecessors sent.
        ("orders", "<u8"),
        # Maximum number of orders open at once.
        ("max_open", "<u8"),
        # Number of orders sent by predecessors: 0 in epoch 0.
        ("sent_before", "<u8"),
        # Index of the strategy, from 0.
        ("strategy", "<u2"),
        # Number of strategies.
        ("strategies", "<u2"),
        # Number of venues: orders go to 0 … venues − 1.
        ("venues", "<u2"),
        # Number of instruments, at least 1.
        ("instruments", "<u2"),
        # Incarnation of the strategy: 0, incremented by each restart after a crash.
        ("epoch", "<u2"),
        # 1: the run has market data.
        ("market_data", "<u1"),
        # 0.
        ("reserved", "<u1", (5,)),
    ]
)
"""A strategy's information about its run."""

assert ORDER.itemsize == 64
assert REPORT.itemsize == 56
assert TICK.itemsize == 88
assert CONTEXT.itemsize == 40
