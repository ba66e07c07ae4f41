//! The segments that a process has mapped: each once, however many threads use it.
//!
//! Rings attach through [`Attached`] and never see where a segment comes from: a name in
//! `/dev/shm`, an inherited descriptor, or the heap. A [`Source`] locates it and holds this
//! process's rights to it.

pub use crate::memory::sealed::Access;
use crate::memory::sealed::{self, Handle};
use crate::memory::{AtomicWords, Header, HeaderError, ReadOnlyWords, Region, RegionError, SegmentKind};
use std::collections::HashMap;
use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A lookup of the current process ids of a link's producers and of its consumer.
pub trait Peers: Send {
    /// Returns the process id of a producer; `None` if it has no process now.
    fn producer(&self, index: usize) -> Option<u32>;

    /// Returns the process id of the consumer; `None` if it has no process now.
    fn consumer(&self) -> Option<u32>;
}

/// [`Peers`] of a link between two agents of this process: both ends have its process id.
pub struct SameProcess;

impl Peers for SameProcess {
    fn producer(&self, _: usize) -> Option<u32> {
        Some(std::process::id())
    }

    fn consumer(&self) -> Option<u32> {
        Some(std::process::id())
    }
}

/// The source of a run's segments for a process that attaches them: names, headers, access rights.
pub trait Source {
    /// Returns the full name, in `/dev/shm`, of one of the run's segments.
    fn name(&self, what: &str) -> String;

    /// Returns the hash of the run's id, which the headers of its segments carry.
    fn run(&self) -> u64;

    /// Returns the header that the plan gives for a segment, to be used instead of the one in
    /// memory. Any writer of the segment can overwrite that one. `None`: the header in memory is
    /// checked.
    fn header(&self, what: &str) -> Option<Header> {
        let _ = what;
        None
    }

    /// Returns the access rights of this process to a segment; `None` for no access.
    fn right(&self, what: &str) -> Option<Access>;

    /// Returns the open file descriptors of segments that this process has inherited. A segment
    /// that is not among them is opened by its name.
    fn handles(&self) -> &[Handle];

    /// Returns the process ids at the two ends of a link. By default this process alone.
    fn peers(&self, link: &str) -> Box<dyn Peers> {
        let _ = link;
        Box::new(SameProcess)
    }
}

/// One process's view of a run's shared-memory segments: each is mapped once. See the module's
/// documentation.
pub struct Attached<'a> {
    source: Box<dyn Source + Send + 'a>,
    regions: HashMap<String, Arc<Region>>,
    /// Memory that was handed over for reading only.
    lent_views: HashMap<String, Arc<Region>>,
    /// What is mapped for reading only: a descriptor that was handed over is taken once.
    views: HashMap<String, ReadOnlyWords>,
    /// The objects of [`HeapObjects`] that this process uses, by name, which keeps them alive.
    heap_objects: HashMap<String, Arc<dyn Send + Sync>>,
}

/// The objects of one type, such as a technique's queues, that the threads of a process share on
/// the heap by name. Their technique has them in a `static`. Each belongs to one [`Attached`].
#[derive(Debug)]
pub struct HeapObjects<T>(Mutex<Vec<Weak<T>>>);

impl<T: Send + Sync + 'static> HeapObjects<T> {
    /// Creates an empty collection of objects that the threads of a process share on the heap by
    /// name.
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Returns the process's shared object with this name; the first caller creates it.
    ///
    /// # Panics
    /// If the process has an object of another type under the name: two techniques in one run.
    pub fn get_or_create(
        &self,
        attached: &mut Attached<'_>,
        name: &str,
        create: impl FnOnce() -> T,
    ) -> Arc<T> {
        let mut objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        objects.retain(|object| object.strong_count() > 0);
        if let Some(used) = attached.heap_objects.get(name) {
            // A used object lives, so nothing else has its address.
            let is_used = |object: &&Weak<T>| core::ptr::addr_eq(object.as_ptr(), Arc::as_ptr(used));
            let found = objects.iter().find(is_used).and_then(Weak::upgrade);
            return found.expect("one run has one technique");
        }
        let object = Arc::new(create());
        objects.push(Arc::downgrade(&object));
        attached.heap_objects.insert(name.to_owned(), Arc::<T>::clone(&object));
        object
    }

    /// Returns the process's shared object with this name; `None` before it is created.
    pub fn get(&self, attached: &Attached<'_>, name: &str) -> Option<Arc<T>> {
        let used = attached.heap_objects.get(name)?;
        let objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A used object lives, so nothing else has its address.
        objects
            .iter()
            .find(|object| core::ptr::addr_eq(object.as_ptr(), Arc::as_ptr(used)))
            .and_then(Weak::upgrade)
    }
}

impl<T: Send + Sync + 'static> Default for HeapObjects<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> Attached<'a> {
    /// Creates a process's view of a run's segments in shared memory, with no segment attached yet.
    pub fn new(source: impl Source + Send + 'a) -> Self {
        Self {
            source: Box::new(source),
            regions: HashMap::new(),
            lent_views: HashMap::new(),
            views: HashMap::new(),
            heap_objects: HashMap::new(),
        }
    }

    /// Maps a segment of the run for reading and writing, or returns its existing mapping. Checks
    /// that the segment belongs to this run.
    ///
    /// # Errors
    /// A segment that this process has no right to write, that is missing, or whose header is not
    /// what it should be.
    pub fn region(&mut self, what: &str, kind: SegmentKind) -> Result<Arc<Region>, RegionError> {
        if let Some(region) = self.regions.get(what) {
            return Ok(Arc::clone(region));
        }
        let name = self.name(what);
        if self.source.right(what) != Some(Access::Write) {
            return Err(unplanned(&name, "the plan does not say that this process writes it"));
        }
        let region = match self.inherited_file(what, Access::Write)? {
            Some(file) => Region::map(&name, &file, kind.prefault)?,
            None if kind.prefault => Region::open(&name)?,
            None => Region::open_reserve(&name)?,
        };
        self.check(what, name, kind, &region.words().into())?;
        self.regions.insert(what.to_owned(), Arc::clone(&region));
        Ok(region)
    }

    /// Returns the full name, in `/dev/shm`, of a segment of the run.
    pub fn name(&self, what: &str) -> String {
        self.source.name(what)
    }

    /// Returns the process ids at the two ends of a link of the run.
    pub fn peers(&self, link: &str) -> Box<dyn Peers> {
        self.source.peers(link)
    }

    /// Registers existing memory as a segment of the run: inherited memory, or the heap in tests.
    /// With or without a name. Its header must be written, unless the plan contains it.
    pub fn adopt(&mut self, what: &str, region: Arc<Region>) {
        if let Some(header) = self.source.header(what) {
            // Of another size it is not the plan's segment, and has a header of its own.
            let _ = region.set_header(header);
        }
        self.regions.insert(what.to_owned(), region);
    }

    /// Registers existing memory as a segment of the run that this process only reads.
    /// [`Attached::view`] returns it, [`Attached::region`] does not.
    pub fn adopt_view(&mut self, what: &str, region: Arc<Region>) {
        self.lent_views.insert(what.to_owned(), region);
    }

    /// Returns the words of all segments that this process has mapped for writing, ordered by name.
    pub fn writable(&self) -> Vec<AtomicWords> {
        let mut named: Vec<_> = self.regions.iter().collect();
        named.sort_by_key(|(name, _)| *name);
        named.into_iter().map(|(_, region)| region.words()).collect()
    }

    /// Returns a segment that this process has mapped for writing; `None` if the segment is not
    /// mapped for writing.
    pub fn mapped(&self, what: &str) -> Option<AtomicWords> {
        self.regions.get(what).map(|region| region.words())
    }

    /// Returns the words of all segments that this process has mapped read-only, ordered by name.
    pub fn read_only(&self) -> Vec<ReadOnlyWords> {
        let mut named: Vec<_> = self.views.iter().collect();
        named.sort_by_key(|(name, _)| *name);
        named.into_iter().map(|(_, view)| view.clone()).collect()
    }

    /// Maps a segment of the run for reading, or returns its existing mapping. Unless this process
    /// writes it elsewhere, its pages are mapped read-only: a wild pointer cannot harm it. A named
    /// segment can still be opened for writing by a hostile process; the sandbox prevents that.
    ///
    /// # Errors
    /// As [`Attached::region`].
    pub fn view(&mut self, what: &str, kind: SegmentKind) -> Result<ReadOnlyWords, RegionError> {
        if let Some(region) = self.lent_views.get(what) {
            let view = region.words().into();
            self.check(what, self.name(what), kind, &view)?;
            return Ok(view);
        }
        if self.source.right(what) == Some(Access::Write) || self.regions.contains_key(what) {
            return Ok(self.region(what, kind)?.words().into());
        }
        if let Some(view) = self.views.get(what) {
            return Ok(view.clone());
        }
        let name = self.name(what);
        if self.source.right(what).is_none() {
            return Err(unplanned(&name, "the plan does not say that this process reads it"));
        }
        let view = match self.inherited_file(what, Access::Read)? {
            Some(file) => Region::map_read_only(&name, &file)?,
            None => Region::open_read_only(&name)?,
        };
        self.check(what, name, kind, &view)?;
        self.views.insert(what.to_owned(), view.clone());
        Ok(view)
    }

    /// Takes a file that is not a segment, such as a lock, from those that this process has
    /// inherited. Returns `None` if the plan lists none of that name.
    ///
    /// # Errors
    /// It was not handed over, or was taken before.
    pub fn take_file(&self, what: &str) -> Result<Option<File>, RegionError> {
        self.inherited_file(what, Access::Write)
    }

    fn inherited_file(&self, what: &str, access: Access) -> Result<Option<File>, RegionError> {
        let mut handles = self.source.handles().iter().filter(|handle| handle.name == what).peekable();
        if handles.peek().is_none() {
            return Ok(None);
        }
        let wanted = |handle: &&Handle| handle.writable == (access == Access::Write);
        let missing = || std::io::Error::other("it was not handed over");
        let file = handles.find(wanted).ok_or_else(missing).and_then(sealed::take);
        file.map(Some).map_err(RegionError::os(what, "take the descriptor of it"))
    }

    /// Checks that a segment is one of this run: by the plan, and where there is none by its
    /// header. Rings check their own geometry when an end attaches.
    fn check(
        &self,
        what: &str,
        name: String,
        kind: SegmentKind,
        view: &ReadOnlyWords,
    ) -> Result<Header, RegionError> {
        let known = self.source.header(what).map_or(Ok(()), |header| view.set_header(header));
        let header = known.and_then(|()| view.header(kind)).and_then(|header| {
            if let Some(words) = kind.slot_words {
                header.check_geometry(kind.offset, words)?;
            }
            let ours = header.run == self.source.run();
            if ours { Ok(header) } else { Err(HeaderError::OtherRun) }
        });
        header.map_err(|source| RegionError::Header { name, source })
    }

    /// Maps a segment of the run, calls `attach` with its memory, and returns the end of a ring or
    /// board that `attach` creates.
    ///
    /// # Errors
    /// As [`Attached::region`]; the error of `attach`.
    pub fn end<T>(
        &mut self,
        what: &str,
        kind: SegmentKind,
        attach: impl FnOnce(&AtomicWords) -> Result<T, HeaderError>,
    ) -> Result<T, RegionError> {
        let words = self.region(what, kind)?.words();
        attach(&words).map_err(|source| RegionError::Header { name: what.into(), source })
    }
}

fn unplanned(name: &str, why: &str) -> RegionError {
    RegionError::os(name, "map it")(std::io::Error::other(why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::header::HEADER_WORDS;

    struct NoSegments;

    impl Source for NoSegments {
        fn name(&self, what: &str) -> String {
            what.into()
        }

        fn run(&self) -> u64 {
            0
        }

        fn right(&self, _: &str) -> Option<Access> {
            None
        }

        fn handles(&self) -> &[Handle] {
            &[]
        }
    }

    /// Segments of a test, which it may read.
    struct ReadableSegments;

    impl Source for ReadableSegments {
        fn name(&self, what: &str) -> String {
            format!("bulkhead.unit-{}.attached-{what}", std::process::id())
        }

        fn run(&self) -> u64 {
            7
        }

        fn right(&self, _: &str) -> Option<Access> {
            Some(Access::Read)
        }

        fn handles(&self) -> &[Handle] {
            &[]
        }
    }

    /// Creates a segment of 32 words with this header and maps it for reading; its name is removed.
    fn view(
        attached: &mut Attached<'_>,
        what: &str,
        kind: SegmentKind,
        header: Header,
    ) -> Result<ReadOnlyWords, RegionError> {
        let name = attached.name(what);
        let words = Region::create(&name, 32).expect("a new name").words();
        header.write(&words);
        let view = attached.view(what, kind);
        crate::memory::unlink(&name).expect("its name is removed");
        view
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no shared file mappings")]
    fn views_are_listed_by_name() {
        let kind = SegmentKind::new(99, "test", &[]);
        let mut attached = Attached::new(ReadableSegments);
        assert!(attached.read_only().is_empty());
        for (index, what) in ["b", "a"].into_iter().enumerate() {
            let header = Header { run: 7, ..Header::anonymous(kind, 32, 0, 0, index as u64) };
            view(&mut attached, what, kind, header).expect("a segment of this run");
        }
        let index = |view: &ReadOnlyWords| view.header(kind).expect("a valid header").index;
        assert_eq!(attached.read_only().iter().map(index).collect::<Vec<_>>(), [1, 0]);
        assert!(attached.writable().is_empty());
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no shared file mappings")]
    fn segment_of_another_run_or_geometry_is_refused() {
        let kind = SegmentKind::new(99, "test", &[]).of_slots(HEADER_WORDS, 4);
        let refused = |what, run, capacity, slot_words| {
            let header = Header { run, ..Header::anonymous(kind, 32, capacity, slot_words, 0) };
            match view(&mut Attached::new(ReadableSegments), what, kind, header) {
                Err(RegionError::Header { source, .. }) => Some(source),
                other => other.map(|_| None).expect("a header is refused, if anything is"),
            }
        };
        assert_eq!(refused("valid", 7, 4, 4), None);
        assert_eq!(refused("run", 8, 4, 4), Some(HeaderError::OtherRun));
        for (what, capacity, slot_words) in [("capacity", 5, 4), ("slot", 4, 3)] {
            let found = refused(what, 7, capacity, slot_words);
            assert!(matches!(found, Some(HeaderError::Geometry { .. })), "{what}: {found:?}");
        }
    }

    #[test]
    fn peers_are_this_process_by_default() {
        let peers = Attached::new(NoSegments).peers("a link");
        let own = Some(std::process::id());
        assert_eq!((peers.producer(0), peers.producer(3), peers.consumer()), (own, own, own));
    }

    static NUMBERS: HeapObjects<u64> = HeapObjects::new();

    #[test]
    fn heap_objects_belong_to_one_process() {
        let [mut one, mut other] = [(); 2].map(|()| Attached::new(NoSegments));
        let number = |attached: &mut _, name, value| NUMBERS.get_or_create(attached, name, || value);
        assert_eq!((*number(&mut one, "a", 1), *number(&mut one, "a", 2)), (1, 1));
        assert_eq!((*number(&mut one, "b", 3), *number(&mut other, "a", 4)), (3, 4));
        let last = Arc::downgrade(&number(&mut one, "a", 5));
        drop(one);
        assert!(last.upgrade().is_none(), "it is freed with its process");
    }

    #[test]
    #[should_panic(expected = "one run has one technique")]
    fn heap_objects_of_two_types_are_refused() {
        static TEXTS: HeapObjects<String> = HeapObjects::new();
        let mut attached = Attached::new(NoSegments);
        NUMBERS.get_or_create(&mut attached, "a", || 1);
        TEXTS.get_or_create(&mut attached, "a", String::new);
    }
}
