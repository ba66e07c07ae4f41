use super::super::fixtures::run;
use super::super::pairing::pair_runs;
use super::*;

fn runs(repeats: usize, ns: f64) -> Vec<RunOutline> {
    (0..repeats).map(|repeat| run(repeat, ns + repeat as f64)).collect()
}

fn verdict(a: &[RunOutline], b: &[RunOutline]) -> ComparisonLine {
    compare_figure(&pair_runs(a, b), Measure::RtVenue, Percentile::P50)
}

/// Changes every run of B and returns why the two are not comparable.
fn reason_against_comparison(change: impl Fn(&mut RunOutline)) -> String {
    let mut b = runs(6, 1000.0);
    b.iter_mut().for_each(change);
    let mut line = verdict(&runs(6, 1001.0), &b);
    assert_eq!((line.verdict, line.evidence().difference), (Verdict::CannotTell, None));
    line.why.remove(0)
}

#[test]
fn verdicts_are_slower_faster_or_equivalent() {
    assert_eq!(verdict(&runs(5, 1000.0), &runs(5, 1200.0)).verdict, Verdict::Slower);
    assert_eq!(verdict(&runs(10, 1200.0), &runs(10, 1000.0)).verdict, Verdict::Faster);
    assert_eq!(verdict(&runs(8, 1000.0), &runs(8, 1000.3)).verdict, Verdict::Equivalent);
}

#[test]
fn different_settings_are_not_comparable_with_reason() {
    assert!(
        reason_against_comparison(|run| run.machine.hostname = "b".into()).contains("other machine: a and b")
    );
    assert!(reason_against_comparison(|run| run.machine.cores_allowed = vec![0]).contains("cores"));
    assert!(reason_against_comparison(|run| run.schedule_hash.insert(0, 'x')).contains("other schedule"));
    assert!(reason_against_comparison(|run| run.valid = false).contains("invalid"));
    assert!(reason_against_comparison(|run| run.complete = false).contains("invalid"));
    let slow = reason_against_comparison(|run| run.achieved_per_s = Some(100.0));
    assert!(slow.contains("6 of 12 runs fell behind"), "{slow}");
    let distant = reason_against_comparison(|run| {
        (run.core_rtt_ns, run.core_rtt_after_ns) = (Some(310.0), Some(310.0))
    });
    assert!(distant.contains("the machine moved its cores"), "{distant}");
    let too_few = verdict(&runs(4, 1000.0), &runs(4, 1200.0));
    assert!(too_few.why[0].contains("too few repeats: 4 of at least 5"), "{too_few:?}");
    let tail = compare_figure(&pair_runs(&runs(5, 1.0), &runs(5, 2.0)), Measure::RtVenue, Percentile::P999);
    assert_eq!((tail.verdict, &*tail.why[0]), (Verdict::CannotTell, "too few orders for a p99.9"));
}

#[test]
fn disturbed_runs_are_compared_or_left_out_with_caveat() {
    let (a, mut b) = (runs(7, 1000.0), runs(7, 1300.0));
    b[0].fit_for_latency = false;
    b[0].reasons = vec!["engine was preempted".into()];
    b[1].valid = false;
    (b[2].core_rtt_ns, b[2].core_rtt_after_ns) = (Some(490.0), Some(480.0));
    b[3].core_rtt_after_ns = Some(490.0);
    let found = pair_runs(&a, &b);
    assert_eq!((found.a.len(), found.reasons.len()), (5, 0));
    let caveats = found.caveats.join("\n");
    for words in [
        "1 of 7 pairs left out: not complete",
        "1 of 7 pairs left out: the core-to-core floor changed during a run",
        "preempted",
    ] {
        assert!(caveats.contains(words), "{words}: {caveats}");
    }
    let placed = found.runs_by_placement();
    assert_eq!(placed.iter().map(|placed| (placed.a, placed.b)).collect::<Vec<_>>(), [(5, 4), (0, 1)]);
}

/// A regression: 138 ns of 551 with the machine's cores moved in half of the runs were not
/// detected.
#[test]
fn difference_within_placements_is_detected_despite_moves() {
    let side = |by: f64, far: fn(usize) -> bool| -> Vec<RunOutline> {
        let one = |repeat: usize| {
            let (ns, rtt) = if far(repeat) { (951.0, 310.0) } else { (551.0, 45.0) };
            let rtt = Some(rtt + repeat as f64);
            RunOutline {
                core_rtt_ns: rtt,
                core_rtt_after_ns: rtt,
                ..run(repeat, ns + by + 3.0 * (repeat % 4) as f64)
            }
        };
        (0..10).map(one).collect()
    };
    let (a, b) = (side(0.0, |repeat| repeat % 2 == 0), side(138.0, |repeat| repeat % 3 == 0));
    let line = verdict(&a, &b);
    assert_eq!(line.verdict, Verdict::Slower, "{line:?}");
    let by = line.difference.unwrap().difference;
    assert!(by.low > 120.0 && by.high < 156.0, "{by:?}");
    assert_eq!(verdict(&a, &side(0.0, |repeat| repeat % 3 == 0)).verdict, Verdict::Equivalent);
    let placed = pair_runs(&a, &b).runs_by_placement();
    assert_eq!(placed.iter().map(|placed| (placed.a, placed.b)).collect::<Vec<_>>(), [(5, 6), (5, 4)]);
}

#[test]
fn run_is_not_compared_with_itself() {
    let one = runs(1, 1000.0);
    let line = verdict(&one, &one);
    assert_eq!(line.verdict, Verdict::CannotTell);
    assert!(line.why[0].contains("the same runs"), "{line:?}");
}

#[test]
fn pairs_match_by_schedule_in_any_order() {
    let (a, mut b) = (runs(5, 1000.0), runs(5, 1000.0));
    b.reverse();
    let found = pair_runs(&a, &b);
    assert!(found.a.iter().zip(&found.b).all(|(a, b)| a.schedule_hash == b.schedule_hash));
}

/// Returns runs of one schedule each, alternating over hosts: a host and its latency.
fn runs_on(hosts: &[(&str, f64)], repeats: usize) -> Vec<RunOutline> {
    let one = |repeat: usize| {
        let (host, ns) = hosts[repeat % hosts.len()];
        let mut run = run(repeat, ns + (repeat / hosts.len()) as f64);
        run.machine.hostname = host.into();
        run
    };
    (0..repeats).map(one).collect()
}

#[test]
fn hosts_are_compared_separately_and_combined() {
    // One host is three times as slow as the other: the difference between them is far larger than
    // what B adds.
    let a = runs_on(&[("fast", 500.0), ("slow", 1_500.0)], 16);
    let b = runs_on(&[("fast", 560.0), ("slow", 1_560.0)], 16);
    let line = verdict(&a, &b);
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
    assert_ne!(verdict(&blind(a.clone()), &blind(mixed)).verdict, Verdict::Slower);
    assert_eq!(verdict(&a, &runs_on(&[("fast", 500.5), ("slow", 1_500.5)], 16)).verdict, Verdict::Equivalent);
}

#[test]
fn pairs_split_across_hosts_are_excluded() {
    let a = runs_on(&[("x", 500.0), ("y", 500.0)], 14);
    let mut b = runs_on(&[("x", 600.0), ("y", 600.0)], 14);
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
    let a = runs_on(&[("x", 1_000.0), ("y", 1_000.0)], 16);
    let same = verdict(&a, &runs_on(&[("x", 1_300.0), ("y", 1_300.0)], 16));
    assert_eq!((same.verdict, same.disagreement()), (Verdict::Slower, None));
    let more = verdict(&a, &runs_on(&[("x", 1_300.0), ("y", 2_000.0)], 16));
    assert_eq!(more.verdict, Verdict::Slower, "both say slower");
    let disagreement = more.disagreement().unwrap();
    assert!(disagreement.contains("on x (8 pairs)") && disagreement.contains("on y"), "{disagreement}");
    let opposed = verdict(&a, &runs_on(&[("x", 1_300.0), ("y", 700.0)], 16));
    assert_eq!(opposed.verdict, Verdict::CannotTell, "{opposed:?}");
    assert!(opposed.why[0].starts_with("the hosts disagree: B/A 0.70"), "{opposed:?}");
}

#[test]
fn few_pairs_per_host_combine_to_a_result() {
    let hosts = |ns: f64| [("u", ns), ("v", ns + 300.0), ("w", ns + 900.0), ("x", ns + 1_700.0)];
    let line = verdict(&runs_on(&hosts(1_000.0), 12), &runs_on(&hosts(1_100.0), 12));
    assert_eq!(line.verdict, Verdict::Slower, "{line:?}");
    assert!(line.hosts.iter().all(|host| host.difference.is_none()) && line.disagreement().is_none());
}

/// A regression: ten kept pairs said slower, and all 29 could not tell.
#[test]
fn few_kept_pairs_do_not_decide() {
    let pairs = |kept: usize| {
        let of = |repeat: usize| {
            // Those whose cores moved have the opposite difference.
            let is_kept = repeat < kept;
            let ns = if is_kept { 1_300.0 } else { 1_000.0 - 300.0 * (repeat % 2) as f64 };
            let after = if is_kept { run(repeat, ns).core_rtt_ns } else { Some(490.0) };
            RunOutline { run: format!("b{repeat}"), core_rtt_after_ns: after, ..run(repeat, ns) }
        };
        verdict(&runs(29, 1_000.0), &(0..29).map(of).collect::<Vec<_>>())
    };
    let few = pairs(10);
    assert_eq!(few.difference.map(|found| found.verdict()), Some(Verdict::Slower), "the broken variant");
    assert_ne!(few.verdict, Verdict::Slower);
    assert_eq!(few.deciding(), few.all_pairs);
    let half = pairs(15);
    assert_eq!((half.verdict, half.deciding()), (Verdict::Slower, half.difference));
    let none = pairs(0);
    assert!(none.why.is_empty() && none.evidence().difference.is_some(), "all pairs answer: {none:?}");
}
