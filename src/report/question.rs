//! The question whether to go on, and what counts as an answer.

use std::io;

use super::output::print_message;
use super::{Colors, human};
use crate::plan::Refusal;

/// Shows at a terminal what would happen, and asks whether to go on. Anything but yes or y is no.
pub fn confirm(refusals: &[Refusal], colors: Colors) -> bool {
    for refusal in refusals {
        print_message(human::Label::Warning, &refusal.question(), colors);
    }
    // Whoever is asked may be told something meanwhile, so nothing is locked.
    ask(&mut io::stdin().lock(), &mut io::stderr())
}

/// What counts as a yes, in whichever letter case.
const YES: [&str; 2] = ["yes", "y"];

/// The question ends its line: an answer that was typed ahead, or none at all, would leave
/// the next message behind it.
fn ask(answers: &mut impl io::BufRead, questions: &mut impl io::Write) -> bool {
    let _ = writeln!(questions, "Go on all the same? Type yes or no:");
    let _ = questions.flush();
    let mut answer = String::new();
    answers.read_line(&mut answer).is_ok() && YES.contains(&answer.trim().to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes_and_the_question_ends_its_line() {
        for (typed, is_yes) in [
            ("yes\n", true),
            ("yes", true),
            ("y\n", true),
            ("Yes\n", true),
            (" Y \n", true),
            ("no\n", false),
            ("n\n", false),
            ("N\n", false),
            ("ye\n", false),
            ("yes please\n", false),
            ("\n", false),
            ("", false),
        ] {
            let mut asked = Vec::new();
            assert_eq!(ask(&mut typed.as_bytes(), &mut asked), is_yes, "{typed:?}");
            assert!(asked.ends_with(b"\n"), "{asked:?}");
        }
    }
}
