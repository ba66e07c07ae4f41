//! The roles without a run: what faults do.

mod acts;
mod own;
mod resources;
mod venue;
