//! subetha-cxc: its rings in a file, of one sender and of many. A successor opens the file. A
//! sender's successor in the latter is the only sender then, and heals the slots that a dead one
//! claimed and did not publish, as documented for callers that know of the death.

use crate::peer::{Attach, CAPACITY, End, Message, Peer, text};
use std::path::{Path, PathBuf};
use subetha_cxc::shared_ring::{Consumer, Producer};
use subetha_cxc::{RingError, SharedRing, SharedRingSpsc};

/// Bytes that a pop needs at least, for a ring of one sender.
const SLOT_BYTES: usize = 64;

fn path(place: &Path) -> PathBuf {
    place.join("ring")
}

fn pair(place: &Path, attach: Attach) -> Result<(Producer, Consumer), String> {
    match attach {
        Attach::Create => SharedRingSpsc::create_pair(path(place), CAPACITY),
        Attach::Join | Attach::Resume => SharedRingSpsc::open_pair(path(place), CAPACITY),
    }
    .map_err(text)
}

fn ring(place: &Path, attach: Attach) -> Result<SharedRing, String> {
    match attach {
        Attach::Create => SharedRing::create(path(place), CAPACITY),
        Attach::Join | Attach::Resume => SharedRing::open(path(place), CAPACITY),
    }
    .map_err(text)
}

fn push(message: &Message, try_push: impl FnOnce(&[u8]) -> Result<(), RingError>) -> Result<bool, String> {
    match try_push(message.map(u64::to_le_bytes).as_flattened()) {
        Ok(()) => Ok(true),
        Err(RingError::Full) => Ok(false),
        Err(error) => Err(text(error)),
    }
}

fn pop(try_pop: impl FnOnce(&mut [u8]) -> Result<usize, RingError>) -> Result<Option<Message>, String> {
    let mut bytes = [0; SLOT_BYTES];
    match try_pop(&mut bytes) {
        Ok(_) => {
            let words = bytes.as_chunks::<8>().0;
            Ok(Some(core::array::from_fn(|word| u64::from_le_bytes(words[word]))))
        }
        Err(RingError::Empty) => Ok(None),
        Err(error) => Err(text(error)),
    }
}

pub fn spsc() -> Peer {
    Peer::new(
        ["subetha-spsc", "subetha-cxc", "SPSC ring"],
        End::Receiver,
        |place, attach| Ok(pair(place, attach)?.0),
        |place, attach| Ok(pair(place, attach)?.1),
        |sender: &mut Producer, message| push(message, |bytes| sender.try_push(bytes)),
        |receiver: &mut Consumer| pop(|bytes| receiver.try_pop(bytes)),
    )
}

pub fn mpmc() -> Peer {
    let peer = Peer::new(
        ["subetha-mpmc", "subetha-cxc", "MPMC ring"],
        End::Receiver,
        |place, attach| {
            let ring = ring(place, attach)?;
            if attach == Attach::Resume {
                while let Some(position) = ring.next_stuck_slot(0) {
                    ring.heal_stuck_slot(position).map_err(text)?;
                }
            }
            Ok(ring)
        },
        ring,
        |sender: &mut SharedRing, message| push(message, |bytes| sender.try_push(bytes)),
        |receiver: &mut SharedRing| pop(|bytes| receiver.try_pop(bytes)),
    );
    Peer { has_many_senders: true, ..peer }
}
