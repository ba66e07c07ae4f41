//! A strategy that has overwritten the header of a segment.

use super::*;
use protocol::supervision::ProtocolViolation;

const FORGERY: &str = "quarantined: forged-header: it has overwritten the header of submit-1";

fn settings(on_death: &str) -> String {
    format!("isolation=process strategies=2 venues=1 orders=10 on_death={on_death}")
}

impl SteppedRun<'_> {
    fn forge_header(&mut self) {
        self.observed.strategies[VICTIM.as_usize()].forged_header = Some(FORGERY.into());
    }

    /// Checks that the victim was quarantined once and not started again, and that the other one is
    /// restarted when it dies.
    fn assert_quarantined(&mut self, cause: &str) {
        let [incident] = self.incidents() else { panic!("{:?}", self.incidents()) };
        assert_eq!((incident.strategy, incident.cause.as_str()), (VICTIM, cause));
        assert_eq!(incident.quarantined, Some(ProtocolViolation::ForgedHeader));
        let is_restart = |action: &Action| matches!(action, Action::Restart(_));
        assert!(!self.actions.iter().any(is_restart), "{:?}", self.actions);
        let innocent = self.process_of(StrategyIndex(0));
        self.exit(innocent, "signal 9 (SIGKILL)");
        self.run_for(1_000);
        assert!(self.actions.contains(&Action::Restart(innocent)), "{:?}", self.actions);
        assert_eq!(self.incidents().len(), 2);
        assert_eq!(self.finish(), RunOutcome::Complete);
    }
}

#[test]
fn strategy_with_forged_header_is_quarantined() {
    let plan = plan(&settings("restart"), 500);
    let mut run = SteppedRun::start(&plan);
    run.run_for(200);
    run.forge_header();
    run.run_for(2_000);
    assert!(run.actions.contains(&Action::Kill(run.process_of(VICTIM))));
    run.assert_quarantined(FORGERY);
}

/// It is killed at once, so that its headers are first read after its death.
#[test]
fn dead_strategy_with_forged_header_is_quarantined() {
    let plan = plan(&settings("restart"), 500);
    let mut run = SteppedRun::start(&plan);
    run.run_for(200);
    run.forge_header();
    run.exit(run.process_of(VICTIM), "signal 9 (SIGKILL)");
    run.run_for(2_000);
    run.assert_quarantined(&format!("signal 9 (SIGKILL); {FORGERY}"));
}

#[test]
fn forged_header_ends_uncontained_run() {
    let plan = plan(&settings("stop"), 500);
    let mut run = SteppedRun::start(&plan);
    run.run_for(200);
    run.forge_header();
    let outcome = run.finish();
    let RunOutcome::Failed { process, what, .. } = &outcome else { panic!("{outcome:?}") };
    assert_eq!((process.as_str(), what.as_str()), ("strategy-1", FORGERY));
}
