//! Many runs: sweeps, the containment matrix.

mod contain;
mod planned;
mod survey;
mod sweeps;
