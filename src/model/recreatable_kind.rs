//! Kinds that the flag `--recreate` may name, and the hint that names it for all objects of a run.

use std::collections::BTreeSet;

use super::identity::GroupKind;

/// A kind of objects that the user may let a run recreate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecreatableKind {
    pub kind: GroupKind,
    /// Whether data is lost with its objects, which the user has to agree to.
    pub loses_data: bool,
}

impl RecreatableKind {
    /// Returns the hint for an object of this kind.
    pub fn hint(&self) -> String {
        let flags = flags([self], self.loses_data);
        format!("keep the old value, give the object another name, or recreate it with {flags}")
    }

    /// Returns the value of the flag. Groups without a dot are built in, and their kinds come first for a
    /// bare name.
    pub fn name(&self) -> String {
        if self.kind.group.contains('.') {
            self.kind.to_string()
        } else {
            self.kind.kind.clone()
        }
    }
}

/// Returns the hints for objects of all these kinds: one flag for those whose recreation loses nothing,
/// and one for the others.
pub fn recreation_hints(kinds: &BTreeSet<RecreatableKind>) -> Vec<String> {
    let hints = [false, true].into_iter().filter_map(|loses_data| {
        let kinds = kinds.iter().filter(|kind| kind.loses_data == loses_data);
        let kinds: Vec<&RecreatableKind> = kinds.collect();
        match kinds.as_slice() {
            [] => None,
            [kind] => Some(kind.hint()),
            kinds => Some(format!(
                "keep the old values, give the objects other names, or recreate them with {}",
                flags(kinds.iter().copied(), loses_data)
            )),
        }
    });
    hints.collect()
}

fn flags<'k>(kinds: impl IntoIterator<Item = &'k RecreatableKind>, loses_data: bool) -> String {
    let names: Vec<String> = kinds.into_iter().map(RecreatableKind::name).collect();
    let agreed = if loses_data { " --allow-data-loss" } else { "" };
    format!("--recreate={}{agreed}", names.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(group: &str, kind: &str) -> RecreatableKind {
        RecreatableKind {
            kind: GroupKind::new(group, kind),
            loses_data: false,
        }
    }

    #[test]
    fn the_flag_names_the_kind_as_it_is_looked_up() {
        for (group, name, expected) in [
            ("batch", "Job", "Job"),
            ("", "Service", "Service"),
            ("example.com", "Job", "Job.example.com"),
            (
                "rbac.authorization.k8s.io",
                "RoleBinding",
                "RoleBinding.rbac.authorization.k8s.io",
            ),
        ] {
            assert_eq!(kind(group, name).name(), expected);
        }
    }

    #[test]
    fn one_flag_names_all_kinds_that_lose_nothing() {
        let job = kind("batch", "Job");
        let deployment = kind("apps", "Deployment");
        let database = RecreatableKind {
            loses_data: true,
            ..kind("apps", "StatefulSet")
        };
        assert_eq!(recreation_hints(&BTreeSet::new()), Vec::<String>::new());
        assert_eq!(recreation_hints(&[job.clone()].into()), [job.hint()]);
        assert_eq!(
            recreation_hints(&[deployment, job, database].into()),
            [
                "keep the old values, give the objects other names, or recreate them with \
                 --recreate=Deployment,Job",
                "keep the old value, give the object another name, or recreate it with \
                 --recreate=StatefulSet --allow-data-loss",
            ]
        );
    }
}
