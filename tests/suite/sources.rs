//! Where manifests come from, and the forms that they have.

use controlplane::ControlPlane;

use crate::support::{Answer, Files, Program, Set, Tunnel, Web, cluster, config_map, namespace};

fn text(namespace: &str, name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {namespace}\ndata:\n  key: \"1\"\n"
    )
}

#[test]
fn several_files_and_directories_make_one_set() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let files = Files::new()
        .with("single.yaml", &text(&home, "a"))
        .with("directory/one.yaml", &text(&home, "b"))
        .with("directory/two.yml", &text(&home, "c"))
        .with("directory/notes.txt", "not: a manifest")
        .with("directory/deeper/three.yaml", &text(&home, "d"));
    let apply = || {
        Program::new()
            .args(["apply", "web", "-n", &home, "-f"])
            .args([files.path("single.yaml")])
            .args(["-f"])
            .args([files.path("directory")])
    };
    let objects = ["a", "b", "c", "d"].map(|name| config_map(&home, name, "1"));

    apply().args(["-R"]).run().expect(0);
    set.assert_holds(&objects);

    apply().run().expect(0);
    set.assert_holds(&objects[..3]);
}

#[test]
fn manifests_come_from_standard_input() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let input = [text(&home, "a"), text(&home, "b")].join("---\n");
    let apply = ["apply", "--applyset=web", "--prune", "-n", &home, "-f", "-"];
    Program::new().args(apply).input(&input).run().expect(0);
    set.assert_holds(&["a", "b"].map(|name| config_map(&home, name, "1")));
}

#[test]
fn lists_and_json_are_manifests_too() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let list = serde_json::json!({
        "apiVersion": "v1",
        "kind": "List",
        "items": [config_map(&home, "a", "1"), config_map(&home, "b", "1")],
    });
    let typed = format!(
        "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {{name: c, namespace: {home}}}\n  apiVersion: v1\n  kind: ConfigMap\n"
    );
    let files = Files::new()
        .with("list.json", &list.to_string())
        .with("typed.yaml", &typed);
    set.command(Program::new(), &files).run().expect(0);
    set.assert_holds(&["a", "b", "c"].map(|name| config_map(&home, name, "1")));
}

#[test]
fn comments_and_empty_documents_are_not_objects() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let manifest = format!("# a comment\n---\n---\n{}---\n# the end\n", text(&home, "a"));
    let files = Files::new().with("a.yaml", &manifest);
    set.command(Program::new(), &files).run().expect(0);
    set.assert_holds(&[config_map(&home, "a", "1")]);
}

#[test]
fn manifests_come_from_addresses() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let manifest = text(&home, "a");
    let web = Web::plain(move |path, before| match path {
        "/moved.yaml" => Answer::redirect("/a.yaml"),
        "/a.yaml" if before < 2 => Answer::status(503),
        "/a.yaml" => Answer::text(&manifest),
        _ => Answer::status(404),
    });
    let apply = |url: &str| {
        Program::new()
            .args(["apply", "web", "-n", &home, "-f", url])
            .run()
    };
    // The first two answers are faults of the server, the redirect being one of the requests.
    apply(&web.url("/moved.yaml")).expect(0);
    set.assert_holds(&[config_map(&home, "a", "1")]);
    assert_eq!(web.asked().len(), 4);

    let run = apply(&web.url_as("me:SUPERSECRET", "/gone.yaml?token=SUPERSECRET")).expect(2);
    assert!(run.stderr.contains("404"), "{}", run.stderr);
    assert!(!run.stderr.contains("SECRET"), "{}", run.stderr);
    let asked = web.asked().pop().expect("a request");
    // "me:SUPERSECRET" in base64.
    assert_eq!(asked.authorization.as_deref(), Some("Basic bWU6U1VQRVJTRUNSRVQ="));
    assert_eq!(web.asked().len(), 5, "what is not there is not asked for again");
    set.assert_holds(&[config_map(&home, "a", "1")]);
}

#[test]
fn addresses_are_read_over_tls_and_never_without_it_again() {
    let home = namespace("home");
    let manifest = text(&home, "a");
    let plain = Web::plain(move |_, _| Answer::text(&manifest));
    let downgrade = plain.url("/a.yaml");
    let manifest = text(&home, "b");
    let web = Web::encrypted(move |path, _| match path {
        "/b.yaml" => Answer::text(&manifest),
        _ => Answer::redirect(&downgrade),
    });
    let set = Set::secret(&home, "web");
    let apply = |path: &str| Program::new().args(["apply", "web", "-n", &home, "-f", &web.url(path)]);
    let authority = ControlPlane::shared().certificate_authority();
    apply("/b.yaml").env("SSL_CERT_FILE", authority).run().expect(0);
    set.assert_holds(&[config_map(&home, "b", "1")]);

    let run = apply("/downgrade")
        .env("SSL_CERT_FILE", authority)
        .run()
        .expect(2);
    assert!(
        run.stderr.contains("redirect from https to http"),
        "{}",
        run.stderr
    );
    assert_eq!(plain.asked(), []);
    let run = apply("/b.yaml").run().expect(2);
    assert!(run.stderr.contains("certificate"), "{}", run.stderr);
}

/// The Authorization header of `me:p@ss%`, of which the address holds the escaped form.
const BASIC: &str = "Basic bWU6cEBzcyU=";

#[test]
fn credentials_of_an_address_are_not_sent_on() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let manifest = text(&home, "a");
    let other = Web::plain(move |_, _| Answer::text(&manifest));
    let elsewhere = other.url("/a.yaml");
    let web = Web::plain(move |path, _| match path {
        "/relative/b" => Answer::redirect("deeper/../absolute"),
        _ => Answer::redirect(&elsewhere),
    });
    let url = web.url_as("m%65:p%40ss%25", "/relative/b");
    let apply = Program::new().args(["apply", "web", "-n", &home, "-f", &url]);
    apply.run().expect(0);
    set.assert_holds(&[config_map(&home, "a", "1")]);
    let asked: Vec<(String, Option<String>)> = web
        .asked()
        .into_iter()
        .chain(other.asked())
        .map(|asked| (asked.path, asked.authorization))
        .collect();
    let expected = [
        ("/relative/b", Some(BASIC)),
        ("/relative/absolute", None),
        ("/a.yaml", None),
    ];
    let expected = expected.map(|(path, basic)| (path.to_owned(), basic.map(str::to_owned)));
    assert_eq!(asked, expected);
}

#[test]
fn the_proxy_of_an_address_is_that_of_its_redirects() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let (a, b) = (text(&home, "a"), text(&home, "b"));
    let here = Web::plain(move |_, _| Answer::text(&a));
    let behind = Web::plain(move |path, _| match path {
        "/b.yaml" => Answer::text(&b),
        _ => Answer::redirect("http://elsewhere.invalid/b.yaml"),
    });
    let apply = |url: &str| {
        let tunnel = Tunnel::to(&behind.host());
        let run = Program::new()
            .env("HTTP_PROXY", tunnel.url(""))
            .env("NO_PROXY", "excepted.invalid")
            .args(["apply", "web", "-n", &home, "-f", url])
            .run();
        let hosts: Vec<String> = tunnel
            .heads()
            .iter()
            .map(|head| head.split_whitespace().nth(1).unwrap_or_default().to_owned())
            .collect();
        (run, hosts)
    };
    let (run, hosts) = apply("http://manifests.invalid/a.yaml");
    run.expect(0);
    assert_eq!(hosts, ["manifests.invalid:80", "elsewhere.invalid:80"]);
    set.assert_holds(&[config_map(&home, "b", "1")]);

    // This machine needs no proxy.
    let (run, hosts) = apply(&here.url("/a.yaml"));
    run.expect(0);
    assert_eq!(hosts, Vec::<String>::new());
    set.assert_holds(&[config_map(&home, "a", "1")]);

    let (run, hosts) = apply("http://excepted.invalid/a.yaml");
    run.expect(2);
    assert_eq!(hosts, Vec::<String>::new());
}

#[test]
fn a_url_without_a_manifest_is_reported() {
    let web = Web::plain(|path, _| match path {
        "/page" => Answer::text("<!DOCTYPE html>\n<title>a.yaml</title>"),
        _ => Answer::redirect("/circle"),
    });
    let table = [
        (web.url("/page"), "HTML page"),
        (web.url("/circle"), "redirects"),
        ("http://".to_owned(), "invalid URL"),
        (
            "http://no.such.host.invalid/a.yaml".to_owned(),
            "http://no.such.host.invalid/a.yaml: ",
        ),
    ];
    for (url, expected) in table {
        let run = Program::new().args(["apply", "web", "-f", &url]).run().expect(2);
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
}

/// A search path that holds nothing but these scripts.
fn search_path(scripts: &[(&str, String)]) -> Files {
    scripts.iter().fold(Files::new(), |files, (name, lines)| {
        files.with_script(name, lines)
    })
}

#[test]
fn manifests_come_from_kustomizations() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let kubectl = ControlPlane::shared().kubectl().display().to_string();
    let files = Files::new()
        .with(
            "base/kustomization.yaml",
            "namePrefix: my-\nresources: [a.yaml, b.yaml]\n",
        )
        .with("base/a.yaml", &text(&home, "a"))
        .with("base/b.yaml", &text(&home, "b"))
        .with("broken/kustomization.yaml", "resources: [gone.yaml]\n")
        .with(
            "refused/kustomization.yaml",
            "resources: [../base]\nlabels:\n- pairs: {applyset.kubernetes.io/part-of: x}\n",
        );
    let with_kubectl = search_path(&[("kubectl", format!("exec {kubectl} \"$@\""))]);
    let with_kustomize = search_path(&[(
        "kustomize",
        format!("[ $1 = build ] || exit 1\nshift\nexec {kubectl} kustomize \"$@\""),
    )]);
    let apply = |programs: &Files, directory: &str| {
        Program::new()
            .env("PATH", programs.directory())
            .args(["apply", "web", "-n", &home, "-k"])
            .args([files.path(directory)])
            .run()
    };
    let objects = ["my-a", "my-b"].map(|name| config_map(&home, name, "1"));
    for programs in [&with_kubectl, &with_kustomize] {
        apply(programs, "base").expect(0);
        set.assert_holds(&objects);
    }
    // The kubectl that has started its plugin goes before that of PATH.
    let broken = search_path(&[("kubectl", "exit 1".to_owned())]);
    let render = |kubectl: &str| {
        Program::new()
            .env("PATH", broken.directory())
            .env("KUBECTL_PATH", kubectl)
            .args(["apply", "web", "-n", &home, "-k"])
            .args([files.path("base")])
            .run()
    };
    render(&kubectl).expect(0);
    render("").expect(2);
    let run = render("/nowhere/kubectl").expect(2);
    assert!(
        run.stderr
            .contains("/nowhere/kubectl kustomize: cannot be started"),
        "{}",
        run.stderr
    );
    let run = apply(&with_kubectl, "broken").expect(2);
    assert!(run.stderr.contains("gone.yaml"), "{}", run.stderr);
    let run = apply(&with_kubectl, "refused").expect(2);
    assert!(
        run.stderr.contains("refused, document 2, line "),
        "{}",
        run.stderr
    );
    let quoting = search_path(&[("kubectl", "echo \"cannot read $*\" >&2\nexit 1".to_owned())]);
    let run = Program::new()
        .env("PATH", quoting.directory())
        .args([
            "apply",
            "web",
            "-n",
            &home,
            "-k",
            "https://me:planted@example.com/x?ref=1",
        ])
        .run()
        .expect(2);
    assert!(run.stderr.contains("`kubectl kustomize DIR`"), "{}", run.stderr);
    assert!(!run.stderr.contains("planted"), "{}", run.stderr);
    let run = apply(&search_path(&[]), "base").expect(2);
    assert!(
        run.stderr.contains("neither kubectl nor kustomize"),
        "{}",
        run.stderr
    );
    set.assert_holds(&objects);
}

#[test]
fn a_kustomization_stands_alone() {
    for more in [&["-f", "a.yaml"][..], &["-R"]] {
        Program::new()
            .args(["apply", "web", "-k", "."])
            .args(more)
            .run()
            .expect(2);
    }
    Program::new().args(["apply", "web"]).run().expect(2);
}

#[test]
fn a_directory_with_a_kustomization_is_for_the_other_flag() {
    let home = namespace("home");
    let files = Files::new()
        .with("prod/kustomization.yml", "resources: [a.yaml]\n")
        .with("prod/a.yaml", &text(&home, "a"));
    let run = Program::new()
        .args(["apply", "web", "-n", &home, "-f"])
        .args([files.path("prod")])
        .run()
        .expect(2);
    let hint = format!("hint: use -k {}", files.path("prod").display());
    assert!(run.stderr.lines().any(|line| line == hint), "{}", run.stderr);
    assert_eq!(cluster().live(&config_map(&home, "a", "1")), None);
}

#[test]
fn an_empty_directory_is_refused_wherever_it_stands() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let files = Files::new()
        .with("a/a.yaml", &text(&home, "a"))
        .with("b/notes.txt", "");
    let apply = |flags: &[&str]| {
        Program::new()
            .args(["apply", "web", "-n", &home, "-f"])
            .args([files.path("a")])
            .args(flags)
            .run()
    };
    apply(&[]).expect(0);
    let empty = files.path("b");
    apply(&["-f", empty.to_str().expect("UTF-8")]).expect(2);
    set.assert_holds(&[config_map(&home, "a", "1")]);
}
