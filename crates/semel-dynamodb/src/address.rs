//! `dynamodb://TABLE?region=…[&endpoint=…]`.

use crate::error::UrlError;
use semel_http::Endpoint;
use std::fmt;
use std::str::FromStr;

/// Which table, in which region, and where that is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    pub(crate) table: String,
    pub(crate) region: String,
    pub(crate) endpoint: Option<Endpoint>,
}

impl FromStr for Address {
    type Err = UrlError;

    fn from_str(url: &str) -> Result<Self, UrlError> {
        let rest = url.strip_prefix("dynamodb://").ok_or(UrlError::Scheme)?;
        let (table, options) = rest.split_once('?').unwrap_or((rest, ""));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if !(3..=255).contains(&table.len()) || !table.bytes().all(is_name) {
            return Err(UrlError::Table);
        }
        let (mut region, mut endpoint) = (None, None);
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("region", value)) if region.is_none() => region = Some(value.to_owned()),
                Some(("endpoint", value)) if endpoint.is_none() => {
                    endpoint = Some(Endpoint::parse(value).map_err(UrlError::Endpoint)?);
                }
                _ => return Err(UrlError::Option),
            }
        }
        let of_environment =
            || ["AWS_REGION", "AWS_DEFAULT_REGION"].iter().find_map(|name| std::env::var(name).ok());
        let region = region.or_else(of_environment).ok_or(UrlError::NoRegion)?;
        let is_region = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if region.is_empty() || region.len() > 64 || !region.bytes().all(is_region) {
            return Err(UrlError::Region);
        }
        Ok(Self { table: table.into(), region, endpoint })
    }
}

impl Address {
    /// Where requests go.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, UrlError> {
        let own = || {
            let country = if self.region.starts_with("cn-") { ".cn" } else { "" };
            Endpoint::parse(&format!("https://dynamodb.{}.amazonaws.com{country}/", self.region))
        };
        self.endpoint.clone().map_or_else(own, Ok).map_err(UrlError::Endpoint)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dynamodb://{}?region={}", self.table, self.region)?;
        self.endpoint.as_ref().map_or(Ok(()), |endpoint| write!(f, "&endpoint={}", endpoint.at("")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_table_and_its_region() {
        let address: Address = "dynamodb://semel-keys?region=eu-central-1".parse().unwrap();
        assert_eq!((address.table.as_str(), address.region.as_str()), ("semel-keys", "eu-central-1"));
        assert_eq!(address.endpoint().unwrap().authority(), "dynamodb.eu-central-1.amazonaws.com");
        let local = "dynamodb://semel?region=local&endpoint=http://127.0.0.1:8000";
        let address: Address = local.parse().unwrap();
        assert_eq!(address.endpoint().unwrap().authority(), "127.0.0.1:8000");
        assert_eq!(address.to_string(), local);
    }

    #[test]
    fn what_names_none_is_told_what_to_write() {
        for (url, why) in [
            ("dynamodb:semel", UrlError::Scheme),
            ("dynamodb://", UrlError::Table),
            ("dynamodb://ab?region=r", UrlError::Table),
            ("dynamodb://a/b?region=r", UrlError::Table),
            ("dynamodb://semel?region=", UrlError::Region),
            ("dynamodb://semel?region=EU", UrlError::Region),
            ("dynamodb://semel?region=a&region=b", UrlError::Option),
            ("dynamodb://semel?region=a&colour=red", UrlError::Option),
        ] {
            assert_eq!(url.parse::<Address>(), Err(why), "{url}");
        }
        assert!(matches!(
            "dynamodb://semel?region=a&endpoint=x".parse::<Address>(),
            Err(UrlError::Endpoint(_))
        ));
    }
}
