//! What one message comes to: a ledger entry, a receipt, and a notification of the partner.

use crate::telling::PaymentCreated;
use semel_events::consumer::{Delivery, Failure};
use semel_events::message::Event;

/// How many receipts are read from the table at a time.
pub(super) const RECEIPTS_AT_ONCE: i64 = 64;

/// A receipt that is to be mailed.
#[derive(Clone, Debug)]
pub(super) struct Receipt {
    /// The payment's id: there is one receipt for each.
    pub(super) payment: String,
    pub(super) text: String,
}

/// What one message comes to. The identities are the payment's own: also a second message about it changes nothing.
#[derive(Clone)]
pub(super) struct Booking {
    pub(super) payment: PaymentCreated,
    /// For the partner, if there is one.
    pub(super) notification: Option<Event>,
}

impl Booking {
    pub(super) fn of(delivery: &Delivery, notifies: bool) -> Result<Self, Failure> {
        let payment: PaymentCreated =
            serde_json::from_slice(&delivery.payload).map_err(|error| Failure::Refused(error.to_string()))?;
        let notification = notifies.then(|| {
            Event::json(format!("payment/{}", payment.id), "payment.created", delivery.payload.clone())
        });
        Ok(Self { payment, notification })
    }

    pub(super) fn identity(&self, effect: &str) -> String {
        format!("{effect}_payment_{}", self.payment.id)
    }

    pub(super) fn receipt(&self) -> Receipt {
        let PaymentCreated { id, account, terms } = &self.payment;
        let text = format!(
            "To: {account}\r\nSubject: Receipt {id}\r\nMessage-ID: <{id}@payments.example>\r\n\r\nYou have paid {} {} for {}.\r\n",
            terms.amount,
            terms.currency.as_str(),
            terms.merchant_reference.as_str(),
        );
        Receipt { payment: id.clone(), text }
    }
}
