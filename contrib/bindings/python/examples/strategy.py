"""The strategy of examples/c/strategy.c in Python: one order at a time at the touch of venue 0, some of which rest for a moment.

    launcher run --strategy player,exec:python3 strategy.py --strategies 2 --venue book --venues 1

Keeps its own account. With a number as its argument an order is due every so many nanoseconds, and none rests. With a second one it
collects garbage every so many orders, over so many objects that it takes a while, and says when: what that does to the others
stands in the report, which is nothing.
"""

from __future__ import annotations

import gc
import sys

import bulkhead
from bulkhead import layout

LOT = 1_000_000  # 0.01 units, in 1e-8 units
PRICE = 41_300  # what it thinks a unit is worth while the touch shows nobody, in cents
RESTS_EVERY = 8  # every so many orders one rests, unless they are due at times
RESTS_NS = 200_000  # for so long
LONGEST_WAIT_NS = 1_000_000
GARBAGE = 200_000  # objects that a collector looks at each time


class Strategy:
    def __init__(self, line: bulkhead.Line, every_ns: int) -> None:
        self.line = line
        self.every_ns = every_ns
        self.due_ns = every_ns
        self.bid = self.offer = self.version = 0  # the touch of venue 0 and instrument 0
        self.sent = self.answered = self.rejected = self.odd = self.fills = self.net = 0
        self.expected = bytearray(line.context.orders)  # the number of the next report of each order
        self.resting: int | None = None
        self.since_ns = 0

    def take(self, taken: int) -> None:
        # A row as a tuple, in the order of the fields: the quickest way out of an array.
        for sequence, _, filled, _, _, _, _, status, _, side, number, is_last, _ in self.line.reports[:taken].tolist():
            if sequence >= self.sent or self.expected[sequence] != number:
                self.odd += 1
                continue
            self.expected[sequence] += 1
            if filled:
                self.fills += 1
                self.net += filled if side == layout.BUY else -filled
            if is_last:
                self.answered += 1
                self.rejected += status == layout.REJECTED
                if self.resting == sequence:
                    self.resting = None

    def hear(self) -> None:
        ticks = self.line.ticks[: self.line.read()]
        for tick in ticks:
            if tick["venue"] == 0 and tick["instrument"] == 0:
                self.bid, self.offer = int(tick["bid_price"]), int(tick["offer_price"])
                self.version = int(tick["version"])

    def trade(self) -> None:
        """One order, if none is open and it is due; a cancel, if one has rested for long enough."""
        line, now, still_open = self.line, self.line.now(), self.sent - self.answered
        if self.resting is not None and still_open == 1 and now - self.since_ns > RESTS_NS:
            # Refused: all orders of the plan are sent. What rests expires with the run.
            if line.send(operation=layout.CANCEL, target=self.resting) >= 0:
                self.sent += 1
            return
        paced = self.every_ns > 0
        if still_open or (paced and now < self.due_ns):
            return
        buys = self.net <= 0
        side, quantity = (layout.BUY, LOT) if buys else (layout.SELL, self.net)
        bid, offer = self.bid or PRICE - 1, self.offer or PRICE + 1
        if not paced and self.sent % RESTS_EVERY == 0:
            price = bid if buys else offer
            sequence = line.send(price, quantity, side=side, self_trade=layout.CANCEL_NEWEST)
            if sequence >= 0:
                self.sent += 1
                self.resting, self.since_ns = sequence, now
            return
        sequence = line.send(
            offer if buys else bid,
            quantity,
            side=side,
            self_trade=layout.CANCEL_NEWEST,
            time_in_force=layout.IMMEDIATE_OR_CANCEL,
            trigger=self.version,
            due_ns=self.due_ns if paced else None,
        )
        if sequence >= 0:
            self.sent += 1
            self.due_ns += self.every_ns


def main() -> None:
    every_ns, collects_every = [int(word) for word in (*sys.argv[1:], "0", "0")][:2]
    # Collections are this program's own decision, as they should be in a loop that must not stop.
    gc.disable()
    garbage = [[number] for number in range(GARBAGE)] if collects_every else []
    pauses: list[tuple[int, int]] = []
    with bulkhead.Line() as line:
        strategy = Strategy(line, every_ns)
        collects_at = collects_every
        while (taken := line.poll(LONGEST_WAIT_NS)) is not None:
            strategy.take(taken)
            if line.context.market_data:
                strategy.hear()
            strategy.trade()
            if collects_every and strategy.sent >= collects_at:
                collects_at += collects_every
                began = line.now()
                gc.collect()
                pauses.append((began, line.now()))
        for began, ended in pauses:
            print(f"pause {began} {ended} of {len(garbage)}")
        print(
            f"sent {strategy.sent} answered {strategy.answered} rejected {strategy.rejected} "
            f"odd {strategy.odd} fills {strategy.fills} net {strategy.net}"
        )


if __name__ == "__main__":
    main()
