//! What a consumer of many rings looks at: of each one word, and what it holds while there is nothing. Side by side, so that a look at all of them is
//! little more than their loads.

use super::View;
use crate::sync::{AtomicU64, Ordering};
use core::ptr::NonNull;

/// A word, and what it holds while there is nothing.
struct Spot {
    word: NonNull<AtomicU64>,
    nothing: u64,
}

/// Some views, and one word of each.
#[derive(Default)]
pub struct Lookout {
    /// Each points into the view at the same place below.
    spots: Vec<Spot>,
    views: Vec<View>,
}

// SAFETY: a spot is a shared reference to an atomic of a region, which may cross threads; the view that keeps the region goes with it.
unsafe impl Send for Lookout {}

impl Lookout {
    /// Looks at the `index`th word of that view as well, between the others at `place`.
    ///
    /// # Panics
    /// If the view has no such word, or there is no such place.
    pub fn insert(&mut self, place: usize, view: View, index: usize, nothing: u64) {
        self.spots.insert(place, Spot { word: NonNull::from(&view.0[index]), nothing });
        self.views.insert(place, view);
    }

    /// Looks there no more.
    ///
    /// # Panics
    /// If there is no such place.
    pub fn remove(&mut self, place: usize) {
        self.spots.remove(place);
        self.views.remove(place);
    }

    /// Looks at another word of the view at that place.
    ///
    /// # Panics
    /// If the view has no such word, or there is no such place.
    #[inline(always)]
    pub fn turn(&mut self, place: usize, index: usize, nothing: u64) {
        self.spots[place] = Spot { word: NonNull::from(&self.views[place].0[index]), nothing };
    }

    /// The first place, from `first` on and around, where there may be something. Orders nothing.
    ///
    /// # Panics
    /// If there are fewer than `first` places.
    #[inline(always)]
    pub fn find(&self, first: usize) -> Option<usize> {
        // SAFETY: the word was inside the view at the same place when it was chosen, and that view keeps its memory.
        let stirs = |spot: &Spot| unsafe { spot.word.as_ref() }.load(Ordering::Relaxed) != spot.nothing;
        // Two plain walks: around without a division.
        let (start, rest) = self.spots.split_at(first);
        match rest.iter().position(stirs) {
            Some(place) => Some(first + place),
            None => start.iter().position(stirs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Region;

    #[test]
    fn it_finds_what_stirs_from_there_on_and_around() {
        let regions: Vec<_> = (0..4).map(|_| Region::heap(4).words()).collect();
        let mut lookout = Lookout::default();
        for (place, words) in regions.iter().enumerate() {
            lookout.insert(place, words.clone().into(), 1, 0);
        }
        assert_eq!(lookout.find(2), None);
        regions[1][1].store(7, Ordering::Relaxed);
        regions[3][1].store(7, Ordering::Relaxed);
        assert_eq!([0, 1, 2, 3].map(|first| lookout.find(first)), [Some(1), Some(1), Some(3), Some(3)]);
        lookout.turn(3, 1, 7);
        assert_eq!(lookout.find(2), Some(1));
        lookout.turn(1, 2, 0);
        assert_eq!(lookout.find(0), None);
        lookout.remove(0);
        drop(regions);
        lookout.turn(0, 1, 0);
        assert_eq!(lookout.find(1), Some(0), "the memory is still there");
    }
}
