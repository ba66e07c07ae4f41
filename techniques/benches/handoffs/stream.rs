//! A one-way stream of 56-byte messages at full speed: our ring compared with the crate rtrb.
//!
//! Our ring has its sequence next to the seven words, rtrb's messages are aligned to cache lines,
//! so each message has its own line. Contestants alternate; a ratio is that of two adjacent
//! samples.

use crate::Options;
use crate::flow::{self, BATCH, Rate, check, message};
use crate::peer::{Job, Peer, Peers, Rtrb};
use crate::report::{BenchReport, FigureRow, Goal};
use shm::ring::spsc;
use system::floor::wait;
use techniques::element::LineMessage;

/// Sends through rtrb one by one, each message built in place.
#[inline(never)]
pub fn send_lines(producer: &mut rtrb::Producer<LineMessage>, count: u64) {
    for n in 0..count {
        wait::<true>(|| producer.push(LineMessage(message(n))).is_ok());
    }
}

/// Sends through the ring, each message built in place.
#[inline(never)]
pub fn send_in_place(producer: &mut spsc::Producer, count: u64) {
    let mut n = 0;
    while n < count {
        let most = BATCH.min(count - n) as u32;
        wait::<true>(|| {
            let pushed = producer.try_push_iter((0..most).map(|place| message(n + u64::from(place))));
            n += pushed as u64;
            pushed > 0
        });
    }
}

/// Receives through rtrb one by one, each message checked in place: with the generic loop it was a
/// third slower in some builds.
#[inline(never)]
pub fn take_lines(consumer: &mut rtrb::Consumer<LineMessage>, count: u64) -> f64 {
    let (mut rate, mut n) = (None, 0);
    while n < count {
        wait::<true>(
            #[inline(always)]
            || {
                let Ok(line) = consumer.pop() else { return false };
                check(n, &line.0);
                true
            },
        );
        rate.get_or_insert_with(Rate::start);
        n += 1;
    }
    rate.map_or(f64::NAN, |rate| rate.million_per_second(count - 1))
}

fn ours(peer: &mut Peer, count: u64) -> f64 {
    peer.job(Job::Push, count, |peer| flow::take(&mut peer.consumer, count))
}

fn rtrb(rtrb: &mut Rtrb, count: u64) -> f64 {
    rtrb.job(Job::Push, count, |rtrb| take_lines(&mut rtrb.consumer, count))
}

fn rtrb_chunks(rtrb: &mut Rtrb, count: u64) -> f64 {
    rtrb.job(Job::PushChunks, count, |rtrb| take_chunks(&mut rtrb.consumer, count))
}

/// Receives through rtrb in chunks, all available messages at a time.
#[inline(never)]
fn take_chunks(consumer: &mut rtrb::Consumer<LineMessage>, count: u64) -> f64 {
    let mut rate = None;
    let mut n = 0;
    while n < count {
        let mut available = 0;
        wait::<true>(|| {
            available = consumer.slots();
            available > 0
        });
        for message in consumer.read_chunk(available).expect("they were there") {
            check(n, &message.0);
            n += 1;
        }
        rate.get_or_insert_with(|| (Rate::start(), n));
    }
    let (rate, first) = rate.expect("at least one chunk");
    rate.million_per_second(count - first)
}

/// Measures all contestants, alternated.
pub fn run(options: &Options, peers: &mut Peers, report: &mut BenchReport) {
    let (samples, count) = options.effort(100, 10_000, 1 << 20);
    let mut rates: [Vec<f64>; 4] = Default::default();
    for _ in 0..samples {
        let Peers { process, thread, rtrb: other } = &mut *peers;
        rates[0].push(ours(process, count));
        rates[1].push(rtrb(other, count));
        rates[2].push(ours(thread, count));
        rates[3].push(rtrb_chunks(other, count));
    }
    let ratio = |a: usize, b: usize| rates[a].iter().zip(&rates[b]).map(|(a, b)| a / b).collect::<Vec<f64>>();
    let figures = [
        ("rtrb push and pop, threads", 1, 1, Goal::None),
        ("ours, processes", 0, 1, Goal::AtLeast(4.0)),
        ("ours, threads", 2, 1, Goal::None),
        ("rtrb chunks of 64, threads", 3, 1, Goal::None),
        ("ours, processes", 0, 3, Goal::None),
    ];
    let mut rows = Vec::new();
    for (what, which, over, goal) in figures {
        if over == 1 {
            rows.push(FigureRow::new(what, "M/s", rates[which].clone(), Goal::None));
        }
        if over != which {
            let unit = if over == 1 { "× rtrb" } else { "× rtrb chunks" };
            rows.push(FigureRow::new(if over == 1 { "" } else { what }, unit, ratio(which, over), goal));
        }
    }
    report
        .add("Stream of 56-byte messages (rtrb: its push and pop; its chunks are a row of their own)", rows);
}
