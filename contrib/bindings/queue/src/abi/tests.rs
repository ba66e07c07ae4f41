//! The C functions called as a C program calls them, in one process.

use super::batches::{bhq_drain, bhq_pop_many, bhq_push_many};
use super::fast::{bhq_fast_receiver_of, bhq_fast_sender_of, bhq_wake};
use super::*;
use crate::codes::*;
use crate::handles::{FastReceiver, FastSender, QueueHandle, ReceiverHandle, SenderHandle};
use core::ffi::{CStr, c_void};
use core::ptr::{null, null_mut};
use std::ffi::CString;

fn name(what: &str) -> CString {
    CString::new(format!("capi-{}-{what}", std::process::id())).unwrap()
}

fn error_text(code: i32) -> String {
    // SAFETY: never null, and copied before the thread's next error.
    unsafe { CStr::from_ptr(bhq_error_text(code)) }.to_str().unwrap().to_owned()
}

/// The handles of one queue, closed at the end.
struct Handles {
    queue: *mut QueueHandle,
    sender: *mut SenderHandle,
    receiver: *mut ReceiverHandle,
}

impl Handles {
    fn sealed(message_bytes: usize) -> Self {
        let mut handles = Self { queue: null_mut(), sender: null_mut(), receiver: null_mut() };
        // SAFETY: each place is valid for the write of a handle.
        let codes = unsafe {
            [
                bhq_create_sealed(2, 8, message_bytes, &raw mut handles.queue),
                bhq_attach_sender(handles.queue, &raw mut handles.sender),
                bhq_attach_receiver(handles.queue, &raw mut handles.receiver),
            ]
        };
        assert_eq!(codes, [BHQ_OK; 3]);
        handles
    }

    fn push(&self, message: &[u8]) -> i32 {
        // SAFETY: the handle is open, and the message is as long as its length.
        unsafe { bhq_push(self.sender, message.as_ptr().cast(), message.len()) }
    }

    fn pop(&self, message: &mut [u8]) -> i32 {
        // SAFETY: the handle is open, and the buffer is as long as its length.
        unsafe { bhq_pop(self.receiver, message.as_mut_ptr().cast(), message.len()) }
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        // SAFETY: they are open, and not used after this.
        unsafe {
            bhq_close_sender(self.sender);
            bhq_close_receiver(self.receiver);
            bhq_close_queue(self.queue);
        }
    }
}

#[test]
fn every_function_refuses_null() {
    let (mut buffer, mut fd) = ([0u8; 8], 0);
    let message: *mut c_void = buffer.as_mut_ptr().cast();
    let name = name("null");
    // SAFETY: null handles, and places that are valid or null.
    let codes = unsafe {
        [
            bhq_create(null(), 1, 8, 8, &mut null_mut()),
            bhq_create(name.as_ptr(), 1, 8, 8, null_mut()),
            bhq_create_sealed(1, 8, 8, null_mut()),
            bhq_open(null(), 8, &mut null_mut()),
            bhq_open(name.as_ptr(), 8, null_mut()),
            bhq_open_fds(0, 0, 8, null_mut()),
            bhq_fds(null(), &raw mut fd, &raw mut fd),
            bhq_producer_state(null(), 0, null_mut()),
            bhq_has_receiver(null()),
            bhq_attach_sender(null_mut(), &mut null_mut()),
            bhq_resume_sender(null_mut(), 0, &mut null_mut()),
            bhq_attach_receiver(null_mut(), &mut null_mut()),
            bhq_resume_receiver(null_mut(), &mut null_mut()),
            bhq_remove(null()),
            bhq_push(null_mut(), message, 8),
            bhq_push_many(null_mut(), message, 8, 1),
            bhq_fast_sender_of(null_mut(), BHQ_LAYOUT, size_of::<FastSender>(), &mut null_mut()),
            bhq_wake(null_mut()),
            bhq_sender_index(null()),
            bhq_pop_many(null_mut(), message, 8, 1),
            bhq_drain(null_mut(), 1, None, null_mut()),
            bhq_fast_receiver_of(null_mut(), BHQ_LAYOUT, size_of::<FastReceiver>(), &mut null_mut()),
            bhq_pop(null_mut(), message, 8),
            bhq_pop_timeout(null_mut(), message, 8, 0),
            bhq_take(null_mut(), &mut null(), 0),
            bhq_release(null_mut()),
            bhq_put_back(null_mut()),
            bhq_last_producer(null()),
            bhq_faulty_producer(null()),
            bhq_wait_fd(null()),
            bhq_prepare_wait(null_mut()),
            bhq_retire(null_mut(), 0),
            bhq_renew(null_mut(), 0),
            bhq_receiver_producer_state(null(), 0, null_mut()),
        ]
    };
    assert_eq!(codes, [BHQ_NULL; 34]);
    let handles = Handles::sealed(8);
    // SAFETY: open handles, and null places.
    let codes = unsafe {
        bhq_close_queue(null_mut());
        bhq_close_sender(null_mut());
        bhq_close_receiver(null_mut());
        assert_eq!((bhq_message_bytes(null()), bhq_producers(null())), (0, 0));
        [
            bhq_fds(handles.queue, null_mut(), &raw mut fd),
            bhq_attach_sender(handles.queue, null_mut()),
            bhq_resume_sender(handles.queue, 0, null_mut()),
            bhq_attach_receiver(handles.queue, null_mut()),
            bhq_resume_receiver(handles.queue, null_mut()),
            bhq_push(handles.sender, null(), 8),
            bhq_pop(handles.receiver, null_mut(), 8),
            bhq_pop_timeout(handles.receiver, null_mut(), 8, 0),
            bhq_take(handles.receiver, null_mut(), 0),
            bhq_push_many(handles.sender, null(), 8, 1),
            bhq_pop_many(handles.receiver, null_mut(), 8, 1),
            bhq_drain(handles.receiver, 1, None, null_mut()),
            bhq_fast_sender_of(handles.sender, BHQ_LAYOUT, size_of::<FastSender>(), null_mut()),
            bhq_fast_receiver_of(handles.receiver, BHQ_LAYOUT, size_of::<FastReceiver>(), null_mut()),
        ]
    };
    assert_eq!(codes, [BHQ_NULL; 14]);
    assert_eq!(error_text(BHQ_NULL), "a pointer is null");
}

#[test]
fn messages_arrive_and_wrong_sizes_are_refused() {
    for bytes in [1, 8, 56, 57, 1000, BHQ_MAX_MESSAGE_BYTES] {
        let handles = Handles::sealed(bytes);
        let (message, mut popped) = (vec![7; bytes], vec![0; bytes]);
        assert_eq!(handles.pop(&mut popped), 0);
        let pushed = (0..100).take_while(|_| handles.push(&message) == BHQ_OK).count();
        assert!((8..=16).contains(&pushed), "{pushed}");
        assert_eq!((handles.push(&message), &*error_text(BHQ_FULL)), (BHQ_FULL, "the queue is full"));
        assert_eq!(handles.push(&vec![7; bytes + 1]), BHQ_BAD_SIZE);
        assert_eq!(handles.pop(&mut vec![7; bytes - 1]), BHQ_BAD_SIZE);
        let text = format!("invalid message of {} bytes: the messages of the queue have {bytes}", bytes - 1);
        assert_eq!(error_text(BHQ_BAD_SIZE), text);
        assert_eq!(handles.pop(&mut popped), 1);
        assert!(popped == message);
        // SAFETY: open handles.
        unsafe {
            let length = (bhq_message_bytes(handles.queue), bhq_producers(handles.queue));
            assert_eq!(length, (bytes, 2));
            assert_eq!((bhq_sender_index(handles.sender), bhq_last_producer(handles.receiver)), (0, 0));
        }
    }
}

#[test]
fn taken_message_is_aligned_and_keeps_its_slots() {
    for bytes in [24, 1000] {
        let handles = Handles::sealed(bytes);
        let (mut message, mut popped) = (null(), vec![0; bytes]);
        // SAFETY: open handles, and a place for an address, which is valid until the release.
        unsafe {
            assert_eq!(bhq_take(handles.receiver, &raw mut message, 1_000_000), 0);
            assert_eq!(bhq_release(handles.receiver), BHQ_NOT_TAKEN);
            assert_eq!(bhq_put_back(handles.receiver), BHQ_NOT_TAKEN);
            assert_eq!(handles.push(&vec![3; bytes]), BHQ_OK);
            for _ in 0..2 {
                assert_eq!(bhq_take(handles.receiver, &raw mut message, 0), 1);
                assert!(message.addr().is_multiple_of(8));
                let taken = core::slice::from_raw_parts(message.cast::<u8>(), bytes);
                assert!(taken.iter().all(|byte| *byte == 3));
                assert_eq!(bhq_take(handles.receiver, &raw mut message, 0), BHQ_TAKEN);
                assert_eq!(handles.pop(&mut popped), BHQ_TAKEN);
                assert_eq!(bhq_put_back(handles.receiver), BHQ_OK);
            }
            assert_eq!(bhq_take(handles.receiver, &raw mut message, 0), 1);
            assert_eq!(bhq_release(handles.receiver), BHQ_OK);
        }
        assert_eq!(handles.pop(&mut popped), 0);
    }
}

#[test]
fn named_queue_is_opened_by_rust_and_c() {
    let name = name("named");
    let (mut queue, mut other) = (null_mut(), null_mut());
    let (mut sender, mut receiver) = (null_mut(), null_mut());
    // SAFETY: a C string, places for handles, handles that are open.
    unsafe {
        assert_eq!(bhq_open(name.as_ptr(), 0, &raw mut other), BHQ_NOT_FOUND);
        assert_eq!(bhq_create(name.as_ptr(), 1, 8, 24, &raw mut queue), BHQ_OK);
        assert_eq!(bhq_create(name.as_ptr(), 1, 8, 24, &raw mut other), BHQ_LIVING);
        assert!(error_text(BHQ_LIVING).contains(name.to_str().unwrap()));
        assert_eq!(bhq_remove(name.as_ptr()), BHQ_LIVING);
        assert_eq!(bhq_open(name.as_ptr(), 16, &raw mut other), BHQ_BAD_SIZE);
        assert_eq!(bhq_open(name.as_ptr(), 24, &raw mut other), BHQ_OK);
        assert_eq!(bhq_attach_sender(other, &raw mut sender), BHQ_OK);
        assert_eq!(bhq_attach_sender(other, &raw mut sender), BHQ_NO_FREE_PRODUCER);
        let mut pid = 0;
        assert_eq!(bhq_producer_state(queue, 0, &raw mut pid), BHQ_STATE_ALIVE);
        assert_eq!(pid, u64::from(std::process::id()));
        assert_eq!(bhq_producer_state(queue, 1, null_mut()), BHQ_BAD_INDEX);
        assert_eq!(bhq_has_receiver(queue), 0);
    }
    let message = [[1u64, 2, 3], [4, 5, 6]];
    // SAFETY: an open handle, and a message of 24 bytes.
    assert_eq!(unsafe { bhq_push(sender, message[0].as_ptr().cast(), 24) }, BHQ_OK);
    let mut typed = shm::queue::open::<[u64; 3]>(name.to_str().unwrap()).unwrap();
    let mut typed_receiver = typed.receiver().unwrap();
    // SAFETY: an open handle.
    assert_eq!(unsafe { bhq_has_receiver(queue) }, 1);
    assert_eq!(typed_receiver.pop(), Ok(Some(message[0])));
    drop(typed_receiver);
    // SAFETY: open handles, which are closed once and not used after.
    unsafe {
        bhq_close_sender(sender);
        assert_eq!(bhq_producer_state(queue, 0, null_mut()), BHQ_STATE_FREE);
        typed.sender().unwrap().push(&message[1]).unwrap();
        assert_eq!(bhq_attach_receiver(queue, &raw mut receiver), BHQ_OK);
        let mut popped = [0u64; 3];
        assert_eq!(bhq_pop_timeout(receiver, popped.as_mut_ptr().cast(), 24, 0), 1);
        assert_eq!(popped, message[1]);
        assert_eq!(bhq_pop_timeout(receiver, popped.as_mut_ptr().cast(), 24, 1_000_000), 0);
        bhq_close_receiver(receiver);
        bhq_close_queue(other);
        bhq_close_queue(queue);
        assert_eq!(bhq_remove(name.as_ptr()), 0);
    }
}

#[test]
fn wrong_arguments_have_codes_and_texts() {
    let (mut queue, fine) = (null_mut(), name("wrong"));
    // SAFETY: C strings, and a place for a handle.
    let codes = unsafe {
        [
            bhq_create(c"a/b".as_ptr(), 1, 8, 8, &raw mut queue),
            bhq_create(c"\xFF".as_ptr(), 1, 8, 8, &raw mut queue),
            bhq_create(fine.as_ptr(), 0, 8, 8, &raw mut queue),
            bhq_create(fine.as_ptr(), 1, u32::MAX, 8, &raw mut queue),
            bhq_create(fine.as_ptr(), 1, 8, 0, &raw mut queue),
            bhq_create(fine.as_ptr(), 1, 8, BHQ_MAX_MESSAGE_BYTES + 1, &raw mut queue),
            bhq_open_fds(-1, 0, 8, &raw mut queue),
        ]
    };
    let expected = [
        BHQ_BAD_NAME,
        BHQ_BAD_NAME,
        BHQ_BAD_PRODUCERS,
        BHQ_BAD_CAPACITY,
        BHQ_BAD_SIZE,
        BHQ_BAD_SIZE,
        BHQ_BAD_DESCRIPTORS,
    ];
    assert_eq!((codes, queue), (expected, null_mut()));
    assert_eq!(error_text(BHQ_BAD_DESCRIPTORS), "a descriptor is negative");
    // A code without an error of this thread has the generic text.
    assert_eq!(error_text(BHQ_BAD_NAME), text(BHQ_BAD_NAME).to_str().unwrap());
    assert_eq!(error_text(-1000), "no code of this library");
}

#[test]
fn sealed_queue_is_opened_by_its_descriptors() {
    let handles = Handles::sealed(24);
    let (mut memory, mut pipe, mut opened, mut sender) = (-1, -1, null_mut(), null_mut());
    // SAFETY: open handles and descriptors, and places for numbers and handles.
    unsafe {
        assert_eq!(bhq_fds(handles.queue, &raw mut memory, &raw mut pipe), BHQ_OK);
        assert_eq!(bhq_open_fds(pipe, memory, 24, &raw mut opened), BHQ_BAD_DESCRIPTORS);
        assert_eq!(bhq_open_fds(memory, pipe, 23, &raw mut opened), BHQ_BAD_SIZE);
        assert_eq!(bhq_open_fds(memory, pipe, 24, &raw mut opened), BHQ_OK);
        assert_eq!(bhq_attach_sender(opened, &raw mut sender), BHQ_OK);
        assert_eq!(bhq_sender_index(sender), 1);
        assert_eq!(bhq_prepare_wait(handles.receiver), 1);
        assert_eq!(bhq_push(sender, [9u64; 3].as_ptr().cast(), 24), BHQ_OK);
        assert_eq!(bhq_prepare_wait(handles.receiver), 0);
        assert!(bhq_wait_fd(handles.receiver) >= 0);
        assert_eq!(bhq_receiver_producer_state(handles.receiver, 1, null_mut()), BHQ_STATE_ALIVE);
        assert_eq!(bhq_retire(handles.receiver, 1), BHQ_PRODUCER_ALIVE);
        bhq_close_sender(sender);
        assert_eq!(bhq_retire(handles.receiver, 1), 0, "it has a message");
        let mut popped = [0; 24];
        assert_eq!((handles.pop(&mut popped), bhq_last_producer(handles.receiver)), (1, 1));
        assert_eq!(bhq_retire(handles.receiver, 1), 1);
        assert_eq!(bhq_resume_sender(opened, 1, &raw mut sender), BHQ_RETIRED);
        assert_eq!(bhq_producer_state(opened, 1, null_mut()), BHQ_STATE_RETIRED);
        assert_eq!(bhq_renew(handles.receiver, 1), 1);
        assert_eq!(bhq_resume_sender(opened, 0, &raw mut sender), BHQ_PRODUCER_ALIVE);
        assert_eq!(bhq_faulty_producer(handles.receiver), BHQ_NO_PRODUCER, "not BHQ_FULL");
        bhq_close_queue(opened);
    }
}

/// A producer that overwrites its ring: a fault of that producer, and the ring is renewed.
#[test]
fn overwritten_ring_is_a_fault_and_is_renewed() {
    use std::os::fd::FromRawFd as _;
    use std::os::unix::fs::FileExt as _;
    let mut handles = Handles::sealed(8);
    let (mut fd, mut pipe, mut popped) = (-1, -1, [0; 8]);
    // SAFETY: an open handle, and places for numbers.
    unsafe { assert_eq!(bhq_fds(handles.queue, &raw mut fd, &raw mut pipe), BHQ_OK) };
    // SAFETY: the descriptor is open, and the file does not close it.
    let memory = core::mem::ManuallyDrop::new(unsafe { std::fs::File::from_raw_fd(fd) });
    let bytes = memory.metadata().unwrap().len();
    memory.write_all_at(&vec![0x5A; bytes as usize - 4096], 4096).unwrap();
    assert_eq!(handles.pop(&mut popped), BHQ_FAULT);
    // SAFETY: open handles; the sender is closed once.
    unsafe {
        let faulty = bhq_faulty_producer(handles.receiver);
        assert!(error_text(BHQ_FAULT).starts_with(&format!("producer {faulty} broke the protocol")));
        bhq_close_sender(core::mem::replace(&mut handles.sender, null_mut()));
        assert_eq!(bhq_renew(handles.receiver, 0), 1);
        assert_eq!(bhq_attach_sender(handles.queue, &raw mut handles.sender), BHQ_OK);
    }
    assert_eq!(handles.push(&[4; 8]), BHQ_OK);
    let found = (0..3).map(|_| handles.pop(&mut popped)).find(|code| *code == 1);
    assert_eq!((found, popped), (Some(1), [4; 8]));
}

/// From the first message on; a refused call, whose text is kept, is what the counter must see.
#[test]
fn messages_do_not_allocate() {
    use system::alloc::{allocations, is_counted};
    assert!(is_counted());
    for bytes in [8, 24, 25, 56, 57, 1000, BHQ_MAX_MESSAGE_BYTES] {
        let handles = Handles::sealed(bytes);
        let (message, mut popped, mut taken) = (vec![7; bytes], vec![0; bytes], null());
        let before = allocations();
        for _ in 0..20 {
            let codes = [handles.push(&message), handles.push(&message), handles.pop(&mut popped)];
            // SAFETY: an open handle, and a place for an address.
            let more = unsafe {
                let code = bhq_take(handles.receiver, &raw mut taken, 0);
                [code, bhq_release(handles.receiver), bhq_prepare_wait(handles.receiver)]
            };
            let none = handles.pop(&mut popped);
            assert_eq!((codes, more, none), ([0, 0, 1], [1, 0, 1], 0));
        }
        while handles.push(&message) == BHQ_OK {}
        assert_eq!(allocations() - before, 0, "{bytes} bytes");
        assert_eq!(handles.push(&[]), BHQ_BAD_SIZE);
        assert!(allocations() > before);
    }
}

/// Keeps the first byte of each message, up to one that begins with 99.
unsafe extern "C" fn keep_byte(message: *const c_void, kept: *mut c_void) -> i32 {
    // SAFETY: the message has a byte, and the context is a vector that only this call uses.
    let (byte, kept) = unsafe { (*message.cast::<u8>(), &mut *kept.cast::<Vec<u8>>()) };
    if byte == 99 {
        return 1;
    }
    kept.push(byte);
    0
}

#[test]
fn batches_are_pushed_popped_and_drained() {
    let handles = Handles::sealed(2);
    let messages: Vec<u8> = (0..20).flat_map(|n| [if n == 6 { 99 } else { n }; 2]).collect();
    let (mut popped, mut kept) = ([0; 8], Vec::<u8>::new());
    let context: *mut c_void = (&raw mut kept).cast();
    // SAFETY: open handles, and memory of as many messages.
    let codes = unsafe {
        [
            bhq_push_many(handles.sender, messages.as_ptr().cast(), 2, 20),
            bhq_push_many(handles.sender, messages.as_ptr().cast(), 3, 1),
            bhq_pop_many(handles.receiver, popped.as_mut_ptr().cast(), 2, 4),
            bhq_pop_many(handles.receiver, popped.as_mut_ptr().cast(), 1, 4),
            bhq_drain(handles.receiver, 1, Some(keep_byte), context),
            bhq_drain(handles.receiver, 100, Some(keep_byte), context),
            // The message that ends a drain stays.
            bhq_drain(handles.receiver, 100, Some(keep_byte), context),
        ]
    };
    assert_eq!(codes, [8, BHQ_BAD_SIZE, 4, BHQ_BAD_SIZE, 1, 1, 0]);
    assert_eq!((popped, &kept[..]), ([0, 0, 1, 1, 2, 2, 3, 3], &[4, 5][..]));
    assert_eq!((handles.pop(&mut popped[..2]), popped[0]), (1, 99));
    assert_eq!((handles.pop(&mut popped[..2]), popped[0]), (1, 7));
    assert_eq!(handles.pop(&mut popped[..2]), 0);
}

/// A push without a call, as bulkhead_queue_inline.h makes it, of a message of 8 bytes.
///
/// # Safety
/// The sender is open, of such messages, and has room.
unsafe fn push_inline(fast: *mut FastSender, number: u64) {
    // SAFETY: by this function's contract; the place is inside of the ring's.
    unsafe {
        let fast = &mut *fast;
        let place = fast.places.add(((fast.tail & fast.mask) * fast.place_bytes) as usize);
        place.cast::<u64>().write_volatile(number);
        fast.tail += 1;
        fast.tail_word.write_volatile(fast.tail);
    }
}

/// Calls and pushes and pops without a call alternate on the same ends.
#[test]
fn calls_continue_after_pushes_and_pops_without_a_call() {
    let (mut queue, mut sender, mut receiver) = (null_mut(), null_mut(), null_mut());
    let (mut push, mut pop): (*mut FastSender, *mut FastReceiver) = (null_mut(), null_mut());
    let mut popped = [0_u64; 4];
    // SAFETY: each place is valid for the write of a handle, and handles are open until the end.
    unsafe {
        assert_eq!(bhq_create_sealed(1, 8, 8, &raw mut queue), BHQ_OK);
        assert_eq!(bhq_attach_sender(queue, &raw mut sender), BHQ_OK);
        assert_eq!(bhq_attach_receiver(queue, &raw mut receiver), BHQ_OK);
        let (sizes, wrong) = ((size_of::<FastSender>(), size_of::<FastReceiver>()), BHQ_LAYOUT + 1);
        assert_eq!(bhq_fast_sender_of(sender, wrong, sizes.0, &raw mut push), BHQ_BAD_LAYOUT);
        assert_eq!(bhq_fast_sender_of(sender, BHQ_LAYOUT, sizes.0 - 8, &raw mut push), BHQ_BAD_LAYOUT);
        assert_eq!(bhq_fast_receiver_of(receiver, wrong, sizes.1, &raw mut pop), BHQ_BAD_LAYOUT);
        assert_eq!(bhq_fast_sender_of(sender, BHQ_LAYOUT, sizes.0, &raw mut push), BHQ_OK);
        assert_eq!(bhq_fast_receiver_of(receiver, BHQ_LAYOUT, sizes.1, &raw mut pop), BHQ_OK);
        assert_eq!(((*push).capacity, (*pop).capacity), (8, 8));
        for n in 0..50_u64 {
            assert_eq!(bhq_push(sender, (&raw const n).cast(), 8), BHQ_OK);
            push_inline(push, n + 1000);
            assert_eq!(bhq_push(sender, (&raw const n).cast(), 8), BHQ_OK);
            // One is popped without a call.
            (*pop).head += 1;
            (*pop).end = (*pop).end.max((*pop).head);
            (*pop).head_word.write_volatile((*pop).head);
            assert_eq!(bhq_pop_many(receiver, popped.as_mut_ptr().cast(), 8, 4), 2);
            assert_eq!(popped[..2], [n + 1000, n]);
            assert_eq!((*pop).head, 3 * (n + 1));
        }
        // While a message is taken, and while the receiver is armed, each pop is a call.
        push_inline(push, 1);
        assert_eq!(bhq_take(receiver, &mut null(), 0), 1);
        assert_eq!(((*pop).capacity, bhq_release(receiver), (*pop).capacity), (0, BHQ_OK, 8));
        assert_eq!((bhq_prepare_wait(receiver), (*pop).capacity), (1, 0));
        push_inline(push, 2);
        assert_ne!((*push).wake_flag.read_volatile(), 0, "the sender is told to wake it");
        assert_eq!(bhq_wake(sender), BHQ_OK);
        assert_eq!(bhq_pop(receiver, popped.as_mut_ptr().cast(), 8), 1);
        assert_eq!((popped[0], (*pop).capacity), (2, 8));
        bhq_close_sender(sender);
        bhq_close_receiver(receiver);
        bhq_close_queue(queue);
    }
}
