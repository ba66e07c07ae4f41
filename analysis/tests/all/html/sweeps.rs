//! The pages of a sweep and of a bill, from synthetic documents.

use super::browser::{check_quiet, open};
use super::dom::{having, numbers, plot, plots, series, text, texts};
use super::fixtures::{keep, written};
use crate::fixture::scatter;
use crate::formats::{before, golden};
use analysis::experiment::{
    Axis, AxisRecord, Experiment, ExperimentRuns, ExperimentState, Figures, IsolationCostRow, IsolationCosts,
    Kind, RateStep, Reference, Row, SearchLimits, Setting, isolation_cost, ordered_rows,
};
use analysis::stats::{ComparisonLine, Difference, Estimate, Percentile, RunOutline, Verdict};
use protocol::plan::{Isolation, Technique};
use record::document::Document;
use serde_json::Value;
use tempfile::TempDir;
use verdict::summary::Distribution;

/// Returns the outline of a run with these settings, with some noise. The second repeat is not fit.
fn outline(values: &[(Axis, &str)], repeat: u32) -> RunOutline {
    let number = |axis: Axis, unit: char| -> Option<f64> {
        let (_, value) = values.iter().find(|(name, _)| *name == axis)?;
        value.trim_end_matches("ns").trim_end_matches(unit).parse().ok()
    };
    let seed = values.iter().flat_map(|(_, value)| value.bytes()).fold(7, |a, b| scatter(a ^ u64::from(b)));
    let noise = 1.0 + (scatter(seed ^ u64::from(repeat)) % 100) as f64 / 1_000.0;
    let work = number(Axis::Work, ' ').unwrap_or(0.0);
    let strategies = number(Axis::Strategies, ' ').unwrap_or(1.0);
    let p50 = (900.0 * noise + work) * strategies.sqrt();
    let figures = |scale: f64| Distribution {
        count: 100_000,
        p50_ns: Some((p50 * scale) as u64),
        p99_ns: Some((p50 * scale * 4.0) as u64),
        p999_ns: Some((p50 * scale * 15.0) as u64),
        ..Distribution::default()
    };
    let fit = repeat != 1;
    let reason = format!("engine was preempted {seed} times a second: isolate it");
    RunOutline {
        strategies: strategies as u16,
        work_ns: work as u64,
        work_done_ns: None,
        fit_for_latency: fit,
        reasons: if fit { Vec::new() } else { vec![reason] },
        offered_per_s: Some(number(Axis::Rate, 'k').unwrap_or(20.0) * 1e3),
        measures: [("rt_venue".to_owned(), figures(1.0)), ("submit".to_owned(), figures(0.3))].into(),
        run: format!("{values:?} {repeat}"),
        schedule_hash: format!("{repeat:016x}"),
        ..golden::<Experiment>().rows[0].outline().unwrap()
    }
}

fn sweep(kind: Kind, axes: &[(Axis, &[&str])], repeats: u32) -> Experiment {
    let mut points: Vec<Vec<(Axis, &str)>> = vec![Vec::new()];
    for (axis, values) in axes {
        let longer = |point: &Vec<_>| {
            let point = point.clone();
            values.iter().map(move |value| [point.clone(), vec![(*axis, *value)]].concat())
        };
        points = points.iter().flat_map(longer).collect();
    }
    let name = |values: &[(Axis, &str)]| {
        values.iter().map(|(axis, value)| format!("{axis}={value}")).collect::<Vec<_>>().join(" ")
    };
    let setting = |values: &Vec<(Axis, &str)>| Setting {
        name: name(values),
        values: values.iter().map(|(axis, value)| (*axis, (*value).to_owned())).collect(),
        ..Setting::default()
    };
    let settings: Vec<Setting> = points.iter().map(setting).collect();
    let mut rows = ordered_rows(&settings, 0..repeats, 0);
    for row in &mut rows {
        let values = points.iter().find(|values| name(values) == row.setting.name).unwrap();
        (row.folder, row.figures) = ("x".into(), Figures::from_outline(&outline(values, row.repeat)));
    }
    let axis = |(axis, values): &(Axis, &[&str])| AxisRecord {
        axis: *axis,
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    Experiment {
        kind,
        state: ExperimentState::Complete,
        axes: axes.iter().map(axis).collect(),
        repeats,
        asked_repeats: repeats,
        rows,
        compared: None,
        figures: Figures::default(),
        ..golden()
    }
}

fn write(sweep: &Experiment) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    sweep.save(folder.path()).unwrap();
    let html = written(folder.path());
    keep(&format!("{}-{}.html", sweep.kind, sweep.axes[0].axis), &html);
    (folder, html)
}

fn drawings(html: &str) -> Vec<String> {
    plots(html).into_iter().map(|(id, _)| id).collect()
}

fn lines(plot: &Value) -> Vec<&str> {
    plot["series"].as_array().unwrap().iter().map(|series| series["name"].as_str().unwrap()).collect()
}

#[test]
fn varied_axes_have_charts() {
    let work: &[&str] = &["0ns", "500ns", "1000ns", "1500ns"];
    let techniques: (_, &[&str]) = (Axis::Technique, &["spsc-mux", "array-queue"]);
    let sweep = |axes: &[(Axis, &[&str])], repeats| sweep(Kind::Sweep, axes, repeats);
    let of_work = sweep(&[(Axis::Work, work), techniques], 5);
    let (_, html) = write(&of_work);
    assert_eq!(drawings(&html), ["work-p99", "work-p50", "points-0", "points-1", "points-2"]);
    let chart = plot(&html, "work-p99");
    assert_eq!(lines(&chart), ["spsc-mux", "array-queue"]);
    let line = series(&chart, "spsc-mux");
    assert_eq!((numbers(&line["x"]).len(), &line["dots"]), (4, &serde_json::json!([0, 1, 2, 3])));
    // The second dot of the first line is spsc-mux at 500 ns, without that work.
    let point = &ExperimentRuns::new(&of_work).points[2];
    assert_eq!(point.name, "work=500ns technique=spsc-mux");
    let p99 = point.spread(|run| Some(run.measures["rt_venue"].p99_ns? as f64)).unwrap();
    let drawn = ["x", "y", "low", "high"].map(|key| numbers(&line[key])[1].unwrap());
    assert_eq!(drawn, [500.0, p99.median - 500.0, p99.low - 500.0, p99.high - 500.0]);

    let (_, html) = write(&sweep(&[(Axis::Rate, &["20k", "100k", "400k", "800k"])], 3));
    assert_eq!(drawings(&html), ["rate-p99", "rate-p50", "points-0", "points-1", "points-2"]);
    assert_eq!(["rate-p99", "rate-p50"].map(|id| lines(&plot(&html, id)).concat()), ["all", "all"]);
    let (_, html) = write(&sweep(&[(Axis::Strategies, &["1", "8", "64", "256"]), techniques], 3));
    assert_eq!(drawings(&html)[..5], [0, 1, 2, 3, 4].map(|number| format!("strategies-{number}")));
}

/// Returns a line of a bill with this ratio and interval.
fn line(percentile: Percentile, ratio: Option<[f64; 3]>, verdict: Verdict) -> ComparisonLine {
    let known = before::<IsolationCosts>("bill.json").rows[0].differences[0].clone();
    let difference = ratio.map(|[low, value, high]| {
        let ratio = Estimate { value, low, high };
        Difference { ratio, difference: ratio, ..known.difference.unwrap() }
    });
    let why = if ratio.is_none() { vec!["too few repeats".into()] } else { Vec::new() };
    ComparisonLine { percentile, difference, verdict, why, ..known }
}

#[test]
fn bill_page_shows_differences_and_verdicts() {
    let levels: (_, &[&str]) = (Axis::Isolation, &["thread", "process", "sandbox"]);
    let sweep = sweep(Kind::Bill, &[levels, (Axis::Technique, &["spsc-mux", "array-queue", "pipe"])], 5);
    let technique = |name: &str| Technique::from_name(name).unwrap();
    let row = |isolation: Isolation,
               name: &str,
               reference: Option<&str>,
               differences: Vec<ComparisonLine>| IsolationCostRow {
        isolation: isolation.into(),
        technique: technique(name),
        variant: String::new(),
        reference: reference
            .map(|name| Reference { isolation: Isolation::Thread.into(), technique: technique(name) }),
        caveats: if differences.is_empty() { vec![] } else { vec!["unfit in 2 of 10 runs".into()] },
        differences,
        ..before::<IsolationCosts>("bill.json").rows[0].clone()
    };
    let lines = |low: f64, verdict| {
        let ratio = Some([low, low + 0.02, low + 0.05]);
        vec![line(Percentile::P50, ratio, verdict), line(Percentile::P99, ratio, Verdict::Equivalent)]
    };
    let incomparable = vec![line(Percentile::P50, None, Verdict::CannotTell)];
    let isolation_costs = IsolationCosts {
        rows: vec![
            row(Isolation::Thread, "spsc-mux", None, vec![]),
            row(Isolation::Thread, "array-queue", Some("crossbeam-array-queue"), lines(0.9, Verdict::Faster)),
            row(Isolation::Process, "spsc-mux", Some("spsc-mux"), lines(0.99, Verdict::Equivalent)),
            row(Isolation::Process, "pipe", Some("pipe"), incomparable),
            row(Isolation::Sandbox, "spsc-mux", Some("spsc-mux"), lines(1.04, Verdict::Slower)),
        ],
        ..before("bill.json")
    };
    let html = analysis::html::experiment_page(&isolation_cost::report(
        &ExperimentRuns::new(&sweep),
        &isolation_costs,
    ));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("report.html"), &html).unwrap();
    keep("bill.html", &html);

    let chart = plot(&html, "ratio-p50");
    let names = texts(&chart["x"]["names"]);
    let expected = [
        "array-queue, thread vs crossbeam-array-queue",
        "spsc-mux, process vs thread",
        "pipe, process vs thread",
        "spsc-mux, sandbox vs thread",
    ];
    assert_eq!(names, expected);
    let drawn = ["low", "y", "high"].map(|key| numbers(&chart["series"][0][key]));
    assert_eq!(drawn.each_ref().map(|values| values[3]), [1.04, 1.06, 1.09].map(Some));
    assert_eq!(drawn[1][2], None, "not comparable");
    assert_eq!(chart["lines"][0]["at"], 1.0);
    let text = text(&html);
    for words in [
        "+6.0%, slower",
        "-8.0%, faster",
        "+1.0%, equivalent",
        "a note",
        "too few repeats",
        "array-queue thread, spsc-mux process, pipe process, spsc-mux sandbox: unfit in 2",
        "36 of 45 runs are fit",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!html.contains("ratio-p999"), "no row has a p99.9");
    let own = &html[html.find("id=\"bill\"").unwrap()..html.find("id=\"points\"").unwrap()];
    assert_eq!(own.matches("<table>").count(), 1, "one wide table");
    assert!(own.contains("p99.9 stall-free ratio") || own.contains("p50 ratio"), "{own}");

    if let Some(rendered) = open(&folder.path().join("report.html"), false) {
        check_quiet(&rendered);
        assert_eq!(rendered.dom.matches("<canvas").count(), plots(&html).len());
    }
}

#[test]
fn compare_page_has_one_scale_for_latencies() {
    let record =
        Experiment { axes: Vec::new(), ..sweep(Kind::Compare, &[(Axis::Idle, &["spin", "park"])], 5) };
    let folder = tempfile::tempdir().unwrap();
    record.save(folder.path()).unwrap();
    let html = written(folder.path());
    keep("compare.html", &html);
    assert_eq!(drawings(&html), ["compare-ratio", "points-0"]);
    let chart = plot(&html, "points-0");
    let names = texts(&chart["x"]["names"]);
    let of = |percentile: &str| ["spin", "park"].map(|idle| format!("{percentile}, idle={idle}"));
    assert_eq!(names, [of("p50"), of("p99"), of("p99.9")].concat());
    let places: Vec<f64> = numbers(&chart["series"][0]["y"]).into_iter().flatten().collect();
    assert!(places[0] < places[2] && places[2] < places[4], "one scale: {places:?}");
}

#[test]
fn legend_of_one_color_is_left_out() {
    let html = |values: &[&str]| write(&sweep(Kind::Sweep, &[(Axis::Isolation, values)], 3)).1;
    assert!(html(&["thread", "process"]).contains("class=\"note legend\""));
    assert!(!html(&["thread"]).contains("class=\"note legend\""));
}

#[test]
fn unmeasured_points_are_left_out() {
    let levels: (_, &[&str]) = (Axis::Isolation, &["thread", "process"]);
    let mut sweep = sweep(Kind::Bill, &[levels, (Axis::Technique, &["spsc-mux", "pipe"])], 3);
    sweep.state = ExperimentState::Interrupted;
    let unmeasured = sweep.settings()[3].name.clone();
    let is_unmeasured = |row: &&mut Row| row.setting.name == unmeasured;
    sweep.rows.iter_mut().filter(is_unmeasured).for_each(|row| row.figures = Figures::default());
    let mut invalid = sweep.rows[2].outline().unwrap();
    invalid.valid = false;
    sweep.rows[2].figures = Figures::from_outline(&invalid);
    let (_, html) = write(&sweep);
    let verdict = &having(&html, "data-planned")[0];
    let counts = ["data-planned", "data-runs", "data-sound"].map(|key| verdict.whole(key).unwrap());
    assert_eq!(counts, [12, 9, 8]);
    assert!(text(&html).contains("no sound run"));
    sweep.rows.iter_mut().for_each(|row| row.figures = Figures::default());
    let (_, html) = write(&sweep);
    assert!(drawings(&html).is_empty());
}

#[test]
fn search_page_shows_trials_and_result() {
    let step = |rate_per_s, p999_ns, held| RateStep {
        rate_per_s,
        achieved_per_s: Some(rate_per_s),
        p999_ns,
        p99_ns: None,
        held,
        runs_held: 0,
        why: String::new(),
        folders: Vec::new(),
    };
    let first =
        [step(1e4, Some(9_000), true), step(4e4, Some(250_000), false), step(2e4, Some(80_000), true)];
    let mut sweep = sweep(Kind::MaxRate, &[(Axis::Technique, &["spsc-mux", "pipe"])], 1);
    sweep.rows.iter_mut().for_each(|row| row.figures = Figures::default());
    let limits = SearchLimits {
        bound_ns: 100_000,
        percentile: Percentile::P999,
        max_steps: 3,
        first_per_s: 1e4,
        max_open: None,
    };
    sweep.figures.insert(SearchLimits::NAME, &limits);
    let [spsc, pipe] = ["technique=spsc-mux", "technique=pipe"];
    first.iter().for_each(|tried| sweep.add_step(spsc, tried));
    sweep.add_step(pipe, &step(200.0, None, false));
    let (_, html) = write(&sweep);
    assert_eq!(drawings(&html), ["search"]);
    let chart = plot(&html, "search");
    let pairs =
        |series: &Value| numbers(&series["x"]).into_iter().zip(numbers(&series["y"])).collect::<Vec<_>>();
    let dots: Vec<_> = chart["series"].as_array().unwrap().iter().flat_map(pairs).collect();
    assert_eq!(dots[..3], [(1e4, 9e3), (2e4, 8e4), (4e4, 2.5e5)].map(|(x, y)| (Some(x), Some(y))));
    assert_eq!(dots[3..], [(1e4, 1e5), (4e4, 1e5)].map(|(x, y)| (Some(x), Some(y))), "the bound");
    assert!(text(&html).contains("20,000"), "the highest that was held");
    assert!(text(&html).contains("after all 3 steps"));
    assert!(text(&html).contains("even the lowest rate tried, 200/s, is not held"));
}
