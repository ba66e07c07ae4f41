//! What was seen, counted.

use std::collections::BTreeMap;

/// Facts that are numbers of attempts and no outcomes.
const TRIED: [&str; 3] = ["points", "words", Outcome::TRIALS];

/// Beginnings of facts that depend on the build.
const SIZES: [&str; 4] = ["instructions", "system calls", "changes", "points skipped"];

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
            *count > 0 && !TRIED.contains(fact) && !SIZES.iter().any(|size| fact.starts_with(size))
        };
        let seen = self.rows().filter(is_seen).flat_map(|(experiment, fact, _)| [experiment, fact]);
        seen.flat_map(|text| text.bytes().chain([0])).fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        })
    }
}

/// The judgment of one trial, which the table of the book counts.
#[derive(Clone, Copy, Default)]
pub struct Outcome {
    /// A message that its sender had sent, or sends later, reaches no receiver.
    pub is_lost: bool,
    /// A message that had been received before arrives again, or one twice.
    pub is_doubled: bool,
    /// A process that was not killed hangs, crashes or cannot go on, or no successor can begin.
    pub is_stuck: bool,
    /// Something is left after all ended and the documented clean-up.
    pub is_leaked: bool,
    /// The ends go on only with a new transport, as its documentation has it.
    pub is_over: bool,
}

impl Outcome {
    pub const TRIALS: &str = "= trials";

    pub fn count(self, experiment: &'static str, facts: &mut Facts) {
        facts.add(experiment, Self::TRIALS, 1);
        facts.add(experiment, "= lost", self.is_lost.into());
        facts.add(experiment, "= doubled", self.is_doubled.into());
        facts.add(experiment, "= stuck", self.is_stuck.into());
        facts.add(experiment, "= leaked", self.is_leaked.into());
        facts.add(experiment, "= starts over", self.is_over.into());
    }
}
