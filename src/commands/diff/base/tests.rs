//! How predictions are divided by their cause.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::model::object::Object;
use crate::model::resource::Resource;
use crate::plan::fixtures;

fn object(value: &str) -> DesiredObject {
    let object = fixtures::desired("ConfigMap", Some("shop"), "web");
    DesiredObject {
        object: Object::from(&json!({"metadata": {}, "data": value})),
        ..object
    }
}

fn prediction(action: Action, states: [Option<&str>; 2]) -> Prediction {
    let object = object("new");
    let [live, predicted] = states.map(|state| state.map(|value| json!({"data": value})));
    Prediction {
        live,
        predicted,
        ..Prediction::from_outcome(ObjectOutcome::new(
            Subject::new(&object.key, &object.resource, None),
            action,
        ))
    }
}

/// Describes what is divided: the action, the data before and after, and the action of the drift.
fn describe(divided: &Divided) -> String {
    let data = |state: &Option<Value>| {
        state
            .as_ref()
            .map_or("none".to_owned(), |state| state["data"].to_string())
    };
    let changes = divided.objects.iter().map(|prediction| {
        let states = [prediction.live.clone(), prediction.predicted.clone()];
        let [before, after] = prediction.compared.as_ref().unwrap_or(&states);
        format!("{} {} {}", prediction.outcome.action, data(before), data(after)).replace('"', "")
    });
    let drift = divided
        .drift
        .iter()
        .map(|outcome| format!("drift {}", outcome.action));
    changes.chain(drift).collect::<Vec<_>>().join(", ")
}

#[test]
#[rustfmt::skip]
fn predictions_are_divided_by_their_cause() {
    use Action::{Configured, Created, Failed, Pruned, Recreated, Skipped, Unchanged};
    use ManifestChange::{Equal, Neither, New};
    let changed = ManifestChange::Changed(Box::new(object("old")));
    let removed = ManifestChange::Removed(Box::new(object("old")));
    let both = [Some("live"), Some("after")];
    let created = [None, Some("after")];
    let gone = [Some("live"), None];
    let unread = [None, None];
    let base = |action| Some(prediction(action, [Some("live"), Some("base")]));
    let table = [
        (Unchanged, both, &Equal, None, "unchanged live after"),
        (Unchanged, unread, &Equal, None, "unchanged none none"),
        (Created, created, &Equal, None, "drift created"),
        (Configured, both, &Equal, None, "drift configured"),
        (Failed, both, &Equal, None, "drift failed"),
        (Created, created, &New, None, "created none after"),
        (Configured, both, &New, None, "created none new, drift skipped"),
        (Unchanged, both, &New, None, "created none new, drift skipped"),
        (Unchanged, unread, &New, None, "created none new, drift skipped"),
        (Recreated, both, &New, None, "recreated none new, drift skipped"),
        (Failed, both, &New, None, "failed none new, drift skipped"),
        (Failed, unread, &New, None, "failed none new"),
        (Configured, both, &changed, base(Unchanged), "configured live after"),
        (Configured, both, &changed, base(Configured), "configured base after, drift configured"),
        (Unchanged, both, &changed, base(Configured), "unchanged base after, drift configured"),
        (Recreated, both, &changed, base(Configured), "recreated base after, drift configured"),
        (Configured, both, &changed, base(Failed), "configured old new, drift failed"),
        (Failed, both, &changed, base(Unchanged), "failed old new"),
        (Failed, both, &changed, base(Configured), "failed old new, drift configured"),
        (Failed, both, &changed, base(Failed), "failed old new, drift failed"),
        (Created, created, &changed, base(Created), "created old new, drift created"),
        (Created, created, &changed, base(Failed), "created old new, drift failed"),
        (Pruned, gone, &removed, None, "pruned live none"),
        (Skipped, unread, &removed, None, "skipped none none"),
        (Pruned, gone, &Neither, None, "drift pruned"),
        (Failed, gone, &Neither, None, "drift failed"),
        (Skipped, unread, &Neither, None, "skipped none none"),
    ];
    let new = object("new");
    for (action, states, change, of_base, expected) in table {
        let mut divided = Divided::default();
        divided.add(prediction(action, states), change, Some(&new), of_base);
        assert_eq!(describe(&divided), expected, "{action} {states:?} {change:?}");
    }
}

#[test]
fn two_versions_of_a_drifted_object_are_compared_by_their_manifests() {
    let in_version = |version: &str| {
        let object = object(version);
        let resource = Resource {
            version: version.to_owned(),
            ..(*object.resource).clone()
        };
        DesiredObject {
            resource: Arc::new(resource),
            ..object
        }
    };
    let [old, new] = ["v1", "v2"].map(in_version);
    let predicted = prediction(Action::Configured, [Some("live"), Some("after")]);
    let table = [
        (&new, Action::Configured, json!(["base", "after"])),
        (&old, Action::Configured, json!(["v1", "v2"])),
        (&old, Action::Unchanged, json!(null)),
    ];
    for (old, action, expected) in table {
        let of_base = prediction(action, [Some("live"), Some("base")]);
        let states = choose_states(&predicted, [Some(old), Some(&new)], &of_base);
        let data = states.map(|states| states.map(|state| state.map(|state| state["data"].clone())));
        assert_eq!(json!(data), expected, "{action}");
    }
}

#[test]
fn what_the_base_never_deployed_is_removed_and_drift() {
    let mut divided = Divided::default();
    divided.add_removed_before_deployed(&object("old"));
    assert_eq!(describe(&divided), "pruned old none, drift skipped");
}

#[test]
fn a_parent_is_predicted_as_an_object() {
    let live = |value: &str| Some(json!({"metadata": {"resourceVersion": value}, "data": value}));
    let error = || Some("refused".into());
    let table = [
        (None, live("a"), None, Action::Created),
        (live("a"), live("a"), None, Action::Unchanged),
        (live("a"), live("b"), None, Action::Configured),
        (live("a"), live("a"), error(), Action::Failed),
    ];
    for (live, predicted, error, action) in table {
        let prediction = ParentPrediction {
            live,
            predicted,
            error,
        };
        let predicted = predict_as_object(&object("new"), prediction);
        assert_eq!(predicted.outcome.action, action);
    }
}
