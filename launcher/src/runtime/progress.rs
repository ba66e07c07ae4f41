//! How far a run is: one line on stderr, nothing at all when that is not a terminal.

use crate::output::StatusLine;
use analysis::numbers::{count, duration};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use crate::output::complain;

/// The line is drawn again no sooner than this.
const PAUSE: Duration = Duration::from_millis(100);
/// Characters of the bar.
const BAR: usize = 32;

/// The phases of a run, one after the other on one line.
pub struct Progress {
    line: StatusLine,
    phase: Mutex<Phase>,
}

/// What is going on.
struct Phase {
    name: String,
    /// Of how many steps; 0: nobody knows.
    total: u64,
    position: u64,
    /// Steps are nanoseconds.
    is_time: bool,
    began: Instant,
    drawn: Option<Instant>,
}

impl Phase {
    fn new(name: &str, total: u64, is_time: bool) -> Self {
        Self { name: name.into(), total, position: 0, is_time, began: Instant::now(), drawn: None }
    }

    fn text(&self) -> String {
        if self.total == 0 {
            return self.name.clone();
        }
        let share = (self.position as f64 / self.total as f64).min(1.0);
        let filled = "=".repeat((share * BAR as f64) as usize);
        let left_ns = self.began.elapsed().as_nanos() as f64 * (1.0 - share) / share;
        let left =
            if self.position > 0 { format!("{} left", duration(left_ns as u64)) } else { String::new() };
        let of = if self.is_time {
            String::new()
        } else {
            format!("{}/{} ", count(self.position), count(self.total))
        };
        format!("{:<12} [{filled:<BAR$}] {:>3.0}% {of}{left}", self.name, share * 100.0)
    }
}

impl Progress {
    /// A line on stderr if that is a terminal and `wanted`.
    pub fn new(wanted: bool) -> Self {
        Self { line: StatusLine::new(wanted), phase: Mutex::new(Phase::new("", 0, false)) }
    }

    /// Begins a phase of `total` steps; 0: nobody knows how many.
    pub fn phase(&self, name: &'static str, total: u64) {
        self.change(|phase| *phase = Phase::new(name, total, false));
    }

    /// Begins a phase that takes so many nanoseconds.
    pub fn time(&self, name: &'static str, total_ns: u64) {
        self.change(|phase| *phase = Phase::new(name, total_ns, true));
    }

    /// How far the phase has come, of how much.
    pub fn of(&self, position: u64, total: u64) {
        self.change(|phase| (phase.position, phase.total) = (position, total));
    }

    /// What it is about now.
    pub fn says(&self, what: String) {
        self.change(|phase| phase.name = what);
    }

    /// How far the phase has come.
    pub fn at(&self, position: u64) {
        self.change(|phase| phase.position = position);
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.line.clear();
    }

    fn change(&self, change: impl FnOnce(&mut Phase)) {
        if !self.line.is_shown() {
            return;
        }
        let mut phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut phase);
        if phase.drawn.is_none_or(|drawn| drawn.elapsed() >= PAUSE) {
            phase.drawn = Some(Instant::now());
            self.line.draw(&phase.text());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_the_share_and_what_is_left() {
        let mut phase = Phase::new("firing", 4_000, false);
        assert_eq!(phase.text().split_once("] ").unwrap().1, "  0% 0/4,000 ");
        (phase.position, phase.began) = (1_000, Instant::now().checked_sub(Duration::from_secs(10)).unwrap());
        let text = phase.text();
        assert!(text.starts_with("firing       [========   "), "{text}");
        assert!(text.contains("]  25% 1,000/4,000 30") && text.ends_with(" s left"), "{text}");
        phase.position = 9_000;
        assert!(phase.text().contains("] 100% "), "more than all is all");
        assert_eq!(Phase::new("saving", 0, false).text(), "saving");
    }
}
