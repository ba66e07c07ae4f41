//! Shared by the tests, benches and fuzz targets: a link of any technique with its own run, and
//! this binary started again for one of its tests.
#![allow(dead_code, reason = "benches and fuzz targets use their part")]

use protocol::plan::{Idle, Pacing, Plan, Technique, Trading};
use protocol::segments::{self, submit_link};
use shm::attached::Attached;
use shm::memory::{list_segments, unlink};
use shm::ring::{Link, LinkSpec};
use std::process::Command;
use std::sync::Mutex;

/// Returns a command that runs this binary for one of its ignored tests, `module::name`. The test
/// runs alone in its process, on one thread, so it may change the process.
pub fn test_child(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a test binary has a path"));
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    command
}

/// A run with only a plan, and segments that are removed when it is dropped.
pub struct Run(Plan);

impl Run {
    pub fn new(technique: Technique, producers: u16, capacity: u32) -> Self {
        static RUNS: Mutex<u32> = Mutex::new(0);
        let mut runs = RUNS.lock().unwrap();
        *runs += 1;
        let number = *runs;
        drop(runs);
        let mut plan = Plan {
            run: format!("conf{number}-{}", std::process::id()),
            launcher_pid: std::process::id(),
            // Otherwise `launcher clean` would treat these segments as leftovers.
            launcher_start: shm::process::start_time(std::process::id()).unwrap(),
            technique,
            ..Plan::for_trading(Trading { capacity, pacing: Pacing::Closed, ..Trading::new(producers, 1) })
        }
        .arranged();
        // Each thread has a doorbell that the others ring.
        plan.threads.iter_mut().for_each(|thread| thread.idle = Idle::Park);
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

    pub fn link(&self) -> LinkSpec<'_> {
        submit_link(&self.0)
    }

    /// Attaches both ends of the link, consumer first.
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
