//! Many runs: sweeps, the containment matrix.

mod contain;
mod planned;
mod sweeps;
