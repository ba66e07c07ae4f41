//! The report of a comparison: verdict, chart and table for each pair of settings.

use super::{Comparison, Comparisons};
use crate::chart::interval_plot::{self, IntervalRow};
use crate::experiment::ratio::{
    MARKS, describe_verdict, format_all_pairs, format_ratio, interval_row, line_of,
};
use crate::experiment::runs::ExperimentRuns;
use crate::experiment::sweep::{point_sections, report_frame};
use crate::experiment::time_unit::TimeUnit;
use crate::experiment::{ALL, BriefReport, ExperimentReport, ReportSection};
use crate::grouping::grouped;
use crate::stats::{ComparisonLine, MIN_PAIRS, Percentile, Verdict};
use maud::{Markup, html};
use record::fitness::{self, Fitness};
use verdict::chart::axis;
use verdict::chart::svg::legend;
use verdict::summary::Measure;
use verdict::table::{Column, Grid};

/// Returns the report of compared runs; for several pairs of settings, its tables have end-to-end
/// latencies only, without the stages of an order's path.
pub fn report(all: &Comparisons) -> ExperimentReport {
    let single = all.comparisons.len() == 1;
    let table = |(number, comparison): (usize, &Comparison)| {
        let name = if single { "compare".into() } else { format!("compare_{}", number + 1) };
        Grid { name, ..table(comparison, single) }
    };
    let tables = all.comparisons.iter().enumerate().map(table);
    ExperimentReport {
        name: "compare",
        heading: "Comparison".into(),
        title: "Compare".into(),
        answer: answer(all),
        brief: BriefReport { table: (!single).then(|| verdicts(all)), ..BriefReport::default() },
        fitness: fitness_of(all),
        notes: all.notes.clone(),
        sections: vec![ReportSection::new("compare", "B against A").charts(chart(all)).tables(ALL, tables)],
        ..ExperimentReport::default()
    }
}

/// Returns the report of an experiment whose runs were made for a comparison, with a section for
/// each combination of settings.
pub fn measured_report(record: &ExperimentRuns, all: &Comparisons) -> ExperimentReport {
    let ExperimentReport { name, heading, answer, brief, notes, sections, .. } = report(all);
    let sections = [sections, point_sections(record)].concat();
    ExperimentReport { name, heading, answer, brief, notes, sections, ..report_frame(record) }
}

/// The line of the endpoint's first percentile.
fn first(comparison: &Comparison) -> Option<&ComparisonLine> {
    let endpoint = &comparison.endpoint;
    line_of(&comparison.lines, endpoint.measure(), endpoint.percentile)
}

/// A and B with the settings that distinguish them: `A (thread)`, `B (process)`.
fn side_names(comparison: &Comparison) -> [String; 2] {
    let words = |name: &str| name.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (a, b) = (words(&comparison.a), words(&comparison.b));
    let is_pair = |word: &String| word.contains('=');
    let alike = a.len() == b.len() && a.iter().chain(&b).all(is_pair);
    let distinct = |own: &[String], other: &[String]| -> String {
        let values = own.iter().filter(|word| !alike || !other.contains(word));
        let value = |word: &String| word.split_once('=').map_or(word.clone(), |(_, value)| value.to_owned());
        values.map(value).collect::<Vec<_>>().join(", ")
    };
    [("A", distinct(&a, &b)), ("B", distinct(&b, &a))].map(|(side, words)| {
        if words.is_empty() || words.len() > 40 { side.into() } else { format!("{side} ({words})") }
    })
}

/// The result of all comparisons in one sentence, at the endpoint.
fn answer(all: &Comparisons) -> String {
    match &all.comparisons[..] {
        [] => "nothing was compared".into(),
        [only] => sentence(only),
        several => {
            let verdict_of = |one| first(one).map_or(Verdict::CannotTell, |line| line.verdict);
            let count = |verdict| several.iter().filter(|one| verdict_of(one) == verdict).count();
            let counts = Verdict::ALL.iter().map(|verdict| (count(*verdict), verdict.name()));
            let counts = counts.filter(|(count, _)| *count > 0);
            let counts: Vec<String> = counts.map(|(count, words)| format!("{words} in {count}")).collect();
            format!("B against A at p50 in {} settings: {}", several.len(), counts.join(", "))
        }
    }
}

/// Returns the table of the first screen of several comparisons: the endpoint of each.
fn verdicts(all: &Comparisons) -> Grid {
    let ratio = |percentile: Percentile| {
        move |one: &Comparison| {
            let line = line_of(&one.lines, one.endpoint.measure(), percentile);
            line.map_or_else(|| "–".into(), format_ratio)
        }
    };
    let [p50, p99] = [Percentile::P50, Percentile::P99].map(ratio);
    let measure = all.comparisons.first().map_or("", |one| one.endpoint.measure.as_str());
    let columns: [Column<'_, Comparison>; 4] = [
        ("B", &|one| one.b.clone()),
        ("pairs", &|one| one.pairs.to_string()),
        ("p50 ×", &p50),
        ("p99 ×", &p99),
    ];
    Grid::from_rows("compare_brief", format!("{measure}, B/A"), 1, &columns, &all.comparisons)
}

/// The result of one comparison: `B (process) against A (thread), rt_venue_from_due: p50 slower:
/// costs +129 ns [+120, +140]; p99 … (12 of 12 pairs kept, same placement)`.
fn sentence(comparison: &Comparison) -> String {
    let [a, b] = side_names(comparison);
    let endpoint = comparison.lines.iter().filter(|line| comparison.endpoint.is_of(line));
    let verdicts: Vec<(&str, String)> =
        endpoint.clone().map(|line| (line.percentile.name(), describe_verdict(line))).collect();
    let verdicts: Vec<String> = grouped(verdicts.into_iter().map(|(percentile, words)| (words, percentile)))
        .into_iter()
        .map(|(words, percentiles)| format!("{} {words}", percentiles.join(" and ")))
        .collect();
    if verdicts.is_empty() {
        return format!("{b} and {a} have no figure in common");
    }
    let made = endpoint.map(|line| line.made).max().unwrap_or(0).max(comparison.pairs);
    let placement = match comparison.placed.len() {
        0 | 1 => "same placement".to_owned(),
        several => format!("within each of {several} placements"),
    };
    format!(
        "{b} against {a}, {}: {} ({} of {made} pairs kept, {placement})",
        comparison.endpoint.measure,
        verdicts.join("; "),
        comparison.pairs
    )
}

/// Whether the compared latencies may be quoted: by the caveats of all comparisons.
fn fitness_of(all: &Comparisons) -> Fitness {
    let caveats = all.comparisons.iter().flat_map(|comparison| &comparison.caveats);
    let unfit = caveats.filter_map(|caveat| caveat.strip_prefix(fitness::UNFIT));
    let mut reasons: Vec<String> = unfit.map(|rest| rest.trim_start_matches([' ', ':']).to_owned()).collect();
    reasons.dedup();
    Fitness::new(reasons)
}

const fn verdict_class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Slower => "c2",
        Verdict::Faster => "c3",
        Verdict::Equivalent => "c1",
        Verdict::CannotTell => "c4",
    }
}

/// The ratios with their intervals: of one comparison each total time, of several each one's first
/// figure of the endpoint.
fn chart(all: &Comparisons) -> Option<Markup> {
    let row = |name: String, line: &ComparisonLine| interval_row(name, verdict_class(line.verdict), line);
    let rows: Vec<IntervalRow> = match &all.comparisons[..] {
        [only] => headline_lines(only).map(|line| row(line_name(line), line)).collect(),
        several => several
            .iter()
            .filter_map(|one| {
                let [a, b] = side_names(one);
                Some(row(format!("{b} against {a}"), first(one)?))
            })
            .collect(),
    };
    let title = match &all.comparisons[..] {
        [only] => side_names(only).map(|name| name.replace('(', "= ").replace(')', "")).join(", "),
        _ => "B against A at the endpoint".into(),
    };
    let axis_title = "B/A: right of the line B is slower, left of it faster";
    let chart = interval_plot::draw("compare-ratio", &title, axis_title, axis::NUMBER, Some(1.0), &rows)?;
    let drawn = Verdict::ALL
        .iter()
        .map(|verdict| (verdict_class(*verdict), verdict.name().to_owned()))
        .filter(|(class, _)| rows.iter().any(|row| row.class == *class && row.interval.is_some()));
    let legend = legend(drawn);
    Some(html! { (chart) (legend) })
}

fn agreement(comparison: &Comparison) -> String {
    let lines = || comparison.lines.iter().filter(|line| line.measure == Measure::RtVenue.name());
    let disagree = lines().find_map(|line| Some((line.percentile.name(), line.disagreement()?)));
    let judged = |line: &ComparisonLine| line.hosts.iter().filter(|host| host.difference.is_some()).count();
    match (disagree, lines().map(judged).max().unwrap_or(0)) {
        (Some((percentile, how)), _) => format!("the hosts disagree at {percentile}: {how}"),
        (None, 0 | 1) => {
            format!("whether the hosts agree is not known: {MIN_PAIRS} pairs on each are needed")
        }
        (None, hosts) => {
            format!("the hosts agree, those {hosts} with {MIN_PAIRS} pairs or more: their intervals overlap")
        }
    }
}

/// The lines of the total times; from p99 on, `rt_venue` is followed by the one without the
/// machine's stalls.
fn headline_lines(comparison: &Comparison) -> impl Iterator<Item = &ComparisonLine> {
    let of = |measure: Measure| comparison.lines.iter().filter(move |line| line.measure == measure.name());
    let is_endpoint = |line: &&ComparisonLine| {
        let is_due = comparison.endpoint.measure() == Measure::RtVenueFromDue;
        comparison.endpoint.measure == line.measure || is_due && line.measure == Measure::WithoutSteal.name()
    };
    let due = of(Measure::RtVenueFromDue).flat_map(move |line| {
        let stolen = of(Measure::WithoutSteal).filter(move |stolen| stolen.percentile == line.percentile);
        std::iter::once(line).chain(stolen)
    });
    let engine = of(Measure::RtVenue).flat_map(move |line| {
        let is_tail = line.percentile != Percentile::P50;
        let free = of(Measure::StallFree).find(|free| is_tail && free.percentile == line.percentile);
        // Without a count of stalls there is nothing to show.
        std::iter::once(line).chain(free.filter(|free| free.excluded_share.is_some()))
    });
    let (first, rest): (Vec<_>, Vec<_>) = due.chain(engine).partition(is_endpoint);
    first.into_iter().chain(rest)
}

/// The lines of the table that have a figure; `all` with those of every stage.
fn table_lines(comparison: &Comparison, all: bool) -> impl Iterator<Item = &ComparisonLine> {
    let is_head = |line: &&ComparisonLine| {
        let heads = [Measure::RtVenueFromDue, Measure::WithoutSteal, Measure::RtVenue, Measure::StallFree];
        heads.iter().any(|head| line.measure == head.name())
    };
    headline_lines(comparison)
        .chain(comparison.lines.iter().filter(move |line| all && !is_head(line)))
        .filter(|line| line.a_ns.is_some() || line.b_ns.is_some())
}

/// The figure that a line is about. Of a stall-free figure with the share of the orders that it is
/// made from, A's and B's.
fn line_name(line: &ComparisonLine) -> String {
    match line.excluded_share {
        Some(out) => {
            let [a, b] = out.map(|share| format!("{:.0}", (1.0 - share) * 100.0));
            let on = if a == b { a } else { format!("{a}/{b}") };
            format!("· stall-free, on {on} % of the orders")
        }
        None if line.measure == Measure::WithoutSteal.name() => "· without steal".into(),
        None => format!("{} {}", line.measure, line.percentile.name()),
    }
}

/// Each reason against judging a line, once, with the number of lines that it is about.
fn reasons(comparison: &Comparison) -> Vec<String> {
    let all = comparison.lines.len();
    let words = |(why, lines): (&String, Vec<_>)| {
        let about = match lines.len() {
            lines if lines == all => "all figures".into(),
            lines => format!("{lines} of {all} figures"),
        };
        format!("not comparable, {about}: {why}")
    };
    let reasons = comparison.lines.iter().flat_map(|line| line.why.iter().map(move |why| (why, line)));
    grouped(reasons).into_iter().map(words).collect()
}

/// The table; `all` with every stage, else of the total times alone.
fn table(comparison: &Comparison, all: bool) -> Grid {
    let lines: Vec<&ComparisonLine> = table_lines(comparison, all).collect();
    let unit = TimeUnit::for_durations(lines.iter().flat_map(|line| [line.a_ns, line.b_ns]).flatten());
    let verdict = |line: &ComparisonLine| match line.evidence().difference {
        None => "–".into(),
        Some(_) => line.verdict.name().to_owned(),
    };
    let role = |line: &ComparisonLine| if line.is_secondary { "secondary" } else { "endpoint" }.to_owned();
    let all_pairs = |line: &ComparisonLine| format_all_pairs(line, unit);
    let kept = |line: &ComparisonLine| {
        line.difference.map_or_else(|| "–".into(), |found| unit.difference(found.difference).join(" "))
    };
    let mut grid = Grid::from_rows(
        "compare",
        format!("B against A, {}, median over the repeats", unit.name()),
        1,
        &[
            ("figure", &line_name),
            ("test", &role),
            ("A", &|line: &ComparisonLine| unit.format_or_dash(line.a_ns)),
            ("B", &|line| unit.format_or_dash(line.b_ns)),
            ("B/A [95%]", &format_ratio),
            ("B−A, kept pairs", &kept),
            ("B−A, all pairs", &all_pairs),
            ("verdict", &verdict),
        ],
        lines.iter().copied(),
    );
    let notes = &mut grid.notes;
    notes.extend([format!("A: {}", comparison.a), format!("B: {}", comparison.b)]);
    if lines.iter().any(|line| line.excluded_share.is_some()) {
        notes.push("stall-free: of the orders that no stall of the machine touched".into());
    }
    notes.extend(reasons(comparison));
    if let Some(found) = comparison.lines.first().and_then(|line| line.difference) {
        let made = comparison.lines[0].made;
        let (pairs, method) = (comparison.pairs, found.method.describe());
        notes.push(format!("{pairs} of {made} pairs kept; 95 % intervals: {method}"));
        notes.push(format!(
            "{MARKS}; margin: the larger of {}",
            comparison.endpoint.margin.to_string().replace(',', " and ")
        ));
        notes.push(format!(
            "endpoint, declared before: {}; all else is secondary, with Holm's correction",
            comparison.endpoint.describe()
        ));
    }
    notes.extend(comparison.placed.iter().map(|placed| {
        let host = if placed.host.is_empty() { String::new() } else { format!("{}, ", placed.host) };
        format!(
            "{host}core-to-core floor {} ns: {} runs of A, {} of B, rt_venue p50 {} and {} {}",
            TimeUnit::Nanoseconds.format_or_dash(placed.floor_ns),
            placed.a,
            placed.b,
            unit.format_or_dash(placed.a_ns),
            unit.format_or_dash(placed.b_ns),
            unit.symbol()
        )
    }));
    if comparison.placed.iter().any(|placed| !placed.host.is_empty()) {
        notes.push("several hosts: B/A compares runs of one host and one floor with each other".into());
        notes.push(agreement(comparison));
    } else if !comparison.placed.is_empty() {
        notes.push("the machine moved its cores: B/A compares runs of one floor with each other".into());
    }
    notes.extend(comparison.caveats.iter().filter(|caveat| !caveat.starts_with(fitness::UNFIT)).cloned());
    grid
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::fixtures;

    fn comparison(repeats: usize, b_ns: f64) -> Comparison {
        let side = |ns: f64| (0..repeats).map(|repeat| fixtures::run(repeat, ns)).collect::<Vec<_>>();
        let (a, b) = ("isolation=thread work=0ns", "isolation=process work=0ns");
        Comparison::new((a, &side(300.0)), (b, &side(b_ns)), &crate::experiment::Endpoint::default())
    }

    #[test]
    fn each_verdict_has_its_sentence() {
        let slower = "p50 slower: costs +129 ns [+129, +129]; p99 slower: costs +258 ns [+258, +258] (12 of 12 pairs kept, same placement)";
        let faster = "p50 faster: −100 ns [−100, −100]; p99 faster: −200 ns [−200, −200] (8 of 8 pairs kept, same placement)";
        let same = "p50 equivalent within ±15 ns: +3 [+3, +3]; p99 equivalent within ±30 ns: +6 [+6, +6] (8 of 8 pairs kept, same placement)";
        let few = "p50 and p99 cannot tell: too few repeats: 3 of at least 5 pairs; \
                   about 2 more pairs (3 of 3 pairs kept, same placement)";
        for (repeats, ns, wanted) in
            [(12, 429.0, slower), (8, 200.0, faster), (8, 303.0, same), (3, 310.0, few)]
        {
            let wanted = format!("B (process) against A (thread), rt_venue_from_due: {wanted}");
            assert_eq!(sentence(&comparison(repeats, ns)), wanted);
        }
    }

    #[test]
    fn reasons_are_given_once_and_empty_columns_dropped() {
        let all = Comparisons { comparisons: vec![comparison(3, 400.0)], notes: Vec::new() };
        let report = report(&all);
        let text = report.terminal(false);
        let text = text.lines().map(str::trim).collect::<Vec<_>>().join("\n").replace("too\nfew", "too few");
        assert_eq!(text.matches("too few repeats").count(), 2, "table and answer:\n{text}");
        assert!(text.contains("not comparable, all figures: too few repeats"), "{text}");
        assert!(!text.contains("verdict") && !text.contains('–'), "{text}");
        assert!(text.trim_end().lines().count() < 30, "{text}");
    }

    #[test]
    fn stall_free_lines_name_their_share_of_orders() {
        let line =
            |out| ComparisonLine { excluded_share: Some(out), ..comparison(5, 300.0).lines[0].clone() };
        assert_eq!(line_name(&line([0.75, 0.75])), "· stall-free, on 25 % of the orders");
        assert_eq!(line_name(&line([0.75, 0.6])), "· stall-free, on 25/40 % of the orders");
    }
}
