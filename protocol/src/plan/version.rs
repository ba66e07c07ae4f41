//! The version of the plan's format. A saved plan is also read by the next version's program.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The version of the plan's format, as a marker type. Deserializing another version fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanVersion;

impl PlanVersion {
    /// The version of the plan's format that this program reads and writes.
    pub const CURRENT: u32 = 3;

    /// The version that 0.2 wrote. Saved plans of it are read: keys of today's are all in them.
    const LAST_RELEASE: u32 = 2;
}

impl Serialize for PlanVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(Self::CURRENT)
    }
}

impl<'de> Deserialize<'de> for PlanVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let is_saved = deserializer.is_human_readable();
        match u32::deserialize(deserializer)? {
            Self::CURRENT => Ok(Self),
            Self::LAST_RELEASE if is_saved => Ok(Self),
            other => Err(D::Error::custom(format!(
                "a plan of version {other}, and this program reads version {}: use the bulkhead that wrote it",
                Self::CURRENT
            ))),
        }
    }
}
