//! The processes, plan and segments that the benchmarks `lab` and `board` share. The measured loops
//! run in pinned processes, over unnamed memory.
//!
//! ```text
//! launcher  BenchPlan ─▶ segments ─▶ processes ─▶ all ready ─▶ GO ─▶ watch ─▶ DRAIN ─▶ accounts
//! process   plan ─▶ attach ─▶ sandbox, core ─▶ READY ─▶ start tick ─▶ measured loop ─▶ DONE
//! ```
//!
//! A [`BenchWork`] defines what is measured: agents, their segments, and one loop for each. Sources
//! make what the other agents take. The loops are in `roles::bench`.

mod child;
mod launch;
mod plan;
mod segments;

pub use child::run as child;
pub use launch::{BenchOutcome, run};
pub use plan::{BenchClock, BenchPlan, SharedSegment};

use crate::config::{CoreList, UsageError};
use crate::host::Machine;
use crate::output::complain;
use analysis::cpu_list;
use anyhow::{Result, bail};
use protocol::plan::Isolation;
use roles::bench::account::AgentAccount;
use roles::bench::control::ControlView;
use serde::Serialize;
use serde::de::DeserializeOwned;
use shm::attached::{Attached, Peers, SameProcess};
use shm::memory::{AtomicWords, Header};
use shm::ring::SegmentSpec;
use std::time::Duration;
use system::clock::{ClockSource, Timebase};
use system::sandbox;

/// Warns that the machine is unfit for latency figures just now, before time is spent on them.
pub fn warn_unfit(unfit: &[String]) {
    unfit.iter().for_each(|reason| complain(&format!("warning: not fit for latency claims: {reason}")));
}

/// The work of a benchmark: its agents (threads), shared segments and measured loops. Every process
/// of the run gets it with the plan.
pub trait BenchWork: Clone + Serialize + DeserializeOwned + Send + Sync {
    /// Prefix of the names of the benchmark's processes, for example `lab-`.
    const PREFIX: &'static str;
    /// `true` if a benchmark run continues when an agent dies. A dead first agent is then replaced,
    /// and what Ctrl-C interrupts is kept. If not, a death and Ctrl-C end the run.
    const SURVIVES_DEATHS: bool;

    /// Returns the names of the benchmark's agents, those that produce messages first.
    fn agents(&self) -> Vec<String>;

    fn sources(&self) -> usize;

    /// Returns the shared segments of the benchmark, without its agents' result segments.
    fn segments(&self) -> Vec<SharedSegment>;

    fn account_words(&self, agent: usize) -> usize;

    /// Writes the header and the initial contents of a new segment.
    fn write_segment(&self, spec: &SegmentSpec, header: Header, words: &AtomicWords) {
        let _ = spec;
        header.write(words);
    }

    /// Returns `true` if the agent is sandboxed at isolation `sandbox`.
    fn is_confined(&self, agent: usize) -> bool {
        let _ = agent;
        true
    }

    /// Returns `true` if the benchmark's messages pass through the kernel.
    fn uses_kernel(&self) -> bool {
        false
    }

    /// Returns the processes at the ends of a link, found by their agents' process ids.
    fn peers(&self, link: &str, control: &ControlView) -> Box<dyn Peers> {
        let _ = (link, control);
        Box::new(SameProcess)
    }

    /// Attaches a benchmark agent's segments and returns its measured loop.
    fn attach(
        plan: &BenchPlan<Self>,
        agent: usize,
        attached: &mut Attached<'_>,
        account: &AgentAccount,
    ) -> Result<MeasuredLoop>;

    /// Returns how long a benchmark run may make no progress before it fails.
    fn progress_timeout(&self, is_draining: bool) -> Duration;
}

/// The measured loop of one agent: one dynamic call for each thread.
pub type MeasuredLoop = Box<dyn FnOnce(&LoopContext<'_>) + Send>;

/// The clock, run state and result segment that a measured loop receives at its start.
pub struct LoopContext<'a> {
    pub control: &'a ControlView,
    pub account: &'a AgentAccount,
    pub clock: ClockSource,
    pub time: Timebase,
}

/// Checks that the agents of a benchmark can have these isolation levels.
pub fn check_isolation(isolations: &[Isolation]) -> Result<(), UsageError> {
    if isolations.contains(&Isolation::Container) {
        let why = "what is measured are bulkhead's own processes; use --isolation process, whose memory is the same";
        return Err(UsageError(format!("--isolation container: {why}")));
    }
    Ok(())
}

/// Checks that the kernel has all sandbox features, if a benchmark is to run in the sandbox.
pub fn check_sandbox(mut isolations: impl Iterator<Item = Isolation>, weaker_sandbox: bool) -> Result<()> {
    if weaker_sandbox || !isolations.any(|isolation| isolation == Isolation::Sandbox) {
        return Ok(());
    }
    match sandbox::missing().join("; ") {
        missing if missing.is_empty() => Ok(()),
        missing => bail!("no full sandbox here: {missing}; --allow-weaker-sandbox continues without it"),
    }
}

/// Returns the cores that the user requested for a benchmark; `None` if none were requested.
pub fn check_cores(asked: Option<&CoreList>, machine: &Machine) -> Result<Option<Vec<u32>>, UsageError> {
    let Some(CoreList(cores)) = asked else { return Ok(None) };
    if let Some(core) = cores.iter().find(|core| !machine.cores_allowed.contains(core)) {
        let allowed = cpu_list::format(&machine.cores_allowed);
        return Err(UsageError(format!("--cores: core {core} is not allowed here (allowed: {allowed})")));
    }
    Ok(Some(cores.clone()))
}
