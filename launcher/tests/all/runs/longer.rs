//! A run's folder of any length: its logs are written as they are made up, so that a test needs no memory for them. As an honest [`Fixture`]
//! whose orders all take as long at their venue.

use super::fixture::{Fixture, STAGES, START, Shape};
use analysis::document::Document;
use protocol::plan::{Role, Threading};
use protocol::stamps::{Point, RECORD_BYTES, Record};
use protocol::status::Field;
use protocol::wire::OrderId;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Of all orders, one is sent after so many.
#[derive(Clone, Copy)]
struct Every {
    first: u64,
    step: u64,
}

/// When each point is written and what its value is, in ticks from when the order was due.
type Written = (Point, u64, u64);

/// Writes the folder of a run of that shape without rejections and fills, each of whose roles has a thread.
pub fn write(shape: Shape, folder: &Path) {
    assert!(
        shape.reject_every == 0 && !shape.fills && !shape.book && shape.threading == Threading::Dedicated
    );
    let mut fixture = Fixture::new(Shape { orders: 1, ..shape });
    fixture.record.plan.trading_mut().orders = vec![shape.orders; shape.strategies.into()];
    let all = shape.orders * u64::from(shape.strategies);
    let t1 = STAGES[0];
    let t2 = t1 + STAGES[1];
    let t3 = t2 + STAGES[2];
    let t4 = t3 + STAGES[3];
    let release = t4 + shape.delay;
    let t5 = release + STAGES[4];
    let t6 = t5 + STAGES[5];
    let t7 = t6 + STAGES[6];
    let t8 = t7 + STAGES[7];
    if let Some(open) = &mut fixture.record.open_orders {
        open.order_ticks = (all * (t8 - t1)) as f64;
    }
    let end = START + all * shape.period + t8;
    for thread in 0..fixture.record.plan.threads.len() {
        let (name, role) =
            (fixture.record.plan.threads[thread].name.clone(), fixture.record.plan.threads[thread].roles[0]);
        let (every, written, counted): (_, &[Written], _) = match role {
            Role::Strategy(index) => (
                Every { first: index.into(), step: shape.strategies.into() },
                &[(Point::Due, t1, 0), (Point::StrategySend, t1, t1), (Point::StrategyRecv, t8, t8)],
                ["sent", "returned"],
            ),
            Role::Gateway(index) => (
                Every { first: index.into(), step: shape.venues.into() },
                &[(Point::GatewayRecv, t4, t4), (Point::Release, t4, release), (Point::GatewayDone, t5, t5)],
                ["received", "completed"],
            ),
            _ => (
                Every { first: 0, step: 1 },
                &[
                    (Point::OrchRecvSubmit, t2, t2),
                    (Point::OrchDispatch, t3, t3),
                    (Point::OrchRecvCompletion, t6, t6),
                    (Point::OrchReturn, t7, t7),
                ],
                ["dispatched", "settled"],
            ),
        };
        let orders = (all - every.first).div_ceil(every.step);
        for name_of_counter in counted {
            fixture.counter(&name, name_of_counter, orders);
        }
        fixture.status(&name, Field::EndedTicks, end);
        let records = orders * written.len() as u64;
        fixture.record.plan.threads[thread].log_records = records + 64;
        fixture.logs[thread].clear();
        let path = folder.join(format!("{name}.stamps"));
        let mut file = BufWriter::new(File::create(path).unwrap());
        let [front, behind] = fixture.around(thread, records);
        file.write_all(&front).unwrap();
        log(shape, every, orders, written, |record| {
            let words = record.words().map(u64::to_le_bytes);
            file.write_all(words.as_flattened()).unwrap();
        });
        file.write_all(&behind).unwrap();
        let mut file = file.into_inner().unwrap();
        file.flush().unwrap();
        let least = records * RECORD_BYTES as u64;
        assert!(file.metadata().unwrap().len() > least, "all records, and what stands around them");
    }
    fixture.record.save(folder).unwrap();
}

/// The records of a thread in the order of their times: each point's rise with the orders.
fn log(shape: Shape, every: Every, orders: u64, written: &[Written], mut each: impl FnMut(Record)) {
    let mut next = vec![0; written.len()];
    let time = |order: u64, at: u64| START + (every.first + order * every.step) * shape.period + at;
    loop {
        let waiting = written.iter().zip(&next).enumerate().filter(|(_, (_, order))| **order < orders);
        let soonest = waiting.min_by_key(|(place, ((_, at, _), order))| (time(**order, *at), *place));
        let Some((place, ((point, _, value), order))) = soonest else { return };
        let number = every.first + order * every.step;
        let (strategies, venues) = (u64::from(shape.strategies), u64::from(shape.venues));
        let id = OrderId::new((number % strategies) as u16, 0, number / strategies);
        let detail = if *point == Point::GatewayRecv { (number % venues) as u8 } else { 0 };
        each(Record { point: *point, id, detail, value: time(*order, *value) });
        next[place] += 1;
    }
}
