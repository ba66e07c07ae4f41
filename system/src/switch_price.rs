//! The price of a switch between address spaces: how much longer a core takes to go on to a thread
//! of another process than to one of its own.
//!
//! Two sides on one core wake each other in turn through a futex, as parked strategies that share a
//! core are woken. The other side is a thread, then a process, in short alternated batches: what
//! both do is the same code over the same memory, so the difference is the switch. Each side may
//! walk memory of its own in its turn, for what a switch costs later: lines and translations that
//! have to be fetched again.

use crate::fault::exit;
use crate::pin::{PinError, pin_to};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};
use shm::futex;
use shm::memory::{Region, RegionError};
use shm::sync::{AtomicU64, Ordering};
use std::hint::black_box;
use std::time::{Duration, Instant};
use thiserror::Error;

/// A side that is not woken for this long looks whether the other one is gone.
const PATIENCE: Duration = Duration::from_millis(100);
/// Maximum time of a side without its turn: the other one has died.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// Turns of a side without a measurement at the start of a batch.
const WARM_UP: u32 = 20;
const CACHE_LINE: usize = 64;
/// Words of the shared segment.
const WORDS: usize = 16;
/// The word that ends a batch: above every turn.
const END: u64 = 1 << 31;

/// Two measured costs of one context switch on a core, in nanoseconds: between threads of one
/// process, and between processes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwitchPair {
    /// Nanoseconds for a switch between two threads of one process.
    pub thread_ns: f64,
    /// Nanoseconds for a switch between threads of two processes.
    pub process_ns: f64,
}

/// The reason why switches between address spaces cannot be measured.
#[derive(Debug, Error)]
pub enum SwitchError {
    /// The measuring thread may not run on the requested core.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// The system refuses the shared memory of the measurement.
    #[error(transparent)]
    Memory(#[from] RegionError),
    /// The system refuses to start a process for the measurement.
    #[error("cannot start the other side: {0}")]
    Start(#[from] std::io::Error),
    /// The other side was not scheduled in time, or died.
    #[error("the other side did not answer within two seconds")]
    Silent,
}

/// The word that both sides share: whose turn it is.
struct Turn<'a>(&'a AtomicU64);

impl Turn<'_> {
    /// Waits until the turn is `wanted`; `false` at the end of the batch, and if nobody wakes us.
    fn wait(&self, wanted: u64) -> bool {
        let since = Instant::now();
        loop {
            // Acquire: pairs with the Release of `pass`.
            let turn = self.0.load(Ordering::Acquire);
            if turn == wanted {
                return true;
            }
            if turn >= END || since.elapsed() > MAX_WAIT {
                return false;
            }
            futex::wait(self.0, turn as u32, PATIENCE);
        }
    }

    fn pass(&self, turn: u64) {
        self.0.store(turn, Ordering::Release);
        futex::wake_all(self.0);
    }

    /// The answering side: walks its memory in each odd turn.
    fn answer(&self, memory: &mut [u8]) {
        let mut turn = 1;
        while self.wait(turn) {
            walk(memory);
            self.pass(turn + 1);
            turn += 2;
        }
    }

    /// The asking side, for at least `time`; nanoseconds for one switch.
    fn ask(&self, memory: &mut [u8], time: Duration) -> Result<f64, SwitchError> {
        let (mut turns, mut since) = (0, Instant::now());
        let result = loop {
            walk(memory);
            self.pass(u64::from(2 * turns + 1));
            if !self.wait(u64::from(2 * turns + 2)) {
                break Err(SwitchError::Silent);
            }
            turns += 1;
            if turns == WARM_UP {
                since = Instant::now();
            }
            if turns > WARM_UP && since.elapsed() >= time {
                break Ok(since.elapsed().as_nanos() as f64 / f64::from(2 * (turns - WARM_UP)));
            }
        };
        self.pass(END);
        result
    }
}

/// Reads and writes a byte of each line.
fn walk(memory: &mut [u8]) {
    for line in memory.chunks_mut(CACHE_LINE) {
        line[0] = black_box(line[0].wrapping_add(1));
    }
}

/// Measures the cost of context switches on one core in pairs of batches: between threads, then
/// between processes, in alternated order. In its turn each side walks `set_bytes` of its own
/// memory, 0 for none. A batch takes `time` and a start. Fewer pairs once `stop` returns `true`.
///
/// Forks: call it while no other thread of the process holds a lock that `fork` would copy.
///
/// # Errors
/// The core may not be used, the system starts no process, or the other side does not run.
pub fn switch_pairs(
    core: u32,
    set_bytes: usize,
    pairs: u32,
    time: Duration,
    stop: impl Fn() -> bool + Sync,
) -> Result<Vec<SwitchPair>, SwitchError> {
    let all = std::thread::scope(|scope| {
        // A thread of its own: the caller keeps its cores.
        let measuring = scope.spawn(|| {
            pin_to(core)?;
            let (mut own, mut others) = (vec![1; set_bytes], vec![1; set_bytes]);
            let mut all = Vec::new();
            for pair in 0..pairs {
                if stop() {
                    break;
                }
                let mut measure = |is_process| batch(core, is_process, &mut own, &mut others, time);
                let (thread_ns, process_ns) = if pair % 2 == 0 {
                    let thread_ns = measure(false)?;
                    (thread_ns, measure(true)?)
                } else {
                    let process_ns = measure(true)?;
                    (measure(false)?, process_ns)
                };
                all.push(SwitchPair { thread_ns, process_ns });
            }
            Ok(all)
        });
        measuring.join()
    });
    all.unwrap_or(Err(SwitchError::Silent))
}

fn batch(
    core: u32,
    is_process: bool,
    own: &mut [u8],
    others: &mut [u8],
    time: Duration,
) -> Result<f64, SwitchError> {
    // Shared with the child: a private page would be copied.
    let words = Region::memfd("switch", WORDS)?.words();
    let turn = Turn(&words[0]);
    if !is_process {
        return std::thread::scope(|scope| {
            scope.spawn(|| match pin_to(core) {
                Ok(()) => Turn(&words[0]).answer(others),
                Err(_) => Turn(&words[0]).pass(END),
            });
            turn.ask(own, time)
        });
    }
    // SAFETY: the child uses memory that it has already, and system calls; it takes no lock,
    // allocates nothing and drops nothing. It is this thread's copy and so on its core.
    match unsafe { fork() }.map_err(std::io::Error::from)? {
        ForkResult::Child => {
            turn.answer(others);
            exit(0)
        }
        ForkResult::Parent { child } => {
            let result = turn.ask(own, time);
            // It has found the end, or leaves after its longest wait.
            let _ = waitpid(child, None);
            result
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_take_turns() {
        let _only_one = crate::only_one_has_children();
        let core = crate::pin::allowed_cores()[0];
        let pairs = switch_pairs(core, 4096, 3, Duration::from_millis(1), || false).unwrap();
        assert_eq!(pairs.len(), 3);
        assert!(pairs.iter().all(|pair| pair.thread_ns > 0.0 && pair.process_ns > 0.0), "{pairs:?}");
        assert_eq!(switch_pairs(core, 0, 3, Duration::from_millis(1), || true).unwrap(), []);
    }

    #[test]
    fn silent_side_is_an_error_and_no_endless_wait() {
        let word = AtomicU64::new(0);
        // Nobody answers.
        let result = Turn(&word).ask(&mut [], Duration::from_millis(1));
        assert!(matches!(result, Err(SwitchError::Silent)));
        assert_eq!(word.load(Ordering::Relaxed), END, "a late side finds the end");
    }
}
