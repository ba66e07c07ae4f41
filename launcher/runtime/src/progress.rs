//! Progress bar of a run: one line on stderr, and nothing if that is not a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

pub use record::screen::print_warning;

/// The progress bar of a run.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Creates a progress line on stderr if that is a terminal and `wanted`.
    pub fn new(wanted: bool) -> Self {
        // A hidden target draws nothing and costs nothing; indicatif itself hides a bar that is not
        // on a terminal.
        let target =
            if wanted { ProgressDrawTarget::stderr_with_hz(10) } else { ProgressDrawTarget::hidden() };
        Self { bar: ProgressBar::with_draw_target(None, target) }
    }

    /// Begins a phase of the run with `total` steps on the progress line; 0 if unknown.
    pub fn phase(&self, name: &'static str, total: u64) {
        let template = if total == 0 {
            "{spinner} {msg:<12} {elapsed}"
        } else {
            "{spinner} {msg:<12} [{bar:32}] {percent:>3}% {human_pos}/{human_len} {eta}"
        };
        let style = ProgressStyle::with_template(template).expect("a constant template");
        self.bar.disable_steady_tick();
        // The style first: each of the others draws.
        self.bar.set_style(style.progress_chars("=> "));
        self.bar.reset();
        self.bar.set_length(total);
        self.bar.set_message(name);
        // A phase with known steps draws on updates and needs no timer.
        if total == 0 && !self.bar.is_hidden() {
            self.bar.enable_steady_tick(Duration::from_millis(200));
        }
    }

    /// Sets the numbers of completed steps and of all steps of the progress line's phase.
    pub fn set(&self, position: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(position);
    }

    /// Sets the number of completed steps of the progress line's phase.
    pub fn at(&self, position: u64) {
        self.bar.set_position(position);
    }

    /// Removes the progress line from the terminal.
    pub fn clear(&self) {
        self.bar.disable_steady_tick();
        self.bar.finish_and_clear();
    }
}
