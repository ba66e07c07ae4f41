//! Readers of headers, messages, logs, status blocks and plans with arbitrary words.

use crate::common::Run;
use arbitrary::{Arbitrary, Unstructured};
use protocol::control::{Control, ControlWriter, PLAN};
use protocol::index::StrategyIndex;
use protocol::stamps::{self, Point, RECORD_WORDS, Record, StampLog};
use protocol::status::{self, LOG_OFFSET};
use protocol::wire::{Instruction, MESSAGE_WORDS, Order, OrderId, Report};
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, Header, Region, SegmentKind};
use shm::ring::{SharedQueue, array_queue, intent, spsc};
use shm::sync::Ordering::Relaxed;
use techniques::Technique;
use techniques::linked;

const KINDS: [SegmentKind; 10] = [
    protocol::topology::CONTROL_KIND,
    spsc::KIND,
    status::KIND,
    protocol::segments::SCHEDULE_KIND,
    shm::bell::KIND,
    spsc::HEAD_KIND,
    array_queue::KIND,
    linked::KIND,
    intent::KIND,
    protocol::supervision::KIND,
];

fn overwrite(words: &AtomicWords, bytes: &mut Unstructured<'_>) {
    while !bytes.is_empty() {
        let Ok((index, value)) = <(u16, u64)>::arbitrary(bytes) else { break };
        words[usize::from(index) % words.len()].store(value, Relaxed);
    }
}

/// A segment with a false header: ends attach only if all memory that they access exists.
pub fn header(bytes: &[u8]) {
    let mut bytes = Unstructured::new(bytes);
    let Ok((kind, len, capacity, slot_words, honest)) = <(u8, u16, u64, u16, u8)>::arbitrary(&mut bytes)
    else {
        return;
    };
    let words = Region::heap(usize::from(len % 2048)).words();
    if words.len() < HEADER_WORDS {
        let read = Header::read(|index, ordering| words[index].load(ordering), words.len(), spsc::KIND);
        assert!(read.is_err(), "too short");
        return;
    }
    // Mostly plausible values, or no input would pass the first comparison.
    let kind = KINDS[usize::from(kind) % KINDS.len()];
    let capacity = if honest & 1 == 1 { 1 << (capacity % 10) } else { capacity };
    let slots =
        [8, 8, 1, linked::block_words(linked::BLOCK_SLOTS, MESSAGE_WORDS) as u64, 16, slot_words.into()];
    let slot_words = slots[usize::from(honest >> 1) % slots.len()];
    let written_bytes = words.len() as u64 * 8;
    Header::anonymous(kind, words.len(), capacity, slot_words, 4).write(&words);
    overwrite(&words, &mut bytes);
    let read = Header::read(|index, ordering| words[index].load(ordering), words.len(), kind);
    if let Ok(header) = read {
        assert_eq!((header.kind, header.bytes), (kind, written_bytes));
        if let Ok(fits) = header.check_geometry(HEADER_WORDS, slot_words as usize) {
            assert!(HEADER_WORDS + fits * slot_words as usize <= words.len());
        }
    }
    attach(&words);
}

/// Attaches every end that accepts these words, and sends a few messages.
fn attach(words: &AtomicWords) {
    let intents = || vec![intent::on_heap(1).remove(0)];
    let intent_words = &intent::on_heap(1)[0];
    let message = [7; MESSAGE_WORDS];
    if let Ok(mut producer) = spsc::Producer::<MESSAGE_WORDS>::attach(words) {
        (0..8).for_each(|_| _ = producer.try_push(&message));
    }
    if let Ok(mut consumer) = spsc::Consumer::<MESSAGE_WORDS>::attach(words) {
        (0..8).for_each(|_| _ = consumer.try_pop());
    }
    // The two parts of a ring, with these words as one of them.
    let valid_ring = Region::heap(spsc::ring_words(4, MESSAGE_WORDS)).words();
    spsc::write_header::<MESSAGE_WORDS>(&valid_ring, 4);
    let head = valid_ring.slice(0, spsc::HEAD_WORDS);
    let tail = valid_ring.slice(spsc::HEAD_WORDS, spsc::tail_words(4, MESSAGE_WORDS));
    for (tail, head) in [(words, &head), (&tail, words)] {
        if let Ok(mut producer) = spsc::Producer::<MESSAGE_WORDS>::attach_parts(tail, &head.clone().into()) {
            (0..8).for_each(|_| _ = producer.try_push(&message));
        }
        if let Ok(mut consumer) = spsc::Consumer::<MESSAGE_WORDS>::resume_parts(&tail.clone().into(), head) {
            (0..8).for_each(|_| _ = consumer.try_pop());
        }
    }
    if let Ok(mut producer) = array_queue::Producer::<MESSAGE_WORDS>::attach(words, intent_words) {
        (0..8).for_each(|_| _ = producer.try_push(&message));
    }
    if let Ok(mut consumer) = array_queue::Consumer::<MESSAGE_WORDS>::resume(words, intents()) {
        (0..8).for_each(|_| _ = consumer.try_pop());
    }
    if let Ok(mut producer) = linked::Producer::<MESSAGE_WORDS>::attach(words, intent_words) {
        (0..70).for_each(|_| _ = producer.try_push(&message));
    }
    if let Ok(mut consumer) = linked::Consumer::<MESSAGE_WORDS>::resume(words, intents()) {
        (0..70).for_each(|_| _ = consumer.try_pop());
    }
    // An invalid announcement.
    let ring = Region::heap(array_queue::ring_words(4, MESSAGE_WORDS)).words();
    array_queue::write_header::<MESSAGE_WORDS>(&ring, 4);
    if let Ok(mut producer) = array_queue::Producer::<MESSAGE_WORDS>::attach(&ring, words) {
        (0..8).for_each(|_| _ = producer.try_push(&message));
    }
    let _ = array_queue::Consumer::<MESSAGE_WORDS>::attach(&ring, vec![words.clone()]);
}

/// Checks that decoded messages round-trip.
pub fn wire(bytes: &[u8]) {
    let mut bytes = Unstructured::new(bytes);
    let Ok(message) = <[u64; MESSAGE_WORDS]>::arbitrary(&mut bytes) else { return };
    if let Ok(order) = Order::from_message(message) {
        assert_eq!(Order::from_message(order.to_message()), Ok(order));
    }
    if let Ok(report) = Report::from_message(message) {
        assert_eq!(Report::from_message(report.to_message()), Ok(report));
    }
    if let Ok(instruction) = Instruction::from_message(message) {
        assert_eq!(Instruction::from_message(instruction.to_message()), Ok(instruction));
    }
    let text = String::from_utf8_lossy(bytes.take_rest());
    if let Ok(id) = text.parse::<OrderId>() {
        assert_eq!(id.to_string().parse(), Ok(id));
    }
}

/// Checks that a log of any words is counted within its bounds, and can be appended to.
pub fn log(bytes: &[u8]) {
    let mut bytes = Unstructured::new(bytes);
    let Ok(records) = u8::arbitrary(&mut bytes) else { return };
    let segment = Region::heap(LOG_OFFSET + usize::from(records) * RECORD_WORDS + 1).words();
    let records_area = segment.slice(LOG_OFFSET, segment.len() - LOG_OFFSET);
    overwrite(&records_area, &mut bytes);
    let view = segment.clone().into();
    let count = stamps::count_records(&view);
    assert!(count <= records.into());
    for record in 0..usize::from(records) {
        let key = records_area[record * RECORD_WORDS].load(Relaxed);
        if let Some(record) = Record::from_words(key, 1) {
            assert_eq!(stamps::key_with(record.point, record.id, record.detail), key);
        }
    }
    let points: usize = Point::ALL.iter().map(|point| stamps::count_point(&view, *point)).sum();
    assert!(points <= count);
    let mut log = StampLog::new(&segment);
    (0..300).for_each(|n| log.append(Point::Due, OrderId::new(1, 0, n), n));
    assert!(stamps::count_records(&view) <= records.into());
}

/// Checks that the text of a status block of any words is printable.
pub fn status(bytes: &[u8]) {
    let mut bytes = Unstructured::new(bytes);
    let segment = Region::heap(LOG_OFFSET).words();
    overwrite(&segment.slice(HEADER_WORDS, LOG_OFFSET - HEADER_WORDS), &mut bytes);
    let status = status::read(&segment.into());
    let _ = (status.state(), status.core());
    assert!(!status.error().chars().any(char::is_control));
}

/// Reads a control segment of any words, and one with a valid plan with changed words: an accepted
/// plan must be valid.
pub fn control(bytes: &[u8]) {
    let run = Run::new(Technique::default(), 2, 4);
    for with_plan in [false, true] {
        let mut bytes = Unstructured::new(bytes);
        let words = Region::heap(PLAN + 256).words();
        if with_plan {
            ControlWriter::new(words.clone()).write_plan(run.plan()).expect("room");
            // Near the beginning of the plan.
            overwrite(&words.slice(PLAN, 64), &mut bytes);
        } else {
            let len = usize::from(u16::arbitrary(&mut bytes).unwrap_or(0)) % 2048;
            let rest = bytes.take_rest();
            for (word, eight) in words[PLAN + 1..].iter().zip(rest.chunks_exact(8)) {
                word.store(u64::from_le_bytes(eight.try_into().expect("eight")), Relaxed);
            }
            words[PLAN].store(len as u64, Relaxed);
        }
        let control = Control::new(words.clone());
        let _ = (
            control.state(),
            control.generation(),
            control.incarnation(StrategyIndex(3)),
            control.start_ticks(),
        );
        if let Ok(plan) = control.read_plan() {
            assert!(plan.validate().is_ok());
            let again = ControlWriter::new(Region::heap(PLAN + 1024).words());
            again.write_plan(&plan).expect("it fitted before");
            // Not compared by value: a plan may contain a NaN.
            assert!(again.control().read_plan().is_ok());
        }
    }
}
