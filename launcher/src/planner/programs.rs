//! Which runs strategies that are programs of somebody else's can have.

use crate::config::{FaultSpec, Kinds, StrategyName, UsageError};
use protocol::plan::{FaultKind, Isolation, Target, Technique, When};
use shm::ring::LinkSpec;

/// Refuses what such programs cannot have.
///
/// # Errors
/// The flag, what is wrong with it, and the way out.
pub(super) fn check(
    strategies: &Kinds<StrategyName>,
    technique: Technique,
    isolation: Isolation,
    has_priority: bool,
    faults: &[FaultSpec],
) -> Result<(), UsageError> {
    for name in strategies.0.iter().filter(|kind| kind.command().is_some()).map(|kind| kind.name()) {
        let refuse = |why: String| Err(UsageError(format!("--strategy {name}: {why}")));
        match isolation {
            Isolation::Thread => {
                return refuse(
                    "a program is a process, and with --isolation thread all roles are threads of one.\n\
                     Use --isolation process"
                        .into(),
                );
            }
            Isolation::Sandbox if through_kernel(technique) => {
                return refuse(format!(
                    "--technique {technique} goes through the kernel, and a program in the sandbox opens nothing that may be written, and no \
                     socket.\n\
                     Use a technique in memory, for example spsc-mux, or --isolation container or process"
                ));
            }
            Isolation::Sandbox if has_priority => {
                return refuse(
                    "with --priority its thread would take the priority itself, and a program in the sandbox has no such right.\n\
                     Leave --priority out, or use --isolation container or process"
                        .into(),
                );
            }
            Isolation::Process | Isolation::Container | Isolation::Sandbox => {}
        }
        if !Technique::built_in().contains(&technique) {
            return refuse(format!(
                "the library that it trades through knows bulkhead's own techniques, and --technique {technique} is of this launcher.\n\
                 Use one of bulkhead's own"
            ));
        }
    }
    let own = faults.iter().find_map(|fault| Some((fault, to_itself(fault, strategies)?)));
    match own {
        Some((fault, name)) => Err(UsageError(format!(
            "--fault \"{fault}\": that is what one of bulkhead's own strategies does to itself, and --strategy {name} is a program.\n\
             Use kill or stop at a time, for example kill:strategy-0@1s, or let the program do it"
        ))),
        None => Ok(()),
    }
}

/// Whether messages of that technique go through files or sockets of the kernel's.
fn through_kernel(technique: Technique) -> bool {
    let link = LinkSpec { name: "submit", producers: 1, capacity: 2 };
    technique.crosses_processes() && technique.segments(&link).iter().any(|segment| segment.place.is_kernel())
}

/// The program that would have to do that fault to itself.
fn to_itself(fault: &FaultSpec, strategies: &Kinds<StrategyName>) -> Option<&'static str> {
    let by_signal = matches!(fault.kind, FaultKind::Kill | FaultKind::Stop)
        && !matches!(fault.when, Some(When::Push { .. }));
    let Target::Strategy(index) = fault.target else { return None };
    let kind = strategies.0[usize::from(index) % strategies.0.len()];
    (kind.command().is_some() && !by_signal).then(|| kind.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::value::Value;

    fn refused(strategies: &str, isolation: Isolation, fault: &str) -> Option<String> {
        let strategies = Kinds::<StrategyName>::parse(strategies).unwrap();
        let faults: Vec<FaultSpec> = fault.split_whitespace().map(|fault| fault.parse().unwrap()).collect();
        check(&strategies, Technique::default(), isolation, false, &faults).err().map(|error| error.0)
    }

    #[test]
    fn in_a_sandbox_a_program_trades_through_memory_and_has_no_priority() {
        let kinds = Kinds::<StrategyName>::parse("player,exec:sh").unwrap();
        let check = |technique: &str, has_priority| {
            let technique = Technique::from_name(technique).unwrap();
            check(&kinds, technique, Isolation::Sandbox, has_priority, &[]).map_err(|error| error.0)
        };
        for technique in ["spsc-mux", "array-queue", "linked", "channel"] {
            assert_eq!(check(technique, false), Ok(()));
        }
        for (technique, has_priority, words) in [
            ("pipe", false, "a technique in memory"),
            ("unix-seqpacket", false, "a technique in memory"),
            ("spsc-mux", true, "Leave --priority out"),
        ] {
            let error = check(technique, has_priority).unwrap_err();
            assert!(error.contains(words) && error.contains("--isolation container"), "{error}");
        }
    }

    #[test]
    fn what_a_program_cannot_have_is_refused_with_the_way_out() {
        let process = Isolation::Process;
        assert_eq!(refused("player,exec:sh -c exit", process, "kill:strategy-1@1s hang:strategy-0@1s"), None);
        assert_eq!(refused("player", Isolation::Thread, ""), None);
        for (strategies, isolation, fault, words) in [
            ("exec:sh", Isolation::Thread, "", "--isolation process"),
            ("player,exec:sh", process, "hang:strategy-1@1s", "--strategy exec:sh is a program"),
            ("player,exec:sh", process, "kill:strategy-3@order:5", "kill or stop at a time"),
        ] {
            let error = refused(strategies, isolation, fault).unwrap();
            assert!(error.contains(words), "{strategies}: {error}");
        }
    }
}
