//! The verdict, settings and main figures at the top of a run's page.

use super::page::{fact_columns, folded_reasons, table};
use crate::report::machine_facts;
use crate::report::units::{count, counted, duration, duration_or_dash, percent, plain};
use crate::report::{result_fields, setup_fields};
use crate::summary::{Distribution, Summary};
use crate::table::Grid;
use maud::{Markup, html};
use protocol::plan::{Role, ThreadPlan, Trading};
use record::cpu_list;
use std::collections::BTreeSet;

/// Formats the verdict on whether the run's latencies may be quoted, with its reasons, as HTML.
pub fn verdict(summary: &Summary) -> Markup {
    let (class, mark) =
        if summary.fit_for_latency { ("verdict good", "✔") } else { ("verdict bad", "✘") };
    let (first, rest) = summary.verdict().split_at(1);
    let text = first.to_uppercase() + rest;
    html! {
        section class=(class) data-valid=(summary.valid) data-fit=(summary.fit_for_latency) {
            h2 { span aria-hidden="true" { (mark) } " " (text) }
            (folded_reasons(&summary.reasons))
            @if !summary.violations.is_empty() {
                h3 { "Violations" }
                ul { @for violation in &summary.violations { li { (count(violation.count)) " × " (violation.first) } } }
            }
        }
    }
}

/// Formats a run's rt_venue percentiles and maximum, its p99 from due, and the rate and number of
/// orders sent in large type, as HTML.
pub fn headline(summary: &Summary) -> Markup {
    let figures = &summary.rt_venue;
    // A tail percentile is shown without the machine's stalls as well, with the share of the
    // orders that this is about.
    let free = |of: fn(&Distribution) -> Option<u64>| {
        let free = summary.stall_free.as_ref()?;
        let (value, share) = (duration(of(&free.rt_venue)?), percent(Some(1.0 - free.excluded_share)));
        Some(format!("stall-free {value}, on {share} of the orders"))
    };
    let tiles = [
        ("rt_venue p50", figures.p50_ns, None),
        ("rt_venue p99", figures.p99_ns, free(|figures| figures.p99_ns)),
        ("rt_venue p99.9", figures.p999_ns, free(|figures| figures.p999_ns)),
        ("greatest", figures.max_ns, None),
        ("p99 from due", summary.rt_venue_from_due.p99_ns, None),
    ];
    html! {
        div class="tiles" {
            @for (name, value, free) in tiles {
                div class="tile" {
                    div class="value" { (duration_or_dash(value)) } div class="name" { (name) }
                    @if let Some(free) = free { div class="name" { (free) } }
                }
            }
            div class="tile" {
                div class="value" { (summary.rate.achieved_per_s.map_or_else(|| "–".into(), |rate| format!("{}/s", plain(rate)))) }
                div class="name" { (count(summary.orders.sent)) " orders sent" }
            }
        }
    }
}

/// Returns the subtitle of the run's page: technique, isolation levels, threading, strategies and
/// venues.
pub fn subject(summary: &Summary) -> String {
    let plan = &summary.plan;
    let [strategy_kinds, venue_kinds] = plan.trading().kind_labels();
    format!(
        "{}, isolation {}, threading {}, {}, {}",
        summary.technique,
        summary.isolation,
        summary.threading,
        counted(plan.trading().strategies.into(), "strategy") + &strategy_kinds,
        counted(plan.trading().venues.into(), "venue") + &venue_kinds
    )
}

/// Formats the machine, the settings and the plan of the run as HTML.
pub fn facts(summary: &Summary) -> Markup {
    let input = &summary.input;
    let [_, (_, on)] = setup_fields(summary);
    // Rounded before it is written, so that a drift of −0 is never shown.
    let drift = (summary.clock.drift_ppm * 10.0).round() / 10.0 + 0.0;
    let trading = summary.plan.trading();
    let is_delayed = trading.books().count() < usize::from(trading.venues);
    let delay = if is_delayed { input.delay.clone() } else { "none: the venues are exchanges".into() };
    // Host and CPU are already among the machine's facts.
    let clock = format!("{}, drift {drift:.1} ppm", on[2..].join(", "));
    let arrivals = format!("{}, seed {}, schedule {}", input.arrivals, input.seed, input.hash);
    let build = summary.build.to_string();
    let own =
        [("build", build), ("clock", clock), ("arrivals", arrivals), ("venue delay", delay)].into_iter();
    let own = own.chain(result_fields(summary).into_iter().map(|(name, parts)| (name, parts.join(", "))));
    let own = own.map(|(name, text)| (name.to_owned(), text));
    html! {
        (fact_columns(&machine_facts(&summary.machine).into_iter().chain(own).collect::<Vec<_>>()))
        (table(&plan(summary)))
        @if !summary.notes.is_empty() {
            ul class="note" { @for note in &summary.notes { li { (note) } } }
        }
    }
}

/// More threads than this are shown as runs of threads that are alike.
const UNFOLDED: usize = 24;

fn plan(summary: &Summary) -> Grid {
    let threads = &summary.plan.threads;
    let fold = threads.len() > UNFOLDED;
    let kind = |thread: &ThreadPlan| thread.roles.first().map(std::mem::discriminant);
    let alike = |a: &ThreadPlan, b: &ThreadPlan| {
        fold && kind(a) == kind(b) && a.idle == b.idle && a.roles.len() == b.roles.len()
    };
    let groups: Vec<&[ThreadPlan]> = threads.chunk_by(alike).collect();
    let cores = |group: &&[ThreadPlan]| {
        let cores: BTreeSet<u32> = group.iter().filter_map(|thread| thread.core).collect();
        let cores: Vec<u32> = cores.into_iter().collect();
        if cores.is_empty() { "any".into() } else { cpu_list::format(&cores) }
    };
    Grid::from_rows(
        "plan",
        "Plan",
        1,
        &[
            ("thread", &|group: &&[ThreadPlan]| span(&group[0].name, &group[group.len() - 1].name)),
            ("core", &cores),
            ("idle", &|group| group[0].idle.to_string()),
            ("runs", &|group| match group {
                [thread] => runs(summary.plan.trading(), thread),
                several => format!("{} threads", several.len()),
            }),
        ],
        &groups,
    )
}

/// The roles of a thread; of many like ones the first and the last.
fn runs(trading: &Trading, thread: &ThreadPlan) -> String {
    match thread.roles.as_slice() {
        [Role::Orchestrator, Role::Gateway(low), .., Role::Gateway(high)] => {
            format!("orchestrator, {}", span(&format!("gateway-{low}"), &format!("gateway-{high}")))
        }
        roles => roles.iter().map(|role| trading.role_name(*role)).collect::<Vec<_>>().join(", "),
    }
}

fn span(first: &str, last: &str) -> String {
    if first == last { first.into() } else { format!("{first} … {last}") }
}
