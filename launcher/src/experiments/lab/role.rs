//! One process of a lab's run: attaches what it was handed, goes into the sandbox, and runs its ends.

use super::account::{Account, READY};
use super::ends::Job;
use super::plan::{CONTROL, CONTROL_KIND, LabPlan, PLAN, Role, attach, bell_of};
use super::techniques::{End, ends_of};
use super::waiting::{Pace, Waiting};
use analysis::experiment::{Speed, Wait};
use anyhow::{Context, Result, anyhow, bail};
use shm::attached::Attached;
use shm::bell::{self, Bell, Listener};
use shm::memory::sealed::{self, Handle};
use shm::memory::{Header, Region, View};
use shm::sync::{AtomicU64, Ordering};
use system::sandbox::STRATEGY;
use system::{pin, process};

/// What the names of a lab's processes begin with.
pub(crate) const PREFIX: &str = "lab-";

/// Runs the process of that name, until its events are through.
///
/// # Errors
/// What kept it from starting.
pub(crate) fn run(name: &str, address: &str) -> Result<()> {
    let (control, plan) = open(address).context("this command is started by the launcher")?;
    process::die_with_parent(plan.launcher_pid)?;
    process::set_thread_name(name);
    exit_on_panic();
    let processes = plan.processes();
    let mine = processes.iter().find(|(own, _)| own == name).map(|(_, roles)| roles.as_slice());
    let mine = mine.ok_or_else(|| anyhow!("this run has no process {name}"))?;
    let roles = plan.roles();
    let mut attached = attach(&plan, mine, &control);
    let mut parts = Vec::new();
    // Consumers come last in a plan and attach first: a socket is bound by them.
    for place in mine.iter().rev() {
        parts.push(Part::new(&plan, roles[*place], plan.cores[*place], &mut attached)?);
    }
    let confined = mine.iter().any(|place| plan.is_sandboxed(roles[*place]));
    if confined {
        STRATEGY.confine(plan.weaker_sandbox)?;
    }
    let unprepared = AtomicU64::new(parts.len() as u64);
    std::thread::scope(|scope| {
        let (plan, control, unprepared) = (&plan, &control, &unprepared);
        let threads: Vec<_> = parts
            .into_iter()
            .map(|part| scope.spawn(move || part.run(plan, control, confined.then_some(unprepared))))
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow!("a thread panicked"))?)
    })
}

/// A panic on any thread ends the process.
fn exit_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        print(info);
        std::process::exit(101);
    }));
}

/// The control segment, by its descriptor, and the plan in it.
fn open(address: &str) -> Result<(View, LabPlan)> {
    let fd = address.strip_prefix("fd:").and_then(|fd| fd.parse().ok()).context("not a descriptor")?;
    let file = sealed::take(&Handle { what: CONTROL.into(), fd, writable: false })?;
    let view = Region::map_read_only(CONTROL, &file)?;
    Header::read(|word, ordering| view.load(word, ordering), view.len(), CONTROL_KIND)?;
    if view.len() <= PLAN {
        bail!("{CONTROL} is too short");
    }
    let length = view.load(PLAN, Ordering::Relaxed) as usize;
    let words = view.len().min(PLAN + 1 + length.div_ceil(8));
    let mut bytes: Vec<u8> =
        (PLAN + 1..words).flat_map(|word| view.load(word, Ordering::Relaxed).to_le_bytes()).collect();
    bytes.truncate(length);
    Ok((view, serde_json::from_slice(&bytes)?))
}

/// One end, attached.
struct Part {
    role: Role,
    core: Option<u32>,
    account: Account,
    end: End,
    waiting: Waiting,
    bells: Vec<Bell>,
}

impl Part {
    fn new(plan: &LabPlan, role: Role, core: Option<u32>, attached: &mut Attached<'_>) -> Result<Self> {
        let ends = ends_of(plan.technique).with_context(|| format!("no loops for {}", plan.technique))?;
        let end = match role {
            Role::Producer(index) => (ends.producer)(plan, index, attached)?,
            Role::Consumer(index) => (ends.consumer)(plan, index, attached)?,
        };
        let account = Account::attach(attached, &role.name())?;
        let (mut own, mut bells) = (None, Vec::new());
        if plan.wait == Wait::Park {
            let mut bell = |role| attached.region(&bell_of(role), bell::KIND).map(|region| region.words());
            let words = bell(role)?;
            own = Some(Listener::new(&words).and_outside(&words));
            let is_producer = |role: &Role| matches!(role, Role::Producer(_));
            for other in plan.roles().into_iter().filter(|other| is_producer(other) != is_producer(&role)) {
                bells.push(Bell::from_outside(&bell(other)?));
            }
        }
        let waiting = Waiting::new(plan.wait, plan.poll_ns, own);
        Ok(Self { role, core, account, end, waiting, bells })
    }

    fn run(self, plan: &LabPlan, control: &View, confined: Option<&AtomicU64>) -> Result<()> {
        let Self { role, core, account, end, waiting, bells } = self;
        process::timer_slack(plan.slack_ns);
        if let Some(core) = core {
            pin::pin_to(core).with_context(|| role.name())?;
        }
        // AcqRel: the last thread that is prepared comes after all others, and closes the door behind them.
        if confined.is_some_and(|left| left.fetch_sub(1, Ordering::AcqRel) == 1) {
            STRATEGY.restrict_calls(plan.technique.is_kernel())?;
        }
        let (speed, index, events) = match role {
            Role::Producer(index) => (plan.producer, index, plan.events[usize::from(index)]),
            Role::Consumer(index) => (plan.consumer, index, plan.total()),
        };
        let slow = (speed == Speed::Slow).then_some(plan.slow);
        let is_consumer = u64::from(matches!(role, Role::Consumer(_)));
        let seed = plan.seed.wrapping_mul(1 << 16).wrapping_add(u64::from(index) << 1 | is_consumer);
        let pace = Pace::new(slow, plan.jitter, plan.ns_per_tick, seed);
        account.set_state(READY);
        let job = Job {
            control,
            account: &account,
            clock: plan.clock,
            waiting,
            pace,
            bells,
            index,
            producers: plan.producers(),
            events,
        };
        end(job);
        Ok(())
    }
}
