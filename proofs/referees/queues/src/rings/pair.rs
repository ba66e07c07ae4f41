//! Measures a queue in each direction between two threads on two cores: round trips of one message,
//! and a stream of messages.

use system::clock::{Clock, Monotonic};
use system::floor::wait;
use system::pair::{BATCHES, Peer, median_ns};

/// A message: seven words, like bulkhead's.
pub type Words = [u64; 7];

/// The type of a queue's messages: [`Words`] without padding, or [`Line`].
pub trait Payload: Copy + Send + Sync + Default + From<Words> + Into<Words> + 'static {
    const NAME: &'static str;
}

impl Payload for Words {
    const NAME: &'static str = "56 bytes";
}

/// A message of 56 bytes, padded to a cache line of its own.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub struct Line(Words);

impl Payload for Line {
    const NAME: &'static str = "a line";
}

impl From<Words> for Line {
    #[inline(always)]
    fn from(words: Words) -> Self {
        Self(words)
    }
}

impl From<Line> for Words {
    #[inline(always)]
    fn from(line: Line) -> Self {
        line.0
    }
}

#[derive(Clone, Copy)]
enum Job {
    Echo,
    Stream,
}

#[derive(Clone, Copy)]
pub struct Sample {
    /// Round trip of one line that the two cores bounce, in nanoseconds.
    pub floor_ns: f64,
    /// A message there and one back.
    pub trip_ns: f64,
    /// A message of a stream.
    pub stream_ns: f64,
}

#[inline(always)]
fn message(n: u64) -> Words {
    core::array::from_fn(|word| n + word as u64)
}

#[inline(always)]
fn receive(mut pop: impl FnMut() -> Option<Words>) -> Words {
    let mut got = None;
    wait(
        #[inline(always)]
        || {
            got = pop();
            got.is_some()
        },
    );
    got.expect("waited for")
}

/// Creates a queue in each direction between this thread and one on core `core`. `ends` returns
/// both ends of a queue, of which neither blocks; `push` returns `true` if a message fitted.
///
/// Returns a function that measures one sample: round trips, and a stream of twenty times as many
/// messages. `None` if the cores moved during it: the core-to-core round trips before and after
/// differ by more than a tenth.
pub fn sampler<S: Send + 'static, R: Send + 'static>(
    core: u32,
    ends: impl Fn() -> (S, R),
    push: impl Fn(&mut S, Words) -> bool + Copy + Send + 'static,
    pop: impl Fn(&mut R) -> Option<Words> + Copy + Send + 'static,
) -> impl FnMut(u64) -> Option<Sample> {
    let ((mut sender, mut theirs), (mut back, mut receiver)) = (ends(), ends());
    let peer = Peer::start(core, move |(job, count)| match job {
        Job::Echo => {
            for _ in 0..count {
                let words = receive(|| pop(&mut theirs));
                wait(|| push(&mut back, words));
            }
        }
        Job::Stream => (0..count).map(message).for_each(|words| wait(|| push(&mut back, words))),
    });
    move |trips| {
        let each = trips.div_ceil(BATCHES);
        let mut measure = || {
            let trip_ns = peer.with((Job::Echo, each * BATCHES), || {
                median_ns(each, |numbers| {
                    for n in numbers {
                        let words = message(n);
                        wait(|| push(&mut sender, words));
                        let came = receive(|| pop(&mut receiver));
                        assert_eq!(came, words, "what comes back is what was sent");
                    }
                })
            });
            let count = trips * 20;
            let stream_ns = peer.with((Job::Stream, count), || {
                assert_eq!(receive(|| pop(&mut receiver)), message(0));
                let start = Monotonic.now();
                for n in 1..count {
                    assert_eq!(receive(|| pop(&mut receiver)), message(n), "lost, doubled or torn");
                }
                (Monotonic.now() - start) as f64 / (count - 1) as f64
            });
            (trip_ns, stream_ns)
        };
        let (floor_ns, (trip_ns, stream_ns)) = peer.between_floors(trips, &mut measure)?;
        Some(Sample { floor_ns, trip_ns, stream_ns })
    }
}
