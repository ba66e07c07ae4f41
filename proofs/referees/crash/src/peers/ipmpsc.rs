//! ipmpsc: a ring of bytes in a file, with a mutex of the threads library in it.

use crate::peer::{Attach, CAPACITY, End, Peer, text};
use ipmpsc::{Receiver, Sender, SharedRingBuffer};
use std::path::Path;
use std::time::Duration;

fn path(place: &Path) -> String {
    place.join("ring").display().to_string()
}

pub fn peer() -> Peer {
    let peer = Peer::new(
        ["ipmpsc", "ipmpsc", "MPSC ring of bytes"],
        End::Receiver,
        |place, _| Ok(Sender::new(SharedRingBuffer::open(&path(place)).map_err(text)?)),
        |place, attach| {
            let buffer = match attach {
                Attach::Create => SharedRingBuffer::create(&path(place), CAPACITY as u32 * 64),
                Attach::Join | Attach::Resume => SharedRingBuffer::open(&path(place)),
            };
            Ok(Receiver::new(buffer.map_err(text)?))
        },
        |sender: &mut Sender, message| sender.send_timeout(message, Duration::from_millis(1)).map_err(text),
        |receiver: &mut Receiver| receiver.try_recv().map_err(text),
    );
    Peer { has_many_senders: true, ..peer }
}
