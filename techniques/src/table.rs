//! The technique table, over which command line, planner, sweeps, bill, containment, tests, benches
//! and fuzz targets iterate. A new technique is one file next to this one, its line in `built_in`,
//! and one entry here.
//!
//! A program can register its own techniques at startup with [`Technique::register`]. There are two
//! ways from a name to monomorphized loops: [`with_link!`](crate::with_link) for built-in
//! techniques, and a table of function pointers that a program fills for each type, with [`visit`]
//! for the built-in ones and directly for its own.

use crate::description::TechniqueDescription;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use shm::ring::{Home, Link, LinkSpec, SegmentSpec, Step, TechniqueInfo};
use std::any::TypeId;
use std::sync::{PoisonError, RwLock};
use thiserror::Error;

/// A generic callback, which is called once with the type of each technique.
pub trait TechniqueVisitor {
    /// Handles one technique, given its type.
    fn visit<L: Link>(&mut self);

    /// Handles a built-in technique whose messages pass through the kernel. Specialized code is not
    /// faster for these.
    fn visit_kernel<L: Link>(&mut self) {
        self.visit::<L>();
    }

    /// Handles a built-in technique on the heap, which only threads of one process can use.
    fn visit_heap<L: Link>(&mut self) {
        self.visit::<L>();
    }
}

/// Makes the list of built-in techniques, and the functions over their types. `$d` is a dollar
/// sign, for the variables of the inner macro.
macro_rules! built_in {
    ($d:tt $($visit:ident $link:ident),+ $(,)?) => {
        const BUILT_IN: &[Technique] = &[$(Technique::from_link::<crate::built_in::$link>()),+];

        /// Calls the visitor with the type of each built-in technique, in the order of the table.
        pub fn visit(visitor: &mut impl TechniqueVisitor) {
            $(visitor.$visit::<crate::built_in::$link>();)+
        }

        /// `with_link!(technique, T => expression)`: the expression with `T` as the
        /// [`Link`](shm::ring::Link) of a built-in technique. Panics for another one.
        #[macro_export]
        macro_rules! with_link {
            ($d technique:expr, $d link:ident => $d body:expr) => {{
                let technique: $crate::Technique = $d technique;
                match technique {
                    $(_ if technique == $crate::Technique::from_link::<$crate::built_in::$link>() => {
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
    visit_heap StdMpsc,
    visit_heap CrossbeamChannel,
    visit_heap CrossbeamArrayQueue,
    visit_heap ArrayQueueMux,
    visit_heap RtrbMux,
    visit_heap RtrbPointerMux,
}

struct TechniqueEntry {
    record: TechniqueInfo,
    segments: fn(&LinkSpec) -> Vec<SegmentSpec>,
    capacity: fn(&LinkSpec) -> Option<u64>,
    link: fn() -> TypeId,
}

/// A handle to a technique: a queue that can carry a run's orders and reports between processes.
/// Serialized as its name.
#[derive(Clone, Copy)]
pub struct Technique(&'static TechniqueEntry);

static REGISTERED: RwLock<Vec<Technique>> = RwLock::new(Vec::new());

/// The reason why a technique cannot be registered: its name is taken or invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RegisterError {
    /// Another technique has the name of the new one.
    #[error("there is another technique of the name {0}: give yours another one")]
    Taken(&'static str),
    /// The name of the technique is invalid.
    #[error("{0:?} is not a valid name for a technique: 1 to 32 characters of a-z, 0-9 and -")]
    Name(&'static str),
}

impl Technique {
    /// Returns the handle of the technique that the type `L` implements. It is found by name and in
    /// [`Technique::all`] if it is built in or registered.
    pub const fn from_link<L: Link>() -> Self {
        Self(
            const {
                &TechniqueEntry {
                    record: L::INFO,
                    segments: L::segments,
                    capacity: L::capacity,
                    link: TypeId::of::<L>,
                }
            },
        )
    }

    /// Registers a technique (a way to pass messages) that the program defines. Call it first in
    /// every process of a run: a plan with its name can be read only afterwards. A second call for
    /// the same type does nothing.
    ///
    /// # Errors
    /// An invalid name, or one that another technique has.
    pub fn register<L: Link>() -> Result<Self, RegisterError> {
        Self::add(Self::from_link::<L>())
    }

    /// Registers a technique of another program by its description alone: settings may name it, but
    /// only that program can run it. Its segments and its real capacity are not known here.
    ///
    /// # Errors
    /// An invalid name, or one that another technique has.
    pub fn register_described(description: TechniqueDescription) -> Result<Self, RegisterError> {
        Self::add(Self(Box::leak(Box::new(TechniqueEntry {
            record: description.leak(),
            segments: |_| Vec::new(),
            capacity: |_| None,
            link: TypeId::of::<TechniqueDescription>,
        }))))
    }

    fn add(new: Self) -> Result<Self, RegisterError> {
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

    /// Returns the built-in techniques.
    pub const fn built_in() -> &'static [Self] {
        BUILT_IN
    }

    /// Returns the properties of the techniques that the program has registered.
    pub fn registered() -> Vec<TechniqueDescription> {
        let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
        registered.iter().map(|technique| technique.info().into()).collect()
    }

    /// Returns every technique: the built-in ones, then the registered ones.
    pub fn all() -> Vec<Self> {
        let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
        BUILT_IN.iter().chain(registered.iter()).copied().collect()
    }

    /// Returns the technique with this name, built in or registered; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|technique| technique.name() == name)
    }

    /// Returns the technique's name and properties.
    pub const fn info(self) -> &'static TechniqueInfo {
        &self.0.record
    }

    /// Returns the name of the technique.
    pub const fn name(self) -> &'static str {
        self.0.record.name
    }

    /// Returns the steps of the technique's push at which faults can interrupt it, in order.
    pub const fn steps(self) -> &'static [Step] {
        self.0.record.steps
    }

    /// Returns `true` if the technique's messages pass through the kernel: sending one is a system
    /// call.
    pub const fn is_kernel(self) -> bool {
        matches!(self.0.record.home, Home::Kernel)
    }

    /// Returns `true` if the technique is a third-party transport, which creates its own files and
    /// memory instead of using the launcher's segments.
    pub const fn is_foreign(self) -> bool {
        matches!(self.0.record.home, Home::Foreign)
    }

    /// Returns `true` if the technique works between processes.
    pub const fn crosses_processes(self) -> bool {
        !matches!(self.0.record.home, Home::Heap)
    }

    /// Returns the technique to use between processes in place of this one; `None` if this one
    /// names none. Only techniques on the heap, which work only between threads of one process,
    /// name one.
    pub fn twin(self) -> Option<Self> {
        self.0.record.twin.and_then(Self::from_name)
    }

    /// Returns the heap technique of which this one is a port to shared memory, for comparisons.
    pub fn reference(self) -> Option<Self> {
        self.0.record.reference.and_then(Self::from_name)
    }

    /// Returns how many messages one producer can push into an empty queue of this technique;
    /// `None` if no such number is known. That is so if the queue is never full, or if its memory
    /// is the kernel's.
    pub fn capacity(self, spec: &LinkSpec) -> Option<u64> {
        (self.0.capacity)(spec)
    }

    /// Returns the specifications of the shared-memory segments that one hand-off by this technique
    /// needs.
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
    fn techniques_are_visited_by_their_home() {
        #[derive(Default)]
        struct Homes(Vec<(Technique, bool, bool)>);
        impl TechniqueVisitor for Homes {
            fn visit<L: Link>(&mut self) {
                self.0.push((Technique::from_link::<L>(), false, false));
            }
            fn visit_kernel<L: Link>(&mut self) {
                self.0.push((Technique::from_link::<L>(), true, false));
            }
            fn visit_heap<L: Link>(&mut self) {
                self.0.push((Technique::from_link::<L>(), false, true));
            }
        }
        let mut homes = Homes::default();
        visit(&mut homes);
        let all = Technique::built_in().iter();
        let expected =
            all.map(|technique| (*technique, technique.is_kernel(), !technique.crosses_processes()));
        assert!(homes.0.into_iter().eq(expected));
    }

    #[test]
    fn techniques_named_by_info_exist() {
        for technique in Technique::all() {
            let record = technique.info();
            assert_eq!(technique.twin().is_some(), record.twin.is_some(), "{technique}");
            assert_eq!(technique.reference().is_some(), record.reference.is_some(), "{technique}");
            assert_eq!(record.twin.is_some(), !technique.crosses_processes(), "{technique}");
            assert!(technique.twin().is_none_or(Technique::crosses_processes), "{technique}");
            assert!(technique.reference().is_none_or(|crates| !crates.crosses_processes()), "{technique}");
        }
    }

    #[test]
    fn technique_is_registered_once() {
        assert_eq!(
            Technique::register::<SpscMux>(),
            Ok(Technique::default()),
            "a built-in technique is registered already"
        );
        assert_eq!(Technique::all().iter().filter(|t| t.name() == "spsc-mux").count(), 1);
    }
}
