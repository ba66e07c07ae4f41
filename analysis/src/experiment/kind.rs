//! The names of the kinds of experiments.

use system::named_enum;

named_enum! {
    /// What is asked of the rows of an experiment.
    Kind {
        /// Which setting is lowest.
        Sweep = "sweep",
        /// Which rate holds a bound.
        MaxRate = "max-rate",
        /// What each isolation level costs.
        Bill = "bill",
        /// Whether B is slower than A.
        Compare = "compare",
        /// Where faults stay.
        Contain = "contain",
        /// What disturbs the others.
        Disturb = "disturb",
        /// Which queue and which way of waiting.
        Lab = "lab",
        /// What a board's readers see.
        Board = "board",
        /// What one machine shows in all of them.
        Survey = "survey",
        /// What each level of a machine costs and buys.
        Ladder = "ladder",
        /// What strategies will cost.
        Predict = "predict",
    }
}
