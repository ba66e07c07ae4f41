use super::*;
use crate::watch::model::{ErrorRow, ObservedState, RingRow, printable};
use crate::watch::positions::Position;
use crate::watch::stages::StageSampler;

fn role(role: String, rate: f64) -> RoleRow {
    RoleRow {
        role,
        state: "running",
        core: Some(1),
        rate: Some(rate),
        in_flight: Some(812),
        longest_gap_ns: 51_234,
        heartbeat_age_ns: Some(70),
        voluntary_switches: Some(3),
        involuntary_switches: Some(1_240),
        cpu: Some(0.998),
        ..RoleRow::default()
    }
}

fn snapshot(strategies: u16) -> Snapshot {
    let mut roles: Vec<RoleRow> =
        (0..strategies).map(|index| role(format!("strategy-{index}"), 19_876.0)).collect();
    roles[0].state = "stopped";
    roles.extend([role("orchestrator".into(), 39_752.4), role("gateway-0".into(), 39_000.0)]);
    let strategies: Vec<StrategyRow> = (0..strategies)
        .map(|strategy| StrategyRow { strategy, incarnation: 1, incidents: 1, ..StrategyRow::default() })
        .collect();
    let mut snapshot = Snapshot {
        run: "20261121-104455123-4711-815".into(),
        state: ObservedState::Running,
        elapsed_ns: 12_300_000_000,
        isolation: "process".into(),
        technique: "spsc-mux".into(),
        planned: 400_000,
        sent: 123_456,
        dispatched: 123_400,
        settled: 123_000,
        rejected: 56,
        rate: Some(39_752.4),
        roles,
        strategies,
        stages: StageSampler::new(1.0).rows(),
        ..Snapshot::default()
    };
    for (place, line) in (1..).zip(&mut snapshot.stages) {
        (line.p50_ns, line.p99_ns, line.samples) = (Some(place * 120), Some(place * 98_765), 4_096);
    }
    snapshot.strategies[0].killed = vec!["strategy-0 by operator".into()];
    snapshot.strategies[0].positions = vec![Position { instrument: 0, net: -1_234_567, fills: 9 }];
    for (ring, fill) in [("submit-0", Some(4_096)), ("inbox-0", Some(17)), ("completion-0", None)] {
        snapshot.rings.push(RingRow { ring: ring.into(), fill, capacity: 4_096 });
    }
    let what = printable("it says itself: \"\u{1b}[2J all is well \u{202e}\"");
    snapshot.errors.push(ErrorRow { who: "strategy-1".into(), what, count: 2 });
    snapshot
}

fn drawn(snapshot: &Snapshot, width: usize, height: usize) -> String {
    let shown = PromptView { selected: Some(0), message: String::new() };
    let rows = frame(snapshot, &shown, (width, height));
    assert!(rows.iter().all(|row| row.width() <= width));
    rows.iter().map(|row| row.to_string().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_frame_of_eighty_columns() {
    insta::assert_snapshot!(drawn(&snapshot(2), 80, 24));
}

#[test]
fn a_frame_of_sixty_columns() {
    insta::assert_snapshot!(drawn(&snapshot(2), 60, 24));
}

#[test]
fn many_strategies_are_counted_where_they_do_not_fit() {
    insta::assert_snapshot!(drawn(&snapshot(40), 80, 24));
}

/// Whatever numbers and texts other processes write, lines fit.
#[test]
fn any_figures_fit_any_terminal() {
    let mut wild = snapshot(256);
    for line in &mut wild.roles {
        (line.rate, line.in_flight, line.full) = (Some(f64::INFINITY), Some(u64::MAX), u64::MAX);
        (line.longest_gap_ns, line.heartbeat_age_ns, line.cpu) = (u64::MAX, Some(u64::MAX), Some(f64::NAN));
        (line.voluntary_switches, line.core) = (Some(u64::MAX), Some(u32::MAX));
        line.role = "x".repeat(200);
    }
    for line in &mut wild.strategies {
        line.positions = vec![Position { instrument: u64::MAX, net: i64::MIN, fills: u64::MAX }; 5];
        line.incidents = u64::MAX;
    }
    wild.rings[0] = RingRow { ring: "r".repeat(200), fill: Some(u64::MAX), capacity: 0 };
    wild.elapsed_ns = u64::MAX;
    for (width, height) in [(1, 1), (20, 3), (59, 10), (60, 24), (79, 24), (80, 24), (81, 5), (200, 300)] {
        let text = drawn(&wild, width, height);
        assert_eq!(text.lines().count(), height);
        assert!(!text.contains('\u{1b}'));
        let shown = PromptView { selected: Some(3), message: String::new() };
        let many = lines(&wild, &shown, width, height).len();
        assert!(many < height || height == 1, "{many} lines of {height}");
    }
}

#[test]
fn the_end_is_said() {
    let over = Snapshot { state: ObservedState::Abandoned, ..snapshot(1) };
    let text = drawn(&over, 80, 24);
    assert!(text.contains("abandoned") && text.contains("the run is over: q quits"), "{text}");
}
