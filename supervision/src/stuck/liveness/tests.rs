use super::*;

const LIMIT: Duration = Duration::from_secs(1);
const MS: u64 = 1_000_000;

const fn pulse(state: u64, heartbeat_ticks: u64) -> LivenessSample {
    LivenessSample { state, tid: 0, heartbeat_ticks }
}

/// Two threads, a tick is a nanosecond, the barrier opens at 0.
fn liveness() -> Liveness {
    let mut liveness = Liveness::with_limit(LIMIT, 1.0, 2, 0);
    liveness.open(0);
    liveness
}

/// Observes thread 0 every 100 ms, in milliseconds. `says`: its pulse by nanoseconds.
fn watch(
    liveness: &mut Liveness,
    from: u64,
    to: u64,
    says: impl Fn(u64) -> LivenessSample,
) -> Option<LivenessFault> {
    for now in (from * MS..=to * MS).step_by(100 * MS as usize) {
        liveness.mark_awake(now);
        liveness.observe(0, says(now), now);
    }
    liveness.fault(0, &[0])
}

const RUNNING: u64 = ThreadState::Running as u64;

#[test]
fn runnable_thread_is_starved_and_sleeping_is_not() {
    let still = |_| pulse(RUNNING, 1);
    for (is_runnable, starved) in [(true, 5100 * MS), (false, 0)] {
        let mut liveness = liveness();
        watch(&mut liveness, 0, 600, still);
        liveness.record_cpu_sample(0, Some(CpuAccount { is_runnable, ..CpuAccount::default() }.into()));
        watch(&mut liveness, 700, 5000, still);
        watch(&mut liveness, 5100, 8000, |now| pulse(RUNNING, now));
        assert_eq!(liveness.last_starved(), starved, "runnable: {is_runnable}");
    }
}

#[test]
fn silence_during_launcher_pause_is_exempt() {
    let mut liveness = liveness();
    let still = |_| pulse(RUNNING, 1);
    assert_eq!(watch(&mut liveness, 0, 1000, still), None);
    assert_eq!(watch(&mut liveness, 1100, 1100, still), Some(LivenessFault::Silent(LIMIT)));
    assert_eq!(watch(&mut liveness, 100_000, 100_000, still), None, "the launcher was away too");
    assert_eq!(watch(&mut liveness, 100_100, 101_100, still), Some(LivenessFault::Silent(LIMIT)));
    assert_eq!(watch(&mut liveness, 101_200, 101_200, |now| pulse(RUNNING, now)), None, "it beats again");
}

#[test]
fn starved_thread_is_exempt_and_running_one_hangs() {
    let account = |is_runnable, ms| {
        let ran = Duration::from_millis(ms);
        CpuAccount { is_runnable, ran, ..CpuAccount::default() }
    };
    let watched = |accounts: &[CpuAccount], until: u64| {
        let mut liveness = liveness();
        watch(&mut liveness, 0, 600, |_| pulse(RUNNING, 1));
        assert!(liveness.needs_cpu_account(0, &pulse(RUNNING, 1), 600 * MS));
        accounts.iter().for_each(|account| liveness.record_cpu_sample(0, Some((*account).into())));
        let found = watch(&mut liveness, 700, until, |_| pulse(RUNNING, 1));
        let is_told = found.is_some() || until < 1600;
        assert_eq!(
            liveness.is_overdue(100 * MS),
            is_told && until > 1600,
            "an exempt one may hold what stands still"
        );
        let beats = watch(&mut liveness, until + 100, until + 100, |now| pulse(RUNNING, now));
        let beat = (until + 100) * MS;
        let is_needed = liveness.needs_cpu_account(0, &pulse(RUNNING, beat), beat);
        assert_eq!((beats, is_needed), (None, false), "{accounts:?}");
        let again = watch(&mut liveness, until + 200, until + 1200, |_| pulse(RUNNING, (until + 100) * MS));
        assert_eq!(again, Some(LivenessFault::Silent(LIMIT)), "an old account exempts nobody");
        found
    };
    let hangs = Some(LivenessFault::Silent(LIMIT));
    assert_eq!(watched(&[account(true, 70), account(true, 300)], 1100), None, "it waits for a core");
    assert_eq!(watched(&[account(true, 70), account(true, 300)], 10_000), None);
    let long = Some(LivenessFault::Silent(LIMIT * STARVED_LIMITS));
    assert_eq!(watched(&[account(true, 70), account(true, 300)], 10_100), long, "not for ever");
    assert_eq!(watched(&[account(true, 70), account(true, 320)], 1100), hangs, "it has run, in vain");
    assert_eq!(watched(&[account(true, 70), account(false, 70)], 1100), hangs, "it sleeps or is stopped");
    assert_eq!(watched(&[], 1100), hangs, "nothing is known");
    assert_eq!(watched(&[], 2000), hangs);
    let mut died = liveness();
    watch(&mut died, 0, 600, |_| pulse(RUNNING, 1));
    died.record_cpu_sample(0, Some(account(true, 70).into()));
    assert_eq!(watch(&mut died, 700, 2000, |_| pulse(RUNNING, 1)), None);
    died.record_cpu_sample(0, None);
    assert!(died.is_overdue(0) && died.fault(0, &[0]) == hangs, "who is gone waits for nothing");
}

/// It hangs in its sleep, and names a thread that runs: the kernel is asked about its own.
#[test]
fn a_forged_thread_id_does_not_help() {
    let (tid, other) = (7, 8);
    let says = |tid: u64| LivenessSample { tid, ..pulse(RUNNING, 1) };
    let mut liveness = liveness();
    watch(&mut liveness, 0, 100, |_| says(tid));
    watch(&mut liveness, 200, 600, |_| says(other));
    assert!(liveness.needs_cpu_account(0, &says(other), 600 * MS));
    assert_eq!(liveness.tid(0), tid);
    for _ in 0..2 {
        liveness.record_cpu_sample(0, Some(CpuAccount::default().into()));
    }
    let found = watch(&mut liveness, 700, 1100, |_| says(other));
    assert_eq!(found, Some(LivenessFault::Silent(LIMIT)));
    // The next incarnation has a thread of its own.
    liveness.reset_thread(0, 1100 * MS);
    watch(&mut liveness, 1100, 1200, |_| says(0));
    watch(&mut liveness, 1200, 1300, |_| says(other));
    assert_eq!(liveness.tid(0), other);
}

#[test]
fn no_state_exempts_a_thread_that_is_silent() {
    for state in [ThreadState::Starting, ThreadState::Ready, ThreadState::Running, ThreadState::Failed] {
        let found = watch(&mut liveness(), 0, 1200, |_| pulse(state as u64, 0));
        assert_eq!(found, Some(LivenessFault::Silent(LIMIT)), "{state:?}");
        let beating = watch(&mut liveness(), 0, 9000, |now| pulse(state as u64, now));
        assert_eq!(beating, None, "{state:?}");
    }
}

#[test]
fn done_exempts_until_the_process_should_have_ended() {
    let done = |_| pulse(ThreadState::Done as u64, 5);
    let mut liveness = liveness();
    assert_eq!(watch(&mut liveness, 0, 1000, done), None);
    assert_eq!(watch(&mut liveness, 1100, 1200, done), Some(LivenessFault::NotExiting(LIMIT)));
    assert_eq!(liveness.fault(0, &[0, 1]), None, "another thread of the process still works");
}

#[test]
fn done_process_without_core_gets_time_to_exit() {
    let done = |_| pulse(ThreadState::Done as u64, 5);
    for is_starved in [true, false] {
        let mut liveness = liveness();
        watch(&mut liveness, 0, 600, done);
        assert!(liveness.needs_cpu_account(0, &done(0), 600 * MS));
        let account = CpuAccount { is_runnable: is_starved, ..CpuAccount::default() };
        liveness.record_cpu_sample(0, Some(account.into()));
        let late = Some(LivenessFault::NotExiting(LIMIT));
        assert_eq!(watch(&mut liveness, 700, 9900, done), late.filter(|_| !is_starved));
        let latest = watch(&mut liveness, 10_000, 10_200, done);
        assert!(matches!(latest, Some(LivenessFault::NotExiting(_))), "not without end");
    }
}

#[test]
fn overdue_event_implies_newer_duty_cycle() {
    let mut liveness = liveness();
    // Its last heartbeat is as late as can be seen after the beginning.
    let stops = |now: u64| pulse(RUNNING, now.min(100 * MS));
    watch(&mut liveness, 0, 1500, stops);
    assert!(!liveness.is_overdue(0) && liveness.fault(0, &[0]).is_some(), "silent before it is overdue");
    watch(&mut liveness, 1600, 1600, stops);
    assert!(liveness.is_overdue(0) && !liveness.is_overdue(200 * MS));
    watch(&mut liveness, 9000, 9000, stops);
    assert!(!liveness.is_overdue(0), "the launcher was away too");
}

#[test]
fn forged_status_is_detected_immediately() {
    let beats = |now| pulse(RUNNING, now);
    for (state, heartbeat, forgery) in [
        (RUNNING, u64::MAX, ForgedStatus::Future),
        (RUNNING, 1000 * MS, ForgedStatus::Future),
        (RUNNING, 10 * MS, ForgedStatus::Past),
        (ThreadState::Ready as u64, 500 * MS, ForgedStatus::ImpossibleState),
        (ThreadState::Failed as u64 + 1, 500 * MS, ForgedStatus::UnknownState),
        (u64::MAX, 500 * MS, ForgedStatus::UnknownState),
    ] {
        let mut liveness = liveness();
        assert_eq!(watch(&mut liveness, 0, 500, beats), None);
        let found = watch(&mut liveness, 600, 600, |_| pulse(state, heartbeat));
        assert_eq!(found, Some(LivenessFault::Forged(forgery)), "{state} {heartbeat}");
        assert_eq!(watch(&mut liveness, 700, 700, beats), found, "it does not help to take it back");
    }
    let moved = |now: u64| pulse(RUNNING, now + MS / 2 * (now / (100 * MS) % 2));
    assert_eq!(watch(&mut liveness(), 0, 5000, moved), None, "cores may differ a little");
}

#[test]
fn closed_barrier_forbids_running_and_suspends_deadline() {
    let shut = || Liveness { is_open: false, ..liveness() };
    assert_eq!(watch(&mut shut(), 0, 60_000, |_| pulse(ThreadState::Ready as u64, 0)), None);
    for state in [ThreadState::Running, ThreadState::Done] {
        let found = watch(&mut shut(), 0, 0, |_| pulse(state as u64, 0));
        assert_eq!(found, Some(LivenessFault::Forged(ForgedStatus::ImpossibleState)));
    }
    let mut opened = shut();
    watch(&mut opened, 0, 60_000, |_| pulse(ThreadState::Ready as u64, 0));
    opened.open(60_000 * MS);
    assert_eq!(watch(&mut opened, 60_100, 61_000, |_| pulse(ThreadState::Ready as u64, 0)), None);
    let found = watch(&mut opened, 61_100, 61_100, |_| pulse(ThreadState::Ready as u64, 0));
    assert_eq!(found, Some(LivenessFault::Silent(LIMIT)));
}

#[test]
fn restarted_thread_gets_start_timeout() {
    let mut liveness = liveness();
    watch(&mut liveness, 0, 500, |now| pulse(RUNNING, now));
    liveness.reset_thread(0, 500 * MS);
    assert_eq!(watch(&mut liveness, 600, 30_400, |_| pulse(0, 0)), None, "its old heartbeat is forgotten");
    let mut late = liveness.clone();
    let found = watch(&mut late, 30_500, 30_700, |_| pulse(0, 0));
    assert_eq!(found, Some(LivenessFault::Silent(START_TIMEOUT)));
    assert_eq!(watch(&mut liveness, 30_500, 30_500, |_| pulse(RUNNING, 30_500 * MS)), None);
    let found = watch(&mut liveness, 30_600, 31_600, |_| pulse(RUNNING, 30_500 * MS));
    assert_eq!(found, Some(LivenessFault::Silent(LIMIT)), "from its first duty cycle on, as everybody");
}

/// Returns the millisecond at which thread 0 counts as hung. It is silent from the start, and at
/// these milliseconds the kernel reports an uninterruptible sleep.
fn hung_at(mut liveness: Liveness, is_in_kernel: impl Fn(u64) -> bool) -> Option<u64> {
    (0..=900).map(|tenth| tenth * 100).find(|ms| {
        watch(&mut liveness, *ms, *ms, |_| pulse(RUNNING, 1));
        if liveness.needs_cpu_account(0, &pulse(RUNNING, 1), ms * MS) {
            let account = CpuAccount { is_in_kernel: is_in_kernel(*ms), ..CpuAccount::default() };
            liveness.record_cpu_sample(0, Some(account.into()));
        }
        liveness.fault(0, &[0]).is_some()
    })
}

#[test]
fn disk_wait_pauses_deadline_of_journal_writer_only() {
    let writer = || {
        let mut liveness = liveness();
        liveness.watches[0].has_journal = true;
        liveness
    };
    assert_eq!(hung_at(writer(), |_| false), Some(1100), "it sleeps, as one that hangs");
    assert_eq!(hung_at(writer(), |ms| ms <= 5000), Some(6100), "a limit after its last wait");
    assert_eq!(hung_at(writer(), |ms| ms % 500 == 0), Some(30_100), "not for ever");
    assert_eq!(hung_at(liveness(), |_| true), Some(1100), "a strategy can wait there as it likes");
    // A failure detector without a bound never finds it.
    let mut believes = writer();
    believes.watches[0].deadline = believes.watches[0].deadline.stretched_to(u64::MAX);
    let is_extended = |ms: u64| !believes.watches[0].deadline.is_over(ms * MS, ms * MS);
    assert!((1..=900).all(|tenth| is_extended(tenth * 100)));
}

#[test]
fn disk_wait_is_reported_and_exempts_stall() {
    let mut liveness = liveness();
    liveness.watches[0].has_journal = true;
    watch(&mut liveness, 100, 900, |_| pulse(RUNNING, 1));
    liveness.record_disk_wait(0);
    assert_eq!(liveness.paused_ticks(0), None, "its deadline is not over");
    watch(&mut liveness, 1000, 1500, |_| pulse(RUNNING, 1));
    assert_eq!(liveness.paused_ticks(0), Some(1400 * MS));
    assert_eq!(liveness.last_starved(), 1500 * MS);
    watch(&mut liveness, 1600, 1700, |now| pulse(RUNNING, now));
    assert_eq!((liveness.paused_ticks(0), liveness.last_starved()), (None, 1600 * MS));
    liveness.record_exemption_of_run();
    assert_eq!(liveness.last_starved(), 1700 * MS);
}

/// Returns the millisecond at which thread 0 counts as hung that is silent from the start, in 90
/// seconds. `stopped`: the milliseconds in which a debugger has stopped it.
fn hung_under_debugger(liveness: &mut Liveness, state: u64, stopped: std::ops::Range<u64>) -> Option<u64> {
    (0..=900).map(|tenth| tenth * 100).find(|ms| {
        watch(liveness, *ms, *ms, |_| pulse(state, 1));
        if liveness.needs_debugger(0, &pulse(state, 1), ms * MS) {
            liveness.record_debugger(0, stopped.contains(ms));
        }
        liveness.fault(0, &[0]).is_some()
    })
}

#[test]
fn deadline_waits_for_debugger_and_starts_again() {
    for state in [RUNNING, ThreadState::Done as u64] {
        let hung = |stopped| hung_under_debugger(&mut liveness(), state, stopped);
        assert_eq!(hung(0..0), Some(1100));
        assert_eq!(hung(300..5000), Some(6100), "a deadline after the debugger was gone, at 5.0 s");
        assert_eq!(hung(0..100_000), None, "for as long as a person takes");
        assert_eq!(hung(0..400), Some(1100), "nobody asks before half of the deadline is over");
        // A detector that never asks calls it hung.
        assert!(watch(&mut liveness(), 0, 1100, |_| pulse(state, 1)).is_some());
    }
}

#[test]
fn stop_by_debugger_exempts_stall_and_ends_with_heartbeat() {
    let mut liveness = liveness();
    assert_eq!(hung_under_debugger(&mut liveness, RUNNING, 0..100_000), None);
    let end = 90_000 * MS;
    assert_eq!(
        (liveness.awake_since(), liveness.held_ticks(0)),
        (end, Some(end)),
        "no stall, no overdue slot"
    );
    assert!(!liveness.is_overdue(0));
    watch(&mut liveness, 90_100, 90_100, |now| pulse(RUNNING, now));
    assert_eq!((liveness.awake_since(), liveness.held_ticks(0)), (end, None), "it runs again");
    watch(&mut liveness, 90_200, 92_000, |_| pulse(RUNNING, 90_100 * MS));
    assert!(liveness.fault(0, &[0]).is_some() && liveness.is_overdue(0), "an old stop exempts nobody");
}
