//! The pages of a sweep and of a bill, from a synthetic `sweep.json`.

use super::browser::{check_quiet, open};
use super::dom::{having, text};
use super::fixtures::{keep, written};
use crate::fixture::scatter;
use analysis::document::Document;
use analysis::experiment::{Bill, SweepRecord};
use analysis::machine::Machine;
use analysis::summary::Distribution;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Returns the outline of a run with these settings, with some noise.
fn outline(values: &[(&str, &str)], repeat: u32) -> Value {
    let of = |axis: &str| values.iter().find(|(name, _)| *name == axis).map_or("", |(_, value)| value);
    let seed = values.iter().flat_map(|(_, value)| value.bytes()).fold(7, |a, b| scatter(a ^ u64::from(b)));
    let noise = 1.0 + (scatter(seed ^ u64::from(repeat)) % 100) as f64 / 1_000.0;
    let work: f64 = of("work").trim_end_matches("ns").parse().unwrap_or(0.0);
    let strategies: f64 = of("strategies").parse().unwrap_or(1.0);
    let rate: f64 = of("rate").trim_end_matches('k').parse().unwrap_or(20.0) * 1e3;
    let technique = match of("technique") {
        "pipe" => 12.0,
        "array-queue" => 1.15,
        _ => 1.0,
    };
    let isolation = match of("isolation") {
        "process" => 1.02,
        "sandbox" => 1.04,
        _ => 1.0,
    };
    let used = ((rate * 2.0 * (300.0 + work)) / 1e9).min(0.97);
    let p50 = (900.0 * technique * isolation * noise + work) / (1.0 - used) * strategies.sqrt();
    let figures = |scale: f64| Distribution {
        count: 100_000,
        min_ns: Some((p50 * scale * 0.7) as u64),
        p50_ns: Some((p50 * scale) as u64),
        p90_ns: Some((p50 * scale * 1.6) as u64),
        p99_ns: Some((p50 * scale * 4.0) as u64),
        p999_ns: Some((p50 * scale * 15.0) as u64),
        p9999_ns: None,
        max_ns: Some((p50 * scale * 90.0) as u64),
        mean_ns: Some(p50 * scale * 1.1),
    };
    let named = |axis: &str, default: &str| match of(axis) {
        "" => default.to_owned(),
        name => name.to_owned(),
    };
    json!({
        "run": "x", "technique": named("technique", "spsc-mux"), "isolation": named("isolation", "process"),
        "threading": "shared", "idle": "spin", "venues": 4, "capacity": 8192,
        "machine": { "hostname": "host", "cpu_model": "a processor", "cores_allowed": [0, 1] },
        "schedule_hash": "0", "oversubscribed": false, "floor_ns": null,
        "strategies": strategies as u16, "work_ns": work as u64, "complete": true, "valid": true,
        "fit_for_latency": repeat != 1, "reasons": if repeat == 1 { vec![format!("engine was preempted {seed} times a second: isolate it")] } else { vec![] },
        "offered_per_s": rate, "achieved_per_s": rate * 0.999, "utilisation": used,
        "returned": 100_000, "cpu_ns": 5_000_000_000u64 * strategies as u64, "startup_ns": 20_000_000 + 3_000_000 * strategies as u64,
        "pss_bytes": 30_000_000 + 4_000_000 * strategies as u64, "page_faults": 1_000, "context_switches": 300,
        "measures": { "rt_venue": figures(1.0), "submit": figures(0.3), "completion": figures(0.3) },
        "something_new": { "that": "this page does not know" },
    })
}

/// Returns a sweep over these axes.
fn sweep(kind: &str, axes: &[(&str, &[&str])], repeats: u32) -> Value {
    let mut points: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
    for (axis, values) in axes {
        let longer = |point: &Vec<(_, _)>| {
            let point = point.clone();
            values.iter().map(move |value| [point.clone(), vec![(*axis, *value)]].concat())
        };
        points = points.iter().flat_map(longer).collect();
    }
    let point = |values: &Vec<(&str, &str)>| {
        let name: Vec<String> = values.iter().map(|(axis, value)| format!("{axis}={value}")).collect();
        let runs: Vec<Value> = (0..repeats)
            .map(|repeat| json!({ "repeat": repeat, "seed": repeat, "folder": "x", "outline": outline(values, repeat) }))
            .collect();
        let values: std::collections::BTreeMap<&str, &str> = values.iter().copied().collect();
        json!({ "name": name.join(" "), "values": values, "settings": {}, "runs": runs })
    };
    json!({
        "schema": SweepRecord::schema(), "version": "0.1.0", "started": "2026-11-20T06:15:02Z", "kind": kind,
        "state": "complete", "launcher": [1, 2],
        "machine": Machine { hostname: "host".into(), cpu_model: "a processor".into(), ..Machine::default() },
        "axes": axes.iter().map(|(axis, values)| json!({ "axis": axis, "values": values })).collect::<Vec<_>>(),
        "repeats": repeats, "seed": 1, "base": {}, "keep_logs": false, "start_timeout_ns": 0, "notes": ["load as this machine carries it"],
        "points": points.iter().map(point).collect::<Vec<_>>(),
    })
}

fn write(sweep: &Value) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sweep.json"), sweep.to_string()).unwrap();
    let html = written(folder.path());
    let axis = sweep["axes"][0]["axis"].as_str().unwrap();
    keep(&format!("{}-{axis}.html", sweep["kind"].as_str().unwrap()), &html);
    (folder, html)
}

/// Returns the ids of the charts.
fn drawings(html: &str) -> Vec<String> {
    having(html, "role").iter().filter_map(|svg| svg.get("id").map(str::to_owned)).collect()
}

/// Returns the median of three or more values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn work_sweep_matches_seed_article_chart() {
    let sweep = sweep(
        "sweep",
        &[("work", &["0ns", "500ns", "1000ns", "1500ns"]), ("technique", &["spsc-mux", "array-queue"])],
        5,
    );
    let (_, html) = write(&sweep);
    assert_eq!(drawings(&html), ["work-p99", "work-p50", "points-0", "points-1", "points-2"]);
    let chart = &html[html.find("id=\"work-p99\"").unwrap()..html.find("id=\"work-p50\"").unwrap()];
    let lines: Vec<String> =
        having(chart, "data-line").iter().map(|g| g.get("data-line").unwrap().to_owned()).collect();
    assert_eq!(lines, ["spsc-mux", "array-queue"]);
    let dots = having(chart, "data-x");
    assert_eq!(dots.len(), 8);
    // The second dot of the first line is spsc-mux at 500 ns, without that work.
    let point = &sweep["points"][2];
    assert_eq!(
        (&point["values"]["technique"], &point["values"]["work"]),
        (&json!("spsc-mux"), &json!("500ns"))
    );
    let runs = point["runs"].as_array().unwrap();
    let p99 =
        runs.iter().map(|run| run["outline"]["measures"]["rt_venue"]["p99_ns"].as_f64().unwrap()).collect();
    assert_eq!(
        (dots[1].number("data-x"), dots[1].number("data-y")),
        (Some(500.0), Some(median(p99) - 500.0))
    );
}

#[test]
fn rate_and_strategy_axes_have_charts() {
    let (_, html) = write(&sweep("sweep", &[("rate", &["20k", "100k", "400k", "800k"])], 3));
    assert_eq!(drawings(&html), ["rate-p99", "rate-p50", "points-0", "points-1", "points-2"]);
    let lines: Vec<String> =
        having(&html, "data-line").iter().map(|g| g.get("data-line").unwrap().to_owned()).collect();
    assert_eq!(lines, ["all", "all"]);
    let (_, html) = write(&sweep(
        "sweep",
        &[("strategies", &["1", "8", "64", "256"]), ("technique", &["spsc-mux", "pipe"])],
        3,
    ));
    assert_eq!(drawings(&html)[..5], [0, 1, 2, 3, 4].map(|number| format!("strategies-{number}")));
}

/// Returns a line of a bill.
fn line(percentile: &str, ratio: Option<[f64; 3]>, verdict: &str, why: &[&str]) -> Value {
    let estimate = ratio.map(|[low, value, high]| json!({ "value": value, "low": low, "high": high }));
    let difference =
        estimate.map(|ratio| json!({ "pairs": 5, "method": "ranks", "ratio": ratio, "difference": ratio }));
    json!({
        "measure": "rt_venue", "percentile": percentile, "a_ns": 1.0, "b_ns": 2.0,
        "difference": difference, "verdict": verdict, "why": why,
    })
}

/// Returns a row of a bill with these lines.
fn row(isolation: &str, technique: &str, reference: Option<(&str, &str)>, lines: Vec<Value>) -> Value {
    let reference =
        reference.map(|(isolation, technique)| json!({ "isolation": isolation, "technique": technique }));
    json!({
        "isolation": isolation, "technique": technique, "runs": 5,
        "p50_ns": 1012.5, "p99_ns": 4100.0, "p999_ns": null, "reference": reference, "differences": lines,
        "caveats": if lines.is_empty() { vec![] } else { vec!["not fit for latency claims in 2 of 10 runs"] },
        "cpu_s_per_million": 52.1, "startup_ns": 21e6, "pss_bytes": 31e6, "page_faults": 120.0,
        "context_switches": 3.0, "contains": null,
    })
}

#[test]
fn bill_page_shows_differences_and_verdicts() {
    let levels: (&str, &[&str]) = ("isolation", &["thread", "process", "sandbox"]);
    let sweep = sweep("bill", &[levels, ("technique", &["spsc-mux", "array-queue", "pipe"])], 5);
    let lines = |low: f64, verdict: &str| {
        let ratio = Some([low, low + 0.02, low + 0.05]);
        vec![line("p50", ratio, verdict, &[]), line("p99", ratio, "no-difference-seen", &[])]
    };
    let thread = Some(("thread", "spsc-mux"));
    let bill = json!({
        "schema": Bill::schema(),
        "rows": [
            row("thread", "spsc-mux", None, vec![]),
            row("thread", "array-queue", Some(("thread", "crossbeam-array-queue")), lines(0.9, "faster")),
            row("process", "spsc-mux", thread, lines(0.99, "no-difference-seen")),
            row("process", "pipe", Some(("thread", "pipe")), vec![line("p50", None, "not-comparable", &["too few repeats"])]),
            row("sandbox", "spsc-mux", thread, lines(1.04, "slower")),
        ],
        "notes": ["a note of the bill"],
    });
    let (folder, _) = write(&sweep);
    std::fs::write(folder.path().join("bill.json"), bill.to_string()).unwrap();
    let html = written(folder.path());
    keep("bill.html", &html);

    let chart = &html[html.find("id=\"ratio-p50\"").unwrap()..html.find("id=\"ratio-p99\"").unwrap()];
    let rows = having(chart, "data-row");
    let names: Vec<&str> = rows.iter().map(|row| row.get("data-row").unwrap()).collect();
    let expected = [
        "array-queue, thread vs crossbeam-array-queue",
        "spsc-mux, process vs thread",
        "spsc-mux, sandbox vs thread",
    ];
    assert_eq!(names, expected);
    assert_eq!(
        ["data-low", "data-y", "data-high"].map(|key| rows[2].number(key).unwrap()),
        [1.04, 1.06, 1.09]
    );
    let text = text(&html);
    for words in [
        "+6.0%, slower",
        "-8.0%, faster",
        "+1.0%, no difference seen",
        "a note of the bill",
        "too few repeats",
    ] {
        assert!(text.contains(words), "{words}");
    }
    let caveat = "array-queue thread, spsc-mux process, pipe process, spsc-mux sandbox: not fit for latency claims in 2";
    assert!(text.contains(caveat));
    assert!(text.contains("36 of 45 runs are fit"), "{text}");
    assert!(!html.contains("ratio-p999"), "no row has a p99.9");

    if let Some(seen) = open(&folder.path().join("report.html"), false) {
        check_quiet(&seen);
    }
    std::fs::write(folder.path().join("bill.json"), "{\"schema\":\"bulkhead.bill/9\"}").unwrap();
    assert!(analysis::html::render(folder.path()).unwrap_err().to_string().contains("bill.json"));
}

#[test]
fn unmeasured_points_are_left_out() {
    let mut sweep =
        sweep("bill", &[("isolation", &["thread", "process"]), ("technique", &["spsc-mux", "pipe"])], 3);
    sweep["state"] = json!("interrupted");
    sweep["points"][3]["runs"] = json!([]);
    sweep["points"][2]["runs"][0]["outline"]["valid"] = json!(false);
    let (_, html) = write(&sweep);
    let verdict = &having(&html, "data-planned")[0];
    assert_eq!(
        ["data-planned", "data-runs", "data-sound"].map(|key| verdict.whole(key).unwrap()),
        [12, 9, 8]
    );
    assert!(text(&html).contains("no sound run"));
    for point in sweep["points"].as_array_mut().unwrap() {
        point["runs"] = json!([]);
    }
    let (_, html) = write(&sweep);
    assert!(drawings(&html).is_empty());
}

#[test]
fn search_page_shows_trials_and_result() {
    let mut sweep = sweep("max-rate", &[("technique", &["spsc-mux", "pipe"])], 0);
    let step = |rate: f64, p999: Option<u64>, held: bool| {
        let why = if held { "" } else { "p99.9 over the bound" };
        json!({ "rate_per_s": rate, "achieved_per_s": rate, "p999_ns": p999, "held": held, "why": why, "folders": [] })
    };
    let first =
        [step(1e4, Some(9_000), true), step(4e4, Some(250_000), false), step(2e4, Some(80_000), true)];
    sweep["search"] = json!({ "bound_ns": 100_000, "most_steps": 12, "first_per_s": 1e4, "points": [
        { "steps": first, "highest_per_s": 2e4, "ended": "within 5%" },
        { "steps": [step(1e4, None, false)], "highest_per_s": null, "ended": "not even the lowest rate" },
    ] });
    let (_, html) = write(&sweep);
    assert_eq!(drawings(&html), ["search"]);
    let dots: Vec<_> =
        having(&html, "data-x").iter().map(|dot| (dot.number("data-x"), dot.number("data-y"))).collect();
    assert_eq!(dots[..3], [(1e4, 9e3), (2e4, 8e4), (4e4, 2.5e5)].map(|(x, y)| (Some(x), Some(y))));
    assert_eq!(dots[3..], [(1e4, 1e5), (4e4, 1e5)].map(|(x, y)| (Some(x), Some(y))), "the bound");
    assert!(text(&html).contains("20,000"), "the highest that was held");
    assert!(text(&html).contains("not even the lowest rate"));
}
