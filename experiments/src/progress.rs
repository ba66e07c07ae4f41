//! The progress line of a sweep: completed runs and time left; hidden unless stderr is a terminal.

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use record::escape::single_line;
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

/// The pace of an experiment: the number of runs that this launcher has made, and the time that
/// they took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    runs: u32,
    time: Duration,
}

impl Pace {
    fn record(&mut self, time: Duration) {
        self.runs = self.runs.saturating_add(1);
        self.time = self.time.saturating_add(time);
    }

    /// Estimates the time for `runs` more runs of the experiment; `None` before the first run.
    pub fn time_for(&self, runs: u32) -> Option<Duration> {
        let each = self.time.checked_div(self.runs)?;
        Some(each.saturating_mul(runs))
    }
}

/// An experiment whose expected time changes by less is not announced again.
const MIN_CORRECTION: Duration = Duration::from_secs(10);

/// Returns `true` if an announced time is so wrong that it is announced again: by more than a
/// quarter, and by more than [`MIN_CORRECTION`].
fn needs_correction(announced: Duration, expected: Duration) -> bool {
    let (less, more) = (announced.min(expected), announced.max(expected));
    more - less > MIN_CORRECTION && more > less.saturating_add(less / 4)
}

/// The progress bar of an experiment's series of runs, with the time that is left.
pub struct SweepProgress {
    bar: ProgressBar,
    began: Instant,
    run_began: Instant,
    /// Time from the begin to the end, as it was announced last; `None`: nothing is announced.
    announced: Option<Duration>,
    pace: Pace,
    /// Runs that follow after those of this progress line.
    later: u32,
    /// The longest that all may take.
    limit: Option<Duration>,
}

impl SweepProgress {
    /// Creates the progress bar of an experiment's `total` runs, which is shown on a terminal if
    /// `wanted`.
    pub fn new(wanted: bool, total: usize) -> Self {
        let bar = progress_line(wanted, Some(total as u64), "{spinner} {pos}/{len} {prefix} · {wide_msg}");
        let now = Instant::now();
        Self {
            bar,
            began: now,
            run_began: now,
            announced: None,
            pace: Pace::default(),
            later: 0,
            limit: None,
        }
    }

    /// Sets the pace of the experiment's earlier runs and the duration announced to the user, which
    /// the bar corrects if it is wrong. `later` runs follow if `limit` allows.
    #[must_use]
    pub fn correcting(self, pace: Pace, announced: Duration, later: u32, limit: Option<Duration>) -> Self {
        Self { announced: Some(announced), pace, later, limit, ..self }
    }

    /// Returns the time for `left` runs and those that follow.
    fn time_left(&self, left: u32) -> Option<Duration> {
        let (these, all) = (self.pace.time_for(left)?, self.pace.time_for(left.saturating_add(self.later))?);
        let limit = self.limit.map(|limit| limit.saturating_sub(self.began.elapsed()));
        Some(limit.map_or(all, |limit| all.min(limit.max(these))))
    }

    /// Shows that a run of the experiment begins; `left` runs are still to be made, this one
    /// included. Announces the time that is left if the last announcement has turned out wrong.
    pub fn begin(&mut self, name: &str, done: usize, left: usize) {
        self.run_began = Instant::now();
        self.bar.set_position(done as u64);
        let time_left = self.time_left(left as u32);
        let shown = time_left.map(|time| format!("{} left", HumanDuration(time)));
        self.bar.set_prefix(shown.unwrap_or_else(|| "time left unknown yet".into()));
        self.bar.set_message(single_line(name));
        let (Some(time_left), Some(announced)) = (time_left, self.announced) else { return };
        let elapsed = self.began.elapsed();
        if needs_correction(announced, elapsed + time_left) {
            self.announced = Some(elapsed + time_left);
            let [elapsed, time_left] = [elapsed, time_left].map(HumanDuration);
            let left = left + self.later as usize;
            self.print_line(&format!(
                "{done} runs are done after {elapsed}: about {time_left} left for {left}"
            ));
        }
    }

    /// Adds the run that has just ended, with its time since `begin`, to the experiment's pace.
    pub fn end(&mut self) {
        self.pace.record(self.run_began.elapsed());
    }

    /// Returns the number and the time of the experiment's runs so far.
    pub const fn pace(&self) -> Pace {
        self.pace
    }

    /// Prints a permanent line above the progress line.
    pub fn print_line(&self, line: &str) {
        self.bar.suspend(|| {
            // Keep measuring even if the line cannot be printed.
            let _ = writeln!(::record::screen::stdout(), "{line}");
        });
    }

    /// Removes the progress line from the terminal.
    pub fn clear(&self) {
        self.bar.disable_steady_tick();
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn time_left_follows_measured_runs() {
        let mut pace = Pace::default();
        assert_eq!(pace.time_for(16), None, "nothing was measured");
        [s(2), s(4), s(30)].into_iter().for_each(|time| pace.record(time));
        assert_eq!((pace.time_for(16), pace.time_for(0)), (Some(s(192)), Some(s(0))));
    }

    #[test]
    fn time_left_includes_later_runs_within_limit() {
        let mut pace = Pace::default();
        pace.record(s(3));
        let with = |limit| SweepProgress::new(false, 0).correcting(pace, s(0), 20, limit).time_left(10);
        assert_eq!([with(None), with(Some(s(3)))], [Some(s(90)), Some(s(30))]);
        let limited = with(Some(s(60))).unwrap();
        assert!(limited > s(30) && limited <= s(60), "{limited:?}");
    }

    #[test]
    fn only_wrong_announcements_are_corrected() {
        assert!(needs_correction(s(48), s(230)), "16 runs that were announced as three seconds each");
        assert!(needs_correction(s(230), s(48)) && needs_correction(s(0), s(11)));
        assert!(!needs_correction(s(48), s(59)), "by less than a quarter");
        assert!(!needs_correction(s(4), s(13)), "by less than ten seconds");
    }
}
