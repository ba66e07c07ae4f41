//! Aeron's media driver and clients in invoker mode: they work when their caller's thread calls
//! them, without timeouts that declare a client dead.
//!
//! The driver is the consumer's: a thread calls it until the consumer's first poll, so that
//! producers can attach before the start, and from then on the consumer. It takes no core and no
//! process.

use core::fmt::Display;
use core::time::Duration;
use launcher::shm::memory::{RegionError, directory};
use launcher::system::clock::{Clock, Tsc};
use nix::fcntl::{FallocateFlags, fallocate};
use rusteron_client::{Aeron, AeronContext, AeronSubscription, Handlers};
use rusteron_media_driver::bindings::aeron_threading_mode_t;
use rusteron_media_driver::{AeronDriver, AeronDriverContext};
use std::ffi::CString;
use std::fs::OpenOptions;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The one channel, and the one stream in it.
const CHANNEL: &str = "aeron:ipc";
/// The id of the Aeron stream within [`CHANNEL`].
pub const STREAM: i32 = 1;
/// Bytes of a message in a log: a header of 32, and seven words, in units of 32.
const FRAME: usize = 96;
/// The folder of the logs in the driver's.
const LOGS: &str = "publications";
/// What the name of a log ends in that is over.
const DEAD: &str = "dead";
/// How long an end waits for another. The launcher gives up on a run sooner or later itself.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval of polls while waiting, and of driver calls before the first poll.
const BREATH: Duration = Duration::from_micros(100);
/// Aeron's timeouts declare a silent client dead, which only the reaper of processes may do here:
/// ten years. The second must be longer than the first.
const NEVER_NS: u64 = 10 * 365 * 24 * 3600 * 1_000_000_000;

/// Bytes for the driver's counters, 128 each: four for a producer. Aeron's default is 40 MiB.
const COUNTERS: usize = 1 << 20;

/// Messages taken between two calls of the driver, after which producers see freed capacity.
const MESSAGES_A_CALL: u32 = 64;
/// The same in ticks while it finds nothing: some ten microseconds with a CPU's time stamp counter.
const TICKS_A_CALL: u64 = 1 << 15;
/// Maximum turns of driver and client in a call, so that the consumer gets to its messages.
const TURNS_A_CALL: usize = 256;

/// Converts Aeron's refusal into an error of the segment with that name.
pub fn refused<E: Display>(name: &str, what: &'static str) -> impl FnOnce(E) -> RegionError {
    let name = name.to_owned();
    move |error| RegionError::Os { name, what, source: io::Error::other(format!("aeron: {error}")) }
}

/// Returns the URI of the channel for a publication of a session.
pub fn channel_of(session: i32) -> CString {
    CString::new(format!("{CHANNEL}?session-id={session}")).unwrap_or_default()
}

/// Bytes of a publication that may be sent and not taken, so that `capacity` messages always fit:
/// the driver moves the limit only once an eighth of it is free.
fn window(capacity: u32) -> usize {
    let frames = (capacity + MESSAGES_A_CALL + 1) as usize;
    (frames * FRAME).div_ceil(7) * 8
}

fn path(name: &str) -> PathBuf {
    directory::path(name).join("aeron")
}

/// As Aeron takes it.
fn path_in_c(name: &str) -> Result<CString, RegionError> {
    CString::new(path(name).display().to_string()).map_err(refused(name, "use its folder"))
}

/// Polls until `look` returns a value, for a limited time.
pub fn wait<T>(
    name: &str,
    what: &'static str,
    mut look: impl FnMut() -> Result<Option<T>, RegionError>,
) -> Result<T, RegionError> {
    let since = Instant::now();
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if since.elapsed() > PATIENCE {
            let name = name.to_owned();
            return Err(RegionError::Os { name, what, source: io::ErrorKind::TimedOut.into() });
        }
        std::thread::sleep(BREATH);
    }
}

/// Creates a client once the driver runs; `touches`: it prefaults what it maps.
pub fn client(name: &str, touches: bool) -> Result<Aeron, RegionError> {
    let path = path_in_c(name)?;
    let make = || {
        let context = AeronContext::new()?;
        context.set_dir(&path)?;
        context.set_use_conductor_agent_invoker(true)?;
        context.set_pre_touch_mapped_memory(touches)?;
        context.set_driver_timeout_ms(PATIENCE.as_millis() as u64)?;
        // Aeron's own ends the process.
        context.set_error_handler(Some(|code: i32, what: &str| eprintln!("aeron: {code}: {what}")))?;
        let client = Aeron::new(&context)?;
        client.start()?;
        Ok(client)
    };
    make().map_err(|error: rusteron_client::AeronCError| refused(name, "reach its media driver")(error))
}

/// The media driver, and the consumer's client.
pub struct Media {
    // Dropped in this order.
    client: Aeron,
    driver: AeronDriver,
    context: AeronDriverContext,
}

impl Media {
    /// The driver of a hand-off, with its files in the hand-off's folder.
    fn new(name: &str, capacity: u32) -> Result<Self, RegionError> {
        let window = window(capacity);
        let path = path_in_c(name)?;
        let make = || {
            let context = AeronDriverContext::new()?;
            context.set_dir(&path)?;
            context.set_threading_mode(aeron_threading_mode_t::AERON_THREADING_MODE_INVOKER)?;
            context.set_client_liveness_timeout_ns(NEVER_NS)?;
            context.set_publication_unblock_timeout_ns(2 * NEVER_NS)?;
            context.set_image_liveness_timeout_ns(NEVER_NS)?;
            context.set_ipc_publication_term_window_length(window)?;
            // A window is at most half a term, and a term a power of two from 64 KiB to 1 GiB.
            context.set_ipc_term_buffer_length((2 * window).next_power_of_two().max(1 << 16))?;
            context.set_counters_buffer_length(COUNTERS)?;
            // Reserved, so that touching it cannot fail.
            context.set_term_buffer_sparse_file(false)?;
            let driver = AeronDriver::new(&context)?;
            driver.start(true)?;
            Ok((driver, context))
        };
        let (driver, context) = make().map_err(|error: rusteron_media_driver::AeronCError| {
            refused(name, "start a media driver in its folder")(error)
        })?;
        // The consumer's thread maps the logs of successors as well, in the middle of its work.
        Ok(Self { client: client(name, false)?, driver, context })
    }

    /// What waits to be done by the driver and by the client; whether there was anything.
    fn work(&self) -> bool {
        // The driver logs errors, and the client passes them to its handler.
        let done = [self.driver.main_do_work().unwrap_or(0), self.client.main_do_work().unwrap_or(0)];
        done.iter().any(|done| *done > 0)
    }

    /// The run has started: from now on a log is made without being filled.
    fn has_started(self) -> Self {
        // Where that cannot be had, it takes as long as before.
        let _ = self.context.set_term_buffer_sparse_file(true);
        self
    }

    /// All that waits, as far as that is not always more; whether there was anything.
    fn call(&self) -> bool {
        // The client is notified of one log a turn.
        (0..TURNS_A_CALL).take_while(|_| self.work()).count() > 0
    }

    fn subscribe(&self, name: &str) -> Result<AeronSubscription, RegionError> {
        const WHAT: &str = "subscribe to its stream";
        let channel = CString::new(CHANNEL).map_err(refused(name, WHAT))?;
        let asked = self.client.async_add_subscription(&channel, STREAM, Handlers::NONE, Handlers::NONE);
        let asked = asked.map_err(refused(name, WHAT))?;
        wait(name, WHAT, || {
            self.work();
            asked.poll().map_err(refused(name, WHAT))
        })
    }
}

/// Releases the pages of finished logs ([`Care::let_go`]), except what follows the terms, which the
/// driver keeps using. Called by a producer that attaches.
pub fn give_back(name: &str) {
    let punch = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    let Ok(logs) = path(name).join(LOGS).read_dir() else { return };
    for log in logs.flatten().map(|log| log.path()).filter(|log| log.extension().is_some_and(|is| is == DEAD))
    {
        // Where it cannot be had they go with the run.
        let Ok(file) = OpenOptions::new().write(true).open(&log) else { continue };
        // Behind whole terms, of 64 KiB at least, stands a page.
        let terms = file.metadata().map_or(0, |file| file.len() >> 16 << 16);
        let _ = fallocate(file, punch, 0, terms.cast_signed());
        let _ = std::fs::remove_file(log);
    }
}

/// The component that calls the media driver, from the consumer's thread.
pub struct Care {
    path: PathBuf,
    media: Option<Media>,
    /// Where it is until the first look.
    starting: Starting,
    taken: u32,
    called: u64,
}

/// A driver that a thread calls until somebody takes it, who waits only for a call under way.
#[derive(Clone)]
struct Starting(Arc<Mutex<Option<Media>>>);

impl Starting {
    fn new(name: &str, media: Media) -> Result<Self, RegionError> {
        let starting = Self(Arc::new(Mutex::new(Some(media))));
        let theirs = starting.clone();
        let thread = std::thread::Builder::new().name("aeron-start".into());
        let thread = thread.spawn(move || {
            while theirs.with(|media| media.as_ref().map(Media::call)).is_some() {
                std::thread::sleep(BREATH);
            }
        });
        thread.map_err(refused(name, "start a thread for its media driver"))?;
        Ok(starting)
    }

    fn with<T>(&self, what: impl FnOnce(&mut Option<Media>) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Care {
    /// Creates a driver with capacity for each producer's messages, and the one subscription.
    pub fn new(name: &str, capacity: u32) -> Result<(AeronSubscription, Self), RegionError> {
        let media = Media::new(name, capacity)?;
        let subscription = media.subscribe(name)?;
        let starting = Starting::new(name, media)?;
        // Due at once, whatever the first look finds.
        let care = Self { path: path(name), media: None, starting, taken: MESSAGES_A_CALL, called: 0 };
        Ok((subscription, care))
    }

    /// Counts a message that was taken.
    #[inline]
    pub fn took(&mut self) {
        self.taken += 1;
        if self.taken > MESSAGES_A_CALL {
            self.try_call();
        }
    }

    /// Calls the driver after an empty poll, if that is due. Returns `true` if there was work.
    #[inline]
    pub fn try_work_idle(&mut self) -> bool {
        Tsc.peek().wrapping_sub(self.called) > TICKS_A_CALL && self.try_call()
    }

    /// Runs the media driver and the client once. Returns `true` if there was work.
    #[inline(never)]
    pub fn try_call(&mut self) -> bool {
        if self.media.is_none() {
            self.media = self.starting.with(Option::take).map(Media::has_started);
        }
        let done = self.media.as_ref().is_some_and(Media::call);
        self.taken = 0;
        self.called = Tsc.peek();
        done
    }

    /// Marks a finished log, whose pages the next attaching producer releases.
    pub fn let_go(&self, registration: i64) {
        let log = self.path.join(LOGS).join(format!("{registration}.logbuffer"));
        let _ = std::fs::rename(&log, log.with_extension(DEAD));
    }
}

impl Drop for Care {
    fn drop(&mut self) {
        drop(self.starting.with(Option::take));
    }
}
