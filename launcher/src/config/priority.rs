//! The scheduling priority of a run's threads, as users write it: `fifo:50`.

use core::fmt;
use core::str::FromStr;
use system::priority::FIFO;

/// A priority under `SCHED_FIFO`, 1 to 99.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority(u8);

impl Priority {
    /// That priority, if it is one.
    pub fn new(fifo: u8) -> Option<Self> {
        FIFO.contains(&fifo).then_some(Self(fifo))
    }

    /// As the kernel counts it.
    pub const fn fifo(self) -> u8 {
        self.0
    }
}

impl FromStr for Priority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim().strip_prefix("fifo:").and_then(|number| number.parse().ok());
        let wrong = || {
            let (low, high) = (FIFO.start(), FIFO.end());
            format!(
                "{text:?} is no priority: expected fifo:N with N from {low} to {high}, for example fifo:50"
            )
        };
        number.and_then(Self::new).ok_or_else(wrong)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fifo:{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_has_its_policy_and_its_range() {
        let priority: Priority = " fifo:50".parse().unwrap();
        assert_eq!((priority.fifo(), priority.to_string().as_str()), (50, "fifo:50"));
        for wrong in ["50", "fifo:0", "fifo:100", "fifo:-1", "fifo:", "rr:5", "fifo:256", ""] {
            assert!(wrong.parse::<Priority>().unwrap_err().contains("for example fifo:50"), "{wrong}");
        }
    }
}
