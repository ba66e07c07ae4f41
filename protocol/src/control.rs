//! The control segment: plan, run state, fences and process ids. The launcher writes it, every
//! process reads it.
//!
//! ```text
//! word 0        16      17            18           32                   288                 352
//!      │ header  │ state │ start ticks │ generation │ a fence a strategy │ a fence a gateway │ …
//! word 352                        864                865
//!      │ a word for each process │ length in bytes  │ plan (bincode) …
//! ```
//!
//! The start is a barrier. Each thread sets `Ready` in its own status block when it has attached
//! and prefaulted its memory; the launcher waits for all of them, then stores the start ticks and
//! the state `Go` (Release). A thread that sees `Go` (Acquire) sees the start ticks, and everything
//! that the launcher saw before.

use core::time::Duration;
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, ReadOnlyWords, SegmentKind};
#[cfg(not(loom))]
use shm::process::start_time;
use shm::sync::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::os::fd::OwnedFd;
#[cfg(not(loom))]
use std::process::Command;
use std::sync::Arc;
#[cfg(not(loom))]
use system::process;

/// Offset (words) of the run's state in the control segment.
pub const STATE: usize = HEADER_WORDS;
/// Offset (words) of the run's start time, in ticks, in the control segment.
pub const START: usize = HEADER_WORDS + 1;
/// Offset (words) of the control segment's counter of strategies' and gateways' deaths and
/// restarts.
pub const GENERATION: usize = HEADER_WORDS + 2;
/// Offset (words) of one word for each strategy: its current incarnation (restart number) and
/// whether that is dead.
pub const LIVES: usize = HEADER_WORDS + 16;
/// Offset (words) of one word for each gateway: its current incarnation (restart number) and
/// whether that is dead.
pub const GATEWAY_LIVES: usize = LIVES + crate::wire::MAX_STRATEGIES;
/// Offset (words) of one word for each process: in the lower 32 bits its id, in the upper its start
/// time, truncated to 32 bits. The start time is in clock ticks since boot. 0: no process.
pub const PROCESSES: usize = GATEWAY_LIVES + crate::wire::MAX_VENUES;
/// Maximum number of processes of a plan.
pub const MAX_PROCESSES: usize = 512;
/// Offset (words) of the plan in the control segment: its length in bytes, then its bytes.
pub const PLAN: usize = PROCESSES + MAX_PROCESSES;
/// The segment kind (code, name and layout) of a control segment, in which the launcher writes the
/// plan and the run's state.
pub const KIND: SegmentKind = SegmentKind::new(
    1,
    "control",
    &[
        ("state", STATE),
        ("start", START),
        ("lives", LIVES),
        ("gateway-lives", GATEWAY_LIVES),
        ("processes", PROCESSES),
        ("plan", PLAN),
    ],
)
.of_slots(PLAN, 1);

/// The life cycle state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
pub enum RunState {
    /// The processes of the run attach their segments and wait at the start barrier.
    Setup = 0,
    /// The start barrier is open: all threads run.
    Go = 1,
    /// The run is draining: no strategy sends orders any more, and open orders are still collected.
    Drain = 2,
    /// All threads of the run end now.
    Stop = 3,
}

impl RunState {
    const fn from_code(code: u64) -> Self {
        match code {
            0 => RunState::Setup,
            1 => RunState::Go,
            2 => RunState::Drain,
            _ => RunState::Stop,
        }
    }
}

/// A process's read-only view of the run's control segment, which holds the plan and the run's
/// state.
#[derive(Clone)]
pub struct Control {
    words: ReadOnlyWords,
    /// Local to this process: 0, [`ORPHANED`] or [`REVOKED`].
    ended: Arc<AtomicU64>,
}

/// The launcher, the only writer, is dead.
const ORPHANED: u64 = 1;
/// The threads that use this value are fenced.
const REVOKED: u64 = 2;

/// The launcher's end of the control segment: its only writer.
pub struct ControlWriter {
    words: AtomicWords,
}

impl Control {
    /// Creates the read-only view over a control segment, whose header was checked before.
    pub fn new(words: impl Into<ReadOnlyWords>) -> Self {
        let words = words.into();
        assert!(words.len() > PLAN, "a control segment holds at least the length of a plan");
        Self { words, ended: Arc::new(AtomicU64::new(0)) }
    }

    /// Marks the launcher as dead, after which this view and its clones report the run as stopped.
    pub fn abandon(&self) {
        // Relaxed: no other data is published by it.
        self.ended.store(ORPHANED, Ordering::Relaxed);
    }

    /// Returns a separate view of the control segment for one thread, so that revoking it stops no
    /// other thread.
    #[must_use]
    pub fn for_thread(&self) -> Self {
        Self::new(self.words.clone())
    }

    /// Makes this view and its clones report the run as stopped: the launcher has fenced (declared
    /// dead) their threads.
    pub fn revoke(&self) {
        // Relaxed: no other data is published by it.
        self.ended.store(REVOKED, Ordering::Relaxed);
    }

    /// Returns `true` if the launcher has fenced (declared dead) the threads that use this view of
    /// the control segment.
    pub fn is_revoked(&self) -> bool {
        self.ended.load(Ordering::Relaxed) == REVOKED
    }

    /// Returns `true` if the launcher was marked as dead.
    pub fn is_abandoned(&self) -> bool {
        self.ended.load(Ordering::Relaxed) == ORPHANED
    }

    #[cfg(not(loom))]
    pub(crate) const fn view(&self) -> &ReadOnlyWords {
        &self.words
    }

    /// Returns the state of the run; [`RunState::Stop`] if the launcher is dead or has fenced
    /// (declared dead) this view's threads.
    #[inline(always)]
    pub fn state(&self) -> RunState {
        if self.ended.load(Ordering::Relaxed) != 0 {
            return RunState::Stop;
        }
        // Acquire: pairs with the Release in `set_state`.
        RunState::from_code(self.words.load(STATE, Ordering::Acquire))
    }

    /// Returns the tick at which the run's schedule begins; meaningful after [`RunState::Go`] was
    /// seen.
    pub fn start_ticks(&self) -> u64 {
        self.words.load(START, Ordering::Relaxed)
    }

    /// Returns the process id of the plan's process `process`; `None` if it is not started or its
    /// end was already handled.
    pub fn pid(&self, process: usize) -> Option<u32> {
        if process >= MAX_PROCESSES {
            return None;
        }
        // Acquire: pairs with the Release in `record_start`. The upper half is the start.
        let pid = self.words.load(PROCESSES + process, Ordering::Acquire) as u32;
        Some(pid).filter(|pid| *pid != 0)
    }

    /// Returns a pidfd of the plan's process `process` while it runs, never of another process that
    /// reuses its id.
    #[cfg(not(loom))]
    pub fn pidfd(&self, process: usize) -> Option<OwnedFd> {
        let pid = self.pid(process)?;
        let pidfd = process::pidfd_open(pid).ok()?;
        // The pidfd was opened first: if the process with that id is the right one now, it was
        // then. Only the lower halves of the start times are compared.
        let started = (self.words.load(PROCESSES + process, Ordering::Relaxed) >> 32) as u32;
        let had_started = |now: &u64| started.wrapping_sub(*now as u32) <= u32::MAX / 2;
        start_time(pid).filter(had_started).map(|_| pidfd)
    }

    /// Sleeps until the start barrier opens or the run is stopped, and returns the run's new state.
    pub fn wait_for_go(&self) -> RunState {
        loop {
            let state = self.state();
            if state != RunState::Setup {
                return state;
            }
            // Woken by `set_state`; the timeout is for a launcher that dies in between.
            let bound = Duration::from_millis(100);
            self.words.wait(STATE, RunState::Setup as u32, bound);
        }
    }
}

impl ControlWriter {
    /// Creates the launcher's end over the words of a control segment.
    pub fn new(words: AtomicWords) -> Self {
        assert!(words.len() > PLAN, "a control segment holds at least the length of a plan");
        Self { words }
    }

    #[cfg(not(loom))]
    pub(crate) const fn words(&self) -> &AtomicWords {
        &self.words
    }

    /// Returns the launcher's control segment as a read-only view.
    pub fn control(&self) -> Control {
        Control::new(self.words.clone())
    }

    /// Publishes the id of a started process that the launcher has not reaped, so that the reaper
    /// can kill it if the launcher ends.
    #[cfg(not(loom))]
    pub fn record_start(&self, index: usize, pid: u32) {
        let since = start_time(pid).unwrap_or(0);
        self.set_process(index, u64::from(pid) | since << 32);
    }

    /// Makes the process started by `command` publish its id in the control segment before `exec`,
    /// so that it is known if the launcher crashes. `index` is that of the process in the plan.
    #[cfg(not(loom))]
    pub fn prepare_start(&self, index: usize, command: &mut Command) {
        assert!(index < MAX_PROCESSES);
        system::pid_slot::publish_pid_before_exec(command, &self.words.slice(PROCESSES + index, 1));
    }

    fn set_process(&self, process: usize, word: u64) {
        assert!(process < MAX_PROCESSES);
        // Release: pairs with the Acquire in `pid`.
        self.words[PROCESSES + process].store(word, Ordering::Release);
    }

    /// Removes the id of an ended process from the control segment; the receivers of its messages
    /// must have taken all of them before.
    pub fn record_end(&self, index: usize) {
        self.set_process(index, 0);
    }

    /// Sets the run's state and wakes all threads that wait for it.
    pub fn set_state(&self, state: RunState) {
        // Release: pairs with the Acquire in `state`.
        self.words[STATE].store(state as u64, Ordering::Release);
        shm::futex::wake_all(&self.words[STATE]);
    }

    /// Opens the start barrier; the schedule begins at the tick `start_ticks`.
    pub fn go(&self, start_ticks: u64) {
        // Relaxed: published by the Release store of the state.
        self.words[START].store(start_ticks, Ordering::Relaxed);
        self.set_state(RunState::Go);
    }
}

#[cfg(not(loom))]
mod plan_bytes {
    use super::{Control, ControlWriter, Ordering, PLAN, ReadOnlyWords};
    use crate::codec::{self, CodecError};
    use crate::plan::Plan;

    /// Returns the maximum size in bytes of an encoded plan in a segment of `words` words.
    const fn plan_capacity(words: usize) -> usize {
        words.saturating_sub(PLAN + 1) * 8
    }

    impl ControlWriter {
        /// Returns a read-only view of the control segment's memory.
        pub fn memory(&self) -> ReadOnlyWords {
            self.words.clone().into()
        }

        /// Writes the plan into the control segment, before the children that read it are started.
        pub fn write_plan(&self, plan: &Plan) -> Result<(), CodecError> {
            let bytes = codec::encode(plan)?;
            let capacity = plan_capacity(self.words.len());
            if bytes.len() > capacity {
                return Err(CodecError::TooLarge { bytes: bytes.len(), capacity });
            }
            for (word, chunk) in self.words[PLAN + 1..].iter().zip(bytes.chunks(8)) {
                let mut eight = [0; 8];
                eight[..chunk.len()].copy_from_slice(chunk);
                word.store(u64::from_le_bytes(eight), Ordering::Relaxed);
            }
            // Release: pairs with the Acquire in `read_plan`.
            self.words[PLAN].store(bytes.len() as u64, Ordering::Release);
            Ok(())
        }
    }

    impl Control {
        /// Copies the plan from the control segment, decodes and validates it.
        pub fn read_plan(&self) -> Result<Plan, CodecError> {
            // Acquire: pairs with the Release in `write_plan`.
            let len = usize::try_from(self.words.load(PLAN, Ordering::Acquire)).unwrap_or(usize::MAX);
            let capacity = plan_capacity(self.words.len());
            if len > capacity {
                return Err(CodecError::TooLarge { bytes: len, capacity });
            }
            let mut bytes: Vec<u8> = (PLAN + 1..PLAN + 1 + len.div_ceil(8))
                .flat_map(|index| self.words.load(index, Ordering::Relaxed).to_le_bytes())
                .collect();
            bytes.truncate(len);
            let plan: Plan = codec::decode(&bytes)?;
            plan.validate()?;
            Ok(plan)
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::codec;
    use crate::index::StrategyIndex;
    use crate::kill::Scope;
    use crate::limits::{LimitSetting, RiskControl};
    use crate::plan::Plan;
    use crate::plan::tests::small_plan;
    use proptest::prelude::*;
    use shm::memory::Region;

    #[test]
    fn plan_round_trips_through_segment() {
        let launching = ControlWriter::new(Region::heap(1024).words());
        let mut plan = small_plan();
        let limit = LimitSetting {
            scope: Scope::Strategy(StrategyIndex(1)),
            control: RiskControl::MaxPosition,
            value: 5,
        };
        plan.trading_mut().limits.push(limit);
        launching.write_plan(&plan).unwrap();
        assert_eq!(launching.control().read_plan().unwrap(), plan);
        // The version is first.
        let mut other = codec::encode(&plan).unwrap();
        other[0] = 2;
        let error = codec::decode::<Plan>(&other).unwrap_err().to_string();
        assert!(error.contains("a plan of version 2"), "{error}");
    }

    #[test]
    fn revoked_thread_stops_alone() {
        let launching = ControlWriter::new(Region::heap(1024).words());
        launching.go(1);
        let process = launching.control();
        let [revoked, other] = [process.for_thread(), process.for_thread()];
        revoked.clone().revoke();
        let states = [&revoked, &other, &process].map(Control::state);
        assert_eq!(states, [RunState::Stop, RunState::Go, RunState::Go]);
        assert!(revoked.is_revoked() && !revoked.is_abandoned() && !other.is_revoked());
        other.abandon();
        assert!(other.is_abandoned() && !other.is_revoked() && !process.is_abandoned());
    }

    #[test]
    fn oversized_plan_is_refused() {
        let launching = ControlWriter::new(Region::heap(PLAN + 4).words());
        assert!(launching.write_plan(&small_plan()).unwrap_err().to_string().contains("room for 24"));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn self_published_pid_is_found_only_for_that_process() {
        let launching = ControlWriter::new(Region::memfd("will", 1024).unwrap().words());
        let mut command = Command::new("sleep");
        launching.prepare_start(3, command.arg("60"));
        let mut child = command.spawn().unwrap();
        let control = launching.control();
        let found = control.pidfd(3);
        // The state of a later process with the same id.
        let since = start_time(child.id()).unwrap();
        launching.set_process(3, u64::from(child.id()) | (since - 1) << 32);
        let later = control.pidfd(3);
        launching.set_process(3, u64::from(child.id()) | since << 32);
        let exact = control.pidfd(3);
        let _ = (child.kill(), child.wait());
        assert_eq!((found.is_some(), later.is_some(), exact.is_some()), (true, false, true));
    }

    proptest! {
        #[test]
        fn scribbled_plans_never_panic(len: u64, words in prop::collection::vec(any::<u64>(), 1..64)) {
            let region = Region::heap(PLAN + 1 + words.len()).words();
            for (word, value) in region[PLAN + 1..].iter().zip(&words) {
                word.store(*value, Ordering::Relaxed);
            }
            let control = Control::new(region.clone());
            for len in [len, len % 512] {
                region[PLAN].store(len, Ordering::Relaxed);
                prop_assert!(control.read_plan().is_err());
            }
        }
    }
}
