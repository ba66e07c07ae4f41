//! The venue `remote`: passes the far host's orders to a bridge thread and returns its reports.

use crate::bridge_address::BridgeAddress;
use crate::bridge_dir::BridgeDir;
use crate::figures::Crossing;
use crate::pump::{self, BridgeThread};
use crate::strategy_side::{BridgeRequest, StrategyQueues, StrategySide};
use crate::transport::Transport;
use bridge::frame::{Side, run_digest};
use bridge::link::{Link, Timing};
use launcher::cli::{Cli, Command};
use launcher::gateway::{CancelSweep, Reports, Venue, VenueContext, VenueInfo};
use launcher::protocol::plan::Plan;
use launcher::protocol::segments;
use launcher::protocol::wire::Order;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// Environment variable with the bridge address, for the processes of a run that `join` starts.
pub const ADDRESS_VARIABLE: &str = "BULKHEAD_MEETING";

const REPORTS_PER_ORDER: u8 = 4;

/// Interval (ns) of a parked gateway's polls while orders are open: no doorbell rings for them.
const POLL_NS: u64 = 10_000;

/// Interval of polls while no order is open, in nanoseconds.
const IDLE_POLL_NS: u64 = 1_000_000;

/// The venue `remote`, which stands for an engine on another host.
pub struct Remote {
    queues: Arc<StrategyQueues>,
    bridge: Option<BridgeThread>,
    /// Orders whose last report has not come.
    open: u64,
    /// When to poll for reports next, in ticks.
    next_poll: u64,
}

impl Remote {
    /// Creates the venue for the bridge address in the environment. Panics if it cannot start.
    pub fn new(context: &VenueContext) -> Self {
        let queues = Arc::new(StrategyQueues::default());
        let bridge = match start_bridge(context, Arc::clone(&queues)) {
            Ok(bridge) => bridge,
            Err(why) => panic!("--venue remote: {why}"),
        };
        Self { queues, bridge: Some(bridge), open: 0, next_poll: 0 }
    }
}

fn plan() -> Result<Plan, String> {
    let cli = Cli::read_from(std::env::args_os()).map_err(|error| error.to_string())?;
    let Command::Role(flags) = cli.command else { return Err("this process is no role of a run".into()) };
    let (_, plan) = segments::control_at(&flags.run).map_err(|error| error.to_string())?;
    Ok(plan)
}

fn start_bridge(context: &VenueContext, queues: Arc<StrategyQueues>) -> Result<BridgeThread, String> {
    let address = std::env::var(ADDRESS_VARIABLE)
        .map_err(|_| "the other host is not named: start the run by `bulkhead-bridge join`")?;
    let address: BridgeAddress = address.parse().map_err(|error| format!("{error}"))?;
    if context.venues > 1 || context.gateway > 0 {
        return Err("it is the only venue of its run, with one credential: --venues 1 --credentials 1".into());
    }
    let plan = plan()?;
    let dir = BridgeDir::for_run(&plan, "venue-0").map_err(|error| error.to_string())?;
    let folder = dir.driver_dir().map_err(|error| error.to_string())?;
    let run = run_digest(&address.name);
    pump::start(Side::Strategy, &address, folder, move |transport| {
        run_bridge(transport, run, &queues, &plan);
        dir.remove();
        Ok(())
    })
}

/// Returns the number of this process's first attempt to open a session: the wall-clock time in
/// nanoseconds, so above earlier processes' numbers.
pub fn first_attempt() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX / 2))
}

/// Runs a bridge until the end of its run, and saves its figures.
fn run_bridge(transport: Transport, run: u32, queues: &StrategyQueues, plan: &Plan) {
    let link = Link::strategy_side(run, first_attempt(), Timing::default());
    let mut side = StrategySide::new(queues);
    let (mut link, result) = pump::run(transport, link, &mut side);
    let error = result.err().map(|error| error.to_string());
    side.give_up(&mut link);
    if let Some(error) = &error {
        eprintln!("--venue remote: {error}");
        side.refuse_all();
    }
    if let Err(error) = Crossing::new(&plan.run, &side, &link, error).save(Path::new(&plan.folder)) {
        eprintln!("--venue remote: cannot write into {}: {error}", plan.folder);
    }
}

impl Venue for Remote {
    const INFO: VenueInfo =
        VenueInfo { reports_per_order: REPORTS_PER_ORDER, immediate_reports: 0, reports_release_time: false };
    const IN_ORDER: bool = true;

    #[inline]
    fn has_capacity(&self) -> bool {
        self.queues.accepts_orders.is_up() && !self.queues.requests.is_full()
    }

    #[inline]
    fn accept(&mut self, order: &Order, now: u64, reports: &mut impl Reports) -> Option<u64> {
        // Cannot fail: checked by `has_capacity`, and there is one producer.
        let _ = self.queues.requests.push(BridgeRequest::Order(*order));
        self.open += 1;
        let next_poll = now.saturating_add(reports.time().ticks(POLL_NS));
        self.next_poll = self.next_poll.min(next_poll);
        None
    }

    #[inline]
    fn advance(&mut self, now: u64, reports: &mut impl Reports) {
        while reports.has_capacity() {
            let Some(report) = self.queues.reports.pop() else { break };
            self.open -= u64::from(report.is_last);
            let _ = reports.send(report);
        }
        let pause = if self.open > 0 { POLL_NS } else { IDLE_POLL_NS };
        self.next_poll = now.saturating_add(reports.time().ticks(pause));
    }

    #[inline]
    fn next_deadline(&self) -> u64 {
        if self.queues.reports.is_empty() { self.next_poll } else { 0 }
    }

    /// Forwards the cancellation to the engine's host, whose reports arrive as usual.
    fn try_cancel_all(&mut self, sweep: &mut CancelSweep, _: &mut impl Reports) -> bool {
        self.queues.requests.push(BridgeRequest::Cancel(sweep.scope)).is_ok()
    }
}

impl Drop for Remote {
    /// Ends the bridge within a few seconds.
    fn drop(&mut self) {
        self.queues.is_ending.set(true);
        // Discards reports, which the gateway no longer takes.
        while let Some(bridge) = self.bridge.take_if(|bridge| !bridge.is_finished()) {
            while self.queues.reports.pop().is_some() {}
            std::thread::sleep(core::time::Duration::from_millis(1));
            self.bridge = Some(bridge);
        }
        if let Some(bridge) = self.bridge.take() {
            drop(bridge.join());
        }
    }
}
