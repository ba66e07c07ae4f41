//! From a technique's name to the loops that are compiled for it: a table, filled once, at the start of the program.

use super::ends::{Job, consume, produce};
use super::plan::LabPlan;
use anyhow::Result;
use protocol::plan::Technique;
use roles::registry::Links;
use shm::attached::Attached;
use shm::ring::Link;
use std::sync::OnceLock;
use techniques::Visitor;

/// An end that is attached: one dynamic call a thread.
pub(super) type End = Box<dyn FnOnce(Job<'_>) + Send>;

/// The two ends of a technique.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    /// The producer of that number, of all queues.
    pub producer: fn(&LabPlan, u16, &mut Attached<'_>) -> Result<End>,
    /// The consumer of that number.
    pub consumer: fn(&LabPlan, u16, &mut Attached<'_>) -> Result<End>,
}

fn producer<L: Link>(plan: &LabPlan, index: u16, attached: &mut Attached<'_>) -> Result<End> {
    let mut queues = Vec::new();
    for consumer in 0..plan.consumers {
        let name = LabPlan::queue(consumer);
        queues.push(attached.producer::<L>(&plan.link(&name), index.into())?);
    }
    Ok(Box::new(move |job| produce(queues, job)))
}

fn consumer<L: Link>(plan: &LabPlan, index: u16, attached: &mut Attached<'_>) -> Result<End> {
    let name = LabPlan::queue(index);
    let queue = attached.consumer::<L>(&plan.link(&name))?;
    Ok(Box::new(move |job| consume(queue, job)))
}

impl Ends {
    /// Those of a technique.
    pub(super) fn of<L: Link>() -> Self {
        Self { producer: producer::<L>, consumer: consumer::<L> }
    }
}

static TABLE: OnceLock<Vec<(Technique, Ends)>> = OnceLock::new();

struct Fill(Vec<(Technique, Ends)>);

impl Visitor for Fill {
    fn visit<L: Link>(&mut self) {
        self.0.push((Technique::of::<L>(), Ends::of::<L>()));
    }
}

fn table<T: Links>() -> Vec<(Technique, Ends)> {
    let mut fill = Fill(Vec::new());
    T::each(&mut fill);
    fill.0
}

/// Makes these techniques, and the built-in ones, those of the lab.
pub(crate) fn install<T: Links>() {
    let _ = TABLE.set(table::<T>());
}

/// The ends of that technique; `None` for one that was never installed.
pub(super) fn ends_of(technique: Technique) -> Option<Ends> {
    let table = TABLE.get_or_init(table::<()>);
    table.iter().find(|(known, _)| *known == technique).map(|(_, ends)| *ends)
}
