//! Names of the strategy and venue kinds: the built-in ones, and those that the program has
//! registered ([`crate::Harness`]).

use super::value::{SettingValue, parsed, unknown};
use clap::builder::{PossibleValue, TypedValueParser};
use core::marker::PhantomData;
use gateway::{SessionVenue, Venue, VenueInfo};
use protocol::plan::Trading;
use std::sync::{PoisonError, RwLock};
use thiserror::Error;

/// The kind of a component that users can register: strategy or venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComponentKind {
    /// A strategy.
    Strategy,
    /// A venue.
    Venue,
}

/// An error of registering a component: its name is invalid or taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct NameError(String);

/// Names that the program has registered; of a venue with its properties.
static ADDED: RwLock<Vec<(ComponentKind, &'static str, VenueInfo)>> = RwLock::new(Vec::new());

fn added() -> Vec<(ComponentKind, &'static str, VenueInfo)> {
    ADDED.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Registers the name of a user's venue, with its properties.
///
/// # Errors
/// The errors of [`ComponentKind::register`].
pub fn register_venue(name: &'static str, record: VenueInfo) -> Result<(), NameError> {
    ComponentKind::Venue.add(name, record)
}

/// Returns the properties of the venues of a kind, built in or registered.
pub fn venue_info(kind: &str) -> VenueInfo {
    if kind == Trading::BOOK {
        return <SessionVenue as Venue>::INFO;
    }
    let found = added().into_iter().find(|(part, name, _)| *part == ComponentKind::Venue && *name == kind);
    found.map_or(VenueInfo::ONE_REPORT, |(.., record)| record)
}

impl ComponentKind {
    /// Registers the name of a user's strategy or venue.
    ///
    /// # Errors
    /// The name is taken or invalid.
    pub fn register(self, name: &'static str) -> Result<(), NameError> {
        self.add(name, VenueInfo::ONE_REPORT)
    }

    fn add(self, name: &'static str, record: VenueInfo) -> Result<(), NameError> {
        let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let what = if self == ComponentKind::Venue { "venue" } else { "strategy" };
        if !(1..=32).contains(&name.len()) || !name.bytes().all(good) {
            return Err(NameError(format!(
                "{name:?} is not a valid name for a {what}: 1 to 32 characters of a-z, 0-9 and -"
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

    /// Returns all names, the built-in ones first, starting with the default.
    fn names(self) -> Vec<&'static str> {
        let own: &[&str] = match self {
            ComponentKind::Strategy => &Trading::ON_SCHEDULE,
            ComponentKind::Venue => &[Trading::DELAY_VENUE, Trading::BOOK],
        };
        let added = added().into_iter().filter(|(part, ..)| *part == self).map(|(_, name, _)| name);
        own.iter().copied().chain(added).collect()
    }

    /// Returns the names for help and messages.
    fn listed(self) -> Vec<&'static str> {
        let program = (self == ComponentKind::Strategy).then_some("exec:COMMAND");
        self.names().into_iter().chain(program).collect()
    }

    fn read(self, text: &str) -> Result<String, String> {
        let text = text.trim();
        let command = Trading::command_of(text).filter(|_| self == ComponentKind::Strategy);
        let is_program = command.is_some_and(|command| !command.trim().is_empty());
        if is_program || self.names().contains(&text) {
            return Ok(text.into());
        }
        Err(unknown(text, &self.listed()))
    }
}

/// The type-level kind of the components in a [`KindList`]: strategies or venues.
pub trait ComponentType: Clone + Copy + core::fmt::Debug + Send + Sync + 'static {
    /// The kind of the list's components.
    const KIND: ComponentKind;
}

/// A marker type for lists of strategy kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strategies;

/// A marker type for lists of venue kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Venues;

impl ComponentType for Strategies {
    const KIND: ComponentKind = ComponentKind::Strategy;
}

impl ComponentType for Venues {
    const KIND: ComponentKind = ComponentKind::Venue;
}

/// The kinds of a run's strategies or venues as users write them: `quoter,player`. Component i has
/// kind i modulo their number. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindList<P>(pub Vec<String>, PhantomData<P>);

impl<P: ComponentType> KindList<P> {
    /// Creates a list of kinds from their names.
    pub const fn new(names: Vec<String>) -> Self {
        Self(names, PhantomData)
    }
}

impl<P: ComponentType> Default for KindList<P> {
    fn default() -> Self {
        Self::new(vec![P::KIND.names()[0].into()])
    }
}

impl<P: ComponentType> SettingValue for KindList<P> {
    fn parse(text: &str) -> Result<Self, String> {
        text.split(',').map(|name| P::KIND.read(name)).collect::<Result<_, _>>().map(Self::new)
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
        let name = proptest::sample::select(P::KIND.listed());
        proptest::collection::vec(name, 1..4).prop_map(|names| names.join(",")).boxed()
    }
}

/// Clap parser for a list of kinds, which lists the names in the help.
#[derive(Clone)]
struct KindsParser<P>(PhantomData<P>);

impl<P: ComponentType> TypedValueParser for KindsParser<P> {
    type Value = KindList<P>;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<KindList<P>, clap::Error> {
        parsed().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(P::KIND.listed().into_iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_added_once_and_suggested() {
        fn read<P: ComponentType>(text: &str) -> Result<Vec<String>, String> {
            KindList::<P>::parse(text).map(|kinds| kinds.0)
        }
        ComponentKind::Strategy.register("own-names-test").unwrap();
        let taken = ComponentKind::Strategy.register("own-names-test").unwrap_err().to_string();
        assert!(taken.contains("another strategy of the name own-names-test"), "{taken}");
        assert!(ComponentKind::Strategy.register("player").is_err(), "bulkhead's own");
        ComponentKind::Venue.register("own-names-test").unwrap();
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
            let error = ComponentKind::Venue.register(name.to_owned().leak()).unwrap_err().to_string();
            assert!(error.contains("is not a valid name for a venue"), "{error}");
        }
    }
}
