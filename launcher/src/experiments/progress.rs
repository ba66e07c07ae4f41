//! The line that says how far a sweep is and how long it will take; nothing where there is no terminal.

use crate::output::StatusLine;
use std::cell::RefCell;
use std::io::Write;
use std::time::{Duration, Instant};

/// One line on stderr.
pub struct Bar {
    line: StatusLine,
    shown: RefCell<String>,
    total: usize,
    began: Instant,
    measured: u32,
}

impl Bar {
    /// A line for `total` runs, if `wanted` and stderr is a terminal.
    pub fn new(wanted: bool, total: usize) -> Self {
        let line = StatusLine::new(wanted);
        Self { line, shown: RefCell::default(), total, began: Instant::now(), measured: 0 }
    }

    /// A run begins, `left` of them still to be made, this one included.
    pub fn begin(&self, name: &str, done: usize, left: usize) {
        let time = match self.measured {
            0 => "time left unknown yet".into(),
            measured => format!("{} left", about(self.began.elapsed() / measured * left as u32)),
        };
        let text = format!("{done}/{} {time} · {name}", self.total);
        self.line.draw(&text);
        self.shown.replace(text);
    }

    /// A run ended.
    pub fn end(&mut self) {
        self.measured += 1;
    }

    /// A line that stays, above this one; on stdout where there is no terminal to redraw.
    pub fn say(&self, line: &str) {
        self.line.clear();
        // A line that cannot be printed is no reason to stop measuring.
        let _ = writeln!(crate::output::stdout(), "{line}");
        self.line.draw(&self.shown.borrow());
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.line.clear();
    }
}

/// A time for people, in one unit: `45 seconds`, `3 minutes`.
pub fn about(time: Duration) -> String {
    let seconds = time.as_secs();
    let (count, unit) = match seconds {
        ..90 => (seconds, "second"),
        90..5_400 => ((seconds + 30) / 60, "minute"),
        5_400..129_600 => ((seconds + 1_800) / 3_600, "hour"),
        _ => ((seconds + 43_200) / 86_400, "day"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_told_in_one_unit() {
        for (seconds, wanted) in
            [(1, "1 second"), (89, "89 seconds"), (192, "3 minutes"), (7_000, "2 hours"), (200_000, "2 days")]
        {
            assert_eq!(about(Duration::from_secs(seconds)), wanted);
        }
    }
}
