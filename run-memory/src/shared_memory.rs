//! The supervisor's view of a run's shared memory: reads what it observes there and performs those
//! of its actions that write there. The same for real and simulated runs.

use crate::lost_memory;
use crate::segments::Segments;
use anyhow::{Context, Result, bail};
use protocol::counters::{AgentCounters, ThreadCounters};
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::labels::{ExchangeCounter, GatewayCounter, OrchestratorCounter, StrategyCounter};
use protocol::plan::Role;
use protocol::status::{self, COUNTERS_OFFSET, GAPS, LOG_OFFSET, LivenessSample, StatusField, ThreadState};
use protocol::supervision::{ProofOfDeath, Repairs};
use protocol::tape::TapeView;
use shm::bell::Doorbell;
use std::time::Duration;
use supervision::Supervisor;
use supervision::actions::Action;
use supervision::observations::{
    EngineObservation, ExchangeObservation, GatewayObservation, Observations, RecoveryObservation,
    StrategyObservation, ThreadObservation,
};
use system::clock::Clock;

/// The supervisor's access to a run's shared memory: reads states and counters, and performs the
/// actions that write there.
pub struct SharedMemory<'a> {
    /// The segments of the run.
    pub segments: &'a Segments,
    repairs: Repairs,
    /// The process of each strategy.
    strategies: Vec<Option<usize>>,
    engine_bell: Option<Doorbell>,
}

impl<'a> SharedMemory<'a> {
    /// Creates the supervisor's view of a run's segments.
    pub fn new(segments: &'a Segments) -> Self {
        let repairs = segments.repairs();
        let strategies = 0..segments.plan.trading().strategies;
        Self {
            segments,
            repairs: Repairs::new(repairs.into()),
            strategies: strategies
                .map(|index| segments.plan.process_of(Role::Strategy(StrategyIndex(index))))
                .collect(),
            engine_bell: segments.engine_bell.as_ref().map(Doorbell::from_outside),
        }
    }

    /// Sleeps until the engine reports a repair in shared memory, for the time `at_most` at the
    /// longest.
    pub fn wait_for_engine(&self, at_most: Duration) {
        self.repairs.wait(self.repairs.report_count(), at_most);
    }

    /// Updates `observed` with the threads' states, the roles' counters and the engine's reports in
    /// the run's shared memory. Processes were observed before: what is read of a dead process is
    /// final.
    pub fn observe(&self, supervisor: &Supervisor<'_>, clock: &impl Clock, observed: &mut Observations) {
        let plan = &self.segments.plan;
        observed.threads.clear();
        for (words, planned) in self.segments.threads.iter().zip(&plan.threads) {
            let pulse = status::sample_liveness(words);
            // Read the clock after the pulse: the pulse cannot be later.
            let ticks = clock.now();
            let is_failed = ThreadState::from_code(pulse.state) == ThreadState::Failed;
            let error = if is_failed { status::read(words).error() } else { String::new() };
            // The first counter of each measured loop counts its events.
            let counters = || status::counters_of(words, &planned.roles, planned.roles[0]).labeled().next();
            let measured_events = if plan.is_trading() { None } else { counters() };
            observed.threads.push(ThreadObservation {
                pulse,
                ticks,
                error,
                measured_events: measured_events.map_or(0, |(_, count)| count),
                cpu: None,
                waits_for_disk: false,
                debugger: None,
                is_gone: false,
            });
        }
        // In the direction of the orders: none that is counted before is missing after.
        observed.strategies.clear();
        observed.strategies.extend(StrategyIndex::first(plan.trading().strategies).map(|strategy| {
            let own = self.counters(Role::Strategy(strategy));
            let process = self.strategies[strategy.as_usize()];
            let process = process.and_then(|process| observed.processes.get(process));
            let has_exited = process.is_some_and(|process| process.exit.is_some());
            let reads_headers = has_exited || supervisor.containment().is_inspected(strategy);
            StrategyObservation {
                sent: own.get(StrategyCounter::Sent),
                returned: own.get(StrategyCounter::Returned),
                rejected: own.get(StrategyCounter::Rejected),
                repair: self.repairs.strategy_repair(strategy),
                forged_header: reads_headers.then(|| self.segments.headers.forged_by(strategy)).flatten(),
            }
        }));
        (observed.ended_by_operators, observed.added_by_operators) = self.segments.changed_by_operators();
        observed.engine = self.observe_engine();
        observed.gateways.clear();
        observed.gateways.extend(GatewayIndex::first(plan.trading().gateways()).map(|gateway| {
            let own = self.counters(Role::Gateway(gateway));
            GatewayObservation {
                received: own.get(GatewayCounter::Received),
                completed: own.get(GatewayCounter::Completed),
                repair: self.repairs.gateway_repair(gateway),
            }
        }));
        observed.exchanges.clear();
        observed.exchanges.extend(plan.trading().books().map(|venue| {
            let own = self.counters(Role::Exchange(venue));
            let tape = self.segments.tapes.iter().find(|(of, _)| *of == venue);
            let is_open = |tape: TapeView| !tape.is_closed();
            ExchangeObservation {
                venue,
                received: own.get(ExchangeCounter::Received),
                recovery: self.recovery(
                    Role::Exchange(venue),
                    own.get(ExchangeCounter::Recovered),
                    own.get(ExchangeCounter::Replayed),
                ),
                is_open: tape.and_then(|(_, tape)| TapeView::new(tape.clone())).is_some_and(is_open),
            }
        }));
        observed.damage = self.repairs.damage();
        observed.blocked_claim = self.repairs.blocked_claim();
        // After all was read.
        observed.has_launcher_lost_memory = lost_memory::has_launcher_lost_memory(self.segments);
    }

    /// Reads the state that a thread (index in the plan) has published in shared memory.
    pub fn state(&self, thread: usize) -> ThreadState {
        status::state(&self.segments.threads[thread])
    }

    /// Reads the heartbeat of a thread (index in the plan), and the other fields from which its
    /// liveness is judged.
    pub fn pulse(&self, thread: usize) -> LivenessSample {
        status::sample_liveness(&self.segments.threads[thread])
    }

    /// Reads the number of orders that the running incarnation of a strategy has sent, from its own
    /// counter.
    pub fn orders_sent(&self, strategy: StrategyIndex) -> u64 {
        self.counters(Role::Strategy(strategy)).get(StrategyCounter::Sent)
    }

    /// Reads the counters of a role; zero if the plan has no such role.
    fn counters(&self, role: Role) -> AgentCounters {
        let plan = &self.segments.plan;
        let read = |thread: usize| {
            status::counters_of(&self.segments.threads[thread], &plan.threads[thread].roles, role)
        };
        let none = || ThreadCounters::from_words([]).agent_counters(&[], role);
        plan.thread_of(role).map_or_else(none, read)
    }

    fn observe_engine(&self) -> Option<EngineObservation> {
        use OrchestratorCounter as Counter;
        let plan = &self.segments.plan;
        let thread = plan.thread_of(Role::Orchestrator)?;
        let (words, own) = (&self.segments.threads[thread], self.counters(Role::Orchestrator));
        Some(EngineObservation {
            dispatched: own.get(Counter::Dispatched),
            settled: own.get(Counter::Settled),
            rejected: own.get(Counter::Rejected),
            reports: own.get(Counter::Reports),
            returned: own.get(Counter::Returned),
            waiting: own.get(Counter::Waiting),
            recovery: self.recovery(
                Role::Orchestrator,
                own.get(Counter::Recovered),
                own.get(Counter::Replayed),
            ),
            work: status::field(words, StatusField::BusyTicks),
        })
    }

    fn recovery(&self, role: Role, records: u64, replayed: u64) -> RecoveryObservation {
        let Some(thread) = self.segments.plan.thread_of(role) else { return RecoveryObservation::default() };
        let ticks = |field| status::field(&self.segments.threads[thread], field);
        RecoveryObservation {
            records,
            replayed,
            begun_ticks: ticks(StatusField::RecoveryBegunTicks),
            ended_ticks: ticks(StatusField::RecoveryEndedTicks),
            running_ticks: ticks(StatusField::StartedTicks),
        }
    }

    /// Performs the part of a supervisor's action that writes to shared memory; the caller starts
    /// the action's process, if any, only afterwards. `proof` obtains the kernel's proof that a
    /// process is gone.
    ///
    /// # Errors
    /// The action needs such a proof and there is none.
    pub fn perform(
        &self,
        action: &Action,
        proof: impl FnOnce(usize) -> Result<Option<ProofOfDeath>>,
    ) -> Result<()> {
        let (segments, control) = (self.segments, &self.segments.control);
        let plan = &segments.plan;
        let certain = |process: usize| match proof(process)? {
            Some(proof) => Ok(proof),
            None => bail!("{} is to be repaired and may still run", plan.processes[process].name),
        };
        match *action {
            Action::OpenBarrier(start_ticks) => control.go(start_ticks),
            Action::SetRunState(state) => control.set_state(state),
            Action::Fence(role, epoch) => {
                let proof = certain(plan.process_of(role).context("a dead role has a process")?)?;
                match role {
                    Role::Strategy(strategy) => {
                        segments.headers.restore(strategy);
                        control.fence(strategy, epoch, &proof);
                    }
                    role => control.fence_gateway(GatewayIndex(role.index()), epoch, &proof),
                }
                self.ring_engine();
            }
            Action::FenceThread(strategy, epoch) => {
                control.fence_thread(strategy, epoch);
                self.ring_engine();
            }
            Action::Renew(Role::Strategy(strategy), epoch) => control.renew(strategy, epoch),
            Action::Renew(role, epoch) => {
                control.renew_gateway(GatewayIndex(role.index()), epoch);
                self.ring_engine();
            }
            Action::Forget(process) => control.record_end(process),
            Action::Reset(role) => segments.reset_segments_of(role),
            Action::ResetThread(thread) => segments.reset_status(thread, 0..0),
            Action::Restart(process) => {
                certain(process)?;
                let planned = &plan.processes[process];
                let is_strategy = plan.roles_of(planned).any(|role| matches!(role, Role::Strategy(_)));
                let stays = match (plan.is_trading(), is_strategy) {
                    (true, true) => 0..0,
                    // Other roles' counters of gaps stay, as stamp logs do.
                    (true, false) => GAPS,
                    // The successor of a board's writer continues its counters.
                    (false, _) => COUNTERS_OFFSET..LOG_OFFSET,
                };
                planned.threads.iter().for_each(|it| segments.reset_status(*it as usize, stays.clone()));
            }
            Action::InjectFault(..)
            | Action::Kill(_)
            | Action::ConcludeExit(_)
            | Action::SetKind(..)
            | Action::KeepStandby(_)
            | Action::Complain(_)
            | Action::EndProcesses(_)
            | Action::End(_) => {}
        }
        Ok(())
    }

    fn ring_engine(&self) {
        if let Some(bell) = &self.engine_bell {
            bell.ring();
        }
    }
}
