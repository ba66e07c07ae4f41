//! Tests that a process attaches the segments of its plan even if their headers are overwritten.

use super::*;
use crate::plan::{Idle, Placement, Technique};
use crate::trading::return_path;
use proptest::prelude::*;
use shm::ring::{Consumer, Link, Producer};
use techniques::with_link;

/// Every thread parks: only then are its doorbells among the segments.
fn plan(technique: Technique) -> Plan {
    let trading = Plan::for_trading(crate::workload::Trading::new(2, 2));
    let mut plan = Plan { technique, placement: Placement::Engine, ..trading }.arranged();
    plan.threads.iter_mut().for_each(|thread| thread.idle = Idle::Park);
    plan
}

/// Makes all segments of a plan on the heap, with overwritten headers.
fn scribbled(plan: &Plan, headers: &mut impl FnMut() -> [u64; HEADER_WORDS]) -> Vec<(String, Arc<Region>)> {
    let segments = topology::segments(plan).into_iter();
    let memory = segments.filter(|segment| {
        segment.spec.place == SegmentPlace::Memory || segment.spec.place == SegmentPlace::Reserve
    });
    memory
        .map(|segment| {
            let region = heap_segment(plan, &segment.spec);
            let words = region.words();
            words.iter().zip(headers()).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
            (segment.spec.name, region)
        })
        .collect()
}

fn attached<'a>(plan: &'a Plan, regions: &[(String, Arc<Region>)]) -> Attached<'a> {
    let mut attached = attach(plan, None);
    regions.iter().for_each(|(what, region)| attached.adopt(what, Arc::clone(region)));
    attached
}

/// Sends through both of a strategy's rings and the gateways' ring, first and as a successor.
fn carries<T: Link>(plan: &Plan, regions: &[(String, Arc<Region>)]) -> Result<(), RegionError> {
    let mut attached = attached(plan, regions);
    let submit = submit_link(plan);
    let mut consumer = attached.consumer::<T>(&submit)?;
    let mut producers = [attached.producer::<T>(&submit, 0)?, attached.producer::<T>(&submit, 1)?];
    for n in 0..u64::from(submit.capacity) / 2 {
        for producer in &mut producers {
            producer.try_push(&[n; 7]).expect("room");
        }
        assert_eq!([consumer.try_pop().unwrap().1, consumer.try_pop().unwrap().1], [[n; 7]; 2]);
    }
    if T::INFO.consumer_resumable {
        producers[0].try_push(&[7; 7]).expect("room");
        drop(consumer);
        assert_eq!(T::resume_consumer(&submit, &mut attached)?.try_pop().unwrap().1, [7; 7]);
    }
    let back = return_path(StrategyIndex(1));
    let (mut sender, mut receiver) = (attached.sender(&back)?, attached.receiver(&back)?);
    sender.try_push(&[3; 7]).expect("room");
    assert_eq!(receiver.try_pop().unwrap(), Some([3; 7]));
    sender.try_push(&[4; 7]).expect("room");
    drop((sender, receiver));
    let (mut heir, mut successor) = (attached.resume_sender(&back)?, attached.resume_receiver(&back)?);
    heir.try_push(&[5; 7]).expect("room");
    assert_eq!([successor.try_pop().unwrap(), successor.try_pop().unwrap()], [Some([4; 7]), Some([5; 7])]);
    for thread in &plan.threads {
        listener(&mut attached, plan, thread)?;
        attach_log(&mut attached, &thread.name)?;
    }
    assert_eq!(attach_schedule(&mut attached, StrategyIndex(1))?.1 as u64, plan.trading().orders[1]);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 64 }))]

    #[test]
    fn overwritten_headers_do_not_affect_readers_with_plan(seed in any::<u64>(), kept in any::<u16>()) {
        for technique in Technique::all().into_iter().filter(|technique| technique.crosses_processes() && !technique.is_kernel()) {
            let plan = plan(technique);
            let mut random = seed;
            // Some words unchanged: headers that are wrong in one word or in all.
            let mut header = || std::array::from_fn(|word| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if kept >> word & 1 == 1 { random >> 60 } else { random }
            });
            let regions = scribbled(&plan, &mut header);
            with_link!(technique, T => carries::<T>(&plan, &regions).unwrap());
        }
    }
}

#[test]
fn segment_of_wrong_size_is_refused() {
    let plan = plan(Technique::default());
    let (what, short) = ("submit-1", Region::heap(HEADER_WORDS));
    let mut other = attach(&plan, Some(&plan.processes[plan.process_of(Role::Orchestrator).unwrap()]));
    other.adopt_view(what, short);
    let error = other.receiver(what).err().expect("it is too short").to_string();
    assert!(error.contains("header promises") && error.contains("there are 128"), "{error}");
}
