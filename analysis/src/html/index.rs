//! One page for a folder of many runs: each with its verdict, its figures and a small drawing of it over time, newest first.

use super::page::{page, section};
use super::small::{self, Stretch};
use super::{HTML_FILE, overview};
use crate::document::Document;
use crate::experiment::SweepRecord;
use crate::report::units::{count, duration_or_dash};
use crate::summary::Summary;
use crate::timeline::Timeline;
use maud::{Markup, html};
use std::path::Path;

/// So many runs are drawn; the rest is counted.
const SHOWN: usize = 200;

/// A run of the folder.
struct Run {
    folder: String,
    summary: Summary,
    timeline: Option<Timeline>,
    has_page: bool,
}

/// The page; `None`: no run lies in the folder, and no experiment.
pub fn index_page(folder: &Path) -> Option<String> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort_unstable_by(|a, b| b.cmp(a));
    let (mut runs, mut experiments, mut unread) = (Vec::new(), Vec::new(), 0);
    let mut left = 0;
    for name in names {
        let path = folder.join(&name);
        if path.join(SweepRecord::FILE).exists() {
            experiments.push((name, path.join(HTML_FILE).exists()));
        } else if path.join(Summary::FILE).exists() {
            if runs.len() == SHOWN {
                left += 1;
                continue;
            }
            match Summary::read(&path) {
                Ok(summary) => runs.push(Run {
                    timeline: Timeline::read(&path).ok(),
                    has_page: path.join(HTML_FILE).exists(),
                    folder: name,
                    summary,
                }),
                Err(_) => unread += 1,
            }
        }
    }
    if runs.is_empty() && experiments.is_empty() {
        return None;
    }
    let stretches: Vec<Stretch<'_>> =
        runs.iter().filter_map(|run| run.timeline.as_ref()).map(Stretch::whole).collect();
    let ends = small::shared(&stretches);
    let fit = runs.iter().filter(|run| run.summary.fit_for_latency).count();
    let content = html! {
        @if !experiments.is_empty() {
            (section("experiments", "Experiments", &html! {
                ul { @for (name, has_page) in &experiments { li { (linked(name, *has_page)) } } }
            }))
        }
        @if !runs.is_empty() {
            (section("runs", "Runs", &html! {
                p {
                    "The line is the median of rt_venue over time, the band reaches up to the greatest; the upright axis is the same for all."
                }
                div class="multiples" { @for (number, run) in runs.iter().enumerate() { (card(number, run, ends)) } }
            }))
        }
        @if left > 0 { p class="note" { (count(left)) " older runs are not drawn." } }
        @if unread > 0 { p class="note" { (count(unread)) " runs have a summary of another version, or a damaged one." } }
    };
    let many = if runs.len() == 1 { "1 run".into() } else { format!("{} runs", count(runs.len() as u64)) };
    let subject = format!("{many}, {fit} fit for latency claims");
    let dim = format!(
        "{}, bulkhead {}",
        folder.file_name().unwrap_or_default().to_string_lossy(),
        env!("CARGO_PKG_VERSION")
    );
    Some(page("Runs", &subject, &dim, &content))
}

/// The name, as a way to the page where there is one: files beside this one, nothing is served.
fn linked(name: &str, has_page: bool) -> Markup {
    html! { @if has_page { a href={ (encoded(name)) "/" (HTML_FILE) } { (name) } } @else { (name) } }
}

/// What a path may hold as it is, all else in percent and hexadecimal digits.
fn encoded(name: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    name.bytes()
        .map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn card(number: usize, run: &Run, ends: (f64, f64)) -> Markup {
    let summary = &run.summary;
    let (class, mark) =
        if summary.fit_for_latency { ("ink good-ink", "✔") } else { ("ink bad-ink", "✘") };
    let figures = &summary.rt_venue;
    html! {
        figure class="multiple" data-run=(summary.run) data-p50-ns=[figures.p50_ns] {
            figcaption { span class=(class) { (mark) } " " (linked(&run.folder, run.has_page)) }
            p class="note" { (overview::subject(summary)) }
            p class="note" {
                "rt_venue p50 " b { (duration_or_dash(figures.p50_ns)) } ", p99 " b { (duration_or_dash(figures.p99_ns)) } ", p99.9 "
                (duration_or_dash(figures.p999_ns)) ", " (count(summary.orders.sent)) " orders"
                @match summary.incidents.len() {
                    0 => {},
                    1 => ", 1 death",
                    more => { ", " (count(more as u64)) " deaths" },
                }
            }
            @match &run.timeline {
                Some(timeline) => (small::draw(&format!("run-{number}"), &summary.run, &Stretch::whole(timeline), ends)),
                None => p class="none" { "no time line" },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_the_folder_or_the_page() {
        assert_eq!(encoded("20260101-run"), "20260101-run");
        assert_eq!(encoded("a b/../\"<"), "a%20b%2F..%2F%22%3C");
    }

    #[test]
    fn a_folder_without_runs_has_no_index() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(index_page(folder.path()), None);
        std::fs::create_dir(folder.path().join("x")).unwrap();
        std::fs::write(folder.path().join("x/summary.json"), "{").unwrap();
        assert_eq!(index_page(folder.path()), None, "nothing that can be read");
    }
}
