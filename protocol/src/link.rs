//! The links of a run: who writes, who reads, and what carries the messages.

use crate::role::Role;
use serde::{Deserialize, Serialize};
use shm::ring::{LinkSpec, SegmentSpec, spsc_mux};
use std::collections::HashSet;
use system::names;
use techniques::Technique;
use thiserror::Error;

/// The most slots of a ring.
pub const MAX_SLOTS: u32 = 1 << 20;

/// A link that no run can have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("link {link}: {why}")]
pub struct LinkError {
    /// Its name.
    pub link: String,
    /// What is wrong.
    pub why: &'static str,
}

names! {
    /// How many ends a link has.
    Shape {
        /// Any number of writers, one reader: contended, carried by the technique under test.
        ManyToOne = "n-to-1",
        /// One writer, one reader.
        OneToOne = "1-to-1",
        /// One writer, any number of readers, who never hold it up. No carrier of this shape is
        /// built yet.
        OneToMany = "1-to-n",
    }
}

names! {
    /// What carries a link.
    Carrier {
        /// The technique under test.
        Technique = "technique",
        /// A ring of one writer and one reader.
        Spsc = "spsc",
    }
}

/// A link: messages of one size from its writers to its readers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkPlan {
    /// Unique in the run; its segments' names begin with it.
    pub name: String,
    /// How many ends it has.
    pub shape: Shape,
    /// What carries it.
    pub carrier: Carrier,
    /// Who sends through it; the position is the producer's index.
    pub writers: Vec<Role>,
    /// Who receives.
    pub readers: Vec<Role>,
    /// Slots of each ring, a power of two.
    pub slots: u32,
    /// Words of a message.
    pub words: u32,
}

impl LinkPlan {
    /// A contended hand-off, carried by the technique under test.
    pub fn many_to_one(
        name: &str,
        writers: impl IntoIterator<Item = Role>,
        reader: Role,
        slots: u32,
    ) -> Self {
        Self {
            name: name.into(),
            shape: Shape::ManyToOne,
            carrier: Carrier::Technique,
            writers: writers.into_iter().collect(),
            readers: vec![reader],
            slots,
            words: shm::ring::MESSAGE_WORDS as u32,
        }
    }

    /// A ring from one role to another.
    pub fn one_to_one(name: String, writer: Role, reader: Role, slots: u32) -> Self {
        Self {
            name,
            shape: Shape::OneToOne,
            carrier: Carrier::Spsc,
            writers: vec![writer],
            readers: vec![reader],
            slots,
            words: shm::ring::MESSAGE_WORDS as u32,
        }
    }

    /// The link as techniques take it.
    pub fn spec(&self) -> LinkSpec<'_> {
        LinkSpec { name: &self.name, producers: self.writers.len(), capacity: self.slots }
    }

    /// The segments that carry it, where that is the technique under test.
    pub(crate) fn segments(&self, technique: Technique) -> Vec<SegmentSpec> {
        match self.carrier {
            Carrier::Technique => technique.segments(&self.spec()),
            Carrier::Spsc => {
                // The header says which of the run's links of this kind it is.
                let index = self.writers[0].index().max(self.readers[0].index());
                spsc_mux::ring_segments(self.name.clone(), self.slots, index.into(), 0).into()
            }
        }
    }

    /// What is wrong with it.
    pub(crate) fn error(&self, why: &'static str) -> LinkError {
        LinkError { link: self.name.clone(), why }
    }

    /// That the ends fit the shape and the carrier.
    pub(crate) fn validate(&self) -> Result<(), LinkError> {
        let no = |why| Err(self.error(why));
        let name_ok = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if self.name.is_empty() || !self.name.bytes().all(name_ok) {
            return no("its name is not of a-z, 0-9 and -");
        }
        let fits = match self.shape {
            Shape::ManyToOne => !self.writers.is_empty() && self.readers.len() == 1,
            Shape::OneToOne => self.writers.len() == 1 && self.readers.len() == 1,
            Shape::OneToMany => self.writers.len() == 1 && !self.readers.is_empty(),
        };
        if !fits {
            return no("its writers and readers do not fit its shape");
        }
        match (self.carrier, self.shape) {
            (Carrier::Technique, Shape::ManyToOne | Shape::OneToOne) | (Carrier::Spsc, Shape::OneToOne) => {}
            _ => return no("its carrier cannot have that shape"),
        }
        if !self.slots.is_power_of_two() || !(2..=MAX_SLOTS).contains(&self.slots) {
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

    #[test]
    fn ends_fit_the_shape_and_the_carrier() {
        let link =
            || LinkPlan::many_to_one("submit", [Role::Strategy(0), Role::Strategy(1)], Role::Orchestrator, 8);
        assert_eq!(link().validate(), Ok(()));
        let broken = |change: fn(&mut LinkPlan)| {
            let mut link = link();
            change(&mut link);
            link.validate().unwrap_err().to_string()
        };
        assert!(broken(|l| l.writers.clear()).contains("link submit: its writers"));
        assert!(broken(|l| l.readers.clear()).contains("shape"));
        assert!(broken(|l| l.readers.push(Role::Gateway(0))).contains("shape"));
        assert!(broken(|l| l.writers.push(Role::Strategy(1))).contains("twice"));
        assert!(broken(|l| l.carrier = Carrier::Spsc).contains("carrier"));
        assert!(broken(|l| l.slots = 9).contains("power of two"));
        assert!(broken(|l| l.words = 8).contains("size"));
        assert!(broken(|l| l.name = "../x".into()).contains("name"));
        let board = LinkPlan { shape: Shape::OneToMany, writers: vec![Role::Orchestrator], ..link() };
        assert!(board.validate().unwrap_err().to_string().contains("carrier cannot have that shape"));
    }
}
