//! What faults do, without a run.

mod acts;
mod own;
mod takings;
mod venue;
