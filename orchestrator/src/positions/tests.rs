//! Positions against a naive recomputation from the reports, and broken ones that it finds.

use super::*;
use proptest::prelude::*;
use protocol::wire::OrderRequest;
use std::collections::BTreeMap;

/// The venue's state of an order: everything, in one map.
#[derive(Clone, Copy, Debug)]
struct AtVenue {
    side: Side,
    instrument: u16,
    leaves: u64,
}

type Step = (u8, u64, i64, u8);

type Settle = fn(&mut Positions, &Report);

fn settle(positions: &mut Positions, report: &Report) {
    positions.settle(report, true).unwrap();
}

fn open_at(venue: &BTreeMap<u64, AtVenue>, side: Side, instrument: u16) -> u64 {
    let is_of = |order: &&AtVenue| (order.side, order.instrument) == (side, instrument);
    venue.values().filter(is_of).map(|order| order.leaves).sum()
}

/// A venue and a strategy that send each other the messages of `steps`; what the positions should
/// be is added up from the reports. `Err`: how they differ.
fn trade(steps: &[Step], settle: Settle) -> Result<(), String> {
    let mut positions = Positions::new(1, 2, 64);
    let mut venue: BTreeMap<u64, AtVenue> = BTreeMap::new();
    let mut fills: Vec<(u16, i128, i128)> = Vec::new();
    for (sequence, (what, quantity, price, pick)) in (0..).zip(steps) {
        let id = OrderId::new(0, 0, sequence);
        let side = if pick % 2 == 0 { Side::Buy } else { Side::Sell };
        let instrument = u16::from(pick % 3 == 0);
        let open = venue.keys().nth(usize::from(*pick) % venue.len().max(1)).copied();
        let (price, quantity) = (*price, *quantity);
        let base = OrderRequest { side, instrument, price, quantity, ..OrderRequest::to_venue(0) };
        let report = |sequence: u64, status, order: &AtVenue, filled, is_last| {
            let AtVenue { instrument, side, .. } = *order;
            let sent = OrderRequest { instrument, side, ..base }.with_id(OrderId::new(0, 0, sequence));
            let leaves = if is_last { 0 } else { order.leaves };
            Report { status, filled, leaves, is_last, ..Report::full_fill(&sent) }
        };
        match (what % 5, open) {
            (0, _) | (_, None) => {
                positions.send(&base.with_id(id));
                venue.insert(sequence, AtVenue { side, instrument, leaves: quantity });
            }
            // A fill, of a part or of all.
            (1, Some(target)) => {
                let order = venue.get_mut(&target).unwrap();
                let filled = quantity.min(order.leaves);
                order.leaves -= filled;
                let is_last = order.leaves == 0;
                let status = if is_last { OrderStatus::Filled } else { OrderStatus::PartiallyFilled };
                settle(&mut positions, &report(target, status, order, filled, is_last));
                let sign = if order.side == Side::Buy { 1 } else { -1 };
                fills.push((order.instrument, sign * i128::from(filled), i128::from(price)));
                if is_last {
                    venue.remove(&target);
                }
            }
            // Cancelled or refused with what was left of it.
            (2, Some(target)) => {
                let order = venue.remove(&target).unwrap();
                let status = if price % 2 == 0 { OrderStatus::Cancelled } else { OrderStatus::Refused };
                settle(&mut positions, &report(target, status, &order, 0, true));
            }
            // A replace that is carried out, or is not.
            (3, Some(target)) => {
                let order = *venue.get(&target).unwrap();
                let replace = Operation::Replace;
                positions.send(
                    &OrderRequest { operation: replace, target, instrument: order.instrument, ..base }
                        .with_id(id),
                );
                let account = positions.account(StrategyIndex(0), order.instrument);
                let open = if order.side == Side::Buy { account.open_buy } else { account.open_sell };
                let worst =
                    open_at(&venue, order.side, order.instrument) + quantity.saturating_sub(order.leaves);
                if open != worst.cast_signed() {
                    return Err(format!("{open} open while a replace is on its way, {worst} could be"));
                }
                if price % 3 != 0 {
                    let order = venue.get_mut(&target).unwrap();
                    order.leaves = quantity;
                    settle(&mut positions, &report(target, OrderStatus::Replaced, order, 0, false));
                }
                settle(&mut positions, &report(sequence, OrderStatus::Done, &order, 0, true));
            }
            // The venue takes quantity away.
            (_, Some(target)) => {
                let order = venue.get_mut(&target).unwrap();
                order.leaves -= order.leaves / 2;
                settle(&mut positions, &report(target, OrderStatus::Restated, order, 0, false));
            }
        }
    }
    for instrument in 0..2 {
        let account = positions.account(StrategyIndex(0), instrument);
        let open = [Side::Buy, Side::Sell].map(|side| open_at(&venue, side, instrument).cast_signed());
        let found = [account.open_buy, account.open_sell];
        if found != open {
            return Err(format!("open {found:?}, and should be {open:?}"));
        }
        let own_fills = || fills.iter().filter(|(of, ..)| *of == instrument);
        let net: i128 = own_fills().map(|(_, quantity, _)| quantity).sum();
        let cost: i128 = own_fills().map(|(_, quantity, price)| quantity * price).sum();
        if (i128::from(account.net), account.cost) != (net, cost) {
            return Err(format!("holds {} for {}, and should {net} for {cost}", account.net, account.cost));
        }
    }
    Ok(())
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((any::<u8>(), 1u64..1_000, 1i64..1_000, any::<u8>()), 1..60)
}

proptest! {
    #[test]
    fn positions_equal_the_sum_of_reports(steps in steps()) {
        prop_assert_eq!(trade(&steps, settle), Ok(()));
    }
}

/// Two partial fills and a cancel of the rest.
const PARTIAL: [Step; 4] = [(0, 100, 7, 0), (1, 30, 8, 0), (1, 20, 9, 0), (2, 1, 2, 0)];

#[test]
fn forgotten_partial_fill_or_remainder_is_detected() {
    fn forgets<const STATUS: u8>(positions: &mut Positions, report: &Report) {
        if report.status as u8 != STATUS {
            settle(positions, report);
        }
    }
    const PARTIAL_FILL: u8 = OrderStatus::PartiallyFilled as u8;
    const REMAINDER: u8 = OrderStatus::Cancelled as u8;
    assert_eq!(trade(&PARTIAL, settle), Ok(()));
    assert!(trade(&PARTIAL, forgets::<PARTIAL_FILL>).unwrap_err().contains("should 50"));
    assert!(trade(&PARTIAL, forgets::<REMAINDER>).unwrap_err().contains("open [50, 0]"));
}

#[test]
fn dead_strategys_order_is_open_until_venue_reports() {
    let mut positions = Positions::new(1, 1, 4);
    let order = OrderRequest { quantity: 10, ..OrderRequest::to_venue(0) }.with_id(OrderId::new(0, 0, 0));
    positions.send(&order);
    positions.renew(StrategyIndex(0));
    assert_eq!(
        (positions.open(StrategyIndex(0)), positions.account(StrategyIndex(0), 0).max_position()),
        (0, 10)
    );
    let cancelled = Report { status: OrderStatus::Cancelled, filled: 4, ..Report::full_fill(&order) };
    let change = positions.settle(&cancelled, false).unwrap();
    assert_eq!((change.long, change.short, change.filled), (-6, 4, 4));
    assert_eq!(
        (positions.account(StrategyIndex(0), 0).max_position(), positions.account(StrategyIndex(0), 0).net),
        (4, 4)
    );
    let foreign = Report { instrument: 1, ..cancelled };
    assert_eq!(positions.settle(&foreign, true), None, "there is no such instrument");
}
