//! bulkhead-shm: queues under a name, of one sender and of several.

use crate::peer::{Attach, CAPACITY, End, Message, Peer, name, text};
use shm::queue::{self, MessageQueue, Receiver, Sender};

/// A queue of this project, with `SENDERS` senders.
pub fn peer<const SENDERS: usize>(row: &'static str) -> Peer {
    let kind = if SENDERS == 1 { "SPSC queue" } else { "MPSC queue" };
    let peer = Peer::new(
        [row, "bulkhead-shm", kind],
        // The receiver creates the queue; the senders join it.
        End::Receiver,
        |place, attach| {
            let mut queue = queue::open::<Message>(&name(place)).map_err(text)?;
            if attach == Attach::Resume { queue.resume_sender(0) } else { queue.sender() }.map_err(text)
        },
        // The creator's handle removes the name when it is dropped.
        |place, attach| {
            let name = name(place);
            let queue = match attach {
                Attach::Create => queue::mpsc_of(&name, SENDERS, CAPACITY as u32),
                Attach::Join | Attach::Resume => queue::open(&name),
            };
            let mut queue: MessageQueue<Message> = queue.map_err(text)?;
            let receiver = if attach == Attach::Resume { queue.resume_receiver() } else { queue.receiver() };
            Ok((receiver.map_err(text)?, queue))
        },
        |sender: &mut Sender<_>, message| Ok(sender.push(message).is_ok()),
        |(receiver, _): &mut (Receiver<_>, _)| receiver.pop().map_err(text),
    );
    Peer { has_many_senders: SENDERS > 1, ..peer }
}
