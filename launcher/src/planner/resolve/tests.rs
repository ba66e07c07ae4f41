//! Resolved settings, and refused ones.

use super::super::faults;
use super::super::tests::{refused, settings, settings_with};
use super::*;
use crate::config::DelayRange;
use crate::host::fake;
use proptest::prelude::*;
use protocol::plan::{Placement, Technique};

fn resolved(words: &str, machine: &Machine) -> Resolved {
    resolve(&settings(words), machine).unwrap()
}

fn drawn(resolved: &Resolved) -> (u64, u64) {
    match resolved.input {
        Input::Drawn { orders, window_ns, .. } => (orders, window_ns),
        Input::Recorded { .. } => panic!("recorded"),
    }
}

#[test]
fn a_small_machine_gets_what_it_can_carry() {
    let small = resolved("", &fake::two_core_vm().machine());
    assert_eq!(
        (small.plan.trading().strategies, small.plan.trading().venues, small.plan.trading().capacity),
        (1, 4, 8192)
    );
    assert_eq!(drawn(&small), (100_000, 5_000_000_000));
    assert_eq!((small.plan.threading, small.settings.idle()), (Threading::Shared, Choice::Auto));
    assert_eq!(small.settings.delay(), DelayRange { min_ns: 5_000_000, max_ns: 500_000_000 });
    let more = resolved("strategies=2", &fake::two_core_vm().machine());
    assert_eq!((more.plan.trading().strategies, drawn(&more).0), (2, 100_000));
}

#[test]
fn a_large_machine_gets_the_seeds_numbers() {
    for cores in [15, 64] {
        let large = resolved("", &fake::plain(cores).machine());
        assert_eq!((large.plan.trading().strategies, large.plan.trading().venues), (8, 4));
        assert_eq!(drawn(&large), (4_000_000, 10_000_000_000));
        assert_eq!(large.plan.threading, Threading::Dedicated);
    }
    assert_eq!(resolved("", &fake::plain(14).machine()).plan.trading().strategies, 1);
    let same = resolved("preset=seed", &fake::plain(15).machine());
    assert_eq!(same, resolved("", &fake::plain(15).machine()));
    assert_eq!(resolved("preset=seed", &fake::plain(2).machine()).plan.trading().strategies, 8);
}

#[test]
fn hardware_threads_do_not_make_a_machine_large() {
    let server = fake::server().machine();
    let small = resolved("", &server);
    assert_eq!(
        (small.plan.trading().strategies, small.plan.threading),
        (1, Threading::Dedicated),
        "6 roles and 2 on 8 whole cores"
    );
    assert_eq!(resolved("strategies=2", &server).plan.threading, Threading::Shared);
    assert_eq!(resolved("strategies=2 threading=dedicated", &server).plan.threading, Threading::Dedicated);
}

#[test]
fn dedicated_needs_a_core_for_each_role() {
    let machine = fake::plain(4).machine();
    assert_eq!(resolved("strategies=1 venues=1", &machine).plan.threading, Threading::Shared);
    assert_eq!(resolved("strategies=1 venues=1 cores=0-3", &machine).plan.threading, Threading::Shared);
    let asked = resolved("strategies=2 venues=1 threading=dedicated", &machine);
    assert_eq!(asked.plan.threading, Threading::Dedicated, "one for each role, none to spare");
    let message = refused("threading=dedicated", &machine);
    assert_eq!(
        message,
        "--threading dedicated needs 6 cores (strategies 1 + venues 4 + orchestrator), there are 4.\n\
         Use --threading shared, or fewer --strategies and --venues"
    );
    assert!(refused("threading=dedicated cores=1", &machine).contains("there is 1"));
}

#[test]
fn cores_must_be_allowed() {
    let message = refused("cores=0-2", &fake::container().machine());
    assert!(message.contains("may not use 0,1. Allowed: 2,3"), "{message}");
    assert_eq!(resolved("cores=3", &fake::container().machine()).cores, [3]);
    assert!(refused("cores=3", &Machine::default()).contains("none, as far as can be seen"));
}

#[test]
fn heap_technique_across_processes_names_twin() {
    let machine = fake::two_core_vm().machine();
    for technique in Technique::all() {
        let words = |isolation| format!("technique={technique} isolation={isolation}");
        assert_eq!(resolved(&words("thread"), &machine).plan.technique, technique);
        match technique.twin() {
            None => assert_eq!(resolved(&words("process"), &machine).plan.technique, technique),
            Some(twin) => {
                assert_eq!(twin.twin(), None, "a twin crosses processes");
                let message = refused(&words("process"), &machine);
                assert!(message.contains(&format!("Use --technique {twin}, ")), "{message}");
            }
        }
    }
    assert!(refused("technique=std-mpsc", &machine).contains("linked"), "processes are the default");
}

#[test]
fn gateway_processes_require_process_isolation() {
    let machine = fake::two_core_vm().machine();
    assert_eq!(resolved("process=gateways", &machine).plan.placement, Placement::Gateways);
    assert_eq!(resolved("", &machine).plan.placement, Placement::Engine);
    let message = refused("process=gateways isolation=thread", &machine);
    assert!(message.contains("--process gateways with --isolation thread"), "{message}");
}

#[test]
fn a_recorded_flow_says_how_many_and_when() {
    let machine = fake::two_core_vm().machine();
    let recorded = resolved("schedule=flow.csv speed=10", &machine);
    assert_eq!(recorded.input, Input::Recorded { path: "flow.csv".into(), speed: 10.0, span_ns: None });
    for word in ["window=5s", "arrivals=poisson", "orders=5"] {
        let message = refused(&format!("schedule=flow.csv {word}"), &machine);
        assert!(message.contains("Leave --"), "{message}");
    }
    assert!(refused("speed=2", &machine).contains("--schedule FILE"));
    assert!(refused("schedule=f speed=1e9", &machine).contains("--speed"));
    assert!(matches!(resolved("preset=seed schedule=f", &machine).input, Input::Recorded { .. }));
}

#[test]
fn ranges_are_named_with_their_flag() {
    let machine = fake::two_core_vm().machine();
    for (words, wanted) in [
        ("strategies=0", "--strategies 0: give a number from 1 to 256"),
        ("strategies=257", "--strategies 257: give a number from 1 to 256"),
        ("venues=65", "--venues 65: give a number from 1 to 64"),
        ("orders=0", "--orders 0: give a number from 1 to 1000000000"),
        ("orders=2000M", "--orders 2000000000: give"),
        (
            "capacity=100",
            "--capacity 100: rings have a power of two from 2 to 1048576 slots, for example 128",
        ),
        ("capacity=0", "for example 2"),
        ("capacity=2M", "for example 1048576"),
        ("max_open=0", "--max-open 0"),
        ("repeats=0", "--repeats 0"),
        ("window=1us", "--window 1us: give a time from 1ms to 1h"),
        ("delay=fixed:2m", "--delay fixed:2m: at most 1m"),
        ("work=2s", "--work 2s: give a time from 0ns to 1s"),
        ("liveness=10ms", "--liveness 10ms: give a time from 20ms to 1h"),
        ("liveness=61m", "--liveness 61m: give"),
    ] {
        let message = refused(words, &machine);
        assert!(message.contains(wanted), "{words}: {message}");
    }
}

#[test]
fn default_open_limit_exceeds_load() {
    let open =
        |words: &str| resolve(&settings(words), &fake::plain(2).machine()).unwrap().plan.trading().max_open;
    assert_eq!(open(""), 65_536);
    // 400,000 a second for half a second, and half as much again.
    assert_eq!(open("orders=4M window=10s"), 300_000);
    assert_eq!(open("orders=4M window=10s strategies=8"), 65_536);
    assert_eq!(open("orders=100M window=1s"), 1 << 20);
    assert_eq!(open("orders=4M window=10s max_open=7"), 7);
    assert_eq!(open("orders=4M arrivals=stress"), 65_536);
    assert_eq!(open("strategies=256"), 4_096);
}

proptest! {
    #[test]
    fn the_effective_settings_resolve_to_the_same(
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

    #[test]
    fn settings_in_range_resolve_and_come_back(
        strategies in 1u64..=256, venues in 1u64..=64, log in 1u32..=20, orders in 1u64..=1_000_000_000,
        window in 1_000_000u64..=3_600_000_000_000, seed: u64, cores in 1u32..400, named: bool,
    ) {
        let machine = Machine { cores_allowed: (0..cores).collect(), ..Machine::default() };
        let settings = Settings {
            strategies: Some(Count(strategies)),
            venues: Some(Count(venues)),
            capacity: Some(Count(1 << log)),
            orders: Some(Count(orders)),
            window: Some(Nanos(window)),
            seed: Some(Count(seed)),
            cores: named.then_some(CoreList(vec![0])),
            ..Settings::default()
        };
        let resolved = resolve(&settings, &machine).unwrap();
        let again = Settings::from_yaml(&resolved.settings.to_yaml(), "x").unwrap();
        prop_assert_eq!(resolve(&again, &machine).unwrap(), resolved);
    }
}

#[test]
fn settings_in_effect_have_the_same_faults_again() {
    let words = "strategies=3 on_death=restart liveness=300ms";
    let specs = "hang; kill:any@1s every 10ms; flood:strategy-1@order:9";
    let machine = fake::server().machine();
    let resolved = resolve(&settings_with(words, specs), &machine).unwrap();
    let again = resolve(&resolved.settings, &machine).unwrap();
    assert_eq!(again, resolved);
    assert_eq!(faults::plan(&again), faults::plan(&resolved));
}
