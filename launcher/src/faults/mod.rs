//! Faults that are injected on purpose.

pub mod inject;
pub mod sabotage;
