//! The plan of a history: an object, the jobs of its workers, and who is killed; all from a seed.

use crate::ends::{LONG, SHORT};
use crate::job::{Fault, Job, Role};
use crate::random::Random;
use crate::spec::{BoardSpec, PRODUCER_STEP, QueueSpec, Spec};
use shm::board::{BoardShape, NamedWriter};
use shm::queue::ByteQueue;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Spsc,
    Mpsc,
    Board,
}

pub const KINDS: [Kind; 3] = [Kind::Spsc, Kind::Mpsc, Kind::Board];

/// A history before it is made.
pub struct Plan {
    pub spec: Spec,
    pub jobs: Vec<Job>,
    /// Workers that are killed, in this order, each in a phase of its own.
    pub victims: Vec<usize>,
    /// The creator's handle: dropping it removes the queue's name.
    _queue: Option<ByteQueue>,
    board: Option<String>,
}

impl Drop for Plan {
    fn drop(&mut self) {
        // A writer that is dropped removes the board.
        drop(self.board.as_deref().map(NamedWriter::resume));
    }
}

impl Plan {
    /// Creates the object under `name`. `kills` is the maximum number of workers to kill.
    pub fn create(kind: Kind, name: &str, seed: u64, kills: u64, fault: Fault) -> Self {
        let mut random = Random(seed);
        let producers = match kind {
            Kind::Spsc => 1,
            Kind::Mpsc => 2 + random.below(2) as usize,
            Kind::Board => 0,
        };
        let capacity = [2, 4][random.below(2) as usize];
        let words = [SHORT, LONG][random.below(2) as usize];
        let (queue, board, spec) = if kind == Kind::Board {
            let slots = [2, 4, 8][random.below(3) as usize];
            let shape = BoardShape::with_slots(1, SHORT, slots).expect("a board's numbers");
            NamedWriter::create(name, shape).expect("space in /dev/shm").leave();
            (None, Some(name.into()), Spec::Board(BoardSpec::default()))
        } else {
            let queue = ByteQueue::create(name, producers, capacity, 8 * words).expect("space in /dev/shm");
            (Some(queue), None, Spec::Queue(QueueSpec::new(producers, capacity as usize)))
        };
        let kills = if kills == 0 { 0 } else { 1 + random.below(kills) };
        let last_phase = 2 * kills + 1;
        let mut jobs = Vec::new();
        let mut add = |role, operations, producer: usize| {
            let worker = jobs.len();
            jobs.push(Job {
                name: name.into(),
                worker,
                role,
                seed: random.next(),
                operations,
                first_phase: 1,
                last_phase,
                producer,
                words,
                first_value: producer as u64 * PRODUCER_STEP + 1,
                trap: None,
                is_successor: false,
                inherited: None,
                fault,
            });
        };
        if kind == Kind::Board {
            add(Role::Writer, 6, 0);
            add(Role::Reader, 6, 0);
            add(Role::Reader, 6, 0);
        } else {
            (0..producers).for_each(|producer| add(Role::Sender, 5, producer));
            add(Role::Receiver, 3 * producers + 3, 0);
        }
        let victims = choose_victims(&mut jobs, kills, &mut random);
        Self { spec, jobs, victims, _queue: queue, board }
    }

    /// Returns the jobs that end by themselves; a receiver waits for the others.
    pub fn finishing(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(|job| job.role != Role::Receiver)
    }
}

fn choose_victims(jobs: &mut [Job], kills: u64, random: &mut Random) -> Vec<usize> {
    let mut left: Vec<usize> = (0..jobs.len()).collect();
    let mut victims = Vec::new();
    for kill in 0..kills {
        let victim = left.swap_remove(random.below(left.len() as u64) as usize);
        let job = &mut jobs[victim];
        // The last operation of the phase: phase 1, 3, 5 … of 2 · kills + 1.
        let end = ((2 * kill + 1) * job.operations as u64).div_ceil(job.last_phase) - 1;
        job.trap = Some(end.saturating_sub(random.below(2)) as usize);
        victims.push(victim);
    }
    victims
}

/// Returns the job of the successor of a killed worker, which has begun `begun` calls.
pub fn successor(job: &Job, worker: usize, begun: usize, first_phase: u64) -> Job {
    let first_value = job.first_value + begun as u64;
    Job {
        worker,
        seed: !job.seed,
        operations: job.operations.saturating_sub(begun).max(1),
        first_phase,
        first_value,
        trap: None,
        is_successor: true,
        inherited: Some(first_value - 1),
        ..job.clone()
    }
}
