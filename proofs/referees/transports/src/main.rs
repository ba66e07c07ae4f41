//! The launcher with the transports that it was built with:
//!
//! ```text
//! cargo run --release --features iceoryx2 -- run --technique iceoryx2
//! cargo run --release --features aeron,iceoryx2 -- bill --technique spsc-mux,aeron,iceoryx2
//! ```

use launcher::Harness;
use std::process::ExitCode;

fn main() -> ExitCode {
    let harness = Harness::new();
    #[cfg(feature = "aeron")]
    let harness = harness.technique::<transports::aeron::Aeron>();
    #[cfg(feature = "iceoryx2")]
    let harness = harness.technique::<transports::iceoryx::Iceoryx2>();
    harness.main()
}
