//! Which runs strategies in containers can have.

use crate::config::UsageError;
use protocol::plan::Technique;
use shm::ring::{LinkSpec, SegmentPlace};

/// Whether a hand-off can be shown in a container that is made before its ends are: memory and pipes can.
pub fn reaches_into_containers(technique: Technique) -> bool {
    let link = LinkSpec { name: "submit", producers: 1, capacity: 2 };
    technique.crosses_processes()
        && technique.segments(&link).iter().all(|segment| segment.place != SegmentPlace::Socket)
}

/// Refuses what does not reach into a container.
///
/// # Errors
/// The flag, what is wrong with it, and the way out.
pub(super) fn check(technique: Technique, isolate: bool) -> Result<(), UsageError> {
    if !reaches_into_containers(technique) {
        return Err(UsageError(format!(
            "--technique {technique} with --isolation container: its sockets are made after the container, and each end asks for the other's \
             process, which cannot be seen from there.\nUse another --technique, or --isolation process"
        )));
    }
    if isolate {
        return Err(UsageError(
            "--isolate with --isolation container: a process is in one control group, and each container has one of its own.\n\
             Leave --isolate out, or use --isolation process or sandbox"
                .into(),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_reach_into_a_container_is_refused_with_the_way_out() {
        let refused = |technique, isolate| check(technique, isolate).err().map(|error| error.0);
        assert_eq!(refused(Technique::default(), false), None);
        let sockets = Technique::from_name("unix-seqpacket").unwrap();
        assert!(refused(sockets, false).unwrap().contains("Use another --technique"));
        assert!(refused(Technique::default(), true).unwrap().contains("Leave --isolate out"));
    }
}
