//! Recovery of a crashed exchange, and an exchange whose disk fails.

mod disk;
mod recovery;
