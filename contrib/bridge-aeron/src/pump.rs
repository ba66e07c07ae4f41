//! The event loop of a bridge's thread: transport, link and one side's logic in turn.

use crate::bridge_address::BridgeAddress;
use crate::transport::{Transport, TransportError};
use bridge::frame::Side;
use bridge::link::{Event, Link};
use crossbeam_queue::ArrayQueue;
use launcher::system::clock::{Clock, Monotonic};
use launcher::system::process;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Number of iterations without work after which the thread sleeps between iterations.
const SPIN_TURNS: u32 = 500;

const IDLE_SLEEP: Duration = Duration::from_micros(20);

/// Time (ns) after the end of a link during which a peer that missed the end is answered.
const LINGER_NS: u64 = 300_000_000;

/// The result of one step of a bridge side: work done, idle or finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnResult {
    /// The turn sent or received messages.
    Busy,
    /// There was no work.
    Idle,
    /// The side has finished.
    Over,
}

/// The logic of one side of a bridge, at the strategy's or the engine's host.
pub trait BridgeSide {
    /// Handles an event of the link between the hosts.
    fn event(&mut self, event: Event, link: &mut Link);

    /// Does the work that no event triggers; called in a loop.
    fn turn(&mut self, link: &mut Link, now: u64) -> TurnResult;
}

/// Returns the nanoseconds of this host's monotonic clock.
pub fn now() -> u64 {
    Monotonic.now()
}

/// The join handle of a bridge's thread, which returns the reason if it failed.
pub type BridgeThread = JoinHandle<Result<(), String>>;

/// Starts a bridge's thread, and waits until its transport, with files in `folder`, is open.
pub fn start(
    side: Side,
    address: &BridgeAddress,
    folder: PathBuf,
    run: impl FnOnce(Transport) -> Result<(), String> + Send + 'static,
) -> Result<BridgeThread, String> {
    let (opened, is_open) = mpsc::channel();
    let address = address.clone();
    let work = move || match Transport::open(side, &address, &folder) {
        Ok(transport) => {
            drop(opened.send(Ok(())));
            run(transport)
        }
        Err(error) => {
            drop(opened.send(Err(error.to_string())));
            Err(error.to_string())
        }
    };
    let bridge =
        thread::Builder::new().name("bridge".into()).spawn(work).map_err(|error| error.to_string())?;
    is_open.recv().unwrap_or_else(|_| Err("its thread is gone".into()))?;
    Ok(bridge)
}

/// Runs transport, link and bridge side in a loop until the side has finished.
pub fn run(
    mut transport: Transport,
    mut link: Link,
    side: &mut impl BridgeSide,
) -> (Link, Result<(), TransportError>) {
    process::set_precise_timers();
    let mut idle = 0;
    let mut ended = None;
    loop {
        let mut work = match exchange(&mut transport, &mut link) {
            Ok(work) => work,
            Err(error) => return (link, Err(error)),
        };
        while let Some(event) = link.next_event() {
            side.event(event, &mut link);
            work += 1;
        }
        let now = now();
        if ended.is_none() {
            match side.turn(&mut link, now) {
                TurnResult::Busy => work += 1,
                TurnResult::Idle => {}
                // The link was not closed in order: no peer waits for the last acknowledgement.
                TurnResult::Over if !link.is_over() => return (link, Ok(())),
                TurnResult::Over => ended = Some(now),
            }
        } else if ended.is_some_and(|since| now.saturating_sub(since) > LINGER_NS) {
            return (link, Ok(()));
        }
        work += link.poll(self::now(), |frame| transport.try_offer(frame));
        idle = if work > 0 { 0 } else { idle + 1 };
        if idle > SPIN_TURNS {
            thread::sleep(IDLE_SLEEP);
        }
    }
}

/// Moves items from the front of `waiting` into a queue while it has room. Returns the number
/// moved.
pub fn hand_over<T: Copy>(waiting: &mut VecDeque<T>, queue: &ArrayQueue<T>) -> usize {
    let mut given = 0;
    while waiting.front().is_some_and(|first| queue.push(*first).is_ok()) {
        waiting.pop_front();
        given += 1;
    }
    given
}

fn exchange(transport: &mut Transport, link: &mut Link) -> Result<usize, TransportError> {
    let work = transport.turn()?;
    Ok(work + transport.poll(|bytes| link.receive(bytes, now()))?)
}
