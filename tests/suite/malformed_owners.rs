//! An answer with owner references that make no sense: the member is not left out of the list
//! that it stands in, and nothing is concluded from that list.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use serde_json::{Value, json};

use crate::support::{
    Files, Program, Proxy, Sent, Set, Verdict, Watch, cluster, config_map, namespace, objects_file,
};

/// Gives the object of this name owner references that cannot be read, in every answer.
struct Garbled(&'static str);

impl Watch for Garbled {
    fn before(&self, _: &Sent, _: usize) -> Verdict {
        Verdict::Forward
    }

    fn after(&self, _: &Sent, answer: Response<Bytes>) -> Response<Bytes> {
        answer.map(|body| match serde_json::from_slice::<Value>(&body) {
            Ok(mut answer) => {
                self.garble(&mut answer);
                for item in answer["items"].as_array_mut().into_iter().flatten() {
                    self.garble(item);
                }
                Bytes::from(answer.to_string())
            }
            Err(_) => body,
        })
    }
}

impl Garbled {
    fn garble(&self, object: &mut Value) {
        let metadata = object.get_mut("metadata").filter(|it| it["name"] == self.0);
        if let Some(metadata) = metadata {
            metadata["ownerReferences"] = json!([{"kind": "Service", "name": "web"}]);
        }
    }
}

#[test]
fn a_member_whose_owners_cannot_be_read_is_not_forgotten() {
    let home = namespace("home");
    let [set, other] = ["web", "other"].map(|name| Set::secret(&home, name));
    let objects = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
    set.apply(&objects);
    let files = Files::new().with("objects.yaml", &objects_file(&objects[1..]));
    let directory = files.directory().to_string_lossy();
    let by_proxy = || {
        let proxy = Proxy::watched(Arc::new(Garbled("two")));
        let program = Program::with_kubeconfig(&proxy.kubeconfig());
        (program, proxy)
    };
    let before = cluster().state(&[&home]);
    let commands: [&[&str]; 5] = [
        &["apply", "web", "-f", "-", "--allow-prune-all"],
        &["delete", "web", "--yes"],
        &["disband", "web", "--yes"],
        &["move", "web", "other"],
        &["adopt", "other", "-f", &directory],
    ];
    for command in commands {
        let (program, _proxy) = by_proxy();
        let run = program
            .args(command)
            .args(["-n", &home])
            .input("---\n")
            .run()
            .expect(4);
        assert!(
            run.stderr.contains("owner references"),
            "{command:?}: {}",
            run.stderr
        );
        assert_eq!(cluster().state(&[&home]), before, "{command:?}");
    }
    set.assert_holds(&objects);
    assert_eq!(other.members(), Vec::<String>::new());
}
