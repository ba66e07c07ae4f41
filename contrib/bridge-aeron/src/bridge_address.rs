//! The address of a bridge: `NAME@HOST:PORT`.

use core::fmt;
use core::str::FromStr;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use thiserror::Error;

const MAX_NAME_BYTES: usize = 64;

/// The address of a bridge: a name that both sides share, and the engine's host and port. The next
/// port is used as well, for frames to the far host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeAddress {
    /// Name of the bridge.
    pub name: String,
    /// Address of the engine's host.
    pub host: IpAddr,
    /// Port on which the bridge listens for frames of the far host.
    pub port: u16,
}

/// The error that a text is not a valid bridge address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "invalid bridge address {text:?}: {why}; expected NAME@HOST:PORT\nFor example desk-7@10.0.0.1:40400 or desk-7@[fd00::1]:40400, the same on both hosts but for a HOST of 0.0.0.0 or [::]"
)]
pub struct BridgeAddressError {
    text: String,
    why: String,
}

impl FromStr for BridgeAddress {
    type Err = BridgeAddressError;

    fn from_str(text: &str) -> Result<Self, BridgeAddressError> {
        let error = |why: &str| BridgeAddressError { text: text.into(), why: why.into() };
        let (name, address) = text.split_once('@').ok_or_else(|| error("it has no @"))?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(is_plain) {
            return Err(error("a name has 1 to 64 letters, digits, dots, - or _"));
        }
        let (_, port) = address.rsplit_once(':').ok_or_else(|| error("it has no port"))?;
        if !port.parse().is_ok_and(|port: u16| port != 0 && port != u16::MAX) {
            return Err(error("the port is no number from 1 to 65534"));
        }
        let found = address.to_socket_addrs().map_err(|cause| error(&format!("{address}: {cause}")))?;
        // IPv4 is preferred for a host name with both.
        let address =
            found.min_by_key(SocketAddr::is_ipv6).ok_or_else(|| error("the host has no address"))?;
        Ok(Self { name: name.into(), host: address.ip(), port: address.port() })
    }
}

impl fmt::Display for BridgeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, SocketAddr::new(self.host, self.port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_round_trips() {
        for (text, host) in [
            ("desk-7@127.0.0.1:40400", IpAddr::from([127, 0, 0, 1])),
            ("desk-7@[fd00::1]:40400", IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1])),
        ] {
            let meeting: BridgeAddress = text.parse().unwrap();
            assert_eq!((meeting.name.as_str(), meeting.host, meeting.port), ("desk-7", host, 40_400));
            assert_eq!(meeting.to_string(), text);
        }
    }

    #[test]
    fn invalid_address_is_explained() {
        let long = "x".repeat(MAX_NAME_BYTES + 1);
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
            let error = text.parse::<BridgeAddress>().unwrap_err().to_string();
            assert!(error.contains("NAME@HOST:PORT"), "{text}: {error}");
        }
    }
}
