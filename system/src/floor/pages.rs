//! Whether the core-to-core time depends on the page that the line lies on.
//!
//! Two lines in each of many fresh pages are bounced, pass after pass, each pass in another random
//! order. If the page decides, a line is as slow in each pass as in the first one, and so is the
//! other line of its page. If the moment decides, all lines of a pass are.

use super::{FreshPages, PAGES, bounce, median, stop_answering, with_pinned_pair};
use crate::pin::PinError;
use shm::sync::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Words between the two lines of a page. Not a multiple of a power of two.
const SECOND_LINE: usize = 264;
/// Batches of a visit, and round trips of a batch.
const VISIT: (usize, u32) = (8, 40);
/// No further pass begins after this time.
const MAX_TIME: Duration = Duration::from_secs(1);

/// One measurement of the time between two cores over several memory pages: the round-trip times of
/// two cache lines of each page, in nanoseconds.
pub type Pass = Vec<[f64; 2]>;

/// Measures the round trips of two cache lines in each of `pages` fresh pages, at least [`PAGES`],
/// in `passes` passes. Fewer passes once `stop` returns `true`, or after a second. 64 pages take 15
/// ms a pass between near cores.
///
/// # Errors
/// A core may not be used.
pub fn visit_pages(
    core_a: u32,
    core_b: u32,
    pages: usize,
    passes: usize,
    stop: impl Fn() -> bool + Sync,
) -> Result<Vec<Pass>, PinError> {
    if passes == 0 {
        return Ok(Vec::new());
    }
    let memory = FreshPages::new(pages.max(PAGES));
    let orders: Vec<Vec<usize>> = (0..passes).map(|pass| shuffled(2 * memory.len(), pass as u64)).collect();
    let line = |visit: usize| memory.word(visit / 2, visit % 2 * SECOND_LINE);
    let (began, has_ended) = (Instant::now(), AtomicU64::new(0));
    // The answering side looks whether it was the last visit after each pass's first one.
    let stop_all = || {
        has_ended.store(1, Ordering::Release);
        stop_answering(line(orders[0][0]));
    };
    let ask = || {
        let mut made = Vec::new();
        for order in &orders {
            if stop() || began.elapsed() > MAX_TIME {
                has_ended.store(1, Ordering::Release);
                stop_answering(line(order[0]));
                break;
            }
            let mut pass = vec![[0.0; 2]; memory.len()];
            for visit in order {
                pass[visit / 2][visit % 2] = quartile_ns(line(*visit));
                stop_answering(line(*visit));
            }
            made.push(pass);
        }
        made
    };
    let answer = || {
        for visits in &orders {
            for (at, visit) in visits.iter().enumerate() {
                super::answer(line(*visit));
                // Acquire: pairs with the asking side's Release before it ended the visit.
                if at == 0 && has_ended.load(Ordering::Acquire) == 1 {
                    return;
                }
            }
        }
    };
    with_pinned_pair(core_a, core_b, ask, answer, stop_all).map(|(made, ())| made)
}

/// Returns the lower quartile of the batches of a visit: a thread that loses its core for a moment
/// only adds to a batch.
fn quartile_ns(line: &AtomicU64) -> f64 {
    let mut batches: Vec<f64> = (0..VISIT.0).map(|_| bounce(line, VISIT.1, || {}, &|| false)).collect();
    batches.sort_unstable_by(f64::total_cmp);
    batches.truncate(VISIT.0 / 2);
    median(batches)
}

/// Returns the numbers below `count` in a pseudo-random order, another one for each seed
/// (xorshift).
fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        order.swap(last, (state % (last as u64 + 1)) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pin::allowed_cores;

    #[test]
    fn each_order_has_every_line_once() {
        let orders: Vec<Vec<usize>> = (0..4).map(|pass| shuffled(128, pass)).collect();
        for (at, order) in orders.iter().enumerate() {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..128));
            assert!(orders[..at].iter().all(|other| other != order));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri pins nothing")]
    fn each_pass_times_both_lines_of_each_page() {
        let cores = allowed_cores();
        let [a, b] = [cores[0], cores[cores.len() - 1]];
        assert_eq!(visit_pages(a, b, PAGES, 2, || true).unwrap(), Vec::<Pass>::new());
        let passes = visit_pages(a, b, PAGES, 1, || false).unwrap();
        assert_eq!((passes.len(), passes[0].len()), (1, PAGES));
        assert!(passes[0].iter().flatten().all(|ns| *ns > 0.0), "{passes:?}");
        assert!(visit_pages(a, 1 << 20, PAGES, 1, || false).is_err());
        assert!(visit_pages(1 << 20, b, PAGES, 1, || false).is_err(), "and no endless wait");
        let stopped = AtomicU64::new(0);
        let passes = visit_pages(a, b, PAGES, 8, || stopped.fetch_add(1, Ordering::Relaxed) == 2).unwrap();
        assert!(passes.len() <= 2, "stopped before the third pass");
    }
}
