//! A refund, and the command that asks for one.

use crate::payment::{Amount, Currency};
use semel::OperationId;
use serde::{Deserialize, Serialize};

/// What a client asks for: the whole payment back, or this part of it.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateRefund {
    pub(crate) amount: Option<Amount>,
}

/// A refund as clients see it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Refund {
    pub(crate) id: String,
    pub(crate) payment_id: String,
    pub(crate) amount: Amount,
    pub(crate) currency: Currency,
}

impl Refund {
    /// The id of the refund that `operation` makes.
    pub(crate) fn id_of(operation: OperationId) -> String {
        format!("ref_{}", operation.to_string().replace('-', ""))
    }
}

/// A refund that is recorded, and the provider's name of the charge that it takes back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Granted {
    pub(crate) refund: Refund,
    pub(crate) charge_id: Option<String>,
}
