//! Tests of snapshots: a restored core reaches the same state, byte for byte, from any cut;
//! snapshots that omit something are detected.

use super::{EngineSnapshot, Replica};
use crate::engine::tests::Effect;
use crate::engine::{Core, GatewaySession, GatewayState, Input, SavedCore, SessionState};
use crate::risk::RiskSetup;
use journal::{Outbox, Record, State, codec};
use proptest::prelude::*;
use protocol::commands::Command;
use protocol::index::{GatewayIndex, StrategyIndex, VenueIndex};
use protocol::instrument::{Instrument, ReferenceKind};
use protocol::kill::Scope;
use protocol::limits::{LimitSetting, RiskControl};
use protocol::stamps::Stamps;
use protocol::supervision::{Incarnation, ProtocolViolation};
use protocol::wire::{Operation, Order, OrderId, OrderRequest, Report, Side};

const STRATEGIES: usize = 4;
const VENUES: usize = 2;
const CREDENTIALS: usize = 2;
const OPEN: u64 = 64;

fn replica() -> Replica {
    Replica::new(core(), Stamps::All)
}

/// A core with every control on, so wide that most orders pass.
fn core() -> Core {
    let of = |control, value| LimitSetting { scope: Scope::All, control, value };
    let limits = [
        of(RiskControl::MessageRate, 100_000_000),
        of(RiskControl::CredentialRate, 100_000_000),
        of(RiskControl::CredentialOpenOrders, 100),
        of(RiskControl::DuplicateWindow, 40),
        of(RiskControl::GrossExposure, 1 << 40),
        of(RiskControl::MaxLoss, 1 << 20),
        of(RiskControl::MaxRejections, 20),
        of(RiskControl::MaxExecutions, 30),
    ];
    let instrument = Instrument {
        reference_price: 100,
        reference: ReferenceKind::LastTrade,
        max_quantity: 1 << 20,
        ..Instrument::default()
    };
    let setup = RiskSetup {
        credentials: CREDENTIALS,
        instruments: &[instrument.clone(), instrument],
        limits: &limits,
        orders: &[40; STRATEGIES],
        venue_orders: &[30; STRATEGIES * VENUES],
        resumable_gateways: &[false, true, true, false],
        ..RiskSetup::open_orders(STRATEGIES, VENUES, OPEN)
    };
    Core::new(&setup).unwrap()
}

type Drawn = (u16, u8, u8, i64, u64, bool);

/// Returns what happens: orders of every kind, reports, deaths, kill switches, limits, recalls.
fn events(drawn: &[Drawn]) -> Vec<Input> {
    // A core that has seen the events so far gives identities and states.
    let mut seen = core();
    let mut sent: Vec<Order> = Vec::new();
    let mut commands = 0;
    let mut events = Vec::new();
    for &(strategy, what, kind, price, quantity, flag) in drawn {
        let index = StrategyIndex(strategy);
        let session = seen.sessions[index];
        let venue = u16::from(kind) % VENUES as u16;
        let gateway = GatewayIndex(venue * CREDENTIALS as u16 + strategy % CREDENTIALS as u16);
        let side = if flag { Side::Buy } else { Side::Sell };
        let next = session.next_sequence();
        let order = |sequence, venue| {
            let order = Order::new(OrderId::new(strategy, session.epoch, sequence), venue);
            OrderRequest { side, price, quantity, instrument: (quantity % 2) as u16, ..order.request }
                .with_id(order.id)
        };
        let input = match what {
            0..=6 => {
                let operation =
                    [Operation::Cancel, Operation::Replace, Operation::New][usize::from(what.min(2))];
                let target = next.saturating_sub(quantity % 4);
                let order = OrderRequest {
                    operation,
                    target,
                    ..order(next, if kind == 9 { 7 } else { venue }).request
                }
                .with_id(order(next, if kind == 9 { 7 } else { venue }).id);
                sent.push(order);
                Input::Order { from: Some(index), message: order.to_message() }
            }
            7..=9 => {
                let is_last = what < 9;
                let report = Report::full_fill(&order(next.saturating_sub(1 + quantity % 4), venue));
                let report = Report { leaves: u64::from(!is_last), is_last, ..report };
                Input::Report { gateway: Some(gateway), message: report.to_message() }
            }
            10 if kind < 3 => match session.state {
                SessionState::Dying { .. } => Input::Retired { strategy: index },
                state => {
                    let fenced = state != SessionState::Dead;
                    let epoch = session.epoch + u16::from(!fenced);
                    Input::Lifecycle { strategy: index, life: Incarnation { epoch, fenced } }
                }
            },
            10 if kind < 5 => {
                let GatewaySession { state, epoch, .. } = seen.gateways[gateway];
                match state {
                    GatewayState::Closing { .. } => Input::GatewayDrained { gateway },
                    _ => {
                        let fenced = state == GatewayState::Up;
                        let life = Incarnation { epoch: epoch + u16::from(!fenced), fenced };
                        Input::GatewayLife { gateway, life }
                    }
                }
            }
            10 => {
                let Some(order) = sent.pop() else { continue };
                Input::Recalled { message: order.to_message() }
            }
            11 => {
                commands += 1;
                let scope = match kind % 4 {
                    0 => Scope::Strategy(StrategyIndex(strategy)),
                    1 => Scope::Venue(VenueIndex(venue)),
                    2 => Scope::Instrument(venue),
                    _ => Scope::Credential(strategy % 2),
                };
                let control = RiskControl::MaxOrderVolume.code();
                let command = match kind {
                    0..=4 => Command::Kill(scope),
                    5..=8 => Command::Revive(scope),
                    _ => Command::SetLimit { scope: Scope::All, control, value: 1 << 19 },
                };
                Input::Command { number: commands - 1, command: (kind != 11).then_some(command) }
            }
            _ => Input::Violation { from: None, why: ProtocolViolation::Garbage },
        };
        apply(&mut seen, input, &mut Vec::new());
        events.push(input);
    }
    events
}

fn apply(core: &mut Core, input: Input, out: &mut Vec<Effect>) {
    if core.can_apply(&input) {
        core.replay(input, 1_000, out);
    }
}

fn replay(mut replica: Replica, events: &[(u64, Input)]) -> Replica {
    for (index, input) in events {
        let bytes = input.encode(10 * index, <[u8]>::to_vec);
        let sequence = index + 1;
        // A recall of an order that was rejected is refused.
        let _ = replica.apply(Record { sequence, payload: &bytes });
    }
    replica
}

fn numbered_events(drawn: &[Drawn]) -> Vec<(u64, Input)> {
    (0..).zip(events(drawn)).collect()
}

fn from_bytes(bytes: &[u8]) -> Replica {
    let mut replica = replica();
    replica.decode(1, bytes).unwrap();
    replica
}

fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
    let drawn_event = (0..STRATEGIES as u16, 0u8..13, 0u8..12, 95i64..105, 1u64..20, any::<bool>());
    prop::collection::vec(drawn_event, 2..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn restored_snapshot_reaches_equal_state_at_every_cut(drawn in drawn()) {
        let events = numbered_events(&drawn);
        let final_state = replay(replica(), &events).encode().unwrap();
        for cut in 0..=events.len() {
            let bytes = replay(replica(), &events[..cut]).encode().unwrap();
            let restored = from_bytes(&bytes);
            prop_assert!(restored.encode().unwrap() == bytes, "cut {cut}: the snapshot does not round-trip");
            let end = replay(restored, &events[cut..]).encode().unwrap();
            prop_assert!(end == final_state, "cut {cut}: the restored replica diverges");
        }
    }

    /// Snapshots are not trusted: no bytes cause a panic.
    #[test]
    fn corrupt_snapshot_is_refused_or_decodes(
        drawn in drawn(), at in any::<prop::sample::Index>(), bit in 0u8..8,
    ) {
        let mut bytes = replay(replica(), &numbered_events(&drawn)).encode().unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        let mut replica = replica();
        if replica.decode(1, &bytes).is_ok() {
            prop_assert!(replica.encode().is_ok());
        }
    }
}

/// A load in which everything happens.
fn load() -> Vec<(u64, Input)> {
    let drawn_event = |n: u64| {
        let what = [2, 3, 4, 2, 7, 1, 9, 5, 2, 8, 3, 0][(n % 12) as usize];
        // Late enough that much is open then, a venue is killed.
        let (what, kind) = if n == 90 { (11, 1) } else { (what, (n % 7) as u8) };
        (n as u16 % 4, what, kind, 99 + (n % 3) as i64, 1 + n % 13, n.is_multiple_of(2))
    };
    numbered_events(&(0..140).map(drawn_event).collect::<Vec<_>>())
}

#[test]
fn forgetful_snapshot_is_detected() {
    let events = load();
    let (before, after) = events.split_at(100);
    let final_state = replay(replica(), &events).encode().unwrap();
    let bytes = replay(replica(), before).encode().unwrap();
    type Forgets = fn(&mut EngineSnapshot, SavedCore);
    let empty = || {
        let bytes = replica().encode().unwrap();
        codec::decode::<EngineSnapshot>(Replica::VERSION, &bytes).unwrap().core
    };
    let forgetful: [(&str, Forgets); 16] = [
        ("nothing", |_, _| {}),
        ("open orders", |saved, _| saved.core.1.fill_with(Default::default)),
        ("how many requests are open", |saved, _| {
            saved.core.0.positions.strategies.iter_mut().for_each(|of| of.count += 1);
        }),
        ("positions", |saved, _| saved.core.0.positions.accounts.fill(Default::default())),
        ("kill switches", |saved, empty| saved.core.0.risk.switches = empty.0.risk.switches),
        ("whom it tells of them", |saved, _| saved.core.0.kills.clear()),
        ("message rates", |saved, _| {
            saved.core.0.risk.strategies.iter_mut().for_each(|row| row.messages = Default::default());
        }),
        ("the reference price", |saved, empty| saved.core.0.risk.traded = empty.0.risk.traded),
        ("what a credential has left", |saved, empty| {
            saved.core.0.risk.credentials = empty.0.risk.credentials
        }),
        ("profits", |saved, _| saved.core.0.risk.strategies.iter_mut().for_each(|row| row.profit = 0)),
        ("which order is next", |saved, empty| saved.core.0.sessions = empty.0.sessions),
        ("orders at gateways", |saved, empty| saved.core.0.gateways = empty.0.gateways),
        ("rejections", |saved, empty| saved.core.0.rejected_by_reason = empty.0.rejected_by_reason),
        ("checksums", |saved, _| saved.core.0.reported = Default::default()),
        ("how much was sent", |saved, _| {
            saved.ledger.gateways.iter_mut().for_each(|of| *of = Default::default())
        }),
        ("what may not be in the log", |saved, _| saved.ledger.log.iter_mut().for_each(Outbox::clear)),
    ];
    let mut unseen = Vec::new();
    for (what, forget) in forgetful {
        let mut saved = codec::decode::<EngineSnapshot>(Replica::VERSION, &bytes).unwrap();
        forget(&mut saved, empty());
        let restored = from_bytes(&codec::encode(Replica::VERSION, &saved).unwrap());
        let end = replay(restored, after).encode().unwrap();
        if end == final_state {
            unseen.push(what);
        }
    }
    assert_eq!(unseen, ["nothing"], "snapshots that forget and are not found");
}

/// The tables of a restored core are as large as before, and so is the room for kill switches.
#[test]
fn restored_core_applies_without_allocating() {
    let inputs = load();
    let mut out: Vec<Effect> = Vec::with_capacity(10_000);
    let (mut live, mut restored) = (core(), core());
    inputs[..100].iter().for_each(|(_, input)| apply(&mut live, *input, &mut out));
    let saved = codec::encode(Replica::VERSION, &live.save()).unwrap();
    restored.restore(codec::decode(Replica::VERSION, &saved).unwrap()).unwrap();
    let before = system::alloc::allocations();
    inputs[100..].iter().for_each(|(_, input)| apply(&mut restored, *input, &mut out));
    for strategy in 0..4 {
        for command in [Command::Kill(Scope::Strategy(StrategyIndex(strategy))), Command::Revive(Scope::All)]
        {
            apply(&mut restored, Input::Command { number: 9, command: Some(command) }, &mut out);
        }
    }
    assert_eq!(system::alloc::allocations() - before, 0);
}
