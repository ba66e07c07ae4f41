package bulkhead;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.MemorySegment;

/**
 * What is handed over, field by field, and the codes: the structures of bulkhead.h as views of memory.
 *
 * <p>Made of bindings/src by bindings/tests/generated: change it there. Numbers of 64 bits that have no sign are longs here: none that a run
 * can have is as large.
 */
public final class Layout {
    private Layout() {}

    /** The version of this interface: the major one in the upper 16 bits, the minor one below. A library serves programs that were made for its major version and no later minor one. */
    public static final int VERSION = 65537;

    /** It was done; of a poll or a read: there is nothing now. */
    public static final int OK = 0;
    /** An earlier order still waits for room in the ring: poll, then send again. */
    public static final int BUSY = -1;
    /** As many orders are open as the plan allows: poll, then send again. */
    public static final int TOO_MANY_OPEN = -2;
    /** The run is ending: no order is sent any more. Go on polling until BH_OVER. */
    public static final int ENDING = -3;
    /** All orders of the plan are sent. Go on polling until BH_OVER. */
    public static final int SPENT = -4;
    /** All orders are sent and answered, or the run is over: call bh_finish. */
    public static final int OVER = -5;
    /** The calling thread is not attached, or this is a call within another one, from a signal handler. */
    public static final int NOT_ATTACHED = -16;
    /** The calling thread is attached already. */
    public static final int ATTACHED = -17;
    /** The program was made for another version of this interface: see bh_version. */
    public static final int WRONG_VERSION = -18;
    /** The run cannot be attached; bh_error_text says why. */
    public static final int CANNOT_ATTACH = -19;
    /** A pointer is null that must not be. */
    public static final int NULL = -20;
    /** No order: bh_error_text says which field is wrong. Nothing was sent. */
    public static final int BAD_ORDER = -21;
    /** The run has no market data: no venue is an exchange, or it was switched off. */
    public static final int NO_MARKET_DATA = -22;
    /** A defect of this library. The strategy is no longer attached, and the launcher is told. */
    public static final int DEFECT = -23;

    /** An operation: a new order. */
    public static final int NEW = 0;
    /** An operation: the cancel of an earlier order of the same strategy at the same venue. */
    public static final int CANCEL = 1;
    /** An operation: a new price and open quantity for an earlier order. */
    public static final int REPLACE = 2;
    /** An operation: the cancel of all orders of the strategy at the venue, of the instrument. */
    public static final int MASS_CANCEL = 3;

    /** A side: a bid. */
    public static final int BUY = 0;
    /** A side: an offer. */
    public static final int SELL = 1;

    /** A type of order: at its price or better. */
    public static final int LIMIT = 0;
    /** A type of order: at any price. */
    public static final int MARKET = 1;
    /** A type of order: a market order once a trade happens at its stop price or beyond. */
    public static final int STOP = 2;
    /** A type of order: a limit order from that moment. */
    public static final int STOP_LIMIT = 3;

    /** A time in force: until it is filled or cancelled. */
    public static final int GOOD_TILL_CANCEL = 0;
    /** A time in force: what is not filled at once is cancelled. */
    public static final int IMMEDIATE_OR_CANCEL = 1;
    /** A time in force: filled at once and in full, or cancelled. */
    public static final int FILL_OR_KILL = 2;
    /** A time in force: as long as BH_LIFE says. */
    public static final int GOOD_TILL_TIME = 3;

    /** Two orders of one strategy: they trade. */
    public static final int ALLOW = 0;
    /** Two orders of one strategy: what is left of the newer one is cancelled. */
    public static final int CANCEL_NEWEST = 1;
    /** Two orders of one strategy: the older one is cancelled. */
    public static final int CANCEL_OLDEST = 2;
    /** Two orders of one strategy: both are cancelled. */
    public static final int CANCEL_BOTH = 3;
    /** Two orders of one strategy: both lose the smaller quantity. */
    public static final int DECREMENT = 4;

    /** A condition: none. */
    public static final int NO_CONDITION = 0;
    /** A condition: the price that triggers a stop order, in cents. */
    public static final int STOP_PRICE = 1;
    /** A condition: the most that is shown at once. */
    public static final int DISPLAY = 2;
    /** A condition: the least that must be filled at once. */
    public static final int MINIMUM = 3;
    /** A condition: how long the order lives from its arrival at the venue, in nanoseconds. */
    public static final int LIFE = 4;

    /** A status: executed, as a whole or what was left of it. */
    public static final int FILLED = 1;
    /** A status: the engine's risk checks refused it; it never reached a venue. The reason says why. */
    public static final int REJECTED = 2;
    /** A status: what was left of it is cancelled. */
    public static final int CANCELLED = 3;
    /** A status: the venue has it. */
    public static final int ACCEPTED = 4;
    /** A status: the venue has executed a part of it. */
    public static final int PARTIALLY_FILLED = 5;
    /** A status: the venue refused it. */
    public static final int REFUSED = 6;
    /** A status: it has the price and the open quantity of the report now. */
    public static final int REPLACED = 7;
    /** A status: its time is over. */
    public static final int EXPIRED = 8;
    /** A status: a stop order is an order now. */
    public static final int TRIGGERED = 9;
    /** A status: the venue took quantity from it without a trade. */
    public static final int RESTATED = 10;
    /** A status, of a cancel, a replace or a mass cancel: it was carried out. */
    public static final int DONE = 11;

    /** An order. All zero, it is a limit order that buys nothing at venue 0, good till cancelled. */
    public static final class Order {
        /** Bytes of one. */
        public static final long BYTES = 64;

        private final MemorySegment memory;

        Order(MemorySegment memory) {
            this.memory = memory;
        }

        /** Limit price in cents; 0 of a market order or a cancel. */
        public long price() {
            return memory.get(JAVA_LONG, 0);
        }

        /** Limit price in cents; 0 of a market order or a cancel. */
        public Order price(long value) {
            memory.set(JAVA_LONG, 0, value);
            return this;
        }

        /** In 1e-8 units; 0 of a cancel. */
        public long quantity() {
            return memory.get(JAVA_LONG, 8);
        }

        /** In 1e-8 units; 0 of a cancel. */
        public Order quantity(long value) {
            memory.set(JAVA_LONG, 8, value);
            return this;
        }

        /** Of a cancel or a replace: the sequence of the order that it is about. Else 0. */
        public long target() {
            return memory.get(JAVA_LONG, 16);
        }

        /** Of a cancel or a replace: the sequence of the order that it is about. Else 0. */
        public Order target(long value) {
            memory.set(JAVA_LONG, 16, value);
            return this;
        }

        /** The version of the touch that made the strategy send it; 0: none did. */
        public long trigger() {
            return memory.get(JAVA_LONG, 24);
        }

        /** The version of the touch that made the strategy send it; 0: none did. */
        public Order trigger(long value) {
            memory.set(JAVA_LONG, 24, value);
            return this;
        }

        /** What the condition says: a price in cents, a quantity or nanoseconds. 0 without one. */
        public long conditionValue() {
            return memory.get(JAVA_LONG, 32);
        }

        /** What the condition says: a price in cents, a quantity or nanoseconds. 0 without one. */
        public Order conditionValue(long value) {
            memory.set(JAVA_LONG, 32, value);
            return this;
        }

        /** How long a venue of kind `delay` takes for it, in nanoseconds. */
        public long delayNs() {
            return memory.get(JAVA_LONG, 40);
        }

        /** How long a venue of kind `delay` takes for it, in nanoseconds. */
        public Order delayNs(long value) {
            memory.set(JAVA_LONG, 40, value);
            return this;
        }

        /** The venue, from 0. One that there is not is rejected by the engine. */
        public int venue() {
            return memory.get(JAVA_SHORT, 48) & 0xFFFF;
        }

        /** The venue, from 0. One that there is not is rejected by the engine. */
        public Order venue(int value) {
            memory.set(JAVA_SHORT, 48, (short) value);
            return this;
        }

        /** The instrument, from 0. */
        public int instrument() {
            return memory.get(JAVA_SHORT, 50) & 0xFFFF;
        }

        /** The instrument, from 0. */
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

        /** BH_LIMIT, BH_MARKET, BH_STOP or BH_STOP_LIMIT. This and what follows is of a new order; else 0. */
        public int orderType() {
            return memory.get(JAVA_BYTE, 54) & 0xFF;
        }

        /** BH_LIMIT, BH_MARKET, BH_STOP or BH_STOP_LIMIT. This and what follows is of a new order; else 0. */
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

        /** 1: refused rather than take liquidity. */
        public int postOnly() {
            return memory.get(JAVA_BYTE, 56) & 0xFF;
        }

        /** 1: refused rather than take liquidity. */
        public Order postOnly(int value) {
            memory.set(JAVA_BYTE, 56, (byte) value);
            return this;
        }

        /** What happens instead of a trade with an order of the same strategy: BH_ALLOW to BH_DECREMENT. */
        public int selfTrade() {
            return memory.get(JAVA_BYTE, 57) & 0xFF;
        }

        /** What happens instead of a trade with an order of the same strategy: BH_ALLOW to BH_DECREMENT. */
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

    /** A report on an order. */
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

        /** The sequence of the order, as bh_send gave it. */
        public long sequence() {
            return memory.get(JAVA_LONG, at + 0);
        }

        /** In cents: of what was filled with this report; without a fill the order's. */
        public long price() {
            return memory.get(JAVA_LONG, at + 8);
        }

        /** What was filled with this report, in 1e-8 units. */
        public long filled() {
            return memory.get(JAVA_LONG, at + 16);
        }

        /** What is open of the order now. */
        public long leaves() {
            return memory.get(JAVA_LONG, at + 24);
        }

        /** What was filled of it in all. */
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

        /** Why it was rejected: a code of docs/src/risk.md. Of a venue: a code of its own, or 0. */
        public int reason() {
            return memory.get(JAVA_BYTE, at + 45) & 0xFF;
        }

        /** BH_BUY or BH_SELL, of the order. */
        public int side() {
            return memory.get(JAVA_BYTE, at + 46) & 0xFF;
        }

        /** Which report of its order this is, from 0. */
        public int number() {
            return memory.get(JAVA_BYTE, at + 47) & 0xFF;
        }

        /** 1: no report of this order follows. */
        public int isLast() {
            return memory.get(JAVA_BYTE, at + 48) & 0xFF;
        }
    }

    /** The touch of an instrument: the best of both sides and the last trade. Price and quantity are both 0 where there is none. */
    public static final class Tick {
        /** Bytes of one. */
        public static final long BYTES = 88;

        private final MemorySegment memory;

        Tick(MemorySegment memory) {
            this.memory = memory;
        }

        /** The version of this touch, from 1: what an order that it triggers says. */
        public long version() {
            return memory.get(JAVA_LONG, 0);
        }

        /** When the exchange wrote it, in nanoseconds since the start of the run. */
        public long writtenNs() {
            return memory.get(JAVA_LONG, 8);
        }

        /** Versions that were written over before this strategy looked. */
        public long missed() {
            return memory.get(JAVA_LONG, 16);
        }

        /** Trades so far. */
        public long trades() {
            return memory.get(JAVA_LONG, 24);
        }

        /** The best bid, in cents. */
        public long bidPrice() {
            return memory.get(JAVA_LONG, 32);
        }

        /** How much there is at that price, in 1e-8 units. */
        public long bidQuantity() {
            return memory.get(JAVA_LONG, 40);
        }

        /** The best offer, in cents. */
        public long offerPrice() {
            return memory.get(JAVA_LONG, 48);
        }

        /** How much there is at that price, in 1e-8 units. */
        public long offerQuantity() {
            return memory.get(JAVA_LONG, 56);
        }

        /** The last trade, in cents. */
        public long lastPrice() {
            return memory.get(JAVA_LONG, 64);
        }

        /** Its quantity, in 1e-8 units. */
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

        /** 1: it is in a call auction. */
        public int auction() {
            return memory.get(JAVA_BYTE, 84) & 0xFF;
        }
    }

    /** What a strategy knows of its run. */
    public static final class Context {
        /** Bytes of one. */
        public static final long BYTES = 40;

        private final MemorySegment memory;

        Context(MemorySegment memory) {
            this.memory = memory;
        }

        /** The most orders that it can send: those that the plan has for it, less what its predecessors sent. */
        public long orders() {
            return memory.get(JAVA_LONG, 0);
        }

        /** The most orders that it can have open at once. */
        public long maxOpen() {
            return memory.get(JAVA_LONG, 8);
        }

        /** Orders that its predecessors sent: 0 in epoch 0. */
        public long sentBefore() {
            return memory.get(JAVA_LONG, 16);
        }

        /** Which strategy it is, from 0. */
        public int strategy() {
            return memory.get(JAVA_SHORT, 24) & 0xFFFF;
        }

        /** How many strategies there are. */
        public int strategies() {
            return memory.get(JAVA_SHORT, 26) & 0xFFFF;
        }

        /** How many venues there are: orders go to 0 … venues − 1. */
        public int venues() {
            return memory.get(JAVA_SHORT, 28) & 0xFFFF;
        }

        /** How many instruments there are, at least 1. */
        public int instruments() {
            return memory.get(JAVA_SHORT, 30) & 0xFFFF;
        }

        /** Which incarnation it is: 0, and one more each time that it was started again after a death. */
        public int epoch() {
            return memory.get(JAVA_SHORT, 32) & 0xFFFF;
        }

        /** 1: there is market data. */
        public int marketData() {
            return memory.get(JAVA_BYTE, 34) & 0xFF;
        }
    }
}
