//! bulkhead-shm: queues under a name, of one sender and of several.

use crate::peer::{Attach, CAPACITY, End, Message, Peer, name, text};
use shm::queue::{self, MessageQueue, Receiver, Sender};
use std::path::Path;

/// A queue of this project, with `SENDERS` senders.
pub struct Bulkhead<const SENDERS: usize>;

impl<const SENDERS: usize> Peer for Bulkhead<SENDERS> {
    const CRATE: &'static str = "bulkhead-shm";
    const KIND: &'static str = if SENDERS == 1 { "SPSC queue" } else { "MPSC queue" };
    const HAS_MANY_SENDERS: bool = SENDERS > 1;
    const CREATOR: End = End::Receiver;
    type Sender = Sender<Message>;
    /// The creator's handle removes the name when it is dropped.
    type Receiver = (Receiver<Message>, MessageQueue<Message>);

    fn sender(place: &Path, attach: Attach) -> Result<Self::Sender, String> {
        let mut queue = queue::open::<Message>(&name(place)).map_err(text)?;
        if attach == Attach::Succeed { queue.inherit(0) } else { queue.sender() }.map_err(text)
    }

    fn receiver(place: &Path, attach: Attach) -> Result<Self::Receiver, String> {
        let name = name(place);
        let mut queue = match attach {
            Attach::Create => queue::mpsc_of(&name, SENDERS, CAPACITY as u32),
            Attach::Join | Attach::Succeed => queue::open(&name),
        }
        .map_err(text)?;
        let receiver = if attach == Attach::Succeed { queue.resume() } else { queue.receiver() };
        Ok((receiver.map_err(text)?, queue))
    }

    fn push(sender: &mut Self::Sender, message: &Message) -> Result<bool, String> {
        Ok(sender.push(message).is_ok())
    }

    fn pop((receiver, _): &mut Self::Receiver) -> Result<Option<Message>, String> {
        receiver.pop().map_err(text)
    }
}
