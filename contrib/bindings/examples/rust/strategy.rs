//! The strategy of `examples/c/strategy.c` in Rust, as its own program, with which the other
//! languages are compared. A strategy in Rust that is to run inside of bulkhead's own executable
//! implements the trait instead: see `contrib/examples/own-strategy`.
//!
//!     cargo build --release -p launcher -p bindings --example strategy
//!     launcher run --strategy player,exec:target/release/examples/strategy --strategies 2 \
#![forbid(unsafe_code)]

use bulkhead::calls;
use bulkhead::codes::{BH_NOT_ATTACHED, BH_OVER, BH_VERSION};
use bulkhead::layout::{
    BH_BUY, BH_CANCEL, BH_CANCEL_NEWEST, BH_IMMEDIATE_OR_CANCEL, BH_REJECTED, BH_SELL, Context, Order,
    Report, Tick,
};

/// 0.01 units, in 1e-8 units.
const LOT: u64 = 1_000_000;
/// Price of a unit in cents without a quote.
const PRICE: i64 = 41_300;
/// One in this many orders rests, unless orders have due times.
const RESTS_EVERY: u64 = 8;
/// Lifetime of a resting order in nanoseconds.
const RESTS_NS: u64 = 200_000;
const LONGEST_WAIT_NS: u64 = 1_000_000;

struct Strategy {
    context: Context,
    /// Of venue 0 and instrument 0.
    touch: Tick,
    /// Interval between due orders in nanoseconds; 0: each is sent after the previous one's answer.
    every_ns: u64,
    due_ns: u64,
    sent: u64,
    answered: u64,
    rejected: u64,
    fills: u64,
    /// Bought less sold, in 1e-8 units.
    net: i64,
    /// The number of the next report of each order.
    expected: Vec<u8>,
    /// Reports that came out of order.
    odd: u64,
    /// The order that rests, and since when.
    resting: Option<(u64, u64)>,
}

impl Strategy {
    fn new(context: Context, every_ns: u64) -> Self {
        Self {
            context,
            touch: Tick::default(),
            every_ns,
            due_ns: every_ns,
            sent: 0,
            answered: 0,
            rejected: 0,
            fills: 0,
            net: 0,
            expected: vec![0; context.orders as usize],
            odd: 0,
            resting: None,
        }
    }

    fn take(&mut self, report: &Report) {
        match self.expected.get_mut(report.sequence as usize) {
            Some(number) if report.sequence < self.sent && *number == report.number => *number += 1,
            _ => {
                self.odd += 1;
                return;
            }
        }
        if report.filled > 0 {
            self.fills += 1;
            let filled = report.filled.cast_signed();
            self.net += if report.side == BH_BUY { filled } else { -filled };
        }
        if report.is_last == 1 {
            self.answered += 1;
            self.rejected += u64::from(report.status == BH_REJECTED);
            self.resting = self.resting.filter(|(sequence, _)| *sequence != report.sequence);
        }
    }

    /// Sends an order and returns its sequence; `None` if it was refused.
    fn submit(&mut self, order: &Order, due_ns: Option<u64>) -> Result<Option<u64>, i32> {
        match calls::send(order, due_ns) {
            Ok(sequence) => {
                self.sent += 1;
                Ok(Some(sequence))
            }
            Err(code) if code > BH_NOT_ATTACHED => Ok(None),
            Err(code) => Err(code),
        }
    }

    /// One order, if none is open and it is due; a cancel, if one has rested for long enough.
    fn trade(&mut self) -> Result<(), i32> {
        let now = calls::now()?;
        let open = self.sent - self.answered;
        if let Some((target, _)) = self.resting.filter(|(_, since)| open == 1 && now - since > RESTS_NS) {
            // Refused: all orders of the plan are sent. What rests expires with the run.
            return self.submit(&Order { operation: BH_CANCEL, target, ..Order::default() }, None).map(drop);
        }
        let paced = self.every_ns > 0;
        if open > 0 || (paced && now < self.due_ns) {
            return Ok(());
        }
        let buys = self.net <= 0;
        let bid = if self.touch.bid_price > 0 { self.touch.bid_price } else { PRICE - 1 };
        let offer = if self.touch.offer_price > 0 { self.touch.offer_price } else { PRICE + 1 };
        let order = Order {
            side: if buys { BH_BUY } else { BH_SELL },
            quantity: if buys { LOT } else { self.net.unsigned_abs() },
            self_trade: BH_CANCEL_NEWEST,
            ..Order::default()
        };
        if !paced && self.sent.is_multiple_of(RESTS_EVERY) {
            let order = Order { price: if buys { bid } else { offer }, ..order };
            self.resting = self.submit(&order, None)?.map(|sequence| (sequence, now));
            return Ok(());
        }
        let order = Order {
            price: if buys { offer } else { bid },
            time_in_force: BH_IMMEDIATE_OR_CANCEL,
            trigger: self.touch.version,
            ..order
        };
        if self.submit(&order, paced.then_some(self.due_ns))?.is_some() {
            self.due_ns += self.every_ns;
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), i32> {
        let mut reports = [Report::default(); 16];
        loop {
            let taken = calls::poll(reports.len(), LONGEST_WAIT_NS, |place, report| reports[place] = *report);
            let taken = match taken {
                Err(BH_OVER) => return Ok(()),
                taken => taken?,
            };
            reports[..taken].iter().for_each(|report| self.take(report));
            while self.context.market_data == 1
                && let Some(tick) = calls::board_read()?
            {
                if tick.venue == 0 && tick.instrument == 0 {
                    self.touch = tick;
                }
            }
            self.trade()?;
        }
    }
}

fn main() -> Result<(), String> {
    let every_ns = std::env::args().nth(1).and_then(|words| words.parse().ok()).unwrap_or(0);
    let in_words = |code| calls::text(code);
    match calls::attach(BH_VERSION) {
        Err(BH_OVER) => return Ok(()),
        attached => attached.map_err(in_words)?,
    }
    let mut strategy = Strategy::new(calls::context().map_err(in_words)?, every_ns);
    strategy.run().map_err(in_words)?;
    let Strategy { sent, answered, rejected, odd, fills, net, .. } = strategy;
    println!("sent {sent} answered {answered} rejected {rejected} odd {odd} fills {fills} net {net}");
    calls::finish().map_err(in_words)
}
