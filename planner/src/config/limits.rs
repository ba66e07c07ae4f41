//! Syntax of limits: `[SCOPE.]CONTROL=VALUE`, separated by `;` or `,`.
//!
//! ```text
//! SCOPE     all, strategy-N, credential-N, instrument-N                    [all]
//! CONTROL   max-position, max-order-value, price-collar, …                 protocol::limits
//! VALUE     a count (100, 5k, 2M), a time (100ms) for windows, on, off
//! ```
//!
//! Quantities are in 1e-8 units, money is in cents, rates are a second. A later limit overrides an
//! earlier one.

use super::nearest;
use super::value::{SettingValue, parsed};
use protocol::index::{StrategyIndex, VenueIndex};
use protocol::kill::Scope;
use protocol::limits::{LimitSetting, LimitUnit, OFF, RiskControl};
use record::units::{Count, Nanos, clip};

/// All risk limits that a user sets for a run, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits(pub Vec<LimitSetting>);

/// Parses the scope of a risk limit (whose orders it limits): `all`, `strategy-0`, `credential-1`,
/// `venue-2`, `instrument-3`.
pub fn scope_of(text: &str) -> Result<Scope, String> {
    let wrong = || {
        format!(
            "{:?} is not a scope: write all, strategy-N, credential-N, venue-N or instrument-N",
            clip(text)
        )
    };
    if text == "all" {
        return Ok(Scope::All);
    }
    let (kind, index) = text.rsplit_once('-').ok_or_else(wrong)?;
    let is_number = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
    let index: u16 = index.parse().ok().filter(|_| is_number).ok_or_else(wrong)?;
    match kind {
        "strategy" => Ok(Scope::Strategy(StrategyIndex(index))),
        "credential" => Ok(Scope::Credential(index)),
        "venue" => Ok(Scope::Venue(VenueIndex(index))),
        "instrument" => Ok(Scope::Instrument(index)),
        _ => Err(wrong()),
    }
}

/// Parses one risk limit, `[SCOPE.]CONTROL=VALUE`; a limit without a scope gets the scope
/// `default`.
pub fn limit_of(text: &str, default: Scope) -> Result<LimitSetting, String> {
    let wrong = |what: String| format!("{:?}: {what}", clip(text));
    let (name, value) = text.split_once('=').ok_or_else(|| {
        wrong("expected [SCOPE.]CONTROL=VALUE, for example strategy-0.max-position=5k".into())
    })?;
    let (scope, name) = match name.trim().rsplit_once('.') {
        Some((scope, name)) => (scope_of(scope.trim()).map_err(wrong)?, name.trim()),
        None => (default, name.trim()),
    };
    let control = RiskControl::from_name(&name.replace('_', "-")).ok_or_else(|| {
        let names = || RiskControl::ALL.iter().map(|control| control.name());
        wrong(match nearest(name, names()) {
            Some(near) => format!("there is no limit {:?}: did you mean {near}?", clip(name)),
            None => {
                format!(
                    "there is no limit {:?}: there are {}",
                    clip(name),
                    names().collect::<Vec<_>>().join(", ")
                )
            }
        })
    })?;
    let value = value_of(control, value.trim()).map_err(wrong)?;
    let setting = LimitSetting { scope, control, value };
    setting.check().map_err(|error| wrong(error.to_string()))?;
    Ok(setting)
}

fn value_of(control: RiskControl, text: &str) -> Result<u64, String> {
    match (text, control.info().unit) {
        ("off", _) => Ok(OFF),
        ("on", LimitUnit::Switch) => Ok(1),
        (_, LimitUnit::Switch) => Err(format!("{control} is on or off")),
        (_, LimitUnit::Nanoseconds) => {
            text.parse::<Nanos>().map(|time| time.0).map_err(|error| error.to_string())
        }
        _ => text.parse::<Count>().map(|count| count.0).map_err(|error| error.to_string()),
    }
}

/// Formats the value of a risk limit as users write it: `off`, `on`, a duration or a number.
pub fn value_text(control: RiskControl, value: u64) -> String {
    match (value, control.info().unit) {
        (OFF, _) => "off".into(),
        (1, LimitUnit::Switch) => "on".into(),
        (value, LimitUnit::Nanoseconds) => Nanos(value).to_string(),
        (value, _) => value.to_string(),
    }
}

/// Formats a risk limit with its scope as users write it.
pub fn limit_text(LimitSetting { scope, control, value }: &LimitSetting) -> String {
    let scope = if *scope == Scope::All { String::new() } else { format!("{scope}.") };
    format!("{scope}{control}={}", value_text(*control, *value))
}

impl Limits {
    /// Splits the text of a list of risk limits into the texts of single limits.
    pub fn items(text: &str) -> impl Iterator<Item = &str> {
        text.split([';', ',']).map(str::trim).filter(|limit| !limit.is_empty())
    }
}

impl SettingValue for Limits {
    const IS_LIST: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        let limits = Self::items(text).map(|limit| limit_of(limit, Scope::All));
        let limits: Vec<_> = limits.collect::<Result<_, _>>()?;
        if limits.is_empty() {
            Err("no limit is named: expected [SCOPE.]CONTROL=VALUE, for example max-position=5k".into())
        } else {
            Ok(Self(limits))
        }
    }
    fn text(&self) -> String {
        self.0.iter().map(limit_text).collect::<Vec<_>>().join("; ")
    }
    fn flag(arg: clap::Arg) -> clap::Arg {
        arg.action(clap::ArgAction::Append).visible_alias("limit").value_parser(parsed::<Self>())
    }
    fn merge(mut self, later: Self) -> Self {
        self.0.extend(later.0);
        self
    }
    #[cfg(test)]
    fn any_text() -> proptest::prelude::BoxedStrategy<String> {
        tests::any_limits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::select;
    use protocol::index::StrategyIndex;

    /// Generates any limits that can be written.
    pub(super) fn any_limits() -> BoxedStrategy<String> {
        let limit =
            (select(RiskControl::ALL), any::<u64>(), any::<bool>()).prop_map(|(control, drawn, is_off)| {
                let record = control.info();
                let within = record.min + drawn % (record.max - record.min + 1);
                LimitSetting { scope: Scope::All, control, value: if is_off { OFF } else { within } }
            });
        proptest::collection::vec(limit, 1..5).prop_map(|limits| Limits(limits).text()).boxed()
    }

    #[test]
    fn limits_are_read_with_their_units() {
        let read = Limits::parse(
            "max-position=5k; strategy-3.duplicate-window=10ms, instrument-2.restricted=on;price_collar=off",
        )
        .unwrap();
        let limit = |scope, control, value| LimitSetting { scope, control, value };
        assert_eq!(
            read.0,
            [
                limit(Scope::All, RiskControl::MaxPosition, 5_000),
                limit(Scope::Strategy(StrategyIndex(3)), RiskControl::DuplicateWindow, 10_000_000),
                limit(Scope::Instrument(2), RiskControl::Restricted, 1),
                limit(Scope::All, RiskControl::PriceCollar, OFF),
            ]
        );
        assert_eq!(Limits::parse(&read.text()), Ok(read));
    }

    #[test]
    fn error_names_remedy() {
        for (text, wanted) in [
            ("max-positon=5", "did you mean max-position?"),
            ("qq=5", "there are max-open-orders, "),
            ("max-position", "expected [SCOPE.]CONTROL=VALUE"),
            ("stratgy-1.max-position=5", "is not a scope: write all, strategy-N"),
            ("strategy-.max-position=5", "is not a scope"),
            ("credential-1.max-position=5", "cannot be set for credential-1"),
            ("max-position=many", "is not a count"),
            ("duplicate-window=5", "has no unit"),
            ("restricted=7", "restricted is on or off"),
            ("message-rate=0", "cannot be 0"),
            ("", "no limit is named"),
        ] {
            let message = Limits::parse(text).unwrap_err();
            assert!(message.contains(wanted), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,60}") {
            let _ = Limits::parse(&text);
        }
    }
}
