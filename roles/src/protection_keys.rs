//! The protection keys of a process's strategies of level `keys`: allocates the keys, assigns them
//! to heaps and segments, and limits the memory that each thread may write.

use anyhow::{Context, Result, bail};
use protocol::keys::PlannedKey;
use protocol::plan::{Plan, ProcessPlan, Role, ThreadPlan};
use protocol::topology;
use shm::attached::Attached;
use system::keys::arena::Arena;
use system::keys::{self, Key, WriteRights};

/// The protection keys that a process has for its strategies.
pub(super) struct ProtectionKeys {
    strategies: Vec<Key>,
    shared: Option<Key>,
}

impl ProtectionKeys {
    /// Allocates the memory protection keys of a process's strategies; `None` if no strategy of the
    /// process has a key. Gives the calling thread, and those that it starts later, all rights.
    pub fn allocate(plan: &Plan, process: &ProcessPlan) -> Result<Option<Self>> {
        if !plan.roles_of(process).any(|role| has_key(plan, role)) {
            return Ok(None);
        }
        let allocate = || Key::allocate().context("--isolation keys: the kernel gives no protection key");
        let strategies: Vec<Key> = (0..plan.strategy_keys()).map(|_| allocate()).collect::<Result<_>>()?;
        let is_shared =
            topology::segments(plan).iter().any(|segment| segment.key(plan) == Some(PlannedKey::Shared));
        let shared = is_shared.then(allocate).transpose()?;
        keys::open_all();
        let trial = Arena::new(strategies[0])?;
        if !trial.is_served() {
            bail!(
                "--isolation keys: this program's allocator has no heap for each strategy; \
                 in its main.rs write: #[global_allocator] static ALLOCATOR: \
                 launcher::system::alloc::CountingAllocator = launcher::system::alloc::CountingAllocator;"
            );
        }
        keys::detect_panic_start(strategies[0], trial).context("--isolation keys")?;
        Ok(Some(Self { strategies, shared }))
    }

    fn key(&self, planned: PlannedKey) -> Option<Key> {
        match planned {
            PlannedKey::Strategy(index) => self.strategies.get(index).copied(),
            PlannedKey::Shared => self.shared,
        }
    }

    /// Creates a heap for a strategy's thread, and returns it with the protection keys whose memory
    /// that thread may write. Returns `None` for a thread without a key.
    pub fn rights_of(&self, plan: &Plan, thread: &ThreadPlan) -> Result<Option<WriteRights>> {
        let [Role::Strategy(strategy)] = thread.roles[..] else { return Ok(None) };
        let Some(own) = plan.key_of(strategy).and_then(|key| self.key(key)) else { return Ok(None) };
        let heap = Arena::new(own).with_context(|| format!("the heap of {}", thread.name))?;
        let (start, bytes) = heap.range();
        keys::register_owner(start, bytes, format!("{}'s heap", thread.name));
        Ok(Some(WriteRights { own, shared: self.shared, heap, name: thread.name.clone() }))
    }

    /// Assigns the planned protection key to each segment that this process has mapped for writing.
    /// Mapping drops a key, so this follows the last one.
    pub fn protect(&self, plan: &Plan, attached: &Attached<'_>) -> Result<()> {
        let mut owners = Vec::new();
        for segment in topology::segments(plan) {
            let name = &segment.spec.name;
            let Some(words) = attached.mapped(name) else { continue };
            owners.push((words.as_ptr().addr(), size_of_val(&words[..]), format!("segment {name}")));
            if let Some(key) = segment.key(plan).and_then(|key| self.key(key)) {
                key.protect(&words).with_context(|| format!("the protection key of segment {name}"))?;
            }
        }
        keys::register_owners(owners);
        Ok(())
    }
}

fn has_key(plan: &Plan, role: Role) -> bool {
    matches!(role, Role::Strategy(strategy) if plan.key_of(strategy).is_some())
}
