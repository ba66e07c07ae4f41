//! How exchanges and their gateways' sessions are built.

use super::engine;
use super::parts::{Parts, bell_of};
use anyhow::{Context as _, Result, anyhow};
use exchange::book_file;
use exchange::market_board::MarketBoard;
use exchange::role::{
    Close, Estate, ExchangeAgent, HOUSE, MarketSetup, Script, SessionEnd, Trade, open_with,
};
use exchange::{Capacity, Exchange, Instrument, Side};
use gateway::{SessionVenue, VenueContext};
use journal::{Durability, Options};
use protocol::plan::{Journalling, Plan, Role, Sequence, Trading};
use protocol::segments;
use protocol::stamps::{Point, count_point, last_of, last_versions};
use protocol::tape::{self, TAPED_INSTRUMENTS, TAPED_LEVELS, Tape, TapedLevel, TapedTrade};
use protocol::topology::{TURNS, TURNS_KIND, Turn};
use protocol::trading::{session_in, session_out};
use shm::clock::Timebase;
use shm::memory::header::HEADER_WORDS;
use shm::sync::Ordering;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

/// Bytes of a segment of an exchange's journal. Two are prepared ahead; what is mapped is torn down page by page when the exchange dies,
/// before anybody can be told.
const SEGMENT_BYTES: u64 = 4 << 20;
/// A group is synced when so many instructions wait …
const GROUP_RECORDS: u64 = 512;
/// … or one has for so long.
const GROUP_WITHIN: Duration = Duration::from_micros(500);

/// The session of a gateway with its exchange.
pub(super) fn session(parts: &mut Parts<'_, '_>, context: &VenueContext) -> Result<SessionVenue> {
    let Parts { plan, thread, .. } = *parts;
    let bell = bell_of(plan, thread, Role::Exchange(context.venue), parts.attached)?;
    let Some(estate) = engine::gateway(parts.attached, context.gateway) else {
        let out = parts.attached.sender(&session_out(context.gateway))?;
        let reports = parts.attached.receiver(&session_in(context.gateway))?;
        return Ok(SessionVenue::new(out, bell, reports));
    };
    let out = parts.attached.heir(&session_out(context.gateway))?;
    let mut reports = parts.attached.successor(&session_in(context.gateway))?;
    reports.skip_to(estate.completed);
    Ok(SessionVenue::new(out, bell, reports).in_place_of(estate.first, estate.stamped.len()))
}

/// The exchange that is a venue; with a journal, in the state in which that has it.
pub(super) fn exchange(parts: &mut Parts<'_, '_>, venue: u16) -> Result<ExchangeAgent<RunTape>> {
    let Parts { plan, thread, .. } = *parts;
    let trading = plan.trading();
    let room = trading.max_held as usize;
    let instruments = instruments(trading, room);
    let exchange = opened(plan, &instruments, room)?;
    let mut sessions = Vec::new();
    for gateway in trading.gateways_of(venue) {
        // In the place of a predecessor, if there was one; else the same as a first one.
        let orders = parts.attached.successor(&session_out(gateway))?;
        let reports = parts.attached.heir(&session_in(gateway))?;
        let bell = bell_of(plan, thread, Role::Gateway(gateway), parts.attached)?;
        sessions.push(SessionEnd::new(orders, reports, bell, room));
    }
    let segment = parts.attached.region(&tape::tape_segment(venue), tape::KIND)?;
    let tape = RunTape(Tape::resume(&segment.words()));
    let trades = tape.0.taken();
    let instruments = instruments.len() as u16;
    let board = match trading.market_data {
        true => Some(MarketBoard::new(segments::market_writer(parts.attached, venue)?)),
        false => None,
    };
    let script = match trading.sequence {
        Sequence::Arrival => None,
        Sequence::Recorded => Some(Script::new(turns(parts, venue)?)),
    };
    let setup = MarketSetup { venue, exchange, instruments, sessions: sessions.len(), room, script };
    let agent = ExchangeAgent::new(setup, sessions, tape).telling(board);
    let Some(options) = journal_options(trading.journal) else { return Ok(agent) };
    let log = segments::log(parts.attached, &thread.name)?;
    let estate = Estate {
        orders_stamped: count_point(&log, Point::ExchangeRecv) as u64,
        last_stamped: last_of(&log, Point::ExchangeRecv),
        reports_stamped: count_point(&log, Point::ExchangeDone) as u64,
        trades,
        last_triggered: last_of(&log, Point::Trigger),
        touches: last_versions(&log, usize::from(instruments)),
    };
    let time = Timebase { start_ticks: parts.control.start_ticks(), ns_per_tick: plan.ns_per_tick };
    let folder = Path::new(&plan.folder).join(format!("journal-venue-{venue}"));
    let recovered = agent.journalled(&folder, &options, time, &estate);
    recovered.with_context(|| format!("the journal of venue {venue} in {}", folder.display()))
}

/// How the journal is kept; `None`: there is none.
pub(super) fn journal_options(journal: Journalling) -> Option<Options> {
    let durability = match journal {
        Journalling::None => return None,
        Journalling::Process => Durability::Process,
        Journalling::Group => Durability::Group { records: GROUP_RECORDS, within: GROUP_WITHIN },
        Journalling::Each => Durability::Each,
    };
    Some(Options { durability, segment_bytes: SEGMENT_BYTES, ..Options::default() })
}

/// The plan's instruments as the matching engine takes them; one that takes everything where the plan has none. What is open of
/// one must fit 64 bits, which bounds the largest order.
fn instruments(trading: &Trading, room: usize) -> Vec<Instrument> {
    let orders = room as u64 + trading.house_orders;
    let of = |planned: &protocol::instrument::Instrument| Instrument {
        tick: planned.tick,
        lot: planned.lot,
        price_low: planned.price_low,
        price_high: planned.price_high,
        max_quantity: planned.max_quantity.min(u64::MAX / orders.max(1)).max(planned.lot),
        reference_price: planned.reference_price.clamp(planned.price_low, planned.price_high),
    };
    match trading.instruments.as_slice() {
        [] => vec![of(&protocol::instrument::Instrument::default())],
        planned => planned.iter().map(of).collect(),
    }
}

/// Whose turn it is at this venue, order after order.
fn turns(parts: &mut Parts<'_, '_>, venue: u16) -> Result<Vec<u16>> {
    let words = parts.attached.view(TURNS, TURNS_KIND)?;
    // Relaxed: written before this process started.
    let turns =
        (HEADER_WORDS..words.len()).map(|place| Turn::from_word(words.load(place, Ordering::Relaxed)));
    Ok(turns.filter(|turn| turn.venue == venue).map(|turn| turn.strategy).collect())
}

/// The books, with the orders of the opening book in them.
fn opened(plan: &Plan, instruments: &[Instrument], room: usize) -> Result<Exchange> {
    let trading = plan.trading();
    let orders = room + trading.house_orders as usize;
    let mut exchange = Exchange::new(instruments, Capacity::orders(orders))?;
    let Some(path) = &trading.opening_book else { return Ok(exchange) };
    let file = File::open(path).with_context(|| format!("cannot read the opening book {path}"))?;
    let resting = book_file::opening_book(BufReader::new(file), 0, HOUSE, trading.house_orders as usize);
    let resting = resting.with_context(|| format!("the opening book {path}"))?;
    open_with(&mut exchange, resting)
        .map_err(|(id, why)| anyhow!("the opening book {path}: order {id} is refused: {why}"))?;
    Ok(exchange)
}

/// Trades and last books go to the run's tape.
pub(super) struct RunTape(Tape);

impl Close for RunTape {
    #[inline]
    fn trade(&mut self, trade: &Trade, ticks: u64) {
        let Trade { number: _, instrument, maker, taker, price, quantity } = *trade;
        self.0.trade(&TapedTrade { ticks, instrument, maker, taker, price, quantity });
    }

    fn close(&mut self, exchange: &Exchange) {
        for instrument in 0..TAPED_INSTRUMENTS as u16 {
            for (side, is_sell) in [(Side::Buy, false), (Side::Sell, true)] {
                for (rank, level) in exchange.depth(instrument, side, TAPED_LEVELS).enumerate() {
                    let (price, quantity, orders) = (level.price, level.quantity, level.orders.into());
                    self.0.level(instrument, is_sell, rank, TapedLevel { price, quantity, orders });
                }
            }
        }
        self.0.close();
    }
}
