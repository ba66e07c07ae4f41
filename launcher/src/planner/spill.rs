//! Plans `--spill`: the number of chunks in each thread's log ring, and the core of the spiller.
//!
//! Space is distributed by each thread's log rate, so that all rings fill up at the same time: a
//! spiller that is delayed for less loses nothing. The rest of `/dev/shm` is for the rest of the
//! run, which does not grow with the orders except for schedules and exchange tapes.

use super::shm_space::{self, MIN_RING_BYTES};
use super::{cores, priority};
use crate::config::{SpillBudget, UsageError};
use crate::host::Machine;
use protocol::plan::{Plan, Spill};
use protocol::spill::{CHUNK_BYTES, CHUNK_RECORDS};

/// Default maximum of all rings together, in bytes: 12 s at 400,000 orders a second.
const MAX_BYTES: u64 = 1 << 30;

/// Turns the plan's stamp logs into rings that are moved to disk, if requested. Rounds log sizes to
/// whole chunks.
///
/// # Errors
/// Less space than the rings need, or no core on which the spiller would ever run.
pub(super) fn plan_rings(
    plan: &mut Plan,
    room: SpillBudget,
    usable: &[u32],
    machine: &Machine,
) -> Result<(), UsageError> {
    let most = match room {
        SpillBudget::Off => return Ok(()),
        SpillBudget::MiB(number) => u64::from(number) << 20,
        SpillBudget::Auto if machine.shm_total_bytes == 0 => MAX_BYTES,
        SpillBudget::Auto => {
            MAX_BYTES.min(machine.shm_free_bytes.saturating_sub(shm_space::without_logs(plan)) / 2)
        }
    };
    let needed = MIN_RING_BYTES * plan.threads.len() as u64;
    if matches!(room, SpillBudget::MiB(_)) && most < needed {
        return Err(UsageError(format!(
            "--spill {room}: the logs of {} threads take {}MiB at least, {} chunks each. Use --spill {}MiB",
            plan.threads.len(),
            needed >> 20,
            MIN_RING_BYTES / CHUNK_BYTES,
            needed >> 20
        )));
    }
    for thread in &mut plan.threads {
        let chunks = thread.log_records.div_ceil(CHUNK_RECORDS).max(2);
        thread.log_records = chunks.saturating_mul(CHUNK_RECORDS);
    }
    let all: u128 = plan.threads.iter().map(|thread| u128::from(thread.log_records)).sum();
    let ring = |records: u64| {
        let share = u128::from(most.saturating_sub(needed)) * u128::from(records) / all.max(1);
        let chunks = MIN_RING_BYTES / CHUNK_BYTES + share as u64 / CHUNK_BYTES;
        // Not more than the log can have: then the ring never wraps.
        chunks.min(records / CHUNK_RECORDS).min(u32::MAX.into()) as u32
    };
    let chunks = plan.threads.iter().map(|thread| ring(thread.log_records)).collect();
    let core =
        cores::unused(usable, &plan.threads.iter().filter_map(|t| t.core).collect::<Vec<_>>(), machine);
    if core.is_none() {
        let kept = priority::kept_cores(plan);
        if !usable.is_empty() && usable.iter().all(|core| kept.contains(core)) {
            return Err(UsageError(
                "--spill with --priority: real-time threads keep every core that may be used, and the spiller would never run.\n\
                 Allow one core more, use --idle park, or leave one of the two out"
                    .into(),
            ));
        }
    }
    plan.spill = Some(Spill { chunks, core });
    Ok(())
}

/// Describes for the printed plan how much the run writes to disk, and through how much memory.
pub(super) fn line(plan: &Plan) -> Option<String> {
    let spill = plan.spill.as_ref()?;
    let bytes =
        |records: u64| analysis::units::human_bytes(records.saturating_mul(CHUNK_BYTES / CHUNK_RECORDS));
    let logs = plan.threads.iter().fold(0, |sum: u64, thread| sum.saturating_add(thread.log_records));
    let rings = spill.chunks.iter().map(|chunks| u64::from(*chunks) * CHUNK_RECORDS).sum();
    let core = spill.core.map_or_else(|| "no core of its own".into(), |core| format!("core {core}"));
    Some(format!(
        "up to {} of logs through {} of /dev/shm, by a process on {core}",
        bytes(logs),
        bytes(rings)
    ))
}

#[cfg(test)]
mod tests {
    use super::super::bytes_needed;
    use super::super::tests::{planned, refused};
    use super::*;
    use crate::host::fake;

    #[test]
    fn an_hour_takes_as_much_memory_as_a_minute() {
        let machine = fake::plain(32).machine();
        let hour = "preset=seed spill=on repeat_schedule=360";
        let (_, plan, _) = planned(hour, &machine).unwrap();
        assert_eq!(plan.trading().total_orders(), 1_440_000_000);
        let (_, minute, _) = planned("preset=seed spill=on repeat_schedule=6", &machine).unwrap();
        let [hour, minute] = [&plan, &minute].map(bytes_needed);
        assert!(hour < 2 << 30 && hour.abs_diff(minute) < 64 << 20, "{hour} {minute}");
        assert!(plan.spill.unwrap().core.is_some());
        let (_, whole, _) = planned("preset=seed repeat_schedule=360", &machine).unwrap();
        assert!(bytes_needed(&whole) > 200 << 30);
    }

    #[test]
    fn the_room_is_dealt_out_by_what_is_logged() {
        let machine = fake::plain(32).machine();
        let (_, plan, _) = planned("preset=seed spill=256MiB", &machine).unwrap();
        let spill = plan.spill.clone().unwrap();
        let rings: u64 = spill.chunks.iter().map(|chunks| u64::from(*chunks)).sum();
        assert!((200..=256).contains(&(rings / 4)), "{rings} chunks are about 256 MiB");
        let per_second = |index: usize| plan.threads[index].log_records / u64::from(spill.chunks[index]);
        let times: Vec<u64> = (0..plan.threads.len()).map(per_second).collect();
        let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
        assert!(*most < 2 * *least, "{times:?}");
        let (_, small, _) = planned("orders=10 spill=on", &machine).unwrap();
        let all = small.threads.iter().map(|thread| thread.log_records / CHUNK_RECORDS);
        let rings = small.spill.as_ref().unwrap().chunks.iter().map(|chunks| u64::from(*chunks));
        assert!(rings.eq(all), "no more than it ever has");
    }

    #[test]
    fn impossible_spill_is_refused() {
        let machine = fake::two_core_vm().machine();
        let (_, plan, _) = planned("spill=2MiB", &machine).unwrap();
        assert_eq!(plan.spill.unwrap().core, None);
        assert!(refused("spill=1MiB", &machine).contains("Use --spill 2MiB"));
        assert!(refused("spill=on priority=fifo:5", &machine).contains("would never run"));
        let (_, plan, _) = planned("spill=on venue=book journal=process", &machine).unwrap();
        assert!(plan.spill.is_some(), "who comes back finds what it needs");
        assert!(refused("repeat_schedule=2 schedule=flow.csv", &machine).contains("--repeat-schedule"));
        assert!(refused("repeat_schedule=100000 orders=1M", &machine).contains("--repeat-schedule"));
    }
}
