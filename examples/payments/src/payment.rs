//! A payment, and the command that asks for one. Each part is checked once, where it is read; from then on its type says so.

use semel::{OperationId, Record, State};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a client asks for.
///
/// Unknown members are refused: a misspelt one must not be left out in silence where money is concerned.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreatePayment {
    pub(crate) amount: Amount,
    pub(crate) currency: Currency,
    pub(crate) merchant_reference: MerchantReference,
}

/// A payment as it is recorded: what was asked for, its name, and how far it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Payment {
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) terms: CreatePayment,
    pub(crate) status: Status,
}

/// How far a payment is.
///
/// Its row knows the ends. The way there is the operation's own, and read from its recovery point: two places that both said it
/// could disagree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It is asked for, and nothing is written yet.
    Received,
    /// Its row is there.
    LocalPaymentCreated,
    /// The provider was told, or is about to be, and has not answered yet.
    ProviderRequestSent,
    /// The provider has charged it.
    ProviderConfirmed,
    /// It is paid, and the client can be told so.
    Completed,
    /// The provider refused it.
    Declined,
    /// Nobody knows whether the provider charged it.
    Unknown,
}

/// The phases of a payment, by the names that its recovery points have.
pub(crate) const CREATED: &str = "created";
pub(crate) const CHARGED: &str = "charged";

impl Status {
    /// How far a payment is whose row has no end yet.
    pub(crate) fn under_way(operation: Option<&Record>) -> Self {
        match operation {
            Some(record) if record.state == State::Unknown => Self::Unknown,
            Some(record) => match record.recovery_point.as_deref() {
                None => Self::Received,
                Some(CREATED) => Self::LocalPaymentCreated,
                Some(CHARGED) => Self::ProviderConfirmed,
                Some(_) => Self::ProviderRequestSent,
            },
            // The row outlives its operation's record.
            None => Self::Unknown,
        }
    }

    /// As the row has it. Whatever is on its way is `created` there.
    pub(crate) fn in_row(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Declined => "declined",
            _ => "created",
        }
    }

    pub(crate) fn of_row(text: &str) -> Self {
        match text {
            "completed" => Self::Completed,
            "declined" => Self::Declined,
            _ => Self::LocalPaymentCreated,
        }
    }
}

impl Payment {
    /// The payment that `operation` makes. Its id comes from the operation's, so that whatever is attempted for the operation is
    /// about this one payment.
    pub(crate) fn of(operation: OperationId, terms: CreatePayment) -> Self {
        Self { id: Self::id_of(operation), terms, status: Status::LocalPaymentCreated }
    }

    /// The id of the payment that `operation` makes.
    pub(crate) fn id_of(operation: OperationId) -> String {
        format!("pay_{}", operation.to_string().replace('-', ""))
    }

    /// The operation that made it.
    pub(crate) fn operation(&self) -> Option<OperationId> {
        self.id.strip_prefix("pay_")?.parse().ok()
    }

    pub(crate) fn with(self, status: Status) -> Self {
        Self { status, ..self }
    }
}

/// An amount of money, in hundredths.
///
/// On the wire it is a decimal string. A JSON number would pass through a binary fraction in most clients, and 0.1 has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct Amount(i64);

impl Amount {
    /// Nine digits before the point: more than any one payment, and far from the end of an `i64`.
    const MOST_DIGITS: usize = 9;

    pub(crate) fn from_hundredths(hundredths: i64) -> Self {
        Self(hundredths)
    }

    pub(crate) fn hundredths(self) -> i64 {
        self.0
    }
}

impl TryFrom<String> for Amount {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        const FORM: &str =
            "an amount is a decimal string such as \"10.00\": digits, and at most two decimals";
        let (whole, decimals) = match text.split_once('.') {
            Some((_, "")) => return Err(FORM),
            Some(parts) => parts,
            None => (text.as_str(), ""),
        };
        // `parse` alone would take a sign.
        if whole.is_empty()
            || decimals.len() > 2
            || !whole.bytes().chain(decimals.bytes()).all(|c| c.is_ascii_digit())
        {
            return Err(FORM);
        }
        if whole.len() > 1 && whole.starts_with('0') {
            return Err("an amount has no zeros in front");
        }
        if whole.len() > Self::MOST_DIGITS {
            return Err("an amount is at most 999999999.99");
        }
        match format!("{whole}{decimals:0<2}").parse() {
            Ok(0) => Err("an amount is more than zero"),
            Ok(hundredths) => Ok(Self(hundredths)),
            Err(_) => Err(FORM),
        }
    }
}

impl From<Amount> for String {
    fn from(amount: Amount) -> Self {
        amount.to_string()
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

/// A currency's code, as in ISO 4217.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Currency(String);

impl Currency {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Currency {
    type Error = &'static str;

    fn try_from(code: String) -> Result<Self, &'static str> {
        if code.len() != 3 || !code.bytes().all(|c| c.is_ascii_uppercase()) {
            return Err("a currency is three capital letters such as \"EUR\"");
        }
        Ok(Self(code))
    }
}

/// What the merchant calls the payment: an invoice, an order. One payment each, by account.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct MerchantReference(String);

impl MerchantReference {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for MerchantReference {
    type Error = &'static str;

    fn try_from(reference: String) -> Result<Self, &'static str> {
        // Spaces at the ends or control characters would make two references of what people see as one.
        if reference.is_empty() || reference.len() > 100 || reference.trim() != reference {
            return Err("a merchant reference has 1 to 100 bytes, and no space at its ends");
        }
        if reference.chars().any(char::is_control) {
            return Err("a merchant reference has no control characters");
        }
        Ok(Self(reference))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_exact() {
        let spelt = |text: &str| Amount::try_from(text.to_owned()).map(|amount| amount.to_string());
        assert_eq!(spelt("10.00").unwrap(), "10.00");
        assert_eq!(spelt("10").unwrap(), "10.00");
        assert_eq!(spelt("0.1").unwrap(), "0.10");
        assert_eq!(spelt("0.01").unwrap(), "0.01");
        assert_eq!(spelt("999999999.99").unwrap(), "999999999.99");
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in [
            "",
            ".",
            "10.",
            ".50",
            "-1",
            "+1",
            "1e3",
            "0",
            "0.00",
            "1.001",
            "01.00",
            "1000000000",
            " 1",
            "1,00",
            "1_0",
            "١٠",
        ] {
            assert!(Amount::try_from(text.to_owned()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_currency_is_three_capitals() {
        assert!(Currency::try_from("EUR".to_owned()).is_ok());
        for code in ["", "EU", "EURO", "eur", "€", "E1R"] {
            assert!(Currency::try_from(code.to_owned()).is_err(), "{code:?}");
        }
    }

    #[test]
    fn a_reference_is_what_people_see() {
        assert!(MerchantReference::try_from("invoice 7781/ä".to_owned()).is_ok());
        for reference in ["", " ", " invoice", "invoice ", "in\nvoice", &"x".repeat(101)] {
            assert!(MerchantReference::try_from(reference.to_owned()).is_err(), "{reference:?}");
        }
    }
}
