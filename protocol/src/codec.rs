//! The one module that names bincode: the plan's bytes in the control segment. Cold paths only.
//!
//! bincode 2 is pinned and no longer maintained (RUSTSEC-2025-0141); what it decodes here was
//! written by a launcher of the same build, is length-limited and is validated afterwards.

use crate::plan::PlanError;
use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;

/// Decoding stops at this many bytes, so that a scribbled length cannot ask for all memory.
const LIMIT: usize = 1 << 20;

/// A plan that could not be written or read.
#[derive(Debug, Error)]
pub enum CodecError {
    /// Not encodable.
    #[error("the plan cannot be encoded: {0}")]
    Encode(#[from] bincode::error::EncodeError),
    /// Not decodable.
    #[error("the control segment holds no plan of this build: {0}")]
    Decode(#[from] bincode::error::DecodeError),
    /// Longer than the segment.
    #[error("a plan of {bytes} bytes, the control segment has room for {room}: fewer strategies or venues")]
    TooLarge {
        /// The plan's.
        bytes: usize,
        /// The segment's.
        room: usize,
    },
    /// Decoded, but not valid.
    #[error(transparent)]
    Invalid(#[from] PlanError),
}

/// Encodes a value.
///
/// # Errors
/// [`CodecError::Encode`].
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, CodecError> {
    Ok(bincode::serde::encode_to_vec(value, bincode::config::standard())?)
}

/// Decodes a value, which must use all of the bytes.
///
/// # Errors
/// [`CodecError::Decode`].
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let config = bincode::config::standard().with_limit::<LIMIT>();
    let (value, used) = bincode::serde::decode_from_slice(bytes, config)?;
    if used == bytes.len() {
        Ok(value)
    } else {
        Err(bincode::error::DecodeError::Other("trailing bytes").into())
    }
}
