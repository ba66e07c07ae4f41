//! ringfire: its ring of one writer, without loss, and its ring of many. A writer of the former
//! creates the ring at a path; its successor creates another one at that path, and readers of the
//! old one have to attach again. A reader commits its offset after each message, and its successor
//! continues there. Writers of the latter attach to the ring that is there.

use crate::peer::{Attach, CAPACITY, End, Message, Peer, text};
use ringfire::{
    FlowControl, MpmcProducer, MpmcQueueConsumer, RingConsumer, RingProducer, RingProducerBuilder,
};

pub fn spmc() -> Peer {
    Peer::new(
        ["ringfire-spmc", "ringfire", "SPMC ring, lossless"],
        End::Sender,
        |place, _| {
            let builder = RingProducerBuilder::new(CAPACITY as u64);
            let builder = builder.flow_control(FlowControl::LosslessBackpressure);
            // The offset file is the caller's, and its offset is in the ring that is replaced.
            let _ = std::fs::remove_file(place.join("offset"));
            builder.build(place.join("ring")).map_err(text)
        },
        |place, _| {
            let builder = RingConsumer::builder().start_from_oldest().offset_file(place.join("offset"));
            builder.attach(place.join("ring")).map_err(text)
        },
        |sender: &mut RingProducer<Message>, message| Ok(sender.try_push(message).is_ok()),
        |receiver: &mut RingConsumer<Message>| {
            let found = receiver.try_recv();
            if found.is_some() {
                receiver.commit_offset().map_err(text)?;
            }
            Ok(found)
        },
    )
}

pub fn mpmc() -> Peer {
    let peer = Peer::new(
        ["ringfire-mpmc", "ringfire", "MPMC ring"],
        End::Sender,
        |place, attach| {
            let path = place.join("ring");
            match attach {
                Attach::Create => MpmcProducer::create(path, CAPACITY as u64),
                Attach::Join | Attach::Resume => MpmcProducer::attach(path),
            }
            .map_err(text)
        },
        |place, _| MpmcQueueConsumer::attach(place.join("ring")).map_err(text),
        |sender: &mut MpmcProducer<Message>, message| {
            sender.push(message);
            Ok(true)
        },
        |receiver: &mut MpmcQueueConsumer<Message>| Ok(receiver.try_recv()),
    );
    Peer { has_many_senders: true, ..peer }
}
