//! The launcher extended with user-defined strategies, techniques and venues.

use crate::cli::Cli;
use crate::commands;
use core::marker::PhantomData;
use gateway::{Venue, VenueContext};
use planner::config::components::{NameError, StrategyKind, VenueKind, register};
use planner::host::signals;
use roles::registry::{Links, MakeStrategy, MakeVenue, Registry};
use runtime::progress::print_warning;
use shm::ring::Link;
use std::process::ExitCode;
use std::sync::Arc;
use strategy::{Context, Strategy};
use system::memory;
use techniques::RegisterError;
use thiserror::Error;

/// The minimum address-space or data limit of the process, in bytes: below it not even the error
/// can be reported.
const MIN_MEMORY: u64 = 256 << 20;

/// The minimum stack of the main thread, in bytes: below it the stack would overflow without an
/// error message.
const MIN_STACK: u64 = 1 << 20;

/// The launcher, extended with user-defined strategies, techniques and venues.
///
/// A program whose `main` is this is the launcher with these names added: it plans, starts,
/// supervises and reports, and it executes itself for every process of a run. Each strategy is
/// compiled with each technique: a user-defined part runs through the same loops as bulkhead's,
/// without a dynamic call.
///
/// ```no_run
/// use launcher::strategy::{Context, OrderRequest, Orders, Strategy};
/// use std::process::ExitCode;
///
/// /// Sends one order at a time.
/// struct PingPong;
///
/// impl Strategy for PingPong {
///     fn on_cycle(&mut self, orders: &mut impl Orders) -> usize {
///         // All orders of the plan sent, or one still open: nothing to do.
///         usize::from(orders.open() == 0 && orders.send(OrderRequest::to_venue(0)).is_ok())
///     }
///
///     fn finished(&self) -> bool {
///         false
///     }
/// }
///
/// fn main() -> ExitCode {
///     // ping-pong run --strategy ping-pong --orders 10k
///     launcher::Harness::new().strategy("ping-pong", |_: &Context| PingPong).main()
/// }
/// ```
///
/// Do nothing before [`Harness::main`] that only one process should do: every process of a run
/// begins there.
pub struct Harness<T = (), P = ()> {
    parts: P,
    _techniques: PhantomData<T>,
}

/// An error of adding a user-defined strategy, technique or venue.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HarnessError {
    /// The name of a strategy or venue is invalid or already taken.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The name of a technique is invalid or already taken.
    #[error(transparent)]
    Technique(#[from] RegisterError),
}

/// A user-defined strategy: its name and the function that creates it.
pub struct OwnStrategy<S> {
    name: &'static str,
    make: MakeStrategy<S>,
}

/// A user-defined venue: its name and the function that creates it.
pub struct OwnVenue<V> {
    name: &'static str,
    make: MakeVenue<V>,
}

/// A list of user-defined strategies and venues as a type, so that each is compiled into the
/// measured loops.
pub trait Parts {
    /// Adds the strategies and venues to the registry, each compiled with each technique.
    ///
    /// # Errors
    /// A name that is taken or invalid.
    fn add<T: Links>(self, registry: &mut Registry) -> Result<(), NameError>;
}

impl Parts for () {
    fn add<T: Links>(self, _: &mut Registry) -> Result<(), NameError> {
        Ok(())
    }
}

impl<S: Strategy + Send + 'static, Rest: Parts> Parts for (OwnStrategy<S>, Rest) {
    fn add<T: Links>(self, registry: &mut Registry) -> Result<(), NameError> {
        let (OwnStrategy { name, make }, rest) = self;
        rest.add::<T>(registry)?;
        register::<StrategyKind>(name, None)?;
        registry.add_strategy::<T, S>(name, make);
        Ok(())
    }
}

impl<V: Venue + 'static, Rest: Parts> Parts for (OwnVenue<V>, Rest) {
    fn add<T: Links>(self, registry: &mut Registry) -> Result<(), NameError> {
        let (OwnVenue { name, make }, rest) = self;
        rest.add::<T>(registry)?;
        register::<VenueKind>(name, Some(V::INFO))?;
        registry.add_venue::<T, V>(name, make);
        Ok(())
    }
}

impl Harness {
    /// Creates a launcher with the built-in strategies, techniques and venues only.
    pub const fn new() -> Self {
        Self { parts: (), _techniques: PhantomData }
    }
}

/// Runs the launcher with the built-in strategies, techniques and venues only. Not generic, so that
/// every technique, strategy and venue is compiled once in this crate, not again in each program.
#[inline(never)]
pub fn main() -> ExitCode {
    Harness::new().main()
}

impl Default for Harness {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Links, P: Parts> Harness<T, P> {
    /// Adds a user-defined strategy to the launcher, for `--strategy NAME`. `make` is called once
    /// for each, in its own process, before the run begins; [`Context`] distinguishes them. A name
    /// is 1 to 32 characters of a-z, 0-9 and -.
    #[must_use]
    pub fn strategy<U: Strategy + Send + 'static>(
        self,
        name: &'static str,
        make: impl Fn(&Context) -> U + Send + Sync + 'static,
    ) -> Harness<T, (OwnStrategy<U>, P)> {
        let parts = (OwnStrategy { name, make: Arc::new(make) }, self.parts);
        Harness { parts, _techniques: PhantomData }
    }

    /// Adds a user-defined venue to the launcher, for `--venue NAME`. `make` is called once for
    /// each.
    #[must_use]
    pub fn venue<U: Venue + 'static>(
        self,
        name: &'static str,
        make: impl Fn(&VenueContext) -> U + Send + Sync + 'static,
    ) -> Harness<T, (OwnVenue<U>, P)> {
        let parts = (OwnVenue { name, make: Arc::new(make) }, self.parts);
        Harness { parts, _techniques: PhantomData }
    }

    /// Adds a user-defined technique (kind of queue) to the launcher; `--technique` selects it by
    /// the name in [`Link::INFO`].
    #[must_use]
    pub fn technique<L: Link>(self) -> Harness<(L, T), P> {
        Harness { parts: self.parts, _techniques: PhantomData }
    }

    /// Registers the user-defined strategies, techniques and venues without running anything, for
    /// tests.
    ///
    /// # Errors
    /// A name that is taken or invalid.
    pub fn install(self) -> Result<(), HarnessError> {
        T::register()?;
        let mut registry = heap_techniques::registry::<T>();
        self.parts.add::<T>(&mut registry)?;
        registry.install();
        Ok(())
    }

    /// Runs the launcher's command line, or one process of a run. Exit codes: 0 done, 1 failed or
    /// not valid, 2 usage (also a part whose name is taken or invalid), 130 interrupted.
    pub fn main(self) -> ExitCode {
        let refuses = |why: String| {
            print_warning(&format!("error: {why}"));
            ExitCode::from(2)
        };
        // First of all: an allocation that fails does not end a process in order, nor mention
        // limits.
        if let Some((letter, bytes)) = memory::limits().into_iter().find(|(_, bytes)| *bytes < MIN_MEMORY) {
            return refuses(format!(
                "this process may have {} MiB of memory and needs {}: raise its limit (ulimit -{letter} unlimited)",
                bytes >> 20,
                MIN_MEMORY >> 20
            ));
        }
        if let Some(bytes) = memory::stack_limit().filter(|bytes| *bytes < MIN_STACK) {
            return refuses(format!(
                "this process may have a stack of {} KiB and needs {}: raise its limit (ulimit -s 8192)",
                bytes >> 10,
                MIN_STACK >> 10
            ));
        }
        // Without it the signal ends the process in the middle of a write, without mentioning
        // limits.
        if let Err(error) = signals::survive_file_limit() {
            print_warning(&format!("error: cannot handle SIGXFSZ: {error}"));
            return ExitCode::FAILURE;
        }
        match self.install() {
            Ok(()) => commands::main(Cli::read()),
            Err(error) => refuses(error.to_string()),
        }
    }
}
