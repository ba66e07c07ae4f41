//! A doctor measurement: how long an idle core of this machine takes to run a thread that is woken.

use super::{Check, note, ok};
use planner::host::{Machine, signals};
use record::wake_times::WakeTimes;

/// Half a second of wake-ups.
const WAKES: u32 = 400;
/// p90 from which on a parked strategy waits for its core longer than for all else.
const LATE_NS: f64 = 100_000.0;

/// Wakes a thread on the last core that may be used from the first one; `None` if it cannot be
/// measured.
pub(super) fn measure(machine: &Machine) -> Option<WakeTimes> {
    let [first, .., last] = machine.cores_allowed[..] else { return None };
    WakeTimes::from_times(system::wake::wake_times(first, last, WAKES, signals::is_end_requested).ok()?)
}

/// Reports the times. Late wake-ups make no machine unfit: strategies that spin never sleep.
pub(super) fn check(times: Option<&WakeTimes>) -> Check {
    let Some(times) = times else {
        return ok("wake", "not measured: two cores are needed");
    };
    let found = format!("an idle core runs what wakes it after {}", times.describe());
    if times.p90_ns <= LATE_NS {
        return ok("wake", found);
    }
    note(
        "wake",
        format!("{found}: figures of parked strategies are the host's first"),
        "--idle spin or yield; idle=poll for the guest, or haltpoll on the host; without a hypervisor cpupower idle-set -D 0",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::machine_check::CheckState;

    #[test]
    fn late_wake_ups_are_noted() {
        let times = WakeTimes { wakes: 400, p50_ns: 9_000.0, p90_ns: 40_000.0, p99_ns: 2e6 };
        assert_eq!(check(Some(&times)).state, CheckState::Ok);
        let late = check(Some(&WakeTimes { p90_ns: 1.2e6, ..times }));
        assert!(late.state == CheckState::Note && late.found.contains("1,200 µs at p90"), "{}", late.found);
        assert!(check(None).found.starts_with("not measured"));
    }
}
