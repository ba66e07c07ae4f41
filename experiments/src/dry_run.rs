//! `--dry-run` of an experiment: prints its runs in order, and the warnings that follow from its
//! plan.

use super::launch::{expected_time, total_runs};
use super::{capacity, forecast, pairs};
use analysis::experiment::{Experiment, Row, SearchLimits};
use anyhow::Result;
use indicatif::HumanDuration;
use record::numbers::counted;
use std::io::Write;
use std::process::ExitCode;

/// Prints the runs that an experiment would make, in their order, and how long they would take.
pub fn dry_run(record: &Experiment) -> Result<ExitCode> {
    let mut out = ::record::screen::stdout();
    if let Ok(limits) = SearchLimits::from_experiment(record) {
        let runs = counted(record.repeats.into(), "run");
        writeln!(out, "a search: up to {} rates with {runs} each, for", limits.max_steps)?;
        record.settings().iter().try_for_each(|setting| writeln!(out, "  {}", setting.name))?;
    } else {
        for (number, Row { setting, repeat, seed, .. }) in record.rows.iter().enumerate() {
            writeln!(out, "{:>4}  repeat {}  seed {seed}  {}", number + 1, repeat + 1, setting.name)?;
        }
    }
    record.notes.iter().try_for_each(|note| writeln!(out, "· {note}"))?;
    forecast::warnings(record).iter().try_for_each(|warning| writeln!(out, "warning: {warning}"))?;
    let most = pairs::max_repeats(record);
    if let Some(limit) = record.time_limit_s {
        let asked = record.asked_repeats;
        writeln!(
            out,
            "· up to {asked} repeats, and those that replace lost pairs, as far as {limit} s allow"
        )?;
    } else if most > record.repeats {
        writeln!(out, "· pairs that drop out are replaced: up to {most} repeats, until five pairs count")?;
    }
    capacity::announcement(record).iter().try_for_each(|message| writeln!(out, "· {message}"))?;
    let time = expected_time(record, &record.machine);
    let time = time.map_or_else(String::new, |(_, time)| format!(", about {}", HumanDuration(time)));
    writeln!(out, "{}{time}; nothing was measured", counted(total_runs(record) as u64, "run"))?;
    Ok(ExitCode::SUCCESS)
}
