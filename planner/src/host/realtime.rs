//! Reads whether this user may use `SCHED_FIFO`: the kernel's throttling, the cgroup's budget and
//! this process's permissions.

use super::cgroups;
use super::files::{field, limit, text};
use std::path::Path;

const SYS_NICE: u32 = 23;

/// The kernel's settings for `SCHED_FIFO` threads; `None` for those that it does not show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RealTime {
    /// Time that `SCHED_FIFO` threads may run in each period, in microseconds; negative if
    /// unlimited.
    pub runtime_us: Option<i64>,
    /// Length of a scheduling period, in microseconds.
    pub period_us: Option<i64>,
    /// Budget of this process's cgroup in each period (cgroup v1 with `CONFIG_RT_GROUP_SCHED`), in
    /// microseconds.
    pub group_us: Option<i64>,
    /// The highest real-time priority that `RLIMIT_RTPRIO` allows; 0: none.
    pub limit: u64,
    /// Whether this process has `CAP_SYS_NICE`, which allows any real-time priority.
    pub is_capable: bool,
}

impl RealTime {
    /// Reads the real-time settings of this machine and the permissions of this process.
    pub fn read() -> Self {
        Self::read_at(Path::new("/"))
    }

    pub(super) fn read_at(root: &Path) -> Self {
        let number = |path: &str| text(root, path).parse::<i64>().ok();
        let has_cpu = |(controllers, _): &(String, String)| controllers.split(',').any(|name| name == "cpu");
        let group = cgroups::own_cgroups(root).into_iter().find(has_cpu);
        let capabilities = field(&text(root, "proc/self/status"), "CapEff").unwrap_or_default();
        let capabilities = u64::from_str_radix(&capabilities, 16).unwrap_or(0);
        let limit = limit(&text(root, "proc/self/limits"), "Max realtime priority", 0);
        Self {
            runtime_us: number("proc/sys/kernel/sched_rt_runtime_us"),
            period_us: number("proc/sys/kernel/sched_rt_period_us"),
            group_us: group.and_then(|(_, path)| {
                number(&format!("sys/fs/cgroup/cpu{}/cpu.rt_runtime_us", path.trim_end_matches('/')))
            }),
            limit: limit.map_or(0, |limit| limit.unwrap_or(u64::MAX)),
            is_capable: capabilities & (1 << SYS_NICE) != 0,
        }
    }

    /// Returns the CPU time that the kernel withholds from real-time threads in each period, and
    /// the length of the period, both in microseconds. Returns `None` if nothing is withheld or it
    /// is unknown.
    pub fn withheld_us(&self) -> Option<(u64, u64)> {
        let (runtime, period) = (u64::try_from(self.runtime_us?).ok()?, u64::try_from(self.period_us?).ok()?);
        let taken = period.checked_sub(runtime).filter(|taken| *taken > 0)?;
        Some((taken, period))
    }

    /// Describes the CPU time that the kernel withholds from real-time threads, for example `for up
    /// to 50 ms each second`.
    pub fn describe_withheld(&self) -> Option<String> {
        let ms = |us: u64| format!("{} ms", us.div_ceil(1_000));
        let (taken, period) = self.withheld_us()?;
        let each = if period == 1_000_000 { "second".into() } else { ms(period) };
        Some(format!("for up to {} each {each}", ms(taken)))
    }

    /// Returns the reason why a thread may not have the `SCHED_FIFO` priority `fifo`, and the
    /// remedy; `None` if it may.
    pub fn obstacle(&self, fifo: u8) -> Option<(String, &'static str)> {
        if self.group_us == Some(0) {
            return Some((
                "the cgroup of this process has no real-time budget".into(),
                "write one into the group's cpu.rt_runtime_us, or start from the group above",
            ));
        }
        let is_allowed = self.is_capable || self.limit >= u64::from(fifo);
        (!is_allowed).then(|| {
            (
                format!("`ulimit -r` is {}, and CAP_SYS_NICE is missing", self.limit),
                "raise ulimit -r (rtprio in /etc/security/limits.conf), or setcap cap_sys_nice+ep LAUNCHER (a container: --cap-add \
                 SYS_NICE)",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    #[test]
    fn throttling_and_rights_are_read() {
        let tree = fake::two_core_vm();
        assert_eq!(RealTime::read_at(tree.root()), RealTime::default());
        tree.put("proc/sys/kernel/sched_rt_runtime_us", "950000\n");
        tree.put("proc/sys/kernel/sched_rt_period_us", "1000000\n");
        tree.put("proc/self/cgroup", "3:cpuset:/\n1:cpu,cpuacct:/a\n0::/\n");
        tree.put("sys/fs/cgroup/cpu/a/cpu.rt_runtime_us", "0\n");
        tree.put("proc/self/status", "Name:\tlauncher\nCapEff:\t0000000000800000\n");
        tree.put(
            "proc/self/limits",
            "Max realtime priority     20                   30                   \n",
        );
        let found = RealTime::read_at(tree.root());
        let expected = RealTime {
            runtime_us: Some(950_000),
            period_us: Some(1_000_000),
            group_us: Some(0),
            limit: 20,
            is_capable: true,
        };
        assert_eq!(found, expected);
        assert_eq!(found.describe_withheld().unwrap(), "for up to 50 ms each second");
        assert!(found.obstacle(1).unwrap().0.contains("no real-time budget"));
        let free = RealTime { group_us: None, ..found };
        assert_eq!(free.obstacle(99), None);
        let limited = RealTime { is_capable: false, ..free };
        assert_eq!(limited.obstacle(20), None);
        assert!(limited.obstacle(21).unwrap().0.contains("`ulimit -r` is 20"));
    }

    #[test]
    fn unthrottled_and_malformed_rt_limits_are_ignored() {
        let throttled_us =
            |runtime_us, period_us| RealTime { runtime_us, period_us, ..RealTime::default() }.withheld_us();
        assert_eq!(throttled_us(Some(-1), Some(1_000_000)), None);
        assert_eq!(throttled_us(Some(1_000_000), Some(1_000_000)), None);
        assert_eq!(throttled_us(None, Some(1_000_000)), None);
        assert_eq!(throttled_us(Some(i64::MAX), Some(0)), None);
        assert_eq!(throttled_us(Some(0), Some(5)), Some((5, 5)));
        for odd in ["", "x", "::", "1:cpu", "1:cpu:/../a", "9:cpuset:/"] {
            let tree = fake::two_core_vm();
            tree.put("proc/self/cgroup", odd);
            tree.put("proc/self/limits", odd);
            tree.put("proc/sys/kernel/sched_rt_runtime_us", odd);
            assert_eq!(RealTime::read_at(tree.root()), RealTime::default(), "{odd}");
        }
    }
}
