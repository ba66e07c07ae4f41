//! Indices in plans and journals.

use crate::codec;
use crate::index::{PerVenue, VenueIndex};

#[test]
fn index_is_encoded_as_a_number() {
    let typed = codec::encode(&(VenueIndex(7), PerVenue::from(vec![1u16]))).unwrap();
    assert_eq!(typed, codec::encode(&(7u16, vec![1u16])).unwrap());
}
