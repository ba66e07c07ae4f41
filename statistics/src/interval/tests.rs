use super::*;
use crate::seeded_rng::SeededRng;
use crate::synthetic::*;
use proptest::prelude::*;

fn one_placement(values: &[f64]) -> Vec<Sample> {
    values.iter().map(|value| Sample { value: *value, placement: 0 }).collect()
}

fn difference(a: &[f64], b: &[f64]) -> Option<Difference> {
    super::difference(&one_placement(a), &one_placement(b), 0.0, Margin::default())
}

/// Returns how many of `rounds` comparisons detect a difference, at a clock step of `step`.
fn count(
    rounds: usize,
    seed: u64,
    step: f64,
    mut sides: impl FnMut(&mut SeededRng) -> (Vec<Sample>, Vec<Sample>),
) -> usize {
    let mut draws = SeededRng::new(seed);
    let mut differs = || {
        let (a, b) = sides(&mut draws);
        super::difference(&a, &b, step, Margin::default()).is_some_and(|found| found.direction() != 0)
    };
    (0..rounds).filter(|_| differs()).count()
}

/// Deals recorded runs to two sides at random.
fn deal(runs: &[Sample], pairs: usize, draws: &mut SeededRng) -> (Vec<Sample>, Vec<Sample>) {
    let mut left = runs.to_vec();
    let mut side = || (0..pairs).map(|_| left.swap_remove(draws.next_below(left.len()))).collect();
    (side(), side())
}

/// Counts the differences detected between sides of this noise and ratio.
fn count_detected(noise: Noise, repeats: usize, ratio: f64, rounds: usize, seed: u64) -> usize {
    count(rounds, seed, 0.0, |draws| pairs(noise, repeats, ratio, draws))
}

#[test]
fn false_positive_rate_is_nominal_for_equal_settings() {
    // 5 % of 500 are 25; by chance alone 40 occur once in a few hundred simulations.
    let check = |wrong: usize, rounds: usize, what: &str, pairs: usize| {
        assert!(
            wrong * 100 <= rounds * 8,
            "{what}, {pairs} pairs: {wrong} of {rounds} are called a difference"
        );
    };
    for (pairs, rounds) in [(5, 500), (12, 200)] {
        let noises = [("quiet", QUIET), ("disturbed", DISTURBED), ("tail", TAIL), ("two faces", TWO_FACES)];
        for (name, noise) in noises {
            check(count_detected(noise, pairs, 1.0, rounds, pairs as u64), rounds, name, pairs);
        }
    }
    for figures in [P50_NS, P999_NS] {
        let runs = one_placement(&figures.map(f64::from));
        for (pairs, rounds) in [(5, 500), (10, 200), (20, 100)] {
            check(count(rounds, 4, 0.0, |draws| deal(&runs, pairs, draws)), rounds, "recorded", pairs);
        }
        // As `compare` alternates: runs 0 and 1, 2 and 3, and so on; A and B alternate as the
        // first of a pair.
        let side =
            |side: usize| -> Vec<Sample> { (0..20).map(|pair| runs[2 * pair + (pair + side) % 2]).collect() };
        assert_eq!(super::difference(&side(0), &side(1), 0.0, Margin::default()).unwrap().direction(), 0);
    }
}

#[test]
fn fifty_ns_difference_is_detected_despite_core_moves() {
    let check = |what: &str, count_at: &dyn Fn(f64) -> usize| {
        let (found, wrong) = (count_at(50.0), count_at(0.0));
        assert!(found >= 180, "{what}: 50 ns are seen in {found} of 200");
        assert!(wrong <= 10, "{what}: {wrong} of 200 equal settings are called different");
    };
    for (name, moves) in [
        ("never", [0.0, 1.0]),
        ("in one run in two", [0.5, 0.5]),
        ("for about seven runs", [1.0 / 7.0, 1.0 / 7.0]),
        ("in one run in eight", [0.125, 0.875]),
    ] {
        check(name, &|by_ns| {
            count(200, 18, 10.0, |draws| moving_pairs((QUIET, moves, 0.02), 12, by_ns, draws))
        });
    }
    let run = |(floor, p50): (&u32, u32)| Sample { value: p50.into(), placement: (*floor > 100).into() };
    let runs: Vec<Sample> = FLOORS_NS.iter().zip(QUIET_P50_NS).map(run).collect();
    check("recorded", &|by_ns| {
        count(200, 19, 10.0, |draws| {
            let (a, mut b) = deal(&runs, 12, draws);
            b.iter_mut().for_each(|run| run.value += by_ns);
            (a, b)
        })
    });
}

/// The table of the page on CI gates: of 500 comparisons, how many detect the slowdown.
#[test]
fn power_of_five_pairs_is_as_documented() {
    let run = |(floor, p50): (&u32, u32)| Sample { value: p50.into(), placement: (*floor > 100).into() };
    let recorded: Vec<Sample> = FLOORS_NS.iter().zip(QUIET_P50_NS).map(run).collect();
    let found = |pairs: usize, percent: u32| {
        let ratio = 1.0 + f64::from(percent) / 100.0;
        let of_recorded = count(500, 21, 10.0, |draws| {
            let (a, mut b) = deal(&recorded, pairs, draws);
            b.iter_mut().for_each(|run| run.value *= ratio);
            (a, b)
        });
        [
            count_detected(QUIET, pairs, ratio, 500, 22),
            of_recorded,
            count_detected(DISTURBED, pairs, ratio, 500, 23),
        ]
    };
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/ci-gate.md");
    let page = std::fs::read_to_string(page).unwrap();
    let has_row = |percent| {
        let cells = [5, 12].map(|pairs| {
            found(pairs, percent).map(|detected| format!("{} %", (detected + 2) / 5)).join(" | ")
        });
        let row = format!("| {percent} % | {} |", cells.join(" | "));
        assert!(page.contains(&row), "the page does not have: {row}");
    };
    std::thread::scope(|scope| {
        for percent in [0, 5, 10, 20, 50] {
            let has_row = &has_row;
            scope.spawn(move || has_row(percent));
        }
    });
}

#[test]
fn interval_is_never_finer_than_clock_step() {
    let steady = |ns| one_placement(&[ns; 12]);
    let ten = super::difference(&steady(250.0), &steady(260.0), 10.0, Margin::default()).unwrap();
    assert_eq!((ten.difference.low, ten.difference.high, ten.direction()), (0.0, 20.0, 0));
    let fifty = super::difference(&steady(250.0), &steady(300.0), 10.0, Margin::default()).unwrap();
    assert_eq!((fifty.difference.low, fifty.difference.high, fifty.direction()), (40.0, 60.0, 1));
    assert!(fifty.ratio.high - fifty.ratio.low > 0.079, "{fifty:?}");
}

/// Returns in how many of 100 comparisons of 15 pairs a rule claims equivalence, at a planted
/// difference.
fn count_equivalent(by_ns: f64, is_shown: fn(&Equivalence) -> bool) -> usize {
    let mut draws = SeededRng::new(31);
    let mut claims = || {
        let (a, b) = moving_pairs((QUIET, [0.125, 0.875], 0.02), 15, by_ns, &mut draws);
        let found = super::difference(&a, &b, 10.0, "10ns".parse().unwrap());
        found.and_then(|found| found.equivalence).is_some_and(|test| is_shown(&test))
    };
    (0..100).filter(|_| claims()).count()
}

#[test]
fn equivalence_is_shown_only_within_the_margin() {
    let test =
        |low, high, p| Equivalence { margin: 10.0, low, high, step: 0.0, p, ratio_high: None }.is_shown();
    assert!(test(-10.0, 10.0, 0.04) && !test(-10.0, 10.1, 0.04) && !test(-10.1, 0.0, 0.04));
    assert!(!test(-1.0, 1.0, 0.06), "corrected for many figures");
    // One nanosecond beyond the margin is called equivalent in at most 5 %.
    let wrong = count_equivalent(11.0, Equivalence::is_shown);
    assert!(wrong <= 5, "{wrong} of 100");
    // The broken variants: an interval that only reaches into the margin, and one side alone.
    let overlaps: fn(&Equivalence) -> bool = |test| test.low < test.margin && test.high > -test.margin;
    let one_side: fn(&Equivalence) -> bool = |test| -test.margin <= test.low;
    for broken in [overlaps, one_side] {
        assert!(count_equivalent(11.0, broken) > 50);
    }
}

#[test]
fn equivalence_p_value_belongs_to_its_interval() {
    let noise = [0.0, 3.0, -2.0, 5.0, -4.0, 1.0, 2.0, -1.0, 4.0, -3.0, 6.0, -5.0];
    let side = |by: f64, turn: usize| -> Vec<Sample> {
        let value = |index: usize| 250.0 + by + noise[(index + turn) % noise.len()];
        one_placement(&(0..noise.len()).map(value).collect::<Vec<_>>())
    };
    for by in 0..20 {
        let margin: Margin = "10ns".parse().unwrap();
        let test = super::difference(&side(0.0, 0), &side(f64::from(by), 5), 0.0, margin).unwrap();
        let test = test.equivalence.unwrap();
        assert_eq!(test.high < 10.0 && test.low > -10.0, test.p <= 0.05, "{by}: {test:?}");
    }
    assert_eq!(equivalence_p(11.0, 10.0, |_| 0.02), 0.99, "outside the margin");
}

#[test]
fn real_difference_is_detected() {
    for (pairs, rounds) in [(5, 200), (10, 100), (20, 40)] {
        let found = count_detected(QUIET, pairs, 1.1, rounds, 1);
        assert!(found * 100 >= rounds * 95, "{pairs} pairs: 10 % is seen in {found} of {rounds}");
    }
    assert!(count_detected(DISTURBED, 20, 1.2, 40, 2) >= 36);
}

#[test]
fn too_few_pairs_give_no_comparison() {
    let five = [1.0, 2.0, 3.0, 4.0, 5.0];
    assert_eq!(difference(&five[..4], &five[..4]), None);
    assert_eq!(difference(&five, &five[..4]), None);
    assert_eq!(difference(&five, &[0.0, 1.0, 1.0, 1.0, 1.0]), None);
    assert_eq!(difference(&five, &[f64::NAN, 1.0, 1.0, 1.0, 1.0]), None);
}

#[test]
fn difference_below_histogram_resolution_is_ignored() {
    let a = [10_000.0; 9];
    assert_eq!(difference(&a, &[10_005.0; 9]).unwrap().direction(), 0);
    assert_eq!(difference(&a, &[10_100.0; 9]).unwrap().direction(), 1);
    assert_eq!(difference(&a[..5], &[9_900.0; 5]).unwrap().direction(), -1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn interval_contains_estimate_and_inverts_with_sides(
        pairs in prop::collection::vec((1.0f64..1e9, 1.0f64..1e9), MIN_PAIRS..20),
    ) {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let forward = difference(&a, &b).unwrap();
        for Estimate { value, low, high } in [forward.ratio, forward.difference] {
            let slack = 1e-9 * (1.0 + value.abs());
            prop_assert!(low <= value + slack && value <= high + slack, "{} in {}..{}", value, low, high);
        }
        let reverse = difference(&b, &a).unwrap();
        prop_assert!((forward.ratio.value * reverse.ratio.value - 1.0).abs() < 1e-9);
        prop_assert_eq!(forward.direction(), -reverse.direction());
        prop_assert_eq!(forward, difference(&a, &b).unwrap(), "the same again");
    }
}
