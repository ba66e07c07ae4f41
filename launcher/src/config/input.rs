//! The names that the schedule knows its own input by: how orders arrive and how long a venue takes.

/// How the arrival times of orders are drawn over the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Each order at a time of its own, all times equally likely.
    Uniform,
    /// Exponential gaps: independent arrivals at a constant rate.
    Poisson,
    /// Heavy-tailed gaps: bursts and silences.
    Pareto,
    /// No times at all: as fast as the rings take them.
    Stress,
}

impl Arrivals {
    /// Every kind, in the order of the documentation.
    pub const ALL: &'static [Self] = &[Self::Uniform, Self::Poisson, Self::Pareto, Self::Stress];

    /// The name that users type and read.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Poisson => "poisson",
            Self::Pareto => "pareto",
            Self::Stress => "stress",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.name() == name)
    }
}

/// The venue delay D, drawn uniformly from this range for each order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayRange {
    /// The shortest, in nanoseconds.
    pub min_ns: u64,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
}
