//! A serializer that appends values to a vector, in the format of bincode 2's standard
//! configuration: integers in 1, 3, 5, 9 or 17 bytes, lengths and variants as integers, no names.
//!
//! **Why not bincode's own encoder?** It passes each value through a writer, in two parts and with
//! an error by memory: four times the instructions. Its decoder stays in use, and the tests compare
//! the bytes of both encoders.

use serde::Serialize;
use serde::ser::{self, Serializer};
use std::fmt::{self, Display};

/// First byte of an integer that follows in 2, 4, 8 or 16 bytes.
const TWO: u8 = 251;
const FOUR: u8 = 252;
const EIGHT: u8 = 253;
const SIXTEEN: u8 = 254;

/// The error of a value that has no encoding.
#[derive(Debug)]
#[allow(clippy::box_collection, reason = "one word, so that results stay in registers")]
pub(crate) struct Unencodable(Box<String>);

impl Display for Unencodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unencodable {}

impl ser::Error for Unencodable {
    fn custom<T: Display>(message: T) -> Self {
        Unencodable(Box::new(message.to_string()))
    }
}

type Encoded = Result<(), Unencodable>;

/// Appends values to the bytes.
pub(crate) struct Encoder<'a>(pub &'a mut Vec<u8>);

impl Encoder<'_> {
    #[inline(always)]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) -> Encoded {
        self.0.extend_from_slice(&bytes);
        Ok(())
    }

    #[inline(always)]
    fn integer(&mut self, value: u64) -> Encoded {
        let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
        match value {
            0..=250 => self.put([a]),
            251..=0xffff => self.put([TWO, a, b]),
            0x1_0000..=0xffff_ffff => self.put([FOUR, a, b, c, d]),
            _ => self.put([EIGHT, a, b, c, d, e, f, g, h]),
        }
    }

    /// Encodes a signed integer: 0, -1, 1, -2 as 0, 1, 2, 3.
    #[inline(always)]
    fn signed(&mut self, value: i64) -> Encoded {
        self.integer((value << 1 ^ value >> 63) as u64)
    }

    #[inline(always)]
    fn length(self, len: Option<usize>) -> Result<Self, Unencodable> {
        let Some(len) = len else { return Err(ser::Error::custom("a sequence without a known length")) };
        let mut encoder = self;
        encoder.integer(len as u64)?;
        Ok(encoder)
    }

    #[inline(always)]
    fn variant(self, index: u32) -> Result<Self, Unencodable> {
        let mut encoder = self;
        encoder.integer(u64::from(index))?;
        Ok(encoder)
    }

    #[inline(always)]
    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Encoded {
        value.serialize(Encoder(self.0))
    }
}

impl Serializer for Encoder<'_> {
    type Ok = ();
    type Error = Unencodable;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    #[inline(always)]
    fn serialize_bool(mut self, value: bool) -> Encoded {
        self.put([u8::from(value)])
    }

    #[inline(always)]
    fn serialize_i8(mut self, value: i8) -> Encoded {
        self.put(value.to_le_bytes())
    }

    #[inline(always)]
    fn serialize_i16(mut self, value: i16) -> Encoded {
        self.signed(i64::from(value))
    }

    #[inline(always)]
    fn serialize_i32(mut self, value: i32) -> Encoded {
        self.signed(i64::from(value))
    }

    #[inline(always)]
    fn serialize_i64(mut self, value: i64) -> Encoded {
        self.signed(value)
    }

    fn serialize_i128(self, value: i128) -> Encoded {
        self.serialize_u128((value << 1 ^ value >> 127) as u128)
    }

    #[inline(always)]
    fn serialize_u8(mut self, value: u8) -> Encoded {
        self.put([value])
    }

    #[inline(always)]
    fn serialize_u16(mut self, value: u16) -> Encoded {
        self.integer(u64::from(value))
    }

    #[inline(always)]
    fn serialize_u32(mut self, value: u32) -> Encoded {
        self.integer(u64::from(value))
    }

    #[inline(always)]
    fn serialize_u64(mut self, value: u64) -> Encoded {
        self.integer(value)
    }

    fn serialize_u128(mut self, value: u128) -> Encoded {
        match u64::try_from(value) {
            Ok(value) => self.integer(value),
            Err(_) => {
                self.put([SIXTEEN])?;
                self.put(value.to_le_bytes())
            }
        }
    }

    fn serialize_f32(mut self, value: f32) -> Encoded {
        self.put(value.to_le_bytes())
    }

    fn serialize_f64(mut self, value: f64) -> Encoded {
        self.put(value.to_le_bytes())
    }

    fn serialize_char(self, value: char) -> Encoded {
        self.0.extend_from_slice(value.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn serialize_str(self, value: &str) -> Encoded {
        self.serialize_bytes(value.as_bytes())
    }

    fn serialize_bytes(self, value: &[u8]) -> Encoded {
        self.length(Some(value.len()))?.0.extend_from_slice(value);
        Ok(())
    }

    #[inline(always)]
    fn serialize_none(mut self) -> Encoded {
        self.put([0])
    }

    #[inline(always)]
    fn serialize_some<T: Serialize + ?Sized>(mut self, value: &T) -> Encoded {
        self.put([1])?;
        self.value(value)
    }

    fn serialize_unit(self) -> Encoded {
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Encoded {
        Ok(())
    }

    #[inline(always)]
    fn serialize_unit_variant(self, _: &'static str, index: u32, _: &'static str) -> Encoded {
        self.variant(index).map(drop)
    }

    #[inline(always)]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(mut self, _: &'static str, value: &T) -> Encoded {
        self.value(value)
    }

    #[inline(always)]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        value: &T,
    ) -> Encoded {
        self.variant(index)?.value(value)
    }

    #[inline(always)]
    fn serialize_seq(self, len: Option<usize>) -> Result<Self, Unencodable> {
        self.length(len)
    }

    #[inline(always)]
    fn serialize_tuple(self, _: usize) -> Result<Self, Unencodable> {
        Ok(self)
    }

    #[inline(always)]
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Unencodable> {
        Ok(self)
    }

    #[inline(always)]
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Unencodable> {
        self.variant(index)
    }

    #[inline(always)]
    fn serialize_map(self, len: Option<usize>) -> Result<Self, Unencodable> {
        self.length(len)
    }

    #[inline(always)]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Unencodable> {
        Ok(self)
    }

    #[inline(always)]
    fn serialize_struct_variant(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Unencodable> {
        self.variant(index)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// Implements the parts of a compound value: each is encoded after the last.
macro_rules! parts {
    ($($part:ident: $method:ident($($name:ty)?)),*) => {$(
        impl ser::$part for Encoder<'_> {
            type Ok = ();
            type Error = Unencodable;

            #[inline(always)]
            fn $method<T: Serialize + ?Sized>(&mut self, $(_: $name,)? value: &T) -> Encoded {
                self.value(value)
            }

            #[inline(always)]
            fn end(self) -> Encoded {
                Ok(())
            }
        }
    )*};
}

parts! {
    SerializeSeq: serialize_element(),
    SerializeTuple: serialize_element(),
    SerializeTupleStruct: serialize_field(),
    SerializeTupleVariant: serialize_field(),
    SerializeStruct: serialize_field(&'static str),
    SerializeStructVariant: serialize_field(&'static str)
}

impl ser::SerializeMap for Encoder<'_> {
    type Ok = ();
    type Error = Unencodable;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Encoded {
        self.value(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Encoded {
        self.value(value)
    }

    fn end(self) -> Encoded {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// A value of each kind that serde has.
    #[derive(Clone, Debug, Serialize)]
    enum Kind {
        Unit,
        Newtype(Option<i64>),
        Tuple(u8, i8, char, bool),
        Struct { small: (u16, i16), large: (u128, i128), word: (u32, i32, u64, i64) },
        Nested(Vec<Kind>, BTreeMap<String, u64>, ((), f32, f64)),
    }

    #[derive(Clone, Debug, Serialize)]
    struct Newtype(u64);

    #[derive(Clone, Debug, Serialize)]
    struct UnitStruct;

    #[derive(Clone, Debug, Serialize)]
    struct Pair(Newtype, UnitStruct, &'static [u8]);

    /// Integers of all lengths, and those at their ends.
    fn integer() -> impl Strategy<Value = u128> {
        let extremes =
            prop::sample::select(vec![250, 251, 0xffff, 0x1_0000, 0xffff_ffff, 0x1_0000_0000, 1 << 64]);
        prop_oneof![(any::<u128>(), 0_u32..128).prop_map(|(value, shift)| value >> shift), extremes]
    }

    fn kind() -> impl Strategy<Value = Kind> {
        let struct_variant = (integer(), integer()).prop_map(|(a, b)| Kind::Struct {
            small: (a as u16, b as i16),
            large: (a, b as i128),
            word: (a as u32, b as i32, a as u64, b as i64),
        });
        let leaf = prop_oneof![
            Just(Kind::Unit),
            prop::option::of(integer()).prop_map(|value| Kind::Newtype(value.map(|value| value as i64))),
            any::<(u8, i8, char, bool)>().prop_map(|(a, b, c, d)| Kind::Tuple(a, b, c, d)),
            struct_variant,
        ];
        leaf.prop_recursive(3, 300, 270, |inner| {
            let kinds = prop::collection::vec(inner, 0..270);
            let map = prop::collection::btree_map(any::<String>(), any::<u64>(), 0..4);
            (kinds, map, any::<(f32, f64)>())
                .prop_map(|(kinds, map, (a, b))| Kind::Nested(kinds, map, ((), a, b)))
        })
    }

    fn encoded(value: &impl Serialize) -> Vec<u8> {
        let mut bytes = Vec::new();
        value.serialize(Encoder(&mut bytes)).expect("encodable");
        bytes
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn bytes_are_those_of_bincode(kind in kind(), word in integer()) {
            let value = (kind, Pair(Newtype(word as u64), UnitStruct, b"bytes"));
            let theirs = bincode::serde::encode_to_vec(&value, bincode::config::standard()).unwrap();
            prop_assert_eq!(encoded(&value), theirs);
        }
    }

    #[test]
    fn sequence_of_unknown_length_is_refused() {
        struct Unknown;
        impl Serialize for Unknown {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                ser::SerializeSeq::end(serializer.serialize_seq(None)?)
            }
        }
        let error = Unknown.serialize(Encoder(&mut Vec::new())).unwrap_err();
        assert_eq!(error.to_string(), "a sequence without a known length");
    }
}
