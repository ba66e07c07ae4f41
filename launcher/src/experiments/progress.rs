//! The progress line of a sweep: completed runs and time left; hidden unless stderr is a terminal.

use analysis::escape::single_line;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Write;
use std::time::{Duration, Instant};

/// Returns a line that ticks, if `wanted` and stderr is a terminal; else one that is hidden.
pub(super) fn progress_line(wanted: bool, total: Option<u64>, template: &str) -> ProgressBar {
    let target = if wanted { ProgressDrawTarget::stderr_with_hz(4) } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(total, target);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    if !bar.is_hidden() {
        bar.enable_steady_tick(Duration::from_millis(250));
    }
    bar
}

pub struct SweepProgress {
    bar: ProgressBar,
    began: Instant,
    measured: u32,
}

impl SweepProgress {
    pub fn new(wanted: bool, total: usize) -> Self {
        let bar = progress_line(wanted, Some(total as u64), "{spinner} {pos}/{len} {prefix} · {wide_msg}");
        Self { bar, began: Instant::now(), measured: 0 }
    }

    /// Shows that a run begins; `left` runs are still to be made, this one included.
    pub fn begin(&self, name: &str, done: usize, left: usize) {
        self.bar.set_position(done as u64);
        let time = match self.measured {
            0 => "time left unknown yet".into(),
            measured => format!("{} left", HumanDuration(self.began.elapsed() / measured * left as u32)),
        };
        self.bar.set_prefix(time);
        self.bar.set_message(single_line(name));
    }

    pub fn end(&mut self) {
        self.measured += 1;
    }

    /// Prints a permanent line above the progress line.
    pub fn print_line(&self, line: &str) {
        self.bar.suspend(|| {
            // Keep measuring even if the line cannot be printed.
            let _ = writeln!(crate::output::stdout(), "{line}");
        });
    }

    pub fn clear(&self) {
        self.bar.disable_steady_tick();
        self.bar.finish_and_clear();
    }
}
