//! What stands before the charts: the verdict, the figures in large, and what was run on what.

use crate::lists;
use crate::report::units::{count, duration, duration_or_dash, percent, plain};
use crate::summary::{Distribution, Summary, ThreadSummary, leave_one_out_words};
use crate::units::Nanos;
use maud::{Markup, html};
use protocol::plan::{Pacing, Role, ThreadPlan};

/// May the latencies be quoted, and if not, why.
pub fn verdict(summary: &Summary) -> Markup {
    let (class, mark) =
        if summary.fit_for_latency { ("verdict good", "✔") } else { ("verdict bad", "✘") };
    let (first, rest) = summary.verdict().split_at(1);
    let text = first.to_uppercase() + rest;
    html! {
        section class=(class) data-valid=(summary.valid) data-fit=(summary.fit_for_latency) {
            h2 { span aria-hidden="true" { (mark) } " " (text) }
            @if !summary.reasons.is_empty() {
                ul { @for reason in &summary.reasons { li { (reason) } } }
            }
            @if !summary.violations.is_empty() {
                h3 { "Violations" }
                ul { @for violation in &summary.violations { li { (count(violation.count)) " × " (violation.first) } } }
            }
        }
    }
}

/// The figures that are quoted, in large.
pub fn headline(summary: &Summary) -> Markup {
    let figures = &summary.rt_venue;
    // Where a tail stands, it stands without the machine's stalls as well, with the share that is taken out.
    let free = |of: fn(&Distribution) -> Option<u64>| {
        let free = summary.stall_free.as_ref()?;
        Some(format!(
            "stall-free {} (−{})",
            duration_or_dash(of(&free.rt_venue)),
            percent(Some(free.taken_out))
        ))
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

/// One line that says what was run.
pub fn subject(summary: &Summary) -> String {
    let plan = &summary.plan;
    let [strategy_kinds, venue_kinds] = plan.trading().kinds_in_words();
    let many =
        |number: u16, one: &str, more: &str| format!("{number} {}", if number == 1 { one } else { more });
    format!(
        "{}, isolation {}, threading {}, {}, {}",
        summary.technique,
        summary.isolation,
        summary.threading,
        many(plan.trading().strategies, "strategy", "strategies") + &strategy_kinds,
        many(plan.trading().venues, "venue", "venues") + &venue_kinds
    )
}

/// Machine, clock and floor on one side, load and engine on the other, the plan below.
pub fn facts(summary: &Summary) -> Markup {
    html! {
        div class="columns" {
            (list(&[machine(summary), clock(summary)].concat()))
            (list(&[load(summary), engine(summary)].concat()))
        }
        h3 { "Plan" }
        (plan(summary))
        @if !summary.notes.is_empty() {
            ul class="note" { @for note in &summary.notes { li { (note) } } }
        }
    }
}

type Fact = (&'static str, String);

fn list(facts: &[Fact]) -> Markup {
    html! { dl { @for (name, value) in facts { dt { (name) } dd { (value) } } } }
}

fn machine(summary: &Summary) -> Vec<Fact> {
    let machine = &summary.machine;
    let virtual_ = machine.hypervisor.as_ref().map_or_else(String::new, |name| format!(", virtual ({name})"));
    vec![
        ("machine", format!("{}{virtual_}", machine.hostname)),
        ("processor", machine.cpu_model.clone()),
        ("cores", format!("{} of {}", lists::format(&machine.cores_allowed), machine.cores_online)),
        (
            "kernel",
            format!(
                "Linux {}, governor {}",
                machine.kernel,
                machine.governor.as_deref().unwrap_or("not shown")
            ),
        ),
    ]
}

fn clock(summary: &Summary) -> Vec<Fact> {
    let clock = &summary.clock;
    let floor = &summary.floor;
    // Rounded before it is written: there is no drift of minus nothing.
    let drift = (clock.drift_ppm * 10.0).round() / 10.0 + 0.0;
    let between = floor.cores.map_or_else(String::new, |(a, b)| format!("cores {a} and {b}: "));
    let known = |ns: Option<f64>| ns.map_or_else(|| "not measured".into(), |ns| format!("{ns:.0} ns"));
    vec![
        (
            "clock",
            format!(
                "{}, {:.1} ns a read, steps of {:.1} ns, drift {drift:.1} ppm; stamps ({}) about {:.0} ns of rt_venue",
                clock.source, clock.read_ns, clock.step_ns, summary.plan.stamps, clock.stamps_ns
            ),
        ),
        (
            "floor",
            format!(
                "{between}{} before, {} after the run{}",
                known(floor.before_ns),
                known(floor.after_ns),
                floor.out_of_step_ns.map_or_else(String::new, |ns| format!(", {ns:.0} ns out of step"))
            ),
        ),
    ]
}

fn load(summary: &Summary) -> Vec<Fact> {
    let (input, orders, rate) = (&summary.input, &summary.orders, &summary.rate);
    let per_s = |rate: Option<f64>| rate.map_or_else(|| "–".into(), |rate| format!("{}/s", plain(rate)));
    let if_any = |number: u64, name: &str| {
        if number > 0 { format!("{} {name}, ", count(number)) } else { String::new() }
    };
    let arrivals = match summary.pacing {
        Pacing::Closed => "closed loop".into(),
        Pacing::Scheduled => match &input.file {
            Some(file) => format!("recorded in {file}, over {}", duration(input.window_ns)),
            None => format!("{} over {}", input.arrivals, Nanos(input.window_ns)),
        },
    };
    let trading = summary.plan.trading();
    let is_delayed = trading.books().count() < usize::from(trading.venues);
    let delay = if is_delayed { input.delay.clone() } else { "none: the venues are exchanges".into() };
    vec![
        ("arrivals", format!("{arrivals}, seed {}, schedule {}", input.seed, input.hash)),
        ("venue delay", delay),
        (
            "orders",
            format!(
                "{} scheduled, {} sent, {} returned, {} rejected, {}{}{} lost; {} pushes found a ring full",
                count(orders.scheduled),
                count(orders.sent),
                count(orders.returned),
                count(orders.rejected),
                if_any(orders.cancelled, "cancelled"),
                if_any(orders.orphaned, "orphaned"),
                count(orders.lost),
                count(orders.full)
            ),
        ),
        (
            "rate",
            format!(
                "offered {}, sent {}, completed {}",
                per_s(rate.offered_per_s),
                per_s(rate.achieved_per_s),
                per_s(rate.completed_per_s)
            ),
        ),
    ]
}

fn engine(summary: &Summary) -> Vec<Fact> {
    let known = |number: Option<f64>| number.map_or_else(|| "–".into(), plain);
    let flight = &summary.in_flight;
    let mut facts = vec![
        (
            "in flight",
            format!(
                "{} measured in {} samples, {} by Little's law, at most {}",
                known(flight.measured),
                count(flight.samples),
                known(flight.littles_law),
                flight.max.map_or_else(|| "–".into(), count)
            ),
        ),
        (
            "orchestrator",
            format!(
                "busy {} of its time, start-up {}",
                percent(summary.orchestrator_utilisation),
                duration(summary.startup_ns)
            ),
        ),
    ];
    let less_one = leave_one_out_words(&summary.leave_one_out);
    if !less_one.is_empty() {
        facts.push(("less one", format!("{}, whichever strategy is left out", less_one.join(", "))));
    }
    if let Some(fifo) = summary.plan.priority {
        facts.push(("priority", format!("fifo:{fifo}, of every role's thread")));
    }
    if summary.work.requested_ns > 0 {
        let work = &summary.work;
        facts.push((
            "work",
            format!("{} asked for, {:.0} ns done", duration(work.requested_ns), work.achieved_ns),
        ));
    }
    facts
}

/// More threads than this are shown as runs of threads that are alike.
const UNFOLDED: usize = 24;

/// Thread → core → idle.
fn plan(summary: &Summary) -> Markup {
    let threads = &summary.plan.threads;
    let fold = threads.len() > UNFOLDED;
    let kind = |thread: &ThreadPlan| thread.roles.first().map(std::mem::discriminant);
    let alike = |a: &ThreadPlan, b: &ThreadPlan| {
        fold && kind(a) == kind(b) && a.idle == b.idle && a.roles.len() == b.roles.len()
    };
    html! {
        table {
            thead { tr { th { "thread" } th class="n" { "core" } th { "idle" } th { "runs" } } }
            tbody { @for run in threads.chunk_by(alike) {
                @let cores: Vec<u32> = run.iter().filter_map(|thread| thread.core).collect();
                tr {
                    th scope="row" { (span(&run[0].name, &run[run.len() - 1].name)) }
                    td class="n" { @if cores.is_empty() { "any" } @else { (lists::format(&sorted(cores))) } }
                    td { (run[0].idle) }
                    td { @if run.len() == 1 { (runs(&run[0])) } @else { (run.len()) " threads" } }
                }
            } }
        }
    }
}

/// The roles of a thread; of many like ones the first and the last.
fn runs(thread: &ThreadPlan) -> String {
    match thread.roles.as_slice() {
        [Role::Orchestrator, Role::Gateway(low), .., Role::Gateway(high)] => {
            format!("orchestrator, {}", span(&format!("gateway-{low}"), &format!("gateway-{high}")))
        }
        roles => roles.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}

fn sorted(mut cores: Vec<u32>) -> Vec<u32> {
    cores.sort_unstable();
    cores.dedup();
    cores
}

fn span(first: &str, last: &str) -> String {
    if first == last { first.into() } else { format!("{first} … {last}") }
}

/// More threads than this are not listed one by one.
const THREADS: usize = 40;

/// What each thread cost and suffered; of many, those with the longest gaps.
pub fn threads(summary: &Summary) -> Markup {
    let mut shown: Vec<(usize, &ThreadSummary)> = summary.processes.iter().enumerate().collect();
    let hidden = shown.len().saturating_sub(THREADS);
    if hidden > 0 {
        shown.sort_by_key(|(_, thread)| std::cmp::Reverse(thread.longest_gap_ns));
        shown.truncate(THREADS);
        shown.sort_by_key(|(place, _)| *place);
    }
    html! {
        table {
            thead { tr {
                th { "thread" } th class="n" { "core" } th class="n" { "stamps" } th class="n" { "longest gap" } th class="n" { "busy" }
                th class="n" { "CPU" } th class="n" { "switches wanted" } th class="n" { "forced" }
                th class="n" { "faults" } th class="n" { "major" } th class="n" { "full" }
            } }
            tbody { @for (_, thread) in shown { tr data-thread=(thread.role) data-longest-gap-ns=(thread.longest_gap_ns) {
                @let restarts = thread.restarts(&summary.incidents);
                th scope="row" { (thread.role) @if restarts > 0 { " *" } }
                td class="n" { (thread.core.map_or_else(|| "–".into(), |core| core.to_string())) }
                td class="n" { (count(thread.records)) }
                td class="n" { (duration(thread.longest_gap_ns)) }
                td class="n" { (percent(thread.utilisation)) }
                td class="n" { (duration(thread.cpu_ns)) }
                td class="n" { (count(thread.voluntary_switches)) }
                td class="n" { (count(thread.involuntary_switches)) }
                td class="n" { (count(thread.minor_faults)) }
                td class="n" { (count(thread.major_faults)) }
                td class="n" { (count(thread.full)) }
            } } }
        }
        @if summary.processes.iter().any(|thread| thread.restarts(&summary.incidents) > 0) {
            p class="note" { "* started again: all but the stamps is of the last incarnation only." }
        }
        @if hidden > 0 { p class="note" { (hidden) " threads with shorter gaps are in summary.json." } }
        p class="note" {
            "The longest gap is the longest time between the starts of two duty cycles: what else ran on the core, or a sleep \
             that the idle strategy asked for."
        }
    }
}
