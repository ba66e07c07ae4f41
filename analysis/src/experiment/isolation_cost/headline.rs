//! The answer of a bill: the cost of isolation in one sentence and a short table.

use super::{IsolationCostRow, IsolationCosts, LevelCost, growth, level_tables, pooled};
use crate::experiment::ratio::{self, describe_verdict, format_all_pairs, line_of, verdict_mark};
use crate::experiment::time_unit::TimeUnit;
use crate::grouping::{distinct, grouped};
use crate::stats::{ComparisonLine, Estimate};
use protocol::plan::{Isolation, Technique};
use record::numbers::{duration, duration_or_dash, plain, short};
use record::units::human_bytes;
use verdict::report::strategy_costs::kibibytes;
use verdict::summary::StrategyCosts;
use verdict::table::{Column, Grid, GridRow};

/// Which of the two estimates decides.
const KEPT_PAIRS: &str = "kept pairs decide if at least 5 and half of all, otherwise all pairs";
/// The variant of rows with `--stamps ends`.
const STAMPS_AT_ENDS: &str = "stamps ends";

/// The columns of a table with one row for each isolation level and technique.
pub(super) type CostColumns<'a> = Vec<Column<'a, IsolationCostRow>>;

/// The latencies of a row: p50, p99 and p99.9 from due, then without steal, then of rt_venue, then
/// the two stall-free ones.
pub(super) const LATENCIES: [fn(&IsolationCostRow) -> Option<f64>; 11] = [
    |row| row.from_due_ns[0],
    |row| row.from_due_ns[1],
    |row| row.from_due_ns[2],
    |row| row.without_steal_ns[0],
    |row| row.without_steal_ns[1],
    |row| row.without_steal_ns[2],
    |row| row.p50_ns,
    |row| row.p99_ns,
    |row| row.p999_ns,
    |row| row.stall_free_p99_ns,
    |row| row.stall_free_p999_ns,
];

fn latency_unit(isolation_costs: &IsolationCosts) -> TimeUnit {
    let of = |row: &IsolationCostRow| LATENCIES.map(|latency| latency(row));
    TimeUnit::for_durations(isolation_costs.rows.iter().flat_map(of).flatten())
}

/// Returns the columns with the costs of an isolation level besides latency.
pub(super) fn cost_columns<'a>(isolation_costs: &IsolationCosts) -> CostColumns<'a> {
    let mut costs: CostColumns<'a> = vec![
        ("CPU s/M", &|row| row.cpu_s_per_million.map_or_else(|| "–".into(), plain)),
        ("start", &|row| time_or_dash(row.startup_ns)),
        ("PSS", &|row| row.pss_bytes.map_or_else(|| "–".into(), |bytes| human_bytes(bytes as u64))),
        ("faults", &|row| count_or_dash(row.page_faults)),
        ("switches", &|row| count_or_dash(row.context_switches)),
    ];
    // This column is there once there is something in it.
    if isolation_costs.rows.iter().any(|row| row.contains.is_some()) {
        costs.push(("contains", &|row| row.contains.clone().unwrap_or_else(|| "–".into())));
    }
    costs
}

/// What one strategy of a row costs besides latency, for the terminal, and the memory of its runs.
const STRATEGY_COLUMNS: [Column<'static, IsolationCostRow>; 7] = [
    ("CPU s/M", &|row| of_strategy(row, |costs| costs.cpu_s_per_million.map(plain))),
    ("private", &|row| of_strategy(row, |costs| costs.private_bytes.map(kibibytes))),
    ("tables", &|row| of_strategy(row, |costs| costs.page_table_bytes.map(kibibytes))),
    ("start", &|row| of_strategy(row, |costs| costs.startup_ns.map(|ns| duration(ns as u64)))),
    ("faults", &|row| of_strategy(row, |costs| Some(short(costs.minor_faults.round() as u64)))),
    ("switches", &|row| {
        let switches = |costs: &StrategyCosts| costs.voluntary_switches + costs.involuntary_switches;
        of_strategy(row, |costs| Some(short(switches(costs).round() as u64)))
    }),
    // Of all processes of a run with one level.
    ("PSS", &|row| row.pss_bytes.map_or_else(|| "–".into(), |bytes| human_bytes(bytes as u64))),
];

fn of_strategy(row: &IsolationCostRow, figure: impl Fn(&StrategyCosts) -> Option<String>) -> String {
    row.strategy.as_ref().and_then(figure).unwrap_or_else(|| "–".into())
}

pub(super) fn time_or_dash(ns: Option<f64>) -> String {
    duration_or_dash(ns.map(|ns| ns as u64))
}

fn count_or_dash(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |value| short(value.round() as u64))
}

/// The technique of the answer: the default one if it has costs, or the first that has.
pub(in crate::experiment) fn headline_technique(isolation_costs: &IsolationCosts) -> Option<Technique> {
    let measured = isolation_costs.rows.iter().filter(|row| !row.adds.is_empty() && !row.is_native());
    let mut measured = measured.map(|row| row.technique);
    let first = measured.clone().next()?;
    Some(measured.find(|technique| *technique == Technique::default()).unwrap_or(first))
}

pub(in crate::experiment) fn answer(isolation_costs: &IsolationCosts) -> String {
    // Levels that took turns had equal conditions: what they show leads.
    if let Some(by_turns) = pooled::sentence(isolation_costs) {
        return format!("{}, {by_turns}", isolation_costs.endpoint.measure);
    }
    let Some(technique) = headline_technique(isolation_costs) else {
        // No level has an interval, so nothing is ranked.
        let figures = isolation_costs.rows.iter().filter_map(|row| row.p50_ns).map(|ns| ns as u64);
        let range = match (figures.clone().min(), figures.max()) {
            (Some(low), Some(high)) if low == high => format!("; rt_venue p50 is {}", duration(low)),
            (Some(low), Some(high)) => format!("; rt_venue p50 is {} to {}", duration(low), duration(high)),
            _ => String::new(),
        };
        return format!("no level was measured against threads{range}");
    };
    let costs: Vec<(&IsolationCostRow, &LevelCost)> = headline_costs(isolation_costs, technique).collect();
    // Each condition has its own threads.
    let has_conditions = costs.iter().any(|(row, _)| !row.condition.is_empty());
    let threads = costs.iter().find_map(|(_, cost)| cost.line.a_ns).filter(|_| !has_conditions);
    let threads = threads.map_or_else(|| "threads".into(), |ns| format!("thread's {}", duration(ns as u64)));
    // A sentence for each level.
    let sentence = |(row, cost): &(&IsolationCostRow, &LevelCost)| {
        let lines = cost.lines().map(|line| (describe_verdict(line), line.percentile.name()));
        let words = grouped(lines).into_iter();
        let words = words.map(|(words, percentiles)| format!("{} {words}", percentiles.join(" and ")));
        format!("{}: {}", row.level(), words.collect::<Vec<_>>().join(", "))
    };
    let all =
        |costs: &[(&IsolationCostRow, &LevelCost)]| costs.iter().map(sentence).collect::<Vec<_>>().join(". ");
    // A level along a setting has one sentence for all values.
    let is_drawn = |row: &IsolationCostRow| {
        let level = row.level_at_condition();
        isolation_costs.growth.iter().any(|curve| curve.level == level && curve.technique == row.technique)
    };
    let single = costs.iter().filter(|(row, _)| !is_drawn(row)).map(sentence);
    let sentences: Vec<String> =
        growth::sentences(isolation_costs, technique).into_iter().chain(single).collect();
    let mut answer = format!(
        "{technique} against {threads}, {}: {}",
        isolation_costs.endpoint.measure,
        sentences.join(". ")
    );
    let monolith: Vec<(&IsolationCostRow, &LevelCost)> = native_costs(isolation_costs, technique).collect();
    if let Some((_, cost)) = monolith.first() {
        let native = cost.line.a_ns.filter(|_| !has_conditions);
        let native = native.map_or_else(String::new, |ns| format!("'s {}", duration(ns as u64)));
        answer += &format!(". Against the monolith, native by value{native}: {}", all(&monolith));
    }
    answer
}

/// Iterates over the rows of a technique and of the arm `native`.
fn headline_rows(
    isolation_costs: &IsolationCosts,
    technique: Technique,
) -> impl Iterator<Item = &IsolationCostRow> {
    isolation_costs.rows.iter().filter(move |row| row.technique == technique || row.is_native())
}

/// Iterates over the levels of a technique, and the arm `native`, that were compared with threads
/// over all placements.
fn headline_costs(
    isolation_costs: &IsolationCosts,
    technique: Technique,
) -> impl Iterator<Item = (&IsolationCostRow, &LevelCost)> {
    headline_rows(isolation_costs, technique).filter_map(|row| Some((row, row.adds.first()?)))
}

/// Iterates over the rows of the level `process` that were compared with the monolith.
fn native_costs(
    isolation_costs: &IsolationCosts,
    technique: Technique,
) -> impl Iterator<Item = (&IsolationCostRow, &LevelCost)> {
    let is_process = |row: &&IsolationCostRow| row.isolation == Isolation::Process;
    let rows = headline_rows(isolation_costs, technique).filter(is_process);
    rows.filter_map(|row| Some((row, row.adds_to_native.as_ref()?)))
}

/// Returns the table of the endpoint with the technique of the answer: a row for each level and
/// percentile, with the estimates over the kept pairs and over all.
pub(super) fn verdicts(isolation_costs: &IsolationCosts) -> Option<Grid> {
    let technique = headline_technique(isolation_costs)?;
    let lines = || {
        headline_costs(isolation_costs, technique)
            .flat_map(|(row, cost)| cost.lines().map(move |line| (row, line)))
    };
    let unit = TimeUnit::for_durations(lines().flat_map(|(_, line)| [line.a_ns, line.b_ns]).flatten());
    type Line<'a> = (&'a IsolationCostRow, &'a ComparisonLine);
    let kept = |(_, line): &Line<'_>| {
        line.difference.map_or_else(
            || "–".into(),
            |found| format!("{} of {}", unit.difference(found.difference).join(" "), line.pairs),
        )
    };
    let rows: Vec<Line<'_>> = lines().collect();
    let native = |(row, line): &Line<'_>| {
        let lines = row.adds_to_native.iter().flat_map(LevelCost::lines);
        let found = lines.into_iter().find(|found| found.percentile == line.percentile);
        found.map_or_else(|| "–".into(), |line| format_cost(line, unit))
    };
    let title = format!("{technique}: {} against threads, {}", isolation_costs.endpoint.measure, unit.name());
    let grid = Grid::from_rows(
        "bill_endpoint",
        title,
        2,
        &[
            ("level", &|(row, _): &Line<'_>| row.level()),
            ("at", &|(_, line)| line.percentile.name().into()),
            ("thread", &|(_, line)| unit.format_or_dash(line.a_ns)),
            ("level's", &|(_, line)| unit.format_or_dash(line.b_ns)),
            ("kept pairs", &kept),
            ("all pairs", &|(_, line)| format_all_pairs(line, unit)),
            ("verdict", &|(_, line)| line.verdict.to_string()),
            ("against native", &native),
        ],
        &rows,
    );
    let grid = grid.note("difference [95 % interval] of the pairs in which no core moved, and of all pairs");
    let has_native = isolation_costs.rows.iter().any(|row| row.adds_to_native.is_some());
    let native = "native: threads over rings on the heap (rtrb-mux, rtrb-pointer-mux); against it: by value";
    let grid = grid.note(KEPT_PAIRS);
    let grid = if has_native { grid.note(native) } else { grid };
    Some(stamps_notes(isolation_costs).into_iter().fold(grid, Grid::note))
}

/// Describes what the stamps between the ends cost, and what a process costs without them, for each
/// condition with runs of both.
pub(super) fn stamps_notes(isolation_costs: &IsolationCosts) -> Vec<String> {
    let Some(technique) = headline_technique(isolation_costs) else { return Vec::new() };
    let with_end_stamps = |isolation: Isolation| {
        let is_it = move |row: &&IsolationCostRow| {
            row.isolation == isolation && (row.technique, row.variant.as_str()) == (technique, STAMPS_AT_ENDS)
        };
        isolation_costs.rows.iter().filter(is_it)
    };
    let (measure, percentile) = (isolation_costs.endpoint.measure(), isolation_costs.endpoint.percentile);
    let note = |thread: &IsolationCostRow| {
        let line = line_of(&thread.differences, measure, percentile)?;
        let by = line.evidence().difference?.difference;
        let unit = TimeUnit::for_durations([by.value, by.low, by.high]);
        let cost = Estimate { value: -by.value, low: -by.high, high: -by.low };
        let [value, interval] = unit.difference(cost);
        let (of, at) = (time_or_dash(line.a_ns), percentile.name());
        let condition =
            if thread.condition.is_empty() { String::new() } else { format!(", {}", thread.condition) };
        let symbol = unit.symbol();
        let mut note = format!(
            "stamps{condition}: t2, t3, t6 and t7 take {value} {symbol} {interval} of thread's {of} at {at}"
        );
        let mut processes =
            with_end_stamps(Isolation::Process).filter(|row| row.condition == thread.condition);
        if let Some(cost) = processes.next().and_then(|row| row.adds.first()) {
            note += &format!("; with stamps at the ends only, a process: {}", describe_verdict(&cost.line));
        }
        Some(note)
    };
    with_end_stamps(Isolation::Thread).filter_map(note).collect()
}

fn unit_of<'a>(costs: impl Iterator<Item = &'a LevelCost>) -> TimeUnit {
    let figures = |cost: &LevelCost| {
        let by = cost.line.evidence().difference.map(|found| found.difference);
        by.map_or_else(Vec::new, |by| vec![by.value, by.low, by.high])
    };
    TimeUnit::for_durations(costs.flat_map(figures))
}

/// Returns the terminal's table of what each level costs with the technique of the answer.
pub(super) fn levels_of_headline(isolation_costs: &IsolationCosts) -> Option<Grid> {
    let technique = headline_technique(isolation_costs)?;
    let unit = latency_unit(isolation_costs);
    let latencies = LATENCIES.map(|of| move |row: &IsolationCostRow| unit.format_or_dash(of(row)));
    let mut columns: CostColumns<'_> = vec![
        ("isolation", &IsolationCostRow::level),
        ("p50", &latencies[0]),
        ("p99", &latencies[1]),
        ("p99.9", &latencies[2]),
        ("p99 without steal", &latencies[4]),
    ];
    let has_strategy = isolation_costs.rows.iter().any(|row| row.strategy.is_some());
    // Its columns are there with intervals.
    let has_table = level_tables::is_known(isolation_costs);
    let costs = cost_columns(isolation_costs);
    if has_table {
        columns.extend(costs.into_iter().filter(|(name, _)| ["PSS", "contains"].contains(name)));
    } else if has_strategy {
        columns.extend(STRATEGY_COLUMNS);
        columns.extend(costs.into_iter().filter(|(name, _)| *name == "contains"));
    } else {
        columns.extend(costs);
    }
    let rows = headline_rows(isolation_costs, technique);
    let also = match (has_table, has_strategy) {
        (true, _) => "",
        (_, true) => ", and what a strategy costs",
        _ => ", and what else a level costs",
    };
    let title = format!("{technique}: {} in {}{also}", isolation_costs.endpoint.measure, unit.name());
    let grid = Grid::from_rows("bill_levels", title, 1, &columns, rows);
    Some(grid.note("from due; all techniques: bill.md and report.html"))
}

/// Returns the table of what each isolation level adds to a technique in threads: a row for each
/// technique, and one for each placement of the cores where there were several.
pub(super) fn headline(isolation_costs: &IsolationCosts) -> Option<Grid> {
    let rows = || isolation_costs.rows.iter().filter(|row| !row.is_native());
    let added = || rows().filter(|row| !row.adds.is_empty());
    let levels = distinct(added().map(IsolationCostRow::level_at_condition));
    (!levels.is_empty()).then_some(())?;
    let keys = |row: &IsolationCostRow| {
        let technique = row.technique_at_condition();
        row.adds.iter().map(move |cost| (technique.clone(), placement_key(cost))).collect::<Vec<_>>()
    };
    // Technique by technique as the rows have them, all runs first, then from the nearest cores on.
    let techniques = distinct(added().map(IsolationCostRow::technique_at_condition));
    let mut sorted = distinct(added().flat_map(keys));
    sorted.sort_by_key(|(technique, floor)| (techniques.iter().position(|other| other == technique), *floor));
    let several = sorted.iter().any(|(_, floor)| floor.is_some());
    let costs = || rows().flat_map(|row| &row.adds);
    let threads_ns = costs().filter_map(|cost| cost.line.a_ns);
    let unit = TimeUnit::for_durations(threads_ns).max(unit_of(costs()));
    let cells = |(technique, floor): &(String, Option<u64>)| {
        let of = |level: &String| {
            let is_it = |row: &&IsolationCostRow| {
                row.technique_at_condition() == *technique && row.level_at_condition() == *level
            };
            let row = rows().find(is_it)?;
            row.adds.iter().find(|cost| placement_key(cost) == *floor)
        };
        let threads = levels.iter().find_map(|level| of(level)?.line.a_ns);
        let mut cells = vec![technique.clone()];
        cells.extend(several.then(|| floor.map_or_else(|| "all".into(), duration)));
        cells.push(unit.format_or_dash(threads));
        let cost = |level| of(level).map_or_else(|| "–".into(), |cost| format_cost(&cost.line, unit));
        cells.extend(levels.iter().map(cost));
        GridRow::plain(cells)
    };
    let mut head = vec!["technique".to_owned()];
    head.extend(several.then(|| "floor".to_owned()));
    head.push(Isolation::Thread.to_string());
    head.extend(levels.iter().map(|level| format!("{level} adds")));
    let keys = 1 + usize::from(several);
    let rows = sorted.iter().map(cells).filter(|row| row.cells[keys..].iter().any(|cell| cell != "–"));
    let title = format!("What a level adds to the same technique under threads, {}", unit.name());
    let mut grid = Grid::new("bill_adds", title, keys, head, rows)
        .note(format!("difference at p50 [95 % interval]; {}", ratio::MARKS));
    if several {
        let why = "the machine moved its cores between runs, so each placement has a row of its own";
        grid = grid.note(format!("floor: core to core; {why}"));
    }
    let open = costs().map(|cost| cost.line.evidence()).find(|evidence| !evidence.is_known());
    grid.notes.extend(open.map(|evidence| match evidence.difference {
        None => format!("–: {}", evidence.describe()),
        Some(_) => format!("?: {}", evidence.describe()),
    }));
    Some(grid)
}

fn placement_key(cost: &LevelCost) -> Option<u64> {
    cost.floor_ns.map(|floor| floor.round() as u64)
}

/// `▲ +12 [+3, +20]`; a dash where the two cannot be compared.
fn format_cost(line: &ComparisonLine, unit: TimeUnit) -> String {
    let evidence = line.evidence();
    evidence.difference.map_or_else(
        || "–".into(),
        |found| {
            let [value, interval] = unit.difference(found.difference);
            format!("{}{value} {interval}", verdict_mark(evidence.verdict))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::stats::{MIN_PAIRS, Percentile, compare_figure, fixtures, pair_runs};
    use verdict::summary::Measure;

    fn row(isolation: Isolation, runs: usize, adds: &[Option<f64>]) -> IsolationCostRow {
        let side = |ns: f64| (0..runs).map(|repeat| fixtures::run(repeat, ns)).collect::<Vec<_>>();
        let line =
            || compare_figure(&pair_runs(&side(300.0), &side(330.0)), Measure::RtVenue, Percentile::P50);
        IsolationCostRow {
            isolation: isolation.into(),
            variant: String::new(),
            p50_ns: Some(300.0),
            adds: adds
                .iter()
                .map(|floor_ns| LevelCost { floor_ns: *floor_ns, line: line(), further: Vec::new() })
                .collect(),
            ..fixture::<IsolationCosts>("before/bill.json").rows[0].clone()
        }
    }

    fn isolation_costs(rows: Vec<IsolationCostRow>) -> IsolationCosts {
        IsolationCosts { rows, ..fixture("before/bill.json") }
    }

    #[test]
    fn levels_have_their_costs_for_each_placement() {
        let costs = [None, Some(45.0), Some(310.0)];
        let rows = vec![
            row(Isolation::Thread, 8, &[]),
            row(Isolation::Process, 8, &costs),
            row(Isolation::Sandbox, 8, &costs[..1]),
        ];
        let isolation_costs = isolation_costs(rows);
        let grid = headline(&isolation_costs).unwrap();
        assert_eq!(grid.head, ["technique", "floor", "thread", "process adds", "sandbox adds"]);
        assert_eq!(grid.rows.len(), 3);
        assert_eq!(grid.rows[0].cells[1..], ["all", "300", "▲ +30 [+30, +30]", "▲ +30 [+30, +30]"]);
        assert_eq!((grid.rows[1].cells[1].as_str(), grid.rows[2].cells[1].as_str()), ("45 ns", "310 ns"));
        assert_eq!(grid.rows[1].cells[4], "–");
        assert_eq!(
            answer(&isolation_costs),
            "spsc-mux against thread's 300 ns, rt_venue: process: p50 slower: costs +30 ns [+30, +30]. sandbox: p50 slower: costs +30 ns [+30, +30]"
        );
        assert_eq!(levels_of_headline(&isolation_costs).unwrap().rows.len(), 3);
    }

    #[test]
    fn too_few_pairs_have_no_figure_but_a_reason() {
        let few = isolation_costs(vec![row(Isolation::Process, MIN_PAIRS - 1, &[None])]);
        let grid = headline(&few).unwrap();
        assert_eq!(grid.rows[0].cells[2], "–");
        assert!(grid.notes.iter().any(|note| note.contains("too few repeats")), "{:?}", grid.notes);
        let wanted = "spsc-mux against thread's 300 ns, rt_venue: process: p50 cannot tell: too few repeats: 4 of at least 5 pairs; \
                      about 1 more pair";
        assert_eq!(answer(&few), wanted);
        let threads = isolation_costs(vec![row(Isolation::Thread, 5, &[])]);
        assert_eq!((headline(&threads), levels_of_headline(&threads)), (None, None));
        assert_eq!(answer(&threads), "no level was measured against threads; rt_venue p50 is 300 ns");
    }
}
