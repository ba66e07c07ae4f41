//! The price levels of one side of a book: a trie of 64-bit bitmaps, keyed by the distance from the
//! best end of the price band, in ticks.
//!
//! Each node has a bitmap and 64 children; six bits of the key select the child, so a leaf is a
//! ladder of 64 ticks. At most 11 nodes lead to a leaf, and nothing is rebalanced. A direct-mapped
//! cache of leaves makes most lookups one step. A leaf that loses its last level loses its bit at
//! once, and its node only after many other leaves did, as the next orders come nearby.
//!
//! **Why not a sorted vector or a sliding window of ticks?** A sorted vector takes 842 ns a command
//! with 10,000 orders over ±20,000 ticks, the trie 133. A window of 4,096 ticks is up to 15 %
//! faster, but must be moved when the best price leaves it: 520 µs for a single order far away.

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct LevelNode {
    /// Bit n is set if a level is below child n.
    bits: u64,
    /// Of a leaf, the bits of its keys that select it; otherwise `u64::MAX`.
    prefix: u64,
    /// The node above, or `NONE`.
    parent: u32,
    children_count: u32,
    list: u32,
    /// The leaf is among [`LevelNodes::emptied`].
    is_listed: bool,
    /// Indices of nodes, or of queues in a leaf. In a free node, child 0 is the next free node.
    children: [u32; 64],
}

const EMPTY: LevelNode = LevelNode {
    bits: 0,
    prefix: u64::MAX,
    parent: NONE,
    children_count: 0,
    list: NONE,
    is_listed: false,
    children: [NONE; 64],
};

/// Maximum number of nodes that are initialized when the exchange starts, and their number for each
/// level. Most of them are leaves of 64 ticks.
const INITIALIZED_NODES: usize = 4096;
const INITIALIZED_PER_LEVEL: usize = 2;

#[derive(Debug)]
pub(crate) struct LevelNodes {
    nodes: Vec<LevelNode>,
    free: u32,
    cache: [u32; CACHED_LEAVES],
    /// The leaves that lost their last level most recently, a ring; they may have levels again.
    emptied: [u32; EMPTIED_LEAVES],
    oldest: usize,
}

/// Entries of the cache of leaves; a leaf covers 64 ticks.
const CACHED_LEAVES: usize = 4096;
const EMPTIED_LEAVES: usize = 2048;

#[inline]
fn cache_index(list: u32, prefix: u64) -> usize {
    (prefix as usize).wrapping_add(list as usize * 401) % CACHED_LEAVES
}

impl LevelNodes {
    /// Reserves nodes for `levels` price levels with keys below `keys`, in `lists` lists together.
    pub(crate) fn new(lists: usize, levels: usize, keys: u64) -> Self {
        // Each depth has at most one node per level and emptied leaf, and as many as it
        // distinguishes.
        let leaves = levels + EMPTIED_LEAVES + lists;
        let mut total = 0usize;
        let mut widest = lists;
        let mut shift = top(keys);
        loop {
            total += widest.min(leaves);
            if shift == 0 {
                break;
            }
            widest = widest.saturating_mul(64);
            shift -= 6;
        }
        // Levels as far apart as possible would need gigabytes: reserved, but only in part written.
        let ready = total.min(INITIALIZED_NODES).min(INITIALIZED_PER_LEVEL * levels + lists);
        let mut nodes = Vec::with_capacity(total);
        nodes.resize(ready, EMPTY);
        for (node, next) in nodes[..ready - 1].iter_mut().zip(1..) {
            node.children[0] = next;
        }
        LevelNodes {
            nodes,
            free: 0,
            cache: [NONE; CACHED_LEAVES],
            emptied: [NONE; EMPTIED_LEAVES],
            oldest: 0,
        }
    }

    fn allocate(&mut self, parent: u32, list: u32, prefix: u64) -> u32 {
        let new = LevelNode { parent, list, prefix, ..EMPTY };
        if self.free == NONE {
            // Within the reserved capacity: the vector does not reallocate.
            self.nodes.push(new);
            return (self.nodes.len() - 1) as u32;
        }
        let number = self.free;
        let node = &mut self.nodes[number as usize];
        self.free = node.children[0];
        *node = new;
        number
    }

    fn release(&mut self, number: u32) {
        self.nodes[number as usize].children[0] = self.free;
        self.free = number;
    }

    /// Returns the queue at the lowest key below a node (`lowest`), or at the highest.
    fn outermost(&self, mut node: u32, mut shift: u32, lowest: bool) -> u32 {
        loop {
            let current = &self.nodes[node as usize];
            let digit =
                if lowest { current.bits.trailing_zeros() } else { 63 - current.bits.leading_zeros() };
            node = current.children[digit as usize & 63];
            if shift == 0 {
                return node;
            }
            shift -= 6;
        }
    }
}

/// The occupied price levels of one side of a book, or of its stop orders; the best key is lowest.
#[derive(Debug)]
pub(crate) struct PriceLevels {
    root: u32,
    /// Bits that a key is shifted right by for the root's digit.
    top: u32,
    list: u32,
}

fn digit(key: u64, shift: u32) -> usize {
    (key >> shift & 63) as usize
}

impl PriceLevels {
    /// Creates empty price levels for keys below `keys`; `list` is their number.
    pub(crate) fn new(list: u32, keys: u64) -> Self {
        PriceLevels { root: NONE, top: top(keys), list }
    }

    #[inline]
    fn cached_leaf(&self, pool: &LevelNodes, key: u64) -> Option<u32> {
        let leaf = pool.cache[cache_index(self.list, key >> 6)];
        let node = pool.nodes.get(leaf as usize)?;
        (node.prefix == key >> 6 && node.list == self.list).then_some(leaf)
    }

    /// Returns the lowest node on the way to a key, and its shift. There is a root.
    #[inline]
    fn lowest_node(&self, pool: &LevelNodes, key: u64) -> (u32, u32) {
        self.cached_leaf(pool, key).map_or_else(|| self.walk(pool, key), |leaf| (leaf, 0))
    }

    fn walk(&self, pool: &LevelNodes, key: u64) -> (u32, u32) {
        let (mut node, mut shift) = (self.root, self.top);
        while shift > 0 {
            let child = pool.nodes[node as usize].children[digit(key, shift)];
            if child == NONE {
                break;
            }
            node = child;
            shift -= 6;
        }
        (node, shift)
    }

    /// Returns the queue of the price with this key; `None` if the level is empty.
    #[inline]
    pub(crate) fn get(&self, pool: &LevelNodes, key: u64) -> Option<u32> {
        if self.root == NONE {
            return None;
        }
        let (node, shift) = self.lowest_node(pool, key);
        let (node, digit) = (&pool.nodes[node as usize], digit(key, 0));
        (shift == 0 && node.bits >> digit & 1 != 0).then(|| node.children[digit])
    }

    /// Adds the queue of a price whose level is empty. Returns its leaf ([`PriceLevels::remove`]).
    #[inline]
    pub(crate) fn insert(&mut self, pool: &mut LevelNodes, key: u64, queue: u32) -> u32 {
        let leaf = match self.cached_leaf(pool, key) {
            Some(leaf) => leaf,
            None => self.create_leaf(pool, key),
        };
        pool.nodes[leaf as usize].children[digit(key, 0)] = queue;
        let (mut node, mut shift) = (leaf, 0);
        loop {
            let current = &mut pool.nodes[node as usize];
            let was = current.bits;
            current.bits |= 1 << digit(key, shift);
            if was != 0 || current.parent == NONE {
                return leaf;
            }
            (node, shift) = (current.parent, shift + 6);
        }
    }

    /// Removes the queue of a leaf's key. Returns the start of [`PriceLevels::next_from`].
    #[inline]
    pub(crate) fn remove(&mut self, pool: &mut LevelNodes, leaf: u32, key: u64) -> (u32, u32) {
        let (mut node, mut shift) = (leaf, 0);
        loop {
            let current = &mut pool.nodes[node as usize];
            current.bits &= !(1 << digit(key, shift));
            if current.bits != 0 || current.parent == NONE {
                break;
            }
            (node, shift) = (current.parent, shift + 6);
        }
        if shift > 0 {
            pool.list_emptied(leaf);
        }
        (node, shift)
    }

    /// Returns the queue of the first occupied price at or after a key.
    pub(crate) fn at_or_after(&self, pool: &LevelNodes, key: u64) -> Option<u32> {
        if self.root == NONE || key >> self.top >= 64 {
            return None;
        }
        let (node, shift) = self.lowest_node(pool, key);
        self.next_from(pool, (node, shift), key)
    }

    /// Returns the first queue at or after a key, given the lowest node on the way and its shift.
    #[inline]
    pub(crate) fn next_from(
        &self,
        pool: &LevelNodes,
        (mut node, mut shift): (u32, u32),
        key: u64,
    ) -> Option<u32> {
        let current = &pool.nodes[node as usize];
        // In the lowest node from the key itself; in nodes above it, only after the path to the
        // key.
        let mut bits = current.bits & u64::MAX << digit(key, shift);
        if shift == 0 && bits != 0 {
            return Some(current.children[bits.trailing_zeros() as usize & 63]);
        }
        while bits == 0 {
            if shift == self.top {
                return None;
            }
            node = pool.nodes[node as usize].parent;
            shift += 6;
            bits = pool.nodes[node as usize].bits & !(u64::MAX >> (63 - digit(key, shift)));
        }
        let child = pool.nodes[node as usize].children[bits.trailing_zeros() as usize & 63];
        Some(pool.outermost(child, shift - 6, true))
    }

    /// Returns the queue of the last occupied price before a key.
    pub(crate) fn last_before(&self, pool: &LevelNodes, key: u64) -> Option<u32> {
        if self.root == NONE {
            return None;
        }
        if key >> self.top >= 64 {
            let is_empty = pool.nodes[self.root as usize].bits == 0;
            return (!is_empty).then(|| pool.outermost(self.root, self.top, false));
        }
        let (mut node, mut shift) = self.lowest_node(pool, key);
        loop {
            let bits = pool.nodes[node as usize].bits & !(u64::MAX << digit(key, shift));
            if bits != 0 {
                let child = pool.nodes[node as usize].children[63 - bits.leading_zeros() as usize];
                return Some(if shift == 0 { child } else { pool.outermost(child, shift - 6, false) });
            }
            if shift == self.top {
                return None;
            }
            node = pool.nodes[node as usize].parent;
            shift += 6;
        }
    }

    /// Returns the leaf of a key, created if there is none, and caches it.
    #[inline(never)]
    fn create_leaf(&mut self, pool: &mut LevelNodes, key: u64) -> u32 {
        let prefix = |shift: u32| if shift == 0 { key >> 6 } else { u64::MAX };
        if self.root == NONE {
            self.root = pool.allocate(NONE, self.list, prefix(self.top));
        }
        let (mut node, mut shift) = self.walk(pool, key);
        while shift > 0 {
            let child = pool.allocate(node, self.list, prefix(shift - 6));
            let current = &mut pool.nodes[node as usize];
            current.children[digit(key, shift)] = child;
            current.children_count += 1;
            node = child;
            shift -= 6;
        }
        pool.cache[cache_index(self.list, key >> 6)] = node;
        node
    }
}

impl LevelNodes {
    /// Lists a leaf as emptied, in place of the oldest, which is freed unless it has levels.
    #[inline]
    fn list_emptied(&mut self, leaf: u32) {
        if std::mem::replace(&mut self.nodes[leaf as usize].is_listed, true) {
            return;
        }
        let oldest = std::mem::replace(&mut self.emptied[self.oldest], leaf);
        self.oldest = (self.oldest + 1) % EMPTIED_LEAVES;
        if oldest != NONE {
            self.nodes[oldest as usize].is_listed = false;
            if self.nodes[oldest as usize].bits == 0 {
                self.prune(oldest);
            }
        }
    }

    /// Frees an empty leaf, and the nodes above it that have no other child, but not the root.
    #[cold]
    fn prune(&mut self, leaf: u32) {
        let LevelNode { prefix, list, mut parent, .. } = self.nodes[leaf as usize];
        let cached = &mut self.cache[cache_index(list, prefix)];
        if *cached == leaf {
            *cached = NONE;
        }
        let (mut node, mut shift) = (leaf, 0);
        while parent != NONE {
            self.release(node);
            let above = &mut self.nodes[parent as usize];
            above.children[digit(prefix, shift)] = NONE;
            above.children_count -= 1;
            if above.children_count > 0 {
                return;
            }
            (node, parent) = (parent, above.parent);
            shift += 6;
        }
    }
}

/// Returns the bits that a key below `keys` is shifted right by for its first digit.
fn top(keys: u64) -> u32 {
    let bits = 64 - (keys - 1).leading_zeros();
    bits.div_ceil(6).max(1) * 6 - 6
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Applies the same operations to two lists and two `BTreeMap`s.
    fn check_against_map(keys: u64, spread: impl Fn(u64) -> u64) {
        let mut pool = LevelNodes::new(2, 60, keys);
        let reserved = pool.nodes.capacity();
        let mut lists = [PriceLevels::new(0, keys), PriceLevels::new(1, keys)];
        let mut maps: [BTreeMap<u64, u32>; 2] = Default::default();
        let mut state = 3u64;
        for step in 0..60_000u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (list_index, key) = ((state >> 62 & 1) as usize, spread(state >> 8 & 0xffff) % keys);
            let (list, map) = (&mut lists[list_index], &mut maps[list_index]);
            let remove = |list: &mut PriceLevels, pool: &mut LevelNodes, key| {
                let (leaf, _) = list.lowest_node(pool, key);
                list.remove(pool, leaf, key);
            };
            assert_eq!(list.get(&pool, key), map.get(&key).copied(), "get {key}, step {step}");
            if map.remove(&key).is_some() {
                remove(list, &mut pool, key);
            } else if map.len() < 30 {
                map.insert(key, step);
                list.insert(&mut pool, key, step);
            } else if let Some((first, _)) = map.pop_first() {
                remove(list, &mut pool, first);
            }
            let other_key = spread(state >> 24 & 0xffff) % keys;
            for key in [0, key, key + 1, other_key, keys] {
                let expected = map.range(key..).next().map(|entry| *entry.1);
                assert_eq!(list.at_or_after(&pool, key), expected, "from {key}, step {step}");
                let expected = map.range(..key).next_back().map(|entry| *entry.1);
                assert_eq!(list.last_before(&pool, key), expected, "before {key}, step {step}");
            }
        }
        assert_eq!(pool.nodes.capacity(), reserved, "emptied nodes are used again");
    }

    #[test]
    fn levels_agree_with_a_map() {
        check_against_map(1, |n| n);
        check_against_map(64, |n| n);
        check_against_map(65, |n| n);
        check_against_map(5_000, |n| n);
        check_against_map(1 << 40, |n| n);
        check_against_map(1 << 40, |n| n * 3_000);
        check_against_map(1 << 62, |n| n << 46 | n & 3);
        check_against_map(1 << 62, |n| (1 << 61) + n % 200);
    }
}
