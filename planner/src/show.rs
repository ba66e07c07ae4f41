//! Prints the plan before the run, at most 80 columns wide.

use super::faults;
use super::resolved::{Input, Resolved};
use super::shm_space::bytes_needed;
use crate::config::value::SettingValue;
use crate::config::{Arrivals, FaultSpec};
use crate::host::Machine;
use comfy_table::{ContentArrangement, Table};
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::keys::STRATEGY_KEYS;
use protocol::plan::{
    Binary, ExchangePlacement, Isolation, OnDeath, Placement, Plan, Role, Speculation, ThreadPlan, Threading,
    Trading,
};
use record::cpu_list;
use record::fitness;
use record::numbers::{self, counted};
use record::numbers::{duration, plain};
use record::screen;
use record::units::{Bytes, Nanos, human_bytes};

const UNFOLDED: usize = 16;

/// Formats a run's plan for printing: machine, run, placement of threads, and notes on the figures.
pub fn show(plan: &Plan, resolved: &Resolved, machine: &Machine, warnings: &[String]) -> String {
    let mut facts = table();
    facts.add_row(["machine", &machine_line(machine)]);
    facts.add_row(["run", &run_line(plan)]);
    facts.add_row(["load", &load_line(plan, resolved)]);
    let free = machine.shm_free_bytes;
    let room = human_bytes(bytes_needed(plan));
    let mut memory = format!("{room} of /dev/shm, {} free", human_bytes(free));
    let settings = &plan.trading().memory;
    if settings.working_set_bytes > 0 {
        memory.push_str(&format!(", each strategy walks {} of its own", Bytes(settings.working_set_bytes)));
    }
    for (is_on, text) in [
        (settings.binary == Binary::Own, ", an executable for each strategy"),
        (settings.huge_pages, ", huge pages"),
        (settings.lock_memory, ", locked"),
    ] {
        memory.push_str(if is_on { text } else { "" });
    }
    facts.add_row(["memory", &memory]);
    for line in plan.trading().resource_lines() {
        facts.add_row(["limits", &line]);
    }
    for fault in &plan.faults {
        facts.add_row(["fault", &FaultSpec::from(fault).to_string()]);
    }
    if let Some(line) = on_death_line(plan) {
        facts.add_row(["on death", &line]);
    }

    let mut threads = table();
    threads.add_row(["thread", "core", "idle", "runs"]);
    for row in thread_rows(plan) {
        threads.add_row(row);
    }

    let mut notes = table();
    for note in notes_of(plan, resolved, machine) {
        notes.add_row(["note".to_string(), note]);
    }
    for warning in warnings {
        notes.add_row(["WARNING".to_string(), format!("Not fit for latency figures: {warning}.")]);
    }
    [facts, threads, notes].iter().map(trimmed).collect::<Vec<_>>().join("\n")
}

/// Formats a run's plan in a few lines: the processes, their load, and the warnings.
pub fn show_brief(plan: &Plan, resolved: &Resolved, warnings: &[String]) -> String {
    let level = format!("isolation {}", plan.isolation);
    let [strategies, venues] = [(plan.trading().strategies, "strategy"), (plan.trading().venues, "venue")]
        .map(|(number, noun)| counted(number.into(), noun));
    let technique = plan.technique.to_string();
    let mut lines = table();
    lines.add_row([[technique, level, strategies, venues, brief_load(plan, resolved)].join(" · ")]);
    for warning in warnings {
        lines.add_row([format!("WARNING: not fit for latency figures: {warning}.")]);
    }
    trimmed(&lines)
}

/// Returns the number of orders and their rate.
fn brief_load(plan: &Plan, resolved: &Resolved) -> String {
    let orders = counted(plan.trading().total_orders(), "order");
    match &resolved.input {
        Input::Drawn { arrivals: Arrivals::Stress, .. } | Input::Recorded { span_ns: None, .. } => orders,
        Input::Drawn { window_ns, .. } => format!("{orders} in {}", Nanos(*window_ns)),
        Input::Recorded { span_ns: Some(span), .. } => format!("{orders} in {}", duration(*span)),
    }
}

/// Creates an empty text table without borders or ruled lines, whose long cells are wrapped to fit
/// the screen's width.
pub fn table() -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(screen::width()).unwrap_or(u16::MAX));
    table
}

/// Returns a table's text without spaces at the ends of lines and before the first column.
pub fn trimmed(table: &Table) -> String {
    let text = table.to_string();
    let line = |line: &str| format!("{}\n", line.strip_prefix(' ').unwrap_or(line).trim_end());
    text.lines().map(line).collect()
}

fn machine_line(machine: &Machine) -> String {
    let mut parts = vec![
        if machine.cpu_model.is_empty() { "unknown CPU".into() } else { machine.cpu_model.clone() },
        format!("cores {} of {}", cpu_list::format(&machine.cores_allowed), machine.cores_online),
        format!("clock source {}", machine.clocksource),
        format!("Linux {}", machine.kernel),
    ];
    if let Some(hypervisor) = &machine.hypervisor {
        parts.push(format!("virtual ({hypervisor})"));
    }
    parts.join(", ")
}

fn run_line(plan: &Plan) -> String {
    let isolation = match plan.isolation.only() {
        Some(level) if level == Isolation::Thread => "one process, a thread each".into(),
        Some(level) if level == Isolation::Keys => "one process, a thread and a protection key each".into(),
        _ => format!("isolation {}, {}", plan.isolation, counted(plan.processes.len() as u64, "process")),
    };
    let [strategy_kinds, venue_kinds] = plan.trading().kind_labels();
    let priority =
        super::priority::plan_priority(plan).map_or_else(String::new, |fifo| format!(", priority {fifo}"));
    let spares = match plan.trading().spares().len() as u64 {
        0 => String::new(),
        count => format!(" ({} spare)", numbers::count(count)),
    };
    format!(
        "{}, {isolation}: {}, {}, rings of {} slots{priority}",
        plan.technique,
        counted(plan.trading().strategies.into(), "strategy") + &strategy_kinds + &spares,
        counted(plan.trading().venues.into(), "venue") + &venue_kinds,
        numbers::count(plan.trading().capacity.into()),
    )
}

fn load_line(plan: &Plan, resolved: &Resolved) -> String {
    let orders = counted(plan.trading().total_orders(), "order");
    let mut line = match &resolved.input {
        Input::Drawn { arrivals: Arrivals::Stress, .. } => format!("{orders} as fast as the rings take them"),
        Input::Drawn { arrivals, window_ns, .. } => {
            let rate = plan.trading().total_orders() as f64 * 1e9 / *window_ns as f64;
            let (arrivals, rate) = (arrivals.name(), numbers::count(rate.round() as u64));
            format!("{orders}, {arrivals} over {} ({rate}/s)", Nanos(*window_ns))
        }
        Input::Recorded { path, speed, span_ns } => {
            let pace = match speed {
                1.0 => "as recorded".into(),
                speed => format!("{speed} times as fast as recorded"),
            };
            let over = span_ns.filter(|span| *span > 0).map_or_else(String::new, |span| {
                let rate = plan.trading().total_orders() as f64 * 1e9 / span as f64;
                format!(" over {} ({}/s)", duration(span), plain(rate))
            });
            format!("{orders} of {}{over}, {pace}", path.display())
        }
    };
    // Exchanges have no delay.
    if plan.trading().books().count() < usize::from(plan.trading().venues) {
        line.push_str(&format!(", delay {}", resolved.settings.delay().text()));
    }
    line.push_str(&format!(", seed {}", resolved.settings.seed()));
    if plan.trading().work_ns > 0 {
        line.push_str(&format!(", work {} an order", Nanos(plan.trading().work_ns)));
    }
    line
}

/// Returns what follows from the death of a strategy, the engine and an exchange; `None` if the run
/// ends with each.
fn on_death_line(plan: &Plan) -> Option<String> {
    let strategy = match plan.on_death {
        OnDeath::Stop => return None,
        OnDeath::Continue if plan.isolation.has_groups() => {
            "the run continues without a strategy and its group"
        }
        OnDeath::Continue => "the run continues without a strategy",
        OnDeath::Restart if plan.isolation.has_groups() => "a strategy is restarted with its group",
        OnDeath::Restart => "a strategy is restarted",
    };
    let has_exchanges = plan.trading().books().count() > 0;
    let own_process = has_exchanges && plan.trading().exchange == ExchangePlacement::Process;
    let rest = match (plan.engine_is_restartable(), plan.exchanges_are_restartable()) {
        (true, _) => "engine and exchanges recover from their journals",
        (false, true) if has_exchanges => {
            "the run ends with the engine, an exchange recovers from its journal"
        }
        _ if own_process => "the run ends with the engine or an exchange",
        _ => "the run ends with the engine",
    };
    Some(format!("{strategy}; {rest}"))
}

/// Rows of the thread table; runs of like threads are one row if there are many.
fn thread_rows(plan: &Plan) -> Vec<[String; 4]> {
    let fold = plan.threads.len() > UNFOLDED;
    let alike = |a: &ThreadPlan, b: &ThreadPlan| {
        let kind = |t: &ThreadPlan| t.roles.first().map(std::mem::discriminant);
        let is_spare = |t: &ThreadPlan| matches!(t.roles[..], [Role::Strategy(strategy)] if plan.trading().is_spare(strategy));
        let is_alike = kind(a) == kind(b) && is_spare(a) == is_spare(b);
        fold && is_alike && a.roles.len() == b.roles.len() && a.idle == b.idle
    };
    plan.threads.chunk_by(alike).map(|threads| row(plan.trading(), threads)).collect()
}

fn row(trading: &Trading, threads: &[ThreadPlan]) -> [String; 4] {
    let mut cores: Vec<u32> = threads.iter().filter_map(|thread| thread.core).collect();
    cores.sort_unstable();
    cores.dedup();
    let cores = if cores.is_empty() { "any".into() } else { cpu_list::format(&cores) };
    let (first, last) = (&threads[0], &threads[threads.len() - 1]);
    let name = span(&first.name, &last.name);
    let runs = match first.roles.as_slice() {
        [Role::Orchestrator, Role::Gateway(low), .., Role::Gateway(high)] => {
            format!("orchestrator, {}", span(&format!("gateway-{low}"), &format!("gateway-{high}")))
        }
        [Role::Gateway(low), .., Role::Gateway(high)] => {
            span(&format!("gateway-{low}"), &format!("gateway-{high}"))
        }
        [Role::Strategy(index)] if trading.is_spare(*index) => "spare, not started".into(),
        [_] if threads.len() > 1 => format!("{} threads", threads.len()),
        [Role::Gateway(index)] if trading.credentials > 1 => trading.gateway_place(*index),
        [Role::Strategy(index)] if trading.credentials > 1 => {
            format!("credential-{}", trading.credential_of(*index))
        }
        [_] => String::new(),
        roles => roles.iter().map(|role| trading.role_name(*role)).collect::<Vec<_>>().join(", "),
    };
    [name, cores, first.idle.to_string(), runs]
}

fn span(first: &str, last: &str) -> String {
    if first == last { first.into() } else { format!("{first} … {last}") }
}

/// Returns which strategies share a protection key; `None` without strategies of level `keys`.
fn keys_note(plan: &Plan) -> Option<String> {
    let all: Vec<StrategyIndex> = plan.strategies_with_keys().collect();
    let Some(after) = all.get(STRATEGY_KEYS..).filter(|after| !after.is_empty()) else {
        let keys = counted(plan.strategy_keys() as u64, "protection key");
        return (!all.is_empty()).then(|| format!("{keys}: each strategy of level keys has its own."));
    };
    let shared: Vec<String> = (0..STRATEGY_KEYS.min(after.len()))
        .map(|first| {
            let sharing = all.iter().skip(first).step_by(STRATEGY_KEYS);
            sharing.map(|strategy| Role::Strategy(*strategy).to_string()).collect::<Vec<_>>().join("+")
        })
        .collect();
    Some(format!(
        "{STRATEGY_KEYS} protection keys for {} strategies of level keys. These share one and may write each other's memory: {}.",
        all.len(),
        shared.join(", ")
    ))
}

fn notes_of(plan: &Plan, resolved: &Resolved, machine: &Machine) -> Vec<String> {
    let mut notes = vec![match plan.threading {
        Threading::Shared if plan.placement != Placement::Engine => {
            let end = match (plan.can_lose_gateways(), plan.trading().credentials) {
                (false, _) => "ends the run",
                (true, 1) => "takes its venue down",
                (true, _) => "takes its venue down for its credential",
            };
            format!(
                "The gateways run in processes of their own: a wrong one {end} and cannot write what is not its own."
            )
        }
        Threading::Shared => {
            "Orchestrator and gateways take turns on one thread: dispatch and completion are \
                              hand-offs within a core, and an order may wait while another role has its turn."
                .to_string()
        }
        Threading::Dedicated => {
            "Every role has a core of its own: each hand-off goes from core to core.".into()
        }
    }];
    let used = |core: &u32| plan.threads.iter().any(|thread| thread.core == Some(*core));
    if !machine.cores_allowed.is_empty() && machine.cores_allowed.iter().all(used) {
        notes.push(
            "No core is left for the launcher and the operating system: they interrupt the roles.".into(),
        );
    }
    if plan.trading().credentials > 1 {
        let (last, of_last) = (plan.trading().gateways() - 1, plan.trading().credentials - 1);
        notes.push(format!(
            "Credentials 0 to {of_last} are assigned to strategies in turn; gateways are numbered by venue, then by \
             credential: gateway-{last} is {}.",
            plan.trading().gateway_place(GatewayIndex(last))
        ));
    }
    notes.extend(keys_note(plan));
    notes.extend(note_on_groups(plan));
    let is_closed = plan.trading().speculation == Speculation::Closed;
    if is_closed || plan.isolation.has_closed_speculation() {
        let whose = if is_closed { "strategies' processes" } else { "the processes of closed levels" };
        let rest = if is_closed && plan.isolation.has_threads() {
            "; those of strategies that are threads are not closed"
        } else {
            ""
        };
        notes.push(format!(
            "The speculation of {whose} over indirect branches is closed: the kernel issues a barrier at each switch \
             to and from them, where they share a core{rest}."
        ));
    }
    notes.extend(fitness::shared_cores_note(plan).map(|note| format!("{note}.")));
    notes.extend(super::priority::note(plan));
    notes.extend(faults::notes(plan, resolved));
    notes.extend(note_on_engine(plan));
    if resolved.settings.repeats().0 > 1 {
        notes.push(format!("{} runs, one after the other.", resolved.settings.repeats()));
    }
    notes
}

/// Returns which strategies share a process, if some do.
fn note_on_groups(plan: &Plan) -> Option<String> {
    const SHOWN: usize = 4;
    let groups = plan.groups();
    let named = |group: &Vec<StrategyIndex>| {
        let process = group.first().and_then(|first| plan.process_of(Role::Strategy(*first)))?;
        let strategies: Vec<String> = group.iter().map(|strategy| strategy.to_string()).collect();
        Some(format!("{} has strategies {}", plan.processes[process].name, strategies.join(", ")))
    };
    let mut texts: Vec<String> = groups.iter().take(SHOWN).filter_map(named).collect();
    if groups.len() > SHOWN {
        texts.push(format!("and so on, {} groups", groups.len()));
    }
    (!texts.is_empty()).then(|| {
        format!(
            "Strategies of a group share a process and die together, whichever is at fault: {}.",
            texts.join("; ")
        )
    })
}

/// Returns why the engine is not restarted where exchanges are: the run ends with it.
fn note_on_engine(plan: &Plan) -> Option<String> {
    if !plan.exchanges_are_restartable() || plan.engine_is_restartable() {
        return None;
    }
    let record = plan.technique.info();
    let is_checked =
        GatewayIndex::first(plan.trading().gateways()).any(|gateway| plan.validates_venue(gateway));
    let why = if plan.placement != Placement::Engine {
        "its gateways are in other processes: leave --process out".to_owned()
    } else if !(record.consumer_resumable && record.producer_resumable) {
        format!("{} cannot be resumed: use --technique spsc-mux", plan.technique)
    } else if is_checked {
        "a gateway checks its venue: leave faults of venues out".to_owned()
    } else {
        "not all venues are exchanges: use --venue book".to_owned()
    };
    Some(format!(
        "Exchanges are restarted from their journals. The engine is not, and the run ends with it: {why}."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures as tests;
    use crate::host::fake;
    use insta::assert_snapshot;
    use proptest::prelude::*;

    fn shown(settings_text: &str, machine: &Machine) -> String {
        let text = tests::shown(settings_text, machine);
        for line in text.lines() {
            assert!(line.chars().count() <= screen::DEFAULT_WIDTH, "{line}");
        }
        text
    }

    #[test]
    fn default_plan_of_two_core_machine_matches_snapshot() {
        assert_snapshot!(shown("", &fake::two_core_vm().machine()), @"
        machine  Fake CPU 2.6GHz, cores 0,1 of 2, clock source tsc, Linux 6.18.44,
                 virtual (unknown)
        run      spsc-mux, isolation process, 2 processes: 1 strategy, 4 venues, rings
                 of 8,192 slots
        load     100,000 orders, uniform over 5s (20,000/s), delay uniform:5ms..500ms,
                 seed 1
        memory   32 MiB of /dev/shm, 23.4 GiB free

        thread      core  idle  runs
        strategy-0  0     spin
        engine      1     spin  orchestrator, gateway-0 … gateway-3

        note  Orchestrator and gateways take turns on one thread: dispatch and
              completion are hand-offs within a core, and an order may wait while
              another role has its turn.
        note  No core is left for the launcher and the operating system: they
              interrupt the roles.
        ");
    }

    #[test]
    fn crowded_machine_plan_explains_shared_cores() {
        assert_snapshot!(shown("preset=seed", &fake::container().machine()), @"
        machine  Fake CPU 2.6GHz, cores 2,3 of 4, clock source hpet, Linux 6.18.44
        run      spsc-mux, isolation process, 9 processes: 8 strategies, 4 venues,
                 rings of 8,192 slots
        load     4,000,000 orders, uniform over 10s (400,000/s), delay
                 uniform:5ms..500ms, seed 1
        memory   1014 MiB of /dev/shm, 63 MiB free

        thread      core  idle   runs
        strategy-0  2     yield
        strategy-1  2     yield
        strategy-2  2     yield
        strategy-3  2     yield
        strategy-4  2     yield
        strategy-5  2     yield
        strategy-6  2     yield
        strategy-7  2     yield
        engine      3     spin   orchestrator, gateway-0 … gateway-3

        note     Orchestrator and gateways take turns on one thread: dispatch and
                 completion are hand-offs within a core, and an order may wait while
                 another role has its turn.
        note     No core is left for the launcher and the operating system: they
                 interrupt the roles.
        note     8 strategies share core 2 (idle yield): each waits for its turn, and
                 the figures have that wait.
        WARNING  Not fit for latency figures: no time stamp counter that the kernel
                 trusts: every stamp asks the kernel's clock, which costs more than
                 the hand-offs measured. Use a machine whose clock source is tsc.
        ");
    }

    #[test]
    fn placement_and_its_consequences_are_shown() {
        let comes_back = "venue=book exchange=process journal=process on_death=restart";
        let excluded = "The engine is not, and the run ends with it: ";
        for (settings_text, shows, text) in [
            ("venue=book", false, "delay"),
            (
                "strategies=2 isolation=thread+process speculation=closed",
                true,
                "those of strategies that are threads are not closed",
            ),
            ("strategies=2 isolation=process speculation=open", false, "is closed"),
            (
                "strategies=2 isolation=process+process:closed",
                true,
                "speculation of the processes of closed levels",
            ),
            ("venue=book,delay", true, "delay uniform:5ms..500ms"),
            ("strategies=5 isolation=process*2", true, "isolation process*2, 4 processes"),
            (
                "strategies=5 isolation=process*2",
                true,
                "group-0 has strategies 0, 1; group-1 has strategies 2, 3.",
            ),
            (
                "strategies=2 isolation=process*4 on_death=restart",
                true,
                "a strategy is restarted with its group",
            ),
            ("strategies=5 isolation=process", false, "Strategies of a group"),
            (comes_back, false, excluded),
            (comes_back, true, "a strategy is restarted; engine and exchanges recover from their journals"),
            (
                &format!("{comes_back} technique=array-queue"),
                true,
                "the run ends with the engine, an exchange recovers from its journal",
            ),
            (
                "venue=book exchange=process on_death=continue",
                true,
                "continues without a strategy; the run ends with the engine or an exchange",
            ),
            (&format!("{comes_back} process=gateways"), true, excluded),
            (&format!("{comes_back} process=gateways"), true, "leave --process out"),
            (&format!("{comes_back} process=each-gateway"), true, "leave --process out"),
            (&format!("{comes_back} technique=array-queue"), true, "use --technique spsc-mux"),
            (&format!("{comes_back} venue=book,delay"), true, "not all venues are exchanges"),
            ("process=gateways", true, "3 processes: 1 strategy, 4 venues"),
            ("process=gateways", true, "orchestrator 1 spin gateways 2 spin gateway-0 … gateway-3"),
            ("process=each-gateway", true, "6 processes"),
            ("spare_strategies=2 on_death=restart", true, "3 strategies (2 spare)"),
            ("spare_strategies=2 on_death=restart", true, "strategy-2 0 yield spare, not started"),
        ] {
            let page = shown(settings_text, &fake::plain(3).machine());
            let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(page.contains(text), shows, "{settings_text}: {text}: {page}");
        }
    }

    #[test]
    fn many_threads_are_folded() {
        let settings_text = "strategies=40 venues=8 work=500ns isolation=thread";
        assert_snapshot!(shown(settings_text, &fake::plain(64).machine()), @"
        machine  Fake CPU 2.6GHz, cores 0-63 of 64, clock source tsc, Linux 6.18.44
        run      spsc-mux, one process, a thread each: 40 strategies, 8 venues, rings
                 of 8,192 slots
        load     4,000,000 orders, uniform over 10s (400,000/s), delay
                 uniform:5ms..500ms, seed 1, work 500ns an order
        memory   1076 MiB of /dev/shm, 62.5 GiB free

        thread                    core   idle  runs
        strategy-0 … strategy-39  2-41   spin  40 threads
        orchestrator              42     spin
        gateway-0 … gateway-7     43-50  spin  8 threads

        note  Every role has a core of its own: each hand-off goes from core to core.
        ");
    }

    #[test]
    fn faults_and_their_effects_are_shown() {
        let faults = "fault='kill:any@1s every 100ms; hang:strategy-1@push:written:40'";
        let text = shown(&format!("strategies=2 on_death=restart {faults}"), &fake::two_core_vm().machine());
        let facts: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("fault")).take(3).collect();
        assert_snapshot!(facts.join("\n"), @"
        fault     kill:any@1s every 100ms
        fault     hang:strategy-1@push:written:40
        on death  a strategy is restarted; the run ends with the engine
        ");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_plan_fits_the_page(strategies in 1u16..=256, venues in 1u16..=64, cores in 0u32..400) {
            let machine = Machine { cores_allowed: (0..cores).map(|c| c * 2).collect(), ..Machine::default() };
            shown(&format!("strategies={strategies} venues={venues} schedule=flow.csv"), &machine);
        }
    }
}
