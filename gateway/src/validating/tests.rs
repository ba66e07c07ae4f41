//! Sessions with venues that misbehave or stay silent.

use super::*;
use protocol::wire::{OrderRequest, Side};

#[derive(Default)]
struct ReportList(Vec<Report>);

impl Reports for ReportList {
    fn has_capacity(&self) -> bool {
        true
    }

    fn send(&mut self, report: Report) -> Result<(), ReportsFull> {
        self.0.push(report);
        Ok(())
    }

    fn skip_report(&mut self) {}

    fn time(&self) -> Timebase {
        Timebase { start_ticks: 0, ns_per_tick: 1.0 }
    }
}

/// Reports of a venue, with their message numbers.
type Script<'a> = &'a [(Option<u64>, Report)];

#[derive(Default)]
struct ScriptedVenue {
    /// Sent on the next call.
    script: Vec<(Option<u64>, Report)>,
    is_down: bool,
    resumed: Vec<u64>,
}

impl Venue for ScriptedVenue {
    const INFO: VenueInfo =
        VenueInfo { reports_per_order: 4, immediate_reports: 0, reports_release_time: false };

    fn has_capacity(&self) -> bool {
        true
    }

    fn accept(&mut self, _: &Order, _: u64, _: &mut impl Reports) -> Option<u64> {
        None
    }

    fn advance(&mut self, _: u64, reports: &mut impl Reports) {
        for (number, report) in self.script.drain(..) {
            match number {
                Some(number) => reports.send_numbered(number, report).unwrap(),
                None => reports.send(report).unwrap(),
            }
        }
    }

    fn next_deadline(&self) -> u64 {
        0
    }

    fn try_cancel_all(&mut self, _: &mut CancelSweep, _: &mut impl Reports) -> bool {
        true
    }

    fn is_connected(&self) -> bool {
        !self.is_down
    }

    fn resume(&mut self, next: u64) {
        self.resumed.push(next);
    }
}

/// A session whose venue may be silent for 1,000 ticks.
struct SessionBench {
    session: ValidatingSession<ScriptedVenue>,
    out: ReportList,
}

impl SessionBench {
    fn new() -> Self {
        let rules = ValidationRules { silence_ns: 1_000, max_held: 8 };
        let session = ValidatingSession::new(ScriptedVenue::default(), rules);
        Self { session, out: ReportList::default() }
    }

    /// A bench that has accepted order 0 at tick 5.
    fn with_order() -> Self {
        let mut bench = Self::new();
        bench.accept(&order(0), 5);
        bench
    }

    fn accept(&mut self, order: &Order, now: u64) {
        self.session.accept(order, now, &mut self.out);
    }

    fn advance(&mut self, now: u64, script: Script<'_>) {
        self.session.venue.script = script.to_vec();
        self.session.advance(now, &mut self.out);
    }

    fn counts(&self) -> SessionCounts {
        self.session.session()
    }
}

fn order(sequence: u64) -> Order {
    OrderRequest { quantity: 10, price: 100, ..OrderRequest::to_venue(1) }
        .with_id(OrderId::new(0, 0, sequence))
}

fn fill(sequence: u64) -> Report {
    crate::in_full(&order(sequence))
}

fn accepted(sequence: u64) -> Report {
    let status = OrderStatus::Accepted;
    Report { status, filled: 0, leaves: 10, cumulative: 0, is_last: false, ..fill(sequence) }
}

/// Returns two reports of order 0: a fill of 4 of its 10, and one of the remaining 6.
fn partial_and_final_fill() -> [Report; 2] {
    let status = OrderStatus::PartiallyFilled;
    let part = Report { status, filled: 4, leaves: 6, is_last: false, ..fill(0) };
    [part, Report { filled: 6, number: 1, ..fill(0) }]
}

/// Returns the reports and counters when the venue sends these reports of order 0.
fn accepted_reports(script: Script<'_>) -> (Vec<Report>, SessionCounts) {
    let mut bench = SessionBench::with_order();
    bench.advance(10, script);
    bench.advance(2_000, &[]);
    let counts = bench.counts();
    (bench.out.0, counts)
}

#[test]
fn valid_reports_pass_and_second_last_one_is_error() {
    let (reports, counts) = accepted_reports(&[(None, fill(0)), (None, fill(0))]);
    assert_eq!(reports, [fill(0)]);
    assert_eq!((counts.sent, counts.received, counts.errors, counts.stuck), (1, 2, 1, 0));
    assert_eq!(
        accepted_reports(&partial_and_final_fill().map(|report| (None, report))).0,
        partial_and_final_fill()
    );
}

#[test]
fn invalid_reports_are_counted_and_order_closes_once() {
    let good = fill(0);
    let invalid_reports = [
        fill(7),
        Report { venue: 0, ..good },
        Report { instrument: 3, ..good },
        Report { side: Side::Sell, ..good },
        Report { status: OrderStatus::Rejected, ..good },
        Report { status: OrderStatus::Done, filled: 0, ..good },
        Report { status: OrderStatus::Cancelled, ..good },
        Report { is_last: false, leaves: 3, ..good },
        Report { filled: 11, ..good },
        Report { filled: u64::MAX, ..good },
        Report { leaves: 1, ..good },
        Report { number: 1, ..good },
        Report { price: 101, ..good },
        Report { price: -1, ..good },
    ];
    for wrong in invalid_reports {
        let (reports, counts) = accepted_reports(&[(None, wrong), (None, good)]);
        assert_eq!((reports, counts.errors), (vec![good], 1), "{wrong:?}, then a valid report");
        let (reports, counts) = accepted_reports(&[(None, wrong)]);
        assert_eq!((counts.errors, counts.stuck, reports.len()), (1, 1, 1), "{wrong:?}, then nothing");
        assert_eq!((reports[0].id, reports[0].reason), (good.id, Reject::VenueSilent.code()));
        assert!(reports[0].is_last);
    }
}

#[test]
fn session_numbers_detect_gaps_and_repeats() {
    let (reports, counts) = accepted_reports(&[(Some(3), fill(0))]);
    assert_eq!((reports, counts.errors, counts.received), (vec![fill(0)], 1, 3), "two were lost");
    let [part, remainder] = partial_and_final_fill();
    let (reports, counts) = accepted_reports(&[(Some(1), part), (Some(1), remainder)]);
    assert_eq!((reports[0], counts.errors, counts.stuck), (part, 1, 1), "a repeated number is ignored");
    assert_eq!((reports[1].number, reports[1].cumulative, reports.len()), (1, 4, 2));
}

#[test]
fn impossible_number_is_protocol_error() {
    let [part, remainder] = partial_and_final_fill();
    // One message was sent, so at most its reports may have been lost.
    let max = 1 + protocol::wire::MAX_REPORTS as u64;
    for number in [max + 1, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
        let mut bench = SessionBench::with_order();
        bench.advance(10, &[(Some(number), part)]);
        assert_eq!((bench.out.0.len(), bench.session.faults(), bench.counts().errors), (0, 1, 0), "{number}");
        // Later reports are not taken for repeats.
        bench.advance(20, &[(Some(1), part), (Some(2), remainder)]);
        assert_eq!((&bench.out.0[..], bench.counts().received), (&[part, remainder][..], 2), "{number}");
        assert_eq!((bench.session.faults(), bench.counts().errors), (1, 0), "{number}");
    }
    let (reports, counts) = accepted_reports(&[(Some(max), part)]);
    assert_eq!((reports[0], counts.errors, counts.received), (part, 1, max), "the largest possible number");
    // At the highest number, which no real session reaches: the last number repeats, and nothing
    // overflows.
    let mut bench = SessionBench::with_order();
    bench.session.state.counts.received = u64::MAX - 1;
    bench.advance(10, &[(Some(u64::MAX), part), (None, remainder), (Some(0), remainder)]);
    assert_eq!((&bench.out.0[..], bench.counts().received), (&[part, remainder][..], u64::MAX));
    assert_eq!(bench.counts().errors, 1);
}

#[test]
fn venue_reporting_on_order_is_not_silent() {
    let mut bench = SessionBench::with_order();
    for number in 0..3 {
        let [part, _] = partial_and_final_fill();
        let report = Report { filled: 1, leaves: 5, number, ..part };
        bench.advance(900 * (u64::from(number) + 1), &[(None, report)]);
    }
    assert_eq!((bench.out.0.len(), bench.counts().stuck), (3, 0));
    bench.advance(2_700 + 999, &[]);
    assert_eq!(bench.counts().stuck, 0);
    bench.advance(2_700 + 1_000, &[]);
    assert_eq!((bench.out.0.len(), bench.counts().stuck), (4, 1));
    assert!(bench.session.watched.is_empty());
}

#[test]
fn only_requested_replace_is_valid() {
    let accepted = accepted(0);
    let replaced = Report { status: OrderStatus::Replaced, price: 105, leaves: 20, number: 1, ..accepted };
    let filled = Report { price: 104, filled: 20, cumulative: 20, number: 2, ..fill(0) };
    for (is_requested, valid, errors) in
        [(false, &[accepted][..], 2), (true, &[accepted, replaced, filled], 0)]
    {
        let mut bench = SessionBench::with_order();
        if is_requested {
            let replace =
                OrderRequest { operation: Operation::Replace, price: 105, quantity: 20, ..order(1).request }
                    .with_id(order(1).id);
            bench.accept(&replace, 5);
        }
        bench.advance(10, &[accepted, replaced, filled].map(|report| (None, report)));
        assert_eq!((&bench.out.0[..], bench.counts().errors), (valid, errors));
    }
}

#[test]
fn resting_order_survives_while_venue_reports() {
    for is_acknowledged in [false, true] {
        let mut bench = SessionBench::new();
        bench.accept(&order(0), 0);
        if is_acknowledged {
            bench.advance(1, &[(None, accepted(0))]);
        }
        for sequence in 1..8 {
            bench.accept(&order(sequence), 500 * sequence);
            bench.advance(500 * sequence, &[(None, fill(sequence))]);
        }
        assert_eq!(bench.counts().stuck, u64::from(!is_acknowledged));
        bench.advance(3_500 + 999, &[]);
        assert_eq!(bench.counts().stuck, u64::from(!is_acknowledged));
        bench.advance(3_500 + 1_000, &[]);
        assert_eq!((bench.counts().stuck, bench.out.0.len()), (1, 8 + usize::from(is_acknowledged)));
    }
}

#[test]
fn requested_cancel_without_report_counts_as_silence() {
    for is_cancelled in [false, true] {
        let mut bench = SessionBench::new();
        bench.accept(&order(0), 0);
        bench.advance(1, &[(None, accepted(0))]);
        if is_cancelled {
            let scope = CancelScope::for_strategy(order(0).id);
            let mut sweep = CancelSweep { scope, cursor: 0, budget: 64, now: 400 };
            assert!(bench.session.try_cancel_all(&mut sweep, &mut bench.out));
        }
        // The venue continues to report later orders.
        bench.accept(&order(1), 401);
        bench.advance(402, &[(None, accepted(1))]);
        for sequence in 2..8 {
            let now = 500 * sequence;
            bench.accept(&order(sequence), now);
            bench.advance(now, &[(None, fill(sequence))]);
            // It is checked again after two silence periods at most.
            let is_closed = is_cancelled && now >= 2_000;
            assert_eq!(bench.counts().stuck, u64::from(is_closed), "{is_cancelled} at {now}");
        }
        let closed: Vec<_> = bench.out.0.iter().filter(|report| report.reason != 0).collect();
        assert!(closed.iter().all(|report| report.id == order(0).id && report.is_last), "{closed:?}");
    }
}

/// Returns reports, counters and resumed numbers: order 0 is open, the session goes down, order 1
/// arrives, and once the session is up again the venue sends these reports.
fn run_with_disconnect(script: Script<'_>) -> (Vec<Report>, SessionCounts, Vec<u64>) {
    let mut bench = SessionBench::new();
    bench.accept(&order(5), 0);
    bench.advance(1, &[(None, fill(5))]);
    bench.accept(&order(0), 5);
    bench.session.venue.is_down = true;
    bench.advance(10, &[]);
    bench.accept(&order(1), 11);
    bench.session.venue.is_down = false;
    bench.advance(20, &[]);
    bench.advance(30, script);
    bench.advance(2_000, &[]);
    let counts = bench.counts();
    (bench.out.0.split_off(1), counts, bench.session.venue.resumed)
}

#[test]
fn reconnected_session_resumes_numbers() {
    let cancelled = Report { status: OrderStatus::Cancelled, filled: 0, cumulative: 0, ..fill(0) };
    let (reports, counts, resumed) = run_with_disconnect(&[(Some(2), cancelled)]);
    assert_eq!((reports[0].id, reports[0].reason), (order(1).id, Reject::VenueDown.code()));
    assert_eq!((reports.len(), reports[1], resumed), (2, cancelled, vec![2]));
    assert_eq!((counts.sent, counts.received, counts.refused, counts.disconnects), (2, 2, 1, 1));
    assert_eq!((counts.errors, counts.stuck), (0, 0));

    // A venue that restarts its numbers is not trusted, and reports that it does not repeat are
    // lost.
    for (script, errors) in [(&[(Some(1), cancelled)][..], 1), (&[], 0)] {
        let (reports, counts, _) = run_with_disconnect(script);
        assert_eq!((reports.len(), reports[1].reason), (2, Reject::VenueSilent.code()));
        assert_eq!((counts.errors, counts.stuck), (errors, 1));
    }
}

#[test]
fn orders_of_lost_session_are_closed_as_venue_down() {
    let mut bench = SessionBench::with_order();
    bench.session.venue.is_down = true;
    bench.advance(10, &[]);
    bench.advance(2_000, &[]);
    let [closed] = bench.out.0[..] else { panic!("{:?}", bench.out.0) };
    assert_eq!((closed.reason, closed.is_last), (Reject::VenueDown.code(), true));
    assert_eq!(bench.counts().stuck, 1);
}
