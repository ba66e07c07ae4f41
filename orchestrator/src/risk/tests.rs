//! Each control at its exact boundary, and exposures against what they add up to.

use super::*;
use proptest::prelude::*;
use protocol::instrument::Instrument;
use protocol::kill::Scope;
use protocol::limits::{OFF, RiskControl};
use protocol::wire::{OrderId, OrderRequest, OrderTerms, Report};

/// One strategy or more, two instruments: any price and quantity, reference price 1,000 in both.
struct RiskBench {
    risk: Risk,
    positions: Positions,
    now: u64,
    sequence: u64,
}

const LOT: u64 = 100_000_000;

fn bench(strategies: usize, limits: &[(Scope, RiskControl, u64)]) -> RiskBench {
    let instrument = Instrument { reference_price: 1_000, ..Instrument::default() };
    let setting = |&(scope, control, value): &_| LimitSetting { scope, control, value };
    let settings: Vec<LimitSetting> = limits.iter().map(setting).collect();
    let setup = RiskSetup {
        credentials: 2,
        instruments: &[instrument.clone(), instrument],
        limits: &settings,
        ..RiskSetup::open_orders(strategies, 2, 100)
    };
    let (risk, positions) = (Risk::new(&setup).unwrap(), Positions::new(strategies, 2, 100));
    RiskBench { risk, positions, now: 0, sequence: 0 }
}

impl RiskBench {
    fn order(&mut self, strategy: u16, side: Side, quantity: u64, price: i64) -> Order {
        self.sequence += 1;
        let id = OrderId::new(strategy, 0, self.sequence);
        OrderRequest { side, quantity, price, ..OrderRequest::to_venue(0) }.with_id(id)
    }

    fn check(&mut self, order: &Order) -> Result<(), Reject> {
        self.risk.check(order, &self.positions, self.now)
    }

    fn send(&mut self, order: &Order) -> Result<(), Reject> {
        self.check(order)?;
        let change = self.positions.send(order);
        self.risk.book(order.id.strategy(), &change, 0, &self.positions);
        Ok(())
    }

    fn fill(&mut self, order: &Order, filled: u64, price: i64) -> Option<StrategyIndex> {
        let report = Report { filled, price, ..Report::full_fill(order) };
        let change = self.positions.settle(&report, true).unwrap();
        self.risk.book(order.id.strategy(), &change, price, &self.positions)
    }

    fn set(&mut self, scope: Scope, control: RiskControl, value: u64) {
        self.risk.set(&LimitSetting { scope, control, value }, &self.positions).unwrap();
    }
}

fn check_order(
    limits: &[(Scope, RiskControl, u64)],
    side: Side,
    quantity: u64,
    price: i64,
) -> Result<(), Reject> {
    let mut risk_bench = bench(1, limits);
    let order = risk_bench.order(0, side, quantity, price);
    risk_bench.check(&order)
}

#[test]
fn volume_and_value_have_an_exact_boundary() {
    let volume = [(Scope::All, RiskControl::MaxOrderVolume, 500)];
    assert_eq!(check_order(&volume, Side::Buy, 500, 1), Ok(()));
    assert_eq!(check_order(&volume, Side::Buy, 501, 1), Err(Reject::TooLarge));
    // 5 units at 1,000 cents are 5,000 cents.
    let value = [(Scope::All, RiskControl::MaxOrderValue, 5_000)];
    assert_eq!(check_order(&value, Side::Sell, 5 * LOT, 1_000), Ok(()));
    assert_eq!(check_order(&value, Side::Sell, 5 * LOT + 1, 1_000), Err(Reject::OrderValue));
    assert_eq!(check_order(&value, Side::Sell, 5 * LOT, 1_001), Err(Reject::OrderValue));
    // A market order counts at the reference price.
    assert_eq!(check_order(&value, Side::Buy, 5 * LOT, 0), Ok(()));
    assert_eq!(check_order(&value, Side::Buy, 5 * LOT + 1, 0), Err(Reject::OrderValue));
    let mut without = bench(1, &value);
    without.risk.traded[0] = Listing::new(&Instrument::default());
    let order = without.order(0, Side::Buy, 1, 0);
    assert_eq!(without.check(&order), Err(Reject::NoReference));
}

#[test]
fn largest_price_times_largest_quantity_does_not_overflow() {
    let value = [(Scope::All, RiskControl::MaxOrderValue, 1 << 62)];
    assert_eq!(check_order(&value, Side::Buy, MAX_VALUE, MAX_VALUE as i64), Err(Reject::OrderValue));
    assert_eq!(check_order(&[], Side::Buy, MAX_VALUE, MAX_VALUE as i64), Ok(()));
    assert_eq!(check_order(&[], Side::Buy, MAX_VALUE + 1, 1), Err(Reject::TooLarge));
    assert_eq!(check_order(&[], Side::Buy, 1, MAX_VALUE as i64 + 1), Err(Reject::PriceBand));
    assert_eq!(check_order(&[], Side::Buy, 1, i64::MIN), Err(Reject::BadPrice));
    let mut repeated = bench(1, &[]);
    let order = repeated.order(0, Side::Sell, MAX_VALUE, 1);
    assert_eq!(repeated.send(&order), Ok(()));
    let more = repeated.order(0, Side::Sell, 1, 1);
    assert_eq!(repeated.send(&more), Err(Reject::Overflow), "no position is larger than 2^62");
}

#[test]
fn position_limit_counts_worst_case_of_open_orders() {
    let mut risk_bench = bench(1, &[(Scope::All, RiskControl::MaxPosition, 100)]);
    let first = risk_bench.order(0, Side::Buy, 60, 10);
    assert_eq!(risk_bench.send(&first), Ok(()));
    let second = risk_bench.order(0, Side::Buy, 41, 10);
    assert_eq!(risk_bench.send(&second), Err(Reject::Position));
    let third = risk_bench.order(0, Side::Buy, 40, 10);
    assert_eq!(risk_bench.send(&third), Ok(()));
    // What is open on the other side helps nothing before it is filled.
    let sell = risk_bench.order(0, Side::Sell, 100, 10);
    assert_eq!(risk_bench.send(&sell), Ok(()));
    let one_more = risk_bench.order(0, Side::Sell, 1, 10);
    assert_eq!(risk_bench.send(&one_more), Err(Reject::Position));
    risk_bench.fill(&first, 60, 10);
    let after = risk_bench.order(0, Side::Sell, 60, 10);
    assert_eq!(risk_bench.send(&after), Ok(()), "60 are held now");
    assert_eq!(
        risk_bench.check(&OrderRequest { quantity: 1, ..after.request }.with_id(after.id)),
        Err(Reject::Position)
    );
    // Another instrument has a limit of its own.
    assert_eq!(
        risk_bench.check(&OrderRequest { instrument: 1, quantity: 100, ..after.request }.with_id(after.id)),
        Ok(())
    );
    assert_eq!(
        risk_bench.check(&OrderRequest { instrument: 1, quantity: 101, ..after.request }.with_id(after.id)),
        Err(Reject::Position)
    );
    assert_eq!(
        risk_bench.check(&OrderRequest { instrument: 2, ..after.request }.with_id(after.id)),
        Err(Reject::UnknownInstrument)
    );
    assert_eq!(
        risk_bench.check(&OrderRequest { venue: 2, ..after.request }.with_id(after.id)),
        Err(Reject::UnknownVenue)
    );
}

#[test]
fn replace_opens_only_its_additional_quantity() {
    let mut risk_bench = bench(1, &[(Scope::All, RiskControl::MaxPosition, 100)]);
    let order = risk_bench.order(0, Side::Sell, 60, 10);
    risk_bench.send(&order).unwrap();
    // The side of a replace means nothing: it is its order's.
    let replace = |quantity, sequence| {
        OrderRequest {
            operation: Operation::Replace,
            target: order.id.sequence(),
            quantity,
            side: Side::Buy,
            ..order.request
        }
        .with_id(OrderId::new(0, 0, sequence))
    };
    assert_eq!(risk_bench.check(&replace(101, 50)), Err(Reject::Position));
    assert_eq!(risk_bench.send(&replace(100, 51)), Ok(()));
    assert_eq!(risk_bench.check(&replace(100, 52)), Ok(()), "it is reserved already");
    assert_eq!(
        risk_bench
            .check(&OrderRequest { instrument: 1, ..replace(1, 53).request }.with_id(replace(1, 53).id)),
        Err(Reject::WrongInstrument)
    );
    assert_eq!(
        risk_bench
            .check(&OrderRequest { target: 99, ..replace(1_000, 54).request }.with_id(replace(1_000, 54).id)),
        Ok(()),
        "its venue refuses it"
    );
}

#[test]
fn executions_stop_an_account_until_it_is_revived() {
    for scope in [Scope::All, Scope::Strategy(StrategyIndex(0)), Scope::Instrument(0)] {
        let mut risk_bench = bench(1, &[(Scope::All, RiskControl::MaxExecutions, 2)]);
        for _ in 0..2 {
            let order = risk_bench.order(0, Side::Buy, 1, 10);
            assert_eq!(risk_bench.send(&order), Ok(()));
            risk_bench.fill(&order, 1, 10);
        }
        let order = risk_bench.order(0, Side::Buy, 1, 10);
        assert_eq!(risk_bench.check(&order), Err(Reject::ExecutionThrottle));
        assert_eq!(
            risk_bench.check(&OrderRequest { instrument: 1, ..order.request }.with_id(order.id)),
            Ok(())
        );
        risk_bench.risk.set_switch(scope, false, &risk_bench.positions).unwrap();
        assert_eq!(risk_bench.check(&order), Ok(()), "{scope}");
    }
}

#[test]
fn duplicates_rates_and_open_orders_have_their_reasons() {
    let mut repeated = bench(2, &[(Scope::All, RiskControl::DuplicateWindow, 100)]);
    let order = repeated.order(0, Side::Buy, 1, 10);
    assert_eq!(repeated.check(&order), Ok(()));
    repeated.now = 100;
    assert_eq!(repeated.check(&order), Err(Reject::Duplicate));
    repeated.now = 101;
    assert_eq!(repeated.check(&order), Ok(()));
    let other = Order { id: OrderId::new(1, 0, 0), ..order };
    assert_eq!(repeated.check(&other), Ok(()), "another strategy's is none");

    let rate = [
        (Scope::Strategy(StrategyIndex(0)), RiskControl::MessageRate, 1_000),
        (Scope::All, RiskControl::MessageBurst, 2),
    ];
    let mut fast = bench(3, &rate);
    let results: Vec<_> = (0..3).map(|_| fast.check(&order)).collect();
    assert_eq!(results, [Ok(()), Ok(()), Err(Reject::MessageRate)]);
    let cancel = OrderRequest { operation: Operation::Cancel, ..order.request }.with_id(order.id);
    assert_eq!(fast.check(&cancel), Ok(()), "a cancel always passes");
    assert_eq!(fast.check(&other), Ok(()));
    fast.now = 1_000_000;
    assert_eq!((fast.check(&order), fast.check(&order)), (Ok(()), Err(Reject::MessageRate)));

    // Strategies 0 and 2 have credential 0.
    let rate =
        [(Scope::All, RiskControl::CredentialRate, 1_000), (Scope::All, RiskControl::CredentialBurst, 2)];
    let mut shared = bench(3, &rate);
    let of = |strategy| Order { id: OrderId::new(strategy, 0, 0), ..order };
    let results: Vec<_> = [0, 2, 0, 2, 1].map(|strategy| shared.check(&of(strategy))).into();
    assert_eq!(results, [Ok(()), Ok(()), Err(Reject::CredentialRate), Err(Reject::CredentialRate), Ok(())]);

    let mut shared = bench(3, &[(Scope::Credential(0), RiskControl::CredentialOpenOrders, 2)]);
    let results: Vec<_> = [0, 2, 0, 2, 1, 1, 1].map(|strategy| shared.send(&of(strategy))).into();
    let full = Err(Reject::CredentialOpen);
    assert_eq!(results, [Ok(()), Ok(()), full, full, Ok(()), Ok(()), Ok(())]);
    assert_eq!(shared.check(&cancel), Ok(()), "no strategy is kept from a cancel by another one");
    shared.fill(&of(2), 1, 10);
    assert_eq!((shared.send(&of(0)), shared.send(&of(2))), (Ok(()), full), "one was filled");

    let mut limited = bench(1, &[(Scope::All, RiskControl::MaxOpenOrders, 1)]);
    assert_eq!(limited.send(&order), Ok(()));
    assert_eq!(limited.check(&cancel), Err(Reject::TooManyOpen));
    limited.set(Scope::All, RiskControl::MaxOpenOrders, OFF);
    assert_eq!(limited.check(&order), Ok(()));
}

#[test]
fn restricted_instruments_and_stop_prices_are_checked() {
    let mut risk_bench = bench(2, &[(Scope::Instrument(1), RiskControl::Restricted, 1)]);
    let order = risk_bench.order(0, Side::Buy, 1, 10);
    assert_eq!(
        risk_bench.check(&OrderRequest { instrument: 1, ..order.request }.with_id(order.id)),
        Err(Reject::Restricted)
    );
    assert_eq!(risk_bench.check(&order), Ok(()));
    risk_bench.set(Scope::Strategy(StrategyIndex(0)), RiskControl::Restricted, 1);
    assert_eq!(risk_bench.check(&order), Err(Reject::Restricted));
    assert_eq!(risk_bench.check(&Order { id: OrderId::new(1, 0, 0), ..order }), Ok(()));
    risk_bench.set(Scope::All, RiskControl::Restricted, OFF);
    assert_eq!(risk_bench.check(&order), Ok(()));
    risk_bench.set(Scope::All, RiskControl::PriceCollar, 100);
    let terms = |order_type, condition| OrderTerms { order_type, condition, ..OrderTerms::default() };
    let stop = OrderRequest {
        terms: terms(OrderType::Stop, OrderCondition::StopPrice(1_011)),
        price: 0,
        ..order.request
    }
    .with_id(order.id);
    assert_eq!(risk_bench.check(&stop), Err(Reject::PriceCollar), "1,000 and 100 basis points are 1,010");
    let market =
        OrderRequest { terms: terms(OrderType::Market, OrderCondition::None), price: 5_000, ..order.request }
            .with_id(order.id);
    assert_eq!(risk_bench.check(&market), Ok(()), "a market order has no price");
}

#[test]
fn exposure_has_an_exact_boundary() {
    // Reference 1,000 cents: a unit is worth 1,000 cents.
    // Strategies 0 and 2 have credential 0.
    let limits = [
        (Scope::Credential(0), RiskControl::GrossExposure, 10_000),
        (Scope::All, RiskControl::NetExposure, 6_000),
    ];
    let mut risk_bench = bench(3, &limits);
    let order = |strategy, sequence, instrument, side, units| {
        OrderRequest { instrument, side, quantity: units * LOT, price: 10, ..OrderRequest::to_venue(0) }
            .with_id(OrderId::new(strategy, 0, sequence))
    };
    assert_eq!(risk_bench.send(&order(0, 0, 0, Side::Buy, 4)), Ok(()));
    assert_eq!(risk_bench.send(&order(2, 0, 1, Side::Buy, 3)), Err(Reject::NetExposure));
    assert_eq!(risk_bench.send(&order(2, 1, 1, Side::Buy, 2)), Ok(()));
    assert_eq!(
        risk_bench.send(&order(0, 1, 1, Side::Sell, 6)),
        Ok(()),
        "gross: 4 of the one, 6 of the other"
    );
    assert_eq!(risk_bench.check(&order(0, 2, 0, Side::Sell, 5)), Err(Reject::GrossExposure));
    assert_eq!(
        risk_bench.check(&order(0, 2, 0, Side::Sell, 1)),
        Err(Reject::NetExposure),
        "6 are sold already"
    );
    risk_bench.set(Scope::All, RiskControl::NetExposure, OFF);
    assert_eq!(risk_bench.check(&order(0, 2, 0, Side::Sell, 1)), Ok(()), "net has no limit any more");
}

#[test]
fn loss_limit_kills_at_exact_boundary() {
    let mut risk_bench = bench(2, &[(Scope::Strategy(StrategyIndex(0)), RiskControl::MaxLoss, 500)]);
    let order = risk_bench.order(0, Side::Buy, LOT, 10_000);
    risk_bench.send(&order).unwrap();
    assert_eq!(risk_bench.fill(&order, LOT, 10_000), None);
    let other = |sequence| Order { id: OrderId::new(1, 0, sequence), ..order };
    assert_eq!(risk_bench.fill(&other(0), 1, 9_500), None, "a loss of 500 cents exactly");
    assert_eq!(risk_bench.fill(&other(1), 1, 9_499), Some(StrategyIndex(0)));
    risk_bench.risk.set_switch(Scope::Strategy(StrategyIndex(0)), true, &risk_bench.positions).unwrap();
    assert_eq!(risk_bench.fill(&other(2), 1, 9_000), None, "it is killed already");
}

#[test]
fn rejections_and_floods_have_a_boundary() {
    let limits = [(RiskControl::MaxRejections, 2), (RiskControl::RejectionWindow, 100)];
    let mut row = bench(1, &limits.map(|(control, value)| (Scope::All, control, value)));
    let results: Vec<bool> = [0, 50, 100, 201, 202, 203]
        .map(|now| row.risk.count_rejection(StrategyIndex(0), now).is_some())
        .into();
    assert_eq!(results, [false, false, true, false, false, true]);
    let mut fast = bench(1, &[(Scope::All, RiskControl::KillMessageRate, 20)]);
    let results: Vec<bool> = (0..3).map(|_| fast.risk.count_message(StrategyIndex(0), 5).is_some()).collect();
    assert_eq!(results, [false, false, true], "a tenth of a second's is let through at once");
}

#[derive(Clone, Debug)]
enum Step {
    Send { strategy: u16, instrument: u16, is_buy: bool, quantity: u64 },
    Fill { pick: usize, part: u64, price: i64 },
}

fn step() -> impl Strategy<Value = Step> {
    let send = (0u16..3, 0u16..2, any::<bool>(), 1u64..1_000);
    let fill = (any::<usize>(), 0u64..1_000, 1i64..2_000);
    prop_oneof![
        send.prop_map(|(strategy, instrument, is_buy, quantity)| {
            Step::Send { strategy, instrument, is_buy, quantity }
        }),
        fill.prop_map(|(pick, part, price)| Step::Fill { pick, part, price }),
    ]
}

/// Sends and fills orders, quantities in `unit`, and passes each new order to `send`. Returns the
/// first error.
fn trade(
    risk_bench: &mut RiskBench,
    steps: &[Step],
    unit: u64,
    send: impl Fn(&mut RiskBench, &Order) -> Result<bool, TestCaseError>,
) -> Result<(), TestCaseError> {
    let mut open: Vec<Order> = Vec::new();
    for step in steps {
        match *step {
            Step::Send { strategy, instrument, is_buy, quantity } => {
                let side = if is_buy { Side::Buy } else { Side::Sell };
                let order = OrderRequest {
                    instrument,
                    ..risk_bench.order(strategy, side, quantity * unit, 1_000).request
                }
                .with_id(risk_bench.order(strategy, side, quantity * unit, 1_000).id);
                open.extend(send(risk_bench, &order)?.then_some(order));
            }
            Step::Fill { pick, part, price } if !open.is_empty() => {
                let order = open.swap_remove(pick % open.len());
                risk_bench.fill(&order, (part * unit).min(order.request.quantity), price);
            }
            Step::Fill { .. } => {}
        }
    }
    Ok(())
}

proptest! {
    // Nothing is kept of a failure: the broken variants of a check fail on purpose.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn exposures_and_profits_match_sums_of_accounts(steps in prop::collection::vec(step(), 1..60)) {
        let limits = [(Scope::All, RiskControl::GrossExposure, 1 << 60), (Scope::All, RiskControl::MaxLoss, 1 << 60)];
        let mut risk_bench = bench(3, &limits);
        trade(&mut risk_bench, &steps, 1, |risk_bench, order| Ok(risk_bench.send(order).is_ok()))?;
        let profits = |risk_bench: &RiskBench| risk_bench.risk.strategies.iter().map(|row| row.profit).collect::<Vec<_>>();
        let sums = |risk_bench: &RiskBench| risk_bench.risk.credentials.iter().map(|row| row.exposure.sums()).collect::<Vec<_>>();
        let (exposures, before) = (sums(&risk_bench), profits(&risk_bench));
        // Setting a limit recomputes the sums.
        risk_bench.set(Scope::All, RiskControl::GrossExposure, 1 << 59);
        risk_bench.set(Scope::All, RiskControl::MaxLoss, 1 << 59);
        prop_assert_eq!(sums(&risk_bench), exposures);
        prop_assert_eq!(profits(&risk_bench), before);
    }

    /// The allowance never accepts what the exact check refuses, nor the reverse.
    #[test]
    fn allowance_never_exceeds_exact_check(steps in prop::collection::vec(step(), 1..60)) {
        let limits = [(Scope::All, RiskControl::GrossExposure, 2), (Scope::All, RiskControl::NetExposure, 1)];
        let mut risk_bench = bench(3, &limits);
        trade(&mut risk_bench, &steps, 100, |risk_bench, order| {
            let (more, instrument) = (order.request.quantity.cast_signed(), order.request.instrument);
            let reference = risk_bench.risk.traded[usize::from(instrument)].reference;
            let credential = usize::from(risk_bench.risk.credential(order.id.strategy()));
            let (exposure, is_buy) = (&mut risk_bench.risk.credentials[credential].exposure, order.request.side == Side::Buy);
            let exact = exposure.check_exactly(instrument, is_buy, more, reference);
            prop_assert_eq!(exposure.check(instrument, is_buy, more, reference), exact);
            prop_assert_eq!(risk_bench.send(order), exact);
            Ok(exact.is_ok())
        })?;
    }
}
