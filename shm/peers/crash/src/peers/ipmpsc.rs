//! ipmpsc: a ring of bytes in a file, with a mutex of the threads library in it.

use crate::peer::{Attach, CAPACITY, End, Message, Peer, text};
use ipmpsc::{Receiver, Sender, SharedRingBuffer};
use std::path::Path;
use std::time::Duration;

pub struct Ipmpsc;

fn path(place: &Path) -> String {
    place.join("ring").display().to_string()
}

impl Peer for Ipmpsc {
    const CRATE: &'static str = "ipmpsc";
    const KIND: &'static str = "MPSC ring of bytes";
    const CREATOR: End = End::Receiver;
    const HAS_MANY_SENDERS: bool = true;
    type Sender = Sender;
    type Receiver = Receiver;

    fn sender(place: &Path, _: Attach) -> Result<Self::Sender, String> {
        Ok(Sender::new(SharedRingBuffer::open(&path(place)).map_err(text)?))
    }

    fn receiver(place: &Path, attach: Attach) -> Result<Self::Receiver, String> {
        let buffer = match attach {
            Attach::Create => SharedRingBuffer::create(&path(place), CAPACITY as u32 * 64),
            Attach::Join | Attach::Succeed => SharedRingBuffer::open(&path(place)),
        };
        Ok(Receiver::new(buffer.map_err(text)?))
    }

    fn push(sender: &mut Self::Sender, message: &Message) -> Result<bool, String> {
        sender.send_timeout(message, Duration::from_millis(1)).map_err(text)
    }

    fn pop(receiver: &mut Self::Receiver) -> Result<Option<Message>, String> {
        receiver.try_recv().map_err(text)
    }
}
