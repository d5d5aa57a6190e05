//! The scan itself, on small sources.

use super::*;

fn sources(files: &[(&str, &str)]) -> Sources {
    files
        .iter()
        .map(|(file, text)| (PathBuf::from(file), (*text).to_owned()))
        .collect()
}

/// The edges of a crate of these files, as `FROM -> TO`.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    edges(&sources(files)).keys().map(ToString::to_string).collect()
}

#[test]
fn every_way_to_name_a_module_is_found() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("plan/mod.rs", "use crate::model::Live;", &["plan -> model"]),
        ("plan/mod.rs", "pub use crate::model;", &["plan -> model"]),
        (
            "plan/mod.rs",
            "use crate::{model, read::{list::Page, members}, wait::*};",
            &["plan -> model", "plan -> read", "plan -> wait"],
        ),
        ("plan/mod.rs", "use crate::plan::{read, wait};", &[]),
        (
            "plan/mod.rs",
            "use crate::{plan::{read, wait}, event};",
            &["plan -> event"],
        ),
        ("plan/mod.rs", "use super::read;", &["plan -> read"]),
        ("plan/mod.rs", "use self::super::read;", &["plan -> read"]),
        (
            "plan.rs",
            "use super::{read, wait as w};",
            &["plan -> read", "plan -> wait"],
        ),
        ("plan/judge.rs", "use super::read;", &[]),
        ("plan/judge.rs", "use super::super::read;", &["plan -> read"]),
        (
            "plan/judge.rs",
            "use super::{super::read, inside};",
            &["plan -> read"],
        ),
        ("plan/judge/owner.rs", "use super::super::read;", &[]),
        (
            "plan/mod.rs",
            "fn f() -> crate::read::Page { todo() }",
            &["plan -> read"],
        ),
        (
            "plan/mod.rs",
            "fn f() { let x = [crate :: read :: list()]; }",
            &["plan -> read"],
        ),
        ("plan/mod.rs", "mod inner { use super::read; }", &[]),
        (
            "plan/mod.rs",
            "mod inner { use super::super::read; }",
            &["plan -> read"],
        ),
        (
            "plan/mod.rs",
            "mod inner { fn f() {} } use super::read;",
            &["plan -> read"],
        ),
        ("plan/mod.rs", "use kube::crate_name::read; use std::read;", &[]),
        (
            "plan/mod.rs",
            "fn f<'a>(x: &'a crate::read::Page) {}",
            &["plan -> read"],
        ),
        ("lib.rs", "use crate::read;", &[]),
        ("main.rs", "use crate::read;", &[]),
    ];
    for (file, source, expected) in cases {
        assert_eq!(found(&[(file, source)]), *expected, "{file}: {source}");
    }
}

#[test]
fn text_and_tests_name_nothing() {
    let cases = [
        "// use crate::read;",
        "/// See [`crate::read`].\nfn f() {}",
        "/* use /* crate::wait */ crate::read; */",
        r#"const X: &str = "crate::read";"#,
        r#"const X: &str = "\" crate::read";"#,
        r##"const X: &str = r#"" crate::read"#;"##,
        r##"const X: &[u8] = br#"crate::read"#;"##,
        r#"const X: &str = "// "; const Y: &str = "crate::read";"#,
        "#[cfg(test)] use crate::read::{a, b};",
        "#[cfg(test)]\nmod tests { use crate::read; fn f() { { } } }",
        "#[cfg(test)] #[expect(lint, reason = \"x\")] mod tests { use crate::read; }",
        "#[cfg(test)] fn f(x: [u8; 2]) { crate::read::f(); }",
    ];
    for source in cases {
        assert_eq!(found(&[("plan/mod.rs", source)]), [""; 0], "{source}");
        let after = format!("{source}\nuse crate::wait;");
        assert_eq!(found(&[("plan/mod.rs", &after)]), ["plan -> wait"], "{after}");
    }
    for character in ["'\"'", r"'\''", r"'\\'", r"'\u{22}'", "b'\"'"] {
        let source = format!("const X: char = {character}; use crate::wait;");
        assert_eq!(found(&[("plan/mod.rs", &source)]), ["plan -> wait"], "{source}");
    }
}

#[test]
fn files_that_are_there_for_tests_name_nothing() {
    let files = [
        (
            "plan/mod.rs",
            "#[cfg(test)]\npub(crate) mod fixtures;\nmod judge;",
        ),
        ("plan/fixtures.rs", "use crate::read;"),
        ("plan/judge/mod.rs", "#[cfg(test)]\nmod tests;\nuse crate::wait;"),
        ("plan/judge/tests/mod.rs", "mod more;"),
        ("plan/judge/tests/more.rs", "use crate::read;"),
    ];
    assert_eq!(found(&files), ["plan -> wait"]);
}

#[test]
fn imports_to_the_right_cycles_and_new_modules_are_found() {
    let files = sources(&[
        ("a.rs", "use crate::c::X;"),
        ("b/mod.rs", "use crate::a::X;"),
        ("c.rs", "fn f() { crate::b::g() }"),
        ("new.rs", ""),
    ]);
    let edges = edges(&files);
    let wrong: Vec<String> = to_the_right(&edges, &["a", "b", "c"])
        .keys()
        .map(ToString::to_string)
        .collect();
    assert_eq!(wrong, ["a -> c"]);
    let way = cycle(&edges.keys().collect()).expect("a cycle");
    assert_eq!(way, ["a", "c", "b", "a"]);
    let settled = edges.keys().filter(|edge| edge.to_string() != "a -> c");
    assert_eq!(cycle(&settled.collect()), None);
    let unknown = without_place(&edges, &files, &["a", "b", "c"]);
    assert_eq!(unknown, BTreeSet::from(["new".to_owned()]));
}

#[test]
fn the_program_is_read() {
    let edges = edges(&program());
    let has = |from: &str, to: &str| {
        edges.contains_key(&Edge {
            from: from.to_owned(),
            to: to.to_owned(),
        })
    };
    assert!(
        has("plan", "model") && has("commands", "execute"),
        "{:?}",
        edges.keys()
    );
}
