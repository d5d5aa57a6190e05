//! How predictions are divided by their cause.

use serde_json::json;

use super::*;
use crate::model::object::Object;
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
        let before = divided.states_before.values().next().unwrap_or(&prediction.live);
        let (action, after) = (prediction.outcome.action, &prediction.predicted);
        format!("{action} {} {}", data(before), data(after)).replace('"', "")
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
    let [new, old] = [object("new"), object("old")];
    let [changed, added, removed, neither] = [[true, true], [true, false], [false, true], [false, false]];
    let both = [Some("live"), Some("after")];
    let created = [None, Some("after")];
    let gone = [Some("live"), None];
    let base = |action| Some(prediction(action, [Some("live"), Some("base")]));
    let table = [
        (Created, created, added, None, "created none after"),
        (Configured, both, added, None, "created none after, drift skipped"),
        (Unchanged, both, added, None, "created none after, drift skipped"),
        (Recreated, both, added, None, "recreated live after, drift skipped"),
        (Configured, both, changed, base(Unchanged), "configured base after"),
        (Unchanged, both, changed, base(Configured), "configured base after, drift configured"),
        (Recreated, both, changed, base(Configured), "recreated base after, drift configured"),
        (Configured, both, changed, base(Failed), "configured live after, drift failed"),
        (Created, created, changed, base(Created), "configured old new, drift created"),
        (Failed, both, changed, None, "failed live after"),
        (Skipped, [None, None], changed, base(Configured), "skipped none none"),
        (Pruned, gone, removed, None, "pruned live none"),
        (Pruned, gone, neither, None, "drift pruned"),
        (Skipped, [None, None], neither, None, "skipped none none"),
    ];
    for (action, states, [is_new, is_old], of_base, expected) in table {
        let mut divided = Divided::default();
        let (new, old) = (is_new.then_some(&new), is_old.then_some(&old));
        divided.add(prediction(action, states), new, old, of_base);
        assert_eq!(describe(&divided), expected, "{action} {states:?}");
    }
}

#[test]
fn what_the_base_never_deployed_is_removed_and_drift() {
    let mut divided = Divided::default();
    divided.add_removed_before_deployed(&object("old"));
    assert_eq!(describe(&divided), "pruned old none, drift skipped");
}
