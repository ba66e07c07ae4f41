//! Comparisons over several hosts: whether the hosts agree on B against A.
//!
//! A comparison combines hosts as it combines the placements of one host: runs are compared only
//! with runs of the same host. The result is valid if the hosts agree. They disagree if the
//! intervals of two hosts do not overlap.

use super::interval::{Difference, format_ratio};
use serde::{Deserialize, Serialize};

/// The latency difference between settings A and B on one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostDifference {
    /// Name of the host.
    pub host: String,
    /// Number of pairs on the host.
    pub pairs: usize,
    /// Difference with its interval; null with too few pairs.
    pub difference: Option<Difference>,
}

fn known(hosts: &[HostDifference]) -> impl Iterator<Item = (&HostDifference, &Difference)> {
    hosts.iter().filter_map(|host| Some((host, host.difference.as_ref()?)))
}

fn describe_pair(low: (&HostDifference, &Difference), high: (&HostDifference, &Difference)) -> String {
    let of = |(host, difference): (&HostDifference, &Difference)| {
        format!("B/A {} on {} ({} pairs)", format_ratio(difference), host.host, host.pairs)
    };
    format!("{}, {}", of(low), of(high))
}

/// Describes a disagreement of hosts: B is faster on one and slower on another. `None` if there is
/// none.
pub(super) fn opposed(hosts: &[HostDifference]) -> Option<String> {
    let of = |wanted| known(hosts).find(|(_, difference)| difference.direction() == wanted);
    Some(format!("the hosts disagree: {}", describe_pair(of(-1)?, of(1)?)))
}

/// Describes a disagreement of hosts: the confidence intervals of two do not overlap. `None` if
/// there is none.
pub(super) fn disagreement(hosts: &[HostDifference]) -> Option<String> {
    let lowest = known(hosts).min_by(|(_, a), (_, b)| a.ratio.high.total_cmp(&b.ratio.high))?;
    let highest = known(hosts).max_by(|(_, a), (_, b)| a.ratio.low.total_cmp(&b.ratio.low))?;
    (lowest.1.ratio.high < highest.1.ratio.low).then(|| describe_pair(lowest, highest))
}
