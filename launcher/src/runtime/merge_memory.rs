//! Chooses where the merge keeps its table of orders: in memory, or in a file next to the logs.

use crate::config::{Size, UsageError};
use analysis::numbers::count;
use anyhow::{Context, Result};
use protocol::plan::Plan;
use std::io;
use std::path::Path;
use system::scratch::ColumnStore;

/// Memory of any merge, in bytes: the program, a block of each log, and the sort buffer.
const MERGE_BYTES: u64 = 32 << 20;
/// Orders for each byte that is never in the file: three bits each, plus an index entry for each
/// thousand.
const ORDERS_A_BYTE: u64 = 2;
/// Bytes of an order in the table, without the exchange's data.
const ORDER_BYTES: u64 = 88;
/// Memory limit of the merge after a spilled run, in bytes. A run that fits is merged without a
/// file.
const SPILLED_BYTES: u64 = 1 << 30;

/// Returns the minimum memory for merging a run, in bytes, rounded up to MiB.
fn min_bytes(plan: &Plan) -> u64 {
    (MERGE_BYTES + plan.trading().total_orders() / ORDERS_A_BYTE).next_multiple_of(1 << 20)
}

/// Returns a table in a file next to the logs, with at most `max` resident bytes.
fn in_scratch_file(folder: &Path, most: u64) -> io::Result<ColumnStore> {
    // Allocations between two checks come on top.
    ColumnStore::files(folder, most / 4 * 3)
}

/// Creates the storage for a merge's table of orders, with the requested memory limit, or in
/// memory.
///
/// # Errors
/// [`UsageError`]: the limit is below what the run's orders need. Also if the file cannot be
/// created.
pub fn requested(folder: &Path, plan: &Plan, most: Option<Size>) -> Result<ColumnStore> {
    let Some(most) = most else { return Ok(ColumnStore::memory()) };
    let least = Size(min_bytes(plan));
    if most < least {
        let orders = count(plan.trading().total_orders());
        let why = format!("--max-memory {most}: at least {least} for this run of {orders} orders");
        return Err(UsageError(why).into());
    }
    in_scratch_file(folder, most.0)
        .with_context(|| format!("--max-memory: no file can be made in {}", folder.display()))
}

/// Creates the storage for the merge at the end of a run: large spilled runs use a file.
pub(super) fn after_run(folder: &Path, plan: &Plan) -> ColumnStore {
    let is_large = plan.trading().total_orders().saturating_mul(ORDER_BYTES) > SPILLED_BYTES;
    match plan.spill.is_some() && is_large {
        // Where no file can be made there may be memory.
        true => in_scratch_file(folder, SPILLED_BYTES.max(min_bytes(plan))).unwrap_or_default(),
        false => ColumnStore::memory(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake;
    use crate::planner::tests::planned;

    #[test]
    fn long_run_merges_in_file_short_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let plan = |settings: &str| planned(settings, &fake::plain(32).machine()).unwrap().1;
        let hour = plan("preset=seed spill=on repeat_schedule=360");
        assert_eq!((hour.trading().total_orders(), min_bytes(&hour)), (1_440_000_000, 719 << 20));
        assert_eq!(after_run(folder.path(), &hour).max_resident(), Some(768 << 20));
        for in_memory in ["preset=seed spill=on", "preset=seed repeat_schedule=4"] {
            assert_eq!(after_run(folder.path(), &plan(in_memory)).folder(), None, "{in_memory}");
        }
        assert_eq!(after_run(Path::new("/no/such"), &hour).folder(), None);
    }
}
