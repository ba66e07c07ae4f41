//! Reads a schedule from a recorded order flow.

mod error;
mod lines;
mod row;

pub(super) use error::HEADER;
pub use error::ReplayError;

use super::draws::{DrawStream, Draws};
use super::spec::{MAX_ORDERS, MAX_WINDOW_NS, SpecError, check_counts, check_orders};
use super::{DelayRange, Entry, EntryWords, RESTING, Schedule};
use error::LinePosition;
use lines::BoundedLines;
use protocol::index::{StrategyIndex, VenueIndex};
use protocol::plan::Pacing;
use protocol::wire::{MAX_VENUES, Operation, OrderRequest};
use row::{Column, Columns, ReplayRow};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Settings for turning a recorded flow of orders into a schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replay {
    /// Number of strategies that send the recorded orders, 1 to [`protocol::wire::MAX_STRATEGIES`].
    pub strategies: u16,
    /// Number of venues of the schedule, 1 to [`protocol::wire::MAX_VENUES`].
    pub venues: u16,
    /// Range of the venue delays that are drawn for the orders: a recording has none.
    pub delay: DelayRange,
    /// Seed of the random delays; the n-th row has the n-th drawn delay.
    pub seed: u64,
    /// Factor of the recording's speed, above 0: 2.0 is twice as fast, 0.5 half as fast.
    pub speed: f64,
    /// Maximum number of rows to read (at least 1; the rest of the file is not read); `None`: the
    /// whole file.
    pub orders: Option<u64>,
}

/// Reads a recorded flow of orders from a file and turns it into a schedule.
///
/// The file is comma-separated; its first line names the columns, in any order.
///
/// | column | holds |
/// |---|---|
/// | `time_us` | microseconds from any origin, up to three decimals; never less than above |
/// | `sequence` | the exchange's number of the message; a whole number, not used |
/// | `op` | `new` or `cancel` |
/// | `order_id` | a whole number below 2^63; a cancel has that of its order |
/// | `side` | `B` or `S` |
/// | `type` | `limit` or `market` |
/// | `tif` | time in force: `gtc`, `ioc` or `fok`; not passed on |
/// | `price_cents` | of a limit order, a whole number from 1; of a market order, empty |
/// | `qty_satoshi` | in 1e-8 units, a whole number from 1 |
/// | `venue` | may be missing; a whole number below the run's number of venues |
///
/// A cancel has `type`, `tif`, `price_cents` and `qty_satoshi` empty. White space around a field
/// does not count.
///
/// **Every row is an order to dispatch**, a new order and a cancel alike. It is due at its recorded
/// time after that of the first row, divided by the speed.
///
/// **Who sends it** goes by its order id alone, so that an order and its cancel meet again:
/// strategy = id mod strategies, venue = (id div strategies) mod venues. A `venue` column names the
/// venue instead (0-based); order ids are then each venue's own.
///
/// **What a cancel cancels** is given as the sequence of that order in its strategy, or see
/// [`RESTING`].
pub fn replay(path: &Path, settings: &Replay) -> Result<Schedule, ReplayError> {
    check(settings)?;
    let name = path.display().to_string();
    match File::open(path) {
        Ok(file) => replay_from(&name, file, settings),
        Err(source) => Err(ReplayError::Read { file: name, source }),
    }
}

/// Reads a recorded flow from an open input and turns it into a schedule, as [`replay`] does for a
/// file. `name` stands for the file in errors.
pub fn replay_from(name: &str, input: impl Read, settings: &Replay) -> Result<Schedule, ReplayError> {
    check(settings)?;
    let mut dealer = ScheduleDealer::new(settings);
    read_rows(name, input, settings.venues, settings.orders, |row, at_line| dealer.add(row, at_line))?;
    Ok(dealer.schedule())
}

/// Reads the time and the venue of each row of a recorded flow, in file order, and passes them to
/// `each`. The venue is 0 without that column. Times are nanoseconds after the first row.
pub fn read_times(path: &Path, mut each: impl FnMut(VenueIndex, u64)) -> Result<(), ReplayError> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|source| ReplayError::Read { file: name.clone(), source })?;
    let mut clock = RowClock::default();
    read_rows(&name, file, MAX_VENUES as u16, None, |row, at_line| {
        let elapsed = clock.advance(row, at_line)?;
        each(VenueIndex(row.venue.unwrap_or(0)), u64::try_from(elapsed).unwrap_or(u64::MAX));
        Ok(())
    })
}

/// Reads the rows of a recorded flow, at most `max`, and passes each with its line.
fn read_rows(
    name: &str,
    input: impl Read,
    venues: u16,
    max: Option<u64>,
    mut each: impl FnMut(&ReplayRow, LinePosition<'_>) -> Result<(), ReplayError>,
) -> Result<(), ReplayError> {
    let read_error = |error: csv::Error| ReplayError::Read { file: name.into(), source: error.into() };
    // The crate's own line numbers are wrong after blank lines and with CRLF. With `\n` as the only
    // terminator and one at the end of the input, the reader is on the line after the row that it
    // has read.
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .terminator(csv::Terminator::Any(b'\n'))
        .from_reader(BoundedLines::new(input).chain(&b"\n"[..]));
    let mut fields = csv::ByteRecord::new();
    let mut columns: Option<Columns> = None;
    let mut rows = 0;
    while max.is_none_or(|max| rows < max) && reader.read_byte_record(&mut fields).map_err(read_error)? {
        if fields.len() == 1 && fields[0].trim_ascii().is_empty() {
            continue; // a blank line, of which CRLF leaves the CR
        }
        let at_line = LinePosition { file: name, line: reader.position().line().saturating_sub(1) };
        match &columns {
            None => columns = Some(Columns::read(at_line, &fields)?),
            Some(columns) => {
                each(&columns.row(at_line, &fields, venues)?, at_line)?;
                rows += 1;
            }
        }
    }
    if rows == 0 { Err(ReplayError::Empty { file: name.into() }) } else { Ok(()) }
}

/// The time of a recording, which never goes back.
#[derive(Default)]
struct RowClock {
    first_ns: Option<u128>,
    last_ns: u128,
}

impl RowClock {
    /// Returns the nanoseconds of a row after the first one.
    fn advance(&mut self, row: &ReplayRow, at_line: LinePosition<'_>) -> Result<u128, ReplayError> {
        let first_ns = *self.first_ns.get_or_insert(row.time_ns);
        if row.time_ns < self.last_ns {
            let previous = micros(self.last_ns);
            let why = format!("comes before the row above ({previous}): sort the file by time");
            return Err(Column::TimeUs.error(at_line, &micros(row.time_ns), &why));
        }
        self.last_ns = row.time_ns;
        Ok(row.time_ns - first_ns)
    }
}

fn micros(time_ns: u128) -> String {
    let (micros, nanos) = (time_ns / 1000, time_ns % 1000);
    if nanos == 0 { micros.to_string() } else { format!("{micros}.{nanos:03}") }
}

fn check(settings: &Replay) -> Result<(), SpecError> {
    check_counts(settings.strategies, settings.venues)?;
    settings.orders.map_or(Ok(()), |max| check_orders(max.min(MAX_ORDERS)))?;
    if !settings.speed.is_finite() || settings.speed <= 0.0 {
        return Err(SpecError::Speed(settings.speed));
    }
    settings.delay.check()
}

/// Assigns rows to strategies and venues.
struct ScheduleDealer<'a> {
    settings: &'a Replay,
    delays: Draws,
    words: Vec<Vec<EntryWords>>,
    strategy_order: Vec<StrategyIndex>,
    /// The sequence of each order seen, by venue and order id. The strategy follows from the id.
    sequences: HashMap<(u16, u64), u64>,
    rows: u64,
    clock: RowClock,
    last_fire_ns: u64,
}

impl<'a> ScheduleDealer<'a> {
    fn new(settings: &'a Replay) -> Self {
        Self {
            settings,
            delays: Draws::new(settings.seed, DrawStream::Delay),
            words: vec![Vec::new(); settings.strategies.into()],
            strategy_order: Vec::new(),
            sequences: HashMap::new(),
            rows: 0,
            clock: RowClock::default(),
            last_fire_ns: 0,
        }
    }

    fn add(&mut self, row: &ReplayRow, at_line: LinePosition<'_>) -> Result<(), ReplayError> {
        if self.rows == MAX_ORDERS {
            let problem = format!("more than the {MAX_ORDERS} orders that a schedule holds");
            return Err(at_line.error(format!("{problem}: replay only the first ones")));
        }
        let fire_ns = self.clock.advance(row, at_line)? as f64 / self.settings.speed;
        if fire_ns > MAX_WINDOW_NS as f64 {
            let why =
                "would be due more than 104 days after the first row: replay it faster, or cut the file";
            return Err(Column::TimeUs.error(at_line, &micros(row.time_ns), why));
        }
        self.last_fire_ns = fire_ns as u64;

        let strategies = u64::from(self.settings.strategies);
        let strategy = (row.order_id % strategies) as usize;
        let assigned_venue = (row.order_id / strategies % u64::from(self.settings.venues)) as u16;
        let venue = row.venue.unwrap_or(assigned_venue);
        let sequence = self.words[strategy].len() as u64;
        let target = match row.operation {
            Operation::New => {
                if self.sequences.insert((venue, row.order_id), sequence).is_some() {
                    let why = "names a new order for the second time: every new order needs an id of its own";
                    return Err(Column::OrderId.error(at_line, &row.order_id.to_string(), why));
                }
                0
            }
            Operation::Cancel | Operation::Replace | Operation::MassCancel => {
                self.sequences.get(&(venue, row.order_id)).copied().unwrap_or(RESTING | row.order_id)
            }
        };
        let DelayRange { min_ns, max_ns } = self.settings.delay;
        let request = OrderRequest {
            delay_ns: min_ns + self.delays.below(max_ns - min_ns + 1),
            operation: row.operation,
            side: row.side,
            price: row.price,
            quantity: row.quantity,
            target,
            ..OrderRequest::to_venue(venue)
        };
        let entry = Entry { fire_ns: self.last_fire_ns, request };
        self.words[strategy].push(entry.to_words());
        self.strategy_order.push(StrategyIndex(strategy as u16));
        self.rows += 1;
        Ok(())
    }

    fn schedule(mut self) -> Schedule {
        self.words.iter_mut().for_each(Vec::shrink_to_fit);
        let (venues, window_ns) = (self.settings.venues, self.last_fire_ns);
        let (words, strategy_order) = (self.words, self.strategy_order);
        Schedule { words, venues, window_ns, pacing: Pacing::Scheduled, strategy_order }
    }
}

#[cfg(test)]
mod tests;
