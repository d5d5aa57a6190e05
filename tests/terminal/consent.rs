//! What an answer covers: the plan that was shown, and nothing that has joined it since.

use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::asks;
use crate::support::{Files, Program, Set, Terminal, config_map, namespace, objects_file};

/// A command at a terminal that has asked its first question.
struct Asking {
    terminal: Terminal,
    child: Child,
}

impl Asking {
    fn start(program: Program) -> Self {
        let terminal = Terminal::with_rows(120, 200);
        let child = program.start_at(&terminal);
        asks(&terminal);
        Self { terminal, child }
    }

    fn answer(&mut self, text: &str) {
        self.terminal.type_text(text);
    }

    fn ends(mut self, code: i32) {
        let status = self.child.wait().expect("it ends");
        assert_eq!(status.code(), Some(code), "{}", self.terminal.screen());
    }
}

fn apply(set: &Set, objects: &[Value], flags: &[&str]) -> Asking {
    let files = Files::new().with("a.yaml", &objects_file(objects));
    Asking::start(set.command(Program::new(), &files).args(flags))
}

#[test]
fn time_at_a_question_does_not_count() {
    let home = namespace("home");
    let sets = ["apply", "delete"].map(|command| Set::secret(&home, command));
    let objects = sets.each_ref().map(|set| {
        let objects = ["kept", "gone", "more"].map(|name| format!("{}-{name}", set.reference));
        objects.map(|name| config_map(&home, &name, "1"))
    });
    for (set, objects) in sets.iter().zip(&objects) {
        set.apply(objects);
    }
    let flags = ["--timeout=15s"];
    let asking = [
        apply(&sets[0], &[], &flags),
        Asking::start(sets[1].deletion(Program::new()).args(flags)),
    ];
    sleep(Duration::from_secs(16));
    for mut asking in asking {
        asking.answer("no\n");
        asking.ends(3);
    }
    for (set, objects) in sets.iter().zip(&objects) {
        set.assert_holds(objects);
    }
}
