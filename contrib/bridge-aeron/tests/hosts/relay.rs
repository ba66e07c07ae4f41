//! The network between the hosts: a relay of datagrams. This kernel may have no netem.

use bridge_aeron::flag::Flag;
use launcher::shm::sync::{AtomicU64, Ordering};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What the network does to a datagram.
#[derive(Clone, Copy, Default)]
pub struct Weather {
    /// Lost, of a thousand.
    pub lost: u64,
    /// Doubled, of a thousand.
    pub doubled: u64,
    /// Maximum additional delay of a datagram in microseconds, which lets later ones overtake it.
    pub delay_us: u64,
}

/// What is common to the relay's thread and the test.
#[derive(Default)]
pub struct State {
    /// Nothing passes.
    pub is_parted: Flag,
    /// Datagrams that have passed.
    pub passed: AtomicU64,
    /// Datagrams that were lost, in bad weather or apart.
    pub lost: AtomicU64,
    /// Datagrams that passed behind one that had come later.
    pub overtaken: AtomicU64,
    ends: Flag,
}

/// A relay.
pub struct Relay {
    /// What it does, and has done.
    pub state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

/// Takes datagrams to the engine's host, each sender's from its own socket, and answers back.
struct Door {
    socket: UdpSocket,
    to: SocketAddr,
    near: Ipv4Addr,
    flows: HashMap<SocketAddr, UdpSocket>,
}

/// A datagram under way to the far host through the door, or to the engine's for that sender.
struct Flying {
    door: usize,
    sender: SocketAddr,
    is_home: bool,
    number: u64,
    bytes: Vec<u8>,
}

impl Relay {
    /// Between the far host, which sees it at `far`, and the engine's, on `port` and the next one.
    pub fn start(far: Ipv4Addr, near: Ipv4Addr, engine: Ipv4Addr, port: u16, weather: Weather) -> Self {
        let state = Arc::new(State::default());
        let doors: Vec<Door> = [port, port + 1]
            .map(|port| {
                let socket = UdpSocket::bind((far, port)).unwrap();
                socket.set_nonblocking(true).unwrap();
                Door { socket, to: (engine, port).into(), near, flows: HashMap::new() }
            })
            .into();
        let seen = Arc::clone(&state);
        let thread = std::thread::spawn(move || carry(doors, weather, &seen));
        Self { state, thread: Some(thread) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.ends.set(true);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_some_and(|ended| ended.is_ok()), "the relay");
    }
}

fn carry(mut doors: Vec<Door>, weather: Weather, state: &State) {
    let mut flying = BinaryHeap::new();
    let mut waiting: HashMap<u64, Flying> = HashMap::new();
    let (mut number, mut last, mut dice) = (0, 0, 1_u64);
    let mut roll = move |cases: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % cases.max(1)
    };
    while !state.ends.is_up() {
        let mut came = Vec::new();
        for (at, door) in doors.iter_mut().enumerate() {
            door.take(at, &mut came);
        }
        let now = Instant::now();
        for (door, sender, is_home, bytes) in came {
            if state.is_parted.is_up() || roll(1000) < weather.lost {
                state.lost.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            for _ in 0..1 + u64::from(roll(1000) < weather.doubled) {
                number += 1;
                let due = now + Duration::from_micros(roll(weather.delay_us + 1));
                flying.push(Reverse((due, number)));
                waiting.insert(number, Flying { door, sender, is_home, number, bytes: bytes.clone() });
            }
        }
        while flying.peek().is_some_and(|Reverse((due, _))| *due <= Instant::now()) {
            let Some(flying) = flying.pop().and_then(|Reverse((_, number))| waiting.remove(&number)) else {
                continue;
            };
            state.overtaken.fetch_add(u64::from(flying.number < last), Ordering::Relaxed);
            last = last.max(flying.number);
            state.passed.fetch_add(1, Ordering::Relaxed);
            doors[flying.door].give(&flying);
        }
        std::thread::sleep(Duration::from_micros(50));
    }
}

impl Door {
    /// What has come, from both sides.
    fn take(&mut self, at: usize, came: &mut Vec<(usize, SocketAddr, bool, Vec<u8>)>) {
        let mut bytes = [0; 65_536];
        while let Ok((length, sender)) = self.socket.recv_from(&mut bytes) {
            let (near, to) = (self.near, self.to);
            self.flows.entry(sender).or_insert_with(|| {
                let flow = UdpSocket::bind((near, 0)).unwrap();
                flow.set_nonblocking(true).unwrap();
                flow.connect(to).unwrap();
                flow
            });
            came.push((at, sender, false, bytes[..length].to_vec()));
        }
        for (sender, flow) in &self.flows {
            // A refusal of an earlier datagram does not end the relay.
            for _ in 0..64 {
                match flow.recv(&mut bytes) {
                    Ok(length) => came.push((at, *sender, true, bytes[..length].to_vec())),
                    Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {}
                    Err(_) => break,
                }
            }
        }
    }

    /// Lets one arrive. Nobody may be there.
    fn give(&self, flying: &Flying) {
        let _ = match (flying.is_home, self.flows.get(&flying.sender)) {
            (true, _) => self.socket.send_to(&flying.bytes, flying.sender),
            (false, Some(flow)) => flow.send(&flying.bytes),
            (false, None) => Ok(0),
        };
    }
}
