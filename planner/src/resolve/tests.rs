//! Resolved settings, and refused ones.

use super::super::faults;
use super::super::fixtures::{refuses, settings};
use super::*;
use crate::host::fake;
use proptest::prelude::*;
use protocol::plan::{Placement, Technique};

fn resolved(settings_text: &str, machine: &Machine) -> Resolved {
    resolve(&settings(settings_text), machine).unwrap()
}

fn drawn(resolved: &Resolved) -> (u64, u64) {
    match resolved.input {
        Input::Drawn { orders, window_ns, .. } => (orders, window_ns / 1_000_000_000),
        Input::Recorded { .. } => panic!("recorded"),
    }
}

const SMALL: (u64, u64) = (100_000, 5);
const LARGE: (u64, u64) = (4_000_000, 10);

/// Where every role has a whole core and two are left, a run is as large as in the benchmark that
/// this project started from.
#[test]
fn default_run_fits_the_machine() {
    let [small, server] = [fake::two_core_vm(), fake::server()].map(|host| host.machine());
    let plain = |cores| fake::plain(cores).machine();
    for (settings_text, machine, strategies, load, threading) in [
        ("", &small, 1, SMALL, Threading::Shared),
        ("strategies=2", &small, 2, SMALL, Threading::Shared),
        ("", &plain(14), 1, SMALL, Threading::Dedicated),
        ("", &plain(15), 8, LARGE, Threading::Dedicated),
        ("", &plain(64), 8, LARGE, Threading::Dedicated),
        ("preset=seed", &plain(15), 8, LARGE, Threading::Dedicated),
        ("preset=seed", &plain(2), 8, LARGE, Threading::Shared),
        // Hardware threads do not make a machine large: 6 roles and 2 on 8 whole cores.
        ("", &server, 1, SMALL, Threading::Dedicated),
        ("strategies=2", &server, 2, SMALL, Threading::Shared),
        ("strategies=2 threading=dedicated", &server, 2, SMALL, Threading::Dedicated),
        // A core for each role, none to spare.
        ("strategies=1 venues=1", &plain(4), 1, SMALL, Threading::Shared),
        ("strategies=1 venues=1 cores=0-3", &plain(4), 1, SMALL, Threading::Shared),
        ("strategies=2 venues=1 threading=dedicated", &plain(4), 2, SMALL, Threading::Dedicated),
    ] {
        let resolved = resolved(settings_text, machine);
        let trading = resolved.plan.trading();
        assert_eq!((trading.strategies, drawn(&resolved)), (strategies, load), "{settings_text}");
        assert_eq!(resolved.plan.threading, threading, "{settings_text}");
        assert_eq!((trading.capacity, resolved.plan.placement), (8192, Placement::Engine), "{settings_text}");
    }
    assert_eq!(resolved("", &small).settings.idle(), Choice::Auto);
    assert_eq!(resolved("process=gateways", &small).plan.placement, Placement::Gateways);
    assert_eq!(resolved("cores=3", &fake::container().machine()).cores, [3]);
}

#[test]
fn missing_cores_are_refused() {
    let plain = fake::plain(4).machine();
    refuses(
        "threading=dedicated",
        "--threading dedicated needs 6 cores (strategies 1 + venues 4 + orchestrator), there are 4.\n\
         Use --threading shared, or fewer --strategies and --venues",
        &plain,
    );
    refuses("threading=dedicated cores=1", "there is 1", &plain);
    refuses("cores=0-2", "may not use 0,1. Allowed: 2,3", &fake::container().machine());
    refuses("cores=3", "none, as far as can be seen", &Machine::default());
}

#[test]
fn heap_technique_across_processes_names_twin() {
    let machine = fake::two_core_vm().machine();
    for technique in Technique::all() {
        let settings_text = |isolation| format!("technique={technique} isolation={isolation}");
        assert_eq!(resolved(&settings_text("thread"), &machine).plan.technique, technique);
        match technique.twin() {
            None => assert_eq!(resolved(&settings_text("process"), &machine).plan.technique, technique),
            Some(twin) => {
                assert_eq!(twin.twin(), None, "a twin crosses processes");
                refuses(&settings_text("process"), &format!("Use --technique {twin}, "), &machine);
            }
        }
    }
    refuses("technique=std-mpsc", "linked", &machine);
}

#[test]
fn recorded_flow_sets_order_count_and_window() {
    let machine = fake::two_core_vm().machine();
    let recorded = resolved("schedule=flow.csv speed=10", &machine);
    assert_eq!(recorded.input, Input::Recorded { path: "flow.csv".into(), speed: 10.0, span_ns: None });
    assert!(matches!(resolved("preset=seed schedule=f", &machine).input, Input::Recorded { .. }));
}

#[test]
fn ranges_are_named_with_their_flag() {
    for (settings_text, wanted) in [
        ("strategies=0", "--strategies 0: give a number from 1 to 256"),
        ("strategies=257", "--strategies 257: give a number from 1 to 256"),
        ("venues=65", "--venues 65: give a number from 1 to 64"),
        ("orders=0", "--orders 0: give a number from 1 to 1000000000"),
        ("orders=2000M", "--orders 2000000000: give"),
        ("capacity=100", "--capacity 100: rings have a power of two from 2 to 1048576 slots; use 128"),
        ("credentials=5 strategies=1", "Use --credentials 1, or --strategies 5 or more"),
        ("capacity=0", "slots; use 2"),
        ("capacity=2M", "(k and M are decimal); use 1048576"),
        ("capacity=1M", "(k and M are decimal); use 1048576"),
        ("max_open=0", "--max-open 0"),
        ("repeats=0", "--repeats 0"),
        ("window=1us", "--window 1us: give a time from 1ms to 1h"),
        ("delay=fixed:2m", "--delay fixed:2m: at most 1m"),
        ("work=2s", "--work 2s: give a time from 0ns to 1s"),
        ("liveness=10ms", "--liveness 10ms: give a time from 20ms to 1h"),
        ("liveness=61m", "--liveness 61m: give"),
    ] {
        refuses(settings_text, wanted, &fake::two_core_vm().machine());
    }
}

#[test]
fn crossover_needs_levels_that_share_the_schedule_out() {
    let machine = fake::two_core_vm().machine();
    let two =
        |settings_text: &str| format!("isolation=thread+process strategies=4 crossover=50ms {settings_text}");
    assert_eq!(resolved(&two(""), &machine).plan.trading().crossover_ns, 50_000_000);
    for (settings_text, wanted) in [
        ("strategies=4 crossover=50ms", "levels take turns, and the run has one.\nUse --isolation"),
        (&two("strategies=5"), "5 cannot be shared out.\nUse --strategies 6"),
        (&two("spare_strategies=2"), "leave --spare-strategies out"),
        (&two("arrivals=stress"), "use another --arrivals than stress"),
        (&two("schedule=flow.csv"), "leave --schedule out"),
        (&two("strategy=maker venue=book"), "use --strategy player"),
        (
            &two("window=399ms"),
            "a window of 399ms has no four turns of each level.\nUse --window 400ms or longer",
        ),
        (&two("crossover=9ms"), "--crossover 9ms: give a time from 10ms to 10s"),
    ] {
        refuses(settings_text, wanted, &machine);
    }
}

#[test]
fn default_open_limit_exceeds_load() {
    for (settings_text, open) in [
        ("", 65_536),
        // 400,000 a second for half a second, and half as much again.
        ("orders=4M window=10s", 300_000),
        ("orders=4M window=10s strategies=8", 65_536),
        ("orders=100M window=1s", 1 << 20),
        ("orders=4M window=10s max_open=7", 7),
        ("orders=4M arrivals=stress", 65_536),
        ("strategies=256", 4_096),
    ] {
        assert_eq!(
            resolved(settings_text, &fake::plain(2).machine()).plan.trading().max_open,
            open,
            "{settings_text}"
        );
    }
}

proptest! {
    #[test]
    fn effective_settings_resolve_to_themselves(
        settings in crate::config::tests::any_settings(),
        cores in 1u32..40,
    ) {
        let machine = Machine { cores_allowed: (0..cores).collect(), ..Machine::default() };
        if let Ok(resolved) = resolve(&settings, &machine) {
            let text = resolved.settings.to_yaml();
            let again = Settings::from_yaml(&text, "x").unwrap();
            prop_assert_eq!(resolve(&again, &machine).unwrap(), resolved, "{}", text);
        }
    }
}

#[test]
fn effective_settings_keep_their_faults() {
    let specs = "fault='hang; kill:any@1s every 10ms; flood:strategy-1@order:9'";
    let settings_text = format!("strategies=3 on_death=restart liveness=300ms {specs}");
    let machine = fake::server().machine();
    let resolved = resolved(&settings_text, &machine);
    let again = resolve(&resolved.settings, &machine).unwrap();
    assert_eq!(again, resolved);
    assert_eq!(faults::plan(&again), faults::plan(&resolved));
}
