//! A run's link on which victims die: its memory, made new for each trial, and who else uses it.

use super::orders::message;
use super::report::Problems;
use super::victim::{self, Role, Victim};
use crate::common::Run;
use protocol::control::ControlWriter;
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
/// Who dies.
pub const FIRST: usize = 0;
/// Who may die as well.
pub const SECOND: usize = 2;
/// Slots of each ring.
pub const CAPACITY: u64 = 8;
/// Epochs that there are.
const EPOCHS: u16 = 1 << 12;
/// Messages that are a lap where the kernel holds them.
const KERNEL_LAP: u64 = 2 * CAPACITY;
/// How often a repair is tried: a duty cycle each.
const CYCLES: usize = 1000;

/// What all trials on one link share.
pub struct Bed<'a, T: Link> {
    plan: &'a Plan,
    attached: Attached<'a>,
    pub memory: Vec<(SegmentSpec, AtomicWords)>,
    orders: Vec<(Role, AtomicWords)>,
    /// The name of the socket, where there is one: it is bound anew for each trial.
    socket: Option<String>,
    /// Whether all producers write one ring.
    pub shared: bool,
    /// Whether the kernel holds the messages: how many fit is its affair, and it keeps the
    /// producers apart.
    pub kernel: bool,
    /// How many messages fit into the victim's ring when it is new; of the kernel's, how many make
    /// a lap here.
    pub room: u64,
    /// How many fewer may fit for each block that is not quite free: only where there are blocks.
    pub slack: u64,
    launching: ControlWriter,
    epoch: u16,
    link: core::marker::PhantomData<T>,
}

/// A run of that technique, as victims find it.
pub fn run(technique: Technique) -> Run {
    Run::new(technique, PRODUCERS as u16, CAPACITY as u32)
}

impl<'a, T: Link> Bed<'a, T> {
    /// Creates the run's segments.
    pub fn new(run: &'a Run) -> Self {
        let launching = segments::create_control(run.plan(), &[]).expect("room");
        let plan = run.create::<T>();
        let mut attached = segments::attach_with(plan, None, &launching.control());
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
            orders: roles.map(|role| (role, victim::orders(plan, role))).into(),
            socket,
            shared,
            kernel,
            room: KERNEL_LAP,
            slack: if run.plan().technique == Technique::of::<Linked>() { BLOCK_SLOTS as u64 } else { 0 },
            launching,
            epoch: 0,
            link: core::marker::PhantomData,
        };
        if kernel {
            return bed;
        }
        let mut producer = bed.producer(FIRST);
        bed.room = (0..).take_while(|n| producer.try_push(&message(FIRST, *n)).is_ok()).count() as u64;
        bed
    }

    /// A consumer in the place of one that has died.
    pub fn resume(&mut self) -> T::Consumer {
        T::resume(&protocol::segments::submit_link(self.plan), &mut self.attached).expect("headers")
    }

    /// The name of the technique.
    pub fn technique(&self) -> Technique {
        self.plan.technique
    }

    /// Makes all memory as it was when the run was created.
    pub fn renew(&self) {
        self.renew_if(|_| true);
    }

    /// Makes a dead producer's own memory new, as the launcher does.
    pub fn renew_own(&self, producer: usize) {
        let own = [shm::ring::spsc::KIND, shm::ring::spsc::HEAD_KIND, shm::ring::intent::KIND];
        self.renew_if(|spec| own.contains(&spec.kind) && spec.index == producer as u64);
    }

    fn renew_if(&self, which: impl Fn(&SegmentSpec) -> bool) {
        for (_, words) in self.memory.iter().filter(|(spec, _)| which(spec)) {
            words[HEADER_WORDS..].iter().for_each(|word| word.store(0, Relaxed));
        }
    }

    /// Says that the receiver is asleep, where producers look for that.
    pub fn park(&self) {
        for (_, words) in self.memory.iter().filter(|(spec, _)| spec.kind == shm::bell::KIND) {
            words[BELL].store(1, Relaxed);
        }
    }

    /// A fingerprint of all words that the link shares.
    pub fn state(&self) -> u64 {
        let words = self.memory.iter().flat_map(|(_, words)| words.iter());
        words.fold(0, |hash: u64, word| {
            (hash.rotate_left(23) ^ word.load(Relaxed)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
    }

    /// The sending end of that producer, in this process.
    pub fn producer(&mut self, index: usize) -> T::Producer {
        self.launching.started(index, std::process::id());
        self.launching.started(PRODUCERS, std::process::id());
        T::producer(&segments::submit_link(self.plan), index, &mut self.attached).expect("a link")
    }

    /// A sending end in the place of one that has died, in this process.
    pub fn heir(&mut self, index: usize) -> T::Producer {
        T::inherit(&segments::submit_link(self.plan), index, &mut self.attached).expect("headers")
    }

    /// The receiving end, in this process.
    pub fn consumer(&mut self) -> T::Consumer {
        if let Some(socket) = &self.socket {
            unlink(socket).expect("a name of ours");
        }
        self.launching.started(PRODUCERS, std::process::id());
        T::consumer(&segments::submit_link(self.plan), &mut self.attached).expect("a link")
    }

    /// A victim whose first message has that number.
    pub fn victim(&self, role: Role, number: u64) -> Victim {
        let (_, orders) = self.orders.iter().find(|(whose, _)| *whose == role).expect("a role that may die");
        let process = match role {
            Role::Producer(index) => index,
            Role::Consumer => PRODUCERS,
            Role::Board => unreachable!("a board's writer is in no queue"),
        };
        Victim::start(self.plan, role, orders, number, |pid| self.launching.started(process, pid))
    }
}

/// Who sends and receives in this process, what was sent and what came.
pub struct Scene<'b, 'a, T: Link> {
    pub bed: &'b mut Bed<'a, T>,
    pub consumer: T::Consumer,
    /// The living producers of this process.
    pub others: Vec<(usize, T::Producer)>,
    /// How many messages of each producer were taken by the ring, and how many came out.
    pub sent: [u64; PRODUCERS],
    pub came: [u64; PRODUCERS],
    /// What must not be.
    pub problems: Problems,
}

impl<'b, 'a, T: Link> Scene<'b, 'a, T> {
    /// New memory, a consumer, and all producers but these.
    pub fn new(bed: &'b mut Bed<'a, T>, without: &[usize]) -> Self {
        bed.renew();
        let mut consumer = bed.consumer();
        // A pipe keeps what is in it for as long as anybody has it open: a process that is just
        // starting, for example.
        while bed.kernel && consumer.try_pop().is_some() {}
        let others: Vec<_> = (0..PRODUCERS).filter(|index| !without.contains(index)).collect();
        let others = others.into_iter().map(|index| (index, bed.producer(index))).collect();
        (0..PRODUCERS as u16).for_each(|index| bed.launching.revive(index, bed.epoch));
        let zero = [0; PRODUCERS];
        Self { bed, consumer, others, sent: zero, came: zero, problems: Problems::default() }
    }

    /// Something that must not be, of that kind.
    pub fn problem(&mut self, kind: &'static str, what: Arguments<'_>) {
        self.problems.add(kind, what);
    }

    /// The others push so many messages, in turns, or until everybody was told that it is full.
    pub fn push(&mut self, messages: u64) {
        let mut refused = 0;
        for turn in 0..messages as usize {
            let turn = turn % self.others.len();
            refused = if self.push_one(turn) { 0 } else { refused + 1 };
            if refused == self.others.len() {
                break;
            }
        }
    }

    fn push_one(&mut self, turn: usize) -> bool {
        let (index, producer) = &mut self.others[turn];
        let ok = producer.try_push(&message(*index, self.sent[*index])).is_ok();
        self.sent[*index] += u64::from(ok);
        ok
    }

    /// Takes up to so many; how many came. Each must be whole, and the next one of its producer.
    pub fn take(&mut self, at_most: u64) -> u64 {
        for taken in 0..at_most {
            let Some((from, got)) = self.consumer.try_pop() else {
                if let Some(fault) = self.consumer.take_fault() {
                    self.problem("damage", format_args!("honest producers, and yet {fault:?}"));
                }
                return taken;
            };
            self.receive(from, got);
        }
        at_most
    }

    /// Takes what there is.
    pub fn take_all(&mut self) -> u64 {
        self.take(u64::MAX)
    }

    /// Judges a message that came.
    pub fn receive(&mut self, from: Option<usize>, got: Message) {
        let (producer, n) = ((got[0] >> 48) as usize, got[0] & ((1 << 48) - 1));
        if producer >= PRODUCERS || got != message(producer, n) {
            return self.problem("torn", format_args!("{got:x?}"));
        }
        if from.is_some_and(|from| from != producer) {
            self.problem("whose", format_args!("{producer}'s message through {from:?}"));
        }
        let due = self.came[producer];
        if n != due {
            let kind = if n < due { "twice or out of order" } else { "lost" };
            self.problem(kind, format_args!("message {n} of producer {producer}, {due} was due"));
        }
        self.came[producer] = n.max(due) + 1;
    }

    /// Everything that these have sent has come.
    pub fn all_came(&mut self, of: &[usize], when: &str) {
        for &index in of {
            let (sent, came) = (self.sent[index], self.came[index]);
            if sent != came {
                self.problem("missing", format_args!("{when}: producer {index} sent {sent}, {came} came"));
            }
        }
    }

    /// Kills a victim, waits until the kernel says that it is dead, and puts up the fence, as the
    /// launcher does. Without all this the engine repairs nothing.
    pub fn fence(&mut self, index: usize, victim: Victim) {
        let control = self.bed.launching.control();
        assert!(!control.life(index as u16).fenced);
        let death = victim.kill();
        self.bed.launching.fence(index as u16, self.bed.epoch, &death);
        assert!(control.life(index as u16).fenced);
    }

    /// Retires the dead as the orchestrator does, once in each duty cycle.
    pub fn retire(&mut self, dead: &[usize]) -> bool {
        let mut left: Vec<usize> = dead.to_vec();
        for _ in 0..CYCLES {
            self.take_all();
            left.retain(|index| !self.consumer.retire(*index));
            if left.is_empty() {
                self.take_all();
                return true;
            }
        }
        false
    }

    /// Starts a producer of this process in the place of a dead one, in memory made anew.
    pub fn revive(&mut self, index: usize) {
        self.bed.renew_own(index);
        self.bed.epoch = (self.bed.epoch + 1) % EPOCHS;
        self.bed.launching.revive(index as u16, self.bed.epoch);
        self.consumer.revive(index);
        self.sent[index] = self.came[index];
        let producer = self.bed.producer(index);
        self.others.push((index, producer));
    }

    /// The ring goes on: fills up to its last place and is emptied, twice. `lost` places may be
    /// missing.
    pub fn two_laps(&mut self, lost: u64, when: &str) {
        let at_most = if self.bed.kernel { self.bed.room } else { u64::MAX };
        let producers = self.others.len() as u64;
        for lap in 0..2 {
            let fits = if self.bed.shared {
                (0..at_most).take_while(|turn| self.push_one((turn % producers) as usize)).count() as u64
            } else {
                let rings = (0..producers)
                    .map(|index| (0..at_most).take_while(|_| self.push_one(index as usize)).count() as u64);
                rings.min().unwrap_or(0)
            };
            if !(self.bed.room - lost..=self.bed.room).contains(&fits) {
                let room = self.bed.room;
                self.problem("room", format_args!("{when}, lap {lap}: {fits} fit, not {room}"));
            }
            self.take_all();
            let living: Vec<usize> = self.others.iter().map(|(index, _)| *index).collect();
            self.all_came(&living, when);
        }
    }
}
