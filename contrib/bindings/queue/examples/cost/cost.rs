//! The cost of a push and a pop from Rust: see contrib/bindings/queue/cost.sh and cost.c.
//! `cost MESSAGES WORDS`.

use shm::queue::{self, Receiver, Sender};
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

#[inline(never)]
fn push_and_pop<const W: usize>(
    sender: &mut Sender<[u64; W]>,
    receiver: &mut Receiver<[u64; W]>,
    count: u64,
) -> Result<(), Box<dyn Error>> {
    let mut sent = [0; W];
    for number in 0..count {
        sent[0] = number;
        sender.push(black_box(&sent))?;
        let received = receiver.pop()?.ok_or("a message was pushed")?;
        if black_box(&received)[0] != number {
            return Err("another message arrived".into());
        }
    }
    Ok(())
}

fn measure<const W: usize>(count: u64, one_thread: bool) -> Result<(), Box<dyn Error>> {
    let mut queue = queue::sealed::<[u64; W]>(1, 1024)?;
    let (mut sender, mut receiver) = (queue.sender()?, queue.receiver()?);
    let per_message = |start: Instant| start.elapsed().as_nanos() as f64 / count as f64;
    let start = Instant::now();
    push_and_pop(&mut sender, &mut receiver, count)?;
    print!("{:.2}", per_message(start));
    if one_thread {
        println!();
        return Ok(());
    }
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sent = [0; W];
            for number in 0..count {
                sent[0] = number;
                while sender.push(black_box(&sent)).is_err() {}
            }
        });
        for number in 0..count {
            let received = loop {
                if let Some(received) = receiver.pop()? {
                    break received;
                }
            };
            if black_box(&received)[0] != number {
                return Err("another message arrived".into());
            }
        }
        println!(" {:.2}", per_message(start));
        Ok(())
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [count, words, rest @ ..] = &words[..] else { return Err("cost MESSAGES WORDS".into()) };
    let (count, one_thread) = (count.parse()?, !rest.is_empty());
    match words.as_str() {
        "1" => measure::<1>(count, one_thread),
        "3" => measure::<3>(count, one_thread),
        "7" => measure::<7>(count, one_thread),
        "125" => measure::<125>(count, one_thread),
        _ => Err("words of a message: 1, 3, 7 or 125".into()),
    }
}
