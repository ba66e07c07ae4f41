//! Round trips of the heap crates' queues and of the rings that are ports of them, each with a
//! message of 56 bytes.
//!
//! Two threads on two cores, a link each way, one message in flight: each sample is the median of
//! batches of round trips. A crate is measured twice, with packed slots and with elements of whole
//! cache lines (`techniques::element`); ratios are those of adjacent samples.

use crate::Options;
use crate::common::Run;
use crate::report::{BenchReport, FigureRow, Goal};
use protocol::segments;
use shm::attached::Attached;
use shm::memory::RegionError;
use shm::ring::array_queue::ArrayQueue;
use shm::ring::spsc_mux::SpscMux;
use shm::ring::step::{Step, whole};
use shm::ring::{Consumer, Full, Link, LinkSpec, Producer};
use shm::ring::{Home, TechniqueInfo};
use shm::ring::{MESSAGE_WORDS, Message};
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, mpsc};
use system::clock::{Clock, Monotonic};
use system::floor::wait;
use techniques::Technique;
use techniques::array_queue_mux::ArrayQueueMux;
use techniques::channel::Channel;
use techniques::crossbeam_array_queue::CrossbeamArrayQueue;
use techniques::crossbeam_channel::CrossbeamChannel;
use techniques::element::{Element, LineMessage};
use techniques::linked::Linked;
use techniques::std_mpsc::StdMpsc;

/// Number of batches: a preemption affects one batch and not the median.
const BATCHES: u64 = 50;

fn receive(consumer: &mut impl Consumer) -> Message {
    let mut got = None;
    wait::<true>(|| {
        got = consumer.try_pop();
        got.is_some()
    });
    got.expect("waited for").1
}

fn send(producer: &mut impl Producer, message: &Message) {
    wait::<true>(|| producer.try_push(message).is_ok());
}

/// A link each way, and a thread that echoes all messages.
struct Contestant {
    /// Makes a number of round trips, and returns the nanoseconds of each.
    trips: Box<dyn FnMut(u64) -> f64>,
    ns: Vec<f64>,
}

impl Contestant {
    fn new<T: Link>(options: &Options) -> Self {
        let ends = || {
            // The plan's technique is not used: the types select it.
            let run = Run::new(Technique::default(), 1, options.capacity as u32);
            run.create::<T>();
            let (consumer, mut producers) = run.attach::<T>(&mut segments::attach(run.plan(), None));
            (consumer, producers.remove(0))
        };
        let ((mut theirs, mut there), (mut back, mut answers)) = (ends(), ends());
        let (orders, jobs) = mpsc::channel::<u64>();
        let core = options.cores.1;
        std::thread::spawn(move || {
            system::pin::pin_to(core).expect("an allowed core");
            for count in jobs {
                for _ in 0..count {
                    let message = receive(&mut theirs);
                    send(&mut answers, &message);
                }
            }
        });
        let trips = Box::new(move |count: u64| {
            orders.send(count).expect("the other thread waits");
            let mut samples = Vec::new();
            let batch = (count / BATCHES).max(1);
            let mut n = 0;
            while n < count {
                let (start, first) = (Monotonic.now(), n);
                while n < count.min(first + batch) {
                    let message = [n; MESSAGE_WORDS];
                    send(&mut there, &message);
                    assert_eq!(receive(&mut back), message, "what comes back is what was sent");
                    n += 1;
                }
                samples.push((Monotonic.now() - start) as f64 / (n - first) as f64);
            }
            samples.sort_by(f64::total_cmp);
            samples[samples.len() / 2]
        });
        Self { trips, ns: Vec::new() }
    }
}

/// The crate rtrb as a link of one producer, for comparison with a single ring of `spsc-mux`.
struct Rtrb<E>(PhantomData<E>);
struct RtrbProducer<E>(rtrb::Producer<E>);
struct RtrbConsumer<E>(rtrb::Consumer<E>);

/// Both ends until they are attached.
type RtrbEnds<E> = Mutex<(Option<rtrb::Producer<E>>, Option<rtrb::Consumer<E>>)>;

fn ring<E: Element>(spec: &LinkSpec, attached: &mut Attached<'_>) -> Arc<RtrbEnds<E>> {
    attached.shared(spec.name, || {
        let (producer, consumer) = rtrb::RingBuffer::new(spec.capacity as usize);
        Mutex::new((Some(producer), Some(consumer)))
    })
}

impl<E: Element> Producer for RtrbProducer<E> {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        whole(at, || self.0.push(E::from_message(message)).map_err(|_| Full))
    }
}

impl<E: Element> Consumer for RtrbConsumer<E> {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        self.0.pop().ok().map(|message| (Some(0), message.message()))
    }
}

impl<E: Element> Link for Rtrb<E> {
    const INFO: TechniqueInfo = TechniqueInfo::new("rtrb", Home::Heap);

    type Producer = RtrbProducer<E>;
    type Consumer = RtrbConsumer<E>;

    fn producer(
        spec: &LinkSpec,
        _: usize,
        attached: &mut Attached<'_>,
    ) -> Result<RtrbProducer<E>, RegionError> {
        Ok(RtrbProducer(ring(spec, attached).lock().unwrap().0.take().expect("one producer")))
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<RtrbConsumer<E>, RegionError> {
        Ok(RtrbConsumer(ring(spec, attached).lock().unwrap().1.take().expect("one consumer")))
    }
}

/// A crate's port, the crate with whole cache lines, the crate with packed slots.
type Family = (&'static str, [Contestant; 3]);

/// Measures all families, alternated.
pub fn run(options: &Options, report: &mut BenchReport) {
    let (samples, count) = options.effort(101, 1_000, 5_000);
    let mut families: Vec<Family> = vec![
        (
            "array-queue, crossbeam-array-queue",
            [
                Contestant::new::<ArrayQueue>(options),
                Contestant::new::<CrossbeamArrayQueue<LineMessage>>(options),
                Contestant::new::<CrossbeamArrayQueue<Message>>(options),
            ],
        ),
        (
            "channel, crossbeam-channel",
            [
                Contestant::new::<Channel>(options),
                Contestant::new::<CrossbeamChannel<LineMessage>>(options),
                Contestant::new::<CrossbeamChannel<Message>>(options),
            ],
        ),
        (
            "linked, std-mpsc",
            [
                Contestant::new::<Linked>(options),
                Contestant::new::<StdMpsc<LineMessage>>(options),
                Contestant::new::<StdMpsc<Message>>(options),
            ],
        ),
        (
            "spsc-mux of one producer, rtrb",
            [
                Contestant::new::<SpscMux>(options),
                Contestant::new::<Rtrb<LineMessage>>(options),
                Contestant::new::<Rtrb<Message>>(options),
            ],
        ),
        (
            "spsc-mux, array-queue-mux",
            [
                Contestant::new::<SpscMux>(options),
                Contestant::new::<ArrayQueueMux<LineMessage>>(options),
                Contestant::new::<ArrayQueueMux<Message>>(options),
            ],
        ),
    ];
    system::pin::pin_to(options.cores.0).expect("an allowed core");
    for _ in 0..samples {
        for (_, family) in &mut families {
            for contestant in family {
                let ns = (contestant.trips)(count);
                contestant.ns.push(ns);
            }
        }
    }
    for (title, [port, lines, malloc]) in families {
        let ratio = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a / b).collect();
        let rows = vec![
            FigureRow::new("the crate, as malloc puts it", "ns", malloc.ns.clone(), Goal::None),
            FigureRow::new("the crate, whole lines", "ns", lines.ns.clone(), Goal::None),
            FigureRow::new("", "× malloc", ratio(&lines.ns, &malloc.ns), Goal::None),
            FigureRow::new("the port", "ns", port.ns.clone(), Goal::None),
            FigureRow::new("", "× malloc", ratio(&port.ns, &malloc.ns), Goal::None),
            FigureRow::new("", "× whole lines", ratio(&port.ns, &lines.ns), Goal::None),
        ];
        report.add(&format!("Round trip between two threads: {title}"), rows);
    }
}
