//! Threads with protection keys, on real memory: what they may write, what ends them, and broken
//! variants of the protection that these tests find.
//!
//! Skipped, with the reason, where the machine has no protection keys.

use shm::sync::{AtomicU64, Ordering};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use system::keys::arena::{ARENA_BYTES, Arena};
use system::keys::{self, Key, PreparedThread, Rights, WriteRights};

/// The keys of two strategies, and that of memory which both write.
fn key_set() -> [Key; 3] {
    static KEYS: OnceLock<[Key; 3]> = OnceLock::new();
    let keys = *KEYS.get_or_init(|| [(); 3].map(|()| Key::allocate().unwrap()));
    // The rights to a key belong to the thread that allocated it.
    keys::open_all();
    keys
}

/// Returns `true`, and prints the reason, where tests of protection keys are skipped.
fn are_keys_missing() -> bool {
    let missing = keys::missing();
    if let Some(why) = &missing {
        eprintln!("SKIPPED: {why}");
    }
    missing.is_some()
}

static EVERYBODYS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static OWN: Cell<u64> = const { Cell::new(0) };
}

/// Pages of their own, as a segment of shared memory.
fn pages(key: Option<Key>) -> &'static [AtomicU64] {
    // SAFETY: a new private mapping at an address that the kernel chooses, which is never unmapped;
    // zeros are valid atomics.
    let words: &'static [AtomicU64] = unsafe {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let start = libc::mmap(std::ptr::null_mut(), 8192, rights, flags, -1, 0);
        assert_ne!(start, libc::MAP_FAILED);
        std::slice::from_raw_parts(start.cast(), 1024)
    };
    if let Some(key) = key {
        key.protect(words).unwrap();
    }
    words
}

/// Memory of both strategies and of the engine.
struct Memory {
    own: &'static [AtomicU64],
    shared: &'static [AtomicU64],
    engine: &'static [AtomicU64],
    other: &'static [AtomicU64],
    heap: Arena,
    other_heap: Arena,
}

impl Memory {
    fn new() -> Self {
        let [own, other, shared] = key_set();
        let (heap, other_heap) = (Arena::new(own).unwrap(), Arena::new(other).unwrap());
        keys::detect_panic_start(own, Arena::new(own).unwrap()).unwrap();
        let other_ring = pages(Some(other));
        keys::register_owner(other_ring.as_ptr().addr(), 8192, "strategy-2's ring");
        keys::register_owner(other_heap.range().0, other_heap.range().1, "strategy-2's heap");
        let (shared, engine) = (pages(Some(shared)), pages(None));
        Self { own: pages(Some(own)), shared, engine, other: other_ring, heap, other_heap }
    }

    /// Returns a block of the other strategy's heap.
    fn block_of_other(&self) -> &'static AtomicU64 {
        let block = self.other_heap.within(|| Box::leak(Box::new(AtomicU64::new(5))));
        let (start, bytes) = self.other_heap.range();
        assert!((start..start + bytes).contains(&std::ptr::from_ref(block).addr()));
        block
    }
}

/// Runs a function on a thread of `strategy-1`, with closed rights unless `is_open`. Returns what
/// it returned, or what ended its thread. A thread that is ended is never joined.
fn run<T: Send + 'static>(
    heap: Arena,
    is_open: bool,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let [own, _, shared] = key_set();
    let (sender, ended) = mpsc::channel();
    let reason = Arc::new(Mutex::new(None));
    let reported = Arc::clone(&reason);
    std::thread::spawn(move || {
        let may_write = WriteRights { own, shared: Some(shared), heap, name: "strategy-1".into() };
        let report = move |why: &str| *reported.lock().unwrap() = Some(why.to_owned());
        let prepared = PreparedThread::new(may_write, report).unwrap();
        let closed = (!is_open).then(|| prepared.close());
        let result = body();
        drop(closed);
        sender.send(result).unwrap();
    });
    loop {
        match ended.recv_timeout(Duration::from_millis(1)) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Disconnected) => panic!("the thread unwound"),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Some(why) = reason.lock().unwrap().take() {
            return Err(why);
        }
    }
}

/// Writes to a word with closed rights. Returns the reason of the refusal.
fn refusal(heap: Arena, word: &'static AtomicU64) -> String {
    let before = word.load(Ordering::Relaxed);
    let why = run(heap, false, move || word.store(before + 1, Ordering::Relaxed)).unwrap_err();
    assert_eq!(word.load(Ordering::Relaxed), before, "{why}");
    why
}

#[test]
fn write_outside_own_memory_is_refused_and_named() {
    if are_keys_missing() {
        return;
    }
    let memory = Memory::new();
    let on_heap: &AtomicU64 = Box::leak(Box::new(AtomicU64::new(7)));
    for (word, owner) in [
        (&memory.engine[3], "the engine's heap or stack"),
        (on_heap, "the engine's heap or stack"),
        (&EVERYBODYS, "a static variable of all-"),
        (&memory.other[1000], "strategy-2's ring"),
        (memory.block_of_other(), "strategy-2's heap"),
    ] {
        let why = refusal(memory.heap, word);
        let wanted = format!("strategy-1 wrote to {:#x}, {owner}", std::ptr::from_ref(word).addr());
        assert!(why.starts_with("protection key: ") && why.contains(&wanted), "{why}");
    }
}

#[test]
fn own_memory_is_written_and_all_is_read() {
    if are_keys_missing() {
        return;
    }
    let memory = Memory::new();
    memory.other[0].store(11, Ordering::Relaxed);
    let (heap, own, shared, other) = (memory.heap, memory.own, memory.shared, memory.other);
    let read = run(heap, false, move || {
        own[0].store(1, Ordering::Relaxed);
        shared[0].store(2, Ordering::Relaxed);
        OWN.set(3);
        // Grows, moves and frees blocks of all sizes.
        let mut all: Vec<Vec<u8>> = Vec::new();
        for size in (0..22).map(|power| 1_usize << power) {
            all.push(vec![size as u8; size]);
            all.iter_mut().for_each(|block| block.push(1));
        }
        let text = format!("{} {:?}", all.len(), std::time::Instant::now().elapsed() < Duration::MAX);
        (text, other[0].load(Ordering::Relaxed) + OWN.get())
    });
    assert_eq!(read, Ok(("22 true".to_owned(), 14)));
    assert_eq!((memory.own[0].load(Ordering::Relaxed), memory.shared[0].load(Ordering::Relaxed)), (1, 2));
}

#[test]
fn freed_blocks_are_used_again() {
    if are_keys_missing() {
        return;
    }
    let memory = Memory::new();
    let kept = run(memory.heap, false, || {
        // Many times the arena's size.
        for _ in 0..4 * ARENA_BYTES / (1 << 20) {
            drop(std::hint::black_box(vec![1_u8; 1 << 20]));
        }
        Box::new(9)
    });
    // The engine frees it; it is not used again.
    assert_eq!(kept.map(|kept| *kept), Ok(9));
    assert!(memory.heap.is_served());
}

#[test]
fn mistakes_end_their_thread_alone() {
    if are_keys_missing() {
        return;
    }
    fn overflow(depth: u64) -> u64 {
        let frame = std::hint::black_box([depth; 64]);
        if depth == u64::MAX { 0 } else { overflow(depth + 1) + frame[3] }
    }
    let heap = Memory::new().heap;
    let constant = std::ptr::from_ref(&["a constant"; 4]).addr();
    let code = overflow as *const () as usize;
    let write = |address: usize| {
        move || {
            // SAFETY: none: the kernel refuses it.
            unsafe { std::ptr::with_exposed_provenance_mut::<u64>(address).write_volatile(1) }
        }
    };
    for (address, owner) in [
        (8, "SIGSEGV: strategy-1 accessed 0x8"),
        (constant, "a constant or vtable of all-"),
        (code, "code of all-"),
    ] {
        let why = run(heap, false, write(address)).unwrap_err();
        assert!(why.contains(owner), "{why}");
    }
    let why = run(heap, false, || overflow(0)).unwrap_err();
    assert!(why.contains("the guard of strategy-1's stack"), "{why}");
    let why = run::<()>(heap, false, || std::process::exit(3)).unwrap_err();
    assert!(why.contains("protection key") || why.contains("SIGSYS"), "{why}");
    let why = run::<()>(heap, false, || system::fault::exit(3)).unwrap_err();
    assert!(why.contains("which would end the process"), "{why}");
    // Abort takes a lock of the C library first, which is everybody's.
    let why = run(heap, false, || std::process::abort()).unwrap_err();
    assert!(why.contains("protection key") || why.contains("SIGABRT"), "{why}");
    // An allocation that fails aborts.
    let why = run(heap, false, || drop(std::hint::black_box(vec![1_u8; 1 << 30]))).unwrap_err();
    assert!(why.contains("protection key") || why.contains("SIGABRT"), "{why}");
}

#[test]
fn panic_unwinds_with_its_message() {
    if are_keys_missing() {
        return;
    }
    let heap = Memory::new().heap;
    let message = run(heap, false, || {
        let ended = catch_unwind(AssertUnwindSafe(|| panic!("on purpose")));
        ended.unwrap_err().downcast_ref::<&str>().copied()
    });
    assert_eq!(message, Ok(Some("on purpose")));
}

#[test]
fn thread_that_writes_the_register_itself_escapes() {
    if are_keys_missing() {
        return;
    }
    // Against mistakes, not malice: the instruction needs no privilege.
    let (heap, engine) = (Memory::new().heap, pages(None));
    run(heap, false, move || {
        keys::open_all();
        engine[0].store(99, Ordering::Relaxed);
    })
    .unwrap();
    assert_eq!(engine[0].load(Ordering::Relaxed), 99);
}

#[test]
fn calls_around_the_key_are_refused() {
    if are_keys_missing() {
        return;
    }
    let memory = Memory::new();
    let engine = memory.engine.as_ptr().addr();
    let (stack_of_other, page) = (memory.other_heap.range().0, 4096_usize);
    let refused = run(memory.heap, false, move || {
        let mut value = 5_u64;
        let own = libc::iovec { iov_base: (&raw mut value).cast(), iov_len: 8 };
        let other = libc::iovec { iov_base: std::ptr::with_exposed_provenance_mut(engine), iov_len: 8 };
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: each call is refused; what they name is mapped memory of this test, and this
        // process.
        unsafe {
            let (process, thread) = (libc::getpid(), libc::gettid());
            [
                libc::syscall(libc::SYS_mprotect, engine, page, rights),
                libc::syscall(libc::SYS_pkey_mprotect, engine, page, rights, 1),
                libc::syscall(libc::SYS_pkey_mprotect, stack_of_other, page, rights, 0),
                libc::syscall(libc::SYS_pkey_alloc, 0, 0),
                libc::syscall(libc::SYS_pkey_free, 1),
                libc::syscall(
                    libc::SYS_process_vm_writev,
                    process,
                    &raw const own,
                    1,
                    &raw const other,
                    1,
                    0,
                ),
                libc::syscall(libc::SYS_kill, process, 0),
                libc::syscall(libc::SYS_tgkill, process, process, 0),
                libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGKILL),
            ]
            .map(|result| (result, *libc::__errno_location()))
        }
    });
    assert_eq!(refused.unwrap(), [(-1, libc::EPERM); 9]);
}

/// A way in which the protection could be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    Correct,
    /// The thread's key was never set: its rights stay open.
    NeverClosed,
    /// A page of its arena does not carry its key.
    PageWithoutKey,
    /// A signal's handler returns with all rights.
    OpenedBySignal,
    /// A segment was mapped again without its key.
    MappedAgain,
}

/// Handles a signal, and gives the interrupted code all rights where the variant is that.
extern "C" fn open_frame(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the frame of the kernel; the register lies where the CPU says.
    unsafe {
        let frame = (*context.cast::<libc::ucontext_t>()).uc_mcontext.fpregs.cast::<u8>();
        let offset = std::arch::x86_64::__cpuid_count(0xd, 9).ebx as usize;
        frame.add(offset).cast::<u32>().write_unaligned(0);
    }
}

extern "C" fn do_nothing(_: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {}

/// Raises a signal on the calling thread, whose handler runs on the signal stack.
fn raise_handled(signal: i32) {
    // SAFETY: a live set; the handler was installed before.
    unsafe {
        let mut only: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut only, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const only, std::ptr::null_mut());
        libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::syscall(libc::SYS_gettid), signal);
    }
}

fn handle(signal: i32, handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void)) {
    // SAFETY: a plain structure; both handlers may interrupt anything.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        assert_eq!(libc::sigaction(signal, &raw const action, std::ptr::null_mut()), 0);
    }
}

/// Returns the mistakes that a protection of this variant makes.
fn mistakes_of(variant: Variant) -> Vec<&'static str> {
    let [own, ..] = key_set();
    let memory = Memory::new();
    let (heap, engine, ring) = (memory.heap, memory.engine, memory.own);
    let signal = if variant == Variant::OpenedBySignal { libc::SIGUSR1 } else { libc::SIGUSR2 };
    handle(libc::SIGUSR1, open_frame);
    handle(libc::SIGUSR2, do_nothing);
    let page = heap.range().0 + (8 << 20);
    match variant {
        // SAFETY: pages of this test, mapped again at their place with the same rights.
        Variant::MappedAgain => unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            let start = ring.as_ptr().cast_mut().cast();
            assert_ne!(
                libc::mmap(start, 8192, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0),
                libc::MAP_FAILED
            );
        },
        Variant::PageWithoutKey => {
            // SAFETY: a page of an arena of this test that nothing uses yet; zeros are valid.
            let words = unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(page), 512) };
            Key::DEFAULT.protect(words).unwrap();
        }
        _ => own.protect(ring).unwrap(),
    }
    let is_open = variant == Variant::NeverClosed;
    let mut found = Vec::new();
    if run(heap, is_open, move || {
        raise_handled(signal);
        engine[5].store(1, Ordering::Relaxed);
    })
    .is_ok()
    {
        found.push("the engine's memory was written");
    }
    if run(heap, is_open, move || drop(vec![1_u8; 32 << 20])).is_err() {
        found.push("its heap was refused");
    }
    if run(heap, is_open, move || ring[0].store(1, Ordering::Relaxed)).is_err() {
        found.push("its ring was refused");
    }
    found
}

#[test]
fn broken_protections_are_found() {
    if are_keys_missing() {
        return;
    }
    for (variant, mistakes) in [
        (Variant::Correct, [].as_slice()),
        (Variant::NeverClosed, &["the engine's memory was written"]),
        (Variant::PageWithoutKey, &["its heap was refused"]),
        (Variant::OpenedBySignal, &["the engine's memory was written"]),
        (Variant::MappedAgain, &["its ring was refused"]),
    ] {
        assert_eq!(mistakes_of(variant), mistakes, "{variant:?}");
    }
}

#[test]
fn rights_survive_a_handled_signal() {
    if are_keys_missing() {
        return;
    }
    handle(libc::SIGURG, do_nothing);
    let rights = run(Memory::new().heap, false, || {
        let before = Rights::current();
        raise_handled(libc::SIGURG);
        (before, Rights::current())
    });
    let (before, after) = rights.unwrap();
    assert_eq!(before, after);
    assert_ne!(before, Rights::OPEN);
}

#[test]
fn fresh_mapping_of_the_thread_is_refused() {
    if are_keys_missing() {
        return;
    }
    // A new mapping has key 0, whoever makes it.
    let why = run(Memory::new().heap, false, || pages(None)[0].store(1, Ordering::Relaxed)).unwrap_err();
    assert!(why.contains("the engine's heap or stack"), "{why}");
}

/// Returns the protection key of the pages at an address of this process.
fn key_at(address: usize) -> String {
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut is_within = false;
    for line in smaps.lines() {
        if let Some((start, end)) = line.split_once(' ').and_then(|(range, _)| range.split_once('-')) {
            let bounds = [start, end].map(|text| usize::from_str_radix(text, 16));
            if let [Ok(start), Ok(end)] = bounds {
                is_within = (start..end).contains(&address);
            }
        }
        if is_within && line.starts_with("ProtectionKey:") {
            return line.split_ascii_whitespace().nth(1).unwrap().to_owned();
        }
    }
    panic!("{address:#x} is not mapped");
}

#[test]
fn stack_loses_its_key_at_the_end_of_the_protection() {
    if are_keys_missing() {
        return;
    }
    let (heap, own) = (Memory::new().heap, key_set()[0]);
    let number = own.number().to_string();
    // On the thread itself: after its end, the C library gives the stack to a thread of any test.
    let keys = std::thread::spawn(move || {
        let local = 5_u64;
        let address = std::ptr::from_ref(std::hint::black_box(&local)).expose_provenance();
        let may_write = WriteRights { own, shared: None, heap, name: "strategy-1".into() };
        let prepared = PreparedThread::new(may_write, |_| {}).unwrap();
        drop(prepared.close());
        let before = key_at(address);
        drop(prepared);
        [before, key_at(address)]
    });
    assert_eq!(keys.join().unwrap(), [number.clone(), "0".into()]);
    assert_eq!(key_at(heap.range().0), number);
}
