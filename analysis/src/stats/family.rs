//! The family of secondary figures, whose p-values are corrected: the more figures are compared,
//! the stronger the evidence that each needs.

use super::outline::Percentile;
use super::verdict::ComparisonLine;
use statistics::Difference;

/// Corrects p-values for multiple testing by Holm's method (1979), and returns them in the given
/// order. The least one is multiplied by the number of all, the next one by one less, and none
/// falls below the one before it.
pub fn holm(p: &[f64]) -> Vec<f64> {
    holm_in_order(&p.iter().map(|p| vec![*p]).collect::<Vec<_>>()).concat()
}

/// Corrects the p-values of branches for the number of branches. The figures of a branch are tested
/// in order, each only once the one before it is shown (gatekeeping). A branch that is shown to its
/// end leaves its share of errors to the others (Bretz and others, 2009). Branches of one figure
/// each are corrected as by [`holm`].
fn holm_in_order(branches: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut corrected = vec![Vec::new(); branches.len()];
    let mut highest = 0.0f64;
    loop {
        let open = branches.iter().zip(&corrected).enumerate();
        let open = open.filter_map(|(index, (branch, done))| Some((index, *branch.get(done.len())?)));
        let count = open.clone().count();
        let Some((index, p)) = open.min_by(|a, b| a.1.total_cmp(&b.1)) else { return corrected };
        highest = highest.max(p * count as f64).min(1.0);
        corrected[index].push(highest);
    }
}

/// A p-value of a difference, and of its equivalence.
type PValue = fn(&mut Difference) -> Option<&mut f64>;
const P_VALUES: [PValue; 2] =
    [|found| Some(found.p.get_or_insert(1.0)), |found| found.equivalence.as_mut().map(|test| &mut test.p)];

fn p_of(line: &mut ComparisonLine, which: PValue) -> Option<&mut f64> {
    if line.why.is_empty() { line.deciding_mut().and_then(which) } else { None }
}

/// Returns `true` if a line is the p99.9 of which the line before it is the p99.
fn is_behind(before: &ComparisonLine, line: &ComparisonLine) -> bool {
    let are_neighbors = (before.percentile, line.percentile) == (Percentile::P99, Percentile::P999);
    are_neighbors && before.measure == line.measure
}

/// Marks comparison lines as secondary, and corrects their p-values for multiple testing: one
/// family for differences, one for equivalence. p99.9 is tested only after the p99 of its measure,
/// the line before it. Lines with `true` were declared: they are gates, and are not corrected.
pub fn correct_secondary<'a>(lines: impl IntoIterator<Item = (&'a mut ComparisonLine, bool)>) {
    correct(lines.into_iter().collect(), Vec::new());
}

/// Corrects comparison lines and other differences, none of them declared, for multiple testing as
/// [`correct_secondary`] does.
pub fn correct_family<'a, 'b>(
    lines: impl IntoIterator<Item = &'a mut ComparisonLine>,
    further: impl IntoIterator<Item = &'b mut Difference>,
) {
    correct(lines.into_iter().map(|line| (line, false)).collect(), further.into_iter().collect());
}

fn correct(mut lines: Vec<(&mut ComparisonLine, bool)>, mut further: Vec<&mut Difference>) {
    let is_member = |(line, is_declared): &(&mut ComparisonLine, bool)| !is_declared && !line.is_secondary;
    let members: Vec<usize> = (0..lines.len()).filter(|index| is_member(&lines[*index])).collect();
    members.iter().for_each(|index| lines[*index].0.is_secondary = true);
    for which in P_VALUES {
        // The lines of each branch, and the p-value below which none of the branch may fall.
        let mut branches: Vec<(Vec<usize>, f64)> = Vec::new();
        for index in &members {
            if p_of(lines[*index].0, which).is_none() {
                continue;
            }
            let gate = index.checked_sub(1).filter(|gate| is_behind(lines[*gate].0, lines[*index].0));
            match (gate, branches.last_mut()) {
                (Some(gate), Some((branch, _))) if branch.last() == Some(&gate) => branch.push(*index),
                (Some(gate), _) => {
                    let least = p_of(lines[gate].0, which).map_or(1.0, |p| *p);
                    branches.push((vec![*index], least));
                }
                (None, _) => branches.push((vec![*index], 0.0)),
            }
        }
        let mut value = |index: &usize| p_of(lines[*index].0, which).map_or(1.0, |p| *p);
        let values = branches.iter().map(|(branch, _)| branch.iter().map(&mut value).collect());
        let mut values: Vec<Vec<f64>> = values.collect();
        let further: Vec<&mut f64> = further.iter_mut().filter_map(|found| which(found)).collect();
        values.extend(further.iter().map(|p| vec![**p]));
        let corrected = holm_in_order(&values);
        let (of_lines, of_further) = corrected.split_at(branches.len());
        for ((branch, least), corrected) in branches.iter().zip(of_lines) {
            for (index, corrected) in branch.iter().zip(corrected) {
                if let Some(p) = p_of(lines[*index].0, which) {
                    *p = corrected.max(*least);
                }
            }
        }
        further.into_iter().zip(of_further).for_each(|(p, corrected)| *p = corrected[0]);
    }
    members.into_iter().for_each(|index| lines[index].0.judge());
}

#[cfg(test)]
mod tests;
