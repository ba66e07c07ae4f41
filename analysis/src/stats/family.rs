//! The family of secondary figures: their p-values are corrected, so that the more figures are
//! read, the more each has to show.

use super::interval::Difference;
use super::verdict::ComparisonLine;

/// Corrects p-values for their number (Holm, 1979): the least one is multiplied by the number of
/// all, the next one by one less, and none falls below the one before it.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut corrected = vec![1.0; p.len()];
    let mut highest = 0.0f64;
    for (rank, index) in order.into_iter().enumerate() {
        highest = highest.max(p[index] * (p.len() - rank) as f64).min(1.0);
        corrected[index] = highest;
    }
    corrected
}

/// Marks the lines of a family as secondary, and judges them by corrected p-values: one family for
/// differences, and one for equivalence.
pub fn correct_secondary<'a>(lines: impl IntoIterator<Item = &'a mut ComparisonLine>) {
    correct_family(lines, []);
}

/// Does what [`correct_secondary`] does for a family that has figures which are not times as well.
pub fn correct_family<'a, 'b>(
    lines: impl IntoIterator<Item = &'a mut ComparisonLine>,
    further: impl IntoIterator<Item = &'b mut Difference>,
) {
    let mut further: Vec<&mut Difference> = further.into_iter().collect();
    let mut lines: Vec<&mut ComparisonLine> = lines.into_iter().filter(|line| !line.is_secondary).collect();
    lines.iter_mut().for_each(|line| line.is_secondary = true);
    lines.retain(|line| line.why.is_empty());
    let known = lines.iter_mut().filter_map(|line| line.deciding_mut());
    let mut found: Vec<_> = known.chain(further.iter_mut().map(|figure| &mut **figure)).collect();
    let corrected = holm(&found.iter().map(|found| found.p.unwrap_or(1.0)).collect::<Vec<_>>());
    found.iter_mut().zip(corrected).for_each(|(found, p)| found.p = Some(p));
    let mut tests: Vec<_> = found.iter_mut().filter_map(|found| found.equivalence.as_mut()).collect();
    let corrected = holm(&tests.iter().map(|test| test.p).collect::<Vec<_>>());
    tests.iter_mut().zip(corrected).for_each(|(test, p)| test.p = p);
    lines.into_iter().for_each(ComparisonLine::judge);
}

#[cfg(test)]
mod tests;
