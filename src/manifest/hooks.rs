//! Hooks of Helm and Argo CD: manifests that a tool creates at one moment of a release, and that
//! are not members of a set.
//!
//! The weights by which Helm orders its hooks, and the sync waves of Argo CD, are not read:
//! `desired/ignored_order_annotations` warns of them.
//!
//! `helm template` prints hooks among the ordinary objects. Right after reading, [`Manifests`] separates them, so that
//! no later stage can take a hook for a member. By default, a run with hooks is refused; docs/guides/hooks.md has the
//! values of `--hooks`.
//!
//! The rules are the same as in Helm (`pkg/release/v1/util/manifest_sorter.go`) and Argo CD
//! (`gitops-engine/pkg/sync/hook`), except that an unknown hook of Helm is a hook here, and not
//! dropped silently.

use super::{Manifest, Naming, Position};
use crate::model::identity::ObjectKey;
use crate::model::object::Object;
use crate::model::text::{counted, first_names_and_more};
use crate::model::write_settings::Hooks;

/// The annotation of Helm's hooks.
const HELM_HOOK: &str = "helm.sh/hook";
/// The annotation of Argo CD's hooks.
const ARGO_CD_HOOK: &str = "argocd.argoproj.io/hook";

/// Helm's hook types that only `helm test` creates. The last two are of Helm 2.
const TEST_TYPES: [&str; 3] = ["test", "test-success", "test-failure"];
/// The hook type of CRDs in Helm 2, which created them before the other objects of a chart. Here such a CRD is an
/// ordinary object.
const CRD_TYPE: &str = "crd-install";
/// The hook type of objects that Argo CD does not create.
const SKIP_TYPE: &str = "Skip";

/// The annotation that makes an object a hook.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hook {
    /// The kind of the hook.
    pub kind: HookKind,
    /// The annotation, as `key: value`.
    pub annotation: String,
}

impl Hook {
    /// Reads the annotations of an object; `None` if the object is not a hook.
    pub fn from_object(object: &Object) -> Option<Self> {
        if !object.may_mention_key(HELM_HOOK) && !object.may_mention_key(ARGO_CD_HOOK) {
            return None;
        }
        let metadata = object.metadata();
        let annotations = metadata.get("annotations")?.as_object()?;
        let read_hook = |key: &str, parse_kind: fn(&str) -> Option<HookKind>| {
            let value = annotations.get(key)?.as_str()?;
            Some(Self {
                kind: parse_kind(value)?,
                annotation: format!("{key}: {value}"),
            })
        };
        let helm_hook = read_hook(HELM_HOOK, parse_helm_hook_kind);
        let argo_cd_hook = read_hook(ARGO_CD_HOOK, |value| Some(parse_argo_cd_hook_kind(value)));
        helm_hook.max(argo_cd_hook)
    }
}

/// The kinds of hooks. An object with annotations of both tools counts as the later kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookKind {
    /// A test of Helm: only `helm test` creates it.
    Test,
    /// An object that Argo CD never creates.
    Excluded,
    /// An object that is created at one moment of a release, such as before it is upgraded.
    Lifecycle,
}

/// A manifest that is not applied, because it is a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookManifest {
    /// Kind, namespace and name.
    pub key: ObjectKey,
    /// The source of the name.
    pub naming: Naming,
    pub hook: Hook,
    /// The line where the manifest begins.
    pub position: Position,
}

impl HookManifest {
    /// Returns whether this is the manifest of a live object. If the live object is cluster-scoped, a namespace in the
    /// manifest does not count. A manifest with `generateName` is of no live object, since their names are not known.
    pub fn is_of_object(&self, live: &ObjectKey) -> bool {
        self.naming == Naming::Given
            && self.key.group_kind == live.group_kind
            && self.key.name == live.name
            && (live.namespace.is_none() || live.namespace == self.key.namespace)
    }
}

impl std::fmt::Display for HookManifest {
    /// Writes the object with the annotation: `job.batch/migrate in namespace shop (helm.sh/hook: pre-install)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.key, self.hook.annotation)
    }
}

/// The manifests of a run. Hooks that are not applied are in a field of their own.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Manifests {
    /// Manifests of ordinary objects, in their order.
    pub applied: Vec<Manifest>,
    /// Manifests of hooks that are not applied.
    pub hooks: Vec<(Manifest, Hook)>,
}

impl Manifests {
    /// Keeps hooks among the other manifests, for a command that applies nothing and only needs the names of objects.
    /// Manifests with `generateName` name no object, and are left out.
    pub fn with_hooks_not_separated(mut manifests: Vec<Manifest>) -> Self {
        manifests.retain(|manifest| manifest.naming == Naming::Given);
        Self {
            applied: manifests,
            hooks: Vec::new(),
        }
    }

    /// Separates the manifests of hooks from the others. Tests and excluded objects are never applied.
    pub fn with_hooks_separated(manifests: Vec<Manifest>, treatment: Hooks) -> Self {
        let mut separated = Self::default();
        for manifest in manifests {
            match Hook::from_object(&manifest.object) {
                Some(hook) if hook.kind != HookKind::Lifecycle || treatment != Hooks::Applied => {
                    separated.hooks.push((manifest, hook));
                }
                _ => separated.applied.push(manifest),
            }
        }
        separated
    }

    /// Returns all manifests, the hooks last.
    pub fn all(&self) -> impl Iterator<Item = &Manifest> {
        self.applied
            .iter()
            .chain(self.hooks.iter().map(|(manifest, _)| manifest))
    }
}

/// Returns a note for each kind of hooks that are left out, with their names. If hooks are refused, the run fails, so
/// there is no note about hooks of kind [`HookKind::Lifecycle`].
pub fn notes_on_hooks_left_out(left_out: &[HookManifest], treatment: Hooks) -> Vec<String> {
    let note_on = |kind, noun: &str, why: &str| {
        let names: Vec<String> = left_out
            .iter()
            .filter(|manifest| manifest.hook.kind == kind)
            .map(ToString::to_string)
            .collect();
        (!names.is_empty()).then(|| {
            let count = counted(names.len(), noun);
            format!("left out {count}{why}: {}", first_names_and_more(names))
        })
    };
    let lifecycle = if treatment == Hooks::Refused {
        None
    } else {
        note_on(HookKind::Lifecycle, "hook", "")
    };
    let tests = note_on(HookKind::Test, "test hook", "");
    let excluded = note_on(HookKind::Excluded, "object", " that Argo CD never creates");
    [tests, excluded, lifecycle].into_iter().flatten().collect()
}

/// Reads Helm's annotation, a list of hook types in any letter case; `None` for a CRD of Helm 2. A list with a type
/// that is not of a test counts as [`HookKind::Lifecycle`], even if Helm does not know the type.
fn parse_helm_hook_kind(value: &str) -> Option<HookKind> {
    let types: Vec<String> = value.split(',').map(|item| item.trim().to_lowercase()).collect();
    if types.iter().all(|item| item == CRD_TYPE) {
        None
    } else if types.iter().all(|item| TEST_TYPES.contains(&item.as_str())) {
        Some(HookKind::Test)
    } else {
        Some(HookKind::Lifecycle)
    }
}

/// Reads Argo CD's annotation, a list of hook types in which empty items do not count. An empty list counts as
/// [`HookKind::Lifecycle`], so that the object is not applied without a decision of the user.
fn parse_argo_cd_hook_kind(value: &str) -> HookKind {
    let mut types = value
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .peekable();
    let is_excluded = types.peek().is_some() && types.all(|item| item == SKIP_TYPE);
    if is_excluded {
        HookKind::Excluded
    } else {
        HookKind::Lifecycle
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::manifest::Source;
    use crate::model::identity::{GroupKind, GroupVersionKind};

    fn object(annotations: &Value) -> Object {
        Object::from(&json!({"metadata": {"name": "a", "annotations": annotations}}))
    }

    fn manifest(name: &str, annotations: &Value) -> Manifest {
        Manifest {
            gvk: GroupVersionKind::from_api_version("batch/v1", "Job"),
            name: name.to_owned(),
            naming: Naming::Given,
            namespace: None,
            object: object(annotations),
            position: Position {
                source: std::sync::Arc::new(Source::StandardInput),
                line: 1,
            },
        }
    }

    #[test]
    fn hooks_are_read_from_annotations() {
        use HookKind::{Excluded, Lifecycle, Test};
        let helm = |value: &str| json!({HELM_HOOK: value});
        let argo = |value: &str| json!({ARGO_CD_HOOK: value});
        let helm_and_argo = |helm: &str, argo: &str| json!({HELM_HOOK: helm, ARGO_CD_HOOK: argo});
        let table = [
            (json!({}), None),
            (Value::Null, None),
            (json!({"helm.sh/hook-weight": "1"}), None),
            (helm("test"), Some(Test)),
            (helm("test-success"), Some(Test)),
            (helm("test-failure"), Some(Test)),
            (helm(" Test , test-success"), Some(Test)),
            (helm("test,post-install"), Some(Lifecycle)),
            (helm("test,"), Some(Lifecycle)),
            (helm("pre-install"), Some(Lifecycle)),
            (helm("post-delete"), Some(Lifecycle)),
            (helm("of-a-later-version"), Some(Lifecycle)),
            (helm(""), Some(Lifecycle)),
            (helm("crd-install"), None),
            (helm("crd-install,crd-install"), None),
            (helm("crd-install,pre-install"), Some(Lifecycle)),
            (helm("crd-install,test"), Some(Lifecycle)),
            (argo("Skip"), Some(Excluded)),
            (argo("Skip, "), Some(Excluded)),
            (argo("skip"), Some(Lifecycle)),
            (argo("Skip,PreSync"), Some(Lifecycle)),
            (argo("PostSync"), Some(Lifecycle)),
            (argo("Sync"), Some(Lifecycle)),
            (argo(""), Some(Lifecycle)),
            (helm_and_argo("test", "Skip"), Some(Excluded)),
            (helm_and_argo("test", "PostSync"), Some(Lifecycle)),
            (helm_and_argo("pre-install", "Skip"), Some(Lifecycle)),
            (helm_and_argo("crd-install", "Skip"), Some(Excluded)),
        ];
        for (annotations, expected) in table {
            let hook = Hook::from_object(&object(&annotations));
            assert_eq!(hook.map(|hook| hook.kind), expected, "{annotations}");
        }
        let annotation =
            Hook::from_object(&object(&helm_and_argo("test", "PostSync"))).map(|hook| hook.annotation);
        assert_eq!(annotation.as_deref(), Some("argocd.argoproj.io/hook: PostSync"));
        // An annotation that another one quotes is not an annotation.
        assert_eq!(
            Hook::from_object(&object(&json!({"note": "helm.sh/hook: test"}))),
            None
        );
    }

    #[test]
    fn only_applied_hooks_are_among_the_objects() {
        for (hooks, applied) in [
            (Hooks::Refused, vec!["ordinary", "definition"]),
            (Hooks::Skipped, vec!["ordinary", "definition"]),
            (Hooks::Applied, vec!["ordinary", "migrate", "definition"]),
        ] {
            let manifests = vec![
                manifest("ordinary", &json!({})),
                manifest("test", &json!({HELM_HOOK: "test"})),
                manifest("migrate", &json!({HELM_HOOK: "pre-upgrade"})),
                manifest("excluded", &json!({ARGO_CD_HOOK: "Skip"})),
                manifest("definition", &json!({HELM_HOOK: "crd-install"})),
            ];
            let separated = Manifests::with_hooks_separated(manifests, hooks);
            let names: Vec<&str> = separated
                .applied
                .iter()
                .map(|found| found.name.as_str())
                .collect();
            assert_eq!(names, applied, "{hooks:?}");
            assert_eq!(separated.all().count(), 5, "{hooks:?}");
        }
    }

    #[test]
    fn a_hook_without_a_name_names_no_object() {
        let generated = Manifest {
            naming: Naming::Generated,
            ..manifest("a*", &json!({ARGO_CD_HOOK: "Sync"}))
        };
        let manifests = || vec![manifest("ordinary", &json!({})), generated.clone()];
        assert_eq!(Manifests::with_hooks_not_separated(manifests()).all().count(), 1);
        assert_eq!(
            Manifests::with_hooks_separated(manifests(), Hooks::Skipped)
                .hooks
                .len(),
            1
        );
        assert_eq!(
            Manifests::with_hooks_separated(manifests(), Hooks::Applied)
                .applied
                .len(),
            2
        );
    }

    fn left_out(namespace: Option<&str>, name: &str, annotations: &Value) -> HookManifest {
        HookManifest {
            key: ObjectKey {
                group_kind: GroupKind::new("batch", "Job"),
                namespace: namespace.map(str::to_owned),
                name: name.to_owned(),
            },
            naming: Naming::Given,
            hook: Hook::from_object(&object(annotations)).expect("a hook"),
            position: manifest("a", &json!({})).position,
        }
    }

    #[test]
    fn a_live_object_is_found_by_the_manifest_of_its_hook() {
        let hook = left_out(Some("shop"), "a", &json!({HELM_HOOK: "test"}));
        for (namespace, name, expected) in [
            (Some("shop"), "a", true),
            (None, "a", true),
            (Some("other"), "a", false),
            (Some("shop"), "b", false),
        ] {
            let live = left_out(namespace, name, &json!({HELM_HOOK: "test"})).key;
            assert_eq!(hook.is_of_object(&live), expected, "{live}");
        }
        // A ClusterRole may be called so.
        let generated = HookManifest {
            naming: Naming::Generated,
            ..left_out(Some("shop"), "a*", &json!({ARGO_CD_HOOK: "Sync"}))
        };
        assert!(!generated.is_of_object(&generated.key));
    }

    #[test]
    fn one_note_names_all_hooks_of_a_kind() {
        let hooks = [
            left_out(Some("shop"), "one", &json!({HELM_HOOK: "test"})),
            left_out(Some("shop"), "two", &json!({HELM_HOOK: "test-success"})),
            left_out(Some("shop"), "three", &json!({ARGO_CD_HOOK: "Skip"})),
            left_out(Some("shop"), "four", &json!({HELM_HOOK: "pre-install"})),
        ];
        let first = [
            "left out 2 test hooks: job.batch/one in namespace shop (helm.sh/hook: test), \
             job.batch/two in namespace shop (helm.sh/hook: test-success)",
            "left out 1 object that Argo CD never creates: job.batch/three in namespace shop \
             (argocd.argoproj.io/hook: Skip)",
        ];
        assert_eq!(notes_on_hooks_left_out(&hooks, Hooks::Refused), first);
        let skipped = notes_on_hooks_left_out(&hooks, Hooks::Skipped);
        assert_eq!(skipped[..2], first);
        assert_eq!(
            skipped[2],
            "left out 1 hook: job.batch/four in namespace shop (helm.sh/hook: pre-install)"
        );
        assert!(notes_on_hooks_left_out(&[], Hooks::Skipped).is_empty());
    }
}
