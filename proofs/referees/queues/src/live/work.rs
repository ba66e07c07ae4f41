//! The work that is equal for all compared crates: one end writes when a write is due, the others
//! poll, and every value carries its number and start time.

use crate::figures::Figures;
use shm::memory::AtomicWords;
use shm::sync::Ordering;
use std::time::Duration;
use system::clock::{Clock, Monotonic};
use system::pin;
use system::usage::thread_cpu_ns;

pub const WORDS: usize = 8;
pub type Value = [u64; WORDS];
/// Writes a second where they are paced.
const RATE: f64 = 10_000.0;
/// Words differ by this.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
/// Time for which a slow reader holds a value that it has read.
pub const HOLD: Duration = Duration::from_millis(20);

/// Index of the control word with the progress of the round.
pub const STATE: usize = 0;
/// Index of the control word with the start time.
pub const START: usize = 1;
/// Number of control words that processes share.
pub const CONTROL: usize = 512;
/// Value of [`STATE`] while the round runs.
pub const GO: u64 = 1;
/// Value of [`STATE`] once the writer has ended.
pub const OVER: u64 = 2;

/// A reader's step with a compared crate: it gets the newest value, or for a queue the next one,
/// and holds it for the given time. Returns whether it found a newer value, and whether the value
/// changed while a reference to it was kept.
pub trait Read<R>: Fn(&mut R, &mut Value, Duration) -> (bool, bool) + Copy + Send + 'static {}

impl<R, F: Fn(&mut R, &mut Value, Duration) -> (bool, bool) + Copy + Send + 'static> Read<R> for F {}

/// A [`Read`] of a crate whose readers get copies. `read` returns `false` if it sees no newer
/// value.
pub fn copies<R>(read: impl Fn(&mut R, &mut Value) -> bool + Copy + Send + 'static) -> impl Read<R> {
    #[inline(always)]
    move |reader: &mut R, into: &mut Value, hold: Duration| {
        let found = read(reader, into);
        if found && !hold.is_zero() {
            std::thread::sleep(hold);
        }
        (found, false)
    }
}

/// The end of a [`Read`] of a crate whose readers get references.
///
/// # Safety
/// `value` must be mapped until this returns.
#[inline(always)]
pub unsafe fn keep(value: *const Value, into: &mut Value, hold: Duration) -> (bool, bool) {
    // SAFETY: mapped; volatile, because another process may write it.
    *into = unsafe { value.read_volatile() };
    if hold.is_zero() {
        return (true, false);
    }
    std::thread::sleep(hold);
    // SAFETY: as before.
    (true, unsafe { value.read_volatile() } != *into)
}

#[derive(Clone, Copy, PartialEq)]
pub enum Load {
    /// Writes are due at Poisson arrivals.
    Paced,
    /// Poisson arrivals, and the first reader is slow.
    Slow,
    /// Writes follow each other without a pause.
    Stress,
}

impl Load {
    /// Returns how long reader `number`, from 1, keeps a value.
    pub fn hold(self, number: usize) -> Duration {
        if self == Self::Slow && number == 1 { HOLD } else { Duration::ZERO }
    }

    /// All loads with their names and descriptions.
    pub const ALL: [(Self, &'static str, &'static str); 3] = [
        (Self::Paced, "poisson", "Poisson, 10,000 writes/s"),
        (Self::Stress, "stress", "as fast as it goes"),
        (Self::Slow, "slow", "Poisson, 10,000 writes/s; the first reader keeps each value for 20 ms"),
    ];
}

/// Returns when each write is due, in nanoseconds; equal for all compared crates. Empty: nothing is
/// due.
pub fn due(load: Load, ns: u64) -> Vec<u64> {
    let (mut state, mut now, mut times) = (STEP, 0.0, Vec::new());
    while load != Load::Stress && now < ns as f64 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let unit = ((state >> 11) + 1) as f64 / (1u64 << 53) as f64;
        now -= unit.ln() * 1e9 / RATE;
        times.push(now as u64);
    }
    times
}

fn value(number: u64, ns: u64) -> Value {
    let mut value = [number; WORDS];
    value[1] = ns;
    for (place, word) in value.iter_mut().enumerate().skip(2) {
        *word = (number ^ ns).wrapping_mul(STEP).wrapping_add(place as u64);
    }
    value
}

/// Pins the writer (0) or a reader to its core, and returns whether readers share cores.
pub fn place(agent: usize, readers: usize) -> bool {
    let cores = pin::allowed_cores();
    let core = match cores.as_slice() {
        [] => None,
        [only] => Some(*only),
        [first, rest @ ..] => Some(if agent == 0 { *first } else { rest[(agent - 1) % rest.len()] }),
    };
    let _ = core.map(pin::pin_to);
    readers + 1 > cores.len()
}

fn start(control: &AtomicWords) -> u64 {
    // Acquire: pairs with the store that starts the round, after that of the start time.
    while control[STATE].load(Ordering::Acquire) < GO {
        std::thread::sleep(Duration::from_micros(50));
    }
    control[START].load(Ordering::Relaxed)
}

pub fn write(mut write: impl FnMut(&Value), control: &AtomicWords, due: &[u64], ns: u64) -> Figures {
    let mut mine = Figures::new();
    let start = start(control);
    let cpu = thread_cpu_ns();
    loop {
        let wanted = match due.get(mine.writes as usize) {
            Some(due) => start + due,
            None if due.is_empty() => start,
            None => break,
        };
        while Monotonic.now() < wanted {
            std::hint::spin_loop();
        }
        let begin = Monotonic.now();
        // What is due may be late, but not for ever.
        if begin > start + 2 * ns || (due.is_empty() && begin > start + ns) {
            break;
        }
        mine.writes += 1;
        write(&value(mine.writes, begin));
        let done = Monotonic.now();
        mine.write.saturating_record((done - begin).max(1));
        mine.from_due.saturating_record((done - wanted).max(1));
    }
    mine.ns = Monotonic.now().saturating_sub(start);
    mine.writer_cpu = thread_cpu_ns() - cpu;
    control[STATE].store(OVER, Ordering::Release);
    mine
}

/// Reads until the writer has ended and no newer value exists.
pub fn read<R>(
    reader: &mut R,
    read: impl Read<R>,
    control: &AtomicWords,
    shared: bool,
    hold: Duration,
) -> Figures {
    let (mut mine, mut into, mut last) = (Figures::new(), [0; WORDS], 0);
    start(control);
    let cpu = thread_cpu_ns();
    loop {
        let was_over = control[STATE].load(Ordering::Acquire) == OVER;
        let hold = if was_over { Duration::ZERO } else { hold };
        let (found, changed) = read(reader, &mut into, hold);
        let got = Monotonic.now() - if found { hold.as_nanos() as u64 } else { 0 };
        mine.changed += u64::from(changed);
        if found && into[0] != last && into[0] != 0 {
            mine.reads += 1;
            let is_whole = into == value(into[0], into[1]) && into[0] > last;
            mine.torn += u64::from(!is_whole);
            if !is_whole {
                // Its number is meaningless.
                continue;
            }
            mine.missed += into[0] - last - 1;
            last = into[0];
            mine.propagation.saturating_record(got.saturating_sub(into[1]).max(1));
        } else if was_over {
            mine.reader_cpu = thread_cpu_ns() - cpu;
            break mine;
        } else if shared {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}
