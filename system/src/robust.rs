//! A lock that the kernel frees when its thread dies, before it dismantles the memory of the
//! process (robust futex).
//!
//! The thread holds the lock for as long as it lives. When the thread dies the kernel replaces the
//! thread's id in the lock's word by [`LockState::OwnerDied`] and wakes one waiter. That is 0.1 ms
//! after SIGKILL on an idle machine; a pidfd is readable once the memory is gone, milliseconds
//! later.
//!
//! **The word is a hint and no proof.** Everybody who can write the memory can write the word, a
//! live owner included. [`crate::process::kill_and_inspect`] asks the kernel.
//!
//! **Only the word is in shared memory.** The list that the kernel follows is in private memory, so
//! that no peer can make it point elsewhere. The C library's robust mutexes keep their list in
//! shared memory; a thread cannot use both, so while it holds this lock the kernel frees none of
//! theirs.

use shm::memory::AtomicWords;
use shm::sync::Ordering;
use std::io;
use std::marker::PhantomData;
use std::ptr;

/// The bit of a word whose owner has died (`FUTEX_OWNER_DIED`).
const OWNER_DIED: u32 = 0x4000_0000;
/// The bit of a word that threads wait for (`FUTEX_WAITERS`): without it the kernel wakes nobody.
const WAITERS: u32 = 0x8000_0000;

/// The state of a [`RobustLock`], as its word in shared memory shows it. Not to be believed: see
/// the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockState {
    /// No thread holds the lock.
    Free,
    /// A thread holds the lock.
    Held,
    /// The thread has died while it held the lock.
    OwnerDied,
}

impl LockState {
    /// Decodes the state of a robust lock from its word in shared memory.
    pub const fn from_word(word: u64) -> Self {
        match word as u32 {
            0 => Self::Free,
            word if word & OWNER_DIED > 0 => Self::OwnerDied,
            _ => Self::Held,
        }
    }
}

/// An entry of the list that the kernel follows (`struct robust_list`).
#[repr(C)]
struct ListEntry {
    next: *const ListEntry,
}

/// The list of a thread's locks (`struct robust_list_head`), and its only entry.
#[repr(C)]
struct RobustList {
    head: ListEntry,
    /// Distance from an entry to the word of its lock, in bytes.
    word_offset: isize,
    pending: *const ListEntry,
    entry: ListEntry,
}

/// Size of the kernel's `struct robust_list_head`, in bytes.
const HEAD_BYTES: usize = size_of::<RobustList>() - size_of::<ListEntry>();

/// A lock in shared memory that a thread holds until the thread ends, so that others can detect
/// that end (robust futex). Dropping it frees the lock: the thread ends by itself.
pub struct RobustLock {
    list: *mut RobustList,
    /// The list of the C library, which the thread had before.
    previous: *const RobustList,
    word: AtomicWords,
    /// The list belongs to the thread.
    is_of_thread: PhantomData<*const ()>,
}

impl RobustLock {
    /// Takes the robust lock in `word` for the calling thread. `word`: one word, free or of a dead
    /// thread.
    ///
    /// # Errors
    /// The kernel refuses the system call.
    pub fn take(word: AtomicWords) -> io::Result<Self> {
        let mut list = Box::new(RobustList {
            head: ListEntry { next: ptr::null() },
            word_offset: 0,
            pending: ptr::null(),
            entry: ListEntry { next: ptr::null() },
        });
        let entry = &raw const list.entry;
        list.word_offset = ptr::from_ref(&word[0]).addr().wrapping_sub(entry.addr()).cast_signed();
        let list = Box::into_raw(list);
        let previous = list_of_thread();
        // SAFETY: the list was allocated just now, and nobody else has a pointer to it.
        unsafe {
            (*list).entry.next = &raw const (*list).head;
            (*list).head.next = &raw const (*list).entry;
        }
        let lock = Self { list, previous, word, is_of_thread: PhantomData };
        set_list_of_thread(lock.list)?;
        // A plain word of the status block: publishes nothing.
        lock.word[0].store(u64::from(crate::process::thread_id() | WAITERS), Ordering::Relaxed);
        Ok(lock)
    }
}

impl Drop for RobustLock {
    fn drop(&mut self) {
        self.word[0].store(0, Ordering::Relaxed);
        // SAFETY: the kernel reads the list only when this thread ends, which it does not now.
        unsafe { (*self.list).head.next = &raw const (*self.list).head };
        // In a sandbox the call is refused: then the kernel keeps the list, which is empty.
        if set_list_of_thread(self.previous).is_ok() {
            // SAFETY: the list is from `Box::into_raw`, and the kernel has forgotten it.
            drop(unsafe { Box::from_raw(self.list) });
        }
    }
}

/// Returns the list that the kernel has of the calling thread; null if it does not tell.
fn list_of_thread() -> *const RobustList {
    let (mut list, mut len) = (ptr::null::<RobustList>(), 0_usize);
    // SAFETY: the call stores a pointer and a length into the two variables.
    let got = unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut list, &raw mut len) };
    if got < 0 { ptr::null() } else { list }
}

fn set_list_of_thread(list: *const RobustList) -> io::Result<()> {
    // SAFETY: the kernel keeps the address, and follows it when the thread ends. It is null, the C
    // library's list, which exists for as long as the thread, or ours, which is freed after the
    // kernel has forgotten it. The word may be unmapped by then: the kernel ignores that.
    let set = unsafe { libc::syscall(libc::SYS_set_robust_list, list, HEAD_BYTES) };
    if set < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::memory::Region;

    fn state(word: &AtomicWords) -> LockState {
        LockState::from_word(word[0].load(Ordering::Relaxed))
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no robust futexes")]
    fn dead_thread_frees_its_lock() {
        let word = Region::heap(1).words();
        let (of_thread, (sender, end)) = (word.clone(), std::sync::mpsc::channel::<()>());
        let (taken, is_taken) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            std::mem::forget(RobustLock::take(of_thread).unwrap());
            taken.send(()).unwrap();
            let _ = end.recv();
        });
        is_taken.recv().unwrap();
        assert_eq!(state(&word), LockState::Held);
        drop(sender);
        thread.join().unwrap();
        assert_eq!(state(&word), LockState::OwnerDied);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no robust futexes")]
    fn dropped_lock_is_free_and_its_list_forgotten() {
        let word = Region::heap(1).words();
        let of_thread = word.clone();
        std::thread::spawn(move || {
            let before = list_of_thread();
            let lock = RobustLock::take(of_thread).unwrap();
            assert!(list_of_thread() != before);
            drop(lock);
            assert!(list_of_thread() == before && !before.is_null());
        })
        .join()
        .unwrap();
        assert_eq!(state(&word), LockState::Free);
    }

    /// The child of a fork whose first thread ends alone, while another one writes memory without
    /// end, the word of the lock included.
    fn write_after_death(word: &AtomicWords, counter: &AtomicWords) -> ! {
        let (forged, counter) = (word.clone(), counter.clone());
        let writer = move || loop {
            counter[0].fetch_add(1, Ordering::Relaxed);
            forged[0].store(OWNER_DIED.into(), Ordering::Relaxed);
        };
        std::thread::spawn(writer);
        std::mem::forget(RobustLock::take(word.clone()).unwrap());
        // SAFETY: the call ends this thread alone, which nobody joins.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
        unreachable!()
    }

    /// Its word and the state of its first thread show a death, and stores follow. None follows
    /// once the kernel shows that each thread is exiting.
    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn hostile_writer_is_believed_dead_once_it_stores_nothing() {
        use crate::process::{kill_and_inspect, pidfd_open, state_in, wait_readable, zombie_status};
        use std::os::fd::AsFd;
        use std::time::Duration;
        let _only_one = crate::only_one_has_children();
        let name = format!("bulkhead-hostile-writer-{}", std::process::id());
        let region = Region::create(&name, 64).unwrap().words();
        shm::memory::unlink(&name).unwrap();
        let (word, counter) = (region.slice(0, 1), region.slice(32, 1));
        let stored = || counter[0].load(Ordering::Relaxed);
        // SAFETY: the child uses its own copy of memory, and the C library makes malloc usable
        // there.
        let child = match unsafe { libc::fork() } {
            0 => write_after_death(&word, &counter),
            pid => u32::try_from(pid).unwrap(),
        };
        let pidfd = pidfd_open(child).unwrap();
        let stat = || std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap();
        while stored() == 0 || state(&word) != LockState::OwnerDied || state_in(&stat()) != Some('Z') {
            std::thread::yield_now();
        }
        // The word alone, and one thread of two: both are so, and it stores.
        let before = stored();
        while stored() == before {
            std::thread::yield_now();
        }
        assert_eq!(zombie_status(child), None);
        while !kill_and_inspect(pidfd.as_fd()).unwrap().is_all() {
            std::thread::yield_now();
        }
        let last = stored();
        assert_eq!(wait_readable(&[pidfd.as_fd()], Duration::from_secs(60)).unwrap(), [true]);
        assert_eq!(stored(), last, "a store after the proof");
        crate::process::reap(pidfd.as_fd());
    }
}
