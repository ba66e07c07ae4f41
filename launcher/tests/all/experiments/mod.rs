//! Many runs: sweeps, the containment matrix.

mod contain;
mod disturb;
mod planned;
mod survey;
mod sweeps;
