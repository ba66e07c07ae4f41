//! A timing wheel (Varghese and Lauck) for orders that a venue holds until they are due, allocated
//! once.
//!
//! ```text
//!  release time   0 … 0 │ slot (14 … 17 bits) │ within the slot
//!                             │
//!  wheel:  ·  ·  ·  ▼  ·  ·  ·  ·     a list of orders per slot, and a bit: is it empty?
//!           begun ▲    │
//!                      ▼ when the slot's time begins
//!  current:       the orders of that slot, sorted ──▶ pop_due
//! ```
//!
//! An order goes into the slot of its release time: one link is written, whatever the number of
//! orders held. When a slot's time begins, its orders move to `current` in their exact order: by
//! release time, then by arrival. With equal delays they have that order already. Orders further
//! away than a revolution of the wheel stay in their slot's list for several revolutions; each
//! visits them once.
//!
//! Why a wheel: a heap over 100,000 orders touches some 17 entries per order, most of them
//! uncached. Here it is the head of a list, a link, and the order itself, and the last two are
//! fetched ahead of their slot's time. A wheel with several levels would move nearly each order (5
//! to 500 ms) from level to level and touch it again each time; a radix heap does the same.

mod bits;

use crate::venue::CancelSweep;
use bits::Bits;
use protocol::wire::OrderId;
use shm::prefetch::prefetch;
use std::collections::VecDeque;

/// Length of a revolution in bits of ticks: about a second.
const REVOLUTION_BITS: u32 = 31;
const MIN_SLOT_BITS: u32 = 14;
const MAX_SLOT_BITS: u32 = 17;

const NONE: u32 = u32::MAX;
/// Value of `before` for an order in `current`.
const CURRENT: u32 = u32::MAX - 1;

/// A timing wheel that returns orders when their release time has come. It holds the orders, or
/// what a venue keeps of an order.
///
/// Orders with equal release times come out in order of arrival. A cancelled order frees its entry
/// at once, or at its release time if its slot has begun.
pub struct TimerWheel<T> {
    /// The orders of slots that have begun, the earliest first.
    current: VecDeque<DueEntry>,
    /// Counts the arrivals in `current` since it was empty.
    arrivals: i64,
    /// Lower bound of the next release time, in ticks.
    next: u64,
    /// The first slot that has not begun, counted from tick 0.
    next_slot: u64,
    in_wheel: usize,
    /// The newest order of each slot's list.
    heads: Vec<u32>,
    /// Which lists are not empty.
    filled: Bits,
    /// A slot's length in bits of ticks.
    slot_bits: u32,
    /// How far the list of the next slot has been prefetched: an index, which may have been freed
    /// since.
    prefetched: u32,
    links: Vec<Link>,
    orders: Vec<StoredOrder<T>>,
    /// Indices from here on were never used: a sweep skips them.
    high_water: u32,
    /// Head of the free list. The entry freed last comes first: it is still cached.
    free: u32,
}

#[derive(Clone, Copy)]
struct Link {
    release: u64,
    /// The next older order.
    after: u32,
    /// The next newer order.
    before: u32,
}

/// An order on cache lines of its own.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct StoredOrder<T>(Option<T>);

/// Ordered by release time, then by arrival: a smaller number arrived earlier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct DueEntry {
    release: u64,
    arrival: i64,
    index: u32,
}

impl<T: Copy> TimerWheel<T> {
    /// Creates a timing wheel for `capacity` orders (below 2^31), with all its memory.
    pub fn with_capacity(capacity: usize) -> Self {
        let count = u32::try_from(capacity).ok().filter(|count| *count < 1 << 31);
        let count = count.expect("a plan holds fewer orders than 2^31");
        let bits = count.next_power_of_two().trailing_zeros().clamp(MIN_SLOT_BITS, MAX_SLOT_BITS);
        // Filled once and emptied, so that no page is touched for the first time during a run.
        let filler = DueEntry { release: u64::MAX, arrival: 0, index: NONE };
        let mut current = VecDeque::from(vec![filler; capacity]);
        current.clear();
        Self {
            current,
            arrivals: 0,
            next: u64::MAX,
            next_slot: 0,
            in_wheel: 0,
            heads: vec![NONE; 1 << bits],
            filled: Bits::new(1 << bits),
            slot_bits: REVOLUTION_BITS - bits,
            prefetched: NONE,
            links: (1..=count)
                .map(|after| Link {
                    release: 0,
                    after: if after == count { NONE } else { after },
                    before: NONE,
                })
                .collect(),
            orders: vec![StoredOrder(None); capacity],
            high_water: 0,
            free: if count == 0 { NONE } else { 0 },
        }
    }

    /// Returns `true` if the timing wheel holds as many orders as it has capacity for.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.free == NONE
    }

    /// Adds an order to the timing wheel, to be released at `release`, in ticks of the run's clock;
    /// panics if the wheel is full.
    #[inline]
    pub fn push(&mut self, release: u64, order: T) {
        assert!(!self.is_full(), "the caller checks `is_full`");
        let index = self.free;
        let link = &mut self.links[index as usize];
        self.free = link.after;
        self.high_water = self.high_water.max(index + 1);
        link.release = release;
        self.orders[index as usize].0 = Some(order);
        let slot = release >> self.slot_bits;
        if slot < self.next_slot {
            if self.in_wheel > 0 || !self.current.is_empty() {
                self.push_current(release, index);
                return;
            }
            self.next_slot = slot;
        } else if self.in_wheel == 0 && self.current.is_empty() {
            // The wheel was empty: it begins one revolution before this order.
            self.next_slot = self.next_slot.max(slot.saturating_sub(self.mask()));
        }
        self.insert(slot, index);
        self.next = self.next.min(release);
    }

    #[cold]
    fn push_current(&mut self, release: u64, index: u32) {
        self.links[index as usize].before = CURRENT;
        self.arrivals += 1;
        let entry = DueEntry { release, arrival: self.arrivals, index };
        // Nearly always at the end, or near it: what arrives later is due later.
        let place = self.current.iter().rposition(|earlier| *earlier < entry).map_or(0, |last| last + 1);
        self.current.insert(place, entry);
        self.next = self.next.min(release);
    }

    const fn mask(&self) -> u64 {
        self.heads.len() as u64 - 1
    }

    /// Returns the first slot that has not begun and shares its list with `slot`.
    #[inline]
    const fn candidate(&self, slot: u64) -> u64 {
        self.next_slot + (slot.wrapping_sub(self.next_slot) & self.mask())
    }

    /// Returns the first slot that has not begun and whose list is not empty; there is one.
    #[inline]
    fn first_filled(&self) -> u64 {
        self.candidate(self.filled.next((self.next_slot & self.mask()) as usize) as u64)
    }

    #[inline]
    fn insert(&mut self, slot: u64, index: u32) {
        let list = (slot & self.mask()) as usize;
        let after = std::mem::replace(&mut self.heads[list], index);
        let link = &mut self.links[index as usize];
        (link.after, link.before) = (after, NONE);
        if after == NONE {
            self.filled.set(list);
        } else {
            self.links[after as usize].before = index;
        }
        self.in_wheel += 1;
    }

    /// Adds an order at the end of a list, after the next newer one that stays there.
    #[cold]
    fn append(&mut self, list: usize, newer: u32, index: u32) {
        let link = &mut self.links[index as usize];
        (link.after, link.before) = (NONE, newer);
        if newer == NONE {
            self.heads[list] = index;
            self.filled.set(list);
        } else {
            self.links[newer as usize].after = index;
        }
    }

    #[inline]
    fn unlink(&mut self, index: u32) {
        let Link { release, after, before } = self.links[index as usize];
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
        self.in_wheel -= 1;
    }

    #[inline]
    fn release(&mut self, index: u32) {
        self.links[index as usize].after = self.free;
        self.free = index;
    }

    /// Removes and returns the order with the earliest release time, if it has come by `now`.
    #[inline]
    pub fn pop_due(&mut self, now: u64) -> Option<T> {
        if self.next > now {
            return None;
        }
        loop {
            while let Some(first) = self.current.front().copied() {
                if first.release > now {
                    self.next = first.release;
                    return None;
                }
                self.current.pop_front();
                self.release(first.index);
                // `None`: it was cancelled.
                if let Some(order) = self.orders[first.index as usize].0.take() {
                    self.next = self.earliest();
                    self.prefetch_next();
                    return Some(order);
                }
            }
            self.next = self.earliest();
            if self.next <= now && self.in_wheel > 0 && (now >> self.slot_bits) - self.next_slot > self.mask()
            {
                self.catch_up(now);
                self.next = self.earliest();
            }
            if self.next > now || self.in_wheel == 0 {
                return None;
            }
            self.begin_next_slot();
        }
    }

    /// Prefetches the memory that adding the next order to the timing wheel touches.
    pub fn prefetch_hot(&self) {
        let free = self.free as usize;
        if let (Some(link), Some(index)) = (self.links.get(free), self.orders.get(free)) {
            prefetch(link);
            prefetch(index);
        }
    }

    #[inline]
    fn earliest(&self) -> u64 {
        match self.current.front() {
            Some(first) => first.release,
            None if self.in_wheel == 0 => u64::MAX,
            None => self.first_filled() << self.slot_bits,
        }
    }

    /// Begins the first slot whose list is not empty; there is one.
    fn begin_next_slot(&mut self) {
        let slot = self.first_filled();
        self.next_slot = slot + 1;
        self.arrivals = 0;
        let list = (slot & self.mask()) as usize;
        let mut index = std::mem::replace(&mut self.heads[list], NONE);
        self.filled.clear(list);
        let (mut arrival, mut is_sorted, mut newer) = (0, true, NONE);
        while index != NONE {
            let Link { release, after, .. } = self.links[index as usize];
            if release >> self.slot_bits == slot {
                prefetch(&self.orders[index as usize]);
                self.links[index as usize].before = CURRENT;
                self.in_wheel -= 1;
                // The newest comes first.
                arrival -= 1;
                let entry = DueEntry { release, arrival, index };
                is_sorted &= self.current.front().is_none_or(|later| entry < *later);
                self.current.push_front(entry);
            } else {
                // It is due a revolution later, or more.
                self.append(list, newer, index);
                newer = index;
            }
            index = after;
        }
        if !is_sorted {
            self.current.make_contiguous().sort_unstable();
        }
        if self.in_wheel > 0 {
            self.prefetched = self.heads[(self.first_filled() & self.mask()) as usize];
            prefetch(&self.links[self.prefetched as usize]);
        }
    }

    /// Prefetches one order of the next slot and its next link. Called once per order released, so
    /// that a list is cached when its slot begins, instead of a chain of dependent misses.
    #[inline(always)]
    fn prefetch_next(&mut self) {
        let Some(link) = self.links.get(self.prefetched as usize) else { return };
        prefetch(&self.orders[self.prefetched as usize]);
        self.prefetched = link.after;
        if let Some(after) = self.links.get(self.prefetched as usize) {
            prefetch(after);
        }
    }

    /// Iterates over the entries that were ever used. A wheel that is late visits them again and
    /// again, and the others could be a million.
    fn used(&self) -> impl Iterator<Item = (&Link, &StoredOrder<T>)> {
        self.links.iter().zip(&self.orders).take(self.high_water as usize)
    }

    /// Skips to the first order's slot: the wheel is more than a revolution late, and need not
    /// visit every missed slot.
    #[cold]
    fn catch_up(&mut self, now: u64) {
        let slots = self.used().filter(|(link, order)| order.0.is_some() && link.before != CURRENT);
        let first = slots.map(|(link, _)| link.release >> self.slot_bits).min();
        self.next_slot = first.unwrap_or(u64::MAX).min(now >> self.slot_bits);
    }

    /// Removes and returns the next order that a mass cancel covers; `None` once all entries are
    /// visited or `sweep.budget` is used up. The budget is the number of entries that may still be
    /// visited now. `key_of` returns an order's id and instrument.
    pub fn cancel(&mut self, sweep: &mut CancelSweep, key_of: impl Fn(&T) -> (OrderId, u16)) -> Option<T> {
        while sweep.budget > 0 && !self.is_swept(sweep) {
            let index = sweep.cursor;
            sweep.cursor += 1;
            sweep.budget -= 1;
            if self.orders[index].0.as_ref().is_some_and(|order| {
                let (id, instrument) = key_of(order);
                sweep.concerns(id, instrument)
            }) {
                if self.links[index].before != CURRENT {
                    self.unlink(index as u32);
                    self.release(index as u32);
                }
                return self.orders[index].0.take();
            }
        }
        None
    }

    /// Returns `true` if a mass cancel has visited every entry of the wheel that may hold an order.
    pub fn is_swept(&self, sweep: &CancelSweep) -> bool {
        sweep.cursor >= self.high_water as usize
    }

    /// Returns a lower bound of the next order's release time in ticks; `u64::MAX` if there is
    /// none. It may be up to a slot (some 10 µs) early; [`TimerWheel::pop_due`] then returns `None`
    /// and makes it exact.
    #[inline]
    pub fn next_release(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
mod tests;
