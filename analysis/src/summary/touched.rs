//! Which orders an incident can have touched.
//!
//! An incident has a time: from the fault, or where it was not done on purpose, from its detection,
//! until 10 ms after the repair. In the aftermath lie the orders that queued up meanwhile, and most
//! of the next incarnation's start. An order is touched if it was on its way through the engine in
//! that time, out (t1 to t4) or home (t5 to t8); what rests at its venue is not. An order that was
//! sent before the death and stood behind what the dead one left in the ring is touched, although
//! its t1 is too early.
//!
//! ```text
//! order     t1 ── t4 ·········· venue ·········· t5 ── t8
//! incident       fault ───── detected ── repaired ── + 10 ms          touched: t4 lies in it
//! ```

use crate::merge::OrderRow;
use crate::record::RunRecord;

/// How long an incident is felt after its repair, in nanoseconds.
pub(super) const AFTERMATH_NS: u64 = 10_000_000;

/// The time of one incident, in ticks, and who died in it.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: u64,
    until: u64,
    strategy: u16,
    /// Its place in the record.
    incident: usize,
}

/// The times of all incidents of a run.
#[derive(Debug)]
pub(super) struct Windows {
    /// By their beginning.
    sorted: Vec<Window>,
    /// The latest end among each and all before it: where the search may stop.
    latest: Vec<u64>,
}

impl Windows {
    /// The times of the record's incidents.
    pub fn of(record: &RunRecord) -> Self {
        // As the launcher made nanoseconds of ticks while the run went on: with the calibration
        // before it.
        let (start, ns_per_tick) = (record.clock.start_ticks, record.plan.ns_per_tick);
        let ticks = |ns: u64| start.saturating_add((ns as f64 / ns_per_tick) as u64);
        let window = |(place, incident): (usize, &crate::record::Incident)| {
            let from = incident.fault_ns.unwrap_or(u64::MAX).min(incident.detected_ns);
            let until = incident.repaired_ns.unwrap_or(incident.fenced_ns).max(incident.detected_ns);
            Window {
                from: ticks(from),
                until: ticks(until.saturating_add(AFTERMATH_NS)),
                strategy: incident.strategy,
                incident: place,
            }
        };
        let mut sorted: Vec<Window> = record.incidents.iter().enumerate().map(window).collect();
        sorted.sort_by_key(|window| window.from);
        let mut last = 0;
        let latest = sorted.iter().map(|window| {
            last = last.max(window.until);
            last
        });
        let latest = latest.collect();
        Self { sorted, latest }
    }

    /// Whether the order had come back before the first incident began.
    pub fn is_before_all(&self, row: &OrderRow) -> bool {
        self.sorted.first().is_some_and(|first| row.ended() < first.from)
    }

    /// Calls `touched` with every incident of another strategy that touched the order, by its place
    /// in the record. The order has all eight stamps, and they rise.
    pub fn touching(&self, strategy: u16, row: &OrderRow, mut touched: impl FnMut(usize)) {
        let [t1, _, _, t4, t5, _, _, t8] = row.stamps();
        self.meeting(t1, t4, |window| {
            if window.strategy != strategy {
                touched(window.incident);
            }
        });
        self.meeting(t5, t8, |window| {
            // Not again what has touched it on its way out.
            if window.strategy != strategy && window.from > t4 {
                touched(window.incident);
            }
        });
    }

    /// Every window that shares some time with the one from `from` to `until`.
    fn meeting(&self, from: u64, until: u64, mut met: impl FnMut(&Window)) {
        let begun = self.sorted.partition_point(|window| window.from <= until);
        for (window, latest) in self.sorted[..begun].iter().zip(&self.latest).rev() {
            if *latest < from {
                break;
            }
            if window.until >= from {
                met(window);
            }
        }
    }
}
