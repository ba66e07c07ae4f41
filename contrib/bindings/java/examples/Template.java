import bulkhead.Layout;
import bulkhead.Line;

/** A strategy to begin with: copy it, and write what it does with reports and touches. It buys a little at the offer, ten times. */
public final class Template {
    public static void main(String[] arguments) {
        // Load and compute whatever you need here: before the line is there, nothing is limited and nobody waits.
        Line line = Line.attach();
        long sent = 0;
        long offer = 0;
        int taken;
        while ((taken = line.poll(1_000_000)) != Layout.OVER) {
            for (int place = 0; place < taken; place++) {
                Layout.Report report = line.report(place);
                if (report.filled() > 0) System.out.println("order " + report.sequence() + ": " + report.filled() + " at " + report.price());
            }
            if (line.context().marketData() == 1) {
                for (Layout.Tick tick = line.read(); tick != null; tick = line.read())
                    if (tick.venue() == 0 && tick.instrument() == 0) offer = tick.offerPrice();
            }
            if (sent == Math.min(10, line.context().orders())) break;
            if (offer == 0) continue;
            line.order().price(offer).quantity(1_000_000).side(Layout.BUY).timeInForce(Layout.IMMEDIATE_OR_CANCEL);
            if (line.send() >= 0) {
                sent++;
                offer = 0;
            }
        }
        line.finish(); // waits for what is open
    }
}
