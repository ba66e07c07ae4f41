//! Indices of strategies, venues and gateways as types, and a vector that only one of them indexes,
//! so that no signature can mix a strategy with a venue.
//!
//! An index is a name, not a proof: one that was read from shared memory or from a file is checked
//! against the run's numbers of strategies and venues where it is used, as a bare number would be.

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Index, IndexMut};
use serde::{Deserialize, Serialize};

/// A typed index, from 0, of one kind of thing in a run, such as strategies or venues.
pub trait TypedIndex: Copy {
    /// Creates the index of the thing at a position.
    fn at(position: u16) -> Self;

    /// Returns the position of the thing among those of its kind.
    fn as_usize(self) -> usize;
}

macro_rules! typed_index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u16);

        impl $name {
            /// Iterates over the first `count` indices of this type, from 0.
            pub fn first(count: u16) -> impl Iterator<Item = Self> + Clone {
                (0..count).map(Self)
            }

            /// Returns this index as a `usize`, for a list with one entry for each strategy, venue
            /// or gateway.
            #[inline(always)]
            pub const fn as_usize(self) -> usize {
                self.0 as usize
            }
        }

        impl TypedIndex for $name {
            #[inline(always)]
            fn at(position: u16) -> Self {
                Self(position)
            }

            #[inline(always)]
            fn as_usize(self) -> usize {
                self.as_usize()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

typed_index! {
    /// The index of a strategy among those of its run, from 0.
    StrategyIndex
}

typed_index! {
    /// The index of a venue among those of its run, from 0; also that of its exchange.
    VenueIndex
}

typed_index! {
    /// The index of a gateway among those of its run, from 0: of a venue and a
    /// credential.
    GatewayIndex
}

/// A vector with one value for each strategy of a run, indexed by [`StrategyIndex`].
pub type PerStrategy<T> = IndexedVec<StrategyIndex, T>;

/// A vector with one value for each venue of a run, indexed by [`VenueIndex`].
pub type PerVenue<T> = IndexedVec<VenueIndex, T>;

/// A vector with one value for each gateway of a run, indexed by [`GatewayIndex`].
pub type PerGateway<T> = IndexedVec<GatewayIndex, T>;

/// A vector that accepts indices of one type only, so that a strategy's index cannot select a
/// venue's value. It has the format of a plain vector when saved.
///
/// ```compile_fail,E0277
/// use protocol::index::{PerVenue, StrategyIndex};
/// let open_orders = PerVenue::from(vec![1, 2]);
/// open_orders[StrategyIndex(0)];
/// ```
#[derive(Serialize, Deserialize)]
#[serde(transparent, bound(serialize = "T: Serialize", deserialize = "T: Deserialize<'de>"))]
pub struct IndexedVec<I, T> {
    items: Vec<T>,
    #[serde(skip)]
    index: PhantomData<fn(I)>,
}

impl<I: TypedIndex, T> IndexedVec<I, T> {
    /// Creates a vector of `count` values, each from its index.
    pub fn from_fn(count: usize, value: impl FnMut(I) -> T) -> Self {
        (0..=u16::MAX).take(count).map(I::at).map(value).collect()
    }

    /// Creates a vector of `count` equal values.
    pub fn filled(value: T, count: usize) -> Self
    where
        T: Clone,
    {
        vec![value; count].into()
    }

    /// Appends a value, which gets the next index.
    pub fn push(&mut self, value: T) {
        self.items.push(value);
    }

    /// Returns the number of values in the vector.
    #[inline(always)]
    pub const fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns `true` if the vector has no value.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns `true` if this vector has a value at an index.
    #[inline(always)]
    pub fn has(&self, index: I) -> bool {
        index.as_usize() < self.items.len()
    }

    /// Returns the vector's value at an index; `None` for an index without one.
    #[inline(always)]
    pub fn get(&self, index: I) -> Option<&T> {
        self.items.get(index.as_usize())
    }

    /// Returns the vector's value at an index for changes; `None` for an index without one.
    #[inline(always)]
    pub fn get_mut(&mut self, index: I) -> Option<&mut T> {
        self.items.get_mut(index.as_usize())
    }

    /// Iterates over all indices at which the vector has a value.
    pub fn indices(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..=u16::MAX).take(self.items.len()).map(I::at)
    }

    /// Iterates over the vector's indices and their values.
    pub fn enumerate(&self) -> impl Iterator<Item = (I, &T)> {
        self.indices().zip(&self.items)
    }

    /// Iterates over all indices and their values for changes.
    pub fn enumerate_mut(&mut self) -> impl Iterator<Item = (I, &mut T)> {
        self.indices().zip(&mut self.items)
    }

    /// Iterates over the vector's values, in the order of their indices.
    pub fn iter(&self) -> core::slice::Iter<'_, T> {
        self.items.iter()
    }

    /// Iterates over the vector's values for changes, in the order of their indices.
    pub fn iter_mut(&mut self) -> core::slice::IterMut<'_, T> {
        self.items.iter_mut()
    }
}

impl<I: TypedIndex, T> Index<I> for IndexedVec<I, T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, index: I) -> &T {
        &self.items[index.as_usize()]
    }
}

impl<I: TypedIndex, T> IndexMut<I> for IndexedVec<I, T> {
    #[inline(always)]
    fn index_mut(&mut self, index: I) -> &mut T {
        &mut self.items[index.as_usize()]
    }
}

impl<I, T> From<Vec<T>> for IndexedVec<I, T> {
    fn from(items: Vec<T>) -> Self {
        Self { items, index: PhantomData }
    }
}

impl<I, T> FromIterator<T> for IndexedVec<I, T> {
    fn from_iter<V: IntoIterator<Item = T>>(values: V) -> Self {
        Vec::from_iter(values).into()
    }
}

impl<'a, I, T> IntoIterator for &'a IndexedVec<I, T> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

impl<'a, I, T> IntoIterator for &'a mut IndexedVec<I, T> {
    type Item = &'a mut T;
    type IntoIter = core::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter_mut()
    }
}

impl<I, T> IntoIterator for IndexedVec<I, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

impl<I, T> Default for IndexedVec<I, T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<I, T: Clone> Clone for IndexedVec<I, T> {
    fn clone(&self) -> Self {
        self.items.clone().into()
    }
}

impl<I, T: PartialEq> PartialEq for IndexedVec<I, T> {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl<I, T: Eq> Eq for IndexedVec<I, T> {}

impl<I, T: fmt::Debug> fmt::Debug for IndexedVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.items, f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn vector_has_values_at_its_indices_only() {
        let mut squares = PerStrategy::from_fn(3, |strategy| u32::from(strategy.0).pow(2));
        squares[StrategyIndex(1)] += 10;
        assert_eq!((squares[StrategyIndex(1)], squares.get(StrategyIndex(2))), (11, Some(&4)));
        assert_eq!(squares.get(StrategyIndex(3)), None);
        assert_eq!(squares.get_mut(StrategyIndex(u16::MAX)), None);
        assert_eq!((squares.has(StrategyIndex(2)), squares.has(StrategyIndex(3))), (true, false));
        assert!(squares.indices().eq(StrategyIndex::first(3)));
        let pairs: Vec<_> = squares.enumerate().map(|(strategy, square)| (strategy.0, *square)).collect();
        assert_eq!(pairs, [(0, 0), (1, 11), (2, 4)]);
    }

    #[test]
    fn every_index_of_a_vector_fits_its_type() {
        let all = PerVenue::from_fn(1 << 20, |venue| venue);
        assert_eq!((all.len(), all[VenueIndex(u16::MAX)]), (1 << 16, VenueIndex(u16::MAX)));
        assert_eq!(PerVenue::filled(0, 1 << 17).indices().count(), 1 << 16);
    }

    #[test]
    fn index_has_the_format_of_a_number() {
        let index = VenueIndex(7);
        assert_eq!(
            (index.to_string(), format!("{index:>3}"), format!("{index:?}")),
            ("7".into(), "  7".into(), "7".into())
        );
        assert_eq!(serde_json::to_string(&index).unwrap(), "7");
        assert_eq!(serde_json::from_str::<VenueIndex>("7").unwrap(), index);
        assert!(serde_json::from_str::<VenueIndex>("65536").is_err());
        let keyed = BTreeMap::from([(StrategyIndex(3), ())]);
        assert_eq!(serde_json::to_string(&keyed).unwrap(), r#"{"3":null}"#);
        assert_eq!(serde_json::to_string(&PerVenue::from(vec![1, 2])).unwrap(), "[1,2]");
        assert_eq!(serde_json::from_str::<PerVenue<u8>>("[1,2]").unwrap(), vec![1, 2].into());
    }
}
