//! `compare FOLDER --with-itself N`: the runs of one setting against each other, many times.

use super::load::Cell;
use crate::config::UsageError;
use crate::experiments::documents::Documents;
use analysis::report::grid::{Grid, GridRow};
use analysis::report::units::percent;
use analysis::stats::{WANTED, WithItself, WithItselfFigure, with_itself};
use anyhow::Result;

/// What that shows.
///
/// # Errors
/// [`UsageError`]: not one setting, or too few runs of it.
pub fn documents(cells: &[Cell], comparisons: u32, pairs: u32, seed: u64) -> Result<Documents> {
    let [cell] = cells else {
        let several =
            format!("--with-itself: the folder holds {} settings: choose one with --a", cells.len());
        return Err(UsageError(several).into());
    };
    let found = with_itself(&cell.runs, comparisons as usize, pairs as usize, seed)
        .map_err(|why| UsageError(format!("--with-itself: {why}")))?;
    let grid = grid(&found);
    let mut json = serde_json::to_vec_pretty(&found)?;
    json.push(b'\n');
    Ok(Documents {
        name: "with-itself",
        heading: format!("{} with itself", cell.name),
        notes: Vec::new(),
        narrow: vec![grid.clone()],
        wide: vec![grid],
        json,
        file: None,
    })
}

fn grid(found: &WithItself) -> Grid {
    let share = |count: usize, of: usize| percent((of > 0).then(|| count as f64 / of as f64));
    let row = |figure: &WithItselfFigure| {
        let plus_minus =
            |reach: Option<f64>| reach.map_or_else(|| "–".into(), |reach| format!("±{:.1} %", reach * 100.0));
        GridRow::plain(vec![
            format!("{} {}", figure.measure, figure.percentile.name()),
            percent(figure.taken_out),
            figure.judged.to_string(),
            format!("{} ({})", figure.claimed, share(figure.claimed, figure.judged)),
            plus_minus(figure.reach),
            plus_minus(figure.reach_p95),
            share(figure.narrow, figure.judged),
        ])
    };
    let mut notes = vec![
        format!(
            "{} comparisons of {} pairs each, drawn with seed {} from {} runs{}; two runs that followed each other are a pair, which of \
             them is A is drawn; comparisons of one pool share runs",
            found.comparisons,
            found.pairs,
            found.seed,
            found.runs,
            if found.left_out > 0 { format!(" ({} left out)", found.left_out) } else { String::new() }
        ),
        format!(
            "claim: how many call equal settings different, at most 5 % are wanted; reach: how far the further end of the 95 % interval \
             is from 1, in half of the comparisons and in 95 % of them; narrow: within ±{:.0} %",
            WANTED * 100.0
        ),
    ];
    let why_not = found.figures.iter().find_map(|figure| {
        figure.why_not.as_ref().map(|why| format!("{} {}: {why}", figure.measure, figure.percentile.name()))
    });
    notes.extend(why_not.map(|why| format!("not every comparison could be judged: {why}")));
    Grid {
        name: "with_itself".into(),
        title: "A setting against itself".into(),
        head: ["figure", "out", "judged", "claim", "reach", "95 %", "narrow"].map(str::to_owned).to_vec(),
        keys: 1,
        rows: found.figures.iter().map(row).collect(),
        notes,
    }
}
