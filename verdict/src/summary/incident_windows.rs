//! Incident windows: the orders that an incident can have affected.
//!
//! The window of an incident extends from the fault (or its detection, if it was not injected) to
//! 10 ms after the repair. This aftermath contains the orders that queued during the incident and
//! most of the next incarnation's start. An order is affected if it was in the engine in that
//! window, outbound (t1 to t4) or inbound (t5 to t8); time at its venue does not count. An order
//! that was sent before the death and queued in the ring after the dead strategy's messages is
//! affected although its t1 precedes the window.
//!
//! ```text
//! order     t1 ── t4 ·········· venue ·········· t5 ── t8
//! incident       fault ───── detected ── repaired ── + 10 ms      affected: t4 in the window
//! ```

use merge::OrderRow;
use protocol::index::StrategyIndex;
use record::run::RunRecord;

/// Time after the repair of a strategy's death during which other orders count as affected, in
/// nanoseconds.
pub(super) const AFTERMATH_NS: u64 = 10_000_000;

/// The window of one incident, in ticks, and its strategy.
#[derive(Clone, Copy, Debug)]
struct IncidentWindow {
    from: u64,
    until: u64,
    strategy: StrategyIndex,
    incident: usize,
}

#[derive(Debug)]
pub(super) struct IncidentWindows {
    sorted: Vec<IncidentWindow>,
    /// Latest end among each window and all before it: limits the search.
    latest: Vec<u64>,
}

impl IncidentWindows {
    /// Computes the time windows, in ticks, in which each strategy death of a run can have affected
    /// other orders.
    pub fn from_record(record: &RunRecord) -> Self {
        // With the calibration before the run, which the launcher used to convert ticks.
        let (start, ns_per_tick) = (record.clock.start_ticks, record.plan.ns_per_tick);
        let ticks = |ns: u64| start.saturating_add((ns as f64 / ns_per_tick) as u64);
        let window = |(index, incident): (usize, &record::run::Incident)| {
            let from = incident.fault_ns.unwrap_or(u64::MAX).min(incident.detected_ns);
            let until = incident.repaired_ns.unwrap_or(incident.fenced_ns).max(incident.detected_ns);
            IncidentWindow {
                from: ticks(from),
                until: ticks(until.saturating_add(AFTERMATH_NS)),
                strategy: incident.strategy,
                incident: index,
            }
        };
        let mut sorted: Vec<IncidentWindow> = record.incidents.iter().enumerate().map(window).collect();
        sorted.sort_by_key(|window| window.from);
        let mut last = 0;
        let latest = sorted.iter().map(|window| {
            last = last.max(window.until);
            last
        });
        let latest = latest.collect();
        Self { sorted, latest }
    }

    /// Returns `true` if the order had returned before the window of the run's first incident,
    /// which begins with the fault or its detection.
    pub fn is_before_all(&self, row: &OrderRow) -> bool {
        self.sorted.first().is_some_and(|first| row.ended() < first.from)
    }

    /// Iterates over the deaths of other strategies that can have affected the order, as incident
    /// indices in the run's record. The order has all eight stamps, ascending.
    pub fn affecting(&self, strategy: StrategyIndex, row: &OrderRow) -> impl Iterator<Item = usize> {
        let [t1, _, _, t4, t5, _, _, t8] = row.stamps();
        // Not twice for an incident that affected it on its way out.
        let back = self.overlapping(t5, t8).filter(move |window| window.from > t4);
        let all = self.overlapping(t1, t4).chain(back);
        all.filter(move |window| window.strategy != strategy).map(|window| window.incident)
    }

    /// Iterates over the windows that overlap `from..=until`.
    fn overlapping(&self, from: u64, until: u64) -> impl Iterator<Item = &IncidentWindow> {
        let begun = self.sorted.partition_point(|window| window.from <= until);
        let latest_first = self.sorted[..begun].iter().zip(&self.latest).rev();
        let candidates = latest_first.take_while(move |(_, latest)| **latest >= from);
        candidates.map(|(window, _)| window).filter(move |window| window.until >= from)
    }
}
