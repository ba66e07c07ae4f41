//! What was seen, counted.

use std::collections::BTreeMap;

const TRIED: [&str; 2] = ["points", "words"];

/// Counts of observations by experiment, in the order in which they are printed.
#[derive(Default)]
pub struct Facts(BTreeMap<(&'static str, &'static str), u64>);

impl Facts {
    pub fn add(&mut self, experiment: &'static str, fact: &'static str, count: u64) {
        *self.0.entry((experiment, fact)).or_default() += count;
    }

    pub fn rows(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        self.0.iter().map(|((experiment, fact), count)| (*experiment, *fact, *count))
    }

    /// Returns a hash (FNV-1a) of the outcomes that were seen, whatever their counts. It is the
    /// same on every machine on which enough places are tried.
    pub fn digest(&self) -> u64 {
        let is_seen = |(_, fact, count): &(&str, &str, u64)| {
            *count > 0 && !TRIED.contains(fact) && !fact.starts_with("instructions")
        };
        let seen = self.rows().filter(is_seen).flat_map(|(experiment, fact, _)| [experiment, fact]);
        seen.flat_map(|text| text.bytes().chain([0])).fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
    }
}
