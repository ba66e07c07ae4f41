//! ipc_ring: a ring of bytes in a file, which the writer creates. A path that exists is refused,
//! and a writer cannot open a ring.

use crate::peer::{CAPACITY, End, Peer, text};
use ipc_ring::{IpcError, RingReader, RingWriter};

/// Bytes of the ring: each message has four bytes before it.
const BYTES: usize = (CAPACITY * 64).next_power_of_two();

pub fn peer() -> Peer {
    let peer = Peer::new(
        ["ipc_ring", "ipc_ring", "SPSC ring of bytes"],
        End::Sender,
        |place, _| RingWriter::create(place.join("ring"), BYTES).map_err(text),
        |place, _| Ok((RingReader::open(place.join("ring")).map_err(text)?, Vec::new())),
        |sender: &mut RingWriter, message| {
            let bytes = message.map(u64::to_le_bytes);
            match sender.try_push(bytes.as_flattened()) {
                Ok(()) => Ok(true),
                Err(IpcError::Full) => Ok(false),
                Err(error) => Err(text(error)),
            }
        },
        |(reader, bytes): &mut (RingReader, Vec<u8>)| {
            let Some(len) = reader.try_pop(bytes).map_err(text)? else { return Ok(None) };
            let mut message = [u64::MAX; 7];
            for (word, bytes) in message.iter_mut().zip(bytes[..len].as_chunks::<8>().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            Ok(Some(message))
        },
    );
    Peer { starts_over: true, ..peer }
}
