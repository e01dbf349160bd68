//! What the clients want of a run.

use crate::dice::Dice;
use crate::log::Variant;
use bytes::Bytes;
use std::time::Duration;

/// How many tenants there are.
pub(crate) const TENANTS: u32 = 7;

/// One operation that a client wants done.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) number: u32,
    pub(crate) tenant: u32,
    /// Which of the rules it goes by.
    pub(crate) rule: usize,
    pub(crate) key: String,
    pub(crate) begins: Duration,
    /// How often its request is sent, and when each time, counted from the beginning.
    pub(crate) sends: Vec<(Duration, Variant)>,
    /// Its client does not ask for the answer before everything has healed.
    pub(crate) is_abandoned: bool,
    /// It is asked for again so long after that.
    pub(crate) late: Option<Duration>,
}

impl Operation {
    pub(crate) fn draw(number: u32, rules: usize, gap: Duration, dice: &Dice) -> Self {
        let mut sends = vec![(Duration::ZERO, Variant::Plain)];
        for _ in 0..dice.below(4) {
            let within = dice.pick(&[5, 100, 3_000]);
            sends.push((dice.millis(0, within), Variant::Plain));
        }
        for (probability, variant) in
            [(0.05, Variant::Altered), (0.03, Variant::Neighbour), (0.02, Variant::Malformed)]
        {
            if dice.chance(probability) {
                sends.push((dice.millis(0, 2_000), variant));
            }
        }
        sends.sort_by_key(|(at, _)| *at);
        Self {
            number,
            tenant: u32::try_from(dice.below(u64::from(TENANTS))).unwrap_or(0),
            rule: usize::try_from(dice.below(rules as u64)).unwrap_or(0),
            key: format!("key-{number:08}-of-a-client"),
            begins: gap * number,
            sends,
            is_abandoned: dice.chance(0.05),
            late: dice.chance(0.25).then(|| dice.millis(1_000, 60_000)),
        }
    }

    pub(crate) fn tenant_of(&self, variant: Variant) -> u32 {
        if variant == Variant::Neighbour { (self.tenant + 1) % TENANTS } else { self.tenant }
    }

    pub(crate) fn has(&self, variant: Variant) -> bool {
        self.sends.iter().any(|(_, sent)| *sent == variant)
    }

    /// What is sent.
    pub(crate) fn body(&self, variant: Variant) -> Bytes {
        let (tenant, altered) = (self.tenant_of(variant), u32::from(variant == Variant::Altered));
        let canary = canary(tenant);
        format!(r#"{{"number":{},"tenant":{tenant},"altered":{altered},"canary":"{canary}"}}"#, self.number)
            .into()
    }
}

/// A word that stands in everything that a tenant sends, and in nobody else's answers.
pub(crate) fn canary(tenant: u32) -> String {
    format!("canary-{tenant}-sings")
}

/// A number in what was sent.
pub(crate) fn field(body: &[u8], name: &str) -> Option<u32> {
    let text = std::str::from_utf8(body).ok()?;
    let (_, after) = text.split_once(&format!("\"{name}\":"))?;
    let digits = after.find(|char: char| !char.is_ascii_digit()).unwrap_or(after.len());
    after[..digits].parse().ok()
}
