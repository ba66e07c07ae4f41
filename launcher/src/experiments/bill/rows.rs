//! The rows of the bill.

use crate::config::{Settings, UsageError};
use crate::experiments::axes::Axis;
use analysis::experiment::{BillRow, Reference, SweepPoint, SweepRecord};
use analysis::stats::{Outline, Percentile, judge, median, pair, values};
use analysis::summary::Measure;
use protocol::plan::{Isolation, Placement, Stamps, Technique};

/// Makes the bill of a sweep over technique, isolation or both.
///
/// # Errors
/// A sweep over something else.
pub(super) fn rows(record: &SweepRecord) -> Result<Vec<BillRow>, UsageError> {
    let other = record.axes.iter().find(|axis| !is_of_a_bill(axis.axis));
    if let Some(other) = other {
        return Err(UsageError(format!(
            "a sweep over {} is no bill: a bill is of techniques and isolation levels at one load",
            other.axis
        )));
    }
    if record.search.is_some() || record.kind == "compare" {
        return Err(UsageError(format!("a {} is no bill: measure one with launcher bill", record.kind)));
    }
    let mut measured: Vec<Measured> = record.points.iter().filter_map(Measured::of).collect();
    let rank = |measured: &Measured| {
        let level = Isolation::ALL.iter().position(|other| *other == measured.isolation);
        let technique = Technique::all().iter().position(|other| *other == measured.technique);
        (level, technique, measured.variant.clone())
    };
    measured.sort_by_key(rank);
    Ok(measured.iter().map(|of| row(of, &measured)).collect())
}

/// What a bill may be of: what is isolated from what, how, and what observing it costs.
pub(super) const fn is_of_a_bill(axis: Axis) -> bool {
    matches!(axis, Axis::Technique | Axis::Isolation | Axis::Process | Axis::Stamps)
}

/// The runs of one row.
struct Measured {
    isolation: Isolation,
    technique: Technique,
    variant: String,
    runs: Vec<Outline>,
}

impl Measured {
    fn of(point: &SweepPoint) -> Option<Self> {
        // The planner made every setting concrete, so each point says both.
        let settings = Settings::from_texts(&point.settings).ok()?;
        let process = settings.process.filter(|process| *process != Placement::Engine);
        let stamps = settings.stamps.filter(|stamps| *stamps != Stamps::All);
        let process = process.map(|process| format!("process {process}"));
        let stamps = stamps.map(|stamps| format!("stamps {stamps}"));
        Some(Self {
            isolation: settings.isolation?,
            technique: settings.technique?,
            variant: process.into_iter().chain(stamps).collect::<Vec<_>>().join(", "),
            runs: point.outlines(),
        })
    }
}

fn row(of: &Measured, all: &[Measured]) -> BillRow {
    let Measured { isolation, technique, variant, runs } = of;
    let (isolation, technique) = (*isolation, *technique);
    let sound: Vec<&Outline> = runs.iter().filter(|run| run.is_sound()).collect();
    let middle = |of: &dyn Fn(&Outline) -> Option<f64>| {
        median(&sound.iter().map(|run| of(run)).collect::<Option<Vec<_>>>()?)
    };
    let at = |percentile| values(&sound, Measure::RtVenue, percentile).and_then(|values| median(&values));
    let plain = |wanted: &Reference| {
        all.iter().find(|other| {
            other.variant.is_empty()
                && (other.isolation, other.technique) == (wanted.isolation, wanted.technique)
        })
    };
    let is_measured = |wanted: &Reference| plain(wanted).is_some();
    let reference = if variant.is_empty() {
        reference(isolation, technique, is_measured)
    } else {
        // What sets it apart is what it is to show: against the same without it.
        Some(Reference { isolation, technique }).filter(is_measured)
    };
    let pairing = reference.as_ref().and_then(plain).map(|other| pair(&other.runs, runs));
    BillRow {
        isolation,
        technique,
        variant: variant.clone(),
        runs: sound.len(),
        p50_ns: at(Percentile::P50),
        p99_ns: at(Percentile::P99),
        p999_ns: at(Percentile::P999),
        reference,
        differences: pairing.as_ref().map_or_else(Vec::new, |pairing| {
            Percentile::ALL.map(|percentile| judge(pairing, Measure::RtVenue, percentile)).to_vec()
        }),
        caveats: pairing.map_or_else(Vec::new, |pairing| pairing.caveats),
        cpu_s_per_million: middle(&Outline::cpu_s_per_million),
        startup_ns: middle(&|run| Some(run.startup_ns as f64)),
        // A short run may end before its memory is sampled.
        pss_bytes: median(&sound.iter().filter_map(|run| Some(run.pss_bytes? as f64)).collect::<Vec<_>>()),
        page_faults: middle(&|run| Some(run.page_faults as f64)),
        context_switches: middle(&|run| Some(run.context_switches as f64)),
        contains: None,
    }
}

/// The crate on the heap for its port; else the same technique under threads; none for what is a reference itself.
fn reference(
    isolation: Isolation,
    technique: Technique,
    is_measured: impl Fn(&Reference) -> bool,
) -> Option<Reference> {
    let candidates = [technique.reference(), Some(technique)].into_iter().flatten();
    let mut references = candidates.map(|technique| Reference { isolation: Isolation::Thread, technique });
    references.find(is_measured).filter(|found| (found.isolation, found.technique) != (isolation, technique))
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::stats::fixtures;

    #[test]
    fn what_sets_a_row_apart_is_compared_with_the_same_without_it() {
        let measured = |variant: &str, ns: f64| Measured {
            isolation: Isolation::Process,
            technique: Technique::default(),
            variant: variant.into(),
            runs: (0..8).map(|repeat| fixtures::run(repeat, ns)).collect(),
        };
        let all = [measured("", 300.0), measured("stamps ends", 250.0)];
        let (plain, ends) = (row(&all[0], &all), row(&all[1], &all));
        assert_eq!(plain.reference, None, "threads were not measured");
        let own = Reference { isolation: Isolation::Process, technique: Technique::default() };
        assert_eq!((ends.reference, ends.variant.as_str()), (Some(own), "stamps ends"));
        let ratio = ends.differences[0].difference.unwrap().ratio.value;
        assert!((ratio - 250.0 / 300.0).abs() < 1e-9, "{ratio}");
    }

    #[test]
    fn the_reference_is_the_crate_or_the_technique_under_threads() {
        let own = Technique::default();
        let all = |_: &Reference| true;
        let found = reference(Isolation::Process, own, all);
        assert_eq!(found.map(|found| found.isolation), Some(Isolation::Thread));
        assert_eq!(reference(Isolation::Process, own, |_| false), None, "threads were not measured");
        let ports: Vec<_> =
            Technique::all().into_iter().filter_map(|port| Some((port, port.reference()?))).collect();
        assert_eq!(ports.len(), 3);
        for (port, heap) in ports {
            assert_eq!(reference(Isolation::Thread, port, all).map(|found| found.technique), Some(heap));
            assert_eq!(reference(Isolation::Thread, heap, all), None);
            let only_port = |wanted: &Reference| wanted.technique == port;
            assert_eq!(
                reference(Isolation::Process, port, only_port).map(|found| found.technique),
                Some(port)
            );
        }
    }
}
