//! What answers a question, and what does not.

use super::asks;
use crate::support::{Program, Set, Terminal, config_map, eventually, namespace};

#[test]
fn what_was_typed_before_the_question_does_not_answer_it() {
    let home = namespace("home");
    let set = Set::secret(&home, "web");
    let objects = [config_map(&home, "one", "1"), config_map(&home, "two", "1")];
    set.apply(&objects);
    let mut terminal = Terminal::new(80);
    terminal.type_text("web\nweb\n");
    let mut child = set.deletion(Program::new()).start_at(&terminal);
    asks(&terminal);
    set.assert_holds(&objects);
    terminal.type_text("web\n");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(0), "{}", terminal.screen());
    assert_eq!(set.live_parent(), None);
    let screen = terminal.screen();
    let question = screen.lines().find(|line| line.contains("Enter to stop:"));
    assert!(
        question.is_some_and(|line| line.ends_with("Enter to stop: web")),
        "{screen}"
    );
}

#[test]
fn a_question_can_be_left_by_a_signal() {
    for signal in ["-INT", "-TERM"] {
        let home = namespace("home");
        let set = Set::secret(&home, "web");
        let objects = [config_map(&home, "one", "1")];
        set.apply(&objects);
        let terminal = Terminal::new(80);
        let mut child = set.deletion(Program::new()).start_at(&terminal);
        asks(&terminal);
        let pid = child.id().to_string();
        let sent = std::process::Command::new("kill").args([signal, &pid]).status();
        assert!(sent.expect("kill runs").success());
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(130), "{signal}: {}", terminal.screen());
        set.assert_holds(&objects);
        let shown = eventually("the end of the question", || {
            let rows = terminal.rows();
            rows.iter()
                .any(|row| row == "stopped: nothing was written")
                .then_some(rows)
        });
        assert!(!shown.iter().any(|row| row.contains("under way")), "{shown:#?}");
    }
}
