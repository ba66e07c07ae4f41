//! Tests of verdicts over runs of several hosts.

use crate::stats::fixtures::run;
use crate::stats::{ComparisonLine, Percentile, RunOutline, Verdict, compare_figure, pair_runs};
use crate::summary::Measure;

/// Returns runs of one schedule each, alternating over hosts: a host and its latency.
fn runs(hosts: &[(&str, f64)], repeats: usize) -> Vec<RunOutline> {
    let one = |repeat: usize| {
        let (host, ns) = hosts[repeat % hosts.len()];
        let mut run = run(repeat, ns + (repeat / hosts.len()) as f64);
        run.machine.hostname = host.into();
        run
    };
    (0..repeats).map(one).collect()
}

fn p50(a: &[RunOutline], b: &[RunOutline]) -> ComparisonLine {
    compare_figure(&pair_runs(a, b), Measure::RtVenue, Percentile::P50)
}

#[test]
fn hosts_are_compared_separately_and_combined() {
    // One host is three times as slow as the other: the difference between them is far larger than
    // what B adds.
    let a = runs(&[("fast", 500.0), ("slow", 1_500.0)], 16);
    let b = runs(&[("fast", 560.0), ("slow", 1_560.0)], 16);
    let line = p50(&a, &b);
    assert_eq!(line.verdict, Verdict::Slower, "{line:?}");
    let by = line.difference.unwrap().difference;
    assert!(by.low > 50.0 && by.high < 70.0, "{by:?}");
    assert_eq!(
        line.hosts.iter().map(|host| (host.host.as_str(), host.pairs)).collect::<Vec<_>>(),
        [("fast", 8), ("slow", 8)]
    );
    // The sixteen runs as if they were from one host: this broken variant detects nothing.
    let blind = |mut runs: Vec<RunOutline>| {
        runs.iter_mut().for_each(|run| run.machine.hostname = "one".into());
        // In another order: pairs match by schedule, not by host.
        for (index, run) in runs.iter_mut().enumerate() {
            run.schedule_hash = format!("{:016x}", index * 7 % 16);
        }
        runs
    };
    let mut mixed = b.clone();
    mixed.rotate_left(1);
    assert_ne!(p50(&blind(a.clone()), &blind(mixed)).verdict, Verdict::Slower);
    assert_eq!(p50(&a, &runs(&[("fast", 500.5), ("slow", 1_500.5)], 16)).verdict, Verdict::NoDifferenceSeen);
}

#[test]
fn pairs_split_across_hosts_are_excluded() {
    let a = runs(&[("x", 500.0), ("y", 500.0)], 14);
    let mut b = runs(&[("x", 600.0), ("y", 600.0)], 14);
    // One half of a pair of a lost worker, run on the other host.
    b[3].machine.hostname = "x".into();
    let found = pair_runs(&a, &b);
    assert_eq!((found.a.len(), found.reasons.len()), (13, 0));
    assert!(found.caveats.join("\n").contains("1 of 14 pairs left out: A and B were made on two hosts"));
    let places: Vec<_> =
        found.runs_by_placement().into_iter().map(|placed| (placed.host, placed.a, placed.b)).collect();
    assert_eq!(places, [("x".into(), 7, 7), ("y".into(), 6, 6)]);
}

#[test]
fn disagreeing_hosts_are_named_and_opposites_are_incomparable() {
    let a = runs(&[("x", 1_000.0), ("y", 1_000.0)], 16);
    let same = p50(&a, &runs(&[("x", 1_300.0), ("y", 1_300.0)], 16));
    assert_eq!((same.verdict, same.disagreement()), (Verdict::Slower, None));
    let more = p50(&a, &runs(&[("x", 1_300.0), ("y", 2_000.0)], 16));
    assert_eq!(more.verdict, Verdict::Slower, "both say slower");
    let said = more.disagreement().unwrap();
    assert!(said.contains("on x (8 pairs)") && said.contains("on y"), "{said}");
    let opposed = p50(&a, &runs(&[("x", 1_300.0), ("y", 700.0)], 16));
    assert_eq!(opposed.verdict, Verdict::NotComparable, "{opposed:?}");
    assert!(opposed.why[0].starts_with("the hosts disagree: B/A 0.70"), "{opposed:?}");
}

#[test]
fn few_pairs_per_host_combine_to_a_result() {
    let hosts = |ns: f64| [("u", ns), ("v", ns + 300.0), ("w", ns + 900.0), ("x", ns + 1_700.0)];
    let line = p50(&runs(&hosts(1_000.0), 12), &runs(&hosts(1_100.0), 12));
    assert_eq!(line.verdict, Verdict::Slower, "{line:?}");
    assert!(line.hosts.iter().all(|host| host.difference.is_none()) && line.disagreement().is_none());
}
