//! The engine's host's part: orders in, reports out, and the end of it when the far host is gone.
//!
//! A session in which an order was taken is the strategy's life: when it ends before both sides
//! wanted it, the strategy process ends as by a death. The engine fences it and cancels what is
//! open, and its next incarnation opens the next session. What was taken is written down before,
//! for the next incarnation to tell.

use crate::flag::Flag;
use crate::place::Place;
use crate::pump::{Part, Turn};
use bridge::frame::Echo;
use bridge::link::{Event, Link, Why};
use crossbeam_queue::ArrayQueue;
use launcher::protocol::wire::{Message, Order, Report};
use std::collections::VecDeque;

/// Messages between the bridge and the strategy, each way.
const LANE: usize = 4096;

/// What the bridge tells the strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// There is a session.
    Up,
    /// An order of the far host's, and when it went and came.
    Order(Order, Echo),
    /// The session is over before its time, and orders were taken in it.
    Gone(Why),
    /// The link is over: both sides have everything.
    Over,
}

/// What bridge and strategy share: two threads of one process.
#[derive(Debug)]
pub struct Lanes {
    /// To the strategy.
    pub told: ArrayQueue<Told>,
    /// To the bridge: reports, and what they are about.
    pub reports: ArrayQueue<(Report, Option<Echo>)>,
    /// The far host sends no more.
    pub far_ends: Flag,
    /// This side sends no more.
    pub ends: Flag,
}

impl Default for Lanes {
    fn default() -> Self {
        let (told, reports) = (ArrayQueue::new(LANE), ArrayQueue::new(LANE));
        Self { told, reports, far_ends: Flag::default(), ends: Flag::default() }
    }
}

/// The engine's host's part.
#[derive(Debug)]
pub struct Near<'a> {
    lanes: &'a Lanes,
    place: &'a Place,
    /// What found its lane full.
    waiting: VecDeque<Told>,
    taken: u64,
    is_gone: bool,
}

impl<'a> Near<'a> {
    /// Over those lanes, with no session yet.
    pub fn new(lanes: &'a Lanes, place: &'a Place) -> Self {
        Self { lanes, place, waiting: VecDeque::with_capacity(LANE), taken: 0, is_gone: false }
    }

    fn hand_over(&mut self) -> usize {
        let mut given = 0;
        while let Some(told) = self.waiting.front() {
            if self.lanes.told.push(*told).is_err() {
                break;
            }
            self.waiting.pop_front();
            given += 1;
        }
        given
    }
}

impl Part for Near<'_> {
    fn event(&mut self, event: Event, link: &mut Link) {
        match event {
            Event::Up { .. } => self.waiting.push_back(Told::Up),
            Event::Message(message, passage) => {
                if let Ok(order) = Order::from_message(message) {
                    self.taken += 1;
                    self.waiting
                        .push_back(Told::Order(order, Echo { sent: passage.sent, seen: passage.seen }));
                }
            }
            Event::Down { why, .. } if self.taken > 0 => {
                if let Err(error) = self.place.leave(link.past().words()) {
                    eprintln!("bulkhead-bridge serve: what was taken cannot be written down: {error}");
                }
                // What came before it is still carried out: it counts as taken.
                self.waiting.push_back(Told::Gone(why));
                self.is_gone = true;
            }
            Event::Down { .. } | Event::Fate { .. } => {}
            Event::Over => self.waiting.push_back(Told::Over),
        }
    }

    fn turn(&mut self, link: &mut Link, _: u64) -> Turn {
        let mut work = self.hand_over();
        if self.is_gone {
            return if self.waiting.is_empty() { Turn::Over } else { Turn::Busy };
        }
        while link.is_up() && !link.is_full() {
            let Some((report, about)) = self.lanes.reports.pop() else { break };
            let message: Message = report.to_message();
            work += usize::from(link.send(message, about).is_ok());
        }
        self.lanes.far_ends.set(link.has_heard_end());
        if self.lanes.ends.is_up() && self.lanes.reports.is_empty() {
            link.end();
        }
        match (link.is_over() && self.waiting.is_empty(), work) {
            (true, _) => Turn::Over,
            (false, 0) => Turn::Idle,
            (false, _) => Turn::Busy,
        }
    }
}
