//! The page of a run compared with its summary and its timeline.

use super::dom::{Element, check_alone, elements, having, text};
use super::fixtures::{page, tailed};
use crate::common::evaluated;
use crate::fixture::{Fixture, Shape};
use analysis::report::units::{counted, duration};
use analysis::summary::{Distribution, Measure, Summary};
use analysis::timeline::Timeline;
use protocol::flow::Stage;
use tempfile::TempDir;

/// Returns the percentiles that a chart shows for a measure.
pub fn percentiles(element: &Element) -> [Option<u64>; 8] {
    ["count", "min-ns", "p50-ns", "p90-ns", "p99-ns", "p999-ns", "p9999-ns", "max-ns"]
        .map(|key| element.whole(&format!("data-{key}")))
}

fn percentile_fields(figures: &Distribution) -> [Option<u64>; 8] {
    let Distribution { count, min_ns, p50_ns, p90_ns, p99_ns, p999_ns, p9999_ns, max_ns, .. } = *figures;
    [Some(count), min_ns, p50_ns, p90_ns, p99_ns, p999_ns, p9999_ns, max_ns]
}

fn named(name: &str) -> Measure {
    Measure::ALL.into_iter().find(|measure| measure.name() == name).unwrap()
}

/// Checks that every figure in the page matches the summary.
pub fn check_figures(html: &str, summary: &Summary) {
    let series: Vec<Element> = having(html, "data-p50-ns");
    assert_eq!(series.len(), 6);
    for element in &series {
        let measure = named(element.get("data-series").unwrap());
        assert_eq!(percentiles(element), percentile_fields(&summary.distribution(measure)), "{measure:?}");
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

    let drawn = |name: &str| {
        let all = having(html, "data-points");
        all.into_iter().find(|path| path.get("data-series") == Some(name)).unwrap()
    };
    for (name, values) in [("max", &timeline.max_ns), ("p99", &timeline.p99_ns), ("p50", &timeline.p50_ns)] {
        let path = drawn(name);
        assert_eq!(path.whole("data-points"), Some(values.iter().flatten().count() as u64), "{name}");
        assert_eq!(path.whole("data-max-ns"), values.iter().flatten().max().copied(), "{name}");
    }
    let stalls = having(html, "data-stall");
    assert_eq!(stalls.len(), timeline.stalls.len());
    assert!(!stalls.is_empty());
    for (element, stall) in stalls.iter().zip(&timeline.stalls) {
        assert_eq!(element.whole("data-at-ns"), Some(stall.at_ns));
        assert_eq!(element.whole("data-length-ns"), Some(stall.length_ns));
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
    // On a logarithmic axis the position is linear in the logarithm of the value.
    let dots: Vec<(f64, f64)> = having(&html, "data-mark")
        .iter()
        .map(|dot| (dot.number("data-ns").unwrap().log10(), dot.number("cy").unwrap()))
        .collect();
    assert!(dots.len() >= 20, "{}", dots.len());
    let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.0.total_cmp(&b.0);
    let (min, max) = (dots.iter().min_by(by_value).unwrap(), dots.iter().max_by(by_value).unwrap());
    let slope = (max.1 - min.1) / (max.0 - min.0);
    assert!(slope < -20.0, "more is higher: {slope}");
    for (log, y) in &dots {
        let expected = min.1 + slope * (log - min.0);
        assert!((y - expected).abs() < 0.3, "{y} for 10^{log}, not {expected}");
    }
    // On a linear axis a length is a share of the sum.
    let bars: Vec<Element> = having(&html, "data-stage")
        .into_iter()
        .filter(|bar| bar.get("data-percentile") == Some("p99"))
        .collect();
    let sum = |key: &str| bars.iter().filter_map(|bar| bar.number(key)).sum::<f64>();
    for bar in &bars {
        let (share, drawn) =
            (bar.number("data-ns").unwrap() / sum("data-ns"), bar.number("width").unwrap() / sum("width"));
        assert!((share - drawn).abs() < 0.001, "{bar:?}");
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
        assert!(having(&html, "data-p99-ns").is_empty() == summary.rt_venue.p99_ns.is_none());
        assert!(text.contains("Not fit for latency claims"));
        assert!(summary.containment.is_none() && having(&html, "data-incident").is_empty());
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
    assert!(!tags.iter().any(|tag| ["script", "img", "u"].contains(&tag.as_str())));
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
