//! Both ends of a ring die and have successors: nothing is lost, nothing comes twice, nothing is
//! torn.

use core::ops::ControlFlow;
use proptest::prelude::*;
use shm::memory::{AtomicWords, Region};
use shm::ring::spsc::{Consumer, HEAD_WORDS, Producer, SLOTS, ring_words, slot_words, write_header};
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
        (0u8..5, 0u8..5).prop_map(|(taken, noted)| Event::DieWith(taken, noted)),
        (0u8..50, 0u8..50).prop_map(|(taken, noted)| Event::DieWith(taken, noted)),
    ]
}

/// How the successor of the producer attaches; the broken one begins at the start again.
type Heir = fn(&AtomicWords) -> Producer<2>;

fn heir(words: &AtomicWords) -> Producer<2> {
    Producer::resume(words).unwrap()
}

fn forgetful(words: &AtomicWords) -> Producer<2> {
    Producer::attach(words).unwrap()
}

/// What came out: the numbers of the messages; all that were published, if nothing is wrong.
fn played(events: &[Event], log2: u32, heir: Heir) -> Result<(), String> {
    let words = Region::heap(ring_words(1 << log2, 2)).words();
    write_header::<2>(&words, 1 << log2);
    let mut producer = Producer::<2>::attach(&words).unwrap();
    let mut consumer = Consumer::<2>::attach(&words).unwrap();
    let (mut published, mut noted) = (0u64, 0u64);
    let take = |consumer: &mut Consumer<2>, noted: &mut u64| -> Result<bool, String> {
        let message = consumer.take().map_err(|fault| format!("{fault:?}"))?;
        let Some(message) = message else { return Ok(false) };
        if message != [*noted; 2] {
            return Err(format!("{message:?} in the place of {noted}"));
        }
        *noted += 1;
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
                    return Err(format!("{} were published, it thinks {}", published, producer.published()));
                }
            }
            Event::Take(times) => {
                for _ in 0..times {
                    if !take(&mut consumer, &mut noted)? {
                        break;
                    }
                    consumer.release();
                }
            }
            Event::TakeBack(times) => {
                let before = noted;
                for _ in 0..times {
                    if !take(&mut consumer, &mut noted)? {
                        break;
                    }
                }
                consumer.rewind(noted - before);
                noted = before;
            }
            Event::DieWith(taken, kept) => {
                let before = noted;
                let mut takes = 0;
                while takes < taken && take(&mut consumer, &mut noted)? {
                    takes += 1;
                }
                // What it has made no note of comes again.
                noted = before + u64::from(takes.min(kept));
                consumer = Consumer::resume(&words).unwrap();
                consumer.skip_to(noted);
            }
        }
    }
    while take(&mut consumer, &mut noted)? {
        consumer.release();
    }
    if noted == published { Ok(()) } else { Err(format!("{published} were published, {noted} came")) }
}

/// Miri is a thousand times slower.
const MOST_EVENTS: usize = if cfg!(miri) { 12 } else { 200 };

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 512 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn published_messages_arrive_once_despite_crashes(
        events in prop::collection::vec(event(), 1..MOST_EVENTS),
        log2 in 1u32..9,
    ) {
        prop_assert_eq!(played(&events, log2, heir), Ok(()));
    }
}

#[test]
fn successor_that_reuses_positions_is_detected() {
    let events = [Event::Push(3), Event::Take(1), Event::DieIn(Step::Written), Event::Push(2)];
    assert_eq!(played(&events, 3, heir), Ok(()));
    assert!(played(&events, 3, forgetful).is_err());
}

/// A batch whose producer died before it showed its first message, `before` messages after the
/// start, `written` behind that one: what is wrong with what the consumer sees of it and of the
/// heir's messages. `takes_back`: whether the heir does what it must.
fn after_a_dead_batch(before: u64, written: u64, takes_back: bool) -> Result<(), String> {
    const ROOM: u64 = 16;
    let words = Region::heap(ring_words(ROOM as usize, 2)).words();
    write_header::<2>(&words, ROOM as usize);
    let mut producer = Producer::<2>::attach(&words).unwrap();
    let mut consumer = Consumer::<2>::attach(&words).unwrap();
    for n in 0..before {
        producer.try_push(&[n; 2]).unwrap();
        // At last five wait.
        if n >= 5 {
            consumer.try_pop().unwrap();
        }
    }
    let values =
        |words: &AtomicWords| words.iter().map(|word| word.load(Ordering::Relaxed)).collect::<Vec<_>>();
    let fresh = values(&words);
    let batch: Vec<_> = (before..before + 11).map(|n| [n; 2]).collect();
    assert_eq!(producer.try_push_many(&batch), 11);
    // As it was when it had come so far: the first one's sequence is stored last.
    for position in std::iter::once(before).chain(before + 1 + written..before + 11) {
        let at = HEAD_WORDS + SLOTS + (position % ROOM) as usize * slot_words(2) + 2;
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
    for n in 1000..1000 + 3 * ROOM {
        heir.try_push(&[n; 2]).unwrap();
        match (take()?, take()?) {
            (Some(message), None) if message == [n; 2] => {}
            other => return Err(format!("{other:?} where {n} was due")),
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
            assert_eq!(after_a_dead_batch(before, written, true), Ok(()), "{before}, {written}");
            // The broken one is found, where there is something to take back.
            assert_eq!(
                after_a_dead_batch(before, written, false).is_err(),
                written > 0,
                "{before}, {written}"
            );
        }
    }
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
    assert_eq!(successor.take(), Ok(Some([0; 2])), "it comes again");
    consumer.release();
    assert_eq!(producer.try_push(&[2; 2]), Ok(()));
}

/// Over several rings: what a dead consumer kept a note of is passed over, what it had not is taken
/// again, and a ring that it had given up is not read before its memory was reset.
#[test]
fn crashed_mux_consumer_is_replaced() {
    const ROOM: usize = 4;
    let ring = || {
        let words = Region::heap(ring_words(ROOM, MESSAGE_WORDS)).words();
        write_header::<MESSAGE_WORDS>(&words, ROOM);
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
    // It keeps a note of this one, and dies before it gives it back.
    assert_eq!(first.take().map(|(_, message)| message[0]), Some(11));
    drop(first);
    let mut second = mux();
    assert_eq!(second.pass_over(1, 0), Err(1), "more was given back than was noted");
    assert_eq!([(0, 2), (1, 2), (2, 1)].map(|(index, noted)| second.pass_over(index, noted)), [Ok(()); 3]);
    // The last one's producer was given up: nothing of what is left there comes out, nor does it
    // once it is someone else's.
    second.forget(2);
    let rest: Vec<u64> = std::iter::from_fn(|| second.try_pop()).map(|(_, message)| message[0]).collect();
    assert_eq!(rest, [20, 21]);
    rings[2].iter().for_each(|word| word.store(0, Ordering::Relaxed));
    write_header::<MESSAGE_WORDS>(&rings[2], ROOM);
    let mut next = Producer::<MESSAGE_WORDS>::attach(&rings[2]).unwrap();
    next.try_push(&[7; MESSAGE_WORDS]).unwrap();
    assert_eq!(second.try_pop(), None);
    second.revive(2);
    assert_eq!(second.try_pop(), Some((Some(2), [7; MESSAGE_WORDS])));
}
