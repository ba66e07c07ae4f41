//! What the benches `published-exchange` and `published-journal` share: how rows are
//! measured in turns, and how they are printed and written.
#![allow(dead_code, reason = "two benches and their tests share this, and each uses a part of it")]

pub mod arguments;
pub mod report;
pub mod subject;

use arguments::{Arguments, Options};
use report::{Origin, Row};
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use subject::Group;

/// Runs the benchmark's groups of figures as the command line requests. Returns the exit code.
pub fn main(bench: &'static str, groups: Vec<Group>) -> ExitCode {
    let names: Vec<&str> = groups.iter().flat_map(|group| &group.figures).map(|figure| figure.name).collect();
    match arguments::parse(std::env::args().skip(1), &names) {
        Ok(Arguments::Help) => {
            print!("{}", arguments::help(bench, &names));
            ExitCode::SUCCESS
        }
        Ok(Arguments::Run(options)) => match run(bench, groups, &options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run(bench: &'static str, mut groups: Vec<Group>, options: &Options) -> Result<(), String> {
    groups.retain(|group| group.figures.iter().any(|figure| options.wants(figure.name)));
    if let Some(file) = &options.json {
        // Before the measurement, which takes a minute.
        report::check_writable(file)?;
    }
    let origin = Origin::new(bench);
    let samples = measure(&mut groups, options.rounds);
    let mut rows = Vec::new();
    for (group, samples) in groups.into_iter().zip(samples) {
        rows.extend(
            group.figures.into_iter().zip(samples).map(|(figure, samples)| Row::new(figure, samples)),
        );
    }
    rows.retain(|row| options.wants(row.figure.name));
    report::print(&rows, &origin, options.rounds);
    options.json.as_ref().map_or(Ok(()), |file| report::write(file, &rows, &origin))
}

/// Takes `rounds` samples of each group of figures, in turns. Returns the samples of each figure of
/// each group.
pub fn measure(groups: &mut [Group], rounds: usize) -> Vec<Vec<Vec<f64>>> {
    let progress = Progress::new();
    let mut samples: Vec<Vec<Vec<f64>>> =
        groups.iter().map(|group| vec![Vec::with_capacity(rounds); group.figures.len()]).collect();
    for round in 0..rounds {
        for (group, samples) in groups.iter_mut().zip(&mut samples) {
            progress.show(round, rounds, group.figures[0].name);
            let values = group.subject.sample();
            assert_eq!(values.len(), samples.len(), "a value for each figure");
            samples.iter_mut().zip(values).for_each(|(samples, value)| samples.push(value));
        }
    }
    progress.clear();
    samples
}

/// A line on a terminal that says how far the measurement is, once it has taken two seconds.
struct Progress {
    started: Instant,
    is_terminal: bool,
}

impl Progress {
    fn new() -> Self {
        Progress { started: Instant::now(), is_terminal: std::io::stderr().is_terminal() }
    }

    fn show(&self, round: usize, rounds: usize, name: &str) {
        let elapsed = self.started.elapsed();
        if self.is_terminal && elapsed > Duration::from_secs(2) {
            let seconds = elapsed.as_secs();
            eprint!("\r\x1b[Kround {} of {rounds}, {seconds} s: {name}", round + 1);
            let _ = std::io::stderr().flush();
        }
    }

    fn clear(&self) {
        if self.is_terminal {
            eprint!("\r\x1b[K");
        }
    }
}
