//! Many runs: sweeps, the containment matrix.

mod contain;
mod sweeps;
