//! The scribbler's process: maps all memory that strategy 0 may write, and overwrites it.

use super::messages::message;
use crate::common::test_child;
use protocol::index::StrategyIndex;
use protocol::plan::{Plan, Role};
use protocol::segments::{self, open_control, submit_link};
use protocol::topology::{self, RunSegment};
use shm::attached::Access;
use shm::memory::{AtomicWords, Region};
use shm::process::start_time;
use shm::random::SplitMix64;
use shm::ring::{Producer, SegmentPlace, SegmentSpec};
use shm::sync::Ordering::Relaxed;
use std::io::Write;
use std::process::{Child, Stdio};
use std::time::Duration;
use system::process;
use techniques::named::{fifo, seqpacket};
use techniques::pipe;
use techniques::with_link;
use zerocopy::IntoBytes;

/// The environment variable with its parameters: `RUN IDLE`.
pub const PARAMETERS: &str = "BULKHEAD_SCRIBBLE";
/// The segment in which it counts its words, which it does not overwrite.
pub const TALLY: &str = "tally";
/// Number of correct messages that it sends first.
pub const CORRECT_MESSAGES: u64 = 20;
/// Words between two updates of the count, and between two writes into the kernel's queues.
const BATCH: u64 = 16;
/// Number of words at the beginning of a region (header and cursors) that are overwritten as often
/// as all others together.
const FRONT_WORDS: u64 = 64;

pub fn start(plan: &Plan, idle: u32) -> Child {
    test_child("scribbler::scribbler_process")
        .env(PARAMETERS, format!("{} {idle}", plan.run))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts")
}

struct Draws(SplitMix64);

impl Draws {
    fn any(&mut self) -> u64 {
        self.0.draw()
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }
}

/// The main function of the process, until it is killed.
pub fn scribble(parameters: &str) -> ! {
    let (run, idle) = parameters.split_once(' ').expect("a run and a pace");
    let idle: u32 = idle.parse().expect("a number");
    let (control, plan) = open_control(run).expect("a run");
    process::die_with_parent(plan.launcher_pid).expect("the test started it");
    let tally = Region::open(&plan.segment_name(TALLY)).expect("a tally").words();
    let all = topology::segments(&plan);
    let writable = writable(&plan, &all);
    let mut kernel = Kernel::open(&plan, &all);
    with_link!(plan.technique, T => {
        let mut attached = segments::attach_with(&plan, None, &control);
        let mut producer = attached.producer::<T>(&submit_link(&plan), 0).expect("a link");
        for n in 0..CORRECT_MESSAGES {
            while producer.try_push(&message(0, n)).is_err() {
                std::thread::yield_now();
            }
        }
    });
    let mut draws = Draws(SplitMix64(start_time(std::process::id()).unwrap_or(0) ^ u64::from(idle)));
    loop {
        for _ in 0..BATCH {
            scribble_once(&writable, &mut draws);
            (0..idle).for_each(|_| std::hint::spin_loop());
        }
        kernel.send_garbage(&mut draws);
        tally[0].fetch_add(BATCH, Relaxed);
    }
}

fn writable(plan: &Plan, all: &[RunSegment]) -> Vec<AtomicWords> {
    let may_write =
        |segment: &&RunSegment| segment.access([Role::Strategy(StrategyIndex(0))]) == Some(Access::Write);
    let open = |spec: &SegmentSpec| {
        let name = plan.segment_name(&spec.name);
        match spec.place {
            SegmentPlace::Memory => Some(Region::open(&name).expect("a segment").words()),
            SegmentPlace::Reserve => Some(Region::open_reserve(&name).expect("a segment").words()),
            SegmentPlace::Fifo | SegmentPlace::Socket | SegmentPlace::Directory => None,
        }
    };
    all.iter().filter(may_write).map(|segment| &segment.spec).filter_map(open).collect()
}

/// Writes one word at a random index: a value that cursors, stamps and links are sensitive to, or a
/// random one.
fn scribble_once(writable: &[AtomicWords], draws: &mut Draws) {
    let words = &writable[draws.below(writable.len())];
    let front = words.len().min(FRONT_WORDS as usize);
    let within = if draws.below(2) == 0 { front } else { words.len() };
    let index = draws.below(within);
    let other_word = words[draws.below(words.len())].load(Relaxed);
    let next = words[(index + 1) % words.len()].load(Relaxed);
    let current = words[index].load(Relaxed);
    let value = match draws.below(10) {
        0 => 0,
        1 => u64::MAX,
        2 => current.wrapping_add(1),
        3 => current.wrapping_sub(1),
        4 => next.wrapping_add(1),
        5 => next.wrapping_sub(1),
        6 => draws.any() % 70,
        7 => other_word,
        // A link of `linked`, or similar.
        8 => ((draws.any() % 8) << 24) | ((draws.any() % 64) << 1) | 1,
        _ => draws.any(),
    };
    words[index].store(value, Relaxed);
}

/// The kernel's queue, if the technique has one.
enum Kernel {
    None,
    Pipe(std::fs::File),
    Socket { name: String, stream: Option<std::os::unix::net::UnixStream> },
}

impl Kernel {
    fn open(plan: &Plan, all: &[RunSegment]) -> Self {
        let name = plan.segment_name("submit");
        match all.iter().find(|segment| segment.spec.name == "submit").map(|segment| segment.spec.place) {
            Some(SegmentPlace::Fifo) => Self::Pipe(fifo::open_writer(&name).expect("a pipe")),
            Some(SegmentPlace::Socket) => Self::Socket { name, stream: None },
            _ => Self::None,
        }
    }

    /// Sends bytes of random or of valid lengths.
    fn send_garbage(&mut self, draws: &mut Draws) {
        let len = [56, 8, 1 + draws.below(72), draws.below(5000)][draws.below(4)];
        let mut bytes: Vec<u8> = (0..len).map(|_| draws.any() as u8).collect();
        if draws.below(2) == 0 {
            // A piece of a valid frame.
            let frame = pipe::frame(&message(0, draws.any()));
            bytes = frame.as_bytes()[draws.below(64)..].to_vec();
            bytes.truncate(1 + draws.below(64));
        }
        match self {
            Self::None => {}
            // A full queue is ignored.
            Self::Pipe(pipe) => _ = pipe.write(&bytes),
            Self::Socket { name, stream } => {
                let sent = stream.as_mut().is_some_and(|stream| match stream.write(&bytes) {
                    Ok(_) => true,
                    Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
                });
                if !sent || draws.below(50) == 0 {
                    // A new connection, with a random identity.
                    *stream = seqpacket::connect(name, Duration::ZERO).ok();
                    let index = [0, 1, 2, draws.any()][draws.below(4)];
                    let _ = stream.as_mut().map(|stream| stream.write(&index.to_le_bytes()));
                }
            }
        }
    }
}
