//! The disk of a simulated run, and the death of its machine.
//!
//! Where reports wait for the disk (`--journal group`), a group gets there when that is drawn, and
//! never by itself; under `each` it gets there with every append. A process that dies loses nothing
//! for it: what it wrote is in the page cache. The machine's death takes with it all processes, all
//! memory, and what of each segment came after it was last synced. What must be left then is what
//! was told: each report that an exchange sent follows from what is left of its journal, each that
//! the engine returned from what is left of the engine's.

use crate::runtime::setup::Segments;
use analysis::record::Incident;
use anyhow::{Context as _, Result};
use journal::format::SEGMENT_HEADER;
use journal::{Disk, DiskOperation, Watermark, index_of};
use protocol::plan::{Journaling, Role};
use protocol::trading::{return_path, session_in};
use roles::SimulatedDisk;
use roles::faults::Draws;
use shm::memory::header::{FNV_OFFSET, fnv1a};
use shm::sync::{AtomicU64, Ordering};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::{fs, io};

/// What is drawn of a run's machine. From a stream of its own: what else the seed stands for does
/// not depend on it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Machinery {
    pub has_spares: bool,
    pub journal: Journaling,
    /// When it dies, in nanoseconds after the start.
    pub dies: Option<u64>,
}

impl Machinery {
    pub fn draw(seed: u64, window_ns: u64) -> Self {
        let mut draws = Draws::new(seed, Draws::STANDBYS);
        let has_spares = draws.below(3) > 0;
        let journal = match draws.below(12) {
            0..8 => Journaling::Process,
            8..11 => Journaling::Group,
            _ => Journaling::Each,
        };
        let may_die = journal != Journaling::Process && draws.below(2) == 0;
        let dies = may_die.then(|| draws.below(2 * window_ns + 2_000));
        Self { has_spares, journal, dies }
    }
}

/// What a run's processes run on.
pub(super) struct Machine {
    /// The segments of journals, each as it was when it was last synced.
    on_disk: Mutex<HashMap<PathBuf, Vec<u8>>>,
    /// Where each journal is that is open, or was last.
    journals: Mutex<BTreeMap<PathBuf, Watermark>>,
    /// 1: whoever writes is dead, and puts nothing on the disk.
    is_over: AtomicU64,
    draws: Mutex<Draws>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The disk of a machine, as the journals have it that the machine knows.
struct ItsDisk(Weak<Machine>);

impl Disk for ItsDisk {
    fn before(&self, step: DiskOperation, path: &Path) -> io::Result<()> {
        self.0.upgrade().map_or(Ok(()), |machine| machine.before(step, path))
    }
}

impl SimulatedDisk for ItsDisk {
    fn on_open(&self, folder: &Path, journal: Watermark) {
        if let Some(machine) = self.0.upgrade() {
            locked(&machine.journals).insert(folder.to_owned(), journal);
        }
    }
}

impl Machine {
    fn before(&self, step: DiskOperation, path: &Path) -> io::Result<()> {
        if step != DiskOperation::Sync || index_of(path).is_none() {
            return Ok(());
        }
        if self.is_over.load(Ordering::Relaxed) != 0 {
            return Err(io::Error::other("its process is dead"));
        }
        let bytes = fs::read(path)?;
        locked(&self.on_disk).insert(path.to_owned(), bytes);
        Ok(())
    }

    pub fn new(seed: u64) -> Self {
        let draws = Mutex::new(Draws::new(seed ^ 1 << 33, Draws::STANDBYS));
        let (on_disk, journals) = (Mutex::default(), Mutex::default());
        Self { on_disk, journals, is_over: AtomicU64::new(0), draws }
    }

    /// What its processes' journals are on.
    pub fn disk(self: &Arc<Self>) -> Arc<dyn SimulatedDisk> {
        Arc::new(ItsDisk(Arc::downgrade(self)))
    }

    /// A thread is about to have its turn: it may find that a journal is on the disk by now.
    ///
    /// # Errors
    /// A disk that is none.
    pub fn has_turn(&self) -> Result<(), String> {
        let journals = locked(&self.journals);
        if journals.is_empty() {
            return Ok(());
        }
        let drawn = locked(&self.draws).below(6 * journals.len() as u64);
        let synced = journals.values().nth(drawn as usize).map_or(Ok(()), |journal| {
            // The dead's last words say that they could not be put there.
            if journal.check().is_ok() { journal.sync() } else { Ok(()) }
        });
        synced.map_err(|error| format!("the disk of the simulation: {error}"))
    }

    /// What is done meanwhile puts nothing on the disk.
    pub fn without_disk<T>(&self, then: impl FnOnce() -> T) -> T {
        let before = self.is_over.swap(1, Ordering::Relaxed);
        let done = then();
        self.is_over.store(before, Ordering::Relaxed);
        done
    }

    /// It dies: nothing gets to the disk any more.
    pub fn fall(&self) {
        self.is_over.store(1, Ordering::Relaxed);
    }

    /// Leaves of the journals what was on the disk. A segment that was never synced was when it was
    /// made, without a record.
    fn restore(&self) -> io::Result<()> {
        let on_disk = locked(&self.on_disk);
        for folder in locked(&self.journals).keys() {
            for path in fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())) {
                let path = path?;
                match on_disk.get(&path) {
                    Some(bytes) => fs::write(&path, bytes)?,
                    None if index_of(&path).is_some() => {
                        let mut bytes = fs::read(&path)?;
                        bytes.iter_mut().skip(SEGMENT_HEADER).for_each(|byte| *byte = 0);
                        fs::write(&path, bytes)?;
                    }
                    None => {}
                }
            }
        }
        Ok(())
    }
}

/// What is there after the machine's death.
#[derive(Debug)]
pub(super) struct Fallen {
    /// What was told and does not follow from what is left of the journals.
    pub broken: Vec<String>,
    /// A hash over what was told, and what follows.
    pub digest: u64,
}

impl Fallen {
    /// Reads what is left. Nobody writes any more.
    ///
    /// # Errors
    /// A journal that cannot be read.
    pub fn of(machine: &Machine, segments: &Segments, incidents: &[Incident]) -> Result<Self> {
        machine.restore().context("the disk of the simulation")?;
        let (plan, control) = (&segments.plan, segments.control.control());
        let mut fallen = Self { broken: Vec::new(), digest: FNV_OFFSET };
        let place = |role| plan.process_of(role).with_context(|| format!("{role} has no process"));
        for venue in plan.trading().books() {
            let mut attached = segments.attached(&plan.processes[place(Role::Exchange(venue))?]);
            let gateways = plan.trading().gateways_of(venue);
            let told = roles::published(gateways.clone().map(session_in), &mut attached)?;
            let audit = roles::audit(plan, venue, &control, &mut attached)?;
            for (session, (gateway, of_it)) in gateways.zip(&told).enumerate() {
                let is_its = |strategy: u16| usize::from(strategy) % told.len() == session;
                let follow = audit.reports.iter().filter(|report| is_its(report.id.strategy())).count();
                fallen.judge(&format!("gateway {gateway}"), *of_it, follow as u64);
            }
        }
        let mut attached = segments.attached(&plan.processes[place(Role::Orchestrator)?]);
        let told = roles::published((0..plan.trading().strategies).map(return_path), &mut attached)?;
        let follow = roles::returned(plan)?;
        for (strategy, (told, follow)) in (0..).zip(told.iter().zip(&follow)) {
            // The memory of one that has died is made anew, and that waits for no disk.
            if incidents.iter().all(|incident| incident.strategy != strategy) {
                fallen.judge(&format!("strategy {strategy}"), *told, *follow);
            }
        }
        Ok(fallen)
    }

    fn judge(&mut self, who: &str, told: u64, follow: u64) {
        if follow < told {
            self.broken
                .push(format!("{who} was told {told} reports, and {follow} follow from what the disk has"));
        }
        self.digest = fnv1a(fnv1a(self.digest, &told.to_le_bytes()), &follow.to_le_bytes());
    }
}
