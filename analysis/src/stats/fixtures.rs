//! Synthetic run outlines for tests.

use super::{MachineKey, RunOutline};
use protocol::plan::{Idle, Isolation, MemorySettings, Stamps, Technique, Threading};
use verdict::summary::Distribution;

/// Returns a synthetic outline of a run whose `rt_venue` has a median of `ns` nanoseconds, and a
/// p99 of twice that.
pub fn run(hash: usize, ns: f64) -> RunOutline {
    let figures = Distribution {
        count: 100_000,
        p50_ns: Some(ns as u64),
        p99_ns: Some(2 * ns as u64),
        ..Distribution::default()
    };
    let stage = Distribution { mean_ns: Some(ns), ..figures };
    let measures =
        [("rt_venue", figures), ("rt_venue_from_due", figures), ("submit", stage), ("completion", stage)];
    RunOutline {
        run: format!("run-{hash}-{ns}"),
        technique: Technique::default(),
        isolation: Isolation::Thread.into(),
        threading: Threading::Shared,
        idle: Idle::Spin,
        strategies: 1,
        venues: 4,
        capacity: 8192,
        stamps: Stamps::All,
        work_ns: 0,
        work_done_ns: None,
        machine: MachineKey {
            hostname: "a".into(),
            cpu_model: "a processor".into(),
            cores_allowed: vec![0, 1],
        },
        schedule_hash: format!("{hash:016x}"),
        oversubscribed: false,
        complete: true,
        valid: true,
        fit_for_latency: true,
        reasons: Vec::new(),
        unfired_faults: Vec::new(),
        offered_per_s: Some(20_000.0),
        achieved_per_s: Some(19_990.0),
        utilization: Some(0.1),
        returned: 100_000,
        full: Some(0),
        open_orders: None,
        cpu_ns: 1,
        startup_ns: 1,
        pss_bytes: None,
        page_faults: 0,
        context_switches: 0,
        core_rtt_ns: Some(100.0),
        core_rtt_after_ns: Some(100.0),
        clock_step_ns: 0.0,
        with_warm_up_p50_ns: None,
        measures: measures.map(|(name, figures)| (name.to_owned(), figures)).into(),
        levels: Vec::new(),
        memory: MemorySettings::default(),
        is_pinned: true,
        walk_ns: None,
        costs: Vec::new(),
        usage: Vec::new(),
    }
}
