//! The compared crates whose ends are threads of one process and share its heap.

use crate::threads::{Run, contender};
use crate::work::{Value, WORDS, copies, keep};
use disruptor::{BusySpin, Producer, build_single_producer};
use left_right::{Absorb, ReadHandle};
use seqlock::SeqLock;
use shm::board::{self, BoardShape};
use std::sync::Arc;

const ROOM: usize = 1024;

/// Reads the board of this project if its version is not the one seen last.
#[inline(always)]
pub fn read_board((reader, seen): &mut (board::Reader, u64), into: &mut Value) -> bool {
    if reader.version(0) == *seen {
        return false;
    }
    match reader.read(0, into) {
        Ok(Some(stamp)) => {
            *seen = stamp.version;
            true
        }
        _ => false,
    }
}

#[derive(Clone)]
struct Absorbed(Value);

impl Absorb<Absorbed> for Absorbed {
    fn absorb_first(&mut self, operation: &mut Absorbed, _: &Self) {
        self.0 = operation.0;
    }
    fn absorb_second(&mut self, operation: Absorbed, _: &Self) {
        self.0 = operation.0;
    }
    fn sync_with(&mut self, first: &Self) {
        self.0 = first.0;
    }
}

pub fn all() -> [(&'static str, Run); 4] {
    [
        contender(
            "board",
            |readers| {
                let (writer, reader) = board::pair(BoardShape::with_cells(1, WORDS).expect("a shape"));
                (writer, vec![(reader, 0); readers])
            },
            |writer, value| _ = writer.write(0, value[1], value),
            copies(read_board),
        ),
        contender(
            "seqlock",
            |readers| {
                let cell = Arc::new(SeqLock::new([0; WORDS]));
                (Arc::clone(&cell), vec![cell; readers])
            },
            |writer, value| *writer.lock_write() = *value,
            copies(|reader: &mut Arc<SeqLock<Value>>, into| {
                *into = reader.read();
                true
            }),
        ),
        contender(
            "left-right",
            |readers| {
                let (writer, reader) = left_right::new_from_empty(Absorbed([0; WORDS]));
                (writer, vec![reader; readers])
            },
            |writer, value| {
                writer.append(Absorbed(*value));
                writer.publish();
            },
            |reader: &mut ReadHandle<Absorbed>, into, hold| match reader.enter() {
                // SAFETY: the guard lives until this returns.
                Some(value) => unsafe { keep(&value.0, into, hold) },
                None => (false, false),
            },
        ),
        // Every value to every reader; its writer waits for the slowest.
        contender(
            "disruptor",
            disruptor,
            |writer, value| writer(value),
            copies(|reader: &mut Poll, into| reader(into)),
        ),
    ]
}

type Publish = Box<dyn FnMut(&Value) + Send>;
type Poll = Box<dyn FnMut(&mut Value) -> bool + Send>;

fn disruptor(readers: usize) -> (Publish, Vec<Poll>) {
    // One value at a time, as the others give it.
    macro_rules! reader {
        ($poller:expr) => {{
            let mut poller = $poller;
            Box::new(move |into: &mut Value| {
                let Ok(mut events) = poller.take(1) else { return false };
                (&mut events).next().is_some_and(|event: &Value| {
                    *into = *event;
                    true
                })
            }) as Poll
        }};
    }
    macro_rules! writer {
        ($builder:expr) => {{
            let mut producer = $builder.build();
            Box::new(move |value: &Value| producer.publish(|event| *event = *value)) as Publish
        }};
    }
    let builder = build_single_producer(ROOM, || [0; WORDS], BusySpin);
    let (first, builder) = builder.new_event_poller();
    let mut all = vec![reader!(first)];
    if readers == 1 {
        return (writer!(builder), all);
    }
    let (second, mut builder) = builder.new_event_poller();
    all.push(reader!(second));
    while all.len() < readers {
        let (poller, next) = builder.new_event_poller();
        builder = next;
        all.push(reader!(poller));
    }
    (writer!(builder), all)
}
