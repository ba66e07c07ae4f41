//! The roles of a run: what each process does.

pub mod role;
