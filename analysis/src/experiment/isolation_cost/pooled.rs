//! The headline of levels that took turns: each level compared with threads, pooled over the rows.
//!
//! Rows differ in a condition, such as the number of strategies, and are runs of their own. So the
//! pooled ratio is the geometric mean of theirs, and the reaches of their intervals add up like
//! independent errors.

use super::{IsolationCostRow, IsolationCosts, TurnRatios};
use crate::grouping::distinct;
use crate::stats::{Estimate, Percentile};
use record::numbers::{counted, percent};
use verdict::report::change;

/// The ratios of a level at one percentile, with its name.
type PooledRatio = (&'static str, Estimate);

/// Returns a sentence for each level that took turns with threads; `None` if none did.
pub(super) fn sentence(bill: &IsolationCosts) -> Option<String> {
    let rows: Vec<(&IsolationCostRow, TurnRatios)> =
        bill.rows.iter().filter_map(|row| Some((row, row.level_figures.as_ref()?.turns?))).collect();
    let levels = distinct(rows.iter().map(|(row, _)| row.level_at_condition()));
    let conditions = distinct(rows.iter().map(|(row, _)| row.condition.clone())).len();
    let share = bill.endpoint.margin.share;
    let of_level = |level: &String| {
        let own: Vec<TurnRatios> = rows
            .iter()
            .filter(|(row, _)| row.level_at_condition() == *level)
            .map(|(_, turns)| *turns)
            .collect();
        let texts: Vec<String> = pooled(&own).into_iter().map(|ratio| describe(ratio, share)).collect();
        (!texts.is_empty()).then(|| format!("{level}: {}", texts.join(", ")))
    };
    let sentences: Vec<String> = levels.iter().filter_map(of_level).collect();
    let over = if conditions > 1 {
        format!(", pooled over {}", counted(conditions as u64, "row"))
    } else {
        String::new()
    };
    (!sentences.is_empty()).then(|| format!("by turns against thread{over}: {}", sentences.join(". ")))
}

/// Pools the ratios of rows at p50 and p99; without a percentile that one of them lacks.
fn pooled(rows: &[TurnRatios]) -> Vec<PooledRatio> {
    let of = |percentile: Percentile, ratio: fn(&TurnRatios) -> Option<Estimate>| {
        let ratios = rows.iter().map(ratio).collect::<Option<Vec<_>>>()?;
        Some((percentile.name(), geometric_mean(&ratios)?))
    };
    let all = [of(Percentile::P50, |turns| turns.p50), of(Percentile::P99, |turns| turns.p99)];
    all.into_iter().flatten().collect()
}

/// Returns the geometric mean of ratios that were measured independently of each other.
fn geometric_mean(ratios: &[Estimate]) -> Option<Estimate> {
    let count = ratios.len() as f64;
    let value = ratios.iter().map(|ratio| ratio.value.ln()).sum::<f64>() / count;
    let reach = |end: fn(&Estimate) -> f64| {
        let squares = ratios.iter().map(|ratio| (end(ratio) / ratio.value).ln().powi(2));
        squares.sum::<f64>().sqrt() / count
    };
    let found =
        Estimate { value, low: value - reach(|ratio| ratio.low), high: value + reach(|ratio| ratio.high) };
    value.is_finite().then(|| found.map(f64::exp))
}

/// Describes a ratio: `p50 +11.9 % [+9.4, +14.3], slower`.
fn describe((percentile, ratio): PooledRatio, share: f64) -> String {
    let verdict = if ratio.low >= 1.0 - share && ratio.high <= 1.0 + share {
        format!("within {}", percent(Some(share)))
    } else if ratio.low > 1.0 {
        "slower".into()
    } else if ratio.high < 1.0 {
        "faster".into()
    } else {
        "cannot tell".into()
    };
    format!("{percentile} {} {verdict}", change([ratio.value, ratio.low, ratio.high]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(value: f64, reach: f64) -> Estimate {
        Estimate { value, low: value / reach, high: value * reach }
    }

    #[test]
    fn rows_are_pooled_as_independent_ratios() {
        let found =
            geometric_mean(&[ratio(1.1, 1.2), ratio(1.1, 1.2), ratio(1.1, 1.2), ratio(1.1, 1.2)]).unwrap();
        assert!((found.value - 1.1).abs() < 1e-9, "{found:?}");
        // Four rows of one width: half of it.
        assert!((found.high / found.value - 1.2f64.sqrt()).abs() < 1e-9, "{found:?}");
        let opposite = geometric_mean(&[ratio(2.0, 1.1), ratio(0.5, 1.1)]).unwrap();
        assert!((opposite.value - 1.0).abs() < 1e-9);
        assert_eq!(geometric_mean(&[]), None);
    }

    #[test]
    fn pooled_percentile_needs_every_row() {
        let turns = |p99| TurnRatios { repeats: 12, p50: Some(ratio(1.2, 1.05)), p99, beyond_p99: None };
        let names = |rows: &[TurnRatios]| pooled(rows).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(&[turns(Some(ratio(2.0, 1.5))), turns(Some(ratio(1.5, 1.2)))]), ["p50", "p99"]);
        // A row without a p99 would be left out by its result.
        assert_eq!(names(&[turns(Some(ratio(2.0, 1.5))), turns(None)]), ["p50"]);
    }

    #[test]
    fn verdict_follows_from_interval_and_margin() {
        let of = |value, reach| describe(("p50", ratio(value, reach)), 0.05);
        assert!(
            of(1.0, 1.02).ends_with("within 5%") && of(1.2, 1.1).ends_with("slower"),
            "{}",
            of(1.0, 1.02)
        );
        assert!(of(0.8, 1.1).ends_with("faster") && of(1.1, 1.2).ends_with("cannot tell"));
    }
}
