//! Figures of synthetic runs, which are known in advance; the histograms round-trip.

use crate::common::{run, summary};
use crate::fixture::{Fixture, NS_PER_TICK, RT_VENUE, STAGES, Shape};
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use protocol::flow::Stage;
use protocol::plan::{Pacing, Stamps};
use protocol::stamps::Point;
use protocol::wire::OrderId;
use verdict::summary::{Distribution, Figures, Measure};

#[test]
fn fixed_stages_are_measured_exactly() {
    let summary = summary(&Fixture::new(Shape { reject_every: 4, ..Shape::PLAIN }));
    let stages = &summary.stages;
    let fixed = [
        (stages[Stage::Submit], STAGES[1]),
        (stages[Stage::OrchPreDispatch], STAGES[2]),
        (stages[Stage::Dispatch], STAGES[3]),
        (stages[Stage::Completion], STAGES[5]),
        (stages[Stage::OrchPostProcess], STAGES[6]),
        (stages[Stage::Return], STAGES[7]),
        (summary.rt_venue, RT_VENUE),
        (summary.rt_venue_from_due, RT_VENUE + STAGES[0]),
        (summary.send_lag, STAGES[0]),
        (summary.gateway_lateness, STAGES[4]),
    ];
    for (figures, ticks) in fixed {
        let ns = ticks / 2;
        assert_eq!(figures.count, 30, "rejected orders are in no stage");
        assert_eq!([figures.min_ns, figures.p50_ns, figures.max_ns], [Some(ns); 3]);
        assert_eq!(figures.mean_ns, Some(ns as f64));
        assert_eq!([figures.p90_ns, figures.p99_ns, figures.p999_ns, figures.p9999_ns], [None; 4]);
    }
    let (venue, trip) = (stages[Stage::VenueService], summary.round_trip);
    assert_eq!(trip.min_ns, venue.min_ns.map(|ns| ns + RT_VENUE / 2));
    assert_eq!(trip.max_ns, venue.max_ns.map(|ns| ns + RT_VENUE / 2));
}

/// Removes the stamps that a run with `--stamps ends` does not have.
fn ends_only(mut fixture: Fixture) -> Fixture {
    fixture.record.plan.stamps = Stamps::Ends;
    fixture.logs.iter_mut().for_each(|log| log.retain(|record| record.point.is_stamped_with(Stamps::Ends)));
    fixture
}

#[test]
fn end_stamps_give_rt_venue_without_stages() {
    let shape = Shape { reject_every: 4, ..Shape::PLAIN };
    let (all, end_stamped) = (summary(&Fixture::new(shape)), summary(&ends_only(Fixture::new(shape))));
    assert!(end_stamped.valid, "{:?}", end_stamped.violations);
    assert_eq!(
        (end_stamped.orders, end_stamped.rt_venue, end_stamped.send_lag),
        (all.orders, all.rt_venue, all.send_lag)
    );
    assert_eq!(end_stamped.stages[Stage::VenueService], all.stages[Stage::VenueService]);
    for stage in [Stage::Submit, Stage::Dispatch, Stage::Completion, Stage::Return] {
        assert_eq!(end_stamped.stages[stage], Distribution::default());
    }
    // The fixture's clock takes 12.5 ns a read; rt_venue has six of them, or two.
    assert_eq!((all.clock.stamps_ns, end_stamped.clock.stamps_ns), (75.0, 25.0));
}

#[test]
fn run_with_end_stamps_requires_them() {
    let mut fixture = ends_only(Fixture::new(Shape::PLAIN));
    fixture.remove(Point::GatewayRecv, OrderId::new(0, 0, 3));
    assert!(!summary(&fixture).valid);
    // A run with all stamps needs all.
    let mut fixture = ends_only(Fixture::new(Shape::PLAIN));
    fixture.record.plan.stamps = Stamps::All;
    assert!(!summary(&fixture).valid);
}

#[test]
fn percentile_needs_ten_samples_beyond_it() {
    let known = |orders| {
        let figures = summary(&Fixture::new(Shape { orders, strategies: 1, ..Shape::PLAIN })).round_trip;
        let Distribution { p50_ns, p90_ns, p99_ns, p999_ns, p9999_ns, .. } = figures;
        [p50_ns, p90_ns, p99_ns, p999_ns, p9999_ns].iter().filter(|value| value.is_some()).count()
    };
    assert_eq!([19, 20, 99, 100, 999, 1_000, 9_999, 10_000].map(known), [0, 1, 1, 2, 2, 3, 3, 4]);
}

#[test]
fn run_without_orders_has_no_figures() {
    let summary = summary(&Fixture::new(Shape { orders: 0, ..Shape::PLAIN }));
    assert_eq!(summary.round_trip, Distribution::default());
    assert_eq!((summary.rate.achieved_per_s, summary.in_flight.measured), (None, None));
    assert!(summary.valid && !summary.fit_for_latency);
}

#[test]
fn rates_and_in_flight_orders_agree() {
    let summary = summary(&Fixture::new(Shape { orders: 500, ..Shape::PLAIN }));
    let offered = summary.rate.offered_per_s.unwrap();
    assert!((summary.rate.achieved_per_s.unwrap() / offered - 1.0).abs() < 0.001, "{:?}", summary.rate);
    let flight = &summary.in_flight;
    assert!(flight.difference.unwrap().abs() < 1e-9, "{flight:?}");
    // Delays from 50,000 to 150,000 ticks at one order every 10,000: about ten are open.
    assert!((9.0..12.0).contains(&flight.measured.unwrap()), "{flight:?}");
    assert_eq!(flight.max, Some(8));
}

#[test]
fn orders_of_the_warm_up_are_in_no_percentile() {
    let mut fixture = Fixture::new(Shape { orders: 500, ..Shape::PLAIN });
    let all = summary(&fixture);
    assert_eq!(all.warm_up, None, "no window");
    let start = fixture.record.clock.start_ticks;
    let last_due = fixture.logs.iter().flatten().filter(|record| record.point == Point::Due);
    let last_due = last_due.map(|record| record.value).max().unwrap();
    fixture.record.input.window_ns = ((last_due - start) as f64 * NS_PER_TICK) as u64;
    let found = summary(&fixture);
    let warm_up = found.warm_up.unwrap();
    assert_eq!((found.valid, found.orders), (all.valid, all.orders), "they are checked and counted");
    assert_eq!(warm_up.with_p50_ns, all.rt_venue_from_due.p50_ns);
    for (counted, all) in [
        (found.rt_venue, all.rt_venue),
        (found.rt_venue_from_due, all.rt_venue_from_due),
        (found.stages[Stage::Submit], all.stages[Stage::Submit]),
    ] {
        assert_eq!(counted.count + warm_up.orders, all.count);
    }
    let share = warm_up.orders as f64 / all.rt_venue.count as f64;
    assert!((0.08..0.12).contains(&share), "a tenth of the window: {share}");
    assert!(found.notes.iter().any(|note| note.starts_with("warm-up, left out: ")), "{:?}", found.notes);
}

#[test]
fn closed_pacing_has_no_send_lag() {
    let summary = summary(&Fixture::new(Shape { pacing: Pacing::Closed, ..Shape::PLAIN }));
    assert_eq!((summary.send_lag.count, summary.rt_venue_from_due.count), (0, 0));
    assert_eq!((summary.rt_venue.count, summary.rate.offered_per_s), (40, None));
}

#[test]
fn histogram_log_round_trips() {
    let fixture = Fixture::new(Shape::PLAIN);
    let merged = run(&fixture);
    let figures = Figures::measure(&merged, fixture.record.plan.isolation, NS_PER_TICK);
    let mut bytes = Vec::new();
    merge::hlog::write(&fixture.record, &merged, &figures, &mut bytes).unwrap();
    let read = merge::hlog::parse("h.hlog", &bytes).unwrap();
    let written = Measure::ALL.map(|measure| (measure, figures.series(measure).histogram().clone()));
    assert_eq!(read, written);
    for entry in IntervalLogIterator::new(&bytes) {
        match entry.unwrap() {
            // The first order is sent 50 ns in; the format keeps milliseconds.
            LogEntry::Interval(line) => assert_eq!(line.start_timestamp().as_millis(), 0),
            LogEntry::StartTime(time) | LogEntry::BaseTime(time) => assert_eq!(time.as_secs(), 1_795_155_302),
        }
    }
}
