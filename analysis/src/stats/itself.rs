//! Runs of one setting compared with each other, many times: how often is a difference claimed where there is none, and how wide are
//! the intervals?
//!
//! A pair is two runs that followed each other, as `compare` alternates A and B. Which pairs are taken, and which of the two is A, is
//! drawn; one seed gives one series of comparisons. The runs are made once: comparisons of one pool share runs, so what they claim
//! is not independent of each other.

use super::draws::Draws;
use super::interval::RESOLUTION;
use super::outline::{Outline, Percentile};
use super::placement::moved;
use super::verdict::{Verdict, judge, pair};
use crate::summary::Measure;
use serde::Serialize;

/// What an interval should not reach beyond, as a share: wider ones settle nothing.
pub const WANTED: f64 = 0.15;

/// What is compared.
const FIGURES: [(Measure, Percentile); 6] = [
    (Measure::RtVenue, Percentile::P50),
    (Measure::StallFree, Percentile::P50),
    (Measure::RtVenue, Percentile::P99),
    (Measure::StallFree, Percentile::P99),
    (Measure::RtVenue, Percentile::P999),
    (Measure::StallFree, Percentile::P999),
];

/// Many comparisons of a setting with itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WithItself {
    /// How many.
    pub comparisons: usize,
    /// Pairs in each.
    pub pairs: usize,
    /// The seed of the drawing.
    pub seed: u64,
    /// Sound runs that were drawn from.
    pub runs: usize,
    /// Runs that were left out: not complete, not valid, or the floor changed during them.
    pub left_out: usize,
    /// What came of it, figure by figure.
    pub figures: Vec<WithItselfFigure>,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WithItselfFigure {
    /// The measure's name.
    pub measure: String,
    /// The percentile.
    pub percentile: Percentile,
    /// The share of the orders that is taken out, the median over the runs; null: nothing is.
    pub taken_out: Option<f64>,
    /// Comparisons with a verdict; the others could not be made.
    pub judged: usize,
    /// Of those, how many claim a difference: 5 % are expected.
    pub claimed: usize,
    /// Of those, in how many no end of the interval is further from 1 than [`WANTED`].
    pub narrow: usize,
    /// How far the further end of the interval is from 1, as a share: the median over the comparisons.
    pub reach: Option<f64>,
    /// What 95 % of the comparisons do not exceed.
    pub reach_p95: Option<f64>,
    /// Why the others could not be made; the first reason.
    pub why_not: Option<String>,
}

/// Compares the runs of one setting, in the order in which they were made, with each other. `Err`: too few of them, in words.
///
/// # Errors
/// See above.
pub fn with_itself(
    runs: &[Outline],
    comparisons: usize,
    pairs: usize,
    seed: u64,
) -> Result<WithItself, String> {
    let sound: Vec<&Outline> = runs.iter().filter(|run| run.is_sound() && !moved(run)).collect();
    let couples: Vec<[&Outline; 2]> = sound.as_chunks::<2>().0.to_vec();
    if pairs == 0 || couples.len() < pairs {
        return Err(format!(
            "{} sound runs make {} pairs of neighbours, and {pairs} are to be drawn: measure more, or ask for fewer with --pairs",
            sound.len(),
            couples.len()
        ));
    }
    let mut draws = Draws::new(seed);
    let mut reaches: Vec<Vec<f64>> = vec![Vec::new(); FIGURES.len()];
    let mut figures = FIGURES.map(|(measure, percentile)| WithItselfFigure {
        measure: measure.name().into(),
        percentile,
        taken_out: None,
        judged: 0,
        claimed: 0,
        narrow: 0,
        reach: None,
        reach_p95: None,
        why_not: None,
    });
    for _ in 0..comparisons {
        let mut left = couples.clone();
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for pair in 0..pairs {
            let couple = left.swap_remove(draws.below(left.len()));
            let first = draws.below(2);
            // Two repeats have two schedules: here they are a pair all the same.
            let side = |run: &Outline| Outline { schedule_hash: pair.to_string(), ..run.clone() };
            a.push(side(couple[first]));
            b.push(side(couple[1 - first]));
        }
        let pairing = pair(&a, &b);
        for ((figure, reaches), (measure, percentile)) in figures.iter_mut().zip(&mut reaches).zip(FIGURES) {
            let line = judge(&pairing, measure, percentile);
            let Some(found) = line.difference.filter(|_| line.verdict != Verdict::NotComparable) else {
                figure.why_not = figure.why_not.take().or_else(|| line.why.first().cloned());
                continue;
            };
            let reach = (1.0 - found.ratio.low).max(found.ratio.high - 1.0);
            figure.judged += 1;
            figure.claimed += usize::from(line.verdict != Verdict::NoDifferenceSeen);
            figure.narrow += usize::from(reach <= WANTED + RESOLUTION);
            figure.taken_out = line.taken_out.map(|[a, b]| f64::midpoint(a, b));
            reaches.push(reach);
        }
    }
    for (figure, mut reaches) in figures.iter_mut().zip(reaches) {
        reaches.sort_by(f64::total_cmp);
        let at = |share: f64| {
            reaches.get((reaches.len().saturating_sub(1) as f64 * share).round() as usize).copied()
        };
        (figure.reach, figure.reach_p95) = (at(0.5), at(0.95));
    }
    Ok(WithItself {
        comparisons,
        pairs,
        seed,
        runs: sound.len(),
        left_out: runs.len() - sound.len(),
        figures: figures.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::run;
    use super::super::study::recorded;
    use super::*;

    #[test]
    fn recorded_runs_claim_no_more_than_they_may() {
        let runs: Vec<Outline> =
            recorded::P50_NS.iter().enumerate().map(|(at, ns)| run(at, f64::from(*ns))).collect();
        let found = with_itself(&runs, 60, 12, 1).unwrap();
        assert_eq!((found.runs, found.left_out), (recorded::P50_NS.len(), 0));
        let figure = &found.figures[0];
        assert_eq!((figure.judged, figure.why_not.clone()), (60, None));
        assert!(figure.claimed <= 9 && figure.reach > Some(0.0), "{figure:?}");
        assert!(figure.reach <= figure.reach_p95);
        assert_eq!(found, with_itself(&runs, 60, 12, 1).unwrap(), "one seed, one series");
        assert_ne!(found.figures, with_itself(&runs, 60, 12, 2).unwrap().figures);
        assert!(found.figures[1].why_not.is_some(), "nobody looked for stalls in these");
    }

    #[test]
    fn a_pool_of_two_kinds_is_found() {
        // Broken on purpose: the second of each two is 30 % slower, so neighbours differ; the drawing of sides must even that out.
        let runs: Vec<Outline> =
            (0..48).map(|at| run(at, if at % 2 == 0 { 1_000.0 } else { 1_300.0 })).collect();
        let found = with_itself(&runs, 100, 12, 1).unwrap();
        assert!(found.figures[0].claimed <= 12, "{:?}", found.figures[0]);
        assert!(found.figures[0].reach > Some(WANTED), "an interval over such runs is wide");
    }

    #[test]
    fn too_few_runs_are_said() {
        let runs: Vec<Outline> = (0..23).map(|at| run(at, 500.0)).collect();
        assert!(with_itself(&runs, 1, 12, 1).unwrap_err().contains("23 sound runs make 11 pairs"));
        assert!(with_itself(&runs, 1, 0, 1).is_err());
    }
}
