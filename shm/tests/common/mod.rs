//! A link of its own for a test, of any technique.
#![allow(dead_code, reason = "each test binary uses its part")]

use protocol::plan::{
    ClockSource, Idle, Isolation, OnDeath, Pacing, Plan, ProcessPlan, Role, Technique, ThreadPlan, Threading,
    WorkPlan,
};
use protocol::segments::{self, submit_link};
use shm::attached::Attached;
use shm::memory::region::{list_segments, unlink};
use shm::ring::{Link, LinkSpec};
use std::sync::Mutex;

/// A run of its own: nothing but a plan, and segments that go when it is dropped.
pub struct Run(Plan);

impl Run {
    pub fn new(technique: Technique, producers: u16, capacity: u32) -> Self {
        static RUNS: Mutex<u32> = Mutex::new(0);
        let mut runs = RUNS.lock().unwrap();
        *runs += 1;
        let number = *runs;
        drop(runs);
        let thread =
            |name: String, roles| ThreadPlan { name, roles, core: None, idle: Idle::Yield, log_records: 1 };
        let mut threads: Vec<ThreadPlan> =
            (0..producers).map(|i| thread(format!("strategy-{i}"), vec![Role::Strategy(i)])).collect();
        threads.push(thread("engine".into(), vec![Role::Orchestrator, Role::Gateway(0)]));
        let plan = Plan {
            run: format!("conf{number}-{}", std::process::id()),
            folder: String::new(),
            launcher_pid: std::process::id(),
            // Or `launcher clean` would take these segments for those of a dead run.
            launcher_start: shm::os::process::start_time(std::process::id()).unwrap(),
            technique,
            isolation: Isolation::Process,
            threading: Threading::Shared,
            clock: ClockSource::Monotonic,
            ns_per_tick: 1.0,
            strategies: producers,
            venues: 1,
            capacity,
            max_open: 1,
            max_held: 1,
            pacing: Pacing::Closed,
            orders: vec![0; producers.into()],
            venue_orders: Vec::new(),
            max_delay_ns: 0,
            stamps: protocol::plan::Stamps::All,
            work: WorkPlan::default(),
            handles: Vec::new(),
            weaker_sandbox: false,
            on_death: OnDeath::Stop,
            liveness_ns: 10_000_000_000,
            faults: Vec::new(),
            processes: (0..threads.len() as u32)
                .map(|i| ProcessPlan { name: format!("p{i}"), threads: vec![i] })
                .collect(),
            threads,
        };
        plan.validate().unwrap();
        Self(plan)
    }

    /// Creates the submit link's segments as the launcher does.
    pub fn create<T: Link>(&self) -> &Plan {
        for spec in T::segments(&submit_link(&self.0)) {
            segments::create(&self.0, &spec).unwrap();
        }
        &self.0
    }

    pub fn plan(&self) -> &Plan {
        &self.0
    }

    pub fn link(&self) -> LinkSpec {
        submit_link(&self.0)
    }

    /// Both ends of the link, consumer first, as one process attaches them.
    pub fn attach<T: Link>(&self, attached: &mut Attached<'_>) -> (T::Consumer, Vec<T::Producer>) {
        let spec = self.link();
        let consumer = attached.consumer::<T>(&spec).unwrap();
        let producers = (0..spec.producers).map(|i| attached.producer::<T>(&spec, i).unwrap()).collect();
        (consumer, producers)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let prefix = self.0.segment_name("");
        for name in list_segments().unwrap().iter().filter(|name| name.starts_with(&prefix)) {
            unlink(name).unwrap();
        }
    }
}
