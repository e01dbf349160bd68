//! What a listing of the audit is asked for.

use super::problem::AdminProblem;
use super::query::{USUAL, each_parameter, limit, moment};
use semel::audit::{AuditAction, AuditCursor, AuditFilter, AuditResult};
use utoipa::IntoParams;

const PARAMETERS: [&str; 10] =
    ["actor", "action", "target", "tenant", "operation", "result", "after", "before", "limit", "cursor"];

const OF_EXPORT: [&str; 10] =
    ["format", "actor", "action", "target", "tenant", "operation", "result", "after", "before", "cursor"];

/// The parameters as they are described.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes a query; never constructed")]
pub(super) struct OfAudit {
    /// Who: `token:oncall`.
    #[param(required = false)]
    actor: String,
    /// What was done.
    #[param(schema_with = super::schemas::audit_action_asked_for, required = false)]
    action: String,
    /// What it was done to: an operation id, an event id.
    #[param(required = false)]
    target: String,
    /// Whose operation it was.
    #[param(required = false)]
    tenant: String,
    /// The operation's name.
    #[param(required = false)]
    operation: String,
    /// How it ended.
    #[param(schema_with = super::schemas::audit_result_asked_for, required = false)]
    result: String,
    /// Not before this moment (RFC 3339).
    #[param(schema_with = super::schemas::moment_asked_for, required = false)]
    after: String,
    /// Before this moment (RFC 3339).
    #[param(schema_with = super::schemas::moment_asked_for, required = false)]
    before: String,
    /// The most entries of the page. Default 100.
    #[param(schema_with = super::schemas::limit_asked_for, required = false)]
    limit: u16,
    /// The `next_cursor` of the previous page.
    #[param(required = false, pattern = "^([0-9a-fA-F]{32})?$")]
    cursor: String,
}

/// The parameters as they are described.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes a query; never constructed")]
pub(super) struct OfExport {
    /// `csv` or `json`. Default `json`.
    #[param(schema_with = super::schemas::export_format_asked_for, required = false)]
    format: String,
    /// Who: `token:oncall`.
    #[param(required = false)]
    actor: String,
    /// What was done.
    #[param(schema_with = super::schemas::audit_action_asked_for, required = false)]
    action: String,
    /// What it was done to: an operation id, an event id.
    #[param(required = false)]
    target: String,
    /// Whose operation it was.
    #[param(required = false)]
    tenant: String,
    /// The operation's name.
    #[param(required = false)]
    operation: String,
    /// How it ended.
    #[param(schema_with = super::schemas::audit_result_asked_for, required = false)]
    result: String,
    /// Not before this moment (RFC 3339).
    #[param(schema_with = super::schemas::moment_asked_for, required = false)]
    after: String,
    /// Before this moment (RFC 3339).
    #[param(schema_with = super::schemas::moment_asked_for, required = false)]
    before: String,
    /// The `Semel-Next-Cursor` of the previous export.
    #[param(required = false, pattern = "^([0-9a-fA-F]{32})?$")]
    cursor: String,
}

/// A page of the audit: filter, start and size.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct AuditListing {
    pub(super) filter: AuditFilter,
    pub(super) from: Option<AuditCursor>,
    pub(super) limit: usize,
}

impl AuditListing {
    /// Reads the query of an address. A parameter without a value is as good as absent.
    pub(super) fn read(query: Option<&str>) -> Result<Self, AdminProblem> {
        let mut listing = Self { filter: AuditFilter::default(), from: None, limit: USUAL };
        each_parameter(query, &PARAMETERS, |name, value| listing.set(name, value))?;
        Ok(listing)
    }

    /// Reads the query of an export: whether it is to be CSV, and of what.
    pub(super) fn read_export(query: Option<&str>) -> Result<(bool, Self), AdminProblem> {
        let mut listing = Self { filter: AuditFilter::default(), from: None, limit: USUAL };
        let mut as_csv = false;
        each_parameter(query, &OF_EXPORT, |name, value| match (name, value.as_str()) {
            ("format", "csv") => {
                as_csv = true;
                Ok(())
            }
            ("format", "json") => Ok(()),
            ("format", _) => Err(AdminProblem::parameter(name, "Must be csv or json.")),
            _ => listing.set(name, value),
        })?;
        Ok((as_csv, listing))
    }

    fn set(&mut self, name: &'static str, value: String) -> Result<(), AdminProblem> {
        let one_of =
            |names: Vec<&str>| AdminProblem::parameter(name, format!("Must be one of {}.", names.join(", ")));
        let filter = &mut self.filter;
        match name {
            "actor" => filter.actor = Some(value),
            "action" => {
                let names = || AuditAction::ALL.map(AuditAction::as_str).to_vec();
                filter.action = Some(AuditAction::from_name(&value).ok_or_else(|| one_of(names()))?);
            }
            "target" => filter.target = Some(value),
            "tenant" => filter.tenant = Some(value),
            "operation" => filter.operation = Some(value),
            "result" => {
                let names = || AuditResult::ALL.map(AuditResult::as_str).to_vec();
                filter.result = Some(AuditResult::from_name(&value).ok_or_else(|| one_of(names()))?);
            }
            "after" => filter.from = Some(moment(name, &value)?),
            "before" => filter.until = Some(moment(name, &value)?),
            "limit" => self.limit = limit(name, &value)?,
            _ => {
                let cursor = Some(AuditCursor(value)).filter(|cursor| cursor.place().is_some());
                self.from = Some(cursor.ok_or_else(|| AdminProblem::not_a_cursor(name))?);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel::Timestamp;

    #[test]
    fn every_filter_is_read() {
        let query = "actor=token%3Aada&action=bulk.item&target=t&tenant=a&operation=o&result=refused&after=2026-02-03T04:05:06Z&before=2026-02-04T00:00:00%2B01:00&limit=7";
        let listing = AuditListing::read(Some(query)).unwrap();
        let filter = AuditFilter {
            actor: Some("token:ada".into()),
            action: Some(AuditAction::BulkItem),
            target: Some("t".into()),
            tenant: Some("a".into()),
            operation: Some("o".into()),
            result: Some(AuditResult::Refused),
            from: Some(Timestamp::from_millis(1_770_091_506_000)),
            until: Some(Timestamp::from_millis(1_770_159_600_000)),
        };
        assert_eq!(listing, AuditListing { filter, from: None, limit: 7 });
        for query in
            ["action=did", "result=ok", "after=yesterday", "cursor=1", "limit=0", "format=csv", "a=b"]
        {
            assert!(AuditListing::read(Some(query)).is_err(), "{query}");
        }
        assert!(AuditListing::read_export(Some("format=csv&actor=x")).unwrap().0);
        assert!(AuditListing::read_export(Some("format=xlsx")).is_err());
    }

    #[test]
    fn what_is_read_is_what_is_described() {
        fn names<T: IntoParams>() -> Vec<String> {
            T::into_params(|| None).into_iter().map(|parameter| parameter.name).collect()
        }
        assert_eq!(names::<OfAudit>(), PARAMETERS);
        assert_eq!(names::<OfExport>(), OF_EXPORT);
    }
}
