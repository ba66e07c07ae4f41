//! Syntax of injected faults.
//!
//! ```text
//! KIND[:TARGET][@WHEN][ every DUR][ for DUR]      several: separated by ; or ,
//!
//! KIND     kill stop hang segv abort exit oom leak scribble flood forge feign hold
//!          forge-header jam lose; of a venue: slow disconnect reject mute garble
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
use analysis::units::{Count, Nanos, clip};
use core::fmt;
use core::str::FromStr;
use protocol::plan::{Fault, FaultKind, FaultTarget, FaultTime};
use shm::ring::Step;

/// The grammar in one line, for messages.
const GRAMMAR: &str = "expected KIND[:TARGET][@WHEN][ every DUR][ for DUR], for example kill:strategy-3@2s";

/// One injected fault as the user wrote it, with its target and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultSpec {
    /// The kind of fault.
    pub kind: FaultKind,
    /// The process that the fault hits.
    pub target: FaultTarget,
    /// Time at which the fault is injected; `None`: the planner decides.
    pub when: Option<FaultTime>,
    /// Interval of a repeated fault.
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
        let (rest, lasts) = match text.split_once(" for ") {
            Some((rest, lasts)) => (rest, Some(lasts)),
            None => (text, None),
        };
        let (fault, every) = match rest.split_once(" every") {
            Some((fault, every)) => (fault, Some(every.trim_start().trim_start_matches('='))),
            None => (rest, None),
        };
        let (who, when) = match fault.split_once('@') {
            Some((who, when)) => (who, Some(when)),
            None => (fault, None),
        };
        let (kind, target) = who.split_once(':').unwrap_or((who, "any"));
        Ok(Self {
            kind: FaultKind::parse(kind)
                .map_err(|message| wrong(format!("the kind {message}; {GRAMMAR}")))?,
            target: target_of(target.trim()).ok_or_else(|| {
                let target = clip(target);
                wrong(format!("unknown fault target {target:?}: expected strategy-N, any, engine, launcher, gateway-N, exchange-N or venue-N"))
            })?,
            when: when.map(|when| when_of(when.trim())).transpose().map_err(wrong)?,
            every: every
                .map(|every| every.trim().parse::<Nanos>().map_err(|error| wrong(format!("every: {error}"))))
                .transpose()?,
            lasts: lasts
                .map(|lasts| lasts.trim().parse::<Nanos>().map_err(|error| wrong(format!("for: {error}"))))
                .transpose()?,
        })
    }
}

fn target_of(text: &str) -> Option<FaultTarget> {
    match text {
        "any" => Some(FaultTarget::Any),
        "engine" => Some(FaultTarget::Engine),
        "launcher" => Some(FaultTarget::Launcher),
        "exchange" => Some(FaultTarget::Exchange(0)),
        _ => {
            let of = |prefix, target: fn(u16) -> FaultTarget| {
                let index = text.strip_prefix(prefix)?;
                let digits = index.bytes().all(|b| b.is_ascii_digit());
                digits.then(|| index.parse().ok()).flatten().map(target)
            };
            of("strategy-", FaultTarget::Strategy)
                .or_else(|| of("venue-", FaultTarget::Venue))
                .or_else(|| of("exchange-", FaultTarget::Exchange))
                .or_else(|| of("gateway-", FaultTarget::Gateway))
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

    /// Any faults that can be written down, whether or not a run can have them.
    pub(super) fn any_faults() -> BoxedStrategy<String> {
        let target = prop_oneof![
            any::<u16>().prop_map(FaultTarget::Strategy),
            any::<u16>().prop_map(FaultTarget::Venue),
            any::<u16>().prop_map(FaultTarget::Gateway),
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

    fn read(text: &str) -> FaultSpec {
        text.parse().unwrap()
    }

    fn wrong(text: &str) -> String {
        let message = Faults::parse(text).unwrap_err();
        assert!(!message.contains('\n'), "{message}");
        message
    }

    #[test]
    fn the_examples_are_read() {
        let wanted = |kind, target, when, every| FaultSpec { kind, target, when, every, lasts: None };
        let at = |ns| Some(FaultTime::At { ns });
        assert_eq!(
            read("kill:strategy-3@2s"),
            wanted(FaultKind::Kill, FaultTarget::Strategy(3), at(2_000_000_000), None)
        );
        let push = Some(FaultTime::Push { order: 1000, step: Step::Claimed });
        assert_eq!(
            read("hang:strategy-0@push:claimed:1000"),
            wanted(FaultKind::Hang, FaultTarget::Strategy(0), push, None)
        );
        let often = wanted(FaultKind::Kill, FaultTarget::Any, at(1_000_000_000), Some(Nanos(10_000_000)));
        assert_eq!(read("kill:any@1s every 10ms"), often);
        assert_eq!(read("kill@1s every=10ms"), often);
        assert_eq!(read(" kill@1s  every = 10 ms "), often);
        assert_eq!(read("scribble"), wanted(FaultKind::Scribble, FaultTarget::Any, None, None));
        assert_eq!(read("stop:launcher").target, FaultTarget::Launcher);
        let slow = FaultSpec {
            kind: FaultKind::Slow,
            target: FaultTarget::Venue(1),
            when: at(2_000_000_000),
            every: None,
            lasts: Some(Nanos(500_000_000)),
        };
        assert_eq!(read("slow:venue-1@2s for 500ms"), slow);
        assert_eq!(read("exit@push:entered:7"), read("exit@order:7"));
        assert_eq!(read("exit@order:4k").when, Some(FaultTime::Push { order: 4000, step: Step::Entered }));
        let several = Faults::parse("scribble; kill:any@1s every 10ms, flood:strategy-1@500ms;").unwrap();
        assert_eq!(several.text(), "scribble:any; kill:any@1s every 10ms; flood:strategy-1@500ms");
    }

    #[test]
    fn invalid_fault_error_shows_grammar() {
        assert!(wrong("kil:any").contains("did you mean kill?"));
        assert!(wrong("???").contains("KIND[:TARGET][@WHEN][ every DUR][ for DUR]"));
        assert!(wrong("").contains("no fault is named: expected KIND"));
        for target in ["strategy-", "strategy-x", "strategy--1", "strategy-99999", "strategy", "nobody"] {
            let message = wrong(&format!("kill:{target}@1s"));
            assert!(message.contains("strategy-N, any, engine, launcher"), "{message}");
        }
        assert!(wrong("kill@5").contains("has no unit"));
        assert!(wrong("kill@soon").contains("or write order:N or push:STEP:N"));
        assert!(wrong("kill@order:x").contains("the order's number: \"x\" is not a count"));
        assert!(wrong("kill@push:claimd:3").contains("not a step of a push: there are entered"));
        assert!(wrong("kill@push:claimed").contains("push:STEP:N"));
        assert!(wrong("kill@1s every 5").contains("every: \"5\" has no unit"));
        assert!(wrong("mute:venue-0@1s for 5").contains("for: \"5\" has no unit"));
        assert!(wrong("kill@1s every").contains("every: \"\" is not a time"));
        assert!(wrong("kill; hng").contains("did you mean hang?"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC*", near in "(kill|hang)?:?[a-z0-9-]{0,12}@?[a-z0-9:-]{0,12}( every)?=?[0-9ms]{0,4}") {
            let _ = Faults::parse(&text);
            let _ = Faults::parse(&near);
        }
    }
}
