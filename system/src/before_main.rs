//! Runs a function before `main`, while the process has one thread: for test programs, whose `main`
//! the test harness writes.

/// Runs a function before `main`. Some system calls need a process of one thread: a user namespace
/// of its own, for example. The function may use the standard library, starts no thread, and does
/// not panic.
///
/// ```ignore
/// system::before_main!(enter_namespace);
/// ```
#[macro_export]
macro_rules! before_main {
    ($function:path) => {
        const _: () = {
            extern "C" fn run() {
                $function();
            }
            // SAFETY: the C runtime calls each entry of this section once, before `main`, with the
            // C calling convention; it passes arguments, which a function without any ignores. The
            // standard library has its own entry in a section that is sorted first.
            #[used]
            #[unsafe(link_section = ".init_array")]
            static ENTRY: extern "C" fn() = run;
        };
    };
}
