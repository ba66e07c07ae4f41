//! Cost and disturbance of each thread, from its status block. A strategy that was started again
//! tells what its last incarnation did.

use super::containment::IncidentSummary;
use super::figures::to_ns;
use crate::merge::Merged;
use protocol::counters::AgentCounters;
use protocol::labels::{FULL, PROTOCOL_ERRORS};
use protocol::plan::Plan;
use protocol::stamps::KernelEvents;
use protocol::status::StatusField;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One thread of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadSummary {
    /// The thread's name: its role, or `engine` for the composite of orchestrator and gateways.
    pub role: String,
    /// The process that it ran in.
    pub process: String,
    /// That process's id.
    pub pid: u32,
    /// The core that it was found on when its affinity was read back; null: not pinned.
    pub core: Option<u32>,
    /// Stamps in its log.
    pub records: u64,
    /// Context switches that it asked for.
    pub voluntary_switches: u64,
    /// Context switches that the kernel forced on it.
    pub involuntary_switches: u64,
    /// Page faults served from memory.
    pub minor_faults: u64,
    /// Page faults that had to read from a device.
    pub major_faults: u64,
    /// CPU time in nanoseconds: spinning is not free.
    pub cpu_ns: u64,
    /// The longest time between the starts of two duty cycles, in nanoseconds.
    pub longest_gap_ns: u64,
    /// How often it was away from its duty cycles for longer than 3 µs; no more are counted than
    /// its log holds.
    #[serde(default)]
    pub gaps: u64,
    /// Of those, how often the kernel had taken its core away.
    #[serde(default)]
    pub gaps_preempted: u64,
    /// Gaps that its log did not keep, shorter ones first: how many.
    #[serde(default)]
    pub gaps_dropped: u64,
    /// How long those were together, in nanoseconds.
    #[serde(default)]
    pub gaps_dropped_ns: u64,
    /// How often it had given its core away by its idle strategy for longer than 3 µs and then had
    /// work; no more are counted than its log holds.
    #[serde(default)]
    pub sleeps: u64,
    /// Those that its log did not keep, shorter ones first: how many.
    #[serde(default)]
    pub sleeps_dropped: u64,
    /// How long those were together, in nanoseconds.
    #[serde(default)]
    pub sleeps_dropped_ns: u64,
    /// Duty cycles.
    pub cycles: u64,
    /// From its first duty cycle to its last, in nanoseconds; null if it never ended.
    pub running_ns: Option<u64>,
    /// The share of that time in duty cycles that found work, 0 to 1.
    pub utilisation: Option<f64>,
    /// Heap allocations after the start; `None`: the program does not count them.
    pub allocations: Option<u64>,
    /// Pushes of its agents that found a ring full.
    pub full: u64,
    /// What peers wrote that none may, seen by its agents.
    pub peer_faults: u64,
    /// Stamps that lie before the stamp in front of them in its log: its clock went back.
    #[serde(default)]
    pub went_back: u64,
    /// What each of its agents counted.
    #[serde(default)]
    pub agents: Vec<AgentSummary>,
    /// Nothing of the above is known: the strategy was quarantined, and may have written anything
    /// into its log.
    #[serde(default)]
    pub untrusted: bool,
}

impl ThreadSummary {
    /// How often the strategy of this thread was started again: the figures are of its last
    /// incarnation only.
    pub fn restarts(&self, incidents: &[IncidentSummary]) -> usize {
        let own = |incident: &&IncidentSummary| self.role == format!("strategy-{}", incident.strategy);
        incidents.iter().filter(own).filter(|incident| incident.repair_to_restart_ns.is_some()).count()
    }
}

/// What one agent counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentSummary {
    /// Its role: `orchestrator`, `gateway-1`.
    pub role: String,
    /// Its counters by their names; see `protocol::counters` for their units.
    pub counters: BTreeMap<String, u64>,
}

fn agent(counted: AgentCounters) -> AgentSummary {
    let counters = counted.labeled().map(|(label, value)| (label.name.to_owned(), value));
    AgentSummary { role: counted.role().to_string(), counters: counters.collect() }
}

/// Every thread of the merge, in the order of the plan.
pub(super) fn summarise(plan: &Plan, merged: &Merged, ns_per_tick: f64) -> Vec<ThreadSummary> {
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
            gaps_dropped: gaps_dropped.count,
            gaps_dropped_ns: to_ns(gaps_dropped.ticks, ns_per_tick),
            sleeps: log.sleeps.len() as u64,
            sleeps_dropped: sleeps_dropped.count,
            sleeps_dropped_ns: to_ns(sleeps_dropped.ticks, ns_per_tick),
            cycles: status.get(StatusField::Cycles),
            running_ns: running.map(|ticks| to_ns(ticks, ns_per_tick)),
            utilisation: running.map(|ticks| status.get(StatusField::BusyTicks) as f64 / ticks as f64),
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
