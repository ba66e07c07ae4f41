//! Both ends of a ring die and have successors: nothing is lost, nothing comes twice, nothing is
//! torn.

use core::ops::ControlFlow;
use proptest::prelude::*;
use shm::memory::{AtomicWords, Region};
use shm::ring::spsc::{
    Consumer, HEAD, HEAD_WORDS, Producer, SLOTS, ring_words, slot_count, slot_words, write_header,
};
use shm::ring::spsc_mux::Mux;
use shm::ring::{Consumer as _, Full, MESSAGE_WORDS, Step};
use shm::sync::Ordering;

#[derive(Clone, Copy, Debug)]
enum Event {
    Push(u8),
    DieIn(Step),
    Take(u8),
    /// Takes messages and moves back to before them.
    TakeBack(u8),
    /// Takes `.0` messages, records `.1` of them, and crashes without freeing them.
    DieWith(u8, u8),
}

fn event() -> impl Strategy<Value = Event> {
    let step = prop::sample::select(vec![Step::Entered, Step::HalfWritten, Step::Written, Step::Published]);
    prop_oneof![
        prop_oneof![1u8..6, 1u8..60].prop_map(Event::Push),
        step.prop_map(Event::DieIn),
        prop_oneof![1u8..6, 1u8..60].prop_map(Event::Take),
        prop_oneof![1u8..6, 1u8..60].prop_map(Event::TakeBack),
        (0u8..5, 0u8..5).prop_map(|(taken, recorded)| Event::DieWith(taken, recorded)),
        (0u8..50, 0u8..50).prop_map(|(taken, recorded)| Event::DieWith(taken, recorded)),
    ]
}

/// Attaches the successor of a producer; the broken variant starts from position 0.
type AttachSuccessor = fn(&AtomicWords) -> Producer<2>;

fn heir(words: &AtomicWords) -> Producer<2> {
    Producer::resume(words).unwrap()
}

fn attach_from_start(words: &AtomicWords) -> Producer<2> {
    Producer::attach(words).unwrap()
}

/// Runs the events. Returns an error unless each published message is received once, in order.
fn run_events(events: &[Event], log2: u32, heir: AttachSuccessor) -> Result<(), String> {
    let words = Region::heap(ring_words(1 << log2, 2)).words();
    write_header::<2>(&words, 1 << log2);
    let mut producer = Producer::<2>::attach(&words).unwrap();
    let mut consumer = Consumer::<2>::attach(&words).unwrap();
    let (mut published, mut recorded) = (0u64, 0u64);
    let take = |consumer: &mut Consumer<2>, recorded: &mut u64| -> Result<bool, String> {
        let message = consumer.take().map_err(|fault| format!("{fault:?}"))?;
        let Some(message) = message else { return Ok(false) };
        if message != [*recorded; 2] {
            return Err(format!("{message:?} instead of {recorded}"));
        }
        *recorded += 1;
        Ok(true)
    };
    for event in events {
        match *event {
            Event::Push(times) => {
                for _ in 0..times {
                    if producer.try_push(&[published; 2]) == Err(Full) {
                        break;
                    }
                    published += 1;
                }
            }
            Event::DieIn(step) => {
                let mut reached = None;
                let _ = producer.try_push_with(&[published; 2], &mut |at| {
                    reached = Some(at);
                    if at == step { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
                published += u64::from(reached == Some(Step::Published));
                producer = heir(&words);
                if producer.published() != published {
                    return Err(format!(
                        "{} were published, the successor counts {}",
                        published,
                        producer.published()
                    ));
                }
            }
            Event::Take(times) => {
                for _ in 0..times {
                    if !take(&mut consumer, &mut recorded)? {
                        break;
                    }
                    consumer.release();
                }
            }
            Event::TakeBack(times) => {
                let before = recorded;
                for _ in 0..times {
                    if !take(&mut consumer, &mut recorded)? {
                        break;
                    }
                }
                consumer.rewind(recorded - before);
                recorded = before;
            }
            Event::DieWith(taken, kept) => {
                let before = recorded;
                let mut takes = 0;
                while takes < taken && take(&mut consumer, &mut recorded)? {
                    takes += 1;
                }
                // Messages that it has not recorded are taken again.
                recorded = before + u64::from(takes.min(kept));
                consumer = Consumer::resume(&words).unwrap();
                consumer.skip_to(recorded);
            }
        }
    }
    while take(&mut consumer, &mut recorded)? {
        consumer.release();
    }
    if recorded == published {
        Ok(())
    } else {
        Err(format!("{published} were published, {recorded} were received"))
    }
}

/// Miri is a thousand times slower.
const MAX_EVENTS: usize = if cfg!(miri) { 12 } else { 200 };

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 512 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn published_messages_arrive_once_despite_crashes(
        events in prop::collection::vec(event(), 1..MAX_EVENTS),
        log2 in 1u32..9,
    ) {
        prop_assert_eq!(run_events(&events, log2, heir), Ok(()));
    }
}

#[test]
fn successor_that_reuses_positions_is_detected() {
    let events = [Event::Push(3), Event::Take(1), Event::DieIn(Step::Written), Event::Push(2)];
    assert_eq!(run_events(&events, 3, heir), Ok(()));
    assert!(run_events(&events, 3, attach_from_start).is_err());
}

/// Checks a batch whose producer crashed before it published the first message, at position
/// `before`, with `written` messages written after it. The consumer must receive none of them, and
/// all messages of the successor. Unless `takes_back`, the written messages are not undone.
fn check_unpublished_batch(before: u64, written: u64, takes_back: bool) -> Result<(), String> {
    const CAPACITY: u64 = 16;
    let words = Region::heap(ring_words(CAPACITY as usize, 2)).words();
    write_header::<2>(&words, CAPACITY as usize);
    let mut producer = Producer::<2>::attach(&words).unwrap();
    let mut consumer = Consumer::<2>::attach(&words).unwrap();
    for n in 0..before {
        producer.try_push(&[n; 2]).unwrap();
        // At most five wait.
        if n >= 5 {
            consumer.try_pop().unwrap();
        }
    }
    let values =
        |words: &AtomicWords| words.iter().map(|word| word.load(Ordering::Relaxed)).collect::<Vec<_>>();
    let fresh = values(&words);
    let batch: Vec<_> = (before..before + 11).map(|n| [n; 2]).collect();
    assert_eq!(producer.try_push_many(&batch), 11);
    // The state at the crash: the sequence of the first message is stored last.
    for position in std::iter::once(before).chain(before + 1 + written..before + 11) {
        let at =
            HEAD_WORDS + SLOTS + position as usize % slot_count(CAPACITY as usize, 2) * slot_words(2) + 2;
        words[at].store(fresh[at], Ordering::Relaxed);
    }
    let left = values(&words);
    let mut heir = Producer::<2>::resume(&words).unwrap();
    if !takes_back {
        words.iter().zip(left).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    }
    assert_eq!(heir.published(), before);
    assert_eq!(heir.last_published(), before.checked_sub(1).map(|n| [n; 2]));
    let mut take = || consumer.try_pop().map_err(|fault| format!("{fault}"));
    for n in before.saturating_sub(5)..before {
        assert_eq!(take()?, Some([n; 2]));
    }
    for n in 1000..1000 + 3 * CAPACITY {
        heir.try_push(&[n; 2]).unwrap();
        match (take()?, take()?) {
            (Some(message), None) if message == [n; 2] => {}
            other => return Err(format!("{other:?} instead of {n}")),
        }
    }
    Ok(())
}

#[test]
fn unpublished_batch_of_crashed_producer_never_appears() {
    // Miri takes a second for each.
    let (laps, batches) = if cfg!(miri) { (20, 10) } else { (1, 1) };
    for before in (0..40).step_by(laps) {
        for written in (0..=10).step_by(batches) {
            assert_eq!(check_unpublished_batch(before, written, true), Ok(()), "{before}, {written}");
            // The broken variant is detected if there are messages to undo.
            assert_eq!(
                check_unpublished_batch(before, written, false).is_err(),
                written > 0,
                "{before}, {written}"
            );
        }
    }
}

/// Writes the sequences of a ring whose producer has published `published` messages and crashed in
/// a batch, after it had written `ahead` messages after the first one.
fn write_sequences(words: &AtomicWords, slots: u64, published: u64, ahead: u64) {
    for slot in 0..slots {
        let last = |before: u64| before.checked_sub(1 + slot).map(|past| past / slots * slots + slot + 1);
        let mut sequence = last(published);
        for position in published + 1..published + 1 + ahead {
            if position % slots == slot {
                sequence = Some(position + 1);
            }
        }
        let at = HEAD_WORDS + SLOTS + slot as usize * slot_words(MESSAGE_WORDS) + MESSAGE_WORDS;
        words[at].store(sequence.unwrap_or(0), Ordering::Relaxed);
    }
}

#[test]
fn last_published_message_is_found_in_every_state_of_a_ring() {
    let laps = if cfg!(miri) { 1 } else { 3 };
    for slots in [1, 2, 4, 16, 32, 64] {
        let words = Region::heap(ring_words(slots, MESSAGE_WORDS)).words();
        write_header::<MESSAGE_WORDS>(&words, slots);
        let slots = slots as u64;
        for published in 0..laps * slots {
            for ahead in 0..slots.min(16) {
                write_sequences(&words, slots, published, ahead);
                // All of them are taken.
                words[HEAD].store(published, Ordering::Relaxed);
                let (head, tail) =
                    (words.slice(0, HEAD_WORDS), words.slice(HEAD_WORDS, words.len() - HEAD_WORDS));
                let mut heir = Producer::<MESSAGE_WORDS>::resume_own_parts(&tail, &head.into()).unwrap();
                assert_eq!(heir.published(), published, "{slots} slots, {ahead} ahead");
                // What was written ahead is taken back.
                heir.try_push(&[7; MESSAGE_WORDS]).unwrap();
                let again = Producer::<MESSAGE_WORDS>::resume(&words).unwrap();
                assert_eq!(again.published(), published + 1, "{slots} slots, {ahead} ahead of {published}");
            }
        }
    }
}

/// A hostile producer writes further ahead than a batch.
#[test]
fn planted_message_of_crashed_producer_never_appears() {
    const COUNT: usize = 64;
    let words = Region::heap(ring_words(COUNT, MESSAGE_WORDS)).words();
    write_header::<MESSAGE_WORDS>(&words, COUNT);
    let planted = HEAD_WORDS + SLOTS + 40 * slot_words(MESSAGE_WORDS) + MESSAGE_WORDS;
    words[planted].store(41, Ordering::Relaxed);
    let mut heir = Producer::<MESSAGE_WORDS>::resume(&words).unwrap();
    let mut consumer = Consumer::<MESSAGE_WORDS>::attach(&words).unwrap();
    (0..40).for_each(|n| heir.try_push(&[n; MESSAGE_WORDS]).unwrap());
    let taken = std::iter::from_fn(|| consumer.try_pop().unwrap()).count();
    assert_eq!(taken, 40);
}

#[test]
fn taken_but_unreleased_messages_are_not_overwritten() {
    let words = Region::heap(ring_words(2, 2)).words();
    write_header::<2>(&words, 2);
    let (mut producer, mut consumer) =
        (Producer::<2>::attach(&words).unwrap(), Consumer::<2>::attach(&words).unwrap());
    (0..2).for_each(|n| producer.try_push(&[n; 2]).unwrap());
    assert_eq!((consumer.take(), consumer.take()), (Ok(Some([0; 2])), Ok(Some([1; 2]))));
    assert_eq!(producer.try_push(&[2; 2]), Err(Full));
    let mut successor = Consumer::<2>::resume(&words).unwrap();
    assert_eq!(successor.take(), Ok(Some([0; 2])), "the message is taken again");
    consumer.release();
    assert_eq!(producer.try_push(&[2; 2]), Ok(()));
}

/// With several rings: messages that the crashed consumer recorded are passed over, others are
/// taken again, and a ring that it had abandoned is not read before its memory was reset.
#[test]
fn crashed_mux_consumer_is_replaced() {
    const CAPACITY: usize = 4;
    let ring = || {
        let words = Region::heap(ring_words(CAPACITY, MESSAGE_WORDS)).words();
        write_header::<MESSAGE_WORDS>(&words, CAPACITY);
        words
    };
    let rings = [ring(), ring(), ring()];
    let mut producers = rings.each_ref().map(|words| Producer::<MESSAGE_WORDS>::attach(words).unwrap());
    let mux = || Mux::new(rings.iter().map(|words| Consumer::resume(words).unwrap()).collect());
    let mut first = mux();
    for (index, producer) in producers.iter_mut().enumerate() {
        (0..3).for_each(|n| producer.try_push(&[n * 10 + index as u64; MESSAGE_WORDS]).unwrap());
    }
    let mut taken = Vec::new();
    for _ in 0..4 {
        taken.extend(first.take().map(|(from, message)| (from.unwrap(), message[0])));
        first.release();
    }
    assert_eq!(taken, [(0, 0), (1, 1), (2, 2), (0, 10)]);
    // It records this message, and crashes before it releases it.
    assert_eq!(first.take().map(|(_, message)| message[0]), Some(11));
    drop(first);
    let mut second = mux();
    assert_eq!(second.pass_over(1, 0), Err(1), "more was released than recorded");
    assert_eq!(
        [(0, 2), (1, 2), (2, 1)].map(|(index, recorded)| second.pass_over(index, recorded)),
        [Ok(()); 3]
    );
    // The last ring's producer was abandoned: its remaining messages are not received, also not
    // once the ring has a new producer.
    second.forget(2);
    let remaining: Vec<u64> =
        std::iter::from_fn(|| second.try_pop()).map(|(_, message)| message[0]).collect();
    assert_eq!(remaining, [20, 21]);
    rings[2].iter().for_each(|word| word.store(0, Ordering::Relaxed));
    write_header::<MESSAGE_WORDS>(&rings[2], CAPACITY);
    let mut next = Producer::<MESSAGE_WORDS>::attach(&rings[2]).unwrap();
    next.try_push(&[7; MESSAGE_WORDS]).unwrap();
    assert_eq!(second.try_pop(), None);
    second.renew(2);
    assert_eq!(second.try_pop(), Some((Some(2), [7; MESSAGE_WORDS])));
}
