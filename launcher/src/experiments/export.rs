//! Tables and figures of a sweep for other programs and documents, beside `sweep.json`.

use analysis::document::write_whole;
use analysis::experiment::SweepRecord;
use analysis::report::grid::Grid;
use analysis::stats::Percentile;
use analysis::summary::Measure;
use anyhow::Result;
use std::path::Path;

/// Writes each table as `NAME.csv`, and all of them as `<document>.md` with the notes on top.
///
/// # Errors
/// A folder that cannot be written.
pub fn save_grids(
    folder: &Path,
    document: &str,
    heading: &str,
    notes: &[String],
    grids: &[Grid],
) -> Result<()> {
    let mut markdown = format!("# {heading}\n\n");
    for note in notes {
        markdown.push_str(&format!("- {note}\n"));
    }
    for grid in grids {
        markdown.push('\n');
        markdown.push_str(&grid.markdown());
        write(folder, &format!("{}.csv", grid.name), &grid.csv()?)?;
    }
    write(folder, &format!("{document}.md"), markdown.as_bytes())
}

/// Writes `runs.csv`: a line for each run with every figure, times in nanoseconds, empty where there is none.
///
/// # Errors
/// A folder that cannot be written.
pub fn save_runs(record: &SweepRecord, folder: &Path) -> Result<()> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut head: Vec<String> = record.axes.iter().map(|axis| axis.axis.name().to_owned()).collect();
    head.extend(
        [
            "point",
            "repeat",
            "seed",
            "folder",
            "complete",
            "valid",
            "fit_for_latency",
            "offered_per_s",
            "achieved_per_s",
            "utilisation",
            "returned",
            "cpu_ns",
            "startup_ns",
            "pss_bytes",
            "page_faults",
            "context_switches",
            "floor_ns",
            "floor_after_ns",
            "clock_step_ns",
            "work_done_ns",
            "taken_out",
        ]
        .map(str::to_owned),
    );
    for measure in Measure::ALL.into_iter().chain([Measure::StallFree]) {
        for figure in Percentile::ALL.map(Percentile::name).into_iter().chain(["mean", "max"]) {
            head.push(format!("{}_{}_ns", measure.name(), figure.replace('.', "")));
        }
    }
    writer.write_record(&head)?;
    for point in &record.points {
        for run in &point.runs {
            let outline = &run.outline;
            let or_empty = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
            let mut line: Vec<String> = record
                .axes
                .iter()
                .map(|axis| point.values.get(&axis.axis).cloned().unwrap_or_default())
                .collect();
            line.extend([
                point.name.clone(),
                run.repeat.to_string(),
                run.seed.to_string(),
                run.folder.clone(),
                outline.complete.to_string(),
                outline.valid.to_string(),
                outline.fit_for_latency.to_string(),
                or_empty(outline.offered_per_s),
                or_empty(outline.achieved_per_s),
                or_empty(outline.utilisation),
                outline.returned.to_string(),
                outline.cpu_ns.to_string(),
                outline.startup_ns.to_string(),
                outline.pss_bytes.map_or_else(String::new, |bytes| bytes.to_string()),
                outline.page_faults.to_string(),
                outline.context_switches.to_string(),
                or_empty(outline.floor_ns),
                or_empty(outline.floor_after_ns),
                outline.clock_step_ns.to_string(),
                or_empty(outline.work_done_ns),
                or_empty(outline.taken_out()),
            ]);
            for measure in Measure::ALL.into_iter().chain([Measure::StallFree]) {
                let figures = outline.measure(measure);
                let percentiles =
                    Percentile::ALL.map(|percentile| percentile.of(&figures).map(|ns| ns as f64));
                let others = [figures.mean_ns, figures.max_ns.map(|ns| ns as f64)];
                line.extend(percentiles.into_iter().chain(others).map(or_empty));
            }
            writer.write_record(&line)?;
        }
    }
    let bytes = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
    write(folder, "runs.csv", &bytes)
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = folder.join(name);
    Ok(write_whole(&path, bytes)?)
}
