//! Undoes of runs that took fields over from client-side apply.

use super::*;

#[test]
fn fields_of_client_side_apply_that_the_run_removed_come_back() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let theirs = with(
        config_map(&home, "theirs", "1"),
        &json!({"data": {"dropped": "x"}, "metadata": {"labels": {"a": "b"}}}),
    );
    cluster().create_as("kubectl-client-side-apply", &theirs);
    let was = cluster().live(&theirs).expect("the object");
    runs.apply("undo", &[config_map(&home, "theirs", "2")], &[])
        .expect(0);
    let changed = cluster().live(&theirs).expect("the object");
    assert_eq!(changed["data"], json!({"key": "2"}));
    let run = runs.undo("undo", &[]).expect(0);
    let is = cluster().live(&theirs).expect("the object");
    assert_eq!(is["data"], was["data"], "{}", run.stderr);
    assert_eq!(is["metadata"]["labels"], was["metadata"]["labels"]);
}

#[test]
fn the_same_of_a_member() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let member = config_map(&home, "one", "1");
    let theirs = with(member.clone(), &json!({"data": {"dropped": "x"}}));
    cluster().create_as("kubectl-client-side-apply", &theirs);
    let id = json!({"metadata": {"labels": {PART_OF: runs.set.id}}});
    cluster().patch(&member, &id);
    let was = cluster().live(&member).expect("the object");
    runs.apply("undo", &[config_map(&home, "one", "2")], &["--force-conflicts"])
        .expect(0);
    let changed = cluster().live(&member).expect("the object");
    assert_eq!(changed["data"], json!({"key": "2"}));
    let run = runs.undo("undo", &[]).expect(0);
    let is = cluster().live(&member).expect("the object");
    assert_eq!(is["data"], was["data"], "{}", run.stderr);
}

#[test]
fn a_member_of_client_side_apply_that_was_pruned_comes_back() {
    let home = namespace("undo");
    let runs = Runs::of(Set::secret(&home, "web"));
    let [stays, theirs] = ["stays", "theirs"].map(|name| config_map(&home, name, "1"));
    runs.set.apply(std::slice::from_ref(&stays));
    let id = json!({"metadata": {"labels": {PART_OF: runs.set.id}}});
    cluster().create_as("kubectl-client-side-apply", &with(theirs.clone(), &id));
    let run = runs.apply("undo", std::slice::from_ref(&stays), &[]).expect(0);
    assert_eq!(actions(&run)["ConfigMap/theirs"], "pruned");
    runs.undo("undo", &[]).expect(0);
    let is = cluster().live(&theirs).expect("the object");
    assert_eq!(is["data"], theirs["data"]);
    runs.set.assert_holds(&[stays, theirs]);
}

#[test]
fn a_member_that_is_a_hook_comes_back() {
    for hook in [
        json!({"argocd.argoproj.io/hook": "Skip"}),
        json!({"helm.sh/hook": "test"}),
    ] {
        let home = namespace("undo");
        let runs = Runs::of(Set::secret(&home, "web"));
        let [stays, theirs] = ["stays", "theirs"].map(|name| config_map(&home, name, "1"));
        runs.set.apply(std::slice::from_ref(&stays));
        let member = json!({"metadata": {"labels": {PART_OF: runs.set.id}, "annotations": hook}});
        cluster().create_as("kubectl-client-side-apply", &with(theirs.clone(), &member));
        let run = runs.apply("undo", std::slice::from_ref(&stays), &[]).expect(0);
        assert_eq!(actions(&run)["ConfigMap/theirs"], "pruned");
        let run = runs.undo("undo", &[]).expect(0);
        assert_eq!(actions(&run)["ConfigMap/theirs"], "created", "{hook}");
        runs.set.assert_holds(&[stays, theirs]);
    }
}
