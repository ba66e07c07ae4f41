//! The address of a bridge: `NAME@HOST:PORT`.

use core::fmt;
use core::str::FromStr;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use thiserror::Error;

/// The longest name, in bytes.
const LONGEST: usize = 64;

/// A name that both sides say, so that one does not hear another's frames, and the engine's host
/// with its port. The port above is used as well: frames for the far host are asked for there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// The name.
    pub name: String,
    /// The engine's host.
    pub host: IpAddr,
    /// Where it listens for frames of the far host.
    pub port: u16,
}

/// A text that names no meeting.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "invalid bridge address {text:?}: {why}; expected NAME@HOST:PORT\nFor example desk-7@10.0.0.1:40400 or desk-7@[fd00::1]:40400, the same on both hosts but for a HOST of 0.0.0.0 or [::]"
)]
pub struct MeetingError {
    text: String,
    why: String,
}

impl FromStr for Meeting {
    type Err = MeetingError;

    fn from_str(text: &str) -> Result<Self, MeetingError> {
        let wrong = |why: &str| MeetingError { text: text.into(), why: why.into() };
        let (name, address) = text.split_once('@').ok_or_else(|| wrong("it has no @"))?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || name.len() > LONGEST || !name.bytes().all(is_plain) {
            return Err(wrong("a name has 1 to 64 letters, digits, dots, - or _"));
        }
        let (_, port) = address.rsplit_once(':').ok_or_else(|| wrong("it has no port"))?;
        if !port.parse().is_ok_and(|port: u16| port != 0 && port != u16::MAX) {
            return Err(wrong("the port is no number from 1 to 65534"));
        }
        let found = address.to_socket_addrs().map_err(|error| wrong(&format!("{address}: {error}")))?;
        // Of a name that has both, the address that every network has.
        let address =
            found.min_by_key(SocketAddr::is_ipv6).ok_or_else(|| wrong("the host has no address"))?;
        Ok(Self { name: name.into(), host: address.ip(), port: address.port() })
    }
}

impl fmt::Display for Meeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, SocketAddr::new(self.host, self.port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meeting_is_read_as_it_is_written() {
        for (text, host) in [
            ("desk-7@127.0.0.1:40400", IpAddr::from([127, 0, 0, 1])),
            ("desk-7@[fd00::1]:40400", IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1])),
        ] {
            let meeting: Meeting = text.parse().unwrap();
            assert_eq!((meeting.name.as_str(), meeting.host, meeting.port), ("desk-7", host, 40_400));
            assert_eq!(meeting.to_string(), text);
        }
    }

    #[test]
    fn what_is_none_is_told_why_and_how_one_looks() {
        let long = "x".repeat(LONGEST + 1);
        for text in [
            "",
            "desk",
            "@127.0.0.1:1",
            "desk@127.0.0.1",
            "desk@127.0.0.1:0",
            "desk@127.0.0.1:65535",
            "desk@127.0.0.1:x",
            "a b@127.0.0.1:1",
            &format!("{long}@127.0.0.1:1"),
        ] {
            let error = text.parse::<Meeting>().unwrap_err().to_string();
            assert!(error.contains("NAME@HOST:PORT"), "{text}: {error}");
        }
    }
}
