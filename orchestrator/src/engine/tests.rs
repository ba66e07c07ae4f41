//! The core alone: inputs in, effects out as a list. No ring, clock, thread or journal.

mod gateways;
mod incidents;
mod kills;

use super::*;
use crate::risk::Reject;
use protocol::commands::Command;
use protocol::kill::Scope;
use protocol::limits::{LimitSetting, RiskControl};
use protocol::record::Point;
use protocol::supervision::{Incarnation, ProtocolViolation};
use protocol::wire::{Instruction, Message, Operation, OrderId, OrderRequest, Report, Side};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Stamp(Point, OrderId, u8),
    Logged(Point, OrderId, u64),
    ToGateway(GatewayIndex, Message),
    Returned(Report),
    Recall,
    Close(StrategyIndex),
    Reopen(StrategyIndex),
    CloseGateway(GatewayIndex),
    ReopenGateway(GatewayIndex, bool),
    OperatorNotice(OperatorNotice),
    LifecycleNotice(LifecycleNotice),
}

impl Effects for Vec<Effect> {
    fn off_path(&mut self) -> &mut dyn Effects {
        self
    }

    fn stamp(&mut self, point: Point, id: OrderId, detail: u8) {
        self.push(Effect::Stamp(point, id, detail));
    }

    fn log_now(&mut self, point: Point, id: OrderId, detail: u8) -> u64 {
        self.push(Effect::Stamp(point, id, detail));
        0
    }

    fn log_value(&mut self, point: Point, id: OrderId, value: u64) {
        self.push(Effect::Logged(point, id, value));
    }

    fn to_gateway(&mut self, gateway: GatewayIndex, message: &Message) {
        self.push(Effect::ToGateway(gateway, *message));
    }

    fn to_strategy(&mut self, report: &Report, _: &Message) {
        self.push(Effect::Returned(*report));
    }

    fn recall(&mut self) {
        self.push(Effect::Recall);
    }

    fn close(&mut self, strategy: StrategyIndex) {
        self.push(Effect::Close(strategy));
    }

    fn renew(&mut self, strategy: StrategyIndex) {
        self.push(Effect::Reopen(strategy));
    }

    fn close_gateway(&mut self, gateway: GatewayIndex) {
        self.push(Effect::CloseGateway(gateway));
    }

    fn renew_gateway(&mut self, gateway: GatewayIndex, keeps_inbox: bool) {
        self.push(Effect::ReopenGateway(gateway, keeps_inbox));
    }

    fn notify_operators(&mut self, notice: OperatorNotice) {
        self.push(Effect::OperatorNotice(notice));
    }

    fn notify_launcher(&mut self, notice: LifecycleNotice) {
        self.push(Effect::LifecycleNotice(notice));
    }
}

/// A core of two strategies and two venues, and all its effects so far.
struct Bench {
    core: Core,
    out: Vec<Effect>,
    ticks: u64,
}

const SETUP: RiskSetup<'_> = RiskSetup::open_orders(2, 2, 100);

fn bench(max_open: u64) -> Bench {
    bench_of(&RiskSetup { max_open, ..SETUP })
}

fn bench_of(setup: &RiskSetup<'_>) -> Bench {
    Bench { core: Core::new(setup).unwrap(), out: Vec::new(), ticks: 0 }
}

const fn limit(control: RiskControl, value: u64) -> LimitSetting {
    LimitSetting { scope: Scope::All, control, value }
}

pub(crate) fn order(strategy: u16, sequence: u64, venue: u16) -> Order {
    let id = OrderId::new(strategy, 0, sequence);
    OrderRequest { side: Side::Sell, price: 1, quantity: 7, ..OrderRequest::to_venue(venue) }.with_id(id)
}

/// Returns an order with another price.
pub(crate) fn priced(price: i64, order: Order) -> Order {
    OrderRequest { price, ..order.request }.with_id(order.id)
}

impl Bench {
    fn apply(&mut self, input: Input) -> Vec<Effect> {
        let from = self.out.len();
        self.core.apply(input, self.ticks, &mut self.out);
        self.out[from..].to_vec()
    }

    /// An order through memory that only its sender writes.
    fn send(&mut self, order: &Order) -> Vec<Effect> {
        self.apply(Input::Order { from: Some(order.id.strategy()), message: order.to_message() })
    }

    /// An order through memory that several strategies write.
    fn send_shared(&mut self, order: &Order) -> Vec<Effect> {
        self.apply(Input::Order { from: None, message: order.to_message() })
    }

    fn fill(&mut self, order: &Order) -> Vec<Effect> {
        let message = Report::full_fill(order).to_message();
        self.apply(Input::Report { gateway: None, message })
    }

    fn fence(&mut self, strategy: u16, epoch: u16, fenced: bool) -> Vec<Effect> {
        self.apply(Input::Lifecycle {
            strategy: StrategyIndex(strategy),
            life: Incarnation { epoch, fenced },
        })
    }

    fn command(&mut self, number: u32, command: Command) -> Vec<Effect> {
        self.apply(Input::Command { number, command: Some(command) })
    }

    /// Unsettled requests, and what is held of the first instrument.
    fn position(&mut self, strategy: u16) -> (u64, i64) {
        self.core.book_last_order();
        (
            self.core.positions.open(StrategyIndex(strategy)),
            self.core.positions.account(StrategyIndex(strategy), 0).net,
        )
    }

    fn quarantined(&self, strategy: u16) -> Option<ProtocolViolation> {
        self.out.iter().find_map(|effect| match effect {
            Effect::LifecycleNotice(LifecycleNotice::Quarantined { strategy: of, why, .. })
                if of.0 == strategy =>
            {
                Some(*why)
            }
            _ => None,
        })
    }

    fn count(&self, point: Point) -> usize {
        points(&self.out).iter().filter(|of| **of == point).count()
    }
}

fn points(effects: &[Effect]) -> Vec<Point> {
    let point = |effect: &Effect| match effect {
        Effect::Stamp(point, ..) | Effect::Logged(point, ..) => Some(*point),
        _ => None,
    };
    effects.iter().filter_map(point).collect()
}

fn sent(effects: &[Effect], gateway: u16) -> Vec<Instruction> {
    let to = |effect: &Effect| match effect {
        Effect::ToGateway(to, message) if to.0 == gateway => {
            Some(Instruction::from_message(*message).unwrap())
        }
        _ => None,
    };
    effects.iter().filter_map(to).collect()
}

/// The sequences and rejection codes of the reports that a strategy is returned.
fn returned(effects: &[Effect], strategy: u16) -> Vec<(u64, u8)> {
    let to = |effect: &Effect| match effect {
        Effect::Returned(report) if report.id.strategy().0 == strategy => {
            Some((report.id.sequence(), report.reason))
        }
        _ => None,
    };
    effects.iter().filter_map(to).collect()
}

#[test]
fn order_counts_before_next_check_and_its_report() {
    let mut bench = bench(1);
    assert_eq!(returned(&bench.send(&order(1, 0, 1)), 1), []);
    assert_eq!(returned(&bench.send(&order(1, 1, 1)), 1), [(1, Reject::TooManyOpen.code())]);
    let effects = bench.fill(&order(1, 0, 1));
    assert_eq!(effects[1], Effect::Returned(Report::full_fill(&order(1, 0, 1))));
    assert_eq!(bench.position(1), (0, -7));
}

/// A queued order that is recalled leaves nothing open, also if a replace of it was queued after
/// it.
#[test]
fn recalled_order_and_its_replace_leave_nothing_open() {
    let mut bench = bench(8);
    let replace =
        OrderRequest { operation: Operation::Replace, target: 0, quantity: 100, ..order(0, 1, 0).request }
            .with_id(order(0, 1, 0).id);
    bench.send(&order(0, 0, 0));
    bench.send(&replace);
    bench.command(0, Command::Kill(Scope::Strategy(StrategyIndex(0))));
    for queued in [order(0, 0, 0), replace] {
        assert!(bench.core.should_recall(&queued.to_message()));
        bench.apply(Input::Recalled { message: queued.to_message() });
    }
    let killed = Reject::Killed.code();
    assert_eq!(returned(&bench.out, 0), [(0, killed), (1, killed)]);
    assert_eq!((bench.position(0), bench.core.counts.dispatched), ((0, 0), 0));
    assert_eq!(bench.core.positions.account(StrategyIndex(0), 0).open_sell, 0);
}
