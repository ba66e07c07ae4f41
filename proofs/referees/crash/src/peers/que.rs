//! que: its lossless channel in shared memory, which its sender joins or creates. A receiver that
//! joins begins with the next message.

use crate::peer::{CAPACITY, End, Message, Peer, name, text};
use que::lossless::{consumer::Consumer, producer::Producer};
use que::page_size::PageSize;
use shm::memory::unlink;
use std::path::Path;

fn id(place: &Path) -> String {
    format!("{}.que", name(place))
}

pub fn peer() -> Peer {
    let peer = Peer::new(
        ["que", "que", "lossless channel"],
        End::Sender,
        |place, _| {
            // SAFETY: one sender at a time; messages are integers.
            unsafe { Producer::join_or_create_shmem(&id(place), PageSize::Standard) }.map_err(text)
        },
        |place, _| {
            // SAFETY: one receiver at a time; messages are integers.
            unsafe { Consumer::join_shmem(&id(place), PageSize::Standard) }.map_err(text)
        },
        |sender: &mut Producer<Message, CAPACITY>, message| {
            let is_pushed = sender.push(message).is_ok();
            sender.sync();
            Ok(is_pushed)
        },
        |receiver: &mut Consumer<Message, CAPACITY>| Ok(receiver.pop()),
    );
    // Its `Shmem::close` unlinks; its channels never call it, so the name is the caller's to remove.
    peer.with_clean_up(|place| unlink(&id(place)).map_err(text))
}
