//! The results of a benchmark: added up over agents and rounds, and passed as text between
//! processes.

use hdrhistogram::Histogram;

pub struct Figures {
    /// Time of a write, from before to after it.
    pub write: Histogram<u64>,
    /// Time of a write from when it was due.
    pub from_due: Histogram<u64>,
    /// Time from before a write until a reader has the value.
    pub propagation: Histogram<u64>,
    pub writes: u64,
    pub reads: u64,
    /// Values that a reader did not get.
    pub missed: u64,
    /// Values of two writes, or older than the one before.
    pub torn: u64,
    /// Values that changed while a reader held a reference.
    pub changed: u64,
    pub died: u64,
    /// CPU time of the writer's thread, in nanoseconds.
    pub writer_cpu: u64,
    /// CPU time of all readers' threads, in nanoseconds.
    pub reader_cpu: u64,
    /// Time for which the writer wrote, in nanoseconds.
    pub ns: u64,
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 1 << 40, 3).expect("bounds")
}

impl Figures {
    pub fn new() -> Self {
        let [write, from_due, propagation] = std::array::from_fn(|_| histogram());
        let [writes, reads, missed, torn, changed, died, writer_cpu, reader_cpu, ns] = [0; 9];
        Self {
            write,
            from_due,
            propagation,
            writes,
            reads,
            missed,
            torn,
            changed,
            died,
            writer_cpu,
            reader_cpu,
            ns,
        }
    }

    fn histograms(&mut self) -> [(&'static str, &mut Histogram<u64>); 3] {
        [("write", &mut self.write), ("due", &mut self.from_due), ("propagation", &mut self.propagation)]
    }

    fn counts(&mut self) -> [(&'static str, &mut u64); 9] {
        [
            ("writes", &mut self.writes),
            ("reads", &mut self.reads),
            ("missed", &mut self.missed),
            ("torn", &mut self.torn),
            ("changed", &mut self.changed),
            ("died", &mut self.died),
            ("writer-cpu", &mut self.writer_cpu),
            ("reader-cpu", &mut self.reader_cpu),
            ("ns", &mut self.ns),
        ]
    }

    pub fn add(&mut self, mut other: Self) {
        for ((_, mine), (_, other)) in self.histograms().into_iter().zip(other.histograms()) {
            mine.add(other).expect("the same bounds");
        }
        for ((_, mine), (_, other)) in self.counts().into_iter().zip(other.counts()) {
            *mine += *other;
        }
    }

    pub fn text(&mut self) -> String {
        let mut text = String::new();
        for (name, histogram) in self.histograms() {
            for value in histogram.iter_recorded() {
                text += &format!("{name} {} {}\n", value.value_iterated_to(), value.count_at_value());
            }
        }
        for (name, count) in self.counts() {
            text += &format!("{name} {count}\n");
        }
        text
    }

    pub fn add_text(&mut self, text: &str) {
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [name, at, times] => {
                    let (at, times) = (at.parse().unwrap_or(1), times.parse().unwrap_or(0));
                    let all = self.histograms().into_iter().filter(|(its, _)| its == name);
                    all.for_each(|(_, histogram)| histogram.saturating_record_n(at, times));
                }
                [name, count] => {
                    let all = self.counts().into_iter().filter(|(its, _)| its == name);
                    all.for_each(|(_, mine)| *mine += count.parse().unwrap_or(0));
                }
                _ => {}
            }
        }
    }

    pub const HEAD: &str = "                  write p50      p99     p99.9        max | propag.     p99     p99.9 |  writes/s  miss%  torn changed died";

    pub fn print(&self, name: &str) {
        let at = |histogram: &Histogram<u64>| {
            let at = |share| histogram.value_at_quantile(share);
            format!("{:>7} {:>8} {:>9} {:>10}", at(0.5), at(0.99), at(0.999), histogram.max())
        };
        println!(
            "{name:<19} {} | {:>7} {:>7} {:>9} | {:>9.0} {:>6.1} {:>5} {:>7} {:>4}",
            at(&self.write),
            self.propagation.value_at_quantile(0.5),
            self.propagation.value_at_quantile(0.99),
            self.propagation.value_at_quantile(0.999),
            self.writes as f64 * 1e9 / self.ns.max(1) as f64,
            100.0 * self.missed as f64 / (self.missed + self.reads).max(1) as f64,
            self.torn,
            self.changed,
            self.died,
        );
    }

    pub const FAN_OUT_HEAD: &str = "                    readers | write p50      p99 | delivery p50       p99  to fewest |  writes/s  miss%  torn died | writer  each reader";

    /// Prints a row of the fan-out table, with the ratio of its p99 of delivery to that with the
    /// fewest readers; CPU in cores.
    pub fn print_fan_out(&self, name: &str, readers: usize, fewest: &Self) {
        let p99 = |figures: &Self| figures.propagation.value_at_quantile(0.99);
        let cores = |cpu: u64| cpu as f64 / self.ns.max(1) as f64;
        println!(
            "{name:<19} {readers:>7} | {:>9} {:>8} | {:>12} {:>9} {:>10.2} | {:>9.0} {:>6.1} {:>5} {:>4} | {:>6.2} {:>12.2}",
            self.write.value_at_quantile(0.5),
            self.write.value_at_quantile(0.99),
            self.propagation.value_at_quantile(0.5),
            p99(self),
            p99(self) as f64 / p99(fewest).max(1) as f64,
            self.writes as f64 * 1e9 / self.ns.max(1) as f64,
            100.0 * self.missed as f64 / (self.missed + self.reads).max(1) as f64,
            self.torn,
            self.died,
            cores(self.writer_cpu),
            cores(self.reader_cpu) / readers as f64,
        );
    }
}
