//! Encoding of the plan in the control segment, on cold paths only; the only module that uses
//! bincode.
//!
//! bincode 2 is pinned and no longer maintained (RUSTSEC-2025-0141); the input here was written by
//! a launcher of the same build, is limited in length and is validated afterwards.

use crate::plan::PlanError;
use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;

/// Maximum number of bytes decoded, so that a corrupt length cannot allocate all memory.
const LIMIT: usize = 1 << 20;

/// The error that a plan cannot be encoded or decoded.
#[derive(Debug, Error)]
pub enum CodecError {
    /// The plan cannot be encoded.
    #[error("the plan cannot be encoded: {0}")]
    Encode(#[from] bincode::error::EncodeError),
    /// The bytes cannot be decoded.
    #[error("the control segment holds no plan of this build: {0}")]
    Decode(#[from] bincode::error::DecodeError),
    /// The plan is longer than the segment.
    #[error(
        "a plan of {bytes} bytes, the control segment has room for {capacity}: fewer strategies or venues"
    )]
    TooLarge {
        /// Size of the encoded plan in bytes.
        bytes: usize,
        /// Capacity of the segment in bytes.
        capacity: usize,
    },
    /// The plan was decoded, but is not valid.
    #[error(transparent)]
    Invalid(#[from] PlanError),
}

/// Encodes a value with bincode.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, CodecError> {
    Ok(bincode::serde::encode_to_vec(value, bincode::config::standard())?)
}

/// Decodes a value with bincode; all bytes must be used.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
    let config = bincode::config::standard().with_limit::<LIMIT>();
    let (value, used) = bincode::serde::decode_from_slice(bytes, config)?;
    if used == bytes.len() {
        Ok(value)
    } else {
        Err(bincode::error::DecodeError::Other("trailing bytes").into())
    }
}
