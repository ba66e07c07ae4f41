//! `--dry-run` of an experiment: its runs in their order, and what its plan shows already.

use super::launch::{expected_time, total_runs};
use super::order::order;
use super::{forecast, pairs};
use analysis::experiment::SweepRecord;
use analysis::numbers::counted;
use anyhow::Result;
use indicatif::HumanDuration;
use std::io::Write;
use std::process::ExitCode;

/// Prints the runs that an experiment would make, in their order, and how long they would take.
pub fn dry_run(record: &SweepRecord) -> Result<ExitCode> {
    let mut out = crate::output::stdout();
    if let Some(search) = &record.search {
        let runs = counted(record.repeats.into(), "run");
        writeln!(out, "a search: up to {} rates with {runs} each, for", search.max_steps)?;
        record.points.iter().try_for_each(|point| writeln!(out, "  {}", point.name))?;
    } else {
        for (number, run) in order(&record.points, record.repeats).iter().enumerate() {
            let (point, seed) = (&record.points[run.point].name, record.seed_of(run.repeat));
            writeln!(out, "{:>4}  repeat {}  seed {seed}  {point}", number + 1, run.repeat + 1)?;
        }
    }
    record.notes.iter().try_for_each(|note| writeln!(out, "· {note}"))?;
    forecast::warnings(record).iter().try_for_each(|warning| writeln!(out, "warning: {warning}"))?;
    let most = pairs::max_repeats(record);
    if most > record.repeats {
        writeln!(out, "· pairs that drop out are replaced: up to {most} repeats, until five pairs count")?;
    }
    let time = expected_time(record, &record.machine);
    let time = time.map_or_else(String::new, |(_, time)| format!(", about {}", HumanDuration(time)));
    writeln!(out, "{}{time}; nothing was measured", counted(total_runs(record) as u64, "run"))?;
    Ok(ExitCode::SUCCESS)
}
