//! Experiments: many runs, compared.

pub mod bill;
pub mod compare;
pub mod contain;
pub mod sweep;
