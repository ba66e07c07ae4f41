//! Names of the strategy and venue kinds: the built-in ones, and those that the program has
//! registered (`launcher::Harness`).

use super::value::{ListParser, SettingValue, unknown};
use core::marker::PhantomData;
use gateway::{SessionVenue, Venue, VenueInfo};
use protocol::plan::{Technique, Trading};
use serde::{Deserialize, Serialize};
use std::sync::{PoisonError, RwLock};
use techniques::TechniqueDescription;
use thiserror::Error;

/// A marker type for strategies or venues, the components that users can register by name.
pub trait Component: Clone + Copy + core::fmt::Debug + Send + Sync + 'static {
    /// What such a component is called in messages.
    const WHAT: &'static str;
    /// Names of the built-in kinds, starting with the default.
    const BUILT_IN: &'static [&'static str];
    /// How a program is named that is such a component.
    const PROGRAM: Option<&'static str>;
}

/// A marker type for [`KindList`]s of strategy kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrategyKind;

/// A marker type for [`KindList`]s of venue kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VenueKind;

impl Component for StrategyKind {
    const WHAT: &'static str = "strategy";
    const BUILT_IN: &'static [&'static str] = &Trading::ON_SCHEDULE;
    const PROGRAM: Option<&'static str> = Some("exec:COMMAND");
}

impl Component for VenueKind {
    const WHAT: &'static str = "venue";
    const BUILT_IN: &'static [&'static str] = &[Trading::DELAY_VENUE, Trading::BOOK];
    const PROGRAM: Option<&'static str> = None;
}

/// The error that a user-defined strategy, venue or technique could not be registered, for example
/// because its name is invalid or taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct NameError(String);

/// Registered names: what it is, the name, and the properties of a venue.
static ADDED: RwLock<Vec<(&str, &str, Option<VenueInfo>)>> = RwLock::new(Vec::new());

fn added(what: &str) -> impl Iterator<Item = (&'static str, Option<VenueInfo>)> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner).clone();
    added.into_iter().filter(move |(other, ..)| *other == what).map(|(_, name, info)| (name, info))
}

/// Registers the name of a user-defined strategy or venue kind, so that settings accept it; a venue
/// also has properties (`info`).
pub fn register<P: Component>(name: &'static str, info: Option<VenueInfo>) -> Result<(), NameError> {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let what = P::WHAT;
    if !(1..=32).contains(&name.len()) || !name.bytes().all(is_allowed) {
        return Err(NameError(format!(
            "{name:?} is not a valid name for a {what}: 1 to 32 characters of a-z, 0-9 and -"
        )));
    }
    if names::<P>().contains(&name) {
        return Err(NameError(format!("there is another {what} of the name {name}: give yours another one")));
    }
    ADDED.write().unwrap_or_else(PoisonError::into_inner).push((what, name, info));
    Ok(())
}

/// The names and properties of the components that a program has registered, in a form that another
/// program can register for its settings.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct OwnComponents {
    strategies: Vec<String>,
    /// Names with the fields of [`VenueInfo`].
    venues: Vec<(String, (u8, u8, bool))>,
    techniques: Vec<TechniqueDescription>,
}

impl OwnComponents {
    /// Returns the components that this program has registered.
    pub fn registered() -> Self {
        let fields = |info: VenueInfo| {
            let VenueInfo { reports_per_order, immediate_reports, reports_release_time } = info;
            (reports_per_order, immediate_reports, reports_release_time)
        };
        let venue = |(name, info): (&str, Option<VenueInfo>)| {
            (name.to_owned(), fields(info.unwrap_or(VenueInfo::ONE_REPORT)))
        };
        Self {
            strategies: added(StrategyKind::WHAT).map(|(name, _)| name.to_owned()).collect(),
            venues: added(VenueKind::WHAT).map(venue).collect(),
            techniques: Technique::registered(),
        }
    }

    /// Returns `true` if no component of the program is registered.
    pub const fn is_empty(&self) -> bool {
        self.strategies.is_empty() && self.venues.is_empty() && self.techniques.is_empty()
    }

    /// Registers another program's strategies, venues and techniques in this program, so that
    /// settings accept their names.
    ///
    /// # Errors
    /// A name that is taken or invalid.
    pub fn register(self) -> Result<(), NameError> {
        for technique in self.techniques {
            Technique::register_described(technique).map_err(|error| NameError(error.to_string()))?;
        }
        for name in self.strategies {
            register::<StrategyKind>(name.leak(), None)?;
        }
        for (name, (reports_per_order, immediate_reports, reports_release_time)) in self.venues {
            let info = VenueInfo { reports_per_order, immediate_reports, reports_release_time };
            register::<VenueKind>(name.leak(), Some(info))?;
        }
        Ok(())
    }
}

/// Returns the properties of a kind of venue that determine the capacity for its reports; `kind` is
/// its built-in or registered name.
pub fn venue_info(kind: &str) -> VenueInfo {
    if kind == Trading::BOOK {
        return <SessionVenue as Venue>::INFO;
    }
    let found = added(VenueKind::WHAT).find(|(name, _)| *name == kind);
    found.and_then(|(_, info)| info).unwrap_or(VenueInfo::ONE_REPORT)
}

/// Returns all names, the built-in ones first, starting with the default.
fn names<P: Component>() -> Vec<&'static str> {
    P::BUILT_IN.iter().copied().chain(added(P::WHAT).map(|(name, _)| name)).collect()
}

fn listed<P: Component>() -> Vec<&'static str> {
    names::<P>().into_iter().chain(P::PROGRAM).collect()
}

fn read<P: Component>(text: &str) -> Result<String, String> {
    let text = text.trim();
    let command = Trading::command_of(text).filter(|_| P::PROGRAM.is_some());
    let is_program = command.is_some_and(|command| !command.trim().is_empty());
    if is_program || names::<P>().contains(&text) {
        return Ok(text.into());
    }
    Err(unknown(text, &listed::<P>()))
}

/// The kinds of a run's strategies or venues as users write them: `quoter,player`. Component i has
/// kind i modulo their number. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindList<P>(pub Vec<String>, PhantomData<P>);

impl<P: Component> KindList<P> {
    /// Creates a list of strategy or venue kinds from their names, at least one, without checking
    /// them.
    pub const fn new(names: Vec<String>) -> Self {
        Self(names, PhantomData)
    }
}

impl<P: Component> Default for KindList<P> {
    fn default() -> Self {
        Self::new(vec![P::BUILT_IN[0].into()])
    }
}

impl<P: Component> SettingValue for KindList<P> {
    fn parse(text: &str) -> Result<Self, String> {
        text.split(',').map(read::<P>).collect::<Result<_, _>>().map(Self::new)
    }
    fn text(&self) -> String {
        self.0.join(",")
    }
    fn flag(arg: clap::Arg) -> clap::Arg {
        arg.value_parser(ListParser::<Self>::new(listed::<P>))
    }
    #[cfg(test)]
    fn any_text() -> proptest::prelude::BoxedStrategy<String> {
        use proptest::prelude::*;
        let name = proptest::sample::select(listed::<P>());
        proptest::collection::vec(name, 1..4).prop_map(|names| names.join(",")).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_added_once_and_suggested() {
        let read = |text| KindList::<StrategyKind>::parse(text).map(|kinds| kinds.0);
        register::<StrategyKind>("own-names-test", None).unwrap();
        let error = register::<StrategyKind>("own-names-test", None).unwrap_err().to_string();
        assert!(error.contains("another strategy of the name own-names-test"), "{error}");
        assert!(register::<StrategyKind>("player", None).is_err(), "bulkhead's own");
        register::<VenueKind>("own-names-test", None).unwrap();
        let kinds = read("own-names-test, player, exec:./mine --fast ").unwrap();
        assert_eq!(kinds, ["own-names-test", "player", "exec:./mine --fast"]);
        for (text, expected) in [
            ("", "there are"),
            (",player", "there are"),
            ("player,", "there are"),
            ("exec:", "exec:COMMAND"),
            ("exec: ", "exec:COMMAND"),
            ("exec", "exec:COMMAND"),
            ("own-name-test", "did you mean own-names-test?"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
        assert!(KindList::<VenueKind>::parse("exec:./mine").is_err());
        for name in ["", "My strategy", "ä", "a_b", "012345678901234567890123456789012"] {
            let error = register::<VenueKind>(name.to_owned().leak(), None).unwrap_err().to_string();
            assert!(error.contains("is not a valid name for a venue"), "{error}");
        }
    }
}
