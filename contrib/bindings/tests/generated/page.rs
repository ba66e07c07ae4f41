//! The page of the docs on everything that an external program accesses.

use super::source::{Constant, Interface, Structure};
use protocol::plan::{Idle, Plan, Trading};
use protocol::topology::{self, SegmentPurpose};
use protocol::trading::{PROCESS_VARIABLE, RUN_VARIABLE};
use shm::attached::Access;
use std::fmt::Write;

const HEAD: &str = "# What a program touches

**In short.** A [strategy in another language](languages.md) sees its run through two environment variables, the library's functions, and structures of
integers; the library maps the segments. Made of the code by `cargo test -p bindings --test generated` with `BULKHEAD_GOLDEN=1`; without, that test
fails where this page is old.
";

fn table(text: &mut String, head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    let _ = writeln!(text, "\n| {} |\n|{}", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
}

/// A sentence as a cell: without its end.
fn cell(doc: &str) -> String {
    doc.strip_suffix('.').unwrap_or(doc).replace('|', "\\|")
}

fn environment(text: &mut String) {
    text.push_str("\n## The environment\n");
    let row = |name: &str, what: &str| vec![format!("`{name}`"), what.to_owned()];
    let rows = [
        row(RUN_VARIABLE, "the run: its id, which is the middle of the names of its segments"),
        row(PROCESS_VARIABLE, "which process of the run this is, for example `strategy-1`"),
    ];
    table(text, &["variable", "what it says"], rows);
}

/// A run with a program as its second strategy, at an exchange.
fn plan() -> Plan {
    let mut trading = Trading::new(2, 1);
    trading.strategy_kinds = vec![Trading::PLAYER.into(), "exec:./mine".into()];
    trading.venue_kinds = vec![Trading::BOOK.into()];
    trading.market_data = true;
    let mut plan = Plan::for_trading(trading).arranged();
    plan.threads.iter_mut().for_each(|thread| thread.idle = Idle::Park);
    plan
}

/// Returns the purpose of a segment for a strategy.
fn purpose(plan: &Plan, purpose: SegmentPurpose) -> String {
    match purpose {
        SegmentPurpose::Control => "plan and state of the run, the pids, the fences".into(),
        SegmentPurpose::Link(link) if plan.links[link].name.starts_with("return") => {
            "reports: a ring that the engine writes".into()
        }
        SegmentPurpose::Link(_) => "orders: what carries them is the technique".into(),
        SegmentPurpose::Schedule(_) => "the orders that its strategy would play by a schedule".into(),
        SegmentPurpose::Positions(_) => "the positions that it inherits from the one before it".into(),
        SegmentPurpose::Thread(_) => "status, counters and stamp log of its thread".into(),
        SegmentPurpose::Bell(thread) if plan.threads[thread].name == "strategy-1" => {
            "the doorbell: says that its thread sleeps".into()
        }
        SegmentPurpose::Bell(_) => "the doorbell of a thread that it rings".into(),
        SegmentPurpose::Wake(from, _) if plan.threads[from].name == "strategy-1" => {
            "the word through which it wakes the engine".into()
        }
        SegmentPurpose::Wake(..) => "the word through which the engine wakes it".into(),
        SegmentPurpose::Market(_) => "the board: the touches of a venue's instruments".into(),
        other => panic!("no strategy touches {other:?}: say here what it is for"),
    }
}

fn segments(text: &mut String) {
    text.push_str(
        "\n## The segments\n\nWhat the library maps for a program, of files in `/dev/shm` whose names begin with `bulkhead.RUN.`, here for `strategy-1` of a run\n\
         with two strategies, one exchange, `spsc-mux` and `--idle park`. A program need not know them: their contents are bulkhead's own and change with\n\
         its versions.\n",
    );
    let plan = plan();
    plan.validate().expect("it can be");
    let process = plan.processes.iter().find(|process| process.name == "strategy-1").expect("it is there");
    let roles: Vec<_> = plan.roles_of(process).collect();
    let all = topology::segments(&plan).into_iter().chain([topology::control_segment(0)]);
    let rows = all.filter_map(|segment| {
        let access = segment.access(roles.iter().copied())?;
        let rights = if access == Access::Write { "write" } else { "read" };
        let name = format!("`{}`", segment.spec.name);
        Some(vec![name, rights.into(), purpose(&plan, segment.purpose)])
    });
    table(text, &["segment", "rights", "what it is"], rows);
}

fn functions(text: &mut String, interface: &Interface) {
    text.push_str("\n## The functions\n\nAll of the thread that has attached. `contrib/bindings/include/bulkhead.h` has the details of each.\n");
    let rows = interface.functions.iter().map(|function| {
        vec![format!("`{}({})`", function.name, function.arguments.join(", ")), cell(&function.doc)]
    });
    table(text, &["function", "what it does"], rows);
}

fn structure(text: &mut String, found: &Structure) {
    let _ = write!(text, "\n### bh_{}, {} bytes\n\n{}\n", found.name.to_lowercase(), found.size(), found.doc);
    text.push('\n');
    for field in &found.fields {
        let (offset, name, kind) = (field.offset, &field.name, field.kind());
        let _ = writeln!(text, "- {offset} `{name}` {kind}: {}", cell(&field.doc));
    }
}

fn codes<'a>(text: &mut String, constants: impl Iterator<Item = &'a Constant>) {
    text.push('\n');
    for one in constants {
        let _ = writeln!(text, "- `BH_{}` {}: {}", one.name, one.value, cell(&one.doc));
    }
}

/// Writes the values of fields as a list of groups: the comment of each names its group before a
/// colon.
fn values<'a>(text: &mut String, constants: impl Iterator<Item = &'a Constant>) {
    let mut group = "";
    for one in constants {
        let (name, meaning) = one.doc.split_once(": ").expect("a value names its group");
        if name != group {
            let _ = writeln!(text, "\n{name}:\n");
            group = name;
        }
        let _ = writeln!(text, "- `BH_{}` {}: {}", one.name, one.value, cell(meaning));
    }
}

/// The page.
pub fn render(interface: &Interface) -> String {
    let mut text = HEAD.to_owned();
    environment(&mut text);
    segments(&mut text);
    functions(&mut text, interface);
    text.push_str(
        "\n## The structures\n\nLittle-endian, aligned to 8 bytes, without hidden room between fields. Each field has its offset in bytes, name and type.\n",
    );
    interface.structures.iter().for_each(|found| structure(&mut text, found));
    text.push_str("\n## The codes\n\nWhat a call returns: 0 and above is success, from −1 to −15 an answer, from −16 down a mistake.\n");
    let is_returned = |one: &&Constant| one.value <= 0 && one.name != "VERSION";
    let (returned, others): (Vec<&Constant>, Vec<&Constant>) = {
        let end = interface.constants.iter().position(|one| one.name == "NEW").unwrap_or(0);
        let (codes, others) = interface.constants.split_at(end);
        (codes.iter().filter(is_returned).collect(), others.iter().collect())
    };
    codes(&mut text, returned.into_iter());
    text.push_str("\n## The values\n");
    values(&mut text, others.into_iter());
    let version = interface.constant("VERSION");
    let _ = write!(
        text,
        "\nThis is version {}.{} of the interface (`BH_VERSION`).\n",
        version >> 16,
        version & 0xFFFF
    );
    text
}
