//! The wire format between two bridges: frames of one size, each with a checksum that is verified
//! before decoding.
//!
//! ```text
//! sixteen words, little endian
//!   word 0   "bhbr", version, kind, sender (bytes 4, 5, 6), zero
//!        1   session      0 in a Hello
//!        2   attempt      the far side's number of its attempt to open a session
//!        3   sequence     of a Data its own, from 1; else the number of Data sent in this session
//!        4   taken        how many Data of the other side were taken in this session
//!        5   sent         when it was sent, in nanoseconds of the sender's clock
//!        6   echo: sent   of a frame of the other side: when it was sent, by that side's clock;
//!        7   echo: seen   and when it was seen, by this side's. Both zero: none
//!        8 … 14           of a Data the message, else what is in `ControlFields`
//!       15   the run's digest, CRC-32C of all previous bytes (bytes 124 to 127)
//! ```
//! The checksum detects corruption. It is not a signature: anyone who can send packets to the port
//! can impersonate the peer.

use crc_fast::crc32_iscsi as crc32c;
use protocol::wire::Message;

/// Size in bytes of a frame, which is one datagram between the two sides of a bridge.
pub const FRAME: usize = 128;

const WORDS: usize = FRAME / 8;
const CHECKED: usize = FRAME - 4;
const MAGIC: u32 = u32::from_le_bytes(*b"bhbr");
const VERSION: u8 = 1;

/// One end of a link between two hosts: the strategy's host or the engine's host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The strategy's host (the far host): opens sessions, sends orders, takes reports.
    Strategy,
    /// The engine's host: takes orders, sends reports, numbers the sessions.
    Engine,
}

impl Side {
    /// Returns the opposite end of the link between two hosts.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Strategy => Self::Engine,
            Self::Engine => Self::Strategy,
        }
    }
}

/// The kind of a frame between the two sides of a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// The strategy's side asks for a session.
    Hello,
    /// The engine's side opens one.
    Welcome,
    /// A heartbeat with the numbers of messages sent and taken.
    Heartbeat,
    Data,
    /// This side has ended sending and has all messages.
    End,
}

const KINDS: [FrameKind; 5] =
    [FrameKind::Hello, FrameKind::Welcome, FrameKind::Heartbeat, FrameKind::Data, FrameKind::End];

/// The times at which a peer's frame was sent and received, for comparing the two hosts' clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Time at which the frame was sent, in nanoseconds of its sender's clock.
    pub sent: u64,
    /// Time at which the frame was received, in nanoseconds of its receiver's clock.
    pub received: u64,
}

/// The fields of a control frame, which carries no message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ControlFields {
    /// The earlier session about which the sender asks how many messages were taken; 0: none.
    pub ask: u64,
    /// The session about which the receiver asked; 0: none.
    pub of: u64,
    /// Messages taken in that session; `None`: unknown, as the process that took them is gone.
    pub taken: Option<u64>,
    /// Incarnation of the strategy at the engine; 0 from the strategy's side.
    pub epoch: u16,
    /// The receiver's End was received in this session.
    pub received_end: bool,
}

/// A decoded frame between the two sides of a bridge, whose numbers the link still has to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub kind: FrameKind,
    pub from: Side,
    pub run: u32,
    pub session: u64,
    pub attempt: u64,
    pub sequence: u64,
    pub taken: u64,
    pub sent: u64,
    pub echo: Option<Echo>,
    pub words: Message,
}

/// Returns the digest that identifies a run in frames: CRC-32C of its id.
pub fn run_digest(run: &str) -> u32 {
    crc32c(run.as_bytes())
}

impl ControlFields {
    pub fn to_words(self) -> Message {
        let (taken, is_known) = (self.taken.unwrap_or(0), self.taken.is_some());
        [self.ask, self.of, taken, is_known.into(), self.epoch.into(), self.received_end.into(), 0]
    }

    pub fn from_words(words: &Message) -> Option<Self> {
        let [ask, of, taken, is_known, epoch, received_end @ 0..=1, 0] = *words else { return None };
        let taken = match is_known {
            0 if taken == 0 => None,
            1 => Some(taken),
            _ => return None,
        };
        Some(Self { ask, of, taken, epoch: epoch.try_into().ok()?, received_end: received_end == 1 })
    }
}

impl Frame {
    pub fn encode(&self) -> [u8; FRAME] {
        let kind = KINDS.iter().position(|kind| *kind == self.kind).unwrap_or_default();
        let echo = self.echo.unwrap_or(Echo { sent: 0, received: 0 });
        let mut words = [0; WORDS];
        words[0] =
            u64::from(MAGIC) | u64::from(VERSION) << 32 | (kind as u64) << 40 | (self.from as u64) << 48;
        words[1..8].copy_from_slice(&[
            self.session,
            self.attempt,
            self.sequence,
            self.taken,
            self.sent,
            echo.sent,
            echo.received,
        ]);
        words[8..15].copy_from_slice(&self.words);
        words[15] = self.run.into();
        let mut bytes = [0; FRAME];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        let check = crc32c(&bytes[..CHECKED]);
        bytes[CHECKED..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Decodes a frame from received bytes; `None` if its length, checksum or content is invalid.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; FRAME] = bytes.try_into().ok()?;
        let mut words = [0; WORDS];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(chunk.try_into().ok()?);
        }
        let (check, first) = ((words[15] >> 32) as u32, words[0]);
        if check != crc32c(&bytes[..CHECKED])
            || first as u32 != MAGIC
            || (first >> 32) as u8 != VERSION
            || first >> 56 != 0
        {
            return None;
        }
        let kind = KINDS.get(usize::from((first >> 40) as u8))?;
        let from = match (first >> 48) as u8 {
            0 => Side::Strategy,
            1 => Side::Engine,
            _ => return None,
        };
        let echo =
            Some(Echo { sent: words[6], received: words[7] }).filter(|echo| (echo.sent | echo.received) != 0);
        let frame = Self {
            kind: *kind,
            from,
            run: words[15] as u32,
            session: words[1],
            attempt: words[2],
            sequence: words[3],
            taken: words[4],
            sent: words[5],
            echo,
            words: [words[8], words[9], words[10], words[11], words[12], words[13], words[14]],
        };
        if frame.kind != FrameKind::Data {
            ControlFields::from_words(&frame.words)?;
        }
        Some(frame)
    }

    /// Returns the fields of a frame without a message, such as a heartbeat; default values for a
    /// frame with a message or invalid fields.
    pub fn control(&self) -> ControlFields {
        match self.kind {
            FrameKind::Data => ControlFields::default(),
            _ => ControlFields::from_words(&self.words).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames() -> impl Strategy<Value = Frame> {
        let fields = any::<([u64; 2], Option<u64>, u16, bool)>().prop_map(
            |([ask, of], taken, epoch, received_end)| {
                ControlFields { ask, of, taken, epoch, received_end }.to_words()
            },
        );
        let echo = proptest::option::of(
            (1_u64.., any::<u64>()).prop_map(|(sent, received)| Echo { sent, received }),
        );
        (0..KINDS.len(), any::<(bool, u32, [u64; 5], Message)>(), echo, fields).prop_map(
            |(kind, (is_far, run, [session, attempt, sequence, taken, sent], message), echo, fields)| Frame {
                kind: KINDS[kind],
                from: if is_far { Side::Strategy } else { Side::Engine },
                run,
                session,
                attempt,
                sequence,
                taken,
                sent,
                echo,
                words: if KINDS[kind] == FrameKind::Data { message } else { fields },
            },
        )
    }

    /// Another layout is another version: both hosts are asked only for theirs.
    #[test]
    fn version_1_bytes_are_stable() {
        let fields =
            ControlFields { ask: 0x11, of: 0x12, taken: Some(0x13), epoch: 0x14, received_end: true };
        let frame = Frame {
            kind: FrameKind::Heartbeat,
            from: Side::Engine,
            run: run_digest("20261120-142421123-4711-815"),
            session: 0x0001_0000_0000_0002,
            attempt: 3,
            sequence: 4,
            taken: 5,
            sent: 6,
            echo: Some(Echo { sent: 7, received: 8 }),
            words: fields.to_words(),
        };
        let words: Vec<String> = frame
            .encode()
            .chunks_exact(8)
            .map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect())
            .collect();
        let golden = [
            "6268627201020100 0200000000000100 0300000000000000 0400000000000000",
            "0500000000000000 0600000000000000 0700000000000000 0800000000000000",
            "1100000000000000 1200000000000000 1300000000000000 0100000000000000",
            "1400000000000000 0100000000000000 0000000000000000 97ebf808e4a31140",
        ];
        assert_eq!(words.join(" "), golden.join(" "));
        let data = Frame {
            kind: FrameKind::Data,
            from: Side::Strategy,
            echo: None,
            words: [1, 2, 3, 4, 5, 6, 7],
            ..frame
        };
        let bytes = data.encode();
        assert_eq!(bytes[..8], *b"bhbr\x01\x03\0\0");
        assert_eq!((bytes[64], bytes[112]), (1, 7));
    }

    proptest! {
        #[test]
        fn frames_round_trip(frame in frames()) {
            prop_assert_eq!(Frame::decode(&frame.encode()), Some(frame));
        }

        #[test]
        fn changed_frame_is_rejected(frame in frames(), bit in 0..FRAME * 8, more in 0..FRAME * 8) {
            let mut bytes = frame.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Frame::decode(&bytes).is_none(), "one bit");
            if more != bit {
                bytes[more / 8] ^= 1 << (more % 8);
                prop_assert!(Frame::decode(&bytes).is_none(), "two bits");
            }
        }

        #[test]
        fn truncated_frame_is_rejected(frame in frames(), kept in 0..FRAME) {
            prop_assert_eq!(Frame::decode(&frame.encode()[..kept]), None);
        }

        #[test]
        fn arbitrary_bytes_are_rejected_safely(mut bytes in proptest::collection::vec(any::<u8>(), FRAME), plausible: bool) {
            if plausible {
                bytes[..5].copy_from_slice(b"bhbr\x01");
                bytes[7] = 0;
                let check = crc32c(&bytes[..CHECKED]);
                bytes[CHECKED..].copy_from_slice(&check.to_le_bytes());
            }
            if let Some(frame) = Frame::decode(&bytes) {
                prop_assert_eq!(&frame.encode()[..], &bytes[..], "an accepted frame encodes to the same bytes");
            }
        }
    }
}
