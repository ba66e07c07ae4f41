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
    /// A venue.
    Venue,
}

/// A name that cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// Another one has it.
    #[error("there is another {what} of the name {name}: give yours another one")]
    Taken {
        /// `strategy` or `venue`.
        what: &'static str,
        /// The name.
        name: &'static str,
    },
    /// It cannot be typed everywhere.
    #[error("{name:?} is no name for a {what}: 1 to 32 characters of a-z, 0-9 and -")]
    NoName {
        /// `strategy` or `venue`.
        what: &'static str,
        /// The name.
        name: &'static str,
    },
}

/// What the program has added.
static ADDED: RwLock<Vec<(Part, &'static str)>> = RwLock::new(Vec::new());

/// What there is to know of the venues among them.
static VENUES: RwLock<Vec<(&'static str, VenueRecord)>> = RwLock::new(Vec::new());

/// Adds the name of a venue with what there is to know of it.
///
/// # Errors
/// As [`Part::register`].
pub fn register_venue(name: &'static str, record: VenueRecord) -> Result<(), NameError> {
    Part::Venue.register(name)?;
    VENUES.write().unwrap_or_else(PoisonError::into_inner).push((name, record));
    Ok(())
}

/// What the help and the lists say of a strategy that is a program.
const A_PROGRAM: &str = "exec:COMMAND";

/// The commands that were asked for: a name lives as long as the process, and each is kept once.
static COMMANDS: RwLock<Vec<&'static str>> = RwLock::new(Vec::new());

/// The name of a strategy that is a program; `None`: the text is none, or has no command.
fn program(text: &str) -> Option<&'static str> {
    Trading::command_of(text).filter(|command| !command.trim().is_empty())?;
    let mut known = COMMANDS.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(name) = known.iter().find(|name| **name == text) {
        return Some(name);
    }
    known.push(text.to_owned().leak());
    known.last().copied()
}

impl StrategyName {
    /// The command of one that is a program of somebody else's.
    pub fn command(self) -> Option<&'static str> {
        Trading::command_of(self.0)
    }

    /// Whether the strategy sends at the times of its schedule.
    pub fn is_on_schedule(self) -> bool {
        Trading::ON_SCHEDULE.contains(&self.name())
    }
}

impl VenueName {
    /// What there is to know of the venue of that name.
    pub fn record(self) -> VenueRecord {
        if self.name() == Trading::BOOK {
            return <SessionVenue as Venue>::RECORD;
        }
        let venues = VENUES.read().unwrap_or_else(PoisonError::into_inner);
        let found = venues.iter().find(|(name, _)| *name == self.name());
        found.map_or(VenueRecord::ONE_REPORT, |(_, record)| *record)
    }
}

impl Part {
    /// bulkhead's own, the default first.
    const fn built_in(self) -> &'static [&'static str] {
        match self {
            Part::Strategy => &Trading::ON_SCHEDULE,
            Part::Venue => &[Trading::DELAY_VENUE, Trading::BOOK],
        }
    }

    const fn what(self) -> &'static str {
        match self {
            Part::Strategy => "strategy",
            Part::Venue => "venue",
        }
    }

    /// The one that a text names.
    fn find(self, text: &str) -> Option<&'static str> {
        let known = self.names().into_iter().find(|known| *known == text);
        known.or_else(|| if self == Part::Strategy { program(text) } else { None })
    }

    /// What the help and the messages list.
    fn listed(self) -> Vec<&'static str> {
        let program = (self == Part::Strategy).then_some(A_PROGRAM);
        self.names().into_iter().chain(program).collect()
    }

    /// All names, bulkhead's own first.
    fn names(self) -> Vec<&'static str> {
        let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
        let mine = added.iter().filter(|(part, _)| *part == self).map(|(_, name)| *name);
        self.built_in().iter().copied().chain(mine).collect()
    }

    /// Adds a name.
    ///
    /// # Errors
    /// One that another one has, or that is none.
    pub fn register(self, name: &'static str) -> Result<(), NameError> {
        let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let what = self.what();
        if !(1..=32).contains(&name.len()) || !name.bytes().all(good) {
            return Err(NameError::NoName { what, name });
        }
        if self.names().contains(&name) {
            return Err(NameError::Taken { what, name });
        }
        ADDED.write().unwrap_or_else(PoisonError::into_inner).push((self, name));
        Ok(())
    }
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident: $part:expr),+ $(,)?) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(&'static str);

        impl Default for $name {
            fn default() -> Self {
                Self($part.built_in()[0])
            }
        }

        impl $name {
            /// The name that users type.
            pub const fn name(self) -> &'static str {
                self.0
            }
        }

        impl Named for $name {
            fn names() -> Vec<&'static str> {
                $part.listed()
            }
            fn of(name: &str) -> Option<Self> {
                $part.find(name).map(Self)
            }
            fn name_of(&self) -> &'static str {
                self.0
            }
        }
    )+ };
}

names! {
    /// The name of a strategy.
    StrategyName: Part::Strategy,
    /// The name of a venue.
    VenueName: Part::Venue,
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
