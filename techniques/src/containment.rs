//! Why a crash loses no messages of other processes, technique by technique.
//!
//! Documentation only. The arguments about single words and orderings are in the files of the
//! techniques; this page combines them.
//!
//! # What is promised
//!
//! A producer's process may end at any instruction: killed, crashed, out of memory. Then
//!
//! 1. no message of another producer is lost, torn, duplicated or reordered,
//! 2. the published messages of the dead producer arrive, whole and in order; at most the one that
//!    it was about to publish is lost,
//! 3. the hand-off continues at once or after a repair, with its full capacity,
//! 4. a successor with the same index can replace it, once its memory was reset: by
//!    [`Queue::renew`](shm::queue::Queue::renew), in a run by the launcher.
//!
//! The repair is done by the only consumer ([`retire`](shm::ring::Consumer::retire)), between two
//! polls, in memory, without a lock and without waiting: a step that is not yet possible is done at
//! the next poll. Only the consumer makes decisions, so repairs cannot race.
//!
//! **Nothing depends on timeouts.** A producer that does nothing for an hour may still be in the
//! middle of a push. `retire` is called for a producer only after the kernel has confirmed that its
//! process has ended (`protocol::supervision::ProofOfDeath`, which cannot be obtained otherwise):
//! from then on it writes nothing more, and all its stores are visible. A repair touches a slot or
//! a block only if it provably belongs to the dead producer: slots and blocks that a running
//! producer announces or owns are not touched, however slow it is.
//!
//! # Technique by technique
//!
//! | technique | writers | a death between two instructions leaves | repair |
//! |---|---|---|---|
//! | `spsc-mux` | each producer its ring | no or a whole message | none: ring leaves the scan |
//! | `array-queue` | all: tail, slots | also an unwritten claim | the consumer skips it |
//! | `channel` | also the sleeper's word | also a sleeper not woken | waits end within 10 ms |
//! | `linked` | all: tail, blocks, links | also an unlinked block | block freed or link completed |
//! | `pipe` | the kernel | a whole message or none | none |
//! | `unix-seqpacket` | the kernel | also a closed connection | our end is closed once empty |
//!
//! The argument of each is in its module: [`spsc`](shm::ring::spsc), [`array_queue`] with
//! [`intent`](shm::ring::intent), [`channel`](crate::channel), [`linked`](crate::linked),
//! [`pipe`](crate::pipe), [`unix_seqpacket`](crate::unix_seqpacket). In a shared ring the only
//! question is who claimed an unwritten slot. Each producer announces, in memory that it alone
//! writes, the slot that it is about to claim; an announcement whose slot is written needs no
//! withdrawal, so the protection costs one store per push, to a cache line of the producer's own.
//!
//! [`array_queue`]: shm::ring::array_queue
//!
//! # When the consumer dies
//!
//! Then the run is over; but published messages are still there, and a successor can receive them:
//! `resume` of [`spsc`](shm::ring::spsc::Consumer::resume),
//! [`array_queue`](shm::ring::array_queue::Consumer::resume),
//! [`channel`](crate::channel::Receiver::resume) and [`linked`](crate::linked::Consumer::resume).
//! All messages that were not taken arrive, whole and in order. A message counts as taken after one
//! store, which follows the last load of its words: if the consumer dies before that store, the
//! message arrives again. Messages that the dead consumer had taken and not passed on are lost, and
//! so is its state of retirements, which begin again. The kernel keeps a pipe while any process has
//! it open; connections and their content end with their consumer.
//!
//! # What cannot be contained
//!
//! - **Shared memory can be damaged by a hostile peer.** In `array-queue`, `channel` and `linked`
//!   every producer can write tail, stamps, slots and links of all: a message may be rewritten, and
//!   the ring blocked. All values are checked before use, no access leaves the memory, no call
//!   loops for ever, and damage that blocks the ring is detected
//!   ([`check`](shm::ring::Consumer::check)); the culprit cannot be determined. In `spsc-mux` a
//!   producer can write only its own ring, which the sandbox enforces with page tables.
//! - **A running producer that announces a slot and never claims it** blocks the repair of that
//!   slot, and so the ring. A correct producer never does, since each announcement is followed by
//!   the claim or withdrawn. A stopped process does until it continues or is killed. It is the
//!   price of never taking a slot from a slow producer.
//! - **`pipe` does not identify the producer of a message**, so a hostile producer can send in the
//!   name of others.
//! - **The techniques on the heap** ([`heap`](crate::heap)) exist within one
//!   process only. There a crash ends all threads: they share their address space, and no ring can
//!   contain that. The rings in shared memory survive a thread that ends in the middle of a push as
//!   they survive a process; but the death of a stuck thread cannot be confirmed.
//! - **Memory that runs out.** All but `linked` touch their memory before the run; `linked`
//!   reserves it. Other allocations of a process can still exhaust the machine.
