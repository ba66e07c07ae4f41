//! disruptor-mp: its ring in shared memory, which its sender creates. A receiver that was killed
//! attaches again with its name, and continues at its cursor. A sender has no successor.

use crate::peer::{CAPACITY, End, Message, Peer, name, text};
use disruptor_mp::{
    CoordinationMode, SharedConsumer, SharedProducer, attach_shared_consumer, build_shared_single_producer,
};
use shm::memory::unlink;
use std::path::Path;

/// The receiver's name, which the sender looks for.
const RECEIVER: &str = "cp_0";

/// Returns the name of the ring. The folder of the trial has the place's name in `/dev/shm`.
fn segment(place: &Path) -> String {
    format!("{}.ring", name(place))
}

pub fn peer() -> Peer {
    let peer = Peer::new(
        ["disruptor-mp", "disruptor-mp", "SPMC ring"],
        End::Sender,
        |place, _| {
            let builder = build_shared_single_producer::<Message>(&segment(place), CAPACITY)
                .discover_consumer_with_prefix(1, "cp")
                .with_coordination(CoordinationMode::Immediate);
            builder.build_producer(Message::default).map_err(text)
        },
        |place, _| {
            let builder = attach_shared_consumer::<Message>(&segment(place), CAPACITY);
            builder.with_consumer_id(RECEIVER).build_consumer().map_err(text)
        },
        |sender: &mut SharedProducer<Message>, message| {
            Ok(sender.try_publish(|slot| *slot = *message).is_ok())
        },
        |receiver: &mut SharedConsumer<Message>| Ok(receiver.try_consume_next().map(|(_, message)| message)),
    );
    // Its documentation asks for new names or an explicit clean-up.
    let clean_up = |place: &Path| {
        let ring = segment(place);
        for name in [&ring, &format!("{ring}_producer_seq"), &format!("{ring}_{RECEIVER}_seq")] {
            unlink(name).map_err(text)?;
        }
        Ok(())
    };
    Peer { starts_over: true, ..peer }.with_clean_up(clean_up)
}
