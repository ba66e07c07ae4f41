//! Recovers the last messages of a dead gateway from its stamp log.
//!
//! A log has a record of each order and report since the run began, and only the last ones matter:
//! a gateway takes orders and hands reports over in order. So the log is searched from its end,
//! back to the stamps of its last order and of the last report handed over, however long the run.

use protocol::log_scan::keys_from_end;
use protocol::stamps::{Point, Record, StampLog, key_with};
use protocol::wire::{Message, Order, PLACEHOLDER, Report, Side};
use shm::memory::ReadOnlyWords;
use std::collections::HashSet;

/// The last orders and reports that a crashed gateway took, whose timestamps may be missing in its
/// log.
pub struct LastMessages<'a> {
    /// Index of the gateway.
    pub gateway: u16,
    /// The last order in its session.
    pub last_order: Option<Order>,
    /// The order after the last one in the session, whose stamp the gateway may have logged.
    pub next_order: Option<Order>,
    /// The last report that the gateway handed over, if it can be decoded.
    pub last_report: Option<Report>,
    /// The log key of the last report's stamp t5, if it is known.
    pub last_done: Option<u64>,
    /// The reports after the last one handed over, in order, whose stamps the gateway may have
    /// logged; `None`: cannot be decoded.
    pub open: &'a [Option<Report>],
}

impl LastMessages<'_> {
    /// Returns all keys that the log may have of them, except stamps before the last report's own.
    fn keys(&self) -> HashSet<u64> {
        let orders = self.last_order.iter().chain(&self.next_order);
        let last = self.last_report.iter().flat_map(|report| report_keys(report).into_iter().skip(1));
        let open = self.open.iter().flatten().flat_map(report_keys);
        orders.flat_map(|order| order_keys(order, self.gateway)).chain(last).chain(open).collect()
    }

    /// Finds the records of these orders and reports in a crashed gateway's timestamp log. Returns
    /// the keys of the records found, and the number of records visited.
    pub fn find_in(&self, log: &ReadOnlyWords) -> (HashSet<u64>, usize) {
        let recv = |order: &Order| recv_key(order, self.gateway);
        // Stamps of the next order come after the last order's; those of open reports after the
        // last report handed over.
        let next_order_key = self.next_order.as_ref().filter(|_| self.last_order.is_some()).map(recv);
        let last_report_key = self.last_report.as_ref().or(self.open.iter().flatten().next()).map(done_key);
        let reports_end = self.last_done.or(last_report_key);
        let mut orders_complete = self.last_order.is_none() && self.next_order.is_none();
        let mut reports_complete = reports_end.is_none();
        let is_own_receipt = |key| {
            let record = Record::from_words(key, 0);
            record.is_some_and(|record| {
                record.point == Point::GatewayRecv && record.detail == self.gateway as u8
            })
        };
        let is_search_complete = |key: Option<u64>| {
            if let Some(key) = key {
                orders_complete |= is_own_receipt(key) && Some(key) != next_order_key;
                reports_complete |= Some(key) == reports_end;
            }
            orders_complete && reports_complete
        };
        keys_from_end(log, &self.keys(), is_search_complete)
    }
}

fn recv_key(order: &Order, gateway: u16) -> u64 {
    key_with(Point::GatewayRecv, order.id, gateway as u8)
}

fn order_keys(order: &Order, gateway: u16) -> [u64; 2] {
    [recv_key(order, gateway), key_with(Point::Instrument, order.id, 0)]
}

fn done_key(report: &Report) -> u64 {
    key_with(Point::GatewayDone, report.id, report.stamp_detail())
}

fn report_keys(report: &Report) -> [u64; 4] {
    let Report { id, number, .. } = *report;
    [
        key_with(Point::Cancelled, id, number),
        done_key(report),
        key_with(Point::FillQuantity, id, number),
        key_with(Point::FillPrice, id, number),
    ]
}

/// A crashed gateway's timestamp log, to which its successor appends the missing records without
/// repeating any.
pub struct GatewayLog {
    log: StampLog,
    logged_keys: HashSet<u64>,
}

impl GatewayLog {
    /// Continues a crashed gateway's timestamp log; `logged_keys` are the keys of records that it
    /// already has.
    pub const fn new(log: StampLog, logged_keys: HashSet<u64>) -> Self {
        Self { log, logged_keys }
    }

    /// Returns `true` if the crashed gateway's log has a timestamp of this report.
    pub fn is_stamped(&self, report: &Report) -> bool {
        report_keys(report)[..2].iter().any(|key| self.logged_keys.contains(key))
    }

    /// Returns `true` if the crashed gateway's log has the time at which the gateway took this
    /// order.
    pub fn has_order(&self, order: &Order, gateway: u16) -> bool {
        self.logged_keys.contains(&recv_key(order, gateway))
    }

    fn append(&mut self, record: Record) {
        if !self.logged_keys.contains(&key_with(record.point, record.id, record.detail)) {
            self.log.append_record(record);
        }
    }

    /// Appends the records of an order (timestamp and instrument) that are missing in the crashed
    /// gateway's log. The timestamp only if `stamp` is given.
    pub fn order(&mut self, order: &Order, stamp: Option<u64>, gateway: u16) {
        let id = order.id;
        if let Some(value) = stamp {
            self.append(Record { point: Point::GatewayRecv, id, detail: gateway as u8, value });
        }
        if order.request.instrument != 0 {
            self.append(Record {
                point: Point::Instrument,
                id,
                detail: 0,
                value: order.request.instrument.into(),
            });
        }
    }

    /// Appends the records of a report (timestamp, fill quantity and price) that are missing in the
    /// crashed gateway's log.
    pub fn report(&mut self, report: &Report, now: u64) {
        let Report { id, number, .. } = *report;
        self.append(Record { point: Point::GatewayDone, id, detail: report.stamp_detail(), value: now });
        if report.filled > 0 {
            let signed = match report.side {
                Side::Buy => report.filled,
                Side::Sell => report.filled.wrapping_neg(),
            };
            self.append(Record { point: Point::FillQuantity, id, detail: number, value: signed });
            let price = report.price.cast_unsigned();
            self.append(Record { point: Point::FillPrice, id, detail: number, value: price });
        }
    }
}

/// Returns the reports that a crashed gateway had timestamped but not passed to the engine, up to
/// the last timestamped one. An empty message represents each that it refused.
pub fn stamped_reports(open: &[Option<Report>], is_stamped: impl Fn(&Report) -> bool) -> Vec<Message> {
    let is_already_stamped = |report: &Option<Report>| report.as_ref().is_some_and(&is_stamped);
    let count = open.iter().rposition(is_already_stamped).map_or(0, |last| last + 1);
    let message = |report: &Option<Report>| {
        report.as_ref().filter(|report| is_stamped(report)).map_or(PLACEHOLDER, Report::to_message)
    };
    open[..count].iter().map(message).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::status::LOG_OFFSET;
    use protocol::wire::{OrderId, OrderRequest};
    use shm::memory::Region;

    const GATEWAY: u16 = 3;
    /// An order is reported once this many later orders were accepted.
    const OPEN_ORDERS: u64 = 3;

    /// The externally visible actions of a gateway, in order.
    enum GatewayAction {
        Logged(Point, u64, u8),
        Sent,
        HandedOver,
    }

    fn order(sequence: u64) -> Order {
        OrderRequest { instrument: (sequence % 2) as u16, ..OrderRequest::to_venue(0) }
            .with_id(OrderId::new(1, 0, sequence))
    }

    fn report(sequence: u64) -> Report {
        let order = OrderRequest { price: 1, quantity: 1 + sequence % 2, ..order(sequence).request }
            .with_id(order(sequence).id);
        Report { filled: sequence % 2, ..crate::in_full(&order) }
    }

    /// A run of `orders` orders. Every sixth report finds the hand-off full, and waits with the
    /// next one.
    fn run(orders: u64) -> Vec<GatewayAction> {
        let mut actions = Vec::new();
        for accepted in 0..orders {
            actions.push(GatewayAction::Logged(Point::GatewayRecv, accepted, GATEWAY as u8));
            actions.push(GatewayAction::Sent);
            if accepted % 2 > 0 {
                actions.push(GatewayAction::Logged(Point::Instrument, accepted, 0));
            }
            // Another gateway of its thread.
            actions.push(GatewayAction::Logged(Point::GatewayRecv, accepted, GATEWAY as u8 + 1));
            let Some(reported) = accepted.checked_sub(OPEN_ORDERS) else { continue };
            let Report { number, .. } = report(reported);
            if reported % 3 == 0 {
                actions.push(GatewayAction::Logged(Point::Cancelled, reported, number));
            }
            actions.push(GatewayAction::Logged(
                Point::GatewayDone,
                reported,
                report(reported).stamp_detail(),
            ));
            if reported % 6 != 4 {
                actions.push(GatewayAction::HandedOver);
            }
            if reported % 2 > 0 {
                actions.push(GatewayAction::Logged(Point::FillQuantity, reported, number));
                actions.push(GatewayAction::Logged(Point::FillPrice, reported, number));
            }
            if reported % 6 == 5 {
                actions.push(GatewayAction::HandedOver);
            }
        }
        actions
    }

    /// Keys of the last messages that a search finds in a log, and the number of records visited.
    type SearchResult = (HashSet<u64>, usize);

    /// Returns the result of `search`, which gets the last messages and the log up to a death.
    fn search_at_death(
        actions: &[GatewayAction],
        search: impl Fn(&LastMessages<'_>, &ReadOnlyWords) -> SearchResult,
    ) -> SearchResult {
        let (mut sent, mut handed_over, mut keys) = (0, 0, Vec::new());
        for action in actions {
            match action {
                GatewayAction::Logged(point, sequence, detail) => {
                    keys.push(key_with(*point, OrderId::new(1, 0, *sequence), *detail));
                }
                GatewayAction::Sent => sent += 1,
                GatewayAction::HandedOver => handed_over += 1,
            }
        }
        let open = [Some(report(handed_over)), None, Some(report(handed_over + 1))];
        let last = LastMessages {
            gateway: GATEWAY,
            last_order: Some(order(sent - 1)),
            next_order: Some(order(sent)),
            last_report: Some(report(handed_over - 1)),
            last_done: None,
            open: &open,
        };
        let words = Region::heap(LOG_OFFSET + 2 * keys.len() + 20).words();
        for (position, key) in keys.iter().enumerate() {
            words[LOG_OFFSET + 2 * position].store(*key, shm::sync::Ordering::Relaxed);
        }
        search(&last, &words.into())
    }

    fn search_from_end(last: &LastMessages<'_>, log: &ReadOnlyWords) -> SearchResult {
        last.find_in(log)
    }

    fn search_whole_log(last: &LastMessages<'_>, log: &ReadOnlyWords) -> SearchResult {
        keys_from_end(log, &last.keys(), |_| false)
    }

    /// Deaths after each of the last actions.
    fn deaths(actions: &[GatewayAction]) -> impl Iterator<Item = &[GatewayAction]> {
        (actions.len() - 80..=actions.len()).map(|end| &actions[..end])
    }

    #[test]
    fn search_from_end_finds_all_in_bounded_work() {
        let [short, long] = [198, 19_998].map(run);
        for (short, long) in deaths(&short).zip(deaths(&long)) {
            let (keys, visited) = search_at_death(long, search_from_end);
            assert_eq!(keys, search_at_death(long, search_whole_log).0, "after {} actions", long.len());
            assert_eq!(visited, search_at_death(short, search_from_end).1, "after {} actions", long.len());
            assert!(visited < 40, "{visited} records");
            assert!(
                search_at_death(long, search_whole_log).1 > 90 * search_at_death(short, search_whole_log).1,
                "the work of a whole search grows with the log"
            );
        }
    }

    #[test]
    fn incomplete_search_is_detected() {
        let point = |key: Option<u64>| Some(Record::from_words(key?, 0)?.point);
        for end in [Point::GatewayRecv, Point::GatewayDone] {
            let early = |last: &LastMessages<'_>, log: &ReadOnlyWords| {
                keys_from_end(log, &last.keys(), |key| point(key) == Some(end))
            };
            let actions = run(198);
            assert!(
                deaths(&actions).any(|actions| search_at_death(actions, early).0
                    != search_at_death(actions, search_whole_log).0),
                "{end:?}"
            );
        }
    }

    #[test]
    fn idle_gateway_needs_no_search() {
        let log = Region::heap(LOG_OFFSET + 20).words().into();
        let last = LastMessages {
            gateway: 0,
            last_order: None,
            next_order: None,
            last_report: None,
            last_done: None,
            open: &[None],
        };
        assert_eq!(search_from_end(&last, &log), (HashSet::new(), 0));
        let last = LastMessages { next_order: Some(order(0)), ..last };
        assert_eq!(search_from_end(&last, &log), (HashSet::new(), 0));
    }

    #[test]
    fn stamped_reports_are_kept_and_others_replaced() {
        let open = [None, Some(report(0)), None, Some(report(1)), Some(report(2)), None];
        let stamped_below = |stamped: u64| stamped_reports(&open, |report| report.id.sequence() < stamped);
        assert_eq!(stamped_below(0), Vec::<Message>::new(), "nothing is stamped: all are read again");
        assert_eq!(stamped_below(1), [PLACEHOLDER, report(0).to_message()]);
        assert_eq!(
            stamped_below(2),
            [PLACEHOLDER, report(0).to_message(), PLACEHOLDER, report(1).to_message()]
        );
        assert_eq!(stamped_below(3).len(), 5);
    }
}
