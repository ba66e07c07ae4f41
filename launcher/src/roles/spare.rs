//! A spare of an exchange: a process that has everything ready and waits to be the next incarnation.
//!
//! ```text
//! start ─▶ map the memory ─▶ follow the journal, write snapshots ─▶ told to go on ─▶ as an exchange that was just started
//! ```
//! It writes nothing that anybody but it reads, snapshots aside, until it is told. While it waits it sleeps, and wakes up now and then to
//! carry out what was written into the journal since. It keeps nobody from coming back: what goes wrong here, a damaged journal or a full
//! disk, is left to what an exchange does that is started in the ordinary way.

use super::book;
use super::parts::Parts;
use crate::faults::own;
use crate::runtime::progress::complain;
use anyhow::{Result, bail};
use exchange::role::{Follower, RecoveryError};
use protocol::control::Control;
use protocol::plan::{Plan, ProcessPlan, Role};
use protocol::segments;
use protocol::trading::session_in;
use shm::attached::Attached;
use shm::clock::Timebase;
use shm::memory::{View, Words};
use shm::os::process;
use shm::ring::{spsc, spsc_mux};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::Duration;

/// How long it sleeps. A successor has to carry out again what was written meanwhile; a look costs some ten microseconds.
const NAP: Duration = Duration::from_millis(20);
/// Records that it carries out between two looks at whether it is told to go on.
const BATCH: usize = 512;
/// Records between two snapshots, at least.
const SNAPSHOT_EVERY: u64 = 16_384;

/// Waits until the launcher says on standard input that this process is the exchange from now on. `false`: the run is over.
///
/// # Errors
/// A process that is none of an exchange alone; memory that is not there.
pub(super) fn wait(
    plan: &Plan,
    me: &ProcessPlan,
    control: &Control,
    attached: &mut Attached<'_>,
) -> Result<bool> {
    let threads: Vec<_> = me.threads.iter().map(|thread| &plan.threads[*thread as usize]).collect();
    let [thread] = threads.as_slice() else { bail!("{}: only an exchange has a spare", me.name) };
    let [Role::Exchange(venue)] = thread.roles[..] else {
        bail!("{}: only an exchange has a spare", me.name)
    };
    let mut parts = Parts { plan, thread, control, attached, act: own::act, when_attached: Vec::new() };
    book::map(&mut parts, venue)?;
    let reports = reports(&mut parts, venue)?;
    let mut market = Some(book::market(&mut parts, venue)?);
    let folder = book::journal_folder(plan, venue);
    let log = segments::log(parts.attached, &thread.name)?;
    let mut follower: Option<Follower> = None;
    let mut tally = book::tally(plan);
    let mut stdin = io::stdin();
    loop {
        let is_begun = control.start_ticks() != 0 && folder.join("lock").exists();
        if is_begun || follower.is_some() {
            let time = Timebase { start_ticks: control.start_ticks(), ns_per_tick: plan.ns_per_tick };
            if let Some(setup) = market.take() {
                follower = noted(Follower::begin(&folder, setup));
            }
            let is_far = follower.as_mut().map(|follower| follow(follower, time, &reports));
            match is_far.transpose() {
                Ok(Some(true)) if !is_told(&stdin, Duration::ZERO)? => continue,
                Ok(_) => {}
                Err(error) => {
                    follower = None;
                    let _ = noted::<()>(Err(error));
                }
            }
        }
        tally.look(&log);
        if is_told(&stdin, NAP)? {
            // A byte, or the end: the launcher is gone.
            let told = stdin.read(&mut [0])? > 0;
            if told {
                book::keep(parts.attached, venue, (follower, tally));
            }
            return Ok(told);
        }
    }
}

fn is_told(stdin: &io::Stdin, at_most: Duration) -> io::Result<bool> {
    Ok(process::wait_readable(&[stdin.as_fd()], at_most)?[0])
}

/// Says what went wrong: it may be why a comeback takes long.
fn noted<T>(result: Result<T, RecoveryError>) -> Option<T> {
    result.map_err(|error| complain(&format!("note: the spare does not follow the journal: {error}"))).ok()
}

/// A few records further, and a snapshot if it is time for one; whether there is more.
fn follow(follower: &mut Follower, time: Timebase, reports: &[(Words, View)]) -> Result<bool, RecoveryError> {
    let is_far = follower.follow(BATCH, time)? == BATCH;
    let is_due = follower.snapshot_is_due(SNAPSHOT_EVERY);
    if follower.has_unsent() && (is_due || !is_far) {
        let published = |(tail, head): &(Words, View)| {
            // What cannot be attached any more will be looked at by the successor.
            spsc::published::<{ shm::ring::MESSAGE_WORDS }>(&tail.clone().into(), head).unwrap_or(0)
        };
        follower.were_sent(&reports.iter().map(published).collect::<Vec<_>>());
    }
    // Also far behind: whoever dies on the way has a successor that need not begin there again.
    if is_due && let Err(error) = follower.snapshot() {
        complain(&format!("note: no snapshot was written: {error}"));
    }
    Ok(is_far)
}

/// The rings of the sessions' reports: how many were sent stands there.
fn reports(parts: &mut Parts<'_, '_>, venue: u16) -> Result<Vec<(Words, View)>> {
    let gateways = parts.plan.trading().gateways_of(venue);
    let ring = |gateway| {
        let what = session_in(gateway);
        let head = parts.attached.view(&spsc_mux::head_name(&what), spsc::HEAD_KIND)?;
        Ok((parts.attached.region(&what, spsc::KIND)?.words(), head))
    };
    gateways.map(ring).collect()
}
