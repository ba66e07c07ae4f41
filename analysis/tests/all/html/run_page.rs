//! The page of a run compared with its summary and its timeline.

use super::dom::{Element, check_alone, elements, having, numbers, plot, plots, series, text};
use super::fixtures::{page, tailed};
use crate::common::evaluated;
use crate::fixture::{Fixture, Shape};
use base64::Engine as _;
use merge::timeline::Timeline;
use protocol::flow::Stage;
use tempfile::TempDir;
use verdict::report::units::{counted, duration};
use verdict::summary::{Measure, Summary};

fn named(name: &str) -> Measure {
    Measure::ALL.into_iter().find(|measure| measure.name() == name).unwrap()
}

/// Checks that every figure in the page matches the summary.
pub fn check_figures(html: &str, summary: &Summary) {
    let drawn = plot(html, "percentiles");
    let lines = drawn["series"].as_array().unwrap();
    assert_eq!(lines.len(), 6);
    for line in lines {
        let measure = named(line["name"].as_str().unwrap());
        let figures = summary.distribution(measure);
        let wanted = [figures.p50_ns, figures.p90_ns, figures.p99_ns, figures.p999_ns, figures.p9999_ns];
        let wanted: Vec<(f64, Option<f64>)> = [2.0, 10.0, 100.0, 1_000.0, 10_000.0]
            .into_iter()
            .zip(wanted)
            .filter_map(|(inverse, ns)| Some((inverse, Some(ns? as f64))))
            .collect();
        let (x, y) = (numbers(&line["x"]), numbers(&line["y"]));
        let dots = line["dots"].as_array().unwrap().iter().map(|at| at.as_u64().unwrap() as usize);
        let dots: Vec<(f64, Option<f64>)> = dots.map(|at| (x[at].unwrap(), y[at])).collect();
        assert_eq!(dots, wanted, "{measure:?}");
        let end = [figures.count, figures.max_ns.unwrap()].map(|value| Some(value as f64));
        assert_eq!(numbers(&line["tail"]), end, "{measure:?}");
        assert!(x.is_sorted() && y.is_sorted(), "{measure:?}");
    }
    let pieces = having(html, "data-stage");
    assert_eq!(pieces.len(), 12);
    for piece in &pieces {
        let around = summary
            .percentile_breakdowns
            .iter()
            .find(|around| piece.get("data-percentile") == Some(&around.percentile));
        let stage = around.unwrap().stages.iter().find(|part| piece.get("data-stage") == Some(&part.stage));
        assert_eq!(piece.number("data-ns"), Some(stage.unwrap().mean_ns));
    }
    for around in &summary.percentile_breakdowns {
        let sum: f64 = around.stages.iter().map(|part| part.mean_ns).sum();
        assert!(
            (sum - around.rt_venue_ns).abs() <= around.rt_venue_ns * 1e-9,
            "the pieces add up: {around:?}"
        );
        let [low, high] = [around.from_ns, around.to_ns].map(|ns| ns as f64);
        assert!((low - 1.0..=high + 1.0).contains(&around.rt_venue_ns), "{around:?}");
    }
    let verdict = &having(html, "data-fit")[0];
    assert_eq!(verdict.get("data-valid"), Some(if summary.valid { "true" } else { "false" }));
    assert_eq!(verdict.get("data-fit"), Some(if summary.fit_for_latency { "true" } else { "false" }));
    let text = text(html);
    for thread in &summary.processes {
        assert!(text.contains(&thread.role) && text.contains(&duration(thread.longest_gap_ns)), "{thread:?}");
    }
    for reason in &summary.reasons {
        let escaped = reason.replace('&', "&amp;").replace('"', "&quot;").replace('>', "&gt;");
        assert!(text.contains(&escaped) || text.contains(reason), "{reason}");
    }
}

fn timeline(folder: &TempDir) -> Timeline {
    serde_json::from_slice(&std::fs::read(folder.path().join("timeline.json")).unwrap()).unwrap()
}

/// Checks that the timeline agrees with the summary, and that the page draws it.
fn check_timeline(html: &str, timeline: &Timeline, summary: &Summary) {
    assert_eq!(timeline.count.iter().sum::<u64>(), summary.rt_venue.count);
    assert_eq!(timeline.max_ns.iter().flatten().max().copied(), summary.rt_venue.max_ns);
    assert!(timeline.count.len() <= 600 && timeline.count.len() > 300, "{}", timeline.count.len());
    assert_eq!(timeline.p99_ns.len(), timeline.count.len().div_ceil(timeline.p99_every));
    let known = timeline.p99_ns.iter().flatten().count();
    assert!(known * 2 > timeline.p99_ns.len(), "most groups have enough orders: {timeline:?}");

    let drawn = plot(html, "timeline");
    let of = |values: &[Option<u64>]| -> Vec<Option<f64>> {
        values.iter().map(|ns| ns.map(|ns| ns as f64)).collect()
    };
    let shown = [("greatest", &timeline.max_ns), ("p99", &timeline.p99_ns), ("p50", &timeline.p50_ns)];
    for (name, values) in shown {
        assert_eq!(numbers(&series(&drawn, name)["y"]), of(values), "{name}");
    }
    let bucket = timeline.bucket_ns as f64;
    let begin = numbers(&series(&drawn, "p99")["x"]);
    assert_eq!(begin[1], Some(bucket * timeline.p99_every as f64));
    assert_eq!(series(&drawn, "p50")["width"].as_f64(), Some(bucket));
    let stalls = drawn["spans"].as_array().unwrap();
    assert_eq!(stalls.len(), timeline.stalls.len());
    assert!(!stalls.is_empty());
    for (span, stall) in stalls.iter().zip(&timeline.stalls) {
        assert_eq!(span["from"].as_u64(), Some(stall.at_ns));
        assert_eq!(span["to"].as_u64(), Some(stall.at_ns + stall.length_ns));
        assert_eq!(stall.stage, "return", "the reports were made late");
    }
    assert!(timeline.stalls_total > timeline.stalls.len() as u64);
}

#[test]
fn figures_match_summary_and_are_drawn_to_scale() {
    let (folder, summary) = evaluated(&tailed(20_000));
    assert!(summary.rt_venue.p999_ns > summary.rt_venue.p50_ns.map(|ns| ns * 20), "{:?}", summary.rt_venue);
    let html = page(&folder);
    check_figures(&html, &summary);
    check_alone(&html);
    assert!(html.len() < 400_000, "{} bytes", html.len());
    check_timeline(&html, &timeline(&folder), &summary);
    // A length is a share of the sum.
    let bars: Vec<Element> = having(&html, "data-stage")
        .into_iter()
        .filter(|bar| bar.get("data-percentile") == Some("p99"))
        .collect();
    for bar in &bars {
        assert_eq!(bar.get("style"), Some(format!("flex:{}", bar.get("data-ns").unwrap()).as_str()));
    }
    assert_eq!(bars[0].get("data-stage"), Some(Stage::Submit.name()));
}

/// The figures that most readers want are in the first columns; a verdict's reasons are folded.
#[test]
fn answer_comes_first_and_details_are_folded() {
    let (folder, summary) = evaluated(&tailed(2_000));
    let html = page(&folder);
    let reasons = counted(summary.reasons.len() as u64, "reason");
    let folded = html.find(&format!("<details><summary>{reasons}</summary>")).unwrap();
    assert!(html.find("Not fit").unwrap() < folded && folded < html.find("class=\"tiles\"").unwrap());
    let table = &html[html.find(">what it is</th>").unwrap()..];
    let heads: Vec<&str> = table.split("</thead>").next().unwrap().split("</th>").collect();
    let names: Vec<&str> = heads.iter().filter_map(|head| head.rsplit('>').next()).collect();
    assert_eq!(names[..3], ["what it is", "p50", "p90"], "{names:?}");
    assert_eq!(names[3..9], ["p99", "p99.9", "p99.99", "max", "min", "orders"]);
    // Names are text, although they end with a number: the plan wraps on a narrow screen.
    let plan = &html[html.find(">runs</th>").unwrap()..];
    assert!(plan.contains("<td class=\"\">strategy-0</td>"), "{}", &plan[..400]);
}

#[test]
fn page_says_when_orders_are_too_few() {
    for (orders, strategies) in [(0, 1), (1, 1), (15, 1), (150, 30)] {
        let (folder, summary) = evaluated(&Fixture::new(Shape { orders, strategies, ..Shape::PLAIN }));
        let html = page(&folder);
        check_alone(&html);
        let text = text(&html);
        assert_eq!(
            text.contains("Too few orders came back for those around the p99 of rt_venue"),
            orders * u64::from(strategies) < 1_000
        );
        assert_eq!(text.contains("No order came back."), orders == 0);
        let dots = plots(&html).into_iter().filter(|(id, _)| id == "percentiles").flat_map(|(_, plot)| {
            let dots = series(&plot, "rt_venue")["dots"].as_array().cloned();
            dots.unwrap_or_default()
        });
        assert!((dots.count() > 2) == summary.rt_venue.p99_ns.is_some());
        assert!(text.contains("Not fit for latency claims"));
        assert!(summary.containment.is_none() && plots(&html).iter().all(|(id, _)| id != "deaths"));
        assert!(!text.contains("Strategies that died") && !text.contains("cancelled"));
    }
}

#[test]
fn external_names_are_escaped() {
    let mut fixture = tailed(100);
    fixture.record.machine.hostname = "<script>alert(1)</script>".into();
    fixture.record.machine.cpu_model = "\" onload=\"x & <u>".into();
    fixture.record.warnings.push("</style><img src=x>".into());
    let (folder, _) = evaluated(&fixture);
    let html = page(&folder);
    let tags: Vec<String> = elements(&html).into_iter().map(|element| element.name).collect();
    assert!(!tags.iter().any(|tag| ["img", "u"].contains(&tag.as_str())));
    assert_eq!(tags.iter().filter(|tag| *tag == "script").count(), plots(&html).len());
    assert!(html.contains("&lt;script&gt;alert(1)"));
}

#[test]
fn unusual_figures_are_drawn() {
    let mut fixture = tailed(2_000);
    for words in &mut fixture.statuses {
        words[1..].fill(u64::MAX);
    }
    fixture.record.core_to_core_rtt.before_ns = Some(f64::MAX);
    fixture.record.input.window_ns = u64::MAX;
    let (folder, _) = evaluated(&fixture);
    check_alone(&page(&folder));
}

/// The script may weigh 120 KB: with it a page stays a file that can be sent.
#[test]
fn script_of_plots_is_allowed_by_hash_and_small() {
    let (folder, _) = evaluated(&tailed(2_000));
    let html = page(&folder);
    let (_, rest) = html.split_once("<script id=\"plots\">").unwrap();
    let (script, _) = rest.split_once("</script>").unwrap();
    let style = html.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    assert!(script.len() + style.len() < 120_000, "{} bytes", script.len());
    assert!(script.contains("MIT License") && script.contains("uPlot (v1.6.32)"), "with its license");
    let file = folder.path().join("script.js");
    std::fs::write(&file, script).unwrap();
    let output = std::process::Command::new("sha256sum").arg(&file).output().unwrap();
    let hex = String::from_utf8(output.stdout).unwrap();
    let bytes: Vec<u8> =
        (0..32).map(|byte| u8::from_str_radix(&hex[2 * byte..2 * byte + 2], 16).unwrap()).collect();
    let hash = format!("script-src 'sha256-{}';", base64::engine::general_purpose::STANDARD.encode(bytes));
    assert!(html.contains(&hash), "SCRIPT_HASH in html/page.rs has to be that of {hash}");
}

#[test]
fn page_without_plots_has_no_script() {
    let (folder, _) = evaluated(&Fixture::new(Shape { orders: 0, strategies: 1, ..Shape::PLAIN }));
    let html = page(&folder);
    check_alone(&html);
    assert!(plots(&html).is_empty() && !html.contains("<script") && !html.contains("script-src"));
}
