/* bulkhead: the interface for strategies in any language. The guide is docs/src/languages.md.
 *
 * Made of bindings/src by bindings/tests/header.rs: change it there. */

#ifndef BULKHEAD_H
#define BULKHEAD_H

#include <stdint.h>

// The version of this interface: the major one in the upper 16 bits, the minor one below. A
// library serves programs that were made for its major version and no later minor one.
#define BH_VERSION 65537

// It was done; of a poll or a read: there is nothing now.
#define BH_OK 0

// An earlier order still waits for room in the ring: poll, then send again.
#define BH_BUSY -1

// As many orders are open as the plan allows: poll, then send again.
#define BH_TOO_MANY_OPEN -2

// The run is ending: no order is sent any more. Go on polling until BH_OVER.
#define BH_ENDING -3

// All orders of the plan are sent. Go on polling until BH_OVER.
#define BH_SPENT -4

// All orders are sent and answered, or the run is over: call bh_finish.
#define BH_OVER -5

// The calling thread is not attached, or this is a call within another one, from a signal handler.
#define BH_NOT_ATTACHED -16

// The calling thread is attached already.
#define BH_ATTACHED -17

// The program was made for another version of this interface: see bh_version.
#define BH_WRONG_VERSION -18

// The run cannot be attached; bh_error_text says why.
#define BH_CANNOT_ATTACH -19

// A pointer is null that must not be.
#define BH_NULL -20

// No order: bh_error_text says which field is wrong. Nothing was sent.
#define BH_BAD_ORDER -21

// The run has no market data: no venue is an exchange, or it was switched off.
#define BH_NO_MARKET_DATA -22

// A defect of this library. The strategy is no longer attached, and the launcher is told.
#define BH_DEFECT -23

// An operation: a new order.
#define BH_NEW 0

// An operation: the cancel of an earlier order of the same strategy at the same venue.
#define BH_CANCEL 1

// An operation: a new price and open quantity for an earlier order.
#define BH_REPLACE 2

// An operation: the cancel of all orders of the strategy at the venue, of the instrument.
#define BH_MASS_CANCEL 3

// A side: a bid.
#define BH_BUY 0

// A side: an offer.
#define BH_SELL 1

// A type of order: at its price or better.
#define BH_LIMIT 0

// A type of order: at any price.
#define BH_MARKET 1

// A type of order: a market order once a trade happens at its stop price or beyond.
#define BH_STOP 2

// A type of order: a limit order from that moment.
#define BH_STOP_LIMIT 3

// A time in force: until it is filled or cancelled.
#define BH_GOOD_TILL_CANCEL 0

// A time in force: what is not filled at once is cancelled.
#define BH_IMMEDIATE_OR_CANCEL 1

// A time in force: filled at once and in full, or cancelled.
#define BH_FILL_OR_KILL 2

// A time in force: as long as BH_LIFE says.
#define BH_GOOD_TILL_TIME 3

// Two orders of one strategy: they trade.
#define BH_ALLOW 0

// Two orders of one strategy: what is left of the newer one is cancelled.
#define BH_CANCEL_NEWEST 1

// Two orders of one strategy: the older one is cancelled.
#define BH_CANCEL_OLDEST 2

// Two orders of one strategy: both are cancelled.
#define BH_CANCEL_BOTH 3

// Two orders of one strategy: both lose the smaller quantity.
#define BH_DECREMENT 4

// A condition: none.
#define BH_NO_CONDITION 0

// A condition: the price that triggers a stop order, in cents.
#define BH_STOP_PRICE 1

// A condition: the most that is shown at once.
#define BH_DISPLAY 2

// A condition: the least that must be filled at once.
#define BH_MINIMUM 3

// A condition: how long the order lives from its arrival at the venue, in nanoseconds.
#define BH_LIFE 4

// A status: executed, as a whole or what was left of it.
#define BH_FILLED 1

// A status: the engine's risk checks refused it; it never reached a venue. The reason says why.
#define BH_REJECTED 2

// A status: what was left of it is cancelled.
#define BH_CANCELLED 3

// A status: the venue has it.
#define BH_ACCEPTED 4

// A status: the venue has executed a part of it.
#define BH_PARTIALLY_FILLED 5

// A status: the venue refused it.
#define BH_REFUSED 6

// A status: it has the price and the open quantity of the report now.
#define BH_REPLACED 7

// A status: its time is over.
#define BH_EXPIRED 8

// A status: a stop order is an order now.
#define BH_TRIGGERED 9

// A status: the venue took quantity from it without a trade.
#define BH_RESTATED 10

// A status, of a cancel, a replace or a mass cancel: it was carried out.
#define BH_DONE 11

// What a strategy knows of its run.
typedef struct {
    // The most orders that it can send: those that the plan has for it, less what its predecessors
    // sent.
    uint64_t orders;
    // The most orders that it can have open at once.
    uint64_t max_open;
    // Orders that its predecessors sent: 0 in epoch 0.
    uint64_t sent_before;
    // Which strategy it is, from 0.
    uint16_t strategy;
    // How many strategies there are.
    uint16_t strategies;
    // How many venues there are: orders go to 0 … venues − 1.
    uint16_t venues;
    // How many instruments there are, at least 1.
    uint16_t instruments;
    // Which incarnation it is: 0, and one more each time that it was started again after a death.
    uint16_t epoch;
    // 1: there is market data.
    uint8_t market_data;
    // 0.
    uint8_t reserved[5];
} bh_context;

// A report on an order.
typedef struct {
    // The sequence of the order, as bh_send gave it.
    uint64_t sequence;
    // In cents: of what was filled with this report; without a fill the order's.
    int64_t price;
    // What was filled with this report, in 1e-8 units.
    uint64_t filled;
    // What is open of the order now.
    uint64_t leaves;
    // What was filled of it in all.
    uint64_t cumulative;
    // The venue.
    uint16_t venue;
    // The instrument.
    uint16_t instrument;
    // BH_FILLED to BH_DONE.
    uint8_t status;
    // Why it was rejected: a code of docs/src/risk.md. Of a venue: a code of its own, or 0.
    uint8_t reason;
    // BH_BUY or BH_SELL, of the order.
    uint8_t side;
    // Which report of its order this is, from 0.
    uint8_t number;
    // 1: no report of this order follows.
    uint8_t is_last;
    // 0.
    uint8_t reserved[7];
} bh_report;

// An order. All zero, it is a limit order that buys nothing at venue 0, good till cancelled.
typedef struct {
    // Limit price in cents; 0 of a market order or a cancel.
    int64_t price;
    // In 1e-8 units; 0 of a cancel.
    uint64_t quantity;
    // Of a cancel or a replace: the sequence of the order that it is about. Else 0.
    uint64_t target;
    // The version of the touch that made the strategy send it; 0: none did.
    uint64_t trigger;
    // What the condition says: a price in cents, a quantity or nanoseconds. 0 without one.
    uint64_t condition_value;
    // How long a venue of kind `delay` takes for it, in nanoseconds.
    uint64_t delay_ns;
    // The venue, from 0. One that there is not is rejected by the engine.
    uint16_t venue;
    // The instrument, from 0.
    uint16_t instrument;
    // BH_NEW, BH_CANCEL, BH_REPLACE or BH_MASS_CANCEL.
    uint8_t operation;
    // BH_BUY or BH_SELL.
    uint8_t side;
    // BH_LIMIT, BH_MARKET, BH_STOP or BH_STOP_LIMIT. This and what follows is of a new order; else 0.
    uint8_t order_type;
    // BH_GOOD_TILL_CANCEL, BH_IMMEDIATE_OR_CANCEL, BH_FILL_OR_KILL or BH_GOOD_TILL_TIME.
    uint8_t time_in_force;
    // 1: refused rather than take liquidity.
    uint8_t post_only;
    // What happens instead of a trade with an order of the same strategy: BH_ALLOW to
    // BH_DECREMENT.
    uint8_t self_trade;
    // BH_NO_CONDITION to BH_LIFE.
    uint8_t condition;
    // 0.
    uint8_t reserved[5];
} bh_order;

// The touch of an instrument: the best of both sides and the last trade. Price and quantity are
// both 0 where there is none.
typedef struct {
    // The version of this touch, from 1: what an order that it triggers says.
    uint64_t version;
    // When the exchange wrote it, in nanoseconds since the start of the run.
    uint64_t written_ns;
    // Versions that were written over before this strategy looked.
    uint64_t missed;
    // Trades so far.
    uint64_t trades;
    // The best bid, in cents.
    int64_t bid_price;
    // How much there is at that price, in 1e-8 units.
    uint64_t bid_quantity;
    // The best offer, in cents.
    int64_t offer_price;
    // How much there is at that price, in 1e-8 units.
    uint64_t offer_quantity;
    // The last trade, in cents.
    int64_t last_price;
    // Its quantity, in 1e-8 units.
    uint64_t last_quantity;
    // The venue.
    uint16_t venue;
    // The instrument.
    uint16_t instrument;
    // 1: it is in a call auction.
    uint8_t auction;
    // 0.
    uint8_t reserved[3];
} bh_tick;

// Every code.
#define ALL { BH_OK, BH_BUSY, BH_TOO_MANY_OPEN, BH_ENDING, BH_SPENT, BH_OVER, BH_NOT_ATTACHED, BH_ATTACHED, BH_WRONG_VERSION, BH_CANNOT_ATTACH, BH_NULL, BH_BAD_ORDER, BH_NO_MARKET_DATA, BH_DEFECT, }

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library, to be compared with BH_VERSION of the header.
uint32_t bh_version(void);

// Attaches the calling thread to the run that the environment names, as the strategy that it
// names, and waits until the run begins. `version` is BH_VERSION. Prepare everything before: from
// here on the thread is pinned, the process's memory is limited, and the launcher expects a poll
// within `--liveness`.
//
// BH_OK: go on. BH_OVER: the run was stopped before it began. Else BH_WRONG_VERSION, BH_ATTACHED
// or BH_CANNOT_ATTACH.
int32_t bh_attach(uint32_t version);

// Writes what the strategy knows of its run.
//
// # Safety
// `context` is null or has room for one.
int32_t bh_get_context(bh_context *context);

// One duty cycle: takes the next reports, at most `room`, in the order in which the engine
// returned them, and says that the strategy lives. Without any it idles as the run's plan says,
// for at most `wait_ns` nanoseconds, often far less; 0: not at all.
//
// How many reports were written; 0: none now. BH_OVER: none will come any more, call bh_finish.
//
// # Safety
// `reports` has room for `room` of them; with `room` 0 it may be null.
int32_t bh_poll(bh_report *reports, uint32_t room, uint64_t wait_ns);

// Sends an order: numbers, stamps and pushes it. From then on its reports follow, exactly one of
// which is the last. Its sequence is written to `sequence`, unless that is null: 0 for the first
// order of an incarnation, then one more each.
//
// BH_OK, also where the ring was full: the order then waits, keeps its stamp, and nothing
// overtakes it. BH_BUSY, BH_TOO_MANY_OPEN, BH_ENDING, BH_SPENT, BH_BAD_ORDER: nothing was sent and
// no sequence used.
//
// # Safety
// `order` is null or an order; `sequence` is null or has room for a number.
int32_t bh_send(const bh_order *order, uint64_t *sequence);

// The same of an order that was due at a time, in nanoseconds since the start of the run: what a
// late sender is measured against (slip). One that lies ahead counts as now. Since version 1.1.
//
// # Safety
// As of bh_send.
int32_t bh_send_due(const bh_order *order, uint64_t due_ns, uint64_t *sequence);

// Writes the next touch that is newer than the last one that was read of its instrument. 1: there
// was one. 0: none now; after so many in a row the rest comes behind the next call.
// BH_NO_MARKET_DATA.
//
// # Safety
// `tick` is null or has room for one.
int32_t bh_board_read(bh_tick *tick);

// Writes the time since the start of the run, in nanoseconds, by the run's clock.
//
// # Safety
// `ns` is null or has room for a number.
int32_t bh_now(uint64_t *ns);

// Says that the strategy lives, for one that computes for longer than `--liveness` between two
// polls, each of which says so too.
int32_t bh_heartbeat(void);

// Sends no more, waits until every open order is answered (what is answered now is not handed over
// any more) or the run is over, writes the end of the strategy's log and says that it is done.
// Then the thread is not attached any more, and the process has some seconds to end, with exit
// code 0.
int32_t bh_finish(void);

// The text of a code, in English; of BH_CANNOT_ATTACH and BH_BAD_ORDER that of this thread's last
// such call. Never null; valid until the thread's next bh_attach.
const char *bh_error_text(int32_t code);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BULKHEAD_H */
