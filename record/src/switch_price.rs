//! The price of a switch between address spaces on a machine, as `launcher doctor` measures it.

use crate::numbers::{duration, signed};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// The extra time, in nanoseconds, of a context switch between two processes over one between two
/// threads, for one working-set size. Both sides of the switch walk memory of that size. All times
/// are nanoseconds for one switch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SwitchPrice {
    /// Memory that each side walks before it hands over, in bytes.
    pub set_bytes: u64,
    /// Nanoseconds for a switch between two threads of a process, with the walk, the wake-up and
    /// the wait.
    pub thread_ns: f64,
    /// Nanoseconds for a switch between threads of two processes, with the walk, the wake-up and
    /// the wait.
    pub process_ns: f64,
    /// Median price in nanoseconds: process minus thread, over the pairs of batches.
    pub price_ns: f64,
    /// The ends of the 95 % confidence interval of the median price, in nanoseconds.
    pub interval_ns: [f64; 2],
}

impl SwitchPrice {
    /// Describes the price of a switch between address spaces for people: `+1,234 ns [+1,200 ns,
    /// +1,300 ns] of 3.21 µs with 256KiB`.
    pub fn describe(&self) -> String {
        let [low, high] = self.interval_ns.map(signed);
        let of = duration(self.thread_ns.max(0.0) as u64);
        let memory = match self.set_bytes {
            0 => String::new(),
            bytes => format!(" with {}", Bytes(bytes)),
        };
        format!("{} [{low}, {high}] of {of}{memory}", signed(self.price_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn price_is_described_with_its_interval() {
        let price = SwitchPrice {
            set_bytes: 0,
            thread_ns: 2_100.0,
            process_ns: 2_950.0,
            price_ns: 850.0,
            interval_ns: [-12.0, 900.0],
        };
        assert_eq!(price.describe(), "+850 ns [−12 ns, +900 ns] of 2,100 ns");
        let walked = SwitchPrice { set_bytes: 4 << 20, ..price };
        assert!(walked.describe().ends_with(" of 2,100 ns with 4MiB"), "{}", walked.describe());
    }
}
