//! bulkhead-shm: queues under a name, of one sender and of several, with messages of the table's
//! 56 bytes, or longer or shorter ones. A receiver releases a message once it has it.

use crate::messages::Form;
use crate::peer::{Attach, CAPACITY, End, Peer, name, text};
use shm::queue::{self, Message, MessageQueue, ProducerState, Receiver, Sender};

/// A queue of this project, with `SENDERS` senders.
pub fn peer<const SENDERS: usize, M: Form + Message + 'static>(
    row: &'static str,
    kind: &'static str,
) -> Peer {
    let peer = Peer::new(
        [row, "bulkhead-shm", kind],
        // The receiver creates the queue; the senders join it.
        End::Receiver,
        |place, attach| {
            let mut queue = queue::open::<M>(&name(place)).map_err(text)?;
            let states = queue.producers().map_err(text)?;
            // One that was killed before it had attached left its place free.
            let dead = states.iter().position(|state| matches!(state, ProducerState::Dead { .. }));
            match dead.filter(|_| attach == Attach::Resume) {
                Some(index) => queue.resume_sender(index),
                None => queue.sender(),
            }
            .map_err(text)
        },
        // The creator's handle removes the name when it is dropped.
        |place, attach| {
            let name = name(place);
            let queue = match attach {
                Attach::Create => queue::mpsc_of(&name, SENDERS, CAPACITY as u32),
                Attach::Join | Attach::Resume => queue::open(&name),
            };
            let mut queue: MessageQueue<M> = queue.map_err(text)?;
            let receiver = if attach == Attach::Resume { queue.resume_receiver() } else { queue.receiver() };
            Ok((receiver.map_err(text)?, queue))
        },
        |sender: &mut Sender<M>, message| Ok(sender.push(&M::encode(message)).is_ok()),
        |(receiver, _): &mut (Receiver<M>, _)| {
            let Some(taken) = receiver.take().map_err(text)? else { return Ok(None) };
            let message = taken.decode();
            taken.release();
            Ok(Some(message))
        },
    );
    Peer { has_many_senders: SENDERS > 1, ..peer }
        .with_clean_up(|place| queue::remove(&name(place)).map(drop).map_err(text))
}
