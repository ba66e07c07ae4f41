//! An append killed at each of its machine instructions.
//!
//! Stores into a shared mapping are in the page cache, and survive the death of the process. The
//! file between two instructions is therefore exactly what recovery finds after a death there,
//! without killing the process. A follower of the log is checked there as well, because a successor
//! continues from it. An appender that acknowledges too early and a follower that trusts an
//! incomplete record are both found.

use crate::basics::{open, options};
use crate::common::{State, append, folder, is_slow, payload, recovered};
use crate::victim::{Victim, victim, words};
use journal::{Durability, Reader, Writer};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, gettid};
use shm::sync::Ordering;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Records before the first stepped one: the last stepped ones are in the next segment.
fn begin(folder: &Path) -> (Writer, u64) {
    let mut writer = open(folder);
    let room = options(Durability::Process).segment_bytes as usize - 64 - 16;
    let mut used = 0;
    loop {
        let next = writer.last() + 1;
        used += journal::format::record_size(payload(next).len());
        if used + journal::format::record_size(payload(next + 1).len()) > room {
            return (writer, next);
        }
        append(&mut writer, 1);
    }
}

/// Runs in the victim: stops before and after each append. Acknowledges a record after the append,
/// or before it (faulty).
pub fn stepped(folder: &Path, is_boaster: bool) {
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
        if is_boaster {
            shared[0].store(next, Ordering::Release);
        }
        let taken = writer.append(&payload);
        shared[0].store(next, Ordering::Release);
        raise(Signal::SIGSTOP).unwrap();
        taken.unwrap();
    }
}

/// Waits for a stop. Returns its signal; `None` if the process cannot be traced or has ended.
fn stop(thread: Pid) -> Option<Signal> {
    match waitpid(thread, Some(WaitPidFlag::__WALL)) {
        Ok(WaitStatus::Stopped(_, signal)) => Some(signal),
        _ => None,
    }
}

/// Kills the traced process and reaps the thread, before which the process does not end.
struct Traced<'a> {
    thread: Pid,
    victim: &'a mut Victim,
}

impl Drop for Traced<'_> {
    fn drop(&mut self) {
        self.victim.kill();
        while stop(self.thread).is_some() {}
    }
}

struct Following {
    reader: Reader,
    state: State,
}

impl Following {
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
    fn would_be_deceived(&self) -> bool {
        let (Some((path, at)), due) = (self.reader.position(), self.reader.next_sequence()) else {
            return false;
        };
        let wanted = payload(due);
        let mut found = vec![0; 16 + wanted.len()];
        let is_read = File::open(path).and_then(|file| file.read_exact_at(&mut found, at)).is_ok();
        is_read && found[8..16] == due.to_le_bytes() && found[16..] != wanted
    }
}

#[derive(Debug, Default)]
struct Seen {
    instructions: u64,
    appeared: u64,
    /// Instructions after which an acknowledged record was missing.
    boasted: u64,
    /// Instructions after which a follower that trusts the sequence would read a wrong record.
    deceived: u64,
}

/// Steps through appends; `None` if tracing is not permitted.
fn step_through(what: &str, appends: u64) -> Option<Seen> {
    let folder = folder();
    let mut victim = victim(what, folder.path());
    let words = words(folder.path());
    let begun = std::time::Instant::now();
    while words[1].load(Ordering::Acquire) == 0 {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "the victim does not begin");
        std::thread::yield_now();
    }
    // It now asks to be traced.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let pid = Pid::from_raw(words[1].load(Ordering::Relaxed) as i32);
    if stop(pid) != Some(Signal::SIGSTOP) {
        eprintln!("SKIPPED, NOTHING WAS STEPPED: a child cannot be traced here");
        return None;
    }
    let traced = Traced { thread: pid, victim: &mut victim };
    ptrace::setoptions(pid, ptrace::Options::PTRACE_O_EXITKILL).unwrap();
    let mut all = Seen::default();
    let mut last = recovered(folder.path()).unwrap().1.last;
    let mut following = Following::begin(folder.path());
    for _ in 0..appends {
        let mut seen = last;
        loop {
            ptrace::step(pid, None).unwrap();
            match stop(pid).expect("it is not dead") {
                Signal::SIGTRAP => all.instructions += 1,
                // The stop after the append.
                Signal::SIGSTOP => break,
                other => panic!("{other}"),
            }
            all.deceived += u64::from(following.would_be_deceived());
            let (_, end) = recovered(folder.path()).unwrap();
            // The record becomes visible with one instruction, and stays.
            assert!(end.last == seen || end.last == last + 1 && seen == last, "{} behind {seen}", end.last);
            // The follower has exactly the records of a recovery.
            assert_eq!(following.last(), end.last, "behind {} instructions", all.instructions);
            all.boasted += u64::from(words[0].load(Ordering::Acquire) > end.last);
            all.appeared += end.last - seen;
            seen = end.last;
        }
        last += 1;
        let (state, end) = recovered(folder.path()).unwrap();
        assert_eq!((end.last, &state), (last, &State::after(last)));
        assert_eq!((following.last(), &following.state), (last, &state));
        ptrace::cont(pid, None).unwrap();
        assert_eq!(stop(pid), Some(Signal::SIGSTOP));
    }
    println!("{what}: {all:?}");
    drop(traced);
    victim.wait();
    assert_eq!(recovered(folder.path()).unwrap().0, State::after(last));
    Some(all)
}

#[test]
fn append_killed_at_any_instruction_leaves_exact_prefix() {
    let Some(seen) = step_through("stepped", if is_slow() { 40 } else { 4 }) else { return };
    assert!(seen.instructions > 100 * seen.appeared && seen.appeared >= 4, "{seen:?}");
    assert_eq!(seen.boasted, 0, "{seen:?}");
    assert!(
        seen.deceived > 0,
        "a follower that does not look whether a record is whole is not found: {seen:?}"
    );
}

#[test]
fn append_that_publishes_early_is_found() {
    let Some(seen) = step_through("stepped-boast", 1) else { return };
    assert!(seen.boasted > 0, "{seen:?}");
}
