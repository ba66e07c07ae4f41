//! The technique table. A new technique is one file beside this one, its line in `built_in`, and
//! one entry here; command line, planner, sweeps, bill, containment, tests, benches and fuzz
//! targets go over the table and by the records in it.
//!
//! A program can add its own at its start, with [`Technique::register`]. From a name to
//! monomorphised loops there are two ways: [`with_link!`](crate::with_link) for the built-in ones,
//! and a table of function pointers that a program fills for each type itself: with [`visit`] for
//! the built-in ones and directly for its own.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use shm::ring::{Home, Link, LinkSpec, SegmentSpec, Step, TechniqueInfo};
use std::any::TypeId;
use std::sync::{PoisonError, RwLock};
use thiserror::Error;

/// Something that is done with the types behind techniques.
pub trait Visitor {
    /// Is called with each of them.
    fn visit<L: Link>(&mut self);

    /// Is called in its place with each built-in one whose messages pass through the kernel:
    /// nothing compiled for such a one is faster.
    fn visit_kernel<L: Link>(&mut self) {
        self.visit::<L>();
    }
}

/// Makes the list, and what goes over its types. `$d` is a dollar sign: what the inner macro's own
/// variables begin with.
macro_rules! built_in {
    ($d:tt $($visit:ident $link:ident),+ $(,)?) => {
        const BUILT_IN: &[Technique] = &[$(Technique::of::<crate::built_in::$link>()),+];

        /// Calls the visitor with each built-in technique, in the order of the table.
        pub fn visit(visitor: &mut impl Visitor) {
            $(visitor.$visit::<crate::built_in::$link>();)+
        }

        /// `with_link!(technique, T => expression)`: the expression with `T` as the
        /// [`Link`](shm::ring::Link) of a built-in technique. Panics for another one.
        #[macro_export]
        macro_rules! with_link {
            ($d technique:expr, $d link:ident => $d body:expr) => {{
                let technique: $crate::Technique = $d technique;
                match technique {
                    $(_ if technique == $crate::Technique::of::<$crate::built_in::$link>() => {
                        type $d link = $crate::built_in::$link;
                        $d body
                    })+
                    other => panic!("{other} is no built-in technique"),
                }
            }};
        }
    };
}

built_in! { $
    visit SpscMux,
    visit ArrayQueue,
    visit Linked,
    visit Channel,
    visit_kernel Pipe,
    visit_kernel UnixSeqpacket,
    visit StdMpsc,
    visit CrossbeamChannel,
    visit CrossbeamArrayQueue,
    visit ArrayQueueMux,
}

/// What stands behind a [`Technique`].
struct Entry {
    record: TechniqueInfo,
    segments: fn(&LinkSpec) -> Vec<SegmentSpec>,
    link: fn() -> TypeId,
}

/// What carries the contended hand-offs: a handle to a technique of the table. Written as its name.
#[derive(Clone, Copy)]
pub struct Technique(&'static Entry);

/// Those that the program has added.
static REGISTERED: RwLock<Vec<Technique>> = RwLock::new(Vec::new());

/// A technique that cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RegisterError {
    /// Another one has the name.
    #[error("there is another technique of the name {0}: give yours another one")]
    Taken(&'static str),
    /// A name that cannot be typed everywhere.
    #[error("{0:?} is no name for a technique: 1 to 32 characters of a-z, 0-9 and -")]
    Name(&'static str),
}

impl Technique {
    /// The handle of that type. Found by name, and among [`Technique::all`], if it is built in or
    /// registered.
    pub const fn of<L: Link>() -> Self {
        Self(const { &Entry { record: L::INFO, segments: L::segments, link: TypeId::of::<L> } })
    }

    /// Adds a technique of the program's own. Call it first of all, in every process of a run: a
    /// plan that names it can be read only from then on. Again for the same type does nothing.
    ///
    /// # Errors
    /// A name that another one has, or that is none.
    pub fn register<L: Link>() -> Result<Self, RegisterError> {
        let new = Self::of::<L>();
        let name = new.name();
        let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if !(1..=32).contains(&name.len()) || !name.bytes().all(good) {
            return Err(RegisterError::Name(name));
        }
        let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
        let mut known = BUILT_IN.iter().chain(registered.iter());
        match known.find(|known| known.name() == name) {
            Some(known) if (known.0.link)() == (new.0.link)() => {}
            Some(_) => return Err(RegisterError::Taken(name)),
            None => registered.push(new),
        }
        Ok(new)
    }

    /// Those that this library brings.
    pub const fn built_in() -> &'static [Self] {
        BUILT_IN
    }

    /// Every technique: the built-in ones, then the program's own.
    pub fn all() -> Vec<Self> {
        let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
        BUILT_IN.iter().chain(registered.iter()).copied().collect()
    }

    /// The technique of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|technique| technique.name() == name)
    }

    /// Its facts.
    pub const fn record(self) -> &'static TechniqueInfo {
        &self.0.record
    }

    /// The name that users type and read.
    pub const fn name(self) -> &'static str {
        self.0.record.name
    }

    /// The steps of a push, in their order.
    pub const fn steps(self) -> &'static [Step] {
        self.0.record.steps
    }

    /// Whether messages pass through the kernel: sending them is a system call.
    pub const fn is_kernel(self) -> bool {
        matches!(self.0.record.home, Home::Kernel)
    }

    /// Whether it keeps what it carries in files and memory of its own making.
    pub const fn is_foreign(self) -> bool {
        matches!(self.0.record.home, Home::Foreign)
    }

    /// Whether it can run between processes.
    pub const fn crosses_processes(self) -> bool {
        !matches!(self.0.record.home, Home::Heap)
    }

    /// For a technique on the heap of one process, the technique to use across processes; else
    /// `None`.
    pub fn twin(self) -> Option<Self> {
        self.0.record.twin.and_then(Self::from_name)
    }

    /// The technique on the heap of which this is the port: what the bill compares it with.
    pub fn reference(self) -> Option<Self> {
        self.0.record.reference.and_then(Self::from_name)
    }

    /// The segments that a link of this technique needs.
    pub fn segments(self, spec: &LinkSpec) -> Vec<SegmentSpec> {
        (self.0.segments)(spec)
    }
}

impl Default for Technique {
    fn default() -> Self {
        BUILT_IN[0]
    }
}

impl PartialEq for Technique {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Technique {}

impl core::hash::Hash for Technique {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl core::fmt::Debug for Technique {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

impl core::fmt::Display for Technique {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Technique {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Technique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::from_name(&name).ok_or_else(|| {
            serde::de::Error::custom(format_args!("this program has no technique of the name {name:?}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::ring::spsc_mux::SpscMux;

    #[test]
    fn names_round_trip() {
        for technique in Technique::all() {
            assert_eq!(Technique::from_name(technique.name()), Some(technique));
        }
        assert_eq!(Technique::from_name("spsc"), None);
    }

    #[test]
    fn kernel_techniques_are_visited_as_such() {
        struct Kernel(Vec<(Technique, bool)>);
        impl Visitor for Kernel {
            fn visit<L: Link>(&mut self) {
                self.0.push((Technique::of::<L>(), false));
            }
            fn visit_kernel<L: Link>(&mut self) {
                self.0.push((Technique::of::<L>(), true));
            }
        }
        let mut kernel = Kernel(Vec::new());
        visit(&mut kernel);
        let wanted = Technique::built_in().iter().map(|technique| (*technique, technique.is_kernel()));
        assert!(kernel.0.into_iter().eq(wanted));
    }

    #[test]
    fn what_a_record_names_is_there() {
        for technique in Technique::all() {
            let record = technique.record();
            assert_eq!(technique.twin().is_some(), record.twin.is_some(), "{technique}");
            assert_eq!(technique.reference().is_some(), record.reference.is_some(), "{technique}");
            assert_eq!(record.twin.is_some(), !technique.crosses_processes(), "{technique}");
            assert!(technique.twin().is_none_or(Technique::crosses_processes), "{technique}");
            assert!(technique.reference().is_none_or(|crates| !crates.crosses_processes()), "{technique}");
        }
    }

    #[test]
    fn a_technique_is_registered_once() {
        assert_eq!(Technique::register::<SpscMux>(), Ok(Technique::default()), "it is there");
        assert_eq!(Technique::all().iter().filter(|t| t.name() == "spsc-mux").count(), 1);
    }
}
