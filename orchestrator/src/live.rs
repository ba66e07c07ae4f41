//! The live engine's effects: stamps into its thread's log, messages into rings, notices into the repairs and answers segments.

use crate::core::{Effects, Notice};
use crate::outputs::Outputs;
use journal::InputLog;
use protocol::agent::Cycle;
use protocol::record::Point;
use protocol::supervision::GatewayRepair;
use protocol::wire::{Message, OrderId, Report};
use shm::ring::Consumer;
use system::clock::Clock;

/// What effects are carried out with, for one input.
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
        self.cycle.pass_with(point, id, detail);
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
    fn to_gateway(&mut self, gateway: usize, message: &Message) {
        self.outputs.send_to_gateway(gateway, message);
    }

    #[inline(always)]
    fn to_strategy(&mut self, report: &Report, message: &Message) {
        if let Some(record) = self.journal.undurable(!self.outputs.deferred.is_empty()) {
            self.outputs.deferred.push_back((record, *message));
            return;
        }
        self.cycle.pass_with(Point::OrchReturn, report.id, report.number);
        self.outputs.send_to_strategy(report.id.strategy().into(), message);
    }

    fn recall(&mut self) {
        self.outputs.recall_is_due = true;
    }

    fn close(&mut self, strategy: usize) {
        self.outputs.strategies[strategy].clear();
    }

    fn reopen(&mut self, strategy: usize) {
        self.submit.revive(strategy);
        self.outputs.strategies[strategy].ring_mut().restart();
    }

    fn close_gateway(&mut self, gateway: usize) {
        self.outputs.close_gateway(gateway);
    }

    fn reopen_gateway(&mut self, gateway: usize, keeps_inbox: bool) {
        self.completion.revive(gateway);
        if !keeps_inbox {
            self.outputs.gateways[gateway].ring_mut().restart();
        }
    }

    #[cold]
    fn notify(&mut self, notice: Notice) {
        let Outputs { desk, repairs, standstill, gateways, .. } = &mut *self.outputs;
        match (notice, desk, repairs) {
            (Notice::CommandSeen { number, ticks, orders }, Some(desk), _) => {
                desk.seen(number, ticks.unwrap_or_else(|| self.cycle.clock.now()), orders);
            }
            (Notice::CommandDone { number, ticks }, Some(desk), _) => desk.done(number, ticks),
            (Notice::CommandRefused { number, why }, Some(desk), _) => {
                desk.refused(number, self.cycle.clock.now(), why);
            }
            (Notice::Rejections { reason, count }, Some(desk), _) => desk.rejections(reason, count),
            (Notice::Quarantined { strategy, epoch, why }, _, Some(repairs)) => {
                repairs.quarantine(strategy, epoch, why, self.cycle.clock.now());
            }
            (Notice::Retired { strategy, epoch, noticed }, _, Some(repairs)) => {
                // Before the repair is published: what the launcher reads then is not about the dead strategy any more.
                if standstill.is_some_and(|at| at.announcer == Some(strategy)) {
                    *standstill = None;
                    repairs.stands_still(None);
                }
                repairs.repaired(strategy, epoch, noticed, self.cycle.clock.now());
            }
            (Notice::GatewayRepaired { gateway, epoch, noticed, counts }, _, Some(repairs)) => {
                let inbox = &gateways[usize::from(gateway)];
                let inbox_end = inbox.ring().published() + inbox.queued() as u64;
                repairs.gateway_repaired(
                    gateway,
                    epoch,
                    &GatewayRepair {
                        repaired: None,
                        noticed_ticks: noticed,
                        repaired_ticks: self.cycle.clock.now(),
                        counts,
                        inbox_end,
                    },
                );
            }
            (Notice::DeadCounts { strategy, refused, orphaned }, _, Some(repairs)) => {
                repairs.count(strategy, refused, orphaned);
            }
            // Nobody listens.
            _ => {}
        }
    }
}
