//! A back test: a recorded flow played through a strategy and the exchange at full speed.
//!
//! `cargo run --release -p bulkhead-exchange --example back_test -- --passes 1000`.
//!
//! The strategy is `quoter.rs`: replace it by your own. All passes must have one digest, or the
//! strategy depends on something besides the recording; that is an error.

mod account;
mod flow;
mod play;
mod quoter;

use account::Amount;
use exchange::{NewOrder, book_file};
use play::Played;
use quoter::Quoter;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "usage: back_test [--flow FILE] [--book FILE] [--passes 1000] [--delay-us 0] [--json]";
/// The recording of this repository: cents, and 1e-8 of a bitcoin.
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/coinbase-2016-03-12");
/// The most orders of an opening book.
const MAX_OPENING: usize = 1 << 20;
/// Units of an amount in one US dollar: a hundred cents, a hundred million parts of a coin.
const UNITS_PER_DOLLAR: f64 = 1e10;

struct Options {
    flow: PathBuf,
    book: PathBuf,
    passes: u64,
    delay_us: u64,
    json: bool,
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let data = PathBuf::from(DATA);
    let (flow, book) = (data.join("flow.csv"), data.join("opening_book.csv"));
    let mut options = Options { flow, book, passes: 1_000, delay_us: 0, json: false };
    while let Some(name) = arguments.next() {
        if name == "--json" {
            options.json = true;
            continue;
        }
        let value =
            arguments.next().ok_or_else(|| format!("{name}: no such flag, or its value is missing"))?;
        let number =
            || value.parse::<u64>().map_err(|_| format!("{name} {value:?}: expected a whole number"));
        match name.as_str() {
            "--flow" => options.flow = value.into(),
            "--book" => options.book = value.into(),
            "--passes" => options.passes = number()?.max(1),
            "--delay-us" => options.delay_us = number()?,
            _ => return Err(format!("{name}: no such flag")),
        }
    }
    Ok(options)
}

fn run(options: &Options) -> Result<String, String> {
    let open = |path: &PathBuf| {
        let file =
            File::open(path).map_err(|error| format!("{}: cannot be read: {error}", path.display()))?;
        Ok::<_, String>(BufReader::new(file))
    };
    let rows =
        flow::read(open(&options.flow)?).map_err(|error| format!("{}: {error}", options.flow.display()))?;
    let opening: Vec<NewOrder> =
        book_file::opening_book(open(&options.book)?, 0, flow::RECORDED, MAX_OPENING)
            .map_err(|error| format!("{}: {error}", options.book.display()))?;
    let mut times = Vec::new();
    let mut first: Option<Played> = None;
    for pass in 1..=options.passes {
        let played = play::play(&opening, &rows, options.delay_us, &mut Quoter);
        let (played, time) = played.map_err(|error| format!("--book, --flow: {error}"))?;
        let first = *first.get_or_insert(played);
        if first != played {
            return Err(format!("pass {pass} differs from the first: {played:?} instead of {first:?}"));
        }
        times.push(time);
    }
    times.sort_unstable();
    let time = times[times.len() / 2];
    let played = first.unwrap_or_default();
    Ok(if options.json { json(&played, time, options) } else { text(&played, time, options) })
}

fn dollars(amount: Amount) -> f64 {
    amount as f64 / UNITS_PER_DOLLAR
}

fn coins(quantity: f64) -> f64 {
    quantity / 1e8
}

fn ticks_per_second(played: &Played, time: Duration) -> f64 {
    played.ticks as f64 / time.as_secs_f64().max(1e-9)
}

fn text(played: &Played, time: Duration, options: &Options) -> String {
    let Played { ticks, trades, orders, late_cancels, account, bid_and_offer, digest } = *played;
    let unrealized = account.unrealized(bid_and_offer);
    format!(
        "{ticks} ticks, {trades} trades; the strategy: {orders} orders, {} fills, delay {} us\n\
         bought     {:>12.8}\n\
         sold       {:>12.8}\n\
         position   {:>12.8} at {:.3} USD, the middle of bid and offer\n\
         realized   {:>12.6} USD\n\
         unrealized {:>12.6} USD\n\
         profit     {:>12.6} USD\n\
         recorded cancels whose order the strategy had taken: {late_cancels}\n\
         digest     {digest:016x}, the same in {} passes\n\
         speed      {:.0} ticks/s, {:.0} ns a tick (median of the passes)\n",
        account.fills,
        options.delay_us,
        coins(account.bought as f64),
        coins(account.sold as f64),
        coins(account.position as f64),
        bid_and_offer as f64 / 200.0,
        dollars(account.realized),
        dollars(unrealized),
        dollars(account.realized + unrealized),
        options.passes,
        ticks_per_second(played, time),
        time.as_nanos() as f64 / played.ticks.max(1) as f64,
    )
}

fn json(played: &Played, time: Duration, options: &Options) -> String {
    let Played { ticks, trades, orders, late_cancels, account, bid_and_offer, digest } = *played;
    let unrealized = account.unrealized(bid_and_offer);
    let fields = [
        ("ticks", ticks.to_string()),
        ("trades", trades.to_string()),
        ("orders", orders.to_string()),
        ("fills", account.fills.to_string()),
        ("late_cancels", late_cancels.to_string()),
        ("delay_us", options.delay_us.to_string()),
        ("bought", coins(account.bought as f64).to_string()),
        ("sold", coins(account.sold as f64).to_string()),
        ("position", coins(account.position as f64).to_string()),
        ("mark_usd", (bid_and_offer as f64 / 200.0).to_string()),
        ("realized_usd", dollars(account.realized).to_string()),
        ("unrealized_usd", dollars(unrealized).to_string()),
        ("profit_usd", dollars(account.realized + unrealized).to_string()),
        ("digest", format!("\"{digest:016x}\"")),
        ("passes", options.passes.to_string()),
        ("ticks_per_second", ticks_per_second(played, time).to_string()),
    ];
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("  \"{name}\": {value}")).collect();
    format!("{{\n{}\n}}\n", fields.join(",\n"))
}
