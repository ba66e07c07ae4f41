//! mmap-sync: one value in two mapped files. A reader sees the newest value, so older ones that it
//! did not look for are not lost.

use crate::peer::{End, Message, Peer, text};
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

fn ends(place: &Path) -> Ends {
    Ends::with_params(place.join("values").as_os_str())
}

pub fn peer() -> Peer {
    let peer = Peer::new(
        ["mmap-sync", "mmap-sync", "newest value"],
        End::Sender,
        |place, _| Ok(ends(place)),
        |place, _| Ok((ends(place), None)),
        |sender: &mut Ends, message| {
            sender.write(message, GRACE).map_err(text)?;
            Ok(true)
        },
        |(ends, seen): &mut (Ends, Option<InstanceVersion>)| {
            let version = ends.version().ok();
            if version.is_none() || version == *seen {
                return Ok(None);
            }
            *seen = version;
            // SAFETY: with a check of the bytes; the writer is of the same build.
            let value = unsafe { ends.read::<Message>(true) }.map_err(text)?;
            let words: *const Message = (&raw const *value).cast();
            // SAFETY: mapped for as long as the guard lives; volatile: the other process may write
            // it.
            Ok(Some(unsafe { words.read_volatile() }))
        },
    );
    Peer { is_newest_only: true, ..peer }
}
