use super::*;
use crate::host::Machine;
use crate::planner::tests::planned;
use anyhow::bail;
use protocol::agent::{Agent, Cycle};
use protocol::status::LivenessSample;
use protocol::supervision::RepairsWriter;
use std::cell::Cell;
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

/// What becomes of the next incarnation.
#[derive(Clone, Copy, PartialEq)]
enum NextIncarnation {
    /// It ends at once.
    Dies,
    /// It cannot be started.
    Fails,
    /// It does nothing.
    Hangs,
    /// It does not end when it is killed.
    Stays,
}

/// Processes that follow the test's script.
struct ScriptedProcesses {
    ended: Vec<bool>,
    fate: NextIncarnation,
    /// When the next incarnation was started, or was to be.
    starts: Vec<u64>,
    now: u64,
}

impl ProcessControl for ScriptedProcesses {
    fn exited_normally(&self, process: usize) -> Option<bool> {
        self.ended[process].then_some(false)
    }

    fn was_killed(&self, _: usize) -> bool {
        false
    }

    fn exit_text(&self, _: usize) -> String {
        "exit 7".into()
    }

    fn pid(&self, process: usize) -> u32 {
        100 + process as u32
    }

    fn kill(&mut self, process: usize) {
        self.ended[process] = self.fate != NextIncarnation::Stays;
    }

    fn proof_of_death(&mut self, process: usize) -> std::io::Result<Option<ProofOfDeath>> {
        Ok(self.ended[process].then(|| ProofOfDeath::from_simulated::<AnyClock>(Box::new(NoAgent))))
    }

    fn restart(&mut self, _: &Segments, process: usize) -> Result<()> {
        assert!(self.ended[process]);
        self.starts.push(self.now);
        match self.fate {
            NextIncarnation::Fails => bail!("no such program"),
            fate => self.ended[process] = fate == NextIncarnation::Dies,
        }
        Ok(())
    }
}

/// A run whose victim has just ended, with an engine that repairs at once.
struct IncidentFixture {
    segments: Segments,
    children: ScriptedProcesses,
    /// Each fault of the plan strikes when the victim lives.
    is_planned: bool,
    clock: VirtualClock,
    seen: Cell<u64>,
}

impl IncidentFixture {
    fn new(fate: NextIncarnation) -> Self {
        let words = "strategies=2 venues=1 orders=10 on_death=restart";
        let (_, mut plan, _) = planned(words, &Machine::default()).unwrap();
        (plan.liveness_ns, plan.ns_per_tick) = (10_000 * MS, 1.0);
        let (arrivals, delay) = (Arrivals::Uniform, DelayRange { min_ns: 0, max_ns: 0 });
        let spec =
            Spec { strategies: 2, venues: 1, orders: 10, window_ns: 1_000 * MS, arrivals, delay, seed: 1 };
        let schedule = sample(&spec).unwrap();
        let segments = Segments::on_heap(&plan, &schedule);
        let clock = VirtualClock::default();
        clock.set(MS);
        let children =
            ScriptedProcesses { ended: vec![false; plan.processes.len()], fate, starts: Vec::new(), now: MS };
        Self { segments, children, is_planned: false, clock, seen: Cell::new(0) }
    }

    /// Plays up to that time in steps of a millisecond, or until the victim is down; how it went.
    fn play(&mut self, until_ms: u64) -> Result<(Vec<Incident>, Vec<String>, bool)> {
        let plan = &self.segments.plan;
        let mut containment = Containment::new(&self.segments, 0);
        let mut liveness = Liveness::new(plan, self.clock.now());
        liveness.open(self.clock.now());
        let engine = RepairsWriter::new(self.segments.repairs.as_ref().unwrap());
        let control = self.segments.control.control();
        let others = (0..plan.threads.len()).filter(|thread| *thread != containment.processes[1].threads[0]);
        let others: Vec<usize> = others.collect();
        let victim = containment.processes[1].process;
        self.children.ended[victim] = self.children.fate != NextIncarnation::Stays;
        let mut notes = Vec::new();
        for now in (1..=until_ms).map(|ms| ms * MS) {
            self.clock.set(now);
            self.children.now = now;
            liveness.mark_awake(now);
            let pulse = LivenessSample { state: ThreadState::Running as u64, tid: 0, heartbeat_ticks: now };
            others.iter().for_each(|thread| liveness.observe(*thread, pulse, now));
            if self.is_planned {
                containment.record_fault(Role::Strategy(VICTIM), now);
            }
            notes.extend(containment.poll(&mut self.children, &mut liveness, &self.clock)?);
            let life = control.incarnation(VICTIM);
            if life.fenced && !engine.was_repaired(VICTIM, life.epoch) {
                engine.set_repaired(VICTIM, life.epoch, now, now);
            }
            self.seen.set(now);
            assert!(containment.is_running(0));
            if containment.processes[1].stage == SupervisionStage::Down {
                break;
            }
        }
        let is_down = !containment.awaits(VICTIM);
        Ok((containment.into_lists().0, notes, is_down))
    }

    /// The times between two starts, in milliseconds.
    fn pauses(&self) -> Vec<u64> {
        self.children.starts.windows(2).map(|pair| (pair[1] - pair[0]) / MS).collect()
    }
}

/// It ends before its first order, each time.
#[test]
fn a_crash_loop_backs_off_and_stays_down() {
    let mut bench = IncidentFixture::new(NextIncarnation::Dies);
    let (list, notes, is_down) = bench.play(60_000).unwrap();
    assert!(is_down);
    assert_eq!((bench.children.starts.len(), list.len()), (8, 9));
    for (pause, least) in bench.pauses().into_iter().zip([10, 20, 40, 80, 160, 320, 640]) {
        assert!((least..least + 5).contains(&pause), "{:?}", bench.pauses());
    }
    let last = list.last().unwrap().stayed_down.as_ref().unwrap();
    assert_eq!((last.restarts, list.iter().filter(|one| one.stayed_down.is_some()).count()), (8, 1));
    assert_eq!(notes.len(), 1);
    assert!(
        notes[0].contains("strategy-1 stayed down after 8 restarts") && notes[0].contains("exit 7"),
        "{notes:?}"
    );
}

#[test]
fn unstartable_strategy_stays_down_without_ending_run() {
    let mut bench = IncidentFixture::new(NextIncarnation::Fails);
    let (list, notes, is_down) = bench.play(60_000).unwrap();
    assert!(is_down);
    assert_eq!((bench.children.starts.len(), list.len()), (8, 9));
    assert!(list[1..].iter().all(|one| one.pid == 0 && one.cause == "cannot be started: no such program"));
    let epochs: Vec<u16> = list.iter().map(|one| one.epoch).collect();
    assert_eq!(epochs, (0..9).collect::<Vec<_>>(), "each attempt is fenced and repaired");
    assert!(notes[0].contains("no such program"), "{notes:?}");
}

#[test]
fn one_that_hangs_at_its_start_stays_down() {
    let mut bench = IncidentFixture::new(NextIncarnation::Hangs);
    let (list, notes, is_down) = bench.play(120_000).unwrap();
    assert!(is_down && bench.seen.get() < 32_000 * MS, "{}", bench.seen.get());
    assert_eq!((bench.children.starts.len(), list.len()), (1, 2));
    assert!(notes[0].contains("hangs"), "{notes:?}");
}

#[test]
fn deaths_by_faults_of_the_plan_cost_nothing() {
    let mut bench = IncidentFixture::new(NextIncarnation::Dies);
    bench.is_planned = true;
    let (list, notes, is_down) = bench.play(500).unwrap();
    assert!(!is_down && notes.is_empty());
    assert!(list.len() > 100 && bench.pauses().iter().all(|pause| *pause <= 3), "{:?}", bench.pauses());
}

#[test]
fn unkillable_process_ends_run_after_timeout() {
    let mut bench = IncidentFixture::new(NextIncarnation::Stays);
    // Nothing is heard of it.
    let error = bench.play(120_000).unwrap_err().to_string();
    assert!(error.contains("strategy-1 (pid 10") && error.contains("has not ended for 30s"), "{error}");
}
