//! An append killed at each of its machine instructions.
//!
//! Stores into a shared mapping are in the page cache, and survive the death of the process. The
//! file between two instructions is therefore exactly what recovery finds after a death there,
//! without killing the process. A follower of the log is checked there as well, because a successor
//! continues from it. An appender that acknowledges too early and a follower that trusts an
//! incomplete record are both detected.

use crate::basics::{open, options};
use crate::common::{State, append, folder, is_slow, payload, recovered};
use crate::victim::{Victim, victim, words};
use journal::{Durability, Reader, Writer};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, raise};
use nix::unistd::{Pid, gettid};
use shm::sync::Ordering;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use stepper::{Resume, Stop, Tracee};

/// Records before the first stepped one: the last stepped ones are in the next segment.
fn begin(folder: &Path) -> (Writer, u64) {
    let mut writer = open(folder);
    let capacity = options(Durability::Process).segment_bytes as usize - 64 - 16;
    let mut used = 0;
    loop {
        let next = writer.last() + 1;
        used += journal::format::record_size(payload(next).len());
        if used + journal::format::record_size(payload(next + 1).len()) > capacity {
            return (writer, next);
        }
        append(&mut writer, 1);
    }
}

/// Runs in the victim: stops before and after each append. Acknowledges a record after the append,
/// or before it (faulty).
pub fn stepped(folder: &Path, acknowledges_early: bool) {
    let (mut writer, _) = begin(folder);
    // The next segment is prepared by now.
    std::thread::sleep(std::time::Duration::from_millis(100));
    // The test's thread is traced.
    let shared = words(folder);
    shared[1].store(gettid().as_raw() as u64, Ordering::Release);
    ptrace::traceme().unwrap();
    loop {
        let next = writer.last() + 1;
        let payload = payload(next);
        raise(Signal::SIGSTOP).unwrap();
        if acknowledges_early {
            shared[0].store(next, Ordering::Release);
        }
        let result = writer.append(&payload);
        shared[0].store(next, Ordering::Release);
        raise(Signal::SIGSTOP).unwrap();
        result.unwrap();
    }
}

/// The victim's stop before and after an append.
const STOPPED: Stop = Stop::Signal(Signal::SIGSTOP);

/// Kills the traced process and reaps the thread, before which the process does not end.
struct Traced<'a> {
    thread: Tracee,
    victim: &'a mut Victim,
}

impl Drop for Traced<'_> {
    fn drop(&mut self) {
        self.victim.kill();
        while self.thread.wait().is_ok_and(|stop| !stop.is_end()) {}
    }
}

struct LogFollower {
    reader: Reader,
    state: State,
}

impl LogFollower {
    fn begin(folder: &Path) -> Self {
        let reader = journal::follow(folder, |_| panic!("there is no snapshot")).unwrap();
        Self { reader, state: State::default() }
    }

    fn last(&mut self) -> u64 {
        while let Some(record) = self.reader.next_record().unwrap() {
            assert_eq!(record.payload, payload(record.sequence), "record {}", record.sequence);
            self.state.apply(record.payload);
        }
        self.reader.next_sequence() - 1
    }

    /// Returns `true` if a follower that trusts the sequence alone would read a wrong record.
    fn would_misread_record(&self) -> bool {
        let (Some((path, at)), next) = (self.reader.position(), self.reader.next_sequence()) else {
            return false;
        };
        let wanted = payload(next);
        let mut bytes = vec![0; 16 + wanted.len()];
        let is_read = File::open(path).and_then(|file| file.read_exact_at(&mut bytes, at)).is_ok();
        is_read && bytes[8..16] == next.to_le_bytes() && bytes[16..] != wanted
    }
}

#[derive(Debug, Default)]
struct StepCounts {
    instructions: u64,
    visible_records: u64,
    /// Instructions after which an acknowledged record was missing.
    early_acknowledgements: u64,
    /// Instructions after which a follower that trusts the sequence would read a wrong record.
    would_be_misread: u64,
}

/// Steps through appends; `None` if tracing is not permitted.
fn step_through(mode: &str, appends: u64) -> Option<StepCounts> {
    let folder = folder();
    let mut victim = victim(mode, folder.path());
    let words = words(folder.path());
    let begun = std::time::Instant::now();
    while words[1].load(Ordering::Acquire) == 0 {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "the victim does not begin");
        std::thread::yield_now();
    }
    // It now asks to be traced.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let thread = Tracee::new(Pid::from_raw(words[1].load(Ordering::Relaxed) as i32));
    if thread.wait() != Ok(STOPPED) {
        eprintln!("SKIPPED, NOTHING WAS STEPPED: a child cannot be traced here");
        return None;
    }
    let traced = Traced { thread, victim: &mut victim };
    thread.set_options(Options::PTRACE_O_EXITKILL).unwrap();
    let mut counts = StepCounts::default();
    let mut last = recovered(folder.path()).unwrap().1.last;
    let mut follower = LogFollower::begin(folder.path());
    for _ in 0..appends {
        let mut visible = last;
        loop {
            match thread.step().unwrap() {
                Stop::Trap => counts.instructions += 1,
                // The stop after the append.
                STOPPED => break,
                other => panic!("{other:?}"),
            }
            counts.would_be_misread += u64::from(follower.would_misread_record());
            let (_, end) = recovered(folder.path()).unwrap();
            // The record becomes visible with one instruction, and stays.
            assert!(
                end.last == visible || end.last == last + 1 && visible == last,
                "{} after {visible}",
                end.last
            );
            // The follower has exactly the records of a recovery.
            assert_eq!(follower.last(), end.last, "after {} instructions", counts.instructions);
            counts.early_acknowledgements += u64::from(words[0].load(Ordering::Acquire) > end.last);
            counts.visible_records += end.last - visible;
            visible = end.last;
        }
        last += 1;
        let (state, end) = recovered(folder.path()).unwrap();
        assert_eq!((end.last, &state), (last, &State::after(last)));
        assert_eq!((follower.last(), &follower.state), (last, &state));
        thread.resume(Resume::Run, None).unwrap();
        assert_eq!(thread.wait(), Ok(STOPPED));
    }
    println!("{mode}: {counts:?}");
    drop(traced);
    victim.wait();
    assert_eq!(recovered(folder.path()).unwrap().0, State::after(last));
    Some(counts)
}

#[test]
fn append_killed_at_any_instruction_leaves_exact_prefix() {
    let Some(counts) = step_through("stepped", if is_slow() { 40 } else { 4 }) else { return };
    assert!(counts.instructions > 100 * counts.visible_records && counts.visible_records >= 4, "{counts:?}");
    assert_eq!(counts.early_acknowledgements, 0, "{counts:?}");
    assert!(
        counts.would_be_misread > 0,
        "a follower that does not check whether a record is complete is not detected: {counts:?}"
    );
}

#[test]
fn append_that_acknowledges_early_is_detected() {
    let Some(counts) = step_through("stepped-acknowledge-early", 1) else { return };
    assert!(counts.early_acknowledgements > 0, "{counts:?}");
}
