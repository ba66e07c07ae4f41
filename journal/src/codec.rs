//! Encoding of states and records: a state with a version as the bytes of a snapshot, 64-bit words
//! as the bytes of a record.
//!
//! States are in the format of bincode 2, and decoded with it. It is pinned and no longer
//! maintained (RUSTSEC-2025-0141). Only this module uses it, and only on bytes that have passed the
//! snapshot's CRC.

use crate::encoder::Encoder;
use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;

const MAX_DECODED_BYTES: usize = 1 << 32;

/// The error that a state machine's state cannot be encoded or decoded.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The state has a value that cannot be encoded.
    #[error("the state cannot be encoded: {0}")]
    Encode(String),
    /// The bytes are not the encoding of a state of this type.
    #[error("the snapshot does not hold this state: {0}")]
    Decode(String),
    /// The state has another version.
    #[error(
        "the snapshot holds a state of version {found}, this build reads version {expected}: use the build that wrote it"
    )]
    Version {
        /// Version in the snapshot.
        found: u32,
        /// Version that this build reads.
        expected: u32,
    },
}

/// Encodes a state machine's state for a snapshot: four bytes of version, little endian, followed
/// by the state's value.
///
/// # Errors
/// [`CodecError::Encode`].
pub fn encode<T: Serialize>(version: u32, state: &T) -> Result<Vec<u8>, CodecError> {
    let mut bytes = version.to_le_bytes().to_vec();
    state.serialize(Encoder(&mut bytes)).map_err(|error| CodecError::Encode(error.to_string()))?;
    Ok(bytes)
}

/// Decodes a state machine's state from the bytes of a snapshot; fails on another version or if
/// bytes are left over.
///
/// # Errors
/// [`CodecError::Version`], which is checked first; [`CodecError::Decode`].
pub fn decode<T: DeserializeOwned>(version: u32, bytes: &[u8]) -> Result<T, CodecError> {
    let Some((found, bytes)) = bytes.split_first_chunk::<4>() else {
        return Err(CodecError::Decode("too short for a version".to_owned()));
    };
    let found = u32::from_le_bytes(*found);
    if found != version {
        return Err(CodecError::Version { found, expected: version });
    }
    let config = bincode::config::standard().with_limit::<MAX_DECODED_BYTES>();
    let decoded = bincode::serde::decode_from_slice(bytes, config);
    let (state, used) = decoded.map_err(|error| CodecError::Decode(error.to_string()))?;
    if used == bytes.len() { Ok(state) } else { Err(CodecError::Decode("trailing bytes".to_owned())) }
}

/// Converts the first `used` of these 64-bit words to little-endian bytes, passes them to `f` and
/// returns its result.
#[inline(always)]
pub fn with_bytes<const N: usize, T>(words: [u64; N], used: usize, f: impl FnOnce(&[u8]) -> T) -> T {
    f(words.map(u64::to_le_bytes)[..used].as_flattened())
}

/// Returns the 64-bit words in a record's bytes; `None` if their number is not a multiple of eight.
pub fn words(bytes: &[u8]) -> Option<impl Iterator<Item = u64>> {
    let (words, remainder) = bytes.as_chunks::<8>();
    remainder.is_empty().then(|| words.iter().map(|word| u64::from_le_bytes(*word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_roundtrips_with_its_version_only() {
        let state = (vec![1_u64, 2, 300], "x".to_owned());
        let bytes = encode(4, &state).unwrap();
        assert_eq!(decode::<(Vec<u64>, String)>(4, &bytes).unwrap(), state);
        assert!(matches!(
            decode::<(Vec<u64>, String)>(5, &bytes),
            Err(CodecError::Version { found: 4, expected: 5 })
        ));
        for cut in 0..bytes.len() {
            assert!(decode::<(Vec<u64>, String)>(4, &bytes[..cut]).is_err());
        }
        assert!(decode::<(Vec<u64>, String)>(4, &[&bytes[..], &[0]].concat()).is_err());
    }
}
