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
        Exchange::new(&setting.instruments, setting.capacity).expect("a valid setting")
    }

    fn apply(&mut self, command: Command, events: &mut Vec<Event>) {
        Exchange::apply(self, command, events);
    }

    fn exchange(&self) -> &Exchange {
        self
    }
}

/// Commands between two comparisons of whole books. Events and best prices are compared after each.
#[derive(Clone, Copy)]
pub struct CompareIntervals {
    pub books: usize,
    /// Commands between two checks of the engine by itself.
    pub check: usize,
}

pub const ALWAYS: CompareIntervals = CompareIntervals { books: 1, check: 1 };

/// The first difference between the engine and the naive one.
#[derive(Clone, Debug)]
pub struct Difference {
    pub at: usize,
    pub command: Command,
    pub description: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "command {}: {:?}\n{}", self.at, self.command, self.description)
    }
}

/// An engine next to the naive one.
pub struct Pair<E> {
    engine: E,
    naive: Naive,
    ledger: Ledger,
    instruments: u16,
    intervals: CompareIntervals,
    at: usize,
    events: Vec<Event>,
}

impl<E: Engine> Pair<E> {
    pub fn new(setting: &Setting, intervals: CompareIntervals) -> Self {
        Pair {
            engine: E::start(setting),
            naive: Naive::new(&setting.instruments, setting.capacity),
            ledger: Ledger::default(),
            instruments: setting.instruments.len() as u16,
            intervals,
            at: 0,
            events: Vec::new(),
        }
    }

    /// Trades so far.
    pub fn trades(&self) -> u64 {
        self.ledger.trades()
    }

    /// Applies a command to both engines and compares them.
    pub fn apply(&mut self, command: Command) -> Result<&[Event], Difference> {
        let at = self.at;
        self.at += 1;
        self.events.clear();
        let (engine, events) = (&mut self.engine, &mut self.events);
        if catch_unwind(AssertUnwindSafe(|| engine.apply(command, events))).is_err() {
            return Err(Difference { at, command, description: "the engine panicked".into() });
        }
        let expected = self.naive.apply(command);
        let compared = if expected == self.events {
            self.compare(command)
        } else {
            Err(format!("events:   {:?}\nexpected: {expected:?}", self.events))
        };
        match compared {
            Ok(()) => Ok(&self.events),
            Err(description) => Err(Difference { at, command, description }),
        }
    }

    fn compare(&mut self, command: Command) -> Result<(), String> {
        self.ledger.apply(command, &self.events)?;
        let engine = self.engine.exchange();
        if engine.open_orders() != self.naive.open_orders() {
            return Err(format!(
                "{} orders are open, expected {}",
                engine.open_orders(),
                self.naive.open_orders()
            ));
        }
        let compares_books = self.at.is_multiple_of(self.intervals.books);
        for instrument in 0..self.instruments {
            self.compare_best(instrument)?;
            if compares_books {
                self.compare_book(instrument)?;
            }
        }
        if compares_books && self.ledger.open()? != engine.open_orders() {
            return Err("the events imply another number of open orders".into());
        }
        if self.at.is_multiple_of(self.intervals.check) {
            engine.check().map_err(|violation| format!("check(): {violation:?}"))?;
        }
        Ok(())
    }

    fn compare_best(&self, instrument: u16) -> Result<(), String> {
        let (bid, offer) = self.engine.exchange().best(instrument);
        for (side, best) in [(Side::Buy, bid), (Side::Sell, offer)] {
            let best = best.map(|level| (level.price, level.quantity, level.orders));
            let first = self.naive.orders(instrument, side).first().map(|open| open.order.price);
            let at_best =
                self.naive.orders(instrument, side).iter().take_while(|open| Some(open.order.price) == first);
            let (shown, orders) =
                at_best.fold((0, 0), |(shown, orders), open| (shown + open.shown, orders + 1));
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
            let resting = |open: &OpenOrder| {
                (open.order.id, open.order.owner, open.order.price, open.leaves, open.shown)
            };
            let stops = || engine.stops(instrument, side).map(|o| (o.id, o.owner, o.price, o.leaves));
            let waiting =
                |open: &OpenOrder| (open.order.id, open.order.owner, open.order.stop_price, open.leaves);
            let describe = |list: &'static str| {
                move |lists: String| format!("{list} of {side:?} of instrument {instrument}:\n{lists}")
            };
            same(depth, || naive.depth(instrument, side).into_iter()).map_err(describe("depth"))?;
            same(orders, || naive.orders(instrument, side).iter().map(resting))
                .map_err(describe("orders"))?;
            same(stops, || naive.stops(instrument, side).iter().map(waiting))
                .map_err(describe("stop orders"))?;
        }
        Ok(())
    }
}

/// Compares the items of two iterators. Returns both lists as an error if they differ.
fn same<T: PartialEq + fmt::Debug, I, J>(
    actual: impl Fn() -> I,
    expected: impl Fn() -> J,
) -> Result<(), String>
where
    I: Iterator<Item = T>,
    J: Iterator<Item = T>,
{
    if actual().eq(expected()) {
        return Ok(());
    }
    let (actual, expected) = (actual().collect::<Vec<_>>(), expected().collect::<Vec<_>>());
    Err(format!("actual:   {actual:?}\nexpected: {expected:?}"))
}

/// A failure as a list of commands that can be pasted into a test.
pub fn failure(setting: &Setting, commands: &[Command], difference: Difference) -> String {
    let shortest = shrink::<Exchange>(setting, commands);
    let difference = run::<Exchange>(setting, &shortest).err().unwrap_or(difference);
    let lines: Vec<String> = shortest.iter().map(|command| format!("{command:?},")).collect();
    format!("{difference}\nfails after these:\n{}", lines.join("\n"))
}

/// Applies all commands to a new pair, which compares after each.
pub fn run<E: Engine>(setting: &Setting, commands: &[Command]) -> Result<(), Difference> {
    let mut pair = Pair::<E>::new(setting, ALWAYS);
    commands.iter().try_for_each(|command| pair.apply(*command).map(drop))
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Silences this thread's panic messages: shrinking may run an engine that panics thousands of
/// times.
fn silence_panics(is_silent: bool) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let default_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                default_hook(info);
            }
        }));
    });
    QUIET.set(is_silent);
}

/// Shortens a list of commands that shows a difference, leaving out ever smaller chunks (delta
/// debugging).
pub fn shrink<E: Engine>(setting: &Setting, commands: &[Command]) -> Vec<Command> {
    silence_panics(true);
    let mut shortest = commands.to_vec();
    if let Err(difference) = run::<E>(setting, &shortest) {
        shortest.truncate(difference.at + 1);
    }
    let mut chunk = shortest.len().next_power_of_two() / 2;
    while chunk > 0 {
        let mut at = 0;
        while at < shortest.len() {
            let mut candidate = shortest.clone();
            candidate.drain(at..(at + chunk).min(shortest.len()));
            match run::<E>(setting, &candidate) {
                Err(difference) => {
                    candidate.truncate(difference.at + 1);
                    shortest = candidate;
                }
                Ok(()) => at += chunk,
            }
        }
        chunk /= 2;
    }
    silence_panics(false);
    shortest
}
