//! Manifests in files, read by the program within bounds of memory and processor time.

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;

use crate::support::{Files, Program, Run, Set, cluster, config_map, named, namespace, objects_file};

/// Address space, in KiB: the program's own is mostly that of its threads.
const MEMORY: u64 = 2 << 20;
/// Processor time, in seconds: much, for a build without optimisation on a slow machine.
const PROCESSOR_TIME: u64 = 120;

fn apply(home: &str, path: &Path) -> Run {
    Program::within(MEMORY, PROCESSOR_TIME)
        .args(["apply", "web", "-n", home, "-o", "json", "-f"])
        .args([path])
        .run()
}

/// Asserts that the manifest is refused with an error that holds the text, and that
/// nothing is written.
#[track_caller]
fn assert_refused(name: &str, manifest: &[u8], text: &str) {
    let home = namespace("home");
    let files = Files::new();
    let path = files.path("bad.yaml");
    std::fs::write(&path, manifest).expect("a file");
    let before = cluster().state(&[&home]);
    let run = apply(&home, &path);
    let head: String = run.stderr.chars().take(2000).collect();
    assert_eq!(run.code, 2, "{name}: {head}");
    assert_eq!(run.stdout, "", "{name}");
    assert!(run.stderr.contains(text), "{name}: no {text:?} in {head}");
    assert!(
        run.stderr.len() < 20_000,
        "{name}: {} bytes of errors",
        run.stderr.len()
    );
    assert!(!run.stderr.contains("panicked"), "{name}: {head}");
    assert_eq!(cluster().state(&[&home]), before, "{name}");
}

#[test]
fn aliases_that_multiply_are_refused() {
    let mut manifest = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(manifest, "a{level}: &a{level} [{below}]").expect("a text");
    }
    assert_refused("lists", manifest.as_bytes(), "aliases");
    let mut manifest = "a0: &a0 {x: y}\n".to_owned();
    for level in 1..20 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(manifest, "a{level}: &a{level} {{<<: [{below}], k: [{below}]}}").expect("a text");
    }
    assert_refused("merges", manifest.as_bytes(), "aliases");
}

#[test]
fn more_values_than_any_object_has_are_refused() {
    const VALUES: usize = 3_000_000;
    let object = "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [";
    for (name, manifest) in [
        ("a block list", format!("items:\n{}", "- a\n".repeat(VALUES))),
        ("a flow list", format!("items: [{}]", "a,".repeat(VALUES))),
        ("a JSON list", format!("{object}{}1]}}", "1,".repeat(VALUES))),
        ("JSON lists", format!("{object}{}[]]}}", "[],".repeat(VALUES))),
    ] {
        assert_refused(name, manifest.as_bytes(), "more than 2000000 values");
    }
}

#[test]
fn what_is_nested_without_end_is_refused() {
    const DEPTH: usize = 200_000;
    for (name, manifest) in [
        ("flow lists", "[".repeat(DEPTH)),
        ("flow mappings", "{a: ".repeat(DEPTH)),
        ("block lists", "- ".repeat(DEPTH)),
        ("JSON lists", format!("{{\"a\": {}", "[".repeat(DEPTH))),
        ("JSON mappings", "{\"a\":".repeat(DEPTH)),
        ("explicit keys", "? ".repeat(DEPTH)),
    ] {
        assert_refused(name, manifest.as_bytes(), "bad.yaml:1");
    }
}

#[test]
fn a_hundred_thousand_documents_are_read_to_the_last() {
    let mut manifest = String::new();
    for number in 0..100_000 {
        writeln!(
            manifest,
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: n{number}}}"
        )
        .expect("a text");
    }
    manifest.push_str("---\nkind: Nothing\n");
    assert_refused("documents", manifest.as_bytes(), "bad.yaml:400002");
}

#[test]
fn a_line_of_many_megabytes_is_read() {
    let line = "x".repeat(32 << 20);
    let manifest =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: one}}\ndata: [{line}]\nkind: {{}}\n");
    assert_refused("one line", manifest.as_bytes(), "bad.yaml:5");
}

#[test]
fn bytes_that_are_not_text_are_refused() {
    for (name, manifest, text) in [
        (
            "latin 1",
            &b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \xe4}\n"[..],
            "UTF-8",
        ),
        ("half a UTF-16 character", b"\xff\xfea\0b", "UTF-8"),
        ("UTF-16 without a mark", b"k\0i\0n\0d\0:\0 \0X\0", "U+0000"),
        (
            "NUL",
            b"apiVersion: v1\nkind: ConfigMap\0\nmetadata: {name: a}\n",
            "U+0000",
        ),
        (
            "a lone surrogate",
            b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"\\ud800\"}\n",
            "bad.yaml:3",
        ),
    ] {
        assert_refused(name, manifest, text);
    }
}

#[test]
fn text_with_a_mark_of_its_encoding_is_read() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let object = config_map(&home, "one", "1");
    let text = objects_file(std::slice::from_ref(&object));
    let wide = |bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
    for manifest in [
        [&[0xef, 0xbb, 0xbf], text.as_bytes()].concat(),
        [&[0xff, 0xfe], wide(u16::to_le_bytes).as_slice()].concat(),
        [&[0xfe, 0xff], wide(u16::to_be_bytes).as_slice()].concat(),
    ] {
        let files = Files::new();
        std::fs::write(files.path("a.yaml"), manifest).expect("a file");
        set.command(Program::new(), &files).run().expect(0);
        set.assert_holds(std::slice::from_ref(&object));
    }
}

#[test]
fn links_that_lead_in_circles_end() {
    use std::os::unix::fs::symlink;
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let object = config_map(&home, "one", "1");
    let files = Files::new().with("deep/a.yaml", &objects_file(std::slice::from_ref(&object)));
    symlink(files.directory(), files.path("deep/up")).expect("a link");
    set.command(Program::new(), &files).args(["-R"]).run().expect(0);
    set.assert_holds(&[object]);

    symlink(files.path("b.yaml"), files.path("b.yaml")).expect("a link");
    let run = set.command(Program::new(), &files).args(["-R"]).run().expect(2);
    assert!(run.errors()[0].contains("b.yaml"), "{}", run.stderr);
}

#[test]
fn a_file_that_never_ends_is_refused() {
    let home = namespace("home");
    let files = Files::new();
    // A gigabyte of nothing takes no room on the disk.
    let sparse = File::create(files.path("large.yaml")).expect("a file");
    sparse.set_len(1 << 30).expect("a large file");
    let run = apply(&home, &files.path("large.yaml")).expect(2);
    assert!(run.errors()[0].contains("large.yaml"), "{}", run.stderr);
    let run = apply(&home, Path::new("/dev/zero")).expect(2);
    assert!(run.errors()[0].contains("/dev/zero"), "{}", run.stderr);
}

#[test]
fn an_object_that_the_server_cannot_store_is_reported_and_the_others_are_applied() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let small = config_map(&home, "small", "1");
    let unread = config_map(&home, "large", &"x".repeat(3_200_000));
    let run = set.apply_with(&[small.clone(), unread], &[]).expect(2);
    assert!(
        run.stderr
            .contains("objects.yaml:13: the object is larger than 3 MiB"),
        "{}",
        run.stderr
    );
    assert_eq!(cluster().live(&small), None);
    // Between what etcd takes and what the server reads.
    for size in [2_000_000, 3_100_000] {
        let large = config_map(&home, "large", &"x".repeat(size));
        let run = set.apply_with(&[small.clone(), large], &[]).expect(1);
        assert_eq!(run.results("failed"), [format!("ConfigMap {home}/large")]);
        let error = run.errors().join("\n");
        assert!(
            error.contains("too large") || error.contains("Too long"),
            "{error}"
        );
        assert!(run.stderr.len() < 5000, "{} bytes of errors", run.stderr.len());
        set.assert_holds_at_least(std::slice::from_ref(&small));
    }
}

#[test]
fn nothing_in_a_manifest_reaches_the_terminal_raw() {
    let home = namespace("home");
    let escape = "\\u001b]0;owned\\u0007\\u001b[31m\\u009b2J\\u007f";
    let object = |kind: &str, name: &str, namespace: &str, key: &str| {
        format!(
            "apiVersion: v1\nkind: \"{kind}\"\nmetadata: {{name: \"{name}\", namespace: \"{namespace}\"}}\ndata: {{\"{key}\": a}}\n"
        )
    };
    for manifest in [
        object(escape, "a", &home, "k"),
        object("ConfigMap", escape, &home, "k"),
        object("ConfigMap", "a", escape, "k"),
        object("ConfigMap", "a", &home, escape),
        format!("\"{escape}\": x\napiVersion: \"{escape}\"\nkind: A\n"),
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, labels: {{\"{escape}\": \"{escape}\"}}}}\n"
        ),
        format!("a: &x{escape} *y{escape}\n"),
    ] {
        let files = Files::new().with("a.yaml", &manifest);
        for format in ["json", "yaml", "name"] {
            let run = Program::new()
                .args([
                    "apply",
                    "web",
                    "-n",
                    &home,
                    "-v",
                    "-v",
                    "--color=never",
                    "-o",
                    format,
                    "-f",
                ])
                .args([files.directory()])
                .run();
            assert_ne!(run.code, 0, "{manifest}");
            for text in [&run.stdout, &run.stderr] {
                let raw = text
                    .chars()
                    .find(|character| character.is_control() && *character != '\n');
                assert_eq!(raw, None, "{manifest}: {text:?}");
            }
        }
    }
    let set = Set::secret(&home, "web");
    assert_eq!(set.members(), Vec::<String>::new());
    assert_eq!(cluster().live(&named("v1", "ConfigMap", Some(&home), "a")), None);
}
