//! Performs the core's effects in the live engine: stamps into its thread's log, messages into
//! rings, notices into the repairs and answers segments.

use crate::engine::{Effects, LifecycleNotice, OperatorNotice};
use crate::outputs::Outputs;
use crate::positions::Account;
use journal::InputLog;
use protocol::agent::Cycle;
use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::record::Point;
use protocol::wire::{Message, OrderId, Report};
use shm::ring::Consumer;
use system::clock::Clock;

/// The receiving ends of the two contended hand-offs.
pub(crate) struct HandOffs<R> {
    pub submit: R,
    pub completion: R,
}

pub(crate) struct Live<'a, R, J, C> {
    pub hand_offs: &'a mut HandOffs<R>,
    pub outputs: &'a mut Outputs,
    pub journal: &'a J,
    pub cycle: &'a mut Cycle<C>,
}

impl<R: Consumer, J: InputLog, C: Clock> Effects for Live<'_, R, J, C> {
    #[inline(always)]
    fn off_path(&mut self) -> &mut dyn Effects {
        self
    }

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
        self.hand_offs.submit.renew(strategy.as_usize());
        self.outputs.strategies[strategy].ring_mut().renew();
    }

    fn publish_positions(&mut self, strategy: StrategyIndex, accounts: &[Account]) {
        self.outputs.publish_positions(strategy, accounts);
    }

    fn close_gateway(&mut self, gateway: GatewayIndex) {
        self.outputs.close_gateway(gateway);
    }

    fn renew_gateway(&mut self, gateway: GatewayIndex, keeps_inbox: bool) {
        self.hand_offs.completion.renew(gateway.as_usize());
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
        let Cycle { clock, time, .. } = &*self.cycle;
        self.outputs.notify_launcher(notice, time.start_ticks, &|| clock.now());
    }
}
