//! Aeron: a media driver, a client, and a stream each way, all turned by the thread that has them.
//! No thread of Aeron's own carries frames.
//!
//! ```text
//!  far     publication   endpoint=HOST:PORT                                     ──▶ subscription on HOST:PORT      engine
//!          subscription  control=HOST:PORT+1, control-mode=dynamic, any port    ◀── publication, to whoever asks there
//! ```
//! Only the engine's host needs an address that is known: the far host asks for its stream at the
//! port above (Aeron's multi-destination-cast, with one destination). A driver repairs what the
//! network loses and keeps the order within a stream, for as long as both drivers live.

use crate::meeting::Meeting;
use bridge::frame::{FRAME, Side};
use rusteron_media_driver::bindings::aeron_threading_mode_t;
use rusteron_media_driver::{
    Aeron, AeronCError, AeronContext, AeronDriver, AeronDriverContext, AeronExclusivePublication,
    AeronOfferError, AeronSubscription, Handlers,
};
use std::ffi::CString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};
use thiserror::Error;

/// The far side's stream, and the engine's side's.
const STREAMS: [i32; 2] = [1001, 1002];

/// How long a stream's set-up may take: the driver answers on this very thread.
const SET_UP: Duration = Duration::from_secs(5);

/// A stream has three terms of this length: two thousand frames each way at most, before the sender
/// waits. Small, since they count as this process's memory.
const TERM: &str = "term-length=256k";

/// How many frames one poll takes.
const BATCH: usize = 64;

/// Why there is no transport, or no more.
#[derive(Debug, Error)]
pub enum TransportError {
    /// Aeron's.
    #[error("Aeron, {what}: {text}")]
    Aeron {
        /// What was being done.
        what: &'static str,
        /// What it says.
        text: String,
    },
    /// A stream that was not set up.
    #[error("Aeron did not set up the stream {uri} within {SET_UP:?}")]
    Late {
        /// Which.
        uri: String,
    },
    /// The path of the folder, or an address, has a byte that none may have.
    #[error("a text with a zero byte: {0}")]
    Text(#[from] std::ffi::NulError),
}

fn of(what: &'static str) -> impl Fn(AeronCError) -> TransportError {
    move |error| TransportError::Aeron { what, text: error.to_string() }
}

/// One side's ends of both streams.
pub struct Transport {
    publication: AeronExclusivePublication,
    subscription: AeronSubscription,
    client: Aeron,
    driver: AeronDriver,
    /// The publication is closed, or worse: nothing goes out any more.
    is_broken: bool,
}

impl Transport {
    /// That side's, with a driver whose files are in `folder`, which is made. `host` is where the
    /// engine's side listens.
    ///
    /// # Errors
    /// See [`TransportError`]: a port that is taken, an address that is not this host's.
    pub fn open(side: Side, meeting: &Meeting, folder: &Path) -> Result<Self, TransportError> {
        let folder = CString::new(folder.to_string_lossy().into_owned())?;
        let context = AeronDriverContext::new().map_err(of("a driver's settings"))?;
        let set = || -> Result<(), AeronCError> {
            context.set_dir(&folder)?;
            context.set_dir_delete_on_start(true)?;
            context.set_dir_delete_on_shutdown(true)?;
            context.set_threading_mode(aeron_threading_mode_t::AERON_THREADING_MODE_INVOKER)?;
            context.set_term_buffer_sparse_file(true)?;
            context.set_perform_storage_checks(false)?;
            Ok(())
        };
        set().map_err(of("the driver's settings"))?;
        let driver = AeronDriver::new(&context).map_err(of("the driver"))?;
        driver.start(true).map_err(of("the driver's start"))?;
        // A client looks for the driver's sign of life.
        driver.main_do_work().map_err(of("the driver"))?;
        let context = AeronContext::new().map_err(of("the client's settings"))?;
        let set = || -> Result<(), AeronCError> {
            context.set_dir(&folder)?;
            context.set_use_conductor_agent_invoker(true)?;
            context
                .set_error_handler(Some(|code: i32, text: &str| eprintln!("Aeron, error {code}: {text}")))?;
            Ok(())
        };
        set().map_err(of("the client's settings"))?;
        let client = Aeron::new(&context).map_err(of("the client"))?;
        client.start().map_err(of("the client's start"))?;
        let (out, home) = uris(side, meeting);
        let streams = match side {
            Side::Far => STREAMS,
            Side::Engine => [STREAMS[1], STREAMS[0]],
        };
        let turn = || -> Result<(), TransportError> {
            driver.main_do_work().map_err(of("the driver"))?;
            client.main_do_work().map_err(of("the client"))?;
            Ok(())
        };
        let c_home = CString::new(home.clone())?;
        let asked = client
            .async_add_subscription(&c_home, streams[1], Handlers::NONE, Handlers::NONE)
            .map_err(of("the stream home"))?;
        let subscription = wait(home, turn, || asked.poll().map_err(of("the stream home")))?;
        let c_out = CString::new(out.clone())?;
        let asked =
            client.async_add_exclusive_publication(&c_out, streams[0]).map_err(of("the stream out"))?;
        let publication = wait(out, turn, || asked.poll().map_err(of("the stream out")))?;
        Ok(Self { publication, subscription, client, driver, is_broken: false })
    }

    /// Lets driver and client do what there is to do; how much that was.
    ///
    /// # Errors
    /// The driver or the client cannot go on.
    pub fn turn(&mut self) -> Result<usize, TransportError> {
        if self.is_broken || self.client.is_closed() {
            return Err(TransportError::Aeron { what: "a stream", text: "it is closed".into() });
        }
        let done = self.driver.main_do_work().map_err(of("the driver"))?;
        let more = self.client.main_do_work().map_err(of("the client"))?;
        Ok(usize::try_from(done).unwrap_or(0) + usize::try_from(more).unwrap_or(0))
    }

    /// Hands over what arrived; how much that was.
    ///
    /// # Errors
    /// The client cannot go on.
    pub fn poll(&mut self, mut take: impl FnMut(&[u8])) -> Result<usize, TransportError> {
        let taken =
            self.subscription.poll_fn(|bytes, _| take(bytes), BATCH).map_err(of("the stream home"))?;
        Ok(usize::try_from(taken).unwrap_or(0))
    }

    /// Sends a frame; `false`: not now, or nobody has asked for the stream.
    pub fn offer(&mut self, frame: &[u8; FRAME]) -> bool {
        match self.publication.offer(frame) {
            Ok(_) => true,
            Err(error) => {
                self.is_broken |= !error.is_retryable() && !matches!(error, AeronOfferError::NotConnected);
                false
            }
        }
    }
}

/// The streams of a side: out, and home.
fn uris(side: Side, meeting: &Meeting) -> (String, String) {
    const V4_ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    const V6_ANY: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let [listens, asks] = [meeting.port, meeting.port + 1].map(|port| SocketAddr::new(meeting.host, port));
    let any = SocketAddr::new(if meeting.host.is_ipv4() { V4_ANY } else { V6_ANY }, 0);
    match side {
        Side::Far => (
            format!("aeron:udp?endpoint={listens}|{TERM}"),
            format!("aeron:udp?endpoint={any}|control={asks}|control-mode=dynamic"),
        ),
        Side::Engine => (
            format!("aeron:udp?control={asks}|control-mode=dynamic|{TERM}"),
            format!("aeron:udp?endpoint={listens}"),
        ),
    }
}

/// Turns both until the stream is there.
fn wait<T>(
    uri: String,
    turn: impl Fn() -> Result<(), TransportError>,
    poll: impl Fn() -> Result<Option<T>, TransportError>,
) -> Result<T, TransportError> {
    let since = Instant::now();
    while since.elapsed() < SET_UP {
        turn()?;
        if let Some(stream) = poll()? {
            return Ok(stream);
        }
    }
    Err(TransportError::Late { uri })
}
