//! Checks `--priority` on this machine: refused before the run starts if unavailable, with a
//! warning about kernel throttling.

use crate::config::UsageError;
use crate::host::{Machine, RealTime};
use crate::priority;
use protocol::plan::{Isolation, Plan};
use std::io;
use system::priority::{allow_fifo, try_fifo};

/// The system calls that request real-time priority, as functions that tests replace.
#[derive(Clone, Copy)]
pub struct Kernel {
    /// Checks that a thread of this process may have a `SCHED_FIFO` priority.
    pub may: fn(u8) -> io::Result<()>,
    /// Keeps the permission for a `SCHED_FIFO` priority in processes that drop their capabilities.
    pub allow: fn(u8) -> io::Result<()>,
}

impl Kernel {
    /// The real system calls of this machine.
    pub const REAL: Self = Self { may: try_fifo, allow: allow_fifo };
    /// System calls that only check whether real-time priority is available, and change nothing.
    pub const ASK: Self = Self { may: try_fifo, allow: |_| Ok(()) };
}

/// Checks that the plan's real-time priority is available on the machine, and returns the reasons
/// not to publish latencies measured with it.
pub fn check(
    plan: &Plan,
    machine: &Machine,
    found: &RealTime,
    kernel: Kernel,
) -> Result<Vec<String>, UsageError> {
    let Some(priority) = priority::plan_priority(plan) else { return Ok(Vec::new()) };
    let fifo = priority.fifo();
    if let Err(error) = (kernel.may)(fifo) {
        let (why, way_out) = found.obstacle(fifo).unwrap_or((error.to_string(), "see `man 7 sched`"));
        return Err(UsageError(format!(
            "--priority {priority} is not permitted: {why}.\nTo permit it, {way_out}; or leave --priority out"
        )));
    }
    if (plan.isolation.has(Isolation::Sandbox) || plan.isolation.has(Isolation::Container))
        && let Err(error) = (kernel.allow)(fifo)
    {
        return Err(UsageError(format!(
            "--priority {priority} with --isolation {}: it gives up capabilities, and the limit cannot be raised: {error}.\n\
             Raise ulimit -Hr to {fifo}, use --isolation process, or leave --priority out",
            plan.isolation
        )));
    }
    let kept = priority::kept_cores(plan);
    if kept.is_empty() {
        return Ok(Vec::new());
    }
    let is_left = machine.cores_allowed.iter().any(|core| !kept.contains(core));
    let lift = "`sysctl kernel.sched_rt_runtime_us=-1`";
    match (found.describe_withheld(), is_left) {
        (None, true) => Ok(Vec::new()),
        (None, false) => Err(UsageError(format!(
            "--priority {priority} on every core, and the kernel takes none back: the launcher would never run again.\n\
             Leave a core out with --cores, use --idle park, or `sysctl kernel.sched_rt_runtime_us=950000`"
        ))),
        (Some(taken), true) => Ok(vec![format!(
            "on this machine the kernel takes threads of real-time priority away {taken}. Lift it with {lift}"
        )]),
        (Some(taken), false) => Ok(vec![format!(
            "on this machine the kernel takes threads of real-time priority away {taken}, and no core is left: the launcher and \
             everything else runs only then. Leave a core out with --cores, and lift it with {lift}"
        )]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::planned;
    use crate::host::fake;

    const FREE: Kernel = Kernel { may: |_| Ok(()), allow: |_| Ok(()) };

    fn refused() -> io::Result<()> {
        Err(io::Error::from_raw_os_error(nix::libc::EPERM))
    }

    fn checked(settings: &str, found: &RealTime, kernel: Kernel) -> Result<Vec<String>, String> {
        let machine = fake::plain(3).machine();
        let (_, plan, _) = planned(settings, &machine).unwrap();
        check(&plan, &machine, found, kernel).map_err(|error| error.to_string())
    }

    fn throttled() -> RealTime {
        RealTime { runtime_us: Some(950_000), period_us: Some(1_000_000), ..RealTime::default() }
    }

    #[test]
    fn unavailable_priority_is_refused_with_remedy() {
        let kernel = Kernel { may: |_| refused(), ..FREE };
        assert_eq!(checked("", &throttled(), kernel), Ok(vec![]), "who does not ask is not refused");
        let message = checked("priority=fifo:50", &throttled(), kernel).unwrap_err();
        assert!(message.contains("`ulimit -r` is 0, and CAP_SYS_NICE is missing"), "{message}");
        assert!(message.contains("--cap-add SYS_NICE") && message.lines().count() == 2, "{message}");
        let unknown = RealTime { is_capable: true, ..throttled() };
        let message = checked("priority=fifo:50", &unknown, kernel).unwrap_err();
        assert!(message.contains("not permitted"), "{message}");
        let kernel = Kernel { allow: |_| refused(), ..FREE };
        let message = checked("priority=fifo:50 isolation=sandbox", &throttled(), kernel).unwrap_err();
        assert!(message.contains("Raise ulimit -Hr to 50"), "{message}");
        assert!(
            checked("priority=fifo:50", &throttled(), kernel).is_ok(),
            "only a sandbox gives its rights up"
        );
    }

    #[test]
    fn priority_on_every_core_unthrottled_is_refused() {
        let lifted = RealTime { runtime_us: Some(-1), ..throttled() };
        assert_eq!(checked("priority=fifo:50", &lifted, FREE), Ok(vec![]), "a core is left");
        let message = checked("priority=fifo:50 strategies=2", &lifted, FREE).unwrap_err();
        assert!(message.contains("would never run again") && message.contains("--cores"), "{message}");
        assert_eq!(checked("priority=fifo:50 strategies=2 idle=park", &lifted, FREE), Ok(vec![]));
        let message = checked("priority=fifo:50 strategies=2", &RealTime::default(), FREE).unwrap_err();
        assert!(message.contains("never"), "what is not known is not hoped for: {message}");
    }

    #[test]
    fn throttling_is_a_warning_with_what_it_costs() {
        let left = checked("priority=fifo:50", &throttled(), FREE).unwrap();
        assert!(left[0].contains("away for up to 50 ms each second. Lift it with"), "{left:?}");
        let all = checked("priority=fifo:50 strategies=2", &throttled(), FREE).unwrap();
        assert!(all[0].contains("no core is left"), "{all:?}");
        assert_eq!(checked("priority=fifo:50 idle=park", &throttled(), FREE), Ok(vec![]));
    }
}
