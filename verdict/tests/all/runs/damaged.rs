//! Damaged folders: logs that are truncated, missing, swapped or overwritten.

use crate::common::{all_accounted, damage, scribbled};
use crate::fixture::{Fixture, Shape};
use merge::merge;
use proptest::prelude::*;

#[test]
fn truncated_log_is_an_error_unless_run_failed() {
    let mut fixture = Fixture::new(Shape::PLAIN);
    let cut = |fixture: &Fixture| scribbled(fixture, "gateway-1", |bytes| bytes.truncate(bytes.len() - 5));
    let error = cut(&fixture).unwrap_err().to_string();
    assert!(error.contains("gateway-1.stamps: ends inside record 61"), "{error}");
    fixture.fail("engine");
    let merged = cut(&fixture).unwrap();
    assert!(merged.notes[0].contains("cut short; its whole records were used"), "{:?}", merged.notes);
    assert_eq!((merged.violations.len(), merged.orders.lost), (0, 0));
}

#[test]
fn missing_or_swapped_log_is_an_error() {
    let fixture = Fixture::new(Shape::PLAIN);
    let folder = fixture.write();
    let path = |name: &str| folder.path().join(name);
    std::fs::copy(path("gateway-0.stamps"), path("gateway-1.stamps")).unwrap();
    let error = merge(folder.path(), &fixture.record, |_, _| {}).unwrap_err().to_string();
    assert!(error.contains("gateway-1.stamps: is the log of thread 3"), "{error}");
    std::fs::remove_file(path("gateway-1.stamps")).unwrap();
    let error = merge(folder.path(), &fixture.record, |_, _| {}).unwrap_err().to_string();
    assert!(error.contains("gateway-1.stamps: No such file"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn damaged_folders_never_panic(
        file in 0usize..5, cut in prop::option::of(0usize..3000),
        scribbles in prop::collection::vec((640usize..3000, any::<u8>()), 0..30),
    ) {
        let fixture = Fixture::new(Shape::PLAIN);
        let name = fixture.record.plan.threads[file].name.clone();
        let merged = scribbled(&fixture, &name, |bytes| damage(bytes, cut.unwrap_or(usize::MAX), &scribbles));
        if let Ok(merged) = merged {
            all_accounted(&merged.orders);
        }
    }
}
