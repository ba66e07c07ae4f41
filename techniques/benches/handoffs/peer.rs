//! The peers of the measuring thread: a thread, a process, and a thread with other crates' rings.
//!
//! All peers are pinned to the same core and run all the time, so that candidates can alternate.
//! Each sleeps on a futex until its gate opens, publishes that it runs, does one job with the
//! measuring thread, and sleeps again: only one of them spins at a time.

use crate::{Options, answers, flow};
use protocol::wire::MESSAGE_WORDS;
use shm::futex;
use shm::memory::{AtomicWords, Region};
use shm::memory::{list_segments, unlink};
use shm::process::start_time;
use shm::ring::spsc::{self, Consumer, Producer};
use shm::sync::Ordering;
use std::process::{Child, Command};
use std::time::Duration;
use system::floor::{self, wait};
use system::{pin, process};
use techniques::element::LineMessage;

/// The hidden argument of the peer process; its parameters follow in the next one.
pub const PEER_FLAG: &str = "--as-peer";
const PREFIX: &str = "bulkhead.bench-";

/// A job of a peer, with a number of messages.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u64)]
pub enum Job {
    /// Bounces the cache line, waiting with the pause hint.
    Floor,
    /// Bounces the cache line without the pause hint.
    FloorBare,
    /// Swaps the cache line back.
    Swap,
    /// Echoes every message.
    Echo,
    /// Echoes every message, waiting without the pause hint.
    EchoBare,
    /// Pushes messages one by one.
    Push,
    /// Pushes messages in chunks of 64 (rtrb only).
    PushChunks,
    /// Ends the peer.
    Quit,
}

const JOBS: [Job; 8] =
    [Job::Floor, Job::FloorBare, Job::Swap, Job::Echo, Job::EchoBare, Job::Push, Job::PushChunks, Job::Quit];

// The words of a gate: each on lines of its own.
const TURN: usize = 0;
const RUNNING: usize = 16;
const FINISHED: usize = 32;
const JOB: usize = 48;
const COUNT: usize = 49;
const GATE_WORDS: usize = 64;

/// A gate that lets a peer do one job at a time.
#[derive(Clone)]
pub struct Gate(AtomicWords);

impl Gate {
    /// Starts a job of the peer, and returns once it runs.
    fn open(&self, job: Job, count: u64) {
        self.0[JOB].store(job as u64, Ordering::Relaxed);
        self.0[COUNT].store(count, Ordering::Relaxed);
        // Release: pairs with the Acquire in `serve`. The measuring thread is the only one to write
        // the turn.
        let turn = self.0[TURN].load(Ordering::Relaxed) + 1;
        self.0[TURN].store(turn, Ordering::Release);
        futex::wake_one(&self.0[TURN]);
        wait::<true>(|| self.0[RUNNING].load(Ordering::Acquire) == turn);
    }

    /// Returns once the peer has left its job.
    fn close(&self) {
        let turn = self.0[TURN].load(Ordering::Relaxed);
        wait::<true>(|| self.0[FINISHED].load(Ordering::Acquire) == turn);
    }

    /// Runs jobs until [`Job::Quit`]; the peer's side.
    fn serve(&self, mut work: impl FnMut(Job, u64)) {
        for turn in 1u64.. {
            while self.0[TURN].load(Ordering::Acquire) < turn {
                futex::wait(&self.0[TURN], turn as u32 - 1, Duration::from_secs(1));
            }
            let job = JOBS[self.0[JOB].load(Ordering::Relaxed) as usize % JOBS.len()];
            let count = self.0[COUNT].load(Ordering::Relaxed);
            self.0[RUNNING].store(turn, Ordering::Release);
            if job != Job::Quit {
                work(job, count);
            }
            self.0[FINISHED].store(turn, Ordering::Release);
            if job == Job::Quit {
                return;
            }
        }
    }
}

/// The memory shared with a peer: a gate, the cache line of the floor, a ring each way.
struct Arena {
    gate: Gate,
    line: AtomicWords,
    there: AtomicWords,
    back: AtomicWords,
}

impl Arena {
    fn words(capacity: usize) -> usize {
        GATE_WORDS + 16 + 2 * spsc::ring_words(capacity, MESSAGE_WORDS)
    }

    fn new(words: &AtomicWords, capacity: usize) -> Self {
        let ring = spsc::ring_words(capacity, MESSAGE_WORDS);
        Self {
            gate: Gate(words.slice(0, GATE_WORDS)),
            line: words.slice(GATE_WORDS, 16),
            there: words.slice(GATE_WORDS + 16, ring),
            back: words.slice(GATE_WORDS + 16 + ring, ring),
        }
    }

    /// Runs the peer's side, in a thread or a process.
    fn serve(&self) {
        let mut consumer = Consumer::attach(&self.there).expect("the measuring thread wrote the header");
        let mut producer = Producer::attach(&self.back).expect("the measuring thread wrote the header");
        self.gate.serve(|job, count| match job {
            Job::Floor => floor::answer::<true>(&self.line[0]),
            Job::FloorBare => floor::answer::<false>(&self.line[0]),
            Job::Swap => (0..count).for_each(|_| answers::swap(&self.line[0], 1, 0)),
            Job::Echo => answers::echo::<true>(&mut consumer, &mut producer, count),
            Job::EchoBare => answers::echo::<false>(&mut consumer, &mut producer, count),
            Job::Push | Job::PushChunks => flow::send(&mut producer, count),
            Job::Quit => {}
        });
    }
}

/// The measuring thread's handle of a peer with our rings.
pub struct Peer {
    gate: Gate,
    /// The cache line of the floor between this thread and the peer.
    pub line: AtomicWords,
    /// The ring to the peer.
    pub producer: Producer,
    /// The ring from the peer.
    pub consumer: Consumer,
}

impl Peer {
    fn new(arena: &Arena) -> Self {
        Self {
            gate: arena.gate.clone(),
            line: arena.line.clone(),
            producer: Producer::attach(&arena.there).expect("a fresh ring has a good header"),
            consumer: Consumer::attach(&arena.back).expect("a fresh ring has a good header"),
        }
    }

    /// Runs one job with the peer; `ours` is this thread's part.
    pub fn job<R>(&mut self, job: Job, count: u64, ours: impl FnOnce(&mut Self) -> R) -> R {
        self.gate.open(job, count);
        let result = ours(self);
        self.gate.close();
        result
    }
}

/// The measuring thread's handle of a peer with rtrb's rings.
pub struct Rtrb {
    gate: Gate,
    /// The ring to the peer.
    pub producer: rtrb::Producer<LineMessage>,
    /// The ring from the peer.
    pub consumer: rtrb::Consumer<LineMessage>,
}

impl Rtrb {
    /// Runs one job with the peer, as [`Peer::job`] does.
    pub fn job<R>(&mut self, job: Job, count: u64, ours: impl FnOnce(&mut Self) -> R) -> R {
        self.gate.open(job, count);
        let result = ours(self);
        self.gate.close();
        result
    }
}

/// All peers. They end when this is dropped, also by a panic; the process also ends when this one
/// is killed.
pub struct Peers {
    /// Our rings, between processes.
    pub process: Peer,
    /// Our rings, within this process.
    pub thread: Peer,
    /// The crate rtrb, which works within a process only.
    pub rtrb: Rtrb,
}

impl Peers {
    /// Starts the peers and pins this thread.
    pub fn start(options: &Options) -> Result<Self, Box<dyn std::error::Error>> {
        let (ours, theirs) = options.cores;
        let capacity = options.capacity;
        let process = start_process(theirs, capacity)?;

        let words = Region::memfd("bench-thread", Arena::words(capacity))?.words();
        let arena = fresh_arena(&words, capacity);
        let thread = Peer::new(&arena);
        start_thread(theirs, move || arena.serve())?;

        let gate = Gate(Region::memfd("bench-rtrb", GATE_WORDS)?.words());
        let (producer, mut from_us) = rtrb::RingBuffer::new(capacity);
        let (mut to_us, consumer) = rtrb::RingBuffer::new(capacity);
        let rtrb = Rtrb { gate: gate.clone(), producer, consumer };
        start_thread(theirs, move || {
            gate.serve(|job, count| match job {
                Job::Echo => answers::echo_rtrb(&mut from_us, &mut to_us, count),
                Job::PushChunks => answers::send_chunks(&mut to_us, count),
                _ => flow::send(&mut to_us, count),
            });
        })?;
        pin::pin_to(ours)?;
        Ok(Self { process, thread, rtrb })
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        for gate in [&self.process.gate, &self.thread.gate, &self.rtrb.gate] {
            gate.open(Job::Quit, 0);
        }
    }
}

fn fresh_arena(words: &AtomicWords, capacity: usize) -> Arena {
    let arena = Arena::new(words, capacity);
    spsc::write_header::<MESSAGE_WORDS>(&arena.there, capacity);
    spsc::write_header::<MESSAGE_WORDS>(&arena.back, capacity);
    arena
}

/// Starts a thread, pins it, and then lets it serve.
fn start_thread(core: u32, serve: impl FnOnce() + Send + 'static) -> Result<(), pin::PinError> {
    let (pinned, is_pinned) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let result = pin::pin_to(core);
        let goes_on = result.is_ok();
        let _ = pinned.send(result);
        if goes_on {
            serve();
        }
    });
    is_pinned.recv().expect("the thread says whether it is pinned")
}

/// Removes the segment's name when dropped. The peer removes it as soon as it has mapped it; this
/// is for a peer that fails before that.
struct Name(String);

impl Drop for Name {
    fn drop(&mut self) {
        let _ = unlink(&self.0);
    }
}

fn start_process(core: u32, capacity: usize) -> Result<Peer, Box<dyn std::error::Error>> {
    let pid = std::process::id();
    let start = start_time(pid).ok_or("/proc cannot be read")?;
    let name = Name(format!("{PREFIX}{pid}-{start}.handoffs"));
    let words = Region::create(&name.0, Arena::words(capacity))?.words();
    let arena = fresh_arena(&words, capacity);
    let orders = format!("{} {core} {pid} {capacity}", name.0);
    let child = Command::new(std::env::current_exe()?).args([PEER_FLAG, &orders]).spawn()?;
    watch(child);
    let mut peer = Peer::new(&arena);
    // An empty job: returns when the peer has attached, so the name is not needed any more.
    peer.job(Job::Push, 0, |_| ());
    Ok(peer)
}

/// Ends this process if the peer fails: the measuring thread would wait for ever.
fn watch(mut child: Child) {
    std::thread::spawn(move || {
        let status = child.wait();
        if !status.as_ref().is_ok_and(std::process::ExitStatus::success) {
            eprintln!("handoffs: the peer process has ended: {status:?}");
            std::process::exit(1);
        }
    });
}

/// The main function of the peer process.
pub fn child_main(orders: Option<String>) {
    let orders = orders.unwrap_or_default();
    let words: Vec<&str> = orders.split(' ').collect();
    let [name, core, parent, capacity] = words[..] else { panic!("not for people: {PEER_FLAG} {orders}") };
    let number = |text: &str| text.parse::<u32>().expect("a number");
    process::die_with_parent(number(parent)).expect("the parent is there");
    let segment = Region::open(name).expect("the parent created it").words();
    unlink(name).expect("our own segment");
    pin::pin_to(number(core)).expect("the parent chose an allowed core");
    Arena::new(&segment, number(capacity) as usize).serve();
}

/// Removes segments of earlier runs that were killed before their peer started.
pub fn remove_leftovers() {
    let owner = |name: &str| -> Option<(u32, u64)> {
        let (pid, start) = name.strip_prefix(PREFIX)?.split_once('.')?.0.split_once('-')?;
        Some((pid.parse().ok()?, start.parse().ok()?))
    };
    for name in list_segments().unwrap_or_default() {
        if owner(&name).is_some_and(|(pid, start)| !process::is_running(pid, start)) {
            let _ = unlink(&name);
        }
    }
}
