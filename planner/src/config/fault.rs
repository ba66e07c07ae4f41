//! Syntax of injected faults.
//!
//! ```text
//! KIND[:TARGET][@WHEN][ every DUR][ for DUR]      several: separated by ; or ,
//!
//! KIND     a name of FaultKind
//! TARGET   strategy-N | any | engine | launcher | gateway-N | venue-N | exchange-N    [any]
//! WHEN     2s                at a time after the start    [a tenth of the window, at least 100ms]
//!          order:N           at the strategy's order N, from 0
//!          push:STEP:N       at that step of the push of order N
//! every    repeatedly, for kill and stop at a time; also every=DUR
//! for      duration of a venue fault    [until the end]
//! ```
//!
//! Orders are counted in each incarnation of a strategy. `order:N` is `push:entered:N`. The planner
//! checks whether a run can have a fault.

use super::value::SettingValue;
use core::fmt;
use core::str::FromStr;
use protocol::index::{GatewayIndex, StrategyIndex, VenueIndex};
use protocol::plan::{Fault, FaultKind, FaultTarget, FaultTime};
use record::units::{Count, Nanos, clip};
use shm::ring::Step;

const GRAMMAR: &str = "expected KIND[:TARGET][@WHEN][ every DUR][ for DUR], for example kill:strategy-3@2s";

/// One injected fault as the user wrote it, with its target and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultSpec {
    /// Kind of the injected fault.
    pub kind: FaultKind,
    /// Strategy, venue or other role that the fault hits.
    pub target: FaultTarget,
    /// Time at which the fault is injected; `None`: the planner decides.
    pub when: Option<FaultTime>,
    /// Time between repeated injections; `None`: the fault is injected once.
    pub every: Option<Nanos>,
    /// Duration of a venue fault; `None`: until the end.
    pub lasts: Option<Nanos>,
}

/// All injected faults of a run, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(pub Vec<FaultSpec>);

impl From<&Fault> for FaultSpec {
    fn from(fault: &Fault) -> Self {
        let Fault { kind, target, when, every_ns, lasts_ns } = *fault;
        Self { kind, target, when: Some(when), every: every_ns.map(Nanos), lasts: lasts_ns.map(Nanos) }
    }
}

impl FromStr for FaultSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let wrong = |what: String| format!("{:?}: {what}", clip(text));
        fn split<'a>(text: &'a str, at: &str) -> (&'a str, Option<&'a str>) {
            text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
        }
        let (rest, lasts) = split(text, " for ");
        let (fault, every) = split(rest, " every");
        let every = every.map(|every| every.trim_start().trim_start_matches('='));
        let (target_text, when) = split(fault, "@");
        let (kind, target) = target_text.split_once(':').unwrap_or((target_text, "any"));
        Ok(Self {
            kind: FaultKind::parse(kind)
                .map_err(|message| wrong(format!("the kind {message}; {GRAMMAR}")))?,
            target: target_of(target.trim()).ok_or_else(|| {
                let target = clip(target);
                wrong(format!("unknown fault target {target:?}: expected strategy-N, any, engine, launcher, gateway-N, exchange-N or venue-N"))
            })?,
            when: when.map(|when| when_of(when.trim())).transpose().map_err(wrong)?,
            every: every.map(|text| time_of(text, "every")).transpose().map_err(wrong)?,
            lasts: lasts.map(|text| time_of(text, "for")).transpose().map_err(wrong)?,
        })
    }
}

fn time_of(text: &str, word: &str) -> Result<Nanos, String> {
    text.trim().parse().map_err(|error| format!("{word}: {error}"))
}

fn target_of(text: &str) -> Option<FaultTarget> {
    match text {
        "any" => Some(FaultTarget::Any),
        "engine" => Some(FaultTarget::Engine),
        "launcher" => Some(FaultTarget::Launcher),
        "exchange" => Some(FaultTarget::Exchange(VenueIndex(0))),
        _ => {
            let (kind, index) = text.rsplit_once('-')?;
            let is_number = index.bytes().all(|byte| byte.is_ascii_digit());
            let index: u16 = index.parse().ok().filter(|_| is_number)?;
            match kind {
                "strategy" => Some(FaultTarget::Strategy(StrategyIndex(index))),
                "venue" => Some(FaultTarget::Venue(VenueIndex(index))),
                "exchange" => Some(FaultTarget::Exchange(VenueIndex(index))),
                "gateway" => Some(FaultTarget::Gateway(GatewayIndex(index))),
                _ => None,
            }
        }
    }
}

fn when_of(text: &str) -> Result<FaultTime, String> {
    let order = |text: &str| {
        text.parse::<Count>().map(|count| count.0).map_err(|error| format!("the order's number: {error}"))
    };
    if let Some(number) = text.strip_prefix("order:") {
        return Ok(FaultTime::Push { order: order(number)?, step: Step::Entered });
    }
    if let Some(push) = text.strip_prefix("push:") {
        let (step, number) = push
            .split_once(':')
            .ok_or("a step of a push needs the order's number: write push:STEP:N".to_owned())?;
        let step = Step::from_name(step.trim()).ok_or_else(|| {
            let steps: Vec<&str> = Step::ALL.iter().map(|step| step.name()).collect();
            format!("{:?} is not a step of a push: there are {}", clip(step), steps.join(", "))
        })?;
        return Ok(FaultTime::Push { order: order(number)?, step });
    }
    match text.parse::<Nanos>() {
        Ok(Nanos(ns)) => Ok(FaultTime::At { ns }),
        Err(error) => Err(format!("{error}; or write order:N or push:STEP:N")),
    }
}

impl fmt::Display for FaultSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.target)?;
        match self.when {
            None => {}
            Some(FaultTime::At { ns }) => write!(f, "@{}", Nanos(ns))?,
            Some(FaultTime::Push { order, step: Step::Entered }) => write!(f, "@order:{order}")?,
            Some(FaultTime::Push { order, step }) => write!(f, "@push:{step}:{order}")?,
        }
        self.every.map_or(Ok(()), |every| write!(f, " every {every}"))?;
        self.lasts.map_or(Ok(()), |lasts| write!(f, " for {lasts}"))
    }
}

impl SettingValue for Faults {
    const IS_LIST: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        let specs = text.split([';', ',']).map(str::trim).filter(|spec| !spec.is_empty());
        let specs: Vec<FaultSpec> = specs.map(str::parse).collect::<Result<_, _>>()?;
        if specs.is_empty() { Err(format!("no fault is named: {GRAMMAR}")) } else { Ok(Self(specs)) }
    }
    fn text(&self) -> String {
        self.0.iter().map(FaultSpec::to_string).collect::<Vec<_>>().join("; ")
    }
    fn merge(mut self, later: Self) -> Self {
        self.0.extend(later.0);
        self
    }
    #[cfg(test)]
    fn any_text() -> proptest::prelude::BoxedStrategy<String> {
        tests::any_faults()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::select;
    use protocol::index::StrategyIndex;

    /// Any faults that can be written down, whether or not a run can have them.
    pub(super) fn any_faults() -> BoxedStrategy<String> {
        let target = prop_oneof![
            any::<u16>().prop_map(|index| FaultTarget::Strategy(StrategyIndex(index))),
            any::<u16>().prop_map(|index| FaultTarget::Venue(VenueIndex(index))),
            any::<u16>().prop_map(|index| FaultTarget::Gateway(GatewayIndex(index))),
            select(vec![FaultTarget::Any, FaultTarget::Engine, FaultTarget::Launcher]),
        ];
        let when = prop_oneof![
            any::<u64>().prop_map(|ns| FaultTime::At { ns }),
            (any::<u64>(), select(Step::ALL)).prop_map(|(order, step)| FaultTime::Push { order, step }),
        ];
        let time = || proptest::option::of(any::<u64>().prop_map(Nanos));
        let fault = (select(FaultKind::ALL), target, proptest::option::of(when), time(), time())
            .prop_map(|(kind, target, when, every, lasts)| FaultSpec { kind, target, when, every, lasts });
        proptest::collection::vec(fault, 1..5).prop_map(|faults| Faults(faults).text()).boxed()
    }

    #[test]
    fn the_examples_are_read() {
        let read = |text: &str| text.parse::<FaultSpec>().unwrap();
        let spec = |kind, target, when, every| FaultSpec { kind, target, when, every, lasts: None };
        let at = |ms: u64| Some(FaultTime::At { ns: ms * 1_000_000 });
        let push = |order, step| Some(FaultTime::Push { order, step });
        let (strategy, any) = (FaultTarget::Strategy, FaultTarget::Any);
        let often = spec(FaultKind::Kill, any, at(1_000), Some(Nanos(10_000_000)));
        for (text, wanted) in [
            ("kill:strategy-3@2s", spec(FaultKind::Kill, strategy(StrategyIndex(3)), at(2_000), None)),
            (
                "hang:strategy-0@push:claimed:1000",
                spec(FaultKind::Hang, strategy(StrategyIndex(0)), push(1000, Step::Claimed), None),
            ),
            ("kill:any@1s every 10ms", often),
            ("kill@1s every=10ms", often),
            (" kill@1s  every = 10 ms ", often),
            ("scribble", spec(FaultKind::Scribble, any, None, None)),
            ("stop:launcher", spec(FaultKind::Stop, FaultTarget::Launcher, None, None)),
            (
                "slow:venue-1@2s for 500ms",
                FaultSpec {
                    lasts: Some(Nanos(500_000_000)),
                    ..spec(FaultKind::Slow, FaultTarget::Venue(VenueIndex(1)), at(2_000), None)
                },
            ),
            ("exit@push:entered:7", read("exit@order:7")),
            ("exit@order:4k", spec(FaultKind::Exit, any, push(4000, Step::Entered), None)),
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
        let several = Faults::parse("scribble; kill:any@1s every 10ms, flood:strategy-1@500ms;").unwrap();
        assert_eq!(several.text(), "scribble:any; kill:any@1s every 10ms; flood:strategy-1@500ms");
    }

    #[test]
    fn invalid_fault_error_shows_grammar() {
        let target = "strategy-N, any, engine, launcher";
        for (text, expected) in [
            ("kil:any", "did you mean kill?"),
            ("???", "KIND[:TARGET][@WHEN][ every DUR][ for DUR]"),
            ("", "no fault is named: expected KIND"),
            ("kill:strategy-@1s", target),
            ("kill:strategy-x@1s", target),
            ("kill:strategy--1@1s", target),
            ("kill:strategy-99999@1s", target),
            ("kill:strategy@1s", target),
            ("kill:nobody@1s", target),
            ("kill@5", "has no unit"),
            ("kill@soon", "or write order:N or push:STEP:N"),
            ("kill@order:x", "the order's number: \"x\" is not a count"),
            ("kill@push:claimd:3", "not a step of a push: there are entered"),
            ("kill@push:claimed", "push:STEP:N"),
            ("kill@1s every 5", "every: \"5\" has no unit"),
            ("mute:venue-0@1s for 5", "for: \"5\" has no unit"),
            ("kill@1s every", "every: \"\" is not a time"),
            ("kill; hng", "did you mean hang?"),
        ] {
            let message = Faults::parse(text).unwrap_err();
            assert!(message.contains(expected) && !message.contains('\n'), "{text}: {message}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC*", near in "(kill|hang)?:?[a-z0-9-]{0,12}@?[a-z0-9:-]{0,12}( every)?=?[0-9ms]{0,4}") {
            let _ = Faults::parse(&text);
            let _ = Faults::parse(&near);
        }
    }
}
