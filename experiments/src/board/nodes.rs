//! The NUMA nodes of writer and readers: `0:1` puts the writer on the first node and the readers on
//! the second.

use planner::config::UsageError;
use record::cpu_list;
use std::fmt;
use std::str::FromStr;

/// The NUMA nodes of a board's writer and readers, as indices into the nodes that have cores for
/// this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoardNodes {
    /// Index of the node of the writer and of the board's memory.
    pub writer: usize,
    /// Index of the node of the readers.
    pub readers: usize,
}

impl FromStr for BoardNodes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let both = text.split_once(':').and_then(|(writer, readers)| {
            Some(Self { writer: writer.parse().ok()?, readers: readers.parse().ok()? })
        });
        both.ok_or_else(|| {
            format!("{text:?} does not name two nodes: give the writer's and the readers', as 0:1")
        })
    }
}

impl fmt::Display for BoardNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.writer, self.readers)
    }
}

impl BoardNodes {
    /// Returns the usable CPU cores on these NUMA nodes: the writer's core first, then those for
    /// readers. `nodes` has the cores of each node of the machine.
    pub fn cores(self, nodes: &[Vec<u32>], usable: &[u32]) -> Result<Vec<u32>, UsageError> {
        let of = |node: usize| match nodes.get(node) {
            Some(cores) => Ok(usable.iter().copied().filter(|core| cores.contains(core))),
            None => Err(UsageError(format!("--nodes {self}: there is no node {node}: {}", existing(nodes)))),
        };
        let none = |node: usize, more: &str| {
            let (of_node, usable) = (cpu_list::format(&nodes[node]), cpu_list::format(usable));
            UsageError(format!(
                "--nodes {self}: no core {more}on node {node}: it has {of_node}, and {usable} may be used; see --cores"
            ))
        };
        let writer = of(self.writer)?.next().ok_or_else(|| none(self.writer, ""))?;
        let readers: Vec<u32> = of(self.readers)?.filter(|core| *core != writer).collect();
        if readers.is_empty() {
            return Err(none(self.readers, "for readers "));
        }
        Ok([vec![writer], readers].concat())
    }
}

/// Describes the nodes that exist, and what to do.
fn existing(nodes: &[Vec<u32>]) -> String {
    let describe =
        |(node, cores): (usize, &Vec<u32>)| format!("{node} with cores {}", cpu_list::format(cores));
    let all: Vec<String> = nodes.iter().enumerate().map(describe).collect();
    match all.as_slice() {
        [] => "the kernel names no nodes here; choose cores with --cores".into(),
        [one] => format!(
            "this machine has one NUMA node ({one}), which leaves nothing to compare; leave --nodes out"
        ),
        several => format!("the nodes are {}", several.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planner::host::{Machine, fake};

    fn nodes(text: &str) -> BoardNodes {
        text.parse().unwrap()
    }

    #[test]
    fn writer_and_readers_get_cores_of_their_nodes() {
        let machine = fake::server().machine();
        let all = &machine.cores_allowed;
        let cores = |text| nodes(text).cores(&machine.numa_nodes, all).unwrap();
        assert_eq!(cores("0:1"), [0, 4, 5, 6, 7, 12, 13, 14, 15]);
        assert_eq!(cores("1:1"), [4, 5, 6, 7, 12, 13, 14, 15]);
        assert_eq!(nodes("1:0").cores(&machine.numa_nodes, &[9, 5, 1]).unwrap(), [5, 9, 1]);
        assert_eq!(nodes("1:0").to_string(), "1:0");
    }

    #[test]
    fn missing_node_is_named_with_the_remedy() {
        let (one, two) = (fake::two_core_vm().machine(), fake::server().machine());
        let refused = |machine: &Machine, text, cores: &[u32]| {
            nodes(text).cores(&machine.numa_nodes, cores).unwrap_err().0
        };
        let error = refused(&one, "0:1", &[0, 1]);
        assert!(
            ["no node 1", "one NUMA node", "leave --nodes out"]
                .iter()
                .all(|expected| error.contains(expected)),
            "{error}"
        );
        let error = refused(&two, "0:2", &two.cores_allowed);
        assert!(error.contains("0 with cores 0-3,8-11; 1 with cores 4-7,12-15"), "{error}");
        assert!(refused(&two, "0:0", &[3, 4]).contains("no core for readers on node 0"));
        assert!(refused(&two, "0:1", &[4, 5]).contains("no core on node 0"));
        assert!(BoardNodes { writer: 0, readers: 1 }.cores(&[], &[0]).unwrap_err().0.contains("--cores"));
        for text in ["0", "0:", ":1", "a:b", "0:1:2", "-1:0"] {
            assert!(text.parse::<BoardNodes>().unwrap_err().contains(text), "{text}");
        }
    }
}
