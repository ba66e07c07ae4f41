//! Performs the core's effects in the live engine: stamps into its thread's log, messages into
//! rings, notices into the repairs and answers segments.

use crate::engine::{Effects, LifecycleNotice, OperatorNotice};
use crate::outputs::Outputs;
use crate::positions::Account;
use journal::InputLog;
use protocol::agent::Cycle;
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::record::Point;
use protocol::supervision::GatewayRepair;
use protocol::wire::{Message, OrderId, Report};
use shm::ring::Consumer;
use system::clock::Clock;

pub(crate) struct Live<'a, R, J, C> {
    pub submit: &'a mut R,
    pub completion: &'a mut R,
    pub outputs: &'a mut Outputs,
    pub journal: &'a J,
    pub cycle: &'a mut Cycle<C>,
}

impl<R: Consumer, J: InputLog, C: Clock> Effects for Live<'_, R, J, C> {
    #[inline(always)]
    fn stamp(&mut self, point: Point, id: OrderId, detail: u8) {
        self.cycle.stamp_inner_with(point, id, detail);
    }

    fn log_now(&mut self, point: Point, id: OrderId, detail: u8) -> u64 {
        self.cycle.stamp_with(point, id, detail)
    }

    fn log_value(&mut self, point: Point, id: OrderId, value: u64) {
        self.cycle.log.append(point, id, value);
    }

    #[inline(always)]
    fn work(&mut self) {
        self.outputs.work.perform(&self.cycle.clock, self.cycle.time);
    }

    #[inline(always)]
    fn to_gateway(&mut self, gateway: GatewayIndex, message: &Message) {
        self.outputs.send_to_gateway(gateway, message);
    }

    #[inline(always)]
    fn to_strategy(&mut self, report: &Report, message: &Message) {
        if let Some(record) = self.journal.undurable(!self.outputs.deferred.is_empty()) {
            self.outputs.deferred.push_back((record, *message));
            return;
        }
        self.outputs.return_report(report, message, true, self.cycle);
    }

    fn recall(&mut self) {
        self.outputs.recall_is_due = true;
    }

    fn close(&mut self, strategy: StrategyIndex) {
        self.outputs.strategies[strategy].clear();
    }

    fn renew(&mut self, strategy: StrategyIndex) {
        self.submit.renew(strategy.as_usize());
        self.outputs.strategies[strategy].ring_mut().renew();
    }

    fn publish_positions(&mut self, strategy: StrategyIndex, accounts: &[Account]) {
        self.outputs.publish_positions(strategy, accounts);
    }

    fn close_gateway(&mut self, gateway: GatewayIndex) {
        self.outputs.close_gateway(gateway);
    }

    fn renew_gateway(&mut self, gateway: GatewayIndex, keeps_inbox: bool) {
        self.completion.renew(gateway.as_usize());
        if !keeps_inbox {
            self.outputs.gateways[gateway].ring_mut().renew();
        }
    }

    #[cold]
    fn notify_operators(&mut self, notice: OperatorNotice) {
        if let Some(channel) = &self.outputs.commands {
            notice.publish(channel, || self.cycle.clock.now());
        }
    }

    #[cold]
    fn notify_launcher(&mut self, notice: LifecycleNotice) {
        let Outputs { repairs: Some(repairs), blocked_claim, gateways, .. } = &mut *self.outputs else {
            return;
        };
        let now = || self.cycle.clock.now();
        let noticed_ticks = |noticed| self.cycle.time.start_ticks + noticed;
        match notice {
            LifecycleNotice::Quarantined { strategy, epoch, why } => {
                repairs.quarantine(strategy, epoch, why, now());
            }
            LifecycleNotice::Retired { strategy, epoch, noticed } => {
                // Before the repair is published: the launcher then reads no slot of the dead.
                if blocked_claim.is_some_and(|at| at.announcer == Some(strategy)) {
                    *blocked_claim = None;
                    repairs.set_blocked(None);
                }
                repairs.set_repaired(strategy, epoch, noticed_ticks(noticed), now());
            }
            LifecycleNotice::GatewayRepaired { gateway, epoch, noticed, counts } => {
                let inbox = &gateways[gateway];
                let repair = GatewayRepair {
                    repaired: None,
                    noticed_ticks: noticed_ticks(noticed),
                    repaired_ticks: now(),
                    counts,
                    inbox_end: inbox.ring().published() + inbox.queued() as u64,
                };
                repairs.set_gateway_repaired(gateway, epoch, &repair);
            }
            LifecycleNotice::DeadCounts { strategy, refused, orphaned } => {
                repairs.set_counts(strategy, refused, orphaned);
            }
        }
    }
}
