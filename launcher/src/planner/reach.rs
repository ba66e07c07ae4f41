//! At which isolation levels a technique can run.

use crate::config::UsageError;
use protocol::plan::{Isolation, Technique};
use shm::ring::{LinkSpec, SegmentPlace};

/// Whether a technique can run at that level: what the planner refuses, experiments leave out.
pub fn reaches(technique: Technique, isolation: Isolation) -> bool {
    check(technique, isolation).is_ok()
}

/// Refuses a technique that the level does not reach.
///
/// # Errors
/// The flag, what is wrong with it, and the way out.
pub fn check(technique: Technique, isolation: Isolation) -> Result<(), UsageError> {
    let refuse = |why: &str, instead: &str| {
        Err(UsageError(format!(
            "--technique {technique} with --isolation {isolation}: {why}.\nUse {instead}"
        )))
    };
    if let (Some(twin), true) = (technique.twin(), isolation != Isolation::Thread) {
        return Err(UsageError(format!(
            "--technique {technique} lives on the heap of one process, --isolation {isolation} has several.\n\
             Use --technique {twin}, its twin over shared memory, or --isolation thread"
        )));
    }
    match isolation {
        Isolation::Sandbox if technique.is_foreign() => refuse(
            "it makes and opens files of its own by their names, and a sandboxed process opens none: it has what was handed over",
            "--isolation process, or another --technique",
        ),
        Isolation::Container if technique.is_foreign() => refuse(
            "it makes and opens files of its own in the machine's /dev/shm, and a container has a /dev/shm of its own with what was handed \
             over",
            "--isolation process, or another --technique",
        ),
        Isolation::Container if has_sockets(technique) => refuse(
            "its sockets are made after the container, and each end asks for the other's process, which cannot be seen from there",
            "another --technique, or --isolation process",
        ),
        _ => Ok(()),
    }
}

/// A hand-off can be shown in a container that is made before its ends are: memory and pipes can.
fn has_sockets(technique: Technique) -> bool {
    let link = LinkSpec { name: "submit", producers: 1, capacity: 2 };
    technique.segments(&link).iter().any(|segment| segment.place == SegmentPlace::Socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::attached::Attached;
    use shm::memory::RegionError;
    use shm::ring::spsc_mux::{Mux, SpscMux, SpscMuxProducer};
    use shm::ring::{Home, Link, Record};
    use techniques::Technique;

    /// Somebody else's transport, as far as the planner knows it.
    struct Theirs;

    impl Link for Theirs {
        const RECORD: Record = Record::new("theirs", Home::Foreign);
        type Producer = SpscMuxProducer;
        type Consumer = Mux;
        fn producer(
            spec: &LinkSpec,
            index: usize,
            attached: &mut Attached,
        ) -> Result<SpscMuxProducer, RegionError> {
            SpscMux::producer(spec, index, attached)
        }
        fn consumer(spec: &LinkSpec, attached: &mut Attached) -> Result<Mux, RegionError> {
            SpscMux::consumer(spec, attached)
        }
    }

    #[test]
    fn what_a_level_does_not_reach_is_refused_with_the_way_out() {
        let refused = |technique, isolation| check(technique, isolation).err().map(|error| error.0);
        let named = |name| Technique::from_name(name).unwrap();
        for isolation in Isolation::ALL {
            assert_eq!(refused(Technique::default(), *isolation), None);
        }
        for (technique, isolation, words) in [
            (named("unix-seqpacket"), Isolation::Container, "Use another --technique"),
            (named("std-mpsc"), Isolation::Process, "its twin over shared memory"),
            (Technique::of::<Theirs>(), Isolation::Container, "a /dev/shm of its own"),
            (Technique::of::<Theirs>(), Isolation::Sandbox, "opens none"),
        ] {
            let error = refused(technique, isolation).unwrap();
            assert!(error.contains(words) && error.contains("\nUse "), "{error}");
        }
        assert!(reaches(Technique::of::<Theirs>(), Isolation::Process));
    }
}
