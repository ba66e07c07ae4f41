//! wip
pub mod figures;
