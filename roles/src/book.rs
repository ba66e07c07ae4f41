//! How exchanges and their gateways' sessions are built.

use super::estate;
use super::parts::Parts;
use super::takeover::Takeover;
use anyhow::{Context as _, Result, anyhow};
use exchange::book_file;
use exchange::{Capacity, Exchange, Instrument, Side};
use gateway::{SessionVenue, VenueContext};
use journal::{Durability, JournalFollower, Options};
use protocol::plan::{Journalling, Plan, Role, Sequence, Trading};
use protocol::segments::{self, bell_of};
use protocol::stamps::Point;
use protocol::tally::{self, LogCursor, PriorLog};
use protocol::tape::{self, TAPED_INSTRUMENTS, TAPED_LEVELS, Tape, TapedLevel, TapedTrade};
use protocol::topology::{ReplayStep, TURNS, TURNS_KIND};
use protocol::trading::{session_in, session_out};
use shm::attached::Attached;
use shm::memory::header::HEADER_WORDS;
use shm::sync::Ordering;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use system::clock::Timebase;
use venue::{
    Close, ExchangeAgent, ExchangeReplica, MarketBoard, MarketSetup, OPENING_BOOK_OWNER, OutputWatermarks,
    ReplaySequencer, SessionEnd, Trade, open_with,
};

/// Bytes of a segment of an exchange's journal. Two are prepared ahead; what is mapped is torn down
/// page by page when the exchange dies, before anybody can be told.
const SEGMENT_BYTES: u64 = 4 << 20;
/// What a run of a few orders needs at most, for each of them: it has smaller segments.
const BYTES_AN_ORDER: u64 = 1 << 10;
/// A group is synced when so many instructions wait …
const GROUP_RECORDS: u64 = 512;
/// … or one has for so long.
const GROUP_WITHIN: Duration = Duration::from_micros(500);

/// The session of a gateway with its exchange.
pub(super) fn session(parts: &mut Parts<'_, '_>, context: &VenueContext) -> Result<SessionVenue> {
    let Parts { plan, thread, .. } = *parts;
    let bell = bell_of(parts.attached, plan, thread, Role::Exchange(context.venue))?;
    let Some(estate) = estate::gateway(parts.attached, context.gateway) else {
        let out = parts.attached.sender(&session_out(context.gateway))?;
        let reports = parts.attached.receiver(&session_in(context.gateway))?;
        return Ok(SessionVenue::new(out, bell, reports));
    };
    let out = parts.attached.resume_sender(&session_out(context.gateway))?;
    let mut reports = parts.attached.resume_receiver(&session_in(context.gateway))?;
    reports.skip_to(estate.completed);
    Ok(SessionVenue::new(out, bell, reports).in_place_of(estate.first, estate.stamped.len()))
}

/// The exchange that is a venue; with a journal, in the state in which that has it.
pub(super) fn exchange(parts: &mut Parts<'_, '_>, venue: u16) -> Result<ExchangeAgent<RunTape>> {
    let Parts { plan, thread, .. } = *parts;
    let trading = plan.trading();
    let room = trading.max_held as usize;
    let takeover = Takeover::of(parts.attached);
    let kept = kept(parts.attached, venue).lock().unwrap_or_else(PoisonError::into_inner).take();
    let mut sessions = Vec::new();
    for gateway in trading.gateways_of(venue) {
        // In the place of a predecessor, if there was one; else the same as a first one.
        let orders = parts.attached.resume_receiver(&session_out(gateway))?;
        let reports = parts.attached.resume_sender(&session_in(gateway))?;
        let bell = bell_of(parts.attached, plan, thread, Role::Gateway(gateway))?;
        sessions.push(SessionEnd::new(orders, reports, bell, room));
    }
    let segment = parts.attached.region(&tape::tape_segment(venue), tape::KIND)?;
    let tape = RunTape(Tape::resume(&segment.words()));
    let trades = tape.0.taken();
    let (followed, mut tally) = kept.unwrap_or_else(|| (None, tally(plan)));
    let board = match trading.market_data {
        true => Some(MarketBoard::new(segments::market_writer(parts.attached, parts.plan, venue)?)),
        false => None,
    };
    let Some(options) = journal_options(trading) else {
        return Ok(ExchangeAgent::new(market(parts, venue)?, sessions, tape).telling(board));
    };
    let past = tally::past(parts.attached, plan, thread)?;
    past.look(&mut tally);
    let mut estate = left_behind(&past, &tally, trades);
    let time = Timebase { start_ticks: parts.control.start_ticks(), ns_per_tick: plan.ns_per_tick };
    let folder = journal_folder(plan, venue);
    takeover.of_exchange(&mut estate, &folder);
    let (shadow, reader) = match followed.map(JournalFollower::into_parts) {
        Some((shadow, mut reader)) => {
            takeover.of_reader(&mut reader);
            (shadow, Some(reader))
        }
        None => (ExchangeReplica::new(market(parts, venue)?, time), None),
    };
    let journal = (folder.as_path(), &takeover.of_options(options));
    let agent = shadow.promote(reader, journal, &estate, (sessions, tape, board));
    let agent = agent.with_context(|| format!("the journal of venue {venue} in {}", folder.display()))?;
    takeover.of_opened(&folder, agent.watermark());
    Ok(agent)
}

/// What of an exchange is in its log, as it was counted. Where records are missing, no count says
/// what was stamped: all is taken to be. Better one stamp missing more than one there twice.
fn left_behind(past: &PriorLog, tally: &LogCursor, trades: u64) -> OutputWatermarks {
    let sums = &tally.sums;
    let stamped = |point| if past.is_partial() { u64::MAX } else { sums.count(point) };
    OutputWatermarks {
        orders_stamped: stamped(Point::ExchangeRecv),
        last_stamped: sums.last(Point::ExchangeRecv),
        reports_stamped: stamped(Point::ExchangeDone),
        trades,
        last_triggered: sums.last(Point::Trigger),
        touches: sums.versions().to_vec(),
    }
}

/// Where the journal of a venue is.
pub(super) fn journal_folder(plan: &Plan, venue: u16) -> PathBuf {
    Path::new(&plan.folder).join(format!("journal-venue-{venue}"))
}

/// What a venue's market is made of.
pub(super) fn market(parts: &mut Parts<'_, '_>, venue: u16) -> Result<MarketSetup> {
    let trading = parts.plan.trading();
    let room = trading.max_held as usize;
    let instruments = instruments(trading, room);
    let exchange = opened(parts.plan, &instruments, room)?;
    let script = match trading.sequence {
        Sequence::Arrival => None,
        Sequence::Recorded => Some(ReplaySequencer::new(turns(parts, venue)?)),
    };
    let (instruments, sessions) = (instruments.len() as u16, trading.gateways_of(venue).count());
    Ok(MarketSetup { venue, exchange, instruments, sessions, room, script })
}

/// Maps what the exchange will write, and its log, ahead of it.
pub(super) fn map(parts: &mut Parts<'_, '_>, venue: u16) -> Result<()> {
    for gateway in parts.plan.trading().gateways_of(venue) {
        // Not as their heir: that one takes back what was not published, and the living one is at
        // work.
        parts.attached.receiver(&session_out(gateway))?;
        parts.attached.sender(&session_in(gateway))?;
    }
    parts.attached.region(&tape::tape_segment(venue), tape::KIND)?;
    if parts.plan.trading().market_data {
        segments::market_writer(parts.attached, parts.plan, venue)?;
    }
    segments::thread(parts.attached, &parts.thread.name)?;
    Ok(())
}

/// Of the log of an exchange; nothing is counted yet.
pub(super) fn tally(plan: &Plan) -> LogCursor {
    LogCursor::new(plan.trading().instrument_count())
}

/// The state of a follower, if it is of use, and what it has counted in the log.
pub(super) type Kept = (Option<JournalFollower<ExchangeReplica>>, LogCursor);

/// Where a process keeps what its exchange is to go on from, if it has anything.
fn kept(attached: &mut Attached<'_>, venue: u16) -> Arc<Mutex<Option<Kept>>> {
    attached.shared(&format!("kept-{venue}"), Mutex::default)
}

/// The exchange of that venue, once it is built, goes on from there.
pub(super) fn keep(attached: &mut Attached<'_>, venue: u16, what: Kept) {
    *kept(attached, venue).lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
}

/// How the journal is kept; `None`: there is none.
pub(super) fn journal_options(trading: &Trading) -> Option<Options> {
    let durability = match trading.journal {
        Journalling::None => return None,
        Journalling::Process => Durability::Process,
        Journalling::Group => Durability::Group { records: GROUP_RECORDS, within: GROUP_WITHIN },
        Journalling::Each => Durability::Each,
    };
    let needed = (trading.total_orders().min(SEGMENT_BYTES) * BYTES_AN_ORDER).next_multiple_of(1 << 16);
    let segment_bytes = needed.clamp(1 << 16, SEGMENT_BYTES);
    Some(Options { durability, segment_bytes, ..Options::default() })
}

/// The plan's instruments as the matching engine takes them; one that takes everything where the
/// plan has none. What is open of one must fit 64 bits, which bounds the largest order.
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
        (HEADER_WORDS..words.len()).map(|place| ReplayStep::from_word(words.load(place, Ordering::Relaxed)));
    Ok(turns.filter(|turn| turn.venue == venue).map(|turn| turn.strategy).collect())
}

/// The books, with the orders of the opening book in them.
fn opened(plan: &Plan, instruments: &[Instrument], room: usize) -> Result<Exchange> {
    let trading = plan.trading();
    let orders = room + trading.house_orders as usize;
    let mut exchange = Exchange::new(instruments, Capacity::orders(orders))?;
    let Some(path) = &trading.opening_book else { return Ok(exchange) };
    let file = File::open(path).with_context(|| format!("cannot read the opening book {path}"))?;
    let resting =
        book_file::opening_book(BufReader::new(file), 0, OPENING_BOOK_OWNER, trading.house_orders as usize);
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
