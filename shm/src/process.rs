//! Identity of a process that created memory: its id and its start time.

/// Returns the start time of a process, in clock ticks since boot. It is field 22 of
/// `/proc/PID/stat` and distinguishes the process from a later one with the same id. `None` if no
/// process has that id.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, field 2, is in parentheses and may hold anything, also parentheses: fields count
    // from the last one.
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_whitespace().nth(22 - 3)?.parse().ok()
}
