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

pub struct Spsc;

impl Peer for Spsc {
    const CRATE: &'static str = "shaq";
    const KIND: &'static str = "SPSC queue";
    const CREATOR: End = End::Receiver;
    type Sender = spsc::Producer<Message>;
    type Receiver = spsc::Consumer<Message>;

    fn sender(place: &Path, attach: Attach) -> Result<Self::Sender, String> {
        // SAFETY: one sender at a time; messages are integers.
        unsafe { spsc::Producer::join(&open(place, attach)?) }.map_err(text)
    }

    fn receiver(place: &Path, attach: Attach) -> Result<Self::Receiver, String> {
        let file = open(place, attach)?;
        if attach != Attach::Create {
            // SAFETY: one receiver at a time; messages are integers.
            return unsafe { spsc::Consumer::join(&file) }.map_err(text);
        }
        // SAFETY: the file is new.
        unsafe { spsc::Consumer::create(&file, pages(spsc::minimum_file_size::<Message>(CAPACITY))) }
            .map_err(text)
    }

    fn push(sender: &mut Self::Sender, message: &Message) -> Result<bool, String> {
        Ok(sender.try_write(*message).is_ok())
    }

    fn pop(receiver: &mut Self::Receiver) -> Result<Option<Message>, String> {
        Ok(receiver.try_read())
    }
}

pub struct Mpmc;

impl Peer for Mpmc {
    const CRATE: &'static str = "shaq";
    const KIND: &'static str = "MPMC queue";
    const HAS_MANY_SENDERS: bool = true;
    const CREATOR: End = End::Receiver;
    type Sender = mpmc::Producer<Message>;
    type Receiver = mpmc::Consumer<Message>;

    fn sender(place: &Path, attach: Attach) -> Result<Self::Sender, String> {
        // SAFETY: messages are integers.
        let sender = unsafe { mpmc::Producer::join(&open(place, attach)?) }.map_err(text)?;
        if attach == Attach::Succeed {
            // SAFETY: the only other sender was reaped.
            unsafe { sender.recover_as_exclusive() };
        }
        Ok(sender)
    }

    fn receiver(place: &Path, attach: Attach) -> Result<Self::Receiver, String> {
        let file = open(place, attach)?;
        if attach == Attach::Create {
            // SAFETY: the file is new.
            return unsafe {
                mpmc::Consumer::create(&file, pages(mpmc::minimum_file_size::<Message>(CAPACITY)))
            }
            .map_err(text);
        }
        // SAFETY: messages are integers.
        let receiver = unsafe { mpmc::Consumer::join(&file) }.map_err(text)?;
        if attach == Attach::Succeed {
            // SAFETY: the only other receiver was reaped.
            unsafe { receiver.recover_as_exclusive() };
        }
        Ok(receiver)
    }

    fn push(sender: &mut Self::Sender, message: &Message) -> Result<bool, String> {
        Ok(sender.try_write(*message).is_ok())
    }

    fn pop(receiver: &mut Self::Receiver) -> Result<Option<Message>, String> {
        Ok(receiver.try_read())
    }
}
