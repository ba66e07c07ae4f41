//! The argument why a crash loses nothing of others, technique by technique.
//!
//! Documentation only. The arguments about single words and orderings are in the files of the
//! techniques; here they are put together, with what was done to test them.
//!
//! # What is promised
//!
//! A producer's process may end at any instruction: killed, crashed, out of memory. Then
//!
//! 1. nobody else's message is lost, torn, doubled or put out of order,
//! 2. of the dead one's messages those that it had published come out, whole and in order; at most
//!    the one that it was about to publish does not,
//! 3. the hand-off goes on at once or after a repair, and is as large as it was,
//! 4. a successor of the same index can take its place, once its memory was made anew: by
//!    [`Queue::renew`](shm::queue::Queue::renew), in a run by the launcher.
//!
//! The repair is done by the one consumer ([`retire`](shm::ring::Consumer::retire)), between two
//! polls, in memory, without a lock and without waiting: what it cannot do yet it does at the next
//! poll. Nobody but the consumer decides anything, so there is no race between repairs.
//!
//! **Nothing goes by time.** A producer that does nothing for an hour may still be in the middle of
//! a push. `retire` is called for a producer only once the kernel has said that its process has
//! ended (`protocol::supervision::Death`, which is not to be had in any other way): from then on it
//! writes nothing more, and all that it wrote is there to be seen. And a repair touches a place or
//! a block only if it is shown to be the dead one's: what a living producer announces or owns is
//! left alone, however slow it is.
//!
//! # Technique by technique
//!
//! | technique | who writes what | a death between two instructions leaves | repair |
//! |---|---|---|---|
//! | `spsc-mux` | each producer its own ring | its ring with or without the message; never half of one | none: taken out of the scan once it is empty |
//! | `array-queue` | all producers tail and slots | also a claimed place that nobody writes | the consumer goes on behind the place |
//! | `channel` | the same, and the sleeper's word | also a sleeper whom nobody wakes | the same; the sleeper's wait ends by itself within 10 ms |
//! | `linked` | all producers tail, blocks and links | also a block that nothing leads to, or a link half made | also: the block is given back; anybody completes the link |
//! | `pipe` | the kernel | a whole message or none | none |
//! | `unix-seqpacket` | the kernel | a whole message or none, a closed connection | our end is closed once it is empty |
//!
//! **`spsc-mux`.** One store shows a message, and everything else of the ring is the dead one's
//! alone. Before the store: the words of a message that does not exist. Behind it: a message. The
//! others' rings are other memory. What is left in the ring comes out, round robin with the
//! others'. The successor begins at position 0 over zeroed memory: [`restart`](shm::ring::spsc).
//!
//! **`array-queue`.** Crash state by crash state in [`array_queue`](shm::ring::array_queue): the
//! only one that stops anybody is a place claimed and not written, and the only question is whose
//! it is. Each producer announces the place that it is about to claim, in memory that it alone
//! writes, before the claim; why that answers the question in every order of events, also when
//! several are dead or about to announce the same place, is in [`intent`](shm::ring::intent). An
//! announcement that no longer matters (its place is written) needs not be taken back: so the
//! protection is one store a push, to a line of the producer's own.
//!
//! **`channel`.** No lock is held while a sleeper is woken, so none can die with its owner. A
//! wake-up that is lost costs the rest of one wait, and no wait is longer than
//! [`MAX_WAIT`](crate::channel::MAX_WAIT).
//!
//! **`linked`.** Places as in `array-queue`. A block carries its owner's mark from the one
//! instruction that takes it to the one that links it, and the owner announces it before: so the
//! consumer knows in which block to look, and the block says whose it is. Links and counters that
//! the dead one left half moved are moved on by the next producer who needs them; it does not have
//! to know that anybody died. The table is in [`linked`](crate::linked).
//!
//! **`pipe`, `unix-seqpacket`.** A message is one system call, and the kernel finishes or refuses
//! it whole: a process that is killed is killed before it or behind it.
//!
//! # When the consumer dies
//!
//! Then the run is over; but what was published is still there, and a successor can read it out:
//! `resume` of [`spsc`](shm::ring::spsc::Consumer::resume),
//! [`array_queue`](shm::ring::array_queue::Consumer::resume),
//! [`channel`](crate::channel::Receiver::resume) and [`linked`](crate::linked::Consumer::resume).
//! Everything that was not taken comes out, whole and in order. A message counts as taken when one
//! store has said so, behind the last load of its words: who dies before that store has perhaps the
//! message, and it comes out again. What the dead consumer had taken and not passed on is lost with
//! it, as is what it knew of retirements: they begin anew. The kernel keeps a pipe as long as
//! somebody has it open; connections end with their consumer, and what was in them.
//!
//! # What cannot be contained
//!
//! - **Who shares memory with a hostile peer trusts it with that memory.** In `array-queue`,
//!   `channel` and `linked` every producer can write tail, stamps, slots and links of all: a
//!   message may be rewritten, and the ring stopped. Nothing is read that was not checked, nobody
//!   is led outside the memory, no call loops for ever, and damage that stops everybody is found
//!   ([`check`](shm::ring::Consumer::check)); whose doing it was cannot be told. In `spsc-mux` a
//!   producer can write its own ring and nobody else's, and the sandbox makes that a matter of page
//!   tables.
//! - **A living producer that announces a place and never claims it** holds up the repair of that
//!   very place, and the ring with it: no honest one does, since each announcement is followed by
//!   the claim or withdrawn. A stopped process does until it goes on or is killed. It is the price
//!   of never taking a place from one that is slow.
//! - **`pipe` does not say whose message it carries**, so a hostile producer shifts what the others
//!   have queued behind it.
//! - **The techniques on the heap** ([`std_mpsc`](crate::std_mpsc) and the crates) exist within one
//!   process only. There a crash is everybody's: threads share their address space, and no ring can
//!   contain what one of them does to it. The rings in shared memory survive a thread that ends in
//!   the middle of a push as they survive a process; but nothing confirms the death of a thread
//!   that is only stuck.
//! - **Memory that runs out.** All but `linked` touch their memory before the run; `linked`
//!   reserves it. What a process does beside its rings can still exhaust the machine.
//!
//! # What was done to test it
//!
//! - Loom (`tests/loom/deaths.rs`): a death at each [`Step`](shm::ring::Step) of a push, in every
//!   order with a living producer's pushes and the retirement, with every value that the orderings
//!   allow. Mutants of every ordering that this rests on die there ([`sync`](shm::sync)).
//! - Random events (`tests/all/deaths.rs`): pushes, pops, deaths at random steps, retirements and
//!   successors of three producers on every technique in memory, against queues; and consumers that
//!   are replaced.
//! - Thousands of deaths in a row on a small arena (`linked/tests.rs`): it has not shrunk by a
//!   block.
//! - Impossible tails and links, and random words in random places (`tests/all/hostile.rs`).
