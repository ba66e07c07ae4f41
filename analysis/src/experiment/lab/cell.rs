//! A cell of a lab: a queue with a way of waiting and the speeds of its ends, and the runs made
//! with it.

use super::run::histogram;
use super::{AXES, LabRun, Speed, Wait};
use crate::experiment::{Figures, Setting};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use protocol::plan::{Isolation, Technique};
use serde::{Deserialize, Serialize};

/// The settings that distinguish the cells of a lab, as a row has them.
const SETTINGS: [&str; 11] = [
    "technique",
    "isolation",
    "producers",
    "consumers",
    "producer",
    "consumer",
    "wait",
    "events",
    "runs",
    "slots",
    "capacity",
];

/// One combination of settings of the queue benchmark (a cell), with its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabCell {
    /// The technique that carries the events.
    pub technique: Technique,
    /// The isolation level between the ends.
    pub isolation: Isolation,
    /// Number of producers.
    pub producers: u16,
    /// Number of consumers; each gets every event.
    pub consumers: u16,
    /// Whether the producers are fast or slow.
    pub producer: Speed,
    /// Whether the consumers are fast or slow.
    pub consumer: Speed,
    /// Wait strategy of both ends.
    pub wait: Wait,
    /// Number of events in a run of this cell; `None`: the lab's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// Number of runs of this cell; `None`: the lab's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
    /// Number of slots of this cell's queue; `None`: the lab's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Maximum number of events in the queue; `None`: not bounded by a count, or unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// The runs that were made, by number.
    #[serde(default)]
    pub made: Vec<LabRun>,
}

impl LabCell {
    /// Reads a cell of the queue benchmark from an experiment's setting, without runs.
    ///
    /// # Errors
    /// A setting that is missing, or that cannot be read.
    pub fn from_setting(setting: &Setting) -> Result<Self, String> {
        let cell = Figures::default().with_settings(&setting.settings).record();
        cell.map_err(|error| format!("{}: {error}", setting.name))
    }

    /// Returns the cell's combination of settings as the experiment's rows save it, without the
    /// figures of runs.
    pub fn setting(&self) -> Setting {
        Setting::from_texts(self.name(), Figures::from_record(self).take_settings(&SETTINGS), &AXES)
    }

    /// Returns one histogram of the latencies, in nanoseconds, of all valid runs of this
    /// combination of settings.
    pub fn latencies(&self) -> Result<Histogram<u64>, String> {
        let mut all = histogram();
        for run in self.valid_runs().filter(|run| !run.histogram.is_empty()) {
            let packed = STANDARD.decode(&run.histogram).map_err(|error| error.to_string())?;
            let read = Deserializer::new().deserialize(&mut packed.as_slice());
            let one: Histogram<u64> = read.map_err(|error| format!("{error:?}"))?;
            all.add(&one).map_err(|error| error.to_string())?;
        }
        Ok(all)
    }

    /// Returns the cell's runs of the queue benchmark in which every check passed.
    pub fn valid_runs(&self) -> impl Iterator<Item = &LabRun> + Clone {
        self.made.iter().filter(|run| run.problems.is_empty())
    }

    /// Returns whether the cell's producers and consumers are fast or slow, as text: `fast→slow`.
    pub fn speeds(&self) -> String {
        format!("{}→{}", self.producer, self.consumer)
    }

    /// Returns the cell's name in one line: queue, speeds and way of waiting.
    pub fn name(&self) -> String {
        let ends = match (self.producers, self.consumers) {
            (1, 1) => String::new(),
            (producers, consumers) => format!(" {producers}→{consumers}"),
        };
        format!("{} {}{ends} {} {}", self.technique, self.isolation, self.speeds(), self.wait)
    }

    /// Returns the cell's queue in words: technique, isolation level and, unless 1 to 1, the
    /// numbers of producers and consumers.
    pub fn carrier(&self) -> String {
        let ends = match (self.producers, self.consumers) {
            (1, 1) => String::new(),
            (producers, consumers) => format!(", {producers} to {consumers}"),
        };
        format!("{}, {}{ends}", self.technique, self.isolation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Lab;

    #[test]
    fn the_latencies_of_runs_add_up() {
        let golden = Lab::from_experiment(&crate::fixture("saved/lab.json")).unwrap();
        let run = |number, problems: &[&str], latencies: &Histogram<u64>| {
            let problems = problems.iter().map(|text| (*text).to_owned()).collect();
            let mut run = LabRun { number, problems, ..golden.cells[0].made[0].clone() };
            run.pack_latencies(latencies).unwrap();
            run
        };
        let (mut one, mut far) = (histogram(), histogram());
        one.record(700).unwrap();
        far.record(700_000_000).unwrap();
        let with = |made| LabCell { made, ..golden.cells[0].clone() }.latencies();
        let failed = with(vec![run(0, &["lost"], &one), run(1, &[], &one)]);
        assert_eq!(failed.unwrap().len(), 1, "not those of the one that failed");
        let both = with(vec![run(0, &[], &far), run(1, &[], &one)]);
        assert_eq!(both.unwrap().len(), 2, "also far above the first run's values");
        assert!(with(vec![LabRun { histogram: "AAAA".into(), ..run(0, &[], &far) }]).is_err());
    }
}
