//! Detects a busy machine, warns before the first run, and ends a bill that cannot be answered.

use analysis::experiment::Experiment;
use planner::host;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// The number of samples of the load, and the time between two.
const SAMPLES: u32 = 5;
const INTERVAL: Duration = Duration::from_millis(20);
/// Repeats from which on a bill may be given up.
const MIN_REPEATS: usize = 2;
/// The beginning of the note on a bill that was given up.
pub(super) const GIVEN_UP: &str = "given up after ";

/// A sample of the CPU load that other programs put on the machine, taken while this launcher makes
/// no run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Runnable threads of others, on average. The kernel's load average would still count what
    /// has ended, and not yet new load.
    runnable: f64,
    cpus: u32,
}

impl Load {
    /// Samples the load of this machine for a tenth of a second; `None` if the kernel does not show
    /// it.
    pub fn sample(cpus: u32) -> Option<Self> {
        let mut sum = 0.0;
        for _ in 0..SAMPLES {
            std::thread::sleep(INTERVAL);
            sum += others_runnable(host::root())?;
        }
        Some(Self { runnable: sum / f64::from(SAMPLES), cpus: cpus.max(1) })
    }

    /// Returns a CPU load with this mean number of runnable threads, for tests, as if it had been
    /// measured.
    #[cfg(test)]
    pub const fn with_runnable(runnable: f64, cpus: u32) -> Self {
        Self { runnable, cpus }
    }

    /// Returns `true` if other programs have at least one runnable thread for each CPU.
    pub fn is_busy(self) -> bool {
        self.runnable >= f64::from(self.cpus)
    }

    /// Estimates the factor by which a busy machine lengthens a run: the square root of one plus
    /// the runnable threads per CPU. It grows slowly, since much of a run is a window of fixed
    /// length.
    pub fn slowdown(self) -> f64 {
        (1.0 + self.runnable / f64::from(self.cpus)).sqrt()
    }

    /// Returns a warning that the busy machine will leave this experiment undecided; `None` if it
    /// is not busy or the experiment has no verdicts.
    pub fn warning(self, record: &Experiment) -> Option<String> {
        let has_verdicts = record.kind.entry().has_verdicts;
        (has_verdicts && self.is_busy()).then(|| format!("busy: {self}; the answer will be *cannot tell*"))
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "load {:.1} on {} CPUs", self.runnable, self.cpus)
    }
}

/// Returns the number of runnable threads besides the calling one.
fn others_runnable(root: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(root.join("proc/loadavg")).ok()?;
    let runnable = text.split_whitespace().nth(3)?.split('/').next()?.parse::<u32>().ok()?;
    Some(f64::from(runnable.saturating_sub(1)))
}

/// Returns why a bill (the experiment on isolation costs) should stop because other programs keep
/// the machine busy; `None` if it should continue. It should stop if the machine is busy, and in
/// every repeat so far one setting differs from itself, its A/A test, by more than all repeats can
/// average out. `load` is asked only then. An experiment whose repeats the user asked for makes
/// them.
pub fn give_up_reason(record: &Experiment, load: impl FnOnce() -> Option<Load>) -> Option<String> {
    record.time_limit_s?;
    let test = record.rows.iter().find(|row| row.setting.is_aa_test)?;
    let same = |name: &str| test.setting.name == format!("{name} A/A");
    let endpoint = &record.endpoint;
    let value = |is: &dyn Fn(&str) -> bool, repeat: u32| {
        let row = record.rows.iter().find(|row| row.repeat == repeat && is(&row.setting.name))?;
        Some(endpoint.percentile.get(&row.outline()?.measure(endpoint.measure()))? as f64)
    };
    let again = |name: &str| name == test.setting.name;
    let pairs: Vec<(f64, f64)> =
        (0..record.repeats).filter_map(|repeat| value(&same, repeat).zip(value(&again, repeat))).collect();
    // The interval narrows with the root of the number of pairs.
    let pairs_needed =
        |(a, b): &(f64, f64)| ((a - b).abs() / endpoint.margin.to_ns(a.min(*b)).max(1.0)).powi(2);
    let is_noise = |pair: &(f64, f64)| pairs_needed(pair) > f64::from(record.asked_repeats);
    if pairs.len() < MIN_REPEATS || !pairs.iter().all(is_noise) {
        return None;
    }
    let load = load().filter(|load| load.is_busy())?;
    let factors = pairs.iter().map(|(a, b)| a.max(*b) / a.min(*b).max(1.0));
    let least = factors.fold(f64::INFINITY, f64::min);
    Some(format!(
        "{GIVEN_UP}{} of {} repeats, the answer is *cannot tell*: one setting, measured twice, differs by a factor of {least:.1} or more, at \
         {load}; end other programs, and measure again",
        pairs.len(),
        record.asked_repeats,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::SweepRequest;
    use crate::record::new_record;
    use analysis::experiment::{Figures, Kind, Setting};
    use analysis::stats::fixtures;
    use planner::config::Common;

    /// A bill of three settings, one of them an A/A test, with `ns` in each repeat of test and
    /// reference.
    fn bill(ns: &[(f64, f64)]) -> Experiment {
        let setting = |name: &str| Setting {
            name: name.into(),
            values: [].into(),
            settings: [].into(),
            is_aa_test: name.ends_with(" A/A"),
        };
        let machine = planner::host::fake::plain(2).machine();
        let record = new_record(Kind::Bill, &SweepRequest::default(), 5, machine, &Common::default());
        let mut record = Experiment { repeats: 5, asked_repeats: 15, time_limit_s: Some(300), ..record };
        record.plan_rows(&["thread", "thread A/A", "process"].map(setting));
        for row in &mut record.rows {
            let Some((a, b)) = ns.get(row.repeat as usize) else { continue };
            let ns = if row.setting.is_aa_test { *b } else { *a };
            row.figures = Figures::from_outline(&fixtures::run(row.repeat as usize, ns));
        }
        record
    }

    fn load(runnable: f64) -> Load {
        Load::with_runnable(runnable, 2)
    }

    #[test]
    fn busy_machine_is_named_where_verdicts_depend_on_it() {
        let bill = bill(&[]);
        let named = load(8.8).warning(&bill);
        assert_eq!(named.as_deref(), Some("busy: load 8.8 on 2 CPUs; the answer will be *cannot tell*"));
        assert_eq!(load(1.9).warning(&bill), None);
        let contain = Experiment { kind: Kind::Contain, ..bill };
        assert_eq!(load(8.8).warning(&contain), None, "it counts orders");
        assert!(Load::sample(2).is_some_and(|load| load.slowdown() >= 1.0));
    }

    #[test]
    fn runnable_threads_are_those_of_others() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let with = |text: &str| {
            std::fs::write(root.path().join("proc/loadavg"), text).unwrap();
            others_runnable(root.path())
        };
        assert_eq!(with("0.12 0.08 0.01 9/345 6789\n"), Some(8.0));
        assert_eq!([with("0.12 0.08 0.01 0/345 6789\n"), with("")], [Some(0.0), None]);
    }

    #[test]
    fn bill_is_given_up_on_busy_machine_only() {
        let why = |ns: &[(f64, f64)], runnable| give_up_reason(&bill(ns), || Some(load(runnable)));
        let noisy = [(300.0, 5_000_000.0), (900_000.0, 400.0)];
        let message = why(&noisy, 8.8).unwrap();
        assert!(
            message.starts_with("given up after 2 of 15 repeats, the answer is *cannot tell*"),
            "{message}"
        );
        assert!(message.contains("a factor of 2250.0 or more, at load 8.8 on 2 CPUs"), "{message}");
        assert_eq!(why(&noisy, 0.3), None, "noise of its own");
        assert_eq!(why(&noisy[..1], 8.8), None, "one repeat");
        assert_eq!(why(&[noisy[0], (300.0, 310.0)], 8.8), None, "one of two");
        assert_eq!(why(&[(300.0, 310.0), (310.0, 300.0)], 8.8), None, "a load that does not disturb");
        let repeats_asked = Experiment { time_limit_s: None, ..bill(&noisy) };
        assert_eq!(give_up_reason(&repeats_asked, || Some(load(8.8))), None);
    }
}
