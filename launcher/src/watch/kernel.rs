//! Reads a thread's state, context switches and CPU time from `/proc`; the thread itself cannot
//! forge them.

use std::fs;
use std::path::Path;
use system::process;

/// State, context switches and CPU time of a thread, according to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelThread {
    /// `R` runs or waits for a core, `S` sleeps, `D` waits for a device, `T` is stopped, `Z` is
    /// dead.
    pub state: char,
    /// Core on which the thread last ran.
    pub core: u32,
    /// Voluntary context switches.
    pub voluntary: u64,
    /// Involuntary context switches.
    pub involuntary: u64,
    /// CPU time, in clock ticks of the kernel (hundredths of a second).
    pub cpu: u64,
}

/// Reads a thread's state and CPU time from `/proc`; `None` if it does not exist.
pub fn thread(pid: u32, tid: u64) -> Option<KernelThread> {
    let tid = process::host_thread_id(pid, tid)?;
    read(&Path::new("/proc").join(pid.to_string()).join("task").join(tid.to_string()))
}

fn read(folder: &Path) -> Option<KernelThread> {
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    // The name is in parentheses and may contain anything.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let switches = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    Some(KernelThread {
        state: fields.first()?.chars().next()?,
        core: u32::try_from(number(39)?).ok()?,
        voluntary: switches("voluntary_ctxt_switches"),
        involuntary: switches("nonvoluntary_ctxt_switches"),
        cpu: number(14)?.saturating_add(number(15)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_thread_is_there_and_runs() {
        let me = thread(std::process::id(), system::process::thread_id().into()).unwrap();
        assert_eq!(me.state, 'R');
        assert_eq!(thread(std::process::id(), u64::MAX), None);
        assert_eq!(thread(u32::MAX, 1), None);
    }

    #[test]
    fn a_name_with_brackets_is_no_field() {
        let folder = tempfile::tempdir().unwrap();
        let stat =
            format!("7 (a) Z 1 (b) S {}", (4..=52).map(|n| n.to_string()).collect::<Vec<_>>().join(" "));
        fs::write(folder.path().join("stat"), stat).unwrap();
        fs::write(
            folder.path().join("status"),
            "voluntary_ctxt_switches:\t9\nnonvoluntary_ctxt_switches:\t3\n",
        )
        .unwrap();
        let wanted = KernelThread { state: 'S', core: 39, voluntary: 9, involuntary: 3, cpu: 29 };
        assert_eq!(read(folder.path()), Some(wanted));
    }
}
