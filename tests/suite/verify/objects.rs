//! What is found out about objects: members outside the record, orphans, lost members and
//! copies of labels.

use serde_json::{Value, json};

use super::{Sound, WITHOUT_QUESTION, reported, rules, verify};
use crate::support::{
    PART_OF, Program, Set, cluster, config_map, identities, named, namespace, secret, with,
};

fn member(object: Value, set: &Set) -> Value {
    with(object, &json!({"metadata": {"labels": {PART_OF: set.id}}}))
}

#[test]
fn a_member_anywhere_in_the_cluster_is_found_and_recorded() {
    let sound = Sound::new();
    let elsewhere = namespace("elsewhere");
    let role = named("rbac.authorization.k8s.io/v1", "Role", Some(&elsewhere), "stray");
    let stray = member(with(role, &json!({"rules": []})), &sound.set);
    cluster().apply_as("kubectl", &stray);
    // The old way of finding members does not see it.
    let run = sound.set.apply(&sound.objects);
    assert_eq!(run.results("pruned"), Vec::<String>::new());

    let run = verify(&sound.set, &["--include-namespaces"]).expect(1);
    assert_eq!(
        reported(&run),
        [
            format!("record-too-narrow Secret {}/web+", sound.home),
            format!("unrecorded-member Role {elsewhere}/stray+"),
        ]
    );
    assert_eq!(run.document()["sets"][0]["status"], "invalid");
    let stray_before = cluster().live(&stray);
    verify(&sound.set, &WITHOUT_QUESTION).expect(0);

    assert_eq!(cluster().live(&stray), stray_before);
    assert_eq!(rules(&verify(&sound.set, &[]).expect(0)), [""; 0]);
    let run = sound.set.apply(&sound.objects);
    assert_eq!(run.results("pruned"), identities([&stray]));
    sound.assert_sound();
}

#[test]
fn copies_of_the_label_are_worth_knowing_and_widen_no_record() {
    let sound = Sound::new();
    let owner = cluster().live(&sound.objects[0]).expect("a member");
    let reference = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "one", "uid": owner["metadata"]["uid"],
    });
    let owned = with(
        member(secret(&sound.home, "owned"), &sound.set),
        &json!({"metadata": {"ownerReferences": [reference]}}),
    );
    let copied = member(secret(&sound.away, "copied"), &sound.set);
    cluster().apply_as("kubectl", &owned);
    cluster().create(&copied);
    let before = cluster().state(&[&sound.home, &sound.away]);
    for flags in [&[][..], &WITHOUT_QUESTION] {
        let run = verify(&sound.set, flags).expect(0);
        let mut expected = vec![
            format!("label-copy Secret {}/copied", sound.away),
            format!("label-copy Secret {}/owned", sound.home),
        ];
        expected.sort();
        assert_eq!(reported(&run), expected);
        assert_eq!(run.document()["sets"][0]["members"], 2);
    }
    assert_eq!(cluster().state(&[&sound.home, &sound.away]), before);
    // To one who applies under that name, it is a member.
    let run = verify(&sound.set, &["--field-manager", "tests"]).expect(1);
    let unrecorded = format!("unrecorded-member Secret {}/copied+", sound.away);
    assert!(reported(&run).contains(&unrecorded), "{:?}", reported(&run));
}

#[test]
fn members_whose_parent_is_gone_are_orphans_until_their_set_is_applied_again() {
    let sound = Sound::new();
    cluster().delete(&sound.set.parent);
    let before = cluster().state(&[&sound.home, &sound.away]);
    let run = verify(&sound.set, &WITHOUT_QUESTION).expect(1);
    let mut expected = [
        format!("orphan ConfigMap {}/one", sound.home),
        format!("orphan Service {}/two", sound.away),
    ];
    expected.sort();
    assert_eq!(reported(&run), expected);
    assert_eq!(run.document()["sets"], json!([]));
    assert!(
        run.stderr.contains("kubectl applyset apply secret/web -n"),
        "{}",
        run.stderr
    );
    assert_eq!(cluster().state(&[&sound.home, &sound.away]), before);

    sound.set.apply(&sound.objects);
    sound.assert_sound();
    let without_rights = Set::secret(&sound.home, "none");
    let run = verify(&without_rights, &[]).expect(2);
    assert_eq!(run.stdout, "");
}

#[test]
fn a_member_that_lost_its_label_is_found_until_it_is_repaired() {
    let sound = Sound::new();
    let unlabeled = json!({"metadata": {"labels": {PART_OF: null}}});
    cluster().patch(&sound.objects[0], &unlabeled);
    cluster().create(&config_map(&sound.home, "bystander", "1"));
    let run = verify(&sound.set, &[]).expect(1);
    assert_eq!(rules(&run), ["lost-member", "record-too-wide"]);
    let lost = format!("lost-member ConfigMap {}/one", sound.home);
    assert!(reported(&run).contains(&lost), "{:?}", reported(&run));
    // Put back by an apply.
    sound.set.apply(&sound.objects);
    sound.assert_sound();

    // Or kept in no set, as docs/troubleshooting.md shows.
    cluster().patch(&sound.objects[0], &unlabeled);
    sound.set.apply(&sound.objects[1..]);
    let forgotten = json!({"metadata": {"managedFields": [{}]}});
    cluster().patch(&sound.objects[0], &forgotten);
    assert_eq!(rules(&verify(&sound.set, &[]).expect(0)), [""; 0]);
}

#[test]
fn names_are_those_of_the_objects_found() {
    let sound = Sound::new();
    let stray = member(secret(&sound.home, "stray"), &sound.set);
    cluster().apply_as("kubectl", &stray);
    let run = |flags: &[&str]| {
        Program::new()
            .args(["verify", "--applyset=web", "-n", &sound.home])
            .args(flags)
            .run()
            .expect(1)
    };
    let names = run(&["-o", "name"]);
    let mut lines: Vec<&str> = names.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["secret/stray", "secret/web"]);
    let lines = run(&[]).stdout;
    let line = format!(
        "error unrecorded-member secret/stray in namespace {}: ",
        sound.home
    );
    assert!(lines.lines().any(|found| found.starts_with(&line)), "{lines}");
    assert!(run(&["-o", "yaml"]).stdout.contains("rule: unrecorded-member"));
}

#[test]
fn sets_of_a_namespace_are_verified_together() {
    let home = namespace("home");
    let [one, two] = ["one", "two"].map(|name| Set::secret(&home, name));
    one.apply(&[config_map(&home, "one", "1")]);
    two.apply(&[config_map(&home, "two", "1")]);
    cluster().apply_as("kubectl", &member(secret(&home, "stray"), &two));
    let run = Program::new()
        .args(["verify", "-n", &home, "-o", "json"])
        .run()
        .expect(1);
    let document = run.document();
    let sets: Vec<&Value> = document["sets"].as_array().expect("sets").iter().collect();
    let of_home: Vec<(&Value, &Value)> = sets
        .iter()
        .filter(|set| set["namespace"] == *home)
        .map(|set| (&set["name"], &set["status"]))
        .collect();
    assert_eq!(
        of_home,
        [
            (&json!("one"), &json!("consistent")),
            (&json!("two"), &json!("invalid"))
        ]
    );
    let stray = format!("unrecorded-member Secret {home}/stray+");
    assert!(reported(&run).contains(&stray), "{:?}", reported(&run));
    let ids = document["findings"].as_array().expect("findings").iter();
    let ids: Vec<&Value> = ids.map(|finding| &finding["set"]).collect();
    assert!(
        ids.contains(&&json!(two.id)) && !ids.contains(&&json!(one.id)),
        "{ids:?}"
    );
}

#[test]
fn two_sets_of_a_namespace_hide_no_lost_member_and_no_repair_forgets_it() {
    let [home, away] = [namespace("home"), namespace("away")];
    let [one, two] = ["one", "two"].map(|name| Set::secret(&home, name));
    let lost = [config_map(&home, "lost", "1"), config_map(&away, "lost", "1")];
    one.apply(&lost);
    two.apply(&[config_map(&home, "theirs", "1")]);
    for object in &lost {
        cluster().patch(object, &json!({"metadata": {"labels": {PART_OF: null}}}));
    }

    let lost_of = |namespace: &str| format!("lost-member ConfigMap {namespace}/lost");
    for flags in [&[][..], &["--fix", "--yes"]] {
        let run = verify(&one, flags).expect(1);
        let reported = reported(&run);
        for namespace in [&home, &away] {
            assert!(reported.contains(&lost_of(namespace)), "{reported:?}");
        }
        one.assert_records(&lost);
    }
    let run = verify(&two, &[]).expect(1);
    assert_eq!(reported(&run), [lost_of(&home)]);

    for object in &lost {
        cluster().delete(object);
    }
    verify(&one, &["--fix", "--yes"]).expect(0);
    one.assert_records(&[]);
}
