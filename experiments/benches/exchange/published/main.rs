//! Every row of the matching engine's published tables by its name, next to its figure.
//!
//! `cargo bench -p benches --bench published-exchange [-- NAME… --json FILE --rounds N]`. The
//! document is the seed `002_2ba5301156b751b2.txt`, a performance page in seven phases; theirs is
//! the figure of the newest phase that has the row. Its rows for log and snapshots are in the bench
//! `published-journal`.
//!
//! # How it is measured
//!
//! Wall time. All rows take a sample each, in turns; a row's figure is the median of its samples,
//! and low and high are the first and third quartile. Before each sample a row runs once untimed.
//! The document names neither books nor loads. They follow the public benches of its project
//! (ferrox): orders of quantity 10, a new book for each run, up to ten of which are prepared before
//! the clock starts. As there, a book is dropped within the measured time. It is for any price up
//! to 2^40, the default, and reserves two prices for each order.
//!
//! # JSON
//!
//! `{"seed": "002", "rows": […]}`, a row each:
//!
//! | field | value |
//! |---|---|
//! | `name` | the document's name of the row, or ours if it has none |
//! | `theirs` | its figure in `unit`; `null` for a row that only we have |
//! | `theirs_machine` | what the document says of its machine |
//! | `ours`, `low`, `high` | median and quartiles in `unit` |
//! | `unit` | `ns`, `µs`, `ms`, `M/s`, `KiB`, `MiB`, `×`, or empty for a count |
//! | `better` | `lower` or `higher` |
//! | `samples` | number of samples |
//! | `ratio` | ours divided by theirs, or `null` |
//! | `verdict` | a word, see below |
//! | `remark` | what is timed, and what differs |
//! | `command` | the command that measures this row |
//! | `machine`, `commit`, `date` | of our figure |
//!
//! Verdicts are `ahead`, `equal` (within 5 %), `behind`, `std` and `extra`. `std` is a row of the
//! standard library's channel, measured here as there; `extra` is a row that only we have. The
//! commit ends in `, changed` if files that git tracks differ from it.

mod catalog;
mod harness;

#[global_allocator]
static ALLOCATOR: system::alloc::CountingAllocator = system::alloc::CountingAllocator;

fn main() -> std::process::ExitCode {
    harness::main("published-exchange", catalog::groups(1))
}
