//! The verdict: may the latencies of this run be quoted?
//!
//! Each check looks at one thing that makes a latency figure worthless or weak, and says in one
//! line what is wrong and what to do next. A run without a reason against it is fit. The thresholds
//! are judgements; they stand here, named, so that they can be argued about in one place.

use super::figures::SAMPLES_FOR_P999;
use super::{IncidentSummary, Summary, ThreadSummary};
use crate::numbers::{count, duration, plain};
use crate::record::{Outage, RunOutcome};
use protocol::plan::{Idle, Role};

/// The share of the offered rate that a run must reach.
const RATE_REACHED: f64 = 0.99;
/// A sender whose slip (p99) is more than this many times rt_venue (p50) lags behind its schedule.
const SLIP_FACTOR: u64 = 2;
/// Involuntary context switches a second and thread: a kernel's own housekeeping is a few.
const SWITCHES_PER_S: f64 = 10.0;
/// By how much the clock may run differently before and over the run, in parts per million.
const DRIFT_PPM: f64 = 50.0;
/// By how much the core-to-core floor may change during the run.
const FLOOR_TOLERANCE: f64 = 0.25;
/// The longest time that an engine thread may be away from its rings, in nanoseconds.
const GAP_NS: u64 = 1_000_000;
/// Strategies that stayed down are named one by one, up to so many.
const MAX_NAMED: usize = 8;
/// The utilisation above which queueing, not the hand-offs, makes the latency.
const UTILISATION: f64 = 0.9;

/// Every reason not to quote the latencies, the gravest first.
pub(super) fn reasons(summary: &Summary, warnings: &[String]) -> Vec<String> {
    let mut reasons = Vec::new();
    reasons.extend(outcome(summary));
    reasons.extend(invalid(summary));
    reasons.extend(lost(summary));
    reasons.extend(deaths(summary));
    reasons.extend(stayed_down(summary));
    reasons.extend(comebacks(summary));
    reasons.extend(outages(summary));
    reasons.extend(distrusted(summary));
    reasons.extend(warnings.iter().map(|warning| one_line(warning)));
    reasons.extend(samples(summary));
    reasons.extend(offered(summary));
    reasons.extend(slip(summary));
    reasons.extend(full(summary));
    reasons.extend(utilisation(summary));
    reasons.extend(affinity(summary));
    reasons.extend(gap(summary));
    reasons.extend(switches(summary));
    reasons.extend(faults(summary));
    reasons.extend(little(summary));
    reasons.extend(drift(summary));
    reasons.extend(backwards(summary));
    reasons.extend(floor(summary));
    reasons
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn outcome(summary: &Summary) -> Option<String> {
    match &summary.outcome {
        RunOutcome::Complete => None,
        RunOutcome::Interrupted => {
            Some("interrupted before all orders were sent: let the run end, or plan a shorter one".into())
        }
        RunOutcome::Failed { process, pid, what } => Some(format!(
            "failed: {process} (pid {pid}): {}: the figures cover what went before",
            one_line(what)
        )),
    }
}

fn invalid(summary: &Summary) -> Option<String> {
    let first = summary.violations.first()?;
    let total = summary.violations.iter().fold(0, |sum: u64, violation| sum.saturating_add(violation.count));
    Some(format!(
        "invalid: {} violations, first {}: look at the order with `inspect --order`",
        count(total),
        first.first
    ))
}

/// Where the ledger holds and orders are missing all the same: a process died, or the run was
/// broken off.
fn lost(summary: &Summary) -> Option<String> {
    let (valid, lost) = (summary.valid, summary.orders.lost);
    (!valid && summary.violations.is_empty()).then(|| {
        format!("invalid: {} orders were lost, and no incident explains all of them: what came back is not the whole", count(lost))
    })
}

fn deaths(summary: &Summary) -> Option<String> {
    let containment = summary.containment.as_ref()?;
    let (deaths, strategies) = (containment.incidents, containment.strategies);
    let often = if deaths > strategies { format!(" {} times", count(deaths)) } else { String::new() };
    let many =
        if strategies == 1 { "1 strategy".into() } else { format!("{} strategies", count(strategies)) };
    Some(format!("{many} died{often} during the run: figures are of the survivors and the gaps"))
}

/// The strategies that were to be started again and were given up: each by name, as far as there is
/// room for them.
fn stayed_down(summary: &Summary) -> Vec<String> {
    let said = |incident: &IncidentSummary| Some(incident.stayed_down.as_ref()?.of(incident.strategy));
    let mut all: Vec<String> =
        summary.incidents.iter().filter_map(said).map(|said| one_line(&said)).collect();
    let hidden = all.len().saturating_sub(MAX_NAMED);
    all.truncate(MAX_NAMED);
    if hidden > 0 {
        all.push(format!("{} more strategies stayed down: see the incidents", count(hidden as u64)));
    }
    all
}

fn comebacks(summary: &Summary) -> Option<String> {
    let times = summary.comebacks.len() as u64;
    let often = if times == 1 { "once".into() } else { format!("{} times", count(times)) };
    (times > 0).then(|| {
        format!("a role of the engine was dead {often} and came back: figures hold the time until then")
    })
}

/// The venues that were down because their gateway died: each outage, as far as there is room for
/// them.
fn outages(summary: &Summary) -> Vec<String> {
    let said = |outage: &Outage| {
        let at = duration(outage.detected_ns);
        let unknown = count(outage.unknown);
        let until = outage.restarted_ns.map_or("to the end".into(), |ns| format!("to {}", duration(ns)));
        one_line(&format!(
            "{}: down from {at} {until}: {unknown} orders open there ended as venue-unknown, those sent then as venue-down",
            outage.in_words(&summary.plan)
        ))
    };
    let mut all: Vec<String> = summary.outages.iter().take(MAX_NAMED).map(said).collect();
    let hidden = summary.outages.len().saturating_sub(MAX_NAMED);
    if hidden > 0 {
        all.push(format!("{} more outages: see summary.json", count(hidden as u64)));
    }
    all
}

fn samples(summary: &Summary) -> Option<String> {
    let samples = summary.round_trip.count;
    (samples < SAMPLES_FOR_P999).then(|| {
        format!(
            "{} orders came back, a p99.9 needs {}: send more orders",
            count(samples),
            count(SAMPLES_FOR_P999)
        )
    })
}

/// Only where everybody's orders are known: the dead send nothing, and what a strategy says that is
/// not believed does not count.
fn offered(summary: &Summary) -> Option<String> {
    if summary.containment.is_some() || summary.processes.iter().any(|thread| thread.untrusted) {
        return None;
    }
    let (offered, achieved) = (summary.rate.offered_per_s?, summary.rate.achieved_per_s?);
    (achieved < offered * RATE_REACHED).then(|| {
        format!(
            "offered {}/s but sent {}/s: the senders fell behind; lower the rate or give them cores",
            plain(offered),
            plain(achieved)
        )
    })
}

fn slip(summary: &Summary) -> Option<String> {
    let (slip, typical) = (summary.slip.p99_ns?, summary.rt_venue.p50_ns?);
    (slip > typical.saturating_mul(SLIP_FACTOR)).then(|| {
        format!(
            "senders lag: slip p99 is {}, rt_venue p50 {}: read rt_venue from due, or give each strategy a core",
            duration(slip),
            duration(typical)
        )
    })
}

fn full(summary: &Summary) -> Option<String> {
    let worst = summary.processes.iter().max_by_key(|thread| thread.full)?;
    (summary.orders.full > 0).then(|| {
        format!(
            "{} pushes found a ring full, most on {}: the wait counts as latency; raise --capacity or lower the rate",
            count(summary.orders.full),
            worst.role
        )
    })
}

fn utilisation(summary: &Summary) -> Option<String> {
    let used = summary.orchestrator_utilisation.filter(|used| *used > UTILISATION)?;
    Some(format!(
        "the orchestrator was busy {:.0}% of its time: orders queue for it; lower the rate or --work",
        used * 100.0
    ))
}

fn affinity(summary: &Summary) -> Option<String> {
    let pairs = || summary.plan.threads.iter().zip(&summary.processes);
    let differs = |pair: &(_, &ThreadSummary)| {
        let (plan, thread): &(&protocol::plan::ThreadPlan, _) = pair;
        plan.core.is_some() && plan.core != thread.core && !thread.untrusted
    };
    let (plan, thread) = pairs().find(differs)?;
    let found = thread.core.map_or("nowhere".into(), |core| format!("on core {core}"));
    Some(format!(
        "{} of {} threads not where they were planned: {} was to be on core {}, is pinned {found}: see `doctor`",
        pairs().filter(differs).count(),
        summary.processes.len(),
        thread.role,
        plan.core.unwrap_or(0),
    ))
}

/// Only where the idle strategy never sleeps: otherwise a long gap is what was asked for.
fn gap(summary: &Summary) -> Option<String> {
    let engine = summary.plan.threads.iter().zip(&summary.processes).filter(|(plan, _)| {
        let in_engine = plan.roles.iter().any(|role| !matches!(role, Role::Strategy(_)));
        in_engine && matches!(plan.idle, Idle::Spin | Idle::Yield)
    });
    let (_, worst) = engine.max_by_key(|(_, thread)| thread.longest_gap_ns)?;
    (worst.longest_gap_ns > GAP_NS).then(|| {
        format!(
            "{} was away for {} at a stretch: something else ran on its core; isolate it or use fewer threads",
            worst.role,
            duration(worst.longest_gap_ns)
        )
    })
}

/// Only where the thread never gives its core away: the kernel counts `sched_yield` among the
/// involuntary switches.
fn switches(summary: &Summary) -> Option<String> {
    let per_s = |thread: &ThreadSummary| {
        let seconds = thread.running_ns.filter(|ns| *ns > 0)? as f64 / 1e9;
        // One or two in a short run are no rate.
        Some(thread.involuntary_switches as f64 / seconds.max(1.0))
    };
    let spinning =
        summary.plan.threads.iter().zip(&summary.processes).filter(|(plan, _)| plan.idle == Idle::Spin);
    let rates = spinning.filter_map(|(_, thread)| Some((thread, per_s(thread)?)));
    let (worst, rate) = rates.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    (rate > SWITCHES_PER_S).then(|| {
        format!(
            "{} was preempted {} times a second: other threads want its core; isolate it or plan fewer threads",
            worst.role,
            plain(rate)
        )
    })
}

fn faults(summary: &Summary) -> Option<String> {
    let worst = summary.processes.iter().max_by_key(|thread| thread.major_faults)?;
    (worst.major_faults > 0).then(|| {
        format!(
            "{} waited for a device on {} page faults: memory is short; free some or plan a smaller run",
            worst.role,
            count(worst.major_faults)
        )
    })
}

/// Only for complete runs: an order that never came back is in flight for ever and in no mean.
fn little(summary: &Summary) -> Option<String> {
    let flight = &summary.in_flight;
    let (measured, law) = (flight.measured?, flight.littles_law?);
    let (difference, allowed) = (flight.difference?, flight.allowed?);
    // Not a number agrees with nothing.
    let agrees = difference.abs() <= allowed;
    (!agrees && summary.outcome == RunOutcome::Complete).then(|| {
        format!(
            "{} orders in flight by {} samples of the counters, {} by Little's law, {} more or less were allowed: stamps and \
             counters disagree; run again and report it",
            plain(measured),
            count(flight.samples),
            plain(law),
            plain(allowed)
        )
    })
}

/// What a strategy wrote about itself and nobody believes.
fn distrusted(summary: &Summary) -> Option<String> {
    let by_record = |role: &str| {
        summary.incidents.iter().any(|incident| {
            incident.quarantined.is_some() && role == format!("strategy-{}", incident.strategy)
        })
    };
    let doubted = || summary.processes.iter().filter(|thread| thread.untrusted && !by_record(&thread.role));
    let first = doubted().next()?;
    Some(format!(
        "the logs of {} strategies prove nothing, first that of {}: its orders are in no figure; the notes say why",
        doubted().count(),
        first.role
    ))
}

fn drift(summary: &Summary) -> Option<String> {
    let drift = summary.clock.drift_ppm;
    // Not a number is not steady either.
    (drift.is_nan() || drift.abs() > DRIFT_PPM).then(|| {
        format!("the clock drifted by {drift:.0} ppm during the run: use --clock monotonic or a longer run")
    })
}

/// Of a strategy whose log is its own affair that is a reason to believe nothing of it: see
/// [`distrusted`].
fn backwards(summary: &Summary) -> Option<String> {
    let worst = summary.processes.iter().max_by_key(|thread| thread.went_back)?;
    (worst.went_back > 0).then(|| {
        format!(
            "the clock of {} went back {} times: the cores' counters differ; use --clock monotonic",
            worst.role,
            count(worst.went_back)
        )
    })
}

fn floor(summary: &Summary) -> Option<String> {
    let (before, after) = (summary.floor.before_ns?, summary.floor.after_ns?);
    ((after - before).abs() > before * FLOOR_TOLERANCE).then(|| {
        format!(
            "the machine changed: core to core took {before:.0} ns before the run, {after:.0} ns after: run again",
        )
    })
}
