//! Supervisors that ignore one of their observations each: what the kernel reports, and what fails
//! in the launcher itself.

use super::{BrokenSupervisor, assert_found};
use simulation::scenario::{Scenario, ScenarioKind};
use simulation::surroundings::{StandstillCause, SurroundingEvent};
use simulation::{Observations, SupervisorStep};

/// Maximum number of runs until a supervisor is found that ignores an observation.
const SEEDS: u64 = 500;

/// Takes a step that does not see an observation, which `clear` removes.
fn blind(clear: fn(&mut Observations)) -> Box<SupervisorStep<'static>> {
    Box::new(move |supervisor, observed, now, out| {
        let mut observed = observed.clone();
        clear(&mut observed);
        supervisor.step(&observed, now, out);
    })
}

fn ignores_failed_starts() -> Box<SupervisorStep<'static>> {
    blind(|observed| observed.processes.iter_mut().for_each(|process| process.failed_start = None))
}

fn ignores_launcher_error() -> Box<SupervisorStep<'static>> {
    blind(|observed| observed.launcher_error = None)
}

fn ignores_lost_memory_of_launcher() -> Box<SupervisorStep<'static>> {
    blind(|observed| observed.has_launcher_lost_memory = false)
}

fn ignores_lost_memory_of_process() -> Box<SupervisorStep<'static>> {
    blind(|observed| observed.has_process_lost_memory = false)
}

fn ignores_debuggers() -> Box<SupervisorStep<'static>> {
    blind(|observed| observed.threads.iter_mut().for_each(|thread| thread.debugger = None))
}

fn ignores_disk_waits() -> Box<SupervisorStep<'static>> {
    blind(|observed| observed.threads.iter_mut().for_each(|thread| thread.waits_for_disk = false))
}

fn ignores_cpu_of_threads() -> Box<SupervisorStep<'static>> {
    blind(|observed| observed.threads.iter_mut().for_each(|thread| thread.cpu = None))
}

fn ignores_cpu_of_processes() -> Box<SupervisorStep<'static>> {
    blind(|observed| observed.processes.iter_mut().for_each(|process| process.cpu = None))
}

fn ignores_exemptions() -> Box<SupervisorStep<'static>> {
    blind(|observed| observed.exemptions = None)
}

/// Takes each silent thread for one that has its core, but does not run: the opposite mistake.
fn exempts_every_silence() -> Box<SupervisorStep<'static>> {
    blind(|observed| {
        let samples = observed.threads.iter_mut().filter_map(|thread| thread.cpu.as_mut()?.as_mut());
        samples.for_each(|sample| sample.account.is_runnable = true);
    })
}

/// Returns `true` if a thread stands still in a run, for such a reason.
fn stands_still(scenario: &Scenario, is_reason: fn(StandstillCause) -> bool) -> bool {
    let event = scenario.surroundings;
    matches!(event, Some(SurroundingEvent::Standstill { cause, .. }) if is_reason(cause))
}

/// One supervisor for each observation, and one that believes too much.
const IGNORED_OBSERVATIONS: [BrokenSupervisor; 10] = {
    use SurroundingEvent as Event;
    const fn broken(
        name: &'static str,
        step: fn() -> Box<SupervisorStep<'static>>,
        can_show: fn(&Scenario) -> bool,
    ) -> BrokenSupervisor {
        BrokenSupervisor { name, recovery_only: false, has_surroundings: true, can_show, step }
    }
    [
        broken("ignores a failed start", ignores_failed_starts, |scenario| {
            // Others take longer to simulate.
            let is_short = scenario.kind == ScenarioKind::Deaths;
            is_short && matches!(scenario.surroundings, Some(Event::FailedStarts { .. }))
        }),
        broken("ignores an error of the launcher", ignores_launcher_error, |scenario| {
            matches!(scenario.surroundings, Some(Event::LauncherError { .. }))
        }),
        broken("ignores lost memory of the launcher", ignores_lost_memory_of_launcher, |scenario| {
            matches!(scenario.surroundings, Some(Event::LauncherLostMemory { .. }))
        }),
        broken("ignores lost memory of a process", ignores_lost_memory_of_process, |scenario| {
            matches!(scenario.surroundings, Some(Event::ProcessLostMemory { .. }))
        }),
        broken("ignores a debugger", ignores_debuggers, |scenario| {
            stands_still(scenario, |cause| cause == StandstillCause::Debugger)
        }),
        broken("ignores the CPU time of a thread", ignores_cpu_of_threads, |scenario| {
            stands_still(scenario, |cause| cause == StandstillCause::Starved)
        }),
        broken("ignores the CPU time of a killed process", ignores_cpu_of_processes, |scenario| {
            stands_still(scenario, |cause| matches!(cause, StandstillCause::Kernel { .. }))
        }),
        broken("exempts every silence", exempts_every_silence, |scenario| {
            stands_still(scenario, |cause| matches!(cause, StandstillCause::Kernel { .. }))
        }),
        BrokenSupervisor {
            recovery_only: true,
            ..broken("ignores a wait for the disk", ignores_disk_waits, |scenario| {
                stands_still(scenario, |cause| cause == StandstillCause::Disk)
            })
        },
        BrokenSupervisor {
            recovery_only: true,
            ..broken("ignores exemptions", ignores_exemptions, |scenario| {
                matches!(scenario.surroundings, Some(Event::DiskStall { .. }))
            })
        },
    ]
};

#[test]
fn each_ignored_observation_is_found() {
    assert_found(&IGNORED_OBSERVATIONS, SEEDS);
}
