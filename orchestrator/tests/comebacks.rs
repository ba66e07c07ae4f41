//! An orchestrator that dies in the middle of a duty cycle and comes back from its journal, while strategies live on and die and come
//! back themselves: every order is at its venue once at most, every order of the living is answered once, each stamp is there once, and
//! positions and checksums are those of the journal.
//!
//! It dies wherever it reads the clock: before each stamp, and so between any two things that it does. Real processes die at any
//! instruction in the launcher's tests.

use core::cell::Cell;
use journal::{Durability, Options};
use orchestrator::risk::RiskSetup;
use orchestrator::work::Work;
use orchestrator::{Estate, Inbox, Mute, Orchestrator, ReturnPath, Supervision};
use proptest::prelude::*;
use protocol::agent::{Agent, Cycle};
use protocol::control::{Launching, PLAN};
use protocol::kill::Scope;
use protocol::limits::{Control, LimitSetting};
use protocol::stamps::{Point, Record, StampLog, Stamps, points_in};
use protocol::status::LOG_OFFSET;
use protocol::supervision::{Death, REPAIRS_WORDS, Repairs, RepairsWriter};
use protocol::wire::{Instruction, Message, Order, OrderId, OrderStatus, Report};
use shm::clock::{Clock, Timebase, Virtual};
use shm::memory::{Region, Words};
use shm::ring::{spsc, spsc_mux::Mux};
use shm::sync::{AtomicU64, Ordering};
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

const STRATEGIES: usize = 3;
const VENUES: usize = 2;
/// So few that orders and reports wait for room.
const SLOTS: usize = 4;
const MAX_OPEN: u64 = 12;
/// Turns until a strategy is started again.
const SLOW: u32 = 8;

/// A clock that kills who reads it, when its time has come.
#[derive(Clone)]
struct Deadly {
    reads: Rc<Cell<u64>>,
    dies_at: u64,
}

struct Dead;

impl Clock for Deadly {
    fn now(&self) -> u64 {
        self.reads.set(self.reads.get() + 1);
        if self.reads.get() == self.dies_at {
            // Without the hook: it is no failure.
            std::panic::resume_unwind(Box::new(Dead));
        }
        self.reads.get()
    }

    fn peek(&self) -> u64 {
        self.now()
    }
}

/// A strategy that is no more.
struct Nobody;

impl Agent<Virtual> for Nobody {
    fn duty_cycle(&mut self, _: &mut Cycle<Virtual>) -> usize {
        0
    }
}

fn ring() -> Words {
    let words = Region::heap(spsc::ring_words(SLOTS, 7)).words();
    spsc::write_header::<7>(&words, SLOTS);
    words
}

fn renew(words: &Words) {
    words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    spsc::write_header::<7>(words, SLOTS);
}

/// What a successor makes of what was left; the broken ones believe something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Successor {
    Careful,
    /// Sends to the venues again what they have.
    SendsAgain,
    /// Stamps again.
    StampsAgain,
    /// Returns every report again.
    ReturnsAgain,
    /// Does not look which strategies are retired.
    KeepsTheDead,
    /// Has lost its journal.
    HasNoJournal,
}

/// What outlives the orchestrator.
struct World {
    submit: Vec<Words>,
    completion: Vec<Words>,
    inboxes: Vec<Words>,
    returns: Vec<Words>,
    log: Words,
    repairs: Words,
    launching: Launching,
}

const fn time() -> Timebase {
    Timebase { start_ticks: 0, ns_per_tick: 1.0 }
}

/// An orchestrator, and what each of its venues is to take first.
type Attached = (Orchestrator<Mux>, Vec<Option<Message>>);

impl World {
    fn new() -> Self {
        let rings = |count: usize| (0..count).map(|_| ring()).collect::<Vec<_>>();
        Self {
            submit: rings(STRATEGIES),
            completion: rings(VENUES),
            inboxes: rings(VENUES),
            returns: rings(STRATEGIES),
            log: Region::heap(LOG_OFFSET + (1 << 15)).words(),
            repairs: Region::heap(REPAIRS_WORDS).words(),
            launching: Launching::new(Region::heap(PLAN + 8).words()),
        }
    }

    /// The orchestrator in this world.
    fn orchestrator(
        &self,
        folder: &Path,
        durability: Durability,
        venues: &[Venue],
        how: Successor,
    ) -> Result<Attached, String> {
        let mut estate =
            Estate { sent: venues.iter().map(|venue| venue.taken).collect(), ..Estate::default() };
        points_in(&self.log.clone().into()).for_each(|point| estate.count(point));
        let heir = |words: &Words| spsc::Producer::resume(words).unwrap();
        let mut returns: Vec<_> = self.returns.iter().map(heir).collect();
        match how {
            Successor::SendsAgain => estate.sent.iter_mut().for_each(|sent| *sent = sent.saturating_sub(1)),
            Successor::StampsAgain => (estate.returns_stamped, estate.others_logged) = (0, 0),
            Successor::ReturnsAgain => {
                returns = self.returns.iter().map(|words| spsc::Producer::attach(words).unwrap()).collect();
            }
            Successor::HasNoJournal => std::fs::remove_dir_all(folder).unwrap_or(()),
            Successor::Careful | Successor::KeepsTheDead => {}
        }
        let limits = [LimitSetting { scope: Scope::Strategy(0), control: Control::MaxRejections, value: 3 }];
        let setup = RiskSetup { limits: &limits, ..RiskSetup::open_orders(STRATEGIES, VENUES, MAX_OPEN) };
        let inboxes = self.inboxes.iter().map(|words| {
            let ring = heir(words);
            spsc::Consumer::<7>::resume(words).unwrap().skip_to(ring.published());
            Inbox::new(ring, None)
        });
        let returns = returns.into_iter().map(|ring| ReturnPath::new(ring, None, MAX_OPEN as usize));
        let orchestrator =
            Orchestrator::new(Mute, Mute, inboxes.collect(), returns.collect(), &setup, Work::new(0))
                .unwrap();
        let options = Options { durability, segment_bytes: 1 << 16, ..Options::default() };
        let recovered = orchestrator.journalled(folder, &options, (time(), 1), Stamps::All, estate, None);
        let (orchestrator, mut recovered) = recovered.map_err(|error| error.to_string())?;
        let mut log = StampLog::new(&self.log);
        recovered.unlogged.iter().for_each(|record| log.append_record(*record));
        if how == Successor::KeepsTheDead {
            recovered.retired.clear();
        }
        let successor = |words: &Words| spsc::Consumer::resume(words).unwrap();
        let mux = |rings: &[Words]| Mux::new(rings.iter().map(successor).collect());
        let orchestrator = orchestrator.attached(mux(&self.submit), mux(&self.completion), &recovered);
        let orchestrator = orchestrator.map_err(|error| error.to_string())?;
        let supervision = Supervision::new(self.launching.control(), RepairsWriter::new(&self.repairs));
        let first = recovered.gateways.iter().map(|gateway| gateway.first).collect();
        Ok((orchestrator.supervised_again(supervision, 1), first))
    }
}

/// A gateway and its venue: answers each order with a fill.
#[derive(Default)]
struct Venue {
    taken: u64,
    orders: Vec<OrderId>,
    answers: VecDeque<Message>,
}

impl Venue {
    fn take(&mut self, message: Message) {
        self.taken += 1;
        let Ok(Instruction::Order(order)) = Instruction::from_message(message) else { return };
        self.orders.push(order.id);
        let report = Report {
            id: order.id,
            venue: order.venue,
            instrument: 0,
            status: OrderStatus::Filled,
            reason: 0,
            side: order.side,
            price: order.price,
            filled: order.quantity,
            leaves: 0,
            cumulative: order.quantity,
            number: 0,
            is_last: true,
        };
        self.answers.push_back(report.to_message());
    }
}

/// A strategy: sends what it is told to, hears what it is told.
struct Trader {
    index: u16,
    epoch: u16,
    next: u64,
    heard: BTreeMap<u64, Vec<Report>>,
    is_dead: bool,
    /// Turns since its death.
    since: u32,
}

impl Trader {
    fn new(index: u16, epoch: u16) -> Self {
        Self { index, epoch, next: 0, heard: BTreeMap::new(), is_dead: false, since: 0 }
    }
}

/// What a step of the test does.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// A strategy sends an order to a venue, perhaps to one that there is not.
    Send(usize, u16),
    /// A strategy dies.
    Die(usize),
    /// A venue takes and answers.
    Answer(usize),
}

/// Carries out the acts, while the orchestrator dies after so many looks at its clock; how often it died, or what was wrong.
fn play(acts: &[Act], deaths: &[u64], durability: Durability, how: Successor) -> Result<usize, String> {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new();
    let mut venues: Vec<Venue> = (0..VENUES).map(|_| Venue::default()).collect();
    let mut traders: Vec<Trader> = (0..STRATEGIES as u16).map(|index| Trader::new(index, 0)).collect();
    let mut ends = Ends::new(&world);
    let mut lives = deaths.iter().copied();
    let reads = Rc::new(Cell::new(0));
    let mut dies_at = lives.next().unwrap_or(u64::MAX);
    let (mut agent, _) = world.orchestrator(folder.path(), durability, &venues, Successor::Careful)?;
    let (mut died, mut idle, mut turns) = (0, 0, 0);
    let mut acts = acts.iter();
    while idle < 5 {
        turns += 1;
        if turns > 20_000 {
            return Err("it does not come to an end".into());
        }
        let act = acts.next();
        match act {
            Some(Act::Send(strategy, venue)) => ends.send(&mut traders[*strategy], *venue),
            Some(Act::Die(strategy)) if traders[*strategy].is_dead => {}
            Some(Act::Die(strategy)) => {
                let trader = &mut traders[*strategy];
                trader.is_dead = true;
                world.launching.fence(trader.index, trader.epoch, &Death::of_simulated(Box::new(Nobody)));
            }
            Some(Act::Answer(venue)) => ends.answer(&mut venues[*venue], *venue, false),
            None => (0..VENUES).for_each(|venue| ends.answer(&mut venues[venue], venue, true)),
        }
        let clock = Deadly { reads: Rc::clone(&reads), dies_at };
        let work = catch_unwind(AssertUnwindSafe(|| turn(&mut agent, &world, clock, turns)));
        if let Some(why) = Agent::<Deadly>::failure(&agent) {
            return Err(why.into());
        }
        let is_idle =
            work.as_ref().is_ok_and(|work| *work == 0) && traders.iter().all(|trader| !trader.is_dead);
        idle = if is_idle && act.is_none() { idle + 1 } else { 0 };
        if work.is_err() {
            died += 1;
            drop(agent);
            let (next, first) = world.orchestrator(folder.path(), durability, &venues, how)?;
            agent = next;
            ends.inboxes = Ends::new_inboxes(&world);
            for (venue, message) in venues.iter_mut().zip(first) {
                message.into_iter().for_each(|message| venue.take(message));
            }
            reads.set(0);
            dies_at = lives.next().unwrap_or(u64::MAX);
        }
        for trader in &mut traders {
            ends.listen(trader)?;
            let repair = Repairs::new(world.repairs.clone().into()).of(trader.index);
            if let Some(why) = repair.quarantined {
                return Err(format!("strategy {} was quarantined: {why:?}", trader.index));
            }
            trader.since += u32::from(trader.is_dead);
            if trader.since > SLOW && repair.repaired == Some(trader.epoch) {
                let index = usize::from(trader.index);
                renew(&world.submit[index]);
                renew(&world.returns[index]);
                ends.renew(&world, index);
                *trader = Trader::new(trader.index, trader.epoch + 1);
                world.launching.revive(trader.index, trader.epoch);
            }
        }
    }
    let sealed = seal(&agent, &world.log);
    drop(agent);
    check(&world, &venues, &traders)?;
    // Who has nothing but the journal, in a world in which all has gone through.
    let (told, _) = world.orchestrator(folder.path(), Durability::Process, &venues, Successor::Careful)?;
    if seal(&told, &Region::heap(LOG_OFFSET + (1 << 12)).words()) != sealed {
        return Err("positions and checksums are not those of the journal".into());
    }
    Ok(died)
}

/// One duty cycle; how much it did, with what it still has to do.
fn turn(agent: &mut Orchestrator<Mux>, world: &World, clock: Deadly, now: u64) -> usize {
    let mut cycle = Cycle { clock, now, time: time(), draining: false, log: StampLog::new(&world.log) };
    let work = agent.duty_cycle(&mut cycle);
    work + usize::from(Agent::<Deadly>::next_deadline(agent) == 0)
}

fn records(log: &Words, from: usize) -> Vec<Record> {
    let words = log[LOG_OFFSET..].chunks_exact(2).skip(from);
    let record = |words: &[AtomicU64]| {
        Record::from_words(words[0].load(Ordering::Relaxed), words[1].load(Ordering::Relaxed))
    };
    words.map_while(record).collect()
}

/// What it seals: positions and checksums.
fn seal(agent: &Orchestrator<Mux>, log: &Words) -> Vec<Record> {
    let before = records(log, 0).len();
    Agent::<Deadly>::seal(agent, &mut StampLog::new(log));
    records(log, before)
}

fn check(world: &World, venues: &[Venue], traders: &[Trader]) -> Result<(), String> {
    let mut at_venues = HashSet::new();
    for id in venues.iter().flat_map(|venue| &venue.orders) {
        if !at_venues.insert(*id) {
            return Err(format!("order {id:?} was at its venue twice"));
        }
    }
    let mut stamps = BTreeSet::new();
    for record in records(&world.log, 0) {
        let is_detailed = record.point != Point::OrchDispatch;
        let detail = if is_detailed { record.detail } else { 0 };
        if record.point.is_of_order() && !stamps.insert((record.point, record.id, detail)) {
            return Err(format!("{:?} of {:?} is in the log twice", record.point, record.id));
        }
    }
    for trader in traders {
        for sequence in 0..trader.next {
            let id = OrderId::new(trader.index, trader.epoch, sequence);
            let heard = trader.heard.get(&sequence).map_or(&[][..], Vec::as_slice);
            let [report] = heard else {
                return Err(format!("order {id:?} was answered {} times", heard.len()));
            };
            let was_there = at_venues.contains(&id);
            if was_there != (report.status == OrderStatus::Filled) {
                return Err(format!("order {id:?} is {:?}, at its venue: {was_there}", report.status));
            }
            let expected = [
                (Point::OrchRecvSubmit, true),
                (Point::OrchDispatch, was_there),
                (Point::OrchRecvCompletion, was_there),
                (Point::Rejected, !was_there),
                (Point::OrchReturn, true),
            ];
            for (point, is_there) in expected {
                if stamps.contains(&(point, id, 0)) != is_there {
                    return Err(format!("{point:?} of order {id:?}: not {is_there}"));
                }
            }
        }
    }
    Ok(())
}

/// The ends of all rings that are not the orchestrator's.
struct Ends {
    submit: Vec<spsc::Producer>,
    returns: Vec<spsc::Consumer>,
    inboxes: Vec<spsc::Consumer>,
    completion: Vec<spsc::Producer>,
}

impl Ends {
    fn new(world: &World) -> Self {
        Self {
            submit: world.submit.iter().map(|words| spsc::Producer::attach(words).unwrap()).collect(),
            returns: world.returns.iter().map(|words| spsc::Consumer::attach(words).unwrap()).collect(),
            inboxes: Self::new_inboxes(world),
            completion: world.completion.iter().map(|words| spsc::Producer::attach(words).unwrap()).collect(),
        }
    }

    fn new_inboxes(world: &World) -> Vec<spsc::Consumer> {
        world.inboxes.iter().map(|words| spsc::Consumer::resume(words).unwrap()).collect()
    }

    fn renew(&mut self, world: &World, strategy: usize) {
        self.submit[strategy] = spsc::Producer::attach(&world.submit[strategy]).unwrap();
        self.returns[strategy] = spsc::Consumer::attach(&world.returns[strategy]).unwrap();
    }

    fn send(&mut self, trader: &mut Trader, venue: u16) {
        let open = trader.next - trader.heard.len() as u64;
        let ring = &mut self.submit[usize::from(trader.index)];
        if trader.is_dead || open >= MAX_OPEN || !ring.has_room() {
            return;
        }
        let mut order = Order::new(OrderId::new(trader.index, trader.epoch, trader.next), venue);
        (order.price, order.quantity) = (100, 1 + trader.next % 3);
        ring.try_push(&order.to_message()).unwrap();
        trader.next += 1;
    }

    fn answer(&mut self, venue: &mut Venue, index: usize, all: bool) {
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

    fn listen(&mut self, trader: &mut Trader) -> Result<(), String> {
        if trader.is_dead {
            return Ok(());
        }
        let ring = &mut self.returns[usize::from(trader.index)];
        while let Some(message) = ring.try_pop().map_err(|fault| fault.to_string())? {
            let report = Report::from_message(message).map_err(|error| format!("{error:?}"))?;
            if (report.id.strategy(), report.id.epoch()) != (trader.index, trader.epoch) {
                return Err(format!("strategy {} hears of {:?}", trader.index, report.id));
            }
            trader.heard.entry(report.id.sequence()).or_default().push(report);
        }
        Ok(())
    }
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => (0..STRATEGIES, 0u16..20).prop_map(|(strategy, venue)| {
            // One in twenty to a venue that there is not.
            Act::Send(strategy, if venue == 19 { 9 } else { venue % VENUES as u16 })
        }),
        1 => (0..STRATEGIES).prop_map(Act::Die),
        5 => (0..VENUES).prop_map(Act::Answer),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_doubled(
        acts in prop::collection::vec(any_act(), 1..160),
        deaths in prop::collection::vec(1u64..60, 0..8),
    ) {
        prop_assert_eq!(play(&acts, &deaths, Durability::Process, Successor::Careful).map(drop), Ok(()));
    }
}

/// A load in which something happens.
fn load() -> (Vec<Act>, Vec<u64>) {
    let act = |n: usize| match n % 11 {
        0 | 5 => Act::Answer(n / 11 % VENUES),
        7 if n % 77 == 7 => Act::Die(n / 77 % STRATEGIES),
        _ => Act::Send(n % STRATEGIES, if n % 40 == 39 { 9 } else { (n / 3 % VENUES) as u16 }),
    };
    ((0..600).map(act).collect(), (0..60).map(|n| 1 + n % 23).collect())
}

#[test]
fn it_may_die_at_any_look_at_the_clock() {
    let (acts, _) = load();
    for dies_at in 1..500 {
        assert_eq!(play(&acts, &[dies_at], Durability::Process, Successor::Careful), Ok(1), "{dies_at}");
    }
}

#[test]
fn who_forgets_what_was_done_is_found() {
    let (acts, deaths) = load();
    assert_eq!(play(&acts, &deaths, Durability::Process, Successor::Careful), Ok(deaths.len()));
    for how in [
        Successor::SendsAgain,
        Successor::StampsAgain,
        Successor::ReturnsAgain,
        Successor::KeepsTheDead,
        Successor::HasNoJournal,
    ] {
        // One after the other: each death would mend what the last successor forgot.
        let found = (1..200).find_map(|dies_at| play(&acts, &[dies_at], Durability::Process, how).err());
        assert!(found.is_some(), "{how:?}");
    }
}

/// With reports that wait for the disk the same comes out.
#[test]
fn a_group_says_the_same() {
    let (acts, deaths) = load();
    let group = Durability::Group { records: 8, within: Duration::from_micros(100) };
    assert_eq!(play(&acts, &deaths[..12], group, Successor::Careful), Ok(12));
}
