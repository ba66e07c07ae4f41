//! Return codes of the C interface and their texts.
//!
//! 0 and above is success. −1 to −15 are answers that a program acts upon. −16 and below are errors
//! of the program or of the environment.

use core::ffi::CStr;

/// Version of this interface: major in the upper 16 bits, minor below. A library serves programs of
/// its major version and of no later minor version.
pub const BHQ_VERSION: u32 = 0x0001_0002;
/// Version of the memory layout that inline pushes and pops use; bhq_fast_sender_of and
/// bhq_fast_receiver_of refuse a program that passes another version.
pub const BHQ_LAYOUT: u32 = 2;
/// Maximum size of a message in bytes.
pub const BHQ_MAX_MESSAGE_BYTES: usize = 65_536;
/// Maximum number of producers of a queue.
pub const BHQ_MAX_PRODUCERS: u32 = 1_024;
/// The longest time, in nanoseconds (100 ms), that a program may wait for the descriptor of
/// bhq_wait_fd before it pops again. A sender that is killed before its wake-up leaves its message
/// unannounced.
pub const BHQ_MAX_WAIT_NS: u64 = 100_000_000;

/// State of a producer: bhq_attach_sender may attach a sender.
pub const BHQ_STATE_FREE: i32 = 0;
/// State of a producer: a sender of a running process is attached.
pub const BHQ_STATE_ALIVE: i32 = 1;
/// State of a producer: its process crashed, or was killed. bhq_resume_sender continues it.
pub const BHQ_STATE_DEAD: i32 = 2;
/// State of a producer: the receiver does not poll it any more. bhq_renew frees it.
pub const BHQ_STATE_RETIRED: i32 = 3;

/// Success; from a pop or a take (reading in place), which return 1 for a message: there is no
/// message now.
pub const BHQ_OK: i32 = 0;
/// The queue has no room for the message now, which was not taken: push it again later.
pub const BHQ_FULL: i32 = -1;
/// A producer broke the protocol and is not read any more: bhq_faulty_producer returns its index.
/// The next pop continues with the others.
pub const BHQ_FAULT: i32 = -2;
/// No queue has that name.
pub const BHQ_NOT_FOUND: i32 = -3;
/// The queue is being created: open it again.
pub const BHQ_INCOMPLETE: i32 = -4;
/// A live process has a queue of that name.
pub const BHQ_LIVING: i32 = -5;
/// No producer is free.
pub const BHQ_NO_FREE_PRODUCER: i32 = -6;
/// No producer is free, and a sender's process crashed: call bhq_resume_sender to continue as its
/// producer.
pub const BHQ_SENDER_CRASHED: i32 = -7;
/// The last receiver crashed: call bhq_resume_receiver.
pub const BHQ_RECEIVER_CRASHED: i32 = -8;
/// A live process has attached the receiver.
pub const BHQ_ATTACHED: i32 = -9;
/// The producer is alive, and can be neither resumed, retired nor renewed.
pub const BHQ_PRODUCER_ALIVE: i32 = -10;
/// The producer was retired: bhq_renew frees it.
pub const BHQ_RETIRED: i32 = -11;
/// Returned by bhq_faulty_producer if no producer has broken the protocol.
pub const BHQ_NO_PRODUCER: i32 = -12;

/// A required pointer is null.
pub const BHQ_NULL: i32 = -16;
/// The name is not of 1 to 64 characters of a-z, A-Z, 0-9, - and _.
pub const BHQ_BAD_NAME: i32 = -17;
/// The size of a message is not that of the queue, or not of 1 to 65,536 bytes.
pub const BHQ_BAD_SIZE: i32 = -18;
/// The capacity is out of range.
pub const BHQ_BAD_CAPACITY: i32 = -19;
/// The number of producers is not of 1 to 1,024.
pub const BHQ_BAD_PRODUCERS: i32 = -20;
/// The queue has no producer of that index.
pub const BHQ_BAD_INDEX: i32 = -21;
/// The descriptors are not those of a sealed queue (one without a name), or the queue has a name
/// and so no descriptors.
pub const BHQ_BAD_DESCRIPTORS: i32 = -22;
/// A message was taken: release it or put it back before the next one.
pub const BHQ_TAKEN: i32 = -23;
/// No message was taken.
pub const BHQ_NOT_TAKEN: i32 = -24;
/// Too little space in /dev/shm, or too little memory.
pub const BHQ_NO_SPACE: i32 = -25;
/// The queue's memory is missing, damaged or of another build, or the system refused a call.
pub const BHQ_SYSTEM: i32 = -26;
/// A defect of this library: close the handle.
pub const BHQ_DEFECT: i32 = -27;
/// The program was compiled for another layout than the library's: compile it again.
pub const BHQ_BAD_LAYOUT: i32 = -28;

/// Returns the fixed text of a return code, such as `the queue is full` for BHQ_FULL.
pub const fn text(code: i32) -> &'static CStr {
    match code {
        0.. => c"done",
        BHQ_FULL => c"the queue is full",
        BHQ_FAULT => c"a producer broke the protocol and is not read any more",
        BHQ_NOT_FOUND => c"no queue has that name; create it first",
        BHQ_INCOMPLETE => c"the queue is being created; try again",
        BHQ_LIVING => c"a live process has a queue of that name",
        BHQ_NO_FREE_PRODUCER => c"no producer is free",
        BHQ_SENDER_CRASHED => c"a sender crashed, and no other producer is free; resume it",
        BHQ_RECEIVER_CRASHED => c"the last receiver crashed; resume it",
        BHQ_ATTACHED => c"a live process has attached the receiver",
        BHQ_PRODUCER_ALIVE => c"the producer is alive",
        BHQ_RETIRED => c"the producer was retired; renew it",
        BHQ_NO_PRODUCER => c"no producer has broken the protocol",
        BHQ_NULL => c"a pointer is null",
        BHQ_BAD_NAME => c"invalid queue name; use 1 to 64 characters of a-z, A-Z, 0-9, - and _",
        BHQ_BAD_SIZE => c"the size of the message is not that of the queue, or not of 1 to 65536 bytes",
        BHQ_BAD_CAPACITY => c"the capacity is out of range",
        BHQ_BAD_PRODUCERS => c"the number of producers is out of range; use 1 to 1024",
        BHQ_BAD_INDEX => c"the queue has no producer of that index",
        BHQ_BAD_DESCRIPTORS => c"the descriptors are not those of a sealed queue",
        BHQ_TAKEN => c"a message was taken; release it or put it back first",
        BHQ_NOT_TAKEN => c"no message was taken",
        BHQ_NO_SPACE => c"too little space in /dev/shm, or too little memory",
        BHQ_SYSTEM => c"the queue's memory cannot be used, or the system refused a call",
        BHQ_DEFECT => c"a defect of bulkhead's library; what it printed has the place",
        BHQ_BAD_LAYOUT => {
            c"the program was compiled for another layout; compile it with this library's header"
        }
        _ => c"no code of this library",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_text_of_its_own() {
        let mut texts: Vec<&CStr> = (BHQ_BAD_LAYOUT - 1..=BHQ_OK).map(text).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), 26 + 1, "26 codes, and the others");
    }

    #[test]
    fn limits_are_those_of_the_queue() {
        assert_eq!(BHQ_MAX_MESSAGE_BYTES, shm::queue::MAX_MESSAGE_BYTES);
        assert_eq!(BHQ_MAX_PRODUCERS as usize, shm::queue::MAX_PRODUCERS);
        assert_eq!(u128::from(BHQ_MAX_WAIT_NS), shm::queue::MAX_WAIT.as_nanos());
    }
}
