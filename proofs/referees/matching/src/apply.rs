//! Times `Exchange::apply` alone over flows of the benchmark: `apply [--rounds N] FLOW.bin…`. No
//! queue, no second thread: each message becomes a command, and a sink counts the events.
//!
//! One line of comma-separated values a flow: its file, messages, events, and nanoseconds a message
//! in the quickest, the middle and the slowest round. The rounds go through all flows in turn, each
//! with an exchange of its own. Under callgrind one round counts instructions (README.md).

#[allow(dead_code, reason = "reports go through a sink here, not through a transport")]
mod abi;
mod commands;
#[path = "open_loop/flow.rs"]
mod flow;

use exchange::{Capacity, Event, Events, Exchange, Instrument};
use flow::Message;
use std::path::Path;
use std::time::Instant;

/// Counts events; keeps a part of each, so that no event can be left out.
#[derive(Default)]
struct Counter {
    events: u64,
    sum: u64,
}

impl Events for Counter {
    #[inline(always)]
    fn on(&mut self, event: Event) {
        self.events += 1;
        self.sum = self.sum.wrapping_add(match event {
            Event::Accepted { id, .. } | Event::Cancelled { id, .. } | Event::Rejected { id, .. } => id,
            Event::Replaced { id, leaves, .. } => id ^ leaves,
            Event::Trade { maker, quantity, .. } => maker ^ quantity,
            _ => 1,
        });
    }
}

/// Applies a flow to a new exchange. Returns the nanoseconds and what was counted.
#[inline(never)]
fn play(flow: &[Message]) -> (f64, Counter) {
    let instrument = Instrument { price_high: 1 << 22, ..Instrument::default() };
    let capacity = Capacity::for_orders(1 << 17);
    let mut exchange = Exchange::new(&[instrument], capacity).expect("a valid configuration");
    let mut counter = Counter::default();
    let start = Instant::now();
    for message in flow {
        let command = match message {
            Message::New(message) => message.into(),
            Message::Cancel(message) => message.into(),
            Message::Modify(message) => message.into(),
        };
        exchange.apply(command, &mut counter);
    }
    (start.elapsed().as_nanos() as f64, counter)
}

fn run(mut words: Vec<String>) -> Result<(), String> {
    let usage = "apply [--rounds N] FLOW.bin…";
    let mut rounds = 7;
    if words.first().is_some_and(|word| word == "--rounds") {
        let number = words.get(1).and_then(|word| word.parse().ok()).filter(|number| *number > 0);
        rounds = number.ok_or(usage)?;
        words.drain(..2);
    }
    if words.is_empty() {
        return Err(usage.into());
    }
    let flows = words.iter().map(|path| flow::read(Path::new(path))).collect::<Result<Vec<_>, String>>()?;
    let mut times = vec![Vec::new(); flows.len()];
    let mut counts: Vec<(u64, u64)> = vec![(0, 0); flows.len()];
    for _ in 0..rounds {
        for (place, flow) in flows.iter().enumerate() {
            let (ns, counter) = play(flow);
            times[place].push(ns / flow.len() as f64);
            counts[place] = (counter.events, std::hint::black_box(counter.sum));
        }
    }
    println!("flow,messages,events,quickest_ns,median_ns,slowest_ns");
    for (place, path) in words.iter().enumerate() {
        let of_flow = &mut times[place];
        of_flow.sort_by(f64::total_cmp);
        let (events, _) = counts[place];
        let [quickest, median, slowest] =
            [0, of_flow.len() / 2, of_flow.len() - 1].map(|round| format!("{:.1}", of_flow[round]));
        println!("{path},{},{events},{quickest},{median},{slowest}", flows[place].len());
    }
    Ok(())
}

fn main() {
    if let Err(error) = run(std::env::args().skip(1).collect()) {
        eprintln!("apply: {error}");
        std::process::exit(2);
    }
}
