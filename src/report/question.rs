//! The confirmation prompt, and its answers.

use std::io;

use super::output::print_message;
use super::{Colors, human};
use crate::plan::Refusal;

/// Prints what would happen, and asks for confirmation. Anything but yes or y is no.
pub fn confirm(refusals: &[Refusal], colors: Colors) -> bool {
    for refusal in refusals {
        print_message(human::Label::Warning, &refusal.question(), colors);
    }
    // Don't lock standard error: warnings may be printed while the prompt is open.
    ask(&mut io::stdin().lock(), &mut io::stderr())
}

/// Answers that mean yes, in any letter case.
const YES: [&str; 2] = ["yes", "y"];

/// Asks, and reads the answer. The question ends its line: after an answer that was typed ahead, or
/// none, the next message would otherwise be on the same line.
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
    fn only_yes_confirms_and_the_question_ends_its_line() {
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
