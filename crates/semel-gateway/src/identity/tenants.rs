//! Whose operations a user may see.

/// One tenant, or all whose names begin alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TenantPattern {
    /// Exactly this tenant.
    Exact(String),
    /// All tenants whose names begin so: `acct_*`.
    Prefix(String),
}

impl TenantPattern {
    /// The pattern that a text spells: a tenant, or the beginning of names and a `*`.
    ///
    /// # Errors
    /// There is nothing before the `*`, or one in the middle.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        match text.strip_suffix('*') {
            _ if text.is_empty() => Err("it is empty"),
            Some("") => Err("`*` alone matches every tenant: omit `tenants` instead"),
            Some(prefix) if prefix.contains('*') => Err("`*` is allowed only at the end"),
            Some(prefix) => Ok(Self::Prefix(prefix.to_owned())),
            None if text.contains('*') => Err("`*` is allowed only at the end"),
            None => Ok(Self::Exact(text.to_owned())),
        }
    }

    fn matches(&self, tenant: &str) -> bool {
        match self {
            Self::Exact(name) => name == tenant,
            Self::Prefix(prefix) => tenant.starts_with(prefix),
        }
    }

    fn spelled(&self) -> String {
        match self {
            Self::Exact(name) => name.clone(),
            Self::Prefix(prefix) => format!("{prefix}*"),
        }
    }
}

/// The tenants that a user may see.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tenants {
    /// All of them.
    All,
    /// Those that one of the patterns matches.
    Only(Vec<TenantPattern>),
}

impl Tenants {
    /// Whether this tenant is one of them.
    #[must_use]
    pub fn allow(&self, tenant: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(patterns) => patterns.iter().any(|pattern| pattern.matches(tenant)),
        }
    }

    /// Whether there is a limit.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        matches!(self, Self::Only(_))
    }

    /// The patterns as the configuration spells them; `None` without a limit.
    #[must_use]
    pub fn spelled(&self) -> Option<Vec<String>> {
        match self {
            Self::All => None,
            Self::Only(patterns) => Some(patterns.iter().map(TenantPattern::spelled).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_names_tenants_or_how_their_names_begin() {
        let only = Tenants::Only(vec![
            TenantPattern::parse("acct_*").unwrap(),
            TenantPattern::parse("shop").unwrap(),
        ]);
        for (tenant, allowed) in
            [("acct_1", true), ("acct_", true), ("shop", true), ("shop2", false), ("acc", false), ("", false)]
        {
            assert_eq!(only.allow(tenant), allowed, "{tenant}");
        }
        assert_eq!(only.spelled().unwrap(), ["acct_*", "shop"]);
        assert!(Tenants::All.allow("anybody") && Tenants::All.spelled().is_none());
        for wrong in ["", "*", "a*b", "a**"] {
            assert!(TenantPattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
