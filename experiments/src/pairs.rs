//! Replaces the pairs of runs that drop out of a comparison or a bill, because a run is invalid or
//! its cores moved.
//!
//! Lost pairs are replaced by half as many repeats as were asked for, at most. A comparison that
//! has no answer then goes on until five pairs count, or until its budget is spent: three times the
//! repeats that were asked for. What repeats cannot mend ends it at once. An experiment with a time
//! limit adds as many as fit into it. No result decides how many are added.

use super::measure::MeasureEnd;
use analysis::experiment::Experiment;
use analysis::stats::{ComparisonLine, MIN_PAIRS};
use anyhow::Result;
use std::time::{Duration, Instant};

/// The budget of a comparison without an answer, as a multiple of the repeats asked for.
const BUDGET: u32 = 3;
/// The end of the note on added repeats.
const ADDED: &str = " repeats were added, because pairs dropped out";

/// Returns the number of repeats that an experiment may reach when repeats replace pairs of runs
/// that dropped out.
pub fn max_repeats(record: &Experiment) -> u32 {
    if record.kind.entry().has_pairs { record.asked_repeats.saturating_mul(BUDGET) } else { record.repeats }
}

/// Makes an experiment's missing runs with `measure`, then adds repeats for A/B pairs of runs that
/// dropped out of its comparison. Pairs are counted by the comparisons at its endpoint; without
/// any, no pair is lost.
pub fn measure_pairs(
    record: &mut Experiment,
    mut measure: impl FnMut(&mut Experiment) -> Result<MeasureEnd>,
    say: impl Fn(&str),
) -> Result<MeasureEnd> {
    let (asked, begun, before) = (record.asked_repeats, Instant::now(), record.made().count());
    loop {
        let ended = measure(record)?;
        let is_complete = ended == MeasureEnd::Complete;
        let lines = if is_complete { (record.kind.entry().headlines)(record) } else { Vec::new() };
        let tallies: Vec<PairTally> = lines.iter().map(PairTally::from_line).collect();
        let made = record.made().count().saturating_sub(before);
        let fitting = repeats_that_fit(record, begun.elapsed(), made);
        let wanted = if is_complete { repeats_to_add(asked, record.repeats, &tallies) } else { 0 };
        let more = wanted.min(fitting);
        if more == 0 {
            record.notes.retain(|note| !note.ends_with(ADDED));
            let added = record.repeats.saturating_sub(asked);
            record.notes.extend((added > 0).then(|| format!("{added}{ADDED}")));
            return Ok(ended);
        }
        let fewest = tallies.iter().map(|tally| tally.counted).min().unwrap_or(0);
        let most = match record.time_limit_s {
            Some(limit) => format!("{limit} s"),
            None => asked.saturating_mul(BUDGET).to_string(),
        };
        say(&format!(
            "{fewest} of {asked} pairs count: {more} to be added to the repeats, at most {most} in all"
        ));
        record.add_repeats(more);
    }
}

/// Returns how many repeats fit into the rest of an experiment's time, at the pace of the `made`
/// runs.
fn repeats_that_fit(record: &Experiment, elapsed: Duration, made: usize) -> u32 {
    let Some(limit) = record.time_limit_s.map(Duration::from_secs) else { return u32::MAX };
    let settings = record.settings().len();
    let repeat = elapsed.mul_f64(settings as f64 / made.max(1) as f64).max(Duration::from_millis(1));
    limit.saturating_sub(elapsed).div_duration_f64(repeat) as u32
}

/// How many pairs of a comparison count so far, and whether more repeats would help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PairTally {
    counted: u32,
    is_answered: bool,
    can_mend: bool,
}

impl PairTally {
    fn from_line(line: &ComparisonLine) -> Self {
        Self {
            counted: u32::try_from(line.pairs).unwrap_or(u32::MAX),
            is_answered: line.evidence().difference.is_some(),
            can_mend: line.can_repeats_mend(),
        }
    }
}

/// Returns the number of repeats to add to `made` ones.
fn repeats_to_add(asked: u32, made: u32, tallies: &[PairTally]) -> u32 {
    if made < asked {
        return asked - made;
    }
    let open = || tallies.iter().filter(|tally| tally.can_mend);
    let lost = open().map(|tally| asked.saturating_sub(tally.counted)).max().unwrap_or(0);
    let replaced = lost.min(asked.saturating_add(asked.div_ceil(2)).saturating_sub(made));
    if replaced > 0 {
        return replaced;
    }
    // Without a verdict by plan, no repeat is added for one.
    let few = asked < MIN_PAIRS as u32;
    let unanswered = open().filter(|tally| !tally.is_answered && !few);
    let missing = unanswered.map(|tally| (MIN_PAIRS as u32).saturating_sub(tally.counted).max(1)).max();
    missing.unwrap_or(0).min(asked.saturating_mul(BUDGET).saturating_sub(made))
}

#[cfg(test)]
mod tests {
    use super::super::flags::SweepRequest;
    use super::super::record::new_record;
    use super::*;
    use analysis::experiment::{Axis, Figures, Kind, Setting};
    use analysis::stats::{RunOutline, fixtures};
    use planner::config::Common;
    use std::cell::RefCell;

    /// A record of two settings. Each run of the second one is changed by `spoil` once measured.
    fn measured(kind: Kind, repeats: u32, spoil: fn(u32, &mut RunOutline)) -> (Experiment, Vec<String>) {
        let side = |name: &str, level: &str| Setting {
            name: name.into(),
            values: [(Axis::Isolation, level.to_owned())].into(),
            settings: [("isolation", level), ("technique", "spsc-mux")]
                .map(|(key, text)| (key.to_owned(), text.to_owned()))
                .into(),
            ..Setting::default()
        };
        let machine = planner::host::fake::plain(2).machine();
        let record = new_record(kind, &SweepRequest::default(), 1, machine, &Common::default());
        let mut record = Experiment { repeats, asked_repeats: repeats, ..record };
        record.plan_rows(&[side("A: a", "thread"), side("B: b", "process")]);
        let message = RefCell::new(Vec::new());
        let measure = |record: &mut Experiment| {
            for row in record.rows.iter_mut().filter(|row| !row.is_made()) {
                let mut outline = fixtures::run(row.repeat as usize, 1_000.0);
                outline.run += &row.setting.name;
                if row.setting.name == "B: b" {
                    spoil(row.repeat, &mut outline);
                }
                row.figures = Figures::from_outline(&outline);
            }
            Ok(MeasureEnd::Complete)
        };
        let say = |line: &str| message.borrow_mut().push(line.to_owned());
        measure_pairs(&mut record, measure, say).unwrap();
        (record, message.into_inner())
    }

    fn headline(record: &Experiment) -> ComparisonLine {
        (record.kind.entry().headlines)(record).remove(0)
    }

    fn pairs(record: &Experiment) -> usize {
        headline(record).pairs
    }

    #[test]
    fn lost_pairs_are_replaced_in_comparison_and_bill() {
        type Spoil = fn(u32, &mut RunOutline);
        let cases: [(Spoil, u32, usize); 4] = [
            (|_, _| {}, 6, 6),
            (|repeat, run| run.valid = repeat >= 2, 8, 6),
            // Beyond half as many repeats only until five pairs count.
            (|repeat, run| run.valid = repeat >= 5, 10, 5),
            // More repeats mend nothing: no run is valid.
            (|_, run| run.valid = false, 6, 0),
        ];
        for kind in [Kind::Compare, Kind::Bill] {
            for (spoil, made, counted) in cases {
                let (record, message) = measured(kind, 6, spoil);
                assert_eq!((record.repeats, pairs(&record)), (made, counted), "{kind}");
                assert_eq!(record.notes.iter().any(|note| note.contains("were added")), made > 6);
                assert_eq!(message.is_empty(), made == 6, "every addition is announced: {message:?}");
            }
        }
    }

    /// A regression: `bill --repeats 5` ended with "too few repeats: 3 of at least 5 pairs".
    #[test]
    fn bill_ends_with_answer_where_cores_move() {
        let (record, message) = measured(Kind::Bill, 5, |repeat, run| {
            run.core_rtt_after_ns = if repeat % 3 == 0 { Some(490.0) } else { run.core_rtt_ns };
        });
        assert_eq!((record.repeats, pairs(&record)), (8, 5));
        assert!(headline(&record).evidence().difference.is_some());
        assert_eq!(
            message,
            [
                "3 of 5 pairs count: 2 to be added to the repeats, at most 15 in all",
                "4 of 5 pairs count: 1 to be added to the repeats, at most 15 in all"
            ]
        );
    }

    #[test]
    fn repeats_end_with_budget_or_with_binding_reason() {
        let (record, _) = measured(Kind::Compare, 6, |_, run| run.core_rtt_after_ns = Some(490.0));
        assert_eq!((record.repeats, pairs(&record)), (9, 0), "all pairs decide");
        // A regression: 60 runs, and then a reason that no repeat mends.
        let (record, message) = measured(Kind::Compare, 6, |repeat, run| {
            (run.achieved_per_s, run.valid) = (Some(100.0), repeat > 4);
        });
        assert_eq!((record.repeats, message.len()), (6, 0));
        let (record, _) = measured(Kind::Compare, 3, |repeat, run| run.valid = repeat > 1);
        assert_eq!(record.repeats, 5, "half as many, and no verdict was asked for");
    }

    #[test]
    fn repeats_are_added_only_within_the_time_limit() {
        let (record, _) = measured(Kind::Compare, 6, |_, _| {});
        let limited = Experiment { time_limit_s: Some(300), ..record };
        let fit = |elapsed, made| repeats_that_fit(&limited, Duration::from_secs(elapsed), made);
        assert_eq!([fit(240, 12), fit(299, 12), fit(400, 12)], [1, 0, 0], "two runs in 40 s");
        let unlimited = Experiment { time_limit_s: None, ..limited.clone() };
        assert_eq!(repeats_that_fit(&unlimited, Duration::from_secs(9_000), 1), u32::MAX);
    }
}
