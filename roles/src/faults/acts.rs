//! The acts themselves: each kind of fault, as a strategy does it to itself.

use super::draws::Draws;
use super::takings::{Place, Taking};
use protocol::plan::FaultKind;
use protocol::status::{StatusField, StatusWriter, ThreadState};
use shm::bell;
use shm::futex;
use shm::memory::AtomicWords;
use shm::memory::header::HEADER_WORDS;
use shm::sync::Ordering;
use system::{fault, memory};

/// What one exit leaves behind as its code.
const EXIT_CODE: i32 = 3;
/// Far beyond what any process may have here.
const TOO_MUCH: usize = 1 << 40;
/// What a leak takes in each duty cycle.
const LEAK: usize = 1 << 20;
/// How many words at the beginning of a region are hit as often as all others together: its header
/// and cursors.
const HEAD_WORDS: u64 = 64;

/// What the acts need.
pub struct Means {
    /// Whose acts they are.
    strategy: u16,
    /// The memory of this process is not limited yet.
    is_unlimited: bool,
    /// What it knows of its surroundings.
    place: Place,
    /// Takes what is everybody's in each duty cycle from now on, up to a bound.
    taking: Option<Taking>,
    /// Everything that this process can write of the run's memory.
    pub writable: Vec<AtomicWords>,
    /// Takes memory in each duty cycle from now on.
    pub leaks: bool,
    /// Sends as fast as it can from now on.
    pub floods: bool,
    /// What it sends from now on does not arrive.
    pub loses: bool,
    /// Leaves the next push where its place is claimed and its message not shown.
    pub holds: bool,
    /// What its thread says about itself.
    pub status: Option<StatusWriter>,
}

impl Means {
    /// What the acts of that strategy need; `is_unlimited`: nothing limits the memory of its
    /// process yet.
    pub const fn new(strategy: u16, is_unlimited: bool, place: Place) -> Self {
        Self {
            strategy,
            is_unlimited,
            place,
            taking: None,
            writable: Vec::new(),
            leaks: false,
            floods: false,
            loses: false,
            holds: false,
            status: None,
        }
    }

    /// Nobody's leak may end in the death of the machine.
    fn limit_memory(&mut self) {
        if std::mem::take(&mut self.is_unlimited) {
            memory::limit_growth(memory::STRATEGY_MEMORY_BYTES)
                .expect("an ordinary process may limit its memory");
        }
    }

    /// Takes some memory, touches it, and never gives it back; nothing for who does not leak.
    pub fn leak(&self) {
        if self.leaks {
            std::mem::forget(std::hint::black_box(vec![1u8; LEAK]));
        }
    }

    /// Takes some more, and ends when it has all that it was after, or is refused it; nothing for
    /// who takes nothing.
    pub fn take(&mut self) {
        if let Some(has_all) = self.taking.as_mut().and_then(Taking::step) {
            fault::exit(if has_all { FaultKind::EXIT_GOT } else { FaultKind::EXIT_REFUSED })
        }
    }
}

/// Does it. Returns only where the strategy goes on: after a stop, with a leak, with a flood, with
/// lost orders, with a place that it holds, with headers that it has overwritten.
pub fn act(kind: FaultKind, means: &mut Means) {
    match kind {
        FaultKind::Kill => fault::kill(),
        FaultKind::Stop => fault::stop(),
        FaultKind::Hang => hang(),
        FaultKind::Segv => fault::segv(),
        FaultKind::Abort => std::process::abort(),
        FaultKind::Exit => fault::exit(EXIT_CODE),
        FaultKind::Oom => {
            means.limit_memory();
            // The allocator fails, and that aborts.
            drop(std::hint::black_box(Vec::<u8>::with_capacity(TOO_MUCH)));
            std::process::abort()
        }
        FaultKind::Leak => {
            means.limit_memory();
            means.leaks = true;
        }
        FaultKind::Scribble => scribble(means),
        FaultKind::Flood => means.floods = true,
        FaultKind::Forge | FaultKind::Feign => {
            lie(kind, means);
            hang()
        }
        FaultKind::Lose => means.loses = true,
        FaultKind::HoldClaim => means.holds = true,
        FaultKind::ForgeHeader => forge_headers(&means.writable),
        FaultKind::Jam => jam(&means.writable),
        FaultKind::Forkbomb
        | FaultKind::Descriptors
        | FaultKind::Disk
        | FaultKind::Children
        | FaultKind::Peek
        | FaultKind::Network
        | FaultKind::Punch => {
            means.taking = Some(Taking::new(kind, means.place.clone(), means.writable.clone()));
        }
        // No strategy's: the planner refuses them.
        FaultKind::Slow | FaultKind::Disconnect | FaultKind::Reject | FaultKind::Mute | FaultKind::Garble => {
        }
    }
}

/// Says of its thread what is not so.
pub fn lie(kind: FaultKind, means: &Means) {
    let Some(status) = &means.status else { return };
    match kind {
        FaultKind::Forge => status.set(StatusField::HeartbeatTicks, u64::MAX),
        _ => status.set_state(ThreadState::Done),
    }
}

fn hang() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

/// Writes over the header of everything.
pub fn forge_headers(writable: &[AtomicWords]) {
    for word in writable.iter().flat_map(|words| &words[..HEADER_WORDS]) {
        word.store(u64::MAX, Ordering::Relaxed);
    }
}

/// Writes over its doorbells and wakes whoever sleeps there, for ever. Their headers stay.
fn jam(writable: &[AtomicWords]) -> ! {
    let is_bell = |words: &&AtomicWords| words.header(bell::KIND).is_ok();
    let bells: Vec<&AtomicWords> = writable.iter().filter(is_bell).collect();
    for round in 0u64.. {
        for word in bells.iter().flat_map(|words| &words[HEADER_WORDS..]) {
            // In turn what a thread asleep has there, what one awake has there, and what nobody has
            // there.
            word.store([1, 0, u64::MAX][round as usize % 3].wrapping_mul(round | 1), Ordering::Relaxed);
            futex::wake_all(word);
        }
    }
    hang()
}

/// Writes for ever.
fn scribble(means: &Means) -> ! {
    let mut draws = Draws::new(means.strategy.into(), Draws::SCRIBBLES);
    loop {
        scribble_once(&means.writable, &mut draws);
    }
}

/// Writes one word somewhere: what cursors, sequences and lengths are most sensitive to, or
/// anything.
pub fn scribble_once(writable: &[AtomicWords], draws: &mut Draws) {
    let Some(words) = writable.get(draws.below(writable.len() as u64) as usize) else { return };
    let len = words.len() as u64;
    let within = if draws.below(2) == 0 { len.min(HEAD_WORDS) } else { len };
    let place = draws.below(within) as usize;
    let there = words[place].load(Ordering::Relaxed);
    let value = match draws.below(7) {
        0 => 0,
        1 => u64::MAX,
        2 => there.wrapping_add(1),
        3 => there.wrapping_sub(1),
        4 => draws.below(16),
        5 => words[(place + 1) % words.len()].load(Ordering::Relaxed),
        _ => draws.below(u64::MAX),
    };
    words[place].store(value, Ordering::Relaxed);
}
