//! Ring, book and report: commands are popped one by one, applied, and each trade encoded.

use super::super::harness::subject::{Case, Counts, Figure, Group, Unit::Microseconds, Unit::Milliseconds};
use super::book::{Book, QUANTITY, Sums, cancel, mixed, order};
use exchange::{Command, Event, Events, NewOrder, Side};
use shm::ring::spsc::{Consumer, Producer, heap_ring};
use std::hint::black_box;

const REPORT_TYPE: u64 = 3;
/// First word of a message, by what it asks for.
const BUY: u64 = 0;
const SELL: u64 = 1;
const CANCEL: u64 = 2;

type Message = [u64; 7];

/// A receiver of the book's events that encodes each trade as a report, and adds up events.
#[derive(Default)]
pub struct Reports {
    /// A report of 48 bytes: type and number, both orders, price, quantity and time.
    buffer: [[u8; 8]; 6],
    pub encoded: u64,
    /// Time of the command, which its reports repeat.
    time: u64,
    pub sums: Sums,
}

impl Events for Reports {
    #[inline]
    fn on(&mut self, event: Event) {
        if let Event::Trade { maker, taker, price, quantity, .. } = event {
            self.encoded += 1;
            let words = [REPORT_TYPE | self.encoded << 32, taker, maker, price as u64, quantity, self.time];
            self.buffer = words.map(u64::to_le_bytes);
            black_box(&mut self.buffer);
        }
        self.sums.on(event);
    }
}

/// An order book at the end of a ring of commands.
pub struct Pipeline {
    pub producer: Producer<7>,
    pub consumer: Consumer<7>,
    pub book: Book,
    pub reports: Reports,
}

impl Pipeline {
    /// Creates a pipeline with a ring of `ring` slots and a book for `orders` open orders.
    pub fn new(ring: u64, orders: u64) -> Self {
        let (producer, consumer) = heap_ring::<7>(ring.next_power_of_two() as usize);
        Pipeline { producer, consumer, book: Book::new(orders), reports: Reports::default() }
    }

    /// Pushes a command into the pipeline's ring.
    pub fn push(&mut self, command: Command) {
        self.producer.try_push(&encode(command)).expect("a ring that holds all");
        if let Command::New(order) = command {
            self.book.sent_quantity += order.quantity;
        }
    }

    /// Applies the next command of the ring to the book. Returns `false` if there is none.
    #[inline]
    pub fn step(&mut self) -> bool {
        let Ok(Some(message)) = self.consumer.try_pop() else { return false };
        self.apply(message);
        true
    }

    #[inline]
    pub fn apply(&mut self, message: Message) {
        self.reports.time = message[5];
        self.book.exchange.apply(decode(message), &mut self.reports);
    }

    /// Returns the numbers of the pipeline's events, by name.
    pub fn counts(mut self) -> Counts {
        let (mut sums, reports) = (self.book.sums, &self.reports);
        sums.accepted += reports.sums.accepted;
        sums.rejected += reports.sums.rejected;
        sums.trades += reports.sums.trades;
        sums.traded += reports.sums.traded;
        sums.cancelled += reports.sums.cancelled;
        sums.cancelled_quantity += reports.sums.cancelled_quantity;
        self.book.sums = sums;
        let mut counts = self.book.counts();
        counts.insert("reports", self.reports.encoded);
        counts
    }
}

fn encode(command: Command) -> Message {
    match command {
        Command::New(NewOrder { id, owner, side, price, quantity, .. }) => {
            let kind = if side == Side::Buy { BUY } else { SELL };
            [kind, id, u64::from(owner), price as u64, quantity, id, 0]
        }
        Command::Cancel { id, .. } => [CANCEL, id, 0, 0, 0, 0, 0],
        _ => panic!("no command of these loads"),
    }
}

#[inline]
fn decode([kind, id, _, price, quantity, ..]: Message) -> Command {
    match kind {
        CANCEL => cancel(id),
        kind => order(id, if kind == BUY { Side::Buy } else { Side::Sell }, price as i64, quantity),
    }
}

const REMARK: &str = "the ring is filled before; of one price, each order fills one that rests; with the \
                      drop of ring and book";

pub fn groups(scaled: impl Fn(u64) -> u64) -> Vec<Group> {
    let (small, large, all) = (scaled(1_000), scaled(10_000), scaled(100_000));
    let average = "as e2e/crossing_orders with 100,000 orders, without the drop of ring and book";
    let mix = "the mix of mixed_workload_10k, filled into the ring before; with the drop of ring and book";
    vec![
        row(Figure::new("e2e/crossing_orders/1k", 34.0, Microseconds, REMARK), 10, true, move || {
            crossing(small)
        }),
        row(Figure::new("e2e/crossing_orders/10k", 405.0, Microseconds, REMARK), 3, true, move || {
            crossing(large)
        }),
        row(Figure::new("e2e/mixed_100k", 6.4, Milliseconds, mix), 1, true, move || mixture(all)),
        row(Figure::new("e2e/avg_crossing_100k", 5.6, Milliseconds, average), 1, false, move || {
            crossing(all)
        }),
    ]
}

fn row(
    figure: Figure,
    batch: usize,
    drop_is_timed: bool,
    prepare: impl FnMut() -> Pipeline + 'static,
) -> Group {
    let run = |pipeline: &mut Pipeline| while pipeline.step() {};
    Group::timed(figure, Case { batch, operations: 1, prepare, run, drop_is_timed, count: Pipeline::counts })
}

fn crossing(orders: u64) -> Pipeline {
    let mut pipeline = Pipeline::new(2 * orders.next_power_of_two(), orders + 16);
    for id in 1..=orders {
        pipeline.book.add(id, Side::Sell, 100, QUANTITY);
        pipeline.push(order(orders + id, Side::Buy, 100, QUANTITY));
    }
    pipeline
}

fn mixture(commands: u64) -> Pipeline {
    let mut pipeline = Pipeline::new(commands, commands * 13 / 20);
    let (mut resting, mut next_id) = (Vec::new(), 1);
    for n in 0..commands {
        mixed(n, &mut resting, &mut next_id).into_iter().for_each(|command| pipeline.push(command));
    }
    pipeline
}
