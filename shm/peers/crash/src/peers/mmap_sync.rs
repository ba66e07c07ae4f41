//! mmap-sync: one value in two mapped files. A reader sees the newest value, so older ones that it
//! did not look for are not lost.

use crate::peer::{Attach, End, Message, Peer, text};
use mmap_sync::instance::InstanceVersion;
use mmap_sync::locks::LockDisabled;
use mmap_sync::synchronizer::Synchronizer;
use std::path::Path;
use std::time::Duration;
use wyhash::WyHash;

/// Nanoseconds between two looks of a writer for readers that are not done.
const SLEEP_NS: u64 = 1_000_000;
/// Time after which a writer continues without them.
const GRACE: Duration = Duration::from_millis(10);

type Ends = Synchronizer<WyHash, LockDisabled, 1024, SLEEP_NS>;

pub struct MmapSync;

fn ends(place: &Path) -> Ends {
    Ends::with_params(place.join("values").as_os_str())
}

impl Peer for MmapSync {
    const CRATE: &'static str = "mmap-sync";
    const KIND: &'static str = "newest value";
    const CREATOR: End = End::Sender;
    const NEWEST_ONLY: bool = true;
    type Sender = Ends;
    type Receiver = (Ends, Option<InstanceVersion>);

    fn sender(place: &Path, _: Attach) -> Result<Self::Sender, String> {
        Ok(ends(place))
    }

    fn receiver(place: &Path, _: Attach) -> Result<Self::Receiver, String> {
        Ok((ends(place), None))
    }

    fn push(sender: &mut Self::Sender, message: &Message) -> Result<bool, String> {
        sender.write(message, GRACE).map_err(text)?;
        Ok(true)
    }

    fn pop((ends, seen): &mut Self::Receiver) -> Result<Option<Message>, String> {
        let version = ends.version().ok();
        if version.is_none() || version == *seen {
            return Ok(None);
        }
        *seen = version;
        // SAFETY: with a check of the bytes; the writer is of the same build.
        let value = unsafe { ends.read::<Message>(true) }.map_err(text)?;
        let words: *const Message = (&raw const *value).cast();
        // SAFETY: mapped for as long as the guard lives; volatile: the other process may write it.
        Ok(Some(unsafe { words.read_volatile() }))
    }
}
