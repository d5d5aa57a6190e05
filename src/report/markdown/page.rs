//! A page of Markdown that fits into a number of bytes. It is cut between objects and messages, and
//! counts those that were left out.

use std::fmt::Write as _;
use std::mem;

use super::text::{code, html_code};
use crate::model::message::Message;
use crate::model::text::counted;
use crate::report::reporter::repeated_messages::keep_shared_hints_on_last;

/// The bytes that are kept for the line about what was left out.
const LAST_LINE_BYTES: usize = 400;

/// A page of Markdown.
pub(in crate::report) struct Page {
    /// The beginning of the page, at most 600 bytes, which is never left out.
    pub(super) beginning: String,
    pub(super) parts: Vec<Part>,
    /// The advice on how to see what was left out.
    pub(super) advice: &'static str,
}

/// A part of a page: items between an opening and a closing text.
#[derive(Default)]
pub(super) struct Part {
    open: String,
    items: Vec<Item>,
    close: &'static str,
}

/// An object or a message on a page.
pub(super) struct Item {
    pub(super) text: String,
    /// The text without the diff; `None` if there is no diff.
    pub(super) brief: Option<String>,
}

/// The form of an item on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    LeftOut,
    Brief,
    Full,
}

impl Item {
    /// Creates a line of a list.
    pub(super) fn line(text: &str) -> Self {
        Self {
            text: format!("- {text}\n"),
            brief: None,
        }
    }

    /// Returns the shortest form.
    fn shortest_form(&self) -> Form {
        match self.brief {
            Some(_) => Form::Brief,
            None => Form::Full,
        }
    }

    fn text(&self, form: Form) -> &str {
        match form {
            Form::LeftOut => "",
            Form::Brief => self.brief.as_deref().unwrap_or_default(),
            Form::Full => &self.text,
        }
    }
}

impl Part {
    /// Creates a list below a title. `title` is not escaped, so it must be text of this program.
    pub(super) fn list(title: &str, items: Vec<Item>) -> Self {
        Self {
            open: format!("\n**{title}**\n\n"),
            items,
            close: "",
        }
    }

    /// Creates a list that is hidden until the reader opens its title. `title` must be text of this program.
    pub(super) fn collapsed(title: &str, items: Vec<Item>) -> Self {
        Self {
            open: format!("\n<details>\n<summary>{title}</summary>\n\n"),
            items,
            close: "\n</details>\n",
        }
    }

    /// Creates a list of messages. A hint that several messages have is only below the last of these.
    pub(super) fn messages(title: &str, messages: Vec<Message>) -> Self {
        let messages = keep_shared_hints_on_last(messages);
        Self::list(title, messages.iter().map(message_item).collect())
    }

    /// Creates a part without a title.
    pub(super) fn untitled(items: Vec<Item>) -> Self {
        Self {
            items,
            ..Self::default()
        }
    }

    /// Returns the bytes of the opening and closing text.
    fn frame_bytes(&self) -> usize {
        self.open.len() + self.close.len()
    }
}

fn message_item(message: &Message) -> Item {
    let mut text = format!("- {}\n", code(&message.text));
    // Writing into memory does not fail.
    for detail in &message.details {
        let _ = writeln!(text, "  - {}", code(detail.trim()));
    }
    for hint in &message.hints {
        let _ = writeln!(text, "  - hint: {}", code(hint));
    }
    Item { text, brief: None }
}

/// Returns the item of an object whose diff is hidden until the reader opens its title. `title` is HTML.
pub(super) fn collapsed_item(title: &str, below: &str) -> Item {
    Item {
        text: format!("\n<details>\n<summary>{title}</summary>\n\n{below}\n</details>\n"),
        brief: Some(format!("\n<p>{title} (diff left out)</p>\n")),
    }
}

/// `<b>prune</b> <code>configmap/web in namespace shop</code>: <code>reason</code>`
pub(super) fn item_title_as_html(action: &str, object: &str, reason: &str) -> String {
    let mut title = format!("<b>{action}</b> {}", html_code(object));
    if !reason.is_empty() {
        let _ = write!(title, ": {}", html_code(reason));
    }
    title
}

impl Page {
    /// Returns the text, with at most `limit` bytes.
    pub(in crate::report) fn text(&self, limit: usize) -> String {
        let parts = self.parts.iter();
        let full: Vec<Vec<Form>> = parts.map(|part| vec![Form::Full; part.items.len()]).collect();
        let text = self.render(&full);
        if text.len() <= limit {
            return text;
        }
        let forms = self.choose_forms(limit.saturating_sub(self.beginning.len() + LAST_LINE_BYTES));
        self.render(&forms) + &self.left_out_line(&forms, limit)
    }

    /// Chooses the form of each item within `room` bytes. First gives every item its shortest form, then spends the
    /// rest of the room on full forms, in the order of the page.
    fn choose_forms(&self, mut room: usize) -> Vec<Vec<Form>> {
        let mut forms = Vec::new();
        for part in &self.parts {
            let mut frame = part.frame_bytes();
            let mut chosen = Vec::new();
            for item in &part.items {
                let form = item.shortest_form();
                let length = item.text(form).len();
                if frame + length > room {
                    chosen.push(Form::LeftOut);
                } else {
                    room -= mem::take(&mut frame) + length;
                    chosen.push(form);
                }
            }
            forms.push(chosen);
        }
        let chosen = self.parts.iter().zip(&mut forms);
        for (item, form) in chosen.flat_map(|(part, forms)| part.items.iter().zip(forms)) {
            let more = item.text.len().saturating_sub(item.text(*form).len());
            if *form == Form::Brief && more <= room {
                room -= more;
                *form = Form::Full;
            }
        }
        forms
    }

    fn render(&self, forms: &[Vec<Form>]) -> String {
        let mut text = self.beginning.clone();
        for (part, forms) in self.parts.iter().zip(forms) {
            let items = part.items.iter().zip(forms);
            let items: String = items.map(|(item, form)| item.text(*form)).collect();
            if !items.is_empty() {
                text.push_str(&part.open);
                text.push_str(&items);
                text.push_str(part.close);
            }
        }
        text
    }

    /// Returns the line that counts what was left out.
    fn left_out_line(&self, forms: &[Vec<Form>], limit: usize) -> String {
        let mut left = Vec::new();
        for (form, word) in [(Form::Brief, "diff"), (Form::LeftOut, "line")] {
            let count = forms.iter().flatten().filter(|chosen| **chosen == form).count();
            left.extend((count > 0).then(|| counted(count, word)));
        }
        format!(
            "\n**Left out** to fit in {limit} bytes: {}.{}\n",
            left.join(", "),
            self.advice
        )
    }
}
