//! What the server says that a user may do in one namespace, and whether that holds a
//! certain right.
//!
//! Matching is RBAC's (kubernetes, `pkg/apis/rbac/v1/evaluation_helpers.go`), with the
//! wildcards that `ResourceRule` of authorization.k8s.io allows besides.

use serde::Deserialize;

use super::Right;

/// `status` of a `SelfSubjectRulesReview`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rules {
    /// Rights on resources; those on other paths are of no interest.
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
    /// Whether these rules give the right. Rules may be incomplete: `false` is no proof.
    pub fn allow(&self, right: &Right) -> bool {
        self.resource_rules.iter().any(|rule| rule.allows(right))
    }
}

impl Rule {
    fn allows(&self, right: &Right) -> bool {
        let names = &self.resource_names;
        has(&self.verbs, right.verb.as_str())
            && has(&self.api_groups, &right.group)
            && has(&self.resources, &right.resource)
            && (names.is_empty()
                || right
                    .name
                    .as_ref()
                    .map_or_else(|| has(names, "*"), |name| has(names, name)))
    }
}

fn has(allowed: &[String], wanted: &str) -> bool {
    allowed.iter().any(|entry| entry == "*" || entry == wanted)
}
