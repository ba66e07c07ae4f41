//! The technique table: name, code and, for what lives on the heap of one process, the twin over shared memory.
//!
//! A new technique is one file beside this one and one entry here. Command line, planner, sweeps, conformance tests
//! and benches go over [`Technique::ALL`]; from a value to the types behind it leads `with_link!`.

use crate::names;

/// Makes the enum and the macro that leads from its values to types. `$d` is a dollar sign: what the inner macro's own
/// variables begin with.
macro_rules! techniques {
    ($d:tt $($(#[$doc:meta])* $variant:ident = $name:literal, $module:ident::$link:ident $(, twin $twin:ident)?;)+) => {
        names! {
            /// What carries the two contended hand-offs (submit and completion).
            Technique { $($(#[$doc])* $variant = $name,)+ }
        }

        impl Technique {
            /// For a technique on the heap of one process, the technique to use across processes; else `None`.
            pub const fn twin(self) -> Option<Technique> {
                match self { $(Self::$variant => techniques!(@twin $($twin)?),)+ }
            }

            /// The segments that a link of this technique needs; none for what lives on the heap.
            pub fn segments(self, spec: &crate::ring::LinkSpec<'_>) -> Vec<crate::ring::SegmentSpec> {
                use crate::ring::Link;
                match self { $(Self::$variant => <crate::ring::$module::$link as Link>::segments(spec),)+ }
            }
        }

        /// `with_link!(technique, T => expression)`: the expression with `T` as that technique's
        /// [`Link`](crate::ring::Link). The one step from a name to monomorphised loops.
        #[macro_export]
        macro_rules! with_link {
            ($d technique:expr, $d link:ident => $d body:expr) => {
                match $d technique {
                    $($crate::ring::Technique::$variant => {
                        type $d link = $crate::ring::$module::$link;
                        $d body
                    })+
                }
            };
        }
    };
    (@twin $twin:ident) => { Some(Technique::$twin) };
    (@twin) => { None };
}

techniques! { $
    /// A true SPSC ring for every producer; the consumer scans them round-robin.
    SpscMux = "spsc-mux", spsc_mux::SpscMux;
    /// One bounded ring with a sequence stamp for each slot.
    ArrayQueue = "array-queue", array_queue::ArrayQueue;
    /// An unbounded list of blocks in a shared arena.
    Linked = "linked", linked::Linked;
    /// The ring of `array-queue`, and a receiver that can sleep and that every push looks out for.
    Channel = "channel", channel::Channel;
    /// A named pipe for each hand-off: the kernel's own queue of bytes.
    Pipe = "pipe", pipe::Pipe;
    /// Unix sockets that keep messages apart.
    UnixSeqpacket = "unix-seqpacket", unix_seqpacket::UnixSeqpacket;
    /// The real `std::sync::mpsc::channel`, unbounded, on the heap: threads only.
    StdMpsc = "std-mpsc", std_mpsc::StdMpsc, twin Linked;
    /// The real `crossbeam_channel::bounded`, on the heap: threads only.
    CrossbeamChannel = "crossbeam-channel", crossbeam_channel::CrossbeamChannel, twin Channel;
    /// The real `crossbeam_queue::ArrayQueue`, on the heap: threads only.
    CrossbeamArrayQueue = "crossbeam-array-queue", crossbeam_array_queue::CrossbeamArrayQueue, twin ArrayQueue;
    /// A real `ArrayQueue` for every producer, scanned round-robin, on the heap: threads only.
    ArrayQueueMux = "array-queue-mux", array_queue_mux::ArrayQueueMux, twin SpscMux;
}
