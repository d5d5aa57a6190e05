//! The pictures in docs/pictures: what a person sees at a terminal of 80 columns.
//!
//! Each is captured again and compared with the file; `just documentation` writes the files.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use regex::Regex;
use serde_json::{Value, json};

use super::{Held, asks, last_line, picture};
use crate::support::{
    Files, Program, Proxy, Set, Terminal, cluster, config_map, eventually, named, namespace_object,
    objects_file, with,
};

/// The namespace that all pictures show.
const SHOP: &str = "shop";

#[test]
fn pictures_show_what_is_to_be_seen() {
    cluster().create(&namespace_object(SHOP));
    let shots = [
        ("demo", demo()),
        ("progress", progress()),
        ("view", view()),
        ("diff", diff()),
        ("question", question()),
    ];
    let outdated: Vec<&str> = shots
        .iter()
        .filter(|(name, shot)| !is_kept(name, shot))
        .map(|(name, _)| *name)
        .collect();
    assert!(
        outdated.is_empty(),
        "{outdated:?} look different: `just documentation`"
    );
}

/// A first apply, a second one after objects in two namespaces have left the manifests, and what is left.
fn demo() -> String {
    let home = "front";
    cluster().create(&namespace_object(home));
    cluster().create(&namespace_object("front-reports"));
    let set = Set::secret(home, "web");
    let settings = config_map(home, "settings", "1");
    let first = [
        settings.clone(),
        config_map(home, "banner", "1"),
        config_map("front-reports", "queries", "1"),
        named("v1", "ServiceAccount", Some(home), "web"),
    ];
    let terminal = Terminal::with_rows(80, 16);
    let mut film = Film {
        terminal: &terminal,
        shots: Vec::new(),
    };
    film.type_line("kubectl applyset apply web -n front -f manifests/");
    let (proxy, is_reached, release) = Proxy::held_at(4);
    let files = Files::new().with("web.yaml", &objects_file(&first));
    // One request at a time: the order of the objects is the same in every picture.
    let program = set.command(Program::with_kubeconfig(&proxy.kubeconfig()), &files);
    let mut child = program.args(["--concurrency=1"]).start_at(&terminal);
    is_reached.recv().expect("the fourth write");
    film.shoot(" for ", 1000);
    release.send(()).expect("the gate waits");
    child.wait().expect("it ends");
    film.shoot("4 created", 2500);

    film.type_line("rm manifests/queries.yaml manifests/account.yaml");
    film.type_line("kubectl applyset apply web -n front -f manifests/");
    let files = Files::new().with(
        "web.yaml",
        &objects_file(&[config_map(home, "banner", "2"), settings]),
    );
    let program = set.command(Program::new(), &files).args(["--concurrency=1"]);
    program.start_at(&terminal).wait().expect("it ends");
    film.shoot(" pruned (", 5000);
    picture::moving(&film.shots)
}

/// Shots of a terminal, each with the time that it stays.
struct Film<'a> {
    terminal: &'a Terminal,
    shots: Vec<(Duration, picture::Shot)>,
}

impl Film<'_> {
    /// Types a command word by word, behind a prompt.
    fn type_line(&mut self, command: &str) {
        let mut typed = "$ ".to_owned();
        self.terminal.show(&typed);
        for word in command.split_inclusive(' ') {
            self.terminal.show(word);
            typed.push_str(word);
            self.shoot(typed.trim_end(), 250);
        }
        self.terminal.show("\r\n");
    }

    /// Takes a shot once the lowest line shows this text.
    fn shoot(&mut self, text: &str, milliseconds: u64) {
        eventually(text, || last_line(self.terminal).contains(text).then_some(()));
        let shot = self.terminal.picture(picture::Shot::of);
        self.shots.push((Duration::from_millis(milliseconds), shot));
    }
}

/// A run that waits for the answer to its sixth write.
fn progress() -> String {
    let held = Held::start(80, SHOP, &[], &[]);
    eventually("a slow object", || {
        held.terminal.screen().contains(" for ").then_some(())
    });
    let shot = held.terminal.picture(picture::svg);
    held.finish();
    shot
}

fn view() -> String {
    let terminal = Terminal::new(80);
    let program = Program::new().args(["view", "web", "-n", SHOP]);
    program.start_at(&terminal).wait().expect("it ends");
    eventually("the tree", || terminal.screen().contains("one-9").then_some(()));
    terminal.picture(picture::svg)
}

fn diff() -> String {
    let objects: Vec<Value> = (1..10)
        .map(|number| {
            config_map(
                SHOP,
                &format!("one-{number}"),
                if number == 1 { "2" } else { "1" },
            )
        })
        .collect();
    let files = Files::new().with("a.yaml", &objects_file(&objects));
    let terminal = Terminal::new(80);
    let set = Set::secret(SHOP, "web");
    let program = set
        .invocation(Program::new(), "diff", &["-f", "a.yaml"])
        .in_directory(files.directory());
    program.start_at(&terminal).wait().expect("it ends");
    eventually("the end", || {
        terminal.screen().contains("full text").then_some(())
    });
    terminal.picture(picture::svg)
}

/// What is asked before data goes.
fn question() -> String {
    let set = Set::secret(SHOP, "database");
    let claim = with(
        named("v1", "PersistentVolumeClaim", Some(SHOP), "orders"),
        &json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    );
    let settings = config_map(SHOP, "settings", "1");
    set.apply(&[settings.clone(), claim]);
    let files = Files::new().with("a.yaml", &objects_file(&[settings]));
    let mut terminal = Terminal::new(80);
    let mut child = set.command(Program::new(), &files).start_at(&terminal);
    asks(&terminal);
    terminal.type_text("no\n");
    child.wait().expect("it ends");
    eventually("the end", || {
        terminal.screen().contains("nothing was written").then_some(())
    });
    terminal.picture(picture::svg)
}

/// Whether the file shows the same but for times; writes it where that is wanted.
fn is_kept(name: &str, shot: &str) -> bool {
    let file = picture_file(name);
    let kept = fs::read_to_string(&file).unwrap_or_default();
    let is_alike = without_times(&kept) == without_times(shot);
    if !is_alike && std::env::var("DOCUMENTATION").is_ok_and(|mode| mode == "write") {
        fs::write(file, shot).expect("written");
        return true;
    }
    is_alike
}

fn picture_file(name: &str) -> PathBuf {
    let pictures = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/pictures");
    pictures.join(name).with_extension("svg")
}

/// The text without what differs from one time to the next.
fn without_times(text: &str) -> String {
    let times = Regex::new(
        r#"127\.0\.0\.1:\d+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:]+Z|\d+ ?m?s\b|\d+/s|[\d.]+ s\b|\d+ requests|textLength="\d+"|x="\d+"| +"#,
    );
    times.expect("a pattern").replace_all(text, "#").into_owned()
}
