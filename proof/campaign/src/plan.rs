//! What the clients are going to do: made from the seed before anything runs.

use fastrand::Rng;
use serde_json::{Value, json};
use std::time::Duration;

/// How many accounts there are.
const TENANTS: u32 = 5;

/// One payment that somebody wants made, and every request that is sent for it.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) number: u32,
    pub(crate) tenant: u32,
    pub(crate) key: String,
    pub(crate) window: Window,
    /// Nobody asks again before everything has healed: what it came to stays as it is.
    pub(crate) abandoned: bool,
    pub(crate) requests: Vec<Request>,
}

/// How long the answer is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Window {
    Day,
    /// [`BRIEF`]; then the key is refused as expired, or new.
    Brief,
}

/// How long a brief window is.
pub(crate) const BRIEF: Duration = Duration::from_secs(2);

impl Window {
    /// Where such payments are asked for.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Day => "/payments",
            Self::Brief => "/brief-payments",
        }
    }

    /// What the operation is called.
    pub(crate) fn operation(self) -> &'static str {
        match self {
            Self::Day => "pay",
            Self::Brief => "pay_briefly",
        }
    }
}

/// One request of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// How long after the operation began.
    pub(crate) after: Duration,
    /// Which gateway it is sent to.
    pub(crate) gateway: usize,
    pub(crate) variant: Variant,
    /// Whether the client is gone before an answer can come.
    pub(crate) hangs_up: bool,
}

/// What is asked for, and by whom.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Variant {
    /// The payment.
    Plain,
    /// The same key with another body.
    Altered,
    /// The same key from another account: a payment of its own.
    Neighbour,
    /// A malformed key.
    Malformed,
}

impl Variant {
    /// Those that can be executed.
    pub(crate) const EXECUTABLE: [Self; 3] = [Self::Plain, Self::Altered, Self::Neighbour];

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Altered => "altered",
            Self::Neighbour => "neighbour",
            Self::Malformed => "malformed",
        }
    }
}

/// A word that is in everything an account sends, and nothing that another one may hear.
pub(crate) fn canary(tenant: u32) -> String {
    format!("canary-of-{tenant}-")
}

/// The canaries of everybody else.
pub(crate) fn foreign_canaries(tenant: u32) -> impl Iterator<Item = String> {
    (0..TENANTS).filter(move |other| *other != tenant).map(canary)
}

impl Operation {
    /// Whose request it is.
    pub(crate) fn tenant_of(&self, variant: Variant) -> u32 {
        match variant {
            Variant::Neighbour => (self.tenant + 1) % TENANTS,
            _ => self.tenant,
        }
    }

    /// What the ledger will know it by. No two requests that differ share one.
    pub(crate) fn reference(&self, variant: Variant) -> String {
        format!("{}/{}/{}", canary(self.tenant_of(variant)), self.number, variant.name())
    }

    pub(crate) fn key_of(&self, variant: Variant) -> &str {
        if variant == Variant::Malformed { "short" } else { &self.key }
    }

    pub(crate) fn body(&self, variant: Variant) -> Value {
        json!({ "amount": format!("{}.00", self.number % 900 + 1), "currency": "EUR", "reference": self.reference(variant) })
    }

    /// Whether any request of this variant is sent.
    pub(crate) fn has(&self, variant: Variant) -> bool {
        self.requests.iter().any(|request| request.variant == variant)
    }
}

/// All operations of a round: 1 to 8 requests each, overlapping, at any gateway; 5 % altered bodies, 2 % the same key from another
/// account, 2 % malformed, 10 % of all hang up. The first is always plain, and heard to the end. One operation in eight has a brief window, and
/// its last request comes when that is over or nearly so; one in twenty is abandoned.
pub(crate) fn operations(seed: u64, count: u32, gateways: usize) -> Vec<Operation> {
    let mut rng = Rng::with_seed(seed);
    (0..count)
        .map(|number| {
            let copies = rng.u32(1..=8);
            let mut requests: Vec<Request> =
                (0..copies).map(|copy| request(&mut rng, copy == 0, gateways)).collect();
            let window = if rng.u32(0..8) == 0 { Window::Brief } else { Window::Day };
            if let (Window::Brief, Some(last @ Request { variant: Variant::Plain, .. })) =
                (window, requests.get_mut(1..).and_then(<[Request]>::last_mut))
            {
                last.after = BRIEF.mul_f64(0.9 + rng.f64() * 0.4);
            }
            Operation {
                number,
                tenant: rng.u32(0..TENANTS),
                key: format!("key-{seed:x}-{number}-{:08x}", rng.u32(..)),
                window,
                abandoned: rng.u32(0..20) == 0,
                requests,
            }
        })
        .collect()
}

fn request(rng: &mut Rng, first: bool, gateways: usize) -> Request {
    let variant = match rng.u32(0..100) {
        _ if first => Variant::Plain,
        0..5 => Variant::Altered,
        5..7 => Variant::Neighbour,
        7..9 => Variant::Malformed,
        _ => Variant::Plain,
    };
    Request {
        after: if first { Duration::ZERO } else { Duration::from_millis(rng.u64(0..600)) },
        gateway: rng.usize(0..gateways),
        variant,
        hangs_up: !first && rng.u32(0..100) < 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_plan() {
        let told = |seed| format!("{:?}", operations(seed, 50, 2));
        assert_eq!(told(7), told(7));
        assert_ne!(told(7), told(8));
    }

    #[test]
    fn every_variant_comes_about_as_often_as_it_should() {
        let all = operations(1, 5_000, 2);
        let requests: Vec<_> = all.iter().flat_map(|operation| &operation.requests[1..]).collect();
        let share =
            |of: &dyn Fn(&&&Request) -> bool| requests.iter().filter(of).count() * 1000 / requests.len();
        assert!((40..60).contains(&share(&|request| request.variant == Variant::Altered)));
        assert!((14..26).contains(&share(&|request| request.variant == Variant::Neighbour)));
        assert!((14..26).contains(&share(&|request| request.variant == Variant::Malformed)));
        assert!((85..115).contains(&share(&|request| request.hangs_up)));
    }
}
