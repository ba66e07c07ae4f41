//! Waits for the disk of a journal. A thread that waits there is not hung, so its deadline
//! pauses, and the run's record shows how often and for how long.
//!
//! Under `--journal each` the role's own thread waits in `fdatasync`, and its heartbeat stops.
//! Under `--journal group` a thread of the journal waits, the heartbeats go on, and no report
//! comes.

use super::Supervisor;
use super::actions::{Action, Actions};
use protocol::plan::Plan;
use record::numbers::{count, duration};
use std::collections::BTreeMap;

/// The pauses of deadlines by process, as an index in the plan.
#[derive(Default)]
pub(super) struct DiskWaits(BTreeMap<usize, Pauses>);

#[derive(Default)]
struct Pauses {
    times: u64,
    longest_ns: u64,
    /// Length of the present pause; 0 if there is none.
    current_ns: u64,
}

impl DiskWaits {
    /// Records for how long a process has waited so far; `None`: it does not. Returns the number of
    /// its wait, from 1, if that is a new one.
    fn record(&mut self, process: usize, waited_ns: Option<u64>) -> Option<u64> {
        let pauses = self.0.entry(process).or_default();
        let before = std::mem::replace(&mut pauses.current_ns, waited_ns.unwrap_or(0));
        let is_new = pauses.current_ns > 0 && (before == 0 || pauses.current_ns < before);
        pauses.times += u64::from(is_new);
        pauses.longest_ns = pauses.longest_ns.max(pauses.current_ns);
        is_new.then_some(pauses.times)
    }

    /// Returns a warning for each process whose deadline paused.
    pub(super) fn warnings(&self, plan: &Plan) -> Vec<String> {
        let paused = self.0.iter().filter(|(_, pauses)| pauses.times > 0);
        let warning = |(process, Pauses { times, longest_ns, .. }): (&usize, &Pauses)| {
            let times = if *times == 1 { "once".into() } else { format!("{} times", count(*times)) };
            format!(
                "{} waited for the disk of its journal {times}, for {} at most: its deadline (--liveness) paused; \
                 use a faster disk, or --journal process",
                plan.processes[*process].name,
                duration(*longest_ns)
            )
        };
        paused.map(warning).collect()
    }
}

impl Supervisor<'_> {
    /// Records which threads were silent for longer than their deadline and waited for a disk.
    pub(super) fn note_disk_waits(&mut self, out: &mut dyn Actions) {
        for thread in 0..self.plan.threads.len() {
            if !self.liveness.has_journal(thread) {
                continue;
            }
            let waited = self.liveness.paused_ticks(thread);
            let waited_ns = waited.map(|ticks| (ticks as f64 * self.plan.ns_per_tick) as u64);
            self.note_disk_wait(self.owner_index(thread), waited_ns, out);
        }
    }

    pub(super) fn note_disk_wait(&mut self, process: usize, waited_ns: Option<u64>, out: &mut dyn Actions) {
        if self.disk_waits.record(process, waited_ns) == Some(1) {
            let name = &self.plan.processes[process].name;
            let waited = duration(waited_ns.unwrap_or(0));
            out.perform(Action::Complain(format!(
                "note: {name} has waited {waited} for the disk of its journal: its deadline (--liveness) pauses"
            )));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_counted_once_with_the_longest() {
        let mut waits = DiskWaits::default();
        let numbers =
            [Some(5), Some(9), None, Some(4), Some(3), Some(4), None].map(|waited| waits.record(1, waited));
        assert_eq!(numbers, [Some(1), None, None, Some(2), Some(3), None, None]);
        assert_eq!(waits.record(0, None), None);
        let Pauses { times, longest_ns, .. } = waits.0[&1];
        assert_eq!((times, longest_ns), (3, 9), "5 to 9, 4, 3 to 4");
        assert_eq!(waits.0[&0].times, 0);
    }
}
