//! Gateways whose successors resume their session: what is open there outlives them, unless they
//! are given up.

use super::*;
use protocol::index::VenueIndex;
use protocol::supervision::{GIVEN_UP, GatewayCounts};
use protocol::wire::CancelScope;

/// A bench whose gateway 0 resumes its session, and whose gateway 1 does not.
fn resumable() -> Bench {
    bench_of(&RiskSetup { resumable_gateways: &[true, false], max_open: 100, ..SETUP })
}

impl Bench {
    fn gateway_life(&mut self, gateway: u16, epoch: u16, fenced: bool) -> Vec<Effect> {
        self.apply(Input::GatewayLife { gateway: GatewayIndex(gateway), life: Incarnation { epoch, fenced } })
    }

    /// A death of a gateway that was up, and its end in the completion hand-off. Returns the
    /// effects of the latter.
    fn gateway_dies(&mut self, gateway: u16, epoch: u16) -> Vec<Effect> {
        assert_eq!(self.gateway_life(gateway, epoch, true), [Effect::Recall]);
        self.apply(Input::GatewayDrained { gateway: GatewayIndex(gateway) })
    }
}

fn repaired(epoch: u16, counts: GatewayCounts) -> Effect {
    Effect::LifecycleNotice(LifecycleNotice::GatewayRepaired {
        gateway: GatewayIndex(0),
        epoch,
        noticed: 0,
        counts,
    })
}

const DOWN: u8 = Reject::VenueDown.code();
const UNKNOWN: u8 = Reject::VenueUnknown.code();

/// Two strategies, each with a credential of its own: venue 0 has the gateways 0 and 1.
fn two_credentials() -> Bench {
    bench_of(&RiskSetup { credentials: 2, ..SETUP })
}

#[test]
fn death_of_gateway_is_of_its_credential_only() {
    let mut bench = two_credentials();
    let to = |effects: &[Effect]| [0, 1, 2, 3].map(|gateway| sent(effects, gateway).len());
    let mut sent_to = |strategy, sequence, venue| to(&bench.send(&order(strategy, sequence, venue)));
    assert_eq!((sent_to(0, 0, 0), sent_to(1, 0, 0)), ([1, 0, 0, 0], [0, 1, 0, 0]));
    assert_eq!((sent_to(0, 1, 1), sent_to(1, 1, 1)), ([0, 0, 1, 0], [0, 0, 0, 1]));
    let effects = bench.gateway_dies(1, 0);
    assert_eq!((returned(&effects, 0), returned(&effects, 1)), (vec![], vec![(0, UNKNOWN)]));
    assert_eq!(returned(&bench.send(&order(1, 2, 0)), 1), [(2, DOWN)], "its own venue is down");
    assert_eq!(to(&bench.send(&order(1, 3, 1))), [0, 0, 0, 1], "the other venue is not");
    assert_eq!(to(&bench.send(&order(0, 2, 0))), [1, 0, 0, 0], "nor is it for the other credential");
    bench.gateway_life(1, 1, false);
    assert_eq!(to(&bench.send(&order(1, 4, 0))), [0, 1, 0, 0]);
    bench.fill(&order(1, 4, 0));
    assert_eq!(bench.core.gateways[GatewayIndex(1)].counts.reports, 1, "a report counts at its gateway");
}

#[test]
fn cancels_go_to_gateways_of_credential() {
    let mut bench = two_credentials();
    let to = |effects: &[Effect]| [0, 1, 2, 3].map(|gateway| sent(effects, gateway).len());
    let kill = |scope| Command::Kill(scope);
    assert_eq!(to(&bench.command(0, kill(Scope::Credential(1)))), [0, 1, 0, 1]);
    assert_eq!(returned(&bench.send(&order(1, 0, 0)), 1), [(0, Reject::Killed.code())]);
    assert_eq!(to(&bench.send(&order(0, 0, 0))), [1, 0, 0, 0]);
    assert_eq!(to(&bench.command(1, kill(Scope::Venue(VenueIndex(1))))), [0, 0, 1, 1]);
    assert_eq!(to(&bench.command(2, kill(Scope::Strategy(StrategyIndex(0))))), [1, 0, 1, 0]);
    assert_eq!(to(&bench.fence(1, 0, true)), [0, 1, 0, 1], "the death of a strategy");
}

#[test]
fn open_orders_outlive_a_gateway_that_resumes() {
    let mut bench = resumable();
    let [first, second] = [0, 1].map(|sequence| order(0, sequence, 0));
    bench.send(&first);
    bench.send(&second);
    let part = Report { filled: 3, leaves: 4, is_last: false, ..Report::full_fill(&first) };
    bench.apply(Input::Report { gateway: None, message: part.to_message() });
    let last_report = protocol::record::key_with(Point::GatewayDone, first.id, part.stamp_detail());
    let counts = GatewayCounts { unknown: 0, orders: 2, reports: 1, last_report };
    assert_eq!(bench.gateway_dies(0, 0), [repaired(0, counts)], "nothing is closed or dropped");
    assert_eq!(returned(&bench.send(&order(0, 2, 0)), 0), [(2, DOWN)], "nor taken");
    assert_eq!(bench.position(0), (2, -3));
    assert_eq!(
        bench.gateway_life(0, 1, false),
        [Effect::ReopenGateway(GatewayIndex(0), true)],
        "the inbox stays"
    );
    assert_eq!(sent(&bench.send(&order(0, 3, 0)), 0).len(), 1);
    // What happened at the exchange in between.
    let rest = Report { filled: 4, number: 1, ..Report::full_fill(&first) };
    bench.apply(Input::Report { gateway: None, message: rest.to_message() });
    bench.fill(&second);
    assert_eq!(bench.position(0), (1, -14));
    assert_eq!(bench.core.gateways[GatewayIndex(0)].counts.orders, 3);
}

#[test]
fn cancels_of_dead_strategy_wait_for_resuming_gateway() {
    let mut bench = resumable();
    bench.send(&order(1, 0, 0));
    bench.gateway_dies(0, 0);
    assert_eq!(bench.gateway_life(1, 0, true), [Effect::Recall]);
    let effects = bench.fence(1, 0, true);
    let cancel = Instruction::CancelAll(CancelScope::for_strategy(OrderId::new(1, 0, 0)));
    assert_eq!((sent(&effects, 0), sent(&effects, 1)), (vec![cancel], vec![]));
    bench.apply(Input::GatewayDrained { gateway: GatewayIndex(1) });
    assert_eq!(
        bench.gateway_life(1, 1, false),
        [Effect::ReopenGateway(GatewayIndex(1), false)],
        "with a new inbox"
    );
    assert_eq!(sent(&bench.send(&order(0, 0, 1)), 1).len(), 1);
}

#[test]
fn gateway_that_is_given_up_closes_what_is_open() {
    let mut bench = resumable();
    bench.send(&order(0, 0, 0));
    bench.gateway_dies(0, 0);
    // Restarted and dead again between two polls.
    assert_eq!(
        bench.gateway_life(0, 1, true),
        [Effect::ReopenGateway(GatewayIndex(0), true), Effect::Recall]
    );
    let counts = GatewayCounts { orders: 1, ..GatewayCounts::default() };
    assert_eq!(bench.apply(Input::GatewayDrained { gateway: GatewayIndex(0) }), [repaired(1, counts)]);
    bench.gateway_life(0, GIVEN_UP, true);
    let effects = bench.apply(Input::GatewayDrained { gateway: GatewayIndex(0) });
    assert_eq!(returned(&effects, 0), [(0, UNKNOWN)]);
    let counts = GatewayCounts { unknown: 1, ..counts };
    assert!(
        effects.ends_with(&[Effect::CloseGateway(GatewayIndex(0)), repaired(GIVEN_UP, counts)]),
        "{effects:?}"
    );
    assert_eq!(bench.position(0), (0, 0));
    assert_eq!(sent(&bench.fence(0, 0, true), 0), [], "no mass cancel is sent any more");
}

#[test]
fn recalled_order_and_report_of_nobody_are_counted() {
    let mut bench = resumable();
    bench.send(&order(0, 0, 0));
    bench.send(&order(0, 1, 0));
    bench.gateway_life(0, 0, true);
    bench.apply(Input::Recalled { message: order(0, 1, 0).to_message() });
    bench.apply(Input::Report { gateway: Some(GatewayIndex(0)), message: protocol::wire::PLACEHOLDER });
    let counts = GatewayCounts { orders: 1, reports: 1, ..GatewayCounts::default() };
    assert_eq!(bench.apply(Input::GatewayDrained { gateway: GatewayIndex(0) }), [repaired(0, counts)]);
}
