//! The chart of an order's path. `tailed` is a synthetic run whose slowest orders are far slower
//! than its median.

use super::dom::{elements, having};
use super::fixtures::tailed;
use crate::common::evaluated;
use record::document::Document;
use std::path::Path;
use verdict::html::order_path;
use verdict::summary::Summary;

/// Returns the XML fault of a text: mismatched tags, unquoted attributes, or unescaped characters.
fn malformed(xml: &str) -> Option<String> {
    let mut open = Vec::new();
    let (before, rest) = xml.split_once('<')?;
    if !before.is_empty() || xml.contains(|c: char| c.is_control() && c != '\n') {
        return Some("text before the first tag, or a control character".into());
    }
    for part in rest.split('<') {
        let Some((tag, text)) = part.split_once('>') else { return Some(format!("no end: <{part}")) };
        let is_entity =
            |after: &str| ["amp;", "lt;", "gt;", "quot;"].iter().any(|name| after.starts_with(name));
        if text.split('&').skip(1).chain(tag.split('&').skip(1)).any(|after| !is_entity(after)) {
            return Some(format!("a bare &: <{part}"));
        }
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Some(format!("</{name}> closes nothing"));
            }
            continue;
        }
        let name = tag.split(char::is_whitespace).next().unwrap_or("");
        // name="value" name="value": every other part is a name.
        let parts: Vec<&str> = tag[name.len()..].split('"').collect();
        let (names, rest) = parts.split_at(parts.len() - 1);
        let is_name =
            |part: &&str| part.trim().strip_suffix('=').is_some_and(|name| !name.contains([' ', '=']));
        if parts.len().is_multiple_of(2)
            || !rest[0].trim().is_empty()
            || !names.iter().step_by(2).all(is_name)
        {
            return Some(format!("<{tag}>: an attribute without quotes"));
        }
        open.push(name);
    }
    open.pop().map(|name| format!("<{name}> is never closed"))
}

/// Checks that a chart is XML with a title and a description, causes no request, and has colors for
/// both schemes.
#[track_caller]
fn check(svg: &str) {
    assert_eq!(malformed(svg), None);
    let found = elements(svg);
    let root = &found[0];
    assert_eq!((root.name.as_str(), root.get("xmlns")), ("svg", Some("http://www.w3.org/2000/svg")));
    assert_eq!((root.get("role"), root.get("aria-labelledby")), (Some("img"), Some("title desc")));
    for name in ["title", "desc"] {
        let (_, text) = svg.split_once(&format!("<{name} id=\"{name}\">")).unwrap();
        assert!(!text.starts_with('<'), "an empty {name}");
    }
    let foreign = ["script", "image", "foreignobject", "use", "a", "iframe"];
    assert!(found.iter().all(|element| !foreign.contains(&element.name.as_str())));
    assert!(found.iter().all(|element| element.attributes.keys().all(|name| !name.starts_with("on"))));
    let asks = ["href", "url(", "@import", "@font-face"];
    assert!(asks.iter().all(|word| !svg.contains(word)) && svg.matches("http").count() == 1);

    let (_, style) = svg.split_once("<style>").unwrap();
    let (light, dark) = style.split_once("@media (prefers-color-scheme: dark)").unwrap();
    for class in ["paper", "box", "dim", "inside", "piece", "c3", "c4", "c5", "c6", "c7", "c8"] {
        let rule = format!(".{class} {{");
        let listed = format!(".{class},");
        for scheme in [light, dark] {
            assert!(
                scheme.contains(&rule) || scheme.contains(&listed),
                "{class} has one color for both schemes"
            );
        }
    }
}

#[test]
fn exported_order_path_is_self_contained_and_sums() {
    let (_folder, summary) = evaluated(&tailed(2_000));
    let svg = order_path(&summary).unwrap();
    check(&svg);

    let around_median = &summary.percentile_breakdowns[0];
    let pieces = having(&svg, "data-stage");
    assert_eq!(pieces.len(), around_median.stages.len());
    for (piece, stage) in pieces.iter().zip(&around_median.stages) {
        assert_eq!(
            (piece.get("data-stage"), piece.number("data-ns")),
            (Some(&*stage.stage), Some(stage.mean_ns))
        );
    }
    let sum: f64 = pieces.iter().filter_map(|piece| piece.number("data-ns")).sum();
    assert!((sum - around_median.rt_venue_ns).abs() < 0.01, "{sum}");
    let widths: Vec<f64> = pieces.iter().filter_map(|piece| piece.number("width")).collect();
    assert!((widths.iter().sum::<f64>() - 1000.0).abs() < 0.5, "{widths:?}");
    assert!(svg.contains("not fit for latency claims"), "the verdict is on it");
}

/// Checks the README's drawing, `docs/src/images/order-path.svg`. It is drawn from the run summary
/// in the folder `order-path` next to it. After a change of the drawing, `BULKHEAD_GOLDEN=1 cargo
/// test -p analysis --test all readme_order_path` draws it again.
#[test]
fn readme_order_path_is_current() {
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/images");
    let summary = Summary::read(&images.join("order-path")).unwrap();
    let (file, drawn) = (images.join("order-path.svg"), order_path(&summary).unwrap());
    if std::env::var_os("BULKHEAD_GOLDEN").is_some() {
        std::fs::write(file, drawn).unwrap();
        return;
    }
    assert!(drawn == std::fs::read_to_string(file).unwrap(), "another drawing: see this test's comment");
}

#[test]
fn hostile_names_are_escaped_in_order_path() {
    let (_folder, mut summary) = evaluated(&tailed(2_000));
    summary.machine.cpu_model = "</desc><script>alert(1)</script>\u{1b}[2J&nbsp;\u{0}\u{fffe}".into();
    summary.started = format!("]]>\"'{}", "<".repeat(100_000));
    let svg = order_path(&summary).unwrap();
    check(&svg);
    assert!(svg.len() < 10_000, "{}", svg.len());
}

#[test]
fn run_without_median_has_no_order_path() {
    let (_folder, summary) = evaluated(&tailed(10));
    assert!(order_path(&summary).is_none());
}

#[test]
fn malformed_svg_is_detected() {
    for bad in [
        "<svg><g></svg>",
        "<svg a=b></svg>",
        "<svg>a & b</svg>",
        "<svg>",
        "<svg></svg></svg>",
        "x<svg></svg>",
    ] {
        assert!(malformed(bad).is_some(), "{bad}");
    }
    assert_eq!(malformed("<svg a=\"b\" c=\"d\"><g></g>&amp;</svg>\n"), None);
}
