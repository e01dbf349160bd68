//! Amounts and currencies. Each is checked once, where it is read; from then on its type says so.

use serde::{Deserialize, Serialize};
use std::fmt;

/// An amount of money, in hundredths.
///
/// On the wire it is a decimal string: a JSON number would pass through a binary fraction in most clients.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct Amount(u64);

impl TryFrom<String> for Amount {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        const FORM: &str = "an amount is a decimal string such as \"12.50\": one to nine digits without zeros in front, at most \
                            two decimals, and more than zero";
        let (whole, decimals) = match text.split_once('.') {
            Some((whole, decimals)) if !decimals.is_empty() => (whole, decimals),
            Some(_) => return Err(FORM),
            None => (text.as_str(), ""),
        };
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let formed =
            (1..=9).contains(&whole.len()) && decimals.len() <= 2 && digits(whole) && digits(decimals);
        if !formed || (whole.len() > 1 && whole.starts_with('0')) {
            return Err(FORM);
        }
        match format!("{whole}{decimals:0<2}").parse() {
            Ok(hundredths) if hundredths > 0 => Ok(Self(hundredths)),
            _ => Err(FORM),
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

impl TryFrom<String> for Currency {
    type Error = &'static str;

    fn try_from(code: String) -> Result<Self, &'static str> {
        if code.len() != 3 || !code.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err("a currency is three capital letters such as \"EUR\"");
        }
        Ok(Self(code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_exact_and_has_one_spelling() {
        let spelt = |text: &str| Amount::try_from(text.to_owned()).map(|amount| amount.to_string());
        for (text, spelling) in [
            ("12.50", "12.50"),
            ("12.5", "12.50"),
            ("12", "12.00"),
            ("0.01", "0.01"),
            ("999999999.99", "999999999.99"),
        ] {
            assert_eq!(spelt(text).as_deref(), Ok(spelling));
        }
        for text in
            ["", ".", "1.", ".5", "-1", "+1", "1e3", "0", "0.00", "1.001", "01", "1000000000", " 1", "1,0"]
        {
            assert!(spelt(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_currency_is_three_capitals() {
        assert!(Currency::try_from("EUR".to_owned()).is_ok());
        for code in ["", "EU", "EURO", "eur", "E1R"] {
            assert!(Currency::try_from(code.to_owned()).is_err(), "{code:?}");
        }
    }
}
