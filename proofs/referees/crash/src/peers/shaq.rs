//! shaq: its queues in a file, of one sender and of many. A successor of the latter is the only
//! sender then, and calls `recover_as_exclusive` as documented.

use crate::peer::{Attach, CAPACITY, End, Message, Peer, text};
use shaq::{mpmc, spsc};
use std::fs::{File, OpenOptions};
use std::path::Path;

fn open(place: &Path, attach: Attach) -> Result<File, String> {
    let mut options = OpenOptions::new();
    // The file is the application's.
    let is_new = attach == Attach::Create;
    options.read(true).write(true).create(is_new).truncate(is_new);
    options.open(place.join("queue")).map_err(text)
}

/// Size of a file, in whole pages.
fn pages(bytes: usize) -> usize {
    bytes.next_multiple_of(4096)
}

pub fn spsc() -> Peer {
    Peer::new(
        ["shaq-spsc", "shaq", "SPSC queue"],
        End::Receiver,
        |place, attach| {
            // SAFETY: one sender at a time; messages are integers.
            unsafe { spsc::Producer::join(&open(place, attach)?) }.map_err(text)
        },
        |place, attach| {
            let file = open(place, attach)?;
            if attach != Attach::Create {
                // SAFETY: one receiver at a time; messages are integers.
                return unsafe { spsc::Consumer::join(&file) }.map_err(text);
            }
            // SAFETY: the file is new.
            unsafe { spsc::Consumer::create(&file, pages(spsc::minimum_file_size::<Message>(CAPACITY))) }
                .map_err(text)
        },
        |sender: &mut spsc::Producer<Message>, message| Ok(sender.try_write(*message).is_ok()),
        |receiver: &mut spsc::Consumer<Message>| Ok(receiver.try_read()),
    )
}

pub fn mpmc() -> Peer {
    let peer = Peer::new(
        ["shaq-mpmc", "shaq", "MPMC queue"],
        End::Receiver,
        |place, attach| {
            // SAFETY: messages are integers.
            let sender = unsafe { mpmc::Producer::join(&open(place, attach)?) }.map_err(text)?;
            if attach == Attach::Resume {
                // SAFETY: the only other sender was reaped.
                unsafe { sender.recover_as_exclusive() };
            }
            Ok(sender)
        },
        |place, attach| {
            let file = open(place, attach)?;
            if attach == Attach::Create {
                let bytes = pages(mpmc::minimum_file_size::<Message>(CAPACITY));
                // SAFETY: the file is new.
                return unsafe { mpmc::Consumer::create(&file, bytes) }.map_err(text);
            }
            // SAFETY: messages are integers.
            let receiver = unsafe { mpmc::Consumer::join(&file) }.map_err(text)?;
            if attach == Attach::Resume {
                // SAFETY: the only other receiver was reaped.
                unsafe { receiver.recover_as_exclusive() };
            }
            Ok(receiver)
        },
        |sender: &mut mpmc::Producer<Message>, message| Ok(sender.try_write(*message).is_ok()),
        |receiver: &mut mpmc::Consumer<Message>| Ok(receiver.try_read()),
    );
    Peer { has_many_senders: true, ..peer }
}
