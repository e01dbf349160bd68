//! The metrics as OTLP has them: the names and numbers of `/metrics`.

use super::encoding::{Attributes, Resource};
use super::openmetrics::{Family, Labels, Series, read};
use semel::protobuf::Message;

/// Counts from the start of the process on, as Prometheus has them.
const CUMULATIVE: u64 = 2;

/// From when to when it was counted, in nanoseconds of the Unix epoch.
#[derive(Clone, Copy)]
pub(super) struct Period {
    pub(super) start: u64,
    pub(super) now: u64,
}

impl Resource {
    /// The body of an export of what `/metrics` says.
    pub(super) fn metrics(&self, text: &str, period: Period) -> Vec<u8> {
        self.around(|scope| {
            for family in read(text) {
                scope.message(2, |metric| family.write(metric, period));
            }
        })
    }
}

impl Family<'_> {
    fn write(&self, metric: &mut Message, period: Period) {
        let counts = self.kind == "counter";
        metric.text(1, &if counts { format!("{}_total", self.name) } else { self.name.to_owned() });
        metric.text(2, self.help);
        metric.text(3, if self.unit == "seconds" { "s" } else { "1" });
        match self.kind {
            "gauge" => metric.message(5, |gauge| self.numbers(gauge, period)),
            "counter" => metric.message(7, |sum| {
                self.numbers(sum, period);
                sum.number(2, CUMULATIVE);
                sum.number(3, 1);
            }),
            _ => metric.message(9, |histogram| {
                for (labels, series) in &self.series {
                    histogram.message(1, |point| series.write_histogram(labels, point, period));
                }
                histogram.number(2, CUMULATIVE);
            }),
        }
    }

    /// What is no number is not there.
    fn numbers(&self, message: &mut Message, Period { start, now }: Period) {
        for (labels, series) in &self.series {
            let Some(value) = series.value.filter(|value| !value.is_nan()) else { continue };
            message.message(1, |point| {
                write_labels(labels, point, 7);
                point.fixed64(2, start);
                point.fixed64(3, now);
                point.double(4, value);
            });
        }
    }
}

impl Series {
    fn write_histogram(&self, labels: &Labels, point: &mut Message, Period { start, now }: Period) {
        write_labels(labels, point, 9);
        point.fixed64(2, start);
        point.fixed64(3, now);
        point.fixed64(4, self.count);
        point.double(5, self.sum);
        let mut below = 0;
        // Prometheus counts what is up to a bound, OTLP what is between two.
        let between = self.buckets.iter().map(|(_, up_to)| {
            let count = up_to.saturating_sub(below);
            below = *up_to;
            count
        });
        point.packed64(6, between.collect::<Vec<_>>());
        let bounds = self.buckets.iter().map(|(bound, _)| *bound).filter(|bound| bound.is_finite());
        point.packed64(7, bounds.map(f64::to_bits));
    }
}

fn write_labels(labels: &Labels, point: &mut Message, field: u64) {
    for (name, value) in labels {
        Attributes(field).text(point, name, value);
    }
}
