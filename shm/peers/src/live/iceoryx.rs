//! The crate `iceoryx2`: its publish-subscribe and its blackboard, between processes.

use crate::shared::{Shared, name};
use crate::work::{Peer, Value, WORDS};
use iceoryx2::node::Node;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::reader::{BlackboardValue, EntryHandle};
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::port::writer::EntryHandleMut;
use iceoryx2::prelude::{
    Config, FileName, LogLevel, NodeBuilder, SemanticString, ServiceName, ipc, set_log_level,
};
use std::path::Path;
use std::time::Duration;

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
pub struct Published;

impl Peer for Published {
    const NAME: &'static str = "iceoryx2 publish";
    type Writer = (Publisher<Ipc, Value, ()>, Node<Ipc>);
    type Reader = (Subscriber<Ipc, Value, ()>, Node<Ipc>);
    #[inline(always)]
    fn write((writer, _): &mut Self::Writer, value: &Value) {
        let sample = writer.loan_uninit().expect("room");
        sample.write_payload(*value).send().expect("a way");
    }
    #[inline(always)]
    fn read(reader: &mut Self::Reader, into: &mut Value) -> bool {
        Self::read_slowly(reader, into, Duration::ZERO).0
    }
    #[inline(always)]
    fn read_slowly((reader, _): &mut Self::Reader, into: &mut Value, hold: Duration) -> (bool, bool) {
        let Ok(Some(sample)) = reader.receive() else { return (false, false) };
        let value: *const Value = sample.payload();
        // SAFETY: mapped, for as long as the sample lives; volatile, because another process may
        // write it.
        *into = unsafe { value.read_volatile() };
        if hold.is_zero() {
            return (true, false);
        }
        std::thread::sleep(hold);
        // SAFETY: as before.
        (true, unsafe { value.read_volatile() } != *into)
    }
}

impl Shared for Published {
    fn writer(folder: &Path, readers: usize) -> Self::Writer {
        let node = node(folder);
        let builder = node.service_builder(&service(folder)).publish_subscribe::<Value>();
        let builder = builder.enable_safe_overflow(true).subscriber_max_buffer_size(1).history_size(0);
        let service = builder.max_publishers(1).max_subscribers(readers).max_nodes(readers + 1).create();
        (service.expect("a service").publisher_builder().create().expect("a writer"), node)
    }
    fn reader(folder: &Path) -> Self::Reader {
        let node = node(folder);
        let service = node.service_builder(&service(folder)).publish_subscribe::<Value>().open();
        (service.expect("the service").subscriber_builder().create().expect("a reader"), node)
    }
}

/// The blackboard of `iceoryx2`, with one entry.
pub struct Blackboard;

impl Peer for Blackboard {
    const NAME: &'static str = "iceoryx2 blackboard";
    type Writer = (EntryHandleMut<Ipc, u64, Value>, Node<Ipc>);
    type Reader = (EntryHandle<Ipc, u64, Value>, Option<BlackboardValue<Value>>, Node<Ipc>);
    #[inline(always)]
    fn write((entry, _): &mut Self::Writer, value: &Value) {
        entry.update_with_copy(*value);
    }
    #[inline(always)]
    fn read((entry, seen, _): &mut Self::Reader, into: &mut Value) -> bool {
        if seen.as_ref().is_some_and(|seen| entry.is_up_to_date(seen)) {
            return false;
        }
        let value = entry.get();
        *into = *value;
        *seen = Some(value);
        true
    }
}

impl Shared for Blackboard {
    fn writer(folder: &Path, readers: usize) -> Self::Writer {
        let node = node(folder);
        let builder = node.service_builder(&service(folder)).blackboard_creator::<u64>();
        let builder = builder.add::<Value>(0, [0; WORDS]).max_readers(readers).max_nodes(readers + 1);
        let writer = builder.create().expect("a service").writer_builder().create().expect("a writer");
        (writer.entry::<Value>(&0).expect("the entry"), node)
    }
    fn reader(folder: &Path) -> Self::Reader {
        let node = node(folder);
        let service = node.service_builder(&service(folder)).blackboard_opener::<u64>().open();
        let reader = service.expect("the service").reader_builder().create().expect("a reader");
        (reader.entry::<Value>(&0).expect("the entry"), None, node)
    }
}
