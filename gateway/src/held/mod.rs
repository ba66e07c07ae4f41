//! A timing wheel for orders that a venue holds until they are due, allocated at the start.
//!
//! ```text
//!  release time   0 … 0 │ slot (14 … 17 bits) │ within the slot
//!                             │
//!  wheel:  ·  ·  ·  ▼  ·  ·  ·  ·     a list of orders a slot, and a bit that says whether it is empty
//!          turned ▲    │
//!                      ▼ when the slot's time begins
//!  current:       a min-heap of the one or few orders of that slot ──▶ pop_due
//! ```
//!
//! An order goes into the slot of its release time: one link is written, whatever the number of
//! orders held. When a slot's time begins, its orders move to a small heap, which puts them into
//! their exact order: by release time, then by arrival. Orders further away than a turn of the
//! wheel stay in their slot's list for as many turns as it takes; each turn looks at them once.
//!
//! Why a wheel: a heap over 100,000 orders touches some 17 entries an order, most of them in no
//! cache. Here it is the head of a list, a link, and the order itself, and the last two are fetched
//! ahead of their slot's time. A wheel with several levels would move nearly each order (5 to 500
//! ms) from level to level and touch it again each time; a radix heap does the same. The bench
//! `held` compares the wheel with the heap that it replaced.

mod bits;

use crate::venue::Sweep;
use bits::Bits;
use protocol::wire::OrderId;
use shm::prefetch::prefetch;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A turn of the wheel is so many bits of ticks long: about a second.
const TURN_BITS: u32 = 31;
/// Slots, as a power of two: at least …
const FEWEST_BITS: u32 = 14;
/// … and at most.
const MOST_BITS: u32 = 17;

/// No place.
const NONE: u32 = u32::MAX;
/// In the place of `before`: the order is in `current`.
const CURRENT: u32 = u32::MAX - 1;

/// Orders, or whatever a venue keeps of an order, waiting for their time.
///
/// Equal release times come out in the order of their arrival. A cancelled order leaves its place
/// at once, unless its slot has begun: then its place is free when its time has come.
pub struct TimerWheel<T> {
    /// The orders of slots that have begun, the earliest first.
    current: BinaryHeap<Reverse<Due>>,
    /// Counts the arrivals in `current` since it was empty.
    arrivals: i64,
    /// No order is released before this.
    next: u64,
    /// The first slot, counted from tick 0, that has not begun.
    turned: u64,
    /// Orders in the wheel.
    waiting: usize,
    /// The newest order of each slot's list.
    heads: Vec<u32>,
    /// Which lists are not empty.
    filled: Bits,
    /// A slot's length in bits of ticks.
    slot_bits: u32,
    /// How far the list of the slot that begins next has been fetched: a place, which may have been
    /// left since.
    fetched: u32,
    links: Vec<Link>,
    places: Vec<Place<T>>,
    /// From this place on none was ever taken: a sweep need not look there.
    used: u32,
    /// The first free place; the others are behind it, over their links. The last one that was
    /// emptied comes first: it is still in the cache.
    free: u32,
}

/// Where an order is in its slot's list.
#[derive(Clone, Copy)]
struct Link {
    release: u64,
    /// The next older one.
    after: u32,
    /// The next newer one.
    before: u32,
}

/// On cache lines of its own.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Place<T>(Option<T>);

/// An entry of the heap.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Due {
    release: u64,
    /// Smaller: arrived earlier.
    arrival: i64,
    place: u32,
}

impl Ord for Due {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        (self.release, self.arrival).cmp(&(other.release, other.arrival))
    }
}

impl PartialOrd for Due {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Copy> TimerWheel<T> {
    /// Room for `capacity` orders; nothing is allocated after this.
    ///
    /// # Panics
    /// If `capacity` does not fit 31 bits; the plan's bound is far below.
    pub fn with_capacity(capacity: usize) -> Self {
        let places = u32::try_from(capacity).ok().filter(|places| *places < 1 << 31);
        let places = places.expect("a plan holds fewer orders than 2^31");
        let bits = places.next_power_of_two().trailing_zeros().clamp(FEWEST_BITS, MOST_BITS);
        // Filled once and emptied, so that no page of it is touched for the first time in the
        // middle of a run.
        let filler = Reverse(Due { release: u64::MAX, arrival: 0, place: NONE });
        let mut current = BinaryHeap::from(vec![filler; capacity]);
        current.clear();
        Self {
            current,
            arrivals: 0,
            next: u64::MAX,
            turned: 0,
            waiting: 0,
            heads: vec![NONE; 1 << bits],
            filled: Bits::new(1 << bits),
            slot_bits: TURN_BITS - bits,
            fetched: NONE,
            links: (1..=places)
                .map(|after| Link {
                    release: 0,
                    after: if after == places { NONE } else { after },
                    before: NONE,
                })
                .collect(),
            places: vec![Place(None); capacity],
            used: 0,
            free: if places == 0 { NONE } else { 0 },
        }
    }

    /// Whether there is no room for another order.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.free == NONE
    }

    /// Holds an order until `release` (ticks).
    ///
    /// # Panics
    /// If it is full: ask [`TimerWheel::is_full`] first.
    #[inline]
    pub fn push(&mut self, release: u64, order: T) {
        assert!(!self.is_full(), "asked before");
        let place = self.free;
        let link = &mut self.links[place as usize];
        self.free = link.after;
        self.used = self.used.max(place + 1);
        link.release = release;
        self.places[place as usize].0 = Some(order);
        let slot = release >> self.slot_bits;
        if slot < self.turned {
            if self.waiting > 0 || !self.current.is_empty() {
                self.push_current(release, place);
                return;
            }
            self.turned = slot;
        } else if self.waiting == 0 && self.current.is_empty() {
            // Nobody has looked since the last order left: the wheel begins where a turn from it
            // ends with this one.
            self.turned = self.turned.max(slot.saturating_sub(self.mask()));
        }
        self.insert(slot, place);
        self.next = self.next.min(release);
    }

    /// An order of a slot that has begun.
    #[cold]
    fn push_current(&mut self, release: u64, place: u32) {
        self.links[place as usize].before = CURRENT;
        self.arrivals += 1;
        self.current.push(Reverse(Due { release, arrival: self.arrivals, place }));
        self.next = self.next.min(release);
    }

    const fn mask(&self) -> u64 {
        self.heads.len() as u64 - 1
    }

    /// The first slot that has not begun and shares its list with this one: none of them begins
    /// earlier.
    #[inline]
    const fn candidate(&self, slot: u64) -> u64 {
        self.turned + (slot.wrapping_sub(self.turned) & self.mask())
    }

    /// The first slot that has not begun and whose list is not empty; there is one.
    #[inline]
    fn first_filled(&self) -> u64 {
        self.candidate(self.filled.next((self.turned & self.mask()) as usize) as u64)
    }

    /// Puts an order at the head of its slot's list.
    #[inline]
    fn insert(&mut self, slot: u64, place: u32) {
        let list = (slot & self.mask()) as usize;
        let after = std::mem::replace(&mut self.heads[list], place);
        let link = &mut self.links[place as usize];
        (link.after, link.before) = (after, NONE);
        if after == NONE {
            self.filled.set(list);
        } else {
            self.links[after as usize].before = place;
        }
        self.waiting += 1;
    }

    /// Takes an order out of its slot's list.
    #[inline]
    fn unlink(&mut self, place: u32) {
        let Link { release, after, before } = self.links[place as usize];
        if before == NONE {
            let list = (release >> self.slot_bits & self.mask()) as usize;
            self.heads[list] = after;
            if after == NONE {
                self.filled.clear(list);
            }
        } else {
            self.links[before as usize].after = after;
        }
        if after != NONE {
            self.links[after as usize].before = before;
        }
        self.waiting -= 1;
    }

    /// Frees a place.
    #[inline]
    fn release(&mut self, place: u32) {
        self.links[place as usize].after = self.free;
        self.free = place;
    }

    /// Gives the order with the earliest release time, if that has come.
    #[inline]
    pub fn pop_due(&mut self, now: u64) -> Option<T> {
        if self.next > now {
            return None;
        }
        loop {
            while let Some(Reverse(first)) = self.current.peek().copied() {
                if first.release > now {
                    self.next = first.release;
                    return None;
                }
                self.current.pop();
                self.release(first.place);
                // `None`: cancelled meanwhile.
                if let Some(order) = self.places[first.place as usize].0.take() {
                    self.next = self.earliest();
                    self.fetch_ahead();
                    return Some(order);
                }
            }
            self.next = self.earliest();
            if self.next <= now && self.waiting > 0 && (now >> self.slot_bits) - self.turned > self.mask() {
                self.catch_up(now);
                self.next = self.earliest();
            }
            if self.next > now || self.waiting == 0 {
                return None;
            }
            self.turn();
        }
    }

    /// Fetches the place of the next order ahead of its use.
    pub fn keep_warm(&self) {
        let free = self.free as usize;
        if let (Some(link), Some(place)) = (self.links.get(free), self.places.get(free)) {
            prefetch(link);
            prefetch(place);
        }
    }

    /// No order is released before this.
    #[inline]
    fn earliest(&self) -> u64 {
        match self.current.peek() {
            Some(Reverse(first)) => first.release,
            None if self.waiting == 0 => u64::MAX,
            None => self.first_filled() << self.slot_bits,
        }
    }

    /// Begins the first slot whose list is not empty; there is one.
    fn turn(&mut self) {
        let slot = self.first_filled();
        self.turned = slot + 1;
        self.arrivals = 0;
        let mut place = self.heads[(slot & self.mask()) as usize];
        let mut arrival = 0;
        while place != NONE {
            let Link { release, after, .. } = self.links[place as usize];
            // Else its time is a turn of the wheel away, or more.
            if release >> self.slot_bits == slot {
                prefetch(&self.places[place as usize]);
                self.unlink(place);
                self.links[place as usize].before = CURRENT;
                // The newest comes first.
                arrival -= 1;
                self.current.push(Reverse(Due { release, arrival, place }));
            }
            place = after;
        }
        if self.waiting > 0 {
            self.fetched = self.heads[(self.first_filled() & self.mask()) as usize];
            prefetch(&self.links[self.fetched as usize]);
        }
    }

    /// Fetches the next order of the slot that begins next, and the link behind it: one with each
    /// order that leaves, so that a list is there when its slot begins, and nobody waits for one
    /// link after the other.
    #[inline(always)]
    fn fetch_ahead(&mut self) {
        let Some(link) = self.links.get(self.fetched as usize) else { return };
        prefetch(&self.places[self.fetched as usize]);
        self.fetched = link.after;
        if let Some(after) = self.links.get(self.fetched as usize) {
            prefetch(after);
        }
    }

    /// The wheel is more than a turn behind: it goes on at the first order, so that it need not
    /// turn as often as it missed.
    #[cold]
    fn catch_up(&mut self, now: u64) {
        let slots = self
            .links
            .iter()
            .zip(&self.places)
            .filter(|(link, place)| place.0.is_some() && link.before != CURRENT);
        let first = slots.map(|(link, _)| link.release >> self.slot_bits).min();
        self.turned = first.unwrap_or(u64::MAX).min(now >> self.slot_bits);
    }

    /// Takes the next order that the sweep concerns, within its looks; its cursor is a place here.
    /// `key_of`: an order's id and instrument.
    pub fn cancel(&mut self, sweep: &mut Sweep, key_of: impl Fn(&T) -> (OrderId, u16)) -> Option<T> {
        while sweep.looks > 0 && !self.is_swept(sweep) {
            let index = sweep.cursor;
            sweep.cursor += 1;
            sweep.looks -= 1;
            if self.places[index].0.as_ref().is_some_and(|order| {
                let (id, instrument) = key_of(order);
                sweep.concerns(id, instrument)
            }) {
                if self.links[index].before != CURRENT {
                    self.unlink(index as u32);
                    self.release(index as u32);
                }
                return self.places[index].0.take();
            }
        }
        None
    }

    /// Whether the sweep has been everywhere where an order may be.
    pub fn is_swept(&self, sweep: &Sweep) -> bool {
        sweep.cursor >= self.used as usize
    }

    /// No order is released before this; `u64::MAX` if nothing is held. Of the order that comes
    /// after one that was taken it may be up to a slot (some 10 µs) early: then its slot begins,
    /// [`TimerWheel::pop_due`] gives nothing yet, and this is exact.
    #[inline]
    pub fn next_release(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
mod tests;
