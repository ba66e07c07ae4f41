//! The one module that names bincode: a state as the bytes of a snapshot, with the version of its
//! form.
//!
//! bincode 2 is pinned and no longer maintained (RUSTSEC-2025-0141); what it decodes here has
//! passed the snapshot's CRC.

use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;

/// Decoding asks for at most so many bytes of memory.
const LIMIT: usize = 1 << 32;

/// A state that could not be encoded or decoded.
#[derive(Debug, Error)]
pub enum CodecError {
    /// Not encodable.
    #[error("the state cannot be encoded: {0}")]
    Encode(#[from] bincode::error::EncodeError),
    /// Not decodable.
    #[error("the snapshot does not hold this state: {0}")]
    Decode(#[from] bincode::error::DecodeError),
    /// Of another version.
    #[error(
        "the snapshot holds a state of version {found}, this build reads version {expected}: use the build that wrote it"
    )]
    Version {
        /// In the snapshot.
        found: u32,
        /// This build's.
        expected: u32,
    },
}

/// The version (four bytes, little endian), then the state.
///
/// # Errors
/// [`CodecError::Encode`].
pub fn encode<T: Serialize>(version: u32, state: &T) -> Result<Vec<u8>, CodecError> {
    let mut bytes = version.to_le_bytes().to_vec();
    bincode::serde::encode_into_std_write(state, &mut bytes, bincode::config::standard())?;
    Ok(bytes)
}

/// The state, which must use all of the bytes.
///
/// # Errors
/// [`CodecError::Version`] before anything else is looked at, then [`CodecError::Decode`].
pub fn decode<T: DeserializeOwned>(version: u32, bytes: &[u8]) -> Result<T, CodecError> {
    let Some((found, bytes)) = bytes.split_first_chunk::<4>() else {
        return Err(bincode::error::DecodeError::Other("too short for a version").into());
    };
    let found = u32::from_le_bytes(*found);
    if found != version {
        return Err(CodecError::Version { found, expected: version });
    }
    let config = bincode::config::standard().with_limit::<LIMIT>();
    let (state, used) = bincode::serde::decode_from_slice(bytes, config)?;
    if used == bytes.len() {
        Ok(state)
    } else {
        Err(bincode::error::DecodeError::Other("trailing bytes").into())
    }
}

/// The bytes of a record that is made of words, little endian: the first `used` of them.
#[inline(always)]
pub fn with_bytes<const N: usize, T>(words: [u64; N], used: usize, take: impl FnOnce(&[u8]) -> T) -> T {
    take(words.map(u64::to_le_bytes)[..used].as_flattened())
}

/// The words of a record; `None` if its bytes are not whole words.
pub fn words(bytes: &[u8]) -> Option<impl Iterator<Item = u64>> {
    let (words, rest) = bytes.as_chunks::<8>();
    rest.is_empty().then(|| words.iter().map(|word| u64::from_le_bytes(*word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_of_its_version_and_whole() {
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
