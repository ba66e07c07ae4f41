//! Figures and their output: a median with its quartiles, next to the goal.

use benches::quantile;
use comfy_table::{Table, presets};
use serde_json::json;
use system::clock::{Clock, Monotonic};
use techniques::Technique;

/// Returns the nanoseconds that each of the `count` operations of `work` takes.
#[inline(always)]
pub fn ns_each(count: u64, work: impl FnOnce()) -> f64 {
    let start = Monotonic.now();
    work();
    (Monotonic.now() - start) as f64 / count as f64
}

/// A function that does a number of operations with a technique, and returns the nanoseconds of
/// each.
pub type Subject = Box<dyn FnMut(u64) -> f64>;

/// Measures techniques alternated (A B A B …). Returns the samples of each.
pub fn alternate(
    techniques: impl Iterator<Item = Technique>,
    subject: impl Fn(Technique) -> Subject,
    (samples, count): (usize, u64),
) -> Vec<(Technique, Vec<f64>)> {
    let mut all: Vec<_> = techniques.map(|technique| (technique, subject(technique))).collect();
    let costs = benches::alternate(samples, &mut all, |(_, subject)| subject(count));
    all.into_iter().map(|(technique, _)| technique).zip(costs).collect()
}

/// The goal of a benchmark's figure.
#[derive(Clone, Copy)]
pub enum Goal {
    None,
    AtMost(f64),
    AtLeast(f64),
}

/// A row of the benchmark's report: a figure with its quartiles and its goal.
pub struct FigureRow {
    what: String,
    unit: &'static str,
    quartiles: [f64; 3],
    samples: usize,
    dropped: usize,
    goal: Goal,
}

impl FigureRow {
    pub fn new(what: impl Into<String>, unit: &'static str, mut samples: Vec<f64>, goal: Goal) -> Self {
        let quartiles = [0.25, 0.5, 0.75].map(|share| quantile(&mut samples, share));
        Self { what: what.into(), unit, quartiles, samples: samples.len(), dropped: 0, goal }
    }

    /// Sets the number of the figure's samples that were dropped.
    pub fn dropped(mut self, dropped: usize) -> Self {
        self.dropped = dropped;
        self
    }

    fn goal(&self) -> String {
        let verdict = |met: bool| match met {
            // All samples were dropped.
            _ if self.samples == 0 => "not measured",
            true => "met",
            false => "missed",
        };
        match self.goal {
            Goal::None => String::new(),
            Goal::AtMost(limit) => format!("≤ {limit} {}", verdict(self.quartiles[1] <= limit)),
            Goal::AtLeast(limit) => format!("≥ {limit} {}", verdict(self.quartiles[1] >= limit)),
        }
    }
}

/// The report of the hand-off benchmark: its machine, and tables of figures.
pub struct BenchReport {
    machine: String,
    sections: Vec<(String, Vec<FigureRow>)>,
}

impl BenchReport {
    pub fn new(machine: String) -> Self {
        Self { machine, sections: Vec::new() }
    }

    /// Adds a table of figures to the report.
    pub fn add(&mut self, title: &str, rows: Vec<FigureRow>) {
        self.sections.push((title.to_owned(), rows));
    }

    /// Prints the report as text.
    pub fn print(&self) {
        println!("{}", self.machine);
        for (title, rows) in &self.sections {
            let mut table = Table::new();
            table.load_style(presets::UTF8_BORDERS_ONLY);
            table.set_header(["", "median", "quartiles", "unit", "samples", "goal"]);
            for row in rows {
                let figure =
                    |value: f64| if value.is_nan() { "–".to_owned() } else { format!("{value:.2}") };
                let [low, median, high] = row.quartiles.map(figure);
                let samples = match row.dropped {
                    0 => row.samples.to_string(),
                    dropped => format!("{} (−{dropped})", row.samples),
                };
                table.add_row([
                    row.what.clone(),
                    median,
                    format!("{low} – {high}"),
                    row.unit.to_owned(),
                    samples,
                    row.goal(),
                ]);
            }
            println!("\n{title}\n{table}");
        }
    }

    /// Prints the report as JSON.
    pub fn print_json(&self) {
        let rows = |rows: &[FigureRow]| -> Vec<_> {
            rows.iter()
                .map(|row| {
                    let [low, median, high] = row.quartiles;
                    json!({
                        "what": row.what, "unit": row.unit, "median": median, "quartile_low": low,
                        "quartile_high": high, "samples": row.samples, "dropped": row.dropped, "goal": row.goal(),
                    })
                })
                .collect()
        };
        let sections: Vec<_> =
            self.sections.iter().map(|(title, r)| json!({"title": title, "rows": rows(r)})).collect();
        println!(
            "{}",
            json!({"schema": "bulkhead-handoffs-1", "machine": self.machine, "sections": sections})
        );
    }
}
