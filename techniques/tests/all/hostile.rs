//! Hostile peers: what the ends report of impossible words and of garbage from the kernel. The fuzz
//! targets `rings` and `frames` show that they return in bounded time and never panic, and that
//! garbage in a pipe costs the others no message.

use crate::common::Run;
use protocol::segments;
use protocol::wire::{MESSAGE_WORDS, Message};
use shm::memory::{AtomicWords, Region};
use shm::ring::{Consumer, PeerFault, Producer, SharedQueue, array_queue, intent, spsc};
use shm::sync::Ordering;
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};
use techniques::Technique;
use techniques::linked;
use techniques::named::{fifo, seqpacket};
use techniques::pipe::Pipe;
use techniques::unix_seqpacket::UnixSeqpacket;

fn message(n: u64) -> Message {
    [n; MESSAGE_WORDS]
}

/// Makes an `array-queue` of four slots on the heap.
fn array() -> (AtomicWords, array_queue::Producer, array_queue::Consumer) {
    let (words, intents) =
        (Region::heap(array_queue::ring_words(4, MESSAGE_WORDS)).words(), intent::on_heap(1));
    array_queue::write_header::<MESSAGE_WORDS>(&words, 4);
    let producer = array_queue::Producer::attach(&words, &intents[0]).unwrap();
    let consumer = array_queue::Consumer::attach(&words, intents).unwrap();
    (words, producer, consumer)
}

/// Makes a `linked` list of eight blocks on the heap.
fn list() -> (AtomicWords, linked::Producer, linked::Consumer) {
    let words = Region::heap(linked::arena_words(8, linked::BLOCK_SLOTS, MESSAGE_WORDS)).words();
    linked::write_header::<MESSAGE_WORDS, { linked::BLOCK_SLOTS }>(&words, 8);
    let intents = intent::on_heap(1);
    let producer = linked::Producer::attach(&words, &intents[0]).unwrap();
    let consumer = linked::Consumer::attach(&words, intents).unwrap();
    (words, producer, consumer)
}

#[test]
fn impossible_array_stamp_is_skipped() {
    let (words, mut producer, mut consumer) = array();
    (1..=2).for_each(|n| producer.try_push(&message(n)).unwrap());
    words[array_queue::SLOTS].store(99, Ordering::Relaxed);
    assert_eq!(consumer.try_pop(), Err(PeerFault::InvalidStamp { stamp: 99, position: 0 }));
    assert_eq!(consumer.try_pop(), Ok(Some(message(2))), "the others' messages arrive");
    // A stamp on an unclaimed slot is restored.
    words[array_queue::SLOTS + 2 * (MESSAGE_WORDS + 1)].store(77, Ordering::Relaxed);
    assert!(consumer.try_pop().is_err());
    for n in 10..30 {
        producer.try_push(&message(n)).unwrap();
        assert_eq!(consumer.try_pop(), Ok(Some(message(n))));
    }
}

/// Checks that a technique with a shared tail detects impossible tails, and no others.
fn check_impossible_tails(
    at: usize,
    words: &AtomicWords,
    producer: &mut impl Producer,
    check: &mut dyn FnMut() -> Result<(), PeerFault>,
) {
    assert_eq!(check(), Ok(()));
    (0..3).for_each(|n| producer.try_push(&message(n)).unwrap());
    assert_eq!(check(), Ok(()));
    for tail in [4, 5, 6, 7, 1 << 40, u64::MAX] {
        words[at].store(tail, Ordering::Relaxed);
        // A tail one too far is detected only when the consumer reaches it.
        let result = check();
        let invalid = matches!(result, Err(PeerFault::InvalidTail { .. } | PeerFault::InvalidLink { .. }));
        assert!(invalid || tail <= 31, "{tail}: {result:?}");
    }
    words[at].store(3, Ordering::Relaxed);
    assert_eq!(check(), Ok(()));
}

#[test]
fn impossible_tail_is_detected() {
    let (words, mut producer, mut consumer) = array();
    check_impossible_tails(array_queue::TAIL, &words, &mut producer, &mut || consumer.check());
    (0..3).for_each(|_| _ = consumer.try_pop().unwrap());
    assert_eq!(consumer.check(), Ok(()));
    for tail in [0, 2, 4, 7, 8, u64::MAX] {
        words[array_queue::TAIL].store(tail, Ordering::Relaxed);
        assert_eq!(consumer.check(), Err(PeerFault::InvalidTail { tail, position: 3 }));
    }

    let (words, mut producer, mut consumer) = list();
    check_impossible_tails(linked::TAIL, &words, &mut producer, &mut || consumer.check());
    (0..3).for_each(|_| _ = consumer.try_pop().unwrap());
    for tail in [0, 2, 4, 32, u64::MAX] {
        words[linked::TAIL].store(tail, Ordering::Relaxed);
        assert_eq!(consumer.check(), Err(PeerFault::InvalidTail { tail, position: 3 }), "{tail}");
    }
    words[linked::TAIL].store(3, Ordering::Relaxed);
    for link in [1 << 24 | 2 << 1 | 1, 7 << 24 | 1, u64::MAX, 1 << 24] {
        words[linked::LAST].store(link, Ordering::Relaxed);
        assert_eq!(consumer.check(), Err(PeerFault::InvalidLink { link, block: 0 }));
    }
}

#[test]
fn impossible_link_ends_list_with_one_fault() {
    let (words, mut producer, mut consumer) = list();
    (0..40).for_each(|n| producer.try_push(&message(n)).unwrap());
    let block_0 = linked::FREE_RING + 16;
    words[block_0].store(u64::MAX, Ordering::Relaxed);
    for n in 0..31 {
        assert_eq!(consumer.try_pop(), Ok(Some(message(n))));
    }
    assert_eq!(consumer.try_pop(), Err(PeerFault::InvalidLink { link: u64::MAX, block: 0 }));
    assert_eq!(consumer.try_pop(), Ok(None));
}

#[test]
fn writing_end_of_pipe_is_not_readable() {
    let run = Run::new(Technique::from_link::<Pipe>(), 1, 4);
    run.create::<Pipe>();
    let mut writer = fifo::open_writer(&run.plan().segment_name("submit")).unwrap();
    let error = writer.read(&mut [0]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EBADF));
}

#[test]
fn hostile_connections_are_closed_and_others_served() {
    let run = Run::new(Technique::from_link::<UnixSeqpacket>(), 3, 4);
    let name = run.plan().segment_name("submit");
    let spec = run.link();
    let mut attached = segments::attach(run.plan(), None);
    let mut consumer = attached.consumer::<UnixSeqpacket>(&spec).unwrap();
    let mut honest = attached.producer::<UnixSeqpacket>(&spec, 1).unwrap();
    honest.try_push(&message(1)).unwrap();
    assert_eq!(consumer.try_pop(), Some((Some(1), message(1))));
    let mut faults = |packets: &[&[u8]]| {
        let mut hostile = seqpacket::connect(&name, Duration::ZERO).unwrap();
        packets.iter().for_each(|packet| assert_eq!(hostile.write(packet).unwrap(), packet.len()));
        for _ in 0..4 {
            assert_eq!(consumer.try_pop(), None);
        }
        let fault = consumer.take_fault();
        // A child of another test has it open too, until it calls `exec`. A full buffer is not an
        // end.
        hostile.set_nonblocking(true).unwrap();
        let is_closed =
            |error: io::Error| matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset);
        let started = Instant::now();
        while !hostile.write(&[0; 64]).is_err_and(is_closed) {
            assert!(started.elapsed() < Duration::from_secs(10), "the connection is closed");
            std::thread::sleep(Duration::from_millis(1));
        }
        fault
    };
    assert_eq!(faults(&[&[0; 64]]), Some((None, PeerFault::Framing { bytes: 64 })), "no valid index");
    let index = |n: u64| n.to_le_bytes();
    assert_eq!(faults(&[&index(3)]), Some((None, PeerFault::InvalidIndex { index: 3 })), "an unknown index");
    assert_eq!(
        faults(&[&index(1)]),
        Some((None, PeerFault::InvalidIndex { index: 1 })),
        "another producer's index"
    );
    let long = 8 * MESSAGE_WORDS + 1;
    assert_eq!(faults(&[&index(0), &vec![0; long]]), Some((Some(0), PeerFault::Framing { bytes: long })));
    honest.try_push(&message(2)).unwrap();
    assert_eq!(consumer.try_pop(), Some((Some(1), message(2))));
}

/// The stored cursor of a dead consumer may be corrupt: its successor's counters must not overflow.
#[test]
fn successor_consumer_survives_corrupt_counters() {
    for scribbled in [u64::MAX, u64::MAX - 1, 1 << 63] {
        let words = Region::heap(linked::arena_words(8, linked::BLOCK_SLOTS, MESSAGE_WORDS)).words();
        linked::write_header::<MESSAGE_WORDS, { linked::BLOCK_SLOTS }>(&words, 8);
        let intent = intent::on_heap(1).remove(0);
        let mut producer = linked::Producer::<MESSAGE_WORDS>::attach(&words, &intent).unwrap();
        (0..100).for_each(|n| producer.try_push(&message(n)).unwrap());
        words[linked::FREE_TAIL].store(scribbled, Ordering::Relaxed);
        let mut consumer = linked::Consumer::<MESSAGE_WORDS>::resume(&words, vec![intent]).unwrap();
        // It frees three blocks in that loop.
        (0..100).for_each(|n| assert_eq!(consumer.try_pop(), Ok(Some(message(n)))));

        let words = Region::heap(spsc::ring_words(4, MESSAGE_WORDS)).words();
        spsc::write_header::<MESSAGE_WORDS>(&words, 4);
        words[spsc::HEAD].store(scribbled, Ordering::Relaxed);
        let mut consumer = spsc::Consumer::<MESSAGE_WORDS>::resume(&words).unwrap();
        assert!(consumer.try_pop().is_err(), "the slot is not of that lap");
    }
}
