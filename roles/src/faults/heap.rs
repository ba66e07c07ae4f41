//! A block on a strategy's heap that another strategy's fault overwrites or reads.
//!
//! Only the strategy whose heap is the target of a fault has one. It looks at the block in each
//! duty cycle, and panics once another strategy has written there.

use shm::attached::{Attached, HeapObjects};
use shm::sync::{AtomicU64, Ordering};

/// Number of words of a block: a page and more, as a strategy's own state has.
const WORDS: usize = 1024;
/// What its strategy has written to each word.
const CONTENT: u64 = 0x5afe_5afe_5afe_5afe;

/// The blocks of the strategies of this process.
static BLOCKS: HeapObjects<HeapBlock> = HeapObjects::new();

/// A block on a strategy's heap, the target of another strategy's injected fault. It is never
/// freed, so its address stays valid.
#[derive(Clone, Copy, Debug)]
pub struct HeapBlock(&'static [AtomicU64]);

impl HeapBlock {
    /// Allocates a block on the calling thread's heap, and registers it by name for the threads of
    /// this process. An earlier one with this name is returned as it is.
    pub fn register(attached: &mut Attached<'_>, name: &str) -> Self {
        let words = || (0..WORDS).map(|_| AtomicU64::new(CONTENT)).collect::<Vec<_>>();
        *BLOCKS.get_or_create(attached, name, || Self(words().leak()))
    }

    /// Returns the heap block that a thread of this process has registered under a name.
    pub fn find(attached: &Attached<'_>, name: &str) -> Option<Self> {
        BLOCKS.get(attached, name).map(|block| *block)
    }

    /// Overwrites every word of this strategy's heap block, as the injected fault of another
    /// strategy.
    pub fn overwrite(self) {
        self.0.iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
    }

    /// Reads every word of this strategy's heap block, as the injected fault of another strategy.
    /// Returns the XOR of its words, so that no read is optimized away.
    pub fn read(self) -> u64 {
        self.0.iter().fold(0, |sum, word| sum ^ word.load(Ordering::Relaxed))
    }

    /// Returns `true` if the heap block still has the content that its strategy has written.
    pub fn is_intact(self) -> bool {
        self.0.iter().all(|word| word.load(Ordering::Relaxed) == CONTENT)
    }
}
