//! The disk of a simulated run, and the crash of the simulated machine.
//!
//! With `--journal group` the simulation draws when a group of records reaches the disk; with
//! `each` every append reaches it at once. A process that dies loses nothing: what it wrote is in
//! the page cache. A machine crash loses all processes, all memory, and whatever a segment received
//! after its last sync. Afterwards every published report must follow from a journal on the disk:
//! what an exchange sent, from the exchange's journal; what the engine returned, from the engine's.

use anyhow::{Context as _, Result};
use journal::format::SEGMENT_HEADER;
use journal::{Disk, DiskOperation, Watermark, index_of};
use protocol::faults::Draws;
use protocol::index::StrategyIndex;
use protocol::plan::{Journaling, Role};
use protocol::trading::{return_path, session_in};
use protocol::wire::Report;
use record::run::Incident;
use run_memory::segments::Segments;
use shm::memory::header::{FNV_OFFSET, fnv1a};
use shm::sync::{AtomicU64, Ordering};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::{fs, io};

/// The drawn properties of a simulated run's machine, such as when it crashes. From a random stream
/// of its own, so that the rest of the scenario does not depend on it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MachineScenario {
    pub has_standbys: bool,
    pub journal: Journaling,
    /// Time at which the machine crashes, in nanoseconds after the start.
    pub crash_ns: Option<u64>,
}

impl MachineScenario {
    /// Draws the use of hot standbys, the journaling mode and a possible machine crash for a run
    /// whose orders are due within `window_ns` nanoseconds.
    pub fn draw(seed: u64, window_ns: u64) -> Self {
        let mut draws = Draws::new(seed, Draws::STANDBYS);
        let has_standbys = draws.below(3) > 0;
        let journal = match draws.below(12) {
            0..8 => Journaling::Process,
            8..11 => Journaling::Group,
            _ => Journaling::Each,
        };
        let may_die = journal != Journaling::Process && draws.below(2) == 0;
        let crash_ns = may_die.then(|| draws.below(2 * window_ns + 2_000));
        Self { has_standbys, journal, crash_ns }
    }
}

/// The machine of a simulated run, which can crash with all its processes.
pub(super) struct SimulatedMachine {
    /// Journal segments as of their last sync.
    on_disk: Mutex<HashMap<PathBuf, Vec<u8>>>,
    /// Handle of the open journal in each folder: syncs it, or reports that its writer failed.
    journals: Mutex<BTreeMap<PathBuf, Watermark>>,
    /// 1: the writer is dead, and nothing reaches the disk.
    is_cut_off: AtomicU64,
    /// 1: no journal is synced for a time.
    is_stalled: AtomicU64,
    draws: Mutex<Draws>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The disk of a simulated machine, as its journals use it.
struct MachineDisk(Weak<SimulatedMachine>);

impl Disk for MachineDisk {
    fn before(&self, step: DiskOperation, path: &Path) -> io::Result<()> {
        self.0.upgrade().map_or(Ok(()), |machine| machine.before(step, path))
    }
}

impl SimulatedMachine {
    fn before(&self, step: DiskOperation, path: &Path) -> io::Result<()> {
        if step != DiskOperation::Sync || index_of(path).is_none() {
            return Ok(());
        }
        if self.is_cut_off.load(Ordering::Relaxed) != 0 {
            return Err(io::Error::other("its process is dead"));
        }
        let bytes = fs::read(path)?;
        locked(&self.on_disk).insert(path.to_owned(), bytes);
        Ok(())
    }

    /// Creates a simulated machine; the random `seed` selects which journal is synced next.
    pub fn new(seed: u64) -> Self {
        let draws = Mutex::new(Draws::new(seed ^ 1 << 33, Draws::STANDBYS));
        let (on_disk, journals) = (Mutex::default(), Mutex::default());
        let (is_cut_off, is_stalled) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { on_disk, journals, is_cut_off, is_stalled, draws }
    }

    /// Returns the simulated disk of the processes' journals.
    pub fn disk(self: &Arc<Self>) -> Arc<dyn Disk> {
        Arc::new(MachineDisk(Arc::downgrade(self)))
    }

    /// Registers with the simulated disk the journal that was opened in `folder`, which may be
    /// synced from then on.
    pub fn on_journal_open(&self, folder: &Path, journal: Watermark) {
        locked(&self.journals).insert(folder.to_owned(), journal);
    }

    /// Syncs one random journal, or none, to the simulated disk; called before a thread's turn
    /// (duty cycle).
    ///
    /// # Errors
    /// The simulated disk failed.
    pub fn sync_some(&self) -> Result<(), String> {
        let journals = locked(&self.journals);
        if journals.is_empty() || self.is_stalled.load(Ordering::Relaxed) != 0 {
            return Ok(());
        }
        let drawn = locked(&self.draws).below(6 * journals.len() as u64);
        let synced = journals.values().nth(drawn as usize).map_or(Ok(()), |journal| {
            // A dead writer reports that it could not sync.
            if journal.check().is_ok() { journal.sync() } else { Ok(()) }
        });
        synced.map_err(|error| format!("the disk of the simulation: {error}"))
    }

    /// Sets whether the simulated disk stalls, so that no journal is synced.
    pub fn set_stalled(&self, is_stalled: bool) {
        self.is_stalled.store(is_stalled.into(), Ordering::Relaxed);
    }

    /// Runs `action` while every sync of a journal fails, so that nothing that `action` writes
    /// reaches the simulated disk.
    pub fn without_disk<T>(&self, action: impl FnOnce() -> T) -> T {
        let was_cut_off = self.is_cut_off.swap(1, Ordering::Relaxed);
        let result = action();
        self.is_cut_off.store(was_cut_off, Ordering::Relaxed);
        result
    }

    /// Crashes the simulated machine: later writes do not reach the disk.
    pub fn crash(&self) {
        self.is_cut_off.store(1, Ordering::Relaxed);
    }

    /// Restores the journals to what was on the disk. A segment that was never synced exists
    /// without records.
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

/// The check of what survived the crash of a simulated machine.
#[derive(Debug)]
pub(super) struct PostCrashCheck {
    /// Published reports that do not follow from the journals that survived the crash.
    pub broken: Vec<String>,
    /// A hash over the published reports and those that can be recovered.
    pub digest: u64,
}

impl PostCrashCheck {
    /// Compares the number of reports sent to each gateway and strategy before the machine crash
    /// with the number that surviving journals can recover. A strategy with an incident is left
    /// out. All writers are gone.
    ///
    /// # Errors
    /// A journal that cannot be read.
    pub fn check(machine: &SimulatedMachine, segments: &Segments, incidents: &[Incident]) -> Result<Self> {
        machine.restore().context("the disk of the simulation")?;
        let (plan, control) = (&segments.plan, segments.control.control());
        let mut check = Self { broken: Vec::new(), digest: FNV_OFFSET };
        let process_of_role = |role| plan.process_of(role).with_context(|| format!("{role} has no process"));
        for venue in plan.trading().books() {
            let mut attached = segments.attached(&plan.processes[process_of_role(Role::Exchange(venue))?]);
            let gateways = plan.trading().gateways_of(venue);
            let published = roles::count_published(gateways.clone().map(session_in), &mut attached)?;
            let audit = roles::audit(plan, venue, &control, &mut attached)?;
            for ((gateway, published), credential) in gateways.zip(published).zip(0..) {
                let is_its =
                    |report: &&Report| plan.trading().credential_of(report.id.strategy()) == credential;
                let reports = audit.reports.iter().filter(is_its).count();
                check.judge(&format!("gateway {gateway}"), published, reports as u64);
            }
        }
        let mut attached = segments.attached(&plan.processes[process_of_role(Role::Orchestrator)?]);
        let published = roles::count_published(
            StrategyIndex::first(plan.trading().strategies).map(return_path),
            &mut attached,
        )?;
        let recoverable = roles::count_returned(plan)?;
        for (strategy, (published, recoverable)) in (0..).zip(published.iter().zip(&recoverable)) {
            // The memory of a dead strategy is reset without waiting for the disk.
            if incidents.iter().all(|incident| incident.strategy != StrategyIndex(strategy)) {
                check.judge(&format!("strategy {strategy}"), *published, *recoverable);
            }
        }
        Ok(check)
    }

    fn judge(&mut self, receiver: &str, published: u64, recoverable: u64) {
        if recoverable < published {
            self.broken.push(format!(
                "{receiver} was told {published} reports, and {recoverable} follow from what the disk has"
            ));
        }
        self.digest = fnv1a(fnv1a(self.digest, &published.to_le_bytes()), &recoverable.to_le_bytes());
    }
}
