//! Tests of snapshots: a restored exchange reaches the same state, byte for byte, from any cut.

use crate::journal_entry::JournalEntry;
use crate::market::MarketSetup;
use crate::replica::{ExchangeReplica, ReplayedOutput};
use crate::reports::Trade;
use exchange::{Capacity, Exchange, Instrument};
use journal::{Record, State};
use proptest::prelude::*;
use protocol::session::number_instruction;
use protocol::wire::{
    CancelScope, Instruction, Operation, Order, OrderCondition, OrderId, OrderTerms, OrderType, SelfTrade,
    Side, TimeInForce,
};
use system::clock::Timebase;

const SESSIONS: usize = 2;
const TIME: Timebase = Timebase { start_ticks: 0, ns_per_tick: 1.0 };

fn setup() -> MarketSetup {
    let instruments = [Instrument::default(), Instrument::default()];
    let exchange = Exchange::new(&instruments, Capacity::for_orders(256)).unwrap();
    MarketSetup { venue: 0, exchange, instruments: 2, sessions: SESSIONS, capacity: 256, sequencer: None }
}

/// The random values of one record.
type RandomInput = (u16, u8, u8, i64, u64, bool);

/// Returns orders of every kind at a few prices, cancels, replaces, mass cancels, and time.
fn inputs(random_inputs: &[RandomInput]) -> Vec<(JournalEntry, u64)> {
    let mut next = [0u64; 4];
    let mut numbers = [0u32; SESSIONS];
    let entry = |(index, (strategy, what, kind, price, quantity, buys)): (usize, &RandomInput)| {
        let now = 10 * index as u64;
        if *what == 0 {
            return (JournalEntry::Time, now);
        }
        let (owner, session) = (usize::from(*strategy), usize::from(*strategy) % SESSIONS);
        let sequence = next[owner];
        next[owner] += 1;
        let mut order = Order::new(OrderId::new(*strategy, 0, sequence), 0);
        (order.request.price, order.request.quantity, order.request.instrument) =
            (*price, *quantity, (quantity % 2) as u16);
        order.request.side = if *buys { Side::Buy } else { Side::Sell };
        order.request.target = sequence.saturating_sub(quantity % 4);
        order.request.trigger = quantity % 3;
        order.request.operation = match what {
            1 => Operation::Cancel,
            2 => Operation::Replace,
            3 if *kind == 0 => Operation::MassCancel,
            _ => Operation::New,
        };
        let (order_type, time_in_force, condition) = match kind {
            0 => (OrderType::Stop, TimeInForce::ImmediateOrCancel, OrderCondition::StopPrice(*price)),
            1 => (OrderType::StopLimit, TimeInForce::GoodTillCancel, OrderCondition::StopPrice(*price)),
            2 => (OrderType::Limit, TimeInForce::GoodTillTime, OrderCondition::Lifetime(quantity * 7)),
            3 => (OrderType::Limit, TimeInForce::GoodTillCancel, OrderCondition::Display(1)),
            4 => (OrderType::Stop, TimeInForce::FillOrKill, OrderCondition::StopPrice(*price)),
            _ => (OrderType::Limit, TimeInForce::GoodTillCancel, OrderCondition::None),
        };
        let self_trade = if quantity % 5 == 0 { SelfTrade::CancelOldest } else { SelfTrade::Allow };
        if order.request.operation == Operation::New {
            let post_only = *kind == 6 && condition == OrderCondition::None;
            order.request.terms = OrderTerms { order_type, time_in_force, condition, self_trade, post_only };
        }
        let instruction = match kind {
            9 => Instruction::CancelAll(CancelScope { strategy: Some(order.id), instrument: None }),
            _ => Instruction::Order(order),
        };
        let mut message = instruction.to_message();
        // Some messages have a wrong number.
        number_instruction(&mut message, numbers[session] + u32::from(*kind == 8));
        numbers[session] += 1;
        (JournalEntry::Message(session, message), now)
    };
    random_inputs.iter().enumerate().map(entry).collect()
}

fn random_inputs() -> impl Strategy<Value = Vec<RandomInput>> {
    let input = (0u16..4, 0u8..12, 0u8..12, 95i64..105, 1u64..20, any::<bool>());
    prop::collection::vec(input, 2..60)
}

fn apply_all(mut replica: ExchangeReplica, inputs: &[(JournalEntry, u64)]) -> ExchangeReplica {
    for (inputs, now) in inputs {
        let payload = inputs.encode(*now, <[u8]>::to_vec);
        replica.apply_record(&Record { sequence: 1, payload: &payload }, |_| {}).unwrap();
    }
    replica
}

/// Returns a replica restored from bytes, after `change_outputs` has changed its outputs.
fn from_bytes(bytes: &[u8], change_outputs: impl FnOnce(&mut ReplayedOutput)) -> ExchangeReplica {
    let mut replica = ExchangeReplica::new(setup(), TIME);
    // The orders of an opening book are replaced by the snapshot's.
    let resting = exchange::NewOrder { id: 9, price: 50, quantity: 1, ..exchange::NewOrder::default() };
    let mut filled = setup();
    filled.exchange.apply(exchange::Command::New(resting), &mut Vec::new());
    replica.market = crate::market::Market::new(filled);
    replica.decode(1, bytes).unwrap();
    change_outputs(&mut replica.output);
    replica
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn restored_snapshot_reaches_equal_state_at_every_cut(random_inputs in random_inputs()) {
        let inputs = inputs(&random_inputs);
        let uninterrupted = apply_all(ExchangeReplica::new(setup(), TIME), &inputs).encode().unwrap();
        for cut in 0..=inputs.len() {
            let bytes = apply_all(ExchangeReplica::new(setup(), TIME), &inputs[..cut]).encode().unwrap();
            let restored = from_bytes(&bytes, |_| {});
            prop_assert!(restored.encode().unwrap() == bytes, "cut {cut}: the restored state differs from the saved one");
            let end = apply_all(restored, &inputs[cut..]).encode().unwrap();
            prop_assert!(end == uninterrupted, "cut {cut}: it continues differently");
        }
    }

    /// Snapshots are not trusted: no bytes cause a panic.
    #[test]
    fn corrupt_snapshot_is_refused_or_decodes(
        random_inputs in random_inputs(), at in any::<prop::sample::Index>(), bit in 0u8..8,
    ) {
        let inputs = inputs(&random_inputs);
        let mut bytes = apply_all(ExchangeReplica::new(setup(), TIME), &inputs).encode().unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let mut replica = ExchangeReplica::new(setup(), TIME);
        if replica.decode(1, &bytes).is_ok() {
            prop_assert!(replica.market.exchange().check().is_ok());
        }
    }
}

const fn trade() -> Trade {
    Trade { number: 0, instrument: 0, maker: 0, taker: 0, price: 1, quantity: 1 }
}

#[test]
fn incomplete_snapshot_is_detected() {
    let random_inputs: Vec<RandomInput> = (0..40)
        .map(|n: u8| {
            (
                u16::from(n % 4),
                4 + n % 5,
                n % 12,
                99 + i64::from(n % 3),
                1 + u64::from(n),
                n.is_multiple_of(2),
            )
        })
        .collect();
    let inputs = inputs(&random_inputs);
    let uninterrupted = apply_all(ExchangeReplica::new(setup(), TIME), &inputs).encode().unwrap();
    type ChangeOutputs = fn(&mut ReplayedOutput);
    let changes: [(&str, ChangeOutputs); 7] = [
        ("nothing", |_| {}),
        ("reports that were not sent", |output| {
            output.sessions.iter_mut().for_each(|session| session.reports.clear());
        }),
        ("the number of reports", |output| output.sessions[0].reports.push((0, [0; 7]))),
        ("the number of the last instruction", |output| output.sessions[1].counts.received += 1),
        ("the number of trades", |output| output.trades.push((0, trade()))),
        ("an instrument's number of trades", |output| {
            output.touches.iter_mut().for_each(|touch| touch.1 += 1)
        }),
        ("the number of orders", |output| output.received += 1),
    ];
    for (name, change_outputs) in changes {
        let bytes = apply_all(ExchangeReplica::new(setup(), TIME), &inputs[..30]).encode().unwrap();
        let end = apply_all(from_bytes(&bytes, change_outputs), &inputs[30..]).encode().unwrap();
        assert_eq!(end == uninterrupted, name == "nothing", "a snapshot that loses {name}");
    }
    // Without the orders of the books the market differs.
    let bytes = apply_all(ExchangeReplica::new(setup(), TIME), &inputs[..30]).encode().unwrap();
    let mut empty = from_bytes(&bytes, |_| {});
    empty.market = crate::market::Market::new(setup());
    assert_ne!(apply_all(empty, &inputs[30..]).encode().unwrap(), uninterrupted);
}
