//! interprocess: a local socket, which the receiver listens at. The kernel holds the messages of a
//! connection, so each sender has its own, and a successor connects again. A receiver's successor
//! listens at the same path and has no connection of the last one.

use crate::peer::{End, Message, Peer, text};
use interprocess::local_socket::{
    GenericFilePath, Listener, ListenerNonblockingMode, ListenerOptions, Name, Stream, prelude::*,
};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::Path;

struct Receiver {
    listener: Listener,
    /// Connections, with what has come of a message.
    streams: Vec<(Stream, Vec<u8>)>,
}

const BYTES: usize = size_of::<Message>();

fn name(place: &Path) -> Result<Name<'static>, String> {
    place.join("socket").to_fs_name::<GenericFilePath>().map_err(text)
}

pub fn peer() -> Peer {
    let peer = Peer::new(
        ["interprocess", "interprocess", "local socket"],
        End::Receiver,
        |place, _| {
            let stream = Stream::connect(name(place)?).map_err(text)?;
            stream.set_nonblocking(true).map_err(text)?;
            Ok(stream)
        },
        |place, _| {
            let options = ListenerOptions::new().name(name(place)?);
            let options = options.nonblocking(ListenerNonblockingMode::Both).try_overwrite(true);
            Ok(Receiver { listener: options.create_sync().map_err(text)?, streams: Vec::new() })
        },
        |sender: &mut Stream, message| {
            let bytes = message.map(u64::to_le_bytes);
            match sender.write(bytes.as_flattened()) {
                Ok(BYTES) => Ok(true),
                Ok(count) => Err(format!("{count} bytes were taken")),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
                Err(error) => Err(text(error)),
            }
        },
        |receiver| Ok(receiver.pop()),
    );
    Peer { has_many_senders: true, ..peer }
}

impl Receiver {
    fn pop(&mut self) -> Option<Message> {
        while let Ok(stream) = self.listener.accept() {
            self.streams.push((stream, Vec::new()));
        }
        for (stream, partial) in &mut self.streams {
            let mut bytes = [0; BYTES];
            // The end of a connection is not an error here.
            let Ok(count) = stream.read(&mut bytes[..BYTES - partial.len()]) else { continue };
            partial.extend(&bytes[..count]);
            if let Ok(whole) = <[u8; BYTES]>::try_from(&partial[..]) {
                partial.clear();
                let mut message = [0; 7];
                for (word, bytes) in message.iter_mut().zip(whole.as_chunks::<8>().0) {
                    *word = u64::from_le_bytes(*bytes);
                }
                return Some(message);
            }
        }
        None
    }
}
