use super::*;
use crate::host::Machine;
use crate::planner::tests::planned;
use protocol::agent::{Agent, Cycle};
use protocol::status::{LivenessSample, StatusWriter};
use protocol::supervision::{Incarnation, RepairsWriter};
use strategy::schedule::{Arrivals, DelayRange, Spec, sample};
use system::clock::{AnyClock, VirtualClock};

const MS: u64 = 1_000_000;
/// The strategy that dies; strategy 0 lives.
const VICTIM: u16 = 1;

struct NoAgent;

impl Agent<AnyClock> for NoAgent {
    fn duty_cycle(&mut self, _: &mut Cycle<AnyClock>) -> usize {
        0
    }
}

/// Processes that do nothing once they were started again.
struct ScriptedProcesses {
    ended: Vec<bool>,
    can_be_killed: bool,
    starts: usize,
}

impl ProcessControl for ScriptedProcesses {
    fn exited_normally(&self, process: usize) -> Option<bool> {
        self.ended[process].then_some(false)
    }

    fn was_killed(&self, process: usize) -> bool {
        self.ended[process]
    }

    fn exit_text(&self, _: usize) -> String {
        "exit 7".into()
    }

    fn pid(&self, process: usize) -> u32 {
        100 + process as u32
    }

    fn kill(&mut self, process: usize) {
        self.ended[process] = self.can_be_killed;
    }

    fn proof_of_death(&mut self, process: usize) -> std::io::Result<Option<ProofOfDeath>> {
        Ok(self.ended[process].then(|| ProofOfDeath::from_simulated::<AnyClock>(Box::new(NoAgent))))
    }

    fn restart(&mut self, _: &Segments, process: usize) -> Result<()> {
        self.starts += 1;
        self.ended[process] = false;
        Ok(())
    }
}

/// Plays a run whose victim has ended or is silent, with an engine that repairs at once, for two
/// minutes or until the victim is down. Returns the incidents, the notes, the number of restarts
/// and how long it took in milliseconds.
fn play(has_ended: bool, can_be_killed: bool) -> Result<(Vec<Incident>, Vec<String>, usize, u64)> {
    let words = "strategies=2 venues=1 orders=10 on_death=restart";
    let (_, mut plan, _) = planned(words, &Machine::default()).unwrap();
    (plan.liveness_ns, plan.ns_per_tick) = (10_000 * MS, 1.0);
    let (arrivals, delay) = (Arrivals::Uniform, DelayRange { min_ns: 0, max_ns: 0 });
    let spec = Spec { strategies: 2, venues: 1, orders: 10, window_ns: 1_000 * MS, arrivals, delay, seed: 1 };
    let segments = Segments::on_heap(&plan, &sample(&spec).unwrap());
    let clock = VirtualClock::default();
    clock.set(MS);
    let mut children =
        ScriptedProcesses { ended: vec![false; plan.processes.len()], can_be_killed, starts: 0 };
    let mut containment = Containment::new(&segments, 0);
    let mut liveness = Liveness::new(&plan, clock.now());
    liveness.open(clock.now());
    let engine = RepairsWriter::new(segments.repairs.as_ref().unwrap());
    let control = segments.control.control();
    let victim = &containment.processes[usize::from(VICTIM)];
    let (silent, process) = (victim.threads[0], victim.process);
    children.ended[process] = has_ended;
    let mut notes = Vec::new();
    for ms in 1..=120_000 {
        let now = ms * MS;
        clock.set(now);
        liveness.mark_awake(now);
        let pulse = LivenessSample { state: ThreadState::Running as u64, tid: 0, heartbeat_ticks: now };
        let others = (0..plan.threads.len()).filter(|thread| *thread != silent);
        others.for_each(|thread| liveness.observe(thread, pulse, now));
        notes.extend(containment.poll(&mut children, &mut liveness, &clock)?);
        let life = control.incarnation(VICTIM);
        if life.fenced && !engine.was_repaired(VICTIM, life.epoch) {
            engine.set_repaired(VICTIM, life.epoch, now, now);
        }
        assert!(containment.is_running(0));
        if !containment.awaits(VICTIM) {
            return Ok((containment.into_lists().0, notes, children.starts, ms));
        }
    }
    panic!("it is still waited for");
}

#[test]
fn one_that_hangs_at_its_start_stays_down() {
    let (incidents, notes, starts, ms) = play(true, true).unwrap();
    assert!(ms < 32_000, "{ms}");
    assert_eq!((starts, incidents.len()), (1, 2));
    assert!(notes[0].contains("hangs"), "{notes:?}");
}

#[test]
fn unkillable_process_ends_run_after_timeout() {
    let error = play(false, false).unwrap_err().to_string();
    assert!(error.contains("strategy-1 (pid 10") && error.contains("has not ended for 30s"), "{error}");
}

/// The engine dies while a strategy waits for its restart: the successor attaches to that
/// strategy's memory, which must not be reset until it has.
#[test]
fn strategy_memory_stays_until_engine_has_recovered() {
    let words =
        "strategies=2 venues=1 venue=book exchange=process journal=process orders=10 on_death=restart";
    let (_, mut plan, _) = planned(words, &Machine::default()).unwrap();
    (plan.liveness_ns, plan.ns_per_tick) = (10_000 * MS, 1.0);
    let (arrivals, delay) = (Arrivals::Uniform, DelayRange { min_ns: 0, max_ns: 0 });
    let spec = Spec { strategies: 2, venues: 1, orders: 10, window_ns: 1_000 * MS, arrivals, delay, seed: 1 };
    let segments = Segments::on_heap(&plan, &sample(&spec).unwrap());
    let clock = VirtualClock::default();
    clock.set(MS);
    let processes = plan.processes.len();
    let mut children = ScriptedProcesses { ended: vec![false; processes], can_be_killed: true, starts: 0 };
    let mut containment = Containment::new(&segments, 0);
    let mut liveness = Liveness::new(&plan, clock.now());
    liveness.open(clock.now());
    let repairs = RepairsWriter::new(segments.repairs.as_ref().unwrap());
    let control = segments.control.control();
    let [victim, engine] =
        [Role::Strategy(VICTIM), Role::Orchestrator].map(|role| plan.process_of(role).unwrap());
    let state = |process: usize, state: ThreadState| {
        let mut attached = segments.attached(&plan.processes[process]);
        for thread in &plan.processes[process].threads {
            let name = &plan.threads[*thread as usize].name;
            let status = StatusWriter::new(&protocol::segments::thread(&mut attached, name).unwrap());
            status.set_state(state);
        }
    };
    let mut poll = |containment: &mut Containment<'_>, children: &mut ScriptedProcesses| {
        clock.set(clock.now() + MS);
        liveness.mark_awake(clock.now());
        containment.poll(children, &mut liveness, &clock).unwrap();
    };
    // It dies twice: its second restart is after a pause.
    for epoch in 0..2 {
        state(victim, ThreadState::Running);
        poll(&mut containment, &mut children);
        children.ended[victim] = true;
        poll(&mut containment, &mut children);
        repairs.set_repaired(VICTIM, epoch, clock.now(), clock.now());
        poll(&mut containment, &mut children);
    }
    assert_eq!(control.incarnation(VICTIM).epoch, 1, "it waits for its restart");
    state(engine, ThreadState::Running);
    children.ended[engine] = true;
    for _ in 0..100 {
        poll(&mut containment, &mut children);
        assert!(control.incarnation(VICTIM).epoch == 1 && containment.next_restart_ns().is_none());
    }
    assert!(containment.is_role_restarting());
    state(engine, ThreadState::Running);
    poll(&mut containment, &mut children);
    poll(&mut containment, &mut children);
    assert_eq!(control.incarnation(VICTIM), Incarnation { epoch: 2, fenced: false });
}
