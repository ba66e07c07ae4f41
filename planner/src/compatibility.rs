//! Refuses combinations of settings that cannot work together.

use super::resolved::{Input, Resolved, has_book, plays_all};
use super::{faults, resources};
use crate::config::{Settings, Switch, UsageError, limits};
use protocol::index::StrategyIndex;
use protocol::kill::Scope;
use protocol::plan::{
    Binary, FaultKind, FaultTarget, FaultTime, Isolation, Journaling, OnDeath, OrderSequence, Placement,
    Plan, Role, Technique, Trading,
};
use record::units::{Count, Nanos, human_bytes};
use shm::ring::{LinkSpec, SegmentPlace};
use system::keys::arena::MAX_BLOCK_BYTES;

fn usage<T>(message: String) -> Result<T, UsageError> {
    Err(UsageError(message))
}

/// Returns an error for settings that contradict each other, before a plan is made of them.
pub(super) fn check_settings(settings: &Settings) -> Result<(), UsageError> {
    let (credentials, strategies) = (settings.credentials().0, settings.all_strategies().0);
    if credentials > strategies {
        let fewer = if strategies == 1 { "1".into() } else { format!("{strategies} or fewer") };
        return usage(format!(
            "--credentials {credentials} with --strategies {strategies}: a strategy has one credential.\n\
             Use --credentials {fewer}, or --strategies {credentials} or more"
        ));
    }
    let (Count(slots), max) = (settings.capacity(), u64::from(Plan::MAX_CAPACITY));
    if !slots.is_power_of_two() || !(2..=max).contains(&slots) {
        let near = slots.clamp(2, max).next_power_of_two();
        // 1M is a million, and the largest ring has 2^20 slots.
        let decimal = if slots > 0 && slots.is_multiple_of(1_000) { " (k and M are decimal)" } else { "" };
        return usage(format!(
            "--capacity {slots}: rings have a power of two from 2 to {max} slots{decimal}; use {near}"
        ));
    }
    check_input(settings)?;
    for (flag, is_given) in
        [("--cores", settings.cores.is_some()), ("--strategy-cores", settings.strategy_cores.is_some())]
    {
        if is_given && settings.pin() == Switch::Off {
            return usage(format!(
                "--pin off with {flag}: no thread is placed, the kernel moves them.\nLeave one of the two out; taskset confines \
                 the whole launcher to some cores"
            ));
        }
    }
    for (flag, many, kinds, Count(count)) in [
        ("--strategy", "--strategies", settings.strategy().0.len(), settings.all_strategies()),
        ("--venue", "--venues", settings.venue().0.len(), settings.venues()),
    ] {
        if kinds as u64 > count {
            return usage(format!(
                "{flag} names {kinds} kinds, and the run has {count}: use {many} {kinds} or more"
            ));
        }
    }
    if has_book(settings) {
        return Ok(());
    }
    if settings.journal() != Journaling::None {
        return usage(format!(
            "--journal {}: a journal records what exchanges and the engine take in, so that each continues after its \
             death; no venue here is an exchange, and the engine restarts only with one.\n\
             Use --venue {} --on-death restart, or --journal none",
            settings.journal(),
            Trading::BOOK
        ));
    }
    for (flag, is_there) in [
        ("--book", settings.book.is_some()),
        ("--exchange", settings.exchange.is_some()),
        ("--market-data", settings.market_data == Some(Switch::On)),
    ] {
        if is_there {
            return usage(format!(
                "{flag} is for exchanges, and no venue is one: use --venue {}",
                Trading::BOOK
            ));
        }
    }
    Ok(())
}

fn check_input(settings: &Settings) -> Result<(), UsageError> {
    if settings.schedule.is_none() {
        return match settings.speed {
            Some(_) => usage(
                "--speed plays a recorded flow: give one with --schedule FILE, or leave --speed out".into(),
            ),
            None => Ok(()),
        };
    }
    for (is_given, flag) in [
        (settings.orders.is_some(), "--orders"),
        (settings.window.is_some(), "--window"),
        (settings.arrivals.is_some(), "--arrivals"),
    ] {
        if is_given {
            return usage(format!(
                "{flag} with --schedule: the recorded flow says how many orders come and when.\n\
                 Leave {flag} out; --speed plays it faster or slower"
            ));
        }
    }
    let speed = settings.speed().0;
    if (0.001..=1_000_000.0).contains(&speed) {
        return Ok(());
    }
    usage(format!("--speed {speed}: give a factor from 0.001 to 1000000"))
}

/// Returns an error for a crossover between levels that the settings do not have, or whose turns no
/// schedule makes.
fn check_crossover(Resolved { settings, plan, input, .. }: &Resolved) -> Result<(), UsageError> {
    let Some(epoch) = settings.crossover else { return Ok(()) };
    let groups = plan.isolation.as_slice().len();
    let refuse = |why: String| usage(format!("--crossover {epoch}: {why}"));
    if groups < 2 {
        return refuse(
            "levels take turns, and the run has one.\nUse --isolation thread+process, or leave --crossover out"
                .into(),
        );
    }
    let strategies = settings.all_strategies().0;
    if !strategies.is_multiple_of(groups as u64) {
        let more = strategies.next_multiple_of(groups as u64);
        return refuse(format!(
            "each of {groups} levels has as many strategies, and {strategies} cannot be shared out.\nUse --strategies {more}"
        ));
    }
    if settings.spare_strategies().0 > 0 {
        return refuse("a strategy that is added has no turn; leave --spare-strategies out".into());
    }
    if !plays_all(settings) || matches!(input, Input::Recorded { .. }) {
        return refuse(
            "the turns are made in the schedule that is drawn; leave --schedule out, and use --strategy player"
                .into(),
        );
    }
    let least = epoch.0.saturating_mul(4 * groups as u64);
    match input.window_ns() {
        0 => refuse("orders without due times have no epochs; use another --arrivals than stress".into()),
        window if window < least => refuse(format!(
            "a window of {} has no four turns of each level.\nUse --window {} or longer",
            Nanos(window),
            Nanos(least)
        )),
        _ => Ok(()),
    }
}

/// Returns an error for settings that the plan cannot fulfil.
pub(super) fn check(resolved: &Resolved) -> Result<(), UsageError> {
    let Resolved { settings, plan, input, .. } = resolved;
    plan.isolation.distinct().try_for_each(|level| check_reach(plan.technique, level.kind()))?;
    if plan.placement != Placement::Engine && plan.isolation.has_only_threads() {
        return usage(format!(
            "--process {} with --isolation {}: there all roles are threads of one process.\n\
             Use --isolation process or sandbox, or leave --process out",
            plan.placement, plan.isolation
        ));
    }
    check_crossover(resolved)?;
    check_spares(settings, plan)?;
    faults::check(&settings.fault().0, plan)?;
    check_programs(settings, plan)?;
    check_memory(plan)?;
    resources::check(settings, plan)?;
    let trading = plan.trading();
    let is_missing =
        |scope| matches!(scope, Scope::Strategy(index) if index >= StrategyIndex(trading.strategies));
    if let Some(limit) = trading.limits.iter().find(|limit| is_missing(limit.scope)) {
        return usage(format!(
            "--limits {}: the run has strategies 0 to {}",
            limits::limit_text(limit),
            trading.strategies - 1
        ));
    }
    if trading.sequence == OrderSequence::Recorded && matches!(input, Input::Drawn { .. }) {
        return usage("--sequence recorded is for a recorded flow: give it with --schedule".into());
    }
    if trading.sequence == OrderSequence::Recorded && !plays_all(settings) {
        return usage(format!(
            "--sequence recorded waits for each order of the recording, and --strategy {} does not send them all: leave one of \
             the two out",
            trading.strategy_kinds.join(",")
        ));
    }
    Ok(())
}

/// Returns `true` if a technique (a kind of hand-off) can run at an isolation level. The planner
/// refuses others, and experiments skip them.
pub fn is_supported(technique: Technique, isolation: Isolation) -> bool {
    check_reach(technique, isolation).is_ok()
}

/// Checks that a technique (a kind of hand-off, such as a ring) can be used with strategies at an
/// isolation level. Returns an error with the reason and another technique or level if it cannot.
pub fn check_reach(technique: Technique, isolation: Isolation) -> Result<(), UsageError> {
    let refuse = |why: &str, instead: &str| {
        usage(format!("--technique {technique} with --isolation {isolation}: {why}.\nUse {instead}"))
    };
    if let (Some(twin), Isolation::Keys) = (technique.twin(), isolation) {
        return usage(format!(
            "--technique {technique} lives on the heap of all threads, and with --isolation keys each thread may write its own only.\n\
             Use --technique {twin}, its twin over shared memory, or --isolation thread"
        ));
    }
    if let (Some(twin), true) = (technique.twin(), isolation != Isolation::Thread) {
        return usage(format!(
            "--technique {technique} lives on the heap of one process, --isolation {isolation} has several.\n\
             Use --technique {twin}, its twin over shared memory, or --isolation thread"
        ));
    }
    match isolation {
        Isolation::Keys if technique.is_foreign() => refuse(
            "it maps memory of its own, to which bulkhead gives no protection key",
            "--isolation thread or process, or another --technique",
        ),
        Isolation::Sandbox if technique.is_foreign() => refuse(
            "it makes and opens files of its own by their names, and a sandboxed process opens none: it has what was handed over",
            "--isolation process, or another --technique",
        ),
        Isolation::Container if technique.is_foreign() => refuse(
            "it makes and opens files of its own in the machine's /dev/shm, and a container has a /dev/shm of its own with what was handed \
             over",
            "--isolation process, or another --technique",
        ),
        Isolation::Container if has_sockets(technique) => refuse(
            "its sockets are made after the container, and each end asks for the other's process, which cannot be seen from there",
            "another --technique, or --isolation process",
        ),
        _ => Ok(()),
    }
}

/// Returns `true` if a technique uses sockets. A container is created before its ends, so only
/// memory and pipes can be passed into it.
fn has_sockets(technique: Technique) -> bool {
    let link = LinkSpec { name: "submit", producers: 1, capacity: 2 };
    technique.segments(&link).iter().any(|segment| segment.place == SegmentPlace::Socket)
}

/// Refuses spare strategies where none could be added during the run.
fn check_spares(settings: &Settings, plan: &Plan) -> Result<(), UsageError> {
    let spares = plan.trading().spares();
    if spares.len() == 0 {
        return Ok(());
    }
    let count = spares.len();
    if settings.schedule.is_some() {
        return usage(format!(
            "--spare-strategies {count} with --schedule: all strategies of a recorded flow trade from its start.\n\
             Leave one of the two out"
        ));
    }
    if plan.on_death == OnDeath::Stop {
        return usage(format!(
            "--spare-strategies {count} with --on-death stop: the run would end with the first strategy that ends.\n\
             Use --on-death continue or restart"
        ));
    }
    match spares.into_iter().find(|spare| plan.isolation.kind_of(*spare).is_thread()) {
        Some(spare) => usage(format!(
            "--spare-strategies {count} with --isolation {}: {} would be a thread of the engine's process, and none is \
             added to a running process.\nUse --isolation process, sandbox or container",
            plan.isolation,
            Role::Strategy(spare)
        )),
        None => Ok(()),
    }
}

/// Refuses settings of memory that some strategies cannot have.
fn check_memory(plan: &Plan) -> Result<(), UsageError> {
    let trading = plan.trading();
    let program = trading.strategy_kinds.iter().find(|kind| Trading::command_of(kind).is_some());
    if let Some(program) = program.filter(|_| trading.memory.working_set_bytes > 0) {
        return usage(format!(
            "--working-set with --strategy {program}: bulkhead's own strategies walk it, and a program has a heap of its own.\n\
             Leave --working-set out, or let the program walk its own"
        ));
    }
    if plan.isolation.has(Isolation::Keys) && trading.memory.working_set_bytes > MAX_BLOCK_BYTES as u64 {
        return usage(format!(
            "--working-set with --isolation keys: a strategy's heap has blocks of at most {}.\n\
             Use a smaller --working-set, or --isolation thread or process",
            human_bytes(MAX_BLOCK_BYTES as u64)
        ));
    }
    if trading.memory.binary == Binary::Own && plan.isolation.has_only_threads() {
        return usage(format!(
            "--binary own with --isolation {}: a thread runs from the executable of its process.\n\
             Use --isolation process, container or sandbox, or leave --binary out",
            plan.isolation
        ));
    }
    if let Some(program) = program.filter(|_| trading.memory.binary == Binary::Own) {
        return usage(format!(
            "--binary own with --strategy {program}: a program runs from its own file.\n\
             Leave --binary out, or name a copy of the program for each strategy"
        ));
    }
    Ok(())
}

/// Refuses settings that strategies which are user programs cannot have.
fn check_programs(settings: &Settings, plan: &Plan) -> Result<(), UsageError> {
    for index in StrategyIndex::first(plan.trading().strategies) {
        let name = plan.trading().strategy_kind(index);
        if plan.trading().program_of(index).is_none() {
            continue;
        }
        let refuse = |why: String| usage(format!("--strategy {name}: {why}"));
        match plan.isolation.kind_of(index) {
            level @ (Isolation::Thread | Isolation::Keys) => {
                return refuse(format!(
                    "a program is a process, and with --isolation {level} all roles are threads of one.\n\
                     Use --isolation process"
                ));
            }
            Isolation::Sandbox => {
                return refuse(
                    "the sandbox is for strategies in Rust, which confine themselves when they have attached; a program needs files and \
                     threads to start, and a runtime for as long as it lives.\n\
                     Use --isolation container: namespaces, a read-only root, limits and no network; or --isolation process"
                        .into(),
                );
            }
            Isolation::Process | Isolation::Container => {}
        }
        if !plan.group_of(index).is_empty() {
            return refuse(format!(
                "a program is a process, and with --isolation {} strategy-{index} shares one with others.\n\
                 Use --isolation {}",
                plan.isolation,
                plan.isolation.kind_of(index)
            ));
        }
        if !Technique::built_in().contains(&plan.technique) {
            return refuse(format!(
                "the library that it trades through knows bulkhead's own techniques, and --technique {} is of this launcher.\n\
                 Use one of bulkhead's own",
                plan.technique
            ));
        }
    }
    for fault in settings.fault().0 {
        let by_signal = matches!(fault.kind, FaultKind::Kill | FaultKind::Stop)
            && !matches!(fault.when, Some(FaultTime::Push { .. }));
        // What is calm does nothing: its orders are left out of the figures.
        let needs_own = !by_signal && fault.kind != FaultKind::Calm;
        let is_targeted = |index: StrategyIndex| match fault.target {
            FaultTarget::Strategy(target) => target == index,
            FaultTarget::Any => true,
            _ => false,
        };
        let mut programs = StrategyIndex::first(plan.trading().strategies)
            .filter(|index| plan.trading().program_of(*index).is_some());
        if needs_own && let Some(index) = programs.find(|index| is_targeted(*index)) {
            return usage(format!(
                "--fault \"{fault}\": that is what one of bulkhead's own strategies does to itself, and {} is a program, \
                 --strategy {}.\nName a strategy that is none, use kill or stop at a time, for example \
                 kill:strategy-0@1s, or let the program do it",
                Role::Strategy(index),
                plan.trading().strategy_kind(index)
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{planned, refuses};
    use super::*;
    use crate::host::fake;
    use shm::attached::Attached;
    use shm::memory::RegionError;
    use shm::ring::spsc_mux::{Mux, SpscMux, SpscMuxProducer};
    use shm::ring::{Home, Link, TechniqueInfo};

    /// A foreign transport, as the planner sees it.
    struct Theirs;

    impl Link for Theirs {
        const INFO: TechniqueInfo = TechniqueInfo::new("theirs", Home::Foreign);
        type Producer = SpscMuxProducer;
        type Consumer = Mux;
        fn producer(
            spec: &LinkSpec,
            index: usize,
            attached: &mut Attached,
        ) -> Result<SpscMuxProducer, RegionError> {
            SpscMux::producer(spec, index, attached)
        }
        fn consumer(spec: &LinkSpec, attached: &mut Attached) -> Result<Mux, RegionError> {
            SpscMux::consumer(spec, attached)
        }
    }

    #[test]
    fn unsupported_technique_at_level_is_refused() {
        let refused = |technique, isolation| check_reach(technique, isolation).err().map(|error| error.0);
        let named = |name| Technique::from_name(name).unwrap();
        for isolation in Isolation::ALL {
            assert_eq!(refused(Technique::default(), *isolation), None);
        }
        for (technique, isolation, expected) in [
            (named("unix-seqpacket"), Isolation::Container, "Use another --technique"),
            (named("std-mpsc"), Isolation::Process, "its twin over shared memory"),
            (Technique::from_link::<Theirs>(), Isolation::Container, "a /dev/shm of its own"),
            (Technique::from_link::<Theirs>(), Isolation::Sandbox, "opens none"),
            (Technique::from_link::<Theirs>(), Isolation::Keys, "no protection key"),
            (named("std-mpsc"), Isolation::Keys, "its twin over shared memory"),
        ] {
            let error = refused(technique, isolation).unwrap();
            assert!(error.contains(expected) && error.contains("\nUse "), "{error}");
        }
        assert!(is_supported(Technique::from_link::<Theirs>(), Isolation::Process));
    }

    #[test]
    fn unsupported_setting_is_refused() {
        let machine = fake::two_core_vm().machine();
        let fine = "strategies=4 strategy=player,exec:sh isolation=process*2+process";
        assert!(planned(fine, &machine).is_ok());
        let fine = "strategies=4 strategy=player,exec:sh fault='kill:strategy-1@1s; hang:strategy-0@1s; calm:strategy-3'";
        assert!(planned(fine, &machine).is_ok());
        assert!(planned("journal=none", &machine).is_ok());
        for (settings, wanted) in [
            ("strategies=4 strategy=exec:sh isolation=thread", "--isolation process"),
            ("strategies=4 strategy=exec:sh isolation=keys", "with --isolation keys all roles are threads"),
            ("strategies=4 strategy=player,exec:sh isolation=sandbox", "--isolation container"),
            ("strategies=4 strategy=player,exec:sh isolation=process*2", "strategy-1 shares one with others"),
            (
                "strategies=4 strategy=player,exec:sh fault=hang:strategy-1@1s",
                "strategy-1 is a program, --strategy exec:sh",
            ),
            ("strategies=4 strategy=player,exec:sh fault=kill:strategy-3@order:5", "kill or stop at a time"),
            ("strategies=4 strategy=player,exec:sh fault=hang@1s", "strategy-1 is a program"),
            ("process=gateways isolation=thread", "--process gateways with --isolation thread"),
            ("strategies=2 strategy=player,exec:sh working_set=4MiB", "a program has a heap of its own"),
            ("strategies=2 strategy=player,exec:sh binary=own", "runs from its own file"),
            ("isolation=keys working_set=65MiB", "blocks of at most 64 MiB"),
            ("binary=own isolation=thread", "Use --isolation process, container or sandbox"),
            ("journal=group", "--journal group: a journal records what exchanges and the engine take in"),
            ("strategy_cores=3", "--strategy-cores 3: 2 cores may be used"),
            ("strategies=4 strategy_cores=1 pin=off", "--pin off with --strategy-cores"),
            ("cores=0 pin=off", "--pin off with --cores"),
            ("schedule=flow.csv window=5s", "Leave --window out"),
            ("schedule=flow.csv arrivals=poisson", "Leave --arrivals out"),
            ("schedule=flow.csv orders=5", "Leave --orders out"),
            ("speed=2", "--schedule FILE"),
            ("spare_strategies=1", "Use --on-death continue or restart"),
            ("spare_strategies=1 on_death=continue isolation=thread", "Use --isolation process, sandbox"),
            ("spare_strategies=1 on_death=continue isolation=process+thread", "strategy-1 would be a thread"),
            ("spare_strategies=1 on_death=restart schedule=flow.csv", "a recorded flow trade from its start"),
            ("spare_strategies=256", "--spare-strategies 256: give a number from 0 to 255"),
            ("strategies=2 spare_strategies=255 on_death=restart", "257 strategies: a run holds 1 to 256"),
            ("schedule=f speed=1e9", "--speed 1000000000: give a factor"),
        ] {
            refuses(settings, wanted, &machine);
        }
    }
}
