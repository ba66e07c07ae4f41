//! Aeron IPC: an exclusive publication, and a subscription for each reader. The media driver and
//! the conductors of its clients have threads of their own, as is usual: the writer's process runs
//! the driver.

use crate::processes::Contender;
use crate::shared::ROOM;
use crate::work::{Value, copies};
use rusteron_client::{Aeron, AeronContext, AeronExclusivePublication, AeronSubscription, Handlers};
use rusteron_media_driver::bindings::aeron_threading_mode_t;
use rusteron_media_driver::{AeronDriver, AeronDriverContext};
use std::ffi::{CStr, CString};
use std::path::Path;
use std::time::Duration;

const CHANNEL: &CStr = c"aeron:ipc";
const STREAM: i32 = 1;
const BYTES: usize = size_of::<Value>();
/// Bytes of a message in a log: a header of 32, and the value, in units of 32.
const FRAME: usize = 96;
/// Time between two looks at what the media driver answers.
const BREATH: Duration = Duration::from_micros(100);

struct Writer {
    // Dropped in this order.
    publication: AeronExclusivePublication,
    _client: Aeron,
    _driver: AeronDriver,
    _context: AeronDriverContext,
}

struct Reader {
    // Dropped in this order.
    subscription: AeronSubscription,
    _client: Aeron,
}

fn driver_folder(folder: &Path) -> CString {
    CString::new(folder.join("aeron").display().to_string()).expect("a path")
}

fn driver(folder: &Path) -> (AeronDriver, AeronDriverContext) {
    let context = AeronDriverContext::new().expect("a context");
    context.set_dir(&driver_folder(folder)).expect("its folder");
    context.set_threading_mode(aeron_threading_mode_t::AERON_THREADING_MODE_SHARED).expect("a mode");
    let window = ROOM * FRAME;
    context.set_ipc_publication_term_window_length(window).expect("a window");
    context.set_ipc_term_buffer_length((2 * window).next_power_of_two()).expect("a length");
    context.set_term_buffer_sparse_file(false).expect("memory that is there");
    let driver = AeronDriver::new(&context).expect("a media driver");
    driver.start(false).expect("its threads");
    (driver, context)
}

fn client(folder: &Path) -> Aeron {
    let context = AeronContext::new().expect("a context");
    context.set_dir(&driver_folder(folder)).expect("its folder");
    context.set_pre_touch_mapped_memory(true).expect("mapped memory that is there");
    let client = Aeron::new(&context).expect("a client");
    client.start().expect("its conductor");
    client
}

fn wait<T>(mut look: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(BREATH);
    }
}

pub fn publication() -> Contender {
    Contender::new(
        "aeron",
        |folder, _| {
            let (driver, context) = driver(folder);
            let client = client(folder);
            let asked = client.async_add_exclusive_publication(CHANNEL, STREAM).expect("a request");
            let publication = wait(|| asked.poll().expect("a publication"));
            Writer { publication, _client: client, _driver: driver, _context: context }
        },
        |writer, value| {
            // Back pressure, and the end of a term, are tried again.
            let mut claim = loop {
                match writer.publication.try_claim_owned(BYTES) {
                    Ok(claim) => break claim,
                    Err(_) => std::hint::spin_loop(),
                }
            };
            let (words, _) = claim.data().as_chunks_mut();
            words.iter_mut().zip(value).for_each(|(place, word)| *place = word.to_ne_bytes());
            claim.commit().expect("a claim of its own");
        },
        |folder| {
            let client = client(folder);
            let asked = client
                .async_add_subscription(CHANNEL, STREAM, Handlers::NONE, Handlers::NONE)
                .expect("a request");
            let subscription = wait(|| asked.poll().expect("a subscription"));
            wait(|| subscription.is_connected().then_some(()));
            Reader { subscription, _client: client }
        },
        copies(|reader: &mut Reader, into| {
            let read = |bytes: &[u8], _| {
                let (words, _) = bytes.as_chunks();
                into.iter_mut().zip(words).for_each(|(word, bytes)| *word = u64::from_ne_bytes(*bytes));
            };
            matches!(reader.subscription.poll_fn(read, 1), Ok(1..))
        }),
    )
}
