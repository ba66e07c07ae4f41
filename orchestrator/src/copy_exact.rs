//! Copies values that were read back over values that are there.

/// Copies `from` over `to`. Returns `None` if their lengths differ.
pub(crate) fn copy_exact<T: Copy>(to: &mut [T], from: &[T]) -> Option<()> {
    (to.len() == from.len()).then(|| to.copy_from_slice(from))
}
