//! What was measured, round by round, and what it comes to.

use crate::contender::Who;
use crate::wrk::{Kind, Measured};
use semel_benches::{Bar, Comparison, median};
use std::collections::BTreeMap;

/// Two who are compared.
pub(crate) struct Pair {
    pub(crate) ours: Who,
    pub(crate) other: Who,
    /// How much faster ours has to be with new keys at the most connections.
    bar: Bar,
    /// What a lone request may take, by the other's.
    lone: Bar,
    /// What the slowest hundredth may take, by the other's, at a rate that both can serve.
    p99: Bar,
}

/// Each peer by the shape of Semel that does its job: a server before the service, or a library in it.
pub(crate) const PAIRS: [Pair; 7] = [
    pair(Who::GatewaySqlite, Who::Restate, Bar::AtLeast(5.0), Bar::Open, Bar::AtMost(1.0)),
    pair(Who::GatewaySqlite, Who::IdempotentProxy, Bar::AtLeast(2.0), Bar::Open, Bar::AtMost(1.0)),
    pair(Who::GatewayPostgres, Who::Restate, Bar::Open, Bar::Open, Bar::Open),
    pair(Who::GatewayPostgres, Who::IdempotentProxy, Bar::Open, Bar::Open, Bar::Open),
    pair(Who::LayerPostgres, Who::Textbook, Bar::AtLeast(2.0), Bar::AtMost(1.1), Bar::AtMost(1.0)),
    pair(Who::LayerPostgres, Who::Dbos, Bar::AtLeast(2.0), Bar::Open, Bar::AtMost(1.0)),
    pair(Who::LayerPostgres, Who::Powertools, Bar::AtLeast(2.0), Bar::Open, Bar::AtMost(1.0)),
];

const fn pair(ours: Who, other: Who, bar: Bar, lone: Bar, p99: Bar) -> Pair {
    Pair { ours, other, bar, lone, p99 }
}

/// How many connections clients have.
pub(crate) const CONNECTIONS: [usize; 3] = [1, 8, 64];
const ONE: usize = CONNECTIONS[0];
const MOST: usize = CONNECTIONS[2];

/// A way to be asked as fast as it goes.
pub(crate) type Cell = (Kind, usize);

/// All of them.
pub(crate) fn cells() -> impl Iterator<Item = Cell> {
    [Kind::New, Kind::Replayed]
        .into_iter()
        .flat_map(|kind| CONNECTIONS.map(|connections| (kind, connections)))
}

#[derive(Default)]
pub(crate) struct Figures {
    full_speed: BTreeMap<(Who, Cell), Vec<Measured>>,
    paced: BTreeMap<(Who, Who), Paced>,
}

/// What a pair came to at a rate that both can serve.
struct Paced {
    rate: f64,
    /// The slowest hundredths of ours and of the other's, in microseconds, round by round.
    p99s: Vec<(f64, f64)>,
}

impl Figures {
    pub(crate) fn add(&mut self, who: Who, cell: Cell, measured: Measured) {
        self.full_speed.entry((who, cell)).or_default().push(measured);
    }

    pub(crate) fn add_paced(&mut self, pair: &Pair, rate: f64, p99s: (f64, f64)) {
        let paced = self.paced.entry((pair.ours, pair.other));
        paced.or_insert(Paced { rate, p99s: Vec::new() }).p99s.push(p99s);
    }

    /// What is known of a contender in a way of being asked; the median of each.
    pub(crate) fn of(&self, who: Who, cell: Cell) -> Option<Measured> {
        let rounds = self.full_speed.get(&(who, cell))?;
        let of = |part: fn(&Measured) -> f64| median(&rounds.iter().map(part).collect::<Vec<_>>());
        Some(Measured {
            rate: of(|it| it.rate),
            median: of(|it| it.median),
            p99: of(|it| it.p99),
            processor: of(|it| it.processor),
        })
    }

    /// A rate of new keys that both can serve with ease.
    pub(crate) fn easy_rate(&self, pair: &Pair) -> Option<f64> {
        let most = |who| Some(self.of(who, (Kind::New, MOST))?.rate);
        Some((most(pair.ours)?.min(most(pair.other)?) / 2.0).round())
    }

    /// The equal loads, in requests a second.
    pub(crate) fn rates(&self) -> impl Iterator<Item = (Who, Who, f64)> {
        self.paced.iter().map(|((ours, other), paced)| (*ours, *other, paced.rate))
    }

    /// All comparisons, of those who were measured to the end.
    pub(crate) fn comparisons(&self) -> Vec<Comparison> {
        PAIRS.iter().flat_map(|pair| self.of_pair(pair)).collect()
    }

    fn of_pair(&self, pair: &Pair) -> Vec<Comparison> {
        let name = format!("{} by {}", pair.ours.name(), pair.other.name());
        let mut comparisons = Vec::new();
        let rounds = |cell, part: fn(&Measured) -> f64| {
            let (ours, other) =
                (self.full_speed.get(&(pair.ours, cell))?, self.full_speed.get(&(pair.other, cell))?);
            Some(ours.iter().map(part).zip(other.iter().map(part)).collect::<Vec<_>>())
        };
        for cell @ (kind, connections) in cells() {
            let bar = if cell == (Kind::New, MOST) { pair.bar } else { Bar::Open };
            if let Some(rounds) = rounds(cell, |it| it.rate) {
                let name = format!("{name}: {}, {connections} at once", kind.name());
                comparisons.push(Comparison::of(&name, "req/s", bar, &rounds));
            }
        }
        if let Some(rounds) = rounds((Kind::New, ONE), |it| it.median) {
            let name = format!("{name}: a lone request");
            comparisons.push(Comparison::of(&name, "us", pair.lone, &rounds));
        }
        if let Some(rounds) = rounds((Kind::New, MOST), |it| it.processor)
            && rounds.iter().all(|(ours, other)| ours.is_finite() && *other > 0.0)
        {
            let name = format!("{name}: processor time a request, new keys, {MOST} at once");
            comparisons.push(Comparison::of(&name, "us", Bar::Open, &rounds));
        }
        if let Some(paced) = self.paced.get(&(pair.ours, pair.other)) {
            let name = format!("{name}: p99 at equal load");
            comparisons.push(Comparison::of(&name, "us", pair.p99, &paced.p99s));
        }
        comparisons
    }
}
