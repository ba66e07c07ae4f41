//! Techniques that another program defines: known by their properties, without their code.

use serde::{Deserialize, Serialize};
use shm::ring::{Home, Step, TechniqueInfo};

/// The properties of a technique, as [`TechniqueInfo`] has them, in a serializable form that one
/// program can pass to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TechniqueDescription {
    name: String,
    home: Home,
    steps: Vec<Step>,
    apart: bool,
    bounded: bool,
    exact_capacity: bool,
    consumer_resumable: bool,
    producer_resumable: bool,
    reference: Option<String>,
    twin: Option<String>,
}

impl From<&TechniqueInfo> for TechniqueDescription {
    fn from(info: &TechniqueInfo) -> Self {
        Self {
            name: info.name.into(),
            home: info.home,
            steps: info.steps.into(),
            apart: info.apart,
            bounded: info.bounded,
            exact_capacity: info.exact_capacity,
            consumer_resumable: info.consumer_resumable,
            producer_resumable: info.producer_resumable,
            reference: info.reference.map(Into::into),
            twin: info.twin.map(Into::into),
        }
    }
}

impl TechniqueDescription {
    /// Returns the properties as those of a technique of this program, for the rest of its life.
    pub(crate) fn leak(self) -> TechniqueInfo {
        let leak = |text: String| -> &'static str { text.leak() };
        TechniqueInfo {
            name: leak(self.name),
            home: self.home,
            steps: self.steps.leak(),
            apart: self.apart,
            bounded: self.bounded,
            exact_capacity: self.exact_capacity,
            consumer_resumable: self.consumer_resumable,
            producer_resumable: self.producer_resumable,
            reference: self.reference.map(leak),
            twin: self.twin.map(leak),
        }
    }
}
