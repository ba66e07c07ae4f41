//! Builds exchanges and the sessions of their gateways.

use super::recovered::{FollowedJournal, thread_of};
use super::recovery_environment::RecoveryEnvironment;
use super::role_context::RoleContext;
use super::run_tape::RunTape;
use anyhow::{Context as _, Result, anyhow};
use exchange::book_file;
use exchange::{Capacity, Exchange, Instrument};
use gateway::{SessionVenue, VenueContext};
use journal::{Durability, Options};
use protocol::control::Control;
use protocol::index::{GatewayIndex, VenueIndex};
use protocol::journals;
use protocol::log_scan::LogTotals;
use protocol::plan::{Journaling, OrderSequence, Plan, Role, ThreadPlan, Trading};
use protocol::segments::{self, bell_of};
use protocol::sender::SendQueue;
use protocol::stamps::Point;
use protocol::tape::{self, TapeWriter};
use protocol::topology::{REPLAY_KIND, REPLAY_SEGMENT, ReplayStep};
use protocol::trading::{session_in, session_out};
use shm::attached::Attached;
use shm::memory::header::HEADER_WORDS;
use shm::sync::Ordering;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use system::clock::Timebase;
use venue::{
    ExchangeAgent, ExchangeReplica, MarketBoard, MarketSetup, OPENING_BOOK_OWNER, OutputWatermarks,
    ReplaySequencer, SessionEnd, open_with,
};

/// Size of a journal segment in bytes. Two are prepared ahead; mapped pages are torn down when the
/// exchange dies, before its death is reported.
const SEGMENT_BYTES: u64 = 4 << 20;
/// Maximum journal bytes per order: a run of few orders has smaller segments.
const BYTES_AN_ORDER: u64 = 1 << 10;
/// Number of waiting instructions at which a group commit is synced.
const GROUP_RECORDS: u64 = 64;
/// Maximum age of an instruction at which a group commit is synced. On a slow disk groups are
/// larger all the same, because one sync waits for the previous one.
const GROUP_WITHIN: Duration = Duration::from_micros(100);

pub(super) fn session(parts: &mut RoleContext<'_, '_>, context: &VenueContext) -> Result<SessionVenue> {
    let RoleContext { plan, thread, .. } = *parts;
    let gateway = GatewayIndex(context.gateway);
    let bell = bell_of(parts.attached, plan, thread, Role::Exchange(VenueIndex(context.venue)))?;
    let Some(resume_point) = parts.recovered.gateways.get(&gateway) else {
        let out = parts.attached.sender(&session_out(gateway))?;
        let reports = parts.attached.receiver(&session_in(gateway))?;
        return Ok(SessionVenue::new(out, bell, reports));
    };
    let out = parts.attached.resume_sender(&session_out(gateway))?;
    let mut reports = parts.attached.resume_receiver(&session_in(gateway))?;
    reports.skip_to(resume_point.completed);
    Ok(SessionVenue::new(out, bell, reports)
        .resume_from(resume_point.unsent_message, resume_point.stamped.len()))
}

/// Returns the exchange of a venue: the recovered one, or a new one if it has no journal.
pub(super) fn exchange(parts: &mut RoleContext<'_, '_>, venue: VenueIndex) -> Result<ExchangeAgent<RunTape>> {
    if let Some(recovered) = parts.recovered.exchanges.remove(&venue) {
        return Ok(recovered);
    }
    let queues = session_queues(parts.plan, venue);
    let (session, tape, board) = ends(parts.plan, parts.thread, venue, queues, parts.attached)?;
    let market = market(parts.plan, venue, parts.attached)?;
    Ok(ExchangeAgent::new(market, session, tape).with_market_board(board))
}

/// Returns the exchange of each role, of which all are exchanges.
pub(super) fn all_exchanges(
    parts: &mut RoleContext<'_, '_>,
    roles: &[Role],
) -> Result<Vec<ExchangeAgent<RunTape>>> {
    roles.iter().map(|role| exchange(parts, VenueIndex(role.index()))).collect()
}

/// Creates the memory for an exchange's queued reports, by session.
pub(super) fn session_queues(plan: &Plan, venue: VenueIndex) -> Vec<SendQueue> {
    let open = plan.trading().max_held as usize;
    plan.trading().gateways_of(venue).map(|_| SessionEnd::queue(open)).collect()
}

/// Attaches an exchange's session, tape and market data. In place of a predecessor, if there was
/// one; else the same as a first one.
fn ends(
    plan: &Plan,
    thread: &ThreadPlan,
    venue: VenueIndex,
    queues: Vec<SendQueue>,
    attached: &mut Attached<'_>,
) -> Result<(Vec<SessionEnd>, RunTape, Option<MarketBoard>)> {
    let trading = plan.trading();
    let mut sessions = Vec::new();
    for (gateway, queue) in trading.gateways_of(venue).zip(queues) {
        let orders = attached.resume_receiver(&session_out(gateway))?;
        let reports = attached.resume_sender(&session_in(gateway))?;
        let bell = bell_of(attached, plan, thread, Role::Gateway(gateway))?;
        sessions.push(SessionEnd::new(orders, reports, bell, queue));
    }
    let segment = attached.region(&tape::tape_segment(venue), tape::KIND)?;
    let tape = RunTape(TapeWriter::resume(&segment.words()));
    let board = match trading.market_data {
        true => Some(MarketBoard::new(venue.0, segments::attach_market_writer(attached, plan, venue)?)),
        false => None,
    };
    Ok((sessions, tape, board))
}

/// Recovers the exchange of a venue from its journal, after what a standby has `followed`.
pub(super) fn recover(
    plan: &Plan,
    venue: VenueIndex,
    options: Options,
    followed: Option<FollowedJournal<ExchangeReplica>>,
    control: &Control,
    attached: &mut Attached<'_>,
    environment: &dyn RecoveryEnvironment,
) -> Result<ExchangeAgent<RunTape>> {
    let role = Role::Exchange(venue);
    let thread = thread_of(plan, role)?;
    let FollowedJournal { replica, mut totals, queues } =
        followed.unwrap_or_else(|| FollowedJournal::none(log_totals(plan), session_queues(plan, venue)));
    let ends = ends(plan, thread, venue, queues, attached)?;
    totals.scan(&segments::attach_log(attached, &thread.name)?);
    let watermarks = environment.exchange_outputs(log_watermarks(&totals, ends.1.0.total_trades()));
    let time = Timebase { start_ticks: control.start_ticks(), ns_per_tick: plan.ns_per_tick };
    let folder = journal_folder(plan, venue);
    let (replica, reader) = match replica {
        Some((replica, reader)) => (replica, Some(reader)),
        None => (ExchangeReplica::new(market(plan, venue, attached)?, time), None),
    };
    let options = with_inherited_lock(options, attached, role)?;
    let journal = (folder.as_path(), &environment.journal_options(options));
    let agent = replica.promote(reader, journal, &watermarks, ends);
    let agent = agent.with_context(|| format!("the journal of venue {venue} in {}", folder.display()))?;
    agent.watermark().into_iter().for_each(|journal| environment.on_journal_open(&folder, journal));
    Ok(agent)
}

fn log_watermarks(totals: &LogTotals, trades: u64) -> OutputWatermarks {
    OutputWatermarks {
        orders_stamped: totals.count(Point::ExchangeRecv),
        last_stamped: totals.last(Point::ExchangeRecv),
        reports_stamped: totals.count(Point::ExchangeDone),
        trades,
        last_triggered: totals.last(Point::Trigger),
        touches: totals.versions().to_vec(),
    }
}

pub(super) fn journal_folder(plan: &Plan, venue: VenueIndex) -> PathBuf {
    journals::folder(plan, Role::Exchange(venue))
}

/// Creates what an exchange needs from the plan: instruments, sessions, capacity and recorded flow.
pub(super) fn market(plan: &Plan, venue: VenueIndex, attached: &mut Attached<'_>) -> Result<MarketSetup> {
    let trading = plan.trading();
    let capacity = trading.max_held as usize;
    let instruments = instruments(trading, capacity);
    let exchange = open_books(plan, &instruments, capacity)?;
    let script = match trading.sequence {
        OrderSequence::Arrival => None,
        OrderSequence::Recorded => Some(ReplaySequencer::new(replay_order(venue, attached)?)),
    };
    let (instruments, sessions) = (instruments.len() as u16, trading.credentials.into());
    Ok(MarketSetup { venue: venue.0, exchange, instruments, sessions, capacity, sequencer: script })
}

/// Maps the segments that a venue's exchange will use.
pub(super) fn map(
    plan: &Plan,
    thread: &ThreadPlan,
    venue: VenueIndex,
    attached: &mut Attached<'_>,
) -> Result<()> {
    // Not as a successor, which withdraws unpublished messages: the running exchange uses it.
    for gateway in plan.trading().gateways_of(venue) {
        attached.receiver(&session_out(gateway))?;
        attached.sender(&session_in(gateway))?;
    }
    attached.region(&tape::tape_segment(venue), tape::KIND)?;
    if plan.trading().market_data {
        segments::attach_market_writer(attached, plan, venue)?;
    }
    segments::attach_thread(attached, &thread.name)?;
    Ok(())
}

/// Returns the totals at the start of an exchange's stamp log.
pub(super) fn log_totals(plan: &Plan) -> LogTotals {
    LogTotals::new(plan.trading().instrument_count())
}

/// Returns the options of the exchanges' journals; `None` if the plan has none.
pub(super) fn journal_options(trading: &Trading) -> Option<Options> {
    let durability = match trading.journal {
        Journaling::None => return None,
        Journaling::Process => Durability::Process,
        Journaling::Group => Durability::GroupCommit { records: GROUP_RECORDS, within: GROUP_WITHIN },
        Journaling::Each => Durability::EveryRecord,
    };
    let needed = (trading.total_orders().min(SEGMENT_BYTES) * BYTES_AN_ORDER).next_multiple_of(1 << 16);
    let segment_bytes = needed.clamp(1 << 16, SEGMENT_BYTES);
    Some(Options { durability, segment_bytes, ..Options::default() })
}

/// Adds the lock of a role's journal that this process has inherited to the options; a simulated
/// process has none, and its writer takes the lock itself.
pub(super) fn with_inherited_lock(
    options: Options,
    attached: &Attached<'_>,
    writer: Role,
) -> Result<Options> {
    let lock = attached.take_file(&journals::lock_handle(writer))?;
    Ok(Options { inherited_lock: lock.map(Arc::new), ..options })
}

/// Converts the plan's instruments for the matching engine; without any, one that accepts
/// everything. The total open quantity must fit 64 bits, which bounds the largest order.
fn instruments(trading: &Trading, capacity: usize) -> Vec<Instrument> {
    let orders = capacity as u64 + trading.opening_orders;
    let instrument = |planned: &protocol::instrument::Instrument| Instrument {
        tick: planned.tick,
        lot: planned.lot,
        price_low: planned.price_low,
        price_high: planned.price_high,
        max_quantity: planned.max_quantity.min(u64::MAX / orders.max(1)).max(planned.lot),
        reference_price: planned.reference_price.clamp(planned.price_low, planned.price_high),
    };
    match trading.instruments.as_slice() {
        [] => vec![instrument(&protocol::instrument::Instrument::default())],
        planned => planned.iter().map(instrument).collect(),
    }
}

fn replay_order(venue: VenueIndex, attached: &mut Attached<'_>) -> Result<Vec<u16>> {
    let words = attached.view(REPLAY_SEGMENT, REPLAY_KIND)?;
    // Relaxed: written before this process started.
    let turns =
        (HEADER_WORDS..words.len()).map(|index| ReplayStep::from_word(words.load(index, Ordering::Relaxed)));
    Ok(turns.filter(|turn| turn.venue == venue).map(|turn| turn.strategy.0).collect())
}

fn open_books(plan: &Plan, instruments: &[Instrument], capacity: usize) -> Result<Exchange> {
    let trading = plan.trading();
    let orders = capacity + trading.opening_orders as usize;
    let mut exchange = Exchange::new(instruments, Capacity::for_orders(orders))?;
    let Some(path) = &trading.opening_book else { return Ok(exchange) };
    let file = File::open(path).with_context(|| format!("cannot read the opening book {path}"))?;
    let resting =
        book_file::opening_book(BufReader::new(file), 0, OPENING_BOOK_OWNER, trading.opening_orders as usize);
    let resting = resting.with_context(|| format!("the opening book {path}"))?;
    open_with(&mut exchange, resting)
        .map_err(|(id, why)| anyhow!("the opening book {path}: order {id} is refused: {why}"))?;
    Ok(exchange)
}
