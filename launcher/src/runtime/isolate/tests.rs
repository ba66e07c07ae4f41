//! On a tree of files that a test makes up: what is changed, and that all of it is put back, by whoever comes last.

use super::*;
use crate::host::fake;
use crate::planner::tests::planned;
use std::collections::BTreeMap;

const GROUPS: &str = "sys/fs/cgroup";

/// Three cores, cgroup v2 with the controller, four interrupts: of all cores, of two, of a measured one alone, of another.
fn tree() -> fake::Tree {
    let tree = fake::plain(3);
    tree.put("proc/self/mounts", "none /sys/fs/cgroup cgroup2 rw 0 0\n");
    tree.put("sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n");
    tree.put("sys/fs/cgroup/cgroup.subtree_control", "");
    tree.put("proc/irq/default_smp_affinity", "7\n");
    for (irq, cores) in [(24, "0-2"), (25, "0,2"), (26, "2"), (27, "0")] {
        tree.put(&format!("proc/irq/{irq}/smp_affinity_list"), cores);
    }
    tree.put("run/other", "");
    tree
}

fn files(tree: &fake::Tree) -> Tree<'_> {
    fn remove(group: &Path) -> io::Result<()> {
        fs::remove_dir_all(group)
    }
    Tree { root: tree.root(), remove }
}

/// A run on the cores 1 and 2.
fn plan(number: u32) -> (Plan, Machine) {
    let machine = fake::plain(3).machine();
    let (_, mut plan, _) = planned("", &machine).unwrap();
    plan.run = format!("20261120-142421123-{number}-2147483632");
    assert_eq!(measured(&plan), Some(vec![1, 2]));
    (plan, machine)
}

fn seen(tree: &fake::Tree, path: &str) -> String {
    fs::read_to_string(tree.root().join(path)).unwrap_or_default().trim().to_owned()
}

/// Everything that a run could have changed.
fn everything(tree: &fake::Tree) -> BTreeMap<String, String> {
    let interrupts = (24..=27).map(|irq| format!("proc/irq/{irq}/smp_affinity_list"));
    let found = interrupts.map(|path| (path.clone(), seen(tree, &path)));
    let names = ["run", GROUPS].into_iter().flat_map(|folder| {
        fs::read_dir(tree.root().join(folder))
            .unwrap()
            .map(|entry| (entry.unwrap().path().display().to_string(), String::new()))
    });
    found.chain(names).collect()
}

#[test]
fn cores_are_isolated_and_everything_is_put_back() {
    let (tree, (plan, machine)) = (tree(), plan(1));
    let before = everything(&tree);
    let group = group_of(&plan, &machine, files(&tree)).unwrap();
    assert_eq!(everything(&tree), before, "who only asks changes nothing");
    let isolated = Isolated::begin(&plan, &machine, files(&tree)).unwrap();
    assert_eq!(isolated.unmoved(), None);
    let of_group = |file: &str| fs::read_to_string(Path::new(&group).join(file)).unwrap();
    assert_eq!(
        (of_group("cpuset.cpus"), of_group("cpuset.cpus.partition")),
        ("1,2".into(), "isolated".into())
    );
    assert_eq!(seen(&tree, "sys/fs/cgroup/cgroup.subtree_control"), "+cpuset");
    let moved = [24, 25, 26, 27].map(|irq| seen(&tree, &format!("proc/irq/{irq}/smp_affinity_list")));
    assert_eq!(moved, ["0"; 4]);
    enter(&group).unwrap();
    assert_eq!(of_group("cgroup.procs"), "0");
    assert_eq!(isolated.end(), [""; 0]);
    assert_eq!(everything(&tree), before);
    assert_eq!(seen(&tree, "sys/fs/cgroup/cgroup.subtree_control"), "-cpuset");
    assert_eq!(put_back(files(&tree), &plan.run), [""; 0], "a second time there is nothing to do");
}

#[test]
fn a_launcher_that_is_killed_leaves_a_record_that_says_all() {
    let (tree, (plan, machine)) = (tree(), plan(2));
    let before = everything(&tree);
    let isolated = Isolated::begin(&plan, &machine, files(&tree)).unwrap();
    // As if it had been killed: nothing of it is dropped.
    std::mem::forget(isolated);
    let left = records(files(&tree));
    assert_eq!(left.iter().map(|(run, _)| run.to_string()).collect::<Vec<_>>(), [plan.run.as_str()]);
    assert_eq!(put_back(files(&tree), &plan.run), [""; 0]);
    assert_eq!(everything(&tree), before);
}

#[test]
fn one_that_is_killed_on_the_way_has_nothing_put_back_that_it_did_not_change() {
    let (tree, (plan, machine)) = (tree(), plan(3));
    let before = everything(&tree);
    let record = Record { hands_on: true, interrupts: interrupts::on(tree.root(), &[1, 2], &[0]) };
    write(files(&tree), &plan.run, &record).unwrap();
    assert_ne!(everything(&tree), before, "the record is there");
    assert!(
        Isolated::begin(&plan, &machine, files(&tree))
            .err()
            .unwrap()
            .to_string()
            .contains("isolates cores already")
    );
    put_back(files(&tree), &plan.run);
    assert_eq!(everything(&tree), before);
    fs::write(place(files(&tree), &plan.run), "{\"hands_on\":tr").unwrap();
    put_back(files(&tree), &plan.run);
    assert_eq!(everything(&tree), before, "a record that is cut short was followed by nothing");
}

#[test]
fn what_somebody_else_has_moved_since_stays_there() {
    let (tree, (plan, machine)) = (tree(), plan(4));
    let isolated = Isolated::begin(&plan, &machine, files(&tree)).unwrap();
    tree.put("proc/irq/24/smp_affinity_list", "1");
    fs::remove_dir_all(tree.root().join("proc/irq/26")).unwrap();
    assert_eq!(isolated.end(), [""; 0]);
    assert_eq!(seen(&tree, "proc/irq/24/smp_affinity_list"), "1");
    assert_eq!(seen(&tree, "proc/irq/25/smp_affinity_list"), "0,2");
}

#[test]
fn what_cannot_be_put_back_is_said_and_can_be_tried_again() {
    let (tree, (plan, machine)) = (tree(), plan(5));
    let before = everything(&tree);
    // A way of removing that does not: the check must find it.
    let broken = Tree { remove: |_| Err(io::Error::from(ErrorKind::PermissionDenied)), ..files(&tree) };
    let isolated = Isolated::begin(&plan, &machine, broken).unwrap();
    let said = isolated.end();
    assert!(said.len() == 1 && said[0].contains("permission denied"), "{said:?}");
    assert_eq!(records(files(&tree)).len(), 1);
    assert_eq!(put_back(files(&tree), &plan.run), [""; 0]);
    assert_eq!(everything(&tree), before);
}

#[test]
fn a_partition_that_the_kernel_makes_none_of_is_refused_and_put_back() {
    let (tree, (plan, machine)) = (tree(), plan(6));
    let before = everything(&tree);
    // There already, and nobody's who could be asked.
    let group = group_of(&plan, &machine, files(&tree)).unwrap();
    fs::create_dir(&group).unwrap();
    let refused = Isolated::begin(&plan, &machine, files(&tree)).err().unwrap();
    assert!(refused.is::<UsageError>() && refused.to_string().contains("leave --isolate out"), "{refused}");
    assert_eq!(everything(&tree), before);
}

#[test]
fn where_it_cannot_be_had_is_said_before_anything_is_changed() {
    let (plan, machine) = plan(7);
    let refused = |tree: &fake::Tree, machine: &Machine| {
        let message = group_of(&plan, machine, files(tree)).unwrap_err().to_string();
        assert!(
            message.starts_with("--isolate: ") && message.ends_with(", or leave --isolate out"),
            "{message}"
        );
        message
    };
    let none = fake::plain(3);
    assert!(refused(&none, &machine).contains("no control groups are mounted"));
    none.put(
        "proc/self/mounts",
        "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\nc /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
    );
    assert!(refused(&none, &machine).contains("in the hands of cgroup v1"));
    let without = tree();
    without.put("sys/fs/cgroup/cgroup.controllers", "cpu memory");
    assert!(refused(&without, &machine).contains("no cpuset controller"));
    let without = tree();
    fs::remove_file(without.root().join("proc/irq/default_smp_affinity")).unwrap();
    assert!(refused(&without, &machine).contains("may not be written"));
    let small = Machine { cores_allowed: vec![1, 2], ..machine };
    assert!(refused(&tree(), &small).contains("takes every core, 1,2"));
}

#[test]
fn what_is_no_record_of_ours_is_no_record() {
    let tree = tree();
    for name in
        ["bulkhead.x.isolated", "bulkhead.20261120-142421123-1-2.other", "20261120-142421123-1-2.isolated"]
    {
        tree.put(&format!("run/{name}"), "{}");
    }
    std::os::unix::fs::symlink("other", tree.root().join("run/bulkhead.20261120-142421123-1-2.isolated"))
        .unwrap();
    assert_eq!(records(files(&tree)), []);
}
