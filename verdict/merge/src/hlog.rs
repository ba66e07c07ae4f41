//! `histograms.hlog`: the histograms of a run in HdrHistogram's interval-log format, one tagged
//! line for each measure. HdrHistogram's tools and libraries (Python, Java, JavaScript) can read,
//! plot and add them.
//!
//! Values are nanoseconds. Each line covers the whole run; its tag is the measure's name in
//! `summary.json`. Lines with other tags are ignored. Format and version, in the first line, are
//! HdrHistogram's.

use crate::MergedRun;
use crate::figures::to_ns;
use crate::figures::{Figures, Measure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, IntervalLogWriterError, LogEntry, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};
use record::run::RunRecord;
use record::run::ns_per_tick;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;
use system::folder::read_regular;

/// Name of the histogram file in the folder of a run.
pub const HLOG_FILE: &str = "histograms.hlog";

const MAX_BYTES: u64 = 1 << 28;

/// Reads the latency histograms of a run from its folder, in file order.
pub fn read(folder: &Path) -> Result<Vec<(Measure, Histogram<u64>)>, String> {
    let path = folder.join(HLOG_FILE);
    let bytes = read_regular(&path, MAX_BYTES).map_err(|source| format!("{}: {source}", path.display()))?;
    parse(&path.display().to_string(), &bytes)
}

/// Parses latency histograms from the bytes of their file; `file` names it in errors.
pub fn parse(file: &str, log: &[u8]) -> Result<Vec<(Measure, Histogram<u64>)>, String> {
    let damaged = |why: String| {
        format!("{file}: {why}: cut short or damaged; launcher report FOLDER makes it again from the logs")
    };
    let mut histograms = Vec::new();
    let mut deserializer = Deserializer::new();
    for (number, entry) in IntervalLogIterator::new(log).enumerate() {
        let at = |why: &dyn std::fmt::Debug| damaged(format!("entry {}: {why:?}", number + 1));
        let LogEntry::Interval(line) = entry.map_err(|error| at(&error))? else { continue };
        let measure_of = |tag: &Tag<'_>| Measure::every().find(|measure| measure.name() == tag.as_str());
        let Some(measure) = line.tag().and_then(|tag| measure_of(&tag)) else { continue };
        let packed = STANDARD.decode(line.encoded_histogram()).map_err(|error| at(&error))?;
        let histogram = deserializer.deserialize(&mut packed.as_slice()).map_err(|error| at(&error))?;
        histograms.push((measure, histogram));
    }
    if histograms.is_empty() && !log.starts_with(b"#") {
        return Err(damaged("no histogram in it".into()));
    }
    Ok(histograms)
}

/// Writes the latency histograms of a run in HdrHistogram's log format. Measures without samples
/// are left out.
pub fn write(
    record: &RunRecord,
    merged: &MergedRun,
    figures: &Figures,
    mut out: impl Write,
) -> io::Result<()> {
    let ticks_ns = |ticks: u64| Duration::from_nanos(to_ns(ticks, ns_per_tick(record)));
    let span = &merged.span;
    let (start, length) = match span.last_received.checked_sub(span.first_sent) {
        Some(length) => {
            (ticks_ns(span.first_sent.saturating_sub(record.clock.start_ticks)), ticks_ns(length))
        }
        None => Default::default(),
    };
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment(&format!("bulkhead {}, run {}, nanoseconds", record.version, record.plan.run));
    if let Ok(started) = humantime::parse_rfc3339(&record.started) {
        builder.with_start_time(started).with_base_time(started);
    }
    let mut log = builder.begin_log_with(&mut out, &mut serializer)?;
    for measure in Measure::every() {
        let histogram = figures.series(measure).histogram();
        if !histogram.is_empty() {
            log.write_histogram(histogram, start, length, Tag::new(measure.name())).map_err(|error| {
                match error {
                    IntervalLogWriterError::IoError(error) => error,
                    other => io::Error::other(format!("{}: {other:?}", measure.name())),
                }
            })?;
        }
    }
    Ok(())
}
