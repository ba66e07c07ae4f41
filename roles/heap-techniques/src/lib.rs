//! The measured loops of the techniques on the heap, which only threads of one process can use.
//!
//! They are a crate of their own so that the compiler makes them at the same time as those in
//! shared memory, which are half of the first build. Both are compiled the same way: each for its
//! own ends, in one part.
#![forbid(unsafe_code)]

use roles::registry::{Links, Registry};
use shm::ring::Link;
use techniques::TechniqueVisitor;

/// Creates a registry of the built-in strategies and venues on the techniques (kinds of queues) of
/// the list `T` and all built-in ones. Loops are compiled for each technique.
pub fn registry<T: Links>() -> Registry {
    let mut registry = Registry::with_built_in::<T>();
    compile(&mut registry);
    registry
}

/// Not generic: no other crate compiles the loops again.
#[inline(never)]
fn compile(registry: &mut Registry) {
    techniques::visit(&mut OnHeap(registry));
}

/// A visitor that compiles the loops of the techniques on the heap.
struct OnHeap<'a>(&'a mut Registry);

impl TechniqueVisitor for OnHeap<'_> {
    fn visit<L: Link>(&mut self) {}

    fn visit_kernel<L: Link>(&mut self) {}

    fn visit_heap<L: Link>(&mut self) {
        self.0.compile_measured::<L>();
    }
}
