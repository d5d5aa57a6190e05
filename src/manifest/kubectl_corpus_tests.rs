//! Each case in `testdata/objects` holds the objects that kubectl reads, or is rejected.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Deserializer, Value};

use super::{Recursion, Source, read_with_standard_input};

fn cases() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/objects");
    let mut cases: Vec<_> = fs::read_dir(directory)
        .expect("the corpus is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    cases.sort();
    cases
}

#[test]
fn objects_are_those_that_kubectl_reads() {
    let cases = cases();
    assert_eq!(cases.len(), 16, "the corpus is incomplete");
    for case in cases {
        let read = read_with_standard_input(&[Source::Path(case.clone())], Recursion::Flat, std::io::empty());
        let name = case.display();
        let Ok(objects) = fs::read_to_string(case.with_extension("json")) else {
            assert!(
                case.with_extension("error").exists(),
                "{name}: kubectl was not asked"
            );
            // The server refuses these metadata.
            if !case.ends_with("finalizers-scalar.yaml") {
                read.expect_err(&name.to_string());
            }
            continue;
        };
        let expected: Result<Vec<Value>, _> = Deserializer::from_str(&objects).into_iter().collect();
        let manifests = read.unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
        let objects: Vec<_> = manifests.iter().map(|manifest| manifest.object.value()).collect();
        assert_eq!(objects, expected.expect("JSON objects"), "{name}");
    }
}
