//! Converts the limits and the users of strategies from settings into the plan.

use crate::config::{ByStrategy, Settings, StrategySetting, UsageError};
use protocol::index::StrategyIndex;
use protocol::plan::{
    Isolation, Plan, ResourceLimit, Speculation, StrategyResources, StrategyUser, Technique,
};
use shm::ring::{LinkSpec, SegmentPlace};

/// Returns the resources of each strategy; none if nothing is asked for. What enforces a limit, and
/// the numbers of users, are settled on the machine before the run.
pub(super) fn of_strategies(settings: &Settings) -> Vec<StrategyResources> {
    let of = |strategy| StrategyResources {
        memory: value(&settings.memory, strategy).copied().map(ResourceLimit::new),
        cpu: value(&settings.cpu, strategy).copied().map(ResourceLimit::new),
        files: value(&settings.files, strategy).copied(),
        processes: value(&settings.processes, strategy).copied().map(ResourceLimit::new),
        user: value(&settings.user, strategy).map(|name| StrategyUser {
            name: name.clone(),
            user: 0,
            group: 0,
        }),
    };
    let levels = settings.isolation();
    // A value for all strategies is for those that have a process of their own.
    let own = |strategy| match levels.kind_of(strategy) {
        level if level.is_thread() => StrategyResources::NONE,
        _ => of(strategy),
    };
    let all: Vec<StrategyResources> =
        StrategyIndex::first(settings.all_strategies().0 as u16).map(own).collect();
    if all.iter().all(|resources| *resources == StrategyResources::NONE) { Vec::new() } else { all }
}

fn value<S: StrategySetting>(setting: &Option<ByStrategy<S>>, strategy: StrategyIndex) -> Option<&S::Value> {
    setting.as_ref()?.value_of(strategy)
}

/// Returns an error for limits of strategies that cannot have any.
pub(super) fn check(settings: &Settings, plan: &Plan) -> Result<(), UsageError> {
    check_setting(&settings.memory, plan)?;
    check_setting(&settings.cpu, plan)?;
    check_setting(&settings.files, plan)?;
    check_setting(&settings.processes, plan)?;
    check_setting(&settings.user, plan)?;
    check_groups(plan)?;
    if plan.trading().has_users() && !is_memory_only(plan.technique) {
        return Err(UsageError(format!(
            "--user with --technique {}: its pipes, sockets or files belong to the launcher's user, and only memory is handed over.\n\
             Use another --technique, or leave --user out",
            plan.technique
        )));
    }
    if plan.trading().core_dumps && !plan.isolation.has(Isolation::Process) {
        return Err(UsageError(format!(
            "--core-dumps with --isolation {}: a strategy there can create no file, so the kernel writes no core.\n\
             Use --isolation process, or leave --core-dumps out",
            plan.isolation
        )));
    }
    if plan.trading().speculation == Speculation::Closed && plan.isolation.has_only_threads() {
        return Err(UsageError(
            "--speculation closed with --isolation thread: the kernel separates processes, and all strategies are in the engine's.\n\
             Use --isolation process, container or sandbox, or leave --speculation out"
                .into(),
        ));
    }
    Ok(())
}

/// Refuses limits and users that differ within a group: they are those of its process.
fn check_groups(plan: &Plan) -> Result<(), UsageError> {
    for group in plan.groups() {
        let of = |strategy| plan.trading().resources_of(strategy);
        let [first, others @ ..] = group.as_slice() else { continue };
        if let Some(other) = others.iter().find(|other| of(**other) != of(*first)) {
            let described = |strategy: StrategyIndex| match of(strategy) {
                none if *none == StrategyResources::NONE => "no limit and no user".into(),
                some => some.to_string(),
            };
            return Err(UsageError(format!(
                "--isolation {}: strategy-{first} has {} and strategy-{other} has {}, and they share a process, whose limits \
                 and user are those of all its strategies.\n\
                 Give all strategies of a group the same, or use --isolation {} without groups",
                plan.isolation,
                described(*first),
                described(*other),
                plan.isolation.kind_of(*first),
            )));
        }
    }
    Ok(())
}

/// Returns `true` if a technique uses memory only, which can be handed over as descriptors.
fn is_memory_only(technique: Technique) -> bool {
    let link = LinkSpec { name: "submit", producers: 1, capacity: 2 };
    let is_memory = |place| matches!(place, SegmentPlace::Memory | SegmentPlace::Reserve);
    technique.segments(&link).iter().all(|segment| is_memory(segment.place))
}

fn check_setting<S: StrategySetting>(setting: &Option<ByStrategy<S>>, plan: &Plan) -> Result<(), UsageError> {
    let Some(setting) = setting else { return Ok(()) };
    let (name, strategies) = (S::NAME, plan.trading().strategies);
    if plan.isolation.has_only_threads() {
        return Err(UsageError(format!(
            "--{name} with --isolation {}: threads of one process have no limit and no user of their own.\n\
             Use --isolation process, container or sandbox, or leave --{name} out",
            plan.isolation
        )));
    }
    for strategy in setting.named() {
        if strategy.0 >= strategies {
            return Err(UsageError(format!(
                "--{name} strategy-{strategy}: the run has strategies 0 to {}",
                strategies - 1
            )));
        }
        if plan.isolation.kind_of(strategy).is_thread() {
            return Err(UsageError(format!(
                "--{name} strategy-{strategy}: it is a thread of the engine's process, which has no limit and no user of its own.\n\
                 Give it another level with --isolation, or leave it out of --{name}"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{planned, refuses};
    use crate::host::fake;

    #[test]
    fn each_strategy_gets_its_own_or_common_limit() {
        let machine = fake::two_core_vm().machine();
        let settings_text = "strategies=4 memory='512MiB; strategy-2=2GiB' cpu=strategy-1=0.5 files=64";
        let (_, plan, _) = planned(settings_text, &machine).unwrap();
        assert_eq!(
            plan.trading().resource_lines(),
            [
                "strategy-0: memory 512MiB (rlimit), files 64 (rlimit)",
                "strategy-1: memory 512MiB (rlimit), cpu 0.5 (rlimit), files 64 (rlimit)",
                "strategy-2: memory 2GiB (rlimit), files 64 (rlimit)",
                "strategy-3: memory 512MiB (rlimit), files 64 (rlimit)",
            ]
        );
        let (_, plan, _) = planned("strategies=3 isolation=thread+process memory=1GiB", &machine).unwrap();
        assert_eq!(
            plan.trading().resource_lines(),
            ["strategy-1: memory 1GiB (rlimit)"],
            "threads have none"
        );
        let settings_text = "strategies=5 isolation=process*2 memory='1GiB; strategy-4=2GiB'";
        let (_, plan, _) = planned(settings_text, &machine).unwrap();
        let of_processes: Vec<String> =
            plan.processes.iter().map(|process| plan.resources_of(process).to_string()).collect();
        let wanted = ["memory 1GiB (rlimit)", "memory 1GiB (rlimit)", "memory 2GiB (rlimit)", ""];
        assert_eq!(of_processes, wanted, "a limit is that of the group");
        let (_, plan, _) = planned("strategies=3", &machine).unwrap();
        assert!(plan.trading().resources.is_empty() && plan.trading().resource_lines().is_empty());
    }

    #[test]
    fn limit_of_thread_or_missing_strategy_is_refused() {
        let machine = fake::two_core_vm().machine();
        for (settings_text, wanted) in [
            ("isolation=thread memory=1GiB", "--memory with --isolation thread"),
            ("isolation=thread user=nobody", "--user with --isolation thread"),
            (
                "strategies=2 isolation=thread+process processes=strategy-0=9",
                "--processes strategy-0: it is a thread",
            ),
            ("strategies=2 files=strategy-2=64", "--files strategy-2: the run has strategies 0 to 1"),
            ("technique=pipe user=nobody", "--user with --technique pipe"),
            ("isolation=sandbox core_dumps=on", "--core-dumps with --isolation sandbox"),
            ("isolation=thread speculation=closed", "--speculation closed with --isolation thread"),
            ("isolation=thread+thread speculation=closed", "leave --speculation out"),
            (
                "isolation=process*2 strategies=3 memory=strategy-1=1GiB",
                "strategy-0 has no limit and no user and strategy-1 has memory 1GiB (rlimit), and they share a process",
            ),
            (
                "isolation=process*2 strategies=4 memory='1GiB; strategy-3=2GiB'",
                "use --isolation process without groups",
            ),
        ] {
            refuses(settings_text, wanted, &machine);
        }
    }
}
