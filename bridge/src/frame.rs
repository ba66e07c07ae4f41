//! The bytes between two bridges: frames of one size, each with a checksum, decoded and checked
//! before anything in them is looked at.
//!
//! ```text
//! sixteen words, little endian
//!   word 0   "bhbr", version, kind, sender (bytes 4, 5, 6), zero
//!        1   session      0 in a Hello
//!        2   attempt      the far side's number of its attempt to open a session
//!        3   sequence     of a Data its own, from 1; of the others how many Data were sent in this session
//!        4   taken        how many Data of the other side were taken in this session
//!        5   sent         when it was sent, in nanoseconds of the sender's clock
//!        6   echo: sent   of a frame of the other side: when it was sent, by that side's clock;
//!        7   echo: seen   and when it was seen, by this side's. Both zero: none
//!        8 … 14           of a Data the message, else what is in `Talk`
//!       15   the run's digest, CRC-32C of all that stands before it (bytes 124 to 127)
//! ```
//! The checksum finds mistakes. It is no signature: who can send packets to the port can speak in
//! the other side's name.

use crc_fast::crc32_iscsi as crc32c;
use protocol::wire::Message;
use thiserror::Error;

/// Bytes of a frame.
pub const FRAME: usize = 128;

const WORDS: usize = FRAME / 8;
const CHECKED: usize = FRAME - 4;
const MAGIC: u32 = u32::from_le_bytes(*b"bhbr");
const VERSION: u8 = 1;

/// Which side of the link somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The strategy's host: opens sessions, sends orders, takes reports.
    Far,
    /// The engine's host: takes orders, sends reports, says which session counts.
    Engine,
}

impl Side {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Far => Self::Engine,
            Self::Engine => Self::Far,
        }
    }
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The far side asks for a session.
    Hello,
    /// The engine's side opens one.
    Welcome,
    /// Nothing new, but: I live, I have sent so many, I have taken so many.
    Heartbeat,
    /// An order or a report.
    Data,
    /// No more will come, and this side is content.
    End,
}

const KINDS: [Kind; 5] = [Kind::Hello, Kind::Welcome, Kind::Heartbeat, Kind::Data, Kind::End];

/// A frame of the other side, as it was seen here: half of a two-way exchange of clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// When it was sent, in nanoseconds of the clock of who sent it.
    pub sent: u64,
    /// When it was seen, in nanoseconds of the clock of who saw it.
    pub seen: u64,
}

/// What a frame says that carries no message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Talk {
    /// Of this earlier session I want to know how many of mine you took; 0: of none.
    pub ask: u64,
    /// Of this session of yours you wanted to know it; 0: of none.
    pub of: u64,
    /// So many; `None`: nobody here knows, since whoever took them is gone.
    pub taken: Option<u64>,
    /// The incarnation of the strategy at the engine; of the far side 0.
    pub epoch: u16,
    /// An End of yours was heard in this session.
    pub heard_end: bool,
}

/// A frame, decoded. Its numbers are what somebody says: the link checks them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: Kind,
    /// Whose.
    pub from: Side,
    /// Of which run: see [`run_digest`].
    pub run: u32,
    /// In which session; of a Hello 0.
    pub session: u64,
    /// The far side's number of its attempt.
    pub attempt: u64,
    /// Of a Data its number, from 1; else how many Data were sent in the session.
    pub sequence: u64,
    /// How many Data of the other side were taken in the session.
    pub taken: u64,
    /// When it was sent, in nanoseconds of the sender's clock.
    pub sent: u64,
    /// What the other side wants to know of its clock.
    pub echo: Option<Echo>,
    /// Of a Data the message, else the words of a [`Talk`].
    pub words: Message,
}

/// Bytes that are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// Not [`FRAME`] bytes.
    #[error("not as long as a frame")]
    Length,
    /// Something else, of another version, or changed on its way.
    #[error("no frame of this version, or a changed one")]
    Check,
    /// A field holds what no sender writes.
    #[error("a field that no sender writes")]
    Field,
}

/// What stands for a run in every frame: CRC-32C of its id.
pub fn run_digest(run: &str) -> u32 {
    crc32c(run.as_bytes())
}

impl Talk {
    /// Its words.
    pub fn words(&self) -> Message {
        let (taken, is_known) = (self.taken.unwrap_or(0), self.taken.is_some());
        [self.ask, self.of, taken, is_known.into(), self.epoch.into(), self.heard_end.into(), 0]
    }

    /// What words say.
    ///
    /// # Errors
    /// [`FrameError::Field`].
    pub fn from_words(words: &Message) -> Result<Self, FrameError> {
        let [ask, of, taken, is_known, epoch, heard_end @ 0..=1, 0] = *words else {
            return Err(FrameError::Field);
        };
        let taken = match is_known {
            0 if taken == 0 => None,
            1 => Some(taken),
            _ => return Err(FrameError::Field),
        };
        let epoch = epoch.try_into().map_err(|_| FrameError::Field)?;
        Ok(Self { ask, of, taken, epoch, heard_end: heard_end == 1 })
    }
}

impl Frame {
    /// Its bytes.
    pub fn encode(&self) -> [u8; FRAME] {
        let kind = KINDS.iter().position(|kind| *kind == self.kind).unwrap_or_default();
        let echo = self.echo.unwrap_or(Echo { sent: 0, seen: 0 });
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
            echo.seen,
        ]);
        words[8..15].copy_from_slice(&self.words);
        words[15] = self.run.into();
        let mut bytes = [0; FRAME];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let check = crc32c(&bytes[..CHECKED]);
        bytes[CHECKED..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Checks bytes and makes a frame of them.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        let bytes: &[u8; FRAME] = bytes.try_into().map_err(|_| FrameError::Length)?;
        let mut words = [0; WORDS];
        for (word, place) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(place.try_into().map_err(|_| FrameError::Length)?);
        }
        let (check, first) = ((words[15] >> 32) as u32, words[0]);
        if check != crc32c(&bytes[..CHECKED])
            || first as u32 != MAGIC
            || (first >> 32) as u8 != VERSION
            || first >> 56 != 0
        {
            return Err(FrameError::Check);
        }
        let kind = KINDS.get(usize::from((first >> 40) as u8)).ok_or(FrameError::Field)?;
        let from = match (first >> 48) as u8 {
            0 => Side::Far,
            1 => Side::Engine,
            _ => return Err(FrameError::Field),
        };
        let echo = Some(Echo { sent: words[6], seen: words[7] }).filter(|echo| (echo.sent | echo.seen) != 0);
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
        if frame.kind != Kind::Data {
            Talk::from_words(&frame.words)?;
        }
        Ok(frame)
    }

    /// What it says beside its numbers; of a Data nothing.
    pub fn talk(&self) -> Talk {
        match self.kind {
            Kind::Data => Talk::default(),
            _ => Talk::from_words(&self.words).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frames() -> impl Strategy<Value = Frame> {
        let talk =
            any::<([u64; 2], Option<u64>, u16, bool)>().prop_map(|([ask, of], taken, epoch, heard_end)| {
                Talk { ask, of, taken, epoch, heard_end }.words()
            });
        let echo = proptest::option::of((1_u64.., any::<u64>()).prop_map(|(sent, seen)| Echo { sent, seen }));
        (0..KINDS.len(), any::<(bool, u32, [u64; 5], Message)>(), echo, talk).prop_map(
            |(kind, (is_far, run, [session, attempt, sequence, taken, sent], message), echo, talk)| Frame {
                kind: KINDS[kind],
                from: if is_far { Side::Far } else { Side::Engine },
                run,
                session,
                attempt,
                sequence,
                taken,
                sent,
                echo,
                words: if KINDS[kind] == Kind::Data { message } else { talk },
            },
        )
    }

    /// Another layout is another version: both hosts are asked only for theirs.
    #[test]
    fn the_bytes_of_version_1_stay_what_they_are() {
        let talk = Talk { ask: 0x11, of: 0x12, taken: Some(0x13), epoch: 0x14, heard_end: true };
        let frame = Frame {
            kind: Kind::Heartbeat,
            from: Side::Engine,
            run: run_digest("20261120-142421123-4711-815"),
            session: 0x0001_0000_0000_0002,
            attempt: 3,
            sequence: 4,
            taken: 5,
            sent: 6,
            echo: Some(Echo { sent: 7, seen: 8 }),
            words: talk.words(),
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
        let data =
            Frame { kind: Kind::Data, from: Side::Far, echo: None, words: [1, 2, 3, 4, 5, 6, 7], ..frame };
        let bytes = data.encode();
        assert_eq!(bytes[..8], *b"bhbr\x01\x03\0\0");
        assert_eq!((bytes[64], bytes[112]), (1, 7));
    }

    proptest! {
        #[test]
        fn a_frame_comes_out_as_it_went_in(frame in frames()) {
            prop_assert_eq!(Frame::decode(&frame.encode()), Ok(frame));
        }

        #[test]
        fn a_changed_frame_is_none(frame in frames(), bit in 0..FRAME * 8, more in 0..FRAME * 8) {
            let mut bytes = frame.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Frame::decode(&bytes).is_err(), "one bit");
            if more != bit {
                bytes[more / 8] ^= 1 << (more % 8);
                prop_assert!(Frame::decode(&bytes).is_err(), "two bits");
            }
        }

        #[test]
        fn a_cut_frame_is_none(frame in frames(), kept in 0..FRAME) {
            prop_assert_eq!(Frame::decode(&frame.encode()[..kept]), Err(FrameError::Length));
        }

        #[test]
        fn bytes_of_anybody_do_no_harm(mut bytes in proptest::collection::vec(any::<u8>(), FRAME), plausible: bool) {
            if plausible {
                bytes[..5].copy_from_slice(b"bhbr\x01");
                bytes[7] = 0;
                let check = crc32c(&bytes[..CHECKED]);
                bytes[CHECKED..].copy_from_slice(&check.to_le_bytes());
            }
            if let Ok(frame) = Frame::decode(&bytes) {
                prop_assert_eq!(&frame.encode()[..], &bytes[..], "what is believed is what was there");
            }
        }
    }
}
