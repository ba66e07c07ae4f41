//! The thread of a bridge: transport, link and one side's part, in turn.

use crate::transport::{Transport, TransportError};
use bridge::link::{Event, Link};
use launcher::system::clock::{Clock, Monotonic};
use launcher::system::process;
use std::time::Duration;

/// After so many turns without work the thread sleeps between turns.
const AWAKE: u32 = 500;

/// For so long.
const NAP: Duration = Duration::from_micros(20);

/// Behind the end of a link frames are answered for so long: the other side may not have heard it.
const FAREWELL_NS: u64 = 300_000_000;

/// What a part has to say of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// There was work.
    Busy,
    /// There was none.
    Idle,
    /// There is nothing more to do, for good.
    Over,
}

/// One side's part: what becomes of messages and sessions.
pub trait Part {
    /// Something happened on the link.
    fn event(&mut self, event: Event, link: &mut Link);

    /// What there is to do of its own accord.
    fn turn(&mut self, link: &mut Link, now: u64) -> Turn;
}

/// Nanoseconds of this host's clock, the same in all its processes.
pub fn now() -> u64 {
    Monotonic.now()
}

/// Turns all three until the part is over, and hands the link back.
///
/// # Errors
/// The transport cannot go on; the link is handed back all the same.
pub fn run(
    mut transport: Transport,
    mut link: Link,
    part: &mut impl Part,
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
            part.event(event, &mut link);
            work += 1;
        }
        let now = now();
        if ended.is_none() {
            match part.turn(&mut link, now) {
                Turn::Busy => work += 1,
                Turn::Idle => {}
                // Nothing to say farewell to where the session was not ended but lost.
                Turn::Over if !link.is_over() => return (link, Ok(())),
                Turn::Over => ended = Some(now),
            }
        } else if ended.is_some_and(|since| now.saturating_sub(since) > FAREWELL_NS) {
            return (link, Ok(()));
        }
        work += link.turn(self::now(), |frame| transport.offer(frame));
        idle = if work > 0 { 0 } else { idle + 1 };
        if idle > AWAKE {
            std::thread::sleep(NAP);
        }
    }
}

fn exchange(transport: &mut Transport, link: &mut Link) -> Result<usize, TransportError> {
    let work = transport.turn()?;
    Ok(work + transport.poll(|bytes| link.receive(bytes, now()))?)
}
