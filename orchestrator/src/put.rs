//! What was read back, into the place of what is there.

/// Puts values in the place of as many others; `None`: there are more or fewer.
pub(crate) fn put<T: Copy>(to: &mut [T], from: &[T]) -> Option<()> {
    (to.len() == from.len()).then(|| to.copy_from_slice(from))
}
