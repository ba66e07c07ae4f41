//! The transport over Aeron: a media driver, a client and a stream each way, all driven by the
//! owning thread. Aeron's own threads are not used.
//!
//! ```text
//!  strategy  publication   endpoint=HOST:PORT            ──▶ subscription on HOST:PORT    engine
//!            subscription  control=HOST:PORT+1, dynamic  ◀── publication
//! ```
//! Only the engine's host needs a known address: the strategy's host requests its stream at the
//! next port (Aeron's multi-destination-cast, with one destination). A driver repairs what the
//! network loses and keeps the order within a stream, for as long as both drivers live.

use crate::bridge_address::BridgeAddress;
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

/// Stream ids of the strategy's side and the engine's side.
const STREAMS: [i32; 2] = [1001, 1002];

const SET_UP: Duration = Duration::from_secs(5);

/// A stream has three terms of this length, which count as this process's memory.
const TERM: &str = "term-length=256k";

const BATCH: usize = 64;

/// The reason why the transport cannot be opened or has failed.
#[derive(Debug, Error)]
pub enum TransportError {
    /// An error of Aeron.
    #[error("Aeron, {what}: {text}")]
    Aeron {
        /// The operation that failed.
        what: &'static str,
        /// Aeron's message.
        text: String,
    },
    /// A stream was not set up in time.
    #[error("Aeron did not set up the stream {uri} within {SET_UP:?}")]
    Late {
        /// The stream's URI.
        uri: String,
    },
    /// A path or address has a zero byte.
    #[error("a text with a zero byte: {0}")]
    Text(#[from] std::ffi::NulError),
}

fn aeron_error(what: &'static str) -> impl Fn(AeronCError) -> TransportError {
    move |error| TransportError::Aeron { what, text: error.to_string() }
}

/// The Aeron streams to and from the other host, with media driver and client.
pub struct Transport {
    publication: AeronExclusivePublication,
    subscription: AeronSubscription,
    client: Aeron,
    driver: AeronDriver,
    /// The publication is closed or failed: nothing can be sent.
    is_broken: bool,
}

impl Transport {
    /// Opens the streams of one side, with a media driver whose files are in `folder`.
    pub fn open(side: Side, address: &BridgeAddress, folder: &Path) -> Result<Self, TransportError> {
        let folder = CString::new(folder.to_string_lossy().into_owned())?;
        let context = AeronDriverContext::new().map_err(aeron_error("a driver's settings"))?;
        let set = || -> Result<(), AeronCError> {
            context.set_dir(&folder)?;
            context.set_dir_delete_on_start(true)?;
            context.set_dir_delete_on_shutdown(true)?;
            context.set_threading_mode(aeron_threading_mode_t::AERON_THREADING_MODE_INVOKER)?;
            context.set_term_buffer_sparse_file(true)?;
            context.set_perform_storage_checks(false)?;
            Ok(())
        };
        set().map_err(aeron_error("the driver's settings"))?;
        let driver = AeronDriver::new(&context).map_err(aeron_error("the driver"))?;
        driver.start(true).map_err(aeron_error("the driver's start"))?;
        // A client checks the driver's heartbeat.
        driver.main_do_work().map_err(aeron_error("the driver"))?;
        let context = AeronContext::new().map_err(aeron_error("the client's settings"))?;
        let set = || -> Result<(), AeronCError> {
            context.set_dir(&folder)?;
            context.set_use_conductor_agent_invoker(true)?;
            context
                .set_error_handler(Some(|code: i32, text: &str| eprintln!("Aeron, error {code}: {text}")))?;
            Ok(())
        };
        set().map_err(aeron_error("the client's settings"))?;
        let client = Aeron::new(&context).map_err(aeron_error("the client"))?;
        client.start().map_err(aeron_error("the client's start"))?;
        let (out, home) = uris(side, address);
        let streams = match side {
            Side::Strategy => STREAMS,
            Side::Engine => [STREAMS[1], STREAMS[0]],
        };
        let turn = || -> Result<(), TransportError> {
            driver.main_do_work().map_err(aeron_error("the driver"))?;
            client.main_do_work().map_err(aeron_error("the client"))?;
            Ok(())
        };
        let c_home = CString::new(home.clone())?;
        let asked = client
            .async_add_subscription(&c_home, streams[1], Handlers::NONE, Handlers::NONE)
            .map_err(aeron_error("the stream home"))?;
        let subscription = wait(home, turn, || asked.poll().map_err(aeron_error("the stream home")))?;
        let c_out = CString::new(out.clone())?;
        let asked = client
            .async_add_exclusive_publication(&c_out, streams[0])
            .map_err(aeron_error("the stream out"))?;
        let publication = wait(out, turn, || asked.poll().map_err(aeron_error("the stream out")))?;
        Ok(Self { publication, subscription, client, driver, is_broken: false })
    }

    /// Runs one work cycle of Aeron's media driver and client, and returns the amount of work that
    /// they report.
    pub fn turn(&mut self) -> Result<usize, TransportError> {
        if self.is_broken || self.client.is_closed() {
            return Err(TransportError::Aeron { what: "a stream", text: "it is closed".into() });
        }
        let done = self.driver.main_do_work().map_err(aeron_error("the driver"))?;
        let more = self.client.main_do_work().map_err(aeron_error("the client"))?;
        Ok(usize::try_from(done).unwrap_or(0) + usize::try_from(more).unwrap_or(0))
    }

    /// Passes received frames to `take`, and returns their number.
    pub fn poll(&mut self, mut take: impl FnMut(&[u8])) -> Result<usize, TransportError> {
        let taken = self
            .subscription
            .poll_fn(|bytes, _| take(bytes), BATCH)
            .map_err(aeron_error("the stream home"))?;
        Ok(usize::try_from(taken).unwrap_or(0))
    }

    /// Sends a frame; returns `false` if the stream is busy or has no subscriber.
    pub fn try_offer(&mut self, frame: &[u8; FRAME]) -> bool {
        match self.publication.offer(frame) {
            Ok(_) => true,
            Err(error) => {
                self.is_broken |= !error.is_retryable() && !matches!(error, AeronOfferError::NotConnected);
                false
            }
        }
    }
}

/// Returns the URIs of a side's streams: outbound and inbound.
fn uris(side: Side, address: &BridgeAddress) -> (String, String) {
    const V4_ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    const V6_ANY: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let [listens, asks] = [address.port, address.port + 1].map(|port| SocketAddr::new(address.host, port));
    let any = SocketAddr::new(if address.host.is_ipv4() { V4_ANY } else { V6_ANY }, 0);
    match side {
        Side::Strategy => (
            format!("aeron:udp?endpoint={listens}|{TERM}"),
            format!("aeron:udp?endpoint={any}|control={asks}|control-mode=dynamic"),
        ),
        Side::Engine => (
            format!("aeron:udp?control={asks}|control-mode=dynamic|{TERM}"),
            format!("aeron:udp?endpoint={listens}"),
        ),
    }
}

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
