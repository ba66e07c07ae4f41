//! Validates faults against a run, and puts them into the plan.

use super::resolved::Resolved;
use crate::config::{FaultSpec, UsageError};
use protocol::faults::HOLD_STEPS;
use protocol::faults::{Draws, is_by_signal};
use protocol::index::{GatewayIndex, StrategyIndex, VenueIndex};
use protocol::plan::{
    ExchangePlacement, Fault, FaultKind, FaultTarget, FaultTime, Isolation, OnDeath, Placement, Plan, Trading,
};
use record::units::Nanos;
use shm::ring::Step;

const MAX_FAULTS: usize = 32;
/// Minimum interval of a repeated fault, in nanoseconds.
const MIN_EVERY_NS: u64 = 1_000_000;
/// Time from one step of a disturbance to the next, unless told.
const STEP_EVERY_NS: u64 = 500_000;
/// Earliest default time of a fault, in nanoseconds after the start.
const MIN_DEFAULT_NS: u64 = 100_000_000;

/// Returns an error for faults that a run of this plan cannot have.
pub(super) fn check(faults: &[FaultSpec], plan: &Plan) -> Result<(), UsageError> {
    if faults.len() > MAX_FAULTS {
        return Err(UsageError(format!(
            "--fault: {} faults are too many, give at most {MAX_FAULTS}",
            faults.len()
        )));
    }
    faults.iter().try_for_each(|fault| {
        let checked = check_one(fault, plan).and_then(|()| check_process(fault, plan));
        checked.map_err(|what| UsageError(format!("--fault \"{fault}\": {what}")))
    })
}

/// Checks a venue's fault: from a time on, for a while or until the end.
fn check_venue(fault: &FaultSpec, venues: u16) -> Result<(), String> {
    if !fault.kind.is_of_venue() {
        return Err(match fault.target {
            FaultTarget::Venue(_) => format!(
                "fault `{}` does not apply to venues; use slow, disconnect, reject, mute or garble, or choose a strategy",
                fault.kind
            ),
            _ => {
                "`for DURATION` is only valid for faults of venues and for disturbances.\nLeave it out, or use slow, disconnect, reject, mute, garble or a storm"
                    .into()
            }
        });
    }
    let FaultTarget::Venue(index) = fault.target else {
        return Err(format!(
            "{} is what a venue does.\nName one, for example {}:venue-0",
            fault.kind, fault.kind
        ));
    };
    if index >= VenueIndex(venues) {
        return Err(format!(
            "the last venue is venue-{}.\nName one of them, or run more --venues",
            venues.saturating_sub(1)
        ));
    }
    if matches!(fault.when, Some(FaultTime::Push { .. })) {
        return Err("a venue pushes no orders.\nGive a time, for example @2s".into());
    }
    if fault.every.is_some() {
        return Err("every is for kill and stop.\nLeave it out; for DUR says how long it lasts".into());
    }
    Ok(())
}

fn is_of_strategy(target: FaultTarget) -> bool {
    matches!(target, FaultTarget::Strategy(_) | FaultTarget::Any)
}

fn check_one(fault: &FaultSpec, plan: &Plan) -> Result<(), String> {
    let (technique, strategies) = (plan.technique, plan.trading().strategies);
    let signal = matches!(fault.kind, FaultKind::Kill | FaultKind::Stop);
    let is_disturbance = fault.kind.is_disturbance();
    if is_disturbance && matches!(fault.when, Some(FaultTime::Push { .. })) {
        return Err(format!(
            "{} goes on from a time on, not within a push.\nGive a time, for example @1s",
            fault.kind
        ));
    }
    if fault.kind.is_of_venue()
        || matches!(fault.target, FaultTarget::Venue(_))
        || fault.lasts.is_some() && !is_disturbance
    {
        return check_venue(fault, plan.trading().venues);
    }
    if let FaultTarget::Strategy(index) = fault.target
        && index >= StrategyIndex(strategies)
    {
        let existing = match strategies {
            1 => "there is only strategy-0".into(),
            more => format!("there are strategy-0 to strategy-{}", more - 1),
        };
        return Err(format!("{existing}.\nName one of them, or run more --strategies"));
    }
    if !is_of_strategy(fault.target) && !signal {
        return Err("only kill and stop are for engine and launcher, and for exchanges and gateways.\n\
                    Use one of these, or choose a strategy"
            .into());
    }
    if !is_of_strategy(fault.target) && matches!(fault.when, Some(FaultTime::Push { .. })) {
        return Err("engine and launcher send no orders, nor do exchanges and gateways.\nGive a time, for example @2s".into());
    }
    if fault.kind == FaultKind::HoldClaim && !technique.steps().iter().any(|step| HOLD_STEPS.contains(step)) {
        return Err(format!(
            "`hold` needs a technique with separate claim and write steps; {technique} has none.\nUse another --technique"
        ));
    }
    if let Some(FaultTime::Push { step, order }) = fault.when {
        if fault.every.is_some() {
            return Err("every is for a fault at a time, the order comes once.\n\
                        Leave it out, or give a time, for example @1s"
                .into());
        }
        if !technique.steps().contains(&step) {
            let existing: Vec<&str> = technique.steps().iter().map(|step| step.name()).collect();
            return Err(format!(
                "a push of {technique} has no step {step}, it has {}.\nUse one of these, or another --technique",
                existing.join(", ")
            ));
        }
        if fault.kind == FaultKind::HoldClaim && step == Step::Published {
            return Err(format!(
                "what is published is not held back any more.\nUse @order:{order} or an earlier step"
            ));
        }
        if matches!(fault.kind, FaultKind::Flood | FaultKind::Lose) && step != Step::Entered {
            return Err(format!("{} begins between two pushes.\nUse @order:{order} or a time", fault.kind));
        }
    }
    match fault.every {
        Some(Nanos(0)) if is_disturbance => Err("every 0: give at least 1ns".into()),
        Some(_) if is_disturbance => Ok(()),
        Some(_) if !signal => Err(format!(
            "a strategy does {} to itself and is not the same afterwards: only kill and stop come again.\n\
             Leave every out, or use one of these",
            fault.kind
        )),
        Some(Nanos(every)) if every < MIN_EVERY_NS => {
            Err(format!("every {}: give at least {}", Nanos(every), Nanos(MIN_EVERY_NS)))
        }
        _ => Ok(()),
    }
}

/// Refuses faults of exchanges and gateways that do not exist or have no process of their own.
fn check_process(fault: &FaultSpec, plan: &Plan) -> Result<(), String> {
    let trading = plan.trading();
    match fault.target {
        FaultTarget::Exchange(venue) if venue >= VenueIndex(trading.venues) || !trading.is_book(venue) => {
            Err(format!(
                "venue-{venue} is not an exchange.\nName one that is, or use --venue {}",
                Trading::BOOK
            ))
        }
        FaultTarget::Exchange(_) if trading.exchange != ExchangePlacement::Process => {
            Err("the exchange is part of its gateway's process.\nUse --exchange process, or choose engine"
                .into())
        }
        FaultTarget::Gateway(_) if plan.placement == Placement::Engine => Err(
            "the gateways are part of the engine's process.\nUse --process each-gateway, or choose engine"
                .into(),
        ),
        FaultTarget::Gateway(index) if index >= GatewayIndex(trading.gateways()) => Err(format!(
            "the last gateway is gateway-{}.\nName one of them, or run more --venues or --credentials",
            trading.gateways().saturating_sub(1)
        )),
        _ => Ok(()),
    }
}

/// Returns why a fault never fires in a run, or may not; `None` if it will.
fn why_unfired(fault: &Fault, plan: &Plan, resolved: &Resolved) -> Option<String> {
    let trading = plan.trading();
    if let FaultTarget::Strategy(strategy) = fault.target
        && trading.is_spare(strategy)
    {
        return Some(format!(
            "strategy-{strategy} is a spare, it fires only once launcher add has started it"
        ));
    }
    match (fault.when, fault.target) {
        (FaultTime::At { ns }, _) => {
            let window_ns = resolved.input.window_ns();
            let late = format!("it comes after the window of {}, and may never fire", Nanos(window_ns));
            (window_ns > 0 && ns >= window_ns).then(|| format!("{late}; give an earlier time"))
        }
        (FaultTime::Push { order, .. }, FaultTarget::Strategy(strategy)) if resolved.is_on_schedule() => {
            let orders = *trading.orders.get(usize::from(strategy.0))?;
            (order >= orders).then(|| {
                format!("strategy-{strategy} sends {orders} orders, counted from 0, so it cannot fire; give an earlier one")
            })
        }
        _ => None,
    }
}

/// Why a run ends with a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunEnd {
    /// Each death ends it (`--on-death stop`).
    Stop,
    /// The engine or an exchange ends and is not restarted.
    Role,
    Launcher,
}

/// Returns why a run ends with a fault; `None` if it goes on, or that is not known before.
fn run_end(fault: &Fault, plan: &Plan) -> Option<RunEnd> {
    let lives = fault.kind.is_of_venue() || fault.kind.is_disturbance() || is_survivable(fault.kind);
    let (is_back, end) = match fault.target {
        FaultTarget::Launcher => (fault.kind != FaultKind::Kill, RunEnd::Launcher),
        FaultTarget::Venue(_) => (true, RunEnd::Role),
        FaultTarget::Engine => (plan.engine_is_restartable(), RunEnd::Role),
        FaultTarget::Exchange(_) => (plan.exchanges_are_restartable(), RunEnd::Role),
        FaultTarget::Gateway(_) => (plan.can_lose_gateways(), RunEnd::Stop),
        FaultTarget::Strategy(_) | FaultTarget::Any => (plan.on_death != OnDeath::Stop, RunEnd::Stop),
    };
    (!lives && !is_back).then_some(end)
}

/// Returns `true` if a strategy with that fault goes on, or is only quarantined.
const fn is_survivable(kind: FaultKind) -> bool {
    matches!(
        kind,
        FaultKind::Scribble
            | FaultKind::Flood
            | FaultKind::Lose
            | FaultKind::HoldClaim
            | FaultKind::ForgeHeader
            | FaultKind::Jam
    )
}

/// Returns the plan's faults with all defaults filled in. Only the victim of a signal fault stays
/// open: it is drawn among the running strategies when the fault fires.
pub(super) fn plan(resolved: &Resolved) -> Vec<Fault> {
    let default = FaultTime::At { ns: (resolved.input.window_ns() / 10).max(MIN_DEFAULT_NS) };
    let mut draws = Draws::new(resolved.settings.seed().0, Draws::PLANNING);
    let strategies = resolved.plan.trading().strategies.into();
    let fault = |spec: &FaultSpec| {
        let FaultSpec { kind, target, when, every, lasts } = *spec;
        let when = when.unwrap_or(default);
        let mut fault = Fault {
            kind,
            target,
            when,
            every_ns: every.map(|every| every.0),
            lasts_ns: lasts.map(|lasts| lasts.0),
        };
        // A disturbance ends with the window: the orders that it delayed come back undisturbed.
        if let FaultTime::At { ns } = fault.when
            && kind.is_disturbance()
        {
            let rest = resolved.input.window_ns().saturating_sub(ns);
            fault.lasts_ns = Some(fault.lasts_ns.map_or(rest, |lasts| lasts.min(rest)));
            fault.every_ns = fault.every_ns.or(Some(STEP_EVERY_NS));
        }
        if fault.target == FaultTarget::Any && !is_by_signal(&fault) {
            // The strategy does it itself, so it must be set before the start.
            fault.target = FaultTarget::Strategy(StrategyIndex(draws.below(strategies) as u16));
        }
        fault
    };
    resolved.settings.fault().0.iter().map(fault).collect()
}

/// Returns what a user should know of the faults before the run: those that cannot fire, those that
/// end it, and what they do to strategies that are threads.
pub(super) fn notes(plan: &Plan, resolved: &Resolved) -> Vec<String> {
    let never = |fault: &Fault| {
        let why = why_unfired(fault, plan, resolved)?;
        Some(format!("{}: {why}.", FaultSpec::from(fault)))
    };
    let mut notes: Vec<String> = plan.faults.iter().filter_map(never).collect();
    let fires = |fault: &&Fault| why_unfired(fault, plan, resolved).is_none();
    for (end, remedy) in [
        (RunEnd::Stop, "give --on-death continue or restart to go on"),
        (
            RunEnd::Role,
            "engine and exchanges come back only with --venue book, --exchange process, a --journal and --on-death restart",
        ),
        (RunEnd::Launcher, "its reaper cleans up"),
    ] {
        let ending = plan.faults.iter().filter(fires).filter(|fault| run_end(fault, plan) == Some(end));
        let names: Vec<String> = ending.map(|fault| FaultSpec::from(fault).to_string()).collect();
        if let [first, others @ ..] = names.as_slice() {
            let more = match others.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            notes.push(format!("The run ends with the fault {first}{more}: {remedy}."));
        }
    }
    let is_of_thread = |target| match target {
        FaultTarget::Strategy(index) => plan.isolation.kind_of(index).is_thread(),
        _ => is_of_strategy(target),
    };
    // A thread with a protection key ends alone by whatever it does itself.
    let has_key = |target| match target {
        FaultTarget::Strategy(index) => plan.isolation.kind_of(index) == Isolation::Keys,
        _ => !plan.isolation.has(Isolation::Thread),
    };
    let ends_the_process = |fault: &Fault| {
        let lives = matches!(
            fault.kind,
            FaultKind::Hang
                | FaultKind::Panic
                | FaultKind::Scribble
                | FaultKind::Flood
                | FaultKind::Forge
                | FaultKind::Feign
                | FaultKind::Lose
                | FaultKind::HoldClaim
                | FaultKind::ForgeHeader
                | FaultKind::Jam
                | FaultKind::WildRing
                | FaultKind::WildLog
                | FaultKind::WildHeap
                | FaultKind::WildEngine
                | FaultKind::ReadOthers
        );
        let lives =
            lives || has_key(fault.target) && !matches!(fault.kind, FaultKind::Kill | FaultKind::Stop);
        is_of_thread(fault.target) && !lives && !fault.kind.is_disturbance()
    };
    let some_do = plan.faults.iter().any(ends_the_process);
    if plan.isolation.has_threads() && some_do {
        let level = plan
            .isolation
            .distinct()
            .find(|level| level.kind().is_thread())
            .unwrap_or(Isolation::Thread.into());
        notes.push(
            format!("Strategies of level {level} and the engine are one process here: what ends or stops one of them ends or stops all.")
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{planned, refuses, shown};
    use super::*;
    use crate::host::{Machine, fake};

    fn machine() -> Machine {
        fake::plain(2).machine()
    }

    fn faults(settings_text: &str) -> Vec<Fault> {
        planned(settings_text, &machine()).unwrap().1.faults
    }

    #[test]
    fn impossible_fault_is_named_with_remedy() {
        for (settings_text, wanted) in [
            (
                "strategies=2 fault=kill:strategy-2@1s",
                "--fault \"kill:strategy-2@1s\": there are strategy-0 to",
            ),
            ("strategies=1 fault=kill:strategy-2", "there is only strategy-0"),
            ("fault=hang:engine@1s", "only kill and stop are for engine and launcher"),
            ("fault=segv:launcher", "choose a strategy"),
            ("fault=kill:gateway-0", "the gateways are part of the engine's process"),
            ("venues=2 process=each-gateway fault=kill:gateway-2", "the last gateway is gateway-1"),
            ("process=gateways fault=hang:gateway-0", "only kill and stop are for"),
            ("fault=kill:engine@order:5", "Give a time"),
            ("fault='kill@order:5 every 1s'", "every is for a fault at a time"),
            ("fault='hang@1s every 1s'", "only kill and stop come again"),
            ("fault='kill@1s every 999us'", "give at least 1ms"),
            ("fault=flood@push:published:5", "Use @order:5"),
            ("fault=hold@push:published:5", "Use @order:5"),
            ("technique=pipe fault=hold", "separate claim and write steps; pipe has none"),
            ("fault=slow", "Name one, for example slow:venue-0"),
            ("venues=2 fault=mute:venue-2", "the last venue is venue-1"),
            ("fault=kill:venue-0", "fault `kill` does not apply to venues"),
            ("fault=mute:venue-0@order:3", "a venue pushes no orders"),
            ("fault='mute:venue-0@1s every 1s'", "for DUR says how long"),
            (
                "fault='kill@1s for 1s'",
                "`for DURATION` is only valid for faults of venues and for disturbances",
            ),
            (&format!("fault={}", ["kill"; 33].join(";")), "give at most 32"),
            (
                "fault=kill@push:linked:3",
                "--fault \"kill:any@push:linked:3\": a push of spsc-mux has no step linked, it has entered, \
                 half-written, written, published.\nUse one of these, or another --technique",
            ),
            ("technique=pipe fault=kill@push:written:3", "it has entered, published"),
        ] {
            refuses(settings_text, wanted, &machine());
        }
        assert_eq!(faults("technique=linked fault=kill@push:linked:3").len(), 1);
    }

    #[test]
    fn plan_notes_effect_of_faults() {
        for (settings_text, note, is_there) in [
            ("isolation=thread fault='kill:any@1s; hang'", "one process here", true),
            ("isolation=thread fault='hang; kill:launcher'", "one process here", false),
            ("isolation=thread+process strategies=2 fault=kill:strategy-0", "one process here", true),
            ("isolation=thread+process strategies=2 fault=kill:strategy-1", "one process here", false),
            ("window=1s fault=kill@2s", "after the window of 1s, and may never fire", true),
            ("window=1s fault=kill@2s", "The run ends", false),
            (
                "strategies=2 orders=1000 fault=kill:strategy-1@order:500",
                "kill:strategy-1@order:500: strategy-1 sends 500 orders",
                true,
            ),
            ("strategies=2 orders=1000 fault=kill:strategy-1@order:499", "cannot fire", false),
            ("spare_strategies=1 on_death=restart fault=kill:strategy-1@1s", "strategy-1 is a spare", true),
            ("fault='segv@1s; hang@2s'", "The run ends with the fault segv:strategy-0@1s and 1 more", true),
            ("fault=kill:strategy-0@1s", "give --on-death continue or restart", true),
            ("fault=kill:strategy-0@1s on_death=continue", "The run ends with the fault", false),
            ("fault=flood:strategy-0@1s", "The run ends with the fault", false),
            ("fault=fork-storm:strategy-0@1s", "The run ends with the fault", false),
            ("fault=kill:engine@1s on_death=restart", "The run ends with the fault kill:engine@1s", true),
            (
                "venue=book exchange=process journal=process on_death=restart fault=kill:engine@1s",
                "The run ends with the fault",
                false,
            ),
            ("fault=kill:launcher@1s", "The run ends with the fault kill:launcher@1s: its reaper", true),
        ] {
            let text = shown(settings_text, &machine());
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(text.contains(note), is_there, "{settings_text}: {text}");
        }
    }

    #[test]
    fn default_fault_time_follows_window() {
        for (settings_text, ms) in [
            ("window=10s", 1_000),
            ("window=200ms", 100),
            ("window=10s arrivals=stress", 100),
            ("schedule=flow.csv", 100),
        ] {
            let fault = faults(&format!("{settings_text} fault=kill"))[0];
            assert_eq!(fault.when, FaultTime::At { ns: ms * 1_000_000 }, "{settings_text}");
        }
    }

    #[test]
    fn self_inflicted_fault_target_is_drawn_in_plan() {
        let drawn = |seed: u64| {
            let settings_text = format!(
                "strategies=200 seed={seed} fault='hang; kill; kill@order:3; stop:engine; exit@order:20'"
            );
            faults(&settings_text).iter().map(|fault| fault.target).collect::<Vec<_>>()
        };
        let targets = drawn(1);
        for place in [0, 2, 4] {
            assert!(matches!(targets[place], FaultTarget::Strategy(_)));
        }
        assert_eq!(targets[1], FaultTarget::Any, "the launcher draws it");
        assert_eq!(targets[3], FaultTarget::Engine);
        assert_eq!(targets, drawn(1));
        assert!((2..10).any(|seed| drawn(seed) != targets));
    }
}
