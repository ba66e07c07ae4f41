//! The surroundings of the orchestrator: rings, a log, strategies, venues, and a clock that kills.

use journal::{Disk, Durability, JournalFollower, Options, Writer};
use orchestrator::risk::RiskSetup;
use orchestrator::{Core, Orchestrator, OutputWatermarks, Outputs, Replica, Supervision};
use protocol::control::{ControlWriter, PLAN};
use protocol::index::StrategyIndex;
use protocol::kill::Scope;
use protocol::limits::{LimitSetting, RiskControl};
use protocol::sender::Sender;
use protocol::stamps::{StampLog, Stamps, points_in};
use protocol::status::LOG_OFFSET;
use protocol::supervision::{REPAIRS_WORDS, RepairsWriter};
use protocol::wire::{Instruction, Message, Order, OrderId, Report};
use shm::memory::{AtomicWords, Region};
use shm::ring::{spsc, spsc_mux::Mux};
use shm::sync::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use system::clock::Timebase;
use system::work::TimedWork;

pub const STRATEGIES: usize = 3;
pub const VENUES: usize = 2;
/// Few, so that orders and reports are queued.
pub const SLOTS: usize = 4;
pub const MAX_OPEN: u64 = 12;
/// Turns until a strategy is started again.
pub const SLOW: u32 = 8;

pub fn ring() -> AtomicWords {
    let words = Region::heap(spsc::ring_words(SLOTS, 7)).words();
    spsc::write_header::<7>(&words, SLOTS);
    words
}

pub fn reset(words: &AtomicWords) {
    words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    spsc::write_header::<7>(words, SLOTS);
}

/// What a successor makes of what was left; the broken ones believe something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum Successor {
    Careful,
    SendsAgain,
    StampsAgain,
    ReturnsAgain,
    /// Does not look which strategies are retired.
    KeepsTheDead,
    HasNoJournal,
    HasSnapshots,
    /// The newest of its snapshots.
    HasDamagedSnapshot,
    /// Has followed its predecessor.
    Follows,
    /// Has followed it, and counts all outputs that it gave as sent.
    ForgetsWhatItGave,
}

/// What outlives the orchestrator.
pub struct World {
    pub submit: Vec<AtomicWords>,
    pub completion: Vec<AtomicWords>,
    pub inboxes: Vec<AtomicWords>,
    pub returns: Vec<AtomicWords>,
    pub log: AtomicWords,
    pub repairs: AtomicWords,
    pub launching: ControlWriter,
    /// What its journal is on.
    pub disk: Arc<dyn Disk>,
    pub durability: Durability,
}

pub const fn time() -> Timebase {
    Timebase { start_ticks: 0, ns_per_tick: 1.0 }
}

/// An orchestrator, and what each of its venues is to take first.
pub type Attached = (Orchestrator<Mux, Writer>, Vec<Option<Message>>);

impl World {
    pub fn new() -> Self {
        let rings = |count: usize| (0..count).map(|_| ring()).collect::<Vec<_>>();
        Self {
            submit: rings(STRATEGIES),
            completion: rings(VENUES),
            inboxes: rings(VENUES),
            returns: rings(STRATEGIES),
            log: Region::heap(LOG_OFFSET + (1 << 15)).words(),
            repairs: Region::heap(REPAIRS_WORDS).words(),
            launching: ControlWriter::new(Region::heap(PLAN + 8).words()),
            disk: Arc::new(journal::OsDisk),
            durability: Durability::Process,
        }
    }

    pub fn orchestrator(
        &self,
        folder: &Path,
        venues: &[Venue],
        (variant, follower): (Successor, Option<JournalFollower<Replica>>),
    ) -> Result<Attached, String> {
        let mut watermarks = self.watermarks(venues);
        let heir = |words: &AtomicWords| spsc::Producer::resume(words).unwrap();
        let mut returns: Vec<_> = self.returns.iter().map(heir).collect();
        match variant {
            Successor::SendsAgain => {
                watermarks.sent.iter_mut().for_each(|sent| *sent = sent.saturating_sub(1))
            }
            Successor::StampsAgain => (watermarks.returns_stamped, watermarks.others_logged) = (0, 0),
            Successor::ReturnsAgain => returns = producers(&self.returns),
            Successor::HasNoJournal => std::fs::remove_dir_all(folder).unwrap_or(()),
            Successor::HasDamagedSnapshot => damage_newest_snapshot(folder),
            _ => {}
        }
        let inboxes = self.inboxes.iter().map(|words| {
            let ring = heir(words);
            spsc::Consumer::<7>::resume(words).unwrap().skip_to(ring.published());
            ring
        });
        let inboxes = inboxes.map(|ring| Sender::new(ring, None, 64)).collect();
        let path = |ring| Sender::bounded(ring, None, MAX_OPEN as usize);
        let outputs = Outputs::new(inboxes, returns.into_iter().map(path).collect(), TimedWork::new(0));
        let (durability, disk) = (self.durability, Arc::clone(&self.disk));
        let options = Options { durability, segment_bytes: 1 << 16, disk, ..Options::default() };
        let (replica, reader) = match follower.map(JournalFollower::into_parts) {
            Some((replica, reader)) => (replica, Some(reader)),
            None => (replica(), None),
        };
        let recovered = replica.promote(reader, (folder, &options), watermarks, outputs, 1);
        let (successor, mut recovered) = recovered.map_err(|error| error.to_string())?;
        let mut log = StampLog::new(&self.log);
        recovered.unlogged.iter().for_each(|record| log.append_record(*record));
        if variant == Successor::KeepsTheDead {
            recovered.retired.clear();
        }
        let mux = |rings: &[AtomicWords]| Mux::new(consumers(rings));
        let orchestrator = successor.attach(mux(&self.submit), mux(&self.completion), &recovered);
        let orchestrator = orchestrator.map_err(|error| error.to_string())?;
        let supervision = Supervision::new(self.launching.control());
        let repairs = RepairsWriter::new(&self.repairs);
        let first = recovered.gateways.iter().map(|gateway| gateway.next_message).collect();
        Ok((orchestrator.supervised(supervision, repairs, 1), first))
    }

    /// Returns the outputs of the orchestrator that rings and log show.
    pub fn watermarks(&self, venues: &[Venue]) -> OutputWatermarks {
        let published = |words: &AtomicWords| spsc::Producer::<7>::resume(words).unwrap().published();
        let mut watermarks = OutputWatermarks {
            sent: venues.iter().map(|venue| venue.taken).collect(),
            returned: self.returns.iter().map(published).collect(),
            ..OutputWatermarks::default()
        };
        points_in(&self.log.clone().into()).for_each(|point| watermarks.count_records(point, 1));
        watermarks
    }
}

/// The state of this world's orchestrator before the first record.
pub fn replica() -> Replica {
    let limits = [LimitSetting {
        scope: Scope::Strategy(StrategyIndex(0)),
        control: RiskControl::MaxRejections,
        value: 3,
    }];
    let setup = RiskSetup { limits: &limits, ..RiskSetup::open_orders(STRATEGIES, VENUES, MAX_OPEN) };
    Replica::new(Core::new(&setup).unwrap(), Stamps::All)
}

/// Changes a bit in the newest snapshot of a folder, if there is one.
pub fn damage_newest_snapshot(folder: &Path) {
    let files = std::fs::read_dir(folder).unwrap().flatten().map(|file| file.path());
    if let Some(newest) = files.filter(|path| path.to_str().unwrap().contains("snapshot-0")).max() {
        let mut bytes = std::fs::read(&newest).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(newest, bytes).unwrap();
    }
}

/// A gateway and its venue: answers each order with a fill.
#[derive(Default)]
pub struct Venue {
    pub taken: u64,
    pub orders: Vec<OrderId>,
    pub answers: VecDeque<Message>,
}

impl Venue {
    pub fn take(&mut self, message: Message) {
        self.taken += 1;
        let Ok(Instruction::Order(order)) = Instruction::from_message(message) else { return };
        self.orders.push(order.id);
        self.answers.push_back(Report::full_fill(&order).to_message());
    }
}

/// A strategy that sends given orders and checks its reports.
pub struct Trader {
    pub index: u16,
    pub epoch: u16,
    pub next: u64,
    pub heard: BTreeMap<u64, Vec<Report>>,
    pub is_dead: bool,
    /// Turns since its death.
    pub since: u32,
}

impl Trader {
    pub fn new(index: u16, epoch: u16) -> Self {
        Self { index, epoch, next: 0, heard: BTreeMap::new(), is_dead: false, since: 0 }
    }
}

/// The ends of all rings that are not the orchestrator's.
pub struct PeerHandles {
    pub submit: Vec<spsc::Producer>,
    pub returns: Vec<spsc::Consumer>,
    pub inboxes: Vec<spsc::Consumer>,
    pub completion: Vec<spsc::Producer>,
}

/// Attached where the last ones stopped.
pub fn consumers(rings: &[AtomicWords]) -> Vec<spsc::Consumer> {
    rings.iter().map(|words| spsc::Consumer::resume(words).unwrap()).collect()
}

fn producers(rings: &[AtomicWords]) -> Vec<spsc::Producer> {
    rings.iter().map(|words| spsc::Producer::attach(words).unwrap()).collect()
}

impl PeerHandles {
    pub fn new(world: &World) -> Self {
        Self {
            submit: producers(&world.submit),
            returns: consumers(&world.returns),
            inboxes: consumers(&world.inboxes),
            completion: producers(&world.completion),
        }
    }

    pub fn reset(&mut self, world: &World, strategy: usize) {
        self.submit[strategy] = spsc::Producer::attach(&world.submit[strategy]).unwrap();
        self.returns[strategy] = spsc::Consumer::attach(&world.returns[strategy]).unwrap();
    }

    pub fn send(&mut self, trader: &mut Trader, venue: u16) {
        let open = trader.next - trader.heard.len() as u64;
        let ring = &mut self.submit[usize::from(trader.index)];
        if trader.is_dead || open >= MAX_OPEN || !ring.has_room() {
            return;
        }
        let mut order = Order::new(OrderId::new(trader.index, trader.epoch, trader.next), venue);
        (order.request.price, order.request.quantity) = (100, 1 + trader.next % 3);
        ring.try_push(&order.to_message()).unwrap();
        trader.next += 1;
    }

    pub fn answer(&mut self, venue: &mut Venue, index: usize, all: bool) {
        while let Ok(Some(message)) = self.inboxes[index].try_pop() {
            venue.take(message);
            if !all {
                break;
            }
        }
        while let Some(answer) = venue.answers.front()
            && self.completion[index].try_push(answer).is_ok()
        {
            venue.answers.pop_front();
        }
    }

    pub fn listen(&mut self, trader: &mut Trader) -> Result<(), String> {
        if trader.is_dead {
            return Ok(());
        }
        let ring = &mut self.returns[usize::from(trader.index)];
        while let Some(message) = ring.try_pop().map_err(|fault| fault.to_string())? {
            let report = Report::from_message(message).map_err(|error| format!("{error:?}"))?;
            if (report.id.strategy().0, report.id.epoch()) != (trader.index, trader.epoch) {
                return Err(format!("strategy {} hears of {:?}", trader.index, report.id));
            }
            trader.heard.entry(report.id.sequence()).or_default().push(report);
        }
        Ok(())
    }
}
