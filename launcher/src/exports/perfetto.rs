//! Exports a run as a Perfetto trace (TrackEvent): processes and threads are tracks, each order's
//! processing is a slice, an order is a flow through its slices, and gaps, sleeps and incidents are
//! slices on tracks of their own.
//!
//! Slices of one track must lie within each other or apart. Orders at a venue overlap, so taking
//! and answering one are moments on the gateway's track; an orchestrator's slice that would overlap
//! the one before it is a moment too.

use super::proto::ProtoMessage;
use merge::{MergedRun, OrderRow};
use protocol::index::GatewayIndex;
use protocol::plan::{Plan, Role};
use protocol::stamps::Point;
use protocol::wire::OrderId;
use record::run::RunRecord;
use std::collections::HashMap;
use std::io::{self, Write};
use verdict::summary::to_ns;

/// Field numbers of the messages, by Perfetto's own names.
mod field {
    /// Protocol-buffer field number of `Trace.packet`.
    pub const PACKET: u32 = 1;
    /// Protocol-buffer field number of `TracePacket.timestamp`.
    pub const TIMESTAMP: u32 = 8;
    /// Protocol-buffer field number of `TracePacket.trusted_packet_sequence_id`.
    pub const SEQUENCE: u32 = 10;
    /// Protocol-buffer field number of `TracePacket.track_event`.
    pub const EVENT: u32 = 11;
    /// Protocol-buffer field number of `TracePacket.sequence_flags`.
    pub const FLAGS: u32 = 13;
    /// Protocol-buffer field number of `TracePacket.track_descriptor`.
    pub const DESCRIPTOR: u32 = 60;
    /// Protocol-buffer field number of `TrackDescriptor.uuid`.
    pub const UUID: u32 = 1;
    /// Protocol-buffer field number of `TrackDescriptor.name`.
    pub const NAME: u32 = 2;
    /// Protocol-buffer field number of `TrackDescriptor.process`.
    pub const PROCESS: u32 = 3;
    /// Protocol-buffer field number of `TrackDescriptor.thread`.
    pub const THREAD: u32 = 4;
    /// Protocol-buffer field number of `TrackDescriptor.parent_uuid`.
    pub const PARENT: u32 = 5;
    /// Protocol-buffer field number of `ProcessDescriptor.pid` and `ThreadDescriptor.pid`.
    pub const PID: u32 = 1;
    /// Protocol-buffer field number of `ProcessDescriptor.process_name`.
    pub const PROCESS_NAME: u32 = 6;
    /// Protocol-buffer field number of `ThreadDescriptor.tid`.
    pub const TID: u32 = 2;
    /// Protocol-buffer field number of `ThreadDescriptor.thread_name`.
    pub const THREAD_NAME: u32 = 5;
    /// Protocol-buffer field number of `TrackEvent.type`.
    pub const TYPE: u32 = 9;
    /// Protocol-buffer field number of `TrackEvent.track_uuid`.
    pub const TRACK: u32 = 11;
    /// Protocol-buffer field number of `TrackEvent.categories`.
    pub const CATEGORY: u32 = 22;
    /// Protocol-buffer field number of `TrackEvent.name`.
    pub const EVENT_NAME: u32 = 23;
    /// Protocol-buffer field number of `TrackEvent.flow_ids`.
    pub const FLOW: u32 = 47;
    /// Protocol-buffer field number of `TrackEvent.terminating_flow_ids`.
    pub const LAST_OF_FLOW: u32 = 48;
}

const BEGIN: u64 = 1;
const END: u64 = 2;
const MOMENT: u64 = 3;
/// Descriptors come first, so nothing of an earlier state is needed.
const STATE_CLEARED: u64 = 1;

/// Tracks by number: processes, threads, the gaps of threads, the incidents of strategies, the
/// sleeps of threads.
const PROCESSES: u64 = 1 << 32;
const THREADS: u64 = 2 << 32;
const GAPS: u64 = 3 << 32;
const INCIDENTS: u64 = 4 << 32;
const SLEEPS: u64 = 5 << 32;

struct TraceEvent {
    ns: u64,
    kind: u64,
    track: u64,
    name: String,
    category: &'static str,
    /// The flow that it is part of, and whether it is the last one.
    flow: Option<(u64, bool)>,
}

impl TraceEvent {
    /// Returns the two ends of a slice that is in no flow.
    fn slice(category: &'static str, track: u64, name: &str, [from, to]: [u64; 2]) -> [Self; 2] {
        [(from, BEGIN), (to, END)].map(|(ns, kind)| Self {
            ns,
            kind,
            track,
            name: name.to_owned(),
            category,
            flow: None,
        })
    }
}

/// Writes a run's trace for Perfetto: the first `max` orders, and all gaps, sleeps and incidents.
pub fn write(record: &RunRecord, merged: &MergedRun, max: usize, out: &mut impl Write) -> io::Result<()> {
    for descriptor in descriptors(&record.plan, merged) {
        packet(
            ProtoMessage::default()
                .number(field::FLAGS, STATE_CLEARED)
                .message(field::DESCRIPTOR, &descriptor),
            out,
        )?;
    }
    let time = TraceClock { start: record.clock.start_ticks, ns_per_tick: record.clock.ns_per_tick };
    let mut events = Vec::new();
    for (id, row) in &first(merged, max) {
        order(&record.plan, &time, *id, row, &mut events);
    }
    gaps_and_sleeps(&time, merged, &mut events);
    incidents(record, &mut events);
    for event in without_overlaps(events) {
        let mut message =
            ProtoMessage::default().number(field::TYPE, event.kind).number(field::TRACK, event.track);
        if event.kind != END {
            message = message.text(field::CATEGORY, event.category).text(field::EVENT_NAME, &event.name);
            message = match event.flow {
                Some((flow, false)) => message.fixed(field::FLOW, flow),
                Some((flow, true)) => message.fixed(field::LAST_OF_FLOW, flow),
                None => message,
            };
        }
        packet(
            ProtoMessage::default().number(field::TIMESTAMP, event.ns).message(field::EVENT, &message),
            out,
        )?;
    }
    Ok(())
}

/// Returns the first `max` orders by start time. At most twice as many are kept during the
/// selection.
fn first(merged: &MergedRun, max: usize) -> Vec<(OrderId, &OrderRow)> {
    let mut first = Vec::new();
    for order in merged.orders().filter(|(_, row)| row.began() != 0) {
        first.push(order);
        if first.len() >= max.saturating_mul(2).max(1 << 16) {
            retain_earliest(&mut first, max);
        }
    }
    retain_earliest(&mut first, max);
    first
}

fn retain_earliest(orders: &mut Vec<(OrderId, &OrderRow)>, max: usize) {
    // A stable sort: orders of the same tick keep their order.
    orders.sort_by_key(|(_, row)| row.began());
    orders.truncate(max);
}

fn packet(packet: ProtoMessage, out: &mut impl Write) -> io::Result<()> {
    let packet = packet.number(field::SEQUENCE, 1);
    out.write_all(ProtoMessage::default().message(field::PACKET, &packet).bytes())
}

/// Converts ticks to nanoseconds; the start of the run is at one second, so that earlier events
/// have a time too.
struct TraceClock {
    start: u64,
    ns_per_tick: f64,
}

const START_NS: u64 = 1_000_000_000;

impl TraceClock {
    fn ns_at(&self, ticks: u64) -> u64 {
        match ticks.checked_sub(self.start) {
            Some(since) => START_NS.saturating_add(to_ns(since, self.ns_per_tick)),
            None => START_NS.saturating_sub(to_ns(self.start - ticks, self.ns_per_tick)),
        }
    }
}

fn descriptors(plan: &Plan, merged: &MergedRun) -> Vec<ProtoMessage> {
    let new = |uuid| ProtoMessage::default().number(field::UUID, uuid);
    let mut all = Vec::new();
    for (place, process) in (0u64..).zip(&plan.processes) {
        let of =
            ProtoMessage::default().number(field::PID, place + 1).text(field::PROCESS_NAME, &process.name);
        all.push(new(PROCESSES + place).message(field::PROCESS, &of));
        for thread in &process.threads {
            let index = u64::from(*thread);
            let Some(planned) = plan.threads.get(*thread as usize) else { continue };
            // Thread ids are offset from process ids.
            let of = ProtoMessage::default()
                .number(field::PID, place + 1)
                .number(field::TID, 10_000 + index)
                .text(field::THREAD_NAME, &planned.name);
            all.push(
                new(THREADS + index).number(field::PARENT, PROCESSES + place).message(field::THREAD, &of),
            );
            let Some(log) = merged.threads.get(*thread as usize) else { continue };
            for (tracks, of, what) in [(GAPS, &log.gaps, "away"), (SLEEPS, &log.sleeps, "asleep")] {
                if !of.is_empty() {
                    let track = new(tracks + index).number(field::PARENT, THREADS + index);
                    all.push(track.text(field::NAME, &format!("{} {what}", planned.name)));
                }
            }
        }
    }
    for strategy in 0..plan.trading().strategies {
        let track = new(INCIDENTS + u64::from(strategy));
        all.push(track.text(field::NAME, &format!("strategy-{strategy} incidents")));
    }
    all
}

fn track(plan: &Plan, role: Role) -> Option<u64> {
    plan.thread_of(role).map(|thread| THREADS + thread as u64)
}

fn order(plan: &Plan, time: &TraceClock, id: OrderId, row: &OrderRow, events: &mut Vec<TraceEvent>) {
    let name = format!("{}/{}", id.strategy(), id.sequence());
    let at = |point| row.at(point).map(|ticks| time.ns_at(ticks));
    let strategy = track(plan, Role::Strategy(id.strategy()));
    let orchestrator = track(plan, Role::Orchestrator);
    let gateway = row
        .pushed()
        .and_then(|(gateway, _)| track(plan, Role::Gateway(GatewayIndex(u16::try_from(gateway).ok()?))));
    let mut add = |ns: Option<u64>, track: Option<u64>, kind, what: &str, is_last| {
        if let (Some(ns), Some(track)) = (ns, track) {
            // An id's word is never 0 for a flow: it is one more.
            let flow = (kind != END).then_some((id.word() + 1, is_last));
            events.push(TraceEvent {
                ns,
                kind,
                track,
                name: format!("{what} {name}"),
                category: "order",
                flow,
            });
        }
    };
    add(at(Point::StrategySend), strategy, MOMENT, "send", false);
    for (from, to, what) in [
        (Point::OrchRecvSubmit, Point::OrchDispatch, "dispatch"),
        (Point::OrchRecvCompletion, Point::OrchReturn, "return"),
    ] {
        if let (Some(from), Some(to)) = (at(from), at(to)) {
            add(Some(from), orchestrator, BEGIN, what, false);
            add(Some(to.max(from)), orchestrator, END, what, false);
        }
    }
    add(at(Point::GatewayRecv), gateway, MOMENT, "venue takes", false);
    add(at(Point::GatewayDone), gateway, MOMENT, "venue answers", false);
    add(at(Point::StrategyRecv), strategy, MOMENT, "receive", true);
}

fn gaps_and_sleeps(time: &TraceClock, merged: &MergedRun, events: &mut Vec<TraceEvent>) {
    for (index, thread) in (0u64..).zip(&merged.threads) {
        for (tracks, of, category) in [(GAPS, &thread.gaps, "gap"), (SLEEPS, &thread.sleeps, "sleep")] {
            for gap in of {
                let times = [gap.ended.saturating_sub(gap.ticks), gap.ended].map(|ticks| time.ns_at(ticks));
                events.extend(TraceEvent::slice(category, tracks + index, &gap.to_string(), times));
            }
        }
    }
}

fn incidents(record: &RunRecord, events: &mut Vec<TraceEvent>) {
    for incident in &record.incidents {
        let track = INCIDENTS + u64::from(incident.strategy.0);
        let begin = incident.fault_ns.unwrap_or(incident.detected_ns);
        let over = incident.restarted_ns.or(incident.repaired_ns).unwrap_or(incident.fenced_ns);
        let times = [begin, over.max(begin)].map(|ns| START_NS.saturating_add(ns));
        events.extend(TraceEvent::slice("incident", track, &incident.cause, times));
    }
}

/// Sorts events by time. A slice that overlaps the one before it on its track becomes a moment.
fn without_overlaps(events: Vec<TraceEvent>) -> Vec<TraceEvent> {
    // Begin and end follow each other as they were made.
    let mut events = events.into_iter().peekable();
    let (mut moments, mut slices) = (Vec::new(), Vec::new());
    while let Some(event) = events.next() {
        match event.kind {
            BEGIN => match events.next_if(|next| next.kind == END && next.track == event.track) {
                Some(end) => slices.push((event, end)),
                None => moments.push(TraceEvent { kind: MOMENT, ..event }),
            },
            END => {}
            _ => moments.push(event),
        }
    }
    slices.sort_by_key(|(begin, _)| begin.ns);
    let mut next_free_ns: HashMap<u64, u64> = HashMap::new();
    let mut all: Vec<(u64, TraceEvent)> = Vec::new();
    for (begin, end) in slices {
        let track_free_ns = next_free_ns.entry(begin.track).or_insert(0);
        if begin.ns < *track_free_ns {
            moments.push(TraceEvent { kind: MOMENT, ..begin });
        } else {
            *track_free_ns = end.ns;
            // An end comes before what begins in the same nanosecond, but after its own beginning.
            let order = if end.ns > begin.ns { 0 } else { 2 };
            all.push((1, begin));
            all.push((order, end));
        }
    }
    all.extend(moments.into_iter().map(|event| (3, event)));
    all.sort_by_key(|(order, event)| (event.ns, *order));
    all.into_iter().map(|(_, event)| event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(ns: u64, kind: u64) -> TraceEvent {
        TraceEvent { ns, kind, track: 1, name: ns.to_string(), category: "order", flow: None }
    }

    #[test]
    fn slices_of_a_track_never_overlap() {
        let slice = |from, to| [event(from, BEGIN), event(to, END)];
        // The second begins within the first; the third begins where the first ends; the fourth
        // takes no time.
        let all = [slice(10, 20), slice(15, 30), slice(20, 25), slice(40, 40)];
        let found = without_overlaps(all.into_iter().flatten().chain([event(12, MOMENT)]).collect());
        let found: Vec<(u64, u64)> = found.iter().map(|event| (event.ns, event.kind)).collect();
        let wanted = [
            (10, BEGIN),
            (12, MOMENT),
            (15, MOMENT),
            (20, END),
            (20, BEGIN),
            (25, END),
            (40, BEGIN),
            (40, END),
        ];
        assert_eq!(found, wanted);
    }
}
