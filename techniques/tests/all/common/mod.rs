//! What the tests share: a link of its own for each, of any technique, and this binary started
//! again for one of its tests. The benches and the fuzz targets use the link too.
#![allow(dead_code, reason = "benches and fuzz targets use their part")]

use protocol::plan::{Pacing, Plan, Technique, Trading};
use protocol::segments::{self, submit_link};
use shm::attached::Attached;
use shm::memory::{list_segments, unlink};
use shm::ring::{Link, LinkSpec};
use std::process::Command;
use std::sync::Mutex;

/// This binary once more, for one of its tests that is ignored elsewhere: `folder::name`. It runs
/// alone there, with one thread of its own, so it may change what belongs to the process.
pub fn itself(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a test binary has a path"));
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    command
}

/// A run of its own: nothing but a plan, and segments that go when it is dropped.
pub struct Run(Plan);

impl Run {
    pub fn new(technique: Technique, producers: u16, capacity: u32) -> Self {
        static RUNS: Mutex<u32> = Mutex::new(0);
        let mut runs = RUNS.lock().unwrap();
        *runs += 1;
        let number = *runs;
        drop(runs);
        let plan = Plan {
            run: format!("conf{number}-{}", std::process::id()),
            launcher_pid: std::process::id(),
            // Or `launcher clean` would take these segments for those of a dead run.
            launcher_start: shm::process::start_time(std::process::id()).unwrap(),
            technique,
            ..Plan::of(Trading { capacity, pacing: Pacing::Closed, ..Trading::new(producers, 1) })
        }
        .arranged();
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
