//! ringfire: its ring of one writer, without loss, and its ring of many. A writer of the former
//! creates the ring at a path; its successor creates another one at that path, and readers of the
//! old one have to attach again. A reader commits its offset after each message, and its successor
//! continues there. Writers of the latter attach to the ring that is there.

use crate::peer::{Attach, CAPACITY, End, Message, Peer, text};
use ringfire::{
    FlowControl, MpmcProducer, MpmcQueueConsumer, RingConsumer, RingProducer, RingProducerBuilder,
};
use std::path::Path;

pub struct Spmc;

impl Peer for Spmc {
    const CRATE: &'static str = "ringfire";
    const KIND: &'static str = "SPMC ring, lossless";
    const CREATOR: End = End::Sender;
    type Sender = RingProducer<Message>;
    type Receiver = RingConsumer<Message>;

    fn sender(place: &Path, _: Attach) -> Result<Self::Sender, String> {
        RingProducerBuilder::new(CAPACITY as u64)
            .flow_control(FlowControl::LosslessBackpressure)
            .build(place.join("ring"))
            .map_err(text)
    }

    fn receiver(place: &Path, _: Attach) -> Result<Self::Receiver, String> {
        let builder = RingConsumer::builder().start_from_oldest().offset_file(place.join("offset"));
        builder.attach(place.join("ring")).map_err(text)
    }

    fn push(sender: &mut Self::Sender, message: &Message) -> Result<bool, String> {
        Ok(sender.try_push(message).is_ok())
    }

    fn pop(receiver: &mut Self::Receiver) -> Result<Option<Message>, String> {
        let found = receiver.try_recv();
        if found.is_some() {
            receiver.commit_offset().map_err(text)?;
        }
        Ok(found)
    }
}

pub struct Mpmc;

impl Peer for Mpmc {
    const CRATE: &'static str = "ringfire";
    const KIND: &'static str = "MPMC ring";
    const CREATOR: End = End::Sender;
    const HAS_MANY_SENDERS: bool = true;
    type Sender = MpmcProducer<Message>;
    type Receiver = MpmcQueueConsumer<Message>;

    fn sender(place: &Path, attach: Attach) -> Result<Self::Sender, String> {
        let path = place.join("ring");
        match attach {
            Attach::Create => MpmcProducer::create(path, CAPACITY as u64),
            Attach::Join | Attach::Succeed => MpmcProducer::attach(path),
        }
        .map_err(text)
    }

    fn receiver(place: &Path, _: Attach) -> Result<Self::Receiver, String> {
        MpmcQueueConsumer::attach(place.join("ring")).map_err(text)
    }

    fn push(sender: &mut Self::Sender, message: &Message) -> Result<bool, String> {
        sender.push(message);
        Ok(true)
    }

    fn pop(receiver: &mut Self::Receiver) -> Result<Option<Message>, String> {
        Ok(receiver.try_recv())
    }
}
