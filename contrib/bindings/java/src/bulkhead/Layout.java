package bulkhead;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.MemorySegment;

/**
 * What is handed over, field by field, and the codes: the structures of bulkhead.h as views of memory.
 *
 * <p>Made of contrib/bindings/src by contrib/bindings/tests/generated: change it there. Numbers of 64 bits that have no sign are longs here: none that a run
 * can have is as large.
 */
public final class Layout {
    private Layout() {}

    /** Version of this interface: major in the upper 16 bits, minor below. A library serves programs of its major version and of no later minor version. */
    public static final int VERSION = 65538;

    /** Success; of a poll or a read: nothing available now. */
    public static final int OK = 0;
    /** An earlier order is still queued for the ring: poll, then send again. */
    public static final int BUSY = -1;
    /** The limit of open orders is reached: poll, then send again. */
    public static final int TOO_MANY_OPEN = -2;
    /** The run is ending: no more orders are sent. Continue to poll until BH_OVER. */
    public static final int ENDING = -3;
    /** All orders of the plan are sent. Continue to poll until BH_OVER. */
    public static final int SPENT = -4;
    /** All orders are sent and answered, or the run has ended: call bh_finish. */
    public static final int OVER = -5;
    /** The calling thread is not attached, or the call is nested in another one, from a signal handler. */
    public static final int NOT_ATTACHED = -16;
    /** The calling thread is attached already. */
    public static final int ATTACHED = -17;
    /** The program was compiled for another version of this interface: see bh_version. */
    public static final int WRONG_VERSION = -18;
    /** Attaching to the run failed; bh_error_text returns the cause. */
    public static final int CANNOT_ATTACH = -19;
    /** A required pointer is null. */
    public static final int NULL = -20;
    /** The order is invalid: bh_error_text names the field. Nothing was sent. */
    public static final int BAD_ORDER = -21;
    /** The run has no market data: no venue is an exchange, or market data was switched off. */
    public static final int NO_MARKET_DATA = -22;
    /** A defect of this library. The strategy is detached, and the launcher is notified. */
    public static final int DEFECT = -23;

    /** An operation: a new order. */
    public static final int NEW = 0;
    /** An operation: the cancel of an earlier order of the same strategy at the same venue. */
    public static final int CANCEL = 1;
    /** An operation: a new price and open quantity for an earlier order. */
    public static final int REPLACE = 2;
    /** An operation: the cancel of all orders of the strategy in one instrument at one venue. */
    public static final int MASS_CANCEL = 3;

    /** A side: a bid. */
    public static final int BUY = 0;
    /** A side: an offer. */
    public static final int SELL = 1;

    /** An order type: limit, at its price or better. */
    public static final int LIMIT = 0;
    /** An order type: market, at any price. */
    public static final int MARKET = 1;
    /** An order type: stop, a market order once a trade happens at its stop price or beyond. */
    public static final int STOP = 2;
    /** An order type: stop limit, a limit order once a trade happens at its stop price or beyond. */
    public static final int STOP_LIMIT = 3;

    /** A time in force: good till cancel. */
    public static final int GOOD_TILL_CANCEL = 0;
    /** A time in force: what is not filled immediately is cancelled. */
    public static final int IMMEDIATE_OR_CANCEL = 1;
    /** A time in force: filled immediately and in full, or cancelled. */
    public static final int FILL_OR_KILL = 2;
    /** A time in force: until the lifetime in the order's condition BH_LIFE has passed. */
    public static final int GOOD_TILL_TIME = 3;

    /** Self-trade prevention: none, orders of one strategy trade with each other. */
    public static final int ALLOW = 0;
    /** Self-trade prevention: what is left of the newer order is cancelled. */
    public static final int CANCEL_NEWEST = 1;
    /** Self-trade prevention: the older order is cancelled. */
    public static final int CANCEL_OLDEST = 2;
    /** Self-trade prevention: both orders are cancelled. */
    public static final int CANCEL_BOTH = 3;
    /** Self-trade prevention: both orders are reduced by the smaller quantity. */
    public static final int DECREMENT = 4;

    /** Condition of an order: none, it is sent to the book at once. */
    public static final int NO_CONDITION = 0;
    /** A condition: the price that triggers a stop order, in cents. */
    public static final int STOP_PRICE = 1;
    /** A condition: the maximum displayed quantity (iceberg). */
    public static final int DISPLAY = 2;
    /** A condition: the minimum quantity that must be filled immediately. */
    public static final int MINIMUM = 3;
    /** A condition: lifetime of the order from its arrival at the venue, in nanoseconds. */
    public static final int LIFE = 4;

    /** An order's status: completely filled. */
    public static final int FILLED = 1;
    /** An order's status: rejected by the engine's risk checks with a reason, so never at a venue. */
    public static final int REJECTED = 2;
    /** An order's status: the open quantity is cancelled. */
    public static final int CANCELLED = 3;
    /** An order's status: accepted by the venue. */
    public static final int ACCEPTED = 4;
    /** An order's status: partially filled. */
    public static final int PARTIALLY_FILLED = 5;
    /** An order's status: refused by the venue. */
    public static final int REFUSED = 6;
    /** An order's status: replaced, with the price and open quantity of the report. */
    public static final int REPLACED = 7;
    /** An order's status: expired. */
    public static final int EXPIRED = 8;
    /** An order's status: a stop order was triggered. */
    public static final int TRIGGERED = 9;
    /** An order's status: the venue reduced the quantity without a trade. */
    public static final int RESTATED = 10;
    /** The status of a cancel, replace or mass cancel: executed. */
    public static final int DONE = 11;

    /** An order as a strategy's program passes it to bh_send: operation, venue, instrument, price, quantity and terms. All zeros are a limit buy order for nothing at venue 0, good till cancelled. */
    public static final class Order {
        /** Bytes of one. */
        public static final long BYTES = 64;

        private final MemorySegment memory;

        Order(MemorySegment memory) {
            this.memory = memory;
        }

        /** Limit price in cents; 0 for a market order or a cancel. */
        public long price() {
            return memory.get(JAVA_LONG, 0);
        }

        /** Limit price in cents; 0 for a market order or a cancel. */
        public Order price(long value) {
            memory.set(JAVA_LONG, 0, value);
            return this;
        }

        /** Quantity in 1e-8 units; 0 for a cancel. */
        public long quantity() {
            return memory.get(JAVA_LONG, 8);
        }

        /** Quantity in 1e-8 units; 0 for a cancel. */
        public Order quantity(long value) {
            memory.set(JAVA_LONG, 8, value);
            return this;
        }

        /** Sequence of the order that a cancel or replace targets; otherwise 0. */
        public long target() {
            return memory.get(JAVA_LONG, 16);
        }

        /** Sequence of the order that a cancel or replace targets; otherwise 0. */
        public Order target(long value) {
            memory.set(JAVA_LONG, 16, value);
            return this;
        }

        /** Version of the market data that triggered the order; 0: none. */
        public long trigger() {
            return memory.get(JAVA_LONG, 24);
        }

        /** Version of the market data that triggered the order; 0: none. */
        public Order trigger(long value) {
            memory.set(JAVA_LONG, 24, value);
            return this;
        }

        /** Value of the condition: a price in cents, a quantity or nanoseconds; 0 without a condition. */
        public long conditionValue() {
            return memory.get(JAVA_LONG, 32);
        }

        /** Value of the condition: a price in cents, a quantity or nanoseconds; 0 without a condition. */
        public Order conditionValue(long value) {
            memory.set(JAVA_LONG, 32, value);
            return this;
        }

        /** Delay at a venue of kind `delay`, in nanoseconds. */
        public long delayNs() {
            return memory.get(JAVA_LONG, 40);
        }

        /** Delay at a venue of kind `delay`, in nanoseconds. */
        public Order delayNs(long value) {
            memory.set(JAVA_LONG, 40, value);
            return this;
        }

        /** Index of the venue, from 0. The engine rejects an unknown one. */
        public int venue() {
            return memory.get(JAVA_SHORT, 48) & 0xFFFF;
        }

        /** Index of the venue, from 0. The engine rejects an unknown one. */
        public Order venue(int value) {
            memory.set(JAVA_SHORT, 48, (short) value);
            return this;
        }

        /** Index of the instrument, from 0. */
        public int instrument() {
            return memory.get(JAVA_SHORT, 50) & 0xFFFF;
        }

        /** Index of the instrument, from 0. */
        public Order instrument(int value) {
            memory.set(JAVA_SHORT, 50, (short) value);
            return this;
        }

        /** BH_NEW, BH_CANCEL, BH_REPLACE or BH_MASS_CANCEL. */
        public int operation() {
            return memory.get(JAVA_BYTE, 52) & 0xFF;
        }

        /** BH_NEW, BH_CANCEL, BH_REPLACE or BH_MASS_CANCEL. */
        public Order operation(int value) {
            memory.set(JAVA_BYTE, 52, (byte) value);
            return this;
        }

        /** BH_BUY or BH_SELL. */
        public int side() {
            return memory.get(JAVA_BYTE, 53) & 0xFF;
        }

        /** BH_BUY or BH_SELL. */
        public Order side(int value) {
            memory.set(JAVA_BYTE, 53, (byte) value);
            return this;
        }

        /** BH_LIMIT, BH_MARKET, BH_STOP or BH_STOP_LIMIT. This and later fields are for new orders; otherwise 0. */
        public int orderType() {
            return memory.get(JAVA_BYTE, 54) & 0xFF;
        }

        /** BH_LIMIT, BH_MARKET, BH_STOP or BH_STOP_LIMIT. This and later fields are for new orders; otherwise 0. */
        public Order orderType(int value) {
            memory.set(JAVA_BYTE, 54, (byte) value);
            return this;
        }

        /** BH_GOOD_TILL_CANCEL, BH_IMMEDIATE_OR_CANCEL, BH_FILL_OR_KILL or BH_GOOD_TILL_TIME. */
        public int timeInForce() {
            return memory.get(JAVA_BYTE, 55) & 0xFF;
        }

        /** BH_GOOD_TILL_CANCEL, BH_IMMEDIATE_OR_CANCEL, BH_FILL_OR_KILL or BH_GOOD_TILL_TIME. */
        public Order timeInForce(int value) {
            memory.set(JAVA_BYTE, 55, (byte) value);
            return this;
        }

        /** 1: post-only, refused rather than take liquidity. */
        public int postOnly() {
            return memory.get(JAVA_BYTE, 56) & 0xFF;
        }

        /** 1: post-only, refused rather than take liquidity. */
        public Order postOnly(int value) {
            memory.set(JAVA_BYTE, 56, (byte) value);
            return this;
        }

        /** Self-trade prevention: BH_ALLOW to BH_DECREMENT. */
        public int selfTrade() {
            return memory.get(JAVA_BYTE, 57) & 0xFF;
        }

        /** Self-trade prevention: BH_ALLOW to BH_DECREMENT. */
        public Order selfTrade(int value) {
            memory.set(JAVA_BYTE, 57, (byte) value);
            return this;
        }

        /** BH_NO_CONDITION to BH_LIFE. */
        public int condition() {
            return memory.get(JAVA_BYTE, 58) & 0xFF;
        }

        /** BH_NO_CONDITION to BH_LIFE. */
        public Order condition(int value) {
            memory.set(JAVA_BYTE, 58, (byte) value);
            return this;
        }
    }

    /** A report on a strategy's order, as bh_poll returns it: status, fill, and open and total filled quantities. */
    public static final class Report {
        /** Bytes of one. */
        public static final long BYTES = 56;

        private final MemorySegment memory;
        private long at;

        Report(MemorySegment memory) {
            this.memory = memory;
        }

        Report at(int place) {
            at = place * BYTES;
            return this;
        }

        /** Sequence of the order, as returned by bh_send. */
        public long sequence() {
            return memory.get(JAVA_LONG, at + 0);
        }

        /** Price in cents: of this report's fill, or of the order without a fill. */
        public long price() {
            return memory.get(JAVA_LONG, at + 8);
        }

        /** Quantity filled with this report, in 1e-8 units. */
        public long filled() {
            return memory.get(JAVA_LONG, at + 16);
        }

        /** Open quantity of the order, in 1e-8 units. */
        public long leaves() {
            return memory.get(JAVA_LONG, at + 24);
        }

        /** Total quantity filled, in 1e-8 units. */
        public long cumulative() {
            return memory.get(JAVA_LONG, at + 32);
        }

        /** The venue. */
        public int venue() {
            return memory.get(JAVA_SHORT, at + 40) & 0xFFFF;
        }

        /** The instrument. */
        public int instrument() {
            return memory.get(JAVA_SHORT, at + 42) & 0xFFFF;
        }

        /** BH_FILLED to BH_DONE. */
        public int status() {
            return memory.get(JAVA_BYTE, at + 44) & 0xFF;
        }

        /** Reason of a rejection: a code of docs/src/risk.md. For a venue's report: a code of the venue, or 0. */
        public int reason() {
            return memory.get(JAVA_BYTE, at + 45) & 0xFF;
        }

        /** Side of the order: BH_BUY or BH_SELL. */
        public int side() {
            return memory.get(JAVA_BYTE, at + 46) & 0xFF;
        }

        /** Number of this report among those of its order, from 0. */
        public int number() {
            return memory.get(JAVA_BYTE, at + 47) & 0xFF;
        }

        /** 1: no report of this order follows. */
        public int isLast() {
            return memory.get(JAVA_BYTE, at + 48) & 0xFF;
        }
    }

    /** The top of book of an instrument: best bid and offer, and the last trade. Price and quantity are both 0 if there is none. */
    public static final class Tick {
        /** Bytes of one. */
        public static final long BYTES = 88;

        private final MemorySegment memory;

        Tick(MemorySegment memory) {
            this.memory = memory;
        }

        /** Version of this top of book, from 1: the trigger of orders sent in reaction. */
        public long version() {
            return memory.get(JAVA_LONG, 0);
        }

        /** When the exchange published it, in nanoseconds since the start of the run. */
        public long writtenNs() {
            return memory.get(JAVA_LONG, 8);
        }

        /** Number of versions that were overwritten before this strategy read them. */
        public long missed() {
            return memory.get(JAVA_LONG, 16);
        }

        /** Number of trades so far. */
        public long trades() {
            return memory.get(JAVA_LONG, 24);
        }

        /** Best bid price in cents. */
        public long bidPrice() {
            return memory.get(JAVA_LONG, 32);
        }

        /** Quantity at the best bid, in 1e-8 units. */
        public long bidQuantity() {
            return memory.get(JAVA_LONG, 40);
        }

        /** Best offer price in cents. */
        public long offerPrice() {
            return memory.get(JAVA_LONG, 48);
        }

        /** Quantity at the best offer, in 1e-8 units. */
        public long offerQuantity() {
            return memory.get(JAVA_LONG, 56);
        }

        /** Price of the last trade in cents. */
        public long lastPrice() {
            return memory.get(JAVA_LONG, 64);
        }

        /** Quantity of the last trade, in 1e-8 units. */
        public long lastQuantity() {
            return memory.get(JAVA_LONG, 72);
        }

        /** The venue. */
        public int venue() {
            return memory.get(JAVA_SHORT, 80) & 0xFFFF;
        }

        /** The instrument. */
        public int instrument() {
            return memory.get(JAVA_SHORT, 82) & 0xFFFF;
        }

        /** 1: the instrument is in a call auction. */
        public int auction() {
            return memory.get(JAVA_BYTE, 84) & 0xFF;
        }
    }

    /** A strategy's information about its run. */
    public static final class Context {
        /** Bytes of one. */
        public static final long BYTES = 40;

        private final MemorySegment memory;

        Context(MemorySegment memory) {
            this.memory = memory;
        }

        /** Maximum number of orders: those of the plan, less what predecessors sent. */
        public long orders() {
            return memory.get(JAVA_LONG, 0);
        }

        /** Maximum number of orders open at once. */
        public long maxOpen() {
            return memory.get(JAVA_LONG, 8);
        }

        /** Number of orders sent by predecessors: 0 in epoch 0. */
        public long sentBefore() {
            return memory.get(JAVA_LONG, 16);
        }

        /** Index of the strategy, from 0. */
        public int strategy() {
            return memory.get(JAVA_SHORT, 24) & 0xFFFF;
        }

        /** Number of strategies. */
        public int strategies() {
            return memory.get(JAVA_SHORT, 26) & 0xFFFF;
        }

        /** Number of venues: orders go to 0 … venues − 1. */
        public int venues() {
            return memory.get(JAVA_SHORT, 28) & 0xFFFF;
        }

        /** Number of instruments, at least 1. */
        public int instruments() {
            return memory.get(JAVA_SHORT, 30) & 0xFFFF;
        }

        /** Incarnation of the strategy: 0, incremented by each restart after a crash. */
        public int epoch() {
            return memory.get(JAVA_SHORT, 32) & 0xFFFF;
        }

        /** 1: the run has market data. */
        public int marketData() {
            return memory.get(JAVA_BYTE, 34) & 0xFF;
        }
    }
}
