//! The ring of the crate tachyon-ipc: a byte ring in memory that is passed over a socket, as
//! between two processes. Its receiving end blocks; here it spins for as long as nothing is there.

use crate::pair::Queue;
use tachyon_ipc::Bus;

/// Bytes that a message takes in the ring: its header and itself, each a line.
const MESSAGE_BYTES: usize = 128;

pub struct Tachyon;

impl Queue for Tachyon {
    const NAME: &'static str = "tachyon-ipc 0.5 (shared)";
    type Sender = Bus;
    type Receiver = Bus;

    fn pair(capacity: usize) -> (Self::Sender, Self::Receiver) {
        let folder = tempfile::tempdir().expect("a folder for the socket");
        let path = folder.path().join("bus").to_str().expect("a path of letters").to_owned();
        let listens = {
            let path = path.clone();
            std::thread::spawn(move || Bus::listen(&path, capacity * MESSAGE_BYTES).expect("some pages"))
        };
        let connects = loop {
            match Bus::connect(&path) {
                Ok(bus) => break bus,
                // Nobody listens yet.
                Err(_) => std::thread::sleep(std::time::Duration::from_millis(1)),
            }
        };
        let listened = listens.join().expect("it does not panic");
        listened.set_polling_mode(1);
        connects.set_polling_mode(1);
        (connects, listened)
    }

    #[inline(always)]
    fn push(sender: &mut Self::Sender, words: [u64; 7]) -> bool {
        let Ok(mut slot) = sender.acquire_tx(56) else { return false };
        // SAFETY: the 56 bytes that were asked for.
        let place = unsafe { slot.as_mut_slice() };
        for (bytes, word) in place.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        slot.commit(56, 1).is_ok()
    }

    #[inline(always)]
    fn pop(receiver: &mut Self::Receiver) -> Option<[u64; 7]> {
        let slot = receiver.acquire_rx(u32::MAX).expect("a peer that lives");
        let mut words = [0; 7];
        for (word, bytes) in words.iter_mut().zip(slot.data().chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("eight"));
        }
        slot.commit().expect("a peer that lives");
        Some(words)
    }
}
