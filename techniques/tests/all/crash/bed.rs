//! The test bed: a run's link on which victims die, its memory, reset for each trial, and its other
//! users.

use super::commands::message;
use super::report::{Problems, TrialCounts};
use super::victim::{self, Role, Victim};
use crate::common::Run;
use protocol::control::ControlWriter;
use protocol::index::StrategyIndex;
use protocol::plan::{Plan, Technique};
use protocol::segments;
use protocol::wire::Message;
use shm::attached::Attached;
use shm::bell::BELL;
use shm::memory::AtomicWords;
use shm::memory::header::HEADER_WORDS;
use shm::memory::unlink;
use shm::ring::{Consumer, Link, Producer, SegmentPlace, SegmentSpec};
use shm::sync::Ordering::Relaxed;
use std::fmt::Arguments;
use techniques::linked::{BLOCK_SLOTS, Linked};

/// Producers of the link. The first is the victim, the last may be the second victim.
pub const PRODUCERS: usize = 3;
pub const FIRST: usize = 0;
/// The producer that may die as well.
pub const SECOND: usize = 2;
pub const CAPACITY: u64 = 8;
const EPOCHS: u16 = 1 << 12;
/// Messages of a lap, if the kernel holds them.
const KERNEL_LAP: u64 = 2 * CAPACITY;
/// Maximum number of attempts of a repair, one per duty cycle.
const CYCLES: usize = 1000;

/// The state that all trials on one link share.
pub struct TestBed<'a, T: Link> {
    plan: &'a Plan,
    attached: Attached<'a>,
    pub memory: Vec<(SegmentSpec, AtomicWords)>,
    commands: Vec<(Role, AtomicWords)>,
    /// An attached victim of each role, of which the other victims are copies.
    attached_victims: Vec<(Role, Victim)>,
    /// The name of the socket, if there is one: it is bound again for each trial.
    socket: Option<String>,
    /// `true` if all producers write one ring.
    pub shared: bool,
    /// `true` if the kernel holds the messages: it determines how many fit, and isolates the
    /// producers.
    pub kernel: bool,
    /// Number of messages that fit into the victim's new ring; for the kernel's queues, the
    /// messages of a lap.
    pub capacity: u64,
    /// Maximum number of messages less that may fit for each partly used block; 0 without blocks.
    pub slack: u64,
    control_writer: ControlWriter,
    epoch: u16,
    link: core::marker::PhantomData<T>,
}

pub fn run(technique: Technique) -> Run {
    Run::new(technique, PRODUCERS as u16, CAPACITY as u32)
}

impl<'a, T: Link> TestBed<'a, T> {
    pub fn new(run: &'a Run) -> Self {
        let control_writer = segments::create_control(run.plan(), &[]).expect("space");
        let plan = run.create::<T>();
        let mut attached = segments::attach_with(plan, None, &control_writer.control());
        let specs = T::segments(&run.link());
        let socket = specs.iter().find(|spec| spec.place == SegmentPlace::Socket);
        let socket = socket.map(|spec| plan.segment_name(&spec.name));
        let kernel = specs.iter().any(|spec| spec.place.is_kernel());
        let shared = !kernel && !specs.iter().any(|spec| spec.kind == shm::ring::spsc::KIND);
        let memory: Vec<_> = specs
            .into_iter()
            .filter(|spec| !spec.place.is_kernel())
            .map(|spec| {
                let words = attached.region(&spec.name, spec.kind).expect("just made").words();
                (spec, words)
            })
            .collect();
        let roles = [Role::Producer(FIRST), Role::Producer(SECOND), Role::Consumer];
        let mut bed = Self {
            plan,
            attached,
            memory,
            commands: roles.map(|role| (role, victim::commands(plan, role))).into(),
            attached_victims: Vec::new(),
            socket,
            shared,
            kernel,
            capacity: KERNEL_LAP,
            slack: if run.plan().technique == Technique::from_link::<Linked>() {
                BLOCK_SLOTS as u64
            } else {
                0
            },
            control_writer,
            epoch: 0,
            link: core::marker::PhantomData,
        };
        if kernel {
            return bed;
        }
        let mut producer = bed.producer(FIRST);
        bed.capacity = (0..).take_while(|n| producer.try_push(&message(FIRST, *n)).is_ok()).count() as u64;
        bed
    }

    pub fn resume(&mut self) -> T::Consumer {
        T::resume_consumer(&protocol::segments::submit_link(self.plan), &mut self.attached).expect("headers")
    }

    pub fn reset(&self) {
        self.reset_if(|_| true);
    }

    /// Resets a dead producer's own memory, as the launcher does.
    pub fn reset_own(&self, producer: usize) {
        let own = [shm::ring::spsc::KIND, shm::ring::spsc::HEAD_KIND, shm::ring::intent::KIND];
        self.reset_if(|spec| own.contains(&spec.kind) && spec.index == producer as u64);
    }

    fn reset_if(&self, is_reset: impl Fn(&SegmentSpec) -> bool) {
        for (_, words) in self.memory.iter().filter(|(spec, _)| is_reset(spec)) {
            words[HEADER_WORDS..].iter().for_each(|word| word.store(0, Relaxed));
        }
    }

    /// Marks the receiver as asleep, if producers check for that.
    pub fn park(&self) {
        for (_, words) in self.memory.iter().filter(|(spec, _)| spec.kind == shm::bell::KIND) {
            words[BELL].store(1, Relaxed);
        }
    }

    /// Returns a fingerprint of all shared words of the link.
    pub fn state(&self) -> u64 {
        let words = self.memory.iter().flat_map(|(_, words)| words.iter());
        words.fold(0, |hash: u64, word| {
            (hash.rotate_left(23) ^ word.load(Relaxed)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
    }

    pub fn producer(&mut self, index: usize) -> T::Producer {
        self.control_writer.record_start(index, std::process::id());
        self.control_writer.record_start(PRODUCERS, std::process::id());
        T::producer(&segments::submit_link(self.plan), index, &mut self.attached).expect("a link")
    }

    pub fn consumer(&mut self) -> T::Consumer {
        if let Some(socket) = &self.socket {
            unlink(socket).expect("a name of ours");
        }
        self.control_writer.record_start(PRODUCERS, std::process::id());
        T::consumer(&segments::submit_link(self.plan), &mut self.attached).expect("a link")
    }

    /// Starts a victim. Of a technique in memory it is a copy of a victim that has attached: the
    /// ends do not depend on what is in the memory then.
    pub fn victim(&mut self, role: Role) -> Victim {
        if self.kernel {
            return self.start(role);
        }
        if !self.attached_victims.iter().any(|(victim_role, _)| *victim_role == role) {
            let victim = self.start(role);
            self.attached_victims.push((role, victim));
        }
        let attached_victim = self.attached_victims.iter().find(|(victim_role, _)| *victim_role == role);
        attached_victim.expect("just started").1.copy()
    }

    fn start(&self, role: Role) -> Victim {
        let (_, commands) =
            self.commands.iter().find(|(victim_role, _)| *victim_role == role).expect("a role that may die");
        let process = match role {
            Role::Producer(index) => index,
            Role::Consumer => PRODUCERS,
            Role::Board => unreachable!("a board's writer is in no queue"),
        };
        Victim::start(self.plan, role, commands, |pid| self.control_writer.record_start(process, pid))
    }
}

/// The ends in this process, and the messages sent and received.
pub struct Trial<'b, 'a, T: Link> {
    pub bed: &'b mut TestBed<'a, T>,
    pub consumer: T::Consumer,
    pub others: Vec<(usize, T::Producer)>,
    /// Number of messages of each producer that were accepted by the ring, and that were received.
    pub sent: [u64; PRODUCERS],
    pub received: [u64; PRODUCERS],
    pub problems: Problems,
}

impl<'b, 'a, T: Link> Trial<'b, 'a, T> {
    /// Resets the memory, and attaches a consumer and all producers except `without`.
    pub fn new(bed: &'b mut TestBed<'a, T>, without: &[usize]) -> Self {
        bed.reset();
        let mut consumer = bed.consumer();
        // A pipe keeps its content while any process has it open, such as one that is just
        // starting.
        while bed.kernel && consumer.try_pop().is_some() {}
        let others: Vec<_> = (0..PRODUCERS).filter(|index| !without.contains(index)).collect();
        let others = others.into_iter().map(|index| (index, bed.producer(index))).collect();
        (0..PRODUCERS as u16).for_each(|index| bed.control_writer.renew(StrategyIndex(index), bed.epoch));
        let zero = [0; PRODUCERS];
        Self { bed, consumer, others, sent: zero, received: zero, problems: Problems::default() }
    }

    pub fn problem(&mut self, kind: &'static str, description: Arguments<'_>) {
        self.problems.add(kind, description);
    }

    /// Adds the violations of this trial to the counts of its technique.
    pub fn conclude(&self, set_up: &str, trial: Arguments<'_>, tally: &mut TrialCounts) {
        let location = format!("{}, {}, {trial}", self.bed.plan.technique, set_up);
        tally.problems(&location, &self.problems);
    }

    /// The other producers push `messages` messages in turn, or until all find the ring full.
    pub fn push(&mut self, messages: u64) {
        let mut refused = 0;
        for turn in 0..messages as usize {
            let turn = turn % self.others.len();
            refused = if self.try_push_one(turn) { 0 } else { refused + 1 };
            if refused == self.others.len() {
                break;
            }
        }
    }

    fn try_push_one(&mut self, turn: usize) -> bool {
        let (index, producer) = &mut self.others[turn];
        let ok = producer.try_push(&message(*index, self.sent[*index])).is_ok();
        self.sent[*index] += u64::from(ok);
        ok
    }

    /// Receives up to `max` messages. Returns their number. Each must be whole, and the next one of
    /// its producer.
    pub fn take(&mut self, max: u64) -> u64 {
        for taken in 0..max {
            let Some((from, got)) = self.consumer.try_pop() else {
                if let Some(fault) = self.consumer.take_fault() {
                    self.problem("damage", format_args!("correct producers, but {fault:?}"));
                }
                return taken;
            };
            self.receive(from, got);
        }
        max
    }

    pub fn take_all(&mut self) -> u64 {
        self.take(u64::MAX)
    }

    pub fn receive(&mut self, from: Option<usize>, got: Message) {
        let (producer, n) = ((got[0] >> 48) as usize, got[0] & ((1 << 48) - 1));
        if producer >= PRODUCERS || got != message(producer, n) {
            return self.problem("torn", format_args!("{got:x?}"));
        }
        if from.is_some_and(|from| from != producer) {
            self.problem("wrong producer", format_args!("{producer}'s message through {from:?}"));
        }
        let expected = self.received[producer];
        if n != expected {
            let kind = if n < expected { "twice or out of order" } else { "lost" };
            self.problem(kind, format_args!("message {n} of producer {producer}, {expected} was expected"));
        }
        self.received[producer] = n.max(expected) + 1;
    }

    /// Checks that all messages of these producers have arrived.
    pub fn check_all_received(&mut self, producers: &[usize], when: &str) {
        for &index in producers {
            let (sent, received) = (self.sent[index], self.received[index]);
            if sent != received {
                self.problem(
                    "missing",
                    format_args!("{when}: producer {index} sent {sent}, {received} were received"),
                );
            }
        }
    }

    /// Kills a victim, waits until the kernel confirms its death, and fences it, as the launcher
    /// does. Otherwise the engine repairs nothing.
    pub fn fence(&mut self, index: usize, victim: Victim) {
        let control = self.bed.control_writer.control();
        assert!(!control.incarnation(StrategyIndex(index as u16)).fenced);
        let death = victim.kill();
        self.bed.control_writer.fence(StrategyIndex(index as u16), self.bed.epoch, &death);
        assert!(control.incarnation(StrategyIndex(index as u16)).fenced);
    }

    /// Retires the dead producers as the orchestrator does, once in each duty cycle.
    pub fn try_retire(&mut self, dead: &[usize]) -> bool {
        let mut remaining: Vec<usize> = dead.to_vec();
        for _ in 0..CYCLES {
            self.take_all();
            remaining.retain(|index| !self.consumer.retire(*index));
            if remaining.is_empty() {
                self.take_all();
                return true;
            }
        }
        false
    }

    /// Starts the successor of a dead producer in this process, in reset memory.
    pub fn renew(&mut self, index: usize) {
        self.bed.reset_own(index);
        self.bed.epoch = (self.bed.epoch + 1) % EPOCHS;
        self.bed.control_writer.renew(StrategyIndex(index as u16), self.bed.epoch);
        self.consumer.renew(index);
        self.sent[index] = self.received[index];
        let producer = self.bed.producer(index);
        self.others.push((index, producer));
    }

    /// Checks that the ring works: it is filled to its last slot and drained, twice. Up to `lost`
    /// slots may be missing.
    pub fn check_two_laps(&mut self, lost: u64, when: &str) {
        let max = if self.bed.kernel { self.bed.capacity } else { u64::MAX };
        let producers = self.others.len() as u64;
        for lap in 0..2 {
            let fits = if self.bed.shared {
                (0..max).take_while(|turn| self.try_push_one((turn % producers) as usize)).count() as u64
            } else {
                let rings = (0..producers)
                    .map(|index| (0..max).take_while(|_| self.try_push_one(index as usize)).count() as u64);
                rings.min().unwrap_or(0)
            };
            if !(self.bed.capacity - lost..=self.bed.capacity).contains(&fits) {
                let capacity = self.bed.capacity;
                self.problem("capacity", format_args!("{when}, lap {lap}: {fits} fit, not {capacity}"));
            }
            self.take_all();
            let running: Vec<usize> = self.others.iter().map(|(index, _)| *index).collect();
            self.check_all_received(&running, when);
        }
    }
}
