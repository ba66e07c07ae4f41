//! A doctor check: whether the core-to-core time depends on the memory page of the shared cache
//! line.

use super::{Check, note, ok};
use planner::host::{Machine, signals};
use record::units::Nanos;
use serde::Serialize;
use system::floor::pages::{Pass, visit_pages};

const PAGES: usize = 64;
const PASSES: usize = 8;
/// Neighbors in the sorted times of the pages that differ by this ratio are of two kinds.
const MIN_RATIO: f64 = 1.25;
/// Two kinds are the pages' own if this share of the variance is between pages, and not within
/// them over time.
const MIN_SHARE: f64 = 0.5;
/// Permutations of the pages within their passes.
const PERMUTATIONS: u32 = 199;
/// The largest p-value of the permutation test that shows a difference between pages.
const MAX_P: f64 = 0.01;

/// How the core-to-core time of lines in fresh pages varies. All times are nanoseconds for one
/// round trip.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct PageTimes {
    /// Number of pages.
    pages: usize,
    /// Number of times that each of their two lines was measured.
    passes: usize,
    /// Median of the pages.
    median_ns: f64,
    /// The fastest and the slowest page.
    range_ns: [f64; 2],
    /// Share of the variance between pages; the rest is within pages, over time. The
    /// passes' own medians are subtracted before.
    share_between_pages: f64,
    /// Probability of so much between pages if it were chance.
    p_value: f64,
    /// Share of the pages whose two lines are of one kind; 1 if there is one kind only.
    lines_agree: f64,
    /// The kinds of pages, fast and slow: number and median. Empty if they are alike.
    kinds: Vec<PageKind>,
}

/// Pages that are about as fast.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct PageKind {
    pages: usize,
    median_ns: f64,
}

impl PageTimes {
    /// Leaves out passes in which the host had other cores, nearer or farther, than in most. `None`
    /// with fewer than three of the others, which cannot tell a page from a moment.
    fn from_passes(all: &[Pass]) -> Option<Self> {
        let pages = all.first()?.len();
        let usual = |pass: &Pass| median(pass.iter().flatten().copied().collect());
        let middle = median(all.iter().map(usual).collect());
        let is_of_most = |pass: &&Pass| (1.0 / MIN_RATIO..MIN_RATIO).contains(&(usual(pass) / middle));
        let passes: Vec<Pass> = all.iter().filter(is_of_most).cloned().collect();
        if passes.len() < 3 || pages < 2 {
            return None;
        }
        let line_ns = |page: usize, line: usize| median(passes.iter().map(|pass| pass[page][line]).collect());
        let lines: Vec<[f64; 2]> = (0..pages).map(|page| [0, 1].map(|line| line_ns(page, line))).collect();
        let of_pages: Vec<f64> = lines.iter().map(|[a, b]| (a + b) / 2.0).collect();
        let mut sorted = of_pages.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let (share, p_value) = share_between_pages(&passes);
        let split = widest_step(&sorted).filter(|_| share >= MIN_SHARE && p_value <= MAX_P);
        let kinds = split.map_or_else(Vec::new, |at| {
            let kind = |times: &[f64]| PageKind { pages: times.len(), median_ns: median(times.to_vec()) };
            vec![kind(&sorted[..at]), kind(&sorted[at..])]
        });
        let border = split.map_or(f64::INFINITY, |at| (sorted[at - 1] * sorted[at]).sqrt());
        let agreeing = lines.iter().filter(|[a, b]| (*a < border) == (*b < border)).count();
        Some(Self {
            pages,
            passes: passes.len(),
            median_ns: median(of_pages),
            range_ns: [sorted[0], sorted[pages - 1]],
            share_between_pages: share,
            p_value,
            lines_agree: agreeing as f64 / pages as f64,
            kinds,
        })
    }
}

/// Returns where the sorted times have their widest step, if that is wide enough for two kinds.
fn widest_step(sorted: &[f64]) -> Option<usize> {
    let step = |at: &usize| sorted[*at] / sorted[at - 1];
    let widest = (1..sorted.len()).max_by(|a, b| step(a).total_cmp(&step(b)))?;
    (step(&widest) >= MIN_RATIO).then_some(widest)
}

/// Returns the share of the variance of the times' logarithms between pages, and the
/// p-value of a permutation of the pages within each pass (one-way random effects).
fn share_between_pages(passes: &[Pass]) -> (f64, f64) {
    let mut logs: Vec<Vec<f64>> = passes.iter().map(centered_logs).collect();
    let (share, found) = variance_share(&logs);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut as_large = 0;
    for _ in 0..PERMUTATIONS {
        for pass in &mut logs {
            for last in (1..pass.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                pass.swap(last, ((state >> 33) % (last as u64 + 1)) as usize);
            }
        }
        as_large += u32::from(variance_share(&logs).1 >= found);
    }
    (share, f64::from(as_large + 1) / f64::from(PERMUTATIONS + 1))
}

/// Returns the logarithm of each page's mean time in a pass, minus their median: what the moment
/// does to all pages is no page's.
fn centered_logs(pass: &Pass) -> Vec<f64> {
    let logs: Vec<f64> = pass.iter().map(|[a, b]| ((a + b) / 2.0).ln()).collect();
    let middle = median(logs.clone());
    logs.into_iter().map(|log| log - middle).collect()
}

/// Returns the share of the variance between pages, from none to all of it, and the ratio of the
/// mean squares between and within pages.
fn variance_share(logs: &[Vec<f64>]) -> (f64, f64) {
    let (passes, pages) = (logs.len() as f64, logs[0].len());
    let means: Vec<f64> =
        (0..pages).map(|page| logs.iter().map(|pass| pass[page]).sum::<f64>() / passes).collect();
    let all = means.iter().sum::<f64>() / pages as f64;
    let squares_between: f64 = means.iter().map(|mean| passes * (mean - all).powi(2)).sum();
    let of_pass =
        |pass: &Vec<f64>| pass.iter().zip(&means).map(|(log, mean)| (log - mean).powi(2)).sum::<f64>();
    let squares_within: f64 = logs.iter().map(of_pass).sum();
    let between = squares_between / (pages as f64 - 1.0);
    let within = (squares_within / (pages as f64 * (passes - 1.0))).max(f64::MIN_POSITIVE);
    let of_pages = ((between - within) / passes).max(0.0);
    (of_pages / (of_pages + within), between / within)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[(values.len() - 1) / 2]
}

/// Bounces lines in fresh pages between the first and the last core that may be used, in a quarter
/// of a second at most on an idle machine; `None` if it cannot be measured.
pub(super) fn measure(machine: &Machine) -> Option<PageTimes> {
    let [first, .., last] = machine.cores_allowed[..] else { return None };
    let passes = visit_pages(first, last, PAGES, PASSES, signals::is_end_requested).ok()?;
    PageTimes::from_passes(&passes)
}

/// Reports the times. Two kinds of pages make no machine unfit: they say how far two runs may
/// differ by where their rings lie.
pub(super) fn check(times: Option<&PageTimes>) -> Check {
    let Some(times) = times else {
        return ok("pages", "not measured: two cores are needed, which the host does not move meanwhile");
    };
    let ns = |ns: f64| Nanos(ns.round() as u64);
    let [low, high] = times.range_ns.map(ns);
    match times.kinds[..] {
        [fast, slow] => note(
            "pages",
            format!(
                "two kinds: a line's round trip takes {} in {} of {} fresh pages, {} in {}; {:.0} % of the variance is the pages'",
                ns(fast.median_ns),
                fast.pages,
                times.pages,
                ns(slow.median_ns),
                slow.pages,
                times.share_between_pages * 100.0
            ),
            "compare over many runs, each has fresh pages; on the host, keep the memory on the cores' NUMA node",
        ),
        _ => ok(
            "pages",
            format!(
                "alike: a line's round trip takes {} in {} fresh pages ({low} to {high})",
                ns(times.median_ns),
                times.pages
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes over 64 pages: `moment` is the time in a pass, `page` the factor of a page, `noise`
    /// up to that share more, another for each time.
    fn passes(moment: fn(usize) -> f64, page: fn(usize) -> f64, noise: f64) -> Vec<Pass> {
        let mut state = 7_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            1.0 + noise * (state >> 40) as f64 / (1 << 24) as f64
        };
        (0..8)
            .map(|pass| (0..64).map(|at| [0, 1].map(|_| moment(pass) * page(at) * draw())).collect())
            .collect()
    }

    const fn usual(_: usize) -> f64 {
        1.0
    }

    #[test]
    fn slow_pages_are_found_whatever_the_moment_does() {
        let slow = |page: usize| if page.is_multiple_of(5) { 1.75 } else { 1.0 };
        for moment in [(|_| 440.0) as fn(usize) -> f64, |pass| 440.0 + 10.0 * pass as f64] {
            let times = PageTimes::from_passes(&passes(moment, slow, 0.1)).unwrap();
            assert_eq!(times.kinds.iter().map(|kind| kind.pages).collect::<Vec<_>>(), [51, 13]);
            assert!(times.share_between_pages > 0.9 && times.p_value <= 0.01, "{times:?}");
            assert_eq!(times.lines_agree, 1.0);
            let check = check(Some(&times));
            assert!(
                check.found.starts_with("two kinds: ") && check.found.contains("in 51 of 64"),
                "{}",
                check.found
            );
        }
    }

    /// A host that moves the cores makes all lines slow, and lines that are slow for a moment are
    /// no slow pages.
    #[test]
    fn slow_moments_are_no_slow_pages() {
        let moved = |pass: usize| if pass < 4 { 80.0 } else { 440.0 };
        let mut of_moments = passes(moved, usual, 0.1);
        for (at, pass) in of_moments.iter_mut().enumerate() {
            for slow in 0..13 {
                let page = &mut pass[(slow * 5 + at * 7) % 64];
                *page = page.map(|ns| ns * 1.75);
            }
        }
        for planted in [passes(moved, usual, 0.1), of_moments] {
            let times = PageTimes::from_passes(&planted).unwrap();
            assert!(times.share_between_pages < 0.2, "{times:?}");
            assert_eq!(times.kinds, []);
            assert!(check(Some(&times)).found.starts_with("alike: "));
        }
    }

    /// Near cores do not show the pages; the passes after the host moved them do.
    #[test]
    fn passes_before_the_host_moved_the_cores_do_not_count() {
        let slow = |page: usize| if page.is_multiple_of(5) { 1.75 } else { 1.0 };
        let near = passes(|_| 80.0, usual, 0.1);
        let far = passes(|_| 440.0, slow, 0.1);
        let times = PageTimes::from_passes(&[&near[..3], &far[..5]].concat()).unwrap();
        assert_eq!((times.passes, times.kinds.len()), (5, 2), "{times:?}");
        assert_eq!(PageTimes::from_passes(&[&near[..2], &far[..2]].concat()), None);
    }

    #[test]
    fn too_few_passes_tell_nothing() {
        assert_eq!(PageTimes::from_passes(&passes(|_| 80.0, usual, 0.1)[..2]), None);
        assert_eq!(PageTimes::from_passes(&[]), None);
        assert!(check(None).found.starts_with("not measured"));
    }
}
