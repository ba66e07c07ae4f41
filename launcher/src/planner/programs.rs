//! Which runs strategies that are programs of somebody else's can have.

use crate::config::{FaultSpec, Kinds, StrategyName, UsageError};
use protocol::plan::{FaultKind, Isolation, Target, Technique, When};

/// Refuses what such programs cannot have.
///
/// # Errors
/// The flag, what is wrong with it, and the way out.
pub(super) fn check(
    strategies: &Kinds<StrategyName>,
    technique: Technique,
    isolation: Isolation,
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
        check(&strategies, Technique::default(), isolation, &faults).err().map(|error| error.0)
    }

    #[test]
    fn what_a_program_cannot_have_is_refused_with_the_way_out() {
        let process = Isolation::Process;
        assert_eq!(refused("player,exec:sh -c exit", process, "kill:strategy-1@1s hang:strategy-0@1s"), None);
        assert_eq!(refused("player", Isolation::Thread, ""), None);
        for (strategies, isolation, fault, words) in [
            ("exec:sh", Isolation::Thread, "", "--isolation process"),
            ("player,exec:sh", Isolation::Sandbox, "", "--isolation container"),
            ("player,exec:sh", process, "hang:strategy-1@1s", "--strategy exec:sh is a program"),
            ("player,exec:sh", process, "kill:strategy-3@order:5", "kill or stop at a time"),
        ] {
            let error = refused(strategies, isolation, fault).unwrap();
            assert!(error.contains(words), "{strategies}: {error}");
        }
    }
}
