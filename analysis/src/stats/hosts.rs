//! Several hosts: whether each of them says the same of B against A.
//!
//! A comparison combines its hosts as it combines the placements of one: only runs of one host are
//! compared with each other. That is an answer if the hosts agree about it. They disagree where the
//! intervals of two of them have nothing in common.

use super::interval::{Difference, ratio};
use serde::{Deserialize, Serialize};

/// B against A on one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostDifference {
    /// The host.
    pub host: String,
    /// Its pairs.
    pub pairs: usize,
    /// What they say; null: they are too few.
    pub difference: Option<Difference>,
}

fn known(hosts: &[HostDifference]) -> impl Iterator<Item = (&HostDifference, &Difference)> {
    hosts.iter().filter_map(|host| Some((host, host.difference.as_ref()?)))
}

fn words(low: (&HostDifference, &Difference), high: (&HostDifference, &Difference)) -> String {
    let of = |(host, difference): (&HostDifference, &Difference)| {
        format!("B/A {} on {} ({} pairs)", ratio(difference), host.host, host.pairs)
    };
    format!("{}, {}", of(low), of(high))
}

/// That B is faster on one host and slower on another, in words; `None`: it is not.
pub(super) fn opposed(hosts: &[HostDifference]) -> Option<String> {
    let of = |wanted| known(hosts).find(|(_, difference)| difference.direction() == wanted);
    Some(format!("the hosts disagree: {}", words(of(-1)?, of(1)?)))
}

/// That two hosts have intervals without anything in common, in words; `None`: all have, or fewer
/// than two have pairs enough.
pub(super) fn disagreement(hosts: &[HostDifference]) -> Option<String> {
    let least = known(hosts).min_by(|(_, a), (_, b)| a.ratio.high.total_cmp(&b.ratio.high))?;
    let most = known(hosts).max_by(|(_, a), (_, b)| a.ratio.low.total_cmp(&b.ratio.low))?;
    (least.1.ratio.high < most.1.ratio.low).then(|| words(least, most))
}
