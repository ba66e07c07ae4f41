//! A doctor measurement: how much more a switch to another process costs on this machine than one
//! to another thread.

use super::{Check, ok};
use planner::host::{Machine, signals};
use record::switch_price::SwitchPrice;
use record::units::{Bytes, Nanos};
use std::time::Duration;
use system::switch_price::{SwitchPair, switch_pairs};

/// Memory that each side walks in its turn, in bytes: none, a second-level cache's, more.
const SETS: [usize; 3] = [0, 256 << 10, 4 << 20];
const PAIRS: u32 = 15;
/// Time of one batch: about two thousand switches without memory.
const BATCH: Duration = Duration::from_millis(10);

/// Returns the price that pairs of batches show. `None` with fewer than six, whose median has no
/// such interval.
fn price_of(set_bytes: u64, pairs: &[SwitchPair]) -> Option<SwitchPrice> {
    let sorted = |figure: fn(&SwitchPair) -> f64| {
        let mut all: Vec<f64> = pairs.iter().map(figure).collect();
        all.sort_unstable_by(f64::total_cmp);
        all
    };
    let prices = sorted(|pair| pair.process_ns - pair.thread_ns);
    let (middle, rank) = (pairs.len() / 2, interval_rank(pairs.len())?);
    Some(SwitchPrice {
        set_bytes,
        thread_ns: sorted(|pair| pair.thread_ns)[middle],
        process_ns: sorted(|pair| pair.process_ns)[middle],
        price_ns: prices[middle],
        interval_ns: [prices[rank], prices[pairs.len() - 1 - rank]],
    })
}

fn text(price: &SwitchPrice) -> String {
    let [low, high] = price.interval_ns.map(short);
    format!("{} [{low}, {high}]", short(price.price_ns))
}

/// Returns how many of `n` sorted values lie outside of the median's interval at each end: the most
/// for which at most 2.5 % of fair coins show fewer heads (the sign test). `None` if even all are
/// too few.
fn interval_rank(n: usize) -> Option<usize> {
    let mut term = 0.5f64.powi(n as i32);
    let (mut below, mut rank) = (term, None);
    for heads in 0..n / 2 {
        if below > 0.025 {
            break;
        }
        rank = Some(heads);
        term *= (n - heads) as f64 / (heads + 1) as f64;
        below += term;
    }
    rank
}

fn short(ns: f64) -> String {
    match ns < 0.0 {
        true => format!("-{}", Nanos(-ns.round() as u64)),
        false => Nanos(ns.round() as u64).to_string(),
    }
}

/// Measures the price on the last core that may be used, in about a second; empty if it cannot be
/// measured.
pub(super) fn measure(machine: &Machine) -> Vec<SwitchPrice> {
    let Some(core) = machine.cores_allowed.last() else { return Vec::new() };
    let price = |bytes: &usize| {
        let pairs = switch_pairs(*core, *bytes, PAIRS, BATCH, signals::is_end_requested).ok()?;
        price_of(*bytes as u64, &pairs)
    };
    SETS.iter().filter_map(price).collect()
}

/// Reports the price. It makes no machine unfit: it is what a process costs there.
pub(super) fn check(prices: &[SwitchPrice]) -> Check {
    let with_memory = |price: &SwitchPrice| {
        let size = Bytes(price.set_bytes);
        format!("{} with {size} walked on each side", text(price))
    };
    match prices {
        [] => ok("switch", "not measured: no core may be used, or no process started"),
        [first, others @ ..] => {
            let others: Vec<String> = others.iter().map(with_memory).collect();
            let all = [vec![text(first)], others].concat().join(", ");
            ok("switch", format!("to another process longer than to another thread by {all}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_of_median_has_the_ranks_of_the_sign_test() {
        let known = [
            (5, None),
            (6, Some(0)),
            (8, Some(0)),
            (9, Some(1)),
            (12, Some(2)),
            (15, Some(3)),
            (20, Some(5)),
        ];
        for (n, rank) in known {
            assert_eq!(interval_rank(n), rank, "{n}");
        }
    }

    #[test]
    fn price_is_the_median_difference_of_pairs() {
        let pair = |drift: f64, price: f64| SwitchPair { thread_ns: drift, process_ns: drift + price };
        let pairs: Vec<SwitchPair> =
            (0..15).map(|at| pair(1_000.0 * f64::from(at), 2_000.0 + f64::from(at))).collect();
        let price = price_of(0, &pairs).unwrap();
        assert_eq!((price.price_ns, price.interval_ns), (2_007.0, [2_003.0, 2_011.0]));
        assert!(check(&[price]).found.ends_with("by 2007ns [2003ns, 2011ns]"), "{}", check(&[price]).found);
        assert_eq!(price_of(0, &pairs[..5]), None);
        assert!(check(&[]).found.starts_with("not measured"));
    }
}
