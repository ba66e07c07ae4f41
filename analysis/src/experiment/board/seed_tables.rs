//! The tables of writes and reads in the layout of the benchmark that this project started from, a
//! row for each case.

use super::{BoardCase, Boards};
use crate::experiment::time_unit::TimeUnit;
use record::numbers::short;
use verdict::summary::Distribution;
use verdict::table::{Column, Grid};

/// A case with its name in the tables.
pub(super) type Labelled<'a> = (&'a BoardCase, String);

/// The figures of one end of a case that the seed's tables have.
type EndFigures = fn(&BoardCase) -> (Distribution, Option<u64>, f64);

/// Returns the two tables, with the warnings below the last one.
pub(super) fn tables(boards: &Boards, cases: &[Labelled<'_>]) -> [Grid; 2] {
    let writes =
        table(("seed-writes", "writes", "the call to write"), cases, |BoardCase { writer, .. }| {
            (writer.write, writer.write_p95_ns, writer.writes_per_s)
        });
    let reads = table(("seed-reads", "reads", "the call to read"), cases, |BoardCase { all, .. }| {
        (all.read, all.read_p95_ns, all.reads_per_s)
    });
    [writes, with_warnings(reads, boards, cases)]
}

fn table((name, what, call): (&str, &str, &str), cases: &[Labelled<'_>], end: EndFigures) -> Grid {
    let unit = TimeUnit::for_known(cases.iter().map(|(case, _)| end(case).0.max_ns));
    let time = |case: &BoardCase, figure: fn(&Distribution, Option<u64>) -> Option<u64>| {
        let (figures, p95, _) = end(case);
        unit.format_whole(figure(&figures, p95))
    };
    let columns: [Column<'_, Labelled<'_>>; 9] = [
        ("load", &|(_, label)| label.clone()),
        ("count", &|(case, _)| short(end(case).0.count)),
        ("min", &|(case, _)| time(case, |of, _| of.min_ns)),
        ("mean", &|(case, _)| unit.format_or_dash(end(case).0.mean_ns)),
        ("median", &|(case, _)| time(case, |of, _| of.p50_ns)),
        ("p95", &|(case, _)| time(case, |_, p95| p95)),
        ("p99", &|(case, _)| time(case, |of, _| of.p99_ns)),
        ("max", &|(case, _)| time(case, |of, _| of.max_ns)),
        ("a second", &|(case, _)| short(end(case).2.round() as u64)),
    ];
    let title = format!("The seed's rows, {what}: {call}, in {}", unit.name());
    Grid::from_rows(name, title, 1, &columns, cases)
}

fn with_warnings(mut grid: Grid, boards: &Boards, cases: &[Labelled<'_>]) -> Grid {
    for (case, label) in cases {
        for warning in boards.warn.check(case) {
            grid = grid.note(format!("WARNING: {label}: {}", warning.describe()));
        }
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::super::BoardWarnings;
    use super::*;
    use crate::fixture;

    fn boards() -> Boards {
        let mut boards = Boards::from_experiment(&fixture("saved/board.json")).unwrap();
        boards.cases.truncate(1);
        let case = &mut boards.cases[0];
        let figures = Distribution {
            count: 75_000_000,
            min_ns: Some(10),
            p50_ns: Some(20),
            p99_ns: Some(187),
            max_ns: Some(16_884_000),
            mean_ns: Some(33.4),
            ..Distribution::default()
        };
        (case.writer.write, case.writer.write_p95_ns, case.writer.writes_per_s) =
            (figures, Some(90), 7_500_000.0);
        (case.all.read, case.all.read_p95_ns) = (figures, Some(3_400));
        boards
    }

    #[test]
    fn warning_names_case_threshold_limit_and_figure() {
        let mut boards = boards();
        boards.warn = BoardWarnings { reader_p95_ns: Some(3_400), ..BoardWarnings::default() };
        let [writes, reads] = tables(&boards, &[(&boards.cases[0], "stress".to_owned())]);
        assert_eq!(writes.notes, [""; 0]);
        assert_eq!(reads.notes, ["WARNING: stress: read-p95 is 3,400 ns, limit 3,400 ns"]);
    }

    #[test]
    fn seed_tables_have_every_column_within_80() {
        let boards = boards();
        let cases = [(&boards.cases[0], "poisson:10000 12 readers process yield".to_owned())];
        for (grid, p95) in tables(&boards, &cases).iter().zip(["0.090", "3.40"]) {
            let columns = ["load", "count", "min", "mean", "median", "p95", "p99", "max", "a second"];
            assert_eq!(grid.head, columns);
            assert_eq!(grid.rows[0].cells[5], p95, "{grid:?}");
            assert!(!grid.rows[0].cells.contains(&"–".to_owned()), "{grid:?}");
            let text = grid.terminal(false);
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
    }
}
