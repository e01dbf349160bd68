//! `[quota]`: how much of the gateway one tenant may take.

use super::section::{Given, Section, TextForm};
use crate::setting::InvalidValue;
use semel::{EngineOptions, Quota, Quotas, Rate};
use std::ops::RangeInclusive;

/// How much of the gateway one tenant may take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuotaConfig {
    /// Its keys. Default: as many as it likes.
    pub keys: Quotas,
    /// How many requests may wait for others' answers. Default 1024.
    pub waiters: usize,
    /// How many of them may be of one tenant. Default 256.
    pub waiters_per_tenant: usize,
}

impl Default for QuotaConfig {
    fn default() -> Self {
        let EngineOptions { quotas, max_waiters, max_waiters_per_tenant, .. } = EngineOptions::default();
        Self { keys: quotas, waiters: max_waiters, waiters_per_tenant: max_waiters_per_tenant }
    }
}

const TENANT: TextForm = TextForm { what: "a tenant", example: "acme" };
/// Beyond this a count would take seconds.
const LIVE_KEYS: RangeInclusive<u64> = 1..=100_000_000;
const A_SECOND: RangeInclusive<u64> = 1..=1_000_000;
const WAITERS: RangeInclusive<u64> = 0..=1_000_000;

pub(super) fn read(mut section: Section<'_, '_>) -> QuotaConfig {
    let mut config = QuotaConfig {
        keys: Quotas { default: quota(&mut section), ..Quotas::default() },
        ..QuotaConfig::default()
    };
    for (name, field) in
        [("waiters", &mut config.waiters), ("waiters_per_tenant", &mut config.waiters_per_tenant)]
    {
        if let Some(number) =
            section.number(name, WAITERS).and_then(|given| usize::try_from(given.value).ok())
        {
            *field = number;
        }
    }
    for mut tenant in section.sections("tenant", "[[quota.tenant]]") {
        let name = tenant.parsed("name", TENANT, |text| match text.is_empty() {
            false => Ok(text.to_owned()),
            true => Err(InvalidValue::new(
                "the tenant's name is empty",
                "write it as the source of the tenant sends it",
            )),
        });
        if !tenant.has("name") {
            tenant.missing("name", TENANT.example);
        }
        // What is not said of a tenant is as for all.
        let (own, default) = (quota(&mut tenant), config.keys.default);
        let own = Quota {
            live_keys: own.live_keys.or(default.live_keys),
            new_keys: own.new_keys.or(default.new_keys),
        };
        if let Some(Given { value: name, at }) = name
            && config.keys.tenants.insert(name.clone(), own).is_some()
        {
            tenant.wrong(&at, format!("the tenant \"{name}\" is given twice"), "keep one of the two");
        }
        tenant.end();
    }
    section.end();
    config
}

fn quota(section: &mut Section<'_, '_>) -> Quota {
    let live_keys = section.number("live_keys", LIVE_KEYS);
    let a_second = section.number("new_keys_per_second", A_SECOND);
    let burst = section.number("burst", A_SECOND);
    if let (None, Some(burst)) = (&a_second, &burst)
        && !section.has("new_keys_per_second")
    {
        let cure = "add new_keys_per_second = 100, or remove it";
        section.wrong(&burst.at, "`burst` has no effect without `new_keys_per_second`", cure);
    }
    let number = |given: u64| u32::try_from(given).unwrap_or(u32::MAX);
    Quota {
        live_keys: live_keys.map(|given| given.value),
        new_keys: a_second.map(|a_second| Rate {
            per_second: number(a_second.value),
            // What a second brings may come at once.
            burst: number(burst.map_or(a_second.value, |burst| burst.value)),
        }),
    }
}
