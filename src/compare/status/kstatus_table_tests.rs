//! The cases of kstatus itself, and the exceptions.

use k8s_openapi::jiff::Timestamp;

use super::{OthersOfKind, StatusRules, Surroundings};
use crate::model::identity::GroupKind;
use crate::model::resource::Subresource;

const TABLE: &str = include_str!("kstatus_table.yaml");

#[test]
fn the_cases_of_kstatus_pass_but_for_the_exceptions() {
    let document = kubernetes_yaml::documents(TABLE)
        .next()
        .expect("a table")
        .expect("YAML");
    let cases = document.to_value();
    let cases = cases.as_array().expect("a list");
    assert_eq!(cases.len(), 53);
    let around = Surroundings {
        others: OthersOfKind::Silent,
        subresource: Subresource::Listed,
        now: Timestamp::UNIX_EPOCH,
    };
    for case in cases {
        let text = |field: &str| case[field].as_str().unwrap_or_default();
        let (kind, group) = text("kind").split_once('.').unwrap_or((text("kind"), ""));
        let found = StatusRules::default().judge(&case["object"], &GroupKind::new(group, kind), around);
        let expected = Some(text("ours")).filter(|ours| !ours.is_empty());
        let expected = expected.unwrap_or(text("expected"));
        assert_eq!(
            found.state.to_string(),
            expected,
            "{}: {}",
            text("case"),
            found.reason
        );
    }
}
