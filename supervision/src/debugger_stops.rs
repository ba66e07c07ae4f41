//! Stops of strategies by debuggers. A strategy that a debugger has stopped does not hang: its
//! deadline waits, the others trade on, and the run's record shows how often and for how long.
//!
//! Which debuggers are trusted is decided where they are observed
//! (`runtime::debugger`).

use super::Supervisor;
use super::actions::{Action, Actions};
use super::observations::Observations;
use protocol::plan::Plan;
use record::numbers::{count, duration};
use std::collections::BTreeMap;

/// The stops by thread, as an index in the plan.
#[derive(Default)]
pub(super) struct DebuggerStops(BTreeMap<usize, Stops>);

#[derive(Default)]
struct Stops {
    times: u64,
    longest_ns: u64,
    /// Length of the present stop; `None` if there is none.
    current_ns: Option<u64>,
    /// The last debugger, as messages name it.
    debugger: String,
}

/// What a thread's stop by a debugger has done since the last step.
#[derive(Clone, Debug, PartialEq, Eq)]
enum StopChange {
    Began,
    /// It was over after this time, in nanoseconds.
    Ended(u64),
}

impl DebuggerStops {
    /// Records for how long a thread is stopped; `None`: it is not. `debugger`: the one that was
    /// observed just now.
    fn record(
        &mut self,
        thread: usize,
        held_ns: Option<u64>,
        debugger: Option<String>,
    ) -> Option<StopChange> {
        if held_ns.is_none() && !self.0.contains_key(&thread) {
            return None;
        }
        let stops = self.0.entry(thread).or_default();
        let before = std::mem::replace(&mut stops.current_ns, held_ns);
        stops.longest_ns = stops.longest_ns.max(held_ns.unwrap_or(0));
        if let Some(debugger) = debugger {
            stops.debugger = debugger;
        }
        match (before, held_ns) {
            (None, Some(_)) => {
                stops.times += 1;
                Some(StopChange::Began)
            }
            (Some(length), None) => Some(StopChange::Ended(length)),
            _ => None,
        }
    }

    /// Returns a warning for each strategy that a debugger has stopped.
    pub(super) fn warnings(&self, plan: &Plan) -> Vec<String> {
        let warning = |(thread, Stops { times, longest_ns, debugger, .. }): (&usize, &Stops)| {
            let times = if *times == 1 { "once".into() } else { format!("{} times", count(*times)) };
            format!(
                "{} was stopped by {debugger} {times}, for {} at most: its deadline (--liveness) waited, and its figures \
                 contain that time",
                plan.threads[*thread].name,
                duration(*longest_ns)
            )
        };
        self.0.iter().map(warning).collect()
    }
}

impl Supervisor<'_> {
    /// Records which strategies are stopped by debuggers, and tells the user when that changes.
    pub(super) fn note_debuggers(&mut self, observed: &Observations, out: &mut dyn Actions) {
        for (thread, found) in observed.threads.iter().enumerate() {
            let held = self.liveness.held_ticks(thread);
            let held_ns = held.map(|ticks| (ticks as f64 * self.plan.ns_per_tick) as u64);
            let debugger = found.debugger.as_ref().and_then(|debugger| Some(debugger.as_ref()?.to_string()));
            let name = &self.plan.threads[thread].name;
            let message = match self.debugger_stops.record(thread, held_ns, debugger) {
                Some(StopChange::Began) => {
                    let debugger = &self.debugger_stops.0[&thread].debugger;
                    format!("{name} is stopped by {debugger}: its deadline (--liveness) waits")
                }
                Some(StopChange::Ended(ns))
                    if observed.exited_normally(self.owner_index(thread)).is_none() =>
                {
                    let length = duration(ns);
                    format!(
                        "{name} runs again after {length} in a debugger: its deadline (--liveness) starts again"
                    )
                }
                _ => continue,
            };
            out.perform(Action::Complain(format!("note: {message}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::plan::Trading;

    #[test]
    fn stops_are_counted_with_the_longest() {
        let plan = Plan::for_trading(Trading::new(2, 1)).arranged();
        let (mut stops, gdb) = (DebuggerStops::default(), || Some("a debugger (pid 7, gdb)".to_owned()));
        assert_eq!(stops.record(1, None, None), None);
        assert!(stops.warnings(&plan).is_empty());
        let changes =
            [Some(5), Some(900), None, Some(4), None, None].map(|held| stops.record(1, held, gdb()));
        let (began, ended) = (Some(StopChange::Began), |ns| Some(StopChange::Ended(ns)));
        assert_eq!(changes, [began.clone(), None, ended(900), began, ended(4), None]);
        let [warning] = &stops.warnings(&plan)[..] else { panic!() };
        assert!(
            warning.contains("strategy-1 was stopped by a debugger (pid 7, gdb) 2 times, for 900"),
            "{warning}"
        );
    }
}
