//! Parses `RESOURCE[.VERSION][.GROUP]`, as users type it on the command line.
//!
//! The rules are kubectl's: `schema.ParseResourceArg`, the shortcut expander and the
//! default REST mapper of client-go.

use super::{FailedVersion, KindLookup};
use crate::model::resource::Resource;

/// Finds the first of `resources`, which are in order of preference, that the text names.
pub(super) fn find<'a>(
    text: &str,
    resources: &'a [Resource],
    failures: &'a [FailedVersion],
) -> KindLookup<'a> {
    let interpretations = interpretations(text);
    for interpretation in &interpretations {
        let resource = interpretation.find(resources, |group| interpretation.matches_group(group));
        let failed = failures.iter().find(|failed| {
            failed.group == interpretation.group && interpretation.is_version(&failed.version)
        });
        match (resource, failed) {
            (Some(resource), None) => return KindLookup::Found(resource),
            (Some(resource), Some(_)) if resource.group == interpretation.group => {
                return KindLookup::Found(resource);
            }
            // The named group could not be read. A match in another group must not replace it: neither in another group
            // instead of the core group, nor in a group whose name only begins like the named one.
            (_, Some(failed)) => return KindLookup::GroupFailed(failed),
            (None, None) => {}
        }
        if let Some(resource) =
            interpretation.find(resources, |group| interpretation.matches_group_prefix(group))
        {
            return KindLookup::Found(resource);
        }
    }
    failures
        .iter()
        .find(|failed| {
            interpretations
                .iter()
                .any(|interpretation| interpretation.may_be_in(failed))
        })
        .map_or(KindLookup::Absent, KindLookup::GroupFailed)
}

/// One way to read a resource argument.
struct Interpretation<'t> {
    resource: &'t str,
    /// The version; `None` for any.
    version: Option<&'t str>,
    /// The group or the beginning of its name; empty for any.
    group: &'t str,
}

/// Returns all ways to read the text. `a.b.c` may be resource, version and group, or a resource and a group with a dot
/// in it. kubectl reads the `v1` of `a.v1` only as a group, and as a version only in `a.v1.`; here, it may be either.
fn interpretations(argument: &str) -> Vec<Interpretation<'_>> {
    let (resource, rest) = argument.split_once('.').unwrap_or((argument, ""));
    let mut interpretations = Vec::new();
    if let Some((version, group)) = rest.split_once('.') {
        interpretations.push(Interpretation {
            resource,
            version: Some(version),
            group,
        });
    }
    interpretations.push(Interpretation {
        resource,
        version: None,
        group: rest,
    });
    if is_version(rest) {
        interpretations.push(Interpretation {
            resource,
            version: Some(rest),
            group: "",
        });
    }
    interpretations
}

/// Returns whether the text is a version as Kubernetes writes them: `v1`, `v2beta1`.
fn is_version(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('v') else {
        return false;
    };
    match rest.split_once("alpha").or_else(|| rest.split_once("beta")) {
        Some((major, minor)) => is_number(major) && is_number(minor),
        None => is_number(rest),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl Interpretation<'_> {
    fn matches_group(&self, group: &str) -> bool {
        self.group.is_empty() || self.group == group
    }

    fn matches_group_prefix(&self, group: &str) -> bool {
        group.starts_with(self.group)
    }

    fn is_version(&self, version: &str) -> bool {
        self.version.is_none_or(|own_version| own_version == version)
    }

    fn may_be_in(&self, failed: &FailedVersion) -> bool {
        self.matches_group_prefix(&failed.group) && self.is_version(&failed.version)
    }

    /// Finds a resource: full names come before short names, and these before kinds.
    fn find<'a>(
        &self,
        resources: &'a [Resource],
        matches_group: impl Fn(&str) -> bool,
    ) -> Option<&'a Resource> {
        let forms: [fn(&Resource, &str) -> bool; 3] = [has_plural_or_singular, has_short_name, has_kind];
        forms.into_iter().find_map(|has_form| {
            resources.iter().find(|resource| {
                has_form(resource, self.resource)
                    && self.is_version(&resource.version)
                    && matches_group(&resource.group)
            })
        })
    }
}

fn has_plural_or_singular(resource: &Resource, name: &str) -> bool {
    resource.plural.eq_ignore_ascii_case(name) || resource.singular.eq_ignore_ascii_case(name)
}

fn has_short_name(resource: &Resource, name: &str) -> bool {
    resource
        .short_names
        .iter()
        .any(|short| short.eq_ignore_ascii_case(name))
}

fn has_kind(resource: &Resource, name: &str) -> bool {
    resource.kind.eq_ignore_ascii_case(name)
}
