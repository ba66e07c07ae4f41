//! A tree of 64-bit maps: each node has a bit and a place for each of 64 children, six bits of the
//! key choose among them.
//!
//! A leaf is a ladder of 64 ticks. Nothing is ever moved or rebalanced, so the worst case is near
//! the usual one: at most 11 nodes from the root to a leaf, the next level by counting zeros. Some
//! leaves are remembered, so that near the best price the walk is one step.

use super::Levels;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Node {
    /// Which children there are.
    bits: u64,
    /// Nodes, or queues at a leaf. A free node has the next free one at 0.
    children: [u32; 64],
}

const EMPTY: Node = Node { bits: 0, children: [NONE; 64] };

/// Nodes that are written before the first order: 64 ticks each, for most of them.
const TOUCHED: usize = 4096;

/// The nodes of all tries of an exchange.
#[derive(Debug)]
pub struct Nodes {
    nodes: Vec<Node>,
    free: u32,
}

impl Nodes {
    fn allocate(&mut self) -> u32 {
        if self.free == NONE {
            // Within the capacity: nothing is moved.
            self.nodes.push(EMPTY);
            return (self.nodes.len() - 1) as u32;
        }
        let number = self.free;
        let node = &mut self.nodes[number as usize];
        self.free = node.children[0];
        node.bits = 0;
        number
    }

    fn release(&mut self, number: u32) {
        self.nodes[number as usize].children[0] = self.free;
        self.free = number;
    }

    /// The queue at the lowest key (`lowest`) or the highest below a node.
    fn end(&self, mut node: u32, mut shift: u32, lowest: bool) -> u32 {
        loop {
            let here = &self.nodes[node as usize];
            let digit = if lowest { here.bits.trailing_zeros() } else { 63 - here.bits.leading_zeros() };
            node = here.children[digit as usize];
            if shift == 0 {
                return node;
            }
            shift -= 6;
        }
    }
}

/// Price levels in a trie.
#[derive(Debug)]
pub struct Trie {
    root: u32,
    /// How far a key is shifted for the root's digit.
    top: u32,
    /// Leaves with the keys' bits above them, by the lower of these bits.
    near: [(u64, u32); NEAR],
}

/// How many leaves are remembered: 64 ticks each.
const NEAR: usize = 16;
const NOT_NEAR: (u64, u32) = (u64::MAX, NONE);

fn digit(key: u64, shift: u32) -> usize {
    (key >> shift & 63) as usize
}

impl Trie {
    /// The leaf of a key, if it is remembered.
    #[inline]
    fn near(&self, key: u64) -> Option<u32> {
        let (prefix, leaf) = self.near[(key >> 6) as usize % NEAR];
        (prefix == key >> 6).then_some(leaf)
    }

    /// The leaf of a key, if there is one.
    #[inline]
    fn leaf(&self, pool: &Nodes, key: u64) -> Option<u32> {
        self.near(key).or_else(|| self.walk(pool, key))
    }

    fn walk(&self, pool: &Nodes, key: u64) -> Option<u32> {
        let (mut node, mut shift) = (self.root, self.top);
        if node == NONE {
            return None;
        }
        while shift > 0 {
            let here = &pool.nodes[node as usize];
            let digit = digit(key, shift);
            if here.bits >> digit & 1 == 0 {
                return None;
            }
            node = here.children[digit];
            shift -= 6;
        }
        Some(node)
    }
}

impl Levels for Trie {
    type Pool = Nodes;

    fn pool(lists: usize, levels: usize, keys: u64) -> Nodes {
        // At each depth there are at most as many nodes as levels, and as many as the depth can
        // tell apart.
        let mut total = 0usize;
        let mut widest = lists;
        let mut shift = top(keys);
        loop {
            total += widest.min(levels);
            if shift == 0 {
                break;
            }
            widest = widest.saturating_mul(64);
            shift -= 6;
        }
        // What all levels could need at prices as far apart as can be is gigabytes for many orders,
        // and nobody's prices are: room is set aside for it, and touched only as far as is usual.
        // So an exchange starts, and ends, in milliseconds.
        let ready = total.min(TOUCHED);
        let mut nodes = Vec::with_capacity(total);
        nodes.resize(ready, EMPTY);
        for (node, next) in nodes[..ready - 1].iter_mut().zip(1..) {
            node.children[0] = next;
        }
        Nodes { nodes, free: 0 }
    }

    fn new(_levels: usize, keys: u64) -> Self {
        Trie { root: NONE, top: top(keys), near: [NOT_NEAR; NEAR] }
    }

    #[inline]
    fn get(&self, pool: &Nodes, key: u64) -> Option<u32> {
        let node = &pool.nodes[self.leaf(pool, key)? as usize];
        let digit = digit(key, 0);
        (node.bits >> digit & 1 != 0).then(|| node.children[digit])
    }

    fn insert(&mut self, pool: &mut Nodes, key: u64, queue: u32) {
        let leaf = self.near(key).unwrap_or_else(|| self.make(pool, key));
        let leaf = &mut pool.nodes[leaf as usize];
        leaf.bits |= 1 << digit(key, 0);
        leaf.children[digit(key, 0)] = queue;
    }

    fn remove(&mut self, pool: &mut Nodes, key: u64) {
        let Some(leaf) = self.leaf(pool, key) else { return };
        let bits = &mut pool.nodes[leaf as usize].bits;
        *bits &= !(1 << digit(key, 0));
        if *bits == 0 {
            self.prune(pool, key);
        }
    }

    fn from(&self, pool: &Nodes, key: u64) -> Option<u32> {
        if let Some(leaf) = self.near(key) {
            let leaf = &pool.nodes[leaf as usize];
            let here = leaf.bits >> digit(key, 0);
            if here != 0 {
                return Some(leaf.children[digit(key, 0) + here.trailing_zeros() as usize]);
            }
        }
        if key >> self.top >= 64 {
            return None;
        }
        let (mut node, mut shift) = (self.root, self.top);
        // The nearest place above the path.
        let mut above = None;
        while node != NONE {
            let here = &pool.nodes[node as usize];
            let digit = digit(key, shift);
            let after = here.bits & !(u64::MAX >> (63 - digit));
            if after != 0 {
                above = Some((here.children[after.trailing_zeros() as usize], shift));
            }
            if here.bits >> digit & 1 == 0 {
                break;
            }
            node = here.children[digit];
            if shift == 0 {
                return Some(node);
            }
            shift -= 6;
        }
        above.map(|(child, shift)| if shift == 0 { child } else { pool.end(child, shift - 6, true) })
    }

    fn before(&self, pool: &Nodes, key: u64) -> Option<u32> {
        if self.root == NONE {
            return None;
        }
        if key >> self.top >= 64 {
            return Some(pool.end(self.root, self.top, false));
        }
        let (mut node, mut shift) = (self.root, self.top);
        let mut below = None;
        loop {
            let here = &pool.nodes[node as usize];
            let digit = digit(key, shift);
            let before = here.bits & !(u64::MAX << digit);
            if before != 0 {
                below = Some((here.children[63 - before.leading_zeros() as usize], shift));
            }
            if here.bits >> digit & 1 == 0 || shift == 0 {
                break;
            }
            node = here.children[digit];
            shift -= 6;
        }
        below.map(|(child, shift)| if shift == 0 { child } else { pool.end(child, shift - 6, false) })
    }
}

impl Trie {
    /// The leaf of a key, made if there is none, and remembered.
    fn make(&mut self, pool: &mut Nodes, key: u64) -> u32 {
        if self.root == NONE {
            self.root = pool.allocate();
        }
        let (mut node, mut shift) = (self.root, self.top);
        while shift > 0 {
            let digit = digit(key, shift);
            if pool.nodes[node as usize].bits >> digit & 1 == 0 {
                let child = pool.allocate();
                let here = &mut pool.nodes[node as usize];
                here.bits |= 1 << digit;
                here.children[digit] = child;
            }
            node = pool.nodes[node as usize].children[digit];
            shift -= 6;
        }
        self.near[(key >> 6) as usize % NEAR] = (key >> 6, node);
        node
    }

    /// Frees the empty leaf of a key, and what becomes empty above it.
    #[cold]
    fn prune(&mut self, pool: &mut Nodes, key: u64) {
        if self.near(key).is_some() {
            self.near[(key >> 6) as usize % NEAR] = NOT_NEAR;
        }
        // The topmost node that will be empty hangs below the lowest one that has another child.
        let (mut node, mut shift) = (self.root, self.top);
        let mut keeps = None;
        while shift > 0 {
            let here = &pool.nodes[node as usize];
            if here.bits.count_ones() > 1 {
                keeps = Some((node, shift));
            }
            node = here.children[digit(key, shift)];
            shift -= 6;
        }
        (node, shift) = match keeps {
            Some((keeper, shift)) => {
                let here = &mut pool.nodes[keeper as usize];
                here.bits &= !(1 << digit(key, shift));
                (here.children[digit(key, shift)], shift - 6)
            }
            None => (std::mem::replace(&mut self.root, NONE), self.top),
        };
        loop {
            let child = pool.nodes[node as usize].children[digit(key, shift)];
            pool.release(node);
            if shift == 0 {
                return;
            }
            node = child;
            shift -= 6;
        }
    }
}

/// How far a key below `keys` is shifted for its first digit.
fn top(keys: u64) -> u32 {
    let bits = 64 - (keys - 1).leading_zeros();
    bits.div_ceil(6).max(1) * 6 - 6
}
