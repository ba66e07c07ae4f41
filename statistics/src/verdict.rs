//! What a difference shows: equivalent within the margin, slower, faster, or cannot tell.

use crate::Difference;
use system::named_enum;

named_enum! {
    /// The verdict on B against A: equivalent, slower, faster, or cannot tell.
    #[derive(Hash)]
    Verdict {
        /// The difference is within the margin, at 95 %.
        Equivalent = "equivalent",
        /// B takes more time than A.
        Slower = "slower",
        /// B takes less time than A.
        Faster = "faster",
        /// The repeats decide nothing, or the two sides cannot be compared, for the given reasons.
        #[serde(alias = "no-difference-seen", alias = "not-comparable")]
        CannotTell = "cannot tell",
    }
}

impl Difference {
    /// Returns the verdict on B compared with A: equivalent within the margin, else slower or
    /// faster if significant, else cannot tell.
    pub fn verdict(&self) -> Verdict {
        match self.direction() {
            _ if self.equivalence.is_some_and(|test| test.is_shown()) => Verdict::Equivalent,
            1 if self.is_significant() => Verdict::Slower,
            -1 if self.is_significant() => Verdict::Faster,
            _ => Verdict::CannotTell,
        }
    }
}
