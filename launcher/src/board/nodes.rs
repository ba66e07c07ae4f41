//! On which NUMA nodes writer and readers run: `0:1` is the writer on the first node, the readers on the second.

use crate::config::UsageError;
use analysis::lists;
use std::fmt;
use std::str::FromStr;

/// Nodes by their place among those that have cores for this process, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// The writer's, and that of the board's memory.
    pub writer: usize,
    /// The readers'.
    pub readers: usize,
}

impl FromStr for Nodes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let both = text.split_once(':').and_then(|(writer, readers)| {
            Some(Self { writer: writer.parse().ok()?, readers: readers.parse().ok()? })
        });
        both.ok_or_else(|| format!("{text:?} are no nodes: expected the writer's and the readers', as 0:1"))
    }
}

impl fmt::Display for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.writer, self.readers)
    }
}

impl Nodes {
    /// Of the cores that may be used, the writer's, then those for readers.
    ///
    /// # Errors
    /// There is no such node, or too few cores on it.
    pub fn cores(self, nodes: &[Vec<u32>], usable: &[u32]) -> Result<Vec<u32>, UsageError> {
        let of = |node: usize| match nodes.get(node) {
            Some(cores) => Ok(usable.iter().copied().filter(|core| cores.contains(core))),
            None => Err(UsageError(format!("--nodes {self}: {}", there_are(nodes)))),
        };
        let none = |node: usize, more: &str| {
            let of_node = lists::format(&nodes[node]);
            UsageError(format!(
                "--nodes {self}: no core {more}on node {node} (it has {of_node}, to be used are {}): see --cores",
                lists::format(usable)
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

/// What there is instead, and the way out.
fn there_are(nodes: &[Vec<u32>]) -> String {
    let all: Vec<String> = nodes
        .iter()
        .enumerate()
        .map(|(node, cores)| format!("{node} with cores {}", lists::format(cores)))
        .collect();
    match all.as_slice() {
        [] => "this machine does not say what nodes it has; --cores names cores".into(),
        [one] => format!(
            "this machine has one NUMA node ({one}), so there is nothing to compare: leave --nodes out"
        ),
        several => format!("the nodes are {}", several.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake;

    fn nodes(text: &str) -> Nodes {
        text.parse().unwrap()
    }

    #[test]
    fn the_writer_and_the_readers_get_cores_of_their_nodes() {
        let machine = fake::server().machine();
        let all = &machine.cores_allowed;
        let cores = |text| nodes(text).cores(&machine.numa_nodes, all).unwrap();
        assert_eq!(cores("0:1"), [0, 4, 5, 6, 7, 12, 13, 14, 15]);
        assert_eq!(cores("1:1"), [4, 5, 6, 7, 12, 13, 14, 15]);
        assert_eq!(nodes("1:0").cores(&machine.numa_nodes, &[9, 5, 1]).unwrap(), [5, 9, 1]);
        assert_eq!(nodes("1:0").to_string(), "1:0");
    }

    #[test]
    fn what_is_not_there_is_named_with_what_is() {
        let (one, two) = (fake::two_core_vm().machine(), fake::server().machine());
        let refused = |machine: &crate::host::Machine, text, cores: &[u32]| {
            nodes(text).cores(&machine.numa_nodes, cores).unwrap_err().0
        };
        let error = refused(&one, "0:1", &[0, 1]);
        assert!(error.contains("one NUMA node") && error.contains("leave --nodes out"), "{error}");
        let error = refused(&two, "0:2", &two.cores_allowed);
        assert!(error.contains("0 with cores 0-3,8-11; 1 with cores 4-7,12-15"), "{error}");
        assert!(refused(&two, "0:0", &[3, 4]).contains("no core for readers on node 0"));
        assert!(refused(&two, "0:1", &[4, 5]).contains("no core on node 0"));
        assert!(Nodes { writer: 0, readers: 1 }.cores(&[], &[0]).unwrap_err().0.contains("--cores"));
        for text in ["0", "0:", ":1", "a:b", "0:1:2", "-1:0"] {
            assert!(text.parse::<Nodes>().unwrap_err().contains(text), "{text}");
        }
    }
}
