//! Sessions with venues that misbehave or stay silent.

use super::*;
use protocol::wire::Side;

const TIME: Timebase = Timebase { start_ticks: 0, ns_per_tick: 1.0 };

/// The reports that pass the session.
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
        TIME
    }
}

/// Reports to send on the next call, with their message numbers.
#[derive(Default)]
struct ScriptedVenue {
    says: Vec<(Option<u64>, Report)>,
    is_down: bool,
    /// The message numbers that the session requested on reconnect.
    resumed: Vec<u64>,
}

impl Venue for ScriptedVenue {
    const INFO: VenueInfo =
        VenueInfo { reports_per_order: 4, immediate_reports: 0, announces_release: false };

    fn has_capacity(&self) -> bool {
        true
    }

    fn accept(&mut self, _: &Order, _: u64, _: &mut impl Reports) -> Option<u64> {
        None
    }

    fn advance(&mut self, _: u64, reports: &mut impl Reports) {
        for (number, report) in self.says.drain(..) {
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

fn order(sequence: u64) -> Order {
    Order { quantity: 10, price: 100, ..Order::new(OrderId::new(0, 0, sequence), 1) }
}

fn fill(sequence: u64) -> Report {
    crate::in_full(&order(sequence))
}

fn accepted(sequence: u64) -> Report {
    Report { status: OrderStatus::Accepted, leaves: 10, cumulative: 0, ..partial_of(sequence, 0) }
}

/// The first report of order 0, of 4 of its 10.
fn partial() -> Report {
    Report { status: OrderStatus::PartiallyFilled, leaves: 6, ..partial_of(0, 4) }
}

fn partial_of(sequence: u64, filled: u64) -> Report {
    Report { filled, is_last: false, ..fill(sequence) }
}

fn session() -> ValidatingSession<ScriptedVenue> {
    ValidatingSession::new(ScriptedVenue::default(), ValidationRules { silence_ns: 1_000, max_held: 8 })
}

/// Returns the reports and counters when the venue sends these reports of order 0.
fn said(script: &[(Option<u64>, Report)]) -> (Vec<Report>, SessionCounts) {
    let (mut session, mut out) = (session(), ReportList::default());
    session.accept(&order(0), 5, &mut out);
    session.venue.says = script.to_vec();
    session.advance(10, &mut out);
    session.advance(2_000, &mut out);
    (out.0, session.session())
}

#[test]
fn valid_reports_pass() {
    let (reports, counts) = said(&[(None, fill(0))]);
    assert_eq!(reports, [fill(0)]);
    assert_eq!((counts.sent, counts.received, counts.errors, counts.stuck), (1, 1, 0, 0));
    let part = partial();
    let rest = Report { filled: 6, number: 1, ..fill(0) };
    assert_eq!(said(&[(None, part), (None, rest)]).0, [part, rest]);
}

#[test]
fn invalid_reports_are_counted_and_order_closes_once() {
    let good = fill(0);
    let garbage = [
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
    for wrong in garbage {
        let (reports, counts) = said(&[(None, wrong), (None, good)]);
        assert_eq!((reports, counts.errors), (vec![good], 1), "{wrong:?}, and then the truth");
        let (reports, counts) = said(&[(None, wrong)]);
        assert_eq!((counts.errors, counts.stuck, reports.len()), (1, 1, 1), "{wrong:?}, and nothing more");
        assert_eq!((reports[0].id, reports[0].reason), (good.id, Reject::VenueSilent.code()));
        assert!(reports[0].is_last);
    }
}

#[test]
fn a_second_last_report_is_an_error() {
    let (reports, counts) = said(&[(None, fill(0)), (None, fill(0))]);
    assert_eq!((reports, counts.errors, counts.stuck), (vec![fill(0)], 1, 0));
}

#[test]
fn session_numbers_detect_gaps_and_repeats() {
    let (reports, counts) = said(&[(Some(3), fill(0))]);
    assert_eq!(
        (reports, counts.errors, counts.received),
        (vec![fill(0)], 1, 3),
        "two were lost, this is here"
    );
    let part = partial();
    let (reports, counts) = said(&[(Some(1), part), (Some(1), Report { filled: 6, number: 1, ..fill(0) })]);
    assert_eq!((reports[0], counts.errors, counts.stuck), (part, 1, 1), "a repeat is not believed");
    assert_eq!((reports[1].number, reports[1].cumulative, reports.len()), (1, 4, 2));
}

#[test]
fn impossible_number_is_protocol_error() {
    let part = partial();
    let rest = Report { filled: 6, number: 1, ..fill(0) };
    // One message was sent, so at most its reports may have been lost.
    let max = 1 + protocol::wire::MAX_REPORTS as u64;
    for number in [max + 1, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
        let (mut session, mut out) = (session(), ReportList::default());
        session.accept(&order(0), 5, &mut out);
        session.venue.says = vec![(Some(number), part)];
        session.advance(10, &mut out);
        assert_eq!((out.0.len(), session.faults(), session.session().errors), (0, 1, 0), "{number}");
        // What follows is not taken for a repeat.
        session.venue.says = vec![(Some(1), part), (Some(2), rest)];
        session.advance(20, &mut out);
        assert_eq!((&out.0[..], session.session().received), (&[part, rest][..], 2), "{number}");
        assert_eq!((session.faults(), session.session().errors), (1, 0), "{number}");
    }
    let (reports, counts) = said(&[(Some(max), part)]);
    assert_eq!((reports[0], counts.errors, counts.received), (part, 1, max), "it can have come to that");
    // At the end of all numbers, which a session can only be put at: the last one repeats, and
    // nothing overflows.
    let (mut session, mut out) = (session(), ReportList::default());
    session.accept(&order(0), 5, &mut out);
    session.state.counts.received = u64::MAX - 1;
    session.venue.says = vec![(Some(u64::MAX), part), (None, rest), (Some(0), rest)];
    session.advance(10, &mut out);
    assert_eq!((&out.0[..], session.session().received), (&[part, rest][..], u64::MAX));
    assert_eq!(session.session().errors, 1);
}

#[test]
fn venue_reporting_on_order_is_not_silent() {
    let (mut session, mut out) = (session(), ReportList::default());
    session.accept(&order(0), 0, &mut out);
    for number in 0..3 {
        session.venue.says = vec![(
            None,
            Report {
                status: OrderStatus::PartiallyFilled,
                filled: 1,
                leaves: 5,
                is_last: false,
                number,
                ..fill(0)
            },
        )];
        session.advance(900 * (u64::from(number) + 1), &mut out);
    }
    assert_eq!((out.0.len(), session.session().stuck), (3, 0));
    session.advance(2_700 + 999, &mut out);
    assert_eq!(session.session().stuck, 0);
    session.advance(2_700 + 1_000, &mut out);
    assert_eq!((out.0.len(), session.session().stuck), (4, 1));
    assert!(session.watched.is_empty());
}

#[test]
fn a_replace_is_believed_where_it_was_asked_for() {
    let accepted = accepted(0);
    let replaced = Report { status: OrderStatus::Replaced, price: 105, leaves: 20, number: 1, ..accepted };
    let filled = Report { price: 104, filled: 20, cumulative: 20, number: 2, ..fill(0) };
    for asked in [false, true] {
        let (mut session, mut out) = (session(), ReportList::default());
        session.accept(&order(0), 5, &mut out);
        if asked {
            let replace =
                Order { operation: Operation::Replace, target: 0, price: 105, quantity: 20, ..order(1) };
            session.accept(&replace, 5, &mut out);
        }
        session.venue.says = vec![(None, accepted), (None, replaced), (None, filled)];
        session.advance(10, &mut out);
        let believed: &[Report] = if asked { &[accepted, replaced, filled] } else { &[accepted] };
        assert_eq!((&out.0[..], session.session().errors), (believed, if asked { 0 } else { 2 }));
    }
}

#[test]
fn resting_order_survives_while_venue_reports() {
    let accepted = accepted(0);
    for acknowledges in [false, true] {
        let (mut session, mut out) = (session(), ReportList::default());
        session.accept(&order(0), 0, &mut out);
        if acknowledges {
            session.venue.says = vec![(None, accepted)];
            session.advance(1, &mut out);
        }
        for sequence in 1..8 {
            let now = 500 * sequence;
            session.accept(&order(sequence), now, &mut out);
            session.venue.says = vec![(None, fill(sequence))];
            session.advance(now, &mut out);
        }
        assert_eq!(session.session().stuck, u64::from(!acknowledges));
        session.advance(3_500 + 999, &mut out);
        assert_eq!(session.session().stuck, u64::from(!acknowledges));
        session.advance(3_500 + 1_000, &mut out);
        assert_eq!((session.session().stuck, out.0.len()), (1, 8 + usize::from(acknowledges)));
    }
}

#[test]
fn requested_cancel_without_report_counts_as_silence() {
    for is_told in [false, true] {
        let (mut session, mut out) = (session(), ReportList::default());
        session.accept(&order(0), 0, &mut out);
        session.venue.says = vec![(None, accepted(0))];
        session.advance(1, &mut out);
        if is_told {
            let mut sweep = CancelSweep {
                scope: CancelScope::for_strategy(order(0).id),
                cursor: 0,
                budget: 64,
                now: 400,
            };
            assert!(session.try_cancel_all(&mut sweep, &mut out), "it says nothing");
        }
        // It goes on with what came later.
        session.accept(&order(1), 401, &mut out);
        session.venue.says = vec![(None, accepted(1))];
        session.advance(402, &mut out);
        for sequence in 2..8 {
            let now = 500 * sequence;
            session.accept(&order(sequence), now, &mut out);
            session.venue.says = vec![(None, fill(sequence))];
            session.advance(now, &mut out);
            // It is looked at again behind what was watched before: after two silences at most.
            let is_closed = is_told && now >= 2_000;
            assert_eq!(session.session().stuck, u64::from(is_closed), "{is_told} at {now}");
        }
        let closed: Vec<_> = out.0.iter().filter(|report| report.reason != 0).collect();
        assert!(closed.iter().all(|report| report.id == order(0).id && report.is_last), "{closed:?}");
    }
}

/// What a strategy gets and what is counted: the order 0 is open, the session goes down, the order
/// 1 comes, and when the session is up again the venue sends these reports.
fn after_a_disconnect(says: &[(Option<u64>, Report)]) -> (Vec<Report>, SessionCounts, Vec<u64>) {
    let (mut session, mut out) = (session(), ReportList::default());
    session.accept(&order(5), 0, &mut out);
    session.venue.says = vec![(None, fill(5))];
    session.advance(1, &mut out);
    session.accept(&order(0), 5, &mut out);
    session.venue.is_down = true;
    session.advance(10, &mut out);
    session.accept(&order(1), 11, &mut out);
    session.venue.is_down = false;
    session.advance(20, &mut out);
    session.venue.says = says.to_vec();
    session.advance(30, &mut out);
    session.advance(2_000, &mut out);
    (out.0.split_off(1), session.session(), session.venue.resumed)
}

#[test]
fn reconnected_session_resumes_numbers() {
    let cancelled = Report { status: OrderStatus::Cancelled, filled: 0, cumulative: 0, ..fill(0) };
    let (reports, counts, resumed) = after_a_disconnect(&[(Some(2), cancelled)]);
    assert_eq!((reports[0].id, reports[0].reason), (order(1).id, Reject::VenueDown.code()));
    assert_eq!((reports.len(), reports[1], resumed), (2, cancelled, vec![2]));
    assert_eq!((counts.sent, counts.received, counts.refused, counts.disconnects), (2, 2, 1, 1));
    assert_eq!((counts.errors, counts.stuck), (0, 0));

    // A venue that restarts its numbers is not trusted, and reports that it does not repeat are
    // lost.
    for (says, errors) in [(vec![(Some(1), cancelled)], 1), (vec![], 0)] {
        let (reports, counts, _) = after_a_disconnect(&says);
        assert_eq!((reports.len(), reports[1].reason), (2, Reject::VenueSilent.code()));
        assert_eq!((counts.errors, counts.stuck), (errors, 1));
    }
}

#[test]
fn orders_of_lost_session_are_closed_as_venue_down() {
    let (mut session, mut out) = (session(), ReportList::default());
    session.accept(&order(0), 0, &mut out);
    session.venue.is_down = true;
    session.advance(10, &mut out);
    session.advance(2_000, &mut out);
    assert_eq!((out.0.len(), out.0[0].reason, out.0[0].is_last), (1, Reject::VenueDown.code(), true));
    assert_eq!(session.session().stuck, 1);
}
