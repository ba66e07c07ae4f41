use super::*;
use crate::program::HOSTILE;
use crate::settings::Settings;
use launcher::protocol::plan::Pacing;
use launcher::protocol::wire::{OrderId, OrderRequest};
use launcher::shm::memory::{Region, header::HEADER_WORDS};
use launcher::strategy::Refused;
use launcher::system::clock::Timebase;

/// Accepts each order.
struct Accepting {
    sent: Vec<OrderRequest>,
    dues: Vec<Option<u64>>,
}

impl Accepting {
    const fn new() -> Self {
        Self { sent: Vec::new(), dues: Vec::new() }
    }
}

impl Orders for Accepting {
    fn send_due(&mut self, order: OrderRequest, due: Option<u64>) -> Result<OrderId, Refused> {
        self.sent.push(order);
        self.dues.push(due);
        Ok(OrderId::new(0, 0, self.sent.len() as u64 - 1))
    }
    fn open(&self) -> u64 {
        0
    }
    fn now(&self) -> u64 {
        5_000
    }
    fn time(&self) -> Timebase {
        Timebase { start_ticks: 1_000, ns_per_tick: 2.0 }
    }
}

fn context() -> Context {
    Context::new(0, Region::heap(HEADER_WORDS).words().into(), 0, Pacing::Closed)
}

fn settings() -> Settings {
    Settings { deadline_ms: 40, memory_bytes: 8 << 20, ..Settings::default() }
}

/// Returns a strategy of a module with these parts, whose memory has one page.
fn module(parts: &str) -> WasmStrategy {
    let imports = "
        (import \"bulkhead\" \"bh_get_context\" (func $get_context (param i32) (result i32)))
        (import \"bulkhead\" \"bh_poll\" (func $poll (param i32 i32 i64) (result i32)))
        (import \"bulkhead\" \"bh_send\" (func $send (param i32 i32) (result i32)))
        (import \"bulkhead\" \"bh_send_due\" (func $send_due (param i32 i64 i32) (result i32)))
        (import \"bulkhead\" \"bh_board_read\" (func $board_read (param i32) (result i32)))
        (import \"bulkhead\" \"bh_now\" (func $now (param i32) (result i32)))
        (import \"bulkhead\" \"bh_finish\" (func $finish (result i32)))
        (memory (export \"memory\") 1)
        (global $last (export \"last\") (mut i32) (i32.const -99))";
    let text = format!("(module {imports} {parts})");
    WasmStrategy::new(&Arc::new(Program::new("test", text, &settings())), &context())
}

/// Returns a strategy whose cycle stores what `call` returns.
fn calling(call: &str) -> WasmStrategy {
    module(&format!("(func (export \"bh_cycle\") (global.set $last {call}))"))
}

/// Calls once; what the module's last call returned, or why it ended.
fn call(strategy: &mut WasmStrategy, orders: &mut Accepting) -> Result<i32, String> {
    start_epochs(&strategy.program);
    strategy.call(orders)?;
    Ok(strategy.last())
}

impl WasmStrategy {
    /// Returns the module's global `last`.
    fn last(&mut self) -> i32 {
        let Running { store, instance, .. } = self.running.as_mut().unwrap();
        instance.get_global(&mut *store, "last").unwrap().get(&mut *store).i32().unwrap()
    }

    fn memory(&mut self) -> &mut [u8] {
        let store = &mut self.running.as_mut().unwrap().store;
        store.data().memory.unwrap().data_mut(store)
    }
}

#[test]
fn pointer_outside_of_memory_ends_call_with_its_address() {
    for (calls, expected) in [
        ("(call $get_context (i32.const 65497))", "bh_get_context: context at 0xffd9 with 40 bytes"),
        ("(call $poll (i32.const 65481) (i32.const 1) (i64.const 0))", "bh_poll: reports at 0xffc9 with 56"),
        (
            "(call $poll (i32.const 8) (i32.const -1) (i64.const 0))",
            "bh_poll: reports at 0x8 with 120259084232",
        ),
        ("(call $send (i32.const 65473) (i32.const 0))", "bh_send: order at 0xffc1 with 64 bytes"),
        ("(call $send (i32.const -1) (i32.const 0))", "bh_send: order at 0xffffffff with 64 bytes"),
        ("(call $send (i32.const 64) (i32.const 65529))", "bh_send: sequence at 0xfff9 with 8 bytes"),
        ("(call $send_due (i32.const -8) (i64.const 0) (i32.const 0))", "bh_send_due: order at 0xfffffff8"),
        ("(call $board_read (i32.const 65449))", "bh_board_read: tick at 0xffa9 with 88 bytes"),
        ("(call $now (i32.const 65529))", "bh_now: number at 0xfff9 with 8 bytes"),
    ] {
        let mut orders = Accepting::new();
        let ended = call(&mut calling(calls), &mut orders).unwrap_err();
        assert!(ended.contains(expected), "{calls}: {ended}");
        assert!(ended.contains("is outside of the memory of 65536"), "{calls}: {ended}");
        assert!(orders.sent.is_empty(), "{calls}: nothing was sent");
    }
}

#[test]
fn last_bytes_of_memory_are_valid() {
    for (calls, returned) in [
        ("(call $get_context (i32.const 65496))", 0),
        ("(call $poll (i32.const 65480) (i32.const 1) (i64.const 0))", 0),
        ("(call $poll (i32.const 0) (i32.const 0) (i64.const 0))", 0),
        ("(call $send (i32.const 65472) (i32.const 65528))", 0),
        ("(call $board_read (i32.const 65448))", 0),
        ("(call $now (i32.const 65528))", 0),
    ] {
        assert_eq!(call(&mut calling(calls), &mut Accepting::new()), Ok(returned), "{calls}");
    }
}

#[test]
fn null_and_invalid_order_are_codes() {
    use bulkhead::codes::{BH_BAD_ORDER, BH_NULL};
    for (calls, code) in [
        ("(call $get_context (i32.const 0))", BH_NULL),
        ("(call $poll (i32.const 0) (i32.const 1) (i64.const 0))", BH_NULL),
        ("(call $send (i32.const 0) (i32.const 0))", BH_NULL),
        ("(call $now (i32.const 0))", BH_NULL),
    ] {
        assert_eq!(call(&mut calling(calls), &mut Accepting::new()), Ok(code), "{calls}");
    }
    let mut strategy = calling("(call $send (i32.const 64) (i32.const 0))");
    // No operation has this code.
    strategy.memory()[64 + 52] = 9;
    let mut orders = Accepting::new();
    assert_eq!(call(&mut strategy, &mut orders), Ok(BH_BAD_ORDER));
    assert!(orders.sent.is_empty());
}

#[test]
fn order_sequence_time_and_report_are_in_memory() {
    let mut strategy = calling("(call $send_due (i32.const 64) (i64.const 4000) (i32.const 192))");
    strategy.memory()[64..72].copy_from_slice(&41_300_i64.to_le_bytes());
    strategy.memory()[64 + 48] = 3;
    let mut orders = Accepting::new();
    for sequence in 0..3_u64 {
        assert_eq!(call(&mut strategy, &mut orders), Ok(0));
        assert_eq!(strategy.memory()[192..200], sequence.to_le_bytes());
    }
    assert_eq!((orders.sent[2].price, orders.sent[2].venue), (41_300, 3));
    assert_eq!(orders.dues[2], Some(3_000), "4,000 ns after tick 1,000");

    let mut strategy = calling("(call $now (i32.const 64))");
    call(&mut strategy, &mut Accepting::new()).unwrap();
    assert_eq!(strategy.memory()[64..72], 8_000_u64.to_le_bytes());

    let mut strategy = calling("(call $poll (i32.const 64) (i32.const 2) (i64.const 600))");
    let order = OrderRequest::to_venue(7).with_id(OrderId::new(0, 0, 5));
    strategy.on_report(&Report::full_fill(&order), &mut Accepting::new());
    assert_eq!(call(&mut strategy, &mut Accepting::new()), Ok(1));
    assert_eq!(strategy.memory()[64..72], 5_u64.to_le_bytes());
    assert_eq!((strategy.memory()[64 + 40], strategy.memory()[64 + 48]), (7, 1), "venue, is last");
    assert_eq!(strategy.next_due(), u64::MAX);
    assert_eq!(call(&mut strategy, &mut Accepting::new()), Ok(0));
    assert_eq!(strategy.next_due(), 5_300, "600 ns after the cycle began");
}

#[test]
fn hostile_module_ends_within_its_limits() {
    for (name, function) in HOSTILE {
        let message = match name {
            "wasm-loop" | "wasm-grow" => "interrupted: one call took longer than 40 ms",
            "wasm-store" => "out of bounds memory access",
            "wasm-unreachable" => "unreachable",
            "wasm-pointer" => "bh_send: order at 0xfffffff0",
            "wasm-recursion" => "call stack exhausted",
            other => panic!("{other} is new here"),
        };
        let program = Arc::new(Program::hostile(name, function, &settings()));
        let mut strategy = WasmStrategy::new(&program, &context());
        let mut orders = Accepting::new();
        let ended = (0..200).find_map(|_| {
            let ended = strategy.call(&mut orders).err();
            if let Some(order) = orders.sent.last() {
                let order = order.with_id(OrderId::new(0, 0, orders.sent.len() as u64 - 1));
                strategy.on_report(&Report::full_fill(&order), &mut Accepting::new());
            }
            start_epochs(&program);
            ended
        });
        let ended = ended.unwrap_or_else(|| panic!("{name} trades on"));
        assert!(ended.contains(message), "{name}: {ended}");
        assert_eq!(orders.sent.len(), 100, "{name}");
        let memory = strategy.memory_bytes();
        assert!(memory <= settings().memory_bytes, "{name}: {memory} bytes");
        assert_eq!(memory > 4 << 20, name == "wasm-grow", "{name}: {memory} bytes");
    }
}

#[test]
fn start_function_that_hangs_is_interrupted() {
    let strategy =
        module("(func (export \"bh_cycle\")) (func $hang (loop $forever (br $forever))) (start $hang)");
    assert!(strategy.running.is_err_and(|why| why.starts_with("interrupted: ")));
}

#[test]
fn call_outside_of_cycle_is_refused() {
    let strategy = module(
        "(func (export \"bh_cycle\")) (func $early (drop (call $send (i32.const 64) (i32.const 0)))) (start $early)",
    );
    assert!(strategy.running.is_err_and(|why| why.contains("bh_send: only valid within bh_cycle")));
}

#[test]
fn reports_that_are_never_polled_end_strategy() {
    let mut strategy = module("(func (export \"bh_cycle\"))");
    let order = OrderRequest::to_venue(0).with_id(OrderId::new(0, 0, 0));
    for _ in 0..=1 << 16 {
        strategy.on_report(&Report::full_fill(&order), &mut Accepting::new());
    }
    let ended = strategy.call(&mut Accepting::new()).unwrap_err();
    assert!(ended.contains("65536 reports were never polled"), "{ended}");
}

#[test]
fn finished_module_is_not_called_again() {
    let mut strategy = module(
        "(func (export \"bh_cycle\") (drop (call $send (i32.const 64) (i32.const 0))) (drop (call $finish)))",
    );
    let mut orders = Accepting::new();
    assert_eq!(strategy.on_cycle(&mut orders), 1);
    assert!(strategy.finished());
    assert_eq!(strategy.on_cycle(&mut orders), 0);
    assert_eq!(orders.sent.len(), 1);
}
