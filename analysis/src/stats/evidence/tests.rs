use super::super::fixtures::run;
use super::super::{Percentile, RunOutline, compare_figure, pair_runs};
use super::*;
use statistics::seeded_rng::SeededRng;
use statistics::synthetic::normal;
use verdict::summary::Measure;

fn side(repeats: usize, ns: f64, change: impl Fn(&mut RunOutline)) -> Vec<RunOutline> {
    let one = |repeat| {
        let mut run = run(repeat, ns + repeat as f64);
        change(&mut run);
        run
    };
    (0..repeats).map(one).collect()
}

fn evidence(a: &[RunOutline], b: &[RunOutline]) -> Evidence {
    compare_figure(&pair_runs(a, b), Measure::RtVenue, Percentile::P50).evidence()
}

#[test]
fn wide_interval_decides_nothing_and_has_no_factor() {
    let steady = [100.0, 101.0, 99.0, 100.0, 102.0, 98.0, 100.0, 101.0];
    let wild = [40.0, 300.0, 90.0, 700.0, 35.0, 120.0, 60.0, 410.0];
    let found = Evidence::from_repeats(&steady, &wild, 0.0);
    assert_eq!((found.verdict, found.has_factor()), (Verdict::CannotTell, false), "{found:?}");
    // All repeats are slower, by factors that differ widely: a direction and no figure.
    let slower = Evidence::from_repeats(&steady, &wild.map(|ns| ns * 20.0), 0.0);
    assert_eq!((slower.verdict, slower.has_factor()), (Verdict::Slower, false), "{slower:?}");
    let doubled = Evidence::from_repeats(&steady, &steady.map(|ns| ns * 2.0), 0.0);
    assert_eq!((doubled.verdict, doubled.has_factor()), (Verdict::Slower, true));
    let same = Evidence::from_repeats(&steady, &steady.map(|ns| ns + 0.5), 0.0);
    assert_eq!((same.verdict, same.describe().as_str()), (Verdict::Equivalent, "equivalent"));
}

#[test]
fn pairs_are_promised_only_where_they_mend() {
    let too_few = evidence(&side(3, 300.0, |_| {}), &side(3, 310.0, |_| {}));
    assert_eq!(too_few.more_repeats, Some(2));
    assert_eq!(too_few.describe(), "cannot tell: too few repeats: 3 of at least 5 pairs; about 2 more pairs");
    let overloaded = side(3, 310.0, |run| run.achieved_per_s = Some(100.0));
    let overloaded = evidence(&side(3, 300.0, |_| {}), &overloaded);
    assert!(overloaded.more_repeats.is_none() && overloaded.why.contains("fell behind"), "{overloaded:?}");
    // The spread decides how many: half the spread needs a quarter of the pairs.
    let noisy = |by: f64| -> Vec<f64> {
        [3.0, -2.0, 1.0, -3.0, 2.0, -1.0, 4.0, -4.0].iter().map(|step| 100.0 + by * step).collect()
    };
    let more = |by| Evidence::from_repeats(&[100.0; 8], &noisy(by), 0.0).more_repeats;
    let (near, far) = (more(2.5).unwrap(), more(5.0).unwrap());
    assert!(near >= 1 && far > 3 * near, "{near} {far}");
    assert_eq!(more(1e3), None, "thousands of pairs are no promise");
    // The clock's steps are wider than the margin: no number of pairs narrows them.
    let coarse = Evidence::from_repeats(&[100.0; 8], &[100.0; 8], 20.0);
    assert_eq!(coarse.describe(), "cannot tell: the clock's steps are too coarse for the margin");
}

#[test]
fn promised_pairs_decide_with_power_of_four_fifths() {
    // The normal distribution's quantiles, in two orders; B takes 15 % more.
    let a = [-1.73, -1.15, -0.81, -0.55, -0.32, -0.10, 0.10, 0.32, 0.55, 0.81, 1.15, 1.73];
    let b = [-0.81, 0.10, 1.15, -1.15, -0.10, 0.81, -0.32, 0.32, -0.55, -1.73, 0.55, 1.73];
    let noisy = |value: f64| (0.3 * value).exp();
    let planned = Evidence::from_repeats(&a.map(noisy), &b.map(|value| 1.15 * noisy(value)), 0.0);
    let pairs = a.len() + planned.more_repeats.expect("a number of pairs");
    assert!(planned.describe().ends_with("more pairs for a power of 0.8"), "{}", planned.describe());
    let mut draws = SeededRng::new(61);
    let mut side = |by: f64| (0..pairs).map(|_| by * noisy(normal(&mut draws))).collect::<Vec<f64>>();
    let decided =
        (0..100).filter(|_| Evidence::from_repeats(&side(1.0), &side(1.15), 0.0).is_known()).count();
    assert!((70..=92).contains(&decided), "{decided} of 100 with {pairs} pairs");
    // A secondary figure's correction would need more, by an unknown factor.
    let line = evidence_line(8, 306.0);
    assert!(line.evidence().more_repeats.is_some(), "{line:?}");
    let secondary = ComparisonLine { is_secondary: true, ..line }.evidence();
    assert_eq!((secondary.more_repeats, secondary.why.as_str()), (None, FAR_APART));
}

/// Returns a comparison that cannot tell.
fn evidence_line(repeats: usize, ns: f64) -> ComparisonLine {
    let wild = |ns: f64, turn: usize| -> Vec<RunOutline> {
        let by = |repeat: usize| 1.0 + 0.02 * ((repeat * 5 + turn) % repeats) as f64;
        (0..repeats)
            .map(|repeat| renamed_to(turn, super::super::fixtures::run(repeat, ns * by(repeat))))
            .collect()
    };
    compare_figure(&pair_runs(&wild(300.0, 0), &wild(ns, 3)), Measure::RtVenue, Percentile::P50)
}

fn renamed_to(side: usize, run: RunOutline) -> RunOutline {
    RunOutline { run: format!("{}-{side}", run.run), ..run }
}

#[test]
fn shared_cores_are_measured_and_marked() {
    // A regression: "about 4 more repeats would do", and 60 runs later "oversubscribed".
    let shared = |ns| side(8, ns, |run| run.oversubscribed = true);
    let b: Vec<RunOutline> = shared(400.0).into_iter().map(renamed).collect();
    let a = shared(310.0);
    assert_eq!(evidence(&a, &b).verdict, Verdict::Slower);
    assert!(
        pair_runs(&a, &b).caveats[0].starts_with("shared cores: threads wait for each other in 16 of 16")
    );
}

fn renamed(run: RunOutline) -> RunOutline {
    RunOutline { run: format!("{}-b", run.run), ..run }
}

#[test]
fn lost_pairs_raise_the_number_of_repeats() {
    let (a, mut b) = (side(12, 300.0, |_| {}), side(12, 310.0, |_| {}));
    b[3..].iter_mut().for_each(|run| run.valid = false);
    let found = evidence(&a, &b);
    assert_eq!(found.more_repeats, Some(8), "one in four counts, and two are missing: {found:?}");
    b.iter_mut().for_each(|run| run.valid = false);
    assert_eq!(evidence(&a, &b).more_repeats, None, "none in twelve counted: nobody knows");
}

#[test]
fn lowest_is_named_only_if_every_other_is_slower() {
    let values = [[100.0; 8], [130.0; 8], [110.0; 8]];
    let noisy = [100.0, 104.0, 98.0, 107.0, 99.0, 103.0, 96.0, 105.0];
    let ranked = |sides: &[[f64; 8]]| {
        let medians: Vec<f64> = sides.iter().map(|side| super::super::median(side).unwrap()).collect();
        rank(&medians, |a, b| Evidence::from_repeats(&sides[a], &sides[b], 0.0))
    };
    let found = ranked(&values).unwrap();
    assert_eq!((found.lowest, found.rival, found.is_shown()), (0, 2, true));
    let found = ranked(&[[130.0; 8], noisy, [101.0; 8]]).unwrap();
    assert_eq!((found.rival, found.is_shown()), (1, false), "101 and 101.5 are alike: {found:?}");
    let too_few = rank(&[1.0, 2.0], |_, _| Evidence::from_repeats(&[1.0; 2], &[2.0; 2], 0.0)).unwrap();
    assert!(!too_few.is_shown() && too_few.evidence.why.contains("too few repeats: 2 of at least 5"));
    assert_eq!(ranked(&values[..1]), None);
}
