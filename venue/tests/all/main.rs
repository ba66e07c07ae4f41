//! An exchange that dies and comes back, and one whose disk refuses.

mod comebacks;
mod disk;
