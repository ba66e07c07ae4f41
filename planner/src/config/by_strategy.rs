//! Settings with a value for each strategy: `[strategy-N[.NAME]=]VALUE`, separated by `;` or `,`.
//!
//! ```text
//! 512MiB                            for every strategy
//! 512MiB; strategy-2=2GiB           for every strategy, and another one for strategy 2
//! strategy-2.memory=2GiB            the same with the setting's name, as in limits of risk
//! ```
//!
//! A later value overrides an earlier one, and that of a strategy overrides that of all.

use super::value::{SettingValue, parsed};
use core::fmt::Debug;
use core::marker::PhantomData;
use core::ops::RangeInclusive;
use protocol::index::StrategyIndex;
use protocol::plan::thousandths;
use record::units::{Bytes, Count, clip};

/// A setting whose value can differ between strategies, such as their user account.
pub trait StrategySetting: Clone + Copy + Debug + PartialEq + Eq + Send + Sync + 'static {
    /// The setting's name: that of its flag.
    const NAME: &'static str;
    /// An example of a value, for messages.
    const EXAMPLE: &'static str;
    /// The value of a strategy.
    type Value: Clone + Debug + PartialEq + Eq + Send + Sync + 'static;

    /// Parses a value of this setting from text.
    fn parse(text: &str) -> Result<Self::Value, String>;
    /// Formats a value of this setting so that it can be parsed again.
    fn text(value: &Self::Value) -> String;
    /// Generates any value of this setting, for property tests.
    #[cfg(test)]
    fn any_text() -> proptest::prelude::BoxedStrategy<String>;
}

/// The values of a setting as the user wrote them, each for one strategy or for all (`None`), in
/// the user's order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByStrategy<S: StrategySetting>(pub Vec<(Option<StrategyIndex>, S::Value)>, PhantomData<S>);

impl<S: StrategySetting> ByStrategy<S> {
    /// Returns the setting's value for a strategy: the last value that names the strategy, else the
    /// last one for all strategies.
    pub fn value_of(&self, strategy: StrategyIndex) -> Option<&S::Value> {
        let last = |of: Option<StrategyIndex>| {
            self.0.iter().rfind(|(named, _)| *named == of).map(|(_, value)| value)
        };
        last(Some(strategy)).or_else(|| last(None))
    }

    /// Returns the strategies that have a value of their own for this setting.
    pub fn named(&self) -> impl Iterator<Item = StrategyIndex> + '_ {
        self.0.iter().filter_map(|(strategy, _)| *strategy)
    }

    fn item(text: &str) -> Result<(Option<StrategyIndex>, S::Value), String> {
        let wrong = |what: String| {
            format!("{:?}: {what}; write {} or strategy-1={}", clip(text), S::EXAMPLE, S::EXAMPLE)
        };
        let Some((strategy, value)) = text.split_once('=') else {
            return Ok((None, S::parse(text).map_err(wrong)?));
        };
        let strategy = strategy.trim();
        let name = match strategy.split_once('.') {
            Some((name, setting)) if setting.replace('_', "-") == S::NAME => name,
            Some((_, setting)) => {
                return Err(wrong(format!("{:?} is another setting than --{}", clip(setting), S::NAME)));
            }
            None => strategy,
        };
        let digits = name.strip_prefix("strategy-");
        let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let index = digits.filter(is_number).and_then(|digits| digits.parse().ok());
        let index: u16 = index.ok_or_else(|| wrong(format!("{:?} is not a strategy", clip(name))))?;
        Ok((Some(StrategyIndex(index)), S::parse(value.trim()).map_err(wrong)?))
    }
}

impl<S: StrategySetting> SettingValue for ByStrategy<S> {
    const IS_LIST: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        let items = text.split([';', ',']).map(str::trim).filter(|item| !item.is_empty());
        let items: Vec<_> = items.map(Self::item).collect::<Result<_, _>>()?;
        if items.is_empty() {
            return Err(format!("expected {} or strategy-1={}", S::EXAMPLE, S::EXAMPLE));
        }
        Ok(Self(items, PhantomData))
    }
    fn text(&self) -> String {
        let item = |(strategy, value): &(Option<StrategyIndex>, S::Value)| match strategy {
            Some(strategy) => format!("strategy-{strategy}={}", S::text(value)),
            None => S::text(value),
        };
        self.0.iter().map(item).collect::<Vec<_>>().join("; ")
    }
    fn flag(arg: clap::Arg) -> clap::Arg {
        arg.action(clap::ArgAction::Append).value_parser(parsed::<Self>())
    }
    fn merge(mut self, later: Self) -> Self {
        self.0.extend(later.0);
        self
    }
    #[cfg(test)]
    fn any_text() -> proptest::prelude::BoxedStrategy<String> {
        use proptest::prelude::*;
        let item = (any::<Option<u16>>(), S::any_text()).prop_map(|(strategy, value)| match strategy {
            Some(strategy) => format!("strategy-{strategy}={value}"),
            None => value,
        });
        proptest::collection::vec(item, 1..4).prop_map(|items| items.join("; ")).boxed()
    }
}

/// Checks that a quantity is in its range.
fn within(value: u64, range: RangeInclusive<u64>, shown: impl Fn(u64) -> String) -> Result<u64, String> {
    let (min, max) = (shown(*range.start()), shown(*range.end()));
    range.contains(&value).then_some(value).ok_or_else(|| format!("give a value from {min} to {max}"))
}

/// Implements [`StrategySetting`] for a number: type, name, example, range, reading, writing.
macro_rules! strategy_numbers {
    ($($(#[$doc:meta])* $type:ident $name:literal $example:literal, $range:expr, $read:expr, $write:expr;)+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $type;

        impl StrategySetting for $type {
            const NAME: &'static str = $name;
            const EXAMPLE: &'static str = $example;
            type Value = u64;

            fn parse(text: &str) -> Result<u64, String> {
                within($read(text)?, $range, $write)
            }
            fn text(value: &u64) -> String {
                $write(*value)
            }
            #[cfg(test)]
            fn any_text() -> proptest::prelude::BoxedStrategy<String> {
                use proptest::prelude::*;
                let range: RangeInclusive<u64> = $range;
                range.prop_map($write).boxed()
            }
        }
    )+ };
}

strategy_numbers! {
    /// Memory in bytes.
    MemoryLimit "memory" "512MiB", 16 << 20..=1 << 44, read_bytes, |bytes| Bytes(bytes).to_string();
    /// CPU time in thousandths of a CPU.
    CpuLimit "cpu" "1.5", 10..=1_024_000, read_thousandths, thousandths;
    /// Open files of each process.
    FileLimit "files" "256", 16..=1 << 20, read_count, |count| Count(count).to_string();
    /// Processes and threads.
    ProcessLimit "processes" "64", 4..=1 << 22, read_count, |count| Count(count).to_string();
}

fn read_bytes(text: &str) -> Result<u64, String> {
    text.parse::<Bytes>().map(|bytes| bytes.0).map_err(|error| error.to_string())
}

fn read_count(text: &str) -> Result<u64, String> {
    text.parse::<Count>().map(|count| count.0).map_err(|error| error.to_string())
}

/// Reads a decimal number with at most three decimals, as thousandths.
fn read_thousandths(text: &str) -> Result<u64, String> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let digits = format!("{whole}{decimals:0<3}");
    let is_valid = !whole.is_empty() && whole.len() <= 9 && decimals.len() <= 3 && is_number(&digits);
    let value = digits.parse().ok().filter(|_| is_valid);
    value.ok_or_else(|| format!("{:?} is not a number of CPUs", clip(text)))
}

/// The setting of the user account, by name or number, that a strategy runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserName;

impl StrategySetting for UserName {
    const NAME: &'static str = "user";
    const EXAMPLE: &'static str = "nobody";
    type Value = String;

    fn parse(text: &str) -> Result<String, String> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-$".contains(&byte);
        let is_name = (1..=32).contains(&text.len()) && text.bytes().all(is_allowed);
        is_name.then(|| text.to_owned()).ok_or_else(|| format!("{:?} is not the name of a user", clip(text)))
    }
    fn text(value: &String) -> String {
        value.clone()
    }
    #[cfg(test)]
    fn any_text() -> proptest::prelude::BoxedStrategy<String> {
        use proptest::prelude::*;
        "[a-z][a-z0-9_-]{0,31}".boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_of_strategy_overrides_that_of_all() {
        let memory =
            ByStrategy::<MemoryLimit>::parse("strategy-2=2GiB, 512MiB; strategy-3.memory=1GiB").unwrap();
        let of =
            [0, 2, 3].map(StrategyIndex).map(|strategy| memory.value_of(strategy).map(|bytes| bytes >> 20));
        assert_eq!(of, [Some(512), Some(2048), Some(1024)]);
        assert_eq!(memory.named().collect::<Vec<_>>(), [2, 3].map(StrategyIndex));
        assert_eq!(ByStrategy::parse(&memory.text()), Ok(memory.clone()));
        let later = memory.merge(ByStrategy::parse("strategy-2=64MiB; 32MiB").unwrap());
        assert_eq!(
            [0, 2].map(StrategyIndex).map(|strategy| later.value_of(strategy).map(|bytes| bytes >> 20)),
            [Some(32), Some(64)]
        );
        let only = ByStrategy::<CpuLimit>::parse("strategy-1=0.25").unwrap();
        assert_eq!((only.value_of(StrategyIndex(0)), only.value_of(StrategyIndex(1))), (None, Some(&250)));
    }

    #[test]
    fn wrong_value_names_remedy() {
        let memory = |text| ByStrategy::<MemoryLimit>::parse(text).unwrap_err();
        for (text, wanted) in [
            ("", "expected 512MiB or strategy-1=512MiB"),
            ("lots", "write 512MiB or strategy-1=512MiB"),
            ("1KiB", "give a value from 16MiB to 16384GiB"),
            ("strategy-x=1GiB", "\"strategy-x\" is not a strategy"),
            ("strategy-=1GiB", "is not a strategy"),
            ("strategy-99999=1GiB", "is not a strategy"),
            ("venue-1=1GiB", "\"venue-1\" is not a strategy"),
            ("strategy-1.cpu=2", "\"cpu\" is another setting than --memory"),
        ] {
            assert!(memory(text).contains(wanted), "{text}: {}", memory(text));
        }
        for text in ["0", "-1", "1.0005", "x", "1e3", ".5", "1025"] {
            assert!(ByStrategy::<CpuLimit>::parse(text).is_err(), "{text}");
        }
        for text in ["", "a b", "strategy-1=", "../x", &"x".repeat(33)] {
            assert!(ByStrategy::<UserName>::parse(text).is_err(), "{text}");
        }
    }
}
