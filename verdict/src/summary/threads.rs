//! Costs and disturbances of each thread, from its status block; for a restarted strategy, those of
//! its last incarnation.

use super::containment::IncidentSummary;
use merge::MergedRun;
use merge::cause::GapTotal;
use merge::figures::to_ns;
use protocol::counters::AgentCounters;
use protocol::labels::{FULL, PROTOCOL_ERRORS};
use protocol::plan::Plan;
use protocol::stamps::KernelEvents;
use protocol::status::StatusField;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One thread of a run: its CPU time, context switches, page faults, gaps and sleeps, and the
/// counters of its agents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadSummary {
    /// Name of the thread: its role, or `engine` for orchestrator and gateways on one thread.
    pub role: String,
    /// Name of the thread's process.
    pub process: String,
    /// Id of the thread's process.
    pub pid: u32,
    /// Core that the thread is pinned to, by its affinity mask as read back; null if not pinned.
    pub core: Option<u32>,
    /// Number of records in the thread's log.
    pub records: u64,
    /// Number of voluntary context switches of the thread.
    pub voluntary_switches: u64,
    /// Number of involuntary context switches of the thread.
    pub involuntary_switches: u64,
    /// Number of the thread's page faults that were served from memory.
    pub minor_faults: u64,
    /// Number of the thread's page faults that read from a device.
    pub major_faults: u64,
    /// CPU time of the thread in nanoseconds, including spinning.
    pub cpu_ns: u64,
    /// Longest time between the starts of two of the thread's duty cycles, in nanoseconds.
    pub longest_gap_ns: u64,
    /// Number of gaps of more than 3 µs in the thread's duty cycles, up to the capacity of its log.
    #[serde(default)]
    pub gaps: u64,
    /// Number of the thread's gaps in which the kernel had preempted it.
    #[serde(default)]
    pub gaps_preempted: u64,
    /// The thread's gaps by what took the core away, without empty classes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gap_classes: Vec<GapTotal>,
    /// Number of gaps that the thread's log dropped, shorter ones first.
    #[serde(default)]
    pub gaps_dropped: u64,
    /// Total length of the dropped gaps, in nanoseconds.
    #[serde(default)]
    pub gaps_dropped_ns: u64,
    /// Number of sleeps of more than 3 µs by the thread's idle strategy that ended with work, up to
    /// the capacity of its log.
    #[serde(default)]
    pub sleeps: u64,
    /// Number of sleeps that the thread's log dropped, shorter ones first.
    #[serde(default)]
    pub sleeps_dropped: u64,
    /// Total length of the dropped sleeps, in nanoseconds.
    #[serde(default)]
    pub sleeps_dropped_ns: u64,
    /// Number of the thread's duty cycles.
    pub cycles: u64,
    /// Time from the thread's first to its last duty cycle, in nanoseconds; null if it did not end.
    pub running_ns: Option<u64>,
    /// Share of the thread's running time in duty cycles with work, 0 to 1.
    #[serde(rename = "utilisation")]
    pub utilization: Option<f64>,
    /// Number of heap allocations after the start; `None` if the program does not count them.
    pub allocations: Option<u64>,
    /// Number of pushes of the thread's agents that found a ring full.
    pub full: u64,
    /// Number of invalid values that the thread's agents read from peers.
    pub peer_faults: u64,
    /// Number of stamps in the thread's log that precede their predecessor: its clock went back.
    #[serde(default)]
    pub went_back: u64,
    /// Counters of the thread's agents.
    #[serde(default)]
    pub agents: Vec<AgentSummary>,
    /// Whether the values above are unknown: the strategy was quarantined and may have overwritten
    /// its log.
    #[serde(default)]
    pub untrusted: bool,
}

impl ThreadSummary {
    /// Returns the number of restarts of the thread's strategy; the figures in the fields of this
    /// summary are of the strategy's last incarnation.
    pub fn restarts(&self, incidents: &[IncidentSummary]) -> usize {
        let own = |incident: &&IncidentSummary| self.role == format!("strategy-{}", incident.strategy);
        incidents.iter().filter(own).filter(|incident| incident.repair_to_restart_ns.is_some()).count()
    }
}

/// The counters of one agent, which is one role, such as a gateway, that a thread runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentSummary {
    /// Role of the agent: `orchestrator`, `gateway-1`.
    pub role: String,
    /// The agent's counters by name; `protocol::counters` has their units.
    pub counters: BTreeMap<String, u64>,
}

fn agent(counted: AgentCounters) -> AgentSummary {
    let counters = counted.labeled().map(|(label, value)| (label.name.to_owned(), value));
    AgentSummary { role: counted.role().to_string(), counters: counters.collect() }
}

/// Summarizes every thread of a merged run, in the order of the plan.
pub(super) fn summarize(plan: &Plan, merged: &MergedRun, ns_per_tick: f64) -> Vec<ThreadSummary> {
    let process_of = |thread: usize| {
        let owner = plan.processes.iter().find(|process| process.threads.contains(&(thread as u32)));
        owner.map_or_else(String::new, |process| process.name.clone())
    };
    let threads = merged.threads.iter().enumerate().map(|(index, log)| {
        let (status, roles) = (&log.status, plan.threads[index].roles.as_slice());
        let (started, ended) = (status.get(StatusField::StartedTicks), status.get(StatusField::EndedTicks));
        let running = ended.checked_sub(started).filter(|ticks| *ticks > 0 && started > 0);
        let [gaps_dropped, sleeps_dropped] = status.dropped_gaps(plan.threads[index].sleep_records);
        ThreadSummary {
            role: log.name.clone(),
            process: process_of(index),
            pid: u32::try_from(status.get(StatusField::Pid)).unwrap_or(0),
            core: status.core(),
            records: log.records,
            voluntary_switches: status.get(StatusField::VoluntarySwitches),
            involuntary_switches: status.get(StatusField::InvoluntarySwitches),
            minor_faults: status.get(StatusField::MinorFaults),
            major_faults: status.get(StatusField::MajorFaults),
            cpu_ns: status.get(StatusField::CpuNs),
            longest_gap_ns: to_ns(status.get(StatusField::LongestGapTicks), ns_per_tick),
            gaps: log.gaps.len() as u64,
            gaps_preempted: log
                .gaps
                .iter()
                .filter(|gap| gap.events.has_counted(KernelEvents::INVOLUNTARY))
                .count() as u64,
            gap_classes: Vec::new(),
            gaps_dropped: gaps_dropped.count,
            gaps_dropped_ns: to_ns(gaps_dropped.ticks, ns_per_tick),
            sleeps: log.sleeps.len() as u64,
            sleeps_dropped: sleeps_dropped.count,
            sleeps_dropped_ns: to_ns(sleeps_dropped.ticks, ns_per_tick),
            cycles: status.get(StatusField::Cycles),
            running_ns: running.map(|ticks| to_ns(ticks, ns_per_tick)),
            utilization: running.map(|ticks| status.get(StatusField::BusyTicks) as f64 / ticks as f64),
            allocations: status.get(StatusField::AllocationsPlusOne).checked_sub(1),
            full: log.counters.total(roles, FULL),
            peer_faults: log.counters.total(roles, PROTOCOL_ERRORS),
            went_back: log.went_back,
            agents: log.counters.agents(roles).filter(|_| !log.is_untrusted).map(agent).collect(),
            untrusted: log.is_untrusted,
        }
    });
    threads.collect()
}

impl super::Summary {
    /// Adds to each thread's summary its gaps (times without its CPU core) by class, in the order
    /// of the plan.
    pub fn attach_gaps(&mut self, classes: impl IntoIterator<Item = Vec<GapTotal>>) {
        for (thread, classes) in self.processes.iter_mut().zip(classes) {
            thread.gap_classes = classes;
        }
    }
}
