//! Limits of a document, and the positions in it.

use super::*;

fn read(text: &str, origin: Position) -> Result<Option<Node>, Errors> {
    super::read(text, origin, &Budget::default())
}

fn problem(text: &str) -> String {
    let errors = read(text, Position::START).expect_err("refused");
    errors.into_iter().next().expect("an error").to_string()
}

#[test]
fn aliases_cannot_multiply_without_end() {
    let mut bomb = vec!["a0: &a0 [x, x, x, x, x, x, x, x, x, x]".to_owned()];
    for level in 1..10 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push(format!("a{level}: &a{level} [{items}]"));
    }
    assert!(problem(&bomb.join("\n")).ends_with("expand to more than 64 MiB"));
}

#[test]
fn depth_is_limited_in_every_style() {
    let block: Vec<_> = (0..200).map(|depth| format!("{}a:", " ".repeat(depth))).collect();
    let block = block.join("\n");
    let flow = format!("a: {}{}", "[".repeat(200), "]".repeat(200));
    let dashes = format!("a:\n{}x", "- ".repeat(200));
    for text in [block, flow, dashes] {
        assert!(problem(&text).ends_with("nested more than 100 levels deep"));
    }
    let allowed = format!("a: {}{}", "[".repeat(99), "]".repeat(99));
    assert!(read(&allowed, Position::START).is_ok());
}

#[test]
fn large_documents_pass() {
    let item = "- name: item\n  value: some text that is not short\n";
    let text = format!("items:\n{}", item.repeat(80_000));
    assert!(text.len() > 3 << 20);
    assert!(read(&text, Position::START).is_ok());
}

#[test]
fn positions_are_those_of_the_source() {
    let node = read("# c\n\na:\n  - b\n  - c: d\n", Position::new(10, 1))
        .expect("valid")
        .expect("a document");
    let items = node.get("a").and_then(Node::items).expect("a list");
    let seen: Vec<_> = items.iter().map(|item| item.position().to_string()).collect();
    assert_eq!(node.position().to_string(), "12:1");
    assert_eq!(seen, ["13:5", "14:5"]);
    assert_eq!(problem("a: 1\n\tb: 2\n"), "2:1: a tab cannot indent a line");
    assert_eq!(
        problem("a: 1\nb: x\u{7}\n"),
        "2:5: character U+0007 is not allowed in a manifest"
    );
}
