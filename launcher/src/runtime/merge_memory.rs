//! Where the table of a run's orders goes when the run is merged: into memory, or into a file
//! beside the logs.

use crate::config::{Size, UsageError};
use analysis::numbers::count;
use anyhow::{Context, Result};
use protocol::plan::Plan;
use std::io;
use std::path::Path;
use system::scratch::Room;

/// What any merge takes, in bytes: what the program itself has, a block of each log, what is sorted
/// at a time.
const MERGE_BYTES: u64 = 32 << 20;
/// So many orders take a byte that is in no file: three bits each, and one in a thousand with what
/// is known of it.
const ORDERS_A_BYTE: u64 = 2;
/// Bytes of an order in the table, without what exchanges say of it.
const ORDER_BYTES: u64 = 88;
/// A run whose logs were moved to disk is merged with so much memory when it ends, and one that
/// could be merged with less without a file.
const SPILLED_BYTES: u64 = 1 << 30;

/// The least that a run can be merged with, in bytes: whole MiB.
fn least(plan: &Plan) -> u64 {
    (MERGE_BYTES + plan.trading().total_orders() / ORDERS_A_BYTE).next_multiple_of(1 << 20)
}

/// A table beside the logs, so that no more than so many bytes are resident.
fn beside_the_logs(folder: &Path, most: u64) -> io::Result<Room> {
    // What is taken between two looks comes on top.
    Room::files(folder, most / 4 * 3)
}

/// The room for a run that is merged with so much memory, if somebody says how much.
///
/// # Errors
/// [`UsageError`]: less than its orders need. No file can be made there.
pub fn asked(folder: &Path, plan: &Plan, most: Option<Size>) -> Result<Room> {
    let Some(most) = most else { return Ok(Room::memory()) };
    let least = Size(least(plan));
    if most < least {
        let orders = count(plan.trading().total_orders());
        let why = format!("--max-memory {most}: at least {least} for this run of {orders} orders");
        return Err(UsageError(why).into());
    }
    beside_the_logs(folder, most.0)
        .with_context(|| format!("--max-memory: no file can be made in {}", folder.display()))
}

/// When the run ends: who asked for logs that are moved to disk has no memory for all of its orders
/// either.
pub(super) fn at_the_end(folder: &Path, plan: &Plan) -> Room {
    let is_large = plan.trading().total_orders().saturating_mul(ORDER_BYTES) > SPILLED_BYTES;
    match plan.spill.is_some() && is_large {
        // Where no file can be made there may be memory.
        true => beside_the_logs(folder, SPILLED_BYTES.max(least(plan))).unwrap_or_default(),
        false => Room::memory(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake;
    use crate::planner::tests::planned;

    #[test]
    fn an_hour_is_merged_beside_its_logs_and_a_minute_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let plan = |settings: &str| planned(settings, &fake::plain(32).machine()).unwrap().1;
        let hour = plan("preset=seed spill=on laps=360");
        assert_eq!((hour.trading().total_orders(), least(&hour)), (1_440_000_000, 719 << 20));
        assert_eq!(at_the_end(folder.path(), &hour).most_resident(), Some(768 << 20));
        for in_memory in ["preset=seed spill=on", "preset=seed laps=4"] {
            assert_eq!(at_the_end(folder.path(), &plan(in_memory)).folder(), None, "{in_memory}");
        }
        assert_eq!(at_the_end(Path::new("/no/such"), &hour).folder(), None);
    }
}
