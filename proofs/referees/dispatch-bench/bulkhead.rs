//! bulkhead's rings per producer as a technique of nonblocking-dispatch-bench.
//!
//! `insert.sh` puts this file into a copy of that program. A message of a ring is seven words: who
//! sent the order and where to, the first five of its time stamps, and when it is due. The last
//! three stamps are taken after the hand-offs. Stamps travel as nanoseconds since the first use.

use crate::Order;
use shm::queue::Queue;
use shm::ring::{Consumer, Link, Producer, spsc_mux::SpscMux};
use std::cell::RefCell;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

type Ring = <SpscMux as Link>::Producer;

/// The time that stamps count from: a second before the first use, so that none is negative.
fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(|| Instant::now() - Duration::from_secs(1))
}

/// A sender that its first user takes: the program clones its senders before it starts threads.
pub struct Tx {
    shared: Arc<Mutex<Option<Ring>>>,
    own: RefCell<Option<Ring>>,
    epoch: Instant,
}

impl Clone for Tx {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), own: RefCell::new(None), epoch: self.epoch }
    }
}

impl Tx {
    pub fn push(&self, order: Order) -> Result<(), Order> {
        let mut own = self.own.borrow_mut();
        let ring = own.get_or_insert_with(|| {
            self.shared.lock().ok().and_then(|mut ring| ring.take()).expect("one thread sends")
        });
        let ns = |time: Instant| (time - self.epoch).as_nanos() as u64;
        let [t1, t2, t3, t4, t5, ..] = order.ts.map(ns);
        let ends = order.strategy as u64 | (order.venue as u64) << 32;
        ring.try_push(&[ends, t1, t2, t3, t4, t5, ns(order.due)]).map_err(|_| order)
    }
}

/// The receiver, which scans the rings in turn.
pub struct Rx {
    ring: <SpscMux as Link>::Consumer,
    epoch: Instant,
}

impl Rx {
    pub fn pop(&mut self) -> Option<Order> {
        let (_, [ends, t1, t2, t3, t4, t5, due]) = self.ring.try_pop()?;
        let at = |ns: u64| self.epoch + Duration::from_nanos(ns);
        let ts = [at(t1), at(t2), at(t3), at(t4), at(t5), self.epoch, self.epoch, self.epoch];
        Some(Order { strategy: (ends & 0xffff_ffff) as usize, venue: (ends >> 32) as usize, due: at(due), ts })
    }
}

/// Creates a ring of `capacity` slots for each of `producers`.
pub fn build(producers: usize, capacity: usize) -> (Vec<Tx>, Rx) {
    let mut queue = Queue::<SpscMux>::on_heap(producers, capacity as u32).expect("a power of two of slots");
    let epoch = epoch();
    let ring = queue.consumer().expect("the only consumer");
    let sender = |index| {
        let ring = queue.producer(index).expect("taken once");
        Tx { shared: Arc::new(Mutex::new(Some(ring))), own: RefCell::new(None), epoch }
    };
    ((0..producers).map(sender).collect(), Rx { ring, epoch })
}
