//! Two links over Aeron on this host: everything once and in order, both ways.

use bridge::clock::ClockAssumptions;
use bridge::frame::{Side, run_digest};
use bridge::link::{Event, Link, Timing};
use bridge_aeron::bridge_address::BridgeAddress;
use bridge_aeron::bridge_dir::BridgeDir;
use bridge_aeron::pump::{self, BridgeSide, TurnResult};
use bridge_aeron::transport::Transport;
use launcher::protocol::wire::{Message, Order, OrderId, Report};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Messages each way: more than the terms of a stream hold at once.
const MESSAGES: u64 = 20_000;

struct Side1 {
    side: Side,
    sent: u64,
    taken: u64,
    wrong: u64,
}

fn message(side: Side, number: u64) -> Message {
    let order = Order::new(OrderId::new(0, 0, number), 0);
    if side == Side::Strategy { order.to_message() } else { Report::full_fill(&order).to_message() }
}

impl BridgeSide for Side1 {
    fn event(&mut self, event: Event, _: &mut Link) {
        match event {
            Event::Message(message, _) => {
                self.wrong += u64::from(OrderId::from_word(message[0]).sequence() != self.taken);
                self.taken += 1;
            }
            Event::Down { .. } | Event::Outcome { .. } => self.wrong += 1,
            Event::Up { .. } | Event::Over => {}
        }
    }

    fn turn(&mut self, link: &mut Link, _: u64) -> TurnResult {
        while self.sent < MESSAGES && link.try_send(message(self.side, self.sent), None) {
            self.sent += 1;
        }
        if self.sent == MESSAGES && self.taken == MESSAGES {
            link.end();
        }
        if link.is_over() { TurnResult::Over } else { TurnResult::Idle }
    }
}

/// Returns two free consecutive ports' first; `None`: this host does not have the address.
fn free_port(host: IpAddr) -> Option<u16> {
    loop {
        let one = UdpSocket::bind((host, 0)).ok()?;
        let port = one.local_addr().unwrap().port();
        if port < u16::MAX && UdpSocket::bind((host, port + 1)).is_ok() {
            return Some(port);
        }
    }
}

fn side(side: Side, address: &BridgeAddress) -> (Side1, Link) {
    let place = BridgeDir::for_process(&format!("{side:?}").to_lowercase()).unwrap();
    let transport = Transport::open(side, address, &place.driver_dir().unwrap()).unwrap();
    let run = run_digest(&address.name);
    let link = match side {
        Side::Strategy => Link::strategy_side(run, 0, Timing::default()),
        Side::Engine => Link::engine_side(run, 0, Timing::default()),
    };
    let mut part = Side1 { side, sent: 0, taken: 0, wrong: 0 };
    let (link, result) = pump::run(transport, link, &mut part);
    result.unwrap();
    let path = place.path();
    place.remove();
    assert!(!path.exists());
    (part, link)
}

fn everything_arrives_on(host: IpAddr) {
    let Some(port) = free_port(host) else {
        eprintln!("SKIPPED: {host} is no address of this host");
        return;
    };
    let address: BridgeAddress = format!("loopback@{}", SocketAddr::new(host, port)).parse().unwrap();
    let (far, engine) = std::thread::scope(|scope| {
        let engine = scope.spawn(|| side(Side::Engine, &address));
        let far = scope.spawn(|| side(Side::Strategy, &address));
        (far.join().unwrap(), engine.join().unwrap())
    });
    for (part, link) in [&far, &engine] {
        assert_eq!((part.sent, part.taken, part.wrong), (MESSAGES, MESSAGES, 0), "{:?}", part.side);
        assert_eq!((link.counts.sessions, link.counts.doubled, link.counts.strange), (1, 0, 0));
        let offset = link.clocks.solve(&ClockAssumptions::default()).unwrap().at(pump::now());
        assert!(offset.low <= 0 && 0 <= offset.high, "{offset:?}");
    }
}

#[test]
fn messages_arrive_once_in_order_both_ways() {
    for host in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        everything_arrives_on(host);
    }
}

/// A port in use is an error, not a panic.
#[test]
fn a_port_that_is_taken_is_an_error() {
    let host = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let port = free_port(host).unwrap();
    let _taken = UdpSocket::bind((host, port)).unwrap();
    let address: BridgeAddress = format!("taken@127.0.0.1:{port}").parse().unwrap();
    let place = BridgeDir::for_process("taken").unwrap();
    let opened = Transport::open(Side::Engine, &address, &place.driver_dir().unwrap());
    let error = opened.err().expect("somebody has the port").to_string();
    place.remove();
    assert!(error.starts_with("Aeron"), "{error}");
}
