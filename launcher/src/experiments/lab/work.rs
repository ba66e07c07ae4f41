//! Sets up and measures one run of the queue benchmark: producers, consumers, and the queue of each
//! consumer.

use crate::experiments::bench::{BenchPlan, BenchWork, MeasuredLoop, SharedSegment};
use analysis::experiment::{Speed, Wait};
use anyhow::{Context, Result};
use roles::bench::account::AgentAccount;
use roles::bench::control::ControlView;
use roles::bench::queues::QueueEnd;
use roles::bench::queues::ledger::{self, MAX_ENDS};
use roles::bench::queues::waiting::{Pace, Slow, WaitStrategy};
use roles::registry;
use serde::{Deserialize, Serialize};
use shm::attached::{Access, Attached, Peers};
use shm::bell::{self, Doorbell, Listener};
use shm::ring::{EndRights, LinkSpec, SegmentSpec};
use std::time::Duration;
use techniques::Technique;

/// How long a run may make no progress, in addition to its pace.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(10);

/// The work of one run of the queue benchmark: queue, events, speeds and waiting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabWork {
    pub technique: Technique,
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
    pub seed: u64,
}

impl LabWork {
    pub(super) fn producers(&self) -> usize {
        self.events.len()
    }

    /// Returns the number of all producers' events in a run. Each consumer gets all of them.
    pub(super) fn total(&self) -> u64 {
        self.events.iter().sum()
    }

    /// The number of a consumer; `None` for a producer.
    fn consumer_of(&self, agent: usize) -> Option<usize> {
        agent.checked_sub(self.producers())
    }

    /// The queue of a consumer as its technique numbers it.
    fn link<'a>(&self, name: &'a str) -> LinkSpec<'a> {
        LinkSpec { name, producers: self.producers(), capacity: self.capacity }
    }
}

fn queue_name(consumer: usize) -> String {
    format!("queue-{consumer}")
}

fn bell_name(agent: usize) -> String {
    format!("bell-{agent}")
}

impl BenchWork for LabWork {
    const PREFIX: &'static str = "lab-";
    const SURVIVES_DEATHS: bool = false;

    fn agents(&self) -> Vec<String> {
        let producers = (0..self.producers()).map(|index| format!("producer-{index}"));
        producers.chain((0..self.consumers).map(|index| format!("consumer-{index}"))).collect()
    }

    fn sources(&self) -> usize {
        self.producers()
    }

    fn segments(&self) -> Vec<SharedSegment> {
        let agents = self.producers() + usize::from(self.consumers);
        let mut segments = Vec::new();
        for consumer in 0..usize::from(self.consumers) {
            let name = queue_name(consumer);
            for spec in self.technique.segments(&self.link(&name)) {
                let right = |agent: usize| match self.consumer_of(agent) {
                    None => spec.ends.producer.filter(|_| spec.ends.only.is_none_or(|only| only == agent)),
                    Some(own) => spec.ends.consumer.filter(|_| own == consumer),
                };
                let rights = (0..agents).map(right).collect();
                segments.push(SharedSegment { spec, rights });
            }
        }
        // Ends that park: a peer that may ring can write the whole bell.
        let parking = if self.wait == Wait::Park { agents } else { 0 };
        segments.extend((0..parking).map(|agent| SharedSegment {
            spec: SegmentSpec::memory(bell_name(agent), bell::KIND, bell::BELL_WORDS, EndRights::NONE),
            rights: vec![Some(Access::Write); agents],
        }));
        segments
    }

    fn account_words(&self, agent: usize) -> usize {
        ledger::account_words(self.consumer_of(agent).map_or(0, |_| self.total()))
    }

    /// What a consumer of the kernel's queues needs is not in the sandbox's profile.
    fn is_confined(&self, agent: usize) -> bool {
        !(self.uses_kernel() && self.consumer_of(agent).is_some())
    }

    fn uses_kernel(&self) -> bool {
        self.technique.is_kernel()
    }

    fn peers(&self, link: &str, control: &ControlView) -> Box<dyn Peers> {
        let consumer = link.rsplit_once('-').and_then(|(_, index)| index.parse().ok()).unwrap_or(0);
        Box::new(LinkPeers { control: control.clone(), producers: self.producers(), consumer })
    }

    fn attach(
        plan: &BenchPlan<Self>,
        agent: usize,
        attached: &mut Attached<'_>,
        _: &AgentAccount,
    ) -> Result<MeasuredLoop> {
        let work = &plan.work;
        let loops = registry::queue_loops_of(work.technique)
            .with_context(|| format!("no loops for {}", work.technique))?;
        let queues: Vec<String> = (0..work.consumers.into()).map(queue_name).collect();
        let links: Vec<LinkSpec<'_>> = queues.iter().map(|name| work.link(name)).collect();
        let end = match work.consumer_of(agent) {
            None => (loops.producer)(&links, agent, attached)?,
            Some(consumer) => (loops.consumer)(&links[consumer], attached)?,
        };
        let (waiting, bells) = work.waiting(agent, attached)?;
        let (speed, index, events) = match work.consumer_of(agent) {
            None => (work.producer, agent, work.events[agent]),
            Some(consumer) => (work.consumer, consumer, work.total()),
        };
        let is_consumer = u64::from(work.consumer_of(agent).is_some());
        let seed = work.seed.wrapping_mul(1 << 16).wrapping_add((index as u64) << 1 | is_consumer);
        let slow = (speed == Speed::Slow).then_some(work.slow);
        let pace = Pace::new(slow, work.jitter, plan.ns_per_tick, seed);
        let producers = work.producers() as u16;
        Ok(Box::new(move |context| {
            end(QueueEnd {
                control: context.control,
                account: context.account,
                clock: context.clock,
                waiting,
                pace,
                bells,
                index: index as u16,
                producers,
                events,
            });
        }))
    }

    fn progress_timeout(&self, _: bool) -> Duration {
        PROGRESS_TIMEOUT + Duration::from_nanos(self.slow.ns().saturating_mul(20))
    }
}

impl LabWork {
    /// How an agent waits, and the bells that it rings.
    fn waiting(&self, agent: usize, attached: &mut Attached<'_>) -> Result<(WaitStrategy, Vec<Doorbell>)> {
        let waiting = match self.wait {
            Wait::Busy => WaitStrategy::busy(),
            Wait::Yield => WaitStrategy::yielding(),
            Wait::Poll => WaitStrategy::polling(Duration::from_nanos(self.poll_ns)),
            Wait::Park => {
                let mut bell =
                    |agent| attached.region(&bell_name(agent), bell::KIND).map(|found| found.words());
                let own = bell(agent)?;
                let (producers, agents) = (0..self.producers(), self.agents().len());
                let others = if producers.contains(&agent) { producers.end..agents } else { producers };
                let bells =
                    others.map(|other| Ok(Doorbell::from_outside(&bell(other)?))).collect::<Result<_>>()?;
                return Ok((WaitStrategy::parking(Listener::new(&own).with_outside(&own)), bells));
            }
        };
        Ok((waiting, Vec::new()))
    }
}

/// The processes at the ends of a consumer's queue.
struct LinkPeers {
    control: ControlView,
    producers: usize,
    consumer: usize,
}

impl Peers for LinkPeers {
    fn producer(&self, index: usize) -> Option<u32> {
        (index < self.producers).then(|| self.control.pid(index)).flatten()
    }

    fn consumer(&self) -> Option<u32> {
        (self.consumer < MAX_ENDS.into()).then(|| self.control.pid(self.producers + self.consumer)).flatten()
    }
}
