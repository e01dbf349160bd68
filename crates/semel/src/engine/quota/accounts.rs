//! What is known of all tenants that were seen lately, and no more of them than fit.

use super::Quota;
use super::account::Account;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How many tenants one generation holds. A tenant that is forgotten is counted again when it comes back, and may have a burst.
const GENERATION: usize = 8 * 1024;

/// Two generations: a tenant that is seen moves to the young one. When that is full it becomes the old one, and tenants still in the old one
/// are forgotten: that many others were seen since.
#[derive(Default)]
pub(super) struct Accounts(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    young: HashMap<String, Arc<Account>>,
    old: HashMap<String, Arc<Account>>,
}

impl Accounts {
    pub(super) fn of(&self, tenant: &str, quota: &Quota) -> Arc<Account> {
        // A poisoned lock is safe to use: an account may be lost at any time.
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(account) = generations.young.get(tenant) {
            return Arc::clone(account);
        }
        let account = generations.old.remove(tenant).unwrap_or_else(|| Account::new(quota));
        if generations.young.len() >= GENERATION {
            generations.old = std::mem::take(&mut generations.young);
        }
        generations.young.insert(tenant.to_owned(), Arc::clone(&account));
        account
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_crowd_of_tenants_takes_more_than_two_generations() {
        let (accounts, quota) = (Accounts::default(), Quota::default());
        let regular = accounts.of("regular", &quota);
        for number in 0..5 * GENERATION {
            accounts.of(&format!("tenant-{number}"), &quota);
            if number % 100 == 0 {
                assert!(
                    Arc::ptr_eq(&regular, &accounts.of("regular", &quota)),
                    "whoever comes often is known"
                );
            }
        }
        let generations = accounts.0.lock().unwrap();
        assert!(generations.young.len() <= GENERATION && generations.old.len() <= GENERATION);
        assert!(generations.young.len() + generations.old.len() > GENERATION);
    }
}
