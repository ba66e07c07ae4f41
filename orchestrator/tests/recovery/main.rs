//! An orchestrator that crashes in the middle of a duty cycle and recovers from its journal, while
//! strategies run, crash and restart: every order is at its venue at most once, every order of a
//! running strategy is answered once, each stamp exists once, and positions and checksums are those
//! of the journal.
//!
//! It dies wherever it reads the clock: before each stamp, and so between any two things that it
//! does. Real processes die at any instruction in the launcher's tests.

mod standby;
mod world;

use core::cell::Cell;
use journal::{Durability, FailingDisk, Writer};
use orchestrator::Orchestrator;
use proptest::prelude::*;
use protocol::agent::{Agent, Cycle};
use protocol::index::StrategyIndex;
use protocol::reject::Reject;
use protocol::stamps::{Point, Record, StampLog};
use protocol::status::LOG_OFFSET;
use protocol::supervision::{ProofOfDeath, Repairs};
use protocol::wire::{OrderId, OrderStatus};
use shm::memory::{AtomicWords, Region};
use shm::ring::spsc_mux::Mux;
use shm::sync::{AtomicU64, Ordering};
use standby::Standby;
use std::collections::{BTreeSet, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use system::clock::CrashClock;
use world::{PeerHandles, SLOW, STRATEGIES, Successor, Trader, VENUES, Venue, World, consumers, reset, time};

/// What a step of the test does.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// A strategy sends an order to a venue, which may not exist.
    Send(usize, u16),
    /// A strategy dies.
    Die(usize),
    /// A venue takes and answers.
    Answer(usize),
}

/// Performs the acts, while the orchestrator crashes after given numbers of clock reads. Returns
/// how often it crashed, or what was wrong.
fn play(world: World, acts: &[Act], deaths: &[u64], variant: Successor) -> Result<usize, String> {
    let folder = tempfile::tempdir().unwrap();
    let mut venues: Vec<Venue> = (0..VENUES).map(|_| Venue::default()).collect();
    let mut traders: Vec<Trader> = (0..STRATEGIES as u16).map(|index| Trader::new(index, 0)).collect();
    let (mut ends, mut spare) = (PeerHandles::new(&world), Standby::new(variant));
    let mut lives = deaths.iter().copied();
    let reads = Rc::new(Cell::new(0));
    let mut dies_at = lives.next().unwrap_or(u64::MAX);
    let (mut agent, _) = world.orchestrator(folder.path(), &venues, (Successor::Careful, None))?;
    let (mut died, mut idle, mut turns) = (0, 0, 0);
    let mut acts = acts.iter();
    while idle < 5 {
        turns += 1;
        if turns > 20_000 {
            return Err("it does not come to an end".into());
        }
        if turns > 2_000 && world.durability != Durability::Process {
            // The disk, and the thread that waits for it, have their time.
            std::thread::sleep(Duration::from_millis(1));
        }
        let act = acts.next();
        match act {
            Some(Act::Send(strategy, venue)) => ends.send(&mut traders[*strategy], *venue),
            Some(Act::Die(strategy)) if traders[*strategy].is_dead => {}
            Some(Act::Die(strategy)) => {
                let trader = &mut traders[*strategy];
                trader.is_dead = true;
                let no_agents: Vec<Orchestrator<Mux>> = Vec::new();
                let death = ProofOfDeath::from_simulated::<CrashClock>(Box::new(no_agents));
                world.launching.fence(StrategyIndex(trader.index), trader.epoch, &death);
            }
            Some(Act::Answer(venue)) => ends.answer(&mut venues[*venue], *venue, false),
            None => (0..VENUES).for_each(|venue| ends.answer(&mut venues[venue], venue, true)),
        }
        let clock = CrashClock { reads: Rc::clone(&reads), crash_at: dies_at };
        let work = catch_unwind(AssertUnwindSafe(|| turn(&mut agent, &world, clock, turns)));
        if let Some(why) = Agent::<CrashClock>::failure(&agent) {
            return Err(why.into());
        }
        let is_idle = matches!(work, Ok(0)) && traders.iter().all(|trader| !trader.is_dead);
        spare.turn(&world, folder.path(), &venues);
        idle = if is_idle && act.is_none() { idle + 1 } else { 0 };
        if work.is_err() {
            died += 1;
            drop(agent);
            let (next, first) = world.orchestrator(folder.path(), &venues, (variant, spare.take()))?;
            agent = next;
            ends.inboxes = consumers(&world.inboxes);
            for (venue, message) in venues.iter_mut().zip(first) {
                message.into_iter().for_each(|message| venue.take(message));
            }
            reads.set(0);
            dies_at = lives.next().unwrap_or(u64::MAX);
        }
        for trader in &mut traders {
            ends.listen(trader)?;
            let repair =
                Repairs::new(world.repairs.clone().into()).strategy_repair(StrategyIndex(trader.index));
            if let Some(why) = repair.quarantined {
                return Err(format!("strategy {} was quarantined: {why:?}", trader.index));
            }
            trader.since += u32::from(trader.is_dead);
            if trader.since > SLOW && repair.repaired == Some(trader.epoch) {
                let index = usize::from(trader.index);
                reset(&world.submit[index]);
                reset(&world.returns[index]);
                ends.reset(&world, index);
                *trader = Trader::new(trader.index, trader.epoch + 1);
                world.launching.renew(StrategyIndex(trader.index), trader.epoch);
            }
        }
    }
    let sealed = seal(&agent, &world.log);
    drop(agent);
    check(&world, &venues, &traders)?;
    // A successor that has nothing but the journal, in a world in which all has gone through.
    let (last, _) = world.orchestrator(folder.path(), &venues, (Successor::Careful, None))?;
    if seal(&last, &Region::heap(LOG_OFFSET + (1 << 12)).words()) != sealed {
        return Err("positions and checksums are not those of the journal".into());
    }
    drop(last);
    if variant >= Successor::HasSnapshots && spare.snapshots == 0 && acts.len() > 100 {
        return Err("no snapshot was written".into());
    }
    spare.check(&world, folder.path(), &venues)?;
    Ok(died)
}

/// Runs one duty cycle. Returns its work, with what is still to do.
fn turn(agent: &mut Orchestrator<Mux, Writer>, world: &World, clock: CrashClock, now: u64) -> usize {
    let mut cycle = Cycle { clock, now, time: time(), draining: false, log: StampLog::new(&world.log) };
    let work = agent.duty_cycle(&mut cycle);
    work + usize::from(Agent::<CrashClock>::next_deadline(agent, false) == 0)
}

fn records(log: &AtomicWords, from: usize) -> Vec<Record> {
    let words = log[LOG_OFFSET..].chunks_exact(2).skip(from);
    let record = |words: &[AtomicU64]| {
        Record::from_words(words[0].load(Ordering::Relaxed), words[1].load(Ordering::Relaxed))
    };
    words.map_while(record).collect()
}

fn seal(agent: &Orchestrator<Mux, Writer>, log: &AtomicWords) -> Vec<Record> {
    let before = records(log, 0).len();
    Agent::<CrashClock>::seal(agent, &mut StampLog::new(log));
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
            // An order that a kill switch has taken back from its venue's queue was dispatched.
            let is_recalled = !was_there && report.reason == Reject::Killed.code();
            if was_there != (report.status == OrderStatus::Filled) {
                return Err(format!("order {id:?} is {:?}, at its venue: {was_there}", report.status));
            }
            let is_stamped = |point| stamps.contains(&(point, id, 0));
            for (point, is_there) in [
                (Point::OrchRecvSubmit, true),
                (Point::OrchDispatch, was_there || is_recalled && is_stamped(Point::OrchDispatch)),
                (Point::OrchRecvCompletion, was_there),
                (Point::Rejected, !was_there),
                (Point::OrchReturn, true),
            ] {
                if is_stamped(point) != is_there {
                    return Err(format!("{point:?} of order {id:?}: not {is_there}"));
                }
            }
        }
    }
    Ok(())
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        12 => (0..STRATEGIES, 0u16..20).prop_map(|(strategy, venue)| {
            // One in twenty to a nonexistent venue.
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
        variant in prop::sample::select(&CAREFUL),
    ) {
        prop_assert_eq!(play(World::new(), &acts, &deaths, variant).map(drop), Ok(()));
    }
}

/// The successors without a defect.
const CAREFUL: [Successor; 4] =
    [Successor::Careful, Successor::HasSnapshots, Successor::HasDamagedSnapshot, Successor::Follows];

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
fn crash_at_any_clock_read_is_recovered() {
    let acts = &load().0;
    let recovers = |dies_at: u64| {
        let variant = match dies_at % 10 {
            0 => Successor::Follows,
            5 => Successor::HasSnapshots,
            _ => Successor::Careful,
        };
        assert_eq!(play(World::new(), acts, &[dies_at], variant), Ok(1), "{dies_at}");
    };
    std::thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || (1..500).filter(|dies_at| dies_at % 2 == half).for_each(recovers));
        }
    });
}

#[test]
fn forgetful_successor_is_detected() {
    let (acts, deaths) = load();
    for variant in CAREFUL {
        assert_eq!(play(World::new(), &acts, &deaths, variant), Ok(deaths.len()), "{variant:?}");
    }
    for variant in [
        Successor::SendsAgain,
        Successor::StampsAgain,
        Successor::ReturnsAgain,
        Successor::KeepsTheDead,
        Successor::HasNoJournal,
        Successor::ForgetsWhatItGave,
    ] {
        // One after the other: each death would mend what the last successor forgot.
        let found = (1..200).find_map(|dies_at| play(World::new(), &acts, &[dies_at], variant).err());
        assert!(found.is_some(), "{variant:?}");
    }
}

const GROUP: Durability = Durability::GroupCommit { records: 8, within: Duration::from_micros(100) };

#[test]
fn group_commit_recovers_as_well() {
    let (acts, deaths) = load();
    let world = World { durability: GROUP, ..World::new() };
    assert_eq!(play(world, &acts, &deaths[..12], Successor::Careful), Ok(12));
}

/// The engine stops for good and reports why; without a refusal it continues as always.
#[test]
fn failed_sync_stops_engine_with_reason() {
    let (acts, _) = load();
    for (durability, takes) in [(GROUP, 0), (Durability::EveryRecord, 0), (Durability::EveryRecord, 40)] {
        let disk = Arc::new(FailingDisk::after(takes));
        let world = World { disk: disk.clone(), durability, ..World::new() };
        let why = play(world, &acts, &[], Successor::Careful).unwrap_err();
        for part in ["its journal fails", "fdatasync", "log-00000001"] {
            assert!(why.contains(part), "{why}");
        }
        assert_eq!(disk.attempts(), takes + 1, "never tried again");
    }
    let world = World { disk: Arc::new(FailingDisk::after(u64::MAX)), durability: GROUP, ..World::new() };
    assert_eq!(play(world, &acts, &[], Successor::Careful), Ok(0));
}
