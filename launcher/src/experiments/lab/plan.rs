//! What the processes of one run are told, and the segments that they share.
//!
//! ```text
//! lab.control           the launcher writes: the state of the run, who is who, and this plan as JSON
//! lab.ROLE              one for each role, which alone writes it: see `account`
//! lab.bell.ROLE         where ends park: whoever may wait on it
//! queue-0, queue-1 …    the queue of each consumer: segments of the technique
//! ```
//!
//! Memory has no names: each process inherits descriptors of what it may read or write, and of nothing else, at `process` and
//! `sandbox` alike. Only what the kernel carries (`pipe`, `unix-seqpacket`) has names in `/dev/shm`.

use super::account::{self, MOST};
use analysis::experiment::{Speed, Wait};
use protocol::plan::{Isolation, Plan};
use serde::{Deserialize, Serialize};
use shm::attached::{Access, Attached, Peers, SameProcess, Source};
use shm::bell;
use shm::memory::header::{HEADER_WORDS, run_hash};
use shm::memory::sealed::Handle;
use shm::memory::{SegmentKind, View};
use shm::ring::{LinkSpec, SegmentSpec};
use shm::sync::Ordering;
use system::clock::ClockSource;
use techniques::Technique;

/// The control segment.
pub(super) const CONTROL: &str = "lab.control";
pub(super) const CONTROL_KIND: SegmentKind =
    SegmentKind::new(40, "lab-control", &[("state", STATE), ("pids", PIDS), ("plan", PLAN)]);
/// The state of the run.
pub(super) const STATE: usize = HEADER_WORDS;
/// The process id of each role.
pub(super) const PIDS: usize = STATE + 16;
/// The length of the plan in bytes, then its bytes.
pub(super) const PLAN: usize = PIDS + 2 * MOST as usize;

/// The roles prepare.
pub(super) const PREPARE: u64 = 0;
/// They run.
pub(super) const GO: u64 = 1;
/// All producers are done: a consumer that finds nothing more ends.
pub(super) const DRAIN: u64 = 2;
/// They end at once.
pub(super) const STOP: u64 = 3;

/// What an end does for each event beside handing it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Slow {
    /// Sleeps.
    Sleep {
        /// Nanoseconds.
        ns: u64,
    },
    /// Works.
    Work {
        /// Nanoseconds.
        ns: u64,
    },
}

impl Slow {
    /// How long it is.
    pub(super) const fn ns(self) -> u64 {
        match self {
            Slow::Sleep { ns } | Slow::Work { ns } => ns,
        }
    }
}

/// A role of a run: producers first, then consumers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Producer(u16),
    Consumer(u16),
}

impl Role {
    pub(super) fn name(self) -> String {
        match self {
            Role::Producer(index) => format!("producer-{index}"),
            Role::Consumer(index) => format!("consumer-{index}"),
        }
    }
}

/// Everything about one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LabPlan {
    /// The run's id.
    pub run: String,
    pub launcher_pid: u32,
    pub technique: Technique,
    pub isolation: Isolation,
    pub capacity: u32,
    /// The events of each producer.
    pub events: Vec<u64>,
    pub consumers: u16,
    pub producer: Speed,
    pub consumer: Speed,
    pub slow: Slow,
    pub jitter: f64,
    pub wait: Wait,
    pub poll_ns: u64,
    pub slack_ns: u64,
    /// The core of each role; none for one that is not pinned.
    pub cores: Vec<Option<u32>>,
    pub clock: ClockSource,
    pub ns_per_tick: f64,
    pub seed: u64,
    pub weaker_sandbox: bool,
    pub handles: Vec<Handle>,
}

/// A segment and who may do what with it.
pub(super) struct Planned {
    pub spec: SegmentSpec,
    /// By role, in the order of [`LabPlan::roles`].
    pub rights: Vec<Option<Access>>,
}

impl LabPlan {
    pub(super) fn producers(&self) -> u16 {
        self.events.len() as u16
    }

    /// All events of the run, as each consumer gets them.
    pub(super) fn total(&self) -> u64 {
        self.events.iter().sum()
    }

    pub(super) fn roles(&self) -> Vec<Role> {
        let producers = (0..self.producers()).map(Role::Producer);
        producers.chain((0..self.consumers).map(Role::Consumer)).collect()
    }

    /// The processes with their names and the places of their roles.
    pub(super) fn processes(&self) -> Vec<(String, Vec<usize>)> {
        let roles = self.roles();
        if self.isolation == Isolation::Thread {
            return vec![("lab-all".into(), (0..roles.len()).collect())];
        }
        roles.iter().enumerate().map(|(place, role)| (format!("lab-{}", role.name()), vec![place])).collect()
    }

    /// Whether that role's process is put into the sandbox. What a consumer of the kernel's queues needs is not in the profile.
    pub(super) fn is_sandboxed(&self, role: Role) -> bool {
        let consumes = matches!(role, Role::Consumer(_));
        self.isolation == Isolation::Sandbox && !(consumes && self.technique.is_kernel())
    }

    /// The name of a consumer's queue.
    pub(super) fn queue(consumer: u16) -> String {
        format!("queue-{consumer}")
    }

    /// The queue of that name as its technique knows it.
    pub(super) fn link<'a>(&self, name: &'a str) -> LinkSpec<'a> {
        LinkSpec { name, producers: self.producers().into(), capacity: self.capacity }
    }

    /// All segments but the control segment.
    pub(super) fn segments(&self) -> Vec<Planned> {
        let roles = self.roles();
        let mut segments = Vec::new();
        for consumer in 0..self.consumers {
            let name = Self::queue(consumer);
            for spec in self.technique.segments(&self.link(&name)) {
                let right = |role: &Role| match *role {
                    Role::Producer(index) => {
                        let is_users = spec.ends.only.is_none_or(|only| only == usize::from(index));
                        spec.ends.producer.filter(|_| is_users)
                    }
                    Role::Consumer(index) => spec.ends.consumer.filter(|_| index == consumer),
                };
                let rights = roles.iter().map(right).collect();
                segments.push(Planned { spec, rights });
            }
        }
        for (place, role) in roles.iter().enumerate() {
            let own = |other: usize| (other == place).then_some(Access::Write);
            let rights = (0..roles.len()).map(own).collect();
            let events = if matches!(role, Role::Consumer(_)) { self.total() } else { 0 };
            segments.push(Planned { spec: account::segment(&role.name(), events), rights });
            if self.wait == Wait::Park {
                let spec = account::memory(bell_of(*role), bell::BELL_WORDS, bell::KIND);
                segments.push(Planned { spec, rights: vec![Some(Access::Write); roles.len()] });
            }
        }
        segments
    }
}

/// The segment of a role's bell.
pub(super) fn bell_of(role: Role) -> String {
    format!("lab.bell.{}", role.name())
}

/// Where a process of a run finds the segments: among what it has inherited.
struct Inherited<'a> {
    plan: &'a LabPlan,
    segments: Vec<Planned>,
    mine: Vec<usize>,
    control: View,
}

/// The processes of a run, by the control segment.
struct Known {
    control: View,
    producers: usize,
    consumer: usize,
}

impl Peers for Known {
    fn producer(&self, index: usize) -> Option<u32> {
        (index < self.producers).then(|| self.pid(index)).flatten()
    }

    fn consumer(&self) -> Option<u32> {
        self.pid(self.producers + self.consumer)
    }
}

impl Known {
    fn pid(&self, place: usize) -> Option<u32> {
        // Acquire: pairs with the launcher's store; nothing else comes with it.
        let pid = self.control.load(PIDS + place, Ordering::Acquire);
        u32::try_from(pid).ok().filter(|pid| *pid != 0)
    }
}

impl Source for Inherited<'_> {
    fn name(&self, what: &str) -> String {
        segment_name(self.plan, what)
    }

    fn run(&self) -> u64 {
        run_hash(&self.plan.run)
    }

    fn right(&self, what: &str) -> Option<Access> {
        let planned = self.segments.iter().find(|planned| planned.spec.what == what)?;
        strongest(self.mine.iter().filter_map(|role| planned.rights[*role]))
    }

    fn handles(&self) -> &[Handle] {
        &self.plan.handles
    }

    fn peers(&self, link: &str) -> Box<dyn Peers> {
        if self.plan.isolation == Isolation::Thread {
            return Box::new(SameProcess);
        }
        let consumer = link.rsplit_once('-').and_then(|(_, index)| index.parse().ok()).unwrap_or(0);
        let producers = self.plan.events.len();
        Box::new(Known { control: self.control.clone(), producers, consumer })
    }
}

/// The stronger of these rights.
pub(super) fn strongest(rights: impl Iterator<Item = Access>) -> Option<Access> {
    rights.reduce(|one, other| if one == Access::Write { one } else { other })
}

/// The full name of a segment of the run.
pub(super) fn segment_name(plan: &LabPlan, what: &str) -> String {
    format!("{}{}.{what}", Plan::PREFIX, plan.run)
}

/// The segments of the run as the process with these roles has them.
pub(super) fn attach<'a>(plan: &'a LabPlan, mine: &[usize], control: &View) -> Attached<'a> {
    let (segments, mine) = (plan.segments(), mine.to_vec());
    Attached::new(Inherited { plan, segments, mine, control: control.clone() })
}
