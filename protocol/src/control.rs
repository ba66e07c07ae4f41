//! The control segment: the plan and the state of the run. The launcher writes it, every process
//! reads it.
//!
//! ```text
//! word 0        16      17            18           32                   288                 352                       864           865
//!      │ header  │ state │ start ticks │ generation │ a fence a strategy │ a fence a gateway │ a word for each process │ plan: bytes │ plan (bincode) …
//! ```
//!
//! The start is a barrier: each thread says `Ready` in its own status block when it has attached
//! and prefaulted all it needs; the launcher waits for all of them, then stores the start ticks and
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

/// Where the run's state is.
pub const STATE: usize = HEADER_WORDS;
/// Where the start ticks are.
pub const START: usize = HEADER_WORDS + 1;
/// Where fences and revivals are counted; see `supervision`.
pub const GENERATION: usize = HEADER_WORDS + 2;
/// Where the strategies' fences are, a word each.
pub const LIVES: usize = HEADER_WORDS + 16;
/// Where the gateways' fences are, a word each.
pub const GATEWAY_LIVES: usize = LIVES + crate::wire::MAX_STRATEGIES;
/// Where the plan's processes are, a word each: the id, and above it when the process was started
/// or by when, in clock ticks since boot, of which the lower half; 0 while one is not started.
pub const PROCESSES: usize = GATEWAY_LIVES + crate::wire::MAX_GATEWAYS;
/// The most processes that a plan can have.
pub const MAX_PROCESSES: usize = 512;
/// Where the plan is: its length in bytes, then its bytes.
pub const PLAN: usize = PROCESSES + MAX_PROCESSES;
/// The plan and the run's state; written by the launcher.
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

/// Where a run is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
pub enum RunState {
    /// Processes attach and wait.
    Setup = 0,
    /// The barrier is open.
    Go = 1,
    /// No strategy sends any more; open orders are still collected.
    Drain = 2,
    /// Everybody ends now.
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

/// The control segment as every process sees it: read-only.
#[derive(Clone)]
pub struct Control {
    words: ReadOnlyWords,
    /// This process's own: 1 once the launcher, the one writer, is dead.
    orphaned: Arc<AtomicU64>,
}

/// The control segment as the launcher has it: the one writer.
pub struct ControlWriter {
    words: AtomicWords,
}

impl Control {
    /// The control segment in these words.
    ///
    /// # Panics
    /// If they are not longer than [`PLAN`]: the header's check comes first.
    pub fn new(words: impl Into<ReadOnlyWords>) -> Self {
        let words = words.into();
        assert!(words.len() > PLAN, "a control segment holds at least the length of a plan");
        Self { words, orphaned: Arc::new(AtomicU64::new(0)) }
    }

    /// The launcher is dead: from now on the run is stopped, for this value and its clones.
    pub fn abandon(&self) {
        // Relaxed: nothing else is passed on.
        self.orphaned.store(1, Ordering::Relaxed);
    }

    /// Whether it is.
    pub fn is_abandoned(&self) -> bool {
        self.orphaned.load(Ordering::Relaxed) != 0
    }

    #[cfg(not(loom))]
    pub(crate) const fn view(&self) -> &ReadOnlyWords {
        &self.words
    }

    /// The state of the run; [`RunState::Stop`] once nobody is there to change it.
    #[inline(always)]
    pub fn state(&self) -> RunState {
        if self.is_abandoned() {
            return RunState::Stop;
        }
        // Acquire: pairs with the Release in `set_state`.
        RunState::from_code(self.words.load(STATE, Ordering::Acquire))
    }

    /// The tick of time zero; meaningful after [`RunState::Go`] was seen.
    pub fn start_ticks(&self) -> u64 {
        self.words.load(START, Ordering::Relaxed)
    }

    /// The id of a process of the plan, as the launcher that started it says; `None` if it is not
    /// started, or its end was dealt with.
    pub fn pid(&self, process: usize) -> Option<u32> {
        if process >= MAX_PROCESSES {
            return None;
        }
        // Acquire: pairs with the Release in `started`. The upper half is the start.
        let pid = self.words.load(PROCESSES + process, Ordering::Acquire) as u32;
        Some(pid).filter(|pid| *pid != 0)
    }

    /// A descriptor of that process, while it runs: of the very one that the launcher started, not
    /// of a later one that was given the same id.
    #[cfg(not(loom))]
    pub fn pidfd(&self, process: usize) -> Option<OwnedFd> {
        let pid = self.pid(process)?;
        let pidfd = process::pidfd_open(pid).ok()?;
        // The descriptor came first: if the process of that id is the right one now, it was then.
        // Halves of times: less than half of them apart is not later.
        let started = (self.words.load(PROCESSES + process, Ordering::Relaxed) >> 32) as u32;
        let had_started = |now: &u64| started.wrapping_sub(*now as u32) <= u32::MAX / 2;
        start_time(pid).filter(had_started).map(|_| pidfd)
    }

    /// Sleeps until the barrier opens or the run ends, and returns that state.
    pub fn wait_for_go(&self) -> RunState {
        loop {
            let state = self.state();
            if state != RunState::Setup {
                return state;
            }
            // Woken by `set_state`; the bound is for a launcher that dies in between.
            let bound = Duration::from_millis(100);
            self.words.wait(STATE, RunState::Setup as u32, bound);
        }
    }
}

impl ControlWriter {
    /// The control segment in these words.
    ///
    /// # Panics
    /// As [`Control::new`].
    pub fn new(words: AtomicWords) -> Self {
        assert!(words.len() > PLAN, "a control segment holds at least the length of a plan");
        Self { words }
    }

    #[cfg(not(loom))]
    pub(crate) const fn words(&self) -> &AtomicWords {
        &self.words
    }

    /// The same segment as the others see it.
    pub fn control(&self) -> Control {
        Control::new(self.words.clone())
    }

    /// A process of the plan was started, with that id: from now on it is believed to be who it
    /// says it is. Whoever started it has not waited for it yet, so the id is not another's.
    ///
    /// # Panics
    /// If there can be no such process.
    #[cfg(not(loom))]
    pub fn started(&self, index: usize, pid: u32) {
        let since = start_time(pid).unwrap_or(0);
        self.is_process(index, u64::from(pid) | since << 32);
    }

    /// What this command starts will be that process of the plan, and says so itself before it runs
    /// a program: who looks after the launcher's death finds it also if the launcher died before it
    /// could say [`ControlWriter::started`].
    ///
    /// # Panics
    /// If there can be no such process.
    #[cfg(not(loom))]
    pub fn will_start(&self, index: usize, command: &mut Command) {
        assert!(index < MAX_PROCESSES);
        system::starts::say_who_starts(command, &self.words.slice(PROCESSES + index, 1));
    }

    fn is_process(&self, process: usize, word: u64) {
        assert!(process < MAX_PROCESSES);
        // Release: pairs with the Acquire in `pid`.
        self.words[PROCESSES + process].store(word, Ordering::Release);
    }

    /// A process has ended and nothing of it is still to be taken: its id is believed no more.
    ///
    /// # Panics
    /// If there can be no such process.
    pub fn ended(&self, process: usize) {
        self.is_process(process, 0);
    }

    /// Moves the run on and wakes everybody who waits for it.
    pub fn set_state(&self, state: RunState) {
        // Release: pairs with the Acquire in `state`.
        self.words[STATE].store(state as u64, Ordering::Release);
        shm::futex::wake_all(&self.words[STATE]);
    }

    /// Opens the barrier: time zero of the schedule is `start_ticks`.
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

    /// The most bytes that an encoded plan may have in a segment of that many words.
    const fn plan_room(words: usize) -> usize {
        words.saturating_sub(PLAN + 1) * 8
    }

    impl ControlWriter {
        /// Returns the control segment's memory, to look at.
        pub fn memory(&self) -> ReadOnlyWords {
            self.words.clone().into()
        }

        /// Writes the plan, before the children that read it are started.
        ///
        /// # Errors
        /// [`CodecError`] if it cannot be encoded or does not fit.
        pub fn write_plan(&self, plan: &Plan) -> Result<(), CodecError> {
            let bytes = codec::encode(plan)?;
            let room = plan_room(self.words.len());
            if bytes.len() > room {
                return Err(CodecError::TooLarge { bytes: bytes.len(), room });
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
        /// Copies the plan out, decodes and validates it.
        ///
        /// # Errors
        /// [`CodecError`] if what is there is no valid plan.
        pub fn read_plan(&self) -> Result<Plan, CodecError> {
            // Acquire: pairs with the Release in `write_plan`.
            let len = usize::try_from(self.words.load(PLAN, Ordering::Acquire)).unwrap_or(usize::MAX);
            let room = plan_room(self.words.len());
            if len > room {
                return Err(CodecError::TooLarge { bytes: len, room });
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
    use crate::plan::tests::small_plan;
    use proptest::prelude::*;
    use shm::memory::Region;

    #[test]
    fn the_plan_survives_the_segment() {
        let launching = ControlWriter::new(Region::heap(1024).words());
        let plan = small_plan();
        launching.write_plan(&plan).unwrap();
        assert_eq!(launching.control().read_plan().unwrap(), plan);
    }

    #[test]
    fn a_plan_that_does_not_fit_is_refused() {
        let launching = ControlWriter::new(Region::heap(PLAN + 4).words());
        assert!(launching.write_plan(&small_plan()).unwrap_err().to_string().contains("room for 24"));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn a_process_that_says_itself_who_it_is_is_found_and_a_later_one_is_not() {
        let launching = ControlWriter::new(Region::memfd("will", 1024).unwrap().words());
        let mut command = Command::new("sleep");
        launching.will_start(3, command.arg("60"));
        let mut child = command.spawn().unwrap();
        let control = launching.control();
        let found = control.pidfd(3);
        // As one that has its id and started later would be seen.
        let since = start_time(child.id()).unwrap();
        launching.is_process(3, u64::from(child.id()) | (since - 1) << 32);
        let later = control.pidfd(3);
        launching.is_process(3, u64::from(child.id()) | since << 32);
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
