//! Which ends the loops are compiled with.

use heap_techniques::registry;
use roles::registry::typed_techniques;
use techniques::Technique;

/// In release builds every technique in memory has loops of its own, without a dynamic call a
/// message; in debug builds none has.
#[test]
fn memory_techniques_have_typed_loops_in_release() {
    registry::<()>().install();
    let is_measured = |technique: &&Technique| !technique.is_kernel() && !cfg!(debug_assertions);
    let expected: Vec<Technique> = Technique::built_in().iter().filter(is_measured).copied().collect();
    assert_eq!(typed_techniques(), expected);
}
