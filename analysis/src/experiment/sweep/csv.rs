//! `runs.csv`: a line for each run with every figure, times in nanoseconds.

use super::{RunEntry, SweepPoint, SweepRecord};
use crate::stats::Percentile;
use crate::summary::Measure;

type Column = (&'static str, fn(&SweepPoint, &RunEntry) -> String);

const COLUMNS: [Column; 21] = [
    ("point", |point, _| point.name.clone()),
    ("repeat", |_, run| run.repeat.to_string()),
    ("seed", |_, run| run.seed.to_string()),
    ("folder", |_, run| run.folder.clone()),
    ("complete", |_, run| run.outline.complete.to_string()),
    ("valid", |_, run| run.outline.valid.to_string()),
    ("fit_for_latency", |_, run| run.outline.fit_for_latency.to_string()),
    ("offered_per_s", |_, run| known(run.outline.offered_per_s)),
    ("achieved_per_s", |_, run| known(run.outline.achieved_per_s)),
    ("utilisation", |_, run| known(run.outline.utilization)),
    ("returned", |_, run| run.outline.returned.to_string()),
    ("cpu_ns", |_, run| run.outline.cpu_ns.to_string()),
    ("startup_ns", |_, run| run.outline.startup_ns.to_string()),
    ("pss_bytes", |_, run| known(run.outline.pss_bytes)),
    ("page_faults", |_, run| run.outline.page_faults.to_string()),
    ("context_switches", |_, run| run.outline.context_switches.to_string()),
    ("floor_ns", |_, run| known(run.outline.core_rtt_ns)),
    ("floor_after_ns", |_, run| known(run.outline.core_rtt_after_ns)),
    ("clock_step_ns", |_, run| run.outline.clock_step_ns.to_string()),
    ("work_done_ns", |_, run| known(run.outline.work_done_ns)),
    ("taken_out", |_, run| known(run.outline.excluded_share())),
];

fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Returns the contents of `runs.csv`, a line for each run of a sweep.
pub fn runs_csv(record: &SweepRecord) -> Result<Vec<u8>, csv::Error> {
    let measures = || Measure::ALL.into_iter().chain([Measure::StallFree]);
    let figures = || Percentile::ALL.map(Percentile::name).into_iter().chain(["mean", "max"]);
    let mut writer = csv::Writer::from_writer(Vec::new());
    let axes = record.axes.iter().map(|axis| axis.axis.to_string());
    let columns = COLUMNS.map(|(name, _)| name.to_owned());
    let measured = measures().flat_map(|measure| {
        figures().map(move |figure| format!("{}_{}_ns", measure.name(), figure.replace('.', "")))
    });
    writer.write_record(axes.chain(columns).chain(measured))?;
    for (point, run) in record.points.iter().flat_map(|point| point.runs.iter().map(move |run| (point, run)))
    {
        let axes = record.axes.iter().map(|axis| point.values.get(&axis.axis).cloned().unwrap_or_default());
        let columns = COLUMNS.iter().map(|(_, cell)| cell(point, run));
        let measured = measures().flat_map(|measure| {
            let figures = run.outline.measure(measure);
            let percentiles = Percentile::ALL.map(|percentile| known(percentile.get(&figures)));
            percentiles.into_iter().chain([known(figures.mean_ns), known(figures.max_ns)])
        });
        writer.write_record(axes.chain(columns).chain(measured))?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}
