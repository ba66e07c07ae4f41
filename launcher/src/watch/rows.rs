//! Builds the rows of a snapshot from copied counters: roles, rings, strategies and errors.

use super::kernel::KernelThread;
use super::model::{ErrorRow, RingRow, RoleRow, Snapshot, StrategyRow, printable};
use super::sampler::{RateBaseline, Sampler};
use protocol::commands::{ANSWERS_KIND, ANSWERS_SEGMENT, ANSWERS_WORDS, CommandAnswers};
use protocol::control::Control;
use protocol::counters::AgentCounters;
use protocol::kill::{KillCause, Scope};
use protocol::plan::Role;
use protocol::reject::Reject;
use protocol::role::RoleKind;
use protocol::status::{StatusField, ThreadState, ThreadStatus};
use protocol::supervision::{self, REPAIRS, REPAIRS_WORDS, Repairs};
use shm::ring::{array_queue, occupancy, spsc};
use std::collections::BTreeMap;
use system::clock::Clock;

/// Maximum number of remembered error messages of failed threads.
const WORDS: usize = 64;
/// Clock ticks of the kernel in a second, of every Linux that this runs on.
const KERNEL_HZ: f64 = 100.0;
/// How far a heartbeat may be ahead of our clock, in nanoseconds: the skew of two cores. More is a
/// false claim.
const AHEAD_NS: u64 = 1_000_000;

/// Counters that indicate an error if nonzero, with their description.
const WRONG: [(&str, &str); 5] = [
    ("protocol-errors", "invalid messages"),
    ("venue-errors", "invalid messages from the venue"),
    ("stuck", "orders closed: the venue said nothing"),
    ("disconnects", "sessions went down"),
    ("ticks-missed", "versions of touches missed"),
];

/// Returns the counter of a role's rate, and the counters whose difference is in flight.
const fn flow(kind: RoleKind) -> (&'static str, Option<(&'static str, &'static [&'static str])>) {
    match kind {
        RoleKind::Strategy => ("sent", Some(("sent", &["returned", "rejected"]))),
        RoleKind::Orchestrator => ("dispatched", Some(("dispatched", &["settled"]))),
        RoleKind::Gateway | RoleKind::Exchange => ("received", None),
    }
}

impl Sampler {
    pub(super) fn role(
        &mut self,
        role: Role,
        thread: &str,
        status: &ThreadStatus,
        counted: &AgentCounters,
        kernel: Option<KernelThread>,
        pid: Option<u32>,
    ) -> RoleRow {
        let counters: BTreeMap<&'static str, u64> =
            counted.labeled().map(|(label, value)| (label.name, value)).collect();
        let count = |name: &str| counters.get(name).copied().unwrap_or(0);
        let (rate_of, in_flight) = flow(role.kind());
        let in_flight = in_flight.map(|(came, went)| {
            count(came).saturating_sub(went.iter().map(|name| count(name)).fold(0, u64::saturating_add))
        });
        let now = self.plan().clock.now();
        let done = count(rate_of);
        let cpu = kernel.map_or(0, |kernel| kernel.cpu);
        let before = self.before.insert(role, RateBaseline { ticks: now, done, cpu });
        let seconds = before.map(|before| self.ns(now.saturating_sub(before.ticks)) as f64 / 1e9);
        let per_second = |now: u64, before: u64| {
            seconds
                .filter(|seconds| *seconds > 0.0)
                .map(|seconds| now.saturating_sub(before) as f64 / seconds)
        };
        let state = match kernel.map(|kernel| kernel.state) {
            _ if matches!(status.state(), ThreadState::Done | ThreadState::Failed) => status.state().name(),
            None => "gone",
            Some('T' | 't') => "stopped",
            Some('Z' | 'X') => "gone",
            Some(_) => status.state().name(),
        };
        let beat = status.get(StatusField::HeartbeatTicks);
        let is_claim = self.ns(beat.saturating_sub(now)) > AHEAD_NS;
        RoleRow {
            role: role.to_string(),
            thread: printable(thread),
            pid,
            state,
            core: kernel.map(|kernel| kernel.core),
            rate: before.and_then(|before| per_second(done, before.done)),
            in_flight,
            full: count("full"),
            longest_gap_ns: self.ns(status.get(StatusField::LongestGapTicks)),
            heartbeat_age_ns: (beat != 0 && !is_claim).then(|| self.ns(now.saturating_sub(beat))),
            voluntary_switches: kernel.map(|kernel| kernel.voluntary),
            involuntary_switches: kernel.map(|kernel| kernel.involuntary),
            cpu: kernel
                .and(before.and_then(|before| per_second(cpu, before.cpu)))
                .map(|ticks| ticks / KERNEL_HZ),
            counters,
            ..RoleRow::default()
        }
    }

    /// Stores the error message of a failed thread, which its restart would erase.
    pub(super) fn failed(&mut self, control: &Control, roles: &[Role], thread: &str, status: &ThreadStatus) {
        let words = printable(&status.error());
        if status.state() != ThreadState::Failed || words.is_empty() || self.own_words.len() >= WORDS {
            return;
        }
        let epoch = match roles {
            [Role::Strategy(index)] => control.incarnation(*index).epoch,
            _ => 0,
        };
        self.own_words.insert((printable(thread), epoch, words));
    }

    pub(super) fn rings(&self, snapshot: &mut Snapshot) {
        for (spec, parts) in &self.rings {
            let fill = parts.as_ref().and_then(|(ring, head)| match head {
                Some(head) => occupancy::spsc(spec.capacity, head.word(spsc::HEAD)?, |at| ring.word(at)),
                None if spec.kind == array_queue::KIND => {
                    occupancy::array_queue(spec.capacity, |at| ring.word(at))
                }
                None => None,
            });
            snapshot.rings.push(RingRow { ring: printable(&spec.name), fill, capacity: spec.capacity });
        }
    }

    pub(super) fn strategies(&self, control: &Control, snapshot: &mut Snapshot) {
        let repairs = self.run.segment(REPAIRS, supervision::KIND);
        let repairs = repairs.and_then(|segment| Ok(Repairs::new(segment.copy(REPAIRS_WORDS)?)));
        if let Err(error) = &repairs {
            snapshot.unreadable.push(printable(&format!("{error:#}")));
        }
        let trading = self.plan().trading();
        let repairs = repairs.ok();
        for strategy in 0..trading.strategies {
            let life = control.incarnation(strategy);
            let repair =
                repairs.as_ref().map(|repairs| repairs.strategy_repair(strategy)).unwrap_or_default();
            let killed = self.accounts.switches().filter(|(scope, _)| match scope {
                Scope::All => true,
                Scope::Strategy(index) => *index == strategy,
                Scope::Venue(_) | Scope::Instrument(_) => false,
            });
            snapshot.strategies.push(StrategyRow {
                strategy,
                incarnation: life.epoch,
                is_fenced: life.fenced,
                incidents: u64::from(life.epoch) + u64::from(life.fenced),
                quarantined: repair.quarantined.map(|(_, why)| why.to_string()),
                refused: repair.refused,
                orphaned: repair.orphaned,
                killed: killed.map(switch_text).collect(),
                positions: self.accounts.positions_of(strategy),
            });
        }
        let others = self.accounts.switches().filter(|(scope, _)| !matches!(scope, Scope::Strategy(_)));
        snapshot.switches = others.map(switch_text).collect();
        if let Some(what) = repairs.and_then(|repairs| repairs.damage()) {
            snapshot.errors.push(ErrorRow { who: "engine".into(), what: what.to_string(), count: 1 });
        }
    }

    pub(super) fn errors(&self, snapshot: &mut Snapshot) {
        let mut errors = std::mem::take(&mut snapshot.errors);
        let mut add = |who: &str, what: String, count: u64| {
            if count > 0 {
                errors.push(ErrorRow { who: who.into(), what, count });
            }
        };
        for line in &snapshot.roles {
            for (counter, what) in WRONG {
                add(&line.role, what.into(), line.counters.get(counter).copied().unwrap_or(0));
            }
        }
        for strategy in &snapshot.strategies {
            let who = format!("strategy-{}", strategy.strategy);
            if let Some(why) = &strategy.quarantined {
                add(&who, format!("quarantined: {why}"), 1);
            }
            add(&who, "orders of the dead refused".into(), strategy.refused);
            add(&who, "reports that nobody was there to take".into(), strategy.orphaned);
        }
        let mut said: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for (who, _, words) in &self.own_words {
            *said.entry((who, words)).or_default() += 1;
        }
        for ((who, words), count) in said {
            add(who, format!("it says itself: \"{words}\""), count);
        }
        let answers = self.run.segment(ANSWERS_SEGMENT, ANSWERS_KIND);
        match answers.and_then(|segment| Ok(CommandAnswers::new(&segment.copy(ANSWERS_WORDS)?))) {
            Ok(answers) => {
                for reason in Reject::ALL {
                    add("engine", format!("rejected: {}", reason.name()), answers.rejections(reason.code()));
                }
            }
            Err(error) => snapshot.unreadable.push(printable(&format!("{error:#}"))),
        }
        snapshot.errors = errors;
    }
}

/// `all by operator`, `strategy-1 by max-position`.
fn switch_text((scope, cause): (Scope, KillCause)) -> String {
    match cause {
        KillCause::Operator => format!("{scope} by operator"),
        KillCause::Death => format!("{scope} by its death"),
        KillCause::Limit(code) => match protocol::limits::RiskControl::from_code(code) {
            Some(control) => format!("{scope} by {control}"),
            None => format!("{scope} by a limit"),
        },
    }
}
