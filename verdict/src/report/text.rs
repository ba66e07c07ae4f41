//! The terminal report: the verdict, then the settings, then the figures, and the answer again.

use super::tables::measures;
use super::text_writer::{BAD, DIM, GOOD, STRONG, TextReport};
use super::units::{count, counted, duration, duration_or_dash, percent, plain};
use super::{incidents, role_restarts, sections, trading};
use crate::summary::{ClockSummary, Distribution, InFlight, Summary, format_leave_one_out};
use protocol::plan::Pacing;
use record::fitness::Fitness;
use record::units::Bytes;

const MAX_ROWS: usize = 12;

/// Formats the terminal report of a run, no wider than the terminal. With escape codes only if
/// `color`.
pub fn terminal(summary: &Summary, color: bool) -> String {
    let mut page = TextReport::new(color);
    if let Some(found) = role_restarts::headline(&summary.role_restarts, summary.orders.lost) {
        page.item("", &found.text, Some(if found.is_whole { GOOD } else { BAD }));
        page.blank();
    }
    verdict(&mut page, summary);
    page.blank();
    for fields in [setup_fields(summary).to_vec(), result_fields(summary)] {
        fields.iter().for_each(|(name, parts)| page.fields(name, parts));
        page.blank();
    }
    page.text += &measures(summary, false).terminal(color);
    for grid in sections(summary, MAX_ROWS).iter().flat_map(|(_, grids)| grids) {
        page.blank();
        page.text += &grid.terminal(color);
    }
    if !summary.notes.is_empty() {
        page.blank();
        for note in &summary.notes {
            page.item("note: ", note, Some(DIM));
        }
    }
    page.blank();
    ending(&mut page, summary);
    page.text
}

/// Adds the answer again, because a long report scrolls its top away: the verdict with its first
/// reasons, and `rt_venue`.
fn ending(page: &mut TextReport, summary: &Summary) {
    let Summary { valid, fit_for_latency: is_fit, ref reasons, .. } = *summary;
    let fitness = Fitness { is_fit, reasons: reasons.clone() };
    let validity = if valid { "" } else { "invalid run, " };
    page.item("", &format!("{validity}{}", fitness.sentence()), Some(if is_fit { GOOD } else { BAD }));
    let Distribution { p50_ns, p99_ns, p999_ns, .. } = summary.rt_venue;
    let [p50, p99, p999] = [p50_ns, p99_ns, p999_ns].map(duration_or_dash);
    page.line(&format!("rt_venue p50 {p50}, p99 {p99}, p99.9 {p999}"), Some(STRONG));
}

fn verdict(page: &mut TextReport, summary: &Summary) {
    let mark = if summary.fit_for_latency { "✔" } else { "✘" };
    let text = summary.verdict().to_uppercase();
    let style = if summary.fit_for_latency { GOOD } else { BAD };
    match summary.reasons.as_slice() {
        [] => page.line(&format!("{mark} {text}"), Some(style)),
        [reason] => page.item(&format!("{mark} {text}: "), reason, Some(style)),
        reasons => {
            page.line(&format!("{mark} {text}, for {} reasons:", reasons.len()), Some(style));
            for reason in reasons {
                page.item("  · ", reason, None);
            }
        }
    }
    if !summary.valid {
        page.blank();
        page.line("violations", Some(STRONG));
        for violation in &summary.violations {
            page.item("  · ", &format!("{} × {}", count(violation.count), violation.first), None);
        }
    }
}

/// A named row of the run's report with the texts of its columns.
pub type NamedFields = (&'static str, Vec<String>);

pub(crate) fn setup_fields(summary: &Summary) -> [NamedFields; 2] {
    let plan = &summary.plan;
    let [strategy_kinds, venue_kinds] = plan.trading().kind_labels();
    let parts = [
        summary.technique.name().into(),
        format!("isolation {}", summary.isolation),
        format!("threading {}", summary.threading),
        format!("idle {}", summary.idle),
        counted(plan.trading().strategies.into(), "strategy") + &strategy_kinds,
        counted(plan.trading().venues.into(), "venue") + &venue_kinds,
        match summary.pacing {
            Pacing::Closed => "closed loop".into(),
            Pacing::Scheduled => arrivals(summary),
        },
    ];
    let priority = plan.priority.map(|fifo| format!("priority fifo:{fifo}"));
    let run: Vec<String> = [summary.run.clone()].into_iter().chain(parts).chain(priority).collect();
    let floor: String = match (summary.core_to_core_rtt.before_ns, summary.core_to_core_rtt.after_ns) {
        (Some(before), Some(after)) => format!("core to core {before:.0} ns, after {after:.0} ns"),
        (Some(only), None) | (None, Some(only)) => format!("core to core {only:.0} ns"),
        (None, None) => "core to core not measured".into(),
    };
    let out_of_step =
        summary.core_to_core_rtt.unsynchronized_ns.map(|ns| format!(", out of step {ns:.0} ns"));
    let floor = floor + &out_of_step.unwrap_or_default();
    let ClockSummary { source, read_ns, step_ns, stamps_ns, .. } = summary.clock;
    let stamps = format!("stamps ({}) {stamps_ns:.0} ns of rt_venue", summary.plan.stamps);
    let clock = format!("{source} clock, {read_ns:.1} ns a read, steps of {step_ns:.1} ns");
    let on = vec![summary.machine.hostname.clone(), summary.machine.cpu_model.clone(), clock, stamps, floor];
    [("run", run), ("on", on)]
}

/// Returns the arrivals; for a recorded flow with its length and speed.
fn arrivals(summary: &Summary) -> String {
    let input = &summary.input;
    match (&input.file, input.offered_per_s) {
        (Some(file), Some(rate)) => {
            format!("recorded in {file}, {} at {}/s", duration(input.window_ns), plain(rate))
        }
        _ => format!("{} arrivals", input.arrivals),
    }
}

pub(crate) fn result_fields(summary: &Summary) -> Vec<NamedFields> {
    let mut fields: Vec<NamedFields> = Vec::new();
    let orders = &summary.orders;
    let named = |name: &str, number: u64| format!("{name} {}", count(number));
    let if_any = |name: &str, number: u64| if number > 0 { named(name, number) } else { String::new() };
    fields.push((
        "orders",
        vec![
            named("scheduled", orders.scheduled),
            named("sent", orders.sent),
            named("returned", orders.returned),
            named("rejected", orders.rejected),
            if_any("cancelled", orders.cancelled),
            if_any("orphaned", orders.orphaned),
            named("lost", orders.lost),
            named("full", orders.full),
        ],
    ));
    let rate = |name: &str, rate: Option<f64>| rate.map(|rate| format!("{name} {}/s", plain(rate)));
    let rates = &summary.rate;
    let rates = [
        rate("offered", rates.offered_per_s),
        rate("sent", rates.achieved_per_s),
        rate("completed", rates.completed_per_s),
    ];
    fields.push(("rate", rates.into_iter().flatten().collect()));
    let flight = &summary.in_flight;
    let optional = |name: &str, number: Option<f64>| number.map(|number| format!("{name} {}", plain(number)));
    let flight = [
        optional("measured", flight.measured),
        optional("by Little's law", flight.littles_law),
        open_orders_difference(flight),
        flight.max.map(|max| format!("at most {}", count(max))),
    ];
    fields.push(("in flight", flight.into_iter().flatten().collect()));
    let mut engine = vec![
        format!("orchestrator busy {}", percent(summary.orchestrator_utilization)),
        format!("start-up {}", duration(summary.startup_ns)),
    ];
    if summary.work.requested_ns > 0 {
        let (requested, achieved) = (summary.work.requested_ns, summary.work.achieved_ns);
        engine.push(format!("work {} asked, {achieved:.0} ns done", duration(requested)));
    }
    fields.push(("engine", engine));
    if let Some(set) = &summary.working_set {
        let mut walks = vec![
            format!("{} a strategy", Bytes(set.bytes)),
            format!("{} an order", counted(set.lines_per_order, "line")),
        ];
        let times = [("walk mean", set.walk_ns), ("p50", set.walk_p50_ns), ("p99", set.walk_p99_ns)];
        let time = |(name, ns): (&str, Option<f64>)| Some(format!("{name} {}", duration(ns?.round() as u64)));
        walks.push(times.into_iter().filter_map(time).collect::<Vec<_>>().join(", "));
        walks.push(format!("walked {} times", plain(set.passes)));
        fields.push(("memory", walks));
    }
    let mut less_one = format_leave_one_out(&summary.leave_one_out);
    if !less_one.is_empty() {
        less_one.push("whichever strategy is left out".into());
        fields.push(("less one", less_one));
    }
    if let Some(containment) = &summary.containment {
        fields.push(("incidents", incidents::totals(containment)));
    }
    if let Some(traded) = &summary.trading {
        fields.push(("trading", trading::totals(traded)));
    }
    if let Some(market) = &summary.market {
        fields.push((
            "market",
            vec![
                named("versions", market.versions_written),
                named("heard", market.versions_heard),
                named("missed", market.versions_missed),
                named("orders triggered", market.tick_to_trade.count),
            ],
        ));
    }
    fields.iter_mut().for_each(|(_, parts)| parts.retain(|part| !part.is_empty()));
    fields
}

fn open_orders_difference(flight: &InFlight) -> Option<String> {
    let (difference, allowed) = (flight.difference?, flight.allowed?);
    Some(format!(
        "{} apart in {} samples, {} allowed",
        plain(difference.abs()),
        count(flight.samples),
        plain(allowed)
    ))
}
