//! A short description of the machine, printed with the figures.

use crate::Options;

/// Describes the machine of the hand-off benchmark in one text.
pub fn describe(options: &Options) -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        })
        .unwrap_or_else(|| "unknown CPU".into());
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let (a, b) = options.cores;
    format!(
        "{cpu}, {} cores allowed, load {}\nmeasuring thread pinned to core {a}, peers to core {b}; \
         waits spin with the pause hint unless bare{}",
        system::pin::allowed_cores().len(),
        load.split(' ').next().unwrap_or("unknown"),
        if options.quick { "\nQUICK: too few samples to quote" } else { "" },
    )
}
