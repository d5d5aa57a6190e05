//! The releases of a project whose manifests hold Jobs, applied one after the other.

use std::fs;
use std::path::Path;

use crate::support::{Files, Program, Set, fresh, namespace};

/// Version, and image of the Jobs.
const RELEASES: [(&str, &str); 5] = [
    ("1.1.0", "registry.example.com/certificates:1"),
    ("1.4.0", "registry.example.com/certificates:2"),
    // The labels of the template change with each version.
    ("1.8.0", "registry.example.com/certificates:2"),
    ("1.10.0", "registry.example.com/certificates:3"),
    ("1.12.0", "registry.example.com/certificates:4"),
];

#[test]
fn releases_with_jobs_follow_each_other() {
    let home = namespace("home");
    let set = Set::secret(&home, "gateway");
    let [place, cluster] = [fresh("gateway"), fresh("gateway")];
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/gateway.yaml");
    let template = fs::read_to_string(file).expect("the manifests");
    for (number, (version, image)) in RELEASES.into_iter().enumerate() {
        let text = template
            .replace("VERSION", version)
            .replace("IMAGE", image)
            .replace("PLACE", &place)
            .replace("CLUSTER", &cluster);
        let files = Files::new().with("deploy.yaml", &text);
        let apply = || {
            set.command(Program::new(), &files)
                .args(["--recreate=Job", "--hooks=apply", "-o", "json"])
                .run()
                .expect(0)
        };
        let run = apply();
        let jobs = ["create", "patch"].map(|job| format!("Job.batch {place}/gateway-certificates-{job}"));
        let expected = if number == 0 { Vec::new() } else { jobs.to_vec() };
        assert_eq!(run.results("recreated"), expected, "{version}");
        let again = apply();
        let count = again.document()["results"].as_array().map(Vec::len);
        assert_eq!(
            Some(again.results("unchanged").len()),
            count,
            "{version}: {}",
            again.stdout
        );
    }
}
