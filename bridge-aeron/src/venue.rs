//! The venue `remote`: the far host's orders go to a bridge on a thread of its own, whose reports
//! come back. The gateway's thread makes no system call for it.

use crate::far::{Ask, Far, Lanes};
use crate::figures::Crossing;
use crate::meeting::Meeting;
use crate::place::Place;
use crate::pump;
use crate::transport::Transport;
use bridge::frame::{Side, run_digest};
use bridge::link::{Link, Timing};
use launcher::cli::{Cli, Command};
use launcher::gateway::{Reports, Sweep, Venue, VenueContext, VenueInfo};
use launcher::protocol::plan::Plan;
use launcher::protocol::segments;
use launcher::protocol::wire::Order;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::SystemTime;

/// The variable that names the meeting, for the processes of a run that `join` starts.
pub const MEETING: &str = "BULKHEAD_MEETING";

/// Reports that an order has there on average: as many as at an exchange.
const REPORTS_AN_ORDER: u8 = 4;

/// How often a parked gateway looks for reports while orders are open, in nanoseconds: nobody rings
/// for them.
const LOOK_NS: u64 = 10_000;

/// The same while none is.
const IDLE_LOOK_NS: u64 = 1_000_000;

/// The venue `remote`.
pub struct Remote {
    lanes: Arc<Lanes>,
    bridge: Option<JoinHandle<()>>,
    /// Orders whose last report has not come.
    open: u64,
    /// When it next looks for reports, in ticks.
    look: u64,
}

impl Remote {
    /// The one of this process's run, over the meeting that the environment names.
    ///
    /// # Panics
    /// There is no meeting, no run, or no transport: the run cannot begin, and says why.
    pub fn new(context: &VenueContext) -> Self {
        let lanes = Arc::new(Lanes::default());
        let bridge = match bridge(context, Arc::clone(&lanes)) {
            Ok(bridge) => bridge,
            Err(why) => panic!("--venue remote: {why}"),
        };
        Self { lanes, bridge: Some(bridge), open: 0, look: 0 }
    }
}

/// The plan of the run that this process is of.
fn plan() -> Result<Plan, String> {
    let words = Cli::read_from(std::env::args_os()).map_err(|error| error.to_string())?;
    let Command::Role(flags) = words.command else { return Err("this process is no role of a run".into()) };
    let (_, plan) = segments::control_at(&flags.run).map_err(|error| error.to_string())?;
    Ok(plan)
}

/// Starts the bridge, once its transport is there.
fn bridge(context: &VenueContext, lanes: Arc<Lanes>) -> Result<JoinHandle<()>, String> {
    let meeting = std::env::var(MEETING)
        .map_err(|_| "the other host is not named: start the run by `bulkhead-bridge join`")?;
    let meeting: Meeting = meeting.parse().map_err(|error| format!("{error}"))?;
    if context.venues > 1 || context.gateway > 0 {
        return Err("it is the only venue of its run, with one credential: --venues 1 --credentials 1".into());
    }
    let plan = plan()?;
    let place = Place::of(&plan, "venue-0").map_err(|error| error.to_string())?;
    let (opened, is_open) = std::sync::mpsc::channel();
    let work = move || {
        let folder = place.for_driver().map_err(|error| error.to_string());
        let transport = folder.and_then(|folder| {
            Transport::open(Side::Far, &meeting, &folder).map_err(|error| error.to_string())
        });
        match transport {
            Ok(transport) => {
                drop(opened.send(Ok(())));
                carry(transport, &meeting, &lanes, &plan);
            }
            Err(error) => drop(opened.send(Err(error))),
        }
        place.remove();
    };
    let thread =
        std::thread::Builder::new().name("bridge".into()).spawn(work).map_err(|error| error.to_string())?;
    is_open.recv().unwrap_or_else(|_| Err("its thread is gone".into()))?;
    Ok(thread)
}

/// The number of the first attempt: larger than every one of a process before this one.
pub fn first_attempt() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX / 2))
}

/// The whole life of a bridge.
fn carry(transport: Transport, meeting: &Meeting, lanes: &Lanes, plan: &Plan) {
    let link = Link::far(run_digest(&meeting.name), first_attempt(), Timing::default());
    let mut far = Far::new(lanes);
    let (mut link, result) = pump::run(transport, link, &mut far);
    let error = result.err().map(|error| error.to_string());
    far.give_up(&mut link);
    if let Some(error) = &error {
        eprintln!("--venue remote: {error}");
        far.refuse_all();
    }
    if let Err(error) = Crossing::of(&plan.run, &far, &link, error).save(Path::new(&plan.folder)) {
        eprintln!("--venue remote: cannot write into {}: {error}", plan.folder);
    }
}

impl Venue for Remote {
    const RECORD: VenueInfo =
        VenueInfo { reports_an_order: REPORTS_AN_ORDER, reports_at_once: 0, tells_release: false };
    const IN_ORDER: bool = true;

    #[inline]
    fn has_room(&self) -> bool {
        self.lanes.takes.is_up() && !self.lanes.asks.is_full()
    }

    #[inline]
    fn accept(&mut self, order: &Order, now: u64, reports: &mut impl Reports) -> Option<u64> {
        // There is room: nobody else sends.
        let _ = self.lanes.asks.push(Ask::Order(*order));
        self.open += 1;
        let look = now.saturating_add(reports.time().ticks(LOOK_NS));
        self.look = self.look.min(look);
        None
    }

    #[inline]
    fn advance(&mut self, now: u64, reports: &mut impl Reports) {
        while reports.has_room() {
            let Some(report) = self.lanes.reports.pop() else { break };
            self.open -= u64::from(report.is_last);
            let _ = reports.send(report);
        }
        let pause = if self.open > 0 { LOOK_NS } else { IDLE_LOOK_NS };
        self.look = now.saturating_add(reports.time().ticks(pause));
    }

    #[inline]
    fn next_deadline(&self) -> u64 {
        if self.lanes.reports.is_empty() { self.look } else { 0 }
    }

    /// The engine's host does it: each cancelled order's report comes as any other.
    fn cancel_all(&mut self, sweep: &mut Sweep, _: &mut impl Reports) -> bool {
        self.lanes.asks.push(Ask::Cancel(sweep.scope)).is_ok()
    }
}

impl Drop for Remote {
    /// The run is over: so is the bridge, in a few seconds at most.
    fn drop(&mut self) {
        self.lanes.ends.set(true);
        // Nobody takes reports any more.
        while let Some(bridge) = self.bridge.take_if(|bridge| !bridge.is_finished()) {
            while self.lanes.reports.pop().is_some() {}
            std::thread::sleep(core::time::Duration::from_millis(1));
            self.bridge = Some(bridge);
        }
        if let Some(bridge) = self.bridge.take() {
            drop(bridge.join());
        }
    }
}
