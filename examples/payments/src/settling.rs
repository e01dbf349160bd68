//! How doubt about the provider comes to an end: the provider is asked, or tells by itself.
//!
//! Either way the payment's rows are written first and the operation's outcome after them. A process that dies in between leaves an
//! outcome that is unknown still: it is asked about or told again, finds the rows as they are, and settles.

use crate::account::Account;
use crate::database::{Database, Order};
use crate::error::{BoxError, GivenUp};
use crate::payment::CHARGED;
use crate::provider::{Provider, ProviderOptions, ProviderPromise};
use crate::verdict::Verdict;
use semel::{Found, Inquiry, Policy, Record, Settling, downstream_key};
use semel_tower::Reply;
use semel_worker::{Asking, Finding, OperationRules, Question, WebhookSecret};
use std::sync::Arc;
use std::time::Duration;

/// How doubt is settled. Default: by nobody but a person.
#[derive(Clone, Debug, Default)]
pub struct SettlingOptions {
    /// Asks the provider, the first time after this long. Whoever sets this has read in the provider's manual that it can be asked,
    /// and that it refuses late attempts of what it knows nothing of.
    pub ask_every: Option<Duration>,
    /// Takes in what the provider tells at `POST /webhooks/provider`, signed with one of these.
    pub webhook_secrets: Vec<WebhookSecret>,
}

/// So many questions, then it waits for a person. With the waits doubling, that is most of a day.
const QUESTIONS: u32 = 20;

/// Writes down what the provider did.
#[derive(Clone)]
pub(crate) struct Settler {
    database: Database,
    provider: Arc<ProviderOptions>,
}

impl Settler {
    pub(crate) fn new(database: Database, provider: Arc<ProviderOptions>) -> Self {
        Self { database, provider }
    }

    /// The rules of every operation, given those that requests have.
    pub(crate) fn rules(self, options: &SettlingOptions, policy: Policy) -> OperationRules {
        let Some(every) = options.ask_every else {
            let told = !options.webhook_secrets.is_empty();
            let settling = if told { Settling::Webhook } else { Settling::Operator };
            return OperationRules::new(Policy { settling, ..policy });
        };
        // Room for the provider's answer and for the rows.
        let deadline = self.provider.timeout + Duration::from_secs(2);
        let asking = Asking::new(move |question: Question| {
            let settler = self.clone();
            async move { settler.ask(question).await }
        });
        let asking = Asking { every, attempts: QUESTIONS, deadline, ..asking };
        OperationRules::new(Policy { settling: asking.settling(), ..policy }).asking(asking)
    }

    /// Asks the provider what became of an operation, and writes it down.
    async fn ask(&self, question: Question) -> Finding {
        self.find_out(&question).await.unwrap_or_else(|error| {
            tracing::warn!(operation_id = %question.operation_id, %error, "asked in vain");
            Finding::Unclear("no_answer".into())
        })
    }

    async fn find_out(&self, question: &Question) -> Result<Finding, BoxError> {
        let Question { operation_id, attempt, key, .. } = question;
        let account = Account::of_tenant(&key.tenant);
        // Without a row nothing was ordered; but whoever is to make it may still be at it.
        let Some(order) = self.database.order_of(&account, *operation_id).await? else {
            return Ok(Finding::Unclear("nothing_ordered".into()));
        };
        let inquiry = Inquiry { key: downstream_key(*operation_id, CHARGED), up_to_attempt: *attempt };
        let provider = Provider { options: &self.provider, operation: *operation_id, mode: None };
        Ok(match provider.ask(inquiry, order.call()).await? {
            Found::Happened(verdict) => {
                let (response, resource) = self.write(&account, order, verdict).await?.into_parts();
                if response.status < 400 {
                    Finding::Completed { response: Some(response), resource }
                } else {
                    Finding::Failed { response: Some(response), resource }
                }
            }
            // The retry that this lets through would find a call on record, and nobody to rely on for it.
            Found::NeverWill if self.provider.promise == ProviderPromise::Neither => {
                Finding::Unclear("absence_proves_nothing".into())
            }
            Found::NeverWill => Finding::Absent,
            Found::Unclear => Finding::Unclear("unclear".into()),
        })
    }

    /// Writes down what the provider told in a message that is known to be its own.
    pub(crate) async fn told(&self, record: &Record, message: &[u8]) -> Result<(), BoxError> {
        let message: serde_json::Value = serde_json::from_slice(message)?;
        let verdict = Verdict::of_receipt(&message["data"])?;
        let account = Account::of_tenant(&record.key.tenant);
        let order = self.database.order_of(&account, record.operation_id).await?.ok_or(NotOrdered)?;
        self.write(&account, order, verdict).await.map(drop)
    }

    async fn write(&self, account: &Account, order: Order, verdict: Verdict) -> Result<Reply, BoxError> {
        let settled = self.database.settle(account, order.concluded(verdict)).await;
        settled.map_err(|why| match why {
            GivenUp::Failed(error) => error,
            why => format!("{why:?}").into(),
        })
    }
}

/// The provider tells of something that has no row here.
#[derive(Debug, thiserror::Error)]
#[error("the provider knows of an order that is not in the books")]
struct NotOrdered;
