//! iceoryx2: publish-subscribe without overflow. A successor is another node with another port;
//! stale resources of dead nodes are removed by the library when a node is created or dropped.

use crate::peer::{CAPACITY, End, Message, Peer, name, text};
use iceoryx2::node::Node;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::{
    BackpressureStrategy, Config, FileName, LogLevel, NodeBuilder, SemanticString, ServiceName, ipc,
    set_log_level,
};
use iceoryx2::service::port_factory::publish_subscribe::PortFactory;
use std::time::Duration;

type Ipc = ipc::Service;
/// Time to wait for another process that cleans up the resources of a dead node.
const CLEAN_UP_TIME: Duration = Duration::from_secs(1);

type Service = PortFactory<Ipc, Message, ()>;

/// A configuration whose files are in that folder; what is not is in `/dev/shm` and begins with the
/// folder's name, so that it can be removed.
fn config(place: &std::path::Path) -> Result<Config, String> {
    set_log_level(LogLevel::Fatal);
    let mut config = Config::default();
    let path = place.display().to_string();
    config.global.set_root_path(&iceoryx2::prelude::Path::new(path.as_bytes()).map_err(text)?);
    config.global.prefix = FileName::new(format!("{}_", name(place)).as_bytes()).map_err(text)?;
    Ok(config)
}

fn service(place: &std::path::Path) -> Result<(Service, Node<Ipc>), String> {
    let config = config(place)?;
    let node = NodeBuilder::new().config(&config).create::<Ipc>().map_err(text)?;
    let service = ServiceName::new(&name(place)).map_err(text)?;
    let builder = node.service_builder(&service).publish_subscribe::<Message>();
    let builder = builder.enable_safe_overflow(false).subscriber_max_buffer_size(CAPACITY).history_size(0);
    let service = builder.max_publishers(4).max_subscribers(4).max_nodes(8).open_or_create();
    Ok((service.map_err(text)?, node))
}

pub fn peer() -> Peer {
    let peer = Peer::new(
        ["iceoryx2", "iceoryx2", "publish-subscribe"],
        End::Receiver,
        |place, _| {
            let (service, node) = service(place)?;
            let builder = service.publisher_builder();
            let builder = builder.backpressure_strategy(BackpressureStrategy::DiscardData);
            Ok((builder.create().map_err(text)?, service, node))
        },
        |place, _| {
            let (service, node) = service(place)?;
            Ok((service.subscriber_builder().create().map_err(text)?, service, node))
        },
        |(publisher, ..): &mut (Publisher<Ipc, Message, ()>, Service, Node<Ipc>), message| {
            let sample = publisher.loan_uninit().map_err(text)?;
            Ok(sample.write_payload(*message).send().map_err(text)? > 0)
        },
        |(subscriber, ..): &mut (Subscriber<Ipc, Message, ()>, Service, Node<Ipc>)| {
            let Some(sample) = subscriber.receive().map_err(text)? else { return Ok(None) };
            Ok(Some(*sample.payload()))
        },
    );
    Peer { has_many_senders: true, ..peer }.with_clean_up(|place| {
        let config = config(place)?;
        let node = NodeBuilder::new().config(&config).create::<Ipc>().map_err(text)?;
        // What cannot be removed is counted as left.
        let _ = node.blocking_cleanup_dead_nodes(CLEAN_UP_TIME);
        drop(node);
        // One file for each prefix, which all nodes of a machine share, is not a leak.
        for entry in std::fs::read_dir("/dev/shm").map_err(text)?.flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            if file.starts_with(&format!("{}_", name(place))) && file.ends_with(".global_mgmt") {
                let _ = std::fs::remove_file(entry.path());
            }
        }
        Ok(())
    })
}
