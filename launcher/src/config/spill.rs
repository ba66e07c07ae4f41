//! How much of `/dev/shm` the logs of a run may take while they are moved to disk, as users write it: `on`, `off`, `64MiB`.

use core::fmt;
use core::str::FromStr;

/// Whether logs are spilled, and through how much room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpillRoom {
    /// They are not: each has room for all that may be logged.
    #[default]
    Off,
    /// They are, and the planner decides by what is free.
    Auto,
    /// They are, and all of them together take about so many MiB, at least 1.
    MiB(u32),
}

impl FromStr for SpillRoom {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let number = text.strip_suffix("MiB").and_then(|number| number.parse().ok());
        match (text, number) {
            ("off", _) => Ok(Self::Off),
            ("on", _) => Ok(Self::Auto),
            (_, Some(number)) if number > 0 => Ok(Self::MiB(number)),
            _ => Err(format!(
                "{text:?} is no room for logs: expected on, off or a number of MiB, for example 512MiB"
            )),
        }
    }
}

impl fmt::Display for SpillRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.pad("off"),
            Self::Auto => f.pad("on"),
            Self::MiB(number) => write!(f, "{number}MiB"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_read_back_from_its_text() {
        for room in [SpillRoom::Off, SpillRoom::Auto, SpillRoom::MiB(1), SpillRoom::MiB(u32::MAX)] {
            assert_eq!(room.to_string().parse(), Ok(room));
        }
        for wrong in ["", "0MiB", "64", "1GiB", "-1MiB", "99999999999MiB", "ON"] {
            let said = wrong.parse::<SpillRoom>().unwrap_err();
            assert!(said.contains("for example 512MiB"), "{said}");
        }
    }
}
