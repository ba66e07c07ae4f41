//! An append that dies at each of its machine instructions.
//!
//! What a process has stored into a shared mapping is in the page cache, and stays there when it is killed. So the file as it is between
//! two instructions is what recovery finds after a death there; to look at it, nobody has to die.

use crate::basics::options;
use crate::common::{State, append, folder, is_slow, payload, recovered};
use crate::kills::{Victim, victim, words};
use journal::{Durability, Writer};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, gettid};
use shm::sync::Ordering;
use std::path::Path;

/// Records before the first one that is stepped: so many that the last ones go on in a next segment.
fn begin(folder: &Path) -> (Writer, u64) {
    let mut writer = Writer::open(folder, &options(Durability::Process), |_| {}).unwrap();
    let room = options(Durability::Process).segment_bytes as usize - 64 - 16;
    let mut used = 0;
    loop {
        let next = writer.last() + 1;
        used += journal::format::size(payload(next).len());
        if used + journal::format::size(payload(next + 1).len()) > room {
            return (writer, next);
        }
        append(&mut writer, 1);
    }
}

/// In the victim: stops before each append and after the last.
pub fn stepped(folder: &Path) {
    let (mut writer, _) = begin(folder);
    // The next segment is prepared now.
    std::thread::sleep(std::time::Duration::from_millis(100));
    // A test runs in a thread of its own: that one is traced.
    words(folder)[1].store(gettid().as_raw() as u64, Ordering::Release);
    ptrace::traceme().unwrap();
    loop {
        let next = writer.last() + 1;
        let payload = payload(next);
        raise(Signal::SIGSTOP).unwrap();
        let taken = writer.append(&payload);
        raise(Signal::SIGSTOP).unwrap();
        taken.unwrap();
    }
}

/// The signal that it stops with; `None` if it cannot be traced or is gone.
fn stop(thread: Pid) -> Option<Signal> {
    match waitpid(thread, Some(WaitPidFlag::__WALL)) {
        Ok(WaitStatus::Stopped(_, signal)) => Some(signal),
        _ => None,
    }
}

/// Ends the traced thread's process and takes note of the thread's end: before that nobody sees the process end.
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

#[test]
fn an_append_that_dies_at_any_instruction_leaves_an_exact_prefix() {
    let folder = folder();
    let mut victim = victim("stepped", folder.path());
    let words = words(folder.path());
    let begun = std::time::Instant::now();
    while words[1].load(Ordering::Acquire) == 0 {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "the victim does not begin");
        std::thread::yield_now();
    }
    // It asks to be traced now.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let pid = Pid::from_raw(words[1].load(Ordering::Relaxed) as i32);
    if stop(pid) != Some(Signal::SIGSTOP) {
        eprintln!("SKIPPED, NOTHING WAS STEPPED: a child cannot be traced here");
        return;
    }
    let traced = Traced { thread: pid, victim: &mut victim };
    ptrace::setoptions(pid, ptrace::Options::PTRACE_O_EXITKILL).unwrap();
    let (mut instructions, mut appeared) = (0, 0);
    let mut last = recovered(folder.path()).unwrap().1.last;
    let begun_with = last;
    for _ in 0..if is_slow() { 40 } else { 4 } {
        let mut seen = last;
        loop {
            ptrace::step(pid, None).unwrap();
            match stop(pid).expect("it is not dead") {
                Signal::SIGTRAP => instructions += 1,
                // The stop behind the append.
                Signal::SIGSTOP => break,
                other => panic!("{other}"),
            }
            let (_, end) = recovered(folder.path()).unwrap();
            // The record that is being appended is there from one instruction on, and stays.
            assert!(end.last == seen || end.last == last + 1 && seen == last, "{} behind {seen}", end.last);
            appeared += end.last - seen;
            seen = end.last;
        }
        last += 1;
        let (state, end) = recovered(folder.path()).unwrap();
        assert_eq!((end.last, state), (last, State::after(last)));
        ptrace::cont(pid, None).unwrap();
        assert_eq!(stop(pid), Some(Signal::SIGSTOP));
    }
    println!("{instructions} instructions, {appeared} records appeared behind record {begun_with}");
    assert!(instructions > 100 * appeared && appeared >= 4, "{instructions}, {appeared}");
    drop(traced);
    victim.wait();
    assert_eq!(recovered(folder.path()).unwrap().0, State::after(last));
}
