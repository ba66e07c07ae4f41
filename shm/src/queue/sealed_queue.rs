//! Queues in sealed memory, which has no name: a process attaches with the descriptors that it was
//! sent or inherited.
//!
//! ```text
//! memory   queue's descriptor │ segment │ segment …     each from a pair of cache lines on
//! pipe     wake-up of the receiver
//! ```
//!
//! The memory is one anonymous file, whose size is final (`F_SEAL_SHRINK`, `F_SEAL_GROW`,
//! `F_SEAL_SEAL`): no peer can truncate it while another maps it. The places of the segments follow
//! from the geometry in the queue's descriptor, which is copied and checked once, when a handle is
//! made.

use super::descriptor::{self, QueueDescriptor};
use super::error::QueueError;
use super::sealed_memory::{MEMORY, SEALED, SealedMemory, os};
use super::technique_queue::{self, Queue, check_descriptor, describe, link_spec};
use super::wake;
use crate::memory::header::HEADER_WORDS;
use crate::memory::sealed::{is_size_sealed, seal_size};
use crate::memory::{HeaderError, Region, RegionError};
use crate::ring::{Link, SegmentPlace, SegmentSpec};
use crate::sync::Ordering;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::sync::Arc;

/// Segments begin at a multiple of this, a pair of cache lines.
const ALIGNMENT_WORDS: usize = 16;
/// The word of a header that holds the segment's size in bytes.
const BYTES: usize = 3;

fn header_error(source: HeaderError) -> QueueError {
    RegionError::Header { name: MEMORY.into(), source }.into()
}

/// Returns the segments with their first words, and the number of words of the whole memory.
fn layout<T: Link>(descriptor: &QueueDescriptor, capacity: u32) -> (Vec<(SegmentSpec, usize)>, usize) {
    let mut end = descriptor.segment_words();
    let mut segments = Vec::new();
    for spec in technique_queue::segments::<T>(&link_spec(descriptor.producers, capacity), descriptor) {
        if matches!(spec.place, SegmentPlace::Memory | SegmentPlace::Reserve) {
            let start = end.next_multiple_of(ALIGNMENT_WORDS);
            end = start + spec.words;
            segments.push((spec, start));
        }
    }
    (segments, end)
}

/// Maps memory that was received, after a check that no peer can change its size.
fn map(memory: &File) -> Result<Arc<Region>, QueueError> {
    let refused = |why| Err(QueueError::Descriptors(why));
    let is_sealed = is_size_sealed(memory);
    if is_sealed.is_err() {
        return refused("the first is not anonymous memory");
    }
    if !is_sealed.is_ok_and(|sealed| sealed) {
        return refused("the memory is not sealed with F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_SEAL");
    }
    let facts = memory.metadata().map_err(os("ask for the size of"))?;
    if facts.len() < HEADER_WORDS as u64 * 8 {
        return Err(header_error(HeaderError::TooShort(facts.len())));
    }
    // Touching its pages now would charge them to this process.
    if facts.blocks().saturating_mul(512) < facts.len() {
        return refused("the memory is not reserved");
    }
    Ok(Region::map(MEMORY, memory, false)?)
}

impl<T: Link> Queue<T> {
    pub(super) fn create_sealed(
        producers: usize,
        capacity: u32,
        message_bytes: u64,
    ) -> Result<Self, QueueError> {
        let mut descriptor = describe::<T>(SEALED, producers, capacity)?;
        descriptor.message_bytes = message_bytes;
        let (segments, words) = layout::<T>(&descriptor, capacity);
        let (region, memory) = Region::memfd_and_file(MEMORY, words, true)?;
        seal_size(&memory).map_err(os("seal"))?;
        for (spec, start) in &segments {
            descriptor.header(spec).write(&region.part(*start, spec.words).words());
        }
        let words = region.part(0, descriptor.segment_words()).words();
        descriptor.write(&words);
        descriptor::set_ready(&words);
        // Who holds the descriptor may use it, as for the memory; each end opens it through /proc.
        let pipe: OwnedFd = io::pipe().map_err(os("make a pipe for"))?.0.into();
        let pipe = File::from(pipe);
        pipe.set_permissions(Permissions::from_mode(0o666)).map_err(os("give rights to the pipe of"))?;
        Self::from_sealed(descriptor, memory, SealedMemory { region, pipe })
    }

    pub(super) fn from_fds([memory, pipe]: [OwnedFd; 2]) -> Result<Self, QueueError> {
        let (memory, pipe) = (File::from(memory), File::from(pipe));
        let region = map(&memory)?;
        if wake::reopen_pipe(&pipe).is_err() {
            return Err(QueueError::Descriptors("the second is not a pipe that can be opened both ways"));
        }
        let all = region.words();
        // Relaxed: only a guess of the size, which `read` checks.
        let promised = usize::try_from(all[BYTES].load(Ordering::Relaxed) / 8).unwrap_or(usize::MAX);
        let words = region.part(0, promised.clamp(HEADER_WORDS, all.len())).words();
        let descriptor = QueueDescriptor::read(&words, SEALED).map_err(header_error)?;
        if !descriptor::is_ready(&words) {
            return Err(QueueError::Incomplete(SEALED.into()));
        }
        let capacity = check_descriptor::<T>(SEALED, &descriptor)?;
        let (segments, words) = layout::<T>(&descriptor, capacity);
        let (promised, found) = (words as u64 * 8, all.len() as u64 * 8);
        if promised != found || !descriptor.files.is_empty() {
            return Err(header_error(HeaderError::Size { promised, found }));
        }
        for (spec, start) in &segments {
            let header = region.part(*start, spec.words).words().header(spec.kind).map_err(header_error)?;
            if header != descriptor.header(spec) {
                return Err(header_error(HeaderError::OtherRun));
            }
        }
        region.touch().map_err(os("prefault"))?;
        Self::from_sealed(descriptor, memory, SealedMemory { region, pipe })
    }

    pub(super) fn from_sealed(
        descriptor: QueueDescriptor,
        memory: File,
        sealed: SealedMemory,
    ) -> Result<Self, QueueError> {
        let capacity = descriptor.capacity as u32;
        let words = sealed.region.part(0, descriptor.segment_words()).words();
        let mut queue = Self::new(SEALED, capacity, descriptor, words);
        for (spec, start) in layout::<T>(&queue.descriptor, capacity).0 {
            let part = sealed.region.part(start, spec.words);
            // From here on this process does not read the header in memory.
            part.set_header(queue.descriptor.header(&spec)).map_err(header_error)?;
            queue.attached.adopt(&spec.name, part);
        }
        queue.file = Some(memory);
        queue.sealed = Some(sealed);
        Ok(queue)
    }

    pub(super) fn fds(&self) -> Option<[BorrowedFd<'_>; 2]> {
        let (memory, sealed) = (self.file.as_ref()?, self.sealed.as_ref()?);
        Some([memory.as_fd(), sealed.pipe.as_fd()])
    }
}
