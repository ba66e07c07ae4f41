//! Links: which roles write and read, and the technique that carries the messages.

use crate::role::Role;
use serde::{Deserialize, Serialize};
use shm::ring::{LinkSpec, SegmentSpec, spsc_mux};
use std::collections::HashSet;
use system::named_enum;
use techniques::Technique;
use thiserror::Error;

/// Maximum number of slots of a ring.
pub const MAX_SLOTS: u32 = 1 << 20;

/// The error that a plan describes a link incorrectly.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("link {link}: {why}")]
pub struct LinkError {
    /// The name of the link.
    pub link: String,
    /// The reason why the plan's link is incorrect.
    pub why: &'static str,
}

named_enum! {
    /// The number of writers and readers of a link.
    LinkShape {
        /// Many writers, one reader: contended, carried by the technique under test.
        ManyToOne = "n-to-1",
        /// One writer, one reader.
        OneToOne = "1-to-1",
    }
}

named_enum! {
    /// The transport of a link's messages.
    Carrier {
        /// The technique under test carries the messages.
        Technique = "technique",
        /// An SPSC ring, of one writer and one reader, carries the messages.
        Spsc = "spsc",
    }
}

/// The plan's description of a link: the roles that write and read its messages, their size, and
/// the ring or technique that carries them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkPlan {
    /// The link's name, unique in the run, with which the names of the link's segments begin.
    pub name: String,
    /// The number of writers and readers.
    pub shape: LinkShape,
    /// The transport of the messages.
    pub carrier: Carrier,
    /// The roles that write to the link; the position is the producer's index.
    pub writers: Vec<Role>,
    /// The roles that read from the link.
    pub readers: Vec<Role>,
    /// Slots of each ring, a power of two.
    pub slots: u32,
    /// Size of a message in words.
    pub words: u32,
}

impl LinkPlan {
    /// Describes a link from several roles to one role, carried by the technique (hand-off
    /// implementation) under test.
    pub fn many_to_one(
        name: &str,
        writers: impl IntoIterator<Item = Role>,
        reader: Role,
        slots: u32,
    ) -> Self {
        Self {
            name: name.into(),
            shape: LinkShape::ManyToOne,
            carrier: Carrier::Technique,
            writers: writers.into_iter().collect(),
            readers: vec![reader],
            slots,
            words: shm::ring::MESSAGE_WORDS as u32,
        }
    }

    /// Describes a ring of `slots` slots from the role `writer` to the role `reader`.
    pub fn one_to_one(name: String, writer: Role, reader: Role, slots: u32) -> Self {
        Self {
            name,
            shape: LinkShape::OneToOne,
            carrier: Carrier::Spsc,
            writers: vec![writer],
            readers: vec![reader],
            slots,
            words: shm::ring::MESSAGE_WORDS as u32,
        }
    }

    /// Converts the link to the specification from which a technique builds the link's sending and
    /// receiving ends.
    pub fn spec(&self) -> LinkSpec<'_> {
        LinkSpec { name: &self.name, producers: self.writers.len(), capacity: self.slots }
    }

    /// Returns the segments that the link needs, carried by `technique` if it has several writers.
    pub(crate) fn segments(&self, technique: Technique) -> Vec<SegmentSpec> {
        match self.carrier {
            Carrier::Technique => technique.segments(&self.spec()),
            Carrier::Spsc => {
                // The header holds the index of the link among those of its kind.
                let index = self.writers[0].index().max(self.readers[0].index());
                spsc_mux::ring_segments(self.name.clone(), self.slots, index.into(), 0).into()
            }
        }
    }

    pub(crate) fn error(&self, why: &'static str) -> LinkError {
        LinkError { link: self.name.clone(), why }
    }

    /// Checks that name, ends and slots of the link fit its shape and its technique.
    pub(crate) fn validate(&self, technique: Technique) -> Result<(), LinkError> {
        let no = |why| Err(self.error(why));
        let name_ok = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if self.name.is_empty() || !self.name.bytes().all(name_ok) {
            return no("its name is not of a-z, 0-9 and -");
        }
        let fits = match self.shape {
            LinkShape::ManyToOne => !self.writers.is_empty() && self.readers.len() == 1,
            LinkShape::OneToOne => self.writers.len() == 1 && self.readers.len() == 1,
        };
        if !fits {
            return no("its writers and readers do not fit its shape");
        }
        if (self.carrier, self.shape) == (Carrier::Spsc, LinkShape::ManyToOne) {
            return no("its carrier cannot have that shape");
        }
        let is_exact = self.carrier == Carrier::Technique && technique.info().exact_capacity;
        if !(self.slots.is_power_of_two() || is_exact) || !(2..=MAX_SLOTS).contains(&self.slots) {
            return no("its slots are no power of two from 2 to 2^20");
        }
        if self.words != shm::ring::MESSAGE_WORDS as u32 {
            return no("its carrier has messages of another size");
        }
        if self.writers.iter().collect::<HashSet<_>>().len() < self.writers.len() {
            return no("a role is its writer twice");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{GatewayIndex, StrategyIndex};

    #[test]
    fn ends_must_fit_shape_and_carrier() {
        let link = || {
            LinkPlan::many_to_one(
                "submit",
                [Role::Strategy(StrategyIndex(0)), Role::Strategy(StrategyIndex(1))],
                Role::Orchestrator,
                8,
            )
        };
        assert_eq!(link().validate(Technique::default()), Ok(()));
        let broken = |change: fn(&mut LinkPlan)| {
            let mut link = link();
            change(&mut link);
            link.validate(Technique::default()).unwrap_err().to_string()
        };
        assert!(broken(|l| l.writers.clear()).contains("link submit: its writers"));
        assert!(broken(|l| l.readers.clear()).contains("shape"));
        assert!(broken(|l| l.readers.push(Role::Gateway(GatewayIndex(0)))).contains("shape"));
        assert!(broken(|l| l.writers.push(Role::Strategy(StrategyIndex(1)))).contains("twice"));
        assert!(broken(|l| l.carrier = Carrier::Spsc).contains("carrier"));
        assert!(broken(|l| l.slots = 9).contains("power of two"));
        assert!(broken(|l| l.words = 8).contains("size"));
        assert!(broken(|l| l.name = "../x".into()).contains("name"));
    }
}
