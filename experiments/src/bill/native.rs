//! The level `native` of `launcher bill`: given among the levels of `--isolation`, and measured as
//! threads over queues on the heap, in runs of its own.

use super::super::flags::{AxisValue, SweepRequest, SweptSettings};
use super::super::usage;
use analysis::experiment::Axis;
use analysis::experiment::isolation_cost::{NATIVE, native_techniques};
use anyhow::Result;
use protocol::plan::{Isolation, Technique};

/// Returns the settings without `native` (threads with queues on the heap) in `--isolation`, and
/// whether it was listed there.
pub fn split_levels(swept: &SweptSettings) -> Result<(SweptSettings, bool)> {
    let mut swept = swept.clone();
    let key = Axis::Isolation.key();
    let Some((_, text)) = swept.0.iter_mut().find(|(name, _)| *name == key) else {
        return Ok((swept, false));
    };
    let (native, levels): (Vec<&str>, Vec<&str>) = text.split(',').partition(|level| level.trim() == NATIVE);
    match (native.len(), levels.is_empty()) {
        (0, _) => return Ok((swept, false)),
        (1, false) => *text = levels.join(","),
        (1, true) => {
            let why = "there is no level to compare it with";
            return usage(format!("--isolation {NATIVE}: {why}; try --isolation {NATIVE},thread,process"));
        }
        _ => return usage(format!("--isolation: {NATIVE} is named twice")),
    }
    Ok((swept, true))
}

/// Adds runs with queues on the heap (`native`) to a request, in every combination of the other
/// settings that the request varies. Technique and isolation become axes.
pub fn add(asked: &mut SweepRequest) {
    for axis in [Axis::Technique, Axis::Isolation] {
        if asked.axes.iter().all(|values| values[0].axis != axis) {
            let texts = asked.base.texts();
            let text = texts.into_iter().find(|(key, _)| *key == axis.key()).map(|(_, text)| text);
            asked.axes.extend(text.map(|text| vec![AxisValue { axis, text }]));
            asked.base.clear(&axis.key());
        }
    }
    asked.axes.sort_by_key(|values| values[0].axis);
    let arm = |technique: Technique| {
        let isolation = AxisValue { axis: Axis::Isolation, text: Isolation::Thread.name().into() };
        vec![AxisValue { axis: Axis::Technique, text: technique.name().into() }, isolation]
    };
    asked.further = native_techniques().into_iter().map(arm).collect();
}
