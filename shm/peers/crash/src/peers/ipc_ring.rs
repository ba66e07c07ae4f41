//! ipc_ring: a ring of bytes in a file, which the writer creates. A path that exists is refused,
//! and a writer cannot open a ring.

use crate::peer::{Attach, CAPACITY, End, Message, Peer, text};
use ipc_ring::{IpcError, RingReader, RingWriter};
use std::path::Path;

/// Bytes of the ring: each message has four bytes before it.
const BYTES: usize = (CAPACITY * 64).next_power_of_two();

pub struct IpcRing;

impl Peer for IpcRing {
    const CRATE: &'static str = "ipc_ring";
    const KIND: &'static str = "SPSC ring of bytes";
    const CREATOR: End = End::Sender;
    type Sender = RingWriter;
    type Receiver = (RingReader, Vec<u8>);

    fn sender(place: &Path, _: Attach) -> Result<Self::Sender, String> {
        RingWriter::create(place.join("ring"), BYTES).map_err(text)
    }

    fn receiver(place: &Path, _: Attach) -> Result<Self::Receiver, String> {
        Ok((RingReader::open(place.join("ring")).map_err(text)?, Vec::new()))
    }

    fn push(sender: &mut Self::Sender, message: &Message) -> Result<bool, String> {
        let bytes = message.map(u64::to_le_bytes);
        match sender.try_push(bytes.as_flattened()) {
            Ok(()) => Ok(true),
            Err(IpcError::Full) => Ok(false),
            Err(error) => Err(text(error)),
        }
    }

    fn pop((reader, bytes): &mut Self::Receiver) -> Result<Option<Message>, String> {
        let Some(len) = reader.try_pop(bytes).map_err(text)? else { return Ok(None) };
        let mut message = [u64::MAX; 7];
        for (word, bytes) in message.iter_mut().zip(bytes[..len].as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Ok(Some(message))
    }
}
