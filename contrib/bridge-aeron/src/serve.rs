//! The strategy process on the engine's host: `--strategy "exec:bulkhead-bridge serve
//! NAME@HOST:PORT"`. To the engine it is a strategy, with the limits, kill switch and crash
//! handling of a strategy.

use crate::bridge_address::BridgeAddress;
use crate::bridge_dir::BridgeDir;
use crate::engine_side::{BridgeEvent, EngineQueues, EngineSide};
use crate::order_map::{OrderMap, refused};
use crate::pump::{self, BridgeThread};
use bridge::frame::{Echo, Side, run_digest};
use bridge::link::{CloseReason, Link, SessionHistory, Timing};
use bulkhead::calls;
use bulkhead::codes::{BH_BUSY, BH_ENDING, BH_OVER, BH_SPENT, BH_TOO_MANY_OPEN, BH_VERSION};
use clap::Args;
use launcher::protocol::plan::{Isolation, Plan, Role};
use launcher::protocol::reject::Reject;
use launcher::protocol::segments;
use launcher::protocol::trading::{PROCESS_VARIABLE, RUN_VARIABLE};
use launcher::protocol::wire::{Order, Report};
use serde::Serialize;
use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time that the first incarnation waits for the far host; the launcher waits for it longer.
const WAIT: Duration = Duration::from_secs(20);

/// Maximum idle time of a poll, in nanoseconds: no doorbell rings for orders of the far host.
const POLL_NS: u64 = 20_000;

const BATCH: usize = 16;

/// Maximum time to wait for the far host after the run was stopped.
const STOPPED: Duration = Duration::from_millis(300);

/// The flags of the command `serve`: the bridge process at the engine's host, which the launcher
/// starts as the program of a strategy.
#[derive(Args, Clone, Debug)]
pub struct ServeFlags {
    /// Name of the bridge, and the address to listen on: this host's, or 0.0.0.0
    #[arg(value_name = "NAME@HOST:PORT")]
    pub address: BridgeAddress,
    /// The run's venue for the far host's orders
    #[arg(long, value_name = "VENUE", default_value_t = 0)]
    pub to_venue: u16,
}

/// Counters, printed as a line of JSON at the end.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct ServeCounts {
    epoch: u16,
    came: u64,
    sent: u64,
    refused: u64,
    /// Orders whose last report was returned.
    answered: u64,
    /// Orders received and not sent when the connection was lost.
    dropped: u64,
}

enum ServeEnd {
    Whole,
    Gone(CloseReason),
    Stopped,
}

/// Runs the bridge process at the engine's host, in place of the strategy that the launcher's
/// environment variables name.
pub fn serve(flags: &ServeFlags) -> ExitCode {
    match attempt(flags) {
        Ok(ServeEnd::Whole | ServeEnd::Stopped) => ExitCode::SUCCESS,
        Ok(ServeEnd::Gone(why)) => {
            // To the engine a crash: it fences this incarnation and cancels its open orders.
            eprintln!("bulkhead-bridge serve: the far host is gone: {why}");
            ExitCode::FAILURE
        }
        Err(why) => {
            eprintln!("bulkhead-bridge serve: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the plan, and this process's strategy and incarnation.
fn own_strategy() -> Result<(Plan, u16, u16), String> {
    let unset = |name| {
        format!(
            "{name} is not set: the launcher starts this, with --strategy \"exec:bulkhead-bridge serve NAME@HOST:PORT\""
        )
    };
    let variable = |name| std::env::var(name).map_err(|_| unset(name));
    let (run, process) = (variable(RUN_VARIABLE)?, variable(PROCESS_VARIABLE)?);
    let (control, plan) = segments::control_at(&run).map_err(|error| error.to_string())?;
    let me = plan.processes.iter().find(|known| known.name == process);
    let role = me.and_then(|me| plan.roles_of(me).next());
    let Some(Role::Strategy(index)) = role else {
        return Err(format!("{process} is no strategy of this run"));
    };
    if !plan.isolation.is_only(Isolation::Process) {
        return Err(format!(
            "--isolation {}: there is no network there. Use --isolation process",
            plan.isolation
        ));
    }
    let epoch = control.incarnation(index).epoch;
    Ok((plan, index.0, epoch))
}

fn attempt(flags: &ServeFlags) -> Result<ServeEnd, String> {
    let (plan, index, epoch) = own_strategy()?;
    let dir = BridgeDir::for_run(&plan, &format!("strategy-{index}")).map_err(|error| error.to_string())?;
    let mut server = Server {
        queues: Arc::default(),
        order_map: OrderMap::new(flags.to_venue, 1 << 12),
        waiting: VecDeque::new(),
        back: VecDeque::new(),
        counts: ServeCounts { epoch, ..ServeCounts::default() },
        is_spent: false,
        over_since: None,
        max_orders: u64::MAX,
        ended: None,
    };
    let bridge = start_bridge(&flags.address, dir, epoch, Arc::clone(&server.queues))?;
    if epoch == 0 {
        server.wait_for_strategy_side(&bridge);
    }
    let error_text = |code| calls::text(code);
    match calls::attach(BH_VERSION) {
        Err(BH_OVER) => return Ok(ServeEnd::Whole),
        attached => attached.map_err(error_text)?,
    }
    let context = calls::context().map_err(error_text)?;
    if flags.to_venue >= context.venues {
        return Err(format!(
            "--to-venue {}: the run has {} venues, counted from 0",
            flags.to_venue, context.venues
        ));
    }
    server.max_orders = context.orders;
    let ended = server.run(&bridge);
    println!("{}", serde_json::to_string(&server.counts).unwrap_or_default());
    let ended = ended?;
    // The bridge still answers the far host; after the end of its strategy a process must exit
    // soon.
    while matches!(ended, ServeEnd::Whole) && !bridge.is_finished() {
        calls::heartbeat().map_err(error_text)?;
        std::thread::sleep(Duration::from_millis(1));
    }
    if !matches!(ended, ServeEnd::Gone(_)) {
        calls::finish().map_err(error_text)?;
    }
    Ok(ended)
}

fn start_bridge(
    address: &BridgeAddress,
    dir: BridgeDir,
    epoch: u16,
    queues: Arc<EngineQueues>,
) -> Result<BridgeThread, String> {
    let history = dir.history().and_then(SessionHistory::from_words).unwrap_or_default();
    let folder = dir.driver_dir().map_err(|error| error.to_string())?;
    let link = Link::engine_side(run_digest(&address.name), epoch, Timing::default()).with_history(history);
    pump::start(Side::Engine, address, folder, move |transport| {
        let mut side = EngineSide::new(&queues, &dir);
        let (link, result) = pump::run(transport, link, &mut side);
        if link.is_over() {
            dir.remove();
        }
        result.map_err(|error| error.to_string())
    })
}

/// The strategy process: passes orders to the engine and reports back.
struct Server {
    queues: Arc<EngineQueues>,
    order_map: OrderMap,
    /// Orders not sent to the engine yet.
    waiting: VecDeque<(Order, Echo)>,
    /// Reports that found their queue full.
    back: VecDeque<(Report, Option<Echo>)>,
    counts: ServeCounts,
    /// The run accepts no more orders of this strategy.
    is_spent: bool,
    /// Since when no more reports come; the strategy finishes once the far host has everything.
    over_since: Option<Instant>,
    max_orders: u64,
    ended: Option<ServeEnd>,
}

impl Server {
    /// Waits until the far host has called: the run begins once all processes are ready.
    fn wait_for_strategy_side(&mut self, bridge: &BridgeThread) {
        let since = Instant::now();
        while since.elapsed() < WAIT && !bridge.is_finished() {
            match self.queues.events.pop() {
                Some(BridgeEvent::Up) => return,
                Some(BridgeEvent::Order(order, echo)) => {
                    self.enqueue(order, echo);
                    return;
                }
                Some(_) | None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    fn enqueue(&mut self, order: Order, echo: Echo) {
        self.counts.came += 1;
        self.waiting.push_back((order, echo));
    }

    fn poll_events(&mut self) {
        while self.ended.is_none()
            && let Some(event) = self.queues.events.pop()
        {
            match event {
                BridgeEvent::Up => {}
                BridgeEvent::Order(order, echo) => self.enqueue(order, echo),
                BridgeEvent::Gone(why) => self.ended = Some(ServeEnd::Gone(why)),
                BridgeEvent::Over => self.ended = Some(ServeEnd::Whole),
            }
        }
    }

    /// Sends queued orders while the engine accepts them.
    fn send(&mut self) -> Result<(), String> {
        while let Some((order, echo)) = self.waiting.front().copied() {
            let new = self.order_map.to_engine(&order).filter(|_| !self.is_spent);
            let sent = match new {
                Some(new) => calls::send_new(new, None),
                None if self.is_spent => Err(BH_SPENT),
                None => {
                    self.refuse(&order, Reject::VenueRefuses);
                    continue;
                }
            };
            match sent {
                Ok(sequence) => {
                    self.order_map.record_sent(sequence, &order, echo);
                    self.counts.sent += 1;
                    self.waiting.pop_front();
                }
                Err(BH_BUSY | BH_TOO_MANY_OPEN) => break,
                Err(BH_SPENT | BH_ENDING) => {
                    self.is_spent = true;
                    self.refuse(&order, Reject::NotPlanned);
                }
                Err(code) => return Err(calls::text(code)),
            }
        }
        Ok(())
    }

    fn refuse(&mut self, order: &Order, reason: Reject) {
        self.waiting.pop_front();
        self.counts.refused += 1;
        self.back.push_back((refused(order, reason), None));
    }

    fn poll(&mut self) -> Result<(), String> {
        let is_idle = self.waiting.is_empty() && self.back.is_empty();
        let Self { order_map, back, counts, .. } = self;
        let polled = calls::poll_wire(BATCH, if is_idle { POLL_NS } else { 0 }, |_, report| {
            if let Some((report, about)) = order_map.for_far_host(report) {
                counts.answered += u64::from(report.is_last);
                back.push_back((report, about));
            }
        });
        match polled {
            Ok(_) => Ok(()),
            Err(BH_OVER) => {
                (self.is_spent, self.over_since) = (true, Some(Instant::now()));
                Ok(())
            }
            Err(code) => Err(calls::text(code)),
        }
    }

    /// Runs until both sides have all messages, or the far host or the run is gone.
    fn run(&mut self, bridge: &BridgeThread) -> Result<ServeEnd, String> {
        loop {
            self.poll_events();
            self.send()?;
            if self.over_since.is_some() {
                calls::heartbeat().map_err(calls::text)?;
                std::thread::sleep(Duration::from_micros(100));
            } else {
                self.poll()?;
            }
            pump::hand_over(&mut self.back, &self.queues.reports);
            if let Some(ended) = self.ended.take() {
                self.counts.dropped = self.waiting.len() as u64;
                return Ok(ended);
            }
            let is_stopped = self.over_since.filter(|_| self.counts.sent < self.max_orders);
            let has_everything = self.order_map.is_empty() && self.waiting.is_empty() && self.back.is_empty();
            if is_stopped.is_some() || (has_everything && self.queues.strategy_side_ends.is_up()) {
                self.queues.is_ending.set(true);
            }
            if is_stopped.is_some_and(|since| since.elapsed() > STOPPED) {
                return Ok(ServeEnd::Stopped);
            }
            if bridge.is_finished() && self.queues.events.is_empty() && self.ended.is_none() {
                return Err("its bridge cannot go on".into());
            }
        }
    }
}
