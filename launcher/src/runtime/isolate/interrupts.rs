//! Interrupts moved off cores, and back: `/proc/irq/N/smp_affinity_list`.

use analysis::lists;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// An interrupt that was moved, or was to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Moved {
    /// Its number.
    pub irq: u32,
    /// The cores that it could come to before.
    before: Vec<u32>,
    /// Those that it may come to meanwhile.
    meanwhile: Vec<u32>,
}

/// Those that may come to these cores, and where they would go: to the other cores that they may come to, or else to the `rest`.
pub(super) fn on(root: &Path, cores: &[u32], rest: &[u32]) -> Vec<Moved> {
    let entries = fs::read_dir(root.join("proc/irq")).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| {
        let irq = entry.file_name().to_str()?.parse().ok()?;
        let before = read(root, irq)?;
        let others: Vec<u32> = before.iter().copied().filter(|core| !cores.contains(core)).collect();
        let meanwhile = if others.is_empty() { rest.to_vec() } else { others };
        (meanwhile != before && !meanwhile.is_empty()).then_some(Moved { irq, before, meanwhile })
    };
    let mut moved: Vec<Moved> = entries.filter_map(of).collect();
    moved.sort_unstable_by_key(|moved| moved.irq);
    moved
}

impl Moved {
    /// Moves it. Some belong to a core, and some the kernel moves by itself: those it refuses.
    pub(super) fn away(&self, root: &Path) -> io::Result<()> {
        fs::write(list(root, self.irq), lists::format(&self.meanwhile))
    }

    /// Moves it back, unless it is not where it was moved to: it never was, or somebody else has moved it since. One that is gone
    /// (its device is) is back.
    pub(super) fn back(&self, root: &Path) -> io::Result<()> {
        if self.before.is_empty() || read(root, self.irq).is_none_or(|now| now != self.meanwhile) {
            return Ok(());
        }
        fs::write(list(root, self.irq), lists::format(&self.before))
    }
}

fn list(root: &Path, irq: u32) -> PathBuf {
    root.join(format!("proc/irq/{irq}/smp_affinity_list"))
}

fn read(root: &Path, irq: u32) -> Option<Vec<u32>> {
    lists::parse(fs::read_to_string(list(root, irq)).ok()?.trim()).filter(|cores| !cores.is_empty())
}
