//! The version of the plan's format: a plan is only read by a program of the same version.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The version of the plan's format, as a marker type. Deserializing another version fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanVersion;

impl PlanVersion {
    /// The version of the plan's format that this program reads and writes.
    pub const CURRENT: u32 = 2;
}

impl Serialize for PlanVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(Self::CURRENT)
    }
}

impl<'de> Deserialize<'de> for PlanVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            Self::CURRENT => Ok(Self),
            other => Err(D::Error::custom(format!(
                "a plan of version {other}, and this program reads version {}: use the bulkhead that wrote it",
                Self::CURRENT
            ))),
        }
    }
}
