//! A venue that has faults: nothing is lost, and each of its reports is classified correctly.

use gateway::{CancelSweep, DelayVenue, Reports, ReportsFull, Venue, VenueContext};
use protocol::index::VenueIndex;
use protocol::plan::{Fault, FaultKind, FaultTarget, FaultTime};
use protocol::reject::Reject;
use protocol::session::WITHDRAWN;
use protocol::wire::{CancelScope, Order, OrderId, OrderRequest, OrderStatus, Report};
use roles::faults::venue::{FaultyVenue, SLOW_BY_NS};
use system::clock::Timebase;

/// Accepts a limited number of reports per call.
#[derive(Debug)]
struct ReportList(usize, Vec<Report>);

impl Reports for ReportList {
    fn has_capacity(&self) -> bool {
        self.0 > 0
    }

    fn send(&mut self, report: Report) -> Result<(), ReportsFull> {
        self.0 = self.0.checked_sub(1).ok_or(ReportsFull)?;
        self.1.push(report);
        Ok(())
    }

    fn skip_report(&mut self) {}

    fn time(&self) -> Timebase {
        Timebase { start_ticks: 0, ns_per_tick: 1.0 }
    }
}

/// A venue that does this from then until then.
fn faulty(kind: FaultKind, ns: u64, until: u64) -> FaultyVenue<DelayVenue> {
    let context = VenueContext { venue: 0, gateway: 0, venues: 1, strategies: 1, max_held: 64 };
    let (when, lasts_ns) = (FaultTime::At { ns }, Some(until - ns));
    let fault = Fault { kind, target: FaultTarget::Venue(VenueIndex(0)), when, every_ns: None, lasts_ns };
    FaultyVenue::new(DelayVenue::new(gateway::InFull, &context), &context, &[fault])
}

fn order(sequence: u64, delay_ns: u64) -> Order {
    OrderRequest { delay_ns, ..OrderRequest::to_venue(0) }.with_id(OrderId::new(0, 0, sequence))
}

#[test]
fn late_kill_switch_cancels_are_marked_withdrawn() {
    const AFTER: u64 = SLOW_BY_NS + 10;
    let reports_after = |kind| {
        let mut venue = faulty(kind, 3, 100);
        let mut out = ReportList(100, Vec::new());
        // One is due before the switch, the others long after.
        for (sequence, delay_ns) in [(0, 2), (1, 1_000), (2, u64::MAX / 4)] {
            venue.accept(&order(sequence, delay_ns), 1, &mut out);
        }
        venue.advance(5, &mut out);
        let mut sweep = CancelSweep { scope: CancelScope::default(), cursor: 0, budget: 64, now: 10 };
        assert!(venue.try_cancel_all(&mut sweep, &mut out));
        let at_once = out.1.len();
        venue.advance(50, &mut out);
        venue.advance(100, &mut out);
        venue.resume(1);
        venue.advance(AFTER - 1, &mut out);
        assert!(kind != FaultKind::Slow || out.1.len() == 1, "a cancel is as late as anything: {out:?}");
        venue.advance(AFTER, &mut out);
        assert_eq!(venue.next_deadline(), u64::MAX, "nothing is open any more");
        let mut later: Vec<_> =
            out.1.iter().map(|report| (report.id.sequence(), report.status, report.reason)).collect();
        later.sort_unstable_by_key(|(sequence, ..)| *sequence);
        (at_once, later)
    };
    let (filled, cancelled) = (OrderStatus::Filled, OrderStatus::Cancelled);
    let withdrawn = [1, 2].map(|sequence| (sequence, cancelled, WITHDRAWN));
    assert_eq!(reports_after(FaultKind::Slow), (0, [&[(0, filled, 0)][..], &withdrawn].concat()));
    // It takes the cancels, and reports nothing.
    assert_eq!(reports_after(FaultKind::Mute), (0, vec![]));
    // What was open when the session went down, the venue has cancelled by itself.
    let down = Reject::VenueDown.code();
    let (at_once, later) = reports_after(FaultKind::Disconnect);
    assert_eq!((at_once, later), (0, [0, 1, 2].map(|sequence| (sequence, cancelled, down)).to_vec()));
    // One that refuses what comes cancels at once.
    assert_eq!(reports_after(FaultKind::Reject), (3, [&[(0, filled, 0)][..], &withdrawn].concat()));
}

#[test]
fn slow_venue_loses_nothing_with_small_queue() {
    let mut venue = faulty(FaultKind::Slow, 0, 1_000);
    let mut out = ReportList(0, Vec::new());
    // Half of them are due in the fault, the others when what is late comes.
    for sequence in 0..40 {
        let delay_ns = if sequence < 20 { 100 } else { SLOW_BY_NS };
        venue.accept(&order(sequence, delay_ns), 1, &mut out);
    }
    let mut now = 0;
    while venue.next_deadline() < u64::MAX {
        now = now.max(venue.next_deadline());
        out.0 = 3;
        venue.advance(now, &mut out);
    }
    let mut came: Vec<u64> = out.1.iter().map(|report| report.id.sequence()).collect();
    came.sort_unstable();
    assert_eq!(came, (0..40).collect::<Vec<u64>>());
    assert!(now > SLOW_BY_NS);
}
