//! The names of strategies and venues: bulkhead's own, and those that the program has added ([`crate::Harness`]).

use super::value::{Named, Value, parsed};
use clap::builder::{PossibleValue, TypedValueParser};
use gateway::{SessionVenue, Venue, VenueRecord};
use protocol::plan::Trading;
use std::sync::{PoisonError, RwLock};
use thiserror::Error;

/// What a name is the name of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A strategy.
    Strategy,
    /// A strategy that is a program of somebody else's: `exec:COMMAND`.
    Program,
    /// A venue.
    Venue,
}

/// A name that cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct NameError(String);

/// What the program has added, and the commands that were asked for: a name lives as long as the process, and each is kept once.
static ADDED: RwLock<Vec<(Part, &'static str, VenueRecord)>> = RwLock::new(Vec::new());

fn add(part: Part, name: &'static str, record: VenueRecord) {
    ADDED.write().unwrap_or_else(PoisonError::into_inner).push((part, name, record));
}

fn added(part: Part) -> Vec<(&'static str, VenueRecord)> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    added.iter().filter(|(other, ..)| *other == part).map(|(_, name, record)| (*name, *record)).collect()
}

/// Adds the name of a venue with what there is to know of it.
///
/// # Errors
/// As [`Part::register`].
pub fn register_venue(name: &'static str, record: VenueRecord) -> Result<(), NameError> {
    Part::Venue.check(name)?;
    add(Part::Venue, name, record);
    Ok(())
}

impl Part {
    /// Adds a name.
    ///
    /// # Errors
    /// One that another one has, or that is none.
    pub fn register(self, name: &'static str) -> Result<(), NameError> {
        self.check(name)?;
        add(self, name, VenueRecord::ONE_REPORT);
        Ok(())
    }

    fn check(self, name: &str) -> Result<(), NameError> {
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
        Ok(())
    }

    /// All names, bulkhead's own first and the default the first of them.
    fn names(self) -> Vec<&'static str> {
        let own: &[&str] = match self {
            Part::Strategy => &Trading::ON_SCHEDULE,
            Part::Program => &[],
            Part::Venue => &[Trading::DELAY_VENUE, Trading::BOOK],
        };
        own.iter().copied().chain(added(self).into_iter().map(|(name, _)| name)).collect()
    }

    fn find(self, name: &str) -> Option<&'static str> {
        self.names().into_iter().find(|known| *known == name)
    }
}

/// The name of a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrategyName(&'static str);

impl StrategyName {
    /// The name that users type.
    pub const fn name(self) -> &'static str {
        self.0
    }

    /// The command of one that is a program of somebody else's.
    pub fn command(self) -> Option<&'static str> {
        Trading::command_of(self.0)
    }

    /// Whether the strategy sends at the times of its schedule.
    pub fn is_on_schedule(self) -> bool {
        Trading::ON_SCHEDULE.contains(&self.name())
    }
}

impl Default for StrategyName {
    fn default() -> Self {
        Self(Trading::PLAYER)
    }
}

impl Named for StrategyName {
    fn names() -> Vec<&'static str> {
        Part::Strategy.names().into_iter().chain(["exec:COMMAND"]).collect()
    }
    fn of(name: &str) -> Option<Self> {
        let known = Part::Strategy.find(name).or_else(|| Part::Program.find(name));
        known.map(Self).or_else(|| {
            Trading::command_of(name).filter(|command| !command.trim().is_empty())?;
            let kept = name.to_owned().leak();
            add(Part::Program, kept, VenueRecord::ONE_REPORT);
            Some(Self(kept))
        })
    }
    fn name_of(&self) -> &'static str {
        self.0
    }
}

/// The name of a venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VenueName(&'static str);

impl VenueName {
    /// The name that users type.
    pub const fn name(self) -> &'static str {
        self.0
    }

    /// What there is to know of the venue of that name.
    pub fn record(self) -> VenueRecord {
        if self.0 == Trading::BOOK {
            return <SessionVenue as Venue>::RECORD;
        }
        let found = added(Part::Venue).into_iter().find(|(name, _)| *name == self.0);
        found.map_or(VenueRecord::ONE_REPORT, |(_, record)| record)
    }
}

impl Default for VenueName {
    fn default() -> Self {
        Self(Trading::DELAY_VENUE)
    }
}

impl Named for VenueName {
    fn names() -> Vec<&'static str> {
        Part::Venue.names()
    }
    fn of(name: &str) -> Option<Self> {
        Part::Venue.find(name).map(Self)
    }
    fn name_of(&self) -> &'static str {
        self.0
    }
}

/// The kinds of a run's strategies or venues, as users write them: `quoter,player`. The one of index i is of the kind i modulo their
/// number. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kinds<T>(pub Vec<T>);

impl<T: Default> Default for Kinds<T> {
    fn default() -> Self {
        Self(vec![T::default()])
    }
}

impl<T: Named> Kinds<T> {
    /// Their names.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|kind| kind.name_of().into()).collect()
    }
}

impl<T: Named> Value for Kinds<T> {
    fn parse(text: &str) -> Result<Self, String> {
        text.split(',').map(|name| T::parse(name)).collect::<Result<_, _>>().map(Self)
    }
    fn text(&self) -> String {
        self.names().join(",")
    }
    fn flag(arg: clap::Arg) -> clap::Arg {
        arg.value_parser(KindsParser::<T>(core::marker::PhantomData))
    }
    #[cfg(test)]
    fn any_text() -> proptest::prelude::BoxedStrategy<String> {
        use proptest::prelude::*;
        proptest::collection::vec(T::any_text(), 1..4).prop_map(|kinds| kinds.join(",")).boxed()
    }
}

/// What clap reads kinds with: the help lists the names.
#[derive(Clone)]
struct KindsParser<T>(core::marker::PhantomData<T>);

impl<T: Named> TypedValueParser for KindsParser<T> {
    type Value = Kinds<T>;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Kinds<T>, clap::Error> {
        parsed().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(T::names().into_iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_added_once_and_suggested() {
        Part::Strategy.register("own-names-test").unwrap();
        assert_eq!(StrategyName::of("own-names-test").unwrap().name(), "own-names-test");
        let taken = Part::Strategy.register("own-names-test").unwrap_err().to_string();
        assert!(taken.contains("another strategy of the name own-names-test"), "{taken}");
        assert!(Part::Strategy.register("player").is_err(), "bulkhead's own");
        Part::Venue.register("own-names-test").unwrap();
        let both = Kinds::<StrategyName>::parse("own-names-test, player").unwrap();
        assert_eq!((both.text().as_str(), both.names().len()), ("own-names-test,player", 2));
        for text in ["", ",player", "player,"] {
            assert!(Kinds::<StrategyName>::parse(text).is_err(), "{text:?}");
        }
        let program = StrategyName::parse(" exec:./mine --fast ").unwrap();
        assert_eq!((program.name(), program.command()), ("exec:./mine --fast", Some("./mine --fast")));
        assert!(core::ptr::eq(StrategyName::of("exec:./mine --fast").unwrap().0, program.0), "kept once");
        for text in ["exec:", "exec: ", "exec"] {
            assert!(StrategyName::parse(text).unwrap_err().contains("exec:COMMAND"), "{text}");
        }
        assert_eq!(VenueName::of("exec:./mine"), None);
        let unknown = StrategyName::parse("own-name-test").unwrap_err();
        assert!(unknown.contains("did you mean own-names-test?"), "{unknown}");
        for name in ["", "My strategy", "ä", "a_b", "012345678901234567890123456789012"] {
            let error = Part::Venue.register(name.to_owned().leak()).unwrap_err().to_string();
            assert!(error.contains("is no name for a venue"), "{error}");
        }
    }
}
