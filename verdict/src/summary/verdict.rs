//! Decides whether a run is valid, and whether its latencies may be quoted.
//!
//! Each check covers one condition that makes latency figures worthless or weak, and returns one
//! line that names it and the remedy. A run without such a reason is fit. The thresholds are
//! judgments; they are named constants here so that they can be discussed in one place.

use super::{IncidentSummary, Measure, Summary, ThreadSummary};
use merge::figures::SAMPLES_FOR_P999;
use protocol::plan::{Idle, Role};
use record::fitness::preemption_reason;
use record::numbers::{count, counted, duration, percent, plain};
use record::run::{Outage, RunOutcome};

/// Minimum share of the offered rate that a run must achieve.
const MIN_RATE_SHARE: f64 = 0.99;
/// A sender whose send lag (p99) exceeds this many times rt_venue (p50) lags behind its schedule.
const SEND_LAG_FACTOR: u64 = 2;
/// Maximum difference of the clock's calibration before and over the run, in parts per million.
const MAX_DRIFT_PPM: f64 = 50.0;
/// Maximum relative change of the core-to-core round trip during the run.
const CORE_RTT_TOLERANCE: f64 = 0.25;
/// Maximum gap of an engine thread, in nanoseconds.
const MAX_GAP_NS: u64 = 1_000_000;
const MAX_NAMED: usize = 8;
/// Maximum share of a core that the launcher may take while orders are sent.
const MAX_LAUNCHER_SHARE: f64 = 0.1;
/// Utilization above which queueing dominates the latency, not the hand-offs.
const MAX_UTILIZATION: f64 = 0.9;

/// Returns every reason against quoting a run's latencies, the most severe first.
pub(super) fn reasons(summary: &Summary, warnings: &[String]) -> Vec<String> {
    let mut reasons = Vec::new();
    reasons.extend(outcome(summary));
    reasons.extend(invalid(summary));
    reasons.extend(lost(summary));
    reasons.extend(unfired_faults(summary));
    reasons.extend(deaths(summary));
    reasons.extend(additions(summary));
    reasons.extend(stayed_down(summary));
    reasons.extend(role_restarts(summary));
    reasons.extend(outages(summary));
    reasons.extend(distrusted(summary));
    reasons.extend(warnings.iter().map(|warning| one_line(warning)));
    reasons.extend(samples(summary));
    reasons.extend(offered(summary));
    reasons.extend(send_lag(summary));
    reasons.extend(full(summary));
    reasons.extend(utilization(summary));
    reasons.extend(affinity(summary));
    reasons.extend(gap(summary));
    reasons.extend(switches(summary));
    reasons.extend(launcher(summary));
    reasons.extend(faults(summary));
    reasons.extend(littles_law(summary));
    reasons.extend(drift(summary));
    reasons.extend(backwards(summary));
    reasons.extend(core_to_core_rtt(summary));
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
        "invalid: {}, first {}: look at the order with `inspect --order`",
        counted(total, "violation"),
        first.first
    ))
}

/// Orders that are missing although all are accounted for: a process died, or the run was
/// interrupted.
fn lost(summary: &Summary) -> Option<String> {
    let (valid, lost) = (summary.valid, summary.orders.lost);
    (!valid && summary.violations.is_empty()).then(|| {
        let were = if lost == 1 { "was" } else { "were" };
        let orders = counted(lost, "order");
        format!("invalid: {orders} {were} lost, and no incident explains all of them: what came back is not the whole")
    })
}

/// Faults that were asked for and never injected or cut short, up to a maximum.
fn unfired_faults(summary: &Summary) -> Vec<String> {
    let describe =
        |why: &String| format!("{why}: give it an earlier time or order, or let the run last longer");
    let more = "faults never fired or were cut short: see summary.json";
    first_named(summary.unfired_faults.iter().map(describe).collect(), more)
}

fn deaths(summary: &Summary) -> Option<String> {
    let containment = summary.containment.as_ref()?;
    let (deaths, strategies) = (containment.incidents, containment.strategies);
    if containment.by_operators == deaths {
        let ended = counted(deaths, "strategy");
        return Some(format!("operators ended {ended} during the run: figures have gaps"));
    }
    let often = if deaths > strategies { format!(" {} times", count(deaths)) } else { String::new() };
    let dead_strategies = counted(strategies, "strategy");
    Some(format!("{dead_strategies} died{often} during the run: figures are of the survivors and the gaps"))
}

/// Strategies that joined a run without any death.
fn additions(summary: &Summary) -> Option<String> {
    let is_alone = summary.containment.is_none() && !summary.lives.is_empty();
    is_alone.then(|| {
        let added = counted(summary.lives.len() as u64, "strategy");
        format!("operators added {added} during the run: figures are of the load before and after")
    })
}

/// Strategies that stayed down after failed restarts, by name up to a maximum.
fn stayed_down(summary: &Summary) -> Vec<String> {
    let describe =
        |incident: &IncidentSummary| Some(incident.stayed_down.as_ref()?.describe(incident.strategy));
    let all = summary.incidents.iter().filter_map(describe).collect();
    first_named(all, "strategies stayed down: see the incidents")
}

/// Returns the first of these reasons, each on one line, and the number of the others.
fn first_named(mut all: Vec<String>, others: &str) -> Vec<String> {
    let hidden = all.len().saturating_sub(MAX_NAMED);
    all.truncate(MAX_NAMED);
    all.iter_mut().for_each(|reason| *reason = one_line(reason));
    all.extend((hidden > 0).then(|| format!("{} more {others}", count(hidden as u64))));
    all
}

fn role_restarts(summary: &Summary) -> Option<String> {
    let times = summary.role_restarts.len() as u64;
    let often = if times == 1 { "once".into() } else { format!("{} times", count(times)) };
    (times > 0).then(|| {
        format!("a role of the engine was dead {often} and came back: figures hold the time until then")
    })
}

/// Venues that were down because their gateway died: each outage, up to a maximum.
fn outages(summary: &Summary) -> Vec<String> {
    let describe = |outage: &Outage| {
        let at = duration(outage.detected_ns);
        let unknown = count(outage.unknown);
        let until = outage.restarted_ns.map_or("to the end".into(), |ns| format!("to {}", duration(ns)));
        format!(
            "{}: down from {at} {until}: {unknown} orders open there ended as venue-unknown, those sent then as venue-down",
            outage.describe(&summary.plan)
        )
    };
    first_named(summary.outages.iter().map(describe).collect(), "outages: see summary.json")
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

/// Only if all orders are known: dead strategies send nothing, and orders of distrusted ones do not
/// count.
fn offered(summary: &Summary) -> Option<String> {
    let is_changed = summary.containment.is_some() || !summary.lives.is_empty();
    if is_changed || summary.processes.iter().any(|thread| thread.untrusted) {
        return None;
    }
    let (offered, achieved) = (summary.rate.offered_per_s?, summary.rate.achieved_per_s?);
    // Spare strategies that were not added send nothing.
    let trading = summary.plan.trading();
    let of_spares = trading.spares().filter_map(|spare| trading.orders.get(spare.as_usize())).sum::<u64>();
    let offered = offered * (1.0 - of_spares as f64 / trading.total_orders().max(1) as f64);
    (achieved < offered * MIN_RATE_SHARE).then(|| {
        format!(
            "offered {}/s but sent {}/s: the senders fell behind; lower the rate or give them cores",
            plain(offered),
            plain(achieved)
        )
    })
}

impl Summary {
    /// Returns the latency measure of the verdict: `rt_venue` from due if the p99 of send lag
    /// exceeds twice the median `rt_venue`, otherwise `rt_venue`. `rt_venue` leaves out how late an
    /// order was sent.
    pub fn headline(&self) -> Measure {
        if slow_senders(self).is_some() { Measure::RtVenueFromDue } else { Measure::RtVenue }
    }
}

/// Returns send lag (p99) and rt_venue (p50), in nanoseconds, if the senders lag behind their
/// schedule.
fn slow_senders(summary: &Summary) -> Option<(u64, u64)> {
    let (slip, typical) = (summary.send_lag.p99_ns?, summary.rt_venue.p50_ns?);
    (slip > typical.saturating_mul(SEND_LAG_FACTOR)).then_some((slip, typical))
}

fn send_lag(summary: &Summary) -> Option<String> {
    let (slip, typical) = slow_senders(summary)?;
    let cores: Vec<_> = summary.plan.threads.iter().map(|thread| thread.core).collect();
    let shares_core =
        |at: usize| cores[at].is_none() || cores.iter().filter(|core| **core == cores[at]).count() > 1;
    let remedy = if (0..cores.len()).any(shares_core) {
        "or give each strategy a core"
    } else {
        "or keep other work off their cores"
    };
    Some(format!(
        "senders lag: slip p99 is {}, rt_venue p50 {}: read rt_venue from due, {remedy}",
        duration(slip),
        duration(typical)
    ))
}

fn full(summary: &Summary) -> Option<String> {
    let worst = summary.processes.iter().max_by_key(|thread| thread.full)?;
    (summary.orders.full > 0).then(|| {
        format!(
            "{} found a ring full, most on {}: the wait counts as latency; raise --capacity or lower the rate",
            counted(summary.orders.full, "push"),
            worst.role
        )
    })
}

fn utilization(summary: &Summary) -> Option<String> {
    let used = summary.orchestrator_utilization.filter(|used| *used > MAX_UTILIZATION)?;
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

/// Only if the idle strategy never sleeps: otherwise a long gap is intended.
fn gap(summary: &Summary) -> Option<String> {
    let engine = summary.plan.threads.iter().zip(&summary.processes).filter(|(plan, _)| {
        let in_engine = plan.roles.iter().any(|role| !matches!(role, Role::Strategy(_)));
        in_engine && matches!(plan.idle, Idle::Spin | Idle::Yield)
    });
    let (_, worst) = engine.max_by_key(|(_, thread)| thread.longest_gap_ns)?;
    (worst.longest_gap_ns > MAX_GAP_NS).then(|| {
        format!(
            "{} was away for {} at a stretch: something else ran on its core; isolate it or use fewer threads",
            worst.role,
            duration(worst.longest_gap_ns)
        )
    })
}

/// Only if the thread never yields its core: the kernel counts `sched_yield` as an involuntary
/// switch.
fn switches(summary: &Summary) -> Option<String> {
    let spinning =
        summary.plan.threads.iter().zip(&summary.processes).filter(|(plan, _)| plan.idle == Idle::Spin);
    let rates = spinning.filter_map(|(_, thread)| {
        let running_ns = thread.running_ns.filter(|ns| *ns > 0)?;
        let rate = thread.involuntary_switches as f64 / running_ns as f64;
        Some((rate, preemption_reason(&thread.role, thread.involuntary_switches, running_ns)?))
    });
    rates.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, reason)| reason)
}

/// The launcher sleeps during a run. On two cores one that does not takes time from measured
/// threads.
fn launcher(summary: &Summary) -> Option<String> {
    let share = summary.launcher_share.filter(|share| *share > MAX_LAUNCHER_SHARE)?;
    Some(format!(
        "launcher busy: it took {} of a core while orders were sent: leave a core for it, or plan fewer processes",
        percent(Some(share))
    ))
}

fn faults(summary: &Summary) -> Option<String> {
    let worst = summary.processes.iter().max_by_key(|thread| thread.major_faults)?;
    (worst.major_faults > 0).then(|| {
        format!(
            "{} waited for a device on {}: memory is short; free some or plan a smaller run",
            worst.role,
            counted(worst.major_faults, "page fault")
        )
    })
}

/// Only for complete runs: an order that never returned is in flight forever and in no mean.
fn littles_law(summary: &Summary) -> Option<String> {
    let flight = &summary.in_flight;
    let (measured, law) = (flight.measured?, flight.littles_law?);
    let (difference, allowed) = (flight.difference?, flight.allowed?);
    // NaN agrees with nothing.
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

fn distrusted(summary: &Summary) -> Option<String> {
    let by_record = |role: &str| {
        summary.incidents.iter().any(|incident| {
            incident.quarantined.is_some() && role == format!("strategy-{}", incident.strategy)
        })
    };
    let doubted = || summary.processes.iter().filter(|thread| thread.untrusted && !by_record(&thread.role));
    let first = doubted().next()?;
    Some(format!(
        "the logs of {} prove nothing, first that of {}: its orders are in no figure; the notes say why",
        counted(doubted().count() as u64, "strategy"),
        first.role
    ))
}

fn drift(summary: &Summary) -> Option<String> {
    let drift = summary.clock.drift_ppm;
    // NaN is not steady either.
    (drift.is_nan() || drift.abs() > MAX_DRIFT_PPM).then(|| {
        format!("the clock drifted by {drift:.0} ppm during the run: make the run longer with --window")
    })
}

/// For a strategy that alone writes its log, its whole log is distrusted instead: see
/// [`distrusted`].
fn backwards(summary: &Summary) -> Option<String> {
    let worst = summary.processes.iter().max_by_key(|thread| thread.went_back)?;
    (worst.went_back > 0).then(|| {
        format!(
            "the clock of {} went back {}: the cores' counters differ; choose other cores with --cores, or see launcher doctor",
            worst.role,
            counted(worst.went_back, "time")
        )
    })
}

fn core_to_core_rtt(summary: &Summary) -> Option<String> {
    let (before, after) = (summary.core_to_core_rtt.before_ns?, summary.core_to_core_rtt.after_ns?);
    ((after - before).abs() > before * CORE_RTT_TOLERANCE).then(|| {
        format!(
            "the machine changed: core to core took {before:.0} ns before the run, {after:.0} ns after: run again",
        )
    })
}
