//! An engine next to the naive one: equal commands must give equal events and books.

use crate::drawn::Setting;
use crate::ledger::Ledger;
use crate::naive::{Naive, OpenOrder};
use exchange::{Command, Event, Exchange, Side};
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// An engine under test: the real one, or one with a mistake in it.
pub trait Engine {
    fn start(setting: &Setting) -> Self;
    fn apply(&mut self, command: Command, events: &mut Vec<Event>);
    fn exchange(&self) -> &Exchange;
}

impl Engine for Exchange {
    fn start(setting: &Setting) -> Self {
        Exchange::new(&setting.instruments, setting.capacity).expect("a possible setting")
    }

    fn apply(&mut self, command: Command, events: &mut Vec<Event>) {
        Exchange::apply(self, command, events);
    }

    fn exchange(&self) -> &Exchange {
        self
    }
}

/// How often whole books are compared; events and best prices are after each command.
#[derive(Clone, Copy)]
pub struct Every {
    pub books: usize,
    /// The engine's own check of itself.
    pub check: usize,
}

pub const ALWAYS: Every = Every { books: 1, check: 1 };

/// Where engine and model differ first.
#[derive(Clone, Debug)]
pub struct Difference {
    pub at: usize,
    pub command: Command,
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "command {}: {:?}\n{}", self.at, self.command, self.what)
    }
}

/// An engine next to the naive one.
pub struct Pair<E> {
    engine: E,
    naive: Naive,
    ledger: Ledger,
    instruments: u16,
    every: Every,
    at: usize,
    events: Vec<Event>,
}

impl<E: Engine> Pair<E> {
    pub fn new(setting: &Setting, every: Every) -> Self {
        Pair {
            engine: E::start(setting),
            naive: Naive::new(&setting.instruments, setting.capacity),
            ledger: Ledger::default(),
            instruments: setting.instruments.len() as u16,
            every,
            at: 0,
            events: Vec::new(),
        }
    }

    /// Trades so far.
    pub fn trades(&self) -> u64 {
        self.ledger.trades()
    }

    /// Applies a command to both.
    pub fn apply(&mut self, command: Command) -> Result<&[Event], Difference> {
        let at = self.at;
        self.at += 1;
        self.events.clear();
        let (engine, events) = (&mut self.engine, &mut self.events);
        if catch_unwind(AssertUnwindSafe(|| engine.apply(command, events))).is_err() {
            return Err(Difference { at, command, what: "the engine panicked".into() });
        }
        let expected = self.naive.apply(command);
        let compared = if expected == self.events {
            self.compare(command)
        } else {
            Err(format!("events:   {:?}\nexpected: {expected:?}", self.events))
        };
        match compared {
            Ok(()) => Ok(&self.events),
            Err(what) => Err(Difference { at, command, what }),
        }
    }

    fn compare(&mut self, command: Command) -> Result<(), String> {
        self.ledger.take(command, &self.events)?;
        let engine = self.engine.exchange();
        if engine.open_orders() != self.naive.open_orders() {
            return Err(format!(
                "{} orders are open, expected {}",
                engine.open_orders(),
                self.naive.open_orders()
            ));
        }
        let books = self.at.is_multiple_of(self.every.books);
        for instrument in 0..self.instruments {
            self.compare_best(instrument)?;
            if books {
                self.compare_book(instrument)?;
            }
        }
        if books && self.ledger.open()? != engine.open_orders() {
            return Err("the events say that another number of orders is open".into());
        }
        if self.at.is_multiple_of(self.every.check) {
            engine.check().map_err(|broken| format!("check(): {broken:?}"))?;
        }
        Ok(())
    }

    fn compare_best(&self, instrument: u16) -> Result<(), String> {
        let (bid, offer) = self.engine.exchange().best(instrument);
        for (side, best) in [(Side::Buy, bid), (Side::Sell, offer)] {
            let best = best.map(|level| (level.price, level.quantity, level.orders));
            let first = self.naive.orders(instrument, side).first().map(|open| open.order.price);
            let at_it =
                self.naive.orders(instrument, side).iter().take_while(|open| Some(open.order.price) == first);
            let (shown, orders) =
                at_it.fold((0, 0), |(shown, orders), open| (shown + open.shown, orders + 1));
            let expected = first.map(|price| (price, shown, orders));
            if best != expected {
                return Err(format!(
                    "best of {side:?} of instrument {instrument}: {best:?}, expected {expected:?}"
                ));
            }
        }
        Ok(())
    }

    fn compare_book(&self, instrument: u16) -> Result<(), String> {
        let (engine, naive) = (self.engine.exchange(), &self.naive);
        for side in [Side::Buy, Side::Sell] {
            let depth = || engine.depth(instrument, side, usize::MAX);
            let depth = || depth().map(|level| (level.price, level.quantity, level.orders));
            let orders =
                || engine.orders(instrument, side).map(|o| (o.id, o.owner, o.price, o.leaves, o.shown));
            let known = |open: &OpenOrder| {
                (open.order.id, open.order.owner, open.order.price, open.leaves, open.shown)
            };
            let stops = || engine.stops(instrument, side).map(|o| (o.id, o.owner, o.price, o.leaves));
            let waiting =
                |open: &OpenOrder| (open.order.id, open.order.owner, open.order.stop_price, open.leaves);
            let describe = |what: &'static str| {
                move |found: String| format!("{what} of {side:?} of instrument {instrument}:\n{found}")
            };
            same(depth, || naive.depth(instrument, side).into_iter()).map_err(describe("depth"))?;
            same(orders, || naive.orders(instrument, side).iter().map(known)).map_err(describe("orders"))?;
            same(stops, || naive.stops(instrument, side).iter().map(waiting))
                .map_err(describe("stop orders"))?;
        }
        Ok(())
    }
}

/// Compares what two functions iterate over. Returns both lists if they differ.
fn same<T: PartialEq + fmt::Debug, I, J>(is: impl Fn() -> I, expected: impl Fn() -> J) -> Result<(), String>
where
    I: Iterator<Item = T>,
    J: Iterator<Item = T>,
{
    if is().eq(expected()) {
        return Ok(());
    }
    let (is, expected) = (is().collect::<Vec<_>>(), expected().collect::<Vec<_>>());
    Err(format!("is:       {is:?}\nexpected: {expected:?}"))
}

/// A failure as a list of commands that can be pasted into a test.
pub fn failure(setting: &Setting, commands: &[Command], difference: Difference) -> String {
    let shortest = shrink::<Exchange>(setting, commands);
    let difference = run::<Exchange>(setting, &shortest).err().unwrap_or(difference);
    let lines: Vec<String> = shortest.iter().map(|command| format!("{command:?},")).collect();
    format!("{difference}\nfails after these:\n{}", lines.join("\n"))
}

/// All commands through a fresh pair, compared after each.
pub fn run<E: Engine>(setting: &Setting, commands: &[Command]) -> Result<(), Difference> {
    let mut pair = Pair::<E>::new(setting, ALWAYS);
    commands.iter().try_for_each(|command| pair.apply(*command).map(drop))
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Silences this thread's panics: shrinking runs an engine that panics thousands of times.
fn quiet(quiet: bool) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                loud(info);
            }
        }));
    });
    QUIET.set(quiet);
}

/// Returns the shortest list that still differs, leaving out ever smaller stretches.
pub fn shrink<E: Engine>(setting: &Setting, commands: &[Command]) -> Vec<Command> {
    quiet(true);
    let mut kept = commands.to_vec();
    if let Err(difference) = run::<E>(setting, &kept) {
        kept.truncate(difference.at + 1);
    }
    let mut stretch = kept.len().next_power_of_two() / 2;
    while stretch > 0 {
        let mut at = 0;
        while at < kept.len() {
            let mut fewer = kept.clone();
            fewer.drain(at..(at + stretch).min(kept.len()));
            match run::<E>(setting, &fewer) {
                Err(difference) => {
                    fewer.truncate(difference.at + 1);
                    kept = fewer;
                }
                Ok(()) => at += stretch,
            }
        }
        stretch /= 2;
    }
    quiet(false);
    kept
}
