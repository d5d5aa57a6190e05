//! Text arrives as it was written: the server reads the body of server-side apply as YAML,
//! where some characters of JSON mean something else.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::support::{Files, Program, Set, cluster, definition, fresh, named, namespace, with};

/// ASCII and Latin-1 as a whole, and of the rest what YAML or Unicode has special rules for.
fn suspicious() -> impl Iterator<Item = char> {
    let rest = [
        '\u{ad}',
        '\u{200b}',
        '\u{200d}',
        '\u{200e}',
        '\u{2027}',
        '\u{2028}',
        '\u{2029}',
        '\u{202a}',
        '\u{202e}',
        '\u{2060}',
        '\u{3000}',
        '\u{d7ff}',
        '\u{e000}',
        '\u{fdd0}',
        '\u{feff}',
        '\u{fff9}',
        '\u{fffd}',
        '\u{fffe}',
        '\u{ffff}',
        '\u{10000}',
        '\u{1fffe}',
        '\u{1f980}',
        '\u{10ffff}',
    ];
    ('\u{0}'..='\u{ff}').chain(rest)
}

/// Texts in which blanks beside a line break would be folded away.
fn texts() -> BTreeMap<String, String> {
    suspicious()
        .map(|character| {
            let name = format!("u{:05x}", u32::from(character));
            (
                name,
                format!("{character}a {character} \t{character}{character}b{character}"),
            )
        })
        .collect()
}

/// The value as JSON in ASCII, so that no reading of the file can be at fault.
fn manifest(value: &Value) -> String {
    let mut text = String::new();
    for unit in value.to_string().encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if byte < 0x7f => text.push(char::from(byte)),
            _ => write!(text, "\\u{unit:04x}").expect("memory"),
        }
    }
    text
}

fn apply(set: &Set, objects: &[Value], flags: &[&str]) -> crate::support::Run {
    let files = objects
        .iter()
        .enumerate()
        .fold(Files::new(), |files, (place, object)| {
            files.with(&format!("{place}.json"), &manifest(object))
        });
    set.command(Program::new(), &files)
        .args(["-o", "json"])
        .args(flags)
        .run()
}

#[test]
fn every_character_of_a_value_is_stored() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let object = with(
        named("v1", "ConfigMap", Some(&home), "one"),
        &json!({"metadata": {"annotations": texts()}, "data": texts()}),
    );

    apply(&set, std::slice::from_ref(&object), &[]).expect(0);

    let live = cluster().live(&object).expect("the object");
    for (name, text) in texts() {
        assert_eq!(live["data"][&name], text, "{name}");
        assert_eq!(live["metadata"]["annotations"][&name], text, "{name}");
    }
    let run = apply(&set, &[object], &[]).expect(0);
    assert_eq!(run.results("unchanged").len(), 1);
}

#[test]
fn every_character_of_a_key_is_stored() {
    let home = namespace("home");
    let group = format!("{}.example.com", fresh("group"));
    let mut kind = definition(&group, "Namespaced");
    kind["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    cluster().define(&kind);
    let keys: BTreeMap<String, String> = texts().into_iter().map(|(name, text)| (text, name)).collect();
    let object = with(
        named(&format!("{group}/v1"), "Widget", Some(&home), "one"),
        &json!({"spec": {"keys": keys, "<<": {"merge": true}}}),
    );
    let set = Set::secret(&home, "web");

    apply(&set, std::slice::from_ref(&object), &[]).expect(0);

    let live = cluster().live(&object).expect("the object");
    assert_eq!(live["spec"], object["spec"]);
    let run = apply(&set, &[object], &[]).expect(0);
    assert_eq!(run.results("unchanged").len(), 1);
}

#[test]
fn every_character_of_a_parent_is_stored() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let parent = with(set.parent.clone(), &json!({"data": texts()}));
    // Once it is created, and once it is changed.
    for flags in [&[][..], &["--field-manager=another", "--force-conflicts"]] {
        apply(&set, std::slice::from_ref(&parent), flags).expect(0);
        let live = set.live_parent().expect("the parent");
        for (name, text) in texts() {
            assert_eq!(live["data"][&name], text, "{name}");
        }
    }
}

#[test]
fn every_character_of_a_saved_plan_is_stored() {
    let home = namespace("home");
    let set = Set::config_map(&home, "web");
    let member = named("v1", "ConfigMap", Some(&home), "one");
    cluster().create(&member);
    set.apply(std::slice::from_ref(&member));
    let changed = with(member.clone(), &json!({"data": texts()}));
    let files = Files::new().with("objects.json", &manifest(&changed));
    let plan = files.path("plan");
    let diff = |flags: &[&str]| {
        Program::new()
            .args(["diff", &set.reference, "-n", &home, "-f"])
            .args([files.path("objects.json")])
            .args(flags)
            .run()
    };
    diff(&["--out", plan.to_str().expect("a path")]).expect(1);

    Program::new()
        .args(["apply", "--plan"])
        .args([&plan])
        .run()
        .expect(0);

    let live = cluster().live(&member).expect("the object");
    for (name, text) in texts() {
        assert_eq!(live["data"][&name], text, "{name}");
    }
    diff(&[]).expect(0);
}
