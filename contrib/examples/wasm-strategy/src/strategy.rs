//! The strategy around an instance of a module.

use crate::epochs;
use crate::interface::{self, Host};
use crate::program::Program;
use bulkhead::layout;
use launcher::protocol::wire::Report;
use launcher::strategy::{Context, Orders, Strategy};
use std::sync::{Arc, OnceLock};
use wasmtime::{Store, StoreLimitsBuilder, Trap, TypedFunc};

/// Maximum number of entries of a module's tables.
const TABLE_ENTRIES: usize = 10_000;

/// A strategy that is a WebAssembly module. What the module does wrong is a panic of its thread:
/// that ends this strategy alone, where the run continues after a death.
pub struct WasmStrategy {
    program: Arc<Program>,
    /// Or why there is none. Setup must not end the process of the other strategies.
    running: Result<Running, String>,
    /// The epochs advance, or cannot: a hang is ended within its call, or by the launcher.
    has_epochs: bool,
}

/// An instance of a module.
struct Running {
    store: Store<Host>,
    cycle: TypedFunc<(), ()>,
    #[cfg(test)]
    instance: wasmtime::Instance,
}

impl WasmStrategy {
    /// Creates a strategy with its own instance of the program's WebAssembly module.
    pub fn new(program: &Arc<Program>, context: &Context) -> Self {
        let running = instantiate(program, context);
        Self { program: Arc::clone(program), running, has_epochs: false }
    }

    /// Returns the size of the module's memory in bytes; 0 without an instance.
    pub fn memory_bytes(&self) -> usize {
        let memory = |it: &Running| it.store.data().memory.map(|memory| memory.data_size(&it.store));
        self.running.as_ref().ok().and_then(memory).unwrap_or(0)
    }

    /// Calls the module for one duty cycle. Returns the amount of its work, or why it has ended.
    #[inline]
    fn call(&mut self, orders: &mut impl Orders) -> Result<usize, String> {
        let Running { store, cycle, .. } = self.running.as_mut().map_err(|why| why.clone())?;
        let started = store.data_mut().begin_call();
        store.set_epoch_deadline(epochs::CALL_EPOCHS);
        let ended = started.and_then(|()| interface::with_orders(orders, || cycle.call(&mut *store, ())));
        let deadline_ms = self.program.settings().deadline_ms;
        ended.map_err(|error| why_ended(&error, deadline_ms))?;
        Ok(store.data().work())
    }
}

impl Strategy for WasmStrategy {
    const ON_MARKET_DATA: bool = true;

    /// The module reads market data itself.
    #[inline(always)]
    fn on_turn(&mut self, orders: &mut impl Orders) -> usize {
        self.on_cycle(orders)
    }

    #[inline]
    fn on_cycle(&mut self, orders: &mut impl Orders) -> usize {
        if self.finished() {
            return 0;
        }
        if !self.has_epochs {
            start_epochs(&self.program);
            self.has_epochs = true;
        }
        match self.call(orders) {
            Ok(work) => work,
            Err(why) => panic!("module {}: {why}", self.program.name()),
        }
    }

    #[inline]
    fn on_report(&mut self, report: &Report, _: &mut impl Orders) {
        if let Ok(running) = &mut self.running {
            running.store.data_mut().push_report(report.into());
        }
    }

    fn next_due(&self) -> u64 {
        self.running.as_ref().map_or(0, |running| running.store.data().wake_at())
    }

    #[inline]
    fn finished(&self) -> bool {
        self.running.as_ref().is_ok_and(|running| running.store.data().is_finished())
    }
}

/// Creates an instance; its start function may take as long as a call.
fn instantiate(program: &Program, context: &Context) -> Result<Running, String> {
    let ready = program.ready()?;
    let settings = program.settings();
    let limits = StoreLimitsBuilder::new()
        .memory_size(settings.memory_bytes)
        .table_elements(TABLE_ENTRIES)
        .tables(1)
        .memories(1)
        .instances(1)
        .build();
    let engine = ready.module().engine();
    let create = || -> wasmtime::Result<Running> {
        let mut store = Store::new(engine, Host::new(describe(context), limits));
        store.limiter(|host| &mut host.limits);
        store.set_epoch_deadline(epochs::CALL_EPOCHS);
        let instance = ready.instantiate(&mut store)?;
        let memory = instance.get_memory(&mut store, "memory");
        let memory = memory.ok_or_else(|| wasmtime::format_err!("it exports no memory"))?;
        let cycle = instance.get_typed_func(&mut store, "bh_cycle").map_err(|_| {
            wasmtime::format_err!("it exports no function bh_cycle without parameters and results")
        })?;
        store.data_mut().memory = Some(memory);
        Ok(Running {
            store,
            cycle,
            #[cfg(test)]
            instance,
        })
    };
    let created = epochs::during(engine, settings.deadline_ms, create);
    created.map_err(|error: wasmtime::Error| why_ended(&error, settings.deadline_ms))
}

/// Returns the context of the C interface. The instruments are those of the schedule: a strategy
/// in the engine's program is not told how many the run has.
fn describe(context: &Context) -> layout::Context {
    let highest = context.schedule().map(|entry| entry.request.instrument).max().unwrap_or(0);
    layout::Context {
        orders: context.orders,
        max_open: context.max_open,
        sent_before: context.sent_before,
        strategy: context.strategy,
        strategies: context.strategies,
        venues: context.venues,
        instruments: highest.saturating_add(1),
        epoch: context.epoch,
        market_data: 1,
        reserved: [0; 5],
    }
}

/// Starts the epochs of this process, once.
#[cold]
fn start_epochs(program: &Program) {
    static STARTED: OnceLock<bool> = OnceLock::new();
    if let Ok(ready) = program.ready() {
        STARTED.get_or_init(|| epochs::start(ready.module().engine(), program.settings().deadline_ms));
    }
}

/// Returns why a call has ended, for people.
#[cold]
fn why_ended(error: &wasmtime::Error, deadline_ms: u64) -> String {
    match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => {
            format!("interrupted: one call took longer than {deadline_ms} ms (WASM_DEADLINE_MS)")
        }
        Some(trap) => trap.to_string(),
        None => error.root_cause().to_string(),
    }
}

#[cfg(test)]
mod tests;
