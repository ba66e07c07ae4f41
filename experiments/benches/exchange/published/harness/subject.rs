//! What is measured: figures, and the work that gives a sample of each.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

/// Counts of a run by name, for the tests: orders, trades, messages.
pub type Counts = BTreeMap<&'static str, u64>;

/// The unit of a benchmark's figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Nanoseconds,
    Microseconds,
    Milliseconds,
    /// Millions of orders a second.
    MillionPerSecond,
    Kibibytes,
    Mebibytes,
    Allocations,
    /// How many times the time of one subject is the other's.
    Times,
}

impl Unit {
    /// Returns the symbol of the unit, such as `ns`.
    pub fn label(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::Microseconds => "µs",
            Unit::Milliseconds => "ms",
            Unit::MillionPerSecond => "M/s",
            Unit::Kibibytes => "KiB",
            Unit::Mebibytes => "MiB",
            Unit::Allocations => "",
            Unit::Times => "×",
        }
    }

    /// Returns `true` if a lower figure in this unit is the better one.
    pub fn is_lower_better(self) -> bool {
        !matches!(self, Unit::MillionPerSecond | Unit::Times)
    }

    /// Converts nanoseconds to this unit.
    pub fn convert_ns(self, ns: f64) -> f64 {
        match self {
            Unit::Microseconds => ns / 1e3,
            Unit::Milliseconds => ns / 1e6,
            _ => ns,
        }
    }
}

/// A figure of a published document, and a remark on ours.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Name of the row in the document, or ours for a row that it does not have.
    pub name: &'static str,
    /// The figure of the document's newest phase; `None` for a row that it does not have.
    pub theirs: Option<f64>,
    pub unit: Unit,
    /// The row measures the standard library, as theirs did: neither ahead nor behind.
    pub is_reference: bool,
    pub remark: &'static str,
}

impl Figure {
    /// Creates a figure that the published document has, with the document's value.
    pub fn new(name: &'static str, theirs: f64, unit: Unit, remark: &'static str) -> Self {
        Figure { name, theirs: Some(theirs), unit, is_reference: false, remark }
    }

    /// Marks the figure as one of the standard library.
    pub fn reference(self) -> Self {
        Figure { is_reference: true, ..self }
    }

    /// Marks the figure as one that the document does not have.
    pub fn unpublished(self) -> Self {
        Figure { theirs: None, ..self }
    }
}

/// A benchmarked piece of work, and the figures of which each of its runs gives one sample each.
pub struct Group {
    pub figures: Vec<Figure>,
    pub subject: Box<dyn Subject>,
}

impl Group {
    /// Creates a group of one figure: the time of a run of `case`.
    pub fn timed<I, P, R, C>(figure: Figure, case: Case<P, R, C>) -> Self
    where
        P: FnMut() -> I + 'static,
        R: FnMut(&mut I) + 'static,
        C: FnMut(I) -> Counts + 'static,
    {
        Group { figures: vec![figure], subject: Box::new(Timed { unit: figure.unit, case }) }
    }
}

/// A subject of a benchmark, which can be run repeatedly and gives a value for each of its figures.
pub trait Subject {
    /// Runs it and returns a value for each figure.
    fn sample(&mut self) -> Vec<f64>;
    /// Runs it once, untimed, and returns what happened.
    fn count(&mut self) -> Counts;
}

/// A case of a benchmark: a timed run with a fresh input each time.
pub struct Case<P, R, C> {
    /// Runs between two looks at the clock.
    pub batch: usize,
    /// Operations of a run of which the figure is one.
    pub operations: usize,
    /// Creates the input; not timed.
    pub prepare: P,
    /// Uses it, and is timed.
    pub run: R,
    /// The input is dropped within the measured time.
    pub drop_is_timed: bool,
    /// Counts what the run did; instead of the drop, not timed.
    pub count: C,
}

struct Timed<P, R, C> {
    unit: Unit,
    case: Case<P, R, C>,
}

impl<I, P, R, C> Subject for Timed<P, R, C>
where
    P: FnMut() -> I,
    R: FnMut(&mut I),
    C: FnMut(I) -> Counts,
{
    fn sample(&mut self) -> Vec<f64> {
        let Case { batch, operations, prepare, run, drop_is_timed, .. } = &mut self.case;
        // Warms up the code, which other subjects have displaced.
        run(&mut prepare());
        // Boxed: moving an input takes no time of its own, however large it is.
        let mut inputs: Vec<Box<I>> = (0..*batch).map(|_| Box::new(prepare())).collect();
        // Above the inputs in the heap: otherwise their drop may return memory to the kernel.
        let last = Box::new(prepare());
        let started = Instant::now();
        if *drop_is_timed {
            for mut input in inputs {
                run(&mut input);
                black_box(&input);
            }
        } else {
            inputs.iter_mut().for_each(|input| run(input));
        }
        let elapsed_ns = started.elapsed().as_nanos() as f64;
        drop(last);
        vec![self.unit.convert_ns(elapsed_ns / (*batch * *operations) as f64)]
    }

    fn count(&mut self) -> Counts {
        let mut input = (self.case.prepare)();
        (self.case.run)(&mut input);
        (self.case.count)(input)
    }
}
