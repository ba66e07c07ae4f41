//! The id of a run: the run's start time and its launcher's process. Part of the names of the run's
//! segments.
//!
//! ```text
//! bulkhead.20261120-142421123-4711-815.submit
//!          │        │         │    └ the launcher's process id
//!          │        │         └ when that process started, in clock ticks since boot
//!          └ date   └ time, UTC, to the millisecond: one process starts no two runs in one
//! ```
//!
//! A process id alone is not unique: it is reused, and in every container the first process has 1.

use core::fmt;
use shm::memory::PREFIX;
use std::time::SystemTime;

/// The id of a run, made of its start time (UTC) and its launcher's process id and process start
/// time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunId {
    /// Year, month and day, eight digits.
    date: u32,
    /// Hours, minutes, seconds and milliseconds, nine digits.
    time: u32,
    /// Start time of the launcher's process, in clock ticks since boot.
    pub start: u64,
    /// The launcher's process id.
    pub pid: u32,
}

impl RunId {
    /// Creates the id of a run that starts at `began`, with its launcher's process id and start
    /// time (clock ticks since boot).
    pub fn new(began: SystemTime, pid: u32, start: u64) -> Self {
        let millis = humantime::format_rfc3339_millis(began).to_string();
        let digits: u64 = millis
            .bytes()
            .filter(u8::is_ascii_digit)
            .fold(0, |all, digit| all * 10 + u64::from(digit - b'0'));
        Self { date: (digits / 1_000_000_000) as u32, time: (digits % 1_000_000_000) as u32, start, pid }
    }

    /// Parses a run's id from its text form (`DATE-TIME-START-PID`); `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (date, time, start, pid) = (number()?, number()?, number()?, number()?);
        let id = Self {
            date: date.try_into().ok()?,
            time: time.try_into().ok()?,
            start,
            pid: pid.try_into().ok()?,
        };
        // Only the exact written form: no sign, no further part, no other number of digits.
        (id.to_string() == text).then_some(id)
    }

    /// Splits a shared-memory segment's name into its run's id and the part after the id; `None`
    /// for a foreign name.
    pub fn from_segment_name(name: &str) -> Option<(Self, &str)> {
        let (id, what) = name.strip_prefix(PREFIX)?.split_once('.')?;
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte);
        (!what.is_empty() && what.bytes().all(is_plain)).then_some((Self::parse(id)?, what))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { date, time, start, pid } = self;
        write!(f, "{date:08}-{time:09}-{start}-{pid}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::plan::Plan;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn an_id_is_read_as_it_was_written() {
        let began = UNIX_EPOCH + Duration::from_millis(1_763_648_661_023);
        let id = RunId::new(began, 815, 4711);
        assert_eq!(id.to_string(), "20251120-142421023-4711-815");
        assert_eq!(RunId::parse(&id.to_string()), Some(id));
        assert_eq!(
            RunId::from_segment_name("bulkhead.20251120-142421023-4711-815.submit-0.head"),
            Some((id, "submit-0.head"))
        );
        let longest = RunId::new(UNIX_EPOCH, u32::MAX, u64::MAX).to_string();
        assert!(longest.len() <= Plan::MAX_RUN_ID, "{longest}");
    }

    #[test]
    fn nothing_else_is_one() {
        for name in [
            "bulkhead.mydb",
            "bulkhead.x-1.control",
            "bulkhead.20251120-142421023-815.control",
            "bulkhead.20251120-142421023-4711-815",
            "bulkhead.20251120-142421023-4711-815.",
            "bulkhead.20251120-142421023-+711-815.control",
            "bulkhead.20251120-42421023-4711-815.control",
            "bulkhead.20251120-142421023-4711-815-1.control",
            "bulkhead.20251120-142421023-4711-815.My data",
            "bulkhead.20251120-142421023-4711-99999999999.control",
            "other.20251120-142421023-4711-815.control",
        ] {
            assert_eq!(RunId::from_segment_name(name), None, "{name}");
        }
    }
}
