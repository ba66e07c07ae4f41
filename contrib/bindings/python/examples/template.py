"""A strategy to begin with: copy it, and write what it does with reports and touches. It buys a little at the offer, ten times.

    launcher run --strategy player,exec:python3 template.py --strategies 2 --venue book --venues 1
"""

import bulkhead
from bulkhead import layout

# Import, load and compute whatever you need here: before the line is there, nothing is limited and nobody waits.

with bulkhead.Line() as line:
    sent = 0
    offer = 0
    while (taken := line.poll(wait_ns=1_000_000)) is not None:
        for report in line.reports[:taken]:
            if report["filled"]:
                print(f"order {report['sequence']}: {report['filled']} at {report['price']}")
        if line.context.market_data:
            for tick in line.ticks[: line.read()]:
                if tick["venue"] == 0 and tick["instrument"] == 0:
                    offer = int(tick["offer_price"])
        if sent == min(10, line.context.orders):
            break  # leaving the block waits for what is open
        if offer > 0 and line.send(offer, 1_000_000, side=layout.BUY, time_in_force=layout.IMMEDIATE_OR_CANCEL) >= 0:
            sent += 1
            offer = 0
