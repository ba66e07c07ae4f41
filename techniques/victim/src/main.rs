//! The victim process of `tests/all/crash`: one end of a hand-off or a board's writer, controlled
//! by a tracer.
//!
//! Usage: `victim RUN producer INDEX`, `victim RUN consumer 0` or `victim RUN board 0`; `victim`
//! alone only stops once. It stops (SIGSTOP) when it is ready, carries out its commands when the
//! tracer continues it, and stops again. The pushes and pops are those of the release build, each
//! in a function of its own, so that a tracer can stop at its first and last instruction.

#![forbid(unsafe_code)]

use nix::sys::ptrace;
use nix::sys::signal::{Signal, raise};
use protocol::segments::{self, open_control, submit_link};
use protocol::wire::{MESSAGE_WORDS, Message};
use shm::board::Writer;
use shm::memory::{AtomicWords, Region};
use shm::ring::{Consumer, Producer};
use shm::sync::Ordering::Relaxed;
use techniques::with_link;

#[path = "../../tests/all/crash/commands.rs"]
mod commands;
use commands::{
    BOARD, BOARD_CELL, COUNT, DONE, ENTRY, LOG, LOG_ENTRIES, NUMBER, RETIRE, RETIRE_ENTRY, WORDS,
    board_value, commands_name, message,
};

/// Pushes a message; single-stepped by the tracer.
#[inline(never)]
fn push<P: Producer>(producer: &mut P, message: &Message) -> bool {
    producer.try_push(message).is_ok()
}

/// Pops a message; single-stepped by the tracer. The message is returned by value, as in the
/// engine.
#[inline(never)]
fn pop<C: Consumer>(consumer: &mut C, into: &mut Message) -> bool {
    match consumer.try_pop() {
        Some((_, message)) => {
            *into = message;
            true
        }
        None => false,
    }
}

#[inline(never)]
fn retire<C: Consumer>(consumer: &mut C, dead: usize) -> bool {
    consumer.retire(dead)
}

#[inline(never)]
fn write(writer: &mut Writer, version: u64, value: &[u64]) -> bool {
    writer.write(BOARD_CELL, version, value) == version
}

/// Stops, and returns when the tracer has new commands.
fn stop() {
    raise(Signal::SIGSTOP).expect("a process may stop itself");
}

/// Pushes as often as commanded, and counts the accepted messages.
fn produce<P: Producer>(mut producer: P, index: usize, commands: &AtomicWords) {
    commands[ENTRY].store(push::<P> as fn(&mut P, &Message) -> bool as usize as u64, Relaxed);
    loop {
        stop();
        for _ in 0..commands[COUNT].load(Relaxed) {
            let message = message(index, commands[NUMBER].load(Relaxed));
            if push(&mut producer, &message) {
                commands[NUMBER].fetch_add(1, Relaxed);
                commands[DONE].fetch_add(1, Relaxed);
            }
        }
    }
}

fn log_message(commands: &AtomicWords, message: &Message) {
    let done = commands[DONE].load(Relaxed);
    let entry = LOG + done as usize % LOG_ENTRIES * MESSAGE_WORDS;
    for (word, value) in commands[entry..].iter().zip(message) {
        word.store(*value, Relaxed);
    }
    commands[DONE].store(done + 1, Relaxed);
}

/// Pops as often as commanded, and logs the messages.
fn consume<C: Consumer>(mut consumer: C, commands: &AtomicWords) {
    commands[ENTRY].store(pop::<C> as fn(&mut C, &mut Message) -> bool as usize as u64, Relaxed);
    commands[RETIRE_ENTRY].store(retire::<C> as fn(&mut C, usize) -> bool as usize as u64, Relaxed);
    loop {
        stop();
        if let Some(dead) = commands[RETIRE].load(Relaxed).checked_sub(1) {
            let retired = retire(&mut consumer, dead as usize);
            commands[DONE].fetch_add(u64::from(retired), Relaxed);
            continue;
        }
        for _ in 0..commands[COUNT].load(Relaxed) {
            let mut message = [0; MESSAGE_WORDS];
            if pop(&mut consumer, &mut message) {
                log_message(commands, &message);
            }
        }
    }
}

/// Writes to the board as often as commanded, as the first writer or as the successor of a dead
/// one.
fn write_board(mut writer: Writer, commands: &AtomicWords) {
    commands[ENTRY].store(write as fn(&mut Writer, u64, &[u64]) -> bool as usize as u64, Relaxed);
    loop {
        stop();
        for _ in 0..commands[COUNT].load(Relaxed) {
            let version = writer.version(BOARD_CELL) + 1;
            let value = board_value(version, writer.shape().words());
            commands[DONE].fetch_add(u64::from(write(&mut writer, version, &value)), Relaxed);
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    ptrace::traceme().expect("a parent that may trace");
    let [run, role, index] = &arguments[..] else { return stop() };
    let index: usize = index.parse().expect("an index");
    let (control, plan) = open_control(run).expect("a run");
    let commands = Region::open(&plan.segment_name(&commands_name(role, index)))
        .expect("commands")
        .words()
        .slice(0, WORDS);
    if role == "board" {
        let words = Region::open(&plan.segment_name(BOARD)).expect("a board").words();
        return write_board(Writer::attach(&words).expect("a board"), &commands);
    }
    let link = submit_link(&plan);
    let mut attached = segments::attach_with(&plan, None, &control);
    with_link!(plan.technique, T => match role.as_str() {
        "producer" => produce(attached.producer::<T>(&link, index).expect("a link"), index, &commands),
        _ => consume(attached.consumer::<T>(&link).expect("a link"), &commands),
    });
}
