/* bulkhead: the interface for strategies in any language. The guide is docs/src/languages.md.
 *
 * Made of contrib/bindings/src by contrib/bindings/tests/header.rs: change it there. */

#ifndef BULKHEAD_H
#define BULKHEAD_H

#include <stdint.h>

// Version of this interface: major in the upper 16 bits, minor below. A library serves programs of
// its major version and of no later minor version.
#define BH_VERSION 65538

// Success; of a poll or a read: nothing available now.
#define BH_OK 0

// An earlier order is still queued for the ring: poll, then send again.
#define BH_BUSY -1

// The limit of open orders is reached: poll, then send again.
#define BH_TOO_MANY_OPEN -2

// The run is ending: no more orders are sent. Continue to poll until BH_OVER.
#define BH_ENDING -3

// All orders of the plan are sent. Continue to poll until BH_OVER.
#define BH_SPENT -4

// All orders are sent and answered, or the run has ended: call bh_finish.
#define BH_OVER -5

// The calling thread is not attached, or the call is nested in another one, from a signal handler.
#define BH_NOT_ATTACHED -16

// The calling thread is attached already.
#define BH_ATTACHED -17

// The program was compiled for another version of this interface: see bh_version.
#define BH_WRONG_VERSION -18

// Attaching to the run failed; bh_error_text returns the cause.
#define BH_CANNOT_ATTACH -19

// A required pointer is null.
#define BH_NULL -20

// The order is invalid: bh_error_text names the field. Nothing was sent.
#define BH_BAD_ORDER -21

// The run has no market data: no venue is an exchange, or market data was switched off.
#define BH_NO_MARKET_DATA -22

// A defect of this library. The strategy is detached, and the launcher is notified.
#define BH_DEFECT -23

// An operation: a new order.
#define BH_NEW 0

// An operation: the cancel of an earlier order of the same strategy at the same venue.
#define BH_CANCEL 1

// An operation: a new price and open quantity for an earlier order.
#define BH_REPLACE 2

// An operation: the cancel of all orders of the strategy in one instrument at one venue.
#define BH_MASS_CANCEL 3

// A side: a bid.
#define BH_BUY 0

// A side: an offer.
#define BH_SELL 1

// An order type: limit, at its price or better.
#define BH_LIMIT 0

// An order type: market, at any price.
#define BH_MARKET 1

// An order type: stop, a market order once a trade happens at its stop price or beyond.
#define BH_STOP 2

// An order type: stop limit, a limit order once a trade happens at its stop price or beyond.
#define BH_STOP_LIMIT 3

// A time in force: good till cancel.
#define BH_GOOD_TILL_CANCEL 0

// A time in force: what is not filled immediately is cancelled.
#define BH_IMMEDIATE_OR_CANCEL 1

// A time in force: filled immediately and in full, or cancelled.
#define BH_FILL_OR_KILL 2

// A time in force: until the lifetime in the order's condition BH_LIFE has passed.
#define BH_GOOD_TILL_TIME 3

// Self-trade prevention: none, orders of one strategy trade with each other.
#define BH_ALLOW 0

// Self-trade prevention: what is left of the newer order is cancelled.
#define BH_CANCEL_NEWEST 1

// Self-trade prevention: the older order is cancelled.
#define BH_CANCEL_OLDEST 2

// Self-trade prevention: both orders are cancelled.
#define BH_CANCEL_BOTH 3

// Self-trade prevention: both orders are reduced by the smaller quantity.
#define BH_DECREMENT 4

// Condition of an order: none, it is sent to the book at once.
#define BH_NO_CONDITION 0

// A condition: the price that triggers a stop order, in cents.
#define BH_STOP_PRICE 1

// A condition: the maximum displayed quantity (iceberg).
#define BH_DISPLAY 2

// A condition: the minimum quantity that must be filled immediately.
#define BH_MINIMUM 3

// A condition: lifetime of the order from its arrival at the venue, in nanoseconds.
#define BH_LIFE 4

// An order's status: completely filled.
#define BH_FILLED 1

// An order's status: rejected by the engine's risk checks with a reason, so never at a venue.
#define BH_REJECTED 2

// An order's status: the open quantity is cancelled.
#define BH_CANCELLED 3

// An order's status: accepted by the venue.
#define BH_ACCEPTED 4

// An order's status: partially filled.
#define BH_PARTIALLY_FILLED 5

// An order's status: refused by the venue.
#define BH_REFUSED 6

// An order's status: replaced, with the price and open quantity of the report.
#define BH_REPLACED 7

// An order's status: expired.
#define BH_EXPIRED 8

// An order's status: a stop order was triggered.
#define BH_TRIGGERED 9

// An order's status: the venue reduced the quantity without a trade.
#define BH_RESTATED 10

// The status of a cancel, replace or mass cancel: executed.
#define BH_DONE 11

// A strategy's information about its run.
typedef struct {
    // Maximum number of orders: those of the plan, less what predecessors sent.
    uint64_t orders;
    // Maximum number of orders open at once.
    uint64_t max_open;
    // Number of orders sent by predecessors: 0 in epoch 0.
    uint64_t sent_before;
    // Index of the strategy, from 0.
    uint16_t strategy;
    // Number of strategies.
    uint16_t strategies;
    // Number of venues: orders go to 0 … venues − 1.
    uint16_t venues;
    // Number of instruments, at least 1.
    uint16_t instruments;
    // Incarnation of the strategy: 0, incremented by each restart after a crash.
    uint16_t epoch;
    // 1: the run has market data.
    uint8_t market_data;
    // 0.
    uint8_t reserved[5];
} bh_context;

// A report on a strategy's order, as bh_poll returns it: status, fill, and open and total filled
// quantities.
typedef struct {
    // Sequence of the order, as returned by bh_send.
    uint64_t sequence;
    // Price in cents: of this report's fill, or of the order without a fill.
    int64_t price;
    // Quantity filled with this report, in 1e-8 units.
    uint64_t filled;
    // Open quantity of the order, in 1e-8 units.
    uint64_t leaves;
    // Total quantity filled, in 1e-8 units.
    uint64_t cumulative;
    // The venue.
    uint16_t venue;
    // The instrument.
    uint16_t instrument;
    // BH_FILLED to BH_DONE.
    uint8_t status;
    // Reason of a rejection: a code of docs/src/risk.md. For a venue's report: a code of the
    // venue, or 0.
    uint8_t reason;
    // Side of the order: BH_BUY or BH_SELL.
    uint8_t side;
    // Number of this report among those of its order, from 0.
    uint8_t number;
    // 1: no report of this order follows.
    uint8_t is_last;
    // 0.
    uint8_t reserved[7];
} bh_report;

// An order as a strategy's program passes it to bh_send: operation, venue, instrument, price,
// quantity and terms. All zeros are a limit buy order for nothing at venue 0, good till cancelled.
typedef struct {
    // Limit price in cents; 0 for a market order or a cancel.
    int64_t price;
    // Quantity in 1e-8 units; 0 for a cancel.
    uint64_t quantity;
    // Sequence of the order that a cancel or replace targets; otherwise 0.
    uint64_t target;
    // Version of the market data that triggered the order; 0: none.
    uint64_t trigger;
    // Value of the condition: a price in cents, a quantity or nanoseconds; 0 without a condition.
    uint64_t condition_value;
    // Delay at a venue of kind `delay`, in nanoseconds.
    uint64_t delay_ns;
    // Index of the venue, from 0. The engine rejects an unknown one.
    uint16_t venue;
    // Index of the instrument, from 0.
    uint16_t instrument;
    // BH_NEW, BH_CANCEL, BH_REPLACE or BH_MASS_CANCEL.
    uint8_t operation;
    // BH_BUY or BH_SELL.
    uint8_t side;
    // BH_LIMIT, BH_MARKET, BH_STOP or BH_STOP_LIMIT. This and later fields are for new orders;
    // otherwise 0.
    uint8_t order_type;
    // BH_GOOD_TILL_CANCEL, BH_IMMEDIATE_OR_CANCEL, BH_FILL_OR_KILL or BH_GOOD_TILL_TIME.
    uint8_t time_in_force;
    // 1: post-only, refused rather than take liquidity.
    uint8_t post_only;
    // Self-trade prevention: BH_ALLOW to BH_DECREMENT.
    uint8_t self_trade;
    // BH_NO_CONDITION to BH_LIFE.
    uint8_t condition;
    // 0.
    uint8_t reserved[5];
} bh_order;

// The top of book of an instrument: best bid and offer, and the last trade. Price and quantity are
// both 0 if there is none.
typedef struct {
    // Version of this top of book, from 1: the trigger of orders sent in reaction.
    uint64_t version;
    // When the exchange published it, in nanoseconds since the start of the run.
    uint64_t written_ns;
    // Number of versions that were overwritten before this strategy read them.
    uint64_t missed;
    // Number of trades so far.
    uint64_t trades;
    // Best bid price in cents.
    int64_t bid_price;
    // Quantity at the best bid, in 1e-8 units.
    uint64_t bid_quantity;
    // Best offer price in cents.
    int64_t offer_price;
    // Quantity at the best offer, in 1e-8 units.
    uint64_t offer_quantity;
    // Price of the last trade in cents.
    int64_t last_price;
    // Quantity of the last trade, in 1e-8 units.
    uint64_t last_quantity;
    // The venue.
    uint16_t venue;
    // The instrument.
    uint16_t instrument;
    // 1: the instrument is in a call auction.
    uint8_t auction;
    // 0.
    uint8_t reserved[3];
} bh_tick;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the library, to be compared with BH_VERSION of the header.
uint32_t bh_version(void);

// Attaches the calling thread to the run that the environment names, as the strategy that it
// names, and waits until the run begins. `version` is BH_VERSION. Prepare everything before: from
// here on the thread is pinned, the process's memory is limited, and the launcher expects a poll
// within `--liveness`.
//
// Returns BH_OK, BH_OVER if the run was stopped before it began, or BH_WRONG_VERSION, BH_ATTACHED
// or BH_CANNOT_ATTACH.
int32_t bh_attach(uint32_t version);

// Writes the strategy's information about its run to `context`.
//
// # Safety
// `context` is null or valid for the write of one context.
int32_t bh_get_context(bh_context *context);

// Writes the position that the strategy inherits from its predecessors in an instrument: bought
// minus sold, in 1e-8 units, and its average price, in cents. Zeros if it inherits none, as in
// epoch 0. It is the engine's position when the predecessor had ended, and does not change; a fill
// of a predecessor's order after that is not in it. Since version 1.2.
//
// # Safety
// `net` and `average_price` are null or valid for the write of a number each.
int32_t bh_position(uint16_t instrument, int64_t *net, int64_t *average_price);

// Runs one duty cycle: takes up to `room` reports, in the order in which the engine returned them,
// and publishes a heartbeat. Without reports it idles as the run's plan says, for at most
// `wait_ns` nanoseconds, often far less; 0: not at all.
//
// Returns the number of reports written; 0: none now. BH_OVER: no more will come, call bh_finish.
//
// # Safety
// `reports` is valid for the write of `room` reports; with `room` 0 it may be null.
int32_t bh_poll(bh_report *reports, uint32_t room, uint64_t wait_ns);

// Sends an order: numbers, stamps and pushes it. Its reports follow, exactly one of which is the
// last. Its sequence is written to `sequence`, unless that is null: 0 for the first order of an
// incarnation, then incremented by 1.
//
// Returns BH_OK, also if the ring was full: the order is then queued, keeps its stamp, and nothing
// overtakes it. BH_BUSY, BH_TOO_MANY_OPEN, BH_ENDING, BH_SPENT, BH_BAD_ORDER: nothing was sent and
// no sequence used.
//
// # Safety
// `order` is null or valid for the read of an order; `sequence` is null or valid for the write of
// a number.
int32_t bh_send(const bh_order *order, uint64_t *sequence);

// Sends an order like bh_send, with its intended send time in nanoseconds since the start of the
// run, against which its lateness is measured (slip). A time in the future counts as now. Since
// version 1.1.
//
// # Safety
// `order` is null or valid for the read of an order; `sequence` is null or valid for the write of
// a number.
int32_t bh_send_due(const bh_order *order, uint64_t due_ns, uint64_t *sequence);

// Writes the next top of book that is newer than the last one read of its instrument. Returns 1 if
// there was one, 0 if there is none now (after a batch the rest follows in the next call), or
// BH_NO_MARKET_DATA.
//
// # Safety
// `tick` is null or valid for the write of one tick.
int32_t bh_board_read(bh_tick *tick);

// Writes the time since the start of the run, in nanoseconds, by the run's clock.
//
// # Safety
// `ns` is null or valid for the write of a number.
int32_t bh_now(uint64_t *ns);

// Publishes a heartbeat, for a strategy that computes for longer than `--liveness` between two
// polls, each of which publishes one too.
int32_t bh_heartbeat(void);

// Finishes the strategy: waits until every open order is answered (without delivering these
// reports) or the run has ended, completes the strategy's log and detaches the thread. The process
// then has some seconds to exit, with exit code 0.
int32_t bh_finish(void);

// Returns the English text of a code; for BH_CANNOT_ATTACH and BH_BAD_ORDER that of this thread's
// last such call. Never null; valid until the thread's next bh_attach.
const char *bh_error_text(int32_t code);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BULKHEAD_H */
