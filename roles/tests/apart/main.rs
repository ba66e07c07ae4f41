//! The roles without a run: which ends their loops have, and what faults do.

mod acts;
mod loops;
mod own;
mod resources;
mod venue;
