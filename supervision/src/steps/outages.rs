//! Gateways that die while the run continues.

use super::*;
use protocol::index::GatewayIndex;
use protocol::supervision::GIVEN_UP;

const LOAD: &str = "isolation=process strategies=2 venues=2 orders=10";

/// One process of all gateways takes down all venues, and the strategies trade on.
#[test]
fn killed_process_of_all_gateways_takes_down_all_venues() {
    let plan = plan(&format!("{LOAD} process=gateways on_death=continue"), 2_000);
    let mut run = SteppedRun::start(&plan);
    let gateways = plan.process_of(Role::Gateway(GatewayIndex(0))).unwrap();
    run.run_for(300);
    run.exit(gateways, "signal 9 (SIGKILL)");
    run.run_for(5_000);
    let both = [0, 1].map(|gateway| (Role::Gateway(GatewayIndex(gateway)), 0));
    assert_eq!(run.fences(), both);
    assert!(run.has_told("of venue-0, venue-1 died"), "{:?}", run.actions);
    assert!(!run.actions.contains(&Action::Restart(gateways)) && run.incidents().is_empty());
    for gateway in [0, 1] {
        assert_eq!(run.supervisor.containment.orders_of_dead(GatewayIndex(gateway)), Some(0));
    }
    assert!(run.supervisor.is_trading());
    assert_eq!(run.finish(), RunOutcome::Complete);
    let outages = run.supervisor.into_record().outages;
    let [outage] = outages.as_slice() else { panic!("{outages:?}") };
    assert_eq!(outage.gateways, [0, 1].map(GatewayIndex));
    assert!(outage.repaired_ns.is_some() && outage.restarted_ns.is_none(), "{outage:?}");
}

/// A gateway that had traded resumes its session with an exchange, so its open orders are kept
/// until it is given up after eight restarts: then one more incarnation is fenced, which never ran.
#[test]
fn gateway_that_cannot_resume_is_given_up() {
    let more = "venue=book exchange=process process=each-gateway on_death=restart";
    let plan = plan(&format!("{LOAD} {more}"), 2_000);
    let mut run = SteppedRun::start(&plan);
    let dead = Role::Gateway(GatewayIndex(1));
    let gateway = plan.process_of(dead).unwrap();
    run.observed.gateways[1].received = 5;
    run.run_for(300);
    run.crashing = Some(gateway);
    run.exit(gateway, "signal 9 (SIGKILL)");
    run.step();
    assert_eq!(run.supervisor.containment.orders_of_dead(GatewayIndex(1)), None, "it may resume");
    run.run_for(10_000);
    let starts = run.actions.iter().filter(|action| **action == Action::Restart(gateway)).count();
    // Its own death is not counted: it had traded.
    assert_eq!(starts, 1 + restart_policy::MAX_RESTARTS as usize);
    assert!(run.has_told("gateway-1 stayed down after 8 restarts"), "{:?}", run.actions);
    let fences = run.fences();
    assert!(fences.iter().all(|(role, _)| *role == dead), "{fences:?}");
    assert_eq!(fences.last(), Some(&(dead, GIVEN_UP)));
    assert_eq!(run.supervisor.containment.orders_of_dead(GatewayIndex(1)), Some(0));
    assert_eq!(run.finish(), RunOutcome::Complete);
    let outages = run.supervisor.into_record().outages;
    let [outage] = outages.as_slice() else { panic!("{outages:?}") };
    assert_eq!(outage.stayed_down.as_ref().map(|down| down.restarts), Some(8));
    assert!(outage.repaired_ns.is_some() && outage.restarted_ns.is_none(), "{outage:?}");
}
