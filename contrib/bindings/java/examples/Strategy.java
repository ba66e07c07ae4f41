import bulkhead.Layout;
import bulkhead.Line;

/**
 * The strategy of examples/c/strategy.c in Java: one order at a time at the touch of venue 0, some of which rest for a moment. Keeps its own
 * account.
 *
 * <p>With a number as its argument an order is due every so many nanoseconds, and none rests. With a second one it forces the collector every
 * so many orders, over so many objects that it takes a while, and says when: what that does to the others stands in the report, which
 * is nothing.
 */
public final class Strategy {
    private static final long LOT = 1_000_000; // 0.01 units, in 1e-8 units
    private static final long PRICE = 41_300; // what it thinks a unit is worth while the touch shows nobody, in cents
    private static final long RESTS_EVERY = 8; // every so many orders one rests, unless they are due at times
    private static final long RESTS_NANOS = 200_000; // for so long
    private static final long LONGEST_WAIT_NANOS = 1_000_000;
    private static final int GARBAGE = 200_000; // objects that a collector looks at each time

    private final Line line;
    private final long every;
    private final byte[] expected; // the number of the next report of each order
    private long due, sent, answered, rejected, odd, fills, net, since;
    private long resting = -1;
    private long bid, offer, version; // the touch of venue 0 and instrument 0

    private Strategy(Line line, long every) {
        this.line = line;
        this.every = every;
        this.due = every;
        this.expected = new byte[(int) line.context().orders()];
    }

    private void take(Layout.Report report) {
        long sequence = report.sequence();
        if (sequence >= sent || expected[(int) sequence] != report.number()) {
            odd++;
            return;
        }
        expected[(int) sequence]++;
        if (report.filled() > 0) {
            fills++;
            net += report.side() == Layout.BUY ? report.filled() : -report.filled();
        }
        if (report.isLast() == 0) return;
        answered++;
        if (report.status() == Layout.REJECTED) rejected++;
        if (resting == sequence) resting = -1;
    }

    private void hear() {
        for (Layout.Tick tick = line.read(); tick != null; tick = line.read()) {
            if (tick.venue() != 0 || tick.instrument() != 0) continue;
            bid = tick.bidPrice();
            offer = tick.offerPrice();
            version = tick.version();
        }
    }

    /** One order, if none is open and it is due; a cancel, if one has rested for long enough. */
    private void trade() {
        long now = line.now();
        long open = sent - answered;
        if (resting >= 0 && open == 1 && now - since > RESTS_NANOS) {
            line.order().operation(Layout.CANCEL).target(resting);
            // Refused: all orders of the plan are sent. What rests expires with the run.
            if (line.send() >= 0) sent++;
            return;
        }
        boolean paced = every > 0;
        if (open > 0 || (paced && now < due)) return;
        boolean buys = net <= 0;
        long bestBid = bid > 0 ? bid : PRICE - 1;
        long bestOffer = offer > 0 ? offer : PRICE + 1;
        Layout.Order order = line.order();
        order.side(buys ? Layout.BUY : Layout.SELL).quantity(buys ? LOT : net).selfTrade(Layout.CANCEL_NEWEST);
        if (!paced && sent % RESTS_EVERY == 0) {
            order.price(buys ? bestBid : bestOffer);
            long sequence = line.send();
            if (sequence < 0) return;
            sent++;
            resting = sequence;
            since = now;
            return;
        }
        order.price(buys ? bestOffer : bestBid).timeInForce(Layout.IMMEDIATE_OR_CANCEL).trigger(version);
        if ((paced ? line.sendDue(due) : line.send()) < 0) return;
        sent++;
        due += every;
    }

    public static void main(String[] arguments) {
        long every = arguments.length > 0 ? Long.parseLong(arguments[0]) : 0;
        long collectsEvery = arguments.length > 1 ? Long.parseLong(arguments[1]) : 0;
        Object[] garbage = new Object[collectsEvery > 0 ? GARBAGE : 0];
        for (int place = 0; place < garbage.length; place++) garbage[place] = new long[] {place};
        StringBuilder pauses = new StringBuilder();
        Line line = Line.attach();
        Strategy strategy = new Strategy(line, every);
        long collectsAt = collectsEvery;
        int taken;
        while ((taken = line.poll(LONGEST_WAIT_NANOS)) != Layout.OVER) {
            for (int place = 0; place < taken; place++) strategy.take(line.report(place));
            if (line.context().marketData() == 1) strategy.hear();
            strategy.trade();
            if (collectsEvery > 0 && strategy.sent >= collectsAt) {
                collectsAt += collectsEvery;
                long began = line.now();
                System.gc();
                pauses.append("pause ").append(began).append(' ').append(line.now()).append(" of ").append(garbage.length).append('\n');
            }
        }
        System.out.print(pauses);
        System.out.printf("sent %d answered %d rejected %d odd %d fills %d net %d%n", strategy.sent, strategy.answered,
                strategy.rejected, strategy.odd, strategy.fills, strategy.net);
        System.out.flush();
        line.finish();
    }
}
