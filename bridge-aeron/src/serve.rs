//! The strategy process on the engine's host: `--strategy "exec:bulkhead-bridge serve
//! NAME@HOST:PORT"`. To the engine it is a strategy like any other, and so everything holds for the
//! far host that holds for a strategy: its limits, its kill switch, its death.

use crate::desk::{Desk, refused};
use crate::meeting::Meeting;
use crate::near::{Lanes, Near, Told};
use crate::place::Place;
use crate::pump;
use crate::transport::Transport;
use bridge::frame::{Echo, Side, run_digest};
use bridge::link::{Link, Past, Timing, Why};
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
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// For so long the first incarnation waits for the far host before the run begins. Less than the
/// launcher waits for its processes.
const WAIT: Duration = Duration::from_secs(20);

/// The longest that a poll idles: nobody rings for orders of the far host.
const LOOK_NS: u64 = 20_000;

/// How many reports one poll takes.
const BATCH: usize = 16;

/// When the run is stopped the far host is told, and waited for no longer than this.
const STOPPED: Duration = Duration::from_millis(300);

/// The engine's side of a bridge; the launcher starts it, as a strategy.
#[derive(Args, Clone, Debug)]
pub struct ServeFlags {
    /// Whom to meet, and where to listen: this host's address, or 0.0.0.0
    #[arg(value_name = "NAME@HOST:PORT")]
    pub meeting: Meeting,
    /// Which of the run's venues the far host's orders go to
    #[arg(long, value_name = "VENUE", default_value_t = 0)]
    pub to_venue: u16,
}

/// What it did, in a line of JSON at its end.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Counts {
    /// Which incarnation it was.
    epoch: u16,
    /// Orders that came.
    came: u64,
    /// Those that the engine has.
    sent: u64,
    /// Those that it was not given.
    refused: u64,
    /// Orders of the engine's whose last report went back.
    answered: u64,
    /// Orders that came and were with nobody when the far host was gone.
    dropped: u64,
}

/// How it ends.
enum End {
    /// Both sides have everything.
    Whole,
    /// The far host is gone.
    Gone(Why),
    /// The run was stopped.
    Stopped,
}

/// Does it, as the process that the environment says this is.
pub fn serve(flags: &ServeFlags) -> ExitCode {
    match attempt(flags) {
        Ok(End::Whole | End::Stopped) => ExitCode::SUCCESS,
        Ok(End::Gone(why)) => {
            // To the engine a death: it fences this incarnation and cancels what it had open.
            eprintln!("bulkhead-bridge serve: the far host is gone: {why}");
            ExitCode::FAILURE
        }
        Err(why) => {
            eprintln!("bulkhead-bridge serve: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Which strategy this process is, and which incarnation of it.
fn whoami() -> Result<(Plan, u16, u16), String> {
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
    if plan.isolation != Isolation::Process {
        return Err(format!(
            "--isolation {}: there is no network there. Use --isolation process",
            plan.isolation
        ));
    }
    let epoch = control.incarnation(index).epoch;
    Ok((plan, index, epoch))
}

fn attempt(flags: &ServeFlags) -> Result<End, String> {
    let (plan, index, epoch) = whoami()?;
    let place = Place::of(&plan, &format!("strategy-{index}")).map_err(|error| error.to_string())?;
    let lanes = Arc::new(Lanes::default());
    let mut server = Server { lanes, desk: Desk::new(flags.to_venue, 1 << 12), ..Server::new(epoch) };
    let bridge = bridge(&flags.meeting, place, epoch, Arc::clone(&server.lanes))?;
    if epoch == 0 {
        server.wait_for_the_far_host(&bridge);
    }
    let in_words = |code| calls::text(code);
    match calls::attach(BH_VERSION) {
        Err(BH_OVER) => return Ok(End::Whole),
        attached => attached.map_err(in_words)?,
    }
    let context = calls::context().map_err(in_words)?;
    if flags.to_venue >= context.venues {
        return Err(format!(
            "--to-venue {}: the run has {} venues, counted from 0",
            flags.to_venue, context.venues
        ));
    }
    server.most = context.orders;
    let ended = server.run(&bridge);
    println!("{}", serde_json::to_string(&server.counts).unwrap_or_default());
    let ended = ended?;
    // The bridge answers the far host's last words for a moment. Behind the end of its strategy a
    // process must be gone soon.
    while matches!(ended, End::Whole) && !bridge.is_finished() {
        calls::heartbeat().map_err(in_words)?;
        std::thread::sleep(Duration::from_millis(1));
    }
    if !matches!(ended, End::Gone(_)) {
        calls::finish().map_err(in_words)?;
    }
    Ok(ended)
}

/// Starts the bridge, once its transport is there.
fn bridge(
    meeting: &Meeting,
    place: Place,
    epoch: u16,
    lanes: Arc<Lanes>,
) -> Result<JoinHandle<Result<(), String>>, String> {
    let past = place.past().and_then(Past::from_words).unwrap_or_default();
    let folder = place.for_driver().map_err(|error| error.to_string())?;
    let meeting = meeting.clone();
    let (opened, is_open) = std::sync::mpsc::channel();
    let work = move || -> Result<(), String> {
        let transport = Transport::open(Side::Engine, &meeting, &folder).map_err(|error| error.to_string());
        let transport = match transport {
            Ok(transport) => transport,
            Err(error) => {
                drop(opened.send(Err(error.clone())));
                return Err(error);
            }
        };
        drop(opened.send(Ok(())));
        let link = Link::engine(run_digest(&meeting.name), epoch, Timing::default()).remembering(past);
        let mut near = Near::new(&lanes, &place);
        let (link, result) = pump::run(transport, link, &mut near);
        if link.is_over() {
            place.remove();
        }
        result.map_err(|error| error.to_string())
    };
    let thread =
        std::thread::Builder::new().name("bridge".into()).spawn(work).map_err(|error| error.to_string())?;
    is_open.recv().unwrap_or_else(|_| Err("its thread is gone".into()))?;
    Ok(thread)
}

/// The strategy.
struct Server {
    lanes: Arc<Lanes>,
    desk: Desk,
    /// Orders that the engine could not be given yet.
    waiting: VecDeque<(Order, Echo)>,
    /// Reports that found their lane full.
    back: VecDeque<(Report, Option<Echo>)>,
    counts: Counts,
    /// The run takes no more orders of this strategy.
    is_spent: bool,
    /// Since when no report comes any more: all orders of the plan are sent and answered, or the
    /// run was stopped. The link goes on until the far host is content: whoever has said that he is
    /// done must be gone soon.
    over_since: Option<Instant>,
    /// The most orders that the plan has for it.
    most: u64,
    ended: Option<End>,
}

impl Server {
    fn new(epoch: u16) -> Self {
        Self {
            lanes: Arc::default(),
            desk: Desk::new(0, 0),
            waiting: VecDeque::new(),
            back: VecDeque::new(),
            counts: Counts { epoch, ..Counts::default() },
            is_spent: false,
            over_since: None,
            most: u64::MAX,
            ended: None,
        }
    }

    /// The run begins when all its processes are ready; this one is when the far host has called.
    fn wait_for_the_far_host(&mut self, bridge: &JoinHandle<Result<(), String>>) {
        let since = Instant::now();
        while since.elapsed() < WAIT && !bridge.is_finished() {
            match self.lanes.told.pop() {
                Some(Told::Up) => return,
                Some(Told::Order(order, echo)) => {
                    self.come(order, echo);
                    return;
                }
                Some(_) | None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    fn come(&mut self, order: Order, echo: Echo) {
        self.counts.came += 1;
        self.waiting.push_back((order, echo));
    }

    fn hear(&mut self) {
        while self.ended.is_none()
            && let Some(told) = self.lanes.told.pop()
        {
            match told {
                Told::Up => {}
                Told::Order(order, echo) => self.come(order, echo),
                Told::Gone(why) => self.ended = Some(End::Gone(why)),
                Told::Over => self.ended = Some(End::Whole),
            }
        }
    }

    /// Gives the engine what waits, as far as it takes it.
    fn send(&mut self) -> Result<(), String> {
        while let Some((order, echo)) = self.waiting.front().copied() {
            let new = self.desk.to_engine(&order).filter(|_| !self.is_spent);
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
                    self.desk.sent(sequence, &order, echo);
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

    /// The order that is next gets no further.
    fn refuse(&mut self, order: &Order, reason: Reject) {
        self.waiting.pop_front();
        self.counts.refused += 1;
        self.back.push_back((refused(order, reason), None));
    }

    fn hand_back(&mut self) {
        while let Some(report) = self.back.front() {
            if self.lanes.reports.push(*report).is_err() {
                break;
            }
            self.back.pop_front();
        }
    }

    fn poll(&mut self) -> Result<(), String> {
        let is_idle = self.waiting.is_empty() && self.back.is_empty();
        let Self { desk, back, counts, .. } = self;
        let polled = calls::poll_wire(BATCH, if is_idle { LOOK_NS } else { 0 }, |_, report| {
            if let Some((report, about)) = desk.to_far(report) {
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

    /// Until both sides have everything, or the far host is gone, or the run.
    fn run(&mut self, bridge: &JoinHandle<Result<(), String>>) -> Result<End, String> {
        loop {
            self.hear();
            self.send()?;
            if self.over_since.is_some() {
                calls::heartbeat().map_err(calls::text)?;
                std::thread::sleep(Duration::from_micros(100));
            } else {
                self.poll()?;
            }
            self.hand_back();
            if let Some(ended) = self.ended.take() {
                self.counts.dropped = self.waiting.len() as u64;
                return Ok(ended);
            }
            let is_stopped = self.over_since.filter(|_| self.counts.sent < self.most);
            let has_everything = self.desk.open() == 0 && self.waiting.is_empty() && self.back.is_empty();
            if is_stopped.is_some() || (has_everything && self.lanes.far_ends.is_up()) {
                self.lanes.ends.set(true);
            }
            if is_stopped.is_some_and(|since| since.elapsed() > STOPPED) {
                return Ok(End::Stopped);
            }
            if bridge.is_finished() && self.lanes.told.is_empty() && self.ended.is_none() {
                return Err("its bridge cannot go on".into());
            }
        }
    }
}
