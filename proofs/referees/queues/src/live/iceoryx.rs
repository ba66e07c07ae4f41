//! The crate `iceoryx2`: its publish-subscribe and its blackboard, between processes.

use crate::processes::{Contender, name};
use crate::work::{Value, WORDS, copies, keep};
use iceoryx2::node::Node;
use iceoryx2::port::reader::{BlackboardValue, EntryHandle};
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::{
    Config, FileName, LogLevel, NodeBuilder, SemanticString, ServiceName, ipc, set_log_level,
};
use std::path::Path;

type Ipc = ipc::Service;

/// A node whose files are in that folder; what is not is in `/dev/shm` and begins with the folder's
/// name, so that it can be removed.
fn node(folder: &Path) -> Node<Ipc> {
    set_log_level(LogLevel::Error);
    let mut config = Config::default();
    let path = folder.display().to_string();
    config.global.set_root_path(&iceoryx2::prelude::Path::new(path.as_bytes()).expect("a path"));
    config.global.prefix = FileName::new(format!("{}_", name(folder)).as_bytes()).expect("a name");
    NodeBuilder::new().config(&config).create().expect("a node")
}

fn service(folder: &Path) -> ServiceName {
    ServiceName::new(&name(folder)).expect("a name")
}

/// The publish-subscribe of `iceoryx2`, with a buffer of one value per reader: the newest one
/// replaces it.
pub fn published() -> Contender {
    Contender::new(
        "iceoryx2 publish",
        |folder, readers| {
            let node = node(folder);
            let builder = node.service_builder(&service(folder)).publish_subscribe::<Value>();
            let builder = builder.enable_safe_overflow(true).subscriber_max_buffer_size(1).history_size(0);
            let service = builder.max_publishers(1).max_subscribers(readers).max_nodes(readers + 1).create();
            (service.expect("a service").publisher_builder().create().expect("a writer"), node)
        },
        |(writer, _), value| {
            let sample = writer.loan_uninit().expect("room");
            sample.write_payload(*value).send().expect("a way");
        },
        |folder| {
            let node = node(folder);
            let service = node.service_builder(&service(folder)).publish_subscribe::<Value>().open();
            (service.expect("the service").subscriber_builder().create().expect("a reader"), node)
        },
        |(reader, _): &mut (Subscriber<Ipc, Value, ()>, Node<Ipc>), into, hold| match reader.receive() {
            // SAFETY: mapped, for as long as the sample lives.
            Ok(Some(sample)) => unsafe { keep(sample.payload(), into, hold) },
            _ => (false, false),
        },
    )
}

/// The blackboard of `iceoryx2`, with one entry.
pub fn blackboard() -> Contender {
    type Reader = (EntryHandle<Ipc, u64, Value>, Option<BlackboardValue<Value>>, Node<Ipc>);
    Contender::new(
        "iceoryx2 blackboard",
        |folder, readers| {
            let node = node(folder);
            let builder = node.service_builder(&service(folder)).blackboard_creator::<u64>();
            let builder = builder.add::<Value>(0, [0; WORDS]).max_readers(readers).max_nodes(readers + 1);
            let writer = builder.create().expect("a service").writer_builder().create().expect("a writer");
            (writer.entry::<Value>(&0).expect("the entry"), node)
        },
        |(entry, _), value| entry.update_with_copy(*value),
        |folder| {
            let node = node(folder);
            let service = node.service_builder(&service(folder)).blackboard_opener::<u64>().open();
            let reader = service.expect("the service").reader_builder().create().expect("a reader");
            (reader.entry::<Value>(&0).expect("the entry"), None, node)
        },
        copies(|(entry, seen, _): &mut Reader, into| {
            if seen.as_ref().is_some_and(|seen| entry.is_up_to_date(seen)) {
                return false;
            }
            let value = entry.get();
            *into = *value;
            *seen = Some(value);
            true
        }),
    )
}
