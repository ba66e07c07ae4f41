//! The native half of the Python package: each method calls one of [`bulkhead::calls`]. A poll
//! copies the structures of [`bulkhead::layout`] into a buffer handed over at the start, which the
//! other half (`python/bulkhead/__init__.py`) reads as NumPy's structured array. The rows are kept
//! here and copied into Python's buffer: memory that other code may write cannot be a Rust slice.
#![deny(unsafe_code)]

use bulkhead::calls;
use bulkhead::codes::{BH_NOT_ATTACHED, BH_OVER, BH_VERSION};
use bulkhead::layout::{Context, Order, Report, Tick};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zerocopy::{Immutable, IntoBytes};

pyo3::create_exception!(
    bulkhead,
    Error,
    PyException,
    "A mistake, or what cannot be mended: ``args`` is what is wrong in words and the code (``bulkhead.layout``)."
);

/// A code that is a mistake.
fn mistake(code: i32) -> PyErr {
    Error::new_err((calls::text(code), code))
}

/// An array of structures, and Python's memory of the same size.
struct Array<T> {
    rows: Vec<T>,
    memory: PyBuffer<u8>,
}

impl<T: Clone + Default + IntoBytes + Immutable> Array<T> {
    /// Creates an array of as many rows as `memory` has: writable, contiguous bytes.
    fn with_memory(memory: PyBuffer<u8>, py: Python<'_>) -> PyResult<Self> {
        if !memory.len_bytes().is_multiple_of(size_of::<T>()) {
            return Err(PyValueError::new_err("the memory must be whole rows"));
        }
        let array = Self { rows: vec![T::default(); memory.len_bytes() / size_of::<T>()], memory };
        array.show(py)?;
        Ok(array)
    }

    /// Writes the rows to Python's memory.
    fn show(&self, py: Python<'_>) -> PyResult<()> {
        self.memory.copy_from_slice(py, self.rows.as_slice().as_bytes())
    }
}

/// This thread's line to its run.
#[pyclass(unsendable, subclass, module = "bulkhead._native")]
struct Line {
    reports: Array<Report>,
    ticks: Array<Tick>,
    /// The run is over for this strategy: no report will come.
    is_over: bool,
    /// The thread is attached, and has to finish.
    is_attached: bool,
}

#[pymethods]
impl Line {
    /// Attaches the calling thread and waits until the run begins. Both arguments are writable,
    /// contiguous bytes.
    #[new]
    fn new(py: Python<'_>, reports: PyBuffer<u8>, ticks: PyBuffer<u8>) -> PyResult<Self> {
        let (reports, ticks) = (Array::with_memory(reports, py)?, Array::with_memory(ticks, py)?);
        // Other Python threads may run while this one waits for the beginning.
        let is_attached = match py.detach(|| calls::attach(BH_VERSION)) {
            Ok(()) => true,
            Err(BH_OVER) => false,
            Err(code) => return Err(mistake(code)),
        };
        Ok(Self { reports, ticks, is_over: !is_attached, is_attached })
    }

    /// The structure `context` as bytes; zeros where the run was stopped before it began.
    fn _context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let context = if self.is_attached { calls::context().map_err(mistake)? } else { Context::default() };
        Ok(PyBytes::new(py, context.as_bytes()))
    }

    /// The position in an instrument that the strategy inherits from its predecessors: bought minus
    /// sold in 1e-8 units, and its average price in cents. Zeros in epoch 0.
    fn position(&self, instrument: u16) -> PyResult<(i64, i64)> {
        let position = calls::position(instrument).map_err(mistake)?;
        Ok((position.net, position.average_price))
    }

    /// Runs one duty cycle: writes the next reports to the beginning of the array and returns their
    /// number. None: none will come any more.
    #[pyo3(signature = (wait_ns=0))]
    fn poll(&mut self, py: Python<'_>, wait_ns: u64) -> PyResult<Option<usize>> {
        if self.is_over {
            return Ok(None);
        }
        let rows = &mut self.reports.rows;
        match calls::poll(rows.len(), wait_ns, |place, report| rows[place] = *report) {
            Ok(0) => Ok(Some(0)),
            Ok(taken) => self.reports.show(py).map(|()| Some(taken)),
            Err(BH_OVER) => {
                self.is_over = true;
                Ok(None)
            }
            Err(code) => Err(mistake(code)),
        }
    }

    /// Sends an order: its sequence, or below 0 why it could not be sent now.
    #[pyo3(signature = (price=0, quantity=0, *, side=0, venue=0, instrument=0, operation=0, target=0, order_type=0,
                        time_in_force=0, post_only=0, self_trade=0, condition=0, condition_value=0, trigger=0, delay_ns=0,
                        due_ns=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords: the fields of an order")]
    fn send(
        &mut self,
        price: i64,
        quantity: u64,
        side: u8,
        venue: u16,
        instrument: u16,
        operation: u8,
        target: u64,
        order_type: u8,
        time_in_force: u8,
        post_only: u8,
        self_trade: u8,
        condition: u8,
        condition_value: u64,
        trigger: u64,
        delay_ns: u64,
        due_ns: Option<u64>,
    ) -> PyResult<i64> {
        let order = Order {
            price,
            quantity,
            target,
            trigger,
            condition_value,
            delay_ns,
            venue,
            instrument,
            operation,
            side,
            order_type,
            time_in_force,
            post_only,
            self_trade,
            condition,
            reserved: [0; 5],
        };
        match calls::send(&order, due_ns) {
            // A sequence has far fewer than 63 bits.
            Ok(sequence) => Ok(sequence.cast_signed()),
            // The codes above this one are not mistakes: the order cannot be sent now.
            Err(code) if code > BH_NOT_ATTACHED => Ok(code.into()),
            Err(code) => Err(mistake(code)),
        }
    }

    /// Writes the tops of book that are newer than the last ones read to the beginning of their
    /// array, and returns their number.
    fn read(&mut self, py: Python<'_>) -> PyResult<usize> {
        let mut taken = 0;
        while taken < self.ticks.rows.len()
            && let Some(tick) = calls::board_read().map_err(mistake)?
        {
            self.ticks.rows[taken] = tick;
            taken += 1;
        }
        if taken > 0 {
            self.ticks.show(py)?;
        }
        Ok(taken)
    }

    /// Nanoseconds since the start of the run.
    fn now(&self) -> PyResult<u64> {
        calls::now().map_err(mistake)
    }

    /// Publishes a heartbeat of the strategy.
    fn heartbeat(&self) -> PyResult<()> {
        calls::heartbeat().map_err(mistake)
    }

    /// Finishes the strategy: sends no more orders, waits for the open ones, and publishes that it
    /// is done. A second call does nothing.
    fn finish(&mut self, py: Python<'_>) -> PyResult<()> {
        self.is_over = true;
        if !std::mem::take(&mut self.is_attached) {
            return Ok(());
        }
        py.detach(calls::finish).map_err(mistake)
    }
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Line>()?;
    module.add("Error", module.py().get_type::<Error>())?;
    module.add("VERSION", BH_VERSION)
}
