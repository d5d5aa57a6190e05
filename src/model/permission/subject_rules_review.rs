//! The rules of a user in one namespace, and the permissions that they grant.
//!
//! Matching is that of RBAC (kubernetes, `pkg/apis/rbac/v1/evaluation_helpers.go`), with the
//! additional wildcards of `ResourceRule` in authorization.k8s.io.

use serde::Deserialize;

use super::Permission;

/// `status` of a `SelfSubjectRulesReview`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rules {
    /// Rules for resources; those for other paths are not needed.
    #[serde(default)]
    pub resource_rules: Vec<Rule>,
}

/// `ResourceRule`: every verb on every resource of every group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Rule {
    /// Verbs; `*` is all.
    pub verbs: Vec<String>,
    /// API groups, the core group being empty; `*` is all.
    pub api_groups: Vec<String>,
    /// Resources; `*` is all, `pods/log` a subresource.
    pub resources: Vec<String>,
    /// Names of objects; none is all, and so is `*`.
    pub resource_names: Vec<String>,
}

impl Rules {
    /// Returns whether these rules grant the permission. Rules may be incomplete: `false` is not a
    /// proof.
    pub fn allow(&self, permission: &Permission) -> bool {
        self.resource_rules.iter().any(|rule| rule.allows(permission))
    }
}

impl Rule {
    fn allows(&self, permission: &Permission) -> bool {
        let names = &self.resource_names;
        has(&self.verbs, permission.verb.as_str())
            && has(&self.api_groups, &permission.group)
            && has(&self.resources, &permission.resource)
            && (names.is_empty()
                || permission
                    .name
                    .as_ref()
                    .map_or_else(|| has(names, "*"), |name| has(names, name)))
    }
}

fn has(allowed: &[String], wanted: &str) -> bool {
    allowed.iter().any(|entry| entry == "*" || entry == wanted)
}
