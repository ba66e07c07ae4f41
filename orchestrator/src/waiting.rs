//! The waiting room: orders that found their gateway's inbox full. Each venue has a line of its own, so that a venue that takes
//! nothing holds up no order for another one.
//!
//! All lines share one arena, which is allocated before the start. An order in a line keeps its place: whatever comes for the same
//! venue stands behind it. How many may stand in one line is limited; one that finds its line full is rejected
//! ([`Reject::VenueBusy`](crate::risk::Reject::VenueBusy)). It does not wait in the submit hand-off, because behind it stand orders
//! for other venues.

use protocol::wire::{MESSAGE_WORDS, Message};

/// No place.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Place {
    message: Message,
    /// The next place of the line, or the next free one.
    next: u32,
}

/// One venue's line.
#[derive(Clone, Copy)]
struct Line {
    first: u32,
    last: u32,
    len: u32,
}

/// The waiting orders of all venues.
pub(crate) struct WaitingRoom {
    places: Vec<Place>,
    free: u32,
    lines: Vec<Line>,
    /// The most orders in one line.
    limit: u32,
    len: u64,
}

impl WaitingRoom {
    /// Lines for so many venues, of at most `limit` orders each, and of as many `places` together; nothing is allocated after this.
    pub fn new(venues: usize, places: u32, limit: u32) -> Self {
        let places = places.min(NONE - 1);
        let next = |place: u32| if place + 1 == places { NONE } else { place + 1 };
        // Written once here, so that no page of it is touched for the first time in the middle of a run.
        let empty = |place| Place { message: [u64::MAX; MESSAGE_WORDS], next: next(place) };
        Self {
            places: (0..places).map(empty).collect(),
            free: if places == 0 { NONE } else { 0 },
            lines: vec![Line { first: NONE, last: NONE, len: 0 }; venues],
            limit,
            len: 0,
        }
    }

    /// How many could wait.
    pub const fn places(&self) -> usize {
        self.places.len()
    }

    /// How many orders wait.
    #[inline(always)]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether an order for this venue waits.
    #[inline(always)]
    pub fn has(&self, venue: usize) -> bool {
        self.lines[venue].len > 0
    }

    /// Puts an order at the end of a venue's line; `false` if there is no room for it.
    #[must_use]
    pub fn push(&mut self, venue: usize, message: &Message) -> bool {
        let line = &mut self.lines[venue];
        if self.free == NONE || line.len >= self.limit {
            return false;
        }
        let place = self.free;
        self.free = self.places[place as usize].next;
        self.places[place as usize] = Place { message: *message, next: NONE };
        match line.last {
            NONE => line.first = place,
            last => self.places[last as usize].next = place,
        }
        line.last = place;
        line.len += 1;
        self.len += 1;
        true
    }

    /// The orders of a venue's line, the first one first.
    pub fn all(&self, venue: usize) -> Vec<Message> {
        let mut next = self.lines[venue].first;
        let place = || {
            let place = self.places.get(next as usize)?;
            next = place.next;
            Some(place.message)
        };
        core::iter::from_fn(place).collect()
    }

    /// Takes the first order of a venue's line.
    pub fn pop(&mut self, venue: usize) -> Option<Message> {
        let mut gap = Gap(NONE);
        self.take(venue, &mut gap, |_| true)
    }

    /// Takes the next order of a venue's line that `is_meant`, wherever it stands. The others keep their order. `gap` says where to
    /// look from: [`Gap::FRONT`] at first.
    pub fn take(
        &mut self,
        venue: usize,
        gap: &mut Gap,
        mut is_meant: impl FnMut(&Message) -> bool,
    ) -> Option<Message> {
        loop {
            let place = match gap.0 {
                NONE => self.lines[venue].first,
                before => self.places[before as usize].next,
            };
            let Place { message, next } = *self.places.get(place as usize)?;
            if !is_meant(&message) {
                gap.0 = place;
                continue;
            }
            let line = &mut self.lines[venue];
            match gap.0 {
                NONE => line.first = next,
                before => self.places[before as usize].next = next,
            }
            if line.last == place {
                line.last = gap.0;
            }
            line.len -= 1;
            self.len -= 1;
            self.places[place as usize].next = self.free;
            self.free = place;
            return Some(message);
        }
    }
}

/// A point in a line: behind this place.
pub(crate) struct Gap(u32);

impl Gap {
    /// Before the first order.
    pub const FRONT: Self = Self(NONE);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn message(n: u64) -> Message {
        [n; MESSAGE_WORDS]
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(usize),
        Pop(usize),
        /// Takes every order that this divides.
        Take(usize, u64),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0usize..3).prop_map(Step::Push),
            3 => (0usize..3).prop_map(Step::Pop),
            1 => (0usize..3, 1u64..4).prop_map(|(venue, every)| Step::Take(venue, every)),
        ]
    }

    proptest! {
        /// Against plain queues, which are obviously right.
        #[test]
        fn each_line_is_a_queue_and_no_place_is_lost(
            steps in prop::collection::vec(any_step(), 0..200), places in 0u32..12, limit in 1u32..6,
        ) {
            let mut room = WaitingRoom::new(3, places, limit);
            let mut naive: [VecDeque<u64>; 3] = Default::default();
            for (n, step) in (0u64..).zip(steps) {
                let all: usize = naive.iter().map(VecDeque::len).sum();
                match step {
                    Step::Push(venue) => {
                        let has_room = all < places as usize && naive[venue].len() < limit as usize;
                        prop_assert_eq!(room.push(venue, &message(n)), has_room);
                        if has_room {
                            naive[venue].push_back(n);
                        }
                    }
                    Step::Pop(venue) => prop_assert_eq!(room.pop(venue), naive[venue].pop_front().map(message)),
                    Step::Take(venue, every) => {
                        let mut gap = Gap::FRONT;
                        let taken: Vec<u64> = std::iter::from_fn(|| {
                            room.take(venue, &mut gap, |message| message[0].is_multiple_of(every))
                        })
                        .map(|message| message[0])
                        .collect();
                        let (meant, others): (Vec<u64>, Vec<u64>) = naive[venue].iter().partition(|n| n.is_multiple_of(every));
                        prop_assert_eq!(taken, meant);
                        naive[venue] = others.into();
                    }
                }
                for (venue, line) in naive.iter().enumerate() {
                    prop_assert_eq!(room.has(venue), !line.is_empty());
                }
                prop_assert_eq!(room.len(), naive.iter().map(VecDeque::len).sum::<usize>() as u64);
            }
        }
    }
}
