//! How much of `/dev/shm` a plan needs, and what to do if there is less.

use crate::config::UsageError;
use crate::host::Machine;
use shm::plan::Plan;
use shm::stamps::RECORD_BYTES;
use shm::status::LOG_OFFSET;
use shm::wire::MESSAGE_WORDS;

const WORD_BYTES: u64 = 8;
const PAGE_BYTES: u64 = 4096;
/// Cursors and counts of a ring beside its slots, in words.
const RING_WORDS: u64 = 48;
const SCHEDULED_ORDER_BYTES: u64 = 32;
const CONTROL_BYTES: u64 = 64 * 1024;
const BELL_BYTES: u64 = 4096;
const MIB: u64 = 1024 * 1024;

/// The bytes that the plan's segments will take: logs, rings, schedule, control and bells. An estimate from above;
/// what counts is that the segments are reserved before the start.
pub fn room_needed(plan: &Plan) -> u64 {
    let pages = |bytes: u64| bytes.div_ceil(PAGE_BYTES).saturating_mul(PAGE_BYTES);
    let logs = plan.threads.iter().map(|thread| {
        let records = thread.log_records.saturating_mul(RECORD_BYTES as u64);
        pages(records.saturating_add(LOG_OFFSET as u64 * WORD_BYTES))
    });
    let slots = u64::from(plan.capacity) * MESSAGE_WORDS as u64;
    let ring = pages((RING_WORDS + slots) * WORD_BYTES);
    // Submit and return for each strategy, inbox and completion for each venue.
    let rings = 2 * (u64::from(plan.strategies) + u64::from(plan.venues));
    logs.fold(0, u64::saturating_add)
        .saturating_add(rings * ring)
        .saturating_add(pages(plan.total_orders().saturating_mul(SCHEDULED_ORDER_BYTES)))
        .saturating_add(CONTROL_BYTES)
        .saturating_add(plan.threads.len() as u64 * BELL_BYTES)
}

/// Checks that there is so much room.
///
/// # Errors
/// How much is needed, how much there is, and how to get it. A machine that tells no size is believed to have it.
pub fn check_room(plan: &Plan, machine: &Machine) -> Result<(), UsageError> {
    let needed = room_needed(plan);
    let (free, total) = (machine.shm_free_bytes, machine.shm_total_bytes);
    if total == 0 || needed <= free {
        return Ok(());
    }
    let what =
        format!("/dev/shm: this run needs {} MiB and {} MiB are free", needed.div_ceil(MIB), free / MIB);
    let size = total.saturating_sub(free).saturating_add(needed);
    if machine.memory_bytes != 0 && size > machine.memory_bytes {
        let memory = machine.memory_bytes / MIB;
        return Err(UsageError(format!(
            "{what}.\nThe machine has {memory} MiB of memory: use fewer --orders"
        )));
    }
    let size = size.div_ceil(MIB);
    Err(UsageError(format!(
        "{what}. Use fewer --orders, or make room:\n\
         mount -o remount,size={size}m /dev/shm (in a container: start it with --shm-size={size}m)"
    )))
}

#[cfg(test)]
mod tests {
    use super::super::tests::planned;
    use super::*;
    use crate::host::fake;

    #[test]
    fn the_parts_add_up() {
        let (_, plan, _) =
            planned("orders=1000 venues=1 capacity=2 threading=shared", &fake::plain(2).machine()).unwrap();
        // Logs of 640 + 16 · (3000 + 16) and 640 + 16 · (7000 + 16) bytes, 4 rings of a page, 32,000 bytes.
        let logs = 12 * 4096 + 28 * 4096;
        assert_eq!(room_needed(&plan), logs + 4 * 4096 + 8 * 4096 + 65_536 + 2 * 4096);
    }

    #[test]
    fn the_default_run_fits_a_container() {
        let machine = fake::container().machine();
        let (_, plan, _) = planned("", &machine).unwrap();
        assert_eq!(check_room(&plan, &machine), Ok(()));
    }

    #[test]
    fn too_little_room_says_how_much_and_how_to_get_it() {
        let machine = fake::container().machine();
        let (_, plan, _) = planned("orders=4M", &machine).unwrap();
        assert_eq!(
            check_room(&plan, &machine).unwrap_err().to_string(),
            "/dev/shm: this run needs 738 MiB and 63 MiB are free. Use fewer --orders, or make room:\n\
             mount -o remount,size=739m /dev/shm (in a container: start it with --shm-size=739m)"
        );
        let (_, plan, _) = planned("orders=1000M", &machine).unwrap();
        let message = check_room(&plan, &machine).unwrap_err().to_string();
        assert!(message.ends_with("The machine has 24105 MiB of memory: use fewer --orders"), "{message}");
        let unknown = Machine { shm_total_bytes: 0, shm_free_bytes: 0, ..machine };
        assert_eq!(check_room(&plan, &unknown), Ok(()));
    }
}
