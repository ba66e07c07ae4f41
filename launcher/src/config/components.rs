//! The kinds of strategies and venues: bulkhead's own, and those that the program has added
//! ([`crate::Harness`]).

use super::value::{Value, parsed, unknown};
use clap::builder::{PossibleValue, TypedValueParser};
use core::marker::PhantomData;
use gateway::{SessionVenue, Venue, VenueInfo};
use protocol::plan::Trading;
use std::sync::{PoisonError, RwLock};
use thiserror::Error;

/// What a name is the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A strategy.
    Strategy,
    /// A venue.
    Venue,
}

/// A name that cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct NameError(String);

/// What the program has added, with what there is to know of a venue.
static ADDED: RwLock<Vec<(Part, &'static str, VenueInfo)>> = RwLock::new(Vec::new());

fn added() -> Vec<(Part, &'static str, VenueInfo)> {
    ADDED.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Adds the name of a venue with what there is to know of it.
///
/// # Errors
/// As [`Part::register`].
pub fn register_venue(name: &'static str, record: VenueInfo) -> Result<(), NameError> {
    Part::Venue.add(name, record)
}

/// What there is to know of the venues of that kind.
pub fn venue_record(kind: &str) -> VenueInfo {
    if kind == Trading::BOOK {
        return <SessionVenue as Venue>::RECORD;
    }
    let found = added().into_iter().find(|(part, name, _)| *part == Part::Venue && *name == kind);
    found.map_or(VenueInfo::ONE_REPORT, |(.., record)| record)
}

impl Part {
    /// Adds a name.
    ///
    /// # Errors
    /// One that another one has, or that is none.
    pub fn register(self, name: &'static str) -> Result<(), NameError> {
        self.add(name, VenueInfo::ONE_REPORT)
    }

    fn add(self, name: &'static str, record: VenueInfo) -> Result<(), NameError> {
        let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let what = if self == Part::Venue { "venue" } else { "strategy" };
        if !(1..=32).contains(&name.len()) || !name.bytes().all(good) {
            return Err(NameError(format!(
                "{name:?} is no name for a {what}: 1 to 32 characters of a-z, 0-9 and -"
            )));
        }
        if self.names().contains(&name) {
            return Err(NameError(format!(
                "there is another {what} of the name {name}: give yours another one"
            )));
        }
        ADDED.write().unwrap_or_else(PoisonError::into_inner).push((self, name, record));
        Ok(())
    }

    /// All names, bulkhead's own first and the default the first of them.
    fn names(self) -> Vec<&'static str> {
        let own: &[&str] = match self {
            Part::Strategy => &Trading::ON_SCHEDULE,
            Part::Venue => &[Trading::DELAY_VENUE, Trading::BOOK],
        };
        let added = added().into_iter().filter(|(part, ..)| *part == self).map(|(_, name, _)| name);
        own.iter().copied().chain(added).collect()
    }

    /// What the help and the messages list.
    fn listed(self) -> Vec<&'static str> {
        let program = (self == Part::Strategy).then_some("exec:COMMAND");
        self.names().into_iter().chain(program).collect()
    }

    fn read(self, text: &str) -> Result<String, String> {
        let text = text.trim();
        let command = Trading::command_of(text).filter(|_| self == Part::Strategy);
        let is_program = command.is_some_and(|command| !command.trim().is_empty());
        if is_program || self.names().contains(&text) {
            return Ok(text.into());
        }
        Err(unknown(text, &self.listed()))
    }
}

/// Of what the kinds of a list are.
pub trait Parts: Clone + Copy + core::fmt::Debug + Send + Sync + 'static {
    /// That.
    const PART: Part;
}

/// Strategies: the kinds of [`Kinds<Strategies>`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strategies;

/// Venues: the kinds of [`Kinds<Venues>`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Venues;

impl Parts for Strategies {
    const PART: Part = Part::Strategy;
}

impl Parts for Venues {
    const PART: Part = Part::Venue;
}

/// The kinds of a run's strategies or venues, as users write them: `quoter,player`. The one of
/// index i is of the kind i modulo their number. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kinds<P>(pub Vec<String>, PhantomData<P>);

impl<P: Parts> Kinds<P> {
    /// The list of those names.
    pub const fn new(names: Vec<String>) -> Self {
        Self(names, PhantomData)
    }
}

impl<P: Parts> Default for Kinds<P> {
    fn default() -> Self {
        Self::new(vec![P::PART.names()[0].into()])
    }
}

impl<P: Parts> Value for Kinds<P> {
    fn parse(text: &str) -> Result<Self, String> {
        text.split(',').map(|name| P::PART.read(name)).collect::<Result<_, _>>().map(Self::new)
    }
    fn text(&self) -> String {
        self.0.join(",")
    }
    fn flag(arg: clap::Arg) -> clap::Arg {
        arg.value_parser(KindsParser::<P>(PhantomData))
    }
    #[cfg(test)]
    fn any_text() -> proptest::prelude::BoxedStrategy<String> {
        use proptest::prelude::*;
        let name = proptest::sample::select(P::PART.listed());
        proptest::collection::vec(name, 1..4).prop_map(|names| names.join(",")).boxed()
    }
}

/// What clap reads kinds with: the help lists the names.
#[derive(Clone)]
struct KindsParser<P>(PhantomData<P>);

impl<P: Parts> TypedValueParser for KindsParser<P> {
    type Value = Kinds<P>;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Kinds<P>, clap::Error> {
        parsed().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(P::PART.listed().into_iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_added_once_and_suggested() {
        fn read<P: Parts>(text: &str) -> Result<Vec<String>, String> {
            Kinds::<P>::parse(text).map(|kinds| kinds.0)
        }
        Part::Strategy.register("own-names-test").unwrap();
        let taken = Part::Strategy.register("own-names-test").unwrap_err().to_string();
        assert!(taken.contains("another strategy of the name own-names-test"), "{taken}");
        assert!(Part::Strategy.register("player").is_err(), "bulkhead's own");
        Part::Venue.register("own-names-test").unwrap();
        let both = read::<Strategies>("own-names-test, player, exec:./mine --fast ").unwrap();
        assert_eq!(both, ["own-names-test", "player", "exec:./mine --fast"]);
        for text in ["", ",player", "player,"] {
            assert!(read::<Strategies>(text).is_err(), "{text:?}");
        }
        for text in ["exec:", "exec: ", "exec"] {
            assert!(read::<Strategies>(text).unwrap_err().contains("exec:COMMAND"), "{text}");
        }
        assert!(read::<Venues>("exec:./mine").is_err());
        let error = read::<Strategies>("own-name-test").unwrap_err();
        assert!(error.contains("did you mean own-names-test?"), "{error}");
        for name in ["", "My strategy", "ä", "a_b", "012345678901234567890123456789012"] {
            let error = Part::Venue.register(name.to_owned().leak()).unwrap_err().to_string();
            assert!(error.contains("is no name for a venue"), "{error}");
        }
    }
}
