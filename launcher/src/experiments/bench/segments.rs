//! The segments of a benchmark run: unnamed memory that each process inherits with the rights that
//! it needs.
//!
//! Only the kernel's queues (`pipe`, `unix-seqpacket`) have names in `/dev/shm`.

use super::BenchWork;
use super::plan::{BenchPlan, SharedSegment, strongest_access};
use anyhow::{Result, anyhow};
use roles::bench::account::AccountView;
use roles::bench::control::{self, ControlSegment};
use shm::attached::Access;
use shm::memory::fifo;
use shm::memory::header::run_hash;
use shm::memory::sealed::Shared;
use shm::memory::{AtomicWords, Header, ReadOnlyWords, directory, unlink};
use shm::process::start_time;
use shm::ring::{EndRights, SegmentPlace, SegmentSpec};
use std::fs::File;
use std::os::fd::AsRawFd;
use system::pin;

/// Segments with a name in `/dev/shm`, removed when this is dropped.
#[derive(Default)]
struct NamedSegments(Vec<String>);

impl Drop for NamedSegments {
    fn drop(&mut self) {
        for name in &self.0 {
            // A socket that was never bound has no name yet.
            let _ = unlink(name);
        }
    }
}

/// The segments of a benchmark run, in the launcher. Dropping them removes those with a name.
pub struct BenchSegments {
    pub(super) control: ControlSegment,
    control_file: Shared,
    memory: Vec<(SharedSegment, Shared, AtomicWords)>,
    accounts: Vec<AccountView>,
    _named: NamedSegments,
}

impl BenchSegments {
    /// Creates the segments of a benchmark run and writes their handles into its plan. Memory is
    /// touched first on the first agent's core: Linux takes it from that core's node.
    pub(super) fn create<W: BenchWork>(plan: &mut BenchPlan<W>) -> Result<Self> {
        let create = || {
            if let Some(core) = plan.cores.first().copied().flatten() {
                pin::pin_to(core)?;
            }
            Self::create_named(plan)
        };
        // On its own thread: pinning changes no other thread.
        std::thread::scope(|scope| scope.spawn(create).join().map_err(|_| anyhow!("a thread panicked"))?)
    }

    fn create_named<W: BenchWork>(plan: &mut BenchPlan<W>) -> Result<Self> {
        let (mut memory, mut accounts, mut named) = (Vec::new(), Vec::new(), NamedSegments::default());
        let own = plan.work.segments().len();
        for (place, segment) in plan.segments().into_iter().enumerate() {
            let spec = &segment.spec;
            let name = plan.segment_name(&spec.name);
            match spec.place {
                SegmentPlace::Fifo => fifo::create(&name)?,
                SegmentPlace::Directory => directory::create(&name)?,
                SegmentPlace::Socket => {}
                SegmentPlace::Memory | SegmentPlace::Reserve => {
                    let prefault = spec.place == SegmentPlace::Memory;
                    let (shared, words) = Shared::create(&spec.name, name, spec.words, prefault)?;
                    plan.work.write_segment(spec, header(plan, spec), &words);
                    plan.handles.extend(shared.handles());
                    if place >= own {
                        accounts.push(AccountView::new(words.clone()));
                    }
                    memory.push((segment, shared, words));
                    continue;
                }
            }
            named.0.push(name);
        }
        let json = serde_json::to_vec(plan)?;
        let spec = SegmentSpec::memory(
            "control",
            control::KIND,
            control::segment_words(json.len()),
            EndRights::NONE,
        );
        let name = plan.segment_name(&spec.name);
        let (control_file, words) = Shared::create(&spec.name, name, spec.words, true)?;
        header(plan, &spec).write(&words);
        let control = ControlSegment::new(words, &json);
        Ok(Self { control, control_file, memory, accounts, _named: named })
    }

    /// Returns the file descriptors that a process with these agents inherits.
    pub(super) fn handed_to(&self, agents: &[usize]) -> Vec<&File> {
        let right = |segment: &SharedSegment| {
            strongest_access(agents.iter().filter_map(|agent| segment.rights[*agent]))
        };
        let files = self.memory.iter().filter_map(|(segment, shared, _)| Some(shared.file(right(segment)?)));
        files.chain([self.control_file.file(Access::Read)]).collect()
    }

    pub(super) fn address(&self) -> String {
        format!("fd:{}", self.control_file.file(Access::Read).as_raw_fd())
    }

    pub fn accounts(&self) -> &[AccountView] {
        &self.accounts
    }

    /// Returns a read-only view of a segment by its name; `None` for an unknown name.
    pub fn view(&self, what: &str) -> Option<ReadOnlyWords> {
        let found = self.memory.iter().find(|(segment, ..)| segment.spec.name == what);
        found.map(|(_, _, words)| words.clone().into())
    }
}

fn header<W: BenchWork>(plan: &BenchPlan<W>, spec: &SegmentSpec) -> Header {
    Header {
        kind: spec.kind,
        bytes: spec.words as u64 * 8,
        capacity: spec.capacity,
        slot_words: spec.slot_words,
        creator_pid: plan.launcher_pid,
        creator_start: start_time(plan.launcher_pid).unwrap_or(0),
        run: run_hash(&plan.run),
        index: spec.index,
    }
}
